"""Rules on machine integers and fixed point that look right and are wrong, and their repairs.

Rows I1 to I41 and C17 of the collection of wrong rules (there are no rows I35 and I37).  Integers have 8 bits, are
signed and wrap, unless a rule says otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from accel_models.hlscnn.options import HlscnnOptions
from chc.scalar_rules.formats import ADAPTIVFLOAT, hlscnn_output, hlscnn_psum
from chc.scalar_rules.rule import RuleRow, control, row, rules_on
from ir_semantics.scalars.formats import INTEGERS, REALS, Format, integer
from ir_semantics.scalars.terms import (
    TRUE,
    Scalar,
    abs_,
    all_of,
    cast,
    clamp,
    constant,
    divide_floor,
    divide_toward_zero,
    maximum,
    minimum,
    variable,
)

from .traps import but, wrong
from .traps import trap as trap_on

INT2, INT8, INT16, INT32 = (integer(w) for w in (2, 8, 16, 32))
UINT8, UINT16 = integer(8, signed=False), integer(16, signed=False)
SATURATING = integer(8, overflow="saturate")
rule, trap = rules_on(INT8), partial(trap_on, usual=INT8)

x, y, z, w, s = (variable(n) for n in "xyzws")
a, b = variable("a"), variable("b")


def _typed(names: str, kind: Format) -> list[Scalar]:
    return [variable(n, kind) for n in names.split()]


def _fits(result: Scalar, wide: Format = INT16) -> Scalar:
    """Whether a sum, difference, product or shift is the same number when it is computed with more bits."""
    operands = [cast(o, wide) for o in result.args]
    exact = {
        "add": lambda p, q: p + q,
        "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q,
        "shift_left": lambda p, q: p << q,
    }[result.op](*operands)
    return cast(result, wide).equals(exact)


def _average(p: Scalar, q: Scalar) -> Scalar:
    """(p + q + 1) >> 1 of unsigned 8-bit numbers, with a wider sum."""
    return cast((cast(p, UINT16) + cast(q, UINT16) + 1) >> 1, UINT8)


def _halved(p: Scalar, bits: int) -> Scalar:
    """p / 2^bits, rounded to nearest, ties up."""
    return (p + (1 << (bits - 1))) >> bits


_u, _v, _t = _typed("u v t", UINT8)
_long = variable("x", INT32)
_m, _n = _typed("m n", INT16)
_i8 = variable("x", INT8)
_u8 = cast(_i8, UINT8)
_p, _q = _typed("p q", hlscnn_psum(HlscnnOptions()))
_stored = hlscnn_output(HlscnnOptions())
_in_int8 = [(constant(-128, k) <= v) & (v <= 127) for k, v in ((INT16, _m), (INT16, _n), (INT32, _long))]
_leaky, _tenth = (_long * 26 + 128) >> 8, divide_floor(_long + 5, 10)
_by_two_bits = [variable(n, INT2) for n in ("x", "c1", "c2")]
_grouped_left = (_by_two_bits[0] + _by_two_bits[1]) + _by_two_bits[2]
_grouped_right = _by_two_bits[0] + (_by_two_bits[1] + _by_two_bits[2])
_left_fits = _fits(_by_two_bits[0] + _by_two_bits[1]) & _fits(_grouped_left)
_right_fits = _fits(_by_two_bits[1] + _by_two_bits[2]) & _fits(_grouped_right)
_c1, _c2 = _typed("c1 c2", INT8)
_less, _moved = _i8 + _c1 < _c2, _i8 < _c2 - _c1
_af, _ag, _ah = _typed("x y z", ADAPTIVFLOAT)
_wide_clamp = cast(clamp(cast(_i8 + 10, INT16), 10, 137), INT8)

ROWS: tuple[RuleRow, ...] = (
    trap("I1", wrong(divide_toward_zero(_i8 * 2, 2), _i8, {"x": 64}), but(_fits(_i8 * 2))),
    trap("I3", wrong(divide_toward_zero(x, 2), x >> 1, {"x": -1}), but(x >= 0), but(left=divide_floor(x, 2))),
    trap("I5", wrong(abs_(x) >= 0, TRUE, {"x": -128}), but(number=SATURATING)),
    trap(
        "I7",
        wrong(_less, _moved, {"x": 127, "c1": 1, "c2": 0}),
        but(_fits(_i8 + _c1) & _fits(_c2 - _c1)),
        still_wrong=[but(_fits(_i8 + _c1))],
        note="That x + c1 does not wrap is not enough; c2 - c1 must not wrap either.",
    ),
    trap(
        "I9",
        wrong(2 * (a + b), 2 * a + 2 * b, {"a": 100, "b": -90}, number=SATURATING),
        but(number=INT8),
        note="Numbers that wrap distribute.",
    ),
    trap(
        "I11",
        wrong(cast(clamp(_long, -128, 127), INT8), clamp(cast(_long, INT8), -128, 127), {"x": 300}, number=INT32),
        but(_in_int8[2]),
    ),
    trap(
        "I13",
        wrong((x + y) >> 1, (x >> 1) + (y >> 1), {"x": 1, "y": 1}),
        but(((_i8 >> 1) << 1).equals(_i8) & _fits(_i8 + _c1), left=(_i8 + _c1) >> 1, right=(_i8 >> 1) + (_c1 >> 1)),
    ),
    trap("I15", wrong((_i8 << 1) >> 1, _i8, {"x": 64}), but(_fits(_i8 << 1))),
    trap(
        "I17",
        wrong(_average(_average(_u, _v), _t), _average(_u, _average(_v, _t)), {"u": 0, "v": 1, "t": 2}, number=UINT8),
        but(left=_average(_u, _v), right=_average(_v, _u)),
        note="It commutes.",
    ),
    trap(
        "I19",
        wrong(divide_toward_zero(x + 2, 2), divide_toward_zero(x, 2) + 1, {"x": -1}, number=INTEGERS),
        but(left=divide_floor(x + 2, 2), right=divide_floor(x, 2) + 1),
        but(_fits(_i8 + 2), left=divide_floor(_i8 + 2, 2), right=divide_floor(_i8, 2) + 1, number=INT8),
        still_wrong=[but(left=divide_floor(x + 2, 2), right=divide_floor(x, 2) + 1, number=INT8)],
        note="In machine integers x + 2 must not wrap.",
    ),
    trap(
        "I21",
        wrong(_halved(_halved(_long, 1), 1), _halved(_long, 2), {"x": 1}, number=INT32),
        but(left=(_long >> 1) >> 1, right=_long >> 2),
        note="Rounding down twice is rounding down once.",
    ),
    trap(
        "I23",
        wrong(constant(0), (constant(0) - z) * w, {"z": 10, "w": 3}, number=INT32),
        but(right=(z - z) * w),
        note="What a padded cell adds to a sum: nothing, against the code 0 with zero point z and weight w.",
    ),
    trap(
        "I25",
        wrong(_u < _v, _u - _v < 0, {"u": 0, "v": 2}, number=UINT8),
        but(right=cast(_u, INT16) - cast(_v, INT16) < 0),
    ),
    trap(
        "I27",
        wrong(
            cast(_p + _q, _stored),
            cast(_p, _stored) + cast(_q, _stored),
            {"p": Fraction(1, 256), "q": Fraction(1, 256)},
            number=_p.format,
        ),
        but(cast(cast(_p, _stored), _p.format).equals(_p)),
        note="HLSCNN's formats: 16 fraction bits are rounded to 7, half up. It holds where one summand has 7.",
    ),
    trap(
        "I29",
        wrong(_leaky, _tenth, {"x": -125}, number=INT32, condition=_in_int8[2]),
        but((constant(0, INT32) <= _long) & (_long <= 63)),
    ),
    trap("I31", wrong(cast(_i8, INT16), cast(_u8, INT16), {"x": -1}), but(_i8 >= 0)),
    trap(
        "I33",
        wrong(maximum(cast(_m, INT8), cast(_n, INT8)), cast(maximum(_m, _n), INT8), {"m": 200, "n": 100}, number=INT16),
        but(all_of(_in_int8[:2])),
    ),
    trap("I39", wrong(clamp(_i8, 0, 127) + 10, _wide_clamp, {"x": 120}), but(_fits(_i8 + 10))),
    trap(
        "I41",
        wrong(
            _grouped_left,
            _grouped_right,
            {"x": 1, "c1": -2, "c2": -1},
            number=INT2,
            left_defined=_left_fits,
            right_defined=_right_fits,
            source="MLIR #140328",
        ),
        but(left_defined=_left_fits),
        note="An addition that must not overflow has no value where it does.",
    ),
    trap(
        "C17",
        wrong(clamp(x, 0, 6), clamp(x, 0, 120), {"x": 100}),
        but(s > 0, left=clamp(x * s, 0, 6), right=s * clamp(x, 0, 6 / s), number=REALS),
        note="The code of 6 at scale 0.05 is 120.",
    ),
    row(
        "AdaptivFloat: x + y is associative",
        rule("AdaptivFloat", (_af + _ag) + _ah, _af + (_ag + _ah), ADAPTIVFLOAT),
        rule("AdaptivFloat", _af + _ag, _ag + _af, ADAPTIVFLOAT),
        note="FlexASR's addition of codes commutes.",
    ),
    row(
        "AdaptivFloat: maximum(x, x) -> x",
        rule("AdaptivFloat", maximum(_af, _af), _af, ADAPTIVFLOAT),
        rule("AdaptivFloat", maximum(_af, _ag), maximum(_ag, _af), ADAPTIVFLOAT),
        note="A maximum of zeros is the code 0x00, also of 0x80 and 0x80. It commutes.",
    ),
    control(
        "floor((x + y * z) / z)",
        rule("control", divide_floor(x + y * z, z), divide_floor(x, z) + y, INTEGERS, condition=z > 0),
    ),
    control("minimum and maximum absorb", rule("control", minimum(x, maximum(x, y)), x)),
)
