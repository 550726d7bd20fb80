"""Numbers that tensors are evaluated on: exact reals with infinities, IEEE binary32, and float64.

Over the reals, rational results are exact fractions.  An exponential of a rational number is an interval between two
fractions, so that two results are different for sure where their intervals do not meet.  What is undefined (a division
by zero, inf - inf, 0 * inf) raises :class:`Undefined` instead of being some number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from ir_semantics.scalars import intervals
from ir_semantics.scalars.floats import float_value, round_to
from ir_semantics.scalars.formats import BINARY32, Literal
from ir_semantics.scalars.intervals import Interval
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


class Undefined(ArithmeticError):
    """An operation whose value is not known here, or that has none."""


class NoValue(Undefined):
    """An operation that has no value: inf - inf, 0 * inf, the logarithm or square root of a negative number."""


class DivisionByZero(NoValue):
    """A division by zero."""


RealNumber: TypeAlias = Fraction | float | Interval | bool
"""A fraction, an infinity or an interval; a Boolean as the result of a comparison."""


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
        """The operator's exact function, or an interval around its result."""
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
        if op == "sqrt" and not isinstance(args[0], float):
            return _enclosed(op, [_interval(args[0])])
        if exact is None:
            raise Undefined(f"{op} has no value on exact numbers")
        if all(isinstance(a, Fraction) for a in args):
            try:
                result = exact(*args)
            except ZeroDivisionError:
                raise DivisionByZero("division by zero") from None
            return result if isinstance(result, bool) else Fraction(result)
        if any(isinstance(a, Interval) for a in args):
            return _enclosed(op, [_interval(a) for a in args])
        return _infinite(op, [a if isinstance(a, float) else float(_sign(a)) for a in args], args)


def _truth(value: RealNumber) -> bool:
    if not isinstance(value, bool):
        raise Undefined(f"{value} is no truth value")
    return value


def _sign(value: RealNumber) -> int:
    assert isinstance(value, Fraction)
    return (value > 0) - (value < 0)


def _negative(value: RealNumber) -> bool:
    return (value.high if isinstance(value, Interval) else value) < 0


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


def _interval(value: RealNumber) -> Interval:
    if isinstance(value, Interval):
        return value
    if isinstance(value, Fraction):
        return intervals.point(value)
    raise Undefined(f"{value} together with an irrational number")


def _enclosed(op: str, args: list[Interval]) -> RealNumber:
    if op == "div" and args[1] == intervals.point(0):
        raise DivisionByZero("division by zero")
    try:
        return intervals.OPERATORS[op](*args)
    except (KeyError, ZeroDivisionError, intervals.Undecided) as error:
        raise Undefined(f"{op} of {', '.join(map(str, args))}, which is irrational") from error


def _exp(value: RealNumber) -> RealNumber:
    if isinstance(value, float):
        return INFINITY if value > 0 else Fraction(0)
    if value == 0:
        return Fraction(1)
    try:
        return intervals.exp(_interval(value))
    except OverflowError:
        raise Undefined(f"exp of a number beyond {intervals.MOST_EXPONENT} in magnitude") from None


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
    if isinstance(left, Interval) or isinstance(right, Interval):
        if isinstance(left, float) or isinstance(right, float):
            return True  # what an interval encloses is finite
        return _interval(left).apart(_interval(right))
    return left != right and (left == left or right == right)


def text_of(left: RealNumber, right: RealNumber) -> tuple[str, str]:
    """Two numbers for people, who can see that they differ if they do."""
    texts = str(left), str(right)
    if texts[0] == texts[1] and apart(left, right) and not isinstance(left, float):
        a, b = _interval(left), _interval(right)
        return texts[0], f"{texts[1]} {'+' if b.low > a.high else '-'} {float(abs(b.low - a.low)):.3g}"
    return texts
