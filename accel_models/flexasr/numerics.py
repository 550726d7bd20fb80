"""AdaptivFloat<8,3>: FlexASR's 8-bit floating-point codes, in closed form.

A code has a sign (bit 7), an exponent e (bits 6..4) and a mantissa m (bits 3..0).  Each tensor has a
3-bit bias b.  The code's value is (-1)^sign * (1 + m/16) * 2^(e + b - 10), except that e = m = 0 (the
codes 0x00 and 0x80) is 0.  There are no denormal numbers, infinities or NaNs.

Each function here is one expression body, so that bit-exact proofs unfold it and structural proofs keep
its name. The bodies are written for bit-blasting: cascades of conditional shifts by constants, no tables,
narrow words.

Sources: the AdaptivFloat class of the FlexASR SystemC design (``to_fixed``, the conversion from fixed
point, and the operators of the LayerReduce unit); Tambe et al., "Algorithm-Hardware Co-Design of Adaptive
Floating-Point Encodings for Resilient Deep Learning Inference", DAC 2020, for the format.
"""

from __future__ import annotations

from fractions import Fraction

from ila_lang import Expr, bv, concat, const, ite, primitive

from .terms import shift_left

FIXED_FRACTION_BITS = 14  # Q6.14, the fixed-point format of the activation unit and of LayerReduce
EXPONENT_OFFSET = 10  # value = (1 + m/16) * 2^(e + bias - 10); EXPBIAS of the AdaptivFloat class
POOL_WIDTH = 40  # bits of the pooling accumulator: 2^16 codes of at most 13 bits fit with room to spare
GUARD_BITS = 2  # see adpfloat_pool_mean_finish

_ZERO = 0  # the canonical code of zero
_LARGEST = 0x7F  # exponent 7, mantissa 15, without its sign


def _decode(code: Expr, shift: Expr | None, width: int) -> Expr:
    """The code's value times 2^14 at bias ``shift`` (None: bias 0), as a signed number of ``width`` bits."""
    mantissa, exponent = code[3:0], code[6:4]
    if shift is not None:
        exponent = exponent.zext(4) + shift.zext(4)
    magnitude = shift_left(concat(const(1, 1), mantissa).zext(width), exponent)
    magnitude = ite(code[6:0] == 0, const(0, width), magnitude)
    return ite(code[7] == 1, -magnitude, magnitude)


@primitive(bv(20), code=bv(8), bias=bv(3))
def adpfloat_to_fixed(code: Expr, bias: Expr) -> Expr:
    """The value of a code in signed Q6.14 (20 bits); exact: the largest magnitude is 31 << 14 = 507904."""
    return _decode(code, bias, 20)


def encode(value: Expr, fraction_bits: int, bias: Expr | int, *, pre2022: bool = False) -> Expr:
    """The code (8 bits) nearest to a fixed-point number, for a tensor of the given bias.

    ``value`` is signed, of any width, with ``fraction_bits`` bits after the point; ``bias`` is an integer
    0..7 or an expression of 3 bits.  The value is rounded to four mantissa bits with ties toward plus
    infinity. Range checks follow the rounding: below 2^(bias-10) the result is 0x00 (there is no rounding
    up to the smallest code), above the range it saturates to 0x7F or 0xFF by sign.  The magnitude
    2^(bias-10) itself has no code and gives 0x00 or 0x80, both of which read as zero.

    With ``pre2022``, negative values saturate to 0x7F, the largest *positive* code, as in the hardware source
    before its commit e4f60b5 of 2022-04-11.

    Raises ValueError if a bias is outside 0..7 and TypeError if it is an expression of another width.
    """
    if isinstance(bias, int):
        if not 0 <= bias <= 7:
            raise ValueError(f"AdaptivFloat bias must be in 0 .. 7, not {bias}")
    elif bias.is_const:
        bias = bias.value
    elif bias.width != 3:
        raise TypeError(f"AdaptivFloat bias must have 3 bits, not {bias.width}")
    sign = value[value.width - 1] == 1
    magnitude = ite(sign, -value, value)
    # Only the exponent's position depends on the bias: moving the point by it leaves a conversion at bias 0.
    if isinstance(bias, int):
        point = fraction_bits + bias
    else:
        point = fraction_bits + 7
        magnitude = shift_left(magnitude.zext(value.width + 7), ~bias)  # ~bias = 7 - bias
    # Window: bits `top` .. 0, where `top` is the leading bit of exponent 7.  Nine bits reach down to
    # exponent -1, which still may round up to exponent 0.
    top = point - EXPONENT_OFFSET + 7
    if top < 8:
        magnitude = concat(magnitude, const(0, 8 - top))
        top = 8
    beyond = magnitude.width > top + 1
    window = magnitude[top:0] if beyond else magnitude.zext(top + 1)
    zeros: list[Expr] = []  # leading zeros of the window, most significant bit first
    for step in (8, 4, 2, 1):
        empty = window[top : top - step + 1] == 0
        window = ite(empty, window << step, window)
        zeros.append(ite(empty, const(1, 1), const(0, 1)))
    # Exponent + 8 = 15 - zeros = ~zeros, four bits above the mantissa, so that a carry of the rounding
    # moves to the next exponent by itself.  Zero and everything below exponent -1 come out as a negative
    # exponent.
    exponent = ~concat(*zeros)
    guard, rest = window[top - 5] == 1, window[top - 6 : 0] != 0
    up = guard & (~sign | rest)  # a tie of a negative number rounds toward zero, that is, toward plus infinity
    rounded = concat(const(0, 1), exponent, window[top - 1 : top - 4]) + ite(up, const(1, 9), const(0, 9))
    underflow = rounded[8:7] == 0
    overflow = rounded[8] == 1
    if beyond:
        overflow = overflow | (magnitude[magnitude.width - 1 : top + 1] != 0)
    sign_bit = value[value.width - 1]
    limit = const(_LARGEST, 8) if pre2022 else concat(sign_bit, const(_LARGEST, 7))
    return ite(overflow, limit, ite(underflow, const(_ZERO, 8), concat(sign_bit, rounded[6:0])))


@primitive(bv(8), value=bv(20), bias=bv(3))
def fixed_to_adpfloat(value: Expr, bias: Expr) -> Expr:
    """The code nearest to a number in signed Q6.14; see :func:`encode`."""
    return encode(value, FIXED_FRACTION_BITS, bias)


@primitive(bv(8), value=bv(20), bias=bv(3))
def fixed_to_adpfloat_pre2022(value: Expr, bias: Expr) -> Expr:
    """:data:`fixed_to_adpfloat` as it was before 2022: negative numbers saturate to the largest positive code."""
    return encode(value, FIXED_FRACTION_BITS, bias, pre2022=True)


# -- LayerReduce --------------------------------------------------------------------------------------
# The unit works on codes as if the bias were 0: scaling both operands scales the result, and every bias
# has the same codes.  At bias 0 a code's value times 2^14 is an integer of 13 bits with its sign, at most
# 31 << 7.


@primitive(bv(8), a=bv(8), b=bv(8))
def adpfloat_max(a: Expr, b: Expr) -> Expr:
    """The code with the larger value, ``a`` where they are equal; a zero result is always 0x00, never 0x80.

    Commutative and associative, but the result need not be one of the operands: the maximum of 0x80 and any
    negative code is 0x00.
    """
    larger = ite(_decode(b, None, 13).sle(_decode(a, None, 13)), a, b)
    return ite(larger[6:0] == 0, const(_ZERO, 8), larger)


@primitive(bv(8), a=bv(8), b=bv(8))
def adpfloat_mean(a: Expr, b: Expr) -> Expr:
    """The code of (a + b) / 2, rounded once, after halving (the sum is exact, with 15 fraction bits)."""
    return encode(_decode(a, None, 14) + _decode(b, None, 14), FIXED_FRACTION_BITS + 1, 0)


@primitive(bv(8), a=bv(8), b=bv(8))
def adpfloat_add(a: Expr, b: Expr) -> Expr:
    """The code of a + b, rounded once, saturating by sign.  Commutative, not associative."""
    return encode(_decode(a, None, 14) + _decode(b, None, 14), FIXED_FRACTION_BITS, 0)


# -- quantised pooling over any window ----------------------------------------------------------------
# The tensor operator's side: a pooling window is folded exactly into an accumulator and rounded once at
# the end. For a window of two it is the hardware's operator; for larger windows it is what a cascade of
# the hardware's operators has to be compared with.


@primitive(bv(POOL_WIDTH), code=bv(8))
def adpfloat_pool_first(code: Expr) -> Expr:
    """The first element of a pooling window as an accumulator: its value at bias 0 times 2^14, exact."""
    return _decode(code, None, 13).sext(POOL_WIDTH)


@primitive(bv(POOL_WIDTH), acc=bv(POOL_WIDTH), x=bv(POOL_WIDTH))
def adpfloat_pool_max_step(acc: Expr, x: Expr) -> Expr:
    """The larger of accumulator and element (both signed)."""
    return ite(x.sle(acc), acc, x)


@primitive(bv(POOL_WIDTH), acc=bv(POOL_WIDTH), x=bv(POOL_WIDTH))
def adpfloat_pool_add_step(acc: Expr, x: Expr) -> Expr:
    """The sum of accumulator and element, for sum and mean pooling; exact for up to 2^16 elements."""
    return acc + x


@primitive(bv(8), acc=bv(POOL_WIDTH), count=bv(16))
def adpfloat_pool_finish(acc: Expr, count: Expr) -> Expr:
    """The code of the accumulator (max and sum pooling); ``count`` is ignored.

    A maximum is the value of some code, so encoding it is exact; the code of zero is 0x00.
    """
    return encode(acc, FIXED_FRACTION_BITS, 0)


@primitive(bv(8), acc=bv(POOL_WIDTH), count=bv(16))
def adpfloat_pool_mean_finish(acc: Expr, count: Expr) -> Expr:
    """The code of acc / count, the exact quotient rounded once; ``count`` (unsigned) must not be 0.

    The quotient is first cut to floor(acc * 2^G / count) with G = 2 guard bits.  No information is lost:
    with ties toward plus infinity, encoding is a step function f of the real quotient x that is constant
    on intervals closed on the left, [p, p'), for negative x too.  Every p is half a unit of the last
    mantissa bit: a multiple of 2^(k-5) in units of 2^-14, where 2^k is the leading bit.  The smallest k
    that can give anything but 0x00 has exponent -1, which is k = 3 at bias 0 (magnitudes just below 2^-10
    may round up to it; a negative one then gives 0x80). So every p is a multiple of 2^-2, and x and
    floor(4x)/4 lie in the same interval.  One guard bit would be too few: the step at -15.75 decides
    between 0x00 and 0x80.

    A negative dividend is divided as floor(n / c) = ~(~n // c), where ~n = -n - 1 >= 0: one unsigned
    division, whose boundaries at -count are exact, and a shift where ``count`` is a literal power of two.
    """
    dividend = concat(acc, const(0, GUARD_BITS))
    negative = acc[POOL_WIDTH - 1] == 1
    quotient = ite(negative, ~dividend, dividend) // count.zext(POOL_WIDTH + GUARD_BITS)
    return encode(ite(negative, ~quotient, quotient), FIXED_FRACTION_BITS + GUARD_BITS, 0)


# -- for people ----------------------------------------------------------------------------------------


def value_of(code: int, bias: int = 0) -> Fraction:
    """The exact value of a code (0..255) at a bias (0..7).

    Raises ValueError if either is out of range.

    >>> value_of(0x34, 2)
    Fraction(5, 128)
    """
    if not 0 <= code <= 255:
        raise ValueError(f"AdaptivFloat code must be in 0 .. 255, not {code}")
    if not 0 <= bias <= 7:
        raise ValueError(f"AdaptivFloat bias must be in 0 .. 7, not {bias}")
    if code & 0x7F == 0:
        return Fraction(0)
    magnitude = Fraction(16 + (code & 15), 16) * Fraction(2) ** ((code >> 4 & 7) + bias - EXPONENT_OFFSET)
    return -magnitude if code & 0x80 else magnitude


def describe_code(code: int, bias: int = 0) -> str:
    """A code with its value, for counterexamples.

    >>> describe_code(0xB4, 2)
    '0xb4 (-0.0390625)'
    >>> describe_code(0x80)
    '0x80 (zero, not canonical)'
    """
    if code == 0x80:
        return "0x80 (zero, not canonical)"
    value = float(value_of(code, bias))
    return f"0x{code:02x} ({value!r})" if value else f"0x{code:02x} (zero)"
