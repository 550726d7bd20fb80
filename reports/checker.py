"""Replaying a certificate: a solver is asked every obligation again, from its text alone.

This module shares nothing with the provers.  It does not know what a nest or a witness is; it feeds SMT-LIB text to a
solver's own parser and compares answers.  That the obligations are the ones a claim needs is a separate question
(:mod:`reports.binding`).

Loops that are alike lead to obligations that are one text but for the names of symbols.  A run asks a solver one of
these as it stands: the answers that it got in this run may be passed on from one certificate to the next, and nothing
else is believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from smt_encodings.claims import Answer
from smt_encodings.renaming import numbered, question_of
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

SOLVERS: Mapping[str, Callable[[str, float], Answer]] = {"cvc5": solver_cvc5.check, "z3": solver_z3.check}
"""The solvers that can replay, by name."""

_VERSIONS: Mapping[str, Callable[[], str]] = {"cvc5": solver_cvc5.version, "z3": solver_z3.version}

MORE_TIME = 5.0
"""A second attempt gets this multiple of the time limit: a busy machine is slower than the one that proved."""


@dataclass(frozen=True)
class Replay:
    """The outcome of replaying one certificate with one solver.

    ``wrong`` are unexpected answers and malformed questions; ``undecided`` are obligations without an answer.
    ``asked`` counts the questions put to the solver; the other obligations have the text of one of these, but for the
    names of symbols.
    """

    solver: str
    obligations: int
    asked: int
    seconds: float
    wrong: tuple[str, ...]
    undecided: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the certificate cannot be accepted; empty where all answers are right."""
        return self.wrong + self.undecided


def replay(
    certificate: Mapping[str, Any],
    solver: str,
    timeout: float = 60.0,
    answered: MutableMapping[str, str] | None = None,
) -> Replay:
    """Asks ``solver`` every obligation of a certificate; ``timeout`` in seconds per obligation.

    Where no answer comes in that time, the obligation is asked again, with MORE_TIME times as much.

    ``answered`` are answers that this function got in the same run with the same timeout, under keys that name the
    solver and the whole question; new ones are added.
    Raises KeyError on an unknown solver.
    """
    check, version = SOLVERS[solver], _VERSIONS[solver]()
    known: MutableMapping[str, str] = {} if answered is None else answered
    wrong: list[str] = []
    undecided: list[str] = []
    asked, seconds = 0, 0.0
    for obligation in certificate["obligations"]:
        where = f"{obligation['group']}: {obligation['name']}"
        if obligation["smtlib"].count("(check-sat)") != 1:
            wrong.append(f"{where}: the script must ask exactly one question")
            continue
        question = numbered(question_of(obligation["smtlib"]))
        key = f"{solver} {hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()}"
        status = known.get(key)
        if status is None:
            asked += 1
            try:
                for limit in (timeout, MORE_TIME * timeout):
                    answer = check(obligation["smtlib"], limit)
                    seconds += answer.seconds
                    if answer.status != "unknown":
                        break
            except ValueError as error:
                wrong.append(f"{where}: {error}")
                continue
            if answer.status == "unknown":
                undecided.append(
                    f"{where}: {version} gave no answer within {timeout:g} s, and then {MORE_TIME * timeout:g} s"
                    f"{f' ({answer.reason})' if answer.reason else ''}; give more time with --timeout"
                )
                continue
            status = known[key] = answer.status
        if status != obligation["expected"]:
            wrong.append(f"{where}: expected {obligation['expected']}, {version} says {status}")
    return Replay(version, len(certificate["obligations"]), asked, seconds, tuple(wrong), tuple(undecided))
