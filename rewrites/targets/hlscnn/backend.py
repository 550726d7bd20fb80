"""HLSCNN as a target of the compiler."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from ir_semantics.graph.ir import Node, integers_of, pairs_of
from ir_semantics.graph.types import TensorType
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.places import GROUPS, NORMALISATION, PADS, of_convolution
from rewrites.compiler.offload.reductions import CONVOLVED_MEANS
from rewrites.compiler.offload.rules import AcceleratorRule
from rewrites.compiler.offload.takers import NOT_PLAIN, Taken, Taker, plain_convolution
from rewrites.compiler.offload.unfolding import Unfolding
from rewrites.egraph.pattern import Bindings, Bound, Computed, operator
from rewrites.egraph.rewrite import Rewrite

from .code import WEIGHT_BITS
from .operators import CONV2D


def _stride(axis: int) -> Computed:
    def value(bound: Bindings) -> Hashable:
        strides = bound.values["strides"]
        assert isinstance(strides, tuple), "the pattern binds pairs"
        stride: Hashable = strides[axis]
        return stride

    return Computed(value)


_STRIDES: Final = Bound("strides", lambda value: isinstance(value, tuple) and len(value) == 2)
_PLAIN: Final = {"pads": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 1}
_RULE: Final = AcceleratorRule(
    "convolution without pads on HLSCNN",
    operator("conv", "x", "w", attributes={"strides": _STRIDES, **_PLAIN}),
    operator(CONV2D.name, "x", "w", attributes={"stride_h": _stride(0), "stride_w": _stride(1)}),
)


def _definitions(constants: Constants, flexible: bool) -> Iterator[Rewrite]:
    if flexible:
        yield Unfolding.of("batch_norm", of_convolution, constants)


def _taken(node: Node, types: Sequence[TensorType]) -> Taken:
    plain = plain_convolution(node, types)
    if plain is None:
        return NOT_PLAIN
    node, types = plain
    attributes = dict(node.attributes)
    pads, strides = pairs_of(attributes, "pads"), integers_of(attributes, "strides")
    height, width = (d + before + after for d, (before, after) in zip(types[0].shape[2:], pads, strict=True))
    padded = types[0].with_shape((*types[0].shape[:2], height, width))
    convolution = Node(CONV2D.name, (), (("stride_h", strides[0]), ("stride_w", strides[1])), node.type)
    return convolution, (padded, types[1])


BACKEND: Final = Backend(
    "hlscnn",
    (CONV2D,),
    (_RULE,),
    PADS,
    {**PADS, **GROUPS, **NORMALISATION, **CONVOLVED_MEANS},
    _definitions,
    {"conv": Taker(CONV2D, _taken)},
    {"relu": "compile does not use the relu of HLSCNN's convolution"},
    choices=(WEIGHT_BITS,),
)
"""HLSCNN."""
