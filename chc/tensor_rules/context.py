"""Questions on indices, asked under hypotheses: from index arithmetic to SMT over the integers, and samples.

A :class:`Context` holds hypotheses on sizes and subscripts.  What a proof rests on is *established* in it: the question
goes to the solvers, for all integers at once, and is recorded.  Samples are integers that satisfy the hypotheses; a
goal that one of them falsifies is not asked, which only saves time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ir_semantics.tensors.conditions import TRUE, All, Condition, OneOf, TruthOf, inside, negation, variables_of
from ir_semantics.tensors.index import Index, Names, index_of
from smt_encodings.claims import Obligation
from smt_encodings.discharge import Discharger, NotDischarged

from .obligations import Hypotheses, assertions, extended, remaining
from .sizes import all_hold

MOST_SAMPLES = 60
QUICK = 1.5


def _mentions_truth(condition: Condition) -> bool:
    match condition:
        case TruthOf():
            return True
        case All(parts) | OneOf(parts):
            return any(map(_mentions_truth, parts))
    return False


class OutOfTime(Exception):
    """A proof took longer than it may."""


@dataclass
class Proof:
    """What all contexts of one proof share: solvers, terms, names, and the answers so far."""

    discharger: Discharger
    end: float
    """When it must be finished, on the clock of :func:`time.perf_counter`."""
    names: Names = field(default_factory=Names)
    contexts: dict[Hypotheses, Context] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Bound variables that normal forms have already."""
    answers: dict[tuple[frozenset[Condition], Condition], Obligation | None] = field(default_factory=dict)
    hurried: set[tuple[frozenset[Condition], Condition]] = field(default_factory=set)
    random: random.Random = field(default_factory=lambda: random.Random(0))

    def keep(self, obligation: Obligation) -> None:
        """Makes an obligation that was discharged before part of the proof again."""
        if not any(o is obligation for o in self.discharger.obligations):
            self.discharger.obligations.append(obligation)


@dataclass(frozen=True)
class Context:
    """Hypotheses, and integers that satisfy them."""

    proof: Proof
    hypotheses: tuple[Condition, ...]
    samples: tuple[dict[str, int], ...]
    positive: frozenset[str] = frozenset()

    def under(self, *conditions: Condition, ranges: Sequence[tuple[str, Index]] = ()) -> Context:
        """More hypotheses; ``ranges`` are new variables with 0 <= variable < extent."""
        if time.perf_counter() > self.proof.end:
            raise OutOfTime
        known = extended(self.hypotheses, *(inside(index_of(v), e) for v, e in ranges), *conditions)
        if len(known) == len(self.hypotheses):
            return self
        if known not in self.proof.contexts:
            samples = self._samples(ranges, conditions)
            self.proof.contexts[known] = Context(self.proof, known, samples, self.positive)
        return self.proof.contexts[known]

    def _samples(
        self, ranges: Sequence[tuple[str, Index]], conditions: Sequence[Condition]
    ) -> tuple[dict[str, int], ...]:
        testable = [c for c in conditions if not _mentions_truth(c)]
        points = list(self.samples)
        for variable, extent in ranges:
            points = [{**p, variable: value} for p in points for value in _few(extent.value(p), self.proof)]
            if len(points) > 4 * MOST_SAMPLES:
                points = self.proof.random.sample(points, 4 * MOST_SAMPLES)
        points_inside = [p for p in points if all_hold(testable, p)]
        if len(points_inside) > MOST_SAMPLES:
            points_inside = self.proof.random.sample(points_inside, MOST_SAMPLES)
        return tuple(points_inside)

    def refuted(self, goal: Condition) -> bool:
        """Whether a sample falsifies the goal."""
        if _mentions_truth(goal):
            return False
        return any(not all_hold([goal], sample) for sample in self.samples if goal_known(goal, sample))

    def possible(self, condition: Condition) -> bool:
        """Whether a sample satisfies the condition, or samples do not tell."""
        return (
            not self.samples
            or _mentions_truth(condition)
            or any(all_hold([condition], s) for s in self.samples if goal_known(condition, s))
        )

    def establish(self, goal: Condition, group: str, meaning: str, *, quick: bool = False) -> bool:
        """Whether the goal follows from the hypotheses for all integers; if so it is recorded as an obligation.

        With ``quick`` solvers get little time: what only makes a normal form shorter is not worth more.
        """
        goal = remaining(self.hypotheses, goal)
        if goal == TRUE:
            return True
        if self.refuted(goal):
            return False
        key = (frozenset(self.hypotheses), goal)
        if key not in self.proof.answers or (
            self.proof.answers[key] is None and key in self.proof.hurried and not quick
        ):
            (self.proof.hurried.add if quick else self.proof.hurried.discard)(key)
            self.proof.answers[key] = self._ask(goal, group, meaning, QUICK if quick else None)
            self.proof.hurried.discard(key)
            if quick and self.proof.answers[key] is None:
                self.proof.hurried.add(key)
        obligation = self.proof.answers[key]
        if obligation is None:
            return False
        self.proof.keep(obligation)
        return True

    def _ask(self, goal: Condition, group: str, meaning: str, seconds: float | None) -> Obligation | None:
        discharger = self.proof.discharger
        facts, lemmas = assertions(self.hypotheses, goal)
        name = f"{len(self.proof.answers) + 1}"
        usual = discharger.timeout
        discharger.timeout = min(usual, seconds or usual)
        try:
            for more in [lemmas, []] if lemmas else [[]]:
                try:
                    return discharger.ask(group, name, [*facts, *more], meaning)
                except NotDischarged:
                    discharger.obligations.pop()
        finally:
            discharger.timeout = usual
        return None

    def contradictory(self, group: str, meaning: str) -> bool:
        """Whether the hypotheses are established to exclude each other."""
        if self.samples:
            return False
        return self.establish(OneOf(()), group, meaning)

    def excludes(self, condition: Condition, group: str, meaning: str) -> bool:
        """Whether the negation of a condition is established."""
        if self.samples and self.possible(condition):
            return False
        return self.establish(negation(condition), group, meaning)


def goal_known(condition: Condition, sample: dict[str, int]) -> bool:
    """Whether a sample gives every variable of a condition a value."""
    return variables_of(condition) <= sample.keys()


def _few(extent: int, proof: Proof) -> list[int]:
    """Some values of a range: its ends and up to two others."""
    if extent <= 4:
        return list(range(extent))
    return [0, extent - 1, *proof.random.sample(range(1, extent - 1), 2)]
