"""Tensor operators of the graph IR: the operators of :mod:`ir_semantics.tensors` that rules are proved about.

Attributes are named as the parameters there.  All of them are static: extents, axes, steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ir_semantics.tensors.operators import broadcast, concat, pad, reshape, reverse, slice_, transpose
from ir_semantics.tensors.reductions import avg_pool, conv, cumsum, matmul, max_pool, mean, patches, reduce
from ir_semantics.tensors.selection import arg_extremum, gather, gather_elements
from ir_semantics.tensors.terms import Tensor

from .ir import Attributes, integer_of, integers_of, pairs_of
from .operator import Types, tensor
from .types import GraphError

Operands = Sequence[Tensor]


def _pad(of: Operands, a: Attributes) -> Tensor:
    if of[1].rank:
        raise GraphError("the second operand of pad must be a scalar, with which it fills")
    return pad(of[0], integers_of(a, "before"), integers_of(a, "after"), of[1])


def _conv(of: Operands, a: Attributes) -> Tensor:
    strides, dilations = integers_of(a, "strides"), integers_of(a, "dilations")
    pads, groups = pairs_of(a, "pads"), integer_of(a, "groups")
    return conv(of[0], of[1], strides=strides, pads=pads, dilations=dilations, groups=groups)


def _max_pool(of: Operands, a: Attributes) -> Tensor:
    strides, dilations = integers_of(a, "strides"), integers_of(a, "dilations")
    return max_pool(of[0], integers_of(a, "kernel"), strides=strides, pads=pairs_of(a, "pads"), dilations=dilations)


def _avg_pool(of: Operands, a: Attributes) -> Tensor:
    return avg_pool(
        of[0],
        integers_of(a, "kernel"),
        strides=integers_of(a, "strides"),
        pads=pairs_of(a, "pads"),
        dilations=integers_of(a, "dilations"),
        count_include_pad=bool(a.get("count_include_pad")),
    )


def _patches(of: Operands, a: Attributes) -> Tensor:
    strides, dilations = integers_of(a, "strides"), integers_of(a, "dilations")
    return patches(of[0], integers_of(a, "kernel"), strides=strides, pads=pairs_of(a, "pads"), dilations=dilations)


def _index(types: Types, attributes: Attributes) -> str:
    return "int64"


def _indexed(types: Types, attributes: Attributes) -> str:
    if types[1].kind != "int":
        raise GraphError(f"indices must be integers, not {types[1]}; cast them")
    return types[0].dtype


def _alike(types: Types, attributes: Attributes) -> str:
    if any(t.dtype != types[0].dtype for t in types):
        raise GraphError(f"operands must have elements of one type, not {', '.join(map(str, types))}; cast them")
    return types[0].dtype


TENSOR_OPERATORS = (
    tensor(
        "broadcast",
        lambda of, a: broadcast(of[0], integers_of(a, "shape"), integers_of(a, "axes")),
        attributes="axes shape",
        doc="Repeats the operand along new axes: its axis number j becomes axis axes[j] of shape.",
    ),
    tensor(
        "reshape",
        lambda of, a: reshape(of[0], *integers_of(a, "shape")),
        attributes="shape",
        doc="The same elements in row-major order under another shape.",
    ),
    tensor(
        "transpose",
        lambda of, a: transpose(of[0], integers_of(a, "permutation")),
        attributes="permutation",
        doc="Axis number j of the result is axis permutation[j] of the operand.",
    ),
    tensor(
        "slice",
        lambda of, a: slice_(of[0], integers_of(a, "start"), integers_of(a, "stop"), integers_of(a, "stride")),
        attributes="start stop stride",
        doc="Elements start, start + stride, ... before stop along every axis.",
    ),
    tensor(
        "concat",
        lambda of, a: concat(integer_of(a, "axis"), *of),
        arity=range(1, 1 << 16),
        dtype=_alike,
        attributes="axis",
        doc="The operands one after the other along an axis.",
    ),
    tensor(
        "pad",
        _pad,
        arity=2,
        dtype=_alike,
        attributes="before after",
        doc="before and after elements around every axis, equal to the scalar that is the second operand.",
    ),
    tensor(
        "reverse",
        lambda of, a: reverse(of[0], *integers_of(a, "axes")),
        attributes="axes",
        doc="The elements in opposite order along axes.",
    ),
    tensor(
        "gather",
        lambda of, a: gather(of[0], of[1], integer_of(a, "axis")),
        arity=2,
        dtype=_indexed,
        attributes="axis",
        doc="The parts along an axis at indices, which must lie in 0 .. extent - 1.",
    ),
    tensor(
        "gather_elements",
        lambda of, a: gather_elements(of[0], of[1], integer_of(a, "axis")),
        arity=2,
        dtype=_indexed,
        attributes="axis",
        doc="The elements whose subscript along an axis is replaced by an index, which must lie in 0 .. extent - 1.",
    ),
    *(
        tensor(
            f"reduce_{op}",
            lambda of, a, op=op: reduce(op, of[0], integers_of(a, "axes")),  # type: ignore[misc]
            kinds="number" if op == "sum" else "any",
            attributes="axes",
            doc=f"The {op} along axes, which disappear; of nothing, {unit}.",
        )
        for op, unit in (("sum", "0"), ("max", "the least value"), ("min", "the greatest value"))
    ),
    tensor(
        "mean",
        lambda of, a: mean(of[0], integers_of(a, "axes")),
        kinds="float",
        attributes="axes",
        doc="The sum along axes, which disappear, divided by the number of elements.",
    ),
    tensor(
        "cumsum",
        lambda of, a: cumsum(of[0], integer_of(a, "axis")),
        kinds="number",
        attributes="axis",
        doc="The sum of all elements up to and including this one along an axis.",
    ),
    *(
        tensor(
            f"arg_{op}",
            lambda of, a, op=op: arg_extremum(op, of[0], integer_of(a, "axis"), bool(a["last"])),  # type: ignore[misc]
            kinds="number",
            dtype=_index,
            attributes="axis last",
            doc=f"The first (with last: the last) position of the {op} along an axis, which disappears.",
        )
        for op in ("max", "min")
    ),
    tensor(
        "matmul",
        lambda of, a: matmul(*of),
        arity=2,
        kinds="number",
        dtype=_alike,
        doc="The product of matrices, for every index of the axes before the last two.",
    ),
    tensor(
        "conv",
        _conv,
        arity=2,
        kinds="number",
        dtype=_alike,
        attributes="strides pads dilations groups",
        doc="Cross-correlation of images [batch, channels, ...] with kernels [outputs, channels / groups, ...], with "
        "strides, dilations, groups, and pads of zeros.",
    ),
    tensor(
        "patches",
        _patches,
        kinds="number",
        attributes="kernel strides pads dilations",
        doc="Every window of images: [batch, channels, kernel ..., windows ...]; pads are zeros.",
    ),
    tensor(
        "max_pool",
        _max_pool,
        kinds="number",
        attributes="kernel strides pads dilations",
        doc="The maximum of every window; pads are not counted.",
    ),
    tensor(
        "avg_pool",
        _avg_pool,
        kinds="float",
        attributes="kernel strides pads dilations count_include_pad",
        doc="The mean of every window; pads are counted (as zeros) only with count_include_pad.",
    ),
)
"""The tensor operators, in the order of registration."""
