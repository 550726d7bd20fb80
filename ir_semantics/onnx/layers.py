"""Conversion of convolutions, pooling and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ir_semantics.graph import words
from ir_semantics.graph.ir import Attribute

from .call import Call, converts


@dataclass(frozen=True)
class Windows:
    """Kernel, strides, dilations and pads of every spatial axis, with ONNX's auto_pad and ceil_mode worked out.

    ``padding`` are the pads that count as such; ``pads`` may be larger at the end by what ceil_mode adds.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    padding: list[tuple[int, int]]
    pads: list[tuple[int, int]]

    def attributes(self) -> dict[str, Attribute]:
        """The attributes of the IR's operators."""
        return {"strides": tuple(self.strides), "dilations": tuple(self.dilations), "pads": tuple(self.pads)}


def windows(call: Call, extents: Sequence[int], kernel: Sequence[int], *, pooling: bool) -> Windows:
    """The windows of a node over an image; raises Unsupported for attributes that do not fit."""
    rank = len(extents)
    strides = call.integers("strides") or [1] * rank
    dilations = call.integers("dilations") or [1] * rank
    padding = call.integers("pads") or [0] * (2 * rank)
    mode, ceil = call.text("auto_pad", "NOTSET"), pooling and bool(call.integer("ceil_mode", 0))
    if not len(kernel) == len(strides) == len(dilations) == rank or len(padding) != 2 * rank:
        raise call.fail(f"kernel_shape, strides, dilations and pads must fit {rank} spatial axes")
    if min([*kernel, *strides, *dilations], default=1) < 1 or min(padding, default=0) < 0:
        raise call.fail("kernel_shape, strides and dilations must be at least 1, and pads not negative")
    around, pads = [], []
    for j, (d, k, s, e) in enumerate(zip(extents, kernel, strides, dilations, strict=True)):
        span = (k - 1) * e + 1
        before, after = padding[j], padding[j + rank]
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            total = max(0, (-(-d // s) - 1) * s + span - d)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after = total - before
        elif mode == "VALID":
            before = after = 0
        elif mode != "NOTSET":
            raise call.fail(f"the attribute auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, not {mode}")
        if d + before + after < span:
            raise call.fail(f"a window of {span} must fit the padded image, {d + before + after}")
        end = after
        if ceil:
            count = -(-(d + before + after - span) // s) + 1
            if (count - 1) * s >= d + before:  # a window that begins in the padding at the end is not taken
                count -= 1
            end = max(after, (count - 1) * s + span - d - before)
        around.append((before, after))
        pads.append((before, end))
    call.room(*call.shape()[:2], *(d + p[0] + p[1] for d, p in zip(extents, pads, strict=True)))
    return Windows(list(kernel), strides, dilations, around, pads)


def convolve(call: Call, x: int, w: int) -> int:
    """The convolution of a node, without bias."""
    shape, kernel = call.b.shape(x), call.b.shape(w)[2:]
    stated = call.integers("kernel_shape")
    if len(shape) < 3 or len(call.b.shape(w)) != len(shape) or (stated is not None and tuple(stated) != kernel):
        raise call.fail(f"image and kernel must have one rank of at least 3, and kernel_shape be {list(kernel)}")
    around = windows(call, shape[2:], kernel, pooling=False)
    return call.add("conv", x, w, groups=call.integer("group", 1), **around.attributes())


def add_bias(call: Call, x: int, position: int) -> int:
    """A bias by channel, where it is given."""
    if not call.has(position):
        return x
    bias = call.operand(position)
    return call.apply(
        "add", x, words.reshape(call.b, bias, [1, call.b.shape(bias)[0], *[1] * (len(call.b.shape(x)) - 2)])
    )


@converts("Conv")
def _conv(call: Call) -> int:
    return add_bias(call, convolve(call, call.operand(0), call.operand(1)), 2)


@converts("ConvTranspose")
def _conv_transpose(call: Call) -> int:
    x, w, b = call.operand(0), call.operand(1), call.b
    extents, kernel, rank = b.shape(x)[2:], b.shape(w)[2:], len(b.shape(x)) - 2
    stated = call.integers("kernel_shape")
    if rank < 1 or len(kernel) != rank or (stated is not None and tuple(stated) != kernel):
        raise call.fail(f"image and kernel must have one rank of at least 3, and kernel_shape be {list(kernel)}")
    strides, dilations = call.integers("strides") or [1] * rank, call.integers("dilations") or [1] * rank
    extra, output_shape = call.integers("output_padding") or [0] * rank, call.integers("output_shape")
    padding, mode = call.integers("pads") or [0] * (2 * rank), call.text("auto_pad", "NOTSET")
    counts = [len(strides), len(dilations), len(extra), len(output_shape[-rank:] if output_shape else kernel)]
    if counts != [rank] * 4 or len(padding) != 2 * rank or min([*strides, *dilations]) < 1 or min(extra) < 0:
        raise call.fail(f"strides, dilations, pads, output_padding and output_shape must fit {rank} spatial axes")
    if mode not in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
        raise call.fail(f"the attribute auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, not {mode}")
    pads = []
    for j in range(rank):
        full = (extents[j] - 1) * strides[j] + (kernel[j] - 1) * dilations[j] + 1
        if output_shape is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
            output = output_shape[-rank:][j] if output_shape is not None else extents[j] * strides[j]
            total = full + extra[j] - output
            # an odd pad goes to the end with SAME_UPPER, else to the begin; a longer result has zeros at the end
            before = max(0, total) // 2 if mode == "SAME_UPPER" else max(0, total) - max(0, total) // 2
            after = total - before
        else:
            before, after = (0, 0) if mode == "VALID" else (padding[j], padding[j + rank])
        pads.append((before, after - extra[j]))
    groups = call.integer("group", 1)
    result = call.add("conv_transpose", x, w, groups=groups, strides=strides, dilations=dilations, pads=tuple(pads))
    return add_bias(call, result, 2)


@converts("MaxPool", note="without the output Indices")
def _max_pool(call: Call) -> int:
    call.ignore("storage_order")  # it orders the output Indices
    if len(call.outputs) > 1:
        raise call.fail("the output Indices is not supported; leave it out")
    around = windows(call, call.shape()[2:], call.integers("kernel_shape") or [], pooling=True)
    return call.add("max_pool", call.operand(0), kernel=around.kernel, **around.attributes())


@converts("AveragePool")
def _average_pool(call: Call) -> int:
    x, include = call.operand(0), bool(call.integer("count_include_pad", 0))
    around = windows(call, call.shape()[2:], call.integers("kernel_shape") or [], pooling=True)
    attributes = around.attributes()
    if include and around.pads != around.padding:  # what ceil_mode adds is no padding, and does not count
        before, after = ([0, 0, *(p[i] for p in around.padding)] for i in (0, 1))
        x = call.add("pad", x, call.literal(0), before=before, after=after)
        extra = [(0, p[1] - g[1]) for p, g in zip(around.pads, around.padding, strict=True)]
        attributes, include = {**attributes, "pads": tuple(extra)}, False
    return call.add("avg_pool", x, kernel=around.kernel, count_include_pad=include, **attributes)


@converts("LpPool")
def _lp_pool(call: Call) -> int:
    around = windows(call, call.shape()[2:], call.integers("kernel_shape") or [], pooling=True)
    channels = call.shape()[1]

    def total(powers: int) -> int:
        ones = call.constant(np.ones((channels, 1, *around.kernel), call.dtype()))
        return call.add("conv", powers, ones, groups=channels, **around.attributes())

    return _lp(call, total)


@converts("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(call: Call) -> int:
    x, axes = call.operand(0), list(range(2, len(call.shape())))
    if call.operator == "GlobalLpPool":
        return _lp(call, lambda powers: words.reduce(call.b, "reduce_sum", powers, axes, True))
    return words.reduce(call.b, "reduce_max" if call.operator == "GlobalMaxPool" else "mean", x, axes, True)


def _lp(call: Call, total: Callable[[int], int]) -> int:
    """The root of a sum of powers of magnitudes."""
    p = call.integer("p", 2)
    powers = call.apply("pow", call.add("abs", call.operand(0)), call.literal(p))
    return call.apply("pow", total(powers), call.literal(1 / p))


@converts("BatchNormalization", note="inference only")
def _batch_norm(call: Call) -> int:
    call.ignore("momentum")
    if call.opset < 9 and call.integer("spatial", 1) != 1:
        raise call.fail("the attribute spatial must be 1")
    if call.integer("training_mode", 0) or any(call.outputs[1:]):
        raise call.fail("batch normalisation must not be in training mode; export the model for inference")
    return call.add("batch_norm", *(call.operand(i) for i in range(5)), epsilon=call.real("epsilon", 1e-5))


@converts("InstanceNormalization")
def _instance_norm(call: Call) -> int:
    groups = call.shape()[1]
    return call.add(
        "group_norm", *(call.operand(i) for i in range(3)), groups=groups, epsilon=call.real("epsilon", 1e-5)
    )


@converts("GroupNormalization", note="since opset 21 (scale and bias by channel); earlier ones gave them by group")
def _group_norm(call: Call) -> int:
    if call.opset < 21:
        raise call.fail("group normalisation must be that of opset 21 or later; convert the model")
    wide = _stash(call)
    operands = [call.cast(call.operand(i), wide) for i in range(3)]
    result = call.add("group_norm", *operands, groups=call.integer("num_groups"), epsilon=call.real("epsilon", 1e-5))
    return call.cast(result, call.dtype())


def _stash(call: Call) -> str:
    """The type that statistics are computed in: stash_type 1 is binary32."""
    if call.integer("stash_type", 1) not in (1, 11):
        raise call.fail("the attribute stash_type must be 1 (binary32) or 11 (binary64)")
    return "float64" if call.integer("stash_type", 1) == 11 or call.dtype() == "float64" else "float32"


@converts("LayerNormalization", "RMSNormalization")
def _layer_norm(call: Call) -> int | list[int]:
    rank, wide, b = len(call.shape()), _stash(call), call.b
    axes = tuple(range(call.axis(call.integer("axis", -1), rank), rank))
    operands = [call.cast(x, wide) for x in call.operands if x is not None]
    operator = {"LayerNormalization": "layer_norm", "RMSNormalization": "rms_norm"}[call.operator]
    epsilon = call.real("epsilon", 1e-5)
    y = call.cast(call.add(operator, *operands, axes=axes, epsilon=epsilon), call.dtype())
    if operator == "rms_norm" or not any(call.outputs[1:]):
        return y
    # the mean and the inverse deviation, which only training reads
    mean, _, variance = _moments(call, operands[0], axes)
    deviation = b.add("sqrt", call.apply("add", variance, call.literal(epsilon, wide)))
    return [y, mean, b.add("reciprocal", deviation)][: len(call.outputs)]


def _moments(call: Call, x: int, axes: Sequence[int]) -> tuple[int, int, int]:
    """The mean along axes, which are kept, the differences from it, and the mean of their squares."""
    mean = words.reduce(call.b, "mean", x, axes, True)
    centred = call.apply("sub", x, mean)
    return mean, centred, words.reduce(call.b, "mean", call.add("mul", centred, centred), axes, True)


@converts("LpNormalization")
def _lp_norm(call: Call) -> int:
    axis, p, x = call.axis(call.integer("axis", -1), len(call.shape())), call.integer("p", 2), call.operand(0)
    if p not in (1, 2):
        raise call.fail(f"the attribute p must be 1 or 2, not {p}")
    powers = call.add("abs", x) if p == 1 else call.add("mul", x, x)
    total = words.reduce(call.b, "reduce_sum", powers, [axis], True)
    norm = total if p == 1 else call.add("sqrt", total)
    zero = call.apply("equal", norm, call.literal(0))  # a vector of norm 0 stays 0
    return call.apply("where", zero, call.literal(0), call.apply("div", x, norm))


@converts("MeanVarianceNormalization")
def _mean_variance(call: Call) -> int:
    axes = call.axes(call.integers("axes", [0, 2, 3]) or [], len(call.shape()))
    _, centred, variance = _moments(call, call.operand(0), axes)
    return call.apply("div", centred, call.apply("add", call.add("sqrt", variance), call.literal(1e-9)))


@converts("LRN")
def _lrn(call: Call) -> int:
    names = {"alpha": 0.0001, "beta": 0.75, "bias": 1.0}
    return call.add("lrn", call.operand(0), size=call.integer("size"), **{n: call.real(n, d) for n, d in names.items()})


@converts("Softmax", "LogSoftmax", "Hardmax")
def _softmax(call: Call) -> int:
    x, shape = call.operand(0), call.shape()
    if call.opset >= 13:
        return _along(call, x, call.axis(call.integer("axis", -1), len(shape)))
    axis = call.axis(call.integer("axis", 1), len(shape))  # until opset 12: all axes from this one on together
    flat = words.reshape(call.b, x, [prod(shape[:axis]), prod(shape[axis:])])
    return words.reshape(call.b, _along(call, flat, 1), shape)


def _along(call: Call, x: int, axis: int) -> int:
    """The operator along an axis.  Softmax of binary16 is rounded after each step of the function that defines it."""
    b = call.b
    if call.operator != "Softmax" or b.type(x).dtype != "float16":
        return call.add(
            {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[call.operator], x, axis=axis
        )
    powers = b.add("exp", words.apply(b, "sub", x, words.reduce(b, "reduce_max", x, [axis], True)))
    total = words.reduce(b, "reduce_sum", b.add("cast", powers, to="float32"), [axis], True)
    return words.apply(b, "div", powers, b.add("cast", total, to="float16"))
