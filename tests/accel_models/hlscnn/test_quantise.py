"""Quantisers and what they claim about errors; the derived error of a convolution against the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import BY_WEIGHT_BITS, WGT_16BITS, HlscnnOptions, Rounding
from accel_models.hlscnn.quantise import (
    FixedPoint,
    activation_format,
    bias_format,
    convolution_error,
    result_format,
    weight_format,
)
from ila_lang import Machine
from rewrites.mappings.hlscnn.operations import conv2d

FORMATS = st.builds(FixedPoint, st.sampled_from([8, 16]), st.integers(0, 15))
NUMBERS = st.floats(-1e6, 1e6) | st.floats(-1, 1)


def test_published_formats() -> None:
    assert (activation_format(), weight_format(), bias_format(), result_format()) == (
        FixedPoint(16, 7), FixedPoint(8, 6), FixedPoint(16, 14), FixedPoint(16, 7),
    )  # fmt: skip
    wide = replace(WGT_16BITS, output_fraction=4)
    assert (weight_format(wide), bias_format(wide), result_format(wide)) == (
        FixedPoint(16, 14), FixedPoint(16, 14), FixedPoint(16, 4),
    )  # fmt: skip
    q2_6 = FixedPoint(8, 6)
    assert (q2_6.lowest, q2_6.largest, q2_6.step) == (-2.0, 2.0 - 1 / 64, 1 / 64)


@given(FORMATS, st.lists(NUMBERS, min_size=1, max_size=20))
def test_the_error_is_within_its_bound(number_format: FixedPoint, values: list[float]) -> None:
    codes = number_format.quantise(values)
    assert codes.dtype == (np.int8 if number_format.bits == 8 else np.int16)
    error = np.abs(np.array(values) - number_format.dequantise(codes))
    assert (error <= number_format.error_bound(values)).all()


@given(FORMATS, st.integers(-(1 << 15), (1 << 15) - 1))
def test_the_nearest_code_is_taken(number_format: FixedPoint, code: int) -> None:
    code %= 1 << (number_format.bits - 1)
    value = code * number_format.step
    near = [value + d * number_format.step for d in (-0.49, 0.0, 0.49)]
    limit = (1 << (number_format.bits - 1)) - 1
    assert number_format.quantise(near).tolist() == [min(code, limit)] * 3
    # halfway, the even neighbour; the bound is attained there
    half = value + number_format.step / 2
    assert number_format.quantise(half) == min(code + code % 2, limit)
    if code < limit:
        assert abs(half - number_format.dequantise(number_format.quantise(half))) == number_format.error_bound(half)


@given(FORMATS)
def test_beyond_the_range_the_end_is_taken(number_format: FixedPoint) -> None:
    far = [-1e300, number_format.lowest, number_format.largest, 1e300]
    assert number_format.quantise(far).tolist() == [
        sign * (1 << (number_format.bits - 1)) - (sign > 0) for sign in (-1, -1, 1, 1)
    ]


@given(FORMATS)
def test_codes_come_back(number_format: FixedPoint) -> None:
    codes = np.arange(-(1 << (number_format.bits - 1)), 1 << (number_format.bits - 1))
    assert np.array_equal(number_format.quantise(number_format.dequantise(codes)), codes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: FixedPoint(16, 7).quantise([1.0, float("nan")]),
            "Numbers to quantise must be finite, not NaN or infinite; remove them from the tensor",
        ),
        (
            lambda: FixedPoint(8, 6).dequantise([128]),
            "Codes must be integers in -128 .. 127; quantise real numbers first",
        ),
        (
            lambda: FixedPoint(16, 6).dequantise([0.5]),
            "Codes must be integers in -32768 .. 32767; quantise real numbers first",
        ),
        (lambda: FixedPoint(12, 6), "bits of a fixed-point format must be 8 or 16, not 12"),
    ],
)
def test_messages(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


@settings(max_examples=20)
@given(
    st.sampled_from(get_args(Rounding)), st.sampled_from(get_args(Rounding)), st.sampled_from([4, 7]),
    st.sampled_from([16, 21]), st.sampled_from([8, 16]), st.integers(1, 12), st.integers(1, 3), st.booleans(),
    st.integers(0, 1 << 30),
)  # fmt: skip
def test_a_convolution_stays_within_its_error(
    tap: Rounding, store: Rounding, output: int, psum: int, bits: Any, channels: int, kernel: int, relu: bool, seed: int
) -> None:
    options = HlscnnOptions(
        tap_rounding=tap, store_rounding=store, output_fraction=output, psum_fraction=psum, psum_bits=40,
        weight_bits=bits, coordinates=BY_WEIGHT_BITS[bits].coordinates,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    x = activation_format(options).quantise(rng.normal(0, 1, (channels, kernel + 1, kernel)))
    w = weight_format(options).quantise(rng.uniform(-1, 1, (2, channels, kernel, kernel)))
    b = bias_format(options).quantise(rng.uniform(-1, 1, 1))
    stored = conv2d(x, w, bias=int(b[0]), relu=relu, weight_bits=bits).run(Machine(hlscnn(options)))
    windows = np.lib.stride_tricks.sliding_window_view(
        activation_format(options).dequantise(x), (kernel, kernel), (1, 2)
    )
    exact = np.einsum("crqij,fcij->frq", windows, weight_format(options).dequantise(w))
    exact = exact + bias_format(options).dequantise(b)[0]
    low, high = convolution_error(channels, (kernel, kernel), options)
    error = result_format(options).dequantise(stored) - (np.maximum(exact, 0) if relu else exact)
    # all numbers are multiples of 2^-21 far below 2^31, so float64 has them exactly
    most = max(-low, high)
    assert ((error >= (-most if relu else low)) & (error <= (most if relu else high))).all()


def test_errors_come_close_to_their_bound() -> None:
    # 4 taps that each lose all but the last of nine bits: products of -1/2^14 and 1/2^7
    cut = replace(WGT_16BITS, tap_rounding="truncate")
    x, w = np.ones((1, 2, 2), int), -np.ones((1, 1, 2, 2), int)
    (stored,) = conv2d(x, w, weight_bits=16).run(Machine(hlscnn(cut))).ravel() / 128
    low, high = convolution_error(1, (2, 2), cut)
    assert (low, high) == (-4 * 8 / 2**16 - 5 * (1 / 128 - 1 / 65536), 0.0)
    assert low <= stored + 4 / 2**21 < 0.75 * low


def test_four_ties_reach_the_upper_bound_of_the_recorded_hardware() -> None:
    # each tap is 32/2^7 * 1/2^6 = 2^-8, half of a stored word's unit, and becomes 2^-7
    (stored,) = conv2d(np.full((1, 2, 2), 32), np.ones((1, 1, 2, 2), int)).run(Machine(hlscnn())).ravel() / 128
    low, high = convolution_error(1, (2, 2))
    # products of 13 bits of fraction are exact; the store, which cuts, is counted without a bias, too
    assert (low, high) == (-4 / 2**8 - (1 / 128 - 1 / 65536), 4 / 2**8)
    assert stored - 4 / 2**8 == high


def test_no_error_where_nothing_is_dropped() -> None:
    assert convolution_error(
        8, (3, 3), HlscnnOptions(output_fraction=15, psum_fraction=15, weight_fraction=10, activation_fraction=5)
    ) == (0.0, 0.0)
