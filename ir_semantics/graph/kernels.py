"""NumPy functions for tensor operators: the same results as their index comprehensions, faster.

Each takes the operands' values, the attributes and the result's type.  Tests compare every function with the
comprehension: equal on data where floating-point sums are exact.  Sums of arbitrary floats are added in another order,
and a sum that is zero may have another sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .ir import Attributes, integer_of, integers_of, pairs_of
from .types import Array, GraphError, TensorType

Operands = Sequence[Array]


def _broadcast(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    axes = integers_of(attributes, "axes")
    shape = [1] * result.rank
    for j, a in enumerate(axes):
        shape[a] = of[0].shape[j]
    return np.broadcast_to(of[0].reshape(shape), result.shape)


def _reshape(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return of[0].reshape(result.shape)


def _transpose(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return of[0].transpose(integers_of(attributes, "permutation"))


def _slice(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    parts = zip(*(integers_of(attributes, n) for n in ("start", "stop", "stride")), strict=True)
    return of[0][tuple(slice(*p) for p in parts)]


def _concat(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.concatenate(of, axis=integer_of(attributes, "axis"))


def _pad(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    padded = np.empty(result.shape, of[0].dtype)
    padded[...] = of[1]
    before = integers_of(attributes, "before")
    padded[tuple(slice(b, b + d) for b, d in zip(before, of[0].shape, strict=True))] = of[0]
    return padded


def _reverse(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.flip(of[0], integers_of(attributes, "axes"))


def _inside(indices: Array, extent: int) -> Array:
    if indices.size and not (indices.min() >= 0 and indices.max() < extent):
        raise GraphError(
            f"indices must be in 0 .. {extent - 1}, not {indices.min()} .. {indices.max()}; correct the model's input"
        )
    return indices.astype(np.int64)


def _gather(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    axis = integer_of(attributes, "axis")
    return np.take(of[0], _inside(of[1], of[0].shape[axis]), axis=axis)


def _gather_elements(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    axis = integer_of(attributes, "axis")
    grid: list[Any] = list(np.ogrid[tuple(slice(d) for d in of[1].shape)])
    grid[axis] = _inside(of[1], of[0].shape[axis])
    return np.asarray(of[0][tuple(grid)])


def _sum(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.asarray(np.add.reduce(of[0], axis=integers_of(attributes, "axes"), dtype=of[0].dtype))


def _extremum(which: str) -> Any:
    def kernel(of: Operands, attributes: Attributes, result: TensorType) -> Array:
        kind, least = of[0].dtype, which == "max"
        if kind.kind == "f":
            unit: Any = kind.type(-np.inf if least else np.inf)
        elif kind.kind == "b":
            unit = np.bool_(not least)
        else:
            unit = np.iinfo(kind).min if least else np.iinfo(kind).max
        function: Any = np.maximum if least else np.minimum
        axes = integers_of(attributes, "axes")
        reduced = np.asarray(function.reduce(of[0], axis=axes, initial=unit))
        if kind.kind == "f" and reduced.size and not np.all(reduced):
            # -0 < +0, which NumPy leaves open: where the extremum is zero, look for the sign that decides
            sign = np.signbit(of[0]) & (of[0] == 0)
            zeros = (of[0] == 0) & ~sign
            positive = np.any(zeros, axis=axes) if least else ~np.any(sign, axis=axes)
            reduced = np.where(reduced == 0, np.where(positive, kind.type(0.0), kind.type(-0.0)), reduced)
        return reduced.astype(kind)

    return kernel


def _mean(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    axes = integers_of(attributes, "axes")
    count = int(np.prod([of[0].shape[a] for a in axes], dtype=np.int64))
    return np.asarray(_sum(of, attributes, result) / of[0].dtype.type(count))


def _cumsum(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.cumsum(of[0], axis=integer_of(attributes, "axis"), dtype=of[0].dtype)


def _arg(which: str) -> Any:
    def kernel(of: Operands, attributes: Attributes, result: TensorType) -> Array:
        axis, last, x = integer_of(attributes, "axis"), bool(attributes["last"]), of[0]
        function = np.argmax if which == "max" else np.argmin
        if x.dtype.kind == "f" and np.isnan(x).any():
            raise GraphError(f"arg_{which} must be given numbers, not NaN; no position is that of an extremum")
        if last:
            return np.asarray(x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis))
        return np.asarray(function(x, axis=axis))

    return kernel


def _matmul(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.matmul(
        *(o if o.flags.c_contiguous or o.T.flags.c_contiguous else np.ascontiguousarray(o) for o in of[:2])
    )


def _windows(x: Array, attributes: Attributes, filler: Any) -> tuple[Array, tuple[int, ...]]:
    """A view [batch, channels, outputs ..., kernel ...] of every window, and the number of outputs along each axis."""
    kernel = integers_of(attributes, "kernel")
    strides, dilations = integers_of(attributes, "strides"), integers_of(attributes, "dilations")
    around = pairs_of(attributes, "pads")
    if any(b or a for b, a in around):
        padded = np.full((*x.shape[:2], *(d + b + a for d, (b, a) in zip(x.shape[2:], around, strict=True))), filler)
        inner = tuple(slice(b, b + d) for d, (b, _) in zip(x.shape[2:], around, strict=True))
        padded[(slice(None), slice(None), *inner)] = x
        x = padded
    spans = [(k - 1) * e + 1 for k, e in zip(kernel, dilations, strict=True)]
    axes = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axis=axes)
    cut = [slice(None), slice(None), *(slice(None, None, s) for s in strides)]
    view = view[(*cut, *(slice(None, None, e) for e in dilations))]
    return view, view.shape[2 : 2 + len(kernel)]


def _conv(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    x, w = of[0], np.ascontiguousarray(of[1])  # views with strides of their own would not reach BLAS
    groups, spatial = integer_of(attributes, "groups"), w.ndim - 2
    view, outputs = _windows(x, {**attributes, "kernel": w.shape[2:]}, x.dtype.type(0))
    batch, per_group = x.shape[0], w.shape[0] // groups
    inputs = w.shape[1]
    if inputs == 1 and per_group == 1:  # depthwise: one tap at a time
        total = np.zeros(result.shape, x.dtype)
        for tap in np.ndindex(*w.shape[2:]):
            total += view[(..., *tap)] * w[(slice(None), 0, *tap)].reshape(1, -1, *[1] * spatial)
        return total
    order = [0, 1, *range(2 + spatial, 2 + 2 * spatial), *range(2, 2 + spatial)]
    columns = view.transpose(order).reshape(batch, groups, inputs * int(np.prod(w.shape[2:])), int(np.prod(outputs)))
    rows = w.reshape(1, groups, per_group, math.prod(w.shape[1:]))
    return np.asarray(np.matmul(rows, columns)).reshape(result.shape)


def _patches(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    view, outputs = _windows(of[0], attributes, of[0].dtype.type(0))
    spatial = len(outputs)
    return view.transpose([0, 1, *range(2 + spatial, 2 + 2 * spatial), *range(2, 2 + spatial)])


def _max_pool(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    x = of[0]
    least = x.dtype.type(-np.inf) if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    view, _ = _windows(x, attributes, np.asarray(least, x.dtype))
    taps = list(np.ndindex(*integers_of(attributes, "kernel")))
    if x.dtype.kind == "f" and np.any((x == 0) & np.signbit(x)):
        axes = tuple(range(2 + x.ndim - 2, view.ndim))
        return np.asarray(_extremum("max")([view], {"axes": axes}, result))
    largest = view[(..., *taps[0])].copy()
    for tap in taps[1:]:
        np.maximum(largest, view[(..., *tap)], out=largest)
    return largest


def _avg_pool(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    x = of[0]
    view, _ = _windows(x, attributes, x.dtype.type(0))
    taps = list(np.ndindex(*integers_of(attributes, "kernel")))
    total = np.zeros(view.shape[: x.ndim], x.dtype)
    for tap in taps:
        total += view[(..., *tap)]
    if attributes["count_include_pad"]:
        return np.asarray(total / x.dtype.type(len(taps)))
    ones, _ = _windows(np.ones((1, 1, *x.shape[2:]), x.dtype), attributes, x.dtype.type(0))
    count = ones.sum(axis=tuple(range(x.ndim, ones.ndim)), dtype=x.dtype)
    return np.asarray(total / count)


KERNELS = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "reverse": _reverse,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "reduce_sum": _sum,
    "reduce_max": _extremum("max"),
    "reduce_min": _extremum("min"),
    "mean": _mean,
    "cumsum": _cumsum,
    "arg_max": _arg("max"),
    "arg_min": _arg("min"),
    "matmul": _matmul,
    "conv": _conv,
    "patches": _patches,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
}
"""The functions, by operator."""
