"""FlexASR's fixed-point functions: digests of the hardware's classes, published values, and exact arithmetic."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr import functions, numerics
from accel_models.flexasr.functions import divide_q24, emul, exp, inv_sqrt, norm_divide, sigmoid, tanh
from accel_models.flexasr.numerics import value_of
from accel_models.flexasr.terms import select, shift_right
from ila_lang import Function, bv, compile_function, compile_terms, const, postorder, var
from tests.accel_models.flexasr.port import recorded_functions

# SHA-256 of full tables (little endian, ascending signed arguments) made with FlexASR's C++ classes, ac_types 3.9.2
# and ac_math 3.2.1; sigmoid_b is the formula of ac_math 3.4; relu and onex are tables of the ILA-generated simulator.
OF_20_BITS = {
    "sigmoid": "6eea79c73045a36ba677f42876f7c2ccd3098cfc71b05c159e5c240fdb95503d",
    "sigmoid_b": "41479889b5efabd4a10d1f8a0d00ae3c9f77f336255596f5b6ff72203f9bc1f7",
    "tanh": "6b4cef7df0399973378845ec8df33e83c787347366580e83b0bfa1c32fc6c596",
    "inv_sqrt": "2d9b3c26a6fb66d44d55d45836745760cba0ae47ee200f9e0638b7ba96b1eac2",
    "relu": "5ed50b2a54c90759afbc91fd9e42ff91d70a7799b1e188aae02ea9b8cbcc75b3",
    "onex": "8457baa292e3bc7f07143f312951c91e609aae548e3104a162a85b616c50d565",
}
MUL = "b0cb34f62fa76e8ff9e2a0d41ead1090b1cd9f99d28fa6fdd47a6ce690fa2462"
EXP = "ae5837484dfd396d8ee9c8450dc3fa4843651e64d1d356236f43897d4a7982c2"
DIVIDE = "fd531b7a96b3d29b8c1122b5762301ea0837d568eb2757e50f9ce698b6e0b7a3"

ALL_20_BITS = np.arange(-(2**19), 2**19)
WORDS_20, WORDS_32 = st.integers(-(2**19), 2**19 - 1), st.integers(-(2**31), 2**31 - 1)


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.asarray(values).astype("<i4").tobytes()).hexdigest()


def signed(values: np.ndarray, width: int) -> np.ndarray:
    return np.where(values >> (width - 1) & 1, values - (1 << width), values)


def on_arrays(function: Function, *args: np.ndarray | int) -> np.ndarray:
    """The function on arrays of signed arguments, as signed results."""
    run = compile_terms(function.params, [function.body], vector=True)
    (result,) = run(*(np.asarray(a) & ((1 << p.width) - 1) for a, p in zip(args, function.params, strict=True)))
    return signed(result, function.body.width)


def call(function: Function, *args: int) -> int:
    result = compile_function(function)(*(a % (1 << p.width) for a, p in zip(args, function.params, strict=True)))
    return int(signed(np.int64(result), function.body.width))


def wrapped(value: int, width: int = 20) -> int:
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


# -- digests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_20_BITS)
def test_functions_of_20_bits_are_the_hardware_classes(name: str) -> None:
    assert digest(on_arrays(getattr(functions, name), ALL_20_BITS)) == OF_20_BITS[name]


def test_the_product_is_the_hardware_class() -> None:
    left, right = np.repeat(np.arange(256), 256), np.tile(np.arange(256), 256)
    assert digest(on_arrays(functions.adpfloat_mul, left, right)) == MUL


def test_the_exponential_is_the_hardware_class() -> None:
    assert digest(on_arrays(exp, np.arange(-(2**31), 2**21 + 1, 509))) == EXP


def test_the_divider_is_the_hardware_class() -> None:
    dividend, divisor = np.repeat(np.arange(64), 63), np.tile(np.arange(1, 64), 64)
    assert digest(on_arrays(divide_q24, dividend << 16, divisor << 16) >> 12) == DIVIDE


# Names of the recorded simulator's functions, and ours.
RECORDED = {
    "act_mul_q14": emul,
    "act_add": functions.eadd,
    "norm_divide": norm_divide,
    "pe_accum_shift": functions.pe_shift,
    "pe_add_bias": functions.pe_add_bias,
    "pe_saturate": functions.pe_saturate,
    "attention_exp_q20": exp,
    "attention_div_q20": divide_q24,
    "attention_compress": functions.attention_compress,
    "fixed_q14_to_adp8": numerics.fixed_to_adpfloat,
}


def test_samples_of_the_recorded_simulator() -> None:
    samples = recorded_functions()
    assert samples.keys() - RECORDED.keys() == {"act_sub", "norm_sum_add"}  # plain wrapping sums here
    for name, function in RECORDED.items():
        *args, results = np.array(samples[name]).T
        width = function.result.width  # type: ignore[union-attr]
        assert np.array_equal(on_arrays(function, *args) % (1 << width), results % (1 << width)), name


# -- activation functions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "sigmoid_of_x", "tanh_of_x"),
    [
        (0, 8208, 16), (-1, 8176, -16), (8192, 10191, 7616), (-8192, 6192, -7616), (16384, 11935, 12528),
        (-16384, 4448, -12528), (40000, 15080, 16142), (81919, 16287, 16383), (81920, 16383, 16383),
        (-81920, 0, -16384), (-524288, 0, -16384), (524287, 16383, 16383),
    ],
)  # fmt: skip
def test_published_values(x: int, sigmoid_of_x: int, tanh_of_x: int) -> None:
    assert (call(sigmoid, x), call(tanh, x)) == (sigmoid_of_x, tanh_of_x)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_activation_functions_are_monotone(name: str) -> None:
    assert (np.diff(on_arrays(getattr(functions, name), ALL_20_BITS)) >= 0).all()


def test_activation_functions_are_near_what_they_approximate() -> None:
    x = ALL_20_BITS / 16384
    assert np.abs(on_arrays(sigmoid, ALL_20_BITS) / 16384 - 1 / (1 + np.exp(-x))).max() < 0.0068
    assert np.abs(on_arrays(tanh, ALL_20_BITS) / 16384 - np.tanh(x)).max() < 0.005


def test_the_variants_of_sigmoid_differ() -> None:
    differ = on_arrays(sigmoid, ALL_20_BITS) != on_arrays(functions.sigmoid_b, ALL_20_BITS)
    assert differ.sum() == 68735


@given(WORDS_20, WORDS_20)
def test_sums_and_products_wrap(a: int, b: int) -> None:
    assert call(functions.eadd, a, b) == wrapped(a + b)
    assert call(emul, a, b) == wrapped(a * b >> 14)
    assert call(functions.onex, a) == wrapped(16384 - a)


# -- processing elements -----------------------------------------------------------------------------


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 7), st.integers(0, 7))
def test_products_are_exact(a: int, b: int, bias_a: int, bias_b: int) -> None:
    value = value_of(a, bias_a) * value_of(b, bias_b) * 2 ** (28 - bias_a - bias_b)
    assert call(functions.adpfloat_mul, a, b) == value


@given(WORDS_32, st.integers(0, 7), st.integers(0, 7))
def test_the_accumulator_is_shifted_down(acc: int, bias_w: int, bias_i: int) -> None:
    assert call(functions.pe_shift, acc, bias_w, bias_i) == acc >> 14 - bias_w - bias_i


@given(WORDS_32, st.integers(0, 255), st.integers(0, 7))
def test_a_bias_is_added_in_32_bits(acc: int, code: int, bias: int) -> None:
    assert call(functions.pe_add_bias, acc, code, bias) == wrapped(acc + int(value_of(code, bias) * 16384), 32)


@given(WORDS_32 | st.sampled_from([s * 2**19 + d for s in (-1, 1) for d in (-2, -1, 0, 1, 2)]))
def test_saturation_is_symmetric(acc: int) -> None:
    assert call(functions.pe_saturate, acc) == max(-(2**19) + 1, min(2**19 - 1, acc))


# -- LayerNorm ---------------------------------------------------------------------------------------


@given(st.integers(-(2**23), 2**23 - 1), st.integers(1, 4080) | st.integers(-(2**23), -1))
def test_the_division_of_layer_norm_rounds_toward_zero(total: int, count: int) -> None:
    quotient = abs(total) // abs(count)
    assert call(norm_divide, total, count) == wrapped(quotient if (total < 0) == (count < 0) else -quotient)


@pytest.mark.parametrize(("x", "result"), [(16384, 16372), (8192, 23156), (1, -1534), (0, -1), (-524288, 2894)])
def test_published_values_of_the_inverse_square_root(x: int, result: int) -> None:
    assert call(inv_sqrt, x) == result


def test_the_inverse_square_root_is_near_where_it_fits() -> None:
    x = np.arange(16, 1 << 20)
    exact = 16384 / np.sqrt(x / 16384)
    assert (np.abs(on_arrays(inv_sqrt, x) - exact) < exact * 0.001 + 1).all()
    assert (on_arrays(inv_sqrt, np.arange(1, 16)) < 0).any()


# -- Attention ---------------------------------------------------------------------------------------


def test_the_exponential() -> None:
    assert call(exp, 0) == 1022 * 1024
    x = np.arange(-(4 << 20), 1, 97)
    exact = np.exp(x / (1 << 20))
    assert (np.abs(on_arrays(exp, x) / (1 << 20) - exact) < exact * 0.0024).all()
    assert call(exp, -(14 << 20)) == 0
    assert call(exp, -(2**31)) == 0
    assert call(exp, 1 << 20) == pytest.approx(math.e * (1 << 20), rel=0.0024)
    assert call(exp, 2**31 - 1) == 0  # shifted out


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_the_divider_sees_six_bits_of_each_operand(numerator: int, denominator: int) -> None:
    a, b = numerator >> 16 & 63, denominator >> 16 & 63
    expected = a * 256 // b % 1024 if b else 1023
    assert call(divide_q24, numerator, denominator) == expected << 12


def test_five_equal_scores_of_softmax_weigh_one_each() -> None:
    one = call(exp, 0)
    assert call(divide_q24, one, 5 * one) == 1 << 20  # 4.99 is taken for 0.99


@given(WORDS_32, st.integers(0, 7), st.integers(0, 7))
def test_scores_are_shifted_both_ways(acc: int, bias_a: int, bias_b: int) -> None:
    right = 8 - bias_a - bias_b
    assert call(functions.attention_shift, acc, bias_a, bias_b) == wrapped(acc << 8 >> 8 + right, 32)


@given(WORDS_32, st.integers(0, 7))
def test_attention_takes_26_bits_to_a_code(value: int, bias: int) -> None:
    new = call(functions.attention_compress, value, bias) % 256
    old = call(functions.attention_compress_pre2022, value, bias) % 256
    low = wrapped(value, 26)
    assert new == call(functions.attention_compress, low, bias) % 256
    # the largest magnitude is 31/16 * 2^(bias - 3); what rounds up to twice 2^(bias - 3) is beyond
    if low < 0 and -low >= 1 << 18 + bias:
        assert (new, old) == (0xFF, 0x7F)
    elif low >= 0 or -low < 1 << 17 + bias:
        assert new == old


# -- form --------------------------------------------------------------------------------------------


def test_bodies_stay_small() -> None:
    own = [f for n, f in vars(functions).items() if isinstance(f, Function) and n not in vars(numerics)]
    sizes = {f.name: len(postorder([f.body])) for f in own}
    assert len(own) > 15 and max(sizes.values()) < 130, sizes
    multiplications = {f.name: sum(node.op == "bvmul" for node in postorder([f.body])) for f in own}
    assert max(multiplications.values()) == 2, multiplications


@given(st.integers(1, 9), st.data())
def test_a_choice_beyond_the_entries_is_the_last_one(count: int, data: st.DataObject) -> None:
    index = var("i", bv((count - 1).bit_length() or 1))
    i = data.draw(st.integers(0, (1 << index.width) - 1))
    (entry,) = compile_terms([index], [select(index, [const(k, 8) for k in range(count)])])(i)
    assert entry == min(i, count - 1)


@given(WORDS_20, st.integers(0, 31))
def test_shifting_right_divides_rounding_down(value: int, amount: int) -> None:
    x, n = var("x", bv(20)), var("n", bv(5))
    (result,) = compile_terms([x, n], [shift_right(x, n)])(value % (1 << 20), amount)
    assert wrapped(result) == value >> amount
