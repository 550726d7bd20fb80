"""Rules on pooling: those that look right and are wrong, their repairs, and valid ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.tensors.conditions import both, le, lt
from ir_semantics.tensors.operators import broadcast, concat, number, pad, reshape, slice_, upsample
from ir_semantics.tensors.reductions import avg_pool, conv, max_pool, mean, reduce
from ir_semantics.tensors.terms import input_
from smt_encodings.claims import Equality

from .words import add, at_least, bias, clip, div, largest, mul, relu, scale, sizes

__all__ = ["RULES"]

N, C, H, W, K, S, P, Q, T = sizes("n c h w k s p q t")
IMAGE = input_("x", N, C, H, W)
SIGNAL = input_("x", N, C, W)
SQUARE: dict[str, Any] = {"strides": [S, S], "pads": [(P, P), (P, P)]}
MET = both(lt(P, K), at_least(1, H, W))
"""Every window meets the image: pads below the kernel's size, and an image that is not empty."""
REALS = Equality.OVER_REALS

_WRONG = [
    TensorRule(
        "relu out of average pooling",
        "avgpool(relu(x)) = relu(avgpool(x))",
        avg_pool(relu(SIGNAL), [K], strides=[S]),
        relu(avg_pool(SIGNAL, [K], strides=[S])),
        Kind.WRONG,
        equality=REALS,
        row="C7",
    ),
    TensorRule(
        "max pooling padded with zeros",
        "maxpool with zeros outside = maxpool with nothing outside",
        max_pool(IMAGE, [K, K], **SQUARE, outside=0),
        max_pool(IMAGE, [K, K], **SQUARE),
        Kind.WRONG,
        MET,
        row="C9",
    ),
    TensorRule(
        "average pooling twice as a larger one",
        "avgpool(2, stride 1) twice = avgpool(3, stride 1)",
        avg_pool(avg_pool(SIGNAL, [2]), [2]),
        avg_pool(SIGNAL, [3]),
        Kind.WRONG,
        equality=REALS,
        row="C11",
    ),
    TensorRule(
        "pad into average pooling that does not count pads",
        "avgpool(pad(x)) = avgpool(x, pads, count_include_pad=0)",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_pool(IMAGE, [K, K], **SQUARE),
        Kind.WRONG,
        MET,
        equality=REALS,
        row="C13",
    ),
    TensorRule(
        "max pooling of a product",
        "maxpool(x * y) = maxpool(x) * maxpool(y)",
        max_pool(mul(SIGNAL, input_("y", N, C, W)), [K], strides=[S]),
        mul(max_pool(SIGNAL, [K], strides=[S]), max_pool(input_("y", N, C, W), [K], strides=[S])),
        Kind.WRONG,
        equality=REALS,
        row="C15",
    ),
    TensorRule(
        "max pooling of a product of positive numbers",
        "maxpool(x * y) = maxpool(x) * maxpool(y) for x, y > 0",
        max_pool(mul(SIGNAL, input_("y", N, C, W)), [K], strides=[S]),
        mul(max_pool(SIGNAL, [K], strides=[S]), max_pool(input_("y", N, C, W), [K], strides=[S])),
        Kind.WRONG,
        equality=REALS,
        positive=frozenset({"x", "y"}),
        row="C15",
        note="signs are not what is wrong: the maxima of x and y need not stand at the same place",
    ),
    TensorRule(
        "max pooling twice, windows with gaps",
        "maxpool(k, s) twice = maxpool((k - 1) * s + k, s * s)",
        max_pool(max_pool(SIGNAL, [K], strides=[S]), [K], strides=[S]),
        max_pool(SIGNAL, [(K - 1) * S + K], strides=[S * S]),
        Kind.WRONG,
        note="elements between windows are never seen if s > k",
    ),
    TensorRule(
        "relu out of max pooling, any pads",
        "maxpool(relu(x)) = relu(maxpool(x))",
        max_pool(relu(SIGNAL), [K], strides=[S], pads=[(P, P)]),
        relu(max_pool(SIGNAL, [K], strides=[S], pads=[(P, P)])),
        Kind.WRONG,
        at_least(1, N, C, W),
        note="the maximum of a window that lies in the pads is -inf on the left and 0 on the right",
    ),
    TensorRule(
        "max pooling commutes with concatenation along the pooled axis",
        "maxpool(concat(x, y)) = concat(maxpool(x), maxpool(y)), stride k",
        max_pool(concat(2, SIGNAL, input_("y", N, C, T)), [K], strides=[K]),
        concat(2, max_pool(SIGNAL, [K], strides=[K]), max_pool(input_("y", N, C, T), [K], strides=[K])),
        Kind.WRONG,
        both(at_least(1, N, C), le(K, W), le(K, T)),
    ),
    TensorRule(
        "global average as pooling of a part",
        "mean over the spatial axes = avgpool(k) of the first window",
        mean(SIGNAL, [2]),
        reshape(avg_pool(slice_(SIGNAL, [0, 0, 0], [N, C, K]), [K]), N, C),
        Kind.WRONG,
        both(at_least(1, N, C, K), le(K, W)),
        equality=REALS,
    ),
]

_REPAIRED = [
    TensorRule(
        "max pooling after relu padded with zeros",
        "maxpool(relu(x)) with zeros outside = maxpool(relu(x)) with nothing outside",
        max_pool(relu(IMAGE), [K, K], **SQUARE, outside=0),
        max_pool(relu(IMAGE), [K, K], **SQUARE),
        Kind.REPAIRED,
        MET,
        row="C9",
    ),
    TensorRule(
        "pad into average pooling that counts pads",
        "avgpool(pad(x)) = avgpool(x, pads, count_include_pad=1)",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_pool(IMAGE, [K, K], **SQUARE, count_include_pad=True),
        Kind.REPAIRED,
        equality=REALS,
        row="C13",
    ),
    TensorRule(
        "max pooling of a positive multiple",
        "maxpool(x * a) = maxpool(x) * a for a scalar a > 0",
        max_pool(scale(SIGNAL, input_("a")), [K], strides=[S], pads=[(P, P)]),
        scale(max_pool(SIGNAL, [K], strides=[S], pads=[(P, P)]), input_("a")),
        Kind.REPAIRED,
        MET,
        equality=REALS,
        positive=frozenset({"a"}),
        row="C15",
        note="the factor must be the same for the whole window",
    ),
    TensorRule(
        "average pooling twice as weights 1, 2, 1",
        "avgpool(2, stride 1) twice = (x[i] + 2 x[i+1] + x[i+2]) / 4",
        avg_pool(avg_pool(SIGNAL, [2]), [2]),
        scale(
            add(
                add(slice_(SIGNAL, [0, 0, 0], [N, C, W - 2]), slice_(SIGNAL, [0, 0, 2], [N, C, W])),
                scale(slice_(SIGNAL, [0, 0, 1], [N, C, W - 1]), 2),
            ),
            Fraction(1, 4),
        ),
        Kind.REPAIRED,
        equality=REALS,
        row="C11",
    ),
]

_VALID = [
    TensorRule(
        "max pooling k3s2 twice",
        "maxpool(3, stride 2) twice = maxpool(7, stride 4)",
        max_pool(max_pool(IMAGE, [3, 3], strides=[2, 2]), [3, 3], strides=[2, 2]),
        max_pool(IMAGE, [7, 7], strides=[4, 4]),
        Kind.VALID,
        row="6.9",
    ),
    TensorRule(
        "max pooling twice, any windows without gaps",
        "maxpool(k, s) then maxpool(q, t) = maxpool((q - 1) * s + k, s * t) if s <= k",
        max_pool(max_pool(SIGNAL, [K], strides=[S]), [Q], strides=[T]),
        max_pool(SIGNAL, [(Q - 1) * S + K], strides=[S * T]),
        Kind.VALID,
        lt(S, K + 1),
    ),
    TensorRule(
        "max pooling of a nearest upsampling",
        "maxpool(k, stride k) of upsample(x, k) = x",
        max_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K]),
        IMAGE,
        Kind.VALID,
        row="6.9",
    ),
    TensorRule(
        "average pooling of a nearest upsampling",
        "avgpool(k, stride k) of upsample(x, k) = x",
        avg_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K], count_include_pad=True),
        IMAGE,
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "relu commutes with max pooling",
        "maxpool(relu(x)) = relu(maxpool(x)) if every window meets the image",
        max_pool(relu(IMAGE), [K, K], **SQUARE),
        relu(max_pool(IMAGE, [K, K], **SQUARE)),
        Kind.VALID,
        MET,
        row="6.9",
    ),
    TensorRule(
        "clamp commutes with max pooling",
        "maxpool(clamp(x, 0, 6)) = clamp(maxpool(x), 0, 6)",
        max_pool(clip(IMAGE, 0, 6), [K, K], strides=[S, S]),
        clip(max_pool(IMAGE, [K, K], strides=[S, S]), 0, 6),
        Kind.VALID,
        at_least(1, K),
    ),
    TensorRule(
        "max pooling per axis",
        "maxpool(k x q) = maxpool(k x 1) of maxpool(1 x q)",
        max_pool(IMAGE, [K, Q], strides=[S, T]),
        max_pool(max_pool(IMAGE, [1, Q], strides=[1, T]), [K, 1], strides=[S, 1]),
        Kind.VALID,
    ),
    TensorRule(
        "max pooling k x k as pairs and singles",
        "maxpool(4) = maxpool(2, stride 2) of maxpool(2, stride 2), for stride 4",
        max_pool(SIGNAL, [4], strides=[4]),
        max_pool(max_pool(SIGNAL, [2], strides=[2]), [2], strides=[2]),
        Kind.VALID,
    ),
    TensorRule(
        "max pooling of a larger window by maxima of neighbours",
        "maxpool(3, stride 1) = maximum of maxpool(2, stride 1) at neighbours",
        max_pool(SIGNAL, [3]),
        largest(
            slice_(max_pool(SIGNAL, [2]), [0, 0, 0], [N, C, W - 2]),
            slice_(max_pool(SIGNAL, [2]), [0, 0, 1], [N, C, W - 1]),
        ),
        Kind.VALID,
    ),
    TensorRule(
        "bias commutes with max pooling",
        "maxpool(x + b) = maxpool(x) + b for a bias per channel",
        max_pool(bias(IMAGE, input_("b", C), 1), [K, K], **SQUARE),
        bias(max_pool(IMAGE, [K, K], **SQUARE), input_("b", C), 1),
        Kind.VALID,
        MET,
        equality=REALS,
    ),
    TensorRule(
        "maximum commutes with max pooling",
        "maxpool(maximum(x, y)) = maximum(maxpool(x), maxpool(y))",
        max_pool(largest(IMAGE, input_("y", N, C, H, W)), [K, K], **SQUARE),
        largest(max_pool(IMAGE, [K, K], **SQUARE), max_pool(input_("y", N, C, H, W), [K, K], **SQUARE)),
        Kind.VALID,
    ),
    TensorRule(
        "global maximum as max pooling",
        "max over the spatial axes = maxpool of the whole image",
        reduce("max", IMAGE, [2, 3]),
        reshape(max_pool(IMAGE, [H, W]), N, C),
        Kind.VALID,
        at_least(1, C, H, W),
    ),
    TensorRule(
        "global mean as average pooling",
        "mean over the spatial axes = avgpool of the whole image",
        mean(IMAGE, [2, 3]),
        reshape(avg_pool(IMAGE, [H, W], count_include_pad=True), N, C),
        Kind.VALID,
        at_least(1, C),
        equality=REALS,
    ),
    TensorRule(
        "average pooling in two steps without overlap",
        "avgpool(k, k) then avgpool(q, q) = avgpool(k * q, k * q)",
        avg_pool(avg_pool(SIGNAL, [K], strides=[K], count_include_pad=True), [Q], strides=[Q], count_include_pad=True),
        avg_pool(SIGNAL, [K * Q], strides=[K * Q], count_include_pad=True),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "average pooling as a convolution",
        "avgpool(k) of one channel = conv with 1 / k everywhere",
        avg_pool(input_("x", N, 1, W), [K], strides=[S], count_include_pad=True),
        conv(
            input_("x", N, 1, W),
            broadcast(div(number(1), number(K)), [1, 1, K], []),
            strides=[S],
        ),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "average pooling is linear",
        "avgpool(a * x) = a * avgpool(x)",
        avg_pool(scale(IMAGE, input_("a")), [K, K], **SQUARE),
        scale(avg_pool(IMAGE, [K, K], **SQUARE), input_("a")),
        Kind.VALID,
        MET,
        equality=REALS,
    ),
    TensorRule(
        "pad with -inf into max pooling",
        "maxpool(pad(x, -inf)) = maxpool(x, pads)",
        max_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P], float("-inf")), [K, K], strides=[S, S]),
        max_pool(IMAGE, [K, K], **SQUARE),
        Kind.VALID,
    ),
    TensorRule(
        "max pooling of channel parts",
        "maxpool(concat(x, y)) = concat(maxpool(x), maxpool(y)) along channels",
        max_pool(concat(1, IMAGE, input_("y", N, Q, H, W)), [K, K], **SQUARE),
        concat(1, max_pool(IMAGE, [K, K], **SQUARE), max_pool(input_("y", N, Q, H, W), [K, K], **SQUARE)),
        Kind.VALID,
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
