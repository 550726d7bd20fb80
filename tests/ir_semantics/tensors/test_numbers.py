"""Exact reals with infinities and enclosures."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_semantics.scalars.intervals import Interval
from ir_semantics.tensors.numbers import Reals, Undefined, apart, fraction_of, text_of

REALS = Reals()
INFINITY = float("inf")
FRACTIONS = st.fractions(-20, 20, max_denominator=9)


@given(FRACTIONS)
def test_exponentials_are_enclosed(x: Fraction) -> None:
    value = REALS.apply("exp", [x])
    if x == 0:
        assert value == 1
        return
    assert isinstance(value, Interval)
    assert value.high - value.low < Fraction(1, 10**50) * max(1, value.high)
    assert math.isclose(float(value.low), math.exp(x), rel_tol=1e-14)


@given(FRACTIONS, FRACTIONS)
def test_products_of_exponentials_meet_the_exponential_of_the_sum(x: Fraction, y: Fraction) -> None:
    product = REALS.apply("mul", [REALS.apply("exp", [x]), REALS.apply("exp", [y])])
    assert not apart(product, REALS.apply("exp", [x + y]))
    assert apart(product, REALS.apply("exp", [x + y + Fraction(1, 10**9)]))


@given(FRACTIONS, FRACTIONS)
def test_fractions_are_computed_exactly(x: Fraction, y: Fraction) -> None:
    assert REALS.apply("add", [x, y]) == x + y
    assert REALS.apply("maximum", [x, y]) == max(x, y)
    if y:
        assert REALS.apply("div", [x, y]) == x / y


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [
        ("add", (-INFINITY, Fraction(3)), -INFINITY),
        ("mul", (-INFINITY, Fraction(3)), -INFINITY),
        ("mul", (-INFINITY, Fraction(-3)), INFINITY),
        ("maximum", (-INFINITY, Fraction(-9)), Fraction(-9)),
        ("minimum", (INFINITY, Fraction(9)), Fraction(9)),
        ("exp", (-INFINITY,), 0),
        ("div", (Fraction(1), INFINITY), 0),
        ("lt", (-INFINITY, Fraction(0)), True),
    ],
)
def test_infinities(op: str, args: tuple[Fraction | float, ...], value: object) -> None:
    assert REALS.apply(op, args) == value


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("add", (INFINITY, -INFINITY)),
        ("mul", (Fraction(0), INFINITY)),
        ("div", (Fraction(1), Fraction(0))),
        ("div", (INFINITY, INFINITY)),
        ("sqrt", (Fraction(-2),)),
        ("log", (Fraction(2),)),
        ("div", (Fraction(1), Interval(Fraction(-1), Fraction(1)))),
        ("lt", (Fraction(0), Interval(Fraction(-1), Fraction(1)))),
    ],
)
def test_what_has_no_value_is_undefined(op: str, args: tuple[Fraction | float, ...]) -> None:
    with pytest.raises(Undefined):
        REALS.apply(op, args)


def test_enclosures_stay_around_the_value() -> None:
    a, b = Interval(Fraction(1), Fraction(2)), Interval(Fraction(-3), Fraction(1, 2))
    assert REALS.apply("mul", [a, b]) == Interval(Fraction(-6), Fraction(1))
    assert REALS.apply("sub", [a, b]) == Interval(Fraction(1, 2), Fraction(5))
    assert REALS.apply("neg", [b]) == Interval(Fraction(-1, 2), Fraction(3))
    assert REALS.apply("maximum", [a, b]) == a
    quotient = REALS.apply("div", [b, a])
    assert isinstance(quotient, Interval)
    assert quotient == Interval(Fraction(-3), Fraction(1, 2))


@given(FRACTIONS, FRACTIONS)
def test_roots_are_enclosed(x: Fraction, y: Fraction) -> None:
    root = REALS.apply("sqrt", [x * x])
    assert not apart(root, abs(x))
    assert apart(root, abs(x) + Fraction(1, 10**9))
    assert not apart(REALS.apply("mul", [root, REALS.apply("sqrt", [y * y])]), abs(x * y))


def test_numbers_that_differ_by_little_are_shown_to_differ() -> None:
    a = Interval(Fraction(1), Fraction(1))
    b = Interval(1 - Fraction(1, 10**30), 1 - Fraction(1, 10**30))
    assert text_of(a, b) == ("1", "1 - 1e-30")
    assert text_of(Fraction(1), Fraction(2)) == ("1", "2")


@pytest.mark.parametrize("text", ["1/0", "1e400000000", "0.5", " 1", "1/-2", "+1", "nan", "", "9" * 2001, "1_0", "٣"])
def test_no_other_text_is_a_fraction(text: str) -> None:
    with pytest.raises(ValueError, match=r"a number must be written as digits or digits/digits, not '"):
        fraction_of(text)


def test_fractions_are_read_as_they_are_written() -> None:
    for number in (Fraction(0), Fraction(-7), Fraction(10**900, 3), Fraction(-1, 2**100)):
        assert fraction_of(str(number)) == number


@pytest.mark.parametrize("power", [Fraction(10**100), Fraction(-(10**100)), Fraction((1 << 16) + 1)])
def test_exponentials_of_enormous_numbers_are_not_written_out(power: Fraction) -> None:
    with pytest.raises(Undefined, match=r"^exp of a number beyond 65536 in magnitude$"):
        REALS.apply("exp", [power])
    assert isinstance(REALS.apply("exp", [Fraction(1 << 16)]), Interval)
