"""A derivation of a rule, checked: the kernel replays it, and its obligations are asked or written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ir_semantics.tensors.conditions import FALSE, TRUE, Condition, equal, indices_of, le
from ir_semantics.tensors.index import Index, divisors
from smt_encodings.claims import Equality, Obligation
from smt_encodings.discharge import Discharger, NotDischarged, Requirement
from smt_encodings.environment import fresh_symbols
from smt_encodings.printer import script

from .kernel.forms import Forms
from .kernel.replay import Derivation, replay
from .kernel.steps import Rejected
from .obligations import Hypotheses, assertions, extended, remaining
from .portable import read_derivation, written_derivation
from .rule import TensorRule

Question = tuple[frozenset[Condition], Condition]
"""Hypotheses, and what follows from them."""
GROUP = "derivation"


def replay_rule(rule: TensorRule, derivation: Derivation, ask: Callable[[Hypotheses, Condition, str], None]) -> None:
    """Raises Rejected unless a derivation proves a rule; every obligation is given to ``ask``."""
    reals = rule.equality is Equality.OVER_REALS
    forms = Forms(reals, reals or rule.equality is Equality.UP_TO_REDUCTION_ORDER, rule.positive, ask)
    replay(forms, extended((), rule.premise), rule.left, rule.right, derivation)


@dataclass
class _Once(ABC):
    """Obligations that are not among their hypotheses, each once, with numbers as names, in a group."""

    group: str = GROUP
    asked: set[Question] = field(default_factory=set)

    def __call__(self, hypotheses: Hypotheses, goal: Condition, meaning: str) -> None:
        """Raises Rejected where the goal is not established, or where one of its divisors may be no positive number."""
        for divisor in divisors(indices_of(goal)):
            self(hypotheses, le(1, divisor), f"{divisor} is positive")
        goal = remaining(hypotheses, goal)
        question = frozenset(hypotheses), goal
        if goal != TRUE and question not in self.asked:
            self.asked.add(question)
            self.new(question, str(len(self.asked)), meaning)

    @abstractmethod
    def new(self, question: Question, name: str, meaning: str) -> None:
        """What is done with an obligation."""


@dataclass
class Asking(_Once):
    """Puts obligations to the solvers; ``answered`` are those that a search put to them before."""

    discharger: Discharger = field(default_factory=Discharger)
    answered: Mapping[Question, Obligation | None] = field(default_factory=dict)

    def new(self, question: Question, name: str, meaning: str) -> None:
        """Raises Rejected unless both solvers say that it holds."""
        known = self.answered.get(question)
        if known is not None:
            body = known.smtlib[known.smtlib.index("(set-logic") :]
            text = f"; {self.group}: {name}\n; {meaning}\n{body}"
            self.discharger.obligations.append(
                replace(known, name=name, group=self.group, meaning=meaning, smtlib=text)
            )
            return
        facts, lemmas = assertions(*question)
        for more in [lemmas, []] if lemmas else [[]]:
            try:
                self.discharger.ask(self.group, name, [*facts, *more], meaning)
            except NotDischarged:
                self.discharger.obligations.pop()
            else:
                return
        raise Rejected(f"not established: {meaning}")


@dataclass
class Writing(_Once):
    """Writes obligations down; a certificate may leave out hypotheses and lemmas."""

    required: list[Requirement] = field(default_factory=list)

    def new(self, question: Question, name: str, meaning: str) -> None:
        """Notes what must be asked."""
        facts, lemmas = assertions(*question)
        text = script([*facts, *lemmas], comment=f"{self.group}: {name}\n{meaning}")
        self.required.append(Requirement(self.group, name, "unsat", text, False, meaning))


def written(derivation: Derivation, example: Mapping[str, int]) -> dict[str, Any]:
    """What a certificate says of a proof: sizes that satisfy the premise, and the derivation."""
    return {"example": dict(example), **written_derivation(derivation)}


def required_obligations(rule: TensorRule, content: Mapping[str, Any]) -> list[Requirement]:
    """The obligations of a certificate's derivation; raises Rejected where it does not prove the rule."""
    example = content.get("example")
    if not isinstance(example, dict) or not all(type(n) is int for n in example.values()):
        raise Rejected("the derivation must have sizes that satisfy the premise")
    if not set(example) <= set(rule.sizes):
        raise Rejected("the derivation must be about the rule's sizes")
    writing = Writing()
    with fresh_symbols():
        text = script(example_script(extended((), rule.premise), example), comment=f"health: satisfiable\n{EXAMPLE}")
        writing.required.append(Requirement("health", "satisfiable", "sat", text, True, EXAMPLE))
        try:
            replay_rule(rule, read_derivation({k: v for k, v in content.items() if k != "example"}), writing)
        except RecursionError as error:
            raise Rejected("the derivation must not be nested as deeply") from error
    return writing.required


EXAMPLE = "some sizes satisfy the premise"


def example_script(premise: Hypotheses, example: Mapping[str, int]) -> list[Any]:
    """Assertions that sizes satisfy a premise."""
    fixed = [equal(Index({(v,): 1}), n) for v, n in sorted(example.items())]
    return assertions([*premise, *fixed], FALSE)[0]
