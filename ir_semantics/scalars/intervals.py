"""Intervals of exact fractions that enclose real numbers, with exponentials, logarithms and roots.

Ends are rounded outward to multiples of 2^-:data:`BITS` of their magnitude's order, so that they stay short; nothing
rests on floating point.  For concrete runs of what is claimed over the reals.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

BITS = 120
MOST_EXPONENT = 1 << 12
"""Exponentials of larger numbers are not enclosed: they would have as many bits."""


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

    @property
    def magnitude(self) -> Fraction:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


def point(value: Fraction | int) -> Interval:
    """One number."""
    return Interval(Fraction(value), Fraction(value))


def _around(low: Fraction, high: Fraction) -> Interval:
    return Interval(_rounded(low, False) if low else low, _rounded(high, True) if high else high)


def _exp(x: Fraction) -> Interval:
    """e^x = (e^(x / 2^k))^(2^k) with |x / 2^k| <= 1/2, where the series' rest is at most its last term."""
    if abs(x) > MOST_EXPONENT:
        raise OverflowError(f"the exponent must be at most {MOST_EXPONENT} in magnitude, not {float(x):.4g}")
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    small = x / (1 << halvings)
    term, total, count = Interval(Fraction(1), Fraction(1)), point(1), 0
    while term.magnitude > Fraction(1, 1 << BITS + 20):
        count += 1
        term = term * point(small) * point(Fraction(1, count))
        total = total + term
    rest = term.magnitude
    power = total + Interval(-rest, rest)
    for _ in range(halvings):
        power = power * power
    return power


def exp(x: Interval) -> Interval:
    """e^x; raises OverflowError where that has too many bits."""
    return Interval(_exp(x.low).low, _exp(x.high).high)


def _log(x: Fraction) -> Interval:
    """ln x = 2 artanh((x - 1) / (x + 1)) for x > 0, from x between 1/2 and 2 by halving, with n ln 2 added."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return _log_near_1(x / Fraction(2) ** n) + point(n) * _log_near_1(Fraction(2))


def _log_near_1(x: Fraction) -> Interval:
    y = (x - 1) / (x + 1)  # at most 1/3 in magnitude
    square, power, total, count = point(y) * point(y), point(y), point(0), 1
    while power.magnitude > Fraction(1, 1 << BITS):
        total = total + power * point(Fraction(2, count))
        power, count = power * square, count + 2
    rest = 3 * power.magnitude  # 2 |y|^n / n / (1 - y^2)
    return total + Interval(-rest, rest)


def log(x: Interval) -> Interval:
    """The natural logarithm; raises ZeroDivisionError where a number may not be positive."""
    if x.low <= 0:
        raise ZeroDivisionError("a logarithm must be of positive numbers")
    return Interval(_log(x.low).low, _log(x.high).high)


def inverse_root(x: Interval) -> Interval:
    """1 / sqrt(x); raises ZeroDivisionError where a number may not be positive."""
    if x.low <= 0:
        raise ZeroDivisionError("an inverse root must be of positive numbers")

    def root(y: Fraction, up: bool) -> Fraction:
        scaled = y * (1 << 2 * BITS)
        return Fraction(isqrt(scaled.numerator // scaled.denominator) + up, 1 << BITS)

    return Interval(root(1 / x.high, False), root(1 / x.low, True))
