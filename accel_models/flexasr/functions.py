"""FlexASR's arithmetic on fixed-point numbers: products, activation functions, LayerNorm and Attention.

Formats are signed unless said otherwise: Q6.14 in 20 bits (the activation unit and LayerNorm), Q12.20 in 32 bits
(Attention).  Sums and products wrap; nothing saturates but the step from the accumulator of a processing element
(PE) to its activation unit.  Shifts right round down.

The activation functions are straight lines between few points, as the high-level-synthesis library ac_math makes
them: a segment number selects a slope and an intercept, and the fraction within the segment does the rest.  Bodies
are written for bit-blasting like those of :mod:`~accel_models.flexasr.numerics`: one multiplier for all segments,
and only as many bits as the result depends on.

Sources: the FlexASR SystemC design (``PECore``, ``ActUnit``, ``LayerNorm``, ``Attention``) and ac_math 3.2.1, from
which the tables were compiled whose digests the tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Expr, bv, concat, const, ite, primitive

from .numerics import adpfloat_to_fixed, encode
from .terms import select, shift_left, shift_right

_ONE = 1 << 14  # 1.0 in Q6.14
_LARGEST = (1 << 19) - 1  # the largest number of 20 bits; pe_saturate never gives the smallest, -2^19


# -- processing elements ------------------------------------------------------------------------------


def _significand(code: Expr) -> Expr:
    """16 + mantissa (5 bits), or 0 for the two codes of zero."""
    return ite(code[6:0] == 0, const(0, 5), concat(const(1, 1), code[3:0]))


@primitive(bv(32), a=bv(8), b=bv(8))
def adpfloat_mul(a: Expr, b: Expr) -> Expr:
    """The exact product of two codes, with 28 - bias_a - bias_b fraction bits; at most (31 * 31) << 14."""
    product = _significand(a).zext(10) * _significand(b).zext(10)
    magnitude = shift_left(product.zext(32), a[6:4].zext(4) + b[6:4].zext(4))
    return ite(a[7] == b[7], magnitude, -magnitude)


@primitive(bv(32), acc=bv(32), bias_w=bv(3), bias_i=bv(3))
def pe_shift(acc: Expr, bias_w: Expr, bias_i: Expr) -> Expr:
    """A sum of products with 14 fraction bits; the biases are those of weights and inputs.

    The shift by 14 - bias_w - bias_i is never to the left.
    """
    return shift_right(acc, const(14, 4) - (bias_w.zext(4) + bias_i.zext(4)))


@primitive(bv(32), acc=bv(32), code=bv(8), bias=bv(3))
def pe_add_bias(acc: Expr, code: Expr, bias: Expr) -> Expr:
    """The sum, with 14 fraction bits, and the layer's bias, a code of AdaptivFloat bias ``bias``; wraps."""
    return acc + adpfloat_to_fixed(code, bias).sext(32)


@primitive(bv(20), acc=bv(32))
def pe_saturate(acc: Expr) -> Expr:
    """The number in Q6.14 for the activation unit, between -(2^19 - 1) and 2^19 - 1."""
    low, high = const(-_LARGEST % (1 << 32), 32), const(_LARGEST, 32)
    return ite(acc.slt(low), low, ite(high.slt(acc), high, acc))[19:0]


# -- activation unit ----------------------------------------------------------------------------------


@primitive(bv(20), a=bv(20), b=bv(20))
def eadd(a: Expr, b: Expr) -> Expr:
    """The sum in Q6.14; wraps."""
    return a + b


@primitive(bv(20), a=bv(20), b=bv(20))
def emul(a: Expr, b: Expr) -> Expr:
    """The product in Q6.14, rounded down; wraps."""
    return (a.sext(34) * b.sext(34))[33:14]


@primitive(bv(20), x=bv(20))
def onex(x: Expr) -> Expr:
    """1 - x in Q6.14; wraps."""
    return _ONE - x


@primitive(bv(20), x=bv(20))
def relu(x: Expr) -> Expr:
    """The larger of x and 0."""
    return ite(x[19] == 1, const(0, 20), x)


def _line(segment: Expr, fraction: Expr, slopes: Sequence[int], intercepts: Sequence[int], width: int) -> Expr:
    """slope * fraction + intercept * 2^(bits of the fraction) in ``width`` bits; negative slopes wrap."""
    shift, mask = fraction.width, (1 << width) - 1
    slope = select(segment, [const(m & mask, width) for m in slopes])
    intercept = select(segment, [const(c << shift, width) for c in intercepts])
    return slope * fraction.zext(width) + intercept


# sigmoid: eight segments over [0, 5), slopes and intercepts in units of 2^-10
_SIGMOID = ((155, 130, 92, 58, 34, 19, 10, 6), (513, 668, 798, 890, 948, 982, 1001, 1012))
# tanh: twelve segments over [0, 3), likewise
_TANH = (
    (251, 224, 177, 129, 88, 57, 37, 23, 14, 9, 5, 3),
    (1, 252, 476, 653, 783, 871, 928, 965, 988, 1002, 1011, 1016),
)
_FIFTH = 819  # 8/5 * 2^9: segments of sigmoid are 5/8 wide


def _sigmoid(x: Expr, dropped: int) -> Expr:
    """The sigmoid where the magnitude loses its ``dropped`` lowest bits before it is scaled to segments."""
    negative = x[19] == 1
    magnitude = ite(negative, -x, x)
    beyond = const(5 * _ONE - 1, 20) < magnitude
    # 17 bits hold every magnitude below 5; larger ones do not come to the line
    scaled = magnitude[16:dropped].zext(27 - dropped) * _FIFTH
    position = scaled[26 - dropped : 13 - dropped]
    line = _line(position[12:10], position[9:0], *_SIGMOID, width=20)
    line = ite(beyond, const((1 << 20) - 1, 20), line)
    return ite(negative, -line, line)[19:6].zext(20)


@primitive(bv(20), x=bv(20))
def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)) in Q6.14, monotone; sigmoid(0) is 8208 / 16384, and from |x| = 5 on it is 16383 or 0.

    This is the variant of ac_math up to 3.2, with which all published results were made.
    """
    return _sigmoid(x, 0)


@primitive(bv(20), x=bv(20))
def sigmoid_b(x: Expr) -> Expr:
    """The sigmoid of ac_math from 3.4 on, which ignores the four lowest bits of the magnitude; see :data:`sigmoid`."""
    return _sigmoid(x, 4)


@primitive(bv(20), x=bv(20))
def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent in Q6.14, monotone; tanh(0) is 16, and from |x| = 3 on it is 16383 or -16384."""
    negative = x[19] == 1
    magnitude = ite(negative, -x, x)
    line = _line(magnitude[15:12], magnitude[11:2], *_TANH, width=21)
    line = ite(const(3 * _ONE - 1, 20) < magnitude, const((1 << 20) - 1, 21), line)
    return ite(negative, -line, line)[20:6].sext(20)


# -- LayerNorm ----------------------------------------------------------------------------------------


@primitive(bv(20), total=bv(24), count=bv(24))
def norm_divide(total: Expr, count: Expr) -> Expr:
    """total / count, both signed, rounded toward zero; wraps to 20 bits."""
    negative = total[23] == 1
    divisor = ite(count[23] == 1, -count, count)
    quotient = ite(negative, -total, total) // divisor
    return ite(total[23] == count[23], quotient, -quotient)[19:0]


# the inverse square root on [1/2, 1): eight segments, slopes and intercepts in units of 2^-12
_INV_SQRT = (
    (-331, -279, -240, -210, -185, -165, -148, -134),
    (5789, 5458, 5178, 4938, 4728, 4543, 4378, 4229),
)
_SQRT_HALF = 2896  # 1 / sqrt(2) in units of 2^-12


@primitive(bv(20), x=bv(20))
def inv_sqrt(x: Expr) -> Expr:
    """1 / sqrt(x) in Q6.14 for an *unsigned* x in Q6.14; all ones, -1 in the last place, for 0.

    Below x = 16 (2^-10) the result does not fit 20 bits and wraps, often to a negative number.
    """
    zeros: list[Expr] = []  # number of leading zeros, most significant bit first
    normal = x
    for step in (16, 8, 4, 2, 1):
        empty = normal[19 : 20 - step] == 0
        normal = ite(empty, normal << step, normal)
        zeros.append(ite(empty, const(1, 1), const(0, 1)))
    count = concat(*zeros)
    line = _line(normal[18:16], normal[15:4], *_INV_SQRT, width=25)
    # x = normal * 2^(6 - count): half of an odd exponent leaves a factor of 1 / sqrt(2), the rest is a shift by
    # 10 + floor((6 - count) / 2) = 13 - ceil(count / 2)
    odd = (line.zext(37) * _SQRT_HALF)[36:12]
    line = ite(count[0] == 1, odd, line)
    result = shift_right(line.zext(26), const(13, 4) - (count + 1)[4:1])[19:0]
    return ite(x == 0, const((1 << 20) - 1, 20), result)


# -- Attention ----------------------------------------------------------------------------------------

# 2^f on [0, 1): four segments, slopes and intercepts in units of 2^-10
_EXP = ((194, 230, 273, 325), (1022, 1216, 1446, 1719))
_LOG2_E = 23637  # in units of 2^-14


@primitive(bv(32), x=bv(32))
def exp(x: Expr) -> Expr:
    """exp(x) in Q12.20, for x <= 0; exp(0) is 1022 / 1024.  Positive arguments shift left, and wrap."""
    power = (x.sext(47) * _LOG2_E)[46:14]  # x / ln 2, with 20 fraction bits
    line = _line(power[19:18], power[17:8], *_EXP, width=32)
    whole = power[32:20].sext(32)
    return ite(power[32] == 1, line >> -whole, line << whole)


@primitive(bv(32), acc=bv(32), bias_a=bv(3), bias_b=bv(3))
def attention_shift(acc: Expr, bias_a: Expr, bias_b: Expr) -> Expr:
    """A sum of products in Q12.20; the biases are those of both factors.

    The shift by 8 - bias_a - bias_b is to the right, rounding down, or to the left, where it wraps.
    """
    return shift_left(acc.sext(46), bias_a.zext(4) + bias_b.zext(4))[39:8]


def _attention_compress(value: Expr, bias: Expr, *, pre2022: bool) -> Expr:
    return encode(value[25:0], 20, bias, pre2022=pre2022)


@primitive(bv(8), value=bv(32), bias=bv(3))
def attention_compress(value: Expr, bias: Expr) -> Expr:
    """The code nearest to a number in Q12.20, of which only the low 26 bits are used: beyond +-32 it wraps."""
    return _attention_compress(value, bias, pre2022=False)


@primitive(bv(8), value=bv(32), bias=bv(3))
def attention_compress_pre2022(value: Expr, bias: Expr) -> Expr:
    """:data:`attention_compress` as it was before 2022: negative numbers saturate to the largest positive code."""
    return _attention_compress(value, bias, pre2022=True)


@primitive(bv(32), numerator=bv(32), denominator=bv(32))
def divide_q24(numerator: Expr, denominator: Expr) -> Expr:
    """The softmax quotient in Q12.20, by an unsigned divider of two integer and four (eight) fraction bits.

    Of each operand only bits 21..16 are used: rounded down to 1/16, and *modulo 4*.  The quotient is rounded down to
    1/256, modulo 4; for a divisor of 0 it is the largest one, 1023/256.  So softmax is right only while its sum of
    exponentials is below 4.
    """
    dividend, divisor = numerator[21:16], denominator[21:16]
    quotient = concat(dividend, const(0, 8)) // divisor.zext(14)  # all ones where the divisor is 0
    return concat(const(0, 10), quotient[9:0], const(0, 12))
