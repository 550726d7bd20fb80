"""Conversion of Resize and Upsample: along every axis a gather (nearest) or a product with constant weights.

Source: the ONNX specification of Resize.  Weights are computed in binary64 and rounded to the tensor's type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ir_semantics.graph import words
from ir_semantics.graph.types import Array, TensorType

from .call import Call, converts

MOST_POSITIONS = 1 << 16
"""Elements along a resized axis; a bound of this implementation, which computes a weight for each."""

_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
)  # fmt: skip


def _source(mode: str, i: int, extent: int, output: int, scale: float, roi: tuple[float, float]) -> float:
    """The position in the input of element i of the output."""
    length = scale * extent  # the output's length before it was cut to an integer
    match mode:
        case "align_corners":
            return 0.0 if length == 1 else i * (extent - 1) / (length - 1)
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize":
            start, end = roi
            if output == 1:
                return 0.5 * (start + end) * (extent - 1)
            return start * (extent - 1) + i * (end - start) * (extent - 1) / (output - 1)
        case "pytorch_half_pixel":
            return 0.0 if output == 1 else (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return extent / 2 * (1 - output / length) + (i + 0.5) / scale - 0.5
    return (i + 0.5) / scale - 0.5


def _nearest(position: float, rounding: str) -> int:
    whole = math.floor(position)
    part = position - whole
    match rounding:
        case "floor":
            return whole
        case "ceil":
            return math.ceil(position)
        case "round_prefer_ceil":
            return whole + (part >= 0.5)
    return whole + (part > 0.5)


def _linear_kernel(distance: float) -> float:
    return max(0.0, 1 - abs(distance))


def _cubic_kernel(a: float, distance: float) -> float:
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _weights(call: Call, positions: Sequence[float], extent: int, scale: float, cubic: bool) -> Array:
    """The matrix [outputs, inputs] of one axis: the kernel around each position, with elements of the edge repeated."""
    a, outside = call.real("cubic_coeff_a", -0.75), bool(call.integer("exclude_outside", 0))
    shrink = min(scale, 1.0) if call.integer("antialias", 0) else 1.0
    radius, kernel = (2 / shrink, partial(_cubic_kernel, a)) if cubic else (1 / shrink, _linear_kernel)
    matrix = np.zeros((len(positions), extent))
    for row, position in zip(matrix, positions, strict=True):
        taps = range(math.floor(position - radius), math.ceil(position + radius) + 1)
        weights = [kernel((t - position) * shrink) for t in taps]
        if outside:
            weights = [w if 0 <= t < extent else 0.0 for t, w in zip(taps, weights, strict=True)]
        total = sum(weights)
        if not total:
            raise call.fail("with exclude_outside every position must have an element of the input near it; unset it")
        for t, weight in zip(taps, weights, strict=True):
            row[min(max(t, 0), extent - 1)] += weight / total
    return matrix


def _resize(call: Call, axes: list[int], scales: list[float], sizes: list[int], roi: list[tuple[float, float]]) -> int:
    b, x = call.b, call.operand(0)
    mode, rounding = call.text("mode", "nearest"), call.text("nearest_mode", "round_prefer_floor")
    coordinates = call.text("coordinate_transformation_mode", "half_pixel" if call.opset >= 11 else "asymmetric")
    if call.opset < 11:
        rounding = "floor"
    if mode not in ("nearest", "linear", "cubic") or coordinates not in _MODES:
        raise call.fail(f"mode and coordinate_transformation_mode must be known ones, not {mode} and {coordinates}")
    extrapolated = call.real("extrapolation_value", 0.0)
    call.ignore("cubic_coeff_a", "exclude_outside", "antialias")
    for axis, scale, output, region in zip(axes, scales, sizes, roi, strict=True):
        extent = b.shape(x)[axis]
        if output == extent and scale == 1 and coordinates != "tf_crop_and_resize":
            continue
        TensorType(b.type(x).dtype, tuple(output if j == axis else d for j, d in enumerate(b.shape(x))))
        if max(output, extent if mode != "nearest" else 1) > MOST_POSITIONS:
            raise call.fail(f"a resized axis must have at most {MOST_POSITIONS} elements, not {extent} and {output}")
        positions = [_source(coordinates, i, extent, output, scale, region) for i in range(output)]
        if mode == "nearest":
            chosen = np.clip([_nearest(p, rounding) for p in positions], 0, extent - 1)
            result = call.add("gather", x, call.constant(chosen.astype(np.int64)), axis=axis)
        else:
            call.room(output, extent)
            matrix = call.constant(_weights(call, positions, extent, scale, mode == "cubic").T.copy(), b.type(x).dtype)
            last = len(b.shape(x)) - 1
            moved = words.move(b, x, axis, last)
            product = b.add("matmul", words.reshape(b, moved, [math.prod(b.shape(moved)[:-1]), extent]), matrix)
            result = words.move(b, words.reshape(b, product, [*b.shape(moved)[:-1], output]), last, axis)
        if coordinates == "tf_crop_and_resize":
            inside = np.array([0 <= p <= extent - 1 for p in positions])
            mask = call.constant(inside.reshape([-1 if j == axis else 1 for j in range(len(b.shape(x)))]))
            result = call.apply("where", mask, result, call.literal(extrapolated))
        x = result
    return x


@converts("Resize")
def _resize_node(call: Call) -> int:
    shape = call.shape()
    rank = len(shape)
    scales_at, sizes_at = (1, None) if call.opset < 11 else (2, 3)
    axes = call.axes(call.integers("axes") or list(range(rank)), rank)
    roi = [(0.0, 1.0)] * len(axes)
    if call.opset >= 11 and call.has(1):
        region = call.static_floats(1, "the region")
        if region:
            if len(region) != 2 * len(axes):
                raise call.fail(f"the region must have two numbers for each of {len(axes)} axes, not {len(region)}")
            roi = [(region[j], region[j + len(axes)]) for j in range(len(axes))]
    policy = call.text("keep_aspect_ratio_policy", "stretch")
    scales = call.static_floats(scales_at, "the scales") if call.has(scales_at) else []
    if scales:
        if len(scales) != len(axes) or min(scales) <= 0:
            raise call.fail(f"scales must be positive, one for each of {len(axes)} axes, not {scales}")
        sizes = [math.floor(shape[a] * s) for a, s in zip(axes, scales, strict=True)]
        if call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
            sizes = [math.floor(shape[a] * (e - s) * f) for a, f, (s, e) in zip(axes, scales, roi, strict=True)]
    else:
        if sizes_at is None or not call.has(sizes_at):
            raise call.fail("scales or sizes must be given")
        sizes = call.static_ints(sizes_at, "the sizes")
        if len(sizes) != len(axes) or any(not shape[a] for a in axes):
            raise call.fail(f"sizes must be one for each of {len(axes)} axes, not {sizes}")
        scales = [n / shape[a] for a, n in zip(axes, sizes, strict=True)]
        if policy != "stretch":
            if policy not in ("not_larger", "not_smaller"):
                raise call.fail(
                    f"the attribute keep_aspect_ratio_policy must be stretch, not_larger or not_smaller: {policy}"
                )
            scales = [(min if policy == "not_larger" else max)(scales)] * len(axes)
            sizes = [math.floor(shape[a] * s + 0.5) for a, s in zip(axes, scales, strict=True)]
    return _resize(call, axes, scales, sizes, roi)


@converts("Upsample", note="until opset 9, after which Resize takes its place")
def _upsample(call: Call) -> int:
    listed = call.opset < 9
    scales = [float(s) for s in call.items("scales", [])] if listed else call.static_floats(1, "the scales")
    if len(scales) != len(call.shape()) or min(scales, default=1) < 1:
        raise call.fail(f"scales must be at least 1, one for each axis, not {scales}")
    axes = list(range(len(scales)))
    sizes = [math.floor(d * s) for d, s in zip(call.shape(), scales, strict=True)]
    return _resize(call, axes, scales, sizes, [(0.0, 1.0)] * len(axes))
