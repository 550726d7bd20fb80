"""Intervals of exact fractions that enclose real numbers, with exponentials, logarithms and roots.

Ends are rounded outward to :data:`BITS` bits, so that they stay short; nothing rests on floating point.  Exponentials,
logarithms and roots are those of :mod:`decimal`, which rounds them correctly.  For concrete runs of what is claimed
over the reals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from fractions import Fraction

BITS = 256
_DIGITS = 80
"""Of decimal numbers: somewhat more than :data:`BITS` bits."""
MOST_EXPONENT = 1 << 16
"""Exponentials of larger numbers are not enclosed: they would have as many bits."""


class Undecided(ArithmeticError):
    """A comparison that holds for some numbers of the intervals, and not for others."""


def _rounded(value: Fraction, up: bool) -> Fraction:
    """A fraction of at most :data:`BITS` bits above or below."""
    shift = BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    scale = Fraction(2) ** shift
    units = value * scale
    whole = -(-units.numerator // units.denominator) if up else units.numerator // units.denominator
    return whole / scale


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``."""

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"{float((self.low + self.high) / 2):.6g}"

    def __add__(self, other: Interval) -> Interval:
        return _around(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _around(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """Raises ZeroDivisionError where the divisor may be 0."""
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("the divisor of an interval must not be 0 anywhere")
        return self * Interval(1 / other.high, 1 / other.low)

    def __abs__(self) -> Interval:
        return self if self.low >= 0 else maximum(-self, Interval(Fraction(0), self.high))

    def apart(self, other: Interval) -> bool:
        """Whether no number is in both."""
        return self.high < other.low or other.high < self.low


def point(value: Fraction | int) -> Interval:
    """One number."""
    return Interval(Fraction(value), Fraction(value))


def _around(low: Fraction, high: Fraction) -> Interval:
    return Interval(_rounded(low, False) if low else low, _rounded(high, True) if high else high)


def maximum(a: Interval, b: Interval) -> Interval:
    """The larger of two numbers."""
    return Interval(max(a.low, b.low), max(a.high, b.high))


def _increasing(function: Callable[[Context, Decimal], Decimal], x: Interval) -> Interval:
    """An increasing function that decimals have: what is not exact is at most one neighbour away."""

    def end(at: Fraction, rounding: str) -> Fraction:
        context = Context(_DIGITS, rounding, MIN_EMIN, MAX_EMAX)
        argument = context.divide(Decimal(at.numerator), Decimal(at.denominator))
        context.clear_flags()
        value = function(context, argument)
        if context.flags[Inexact]:
            value = context.next_plus(value) if rounding == ROUND_CEILING else context.next_minus(value)
        return Fraction(value)

    return _around(end(x.low, ROUND_FLOOR), end(x.high, ROUND_CEILING))


def exp(x: Interval) -> Interval:
    """e^x; raises OverflowError where that has too many bits."""
    for end in (x.low, x.high):
        if abs(end) > MOST_EXPONENT:
            raise OverflowError(f"the exponent must be at most {MOST_EXPONENT} in magnitude, not {float(end):.4g}")
    return _increasing(Context.exp, x)


def log(x: Interval) -> Interval:
    """The natural logarithm; raises ZeroDivisionError where a number may not be positive."""
    if x.low <= 0:
        raise ZeroDivisionError("a logarithm must be of positive numbers")
    return _increasing(Context.ln, x)


def root(x: Interval) -> Interval:
    """The square root; raises ZeroDivisionError where a number may be negative."""
    if x.low < 0:
        raise ZeroDivisionError("a root must not be of negative numbers")
    return _increasing(Context.sqrt, x)


def _compared(a: Interval, b: Interval, yes: bool, no: bool) -> bool:
    if not (yes or no):
        raise Undecided(f"intervals around {a} and {b} do not decide a comparison")
    return yes


def _equal(a: Interval, b: Interval) -> bool:
    return _compared(a, b, a == b and a.low == a.high, a.apart(b))


OPERATORS: Mapping[str, Callable[..., Interval | bool]] = {
    "add": Interval.__add__,
    "sub": Interval.__sub__,
    "mul": Interval.__mul__,
    "div": Interval.__truediv__,
    "neg": Interval.__neg__,
    "abs": Interval.__abs__,
    "maximum": maximum,
    "minimum": lambda a, b: -maximum(-a, -b),
    "exp": exp,
    "log": log,
    "pow": lambda base, exponent: exp(exponent * log(base)),
    "sqrt": root,
    "eq": _equal,
    "same": _equal,
    "lt": lambda a, b: _compared(a, b, a.high < b.low, b.high <= a.low),
    "le": lambda a, b: _compared(a, b, a.high <= b.low, b.high < a.low),
}
"""Scalar operators on intervals; comparisons raise :class:`Undecided` where numbers of the intervals differ on them."""
