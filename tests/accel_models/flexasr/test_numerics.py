"""AdaptivFloat: digests of FlexASR's own classes, published examples, and exact rational arithmetic."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr import numerics
from accel_models.flexasr.numerics import describe_code, encode, value_of
from ila_lang import Expr, Function, bv, compile_function, compile_terms, const, inline, postorder, var

# SHA-256 of tables made with FlexASR's C++ classes (ac_types 3.9.2), except the rule before 2022, whose
# digest comes from a closed form that a published 35-step LSTM run confirms.
DIGESTS = {
    "adpfloat_max": "b0ebd8afa8ab64e0b965648eff942a336cf84c212780d061290cbb3d8eede7c8",
    "adpfloat_mean": "4c5bc65d4e5e4c4db922c26782ea067fbdb963bab730029b2c6f1602401d3018",
    "adpfloat_add": "dca9e3e486723ec1c3f24b47f727be2a1a992e0d698723f60fe61cedbbf8df7e",
}
TO_FIXED = "72c9ce7ed176e1933e529b0433be4592ec13bd328daf131ab4b02c9fded6ba63"
ENCODE14 = "8aa876b3f1d708d9fcaffdd13bfec5b15dd89db518fdc7b2efa02e75eb669177"
ENCODE14_BEFORE_2022 = "ba3bee2d4782059d9b8e3d724cd5c0074f677d8c77c1534c6604661e6c61a20d"
ENCODE20 = "02b0904b3ce23132fd727e66e411a67d77327b37e84932dd85309851475c31e5"

LEFT, RIGHT = np.repeat(np.arange(256), 256), np.tile(np.arange(256), 256)
CODES, BIASES = np.tile(np.arange(256), 8), np.repeat(np.arange(8), 256)
BIAS = var("bias", bv(3))


def digest(values: np.ndarray, dtype: str) -> str:
    return hashlib.sha256(values.astype(dtype).tobytes()).hexdigest()


def vectorised(function: Function, *args: np.ndarray | int) -> np.ndarray:
    return np.asarray(compile_function(function, vector=True)(*args))


def encoder(width: int, fraction_bits: int, bias: Expr | int, pre2022: bool = False):
    """``encode`` as a Python function of value and bias (unsigned representatives, integers or arrays)."""
    value = var("value", bv(width))
    run = compile_terms([value, BIAS], [encode(value, fraction_bits, bias, pre2022=pre2022)], vector=True)
    return lambda v, b=0: run(np.asarray(v, dtype=np.int64) & ((1 << width) - 1), np.int64(b))[0]


def signed(values: np.ndarray, width: int) -> np.ndarray:
    return np.where(values >> (width - 1) & 1, values - (1 << width), values)


def reference(x: Fraction, bias: int = 0) -> int:
    """The code of a rational number: four mantissa bits, ties toward plus infinity, flush, saturation."""
    if x == 0:
        return 0
    k = 0
    while abs(x) >= Fraction(2) ** (k + 1):
        k += 1
    while abs(x) < Fraction(2) ** k:
        k -= 1
    q = abs((x / Fraction(2) ** (k - 4) + Fraction(1, 2)).__floor__())
    if q == 32:
        q, k = 16, k + 1
    e = k - bias + 10
    sign = 0x80 if x < 0 else 0
    return 0 if e < 0 else sign | 0x7F if e > 7 else sign | e << 4 | q & 15


@pytest.mark.parametrize("name", DIGESTS)
def test_reduction_operators_are_the_hardware_classes(name: str) -> None:
    assert digest(vectorised(getattr(numerics, name), LEFT, RIGHT), "u1") == DIGESTS[name]


def test_decoding_is_the_hardware_class() -> None:
    fixed = signed(vectorised(numerics.adpfloat_to_fixed, CODES, BIASES), 20)
    assert digest(fixed, "<i4") == TO_FIXED


@pytest.mark.parametrize(("pre2022", "expected"), [(False, ENCODE14), (True, ENCODE14_BEFORE_2022)])
def test_encoding_is_the_hardware_class(pre2022: bool, expected: str) -> None:
    values = np.arange(-(2**19), 2**19)
    run = encoder(20, 14, BIAS, pre2022)
    assert digest(np.concatenate([run(values, b) for b in range(8)]), "u1") == expected


def test_encoding_26_bits_is_the_hardware_class() -> None:
    values = np.arange(-(2**25), 2**25, 61)
    run = encoder(26, 20, BIAS)
    assert digest(np.concatenate([run(values, b) for b in range(8)]), "u1") == ENCODE20


@pytest.mark.parametrize("bias", range(8))
def test_a_literal_bias_encodes_as_a_symbolic_one(bias: int) -> None:
    values = np.arange(-(2**19), 2**19, 7)
    symbolic = encoder(20, 14, BIAS)(values, bias)
    assert np.array_equal(encoder(20, 14, bias)(values), symbolic)
    assert np.array_equal(encoder(20, 14, const(bias, 3))(values), symbolic)


@pytest.mark.parametrize(
    ("bias", "value", "code"),
    [
        (0, 17, 0x01), (0, 16, 0x00), (0, -16, 0x80), (0, 100, 0x29), (0, -100, 0xA9), (0, 8192, 0x7F),
        (0, -16384, 0xFF), (2, 8192, 0x70), (7, 16384, 0x30), (7, -300000, 0xF2), (7, 524287, 0x7F),
        (3, 0, 0x00),
    ],
)  # fmt: skip
def test_published_examples_of_encoding(bias: int, value: int, code: int) -> None:
    assert encoder(20, 14, BIAS)(value, bias) == code


def test_before_2022_a_negative_overflow_became_the_largest_positive_code() -> None:
    assert encoder(20, 14, 0, pre2022=True)(-16384) == 0x7F
    values = np.arange(-(2**19), 2**19)
    affected = [int((encoder(20, 14, b, True)(values) != encoder(20, 14, b)(values)).sum()) for b in range(8)]
    assert affected == [520256, 516224, 508160, 492032, 459776, 395264, 266240, 8192]


@pytest.mark.parametrize(
    ("a", "b", "maximum", "mean", "total"),
    [
        (0x34, 0x35, 0x35, 0x35, 0x45), (0x34, 0xB4, 0x34, 0x00, 0x00), (0x80, 0x81, 0x00, 0x00, 0x81),
        (0x01, 0x02, 0x02, 0x02, 0x12), (0xF5, 0xE3, 0xE3, 0xEE, 0xFE), (0x7F, 0x7F, 0x7F, 0x7F, 0x7F),
        (0xFF, 0x7F, 0x7F, 0x00, 0x00),
    ],
)  # fmt: skip
def test_published_examples_of_reduction(a: int, b: int, maximum: int, mean: int, total: int) -> None:
    operators = (numerics.adpfloat_max, numerics.adpfloat_mean, numerics.adpfloat_add)
    assert [compile_function(f)(a, b) for f in operators] == [maximum, mean, total]
    assert [compile_function(f)(b, a) for f in operators] == [maximum, mean, total]


def test_encoding_inverts_decoding_except_at_the_second_zero() -> None:
    fixed = vectorised(numerics.adpfloat_to_fixed, CODES, BIASES)
    run = encoder(20, 14, BIAS)
    back = np.concatenate([run(fixed[256 * b : 256 * b + 256], b) for b in range(8)])
    assert np.array_equal(back, np.where(CODES == 0x80, 0, CODES))


@pytest.mark.parametrize("bias", range(8))
def test_decoding_gives_the_value(bias: int) -> None:
    decode = compile_function(numerics.adpfloat_to_fixed)
    for code in range(256):
        fixed = decode(code, bias)
        assert Fraction(fixed - (fixed >> 19 << 20), 1 << 14) == value_of(code, bias)


@given(st.integers(9, 50), st.integers(0, 24), st.integers(0, 7), st.data())
def test_encoding_any_width(width: int, fraction_bits: int, bias: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, width - 1))
    value = data.draw(st.integers(-(1 << size), (1 << size) - 1).filter(lambda v: -v < 1 << (width - 1)))
    expected = reference(Fraction(value, 1 << fraction_bits), bias)
    assert encoder(width, fraction_bits, bias)(value) == expected
    assert encoder(width, fraction_bits, BIAS)(value, bias) == expected


@pytest.mark.parametrize("bias", [-1, 8])
def test_a_bias_beyond_three_bits_is_refused(bias: int) -> None:
    with pytest.raises(ValueError, match=rf"AdaptivFloat bias must be in 0 \.\. 7, not {bias}"):
        encode(var("v", bv(20)), 14, bias)


def test_a_bias_of_another_width_is_refused() -> None:
    with pytest.raises(TypeError, match="AdaptivFloat bias must have 3 bits, not 4"):
        encode(var("v", bv(20)), 14, var("wide", bv(4)))


# -- pooling -----------------------------------------------------------------------------------------

STEPS = {
    "max": (numerics.adpfloat_pool_max_step, numerics.adpfloat_pool_finish),
    "mean": (numerics.adpfloat_pool_add_step, numerics.adpfloat_pool_mean_finish),
    "add": (numerics.adpfloat_pool_add_step, numerics.adpfloat_pool_finish),
}


def pool(kind: str, codes: list[int]) -> int:
    step, finish = (compile_function(f) for f in STEPS[kind])
    first = compile_function(numerics.adpfloat_pool_first)
    acc = first(codes[0])
    for code in codes[1:]:
        acc = step(acc, first(code))
    return int(finish(acc, len(codes)))


@pytest.mark.parametrize("kind", STEPS)
def test_pooling_two_is_the_hardware_operator(kind: str) -> None:
    step, finish = STEPS[kind]
    first = vectorised(numerics.adpfloat_pool_first, np.arange(256))
    pooled = vectorised(finish, vectorised(step, first[LEFT], first[RIGHT]), 2)
    assert np.array_equal(pooled, vectorised(getattr(numerics, f"adpfloat_{kind}"), LEFT, RIGHT))


@given(st.lists(st.integers(0, 255), min_size=1, max_size=40))
def test_pooling_is_exact_arithmetic_rounded_once(codes: list[int]) -> None:
    values = [value_of(c) for c in codes]
    assert pool("max", codes) == reference(max(values))
    assert pool("add", codes) == reference(sum(values, Fraction(0)))
    assert pool("mean", codes) == reference(sum(values, Fraction(0)) / len(codes))


@given(
    st.integers(1, 65535) | st.integers(1, 20),
    st.integers(-(4100 * 4), 4100 * 4) | st.integers(-80, 80),
    st.integers(-2, 2),
)
def test_the_mean_is_rounded_once_even_at_boundaries(count: int, quarters: int, off: int) -> None:
    # every boundary of the rounding is a multiple of a quarter of 2^-14
    acc = quarters * count // 4 + off
    finish = compile_function(numerics.adpfloat_pool_mean_finish)
    assert finish(acc % (1 << 40), count) == reference(Fraction(acc, count << 14))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_the_mean_of_all_small_sums(count: int) -> None:
    sums = np.arange(-4200 * count, 4200 * count)
    finish = compile_function(numerics.adpfloat_pool_mean_finish, vector=True)
    codes = finish(sums & ((1 << 40) - 1), count)
    sample = range(0, len(sums), 1 if count < 3 else 5)
    assert [int(codes[i]) for i in sample] == [reference(Fraction(int(sums[i]), count << 14)) for i in sample]


def test_a_mean_of_a_power_of_two_has_no_division() -> None:
    acc = var("acc", bv(40))
    ops = {n.op for n in postorder([inline(numerics.adpfloat_pool_mean_finish(acc, 4))])}
    assert not ops & {"bvudiv", "bvurem", "bvmul"}


def test_bodies_stay_small() -> None:
    sizes = {
        f.name: len(postorder([f.body]))
        for f in vars(numerics).values()
        if isinstance(f, Function) and f.body is not None
    }
    assert len(sizes) == 11
    assert max(sizes.values()) < 150, sizes


# -- for people --------------------------------------------------------------------------------------


def test_values_and_descriptions() -> None:
    assert value_of(0x7F, 7) == 31
    assert value_of(0x01) == Fraction(17, 16 << 10)
    assert value_of(0x80) == 0
    assert describe_code(0x70, 7) == "0x70 (16.0)"
    assert describe_code(0x00) == "0x00 (zero)"
    with pytest.raises(ValueError, match=r"AdaptivFloat code must be in 0 \.\. 255, not 256"):
        value_of(256)
    with pytest.raises(ValueError, match=r"AdaptivFloat bias must be in 0 \.\. 7, not 8"):
        describe_code(1, 8)
