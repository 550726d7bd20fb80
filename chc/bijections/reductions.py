"""Equality of what reductions give, in any order, by pieces that are guessed and proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from ir_semantics.elements.bags import Family, Operator, absorbed, by_choices, families, operator_of, without_common
from ir_semantics.elements.binders import outside_binders, rebuilt
from ir_semantics.elements.terms import Term, integer_value

from .matching import TooMany, matched
from .pieces import COMMUTATIVE
from .theorem import Goal

FEW = 64
"""Bags of at most so many summands are written out first."""

Follows = Callable[[Goal, Sequence[Term]], bool]
"""Whether a goal follows from its own hypotheses and further ones."""


@dataclass
class Reductions:
    """Compares reductions; ``follows`` asks, and ``is_free`` says whether an operator's order is free."""

    follows: Follows
    is_free: Callable[[Operator], bool]
    _known: dict[tuple[Term, Term, tuple[Term, ...]], bool] = field(default_factory=dict)

    def replaced(self, goal: Term, hypotheses: Sequence[Term]) -> Term:
        """A goal in which reductions stand for others that are proved to be equal."""
        atoms = (t.args for t in outside_binders(goal) if t.op == "same")
        seen: set[tuple[Term, Term]] = set()
        pair = next(filter(None, (self._first_equal(a, b, hypotheses, seen) for a, b in atoms)), None)
        if pair is None:
            return goal
        older, newer = sorted(pair, key=lambda t: t.number)  # a term is no part of an older one
        return self.replaced(rebuilt(goal, lambda _: True, lambda old, new: older if old is newer else new), hypotheses)

    def _first_equal(
        self, a: Term, b: Term, hypotheses: Sequence[Term], seen: set[tuple[Term, Term]]
    ) -> tuple[Term, Term] | None:
        """Reductions at the same place of two terms that are proved to be equal, outer ones first."""
        if a is b or a.kind != b.kind or (a, b) in seen:
            return None
        seen.add((a, b))
        operator = operator_of(a) or operator_of(b)
        if operator is not None and self.equal(a, b, operator, hypotheses):
            return a, b
        if a.op != b.op or a.payload != b.payload or len(a.args) != len(b.args) or a.op in ("fold", "every", "array"):
            return None
        ways = (b.args, b.args[::-1]) if a.op in COMMUTATIVE else (b.args,)
        pairs = [pair for args in ways for pair in zip(a.args, args, strict=True)]
        return next(filter(None, (self._first_equal(x, y, hypotheses, seen) for x, y in pairs)), None)

    def equal(self, one: Term, other: Term, operator: Operator, hypotheses: Sequence[Term]) -> bool:
        """Whether two terms are proved to combine the same summands by an operator."""
        key = one, other, tuple(hypotheses)
        if key not in self._known:
            try:
                self._known[key] = self.is_free(operator) and self._equal(one, other, operator, hypotheses)
            except TooMany:  # for solvers, which have not been asked yet
                self._known[key] = False
        return self._known[key]

    def _equal(self, one: Term, other: Term, operator: Operator, hypotheses: Sequence[Term]) -> bool:
        bags = absorbed(families(one, operator), operator), absorbed(families(other, operator), operator)
        is_small = all(_count(bag) <= FEW for bag in bags)
        if is_small and not any(without_common(*map(_written, bags))):
            return True
        if not any(f.ranges for bag in bags for f in bag) and operator.kind.family != "float":
            return False  # without folds it is for solvers, which know more of words

        def follows(goal: Goal) -> bool:
            return self.follows(goal, hypotheses)

        for _ in range(3):
            rest = without_common(*bags)
            if matched(*rest, follows):
                return True
            split = [[f for b in bag for f in by_choices(b) if f.summand is not operator.unit] for bag in rest]
            if [list(map(id, b)) for b in split] == [list(map(id, b)) for b in rest]:
                break
            bags = split[0], split[1]
        return matched(*without_common(*map(_written, bags)), follows)


def _count(bag: Sequence[Family]) -> int:
    """The number of summands; FEW + 1 where it is not known."""
    sizes = [[integer_value(e) for e in f.extents] for f in bag]
    return sum(FEW + 1 if None in s else prod(max(n, 0) for n in s if n is not None) for s in sizes)


def _written(bag: Sequence[Family]) -> list[Family]:
    written = [(f, f.written()) for f in bag]
    return [s for f, single in written for s in ([f] if single is None else single)]
