"""Sums of floats in one order, for claims in which addition is taken to be associative and commutative.

A sum is what additions and folds that add make of summands.  Two sums of the same summands become one term; -0.0 is
left out, as it changes no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from .binders import fold, opened_fold, with_args
from .operators import apply
from .terms import Term, constant, integer_value, literal, number, variable_of

MOST_SUMMANDS = 20_000
"""Folds of more steps are not written out."""


class Reordering:
    """Terms with the summands of their sums in an order that depends on nothing but what they are."""

    def __init__(self) -> None:
        self._done: dict[Term, Term] = {}

    def of(self, term: Term) -> Term:
        """The term with sums in order; what stands in conditions and folds that do not add stays as it is."""
        if term not in self._done:
            if _is_sum(term):
                self._done[term] = _chain(term, sorted(self._summands(term), key=_number))
            elif term.op in ("fold", "every", "array", "polynomial"):
                self._done[term] = term
            else:
                self._done[term] = with_args(term, tuple(map(self.of, term.args)))
        return self._done[term]

    def _summands(self, root: Term) -> Iterator[Term]:
        stack = [root]
        while stack:
            term = stack.pop()
            if term.op == "add" and _is_sum(term):
                stack += term.args
            elif _is_sum(term):
                opened = opened_fold(term)
                body = _added(opened.step, opened.accumulator)
                assert body is not None
                stack.append(opened.start)
                sizes = [integer_value(e) for e in opened.extents]
                known = [n for n in sizes if n is not None]
                if len(known) == len(sizes) and prod(known) <= MOST_SUMMANDS:
                    stack += _written(term, known)
                else:
                    ranges = list(zip(opened.variables, opened.extents, strict=True))
                    step = apply("add", opened.accumulator, self.of(body))
                    yield fold(constant(-0.0, term.kind), opened.accumulator, ranges, step)
            elif literal(term) is None or str(literal(term)) != "-0.0":
                yield self.of(term)


def _written(term: Term, sizes: list[int]) -> Iterator[Term]:
    """What a fold adds at each place."""
    opened = opened_fold(term)
    for place in range(prod(sizes)):
        at = []
        for size in reversed(sizes):
            at.append(number(place % size))
            place //= size
        step = opened.after(opened.accumulator, at[::-1])
        body = _added(step, opened.accumulator)
        if body is not None:
            yield body


def without_common(a: Term, b: Term) -> tuple[Term, Term]:
    """Two sums without the summands that both have; they are equal where what is left is.

    Where nothing is left of one, that is -0.0.
    """
    parts = [Counter(_parts(t)) for t in (a, b)]
    rest = [parts[0] - parts[1], parts[1] - parts[0]]
    return _chain(a, sorted(rest[0].elements(), key=_number)), _chain(b, sorted(rest[1].elements(), key=_number))


def _parts(term: Term) -> Iterator[Term]:
    stack = [term]
    while stack:
        each = stack.pop()
        if each.op == "add" and each.kind.family == "float":
            stack += each.args
        else:
            yield each


def _number(term: Term) -> int:
    return term.number


def _is_sum(term: Term) -> bool:
    if term.kind.family != "float":
        return False
    if term.op == "add":
        return True
    if term.op != "fold":
        return False
    opened = opened_fold(term)
    return _added(opened.step, opened.accumulator) is not None


def _added(step: Term, accumulator: Term) -> Term | None:
    """What a step adds to the accumulator; None for other steps."""
    if step.op != "add" or accumulator not in step.args:
        return None
    other = step.args[1] if step.args[0] is accumulator else step.args[0]
    return None if variable_of(accumulator) in other.symbols else other


def _chain(term: Term, summands: list[Term]) -> Term:
    if not summands:
        return constant(-0.0, term.kind)
    total = summands[0]
    for each in summands[1:]:
        total = apply("add", total, each)
    return total
