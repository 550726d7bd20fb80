"""Lemmas on what the host does to numbers around accelerators: float32 to codes, and fixed-point codes to float32.

Statements are in integers, in parts of a unit (what a fixed-point code 1 stands for), and made from a word's fields.
"""

from __future__ import annotations

from collections.abc import Callable

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from accel_models.flexasr.floats import EXPONENTS, adpfloat_to_float, float_to_adpfloat
from ila_lang import Expr, Function, bv, concat, const, ite, var

from .codes import shifted
from .lemma import Lemma, Statement, solvers

_QUARTERS = 2


def _within(exponent: Expr, bits: int) -> Expr:
    formats = exponents(bits)
    return (const(formats[0], 8) <= exponent) & (exponent <= const(formats[-1], 8))


def _nearest(bits: int, symmetric: bool, width: int) -> Callable[[Function], Statement]:
    """From a quarter of a unit on a number is an integer in units of 2^-25; below, the nearest code is 0."""
    unit, ends = 23 + _QUARTERS, ((1 << bits - 1) - 1, (1 << bits - 1) - symmetric)
    wide = bits + unit + 1

    def statement(function: Function) -> Statement:
        word, exponent = var("word", bv(32)), var("exponent", bv(8))
        result, normal = function(word, exponent), word[30:23] != 0
        # fields 0 and 1 have one unit; numbers with the field 0 have no leading 1
        mantissa = concat(ite(normal, const(1, 1), const(0, 1)), word[22:0]).zext(wide)
        places = exponent.zext(10) + 23 - ite(normal, word[30:23], const(1, 8)).zext(10)
        above = const(unit, 10) - places
        number = shifted(mantissa, above[4:0])
        whole, part = number[wide - 1 : unit], number[unit - 1 : 0]
        half = const(1 << unit - 1, unit)

        def near(magnitude: Expr, end: int) -> Expr:
            """That a code of this magnitude is right, of those up to ``end``."""
            code, last = magnitude.zext(bits + 1), const(end, bits + 1)
            nearest = ((code == whole) & (part <= half)) | ((code == whole + 1) & (half <= part))
            nearest = nearest & ((part != half) | (code[0] == 0))
            beyond = const(bits + 1, 10).slt(above) | (last <= whole)
            return ite(above.slt(0), code == 0, ite(beyond, code == last, nearest))

        code = result[bits - 1 : 0]
        negative = word[31] == 1
        goal = ite(negative, near(-code, ends[1]), near(code, ends[0]))
        if width > bits:
            goal = goal & (result == code.sext(width))
        # within a case of one sign solvers see that -(-code) is code, without which z3 gives no answer on 24 bits
        return Statement((word, exponent), (_within(exponent, bits),), goal, (negative, ~negative))

    return statement


def _normal(word: Expr, exponent: Expr, binades: int, wide: int) -> tuple[Expr, Expr]:
    """Whether a word is a normal number of so many binades from an exponent on, and its magnitude in units of 2^-23."""
    field = word[30:23]
    above = field - exponent
    magnitude = shifted(concat(const(1, 1), word[22:0]).zext(wide), above[3:0])
    return (exponent <= field) & (field < 255) & (above < binades), magnitude


def _exact(bits: int) -> Callable[[Function], Statement]:
    """In units of 2^-23, in which a number with the field of the exponent has its mantissa."""

    wide = bits + 24

    def statement(function: Function) -> Statement:
        code, exponent = var("code", bv(bits)), var("exponent", bv(8))
        word = function(code, exponent)
        normal, magnitude = _normal(word, exponent, bits, wide)
        number = ite(word[31] == 1, -magnitude, magnitude)
        normal = normal & (number == code.sext(wide) << 23)
        return Statement((code, exponent), (_within(exponent, bits),), ite(code == 0, word == 0, normal))

    return statement


def _adaptive_number(magnitude: Expr, wide: int) -> Expr:
    """The number of a code that is not 0, without its sign, in units of 2^(exponent - 150)."""
    return shifted(concat(const(1, 1), magnitude[3:0], const(0, 19)).zext(wide), magnitude[6:4])


def _adaptive_exact(function: Function) -> Statement:
    code, exponent, wide = var("code", bv(8)), var("exponent", bv(8)), 31
    word = function(code, exponent)
    normal, number = _normal(word, exponent, 8, wide)
    goal = normal & (word[31] == code[7]) & (number == _adaptive_number(code[6:0], wide))
    return Statement((code, exponent), (_adaptive_exponents(exponent),), ite(code[6:0] == 0, word == 0, goal))


def _adaptive_exponents(exponent: Expr) -> Expr:
    return (const(EXPONENTS[0], 8) <= exponent) & (exponent <= const(EXPONENTS[-1], 8))


def _adaptive(function: Function) -> Statement:
    """No ``other`` code is nearer, in units of 2^(exponent - 151): integers from half the least binade of codes on."""
    word, exponent, other = var("word", bv(32)), var("exponent", bv(8)), var("other", bv(7))
    code, wide = function(word, exponent), 34
    own = code[6:0]
    above = word[30:23].zext(10) - exponent.zext(10) + 1
    number = shifted(concat(const(1, 1), word[22:0]).zext(wide), above[3:0])

    def apart(magnitude: Expr) -> Expr:
        value = ite(magnitude == 0, const(0, wide), _adaptive_number(magnitude, wide) << 1)
        return ite(value <= number, number - value, value - number)

    nearer = apart(own) < apart(other)
    even = (apart(own) == apart(other)) & ((own == other) | (own[0] == 0))
    magnitude = ite(above.slt(0), own == 0, ite(const(8, 10).slt(above), own == 127, nearer | even))
    sign = ite(own == 0, const(0, 1), word[31])
    return Statement((word, exponent, other), (_adaptive_exponents(exponent),), magnitude & (code[7] == sign))


def _lemmas() -> list[Lemma]:
    lemmas = []
    for bits, symmetric, width in ((8, True, 8), (8, False, 8), (16, False, 16), (24, True, 32)):
        name, formats = f"float32 to {bits} bits{', symmetric' * symmetric}", exponents(bits)
        exponent = f"exponents {formats[0]} .. {formats[-1]}"
        last = (1 << bits - 1) - 1
        codes = f"the integer in {-last - (not symmetric)} .. {last} that is nearest to word / 2^(exponent - 127)"
        lemmas.append(
            Lemma(
                name,
                float_to_fixed(bits, symmetric, width),
                f"result is {codes}, the even one of two; infinities and NaN have the ends",
                f"every word, {exponent}",
                solvers(_nearest(bits, symmetric, width)),
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


LEMMAS = (
    *_lemmas(),
    Lemma(
        "float32 to AdaptivFloat",
        float_to_adpfloat,
        "result is the code nearest to word, the even one of two (v(code) = (1 + mantissa / 16) 2^(exponent + field - "
        "127), and 0 for 0x00 alone, which also -0 has); infinities and NaN have the largest of their sign",
        f"every word, exponents {EXPONENTS[0]} .. {EXPONENTS[-1]}",
        solvers(_adaptive),
    ),
    Lemma(
        "AdaptivFloat to float32",
        adpfloat_to_float,
        "v(result) = v(code) = (1 + mantissa / 16) 2^(exponent + field - 127), a normal number, or +0 of 0x00 and 0x80",
        f"every code, exponents {EXPONENTS[0]} .. {EXPONENTS[-1]}",
        solvers(_adaptive_exact),
    ),
)
"""The lemmas of this module."""
