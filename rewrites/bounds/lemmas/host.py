"""Lemmas on what the host does to numbers before and after accelerators: float32 to fixed-point codes, and back.

Statements are in integers, in parts of a unit (what the code 1 stands for), and made from a word's fields.
"""

from __future__ import annotations

from collections.abc import Callable

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from ila_lang import Expr, Function, bv, concat, const, ite, var

from .codes import shifted
from .lemma import Lemma, Statement, solvers

_QUARTERS = 2


def _within(exponent: Expr, bits: int) -> Expr:
    formats = exponents(bits)
    return (const(formats[0], 8) <= exponent) & (exponent <= const(formats[-1], 8))


def _nearest(bits: int, symmetric: bool) -> Callable[[Function], Statement]:
    """From a quarter of a unit on a number is an integer in units of 2^-25; below, the nearest code is 0."""
    unit, ends = 23 + _QUARTERS, ((1 << bits - 1) - 1, (1 << bits - 1) - symmetric)
    wide = bits + unit + 1

    def statement(function: Function) -> Statement:
        word, exponent = var("word", bv(32)), var("exponent", bv(8))
        result = function(word, exponent)
        negative, field = word[31] == 1, word[30:23].zext(10)
        # fields 0 and 1 have one unit; numbers with the field 0 have no leading 1
        mantissa = concat(ite(field == 0, const(0, 1), const(1, 1)), word[22:0]).zext(wide)
        above = ite(field == 0, const(1, 10), field) - exponent.zext(10) + _QUARTERS
        number = shifted(mantissa, above[4:0])
        whole, part = number[wide - 1 : unit], number[unit - 1 : 0]
        last = ite(negative, const(ends[1], bits + 1), const(ends[0], bits + 1))
        code = ite(negative, -result.sext(bits + 1), result.sext(bits + 1))
        half = const(1 << unit - 1, unit)
        near = ((code == whole) & (part <= half)) | ((code == whole + 1) & (half <= part))
        near = near & ((part != half) | (code[0] == 0))
        beyond = const(bits + 1, 10).slt(above) | (last <= whole)
        goal = ite(above.slt(0), code == 0, ite(beyond, code == last, near))
        return Statement((word, exponent), (_within(exponent, bits),), goal)

    return statement


def _exact(bits: int) -> Callable[[Function], Statement]:
    """In units of 2^-23, in which a number with the field of the exponent has its mantissa."""

    wide = bits + 24

    def statement(function: Function) -> Statement:
        code, exponent = var("code", bv(bits)), var("exponent", bv(8))
        word = function(code, exponent)
        field = word[30:23]
        above = field - exponent
        magnitude = shifted(concat(const(1, 1), word[22:0]).zext(wide), above[3:0])
        number = ite(word[31] == 1, -magnitude, magnitude)
        normal = (exponent <= field) & (field < 255) & (above < bits) & (number == code.sext(wide) << 23)
        return Statement((code, exponent), (_within(exponent, bits),), ite(code == 0, word == 0, normal))

    return statement


def _lemmas() -> list[Lemma]:
    lemmas = []
    for bits, symmetric in ((8, True), (8, False), (16, False)):
        name, formats = f"float32 to {bits} bits{', symmetric' * symmetric}", exponents(bits)
        exponent = f"exponents {formats[0]} .. {formats[-1]}"
        last = (1 << bits - 1) - 1
        codes = f"the integer in {-last - (not symmetric)} .. {last} that is nearest to word / 2^(exponent - 127)"
        lemmas.append(
            Lemma(
                name,
                float_to_fixed(bits, symmetric),
                f"result is {codes}, the even one of two; infinities and NaN have the ends",
                f"every word, {exponent}",
                solvers(_nearest(bits, symmetric)),
            )
        )
        if not symmetric:
            lemmas.append(
                Lemma(
                    f"{bits} bits to float32",
                    fixed_to_float(bits),
                    "v(result) = code 2^(exponent - 127), a normal number or +0",
                    f"every code, {exponent}",
                    solvers(_exact(bits)),
                )
            )
    return lemmas


LEMMAS = tuple(_lemmas())
"""The lemmas of this module."""
