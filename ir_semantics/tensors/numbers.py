"""Numbers that tensors are evaluated on: exact reals with infinities, IEEE binary32, and float64.

Over the reals, rational results are exact fractions.  An exponential of a rational number is enclosed between two
fractions, so that two results are different for sure where their enclosures do not meet.  What is undefined (a division
by zero, inf - inf, 0 * inf) raises :class:`Undefined` instead of being some number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from ir_semantics.scalars.floats import float_value, round_to
from ir_semantics.scalars.formats import BINARY32, Literal
from ir_semantics.scalars.operators import OPERATORS

_FRACTION = re.compile(r"-?[0-9]{1,2000}(/[1-9][0-9]{0,1999})?")
"""What ``str`` makes of fractions, with as many digits as take no time; no exponents, which a file may choose."""


def fraction_of(text: str) -> Fraction:
    """The fraction that ``str`` wrote; raises ValueError on any other text.

    >>> fraction_of("-1/3")
    Fraction(-1, 3)
    """
    if not _FRACTION.fullmatch(text):
        raise ValueError(f"a number must be written as digits or digits/digits, not {text!r:.60}")
    return Fraction(text)


INFINITY = float("inf")
LARGEST_POWER = 1 << 16
"""Exponentials of larger numbers would have too many digits."""
DIGITS = 256
"""Bits after the binary point that enclosures keep."""


class Undefined(ArithmeticError):
    """An operation whose value is not known here, or that has none."""


class NoValue(Undefined):
    """An operation that has no value: inf - inf, 0 * inf, the logarithm or square root of a negative number."""


class DivisionByZero(NoValue):
    """A division by zero."""


@dataclass(frozen=True)
class Enclosure:
    """A real number between two fractions."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"{float((self.low + self.high) / 2):.6g}"


RealNumber: TypeAlias = Fraction | float | Enclosure | bool
"""A fraction, an infinity or an enclosure; a Boolean as the result of a comparison."""


class Numbers(Protocol):
    """An interpretation of literals, integers and scalar operators; values are its own business."""

    def literal(self, value: Literal) -> Any:
        """A literal."""

    def integer(self, value: int) -> Any:
        """An integer, such as a number of elements."""

    def apply(self, op: str, args: Sequence[Any]) -> Any:
        """A scalar operator."""


class Reals:
    """The real numbers with infinities; floats as literals must be infinities."""

    def literal(self, value: Literal) -> RealNumber:
        """A fraction or an infinity."""
        if isinstance(value, float) and not math.isinf(value):
            raise Undefined(f"the literal {value} is no real number")
        return value

    def integer(self, value: int) -> RealNumber:
        """The integer."""
        return Fraction(value)

    def apply(self, op: str, args: Sequence[RealNumber]) -> RealNumber:
        """The operator's exact function, or an enclosure of its result."""
        if op == "select":
            return args[1] if _truth(args[0]) else args[2]
        if op in ("and", "or", "not"):
            truths = [_truth(a) for a in args]
            return all(truths) if op == "and" else any(truths) if op == "or" else not truths[0]
        if op == "exp":
            return _exp(args[0])
        if op == "tanh":  # 1 - 2 / (e^2x + 1)
            power = self.apply("add", [_exp(self.apply("mul", [Fraction(2), args[0]])), Fraction(1)])
            return self.apply("sub", [Fraction(1), self.apply("div", [Fraction(2), power])])
        if op in ("log", "sqrt") and _negative(args[0]):
            raise NoValue(f"{op} of {args[0]}")
        exact = OPERATORS[op].exact
        if exact is None:
            raise Undefined(f"{op} has no value on exact numbers")
        if all(isinstance(a, Fraction) for a in args):
            try:
                result = exact(*args)
            except ZeroDivisionError:
                raise DivisionByZero("division by zero") from None
            return result if isinstance(result, bool) else Fraction(result)
        if any(isinstance(a, Enclosure) for a in args):
            return _enclosed(op, [_enclosure(a) for a in args])
        return _infinite(op, [a if isinstance(a, float) else float(_sign(a)) for a in args], args)


def _truth(value: RealNumber) -> bool:
    if not isinstance(value, bool):
        raise Undefined(f"{value} is no truth value")
    return value


def _sign(value: RealNumber) -> int:
    assert isinstance(value, Fraction)
    return (value > 0) - (value < 0)


def _negative(value: RealNumber) -> bool:
    return (value.high if isinstance(value, Enclosure) else value) < 0


def _infinite(op: str, signs: list[float], args: Sequence[RealNumber]) -> RealNumber:
    """Operators where one operand is an infinity; of finite operands only the sign matters."""
    match op, signs:
        case ("maximum", _):
            return max(args)  # type: ignore[type-var]  # fractions and infinities are ordered
        case ("minimum", _):
            return min(args)  # type: ignore[type-var]
        case ("lt", [a, b]):
            return args[0] < args[1]  # type: ignore[operator]
        case ("le", [a, b]):
            return args[0] <= args[1]  # type: ignore[operator]
        case ("neg", [a]):
            return -a
        case ("abs", [a]):
            return abs(a)
        case ("add", [a, b]):
            result = a + b
        case ("sub", [a, b]):
            result = a - b
        case ("mul", [a, b]):
            result = a * b
        case ("div", [a, b]) if b != 0:
            result = a / b
            if math.isinf(b) and not math.isinf(a):
                return Fraction(0)
        case ("div", _):
            raise DivisionByZero("division by zero")
        case _:
            raise Undefined(f"{op} of {', '.join(map(str, args))}")
    if math.isnan(result):
        raise NoValue(f"{op} of {', '.join(map(str, args))}")
    return result


def _enclosure(value: RealNumber) -> Enclosure:
    if isinstance(value, Enclosure):
        return value
    if isinstance(value, Fraction):
        return Enclosure(value, value)
    raise Undefined(f"{value} together with an irrational number")


def _outward(low: Fraction, high: Fraction) -> Enclosure:
    scale = 1 << DIGITS
    return Enclosure(Fraction(math.floor(low * scale), scale), Fraction(math.ceil(high * scale), scale))


def _enclosed(op: str, args: list[Enclosure]) -> RealNumber:
    match op, args:
        case ("neg", [a]):
            return Enclosure(-a.high, -a.low)
        case ("add", [a, b]):
            return _outward(a.low + b.low, a.high + b.high)
        case ("sub", [a, b]):
            return _outward(a.low - b.high, a.high - b.low)
        case ("mul", [a, b]):
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return _outward(min(corners), max(corners))
        case ("div", [a, b]):
            if b.low == b.high == 0:
                raise DivisionByZero("division by zero")
            if b.low <= 0 <= b.high:
                raise Undefined(f"division by {b}, which may be zero")
            corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
            return _outward(min(corners), max(corners))
        case ("maximum", [a, b]):
            return Enclosure(max(a.low, b.low), max(a.high, b.high))
        case ("minimum", [a, b]):
            return Enclosure(min(a.low, b.low), min(a.high, b.high))
        case ("lt", [a, b]) if a.high < b.low or a.low >= b.high:
            return a.high < b.low
        case ("le", [a, b]) if a.high <= b.low or a.low > b.high:
            return a.high <= b.low
    raise Undefined(f"{op} of {', '.join(map(str, args))}, which is irrational")


def _exp(value: RealNumber) -> RealNumber:
    if isinstance(value, float):
        return INFINITY if value > 0 else Fraction(0)
    if value == 0:
        return Fraction(1)
    around = _enclosure(value)
    low = _exp_of(around.low)
    high = low if around.low == around.high else _exp_of(around.high)
    return Enclosure(low.low, high.high)


def _exp_of(power: Fraction) -> Enclosure:
    """e^power: Taylor's series at power / 2^m of at most 1/2, remainder below twice the next term."""
    if abs(power) > LARGEST_POWER:
        raise Undefined(f"exp of a number beyond {LARGEST_POWER} in magnitude")
    halvings = max(0, math.ceil(abs(power)).bit_length() + 1)
    x = power / (1 << halvings)
    total, term = Fraction(0), Fraction(1)
    for n in range(1, 60):
        total += term
        term = term * x / n
    around = _outward(total - 2 * abs(term), total + 2 * abs(term))
    for _ in range(halvings):
        around = _outward(max(Fraction(0), around.low) ** 2, around.high**2)
    return around


class Binary32:
    """IEEE 754 binary32, rounded to nearest, with infinities, zeros of both signs and one NaN."""

    def literal(self, value: Literal) -> float:
        """The literal; raises Undefined where it is no number of the format."""
        if value == 0 or not math.isfinite(value):
            return float(value)
        rounded = round_to(Fraction(value), BINARY32)
        if rounded != value:
            raise Undefined(f"the literal {value} is no number of binary32")
        return rounded

    def integer(self, value: int) -> float:
        """The nearest number."""
        return round_to(Fraction(value), BINARY32)

    def apply(self, op: str, args: Sequence[Any]) -> Any:
        """The operator's value; raises Undefined for one that floats do not have."""
        if op == "select":
            return args[1] if _truth(args[0]) else args[2]
        if op in ("and", "or", "not"):
            truths = [_truth(a) for a in args]
            return all(truths) if op == "and" else any(truths) if op == "or" else not truths[0]
        try:
            return float_value(op, BINARY32, [float(a) for a in args])
        except KeyError:
            raise Undefined(f"{op} is not evaluated on binary32") from None

    @staticmethod
    def apart(left: Any, right: Any) -> bool:
        """Whether two numbers have different bits; NaN is NaN."""
        return left != right if isinstance(left, bool) else not float_value("same", BINARY32, [left, right])


def apart(left: RealNumber, right: RealNumber) -> bool:
    """Whether two numbers differ for sure; NaN is NaN."""
    if isinstance(left, Enclosure) or isinstance(right, Enclosure):
        if isinstance(left, float) or isinstance(right, float):
            return True  # an enclosure is finite
        a, b = _enclosure(left), _enclosure(right)
        return a.high < b.low or b.high < a.low
    return left != right and (left == left or right == right)


def text_of(left: RealNumber, right: RealNumber) -> tuple[str, str]:
    """Two numbers for people, who can see that they differ if they do."""
    texts = str(left), str(right)
    if texts[0] == texts[1] and apart(left, right) and not isinstance(left, float):
        a, b = _enclosure(left), _enclosure(right)
        return texts[0], f"{texts[1]} {'+' if b.low > a.high else '-'} {float(abs(b.low - a.low)):.3g}"
    return texts
