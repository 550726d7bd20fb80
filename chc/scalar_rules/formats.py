"""Accelerators' number formats in the language of scalars; their operators are the accelerators' own primitives.

AdaptivFloat words are codes (a tensor's bias scales all of them, so the operators that FlexASR has on codes are those
of bias 0).  HLSCNN's words are fixed-point numbers; tests compare their conversions with HLSCNN's own primitives.
"""

from __future__ import annotations

from collections.abc import Mapping

from accel_models.flexasr.numerics import adpfloat_add, adpfloat_max, adpfloat_to_fixed
from accel_models.hlscnn.options import HlscnnOptions
from ila_lang import BOOL, Expr, bv, const, primitive
from ir_semantics.scalars.formats import Format, code_format, fixed_point
from ir_semantics.scalars.machine import CodeOperators

ADAPTIVFLOAT = code_format("AdaptivFloat<8,3>", 8)
"""FlexASR's codes, with bias 0.  Not all numbers have one code: 0x00 and 0x80 are both zero."""

FLEXASR_FIXED = fixed_point(20, 14)
"""Q6.14: every AdaptivFloat number at bias 0 is one."""


@primitive(BOOL, a=bv(8), b=bv(8))
def adpfloat_less(a: Expr, b: Expr) -> Expr:
    """Whether a's number is smaller than b's (bias 0)."""
    return adpfloat_to_fixed(a, const(0, 3)).slt(adpfloat_to_fixed(b, const(0, 3)))


@primitive(BOOL, a=bv(8), b=bv(8))
def adpfloat_equal(a: Expr, b: Expr) -> Expr:
    """Whether both codes have one number; 0x00 and 0x80 have."""
    return adpfloat_to_fixed(a, const(0, 3)) == adpfloat_to_fixed(b, const(0, 3))


@primitive(bv(20), code=bv(8))
def adpfloat_value(code: Expr) -> Expr:
    """The code's number (bias 0) in Q6.14, exact."""
    return adpfloat_to_fixed(code, const(0, 3))


_OPERATORS: CodeOperators = {
    "add": adpfloat_add,
    "maximum": adpfloat_max,
    "lt": adpfloat_less,
    "eq": adpfloat_equal,
    f"cast:{FLEXASR_FIXED}": adpfloat_value,
}

CODES: Mapping[Format, CodeOperators] = {ADAPTIVFLOAT: _OPERATORS}
"""The primitives of every code format."""

_ROUNDINGS = {"truncate": "down", "toward_zero": "toward_zero", "half_up": "nearest_up", "half_even": "nearest_even"}


def hlscnn_product(options: HlscnnOptions) -> Format:
    """The exact product of a weight and an activation."""
    return fixed_point(32, options.weight_fraction + options.activation_fraction)


def hlscnn_psum(options: HlscnnOptions) -> Format:
    """A partial sum; products are cut to its fraction bits."""
    return fixed_point(options.psum_bits, options.psum_fraction)


def hlscnn_output(options: HlscnnOptions) -> Format:
    """What is stored after every tap, with the modes of the options."""
    return fixed_point(
        16, options.output_fraction, rounding=_ROUNDINGS[options.tap_rounding], overflow=options.overflow
    )
