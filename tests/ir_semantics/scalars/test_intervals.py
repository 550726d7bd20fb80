"""Intervals of elementary functions, against series of exact fractions whose rest is known."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_semantics.scalars import intervals
from ir_semantics.scalars.intervals import OPERATORS, Interval, Undecided, exp, log, point, root

NUMBERS = st.fractions(-30, 30, max_denominator=10**6)
POSITIVE = st.fractions(Fraction(1, 10**9), 10**9)


def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of e^x, by the series at x - n, with 0 <= x - n < 1, times e^n."""
    if x < 0:
        low, high = exponential(-x)
        return 1 / high, 1 / low

    def series(y: Fraction) -> tuple[Fraction, Fraction]:
        total, term = Fraction(0), Fraction(1)
        for n in range(1, 70):
            total, term = total + term, term * y / n
        return total, total + 2 * term

    n = math.floor(x)
    (low, high), (e_low, e_high) = series(x - n), series(Fraction(1))
    return low * e_low**n, high * e_high**n


def narrow(interval: Interval) -> bool:
    return 0 <= interval.high - interval.low <= abs(interval.high) / Fraction(2**250)


@settings(deadline=None)
@given(NUMBERS)
def test_exponentials_are_enclosed(x: Fraction) -> None:
    low, high = exponential(x)
    around = exp(point(x))
    assert narrow(around)
    assert around.low <= high and low <= around.high
    if x != 0:  # the oracle's bounds are closer than the interval
        assert around.low < low and high < around.high


@settings(deadline=None, max_examples=25)
@given(POSITIVE)
def test_logarithms_are_enclosed(x: Fraction) -> None:
    around = log(point(x))
    assert exponential(around.low)[0] <= x <= exponential(around.high)[1]
    assert around.high - around.low <= max(1, abs(around.high)) / Fraction(2**250)


@given(POSITIVE)
def test_roots_are_enclosed(x: Fraction) -> None:
    around = root(point(x))
    assert around.low**2 <= x <= around.high**2
    assert narrow(around)
    assert root(point(x * x)).low <= x <= root(point(x * x)).high


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=2), st.lists(NUMBERS, min_size=2, max_size=2), st.data())
def test_operators_enclose_the_values_of_all_numbers_within(
    a: list[Fraction], b: list[Fraction], data: st.DataObject
) -> None:
    first, second = Interval(min(a), max(a)), Interval(min(b), max(b))
    x, y = (data.draw(st.fractions(i.low, i.high, max_denominator=10**6)) for i in (first, second))
    values = {"add": x + y, "sub": x - y, "mul": x * y, "maximum": max(x, y), "minimum": min(x, y)}
    for op, value in values.items():
        around = OPERATORS[op](first, second)
        assert isinstance(around, Interval) and around.low <= value <= around.high
    assert (-first).low <= -x <= (-first).high and abs(first).low <= abs(x) <= abs(first).high
    if not second.low <= 0 <= second.high:
        assert (first / second).low <= x / y <= (first / second).high
    for op, holds in {"lt": x < y, "le": x <= y, "eq": x == y}.items():
        try:
            assert OPERATORS[op](first, second) is holds
        except Undecided:
            assert first.low <= second.high and second.low <= first.high


def test_what_is_exact_stays_so() -> None:
    assert (exp(point(0)), log(point(1)), root(point(4)), root(point(0))) == (point(1), point(0), point(2), point(0))
    above_1 = Interval(Fraction(1), 1 + Fraction(1, 10**200))
    assert log(above_1).low == 0 < log(above_1).high < Fraction(1, 10**78)
    assert exp(Interval(Fraction(-1, 10**200), Fraction(0))).high == 1


def test_what_has_no_value_is_refused() -> None:
    for function, low in ((log, 0), (log, -1), (root, -1)):
        with pytest.raises(ZeroDivisionError):
            function(Interval(Fraction(low), Fraction(2)))
    with pytest.raises(OverflowError, match=r"^the exponent must be at most 65536 in magnitude, not -7e\+04$"):
        exp(Interval(Fraction(-70000), Fraction(1)))
    assert exp(point(intervals.MOST_EXPONENT)).low > 0
