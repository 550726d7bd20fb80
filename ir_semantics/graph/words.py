"""Words that composite operators and importers are written with: broadcasting, reductions that keep axes, constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ir import Attribute
from .operator import Assembly
from .types import GraphError


def literal(b: Assembly, value: float | int | bool, dtype: str) -> int:
    """A scalar constant, rounded to the type."""
    return b.constant(np.asarray(value, dtype=dtype))


def reshape(b: Assembly, x: int, shape: Sequence[int]) -> int:
    """The same elements under another shape."""
    if len(shape) == b.type(x).rank and tuple(shape) == b.shape(x):
        return x
    if b.type(x).elements == 0 and 0 in shape:  # an empty tensor has nothing but a shape
        return b.constant(np.zeros(tuple(shape), b.type(x).dtype))
    return b.add("reshape", x, shape=tuple(shape))


def transpose(b: Assembly, x: int, permutation: Sequence[int]) -> int:
    """Axes in another order."""
    if list(permutation) == list(range(len(b.shape(x)))):
        return x
    return b.add("transpose", x, permutation=tuple(permutation))


def move(b: Assembly, x: int, source: int, target: int) -> int:
    """One axis put elsewhere, the others in their order."""
    order = [j for j in range(len(b.shape(x))) if j != source]
    order.insert(target, source)
    return transpose(b, x, order)


def take(b: Assembly, x: int, axis: int, start: int, stop: int, stride: int = 1) -> int:
    """The elements start, start + stride, ... before stop along one axis."""
    shape = b.shape(x)
    if (start, stop, stride) == (0, shape[axis], 1):
        return x
    starts, stops, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], strides[axis] = start, stop, stride
    return b.add("slice", x, start=starts, stop=stops, stride=strides)


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that shapes are broadcast to, by ONNX's rule; raises GraphError where they do not fit."""
    rank = max(len(s) for s in shapes)
    result = []
    for axis in range(rank):
        extents: list[int] = []
        for d in (s[axis - rank] for s in shapes if len(s) >= rank - axis):
            extents += [] if d in extents else [d]
        repeated = [d for d in extents if d != 1] if len(extents) > 1 else extents
        if len(repeated) > 1:
            listed = " and ".join(str(list(s)) for s in shapes)
            raise GraphError(f"shapes that are broadcast must have extents that agree or are 1, not {listed}")
        result += repeated
    return tuple(result)


def expand(b: Assembly, x: int, shape: Sequence[int]) -> int:
    """``x`` broadcast to a shape: axes are aligned at the last one, and extents of 1 are repeated."""
    own, target = b.shape(x), tuple(shape)
    if len(own) == len(target) and own == target:
        return x
    if common_shape([own, target]) != target:
        raise GraphError(f"a tensor of shape {list(own)} must fit the shape that it is broadcast to, {list(target)}")
    offset = len(target) - len(own)
    kept = [j for j, d in enumerate(own) if d == target[j + offset]]
    if 0 in target:
        return b.constant(np.zeros(target, b.type(x).dtype))
    return b.add("broadcast", reshape(b, x, [own[j] for j in kept]), shape=target, axes=[j + offset for j in kept])


def apply(b: Assembly, operator: str, *operands: int, **attributes: Attribute) -> int:
    """A scalar operator on operands that are broadcast to a common shape."""
    shape = common_shape([b.shape(x) for x in operands])
    return b.add(operator, *(expand(b, x, shape) for x in operands), **attributes)


def reduce(b: Assembly, operator: str, x: int, axes: Sequence[int], keep: bool) -> int:
    """A reduction along axes, which disappear or are kept with extent 1."""
    if not axes:
        return x
    result = b.add(operator, x, axes=sorted(axes))
    if not keep:
        return result
    return reshape(b, result, [1 if j in axes else d for j, d in enumerate(b.shape(x))])
