"""What solvers answered in this process, and in those that told it: a question is asked once, whatever its names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from .claims import Answer
from .renaming import numbered, question_of
from .solvers import cvc5 as solver_cvc5
from .solvers import z3 as solver_z3

Check = Callable[[str, float, float], Answer]

_Key = tuple[Check, str]
_Known = tuple[str, Answer, float]
_ANSWERED: dict[_Key, _Known] = {}
"""By digests of scripts with numbered symbols: that of the script that was asked, its answer, and the seconds that the
solver had."""
_OWN: dict[_Key, _Known] = {}
"""Those of this process."""
_MOST_ANSWERED = 200_000


def ask(check: Check, smtlib: str, timeout: float, patience: float = 1.0) -> Answer:
    """A solver's answer; one that it gave before, to the same text but for comments and the names of symbols, is taken
    again.

    The quick questions by which a proof finds its form come again as its obligations, and so do obligations of loops
    that are alike.  A model is of the very text.  What took longer than ``timeout`` is asked again, unless no more time
    was given then.
    """
    text = "\n".join([*lines_of(smtlib), ""])
    key, mine = (check, _digest(numbered(text))), _digest(text)
    asked, answer, limit = _ANSWERED.get(key, (mine, None, 0.0))
    if answer is None or (answer.status == "sat" and asked != mine) or (answer.seconds > timeout and limit > timeout):
        answer = check(smtlib, timeout, patience)
        if answer.status != "unknown":
            _keep(key, (mine, answer, timeout))
            _OWN[key] = _ANSWERED[key]
    return answer


def told() -> list[Any]:
    """The answers that z3 and cvc5 gave in this process, as JSON: for the process that it was forked from."""
    names = {check: name for name, check in _solvers().items()}
    own = ((names[check], digest, known) for (check, digest), known in _OWN.items() if check in names)
    return [[name, digest, asked, asdict(answer), limit] for name, digest, (asked, answer, limit) in own]


def believe(answers: Iterable[Any]) -> None:
    """Keeps what a process that was forked from this one told: it is this code, with these solvers."""
    solvers = _solvers()
    for name, digest, asked, answer, limit in answers:
        _keep((solvers[name], digest), (asked, Answer(**answer), limit))


def lines_of(smtlib: str) -> list[str]:
    """Lines without comments; all of the script is one where a quoted name or text may go on in the next line."""
    lines = question_of(smtlib).split("\n")
    if any(_leaves_open(line) for line in lines):
        return [smtlib]
    return [line for line in lines if line and not line.startswith(";")]


def _leaves_open(line: str) -> bool:
    names, texts = line.count("|"), line.count('"')
    return bool(names % 2 or texts % 2 or (names and texts))


def _solvers() -> dict[str, Check]:
    return {"z3": solver_z3.check, "cvc5": solver_cvc5.check}


def _keep(key: _Key, known: _Known) -> None:
    while len(_ANSWERED) >= _MOST_ANSWERED:
        oldest = next(iter(_ANSWERED))
        del _ANSWERED[oldest]
        _OWN.pop(oldest, None)
    _ANSWERED[key] = known


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
