"""Codes of float32 numbers, and float32 numbers of codes: what the host does before and after FlexASR, on words.

The format of a tensor is given by its *exponent* E: the code with the exponent field e and the mantissa m stands for
the float32 number with the exponent field E + e, the upper mantissa bits m, and no others; 0x00 and 0x80 stand for 0.
Codes of the AdaptivFloat bias b that stand for numbers times 2^-s have E = b + s + 117.

Source: the host quantiser of the FlexASR drivers; Tambe et al., DAC 2020, for the format.
"""

from __future__ import annotations

from ila_lang import Expr, bv, concat, const, ite, primitive

from .numerics import EXPONENT_OFFSET

EXPONENT_AT_0 = 127 - EXPONENT_OFFSET
"""The exponent of the codes of bias 0: float32's exponent fields are 127 more than exponents."""
EXPONENTS = range(2, 248)
"""Exponents with which all codes, and half of the smallest one, are normal float32 numbers."""
_CUT = 23 - 4  # bits of a float32 that no code has


@primitive(bv(8), word=bv(32), exponent=bv(8))
def float_to_adpfloat(word: Expr, exponent: Expr) -> Expr:
    """The code nearest to a float32 number.

    Halfway between two codes it is the one with the even mantissa, and up to halfway between zero and the smallest code
    it is 0x00, also for -0.  Beyond the largest code, for infinities and for NaN it is the largest code of that sign.
    """
    # Codes and float32 both have exponent and mantissa as neighbouring bits, so that a mantissa that is rounded up to
    # 32 moves on to the next exponent.
    magnitude = word[30:0]
    kept, half, rest = magnitude[30:_CUT], magnitude[_CUT - 1] == 1, magnitude[_CUT - 2 : 0] != 0
    up = half & (rest | (kept[0] == 1))
    code = kept.zext(14) + ite(up, const(1, 14), const(0, 14)) - concat(exponent, const(0, 4)).zext(14)
    cut = ite(code.slt(1), const(1, 7), ite(const(0x7F, 14).slt(code), const(0x7F, 7), code[6:0]))
    smallest = concat(exponent, const(1, 4), const(0, _CUT))
    return ite(magnitude <= smallest - (1 << 23), const(0, 8), concat(word[31], cut))


@primitive(bv(32), code=bv(8), exponent=bv(8))
def adpfloat_to_float(code: Expr, exponent: Expr) -> Expr:
    """The float32 number that a code stands for; 0 is never -0."""
    word = concat(code[7], exponent + code[6:4].zext(8), code[3:0], const(0, _CUT))
    return ite(code[6:0] == 0, const(0, 32), word)
