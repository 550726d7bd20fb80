"""The host-side quantiser: nearest codes, by an independent search through all of them, and its error bound."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr.numerics import value_of
from accel_models.flexasr.quantise import (
    BIASES,
    Quantised,
    choose_bias,
    dequantise,
    error_bound,
    largest,
    quantise,
    smallest,
)

biases = st.integers(0, 7)
reals = st.floats(-64, 64, allow_subnormal=True)


VALUES = [[(c, value_of(c, bias)) for c in range(256) if c != 0x80] for bias in BIASES]


def nearest(x: float, bias: int) -> int:
    """The nearest code by trying every one; of two the even one, and of zero and the smallest code zero."""
    exact = Fraction(x)
    return min(VALUES[bias], key=lambda entry: (abs(entry[1] - exact), entry[0] & 1))[0]


@pytest.mark.parametrize("bias", BIASES)
def test_every_code_is_its_own_nearest(bias: int) -> None:
    codes = np.arange(256, dtype=np.uint8)
    again = quantise(dequantise(codes, bias), bias)
    assert again.codes.tolist() == [0 if c == 0x80 else c for c in range(256)]
    assert again.bias == bias


@pytest.mark.parametrize("bias", BIASES)
def test_values_are_those_of_the_format(bias: int) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    expected = [[float(value_of(16 * i + j, bias)) for j in range(16)] for i in range(16)]
    assert dequantise(codes, bias).tolist() == Quantised(codes, bias).values.tolist() == expected


@pytest.mark.parametrize("bias", [0, 7])
def test_around_every_boundary(bias: int) -> None:
    positive = sorted({value_of(c, bias) for c in range(128)})
    middles = [float((a + b) / 2) for a, b in pairwise(positive)]
    points = [p for m in middles[::3] for p in (m, float(np.nextafter(m, 0)), float(np.nextafter(m, 64)))]
    points += [-p for p in points]
    assert quantise(points, bias).codes.tolist() == [nearest(p, bias) for p in points]


@given(st.lists(reals, min_size=1, max_size=4), biases)
def test_the_nearest_code_is_taken(values: list[float], bias: int) -> None:
    assert quantise(values, bias).codes.tolist() == [nearest(x, bias) for x in values]


@given(st.lists(reals, min_size=1, max_size=20), biases)
def test_quantising_again_changes_nothing(values: list[float], bias: int) -> None:
    once = quantise(values, bias)
    assert quantise(once.values, bias).codes.tolist() == once.codes.tolist()


@given(st.lists(reals, min_size=1, max_size=20), biases)
def test_the_error_stays_within_its_bound(values: list[float], bias: int) -> None:
    x = np.array(values)
    assert (np.abs(x - quantise(x, bias).values) <= error_bound(x, bias)).all()


@pytest.mark.parametrize("bias", [0, 2, 7])
def test_the_bound_is_attained(bias: int) -> None:
    halves = np.array([smallest(bias) / 2, *(2.0**k * (1 + 1 / 32) for k in range(bias - 9, bias - 2)), 40.0])
    assert (np.abs(halves - quantise(halves, bias).values) == error_bound(halves, bias)).all()


@given(st.lists(st.floats(-31.99, 31.99), min_size=1, max_size=9).filter(lambda v: max(map(abs, v)) >= 0.125))
def test_the_chosen_bias_is_the_smallest_that_holds_the_leading_bit(values: list[float]) -> None:
    bias, top = choose_bias(values), max(map(abs, values))
    assert 2.0 ** (bias - 3) <= top < 2.0 ** (bias - 2)
    assert quantise(values).bias == bias
    # no number loses more than a step of its binade
    assert (np.abs(np.array(values) - quantise(values).values) <= max(smallest(bias) / 2, 2.0 ** (bias - 7))).all()


def test_shapes_are_kept() -> None:
    assert quantise(np.ones((2, 0, 3)), 1).shape == (2, 0, 3)
    assert quantise(0.5).shape == ()
    assert quantise(np.float32([[1.5]])).values.tolist() == [[1.5]]


def test_zeros_have_the_smallest_bias() -> None:
    assert quantise([0.0, -0.0]).codes.tolist() == [0, 0]
    assert choose_bias([]) == choose_bias([0.0]) == 0


def test_the_ends_of_the_range() -> None:
    assert (smallest(0), largest(7)) == (1.0625 / 1024, 31.0)
    assert quantise([100.0, -100.0, 31.9], 7).codes.tolist() == [0x7F, 0xFF, 0x7F]
    assert choose_bias([0.125]) == 0
    assert choose_bias([np.nextafter(32, 0)]) == 7


@pytest.mark.parametrize(
    ("values", "bias", "message"),
    [
        (
            [0.1],
            None,
            "The largest magnitude of a tensor must lie in [0.125, 32) for its AdaptivFloat bias to lie in 0 .. 7, "
            "not be 0.1 (bias -1); scale the tensor or give bias=0, which turns magnitudes up to 0.00051879"
            "8828125 into zero",
        ),
        (
            [-32.0],
            None,
            "The largest magnitude of a tensor must lie in [0.125, 32) for its AdaptivFloat bias to lie in 0 .. 7, "
            "not be 32.0 (bias 8); scale the tensor or give bias=7, which cuts magnitudes at 31.0",
        ),
        ([1.0], 8, "AdaptivFloat bias must be in 0 .. 7, not 8"),
        (
            [1.0, float("nan")],
            None,
            "Numbers to quantise must be finite, not NaN or infinite; remove them from the tensor",
        ),
    ],
)
def test_messages(values: list[float], bias: int | None, message: str) -> None:
    with pytest.raises(ValueError) as error:
        quantise(values, bias)
    assert str(error.value) == message


def test_a_tensor_has_codes() -> None:
    with pytest.raises(TypeError, match="not float64; quantise real numbers first"):
        Quantised(np.zeros(3), 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not list; quantise"):
        Quantised([0], 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be in 0 \.\. 7, not -1"):
        Quantised(np.zeros(3, np.uint8), -1)
