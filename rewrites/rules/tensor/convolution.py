"""Valid rules on convolution: as matmul, in parts, with a folded normalisation."""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import equal, le
from ir_semantics.tensors.index import size
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
from ir_semantics.tensors.reductions import conv, matmul
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import (
    GAIN,
    IMAGE,
    KERNEL,
    ORDER,
    OUT,
    REALS,
    SIGNAL,
    SQUARE,
    TAPS,
    C,
    H,
    K,
    N,
    P,
    Q,
    S,
    T,
    W,
    along,
    first,
    im2col,
    im2col_2d,
    normalised,
    rest,
)
from .words import add, at_least, bias, mul, scale, sub


def _spread_groups(w: Tensor) -> Tensor:
    """Kernels of t groups as kernels over all channels: zeros outside the group's own."""
    full = reshape(broadcast(w, [T * OUT, T, C, K], [0, 2, 3]), T * OUT, T * C, K)
    return where(lambda o, c, k: equal(o // OUT, c // C), full, fill(0, T * OUT, T * C, K))


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
    conv(IMAGE, input_("w", OUT, C, 1, 1), strides=[S, T]),
    conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), input_("w", OUT, C, 1, 1)),
)
OUTPUTS_IN_PARTS = TensorRule(
    "outputs of a convolution in two parts",
    conv(IMAGE, KERNEL, **SQUARE),
    concat(1, conv(IMAGE, first(KERNEL, Q), **SQUARE), conv(IMAGE, rest(KERNEL, Q), **SQUARE)),
    le(Q, OUT),
)
BATCHES_IN_PARTS = TensorRule(
    "batches of a convolution in two parts",
    conv(IMAGE, KERNEL, **SQUARE),
    concat(0, conv(first(IMAGE, Q), KERNEL, **SQUARE), conv(rest(IMAGE, Q), KERNEL, **SQUARE)),
    le(Q, N),
)

_VALID = [
    TensorRule(
        "im2col of images",
        conv(PADDED, KERNEL),
        im2col_2d(PADDED, KERNEL, {}),
        at_least(1, N, C, OUT, K, H, W),
        equality=ORDER,
    ),
    TensorRule(
        "two groups as two convolutions",
        conv(GROUPED, PARTS, strides=[S], pads=[(P, P)], groups=2),
        concat(
            1,
            conv(first(GROUPED, C, 1), first(PARTS, OUT), strides=[S], pads=[(P, P)]),
            conv(rest(GROUPED, C, 1), rest(PARTS, OUT), strides=[S], pads=[(P, P)]),
        ),
        at_least(1, OUT),
    ),
    TensorRule(
        "any number of groups as a convolution with zeros",
        conv(input_("x", N, T * C, W), input_("w", T * OUT, C, K), strides=[S], groups=T),
        conv(input_("x", N, T * C, W), _spread_groups(input_("w", T * OUT, C, K)), strides=[S]),
        at_least(1, T, OUT, C, K),
        equality=REALS,
    ),
    TensorRule(
        "depthwise convolution of one channel",
        conv(input_("x", N, 1, W), input_("w", OUT, 1, K), groups=1),
        conv(input_("x", N, 1, W), input_("w", OUT, 1, K)),
    ),
    TensorRule(
        "dilation as zeros in the kernel",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)], dilations=[D]),
        conv(SIGNAL, SPREAD, strides=[S], pads=[(P, P)]),
        equality=REALS,
    ),
    TensorRule(
        "1 x 1 convolution commutes with upsampling",
        conv(upsample(IMAGE, [1, 1, S, T]), input_("w", OUT, C, 1, 1)),
        upsample(conv(IMAGE, input_("w", OUT, C, 1, 1)), [1, 1, S, T]),
        at_least(1, H, W),
        note="what is left of the wrong rule L37",
    ),
    TensorRule(
        "convolution is linear in the image",
        conv(add(IMAGE, input_("y", N, C, H, W)), KERNEL, **SQUARE),
        add(conv(IMAGE, KERNEL, **SQUARE), conv(input_("y", N, C, H, W), KERNEL, **SQUARE)),
        equality=REALS,
    ),
    TensorRule(
        "two convolutions of one image as one",
        concat(1, conv(IMAGE, KERNEL, **SQUARE), conv(IMAGE, input_("v", Q, C, K, K), **SQUARE)),
        conv(IMAGE, concat(0, KERNEL, input_("v", Q, C, K, K)), **SQUARE),
    ),
    TensorRule(
        "a factor into the kernel",
        scale(conv(IMAGE, KERNEL, **SQUARE), input_("a")),
        conv(IMAGE, scale(KERNEL, input_("a")), **SQUARE),
        equality=REALS,
    ),
    TensorRule(
        "convolution with a kernel as large as the image",
        reshape(conv(SIGNAL, input_("w", OUT, C, W)), N, OUT),
        matmul(reshape(SIGNAL, N, C * W), transpose(reshape(input_("w", OUT, C, W), OUT, C * W), [1, 0])),
        at_least(1, OUT, C, W),
        equality=ORDER,
    ),
    TensorRule(
        "flipping image and kernel",
        conv(reverse(SIGNAL, 2), TAPS, pads=[(P, P)]),
        reverse(conv(SIGNAL, reverse(TAPS, 2), pads=[(P, P)]), 2),
        equality=ORDER,
    ),
    TensorRule(
        "convolution commutes with exchange of height and width",
        conv(transpose(IMAGE, [0, 1, 3, 2]), transpose(KERNEL, [0, 1, 3, 2]), **SQUARE),
        transpose(conv(IMAGE, KERNEL, **SQUARE), [0, 1, 3, 2]),
        equality=ORDER,
    ),
    TensorRule(
        "rows of a convolution from a part of the image",
        rest(conv(SIGNAL, TAPS), Q, 2),
        conv(rest(SIGNAL, Q, 2), TAPS),
        le(Q + K, W),
    ),
    TensorRule(
        "1 x 1 convolution commutes with subsampling",
        slice_(conv(IMAGE, input_("w", OUT, C, 1, 1)), [0] * 4, [N, OUT, H, W], [1, 1, S, T]),
        conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), input_("w", OUT, C, 1, 1)),
        at_least(1, H, W),
        row="6.9",
    ),
    STRIDED_PIXELS,
    TensorRule(
        "1 x 1 convolution as 3 x 3 with pads",
        conv(IMAGE, input_("w", OUT, C, 1, 1), strides=[S, S], pads=[(P, P), (P, P)]),
        conv(
            IMAGE,
            pad(input_("w", OUT, C, 1, 1), [0, 0, 1, 1], [0, 0, 1, 1]),
            strides=[S, S],
            pads=[(P + 1, P + 1), (P + 1, P + 1)],
        ),
        equality=REALS,
        row="6.9",
    ),
    TensorRule(
        "1 x 1 convolution as matmul",
        conv(IMAGE, input_("w", OUT, C, 1, 1)),
        reshape(
            matmul(
                broadcast(reshape(input_("w", OUT, C, 1, 1), OUT, C), [N, OUT, C], [1, 2]), reshape(IMAGE, N, C, H * W)
            ),
            N,
            OUT,
            H,
            W,
        ),
        at_least(1, N, C, H, W, OUT),
        equality=ORDER,
    ),
    TensorRule(
        "im2col",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        im2col(),
        at_least(1, N, C, K, OUT),
        equality=ORDER,
    ),
    TensorRule(
        "channels of a convolution in two parts",
        conv(IMAGE, KERNEL, **SQUARE),
        add(
            conv(first(IMAGE, Q, 1), first(KERNEL, Q, 1), **SQUARE),
            conv(rest(IMAGE, Q, 1), rest(KERNEL, Q, 1), **SQUARE),
        ),
        le(Q, C),
        equality=ORDER,
    ),
    OUTPUTS_IN_PARTS,
    BATCHES_IN_PARTS,
    TensorRule(
        "batch normalisation into a convolution",
        normalised(conv(IMAGE, KERNEL, **SQUARE), input_("b", OUT)),
        bias(
            conv(IMAGE, mul(KERNEL, along(GAIN, KERNEL, 0)), **SQUARE),
            sub(input_("b", OUT), mul(input_("mu", OUT), GAIN)),
            1,
        ),
        equality=REALS,
    ),
    TensorRule(
        "zeros around a kernel",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        conv(SIGNAL, pad(TAPS, [0, 0, Q], [0, 0, Q]), strides=[S], pads=[(P + Q, P + Q)]),
        equality=REALS,
    ),
    TensorRule(
        "convolution of an image with one row",
        conv(reshape(SIGNAL, N, C, 1, W), reshape(TAPS, OUT, C, 1, K), strides=[1, S], pads=[(0, 0), (P, P)]),
        reshape(conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]), N, OUT, 1, (W + 2 * P - K) // S + 1),
        at_least(1, N, C, W, OUT, K),
        equality=ORDER,
    ),
]

RULES = tuple(_VALID)
"""All rules of this module."""
