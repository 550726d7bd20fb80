"""Rules on numbers in accelerators' instructions that look right and are wrong, and their repairs.

Rows H3 to H21 of the collection of wrong rules: what VTA, HLSCNN and a DPU do with a field or a value, against what a
compiler takes for granted.  Each side is the computation as a term; the models of VTA and HLSCNN themselves are
searched in :mod:`rewrites.findings`.
"""

from __future__ import annotations

from functools import partial

from accel_models.hlscnn.options import HlscnnOptions
from chc.scalar_rules.formats import hlscnn_output, hlscnn_product
from chc.scalar_rules.rule import RuleRow
from ir_semantics.scalars.formats import INTEGERS, integer
from ir_semantics.scalars.terms import Scalar, all_of, cast, clamp, constant, divide_floor, variable

from .traps import but, wrong
from .traps import trap as trap_on

INT8, INT16, INT32 = (integer(w) for w in (8, 16, 32))
PAD = integer(4, signed=False)
"""The fields of VTA's LOAD for padding (VTA ISA, ``VTA_MEMOP_PAD_BIT_WIDTH``)."""
trap = partial(trap_on, usual=INTEGERS)

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
    trap(
        "H3",
        wrong(_kept, _saturated, {"acc": 200}, number=INT32),
        but((constant(-128, INT32) <= _acc) & (_acc <= 127)),
        but(left=cast(clamp(_acc, -128, 127), INT8)),
        note="VTA's STORE keeps the low bits; MIN and MAX before it saturate.",
    ),
    trap(
        "H5",
        wrong(_immediate, _acc + _imm, {"acc": 0, "c": 40000}, number=INT32),
        but((constant(-32768, INT32) <= _imm) & (_imm <= 32767)),
        note="VTA's immediate has 16 bits.",
    ),
    trap(
        "H7",
        wrong(cast(cast(_pad, PAD), _pad.format), _pad, {"p": 16}, number=_pad.format),
        but(_pad <= 15),
        note="VTA's fields for padding have 4 bits.",
    ),
    trap(
        "H11",
        wrong(_y * _w + _x, _y * (_left + _w + _right) + _left + _x, {"x": 0, "y": 1, "w": 1, "left": 1, "right": 0}),
        but(_left.equals(0) & _right.equals(0)),
        note="The published ILA of VTA places a row's elements as if there were no pads; the hardware adds them.",
    ),
    trap(
        "H15",
        wrong(_once, _per_tap, number=_p.format),
        but(_whole(_p, _q, _r)),
        note="HLSCNN rounds the partial sum to 16 bits after every tap. It holds where no product needs rounding.",
    ),
    trap(
        "H19",
        wrong(_k - 1 - _n, _n, {"k": 3, "n": 0}),
        but(_k.equals(_n * 2 + 1)),
        note="The DPU's field for padding at the end holds k - 1 less the number of padded elements.",
    ),
    trap(
        "H21",
        wrong(_wrapped, _i, {"i": 2048, "size": 2048}),
        but((constant(0, INTEGERS) <= _i) & (_i < _size)),
        note="An index beyond a scratchpad of VTA begins again in one design, and reads what lies behind in another.",
    ),
)
"""Wrong rules with their repairs."""
