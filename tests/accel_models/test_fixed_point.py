"""Fixed-point codes of float32 words, and words of codes, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from ila_lang import Function, compile_terms


def run(function: Function, values: NDArray[np.int64], exponent: int) -> NDArray[np.int64]:
    assert function.body is not None
    (result,) = compile_terms(function.params, [function.body], vector=True)(values, np.full(len(values), exponent))
    return np.asarray(result, np.int64)


def nearest(word: int, exponent: int, least: int, most: int) -> int:
    """The code of a word, which is no infinity and no NaN; Python rounds fractions to the even one of two integers."""
    field, mantissa = word >> 23 & 255, word & 0x7FFFFF
    number = Fraction(mantissa + (1 << 23 if field else 0)) * Fraction(2) ** (max(field, 1) - 150 - exponent + 127)
    return min(max(round(-number if word >> 31 else number), least), most)


def words(bits: int, exponent: int) -> NDArray[np.int64]:
    """Words at and beside numbers halfway between codes, around the ends of float32, and drawn ones."""
    draw = np.random.default_rng(exponent)
    most = (1 << bits - 1) + 2
    halves = (
        np.arange(2 * most)
        if bits == 8
        else np.unique(np.r_[0:40, draw.integers(0, 2 * most, 300), -40:0] % (2 * most))
    )
    numbers = (halves * 2.0 ** (exponent - 128)).astype(np.float32).view(np.uint32).astype(np.int64)
    near = (exponent - 3 + draw.integers(0, bits + 4, 2000)).clip(0, 254)
    drawn = [near << 23 | draw.integers(0, 1 << 23, 2000), draw.integers(0, 0x7F800000, 500)]
    ends = np.array([0, 1, 2, 0x7FFFFF, 0x800000, 0x7F7FFFFF])
    magnitudes = np.concatenate([numbers, numbers + 1, np.maximum(numbers - 1, 0), ends, *drawn])
    return np.concatenate([magnitudes, magnitudes | 1 << 31])


@pytest.mark.parametrize(("bits", "symmetric"), [(8, True), (8, False), (16, False)])
def test_codes_are_the_nearest_and_words_of_codes_are_exact(bits: int, symmetric: bool) -> None:
    least, most = -(1 << bits - 1) + symmetric, (1 << bits - 1) - 1
    for exponent in (exponents(bits)[0], 67, 120, 127, 187, exponents(bits)[-1]):
        given = words(bits, exponent)
        found = run(float_to_fixed(bits, symmetric), given, exponent)
        found -= found >> bits - 1 << bits
        assert found.tolist() == [nearest(int(word), exponent, least, most) for word in given]
        assert {least, -1, 0, 1, most} <= set(found.tolist())
        codes = np.unique(np.r_[found, least, most])
        read = run(fixed_to_float(bits), codes & (1 << bits) - 1, exponent).astype(np.uint32).view(np.float32)
        assert [Fraction(float(number)) for number in read] == [
            Fraction(int(code)) * Fraction(2) ** (exponent - 127) for code in codes
        ]
        assert not np.signbit(read[codes == 0]).any()
        assert run(float_to_fixed(bits, symmetric), read.view(np.uint32).astype(np.int64), exponent).tolist() == (
            (codes & (1 << bits) - 1).tolist()
        )


def test_codes_of_24_bits_are_the_nearest_in_words_of_32() -> None:
    """Of which no lemma is proved."""
    most = (1 << 23) - 1
    for exponent in (exponents(24)[0], 67, 127, exponents(24)[-1]):
        given = np.r_[words(24, exponent), 0x7F800000, 0xFFC00000]
        found = run(float_to_fixed(24, symmetric=True, width=32), given, exponent)
        found -= found >> 31 << 32
        assert found[:-2].tolist() == [nearest(int(word), exponent, -most, most) for word in given[:-2]]
        assert found[-2:].tolist() == [most, -most]


def test_infinities_and_nan_are_the_last_codes() -> None:
    given = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001])
    for bits, symmetric, least in ((8, True, 0x81), (8, False, 0x80), (16, False, 0x8000)):
        most = (1 << bits - 1) - 1
        for exponent in (exponents(bits)[0], exponents(bits)[-1]):
            wanted = [most, least, most, least, most]
            assert run(float_to_fixed(bits, symmetric), given, exponent).tolist() == wanted
