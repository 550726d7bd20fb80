"""Asking solvers: every obligation goes to z3 and, unless told otherwise, to cvc5 as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from . import solver_cvc5, solver_z3
from .claims import Answer, Obligation
from .printer import script

__all__ = ["Discharger", "NotDischarged", "conjuncts", "decide"]


class NotDischarged(Exception):
    """An obligation that did not get its expected answer; carries it."""

    def __init__(self, obligation: Obligation) -> None:
        self.obligation = obligation
        answers = ", ".join(f"{a.solver}: {a.status}{' ' + a.reason if a.reason else ''}" for a in obligation.answers)
        super().__init__(
            f"obligation '{obligation.name}' ({obligation.group}) needs the answer {obligation.expected}; {answers}"
        )


def conjuncts(terms: Iterable[FNode]) -> list[FNode]:
    """The terms with conjunctions taken apart, each once."""
    found: dict[FNode, None] = {}
    stack = list(terms)[::-1]
    while stack:
        term = stack.pop()
        if term.is_and():
            stack.extend(reversed(term.args()))
        else:
            found[term] = None
    return list(found)


def _enough(hypotheses: list[FNode], goal: FNode) -> list[FNode]:
    """The first of a few growing sets of hypotheses, by symbols shared with the goal, that z3 proves the goal from."""
    reached = set(goal.get_free_variables())
    chosen: list[FNode] = []
    for _ in range(4):
        grown = [h for h in hypotheses if h.get_free_variables() <= reached]
        if len(grown) > len(chosen) or not chosen:
            chosen = grown
            if len(chosen) == len(hypotheses):
                break
            if decide(chosen, goal, 0.5):
                return chosen
        reached |= {s for h in hypotheses if h.get_free_variables() & reached for s in h.get_free_variables()}
    return hypotheses


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

    def follows(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode, meaning: str) -> Obligation:
        """Asks whether ``goal`` follows from ``hypotheses``, of which only the ones needed are kept.

        Dropping hypotheses makes the theorem stronger, the obligation shorter, and the second solver's work easier.
        """
        assertions = [smt.Not(goal), *conjuncts(hypotheses)]
        needed = solver_z3.core(script(assertions), 0.3)
        if needed is None:
            assertions = [smt.Not(goal), *_enough(assertions[1:], goal)]
        else:
            assertions = [assertions[i] for i in needed]
        return self.ask(group, name, assertions, meaning)

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
