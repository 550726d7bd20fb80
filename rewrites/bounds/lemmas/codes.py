"""Lemmas on AdaptivFloat codes, and on FlexASR's number formats: conversions, products, poolings.

The values of codes are computed with :func:`~accel_models.flexasr.numerics.value_of` (rational numbers, from the
format's definition), not with the primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from accel_models.flexasr import functions, numerics
from ila_lang import Expr, Function, bv, compile_terms, const, ite, var

from .lemma import Every, Lemma, Words, blocks, signed

_BIASES = range(8)
HALVES = 5  # errors of conversions are counted in units of 2^-5 of the last place
WIDE = 40  # bits of a word in which they fit


@cache
def _values() -> Words:
    """value_of(code, bias) * 2^14 for all codes and biases [8, 256]: integers."""
    table = [[numerics.value_of(c, b) * (1 << 14) for c in range(256)] for b in _BIASES]
    assert all(v.denominator == 1 for row in table for v in row)
    return np.array([[int(v) for v in row] for row in table], np.int64)


def code_values(codes: Words, biases: Words) -> Words:
    """The values of codes times 2^14."""
    return np.asarray(_values()[biases, codes & 0xFF])


def shifted(value: Expr, amount: Expr) -> Expr:
    """``value << amount``, by conditional shifts by constants."""
    for i in range(amount.width):
        value = ite(amount[i] == 1, value << (1 << i), value)
    return value


def allowance(magnitude: Expr, bias: Expr, fraction_bits: int) -> Expr:
    """What a conversion may be off, for |v| = magnitude * 2^-fraction_bits, in units of 2^-(fraction_bits + 5).

    With L = 31/16 * 2^(b-3), the largest number: beyond L exactly the distance to L; up to 33/32 * 2^(b-10) the number
    itself (it may become zero); else half a step of its binade, 2^(k-5) for 2^k <= |v| < 2^(k+1).
    The magnitude must be below 2^32, in a word of 40 bits.
    """
    moved, width = fraction_bits - 14, magnitude.width
    largest = shifted(const(31 << (7 + moved), width), bias)
    tiny = shifted(const(33 << (moved + HALVES - 1), width), bias)  # 16.5 * 2^b units of 2^-14
    own = magnitude << HALVES
    ones = magnitude
    for distance in (1, 2, 4, 8, 16):
        ones = ones | ones >> distance
    half_step = ones ^ ones >> 1  # the leading bit alone
    return ite(magnitude > largest, (magnitude - largest) << HALVES, ite(own <= tiny, own, half_step))


@cache
def _allowances(fraction_bits: int) -> Callable[..., tuple[Words]]:
    magnitude, bias = var("magnitude", bv(WIDE)), var("bias", bv(3))
    return compile_terms([magnitude, bias], [allowance(magnitude, bias, fraction_bits)], vector=True)


def encode_allowance(magnitude: Words, biases: Words, fraction_bits: int) -> Words:
    """As :func:`allowance`, of arrays."""
    return _allowances(fraction_bits)(magnitude, biases)[0]


def _conversion(arguments: Callable[[], Iterable[tuple[Words, ...]]], fraction_bits: int) -> Every:
    def error(result: Words, value: Words, bias: Words) -> tuple[Words, Words]:
        got = code_values(result, bias) << (fraction_bits - 14)
        return np.abs(got - value) << HALVES, encode_allowance(np.abs(value), bias, fraction_bits)

    return Every(arguments, error)


def _pairs() -> Iterable[tuple[Words, ...]]:
    return blocks(0, 256, range(256))


def _pool(combined: Callable[[Words, Words], Words]) -> Callable[[Function], Every]:
    """A pooling of two codes at bias 0 against ``combined`` (twice the exact result, in units of 2^-14)."""

    def error(result: Words, a: Words, b: Words) -> tuple[Words, Words]:
        zero = np.zeros_like(a)
        exact = combined(code_values(a, zero), code_values(b, zero))
        got = 2 * code_values(result, zero)
        return np.abs(got - exact) << HALVES, encode_allowance(np.abs(exact), zero, 15)

    return lambda _: Every(_pairs, error)


def _exact(value: Callable[..., Words], arguments: Callable[[], Iterable[tuple[Words, ...]]], width: int) -> Every:
    def error(result: Words, *operands: Words) -> tuple[Words, Words]:
        return np.abs(signed(result, width) - value(*operands)), np.zeros_like(result)

    return Every(arguments, error)


def _max_error(result: Words, a: Words, b: Words) -> tuple[Words, Words]:
    zero = np.zeros_like(a)
    exact = np.maximum(code_values(a, zero), code_values(b, zero))
    return np.abs(code_values(result, zero) - exact), np.zeros_like(a)


ENCODE = (
    "|v(code) - v| <= half a step of v's binade; v itself where |v| <= 33/32 2^(b-10); "
    "exactly |v| - L beyond the largest number L = 31/16 2^(b-3)"
)

LEMMAS: tuple[Lemma, ...] = (
    Lemma(
        "decode",
        numerics.adpfloat_to_fixed,
        "v(result) = v(code)",
        "every code and bias",
        lambda _: _exact(lambda c, b: code_values(c, b), lambda: blocks(0, 256, _BIASES), 20),
    ),
    Lemma(
        "multiply codes",
        functions.adpfloat_mul,
        "v(result) = v(a) v(b), and |result| <= 961 2^14",
        "every pair of codes (biases only move the point)",
        lambda _: _exact(lambda a, b: code_values(a, np.zeros_like(a)) * code_values(b, np.zeros_like(b)), _pairs, 32),
    ),
    Lemma(
        "encode",
        numerics.fixed_to_adpfloat,
        ENCODE,
        "every number of 20 bits and every bias",
        lambda _: _conversion(lambda: blocks(-(1 << 19), 1 << 19, _BIASES), 14),
    ),
    Lemma(
        "compress weights",
        functions.attention_compress,
        ENCODE,
        "every quotient of softmax (multiples of 2^-8 below 4) and every bias",
        lambda _: _conversion(lambda: ((q << 12, b) for q, b in blocks(0, 1024, _BIASES)), 20),
    ),
    Lemma(
        "maximum",
        numerics.adpfloat_max,
        "v(result) = max(v(a), v(b))",
        "every pair of codes",
        lambda _: Every(_pairs, _max_error),
    ),
    Lemma(
        "mean",
        numerics.adpfloat_mean,
        "v(result) is (v(a) + v(b)) / 2, converted once as in encode",
        "every pair of codes, bias 0",
        _pool(lambda a, b: a + b),
    ),
    Lemma(
        "add",
        numerics.adpfloat_add,
        "v(result) is v(a) + v(b), converted once as in encode",
        "every pair of codes, bias 0",
        _pool(lambda a, b: 2 * (a + b)),
    ),
)
"""The lemmas of this module."""
