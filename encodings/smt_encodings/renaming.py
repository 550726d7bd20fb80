"""Scripts up to the names of their symbols: with all symbols numbered, scripts that differ in names only are one text.

Loops that are alike, and claims that are, lead to many such scripts.  A symbol is renamed wherever it stands, and two
symbols get two names, so the renamed script has a model if and only if the given one has.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate

from .environment import is_solvers_own

_TOKEN = re.compile(r"[^\s()]+")
_DECLARATION = re.compile(r"\(declare-fun ([^\s()]+) (\([^;]*\) [^;]*)\)")
_ASSERTION = "(assert "
_PARENTHESIS = re.compile(r"[()]")
_INDEXED = re.compile(r"\(_ ([^\s()]+)")
_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z~!@$%^&*_+=<>.?/-][0-9A-Za-z~!@$%^&*_+=<>.?/-]*")
"""A simple symbol of SMT-LIB 2.6, section 3.1, with a letter."""
_OURS = re.compile(r"v[0-9]+")
_SORTS = frozenset(("Array", "BitVec", "Bool", "Float16", "Float32", "Float64", "FloatingPoint", "Int", "Real"))


def question_of(smtlib: str) -> str:
    """The script without the comments at its head, which name the obligation; all other bytes count.

    Where nothing was begun yet, a line that begins with a semicolon is a comment.  Readers differ in what ends a line,
    so nothing is left out of a script with control characters.
    """
    if not smtlib.replace("\n", "").isprintable():
        return smtlib
    at = 0
    while smtlib.startswith(";", at):
        at = smtlib.find("\n", at) + 1
        if not at:
            return smtlib
    return smtlib[at:]


@lru_cache(maxsize=100)
def numbered(smtlib: str) -> str:
    """The script with its symbols called ``v0``, ``v1``, ... as they first occur in assertions, and no comments before.

    It is left as it is where it has anything but a line of ``set-logic``, and whole commands ``declare-fun`` and
    ``assert``, each on a line of its own, before ``check-sat``; where names or texts are quoted; and where a name is
    declared twice, has the form of the new ones, or is that of a sort or an operator as well.
    """
    logic, *lines = [*question_of(smtlib).split("\n"), ""]
    if not smtlib.replace("\n", "").isprintable() or any(c in smtlib for c in '|"'):
        return smtlib
    if not logic.startswith("(set-logic ") or lines[-3:] != ["(check-sat)", "", ""]:
        return smtlib
    sorts: dict[str, str] = {}
    assertions: list[str] = []
    for line in lines[:-3]:
        declaration = _DECLARATION.fullmatch(line)
        if not _is_one_command(line):
            return smtlib
        if declaration is not None and declaration[1] not in sorts:
            sorts[declaration[1]] = declaration[2]
        elif line.startswith(_ASSERTION) and ";" not in line:
            assertions.append(line.removeprefix(_ASSERTION))
        else:
            return smtlib
    body = "\n".join(assertions)
    otherwise_used = _SORTS.union(_INDEXED.findall(body))
    if any(is_solvers_own(s) or not _NAME.fullmatch(s) for s in sorts):
        return smtlib
    if not otherwise_used.isdisjoint(sorts) or any(map(_OURS.fullmatch, _TOKEN.findall(body))):
        return smtlib
    names: dict[str, str] = {}

    def renamed(token: re.Match[str]) -> str:
        return names.setdefault(token[0], f"v{len(names)}") if token[0] in sorts else token[0]

    asserted = [_ASSERTION + line for line in _TOKEN.sub(renamed, body).split("\n") if line]
    for symbol in sorts:  # those in no assertion
        names.setdefault(symbol, f"v{len(names)}")
    declared = [f"(declare-fun {new} {sorts[old]})" for old, new in names.items()]
    return "\n".join([logic, *declared, *asserted, "(check-sat)"]) + "\n"


def _is_one_command(line: str) -> bool:
    """Whether the first parenthesis of a line is closed by its last character."""
    depths = list(accumulate(1 if p == "(" else -1 for p in _PARENTHESIS.findall(line)))
    return line.endswith(")") and depths[-1] == 0 and 0 not in depths[:-1]
