"""Tensor terms as operations of MLIR, by the operator of the term."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, TypeAlias

from ir_semantics.mlir import ir
from ir_semantics.tensors.index import index
from ir_semantics.tensors.operators import pad
from ir_semantics.tensors.terms import Tensor

from .builder import F32, I64, INDEX, Builder, NoFunction, dense_integers, integers, region, tensor_type
from .operators import STARTS

Writer: TypeAlias = Callable[[Builder, Tensor, Sequence[ir.Value], Mapping[str, Any]], ir.Value]
"""Writes a term whose operands are written; the last argument are its attributes."""


def _map(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    return b.elementwise(values["term"], dict(zip(values["names"], operands, strict=True)), x.shape)


def _fill(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    return b.splat(b.number(values["value"]), x.shape)


def _moved(b: Builder, x: Tensor, name: str, source: ir.Value, **numbers: ir.Attribute) -> ir.Value:
    body = region([F32, F32], "linalg.yield", lambda _, arguments: arguments[0])
    return b.add(name, [source, b.empty(x.shape)], tensor_type(x.shape), body, **numbers)


def _broadcast(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    added = [k for k in range(x.rank) if k not in values["axes"]]
    return _moved(b, x, "linalg.broadcast", operands[0], dimensions=integers(added))


def _transpose(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    return _moved(b, x, "linalg.transpose", operands[0], permutation=integers(values["permutation"]))


def _reverse(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    (value,) = operands
    for axis in values["axes"]:
        value = b.add("tosa.reverse", [value], value.type, axis=ir.IntegerAttribute(axis, ir.IntegerType(32)))
    return value


def _pad(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    low, before = b.mixed([index(n) for n in values["before"]])
    high, after = b.mixed([index(n) for n in values["after"]])
    around = b.add("tensor.extract", [operands[1]], F32) if len(operands) == 2 else b.number(values["value"])
    body = region([INDEX] * x.rank, "tensor.yield", lambda _, arguments: around)
    sizes = {"static_low": integers(low), "static_high": integers(high)}
    groups = integers([1, len(before), len(after)], 32)
    parts = [operands[0], *before, *after]
    return b.add("tensor.pad", parts, tensor_type(x.shape), body, operandSegmentSizes=groups, **sizes)


def _slice(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    starts, strides = ([index(n) for n in values[k]] for k in ("start", "stride"))
    if any(n.constant is None for n in strides):
        raise NoFunction("a stride that is no constant has no place in a rule from MLIR")
    groups = [b.mixed(numbers) for numbers in (starts, x.shape, strides)]
    names = ("static_offsets", "static_sizes", "static_strides")
    named = {name: integers(static) for name, (static, _) in zip(names, groups, strict=True)}
    counts = integers([1, *(len(dynamic) for _, dynamic in groups)], 32)
    parts = [operands[0], *(value for _, dynamic in groups for value in dynamic)]
    return b.add("tensor.extract_slice", parts, tensor_type(x.shape), operandSegmentSizes=counts, **named)


def _concat(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    return b.add("tensor.concat", operands, tensor_type(x.shape), dim=ir.IntegerAttribute(values["axis"], I64))


def _reshape(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    sizes = b.add("tensor.from_elements", [b.size(n) for n in x.shape], ir.TensorType((x.rank,), INDEX))
    return b.add("tensor.reshape", [operands[0], sizes], tensor_type(x.shape))


def _reduce(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    if values["initial"] != "none":
        raise NoFunction("a reduction that starts with a number of its own has no place in a rule from MLIR")
    word = x.operator.removeprefix("reduce_")
    op = next(op for op, (name, _) in STARTS.items() if name == word)
    into = b.splat(b.number(STARTS[op][1]), x.shape)
    body = region([F32, F32], "linalg.yield", lambda inner, a: inner.scalar(op, [a[0], a[1]]))
    return b.add("linalg.reduce", [operands[0], into], tensor_type(x.shape), body, dimensions=integers(values["axes"]))


def _matmul(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    names = {2: "linalg.matmul", 3: "linalg.batch_matmul"}
    if x.rank not in names:
        raise NoFunction(f"products of matrices of rank {x.rank} have no operator")
    return _products(b, x, names[x.rank], operands)


def _products(b: Builder, x: Tensor, name: str, operands: Sequence[ir.Value], **more: ir.Attribute) -> ir.Value:
    into = b.splat(b.number(STARTS["add"][1]), x.shape)
    body = region([F32] * 3, "linalg.yield", lambda i, a: i.scalar("add", [a[2], i.scalar("mul", [a[0], a[1]])]))
    groups = integers([2, 1], 32)
    return b.add(name, [*operands, into], tensor_type(x.shape), body, operandSegmentSizes=groups, **more)


def _dot(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    return _products(b, x, "linalg.matvec", operands)


def _conv(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    names = {3: "linalg.conv_1d_ncw_fcw", 4: "linalg.conv_2d_nchw_fchw"}
    if x.rank not in names or not values["correlate"] or index(values["groups"]) != index(1):
        raise NoFunction("convolutions must have one group, one or two spatial axes, and kernels that are not reversed")
    image = _around(b, x, operands[0], values, 0)
    return _products(b, x, names[x.rank], [image, operands[1]], **_windows(values))


def _max_pool(b: Builder, x: Tensor, operands: Sequence[ir.Value], values: Mapping[str, Any]) -> ir.Value:
    if x.rank != 4 or "outside" in values:
        raise NoFunction("max pooling must have two spatial axes, and nothing around the image")
    image = _around(b, x, operands[0], values, -inf)
    window = b.empty(tuple(map(index, values["kernel"])))
    into = b.splat(b.number(-inf), x.shape)
    body = region([F32] * 3, "linalg.yield", lambda inner, a: inner.scalar("maximum", [a[2], a[0]]))
    more = {"operandSegmentSizes": integers([2, 1], 32), **_windows(values)}
    return b.add("linalg.pooling_nchw_max", [image, window, into], tensor_type(x.shape), body, **more)


def _around(b: Builder, x: Tensor, image: ir.Value, values: Mapping[str, Any], value: float) -> ir.Value:
    """The image of windows with what is around it."""
    amounts = [(index(low), index(high)) for low, high in values["pads"]]
    if all(n == index(0) for pair in amounts for n in pair):
        return image
    low, high = ([index(0)] * 2 + [pair[k] for pair in amounts] for k in (0, 1))
    padded = pad(x.operands[0], low, high, value)
    return _pad(b, padded, [image], dict(padded.values))


def _windows(values: Mapping[str, Any]) -> dict[str, ir.Attribute]:
    numbers: dict[str, ir.Attribute] = {}
    for name in ("strides", "dilations"):
        known = [index(n).constant for n in values.get(name, [1] * len(values["kernel"]))]
        if None in known:
            raise NoFunction(f"{name} of windows must be constants")
        numbers[name] = dense_integers([n for n in known if n is not None])
    return numbers


OPERATORS: Mapping[str, Writer] = {
    "map": _map,
    "fill": _fill,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reverse": _reverse,
    "pad": _pad,
    "slice": _slice,
    "concat": _concat,
    "reshape": _reshape,
    **{f"reduce_{name}": _reduce for name, _ in STARTS.values()},
    "matmul": _matmul,
    "dot": _dot,
    "conv": _conv,
    "max_pool": _max_pool,
}
"""By name."""
