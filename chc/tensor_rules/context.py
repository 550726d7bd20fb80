"""Questions on indices, asked under hypotheses: from index arithmetic to SMT over the integers, and samples.

A :class:`Context` holds hypotheses on sizes and subscripts.  What a proof rests on is *established* in it: the question
goes to the solvers, for all integers at once, and is recorded.  Samples are integers that satisfy the hypotheses; a
goal that one of them falsifies is not asked, which only saves time.

pySMT has no integer division.  ``a // b`` becomes a variable ``q`` with ``b*q <= a < b*q + b`` wherever ``b >= 1``; for
other ``b`` nothing is known of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT, FunctionType

from ir_semantics.tensors.conditions import (
    TRUE,
    All,
    AtLeastZero,
    Condition,
    IsZero,
    OneOf,
    TruthOf,
    both,
    cleared,
    either,
    holds,
    indices_of,
    inside,
    negation,
    variables_of,
)
from ir_semantics.tensors.index import Index, Names, Quotient, product
from smt_encodings.claims import Obligation
from smt_encodings.discharge import Discharger, NotDischarged

__all__ = ["Context", "OutOfTime", "Proof", "Terms", "sizes_drawn", "sizes_within"]

MOST_SAMPLES = 60
MOST_LEMMAS = 40
QUICK = 1.5


class Terms:
    """Index expressions and conditions as pySMT terms; quotients enter as variables with their definitions.

    Names with "!" belong to this class: no variable of an index has one.
    """

    def __init__(self) -> None:
        self._quotients: dict[Quotient, FNode] = {}

    def index(self, value: Index) -> FNode:
        """An integer term."""
        terms = []
        for monomial, coefficient in value.terms:
            factors = [self._atom(a) for a in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, smt.Int(coefficient))
            terms.append(smt.Times(factors) if len(factors) > 1 else factors[0])
        return smt.Plus(terms) if len(terms) > 1 else terms[0] if terms else smt.Int(0)

    def _atom(self, atom: str | Quotient) -> FNode:
        if isinstance(atom, str):
            return smt.Symbol(atom, INT)
        if atom not in self._quotients:
            self._quotients[atom] = smt.Symbol(f"q!{len(self._quotients) + 1}", INT)
        return self._quotients[atom]

    def condition(self, condition: Condition) -> FNode:
        """A Boolean term."""
        match condition:
            case AtLeastZero(value):
                return smt.GE(self.index(value), smt.Int(0))
            case IsZero(value):
                return smt.Equals(self.index(value), smt.Int(0))
            case TruthOf(name, at, wanted):
                symbol = smt.Symbol(f"truth!{name}", FunctionType(BOOL, [INT] * len(at)) if at else BOOL)
                term = smt.Function(symbol, [self.index(i) for i in at]) if at else symbol
                return term if wanted else smt.Not(term)
            case All(parts):
                return smt.And([self.condition(p) for p in parts])
            case OneOf(parts):
                return smt.Or([self.condition(p) for p in parts])

    def definitions(self, conditions: Iterable[Condition]) -> list[FNode]:
        """What is known of the quotients that occur in conditions."""
        found: dict[Quotient, None] = {}
        for condition in conditions:
            for value in indices_of(condition):
                found |= dict.fromkeys(value.quotients)
        return [self._definition(q) for q in found]

    def _definition(self, quotient: Quotient) -> FNode:
        q, a, b = self._atom(quotient), self.index(quotient.dividend), self.index(quotient.divisor)
        inside = smt.And(smt.LE(smt.Times(b, q), a), smt.LT(a, smt.Plus(smt.Times(b, q), b)))
        if quotient.divisor.constant is not None:  # constants that are not positive do not become quotients
            return inside
        return smt.Implies(smt.GE(b, smt.Int(1)), inside)


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
    terms: Terms = field(default_factory=Terms)
    names: Names = field(default_factory=Names)
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
        added = [inside(_name(v), e) for v, e in ranges]
        flat = list(self.hypotheses)
        for condition in map(cleared, (*added, *conditions)):
            for part in condition.parts if isinstance(condition, All) else (condition,):
                if part not in flat:
                    flat.append(part)
        if len(flat) == len(self.hypotheses):
            return self
        return Context(self.proof, tuple(flat), self._samples(ranges, conditions), self.positive)

    def _samples(
        self, ranges: Sequence[tuple[str, Index]], conditions: Sequence[Condition]
    ) -> tuple[dict[str, int], ...]:
        testable = [c for c in conditions if not _mentions_truth(c)]
        points = list(self.samples)
        for variable, extent in ranges:
            points = [{**p, variable: value} for p in points for value in _few(extent.value(p), self.proof)]
            if len(points) > 4 * MOST_SAMPLES:
                points = self.proof.random.sample(points, 4 * MOST_SAMPLES)
        found = [p for p in points if _all_hold(testable, p)]
        if len(found) > MOST_SAMPLES:
            found = self.proof.random.sample(found, MOST_SAMPLES)
        return tuple(found)

    def refuted(self, goal: Condition) -> bool:
        """Whether a sample falsifies the goal."""
        if _mentions_truth(goal):
            return False
        return any(not _all_hold([goal], sample) for sample in self.samples if goal_known(goal, sample))

    def possible(self, condition: Condition) -> bool:
        """Whether a sample satisfies the condition, or samples do not tell."""
        return (
            not self.samples
            or _mentions_truth(condition)
            or any(_all_hold([condition], s) for s in self.samples if goal_known(condition, s))
        )

    def establish(self, goal: Condition, group: str, meaning: str, *, quick: bool = False) -> bool:
        """Whether the goal follows from the hypotheses for all integers; if so it is recorded as an obligation.

        With ``quick`` solvers get little time: what only makes a normal form shorter is not worth more.
        """
        goal = cleared(goal)
        goal = both(*(p for p in (goal.parts if isinstance(goal, All) else (goal,)) if p not in self.hypotheses))
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
        terms, discharger = self.proof.terms, self.proof.discharger
        facts = [*self.hypotheses, goal]
        hypotheses = [terms.condition(h) for h in self.hypotheses] + terms.definitions(facts)
        lemmas = [terms.condition(c) for c in product_lemmas(self.hypotheses, goal)]
        name = f"{len(self.proof.answers) + 1}"
        usual = discharger.timeout
        discharger.timeout = min(usual, seconds or usual)
        try:
            for more in [lemmas, []] if lemmas else [[]]:
                try:
                    return discharger.ask(group, name, [smt.Not(terms.condition(goal)), *hypotheses, *more], meaning)
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


def product_lemmas(hypotheses: Sequence[Condition], goal: Condition) -> list[Condition]:
    """Instances of "a product of numbers that are at least 0 is at least 0", for products in hypotheses or goal.

    These hold for all integers, whatever the hypotheses; solvers have to guess them otherwise.
    """
    values = [i for c in (*hypotheses, goal) for i in indices_of(c)]
    wanted = {m for value in values for m, _ in value.terms if len(m) >= 2}
    bounds = [h.value for h in hypotheses if isinstance(h, AtLeastZero)]
    found: dict[Condition, None] = {}
    for monomial in sorted(wanted, key=lambda m: (len(m), tuple(map(str, m)))):
        for bound in bounds:
            for inner, _ in bound.terms:
                rest = list(monomial)
                if not inner or any(inner.count(atom) > rest.count(atom) for atom in inner):
                    continue
                for atom in inner:
                    rest.remove(atom)
                factors = [Index({(atom,): 1}) for atom in rest]
                if factors and bound not in factors:
                    negative = [negation(AtLeastZero(f)) for f in (*factors, bound)]
                    found[either(*negative, AtLeastZero(product((*factors, bound))))] = None
    return list(found)[:MOST_LEMMAS]


def _name(variable: str) -> Index:
    return Index({(variable,): 1})


def goal_known(condition: Condition, sample: dict[str, int]) -> bool:
    """Whether a sample gives every variable of a condition a value."""
    return variables_of(condition) <= sample.keys()


def _all_hold(conditions: Sequence[Condition], point: dict[str, int]) -> bool:
    try:
        return all(holds(c, point) for c in conditions)
    except ZeroDivisionError:
        return False


def _few(extent: int, proof: Proof) -> list[int]:
    """Some values of a range: its ends and up to two others."""
    if extent <= 4:
        return list(range(extent))
    return [0, extent - 1, *proof.random.sample(range(1, extent - 1), 2)]


def sizes_within(variables: Sequence[str], condition: Condition, most: int, largest: int) -> list[dict[str, int]]:
    """Up to ``most`` assignments of sizes (0 to ``largest``) that satisfy a condition, small sums first."""
    least, checks = _plan(variables, condition)
    found: list[dict[str, int]] = []

    def extend(point: dict[str, int], budget: int) -> None:
        position = len(point)
        if position == len(variables):
            if budget == 0:
                found.append(dict(point))
            return
        variable = variables[position]
        for value in range(least[variable], min(largest, least[variable] + budget) + 1):
            if len(found) >= most:
                break
            point[variable] = value
            if _all_hold(checks[position], point):
                extend(point, budget - (value - least[variable]))
            del point[variable]

    for budget in range(largest * len(variables) + 1):
        extend({}, budget)
        if len(found) >= most:
            break
    return found


def sizes_drawn(
    variables: Sequence[str], condition: Condition, most: int, largest: int, draw: random.Random
) -> list[dict[str, int]]:
    """Up to ``most`` random assignments of sizes (0 to ``largest``, rarely 0) that satisfy a condition."""
    least, checks = _plan(variables, condition)
    found: dict[tuple[int, ...], dict[str, int]] = {}
    for _ in range(6 * most):
        point: dict[str, int] = {}
        for position, variable in enumerate(variables):
            for _ in range(4):
                start = least[variable] if draw.random() < 0.1 else 1
                point[variable] = draw.randint(start, largest)
                if _all_hold(checks[position], point):
                    break
            else:
                break
        else:
            found[tuple(point.values())] = point
        if len(found) >= most:
            break
    return list(found.values())


def _plan(variables: Sequence[str], condition: Condition) -> tuple[dict[str, int], list[list[Condition]]]:
    """The least value of each variable, and the parts of a condition that can be checked once it is chosen."""
    parts = condition.parts if isinstance(condition, All) else (condition,)
    checks: list[list[Condition]] = [[] for _ in variables]
    for part in parts:
        if needed := [variables.index(v) for v in variables_of(part)]:
            checks[max(needed)].append(part)
    return {v: 1 if AtLeastZero(_name(v) - 1) in parts else 0 for v in variables}, checks
