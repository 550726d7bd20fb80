"""Asking solvers: every obligation goes to z3 and, unless told otherwise, to cvc5 as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from . import solver_cvc5, solver_z3
from .claims import Answer, Obligation
from .printer import script

__all__ = ["Discharger", "NotDischarged", "decide"]


class NotDischarged(Exception):
    """An obligation that did not get its expected answer; carries it."""

    def __init__(self, obligation: Obligation) -> None:
        self.obligation = obligation
        answers = ", ".join(f"{a.solver}: {a.status}{' ' + a.reason if a.reason else ''}" for a in obligation.answers)
        super().__init__(
            f"obligation '{obligation.name}' ({obligation.group}) needs the answer {obligation.expected}; {answers}"
        )


def decide(hypotheses: list[FNode], goal: FNode, timeout: float = 3.0) -> bool:
    """Whether z3 proves that ``goal`` follows from ``hypotheses``; False also where it does not know."""
    return solver_z3.check(script([*hypotheses, smt.Not(goal)]), timeout).status == "unsat"


@dataclass
class Discharger:
    """Collects obligations and their answers.

    ``timeout`` is in seconds per solver and obligation; ``second`` also asks cvc5; ``progress`` is told each result.
    """

    timeout: float = 20.0
    second: bool = True
    progress: Callable[[Obligation], None] | None = None
    obligations: list[Obligation] = field(default_factory=list)

    def ask(
        self,
        group: str,
        name: str,
        assertions: Iterable[FNode],
        meaning: str,
        *,
        expected: str = "unsat",
        definitions: Iterable[str] = (),
    ) -> Obligation:
        """Puts one question to the solvers; raises NotDischarged unless all give the ``expected`` answer."""
        text = script(assertions, comment=f"{group}: {name}\n{meaning}", definitions=definitions)
        return self.ask_text(Obligation(name, group, text, expected, meaning))

    def ask_text(self, obligation: Obligation) -> Obligation:
        """As :meth:`ask`, for an obligation whose script is already written."""
        answers: list[Answer] = [solver_z3.check(obligation.smtlib, self.timeout)]
        if self.second and answers[0].status == obligation.expected:
            answers.append(solver_cvc5.check(obligation.smtlib, self.timeout))
        answered = replace(obligation, answers=tuple(answers))
        self.obligations.append(answered)
        if self.progress is not None:
            self.progress(answered)
        if not answered.discharged:
            raise NotDischarged(answered)
        return answered

    def stopwatch(self) -> Callable[[], float]:
        """Seconds since this call."""
        start = time.perf_counter()
        return lambda: time.perf_counter() - start
