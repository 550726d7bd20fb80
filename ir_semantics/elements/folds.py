"""Laws of folds: a term with its folds brought to a simpler form that means the same.

* What does not depend on the accumulator: the last step says all.
* Steps that change nothing unless a condition holds: what the condition says without the variables is asked once,
  before the fold; where it can hold for one value of a variable alone, one step is left.
* A fold whose step is a fold is one fold over both ranges; one over pieces of a range, of which the last may be
  shorter, is one over the range.
* Integers that grow by the same number in each step are a product; conditions that are joined step by step are one of
  every tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ir_semantics.scalars.formats import BOOLEAN, INTEGERS
from ir_semantics.tensors.index import Index

from .binders import Fold, every, fold, is_count, opened_every, opened_fold, rebuilt, substitute
from .operators import (
    at_most,
    atom,
    both,
    choose,
    conjuncts,
    either,
    inside,
    minus,
    negation,
    of_polynomial,
    plus,
    polynomial,
    quotient,
    times,
)
from .terms import Symbol, Term, fresh, integer_value, is_false, is_true, number, truth, variable_of

Ranges: TypeAlias = Sequence[tuple[Term, Term]]
"""Variables with their extents."""


@dataclass
class Simplification:
    """Terms by the laws; ``facts`` are conditions that hold, such as that sizes are not negative."""

    facts: frozenset[Term] = frozenset()
    _done: dict[Term, Term] = field(default_factory=dict)

    def of(self, root: Term) -> Term:
        """The term with simpler folds."""
        if root.depth == 0:
            return root
        if root not in self._done:
            self._done[root] = rebuilt(root, lambda term: term.depth > 0, lambda _, new: self._simpler(new))
        return self._done[root]

    def all_of(self, terms: Iterable[Term]) -> list[Term]:
        """As :meth:`of`."""
        return [self.of(t) for t in terms]

    def _simpler(self, term: Term) -> Term:
        while term.op == "fold":
            new = self._once(term)
            if new is None:
                return term
            term = new
        return _of_whole_ranges(term)

    def _once(self, term: Term) -> Term | None:
        """The fold after one law; None where there is none."""
        opened = opened_fold(term)
        extents = tuple(self._known(e) for e in opened.extents)
        if extents != opened.extents:
            return fold(
                opened.start, opened.accumulator, list(zip(opened.variables, extents, strict=True)), opened.step
            )
        for law in (_last, self._conditional, _joined, _pieces, _growing, _gathered):
            new = law(opened)
            if new is not None:
                return new
        return None

    def _known(self, extent: Term) -> Term:
        """An extent with choices made that facts decide."""

        def changed(_: Term, new: Term) -> Term:
            if new.op != "select":
                return new
            condition, yes, no = new.args
            return yes if condition in self.facts else no if negation(condition) in self.facts else new

        return rebuilt(extent, lambda _: True, changed)

    def _conditional(self, opened: Fold) -> Term | None:
        """A fold whose steps change nothing unless a condition holds."""
        found = conditional(opened)
        if found is None:
            return None
        conditions, value = found
        accumulator, ranges = opened.accumulator, _ranges(opened)
        bound = _symbols(accumulator, *opened.variables)
        before = [c for c in conditions if bound.isdisjoint(c.symbols)]
        if before:
            rest = both(*(c for c in conditions if c not in before))
            inner = self._simpler(fold(opened.start, accumulator, ranges, choose(rest, value, accumulator)))
            return choose(both(*before), inner, opened.start)
        for k in range(len(ranges) - 1, -1, -1):
            variable, extent = ranges[k]
            only = _only_value(conditions, variable, _symbols(accumulator, *opened.variables[k:]))
            if only is None:
                continue
            here = {variable_of(variable): only}
            if any(variable_of(variable) in e.symbols for _, e in ranges):
                return None
            condition = both(inside(only, _length(extent)), *(substitute(c, here) for c in conditions))
            step = choose(condition, substitute(value, here), accumulator)
            return fold(opened.start, accumulator, [*ranges[:k], *ranges[k + 1 :]], step)
        return None


def _ranges(opened: Fold) -> list[tuple[Term, Term]]:
    return list(zip(opened.variables, opened.extents, strict=True))


def _symbols(*variables: Term) -> frozenset[Symbol]:
    return frozenset(map(variable_of, variables))


def joined(term: Term) -> Term:
    """A fold over folds that go on with the accumulator, as one; other terms as they are."""
    new = _joined(opened_fold(term)) if term.op == "fold" and term.args[-1].op == "fold" else None
    return term if new is None else new


def _joined(opened: Fold) -> Term | None:
    step, accumulator = opened.step, opened.accumulator
    if step.op != "fold" or step.args[0] is not accumulator:
        return None
    inner = opened_fold(step)
    bound = _symbols(accumulator, *opened.variables)
    if variable_of(accumulator) in inner.step.symbols or any(bound & e.symbols for e in inner.extents):
        return None
    return fold(opened.start, inner.accumulator, [*_ranges(opened), *_ranges(inner)], inner.step)


def _last(opened: Fold) -> Term | None:
    if variable_of(opened.accumulator) in opened.step.symbols:
        return None
    some = both(*(at_most(number(1), e) for e in opened.extents))
    ends = {variable_of(v): minus(e, number(1)) for v, e in _ranges(opened)}
    return choose(some, substitute(opened.step, ends), opened.start)


# -- steps that change nothing unless a condition holds ------------------------------------------------------


def conditional(opened: Fold) -> tuple[list[Term], Term] | None:
    """Conditions, and what the accumulator becomes where they hold; else it stays.  None for other steps."""
    step, accumulator = opened.step, opened.accumulator
    conditions: list[Term] = []
    while step.op == "select" and accumulator in step.args[1:]:
        is_kept = step.args[1] is accumulator
        conditions += conjuncts([negation(step.args[0]) if is_kept else step.args[0]])
        step = step.args[2 if is_kept else 1]
    if step.kind == BOOLEAN:
        for is_kept, whole in ((False, step), (True, negation(step))):
            parts = list(conjuncts([whole]))
            mine = negation(accumulator) if is_kept else accumulator
            if mine in parts:  # the accumulator and others, or the accumulator or others
                rest = both(*(p for p in parts if p is not mine))
                return [*conditions, *conjuncts([negation(rest)])], truth(is_kept)
    return (conditions, step) if conditions else None


def _only_value(conditions: Sequence[Term], variable: Term, forbidden: frozenset[Symbol]) -> Term | None:
    """The one value of a variable for which conditions can hold, in terms without forbidden symbols."""
    bounds: list[tuple[Index, Index]] = []
    for each in _without_extremes(conditions):
        if each.op not in ("eq", "le") or each.args[1].kind != INTEGERS:
            continue
        linear = linear_in(minus(each.args[1], each.args[0]), variable)
        if linear is None:
            continue
        factor, rest = linear
        constant = factor.constant
        if each.op == "eq" and constant:
            value = quotient(of_polynomial(-rest if constant > 0 else rest), number(abs(constant)))
            if forbidden.isdisjoint(value.symbols):
                return value
        elif each.op == "le":
            bounds.append((factor, rest))
    for low, end in bounds:  # 0 <= end - size * variable, of which 0 <= ... + size * variable - end is the other side
        for high, start in bounds:
            width, size = end + start, -low
            if low + high != Index({}) or not (width == size - 1 or _is_below(width, size)):
                continue
            if size.constant is not None and size.constant <= 0:
                continue
            value = quotient(of_polynomial(end), of_polynomial(size))
            if forbidden.isdisjoint(value.symbols):
                return value
    return None


def _is_below(width: Index, size: Index) -> bool:
    return width.constant is not None and size.constant is not None and width.constant < size.constant


def linear_in(value: Term, variable: Term) -> tuple[Index, Index] | None:
    """Factor and rest of an integer that is linear in a variable; None for others."""
    name = polynomial(variable).variable
    factor, rest = Index({}), Index({})
    for monomial, coefficient in polynomial(value).terms:
        others = list(monomial)
        if name in others:
            others.remove(name)
            factor = factor + Index({tuple(others): coefficient})
        else:
            rest = rest + Index({monomial: coefficient})
    if factor == Index({}) or any(variable_of(variable) in of_polynomial(x).symbols for x in (factor, rest)):
        return None
    return factor, rest


def _without_extremes(conditions: Sequence[Term]) -> Iterator[Term]:
    """Conditions of which ``x <= min(a, b)`` and ``max(a, b) <= x`` are two."""
    stack = list(conjuncts(conditions))
    while stack:
        each = stack.pop()
        split = _of_extreme(each) if each.op == "le" else None
        if split is None:
            yield each
        else:
            stack += conjuncts(split)


def _of_extreme(condition: Term) -> tuple[Term, Term] | None:
    value = minus(condition.args[1], condition.args[0])
    for monomial, coefficient in polynomial(value).terms:
        if len(monomial) != 1 or abs(coefficient) != 1 or not isinstance(monomial[0], str):
            continue
        choice = atom(monomial[0])
        smallest = extreme(choice)
        if smallest is None or smallest[0] is not (coefficient == 1):
            continue
        rest = polynomial(value) - Index({monomial: coefficient})
        ends = [of_polynomial(rest + coefficient * polynomial(x)) for x in smallest[1:]]
        return at_most(number(0), ends[0]), at_most(number(0), ends[1])
    return None


def extreme(term: Term) -> tuple[bool, Term, Term] | None:
    """Whether a choice of two integers is the smaller one, or the larger one, and both; None for other terms."""
    if term.op != "select" or term.kind != INTEGERS:
        return None
    condition, a, b = term.args
    if condition is at_most(a, b):
        return True, a, b
    return (False, a, b) if condition is at_most(b, a) else None


# -- other laws ----------------------------------------------------------------------------------------------


def _pieces(opened: Fold) -> Term | None:
    """A fold over pieces of a range: the step is a fold over ``min(size, whole - size * k)``."""
    step, accumulator = opened.step, opened.accumulator
    if step.op != "fold" or step.args[0] is not accumulator:
        return None
    inner = opened_fold(step)
    found = _one_range(_ranges(opened), _ranges(inner))
    bound = _symbols(accumulator)
    if found is None or variable_of(accumulator) in inner.step.symbols or any(bound & e.symbols for e in inner.extents):
        return None
    ranges, here = found
    return fold(opened.start, inner.accumulator, ranges, substitute(inner.step, here))


def _of_whole_ranges(condition: Term) -> Term:
    """A condition in which what holds for all values in all pieces of a range holds for all of the range."""
    if condition.op == "and":
        return both(*map(_of_whole_ranges, conjuncts([condition])))
    if condition.op != "every":
        return condition
    variables, extents, body = opened_every(condition)
    ranges = list(zip(variables, extents, strict=True))
    if body.op == "every":
        others, sizes, inner = opened_every(body)
        found = _one_range(ranges, list(zip(others, sizes, strict=True)))
        whole = found and _every(found[0], substitute(inner, found[1]))
    else:
        whole = next((w for k in range(len(ranges) - 1) if (w := _of_digits(ranges, k, body)) is not None), None)
    return condition if whole is None else _of_whole_ranges(whole)


def _every(ranges: Ranges, condition: Term) -> Term:
    return every([v for v, _ in ranges], [e for _, e in ranges], condition)


def _of_digits(ranges: Ranges, place: int, body: Term) -> Term | None:
    """What holds for all pairs of digits, where nothing but the number that has these digits matters."""
    (high, count), (low, size) = ranges[place : place + 2]
    base = integer_value(size)
    if base is None or base <= 0:
        return None
    k = fresh("k", INTEGERS)
    digit = quotient(k, size)
    whole = substitute(body, {variable_of(high): number(0), variable_of(low): k})
    digits = {variable_of(high): digit, variable_of(low): minus(k, times(size, digit))}
    if substitute(body, digits) is not whole:
        return None
    return _every([*ranges[:place], (k, times(count, size)), *ranges[place + 2 :]], whole)


def _one_range(outer: Ranges, inner: Ranges) -> tuple[list[tuple[Term, Term]], dict[Symbol, Term]] | None:
    """Ranges of which the inner ones are pieces of the last outer one, as one, with what variables are in it."""
    variable, count = outer[-1]
    bound = _symbols(*(v for v, _ in outer))
    smaller = extreme(_length(inner[0][1]))
    if any(bound & e.symbols for _, e in inner[1:]) or smaller is None or not smaller[0]:
        return None
    for size, left in (smaller[1:], smaller[:0:-1]):
        known, linear = integer_value(size), linear_in(left, variable)
        if known is None or known <= 0 or linear is None or linear[0] != Index({(): -known}):
            continue
        whole = of_polynomial(linear[1])
        if _length(count) is not quotient(plus(whole, number(known - 1)), number(known)) or bound & whole.symbols:
            continue
        place = fresh("k", INTEGERS)
        here = {
            variable_of(variable): quotient(place, size),
            variable_of(inner[0][0]): minus(place, times(size, quotient(place, size))),
        }
        return [*outer[:-1], (place, whole), *inner[1:]], here
    return None


def _length(extent: Term) -> Term:
    """An extent of as many steps: there are none where a number is negative."""
    return extent.args[1] if is_count(extent) else extent


def _growing(opened: Fold) -> Term | None:
    if opened.start.kind != INTEGERS:
        return None
    growth = minus(opened.step, opened.accumulator)
    if not _symbols(opened.accumulator, *opened.variables).isdisjoint(growth.symbols):
        return None
    counts = [choose(at_most(number(0), e), e, number(0)) for e in opened.extents]
    return plus(opened.start, times(growth, *counts))


def _gathered(opened: Fold) -> Term | None:
    """Conditions that are joined step by step, by *and* or by *or*."""
    found = conditional(opened)
    if opened.start.kind != BOOLEAN or found is None:
        return None
    conditions, value = found
    if any(variable_of(opened.accumulator) in t.symbols for t in (*conditions, value)):
        return None
    never = _of_whole_ranges(every(opened.variables, opened.extents, negation(both(*conditions))))
    if is_false(value):
        return both(opened.start, never)
    return either(opened.start, negation(never)) if is_true(value) else None


def has_one_step(term: Term) -> bool:
    """Whether it is seen of a fold that at most one of its steps changes the accumulator."""
    opened = opened_fold(term)
    found = conditional(opened)
    if found is None:
        return False
    conditions, left = found[0], dict(_ranges(opened))
    while left:
        values = ((v, _only_value(conditions, v, _symbols(opened.accumulator, v))) for v in reversed(left))
        variable, only = next(((v, x) for v, x in values if x is not None), (None, None))
        if variable is None or only is None:
            return False
        here = {variable_of(variable): only}
        within = conjuncts([inside(only, _length(left.pop(variable)))])
        conditions = [*within, *(substitute(c, here) for c in conditions)]
    return True
