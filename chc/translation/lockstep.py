"""Folds at the same place of both sides that take the same steps, and maxima and minima that differ in their start.

Steps are compared inner folds first; those of a sum of floats that does not start with -0.0 are compared while it is
not -0.0, where it is proved that it never is.  Folds with the same steps are made one, or differ in their start alone;
then a maximum *b* that starts with a constant *c* is the maximum of *c* and of *a*, which starts with the unit.  Where
for any *v* the maximum of *v* and *c* is *v*, unless *v* is the unit and it is *c*, there are two cases: *b* is *a*, or
*a* is the unit and *b* is *c*, and then each summand is the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ir_semantics.elements.bags import Operator, families, operator_of
from ir_semantics.elements.binders import Fold, Loop, every, fold, loop_of, opened_fold, outside_binders, rebuilt
from ir_semantics.elements.operators import apply, both, either, equal, inside, negation, same
from ir_semantics.elements.terms import Term, constant, fresh, is_true, literal

Follows: TypeAlias = Callable[[str, Sequence[Term], Term, Sequence[Term]], bool]
"""Whether a goal follows from hypotheses; the last are variables at which conditions of every tuple matter."""
Holds: TypeAlias = Callable[[Operator, str, Term], bool]
"""Whether a law of an operator, said in words, holds of all values."""


@dataclass
class Lockstep:
    """Compares folds: ``asked`` asks solvers at once, ``follows`` proves by all means."""

    asked: Follows
    follows: Follows
    is_free: Callable[[Operator], bool]
    holds: Holds
    known: dict[tuple[Loop, Loop, tuple[Term, ...], tuple[Term, ...]], bool] = field(default_factory=dict)

    def joined(self, goal: Term, hypotheses: Sequence[Term]) -> Term:
        """A goal in which folds at the same place that are proved to take the same steps have one step."""
        for pair in _pairs(goal):
            older, newer = sorted(pair, key=lambda t: t.number)  # a term is no part of an older one
            if loop_of(older) != loop_of(newer) and self._same_steps(older, newer, hypotheses):
                opened = opened_fold(older)
                ranges = list(zip(opened.variables, opened.extents, strict=True))
                new = fold(newer.args[0], opened.accumulator, ranges, opened.step)
                return self.joined(_replaced(goal, {newer: new}), hypotheses)
        return goal

    def _same_steps(self, a: Term, b: Term, hypotheses: Sequence[Term]) -> bool:
        """Whether two folds take the same steps, from equal starts; also from others unless one start is used."""
        start = a.args[:1] if a.args[0] is b.args[0] else ()
        key = loop_of(a), loop_of(b), start, tuple(hypotheses)
        if key not in self.known:
            self.known[key] = self._asks_steps(a, b, hypotheses)
        return self.known[key]

    def _asks_steps(self, a: Term, b: Term, hypotheses: Sequence[Term]) -> bool:
        one, other = opened_fold(a), opened_fold(b)
        if len(one.extents) != len(other.extents):
            return False
        if not all(is_true(equal(x, y)) for x, y in zip(one.extents, other.extents, strict=True)):
            return False
        known = [*hypotheses, *(inside(v, e) for v, e in zip(one.variables, one.extents, strict=True))]
        step = other.after(one.accumulator, one.variables)
        if self._is_one_step(one, step, known):
            return True
        if a.args[0] is not b.args[0] or not _starts_a_sum(a):
            return False
        never = negation(same(one.accumulator, constant(-0.0, a.kind)))  # what padding with +0.0 would change
        kept = negation(same(one.step, constant(-0.0, a.kind)))
        known.append(never)
        return self.asked("a sum is never -0.0", known, kept, one.variables) and self._is_one_step(one, step, known)

    def _is_one_step(self, one: Fold, other: Term, known: Sequence[Term]) -> bool:
        goal = self.joined(same(one.step, other), known)
        return is_true(goal) or self.asked("folds have the same steps", known, goal, one.variables)

    def by_start(self, goal: Term, hypotheses: Sequence[Term]) -> bool:
        """Whether a goal is proved in both cases of a maximum, or a minimum, that differs in its start alone."""
        for pair in _pairs(goal):
            for a, b in (pair, pair[::-1]):
                operator, start = operator_of(a), b.args[0]
                if operator is None or loop_of(a) != loop_of(b) or literal(start) is None:
                    continue
                unit = operator.unit
                if unit is a.args[0] and start is not unit and self._has_two_cases(operator, unit, start):
                    return self._in_both(goal, hypotheses, (a, b), operator)
        return False

    def _has_two_cases(self, operator: Operator, unit: Term, start: Term) -> bool:
        v, w = (fresh(name, operator.kind) for name in "vw")
        larger = apply(operator.name, v, start)
        cases = either(same(larger, v), both(same(v, unit), same(larger, start)))
        only = either(negation(same(apply(operator.name, v, w), unit)), same(v, unit))
        return (
            operator.name in ("maximum", "minimum")
            and self.is_free(operator)
            and self.holds(operator, f"with {literal(start)} changes its unit alone", cases)
            and self.holds(operator, "gives its unit of units alone", only)
        )

    def _in_both(self, goal: Term, hypotheses: Sequence[Term], pair: tuple[Term, Term], operator: Operator) -> bool:
        a, b = pair
        if not self.follows("the start makes no difference", hypotheses, _replaced(goal, {b: a}), ()):
            return False
        unit, known = a.args[0], list(hypotheses)
        for each in families(a, operator):
            fact = either(negation(each.condition), same(each.summand, unit))
            for variable, extent in reversed(each.ranges):  # one by one, as it may depend on those before
                fact = every([variable], [extent], fact)
            known.append(fact)
        goal, text = _replaced(goal, {a: unit, b: b.args[0]}), "the start makes the difference"
        for term in [t for t in outside_binders(goal) if t.op == "fold"]:
            opened = opened_fold(term)
            here = [*known, *(inside(v, e) for v, e in zip(opened.variables, opened.extents, strict=True))]
            kept = same(opened.after(opened.start, opened.variables), opened.start)
            if self.asked("a fold keeps its start", here, kept, opened.variables):
                goal = _replaced(goal, {term: opened.start})
        return self.follows(text, known, goal, ())


def _starts_a_sum(term: Term) -> bool:
    """Whether a fold adds floats, and starts with a number that is not -0.0."""
    operator, start = operator_of(term), term.args[0]
    is_sum = operator is not None and operator.name == "add" and term.kind.family == "float"
    return is_sum and literal(start) is not None and start is not constant(-0.0, term.kind)


def _replaced(goal: Term, values: dict[Term, Term]) -> Term:
    return rebuilt(goal, lambda _: True, lambda old, new: values.get(old, new))


def _pairs(goal: Term) -> Iterator[tuple[Term, Term]]:
    """Folds at the same place of two sides that are to be the same."""
    stack = [t.args for t in outside_binders(goal) if t.op == "same"]
    seen = set(stack)
    while stack:
        a, b = stack.pop()
        if a is b or a.op != b.op or a.kind != b.kind:
            continue
        if a.op == "fold":
            yield a, b
        elif a.payload == b.payload and len(a.args) == len(b.args) and a.op not in ("every", "array"):
            new = [pair for pair in zip(a.args, b.args, strict=True) if pair not in seen]
            seen.update(new)
            stack += new
