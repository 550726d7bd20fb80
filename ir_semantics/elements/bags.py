"""What reductions combine, whatever the order: bags of summands, for operators that are associative and commutative.

A term that combines by an operator (applications, folds, choices among such) is a bag of **families**: one summand for
each tuple of variables that is in range and satisfies a condition.  A fold inside of a fold is flattened; what a fold
starts with is a summand of its own, once for each time that the fold is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import TypeAlias

from ir_semantics.scalars.formats import Format, Literal

from .binders import array, opened_every, opened_fold, outside_binders, rebuilt, substitute
from .operators import apply, both, inside, negation
from .terms import Term, constant, integer_value, is_false, is_true, literal, number, truth, variable_of

OPERATORS: Mapping[str, tuple[str, ...]] = {
    "integer": ("add", "mul", "maximum", "minimum", "bit_and", "bit_or", "bit_xor"),
    "float": ("add", "maximum", "minimum", "maxnum", "minnum"),
    "boolean": ("and",),
}
"""By families of formats: operators that may be associative and commutative; whether one is, is asked."""
MOST_SUMMANDS = 20_000
"""Bags of more summands are not written out."""


@dataclass(frozen=True)
class Operator:
    """An operator in a format."""

    name: str
    kind: Format

    @property
    def unit(self) -> Term | None:
        """What changes nothing, where there is one here."""
        value = _unit(self.name, self.kind)
        return None if value is None else constant(value, self.kind)


def _unit(name: str, kind: Format) -> Literal | None:
    units: dict[str, Literal]
    if kind.family == "boolean":
        return Fraction(1)  # true, as conditions are joined by *and* alone
    if kind.family == "float":
        units = {"maximum": float("-inf"), "minimum": float("inf"), "add": -0.0}
        return units.get(name)
    width, is_signed = int(kind.parameters[0]), kind.parameters[1] == "signed"
    low = Fraction(-(1 << (width - 1)) if is_signed else 0)
    high = low + (1 << width) - 1
    units = {"maximum": low, "minimum": high, "bit_and": Fraction(-1) if is_signed else high, "mul": Fraction(1)}
    return units.get(name, Fraction(0) if name in ("add", "bit_or", "bit_xor") else None)


@dataclass(frozen=True)
class Family:
    """A summand for each tuple of variables below their extents that satisfies a condition.

    An extent may depend on the variables before it.
    """

    ranges: tuple[tuple[Term, Term], ...]
    condition: Term
    summand: Term

    @property
    def variables(self) -> tuple[Term, ...]:
        """The variables, each an object of its own."""
        return tuple(v for v, _ in self.ranges)

    @property
    def extents(self) -> tuple[Term, ...]:
        """The extents of the variables."""
        return tuple(e for _, e in self.ranges)

    @property
    def domain(self) -> Term:
        """Whether the variables are a tuple of the family."""
        return both(*(inside(v, e) for v, e in self.ranges), self.condition)

    def at(self, values: Sequence[Term], term: Term) -> Term:
        """A term at values of the variables."""
        return substitute(term, {variable_of(v): x for v, x in zip(self.variables, values, strict=True)})

    @cached_property
    def key(self) -> object:
        """Equal for families of the same tuples in the same order, whatever the variables are called."""
        own = {variable_of(v) for v in self.variables}
        if any(not own.isdisjoint(e.symbols) for e in self.extents):
            return self
        return array(self.variables, self.extents, self.summand, self.condition)

    def written(self) -> list[Family] | None:
        """The family as single summands; None where their number is not known, or large."""
        sizes = [integer_value(e) for e in self.extents]
        known = [n for n in sizes if n is not None]
        if len(known) < len(sizes) or prod(max(n, 0) for n in known) > MOST_SUMMANDS:
            return None
        places = [tuple(map(number, at)) for at in product(*map(range, known))]
        single = [Family((), self.at(p, self.condition), self.at(p, self.summand)) for p in places]
        return [s for s in single if not is_false(s.condition)]


def operator_of(term: Term) -> Operator | None:
    """The operator by which a term combines; None where it does not."""
    return next(filter(None, map(_operator_of, _arms(term))), None)


def _arms(term: Term) -> Iterator[Term]:
    """What choices among choices come to, each once."""
    seen, stack = {term}, [term]
    while stack:
        here = stack.pop()
        if here.op == "select":
            new = [arm for arm in here.args[:0:-1] if arm not in seen]
            seen.update(new)
            stack += new
        else:
            yield here


def _operator_of(term: Term) -> Operator | None:
    if term.kind.family not in OPERATORS:
        return None
    if term.op in OPERATORS[term.kind.family]:
        return Operator(term.op, term.kind)
    if term.op == "every":
        return Operator("and", term.kind)
    if term.op == "fold":
        opened = opened_fold(term)
        return next(
            (o for o in _operators(opened.step) if _added(opened.step, opened.accumulator, o, {}) is not None), None
        )
    return None


def _operators(step: Term) -> Iterator[Operator]:
    for arm in _arms(step):
        if arm.op == "fold":
            yield from _operators(opened_fold(arm).step)
        elif arm.op in OPERATORS[arm.kind.family]:
            yield Operator(arm.op, arm.kind)


Known: TypeAlias = dict[object, "list[Family] | None"]
"""Bags of terms, which other terms may share."""


def families(term: Term, operator: Operator, known: Known | None = None) -> list[Family]:
    """The bag of a term, without units; one of more than :data:`MOST_SUMMANDS` families is the term itself."""
    known = {} if known is None else known
    stack = [term]
    while stack:
        here = stack[-1]
        left = [part for part in _parts(here, operator) if part not in known]
        if left and here not in known:
            stack += left
        else:
            stack.pop()
            if here not in known:
                bag = list(islice(_families(here, operator, known), MOST_SUMMANDS + 1))
                known[here] = bag if len(bag) <= MOST_SUMMANDS else [Family((), truth(True), here)]
    found = known[term]
    assert found is not None
    return found


def _parts(term: Term, operator: Operator) -> tuple[Term, ...]:
    """The operands whose bags make that of a term."""
    if term.op == operator.name:
        return term.args
    return term.args[1:] if term.op == "select" and operator_of(term) == operator else ()


def _families(term: Term, operator: Operator, known: Known) -> Iterator[Family]:
    parts = _parts(term, operator)
    if term is operator.unit:
        return
    if parts and term.op == "select":
        yes, no = (families(part, operator, known) for part in parts)
        yield from _cases(term.args[0], yes, no)
    elif parts:
        for part in parts:
            yield from families(part, operator, known)
    elif term.op == "every" and operator.name == "and":
        variables, extents, condition = opened_every(term)
        ranges = tuple(zip(variables, extents, strict=True))
        yield from _within(ranges, truth(True), families(condition, operator, known))
    elif term.op == "fold":
        opened = opened_fold(term)
        added = _added(opened.step, opened.accumulator, operator, known)
        if added is None:
            yield Family((), truth(True), term)
        else:
            yield from families(opened.start, operator, known)
            yield from _within(tuple(zip(opened.variables, opened.extents, strict=True)), truth(True), added)
    else:
        yield Family((), truth(True), term)


def _cases(condition: Term, yes: Sequence[Family], no: Sequence[Family]) -> Iterator[Family]:
    """The bag of a choice: what both have without a condition, so that what terms share stays one."""
    first, second = without_common(yes, no)
    own = Counter(f.key for f in first)
    for each in yes:
        if own[each.key]:
            own[each.key] -= 1
            yield from _within((), condition, [each])
        else:
            yield each
    yield from _within((), negation(condition), second)


def _within(ranges: tuple[tuple[Term, Term], ...], condition: Term, parts: Sequence[Family]) -> Iterator[Family]:
    for part in parts:
        yield Family((*ranges, *part.ranges), both(condition, part.condition), part.summand)


def _added(step: Term, accumulator: Term, operator: Operator, known: Known) -> list[Family] | None:
    """What a step combines the accumulator with; None for steps that do something else."""
    key = step, accumulator
    if key not in known:
        known[key] = _made_added(step, accumulator, operator, known)
    return known[key]


def _made_added(step: Term, accumulator: Term, operator: Operator, known: Known) -> list[Family] | None:
    own = variable_of(accumulator)
    if step is accumulator:
        return []
    if step.op == operator.name:
        mine = [arg for arg in step.args if own in arg.symbols]
        added = _added(mine[0], accumulator, operator, known) if len(mine) == 1 else None
        others = [f for arg in step.args if own not in arg.symbols for f in families(arg, operator, known)]
        return None if added is None else [*added, *others]
    if step.op == "select" and own not in step.args[0].symbols:
        condition, yes, no = step.args
        arms = [_added(arm, accumulator, operator, known) for arm in (yes, no)]
        if arms[0] is None or arms[1] is None:
            return None
        return list(_cases(condition, arms[0], arms[1]))
    if step.op == "fold":
        opened = opened_fold(step)
        inner = _added(opened.step, opened.accumulator, operator, known)
        outer = _added(opened.start, accumulator, operator, known)
        if inner is None or outer is None or any(own in t.symbols for t in (opened.step, *opened.extents)):
            return None
        return [*outer, *_within(tuple(zip(opened.variables, opened.extents, strict=True)), truth(True), inner)]
    return None


def absorbed(bag: Sequence[Family], operator: Operator) -> list[Family]:
    """A bag in which constants that combined with themselves are themselves, as +0.0 under addition, stand once.

    That is so where the bag has such a constant for certain: others of it, however many, change nothing.
    """
    certain = {f.summand: f for f in bag if not f.ranges and is_true(f.condition) and literal(f.summand) is not None}
    kept = {s: f for s, f in certain.items() if apply(operator.name, s, s) is s}
    return [f for f in bag if kept.get(f.summand, f) is f]


def by_choices(family: Family) -> list[Family]:
    """A family as two, by the first condition that chooses something in its summand; itself where there is none."""
    condition = next(iter(_choices(family.summand)), None)
    if condition is None:
        return [family]
    parts = []
    for case, value in ((condition, True), (negation(condition), False)):
        summand = _chosen(family.summand, condition, value)
        parts.append(Family(family.ranges, both(family.condition, case), summand))
    return parts


def _choices(term: Term) -> Iterator[Term]:
    return (t.args[0] for t in outside_binders(term) if t.op == "select")


def _chosen(term: Term, condition: Term, value: bool) -> Term:
    """A term of which one condition is known."""
    return rebuilt(term, lambda _: True, lambda old, new: truth(value) if old is condition else new)


def without_common(one: Sequence[Family], other: Sequence[Family]) -> tuple[list[Family], list[Family]]:
    """Two bags without what both have; they are equal where what is left is.

    A family that is left several times is as many objects.
    """
    named = [{f.key: f for f in bag} for bag in (one, other)]
    counts = [Counter(f.key for f in bag) for bag in (one, other)]
    rest = [counts[0] - counts[1], counts[1] - counts[0]]
    first, second = ([replace(named[k][key]) for key in rest[k].elements()] for k in (0, 1))
    return first, second
