"""Tensor operators of the graph IR: the operators of :mod:`ir_semantics.tensors` that rules are proved about.

Attributes are named as the parameters there, and given to them.  All of them are static: extents, axes, steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ir_semantics.tensors.operators import broadcast, concat, pad, reshape, reverse, slice_, transpose
from ir_semantics.tensors.reductions import avg_pool, conv, cumsum, matmul, max_pool, mean, patches, reduce
from ir_semantics.tensors.selection import arg_extremum, gather, gather_elements
from ir_semantics.tensors.terms import Tensor

from .ir import Attributes, integer_of, integers_of, pairs_of
from .operator import Types, tensor
from .types import GraphError


def _pad(x: Tensor, value: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    if value.rank:
        raise GraphError("the second operand of pad must be a scalar, with which it fills")
    return pad(x, before, after, value)


_WINDOWS = {"strides": integers_of, "pads": pairs_of, "dilations": integers_of}


def _truth_of(attributes: Attributes, name: str) -> bool:
    return bool(attributes.get(name))


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
        lambda x, shape, axes: broadcast(x, shape, axes),
        attributes={"shape": integers_of, "axes": integers_of},
        doc="Repeats the operand along new axes: its axis number j becomes axis axes[j] of shape.",
    ),
    tensor(
        "reshape",
        lambda x, shape: reshape(x, *shape),
        attributes={"shape": integers_of},
        doc="The same elements in row-major order under another shape.",
    ),
    tensor(
        "transpose",
        transpose,
        attributes={"permutation": integers_of},
        doc="Axis number j of the result is axis permutation[j] of the operand.",
    ),
    tensor(
        "slice",
        slice_,
        attributes=dict.fromkeys(("start", "stop", "stride"), integers_of),
        doc="Elements start, start + stride, ... before stop along every axis.",
    ),
    tensor(
        "concat",
        lambda *parts, axis: concat(axis, *parts),
        arity=range(1, 1 << 16),
        dtype=_alike,
        attributes={"axis": integer_of},
        doc="The operands one after the other along an axis.",
    ),
    tensor(
        "pad",
        _pad,
        arity=2,
        dtype=_alike,
        attributes={"before": integers_of, "after": integers_of},
        doc="before and after elements around every axis, equal to the scalar that is the second operand.",
    ),
    tensor(
        "reverse",
        lambda x, axes: reverse(x, *axes),
        attributes={"axes": integers_of},
        doc="The elements in opposite order along axes.",
    ),
    tensor(
        "gather",
        gather,
        arity=2,
        dtype=_indexed,
        attributes={"axis": integer_of},
        doc="The parts along an axis at indices, which must lie in 0 .. extent - 1.",
    ),
    tensor(
        "gather_elements",
        gather_elements,
        arity=2,
        dtype=_indexed,
        attributes={"axis": integer_of},
        doc="The elements whose subscript along an axis is replaced by an index, which must lie in 0 .. extent - 1.",
    ),
    *(
        tensor(
            f"reduce_{op}",
            partial(reduce, op),
            kinds="number" if op == "sum" else "any",
            attributes={"axes": integers_of},
            doc=f"The {op} along axes, which disappear; of nothing, {unit}.",
        )
        for op, unit in (("sum", "0"), ("max", "the least value"), ("min", "the greatest value"))
    ),
    tensor(
        "mean",
        mean,
        kinds="float",
        attributes={"axes": integers_of},
        doc="The sum along axes, which disappear, divided by the number of elements.",
    ),
    tensor(
        "cumsum",
        cumsum,
        kinds="number",
        attributes={"axis": integer_of},
        doc="The sum of all elements up to and including this one along an axis.",
    ),
    *(
        tensor(
            f"arg_{op}",
            partial(arg_extremum, op),
            kinds="number",
            dtype=_index,
            attributes={"axis": integer_of, "last": _truth_of},
            doc=f"The first (with last: the last) position of the {op} along an axis, which disappears.",
        )
        for op in ("max", "min")
    ),
    tensor(
        "matmul",
        matmul,
        arity=2,
        kinds="number",
        dtype=_alike,
        doc="The product of matrices, for every index of the axes before the last two.",
    ),
    tensor(
        "conv",
        conv,
        arity=2,
        kinds="number",
        dtype=_alike,
        attributes=_WINDOWS | {"groups": integer_of},
        doc="Cross-correlation of images [batch, channels, ...] with kernels [outputs, channels / groups, ...], with "
        "strides, dilations, groups, and pads of zeros.",
    ),
    tensor(
        "patches",
        patches,
        kinds="number",
        attributes=_WINDOWS | {"kernel": integers_of},
        doc="Every window of images: [batch, channels, kernel ..., windows ...]; pads are zeros.",
    ),
    tensor(
        "max_pool",
        max_pool,
        kinds="number",
        attributes=_WINDOWS | {"kernel": integers_of},
        doc="The maximum of every window; pads are not counted.",
    ),
    tensor(
        "avg_pool",
        avg_pool,
        kinds="float",
        attributes=_WINDOWS | {"kernel": integers_of, "count_include_pad": _truth_of},
        doc="The mean of every window; pads are counted (as zeros) only with count_include_pad.",
    ),
)
"""The tensor operators, in the order of registration."""
