"""Lemmas on bit-vectors: shifts, sums and products of FlexASR, HLSCNN and VTA.

Each is a statement with all operands free, put to two solvers.  "Fits" means that the number, computed with more
bits, is the one of its last bits; where it does not fit, the primitive wraps, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_models.flexasr import functions
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import HlscnnOptions
from accel_models.vta import numerics as vta
from ila_lang import Expr, Function, bv, concat, const, ite, var

from .codes import ENCODE, HALVES, WIDE, allowance, shifted
from .lemma import Every, Lemma, Statement, Words, blocks, signed, solvers


def _v(**widths: int) -> tuple[Expr, ...]:
    return tuple(var(name, bv(width)) for name, width in widths.items())


def _fits(value: Expr, width: int) -> Expr:
    return value == value[width - 1 : 0].sext(value.width)


def _value(code: Expr, bias: Expr, width: int) -> Expr:
    """The value of an AdaptivFloat code times 2^14."""
    magnitude = shifted(concat(const(1, 1), code[3:0]).zext(width), code[6:4].zext(4) + bias.zext(4))
    return ite(code[6:0] == 0, const(0, width), ite(code[7] == 1, -magnitude, magnitude))


def _distance(a: Expr, b: Expr) -> Expr:
    return ite(a.slt(b), b - a, a - b)


def _compress(function: Function) -> Statement:
    value, bias = _v(value=32, bias=3)
    exact, zero = value.sext(WIDE), const(0, WIDE)
    error = _distance(_value(function(value, bias), bias, WIDE) << 20 - 14, exact) << HALVES
    return Statement((value, bias), (_fits(value, 26),), error <= allowance(_distance(exact, zero), bias, 20))


def _pe_shift(function: Function) -> Statement:
    acc, bias_w, bias_i = _v(acc=32, bias_w=3, bias_i=3)
    amount = const(14, 4) - (bias_w.zext(4) + bias_i.zext(4))
    result = function(acc, bias_w, bias_i).sext(48)
    exact = acc.sext(48)
    goal = shifted(result, amount).sle(exact) & exact.slt(shifted(result + 1, amount))
    return Statement((acc, bias_w, bias_i), (), goal)


def _pe_add_bias(function: Function) -> Statement:
    acc, code, bias = _v(acc=32, code=8, bias=3)
    exact = acc.sext(33) + _value(code, bias, 33)
    return Statement((acc, code, bias), (_fits(exact, 32),), function(acc, code, bias).sext(33) == exact)


def _pe_saturate(function: Function) -> Statement:
    (acc,) = _v(acc=32)
    high, low = const((1 << 19) - 1, 32), const(-((1 << 19) - 1) & 0xFFFFFFFF, 32)
    saturated = ite(high.slt(acc), high, ite(acc.slt(low), low, acc))
    return Statement((acc,), (), function(acc).sext(32) == saturated)


def _binary(width: int, operation: Callable[[Expr, Expr], Expr], wide: int) -> Callable[[Function], Every | Statement]:
    """The operation in ``wide`` bits, where its result fits ``width``."""

    def statement(function: Function) -> Statement:
        a, b = _v(a=width, b=width)
        exact = operation(a.sext(wide), b.sext(wide))
        return Statement((a, b), (_fits(exact, width),), function(a, b).sext(wide) == exact)

    return statement


def _onex(function: Function) -> Statement:
    (x,) = _v(x=20)
    exact = const(1 << 14, 21) - x.sext(21)
    return Statement((x,), (_fits(exact, 20),), function(x).sext(21) == exact)


def _norm_divide(function: Function) -> Statement:
    """For the divisors of the unit, 16 * vectors: the quotient of magnitudes with the sign of the total."""
    total, vectors = _v(total=24, vectors=8)
    count = concat(const(0, 12), vectors, const(0, 4))
    magnitude = ite(total[23] == 1, -total, total) // count
    exact = ite(total[23] == 1, -(magnitude.zext(25)), magnitude.zext(25))
    return Statement((total, vectors), (vectors != 0, _fits(exact, 20)), function(total, count).sext(25) == exact)


def _attention_shift(function: Function) -> Statement:
    acc, bias_a, bias_b = _v(acc=32, bias_a=3, bias_b=3)
    exact = shifted(acc.sext(48), bias_a.zext(4) + bias_b.zext(4)).ashr(8)
    return Statement((acc, bias_a, bias_b), (_fits(exact, 32),), function(acc, bias_a, bias_b).sext(48) == exact)


def _divide(function: Function) -> Every:
    def error(result: Words, n: Words, d: Words) -> tuple[Words, Words]:
        top, bottom = n >> 16, d >> 16
        allowed = np.zeros_like(n)
        quotient = np.where(bottom > 0, (top << 8) // np.maximum(bottom, 1), 0)
        usable = (bottom > 0) & (quotient < 1024)
        return np.where(usable, np.abs(result - (quotient << 12)), 0), allowed

    return Every(lambda: ((n << 16, d << 16) for n, d in blocks(0, 64, range(64))), error)


def _divide_slices(function: Function) -> Statement:
    n, d = _v(numerator=32, denominator=32)
    kept = const(0x3F0000, 32)
    return Statement((n, d), (), function(n, d) == function(n & kept, d & kept))


_PLAIN = arithmetic(HlscnnOptions())


def _product(function: Function) -> Statement:
    weight, activation = _v(weight=16, activation=16)
    exact = weight.sext(33) * activation.sext(33)
    return Statement((weight, activation), (), function(weight, activation).sext(33) == exact.ashr(5))


def _byte_product(function: Function) -> Statement:
    """For a weight that is the high byte of its word, in the 21 bits of fraction of an exact product."""
    byte, activation = _v(byte=8, activation=16)
    weight = concat(byte, const(0, 8))
    exact = weight.sext(40) * activation.sext(40)
    return Statement((byte, activation), (), function(weight, activation).sext(40) << 5 == exact)


def _half_up(function: Function) -> Statement:
    """In units of 2^-16, of which a word's unit has 512: -256 <= sum - result < 256."""
    (psum,) = _v(psum=32)
    exact, result = psum.sext(40), function(psum).sext(40) << 9
    nearest = (exact + 256).ashr(9)
    return Statement((psum,), (_fits(nearest, 16),), (result - 256).sle(exact) & exact.slt(result + 256))


def _cut(function: Function) -> Statement:
    (total,) = _v(total=32)
    exact = total.ashr(9)
    return Statement((total,), (_fits(exact, 16),), function(total).sext(32) == exact)


def _total(function: Function) -> Statement:
    partial, old, bias = _v(partial=16, old=16, bias=16)
    exact = ((partial.sext(40) + old.sext(40)) << 9) + (bias.sext(40) << 2)
    return Statement((partial, old, bias), (), function(partial, old, bias).sext(40) == exact)


def _rectify(function: Function) -> Statement:
    (total,) = _v(total=32)
    return Statement((total,), (), function(total) == ite(total.slt(0), const(0, 32), total))


def _bytes(_: Function) -> Every:
    def error(result: Words, a: Words, b: Words) -> tuple[Words, Words]:
        return np.abs(signed(result, 32) - a * b), np.zeros_like(a)

    return Every(lambda: blocks(-128, 128, range(-128, 128)), error)


def _chosen(least: bool) -> Callable[[Function], Statement]:
    def statement(function: Function) -> Statement:
        a, b = _v(a=32, b=32)
        r = function(a, b)
        bound = r.sle(a) & r.sle(b) if least else a.sle(r) & b.sle(r)
        return Statement((a, b), (), bound & ((r == a) | (r == b)))

    return statement


def _shift_right(bits: int) -> Callable[[Function], Statement]:
    """For 0 <= b < 2^bits, result 2^b <= a < (result + 1) 2^b."""

    def statement(function: Function) -> Statement:
        a, b = _v(a=32, b=bits)
        result, exact = function(a, b.zext(32)).sext(64), a.sext(64)
        goal = shifted(result, b).sle(exact) & exact.slt(shifted(result + 1, b))
        return Statement((a, b), (), goal)

    return statement


def _narrow(function: Function) -> Statement:
    (a,) = _v(a=32)
    return Statement((a,), (_fits(a, 8),), function(a).sext(32) == a)


def _widen(function: Function) -> Statement:
    (a,) = _v(a=16)
    return Statement((a,), (), function(a) == a.sext(32))


_ALL = "all operands"

LEMMAS: tuple[Lemma, ...] = (
    Lemma(
        "shift of a sum",
        functions.pe_shift,
        "v(result) <= v(acc) < v(result) + 2^-14",
        _ALL,
        solvers(_pe_shift),
    ),
    Lemma("add bias", functions.pe_add_bias, "v(result) = v(acc) + v(code)", "the sum fits", solvers(_pe_add_bias)),
    Lemma(
        "saturate",
        functions.pe_saturate,
        "v(result) is v(acc) cut to +-(32 - 2^-14)",
        _ALL,
        solvers(_pe_saturate),
    ),
    Lemma("sum", functions.eadd, "v(result) = v(a) + v(b)", "the sum fits", _binary(20, lambda a, b: a + b, 21)),
    Lemma(
        "product",
        functions.emul,
        "v(result) <= v(a) v(b) < v(result) + 2^-14: the exact product, rounded down",
        "the rounded product fits",
        _binary(20, lambda a, b: (a * b).ashr(14), 40),
    ),
    Lemma("one less", functions.onex, "v(result) = 1 - v(x)", "the difference fits", solvers(_onex)),
    Lemma(
        "divide by a count",
        functions.norm_divide,
        "result = sign(total) floor(|total| / count), so |v(result) - v(total) / count| < 2^-14",
        "count = 16, 32 .. 4080; the quotient fits",
        solvers(_norm_divide),
    ),
    Lemma(
        "shift in attention",
        functions.attention_shift,
        "v(result) <= v(acc) < v(result) + 2^-20: the exact sum, rounded down",
        "the rounded sum fits",
        solvers(_attention_shift),
    ),
    Lemma(
        "compress",
        functions.attention_compress,
        ENCODE,
        "every number of 26 bits (|v| < 32) and every bias",
        solvers(_compress),
    ),
    Lemma(
        "divide slices",
        functions.divide_q24,
        "the result depends on bits 21..16 of the operands only: floor(16 v) modulo 64",
        _ALL,
        solvers(_divide_slices),
    ),
    Lemma(
        "divide",
        functions.divide_q24,
        "256 v(result) = floor(256 N / D) for the slices N = floor(16 v(n)) and D = floor(16 v(d))",
        "N, D < 64, D > 0 and N / D < 4",
        _divide,
    ),
    Lemma(
        "HLSCNN product",
        _PLAIN.product,
        "v(result) <= v(w) v(x) < v(result) + 2^-16: the exact product, rounded down",
        _ALL,
        solvers(_product),
    ),
    Lemma(
        "HLSCNN product of a byte",
        _PLAIN.product,
        "v(result) = v(w) v(x)",
        "weights of 8 bits: the low byte of the word is 0",
        solvers(_byte_product),
    ),
    Lemma(
        "HLSCNN requantise",
        _PLAIN.requantise,
        "-2^-8 <= v(sum) - v(result) < 2^-8: rounded half up to 7 bits of fraction",
        "the rounded sum fits 16 bits",
        solvers(_half_up),
    ),
    Lemma("HLSCNN total", _PLAIN.total, "v(result) = v(partial) + v(old) + v(bias)", _ALL, solvers(_total)),
    Lemma("HLSCNN rectify", _PLAIN.rectify, "v(result) = max(v(total), 0)", _ALL, solvers(_rectify)),
    Lemma(
        "HLSCNN store",
        _PLAIN.stored,
        "v(result) <= v(total) < v(result) + 2^-7; equal where the total has 7 bits of fraction",
        "the rounded total fits 16 bits",
        solvers(_cut),
    ),
    Lemma("VTA product", vta.multiply, "result = a b", "every pair of bytes", _bytes),
    Lemma("VTA sum", vta.alu_add, "result = a + b", "the sum fits", _binary(32, lambda a, b: a + b, 33)),
    Lemma("VTA minimum", vta.alu_min, "result = min(a, b)", _ALL, solvers(_chosen(True))),
    Lemma("VTA maximum", vta.alu_max, "result = max(a, b)", _ALL, solvers(_chosen(False))),
    Lemma("VTA shift", vta.alu_shr_signed5, "result = floor(a / 2^b)", "0 <= b < 16", solvers(_shift_right(4))),
    Lemma("VTA shift of 32 bits", vta.alu_shr, "result = floor(a / 2^b)", "0 <= b < 32", solvers(_shift_right(5))),
    Lemma("VTA narrow", vta.narrow, "result = a", "-128 <= a <= 127", solvers(_narrow)),
    Lemma("VTA immediate", vta.widen_imm, "result = imm", _ALL, solvers(_widen)),
)
"""The lemmas of this module."""
