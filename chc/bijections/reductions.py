"""Equality of what reductions give, in any order, by pieces that are guessed and proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from ir_semantics.elements.bags import Family, Operator, absorbed, by_choices, families, operator_of, without_common
from ir_semantics.elements.binders import outside_binders, rebuilt
from ir_semantics.elements.terms import Term, integer_value

from .pieces import COMMUTATIVE, Piece, pieces
from .theorem import Goal, goals

FEW = 64
"""Bags of at most so many summands are written out first."""
MOST_FAMILIES = 12
"""Bags of more families are compared by what they have in common alone."""

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
            self._known[key] = self.is_free(operator) and self._equal(one, other, operator, hypotheses)
        return self._known[key]

    def _equal(self, one: Term, other: Term, operator: Operator, hypotheses: Sequence[Term]) -> bool:
        bags = absorbed(families(one, operator), operator), absorbed(families(other, operator), operator)
        is_small = all(_count(bag) <= FEW for bag in bags)
        if is_small and not any(without_common(*map(_written, bags))):
            return True
        if not any(f.ranges for bag in bags for f in bag) and operator.kind.family != "float":
            return False  # without folds it is for solvers, which know more of words
        for _ in range(3):
            rest = without_common(*bags)
            if self._matched(*rest, hypotheses):
                return True
            split = [[f for b in bag for f in by_choices(b) if f.summand is not operator.unit] for bag in rest]
            if [list(map(id, b)) for b in split] == [list(map(id, b)) for b in rest]:
                break
            bags = split[0], split[1]
        return self._matched(*without_common(*map(_written, bags)), hypotheses)

    def _matched(self, one: Sequence[Family], other: Sequence[Family], hypotheses: Sequence[Term]) -> bool:
        """Whether families are proved to be the same bag: pairs first, then by pieces of several."""
        if len(one) > MOST_FAMILIES or len(other) > MOST_FAMILIES:
            return False
        left, right = [], list(other)
        for a in one:
            partner = next(
                (b for b in right if any(self.proved([a], [b], [p], hypotheses) for p in pieces(a, b))), None
            )
            if partner is None:
                left.append(a)
            else:
                right = [b for b in right if b is not partner]
        if not left and not right:
            return True
        if len(left) == len(right) == 1:
            return False
        guesses = (next(pieces(a, b), None) for a, b in product(left, right))
        return self.proved(left, right, [p for p in guesses if p is not None], hypotheses)

    def proved(
        self, one: Sequence[Family], other: Sequence[Family], guess: Sequence[Piece], hypotheses: Sequence[Term]
    ) -> bool:
        """Whether pieces are proved to make two bags one."""
        return all(self.follows(goal, hypotheses) for goal in goals(one, other, guess))


def _count(bag: Sequence[Family]) -> int:
    """The number of summands; FEW + 1 where it is not known."""
    sizes = [[integer_value(e) for e in f.extents] for f in bag]
    return sum(FEW + 1 if None in s else prod(max(n, 0) for n in s if n is not None) for s in sizes)


def _written(bag: Sequence[Family]) -> list[Family]:
    written = [(f, f.written()) for f in bag]
    return [s for f, single in written for s in ([f] if single is None else single)]
