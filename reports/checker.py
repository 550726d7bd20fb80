"""Replaying a certificate: every obligation is put to a solver again, from its text alone.

This module shares nothing with the provers.  It does not know what a nest or a witness is; it feeds SMT-LIB text to a
solver's own parser and compares answers.  That the obligations are the ones a claim needs is a separate question
(:mod:`reports.binding`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smt_encodings import solver_cvc5, solver_z3
from smt_encodings.claims import Answer

__all__ = ["SOLVERS", "Replay", "replay"]

SOLVERS: Mapping[str, Callable[[str, float], Answer]] = {"cvc5": solver_cvc5.check, "z3": solver_z3.check}
"""The solvers that can replay, by name."""


@dataclass(frozen=True)
class Replay:
    """The outcome of replaying one certificate with one solver; ``problems`` is empty where all answers are right."""

    solver: str
    obligations: int
    seconds: float
    problems: tuple[str, ...]


def replay(certificate: Mapping[str, Any], solver: str, timeout: float = 60.0) -> Replay:
    """Asks ``solver`` every obligation of a certificate; ``timeout`` in seconds per obligation.

    Raises KeyError on an unknown solver.
    """
    check = SOLVERS[solver]
    problems: list[str] = []
    seconds, version = 0.0, solver
    for obligation in certificate["obligations"]:
        where = f"{obligation['group']}: {obligation['name']}"
        if obligation["smtlib"].count("(check-sat)") != 1:
            problems.append(f"{where}: the script must ask exactly one question")
            continue
        try:
            answer = check(obligation["smtlib"], timeout)
        except ValueError as error:
            problems.append(f"{where}: {error}")
            continue
        seconds += answer.seconds
        version = answer.solver
        if answer.status != obligation["expected"]:
            problems.append(f"{where}: expected {obligation['expected']}, {answer.solver} says {answer.status}")
    return Replay(version, len(certificate["obligations"]), seconds, tuple(problems))
