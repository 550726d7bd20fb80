"""Composite operators: graphs of scalar and tensor operators under one name.

Statistics are those of the population.  Sources: the ONNX operator specification.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ir import Attributes, integer_of, integers_of, pairs_of
from .operator import Assembly, composite
from .types import GraphError
from .words import apply, expand, literal, move, reduce, reshape, take, transpose


def _float(attributes: Attributes, name: str) -> float:
    value = attributes[name]
    assert isinstance(value, int | float)
    return float(value)


def _shifted(b: Assembly, x: int, axis: int) -> int:
    return apply(b, "sub", x, reduce(b, "reduce_max", x, [axis], True))


def softmax(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """exp(x - m) / sum(exp(x - m)) along the axis, m its maximum: over the reals, exp(x) / sum(exp(x))."""
    powers = b.add("exp", _shifted(b, of[0], integer_of(a, "axis")))
    return apply(b, "div", powers, reduce(b, "reduce_sum", powers, [integer_of(a, "axis")], True))


def log_softmax(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """The logarithm of softmax: x - m - log(sum(exp(x - m)))."""
    shifted = _shifted(b, of[0], integer_of(a, "axis"))
    total = reduce(b, "reduce_sum", b.add("exp", shifted), [integer_of(a, "axis")], True)
    return apply(b, "sub", shifted, b.add("log", total))


def hardmax(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """1 where the first maximum along the axis stands, else 0."""
    (x,), axis = of, integer_of(a, "axis")
    shape = b.shape(x)
    first = b.add("arg_max", x, axis=axis, last=False)
    kept = reshape(b, first, [1 if j == axis else d for j, d in enumerate(shape)])
    positions = b.constant(np.arange(shape[axis]).reshape([-1 if j == axis else 1 for j in range(len(shape))]))
    return b.add("cast", apply(b, "equal", kept, positions), to=b.type(x).dtype)


def _along(b: Assembly, vector: int, rank: int, axis: int) -> int:
    """A vector as a tensor of that rank, along one axis."""
    return reshape(b, vector, [b.shape(vector)[0] if j == axis else 1 for j in range(rank)])


def _spread(b: Assembly, vector: int, like: int) -> int:
    """A vector by channel (axis 1), repeated to the shape of a tensor."""
    shape = b.shape(like)
    if 0 in shape:
        return b.constant(np.zeros(shape, b.type(vector).dtype))
    return b.add("broadcast", vector, axes=(1,), shape=shape)


def batch_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, all given by channel (axis 1)."""
    x, scale, bias, mean, variance = of
    dtype = b.type(x).dtype
    scale, bias, mean, variance = (
        b.add("cast", v, to=dtype) if b.type(v).dtype != dtype else v for v in (scale, bias, mean, variance)
    )
    deviation = b.add("sqrt", apply(b, "add", variance, literal(b, _float(a, "epsilon"), dtype)))
    for operator, operand in (("sub", mean), ("div", deviation), ("mul", scale), ("add", bias)):
        x = b.add(operator, x, _spread(b, operand, x))
    return x


def mean_of(b: Assembly, x: int, axes: Sequence[int]) -> int:
    """The mean along axes, which are kept with extent 1."""
    return reduce(b, "mean", x, axes, True)


def normalised(b: Assembly, x: int, axes: Sequence[int], epsilon: float) -> int:
    """(x - mean) / sqrt(variance + epsilon), statistics along axes."""
    centred = apply(b, "sub", x, mean_of(b, x, axes))
    variance = mean_of(b, b.add("mul", centred, centred), axes)
    deviation = b.add("sqrt", apply(b, "add", variance, literal(b, epsilon, b.type(x).dtype)))
    return apply(b, "div", centred, deviation)


def _affine(b: Assembly, x: int, of: Sequence[int]) -> int:
    """x * of[0] + of[1], as far as these are given."""
    for operator, operand in zip(("mul", "add"), of, strict=False):
        x = apply(b, operator, x, operand)
    return x


def layer_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """(x - mean) / sqrt(variance + epsilon) [* scale [+ bias]], statistics along axes."""
    return _affine(b, normalised(b, of[0], integers_of(a, "axes"), _float(a, "epsilon")), of[1:])


def rms_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x / sqrt(mean of x^2 + epsilon) [* scale], the mean along axes."""
    x = of[0]
    squares = mean_of(b, b.add("mul", x, x), integers_of(a, "axes"))
    root = b.add("sqrt", apply(b, "add", squares, literal(b, _float(a, "epsilon"), b.type(x).dtype)))
    return _affine(b, apply(b, "div", x, root), of[1:])


def group_norm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """Channels (axis 1) are cut into groups, statistics are taken by image and group; scale and bias by channel."""
    x, scale, bias = of
    groups, shape = integer_of(a, "groups"), b.shape(x)
    if groups < 1 or shape[1] % groups:
        raise GraphError(f"the channels of group_norm must be a multiple of its groups, not {shape[1]} and {groups}")
    cut = reshape(b, x, [shape[0], groups, shape[1] // groups, *shape[2:]])
    even = normalised(b, cut, range(2, len(shape) + 1), _float(a, "epsilon"))
    rank = len(shape)
    return _affine(b, reshape(b, even, shape), [_along(b, scale, rank, 1), _along(b, bias, rank, 1)])


def lrn(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x / (bias + alpha / size * sum of squares of size neighbouring channels)^beta."""
    x, size = of[0], integer_of(a, "size")
    if not 1 <= size <= 2 * b.shape(x)[1] + 1:
        raise GraphError(
            f"the size of lrn must be in 1 .. {2 * b.shape(x)[1] + 1}, twice the channels and 1, not {size}"
        )
    shape, dtype = b.shape(x), b.type(x).dtype
    before = (size - 1) // 2
    pads = [0, before, *[0] * (len(shape) - 2)], [0, size - 1 - before, *[0] * (len(shape) - 2)]
    padded = b.add("pad", b.add("mul", x, x), literal(b, 0, dtype), before=pads[0], after=pads[1])
    total = take(b, padded, 1, 0, shape[1])
    for j in range(1, size):
        total = b.add("add", total, take(b, padded, 1, j, j + shape[1]))
    weighted = apply(b, "mul", total, literal(b, _float(a, "alpha") / size, dtype))
    base = apply(b, "add", weighted, literal(b, _float(a, "bias"), dtype))
    return b.add("div", x, apply(b, "pow", base, literal(b, _float(a, "beta"), dtype)))


def reduce_prod(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """The product along axes, which disappear; of nothing, 1.  Factors are multiplied by halves."""
    x = of[0]
    axes = sorted(integers_of(a, "axes"))
    kept = [j for j in range(len(b.shape(x))) if j not in axes]
    shape = [b.shape(x)[j] for j in kept]
    x = transpose(b, x, [*kept, *axes])
    x = reshape(b, x, [*shape, int(np.prod([b.shape(of[0])[j] for j in axes], dtype=np.int64))])
    axis = len(kept)
    if b.shape(x)[axis] == 0:
        return expand(b, literal(b, 1, b.type(x).dtype), shape)
    while (extent := b.shape(x)[axis]) > 1:
        half = extent // 2
        product = b.add("mul", take(b, x, axis, 0, half), take(b, x, axis, half, 2 * half))
        x = product if extent == 2 * half else b.add("concat", product, take(b, x, axis, extent - 1, extent), axis=axis)
    return reshape(b, x, shape)


def cum_prod(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """The product of all elements up to and including this one along an axis, by doubling."""
    (x,), axis = of, integer_of(a, "axis")
    shape, one = b.shape(x), literal(b, 1, b.type(x).dtype)
    distance = 1
    while distance < shape[axis]:
        before = [distance if j == axis else 0 for j in range(len(shape))]
        shifted = b.add("pad", take(b, x, axis, 0, shape[axis] - distance), one, before=before, after=[0] * len(shape))
        x = b.add("mul", x, shifted)
        distance *= 2
    return x


def conv_transpose(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """The transposed convolution: strides put zeros between elements, then the kernel is reversed and slid over.

    ``pads`` are cut off the result (negative ones are zeros added to it); w is [channels, outputs / groups, ...].
    """
    x, w = of
    groups, strides, dilations = integer_of(a, "groups"), integers_of(a, "strides"), integers_of(a, "dilations")
    zero = literal(b, 0, b.type(x).dtype)
    rank = len(b.shape(x))
    for axis, stride in enumerate(strides, start=2):
        extent = b.shape(x)[axis]
        if stride > 1:
            shape = [*b.shape(x)[: axis + 1], 1, *b.shape(x)[axis + 1 :]]
            after = [stride - 1 if j == axis + 1 else 0 for j in range(rank + 1)]
            apart = b.add("pad", reshape(b, x, shape), zero, before=[0] * (rank + 1), after=after)
            merged = reshape(b, apart, [*b.shape(x)[:axis], extent * stride, *b.shape(x)[axis + 1 :]])
            x = take(b, merged, axis, 0, (extent - 1) * stride + 1)
    channels, outputs, *kernel = b.shape(w)
    if groups < 1 or channels % groups:
        raise GraphError(f"the channels of a transposed convolution must be a multiple of its groups, {groups}")
    cut = reshape(b, w, [groups, channels // groups, outputs, *kernel])
    swapped = reshape(b, move(b, cut, 2, 1), [groups * outputs, channels // groups, *kernel])
    around, trims = [], []
    for k, dilation, pair in zip(kernel, dilations, pairs_of(a, "pads"), strict=True):
        full = [(k - 1) * dilation - p for p in pair]
        around.append(tuple(max(0, f) for f in full))
        trims.append([max(0, -f) for f in full])
    reversed_ = b.add("reverse", swapped, axes=list(range(2, rank)))
    for axis, (first, last) in enumerate(trims, start=2):
        x = take(b, x, axis, first, b.shape(x)[axis] - last)
    ones = [1] * (rank - 2)
    return b.add("conv", x, reversed_, groups=groups, strides=ones, dilations=dilations, pads=tuple(around))


COMPOSITES = (
    composite("softmax", softmax, attributes="axis"),
    composite("log_softmax", log_softmax, attributes="axis"),
    composite("hardmax", hardmax, attributes="axis"),
    composite("batch_norm", batch_norm, arity=5, attributes="epsilon"),
    composite("layer_norm", layer_norm, arity=range(1, 4), attributes="axes epsilon"),
    composite("rms_norm", rms_norm, arity=range(1, 3), attributes="axes epsilon"),
    composite("group_norm", group_norm, arity=3, attributes="groups epsilon"),
    composite("lrn", lrn, attributes="size alpha bias beta"),
    composite("reduce_prod", reduce_prod, kinds="number", attributes="axes"),
    composite("cum_prod", cum_prod, kinds="number", attributes="axis"),
    composite("conv_transpose", conv_transpose, arity=2, kinds="number", attributes="groups strides dilations pads"),
)
"""The composite operators of this module."""
