"""Conversion of ONNX operators that move, choose or make elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from ir_semantics.graph import words
from ir_semantics.graph.types import Array, TensorType

from .call import Call, converts


@converts("Shape")
def _shape(call: Call) -> int:
    shape = call.shape()
    start, end = call.integer("start", 0), call.integer("end", len(shape))
    return call.constant(np.array(shape[start:end], np.int64))  # Python's slices clamp as the specification does


@converts("Size")
def _size(call: Call) -> int:
    return call.constant(np.array(np.prod(call.shape(), dtype=np.int64)))


@converts("Reshape")
def _reshape(call: Call) -> int:
    shape, target = call.shape(), call.static_ints(1, "the shape")
    if not call.integer("allowzero", 0):
        if any(d == 0 and j >= len(shape) for j, d in enumerate(target)):
            raise call.fail(f"a 0 in the shape {target} must stand for an axis of {list(shape)}")
        target = [shape[j] if d == 0 else d for j, d in enumerate(target)]
    elements = prod(shape)
    if target.count(-1) > 1 or any(d < -1 for d in target):
        raise call.fail(f"the shape must have no negative extent but one -1, not {target}")
    rest = prod(d for d in target if d != -1)
    if -1 in target:
        if rest == 0 or elements % rest:
            raise call.fail(f"the shape {target} must fit the {elements} elements of {list(shape)}")
        target[target.index(-1)] = elements // rest
    elif rest != elements:
        raise call.fail(f"the shape {target} must have the {elements} elements of {list(shape)}")
    return words.reshape(call.b, call.operand(0), target)


@converts("Flatten")
def _flatten(call: Call) -> int:
    shape = call.shape()
    axis = call.integer("axis", 1)
    axis = call.axis(axis, len(shape)) if axis < 0 else call.axis(axis, len(shape) + 1)
    return words.reshape(call.b, call.operand(0), [prod(shape[:axis]), prod(shape[axis:])])


@converts("Squeeze")
def _squeeze(call: Call) -> int:
    shape, listed = call.shape(), call.listed("axes", 13)
    axes = [j for j, d in enumerate(shape) if d == 1] if listed is None else call.axes(listed, len(shape))
    if any(shape[a] != 1 for a in axes):
        raise call.fail(f"axes that are removed must have the extent 1; {list(shape)} has others at {axes}")
    return words.reshape(call.b, call.operand(0), [d for j, d in enumerate(shape) if j not in axes])


@converts("Unsqueeze")
def _unsqueeze(call: Call) -> int:
    listed = call.listed("axes", 13)
    if listed is None:
        raise call.fail("axes must be given")
    rest = list(call.shape())
    axes = set(call.axes(listed, len(rest) + len(listed)))
    shape = [1 if j in axes else rest.pop(0) for j in range(len(rest) + len(listed))]
    return words.reshape(call.b, call.operand(0), shape)


@converts("Transpose")
def _transpose(call: Call) -> int:
    rank = len(call.shape())
    permutation = call.integers("perm", list(range(rank))[::-1]) or []
    if sorted(permutation) != list(range(rank)):
        raise call.fail(f"the attribute perm must have each axis of {list(call.shape())} once, not {permutation}")
    return words.transpose(call.b, call.operand(0), permutation)


@converts("Concat")
def _concat(call: Call) -> int:
    parts = call.all()
    axis = call.axis(call.integer("axis"), len(call.shape()))
    return parts[0] if len(parts) == 1 else call.add("concat", *parts, axis=axis)


@converts("Split")
def _split(call: Call) -> list[int | None]:
    axis = call.axis(call.integer("axis", 0), len(call.shape()))
    extent, count = call.shape()[axis], len(call.outputs)
    sizes = call.listed("split", 13)
    if sizes is None:
        parts = call.integer("num_outputs", count) if call.opset >= 18 else count
        each = -(-extent // parts)
        if parts != count or (call.opset < 18 and extent % parts):
            raise call.fail(f"an extent of {extent} must be divisible into {count} outputs, not {parts}")
        sizes = [each] * (parts - 1) + [extent - each * (parts - 1)]
    if sum(sizes) != extent or len(sizes) != count or min(sizes) < 0:
        raise call.fail(f"the parts must be {count} sizes that add up to {extent}, not {sizes}")
    starts = np.cumsum([0, *sizes]).tolist()
    x = call.operand(0)
    return [words.take(call.b, x, axis, a, e) for a, e in pairwise(starts)]


def _positions(extent: int, start: int, end: int, step: int) -> range:
    """What Slice takes of an axis: the specification clamps to [0, extent], and for steps below 0 the start to
    [0, extent - 1] and the end to [-1, extent - 1].

    Python's slices differ: there a start below -extent with a step below 0 takes nothing.
    """
    most = extent if step > 0 else extent - 1
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    return range(min(max(start, 0), most), min(max(end, 0 if step > 0 else -1), most), step)


@converts("Slice")
def _slice(call: Call) -> int:
    shape, rank = call.shape(), len(call.shape())
    if call.opset < 10:
        starts, ends = call.integers("starts") or [], call.integers("ends") or []
        axes, steps = call.integers("axes"), None
    else:
        starts, ends = call.static_ints(1, "the starts"), call.static_ints(2, "the ends")
        axes = call.static_ints(3, "the axes") if call.has(3) else None
        steps = call.static_ints(4, "the steps") if call.has(4) else None
    axes = call.axes(list(range(len(starts))) if axes is None else axes, rank)
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise call.fail(f"starts, ends, axes and steps must be as many, and no step 0, not {starts}, {ends}, {steps}")
    x = call.operand(0)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        chosen = _positions(shape[axis], start, end, step)
        if step > 0:
            x = words.take(call.b, x, axis, chosen.start, max(chosen.start, chosen.stop), step)
        else:
            count = len(chosen)
            last = chosen[-1] if count else 0
            stop = chosen[0] + 1 if count else 0
            x = call.add("reverse", words.take(call.b, x, axis, last, stop, -step), axes=[axis])
    return x


@converts("Pad")
def _pad(call: Call) -> int:
    x, rank = call.operand(0), len(call.shape())
    mode = call.text("mode", "constant")
    if call.opset < 11:
        pads, value = call.integers("pads") or [], call.literal(call.real("value", 0.0))
    else:
        pads = call.static_ints(1, "the pads")
        value = words.reshape(call.b, call.operand(2), []) if call.has(2) else call.literal(0)
    axes = call.axes(call.static_ints(3, "the axes"), rank) if call.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise call.fail(f"pads must be two for each of {len(axes)} axes, not {len(pads)}")
    for j, axis in enumerate(axes):
        before, after, extent = pads[j], pads[j + len(axes)], call.b.shape(x)[axis]
        if mode == "constant":
            x = words.take(call.b, x, axis, max(0, -before), max(max(0, -before), extent - max(0, -after)))
            around = [[max(0, p) if k == axis else 0 for k in range(rank)] for p in (before, after)]
            if any(map(any, around)):
                x = call.add("pad", x, value, before=around[0], after=around[1])
            continue
        if mode not in ("reflect", "edge", "wrap") or not extent:
            raise call.fail(f"the mode must be constant, reflect, edge or wrap, not {mode}, on an axis of {extent}")
        call.room(max(0, extent + before + after))
        positions = np.arange(-before, extent + after)
        if mode == "reflect":
            period = max(2 * (extent - 1), 1)
            positions = positions % period
            positions = np.where(positions >= extent, period - positions, positions)
        else:
            positions = np.clip(positions, 0, extent - 1) if mode == "edge" else positions % extent
        x = call.add("gather", x, call.constant(positions.astype(np.int64)), axis=axis)
    return x


@converts("Expand")
def _expand(call: Call) -> int:
    shape = words.common_shape([call.shape(), call.static_ints(1, "the shape")])
    return words.expand(call.b, call.operand(0), shape)


@converts("Tile")
def _tile(call: Call) -> int:
    shape, repeats = call.shape(), call.static_ints(1, "the repeats")
    if len(repeats) != len(shape) or min(repeats, default=0) < 0:
        raise call.fail(f"repeats must be one for each axis of {list(shape)}, not {repeats}")
    apart = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    spread = words.reshape(call.b, call.operand(0), [n for d in shape for n in (1, d)])
    return words.reshape(
        call.b, words.expand(call.b, spread, apart), [r * d for r, d in zip(repeats, shape, strict=True)]
    )


def _indices(call: Call, position: int, extent: int) -> int:
    """Indices of which negative ones count from the end."""
    indices = call.operand(position)
    value = call.b.value(indices)
    if value is not None:
        if value.size and not (-extent <= value.min() and value.max() < extent):
            raise call.fail(f"indices must be in {-extent} .. {extent - 1}, not {value.min()} .. {value.max()}")
        return call.constant(np.where(value < 0, value + extent, value).astype(np.int64))
    return _from_end(call, indices, extent)


def _from_end(call: Call, indices: int, extent: int) -> int:
    """Indices plus the extent where they are negative."""
    indices = call.cast(indices, "int64")
    negative = call.apply("less", indices, call.literal(0, "int64"))
    return call.apply("where", negative, call.apply("add", indices, call.literal(extent, "int64")), indices)


@converts("Gather", "GatherElements")
def _gather(call: Call) -> int:
    axis = call.axis(call.integer("axis", 0), len(call.shape()))
    operator = "gather" if call.operator == "Gather" else "gather_elements"
    return call.add(operator, call.operand(0), _indices(call, 1, call.shape()[axis]), axis=axis)


@converts("GatherND")
def _gather_nd(call: Call) -> int:
    return call.add("gather_nd", call.operand(0), call.operand(1), batch=call.integer("batch_dims", 0))


@converts("ScatterElements", "Scatter")
def _scatter_elements(call: Call) -> int:
    axis = call.axis(call.integer("axis", 0), len(call.shape()))
    return call.add("scatter_elements", *call.all(), axis=axis, reduction=call.text("reduction", "none"))


@converts("ScatterND")
def _scatter_nd(call: Call) -> int:
    return call.add("scatter_nd", *call.all(), reduction=call.text("reduction", "none"))


@converts("DepthToSpace")
def _depth_to_space(call: Call) -> int:
    batch, channels, height, width = call.image()
    block, mode = call.integer("blocksize"), call.text("mode", "DCR")
    if block < 1 or channels % block**2 or mode not in ("DCR", "CRD"):
        raise call.fail(
            f"channels must be a multiple of blocksize squared, and mode DCR or CRD, not {channels}, {mode}"
        )
    depth = channels // block**2
    if mode == "DCR":
        cut, order = [batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]
    else:
        cut, order = [batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]
    moved = words.transpose(call.b, words.reshape(call.b, call.operand(0), cut), order)
    return words.reshape(call.b, moved, [batch, depth, height * block, width * block])


@converts("SpaceToDepth")
def _space_to_depth(call: Call) -> int:
    batch, channels, height, width = call.image()
    block, mode = call.integer("blocksize"), call.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise call.fail(f"the attribute mode must be DCR or CRD, not {mode}")
    if block < 1 or height % block or width % block:
        raise call.fail(f"height and width must be multiples of blocksize, not {height} and {width}")
    cut = [batch, channels, height // block, block, width // block, block]
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = words.transpose(call.b, words.reshape(call.b, call.operand(0), cut), order)
    return words.reshape(call.b, moved, [batch, channels * block**2, height // block, width // block])


@converts("Trilu")
def _trilu(call: Call) -> int:
    shape, upper = call.shape(), bool(call.integer("upper", 1))
    if len(shape) < 2:
        raise call.fail(f"the input must have at least two axes, not the shape {list(shape)}")
    k = int(call.static_number(1, "the diagonal")) if call.has(1) else 0
    row, column = np.indices(shape[-2:], dtype=np.int64, sparse=True)
    mask = call.constant(column - row >= k if upper else column - row <= k)
    return call.apply("where", mask, call.operand(0), call.literal(0))


@converts("EyeLike")
def _eye_like(call: Call) -> int:
    from .dtypes import dtype_of

    dtype = dtype_of(call.integer("dtype")) if "dtype" in call.attributes else call.dtype()
    if dtype is None or len(call.shape()) != 2:
        raise call.fail("eye must be of one of the IR's element types, and of two axes")
    return call.constant(np.eye(call.shape()[0], call.shape()[1], k=call.integer("k", 0)).astype(dtype))


@converts("OneHot", note="where indices are integers")
def _one_hot(call: Call) -> int:
    depth = int(call.static_number(1, "the depth"))
    rank = len(call.shape())
    axis = call.axis(call.integer("axis", -1), rank + 1)
    wrapped = _from_end(call, call.operand(0), depth)
    call.room(depth, *call.shape())
    column = words.reshape(call.b, wrapped, [*call.shape()[:axis], 1, *call.shape()[axis:]])
    positions = call.constant(np.arange(depth).reshape([-1 if j == axis else 1 for j in range(rank + 1)]))
    off, on = (words.reshape(call.b, words.take(call.b, call.operand(2), 0, j, j + 1), []) for j in (0, 1))
    return call.apply("where", call.apply("equal", column, positions), on, off)


@converts("ReverseSequence")
def _reverse_sequence(call: Call) -> int:
    batch, time = call.integer("batch_axis", 1), call.integer("time_axis", 0)
    if sorted((batch, time)) != [0, 1]:
        raise call.fail(f"batch_axis and time_axis must be 0 and 1, not {batch} and {time}")
    return call.add("reverse_sequence", call.operand(0), call.operand(1), batch=batch, time=time)


@converts("ConstantOfShape")
def _constant_of_shape(call: Call) -> int:
    shape = call.static_ints(0, "the shape")
    value = call.raw("value", None, (np.ndarray,))
    fill = np.zeros(1, np.float32) if value is None else value
    if fill.size != 1:
        raise call.fail(f"the value must be one element, not {fill.size}")
    TensorType(str(fill.dtype), tuple(shape))  # refuses absurd shapes before anything is made
    return words.expand(call.b, call.constant(fill.reshape(())), shape)


@converts("Range")
def _range(call: Call) -> int:
    start, limit, delta = (call.static_number(i, "each of start, limit and delta") for i in range(3))
    if not delta:
        raise call.fail("the step of a range must not be 0")
    count = max(0, int(np.ceil((limit - start) / delta)))
    call.room(count)
    return call.constant((start + np.arange(count, dtype=start.dtype) * delta).astype(start.dtype))


@converts("Constant")
def _constant(call: Call) -> int:
    names = [n for n in call.attributes if n.startswith("value")]
    if len(names) != 1 or names[0] not in ("value", "value_float", "value_floats", "value_int", "value_ints"):
        raise call.fail(f"a constant must have one value, a tensor or numbers, not {', '.join(names) or 'none'}")
    value = call.raw(names[0], None, (np.ndarray, float, int, list))
    dtype = {"value": None, "value_float": np.float32, "value_floats": np.float32}.get(names[0], np.int64)
    return call.constant(np.asarray(value, dtype))


@converts("Compress", note="only where the condition is constant: the result's shape depends on it")
def _compress(call: Call) -> int:
    x = call.operand(0)
    condition = call.static(1, "the condition").astype(bool)
    if "axis" in call.attributes:
        axis = call.axis(call.integer("axis"), len(call.shape()))
    else:
        x, axis = words.reshape(call.b, x, [prod(call.shape())]), 0
    return call.add("gather", x, call.constant(np.flatnonzero(condition).astype(np.int64)), axis=axis)


@converts("NonZero", note="only of constants: the result's shape depends on the data")
def _non_zero(call: Call) -> int:
    positions: Sequence[Array] = np.nonzero(np.atleast_1d(call.static(0, "the data")))
    return call.constant(np.array(positions, np.int64).reshape(len(positions), -1))


@converts("Unique", note="only of constants: the result's shape depends on the data")
def _unique(call: Call) -> list[int]:
    x = call.static(0, "the data")
    axis = call.axis(call.integer("axis"), x.ndim) if "axis" in call.attributes else None
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    if not call.integer("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=axis or 0)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    parts = [values, *(p.reshape(-1).astype(np.int64) for p in (first, inverse, counts))]
    return [call.constant(p) for p in parts][: len(call.outputs)]


@converts("TopK")
def _top_k(call: Call) -> list[int | None]:
    rank = len(call.shape())
    k = call.integer("k") if call.opset < 10 else int(call.static_number(1, "k"))
    axis, largest = call.axis(call.integer("axis", -1), rank), bool(call.integer("largest", 1))
    call.ignore("sorted")  # the order of an unsorted result is left open
    x = call.operand(0)
    return [call.add("top_k", x, k=k, axis=axis, largest=largest, output=j) for j in range(len(call.outputs))]
