"""Rules on tensors about the padding of accelerators: wrong ones and their repairs."""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both, equal
from ir_semantics.tensors.operators import expand_scalar, pad
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import IMAGE, MET, P, avg_2d
from .words import add, repaired_over_reals, sub, wrong, wrong_over_reals

ZERO_POINT = input_("z")


def _padded(x: Tensor, value: Tensor | int) -> Tensor:
    return pad(x, [0, 0, P, P], [0, 0, P, P], value)


_FROM_ZERO = sub(IMAGE, expand_scalar(ZERO_POINT, IMAGE))
_AROUND_ZERO = _padded(_FROM_ZERO, 0)

RULES: tuple[TensorRule, ...] = (
    wrong(
        "pad with a zero point as VTA pads",
        _padded(IMAGE, ZERO_POINT),
        _padded(IMAGE, 0),
        row="H9",
        note="VTA's LOAD pads with 0 only.",
    ),
    repaired_over_reals(
        "pad with a zero point as VTA pads, from the zero point",
        _padded(IMAGE, ZERO_POINT),
        add(_AROUND_ZERO, expand_scalar(ZERO_POINT, _AROUND_ZERO)),
        row="H9",
    ),
    wrong_over_reals(
        "average pooling that leaves pads out as the DPU divides",
        avg_2d(IMAGE),
        avg_2d(IMAGE, count_include_pad=True),
        MET,
        row="H17",
        note="The DPU always divides by the number of elements of the window.",
    ),
    repaired_over_reals(
        "average pooling without pads as the DPU divides",
        avg_2d(IMAGE),
        avg_2d(IMAGE, count_include_pad=True),
        both(MET, equal(P, 0)),
        row="H17",
    ),
)
