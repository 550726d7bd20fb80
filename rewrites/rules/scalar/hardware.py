"""Rules on numbers in accelerators' instructions that look right and are wrong, and their repairs.

Rows H3 to H21 of the collection of wrong rules: what VTA, HLSCNN and a DPU do with a field or a value, against what a
compiler takes for granted.  Each side is the computation as a term; the models of VTA and HLSCNN themselves are
searched in :mod:`rewrites.findings`.
"""

from __future__ import annotations

from accel_models.hlscnn.options import HlscnnOptions
from chc.scalar_rules.formats import hlscnn_output, hlscnn_product
from chc.scalar_rules.rule import RuleRow, row, rules_on
from ir_semantics.scalars.formats import INTEGERS, integer
from ir_semantics.scalars.terms import Scalar, all_of, cast, clamp, constant, divide_floor, variable

INT8, INT16, INT32 = (integer(w) for w in (8, 16, 32))
PAD = integer(4, signed=False)
"""The fields of VTA's LOAD for padding (VTA ISA, ``VTA_MEMOP_PAD_BIT_WIDTH``)."""
rule = rules_on(INTEGERS)

_acc = variable("acc", INT32)
_imm, _pad = variable("c", INT32), variable("p", integer(8, signed=False))
_x, _y, _w, _left, _right = (variable(n, INTEGERS) for n in ("x", "y", "w", "left", "right"))
_k, _n, _i, _size = (variable(n, INTEGERS) for n in ("k", "n", "i", "size"))
_p, _q, _r = (variable(n, hlscnn_product(HlscnnOptions())) for n in ("p", "q", "r"))
_stored = hlscnn_output(HlscnnOptions())
_wrapped = _i - divide_floor(_i, _size) * _size
_once = cast((_p + _q) + _r, _stored)
_per_tap = (cast(_p, _stored) + cast(_q, _stored)) + cast(_r, _stored)


def _whole(*products: Scalar) -> Scalar:
    return all_of(cast(cast(p, _stored), p.format).equals(p) for p in products)


_kept = cast(_acc, INT8)
_saturated = cast(cast(_acc, integer(8, overflow="saturate")), INT8)
_immediate = _acc + cast(cast(_imm, INT16), INT32)

ROWS: tuple[RuleRow, ...] = (
    row(
        "H3",
        rule("H3", _kept, _saturated, INT32, {"acc": 200}),
        rule("H3", _kept, _saturated, INT32, condition=(constant(-128, INT32) <= _acc) & (_acc <= 127)),
        rule("H3", cast(clamp(_acc, -128, 127), INT8), _saturated, INT32),
        note="VTA's STORE keeps the low bits; MIN and MAX before it saturate.",
    ),
    row(
        "H5",
        rule("H5", _immediate, _acc + _imm, INT32, {"acc": 0, "c": 40000}),
        rule("H5", _immediate, _acc + _imm, INT32, condition=(constant(-32768, INT32) <= _imm) & (_imm <= 32767)),
        note="VTA's immediate has 16 bits.",
    ),
    row(
        "H7",
        rule("H7", cast(cast(_pad, PAD), _pad.format), _pad, _pad.format, {"p": 16}),
        rule("H7", cast(cast(_pad, PAD), _pad.format), _pad, _pad.format, condition=_pad <= 15),
        note="VTA's fields for padding have 4 bits.",
    ),
    row(
        "H11",
        rule(
            "H11",
            _y * _w + _x,
            _y * (_left + _w + _right) + _left + _x,
            INTEGERS,
            {"x": 0, "y": 1, "w": 1, "left": 1, "right": 0},
        ),
        rule(
            "H11",
            _y * _w + _x,
            _y * (_left + _w + _right) + _left + _x,
            INTEGERS,
            condition=_left.equals(0) & _right.equals(0),
        ),
        note="The published ILA of VTA places a row's elements as if there were no pads; the hardware adds them.",
    ),
    row(
        "H15",
        rule("H15", _once, _per_tap, _p.format),
        rule("H15", _once, _per_tap, _p.format, condition=_whole(_p, _q, _r)),
        note="HLSCNN rounds the partial sum to 16 bits after every tap. It holds where no product needs rounding.",
    ),
    row(
        "H19",
        rule("H19", _k - 1 - _n, _n, INTEGERS, {"k": 3, "n": 0}),
        rule("H19", _k - 1 - _n, _n, INTEGERS, condition=_k.equals(_n * 2 + 1)),
        note="The DPU's field for padding at the end holds k - 1 less the number of padded elements.",
    ),
    row(
        "H21",
        rule("H21", _wrapped, _i, INTEGERS, {"i": 2048, "size": 2048}),
        rule("H21", _wrapped, _i, INTEGERS, condition=(constant(0, INTEGERS) <= _i) & (_i < _size)),
        note="An index beyond a scratchpad of VTA begins again in one design, and reads what lies behind in another.",
    ),
)
"""Wrong rules with their repairs."""
