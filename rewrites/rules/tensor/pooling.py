"""Rules on pooling: those that look right and are wrong, their repairs, and valid ones."""

from __future__ import annotations

from fractions import Fraction

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both, le, lt
from ir_semantics.tensors.operators import broadcast, concat, number, pad, reshape, slice_, upsample
from ir_semantics.tensors.reductions import avg_pool, conv, max_pool, mean, reduce
from ir_semantics.tensors.terms import input_

from .inputs import IMAGE, MET, REALS, SIGNAL, SQUARE, C, H, K, N, P, Q, S, T, W
from .words import add, at_least, bias, clip, div, largest, mul, relu, repaired, scale, wrong

_WRONG = [
    wrong(
        "relu out of average pooling",
        avg_pool(relu(SIGNAL), [K], strides=[S]),
        relu(avg_pool(SIGNAL, [K], strides=[S])),
        equality=REALS,
        row="C7",
    ),
    wrong(
        "max pooling padded with zeros",
        max_pool(IMAGE, [K, K], **SQUARE, outside=0),
        max_pool(IMAGE, [K, K], **SQUARE),
        MET,
        row="C9",
    ),
    wrong(
        "average pooling twice as a larger one",
        avg_pool(avg_pool(SIGNAL, [2]), [2]),
        avg_pool(SIGNAL, [3]),
        equality=REALS,
        row="C11",
    ),
    wrong(
        "pad into average pooling that does not count pads",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_pool(IMAGE, [K, K], **SQUARE),
        MET,
        equality=REALS,
        row="C13",
    ),
    wrong(
        "max pooling of a product",
        max_pool(mul(SIGNAL, input_("y", N, C, W)), [K], strides=[S]),
        mul(max_pool(SIGNAL, [K], strides=[S]), max_pool(input_("y", N, C, W), [K], strides=[S])),
        equality=REALS,
        row="C15",
    ),
    wrong(
        "max pooling of a product of positive numbers",
        max_pool(mul(SIGNAL, input_("y", N, C, W)), [K], strides=[S]),
        mul(max_pool(SIGNAL, [K], strides=[S]), max_pool(input_("y", N, C, W), [K], strides=[S])),
        equality=REALS,
        positive=frozenset({"x", "y"}),
        row="C15",
        note="signs are not what is wrong: the maxima of x and y need not stand at the same place",
    ),
    wrong(
        "max pooling twice, windows with gaps",
        max_pool(max_pool(SIGNAL, [K], strides=[S]), [K], strides=[S]),
        max_pool(SIGNAL, [(K - 1) * S + K], strides=[S * S]),
        note="elements between windows are never seen if s > k",
    ),
    wrong(
        "relu out of max pooling, any pads",
        max_pool(relu(SIGNAL), [K], strides=[S], pads=[(P, P)]),
        relu(max_pool(SIGNAL, [K], strides=[S], pads=[(P, P)])),
        at_least(1, N, C, W),
        note="the maximum of a window that lies in the pads is -inf on the left and 0 on the right",
    ),
    wrong(
        "max pooling commutes with concatenation along the pooled axis",
        max_pool(concat(2, SIGNAL, input_("y", N, C, T)), [K], strides=[K]),
        concat(2, max_pool(SIGNAL, [K], strides=[K]), max_pool(input_("y", N, C, T), [K], strides=[K])),
        both(at_least(1, N, C), le(K, W), le(K, T)),
    ),
    wrong(
        "global average as pooling of a part",
        mean(SIGNAL, [2]),
        reshape(avg_pool(slice_(SIGNAL, [0, 0, 0], [N, C, K]), [K]), N, C),
        both(at_least(1, N, C, K), le(K, W)),
        equality=REALS,
    ),
]

_REPAIRED = [
    repaired(
        "max pooling after relu padded with zeros",
        max_pool(relu(IMAGE), [K, K], **SQUARE, outside=0),
        max_pool(relu(IMAGE), [K, K], **SQUARE),
        MET,
        row="C9",
    ),
    repaired(
        "pad into average pooling that counts pads",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_pool(IMAGE, [K, K], **SQUARE, count_include_pad=True),
        equality=REALS,
        row="C13",
    ),
    repaired(
        "max pooling of a positive multiple",
        max_pool(scale(SIGNAL, input_("a")), [K], strides=[S], pads=[(P, P)]),
        scale(max_pool(SIGNAL, [K], strides=[S], pads=[(P, P)]), input_("a")),
        MET,
        equality=REALS,
        positive=frozenset({"a"}),
        row="C15",
        note="the factor must be the same for the whole window",
    ),
    repaired(
        "average pooling twice as weights 1, 2, 1",
        avg_pool(avg_pool(SIGNAL, [2]), [2]),
        scale(
            add(
                add(slice_(SIGNAL, [0, 0, 0], [N, C, W - 2]), slice_(SIGNAL, [0, 0, 2], [N, C, W])),
                scale(slice_(SIGNAL, [0, 0, 1], [N, C, W - 1]), 2),
            ),
            Fraction(1, 4),
        ),
        equality=REALS,
        row="C11",
    ),
]

_VALID = [
    TensorRule(
        "max pooling k3s2 twice",
        max_pool(max_pool(IMAGE, [3, 3], strides=[2, 2]), [3, 3], strides=[2, 2]),
        max_pool(IMAGE, [7, 7], strides=[4, 4]),
        row="6.9",
    ),
    TensorRule(
        "max pooling twice, any windows without gaps",
        max_pool(max_pool(SIGNAL, [K], strides=[S]), [Q], strides=[T]),
        max_pool(SIGNAL, [(Q - 1) * S + K], strides=[S * T]),
        lt(S, K + 1),
    ),
    TensorRule(
        "max pooling of a nearest upsampling",
        max_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K]),
        IMAGE,
        row="6.9",
    ),
    TensorRule(
        "average pooling of a nearest upsampling",
        avg_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K], count_include_pad=True),
        IMAGE,
        equality=REALS,
    ),
    TensorRule(
        "relu commutes with max pooling",
        max_pool(relu(IMAGE), [K, K], **SQUARE),
        relu(max_pool(IMAGE, [K, K], **SQUARE)),
        MET,
        row="6.9",
    ),
    TensorRule(
        "clamp commutes with max pooling",
        max_pool(clip(IMAGE, 0, 6), [K, K], strides=[S, S]),
        clip(max_pool(IMAGE, [K, K], strides=[S, S]), 0, 6),
        at_least(1, K),
    ),
    TensorRule(
        "max pooling per axis",
        max_pool(IMAGE, [K, Q], strides=[S, T]),
        max_pool(max_pool(IMAGE, [1, Q], strides=[1, T]), [K, 1], strides=[S, 1]),
    ),
    TensorRule(
        "max pooling k x k as pairs and singles",
        max_pool(SIGNAL, [4], strides=[4]),
        max_pool(max_pool(SIGNAL, [2], strides=[2]), [2], strides=[2]),
    ),
    TensorRule(
        "max pooling of a larger window by maxima of neighbours",
        max_pool(SIGNAL, [3]),
        largest(
            slice_(max_pool(SIGNAL, [2]), [0, 0, 0], [N, C, W - 2]),
            slice_(max_pool(SIGNAL, [2]), [0, 0, 1], [N, C, W - 1]),
        ),
    ),
    TensorRule(
        "bias commutes with max pooling",
        max_pool(bias(IMAGE, input_("b", C), 1), [K, K], **SQUARE),
        bias(max_pool(IMAGE, [K, K], **SQUARE), input_("b", C), 1),
        MET,
        equality=REALS,
    ),
    TensorRule(
        "maximum commutes with max pooling",
        max_pool(largest(IMAGE, input_("y", N, C, H, W)), [K, K], **SQUARE),
        largest(max_pool(IMAGE, [K, K], **SQUARE), max_pool(input_("y", N, C, H, W), [K, K], **SQUARE)),
    ),
    TensorRule(
        "global maximum as max pooling",
        reduce("max", IMAGE, [2, 3]),
        reshape(max_pool(IMAGE, [H, W]), N, C),
        at_least(1, C, H, W),
    ),
    TensorRule(
        "global mean as average pooling",
        mean(IMAGE, [2, 3]),
        reshape(avg_pool(IMAGE, [H, W], count_include_pad=True), N, C),
        at_least(1, C),
        equality=REALS,
    ),
    TensorRule(
        "average pooling in two steps without overlap",
        avg_pool(avg_pool(SIGNAL, [K], strides=[K], count_include_pad=True), [Q], strides=[Q], count_include_pad=True),
        avg_pool(SIGNAL, [K * Q], strides=[K * Q], count_include_pad=True),
        equality=REALS,
    ),
    TensorRule(
        "average pooling as a convolution",
        avg_pool(input_("x", N, 1, W), [K], strides=[S], count_include_pad=True),
        conv(input_("x", N, 1, W), broadcast(div(number(1), number(K)), [1, 1, K], []), strides=[S]),
        equality=REALS,
    ),
    TensorRule(
        "average pooling is linear",
        avg_pool(scale(IMAGE, input_("a")), [K, K], **SQUARE),
        scale(avg_pool(IMAGE, [K, K], **SQUARE), input_("a")),
        MET,
        equality=REALS,
    ),
    TensorRule(
        "pad with -inf into max pooling",
        max_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P], float("-inf")), [K, K], strides=[S, S]),
        max_pool(IMAGE, [K, K], **SQUARE),
    ),
    TensorRule(
        "max pooling of channel parts",
        max_pool(concat(1, IMAGE, input_("y", N, Q, H, W)), [K, K], **SQUARE),
        concat(1, max_pool(IMAGE, [K, K], **SQUARE), max_pool(input_("y", N, Q, H, W), [K, K], **SQUARE)),
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
