"""Codes of float32 words are those of the host's quantiser on numbers, and words of codes what it makes of these."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from accel_models.flexasr.floats import EXPONENT_AT_0, EXPONENTS, adpfloat_to_float, float_to_adpfloat
from accel_models.flexasr.quantise import BIASES, dequantise, quantise
from ila_lang import bv, compile_terms, var

WORD, CODE, EXPONENT = var("word", bv(32)), var("code", bv(8)), var("exponent", bv(8))
ROUND = compile_terms([WORD, EXPONENT], [float_to_adpfloat(WORD, EXPONENT)], vector=True)
READ = compile_terms([CODE, EXPONENT], [adpfloat_to_float(CODE, EXPONENT)], vector=True)
CODES = np.arange(256)


def rounded(words: NDArray[np.uint32], exponent: int) -> NDArray[np.uint8]:
    (codes,) = ROUND(words.astype(np.int64), np.full(len(words), exponent))
    return np.asarray(codes, np.uint8)


def read(codes: NDArray[np.int64], exponent: int) -> NDArray[np.float32]:
    (words,) = READ(codes, np.full(len(codes), exponent))
    return np.asarray(words, np.uint32).view(np.float32)


@pytest.mark.parametrize("exponent", [EXPONENTS[0], 57, 115, 117, 121, 184, EXPONENTS[-1]])
def test_words_and_codes(exponent: int) -> None:
    bias = next(b for b in BIASES if abs(exponent - EXPONENT_AT_0 - b) % 2 == 0)
    scale = exponent - EXPONENT_AT_0 - bias
    values = read(CODES, exponent)
    wanted = dequantise(CODES.astype(np.uint8), bias) * 2.0**scale
    assert np.array_equal(values.view(np.uint32), wanted.astype(np.float32).view(np.uint32))
    # all codes, all numbers halfway between two of them, their neighbours, extremes and random words
    draw = np.random.default_rng(exponent)
    ends = np.unique(np.abs(values)).astype(np.float64)
    halfway = ((ends[1:] + ends[:-1]) / 2).astype(np.float32)
    edges = [halfway, np.nextafter(halfway, np.float32(0)), np.nextafter(halfway, np.float32(np.inf)), values]
    numbers = np.concatenate([*edges, np.array([0, 1e-45, 1.2e-38, 3.4e38], np.float32)])
    words = draw.integers(0, 1 << 32, 3000, np.uint64).astype(np.uint32)
    scaled = (draw.normal(size=3000) * 2.0 ** (exponent - 122)).astype(np.float32)
    numbers = np.concatenate([numbers, scaled, words.view(np.float32)])
    numbers = np.concatenate([numbers, -numbers])
    numbers = numbers[np.isfinite(numbers)]
    expected = quantise(numbers.astype(np.float64) * 2.0**-scale, bias).codes
    assert len(np.unique(expected)) == 255  # all but 0x80
    assert np.array_equal(rounded(numbers.view(np.uint32), exponent), expected)


def test_infinities_and_nan_are_the_largest_codes() -> None:
    words = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001], np.uint32)
    for exponent in (EXPONENTS[0], 117, EXPONENTS[-1]):
        assert rounded(words, exponent).tolist() == [0x7F, 0xFF, 0x7F, 0xFF, 0x7F]
