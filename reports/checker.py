"""Replaying a certificate: every obligation is put to a solver again, from its text alone.

This module shares nothing with the provers.  It does not know what a nest or a witness is; it feeds SMT-LIB text to a
solver's own parser and compares answers.  That the obligations are the ones a claim needs is a separate question
(:mod:`reports.binding`).

Loops that are alike lead to obligations with the same text.  A run asks a solver each text once: the answers that it
got in this run may be passed on from one certificate to the next, and nothing else is believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from smt_encodings import solver_cvc5, solver_z3
from smt_encodings.claims import Answer

__all__ = ["SOLVERS", "Replay", "replay"]

SOLVERS: Mapping[str, Callable[[str, float], Answer]] = {"cvc5": solver_cvc5.check, "z3": solver_z3.check}
"""The solvers that can replay, by name."""

_VERSIONS: Mapping[str, Callable[[], str]] = {"cvc5": solver_cvc5.version, "z3": solver_z3.version}


@dataclass(frozen=True)
class Replay:
    """The outcome of replaying one certificate with one solver; ``problems`` is empty where all answers are right.

    The solver was ``asked`` so many questions; the other obligations have the text of one that was asked before.
    """

    solver: str
    obligations: int
    asked: int
    seconds: float
    problems: tuple[str, ...]


def replay(
    certificate: Mapping[str, Any],
    solver: str,
    timeout: float = 60.0,
    answered: MutableMapping[str, str] | None = None,
) -> Replay:
    """Asks ``solver`` every obligation of a certificate; ``timeout`` in seconds per obligation.

    ``answered`` are answers that this function got in the same run with the same timeout, under keys that name the
    solver and the whole question; new ones are added.  Where a solver did not know, it is asked again.
    Raises KeyError on an unknown solver.
    """
    check, version = SOLVERS[solver], _VERSIONS[solver]()
    known: MutableMapping[str, str] = {} if answered is None else answered
    problems: list[str] = []
    asked, seconds = 0, 0.0
    for obligation in certificate["obligations"]:
        where = f"{obligation['group']}: {obligation['name']}"
        if obligation["smtlib"].count("(check-sat)") != 1:
            problems.append(f"{where}: the script must ask exactly one question")
            continue
        question = _question(obligation["smtlib"]).encode("utf-8", "surrogatepass")
        key = f"{solver} {hashlib.sha256(question).hexdigest()}"
        status = known.get(key)
        if status is None:
            try:
                answer = check(obligation["smtlib"], timeout)
            except ValueError as error:
                problems.append(f"{where}: {error}")
                continue
            asked += 1
            seconds += answer.seconds
            status = answer.status
            if status in ("sat", "unsat"):
                known[key] = status
        if status != obligation["expected"]:
            problems.append(f"{where}: expected {obligation['expected']}, {version} says {status}")
    return Replay(version, len(certificate["obligations"]), asked, seconds, tuple(problems))


def _question(smtlib: str) -> str:
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
