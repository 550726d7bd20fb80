"""Two ways to read an element: as a sum of products under guards, and as an extremum of candidates under guards.

Over the reals an element stands for a real number, an infinity, or no value at all; an operation on no value has none.
Addition and multiplication are commutative monoids there, without conditions.  What else the ring laws do (drop a
product, cancel a factor, distribute) is done only where :class:`Forms` shows that factors are finite, or not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from chc.tensor_rules.obligations import Hypotheses, extended, parts_of
from ir_semantics.tensors.conditions import TRUE, Condition, cleared, inside, le, negation
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, index

from .steps import Step, fresh_in, need, variable

BINARY = {"sum": "add", "max": "maximum", "min": "minimum"}
NOTHING = Reduce("sum", "u.0", index(0), Number(Fraction(0)))
"""A sum of nothing."""
UNIT = {"max": Number(float("-inf")), "min": Number(float("inf"))}
"""The extremum of nothing."""
TOTAL = frozenset(
    {"add", "sub", "mul", "fma", "neg", "abs", "maximum", "minimum", "exp", "floor", "ceil", "trunc", "round", "erf"}
) | {"tanh", "sinh", "cosh", "asinh", "sin", "cos", "atan", "lt", "le", "eq", "select", "not", "and", "or"}
"""Functions of finite values that have a finite value (or a truth value)."""
POSITIVE = frozenset({"add", "mul", "maximum", "minimum"})
"""Functions of positive values that have a positive value."""

Ranges = tuple[tuple[str, Index], ...]


class Product(NamedTuple):
    """``coefficient * product of powers``, for all values of the bound variables for which the guard holds."""

    bound: Ranges
    guard: frozenset[Condition]
    powers: frozenset[tuple[Element, int]]
    coefficient: Fraction

    @property
    def simple(self) -> bool:
        """Whether it is one product, always there."""
        return not self.bound and not self.guard


class Candidate(NamedTuple):
    """An element, for all values of the bound variables for which the guard holds."""

    bound: Ranges
    guard: frozenset[Condition]
    element: Element


def decided(condition: Condition, hypotheses: Hypotheses) -> bool | None:
    """Whether a condition, or its negation, stands among the hypotheses."""
    if all(p in hypotheses for p in parts_of(cleared(condition))):
        return True
    opposites = [negation(condition), *map(negation, parts_of(condition))]
    return False if any(all(p in hypotheses for p in parts_of(cleared(o))) for o in opposites) else None


def opened(op: str, element: Element, unit: Element) -> tuple[Ranges, Condition, Element]:
    """Bound variables, guard and body of a reduction over variables of one guarded element."""
    bound: list[tuple[str, Index]] = []
    while isinstance(element, Reduce) and element.op == op and element != unit:
        bound.append((element.variable, element.extent))
        element = element.body
    if isinstance(element, Choice) and element.no == unit:
        return tuple(bound), element.condition, element.yes
    return tuple(bound), TRUE, element


def within(hypotheses: Hypotheses, bound: Iterable[tuple[str, Index]], guard: Iterable[Condition]) -> Hypotheses:
    """Hypotheses at any point of a product or candidate."""
    for name, extent in bound:
        fresh_in(name, hypotheses)
        hypotheses = extended(hypotheses, inside(variable(name), extent))
    return extended(hypotheses, *guard)


@dataclass
class Forms:
    """Forms of elements under the laws of one notion of equality.

    ``ask`` establishes that a condition follows from hypotheses, or raises Rejected.  ``facts`` are elements that have
    a value other than 0.
    """

    ring: bool
    monoid: bool
    positive_inputs: frozenset[str]
    ask: Callable[[Hypotheses, Condition, str], None]
    facts: tuple[Step, ...] = ()

    # -- sums of products ---------------------------------------------------------------------------

    def merged(self, element: Element, at: Hypotheses) -> dict[Product, Fraction]:
        """The sum of products that an element is: products (with coefficient 1) and their coefficients."""
        return self.collected(self.terms(element, at), at)

    def collected(self, terms: Iterable[Product], at: Hypotheses) -> dict[Product, Fraction]:
        """Products (with coefficient 1) and their coefficients; those that cancel, in part or in whole, are finite."""
        coefficients: dict[Product, Fraction] = {}
        signs: dict[Product, set[bool]] = {}
        for p in terms:
            key = p._replace(coefficient=Fraction(1))
            coefficients[key] = coefficients.get(key, Fraction(0)) + p.coefficient
            signs.setdefault(key, set()).add(p.coefficient > 0)
        self.regular([key for key, c in coefficients.items() if c == 0 or len(signs[key]) > 1], at)
        return {key: c for key, c in coefficients.items() if c}

    def terms(self, element: Element, at: Hypotheses) -> list[Product]:
        """The products whose sum an element is."""
        match element:
            case Number(value) if self.ring and math.isfinite(value):
                return [_product({}, Fraction(value))] if value else []
            case IndexValue(value) if self.ring:
                return [_of_monomial(monomial, c) for monomial, c in value.terms]
            case Apply("add", (a, b)) if self.monoid:
                return self.terms(a, at) + self.terms(b, at)
            case Apply("sub", (a, b)) if self.ring:
                return self.terms(a, at) + _negated(self.terms(b, at))
            case Apply("neg", (a,)) if self.ring:
                return _negated(self.terms(a, at))
            case Apply("mul", (a, b)) if self.ring:
                return self._times(self.terms(a, at), self.terms(b, at), at)
            case Apply("fma", (a, b, c)) if self.ring:
                return self._times(self.terms(a, at), self.terms(b, at), at) + self.terms(c, at)
            case Apply("div", (a, b)) if self.ring:
                return self._times(self.terms(a, at), [self._inverse(b, at)], at)
            case Choice(condition, yes, no) if self.monoid:
                return [
                    p._replace(guard=p.guard | guard)
                    for guard, branch, inner in _branches(condition, yes, no, at)
                    for p in self.terms(branch, inner)
                ]
            case Reduce("sum", name, extent, body) if self.monoid:
                if extent.constant is not None and extent.constant <= 0:
                    return []
                products = self.terms(body, within(at, [(name, extent)], ()))
                return [p._replace(bound=((name, extent), *p.bound)) for p in products]
        return [_product({element: 1})]

    def _times(self, left: list[Product], right: list[Product], at: Hypotheses) -> list[Product]:
        """A product distributed: one side may have infinities or no value if the other one is a finite product."""
        simple = [len(side) == 1 and side[0].simple for side in (left, right)]
        if not all(simple):
            for side, alone, other in ((left, simple[0], simple[1]), (right, simple[1], simple[0])):
                if alone or not other:
                    self.regular(side, at)
        products = []
        for p in left:
            for q in right:
                guard = p.guard | q.guard
                powers = dict(p.powers)
                for factor, n in q.powers:
                    m = powers.get(factor, 0)
                    if m * n < 0:
                        inner = within(at, (*p.bound, *q.bound), guard)
                        need(self.real(factor, inner) and self.nonzero(factor, inner), f"{factor} must not be 0")
                    powers[factor] = m + n
                names = [v for v, _ in p.bound + q.bound]
                need(len(names) == len(set(names)), "sums that are multiplied must have different variables")
                products.append(_product(powers, p.coefficient * q.coefficient, p.bound + q.bound, guard))
        return products

    def _inverse(self, element: Element, at: Hypotheses) -> Product:
        """1 / element as a product; in the reals with infinities and no value, 1 / (a*b) = 1/a * 1/b."""
        if isinstance(element, Apply) and element.op == "mul":
            a, b = element.args
            (inverse,) = self._times([self._inverse(a, at)], [self._inverse(b, at)], at)
            return inverse
        terms = self.terms(element, at)
        if len(terms) != 1 or not terms[0].simple:
            return _product({element: -1})
        for factor, n in terms[0].powers:
            need(n > 0 or (self.real(factor, at) and self.nonzero(factor, at)), f"{factor} must not be 0")
        return _product({factor: -n for factor, n in terms[0].powers}, 1 / terms[0].coefficient)

    # -- candidates of an extremum ------------------------------------------------------------------

    def candidates(self, op: str, element: Element, at: Hypotheses) -> list[Candidate]:
        """The candidates whose maximum or minimum an element is."""
        match element:
            case Number() if element == UNIT[op]:
                return []
            case Apply(name, args) if name == BINARY[op]:
                return [c for a in args for c in self.candidates(op, a, at)]
            case Choice(condition, yes, no):
                return [
                    c._replace(guard=c.guard | guard)
                    for guard, branch, inner in _branches(condition, yes, no, at)
                    for c in self.candidates(op, branch, inner)
                ]
            case Reduce(name, v, extent, body) if name == op:
                if extent.constant is not None and extent.constant <= 0:
                    return []
                reduced = self.candidates(op, body, within(at, [(v, extent)], ()))
                return [c._replace(bound=((v, extent), *c.bound)) for c in reduced]
        return [Candidate((), frozenset(), element)]

    def inhabited(self, candidates: Iterable[Candidate], at: Hypotheses) -> None:
        """Raises Rejected unless there is a candidate at all."""
        always = [c for c in candidates if not c.guard]
        need(bool(always), "an extremum must have a candidate")
        for _, extent in min(always, key=lambda c: len(c.bound)).bound:
            self.ask(at, le(1, extent), f"{extent} is positive")

    # -- values over the reals ----------------------------------------------------------------------

    def regular(self, products: Iterable[Product], at: Hypotheses) -> None:
        """Raises Rejected unless products are finite wherever their guards hold."""
        for p in products:
            inner = within(at, p.bound, p.guard)
            for factor, n in p.powers:
                need(self.real(factor, inner), f"{factor} must be finite")
                need(n > 0 or self.nonzero(factor, inner), f"{factor} must not be 0")

    def nonzero(self, element: Element, at: Hypotheses) -> bool:
        """Whether an element that has a value is not 0."""
        return self._stated(element, at) or self.real(element, at, positive=True)

    def _stated(self, element: Element, at: Hypotheses) -> bool:
        """Whether an element is stated to have a value other than 0."""
        known = (f.left for f in self.facts if all(h in at for h in f.hypotheses))
        return any(element in _factors(fact) for fact in known)

    def real(self, element: Element, at: Hypotheses, *, positive: bool = False) -> bool:
        """Whether an element is a real number, or a positive one; what that needs is asked."""
        match element:
            case Number(value):
                return self.ring and math.isfinite(value) and (not positive or value > 0)
            case Read(name, _):
                return self.ring and (not positive or name in self.positive_inputs)
            case IndexValue(value):
                if positive:
                    self.ask(at, le(1, value), f"{value} is positive")
                return self.ring
            case Apply("exp", (a,)):
                return self.real(a, at)
            case Apply("sqrt", (a,)):  # of a finite number it is one that is not negative, where it has a value
                return self._stated(element, at) and self.real(a, at)
            case Apply("div", (a, b)):
                numbers = all(self.real(x, at, positive=positive) for x in (a, b))
                return numbers and (positive or self.nonzero(b, at))
            case Apply(op, args):
                allowed = POSITIVE if positive else TOTAL
                return op in allowed and all(self.real(a, at, positive=positive) for a in args)
            case Choice(condition, yes, no):
                branches = _branches(condition, yes, no, at)
                return all(self.real(branch, inner, positive=positive) for _, branch, inner in branches)
            case Reduce(op, name, extent, body):
                if not self.real(body, within(at, [(name, extent)], ()), positive=positive):
                    return False
                if positive or op != "sum":
                    self.ask(at, le(1, extent), f"{extent} is positive")
                return True


def _branches(
    condition: Condition, yes: Element, no: Element, at: Hypotheses
) -> list[tuple[frozenset[Condition], Element, Hypotheses]]:
    """The sides of a choice with their guards, and hypotheses where they count; the other one where one is decided."""
    known = decided(condition, at)
    if known is not None:
        return [(frozenset(), yes if known else no, at)]
    opposite = negation(condition)
    return [
        (frozenset(parts_of(condition)), yes, extended(at, condition)),
        (frozenset(parts_of(opposite)), no, extended(at, opposite)),
    ]


def _product(
    powers: dict[Element, int],
    coefficient: Fraction = Fraction(1),
    bound: Ranges = (),
    guard: frozenset[Condition] = frozenset(),
) -> Product:
    return Product(bound, guard, frozenset((a, n) for a, n in powers.items() if n), coefficient)


def _of_monomial(monomial: tuple[object, ...], coefficient: int) -> Product:
    powers: dict[Element, int] = {}
    for atom in monomial:
        factor = IndexValue(Index({(atom,): 1}))  # type: ignore[dict-item]
        powers[factor] = powers.get(factor, 0) + 1
    return _product(powers, Fraction(coefficient))


def _negated(products: list[Product]) -> list[Product]:
    return [p._replace(coefficient=-p.coefficient) for p in products]


def _factors(element: Element) -> list[Element]:
    if isinstance(element, Apply) and element.op == "mul":
        return [element, *(f for a in element.args for f in _factors(a))]
    return [element]
