"""HLSCNN's operator, with an exact meaning: ``hlscnn.conv2d`` of x [N, C, H, W] and w [F, C, kh, kw], float32, with the
attributes ``stride_h`` and ``stride_w``, is the convolution [N, F, OH, OW] without pads and bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from accel_models.hlscnn.layout import LANES
from ir_semantics.graph.ir import Attributes, integer_of
from ir_semantics.graph.operator import Assembly
from ir_semantics.tensors.conditions import lt
from ir_semantics.tensors.index import IndexLike, size
from ir_semantics.tensors.operators import pad
from ir_semantics.tensors.terms import input_
from rewrites.claims.joints.joint import Joint
from rewrites.claims.theorems import machines as bounds
from rewrites.compiler.codegen.interface import Options
from rewrites.compiler.codegen.operators import AcceleratorOperator, require_fit, shapes_of
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.mappings.packing import packed
from rewrites.rules.tensor.boxes import CONVOLUTION_IN_BOXES

from .code import WEIGHT_BITS, Convolution


def _conv2d(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """Cross-correlation of images with filters, without pads, dilations, groups and bias."""
    (_, channels, _, _), w = shapes_of(b, "hlscnn.conv2d", of, 4, 4)
    require_fit(b, "hlscnn.conv2d", of, w[1] == channels, "x [N, C, H, W] and w [F, C, kh, kw]")
    strides = (integer_of(a, "stride_h"), integer_of(a, "stride_w"))
    return b.add("conv", *of, strides=strides, pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1)


def _by_width(attributes: Mapping[str, object], options: Options) -> tuple[MappingClaim, ...]:
    return (CONVOLUTIONS[WEIGHT_BITS.of(options)],)


# -- how the mappings are called for it -------------------------------------------------------------------------------

C, H, W, F, KH, KW, SH, SW = map(
    size,
    ("channels", "height", "width", "filters", "kernel_rows", "kernel_columns", "row_stride", "column_stride"),
)
BLOCKS = (C + LANES - 1) // LANES
IMAGE, FILTERS = input_("x", 1, C, H, W), input_("w", F, C, KH, KW)
PADS: Final[Sequence[IndexLike]] = [0, BLOCKS * LANES - C, 0, 0]
TENSORS: Final = {
    16: {"host_x": IMAGE, "host_w": FILTERS},
    8: {"host_x": pad(IMAGE, [0] * 4, PADS), "host_w": packed(FILTERS, LANES)},
}
"""What the host puts into tensors: with weights of 8 bits whole blocks of channels, a tap's beside each other."""
GIVEN: Final[Mapping[str, IndexLike]] = {
    "bias": 0,
    "relu": 0,
    "rows": (H - KH) // SH + 1,
    "columns": (W - KW) // SW + 1,
}
DOMAIN: Final = lt(C + LANES - 1, 1 << 32)
"""Blocks of channels can be counted in words."""

CONV2D: Final = AcceleratorOperator(
    "hlscnn.conv2d",
    "HLSCNN's convolution, without pads and bias.",
    range(2, 3),
    expand=_conv2d,
    attributes=frozenset({"stride_h", "stride_w"}),
    mappings=tuple(CONVOLUTIONS.values()),
    selected=_by_width,
    code=Convolution,
    joints=tuple(
        Joint(m, (IMAGE, FILTERS), TENSORS[bits], GIVEN, {"stride_h": SH, "stride_w": SW}, domain=DOMAIN)
        for bits, m in CONVOLUTIONS.items()
    ),
    bounds={m: (bounds.CONVOLUTIONS[bits],) for bits, m in CONVOLUTIONS.items()},
    splits=(CONVOLUTION_IN_BOXES,),
)
