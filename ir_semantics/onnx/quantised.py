"""Conversion of quantisation and of layers on quantised tensors."""

from __future__ import annotations

from math import prod

from ir_semantics.graph import words

from .call import Call, converts
from .dtypes import dtype_of
from .layers import add_bias, convolve
from .reductions import matmul


def _spread(call: Call, value: int, x: int, axis: int, block: int) -> int:
    """Scales or zero points as a tensor that broadcasts with ``x``: one number, one by channel, or one by block."""
    b = call.b
    shape, own = b.shape(x), b.shape(value)
    if prod(own) == 1 and len(own) <= 1:
        return words.reshape(b, value, [])
    if not block:
        if own != (shape[axis],):
            raise call.fail(
                f"scales and zero points must be one, or one for each of {shape[axis]} channels, not {list(own)}"
            )
        return words.reshape(b, value, [shape[axis] if j == axis else 1 for j in range(len(shape))])
    blocks = -(-shape[axis] // block)
    if own != tuple(blocks if j == axis else d for j, d in enumerate(shape)):
        raise call.fail(f"scales by block must be {blocks} along axis {axis} of {list(shape)}, not {list(own)}")
    apart = words.reshape(b, value, [*own[: axis + 1], 1, *own[axis + 1 :]])
    spread = words.expand(b, apart, [*own[: axis + 1], block, *own[axis + 1 :]])
    merged = words.reshape(b, spread, [*own[:axis], blocks * block, *own[axis + 1 :]])
    return words.take(b, merged, axis, 0, shape[axis])


def quantise(call: Call, x: int, scale: int, zero: int | None, target: str) -> int:
    """saturate(round(x / scale) + zero), ties to even, computed in the scale's type."""
    b = call.b
    rounded = b.add("round", call.apply("div", x, scale))
    if zero is not None:
        rounded = call.apply("add", rounded, call.cast(zero, b.type(rounded).dtype))
    return call.cast(rounded, target)


def dequantise(call: Call, x: int, scale: int, zero: int | None) -> int:
    """(x - zero) * scale in the scale's type; the difference is taken in 32 bits."""
    wide = call.cast(x, "int32")
    if zero is not None:
        wide = call.apply("sub", wide, call.cast(zero, "int32"))
    return call.apply("mul", call.cast(wide, call.b.type(scale).dtype), scale)


@converts("QuantizeLinear", note="to integers of 8 and 16 bits")
def _quantize(call: Call) -> int:
    call.ignore("saturate")  # for 8-bit floats
    if call.integer("precision", 0) not in (0, 1):
        raise call.fail("the attribute precision must be 0 or 1 (binary32)")
    target = _target(call, call.dtype(2) if call.has(2) else "uint8")
    if target is None or not target.startswith(("int", "uint")):
        raise call.fail("quantisation must be to integers")
    wide = "float32" if call.dtype(1) == "float16" or call.kind() == "int" else call.dtype(1)
    scale, zero = _parameters(call, call.cast(call.operand(1), wide))
    return quantise(call, call.cast(call.operand(0), wide), scale, zero, target)


def _target(call: Call, default: str) -> str | None:
    """The type of the result; None where the IR does not have it."""
    stated = call.integer("output_dtype", 0)
    return dtype_of(stated) if stated else default


def _parameters(call: Call, scale: int) -> tuple[int, int | None]:
    """Scale and zero point, which broadcast with the first operand."""
    x, axis, block = call.operand(0), call.integer("axis", 1), call.integer("block_size", 0)
    axis = call.axis(axis, len(call.shape())) if len(call.shape()) > 1 else 0
    spread = _spread(call, scale, x, axis, block)
    return spread, _spread(call, call.operand(2), x, axis, block) if call.has(2) else None


@converts("DequantizeLinear", note="from integers")
def _dequantize(call: Call) -> int:
    target = _target(call, call.dtype(1))
    if target is None or call.kind() != "int":
        raise call.fail("dequantisation must be from integers to floats")
    return call.cast(dequantise(call, call.operand(0), *_parameters(call, call.operand(1))), target)


def _centred(call: Call, position: int, zero: int, axis: int | None) -> int:
    """An operand as 32-bit integers, less its zero point (one, or one for each index of the axis)."""
    b, x = call.b, call.cast(call.operand(position), "int32")
    if not call.has(zero):
        return x
    point = call.cast(call.operand(zero), "int32")
    rank = len(b.shape(x))
    if len(b.shape(point)) == 1 and b.shape(point)[0] > 1 and axis is not None:
        point = words.reshape(b, point, [b.shape(point)[0] if j == axis % rank else 1 for j in range(rank)])
    return call.apply("sub", x, words.reshape(b, point, []) if b.shape(point) == (1,) else point)


@converts("MatMulInteger")
def _matmul_integer(call: Call) -> int:
    return matmul(call, _centred(call, 0, 2, -2), _centred(call, 1, 3, -1))


@converts("ConvInteger")
def _conv_integer(call: Call) -> int:
    return convolve(call, _centred(call, 0, 2, None), _centred(call, 1, 3, 0))


def _requantise(call: Call, total: int, scales: tuple[int, int, int], zero: int, channel: bool) -> int:
    """The sum of products of integers as a quantised tensor: round(sum * scale_a * scale_b / scale_y) + zero."""
    b = call.b
    rank = len(b.shape(total))

    def scale(position: int) -> int:
        value = call.cast(call.operand(position), "float32")
        if len(b.shape(value)) == 1 and b.shape(value)[0] > 1 and channel:
            return words.reshape(b, value, [b.shape(value)[0] if j == 1 else 1 for j in range(rank)])
        return words.reshape(b, value, []) if b.shape(value) == (1,) else value

    product = call.apply("mul", scale(scales[0]), scale(scales[1]))
    real = call.apply("mul", call.cast(total, "float32"), product)
    return quantise(call, real, scale(scales[2]), call.operand(zero), call.dtype(zero))


@converts("QLinearMatMul", note="with one scale for each tensor")
def _qlinear_matmul(call: Call) -> int:
    for position in (1, 2, 4, 5, 6, 7):
        if prod(call.shape(position)) != 1:
            raise call.fail("scales and zero points must be one for each tensor")
    total = matmul(call, _centred(call, 0, 2, None), _centred(call, 3, 5, None))
    return _requantise(call, total, (1, 4, 6), 7, False)


@converts("QLinearConv")
def _qlinear_conv(call: Call) -> int:
    total = convolve(call, _centred(call, 0, 2, None), _centred(call, 3, 5, 0))
    return _requantise(call, add_bias(call, total, 8), (1, 4, 6), 7, True)
