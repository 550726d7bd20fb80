"""HLSCNN's arithmetic: fixed-point products, partial sums, and their conversions to 16 bits.

The primitives are made for one choice of number formats and rounding (:class:`HlscnnOptions`).

Source: the functions that the published ILA leaves uninterpreted and implements for its simulator; the modes of the
fixed-point types that it uses are not public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ila_lang import Expr, Function, bv, concat, const, ite, primitive

from .options import HlscnnOptions, Rounding

WORD_BITS = 16


@dataclass(frozen=True)
class Arithmetic:
    """The primitives of one choice of formats; P stands for a partial sum's ``psum_bits``.

    ``product(weight, activation)``: 16 and 16 bits to P, the exact product cut to the partial sum's fraction bits.
    ``requantise(psum)``: P to 16 bits, the sum of eight products as an output word.
    ``total(partial, old, bias)``: 16, 16 and 16 bits to P, the exact sum of two output words and a bias.
    ``rectify(total)``: P to P, the larger of the number and 0.
    ``stored(total)``: P to 16 bits, the total as an output word.
    """

    product: Function
    requantise: Function
    total: Function
    rectify: Function
    stored: Function


def arithmetic(options: HlscnnOptions) -> Arithmetic:
    """The primitives for ``options``; the same objects for equal formats."""
    o = options
    product, total, rectify = _sums(
        o.weight_fraction, o.activation_fraction, o.output_fraction, o.psum_fraction, o.psum_bits
    )
    dropped, saturate = o.psum_fraction - o.output_fraction, o.overflow == "saturate"
    requantise = _conversion("requantise", dropped, o.psum_bits, o.tap_rounding, saturate)
    stored = _conversion("stored", dropped, o.psum_bits, o.store_rounding, saturate)
    return Arithmetic(product, requantise, total, rectify, stored)


@cache
def _conversion(kind: str, dropped: int, psum_bits: int, rounding: Rounding, saturate: bool) -> Function:
    """The primitive from P to 16 bits, of the ``kind`` "requantise" or "stored".

    Readings that one claim compares are different functions, so that they have different names.
    """
    name = f"hlscnn_{kind}" + ("" if rounding == "truncate" else f"_{rounding}") + ("_saturating" if saturate else "")

    def requantise(psum: Expr) -> Expr:
        """A partial sum as an output word."""
        return _narrow(psum, dropped, rounding, saturate)

    def stored(total: Expr) -> Expr:
        """A total as an output word."""
        return _narrow(total, dropped, rounding, saturate)

    if kind == "requantise":
        return primitive(bv(WORD_BITS), name=name, psum=bv(psum_bits))(requantise)
    return primitive(bv(WORD_BITS), name=name, total=bv(psum_bits))(stored)


@cache
def _sums(
    weight_fraction: int, activation_fraction: int, output_fraction: int, psum_fraction: int, psum_bits: int
) -> tuple[Function, Function, Function]:
    """The primitives that neither round to nearest nor saturate in any reading: product, total, rectify."""
    word, wide = bv(WORD_BITS), bv(psum_bits)
    dropped = psum_fraction - output_fraction

    @primitive(wide, name="hlscnn_product", weight=word, activation=word)
    def product(weight: Expr, activation: Expr) -> Expr:
        """weight * activation in the partial sum's format, cut toward minus infinity; it wraps only if P is too small.

        With the published formats |product| <= 2^30, 5 bits are cut, and eight of them sum to at most 2^28: a partial
        sum of 32 bits cannot overflow.
        """
        exact = weight.sext(psum_bits) * activation.sext(psum_bits)
        return _align(exact, weight_fraction + activation_fraction, psum_fraction)

    @primitive(wide, name="hlscnn_total", partial=word, old=word, bias=word)
    def total(partial: Expr, old: Expr, bias: Expr) -> Expr:
        """partial + old + bias as a partial sum; the bias has the format of weights."""
        sum_ = partial.sext(psum_bits) + old.sext(psum_bits)
        return (sum_ << dropped) + _align(bias.sext(psum_bits), weight_fraction, psum_fraction)

    @primitive(wide, name="hlscnn_rectify", total=wide)
    def rectify(total: Expr) -> Expr:
        """The larger of a number and 0."""
        return ite(total.slt(0), const(0, psum_bits), total)

    return product, total, rectify


def _align(value: Expr, fraction: int, bits: int) -> Expr:
    """The number with ``bits`` fraction bits, missing ones cut toward minus infinity; the width stays."""
    return value.ashr(fraction - bits) if fraction > bits else value << (bits - fraction)


def _narrow(value: Expr, dropped: int, rounding: Rounding, saturate: bool) -> Expr:
    """A number with its last ``dropped`` bits rounded away, as a word of 16 bits."""
    value = value.sext(value.width + 1)  # rounding up may carry
    quotient = value.ashr(dropped)
    if dropped:
        up = _rounds_up(value[dropped - 1 : 0], value[value.width - 1], quotient[0], rounding)
        if up is not None:
            quotient = quotient + ite(up, const(1, value.width), const(0, value.width))
    if saturate:
        high = const((1 << (WORD_BITS - 1)) - 1, value.width)
        quotient = ite(high.slt(quotient), high, ite(quotient.slt(~high), ~high, quotient))
    return quotient[WORD_BITS - 1 : 0]


def _rounds_up(rest: Expr, sign: Expr, last: Expr, rounding: Rounding) -> Expr | None:
    """Whether the quotient, cut toward minus infinity, moves up by one; None if it never does."""
    if rounding == "truncate":
        return None
    if rounding == "toward_zero":
        return (sign == 1) & (rest != 0)
    half = rest[rest.width - 1] == 1
    if rounding == "half_up" or rest.width == 1:
        return half if rounding == "half_up" else half & (last == 1)
    return half & (concat(rest[rest.width - 2 : 0], last) != 0)
