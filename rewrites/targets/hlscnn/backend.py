"""HLSCNN as a target of the compiler."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from typing import Final

from ir_semantics.graph.ir import Node, integers_of, pairs_of
from ir_semantics.graph.types import TensorType
from rewrites.compiler.codegen import implementable
from rewrites.compiler.codegen.parts import most_that_fit
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.hardware import Hardware
from rewrites.compiler.offload.places import CONVOLVED_PRODUCTS, GROUPS, NORMALISATION, PADS, of_convolution
from rewrites.compiler.offload.reductions import CONVOLVED_MEANS, LANES, exact_share, inner_parts
from rewrites.compiler.offload.rules import AcceleratorRule
from rewrites.compiler.offload.takers import NOT_PLAIN, Taken, Taker, plain_convolution
from rewrites.compiler.offload.unfolding import Unfolding, steps
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
        yield from steps(constants)


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


def _of_pixels(rows: int, inner: int, outputs: int) -> tuple[Node, tuple[TensorType, TensorType]]:
    """A product of matrices as a convolution: rows as pixels, columns as filters."""
    image, filters, result = (
        TensorType("float32", shape) for shape in ((1, inner, rows, 1), (outputs, inner, 1, 1), (1, outputs, rows, 1))
    )
    return Node(CONV2D.name, (), (("stride_h", 1), ("stride_w", 1)), result), (image, filters)


def _product(node: Node, types: Sequence[TensorType]) -> Taken:
    rows, inner = types[0].shape[-2:]
    return _of_pixels(rows, inner, types[1].shape[-1])


@cache
def _most_channels() -> int:
    """The most channels of a convolution of pixels of which one fits."""
    return most_that_fit(1 << 12, lambda n: implementable(*_of_pixels(1, n * LANES, 1)) is None) * LANES


def _added(node: Node, types: Sequence[TensorType]) -> Taken:
    """Means along the second of three axes are convolutions by 1 x 1."""
    shape = types[0].shape
    if node.operator == "mean" and node.attribute("axes") == (1,) and len(shape) == 3:
        return None if exact_share(shape[1]) else f"weights of HLSCNN have no code for 1/{shape[1]}"
    return (
        "HLSCNN adds along channels: the host would bring what is added there, and move more elements than it adds, or "
        "send a program for each image"
    )


HARDWARE: Final = Hardware(
    "HLSCNN",
    frozenset({"relu"}),
    "computes it on the sums of a convolution only, to which it adds one number for all filters: hlscnn.conv2d ends "
    "before both, and behind a bias for each filter relu would be a convolution of its own",
)
"""A convolution ends with one bias for all filters, and relu."""

BACKEND: Final = Backend(
    "hlscnn",
    (CONV2D,),
    (_RULE,),
    PADS,
    {
        **PADS,
        **GROUPS,
        **NORMALISATION,
        **CONVOLVED_MEANS,
        **CONVOLVED_PRODUCTS,
        **inner_parts(_most_channels),
    },
    _definitions,
    {
        "conv": Taker(CONV2D, _taken),
        "matmul": Taker(CONV2D, _product),
        **dict.fromkeys(("mean", "reduce_sum", "avg_pool"), Taker(CONV2D, _added)),
    },
    HARDWARE,
    choices=(WEIGHT_BITS,),
)
"""HLSCNN."""
