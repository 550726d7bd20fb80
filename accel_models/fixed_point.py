"""Fixed-point codes of float32 numbers, and float32 numbers of codes: what hosts of VTA and HLSCNN do, on words.

Codes are two's complement.  The format of a tensor is given by its *exponent* E: the code 1 stands for the float32
number with the exponent field E, 2^(E - 127), and the code n for n times as much.
"""

from __future__ import annotations

from functools import cache

from ila_lang import Expr, Function, bv, concat, const, ite, primitive

EXPONENT_AT_0 = 127
"""The exponent of codes that stand for themselves: float32's exponent fields are 127 more than exponents."""
_MOST = 25
"""By so many places a mantissa of 24 bits is moved below one half."""


def exponents(bits: int) -> range:
    """The exponents with which all codes of so many bits, but for 0, are normal float32 numbers."""
    return range(1, 256 - bits)


@cache
def float_to_fixed(bits: int, symmetric: bool = False, width: int = 0) -> Function:
    """``float_to_int8`` and so on, from a word of 32 bits and an exponent of 8 to the nearest code of at most 24.

    Of two codes that are equally near it is the even one.  Beyond the codes it is the last one of that sign, also for
    infinities and NaN.  The last ones are -2^(bits - 1) and 2^(bits - 1) - 1; of ``symmetric`` codes the first is one
    more.  Codes are words of ``width`` bits, or of their own.
    """
    largest, width = (1 << bits - 1) - 1, width or bits
    name = f"float_to_int{bits}{'_symmetric' * symmetric}{f'_in_{width}' if width > bits else ''}"

    @primitive(bv(width), name=name, word=bv(32), exponent=bv(8))
    def nearest(word: Expr, exponent: Expr) -> Expr:
        """The code nearest to a float32 number, ties to the even one; beyond the codes, the last one of that sign."""
        negative, field = word[31] == 1, word[30:23]
        normal = field != 0
        mantissa = concat(ite(normal, const(1, 1), const(0, 1)), word[22:0])
        # The number is mantissa * 2^-places units; one of more than 24 - bits places is below 2^(bits - 1) units.
        places = exponent.zext(10) + 23 - ite(normal, field, const(1, 8)).zext(10)
        moved_by = ite(const(_MOST, 10).slt(places), const(_MOST, 10), places)
        moved = concat(mantissa, const(0, _MOST)) >> moved_by.zext(24 + _MOST)
        code, half, rest = moved[_MOST + bits - 1 : _MOST], moved[_MOST - 1] == 1, moved[_MOST - 2 : 0] != 0
        code = code + ite(half & (rest | (code[0] == 1)), const(1, bits), const(0, bits))
        last = ite(negative, const(largest + (not symmetric), bits), const(largest, bits))
        code = ite(places.slt(25 - bits) | (last < code), last, code)
        return ite(negative, -code, code).sext(width)

    return nearest


@cache
def fixed_to_float(bits: int) -> Function:
    """``int8_to_float`` or ``int16_to_float``: from a code and an exponent of 8 bits to the word of its number."""

    @primitive(bv(32), name=f"int{bits}_to_float", code=bv(bits), exponent=bv(8))
    def number(code: Expr, exponent: Expr) -> Expr:
        """The float32 number that a code stands for; 0 is never -0."""
        negative = code[bits - 1]
        magnitude = ite(negative == 1, -code, code)
        word = const(0, 32)
        for first in range(bits):  # the position of the first 1
            rest = [magnitude[first - 1 : 0]] if first else []
            one = concat(negative, exponent + first, *rest, const(0, 23 - first))
            word = ite(magnitude[first] == 1, one, word)
        return word

    return number
