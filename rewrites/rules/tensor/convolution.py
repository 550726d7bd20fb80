"""Rules on convolution: those that look right and are wrong, their repairs, and valid ones."""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import equal, le
from ir_semantics.tensors.index import product, size
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    upsample,
    where,
)
from ir_semantics.tensors.reductions import conv, matmul, patches
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import GAIN, IMAGE, OTHER, SIGNAL, SIZES, TAPS, along, conv_1d, conv_2d, first, normalised, rest
from .words import (
    add,
    at_least,
    bias,
    mul,
    over_reals,
    relu,
    reordered,
    repaired_over_reals,
    scale,
    sub,
    wrong_over_reals,
    wrong_reordered,
)

N, C, H, W, K, S, P, Q, T, OUT, _ = SIZES


KERNEL, POINT = input_("w", OUT, C, K, K), input_("w", OUT, C, 1, 1)


def composed(first: Tensor, second: Tensor) -> Tensor:
    """The kernel whose convolution is that of ``first`` and then ``second`` (1-D)."""
    k = second.shape[2]
    swapped = transpose(first, [1, 0, 2])
    full = conv(swapped, second, pads=[(k - 1, k - 1)], correlate=False)
    return transpose(full, [1, 0, 2])


def im2col_2d(image: Tensor, kernel: Tensor) -> Tensor:
    """The convolution of images with kernels as a product of matrices, before its result is reshaped."""
    columns = patches(image, kernel.shape[2:])
    batch, taps, places = image.shape[0], product(kernel.shape[1:]), columns.shape[4:]
    flat = reshape(columns, batch, taps, product(places))
    weights = broadcast(reshape(kernel, kernel.shape[0], taps), [batch, kernel.shape[0], taps], [1, 2])
    return reshape(matmul(weights, flat), batch, kernel.shape[0], *places)


def im2col(exchanged: bool = False) -> Tensor:
    """The convolution of SIGNAL with TAPS as a product of matrices."""
    columns = patches(SIGNAL, [K], strides=[S], pads=[(P, P)])
    windows = columns.shape[3]
    order = [0, 2, 1, 3] if exchanged else [0, 1, 2, 3]
    flat = reshape(transpose(columns, order), N, C * K, windows)
    weights = broadcast(reshape(TAPS, OUT, C * K), [N, OUT, C * K], [1, 2])
    return matmul(weights, flat)


def _spread_groups(w: Tensor) -> Tensor:
    """Kernels of t groups as kernels over all channels: zeros outside the group's own."""
    full = reshape(broadcast(w, [T * OUT, T, C, K], [0, 2, 3]), T * OUT, T * C, K)
    return where(lambda o, c, k: equal(o // OUT, c // C), full, fill(0, T * OUT, T * C, K))


FIRST, SECOND = input_("v", Q, C, K), input_("w", OUT, Q, T)
SYMMETRIC = where(lambda o, c, k: le(2 * k, K - 1), TAPS, reverse(TAPS, 2))
"""Every kernel with w[k] = w[K-1-k] is of this form."""
D = size("d")
PADDED = input_("x", N, C, H + K - 1, W + K - 1)
"""Any image that kernels of k x k fit into: its result has h x w elements."""
GROUPED, PARTS = input_("x", N, 2 * C, W), input_("w", 2 * OUT, C, K)
SPREAD = where(
    lambda o, c, k: equal(k % D, 0),
    slice_(upsample(TAPS, [1, 1, D]), [0, 0, 0], [OUT, C, (K - 1) * D + 1]),
    fill(0, OUT, C, (K - 1) * D + 1),
)
"""A kernel with d - 1 zeros between its elements."""

STRIDED_PIXELS = TensorRule(
    "1 x 1 convolution with a stride as subsampling",
    conv(IMAGE, POINT, strides=[S, T]),
    conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), POINT),
)

_WRONG = [
    wrong_over_reals(
        "pad with any value into convolution",
        conv(pad(SIGNAL, [0, 0, P], [0, 0, P], input_("v")), TAPS, strides=[S]),
        conv_1d(SIGNAL, TAPS),
        row="L1",
    ),
    wrong_over_reals("relu out of convolution", conv(relu(SIGNAL), TAPS), relu(conv(SIGNAL, TAPS)), row="L3"),
    wrong_over_reals(
        "two convolutions with pads as one",
        conv(conv(SIGNAL, input_("v", Q, C, 3), pads=[(1, 1)]), input_("w", OUT, Q, 3), pads=[(1, 1)]),
        conv(SIGNAL, composed(input_("v", Q, C, 3), input_("w", OUT, Q, 3)), pads=[(2, 2)]),
        at_least(1, W),
        row="L5",
    ),
    wrong_over_reals(
        "convolution as cross-correlation", conv_1d(SIGNAL, TAPS, correlate=False), conv_1d(SIGNAL, TAPS), row="L29"
    ),
    wrong_over_reals(
        "convolution commutes with upsampling",
        conv(upsample(SIGNAL, [1, 1, 2]), input_("w", OUT, C, 3), pads=[(1, 1)]),
        upsample(conv(SIGNAL, input_("w", OUT, C, 3), pads=[(1, 1)]), [1, 1, 2]),
        at_least(1, W),
        row="L37",
    ),
    wrong_over_reals(
        "k x k convolution commutes with subsampling",
        slice_(conv(SIGNAL, TAPS), [0, 0, 0], [N, OUT, W - K + 1], [1, 1, S]),
        conv(slice_(SIGNAL, [0, 0, 0], [N, C, W], [1, 1, S]), TAPS),
        le(K, 1 + (W - 1) // S),
    ),
    wrong_over_reals(
        "batch normalisation folded with the mean left out",
        normalised(conv(SIGNAL, TAPS), input_("b", OUT)),
        bias(conv(SIGNAL, mul(TAPS, along(GAIN, TAPS, 0))), input_("b", OUT), 1),
    ),
    wrong_reordered(
        "im2col with kernel and channel exchanged",
        conv_1d(SIGNAL, TAPS),
        im2col(exchanged=True),
        at_least(1, N, C, K, OUT),
    ),
]

_REPAIRED = [
    repaired_over_reals(
        "pad with zeros into convolution",
        conv(pad(IMAGE, [0, 0, P, Q], [0, 0, P, Q]), KERNEL, strides=[S, T]),
        conv(IMAGE, KERNEL, strides=[S, T], pads=[(P, P), (Q, Q)]),
        row="L1",
    ),
    repaired_over_reals(
        "two convolutions without pads as one",
        conv(conv(SIGNAL, FIRST), SECOND),
        conv(SIGNAL, composed(FIRST, SECOND)),
        row="L5",
    ),
    repaired_over_reals(
        "convolution as cross-correlation with a symmetric kernel",
        conv_1d(SIGNAL, SYMMETRIC, correlate=False),
        conv_1d(SIGNAL, SYMMETRIC),
        row="L29",
    ),
]

_VALID = [
    reordered("im2col of images", conv(PADDED, KERNEL), im2col_2d(PADDED, KERNEL), at_least(1, N, C, OUT, K, H, W)),
    TensorRule(
        "two groups as two convolutions",
        conv_1d(GROUPED, PARTS, groups=2),
        concat(1, conv_1d(first(GROUPED, C, 1), first(PARTS, OUT)), conv_1d(rest(GROUPED, C, 1), rest(PARTS, OUT))),
        at_least(1, OUT),
    ),
    over_reals(
        "any number of groups as a convolution with zeros",
        conv(input_("x", N, T * C, W), input_("w", T * OUT, C, K), strides=[S], groups=T),
        conv(input_("x", N, T * C, W), _spread_groups(input_("w", T * OUT, C, K)), strides=[S]),
        at_least(1, T, OUT, C, K),
    ),
    TensorRule(
        "depthwise convolution of one channel",
        conv(input_("x", N, 1, W), input_("w", OUT, 1, K), groups=1),
        conv(input_("x", N, 1, W), input_("w", OUT, 1, K)),
    ),
    over_reals("dilation as zeros in the kernel", conv_1d(SIGNAL, TAPS, dilations=[D]), conv_1d(SIGNAL, SPREAD)),
    TensorRule(
        "1 x 1 convolution commutes with upsampling",
        conv(upsample(IMAGE, [1, 1, S, T]), POINT),
        upsample(conv(IMAGE, POINT), [1, 1, S, T]),
        at_least(1, H, W),
        note="what is left of the wrong rule L37",
    ),
    over_reals(
        "convolution is linear in the image",
        conv_2d(add(IMAGE, OTHER), KERNEL),
        add(conv_2d(IMAGE, KERNEL), conv_2d(OTHER, KERNEL)),
    ),
    TensorRule(
        "two convolutions of one image as one",
        concat(1, conv_2d(IMAGE, KERNEL), conv_2d(IMAGE, input_("v", Q, C, K, K))),
        conv_2d(IMAGE, concat(0, KERNEL, input_("v", Q, C, K, K))),
    ),
    over_reals(
        "a factor into the kernel",
        scale(conv_2d(IMAGE, KERNEL), input_("a")),
        conv_2d(IMAGE, scale(KERNEL, input_("a"))),
    ),
    reordered(
        "convolution with a kernel as large as the image",
        reshape(conv(SIGNAL, input_("w", OUT, C, W)), N, OUT),
        matmul(reshape(SIGNAL, N, C * W), transpose(reshape(input_("w", OUT, C, W), OUT, C * W), [1, 0])),
        at_least(1, OUT, C, W),
    ),
    reordered(
        "flipping image and kernel",
        conv(reverse(SIGNAL, 2), TAPS, pads=[(P, P)]),
        reverse(conv(SIGNAL, reverse(TAPS, 2), pads=[(P, P)]), 2),
    ),
    reordered(
        "convolution commutes with exchange of height and width",
        conv_2d(transpose(IMAGE, [0, 1, 3, 2]), transpose(KERNEL, [0, 1, 3, 2])),
        transpose(conv_2d(IMAGE, KERNEL), [0, 1, 3, 2]),
    ),
    TensorRule(
        "rows of a convolution from a part of the image",
        rest(conv(SIGNAL, TAPS), Q, 2),
        conv(rest(SIGNAL, Q, 2), TAPS),
        le(Q + K, W),
    ),
    TensorRule(
        "1 x 1 convolution commutes with subsampling",
        slice_(conv(IMAGE, POINT), [0] * 4, [N, OUT, H, W], [1, 1, S, T]),
        conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), POINT),
        at_least(1, H, W),
        row="6.9",
    ),
    STRIDED_PIXELS,
    over_reals(
        "1 x 1 convolution as 3 x 3 with pads",
        conv(IMAGE, POINT, strides=[S, S], pads=[(P, P), (P, P)]),
        conv(IMAGE, pad(POINT, [0, 0, 1, 1], [0, 0, 1, 1]), strides=[S, S], pads=[(P + 1, P + 1), (P + 1, P + 1)]),
        row="6.9",
    ),
    reordered(
        "1 x 1 convolution as matmul",
        conv(IMAGE, POINT),
        reshape(
            matmul(broadcast(reshape(POINT, OUT, C), [N, OUT, C], [1, 2]), reshape(IMAGE, N, C, H * W)), N, OUT, H, W
        ),
        at_least(1, N, C, H, W, OUT),
    ),
    reordered("im2col", conv_1d(SIGNAL, TAPS), im2col(), at_least(1, N, C, K, OUT)),
    reordered(
        "channels of a convolution in two parts",
        conv_2d(IMAGE, KERNEL),
        add(conv_2d(first(IMAGE, Q, 1), first(KERNEL, Q, 1)), conv_2d(rest(IMAGE, Q, 1), rest(KERNEL, Q, 1))),
        le(Q, C),
    ),
    over_reals(
        "batch normalisation into a convolution",
        normalised(conv_2d(IMAGE, KERNEL), input_("b", OUT)),
        bias(
            conv_2d(IMAGE, mul(KERNEL, along(GAIN, KERNEL, 0))), sub(input_("b", OUT), mul(input_("mu", OUT), GAIN)), 1
        ),
    ),
    over_reals(
        "zeros around a kernel",
        conv_1d(SIGNAL, TAPS),
        conv(SIGNAL, pad(TAPS, [0, 0, Q], [0, 0, Q]), strides=[S], pads=[(P + Q, P + Q)]),
    ),
    reordered(
        "convolution of an image with one row",
        conv(reshape(SIGNAL, N, C, 1, W), reshape(TAPS, OUT, C, 1, K), strides=[1, S], pads=[(0, 0), (P, P)]),
        reshape(conv_1d(SIGNAL, TAPS), N, OUT, 1, (W + 2 * P - K) // S + 1),
        at_least(1, N, C, W, OUT, K),
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
