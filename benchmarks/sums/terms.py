"""Claims that two sums are equal up to the order of their reduction, and what the sums are in numbers.

A term is a symbol, a literal, a product of two terms or a sum of terms.  A sum has no order: it stands for every order
in which hardware or a compiler may add its elements up, so ``Sum((a, Sum((b, c))))`` and ``Sum((c, a, b))`` are equal.
Its unit is the literal -0.0, as in IEEE 754, where +0.0 is none (-0.0 + +0.0 = +0.0).  Products commute.  No other
law is used: neither does a product distribute over a sum, nor are literals computed with.

:mod:`benchmarks.sums.encode` writes a claim as SMT-LIB, :mod:`benchmarks.sums.prove` decides it.  This module
evaluates it on exact numbers, which is how a claim is refuted: integers and fractions with the two zeros told apart.

Terms are compared and hashed by identity, so that a sum that is shared a thousand times costs no more than one; symbols
are the same where their names are, and literals where their values are.  Their parts are ``Final``: a term does not
change.  (Type checkers see to it; dataclasses that are frozen take twice as long to build, and claims have thousands.)
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final, TypeAlias

_is_name = re.compile(r"[A-Za-z0-9_.]+", re.ASCII).fullmatch


class NegativeZero(Enum):
    """The number -0.0: the unit of addition, different from 0."""

    NEGATIVE_ZERO = "-0.0"

    def __repr__(self) -> str:
        return "-0.0"

    __str__ = __repr__


NEGATIVE_ZERO: Final = NegativeZero.NEGATIVE_ZERO

Number: TypeAlias = int | Fraction | NegativeZero
"""An exact number; the integer 0 is +0.0."""


@dataclass(eq=False, slots=True)
class Symbol:
    """Any number, the same one wherever the name stands; the name is made of letters, digits, ``_`` and ``.``."""

    name: Final[str]

    def __post_init__(self) -> None:
        if not _is_name(self.name):
            raise ValueError(
                f"the name of a symbol must be letters, digits, '_' and '.', not {self.name!r}; rename the symbol"
            )


@dataclass(init=False, eq=False, slots=True)
class Constant:
    """A literal; a float is taken at its exact value, -0.0 is :data:`NEGATIVE_ZERO`.

    Raises TypeError for what is no number and ValueError for an infinity or NaN, which no sum here has as a value.
    """

    exact: Final[Number]
    """The value; integral fractions are integers."""

    def __init__(self, value: Number | float) -> None:
        self.exact = value if type(value) is int else _exact(value)


def _exact(value: Number | float) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float | NegativeZero):
        raise TypeError(f"a literal must be an int, a Fraction or a float, not {value!r}")
    if isinstance(value, NegativeZero):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a literal must be a finite number, not {value!r}; name it with a Symbol instead")
        if value == 0:
            return NEGATIVE_ZERO if math.copysign(1.0, value) < 0 else 0
        value = Fraction(value)
    return int(value) if value == int(value) else value


@dataclass(eq=False, slots=True)
class Product:
    """The product of two terms, in either order."""

    left: Final[Term]
    right: Final[Term]

    def __post_init__(self) -> None:
        if type(self.left) not in _TERMS or type(self.right) not in _TERMS:
            _require_terms((self.left, self.right), "a factor")


@dataclass(init=False, eq=False, slots=True)
class Sum:
    """The sum of any number of terms, in any order; of none, -0.0."""

    elements: Final[tuple[Term, ...]]

    def __init__(self, elements: Iterable[Term]) -> None:
        self.elements = tuple(elements)
        _require_terms(self.elements, "an element of a sum")


Term: TypeAlias = Symbol | Constant | Product | Sum
_TERMS = frozenset((Symbol, Constant, Product, Sum))


def _require_terms(values: Sequence[object], what: str) -> None:
    if not _TERMS.issuperset(map(type, values)):
        wrong = next(v for v in values if type(v) not in _TERMS)
        raise TypeError(f"{what} must be a Symbol, Constant, Product or Sum, not {wrong!r}")


@dataclass(frozen=True, eq=False)
class SumClaim:
    """The claim that both sides are equal whatever the symbols are and in whatever order sums are added up."""

    left: Term
    right: Term
    name: str = "sums"

    def __post_init__(self) -> None:
        _require_terms((self.left, self.right), "a side of a claim")


def vector(name: str, length: int) -> list[Term]:
    """``length`` symbols ``name.0``, ``name.1``, ..."""
    return [Symbol(f"{name}.{i}") for i in range(length)]


def dot(left: Sequence[Term], right: Sequence[Term], accumulator: Term | None = None) -> Sum:
    """The sum of the products of elements at the same place, and of an accumulator if there is one.

    Raises ValueError where the vectors differ in length.
    """
    if len(left) != len(right):
        raise ValueError(f"the vectors of a dot product must have one length, not {len(left)} and {len(right)}")
    products: list[Term] = [*map(Product, left, right)]
    return Sum(products if accumulator is None else [accumulator, *products])


def post_order(*roots: Term) -> list[Term]:
    """Every term below the roots, and these, each once and after its own parts."""
    done: set[int] = set()
    order: list[Term] = []

    def finish(term: Term) -> None:
        if id(term) not in done:
            done.add(id(term))
            order.append(term)

    stack: list[Term] = list(roots[::-1])
    while stack:
        term = stack[-1]
        waiting: list[Term] = []
        for part in _parts(term) if id(term) not in done else ():
            if id(part) in done:
                continue
            # leaves and products of leaves, which are most of a dot product, need no place on the stack
            factors = (part.left, part.right) if isinstance(part, Product) else ()
            if waiting or isinstance(part, Sum) or any(isinstance(f, Sum | Product) for f in factors):
                waiting.append(part)
            else:
                for factor in factors:
                    finish(factor)
                finish(part)
        if waiting:
            stack.extend(reversed(waiting))
        else:
            finish(term)
            stack.pop()
    return order


def _parts(term: Term) -> tuple[Term, ...]:
    if isinstance(term, Sum):
        return term.elements
    return (term.left, term.right) if isinstance(term, Product) else ()


def flat_lengths(order: Sequence[Term]) -> dict[int, int]:
    """By identity of each sum in a post-order, how many elements it has once sums among its elements are opened.

    A sum shared within a sum counts as often as it stands there, so a length may be exponential in the number of terms.
    """
    lengths: dict[int, int] = {}
    for term in order:
        if isinstance(term, Sum):
            lengths[id(term)] = sum(lengths[id(e)] if isinstance(e, Sum) else 1 for e in term.elements)
    return lengths


def evaluate(claim: SumClaim, numbers: Mapping[str, Number]) -> tuple[Number, Number]:
    """Both sides, with exact arithmetic, for given values of the symbols; raises KeyError where one is missing."""
    return _Evaluator(claim).run(numbers)


class _Evaluator:
    """A claim as a list of operations on places of a list of values."""

    def __init__(self, claim: SumClaim) -> None:
        self.order = post_order(claim.left, claim.right)
        place = {id(term): i for i, term in enumerate(self.order)}
        self.sides = place[id(claim.left)], place[id(claim.right)]
        self.start: list[Number] = [0] * len(self.order)
        self.symbols: list[tuple[int, str]] = []
        self.operations: list[tuple[int, bool, tuple[int, ...]]] = []
        for i, term in enumerate(self.order):
            if isinstance(term, Symbol):
                self.symbols.append((i, term.name))
            elif isinstance(term, Constant):
                self.start[i] = term.exact
            elif isinstance(term, Product):
                self.operations.append((i, False, (place[id(term.left)], place[id(term.right)])))
            else:
                self.operations.append((i, True, tuple(place[id(e)] for e in term.elements)))

    def run(self, numbers: Mapping[str, Number]) -> tuple[Number, Number]:
        values = self.start.copy()
        for i, name in self.symbols:
            values[i] = numbers[name]
        for i, adds, operands in self.operations:
            if adds:
                values[i] = _add([values[o] for o in operands])
            else:
                values[i] = _multiply(values[operands[0]], values[operands[1]])
        return values[self.sides[0]], values[self.sides[1]]


def _add(elements: Sequence[Number]) -> Number:
    """IEEE 754's rule of zeros: only a sum of negative zeros is a negative zero."""
    numbers = [e for e in elements if e is not NEGATIVE_ZERO]
    return sum(numbers) if numbers else NEGATIVE_ZERO


def _multiply(left: Number, right: Number) -> Number:
    """The sign of a product, of zero too, is negative where exactly one factor's is."""
    if not isinstance(left, NegativeZero) and not isinstance(right, NegativeZero):
        product = left * right
        if product or (left >= 0 and right >= 0):
            return product
    return NEGATIVE_ZERO if _negative(left) != _negative(right) else 0


def _negative(number: Number) -> bool:
    return isinstance(number, NegativeZero) or number < 0


@dataclass(frozen=True)
class Counterexample:
    """Values of the symbols for which the sides differ, and the sides' values; as the evaluation found them."""

    numbers: dict[str, Number]
    left: Number
    right: Number

    def __str__(self) -> str:
        shown = [f"{name} = {value}" for name, value in self.numbers.items() if value != 0]
        rest = len(self.numbers) - len(shown)
        others = [f"{'the other symbols' if shown else 'all symbols'} = 0"] if rest else []
        where = ", ".join([*shown, *others])
        zeros = " (the sign of zero)" if _unsigned(self.left) == _unsigned(self.right) else ""
        return f"left = {self.left}, right = {self.right}{zeros}{' where ' if where else ''}{where}"


MOST_BITS = 20_000
"""Longest numbers that a claim is tried on; only products of products of ... of sums are longer."""

SAMPLE_BITS = 31


def distinguish(claim: SumClaim, attempts: int = 2) -> Counterexample | None:
    """Numbers for which the sides differ, evaluated and made simple; None where none were found.

    Sides are polynomials in the symbols.  Where these differ, random integers of 31 bits tell them apart but for a
    chance of about degree / 2^31 per attempt.  Sides that differ only in the sign of a zero are sought among zeros.
    The numbers are the same in every run.  Claims whose values may have more than :data:`MOST_BITS` bits are not tried.
    """
    evaluator = _Evaluator(claim)
    if not _within(evaluator.order):
        return None
    names = list(dict.fromkeys(name for _, name in evaluator.symbols))
    for numbers in _samples(names, evaluator.order, attempts):
        left, right = evaluator.run(numbers)
        if left != right:
            return _simpler(evaluator, numbers)
    return None


def _within(order: Sequence[Term]) -> bool:
    """Whether values stay within :data:`MOST_BITS` bits on samples; the common denominator counts for each factor."""
    literals = [t.exact for t in order if isinstance(t, Constant)]
    ratios = [v.as_integer_ratio() for v in literals if not isinstance(v, NegativeZero)]
    common = 2 * math.lcm(*(d for _, d in ratios)).bit_length()
    literal = max((n.bit_length() for n, _ in ratios), default=0)
    bits: dict[int, int] = {}
    for term in order:
        if isinstance(term, Symbol | Constant):
            size = max(SAMPLE_BITS, literal) + common
        elif isinstance(term, Product):
            size = bits[id(term.left)] + bits[id(term.right)]
        else:
            size = max((bits[id(e)] for e in term.elements), default=1) + len(term.elements).bit_length()
        if size > MOST_BITS:
            return False
        bits[id(term)] = size
    return True


def _samples(names: Sequence[str], order: Sequence[Term], attempts: int) -> Iterator[dict[str, Number]]:
    source = random.Random(0)
    for _ in range(attempts):
        yield {name: source.randrange(1, 1 << SAMPLE_BITS) for name in names}
    yield dict.fromkeys(names, NEGATIVE_ZERO)
    yield dict.fromkeys(names, NEGATIVE_ZERO) | _second_factors(order)
    yield dict.fromkeys(names, 0)
    for _ in range(attempts):
        yield {name: source.choice((NEGATIVE_ZERO, 0, 1, -1)) for name in names}


def _second_factors(order: Sequence[Term]) -> dict[str, Number]:
    """Symbols at zero that first occur as second factors; where first ones are -0.0, products are -0.0."""
    first: dict[str, bool] = {}
    for term in order:
        if isinstance(term, Product):
            for factor, second in ((term.left, False), (term.right, True)):
                if isinstance(factor, Symbol):
                    first.setdefault(factor.name, second)
    return {name: 0 for name, second in first.items() if second}


def _simpler(evaluator: _Evaluator, numbers: dict[str, Number]) -> Counterexample:
    """The same difference with most numbers 0 and the others small: halves of them are replaced while sides differ.

    Sides that differ by more than the sign of a zero go on to do so.
    """

    def differ(candidate: dict[str, Number]) -> tuple[bool, bool]:
        left, right = evaluator.run(candidate)
        return left != right, _unsigned(left) != _unsigned(right)

    kind = differ(numbers)
    alive = list(numbers)
    while len(alive) > 1:
        middle = len(alive) // 2
        for dropped, kept in ((alive[:middle], alive[middle:]), (alive[middle:], alive[:middle])):
            candidate = numbers | dict.fromkeys(dropped, 0)
            if differ(candidate) == kind:
                numbers, alive = candidate, kept
                break
        else:
            break
    small: tuple[Number, ...] = (0, 1, 2)
    for name in alive[:8]:
        for value in small:
            if differ(numbers | {name: value}) == kind:
                numbers = numbers | {name: value}
                break
    return Counterexample(numbers, *evaluator.run(numbers))


def _unsigned(number: Number) -> int | Fraction:
    return 0 if isinstance(number, NegativeZero) else number
