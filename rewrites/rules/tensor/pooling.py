"""Rules on pooling: those that look right and are wrong, their repairs, and valid ones."""

from __future__ import annotations

from fractions import Fraction

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both, le, lt
from ir_semantics.tensors.operators import broadcast, concat, number, pad, reshape, slice_, upsample
from ir_semantics.tensors.reductions import avg_pool, conv, max_pool, mean, reduce
from ir_semantics.tensors.terms import input_

from .inputs import IMAGE, MET, OTHER, SIGNAL, SIZES, avg_1d, avg_2d, max_1d, max_2d
from .words import (
    add,
    at_least,
    bias,
    clip,
    div,
    largest,
    mul,
    over_reals,
    relu,
    repaired,
    repaired_over_reals,
    scale,
    wrong,
    wrong_over_reals,
)

N, C, H, W, K, S, P, Q, T, _, _ = SIZES

_WRONG = [
    wrong_over_reals("relu out of average pooling", avg_1d(relu(SIGNAL)), relu(avg_1d(SIGNAL)), row="C7"),
    wrong("max pooling padded with zeros", max_2d(IMAGE, outside=0), max_2d(IMAGE), MET, row="C9"),
    wrong_over_reals(
        "average pooling twice as a larger one", avg_pool(avg_pool(SIGNAL, [2]), [2]), avg_pool(SIGNAL, [3]), row="C11"
    ),
    wrong_over_reals(
        "pad into average pooling that does not count pads",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_2d(IMAGE),
        MET,
        row="C13",
    ),
    wrong_over_reals(
        "max pooling of a product",
        max_1d(mul(SIGNAL, input_("y", N, C, W))),
        mul(max_1d(SIGNAL), max_1d(input_("y", N, C, W))),
        row="C15",
    ),
    wrong_over_reals(
        "max pooling of a product of positive numbers",
        max_1d(mul(SIGNAL, input_("y", N, C, W))),
        mul(max_1d(SIGNAL), max_1d(input_("y", N, C, W))),
        positive=frozenset({"x", "y"}),
        row="C15",
        note="signs are not what is wrong: the maxima of x and y need not stand at the same place",
    ),
    wrong(
        "max pooling twice, windows with gaps",
        max_1d(max_1d(SIGNAL)),
        max_pool(SIGNAL, [(K - 1) * S + K], strides=[S * S]),
        note="elements between windows are never seen if s > k",
    ),
    wrong(
        "relu out of max pooling, any pads",
        max_1d(relu(SIGNAL), pads=[(P, P)]),
        relu(max_1d(SIGNAL, pads=[(P, P)])),
        at_least(1, N, C, W),
        note="the maximum of a window that lies in the pads is -inf on the left and 0 on the right",
    ),
    wrong(
        "max pooling commutes with concatenation along the pooled axis",
        max_pool(concat(2, SIGNAL, input_("y", N, C, T)), [K], strides=[K]),
        concat(2, max_pool(SIGNAL, [K], strides=[K]), max_pool(input_("y", N, C, T), [K], strides=[K])),
        both(at_least(1, N, C), le(K, W), le(K, T)),
    ),
    wrong_over_reals(
        "global average as pooling of a part",
        mean(SIGNAL, [2]),
        reshape(avg_pool(slice_(SIGNAL, [0, 0, 0], [N, C, K]), [K]), N, C),
        both(at_least(1, N, C, K), le(K, W)),
    ),
]

_REPAIRED = [
    repaired(
        "max pooling after relu padded with zeros", max_2d(relu(IMAGE), outside=0), max_2d(relu(IMAGE)), MET, row="C9"
    ),
    repaired_over_reals(
        "pad into average pooling that counts pads",
        avg_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P]), [K, K], strides=[S, S]),
        avg_2d(IMAGE, count_include_pad=True),
        row="C13",
    ),
    repaired_over_reals(
        "max pooling of a positive multiple",
        max_1d(scale(SIGNAL, input_("a")), pads=[(P, P)]),
        scale(max_1d(SIGNAL, pads=[(P, P)]), input_("a")),
        MET,
        positive=frozenset({"a"}),
        row="C15",
        note="the factor must be the same for the whole window",
    ),
    repaired_over_reals(
        "average pooling twice as weights 1, 2, 1",
        avg_pool(avg_pool(SIGNAL, [2]), [2]),
        scale(
            add(
                add(slice_(SIGNAL, [0, 0, 0], [N, C, W - 2]), slice_(SIGNAL, [0, 0, 2], [N, C, W])),
                scale(slice_(SIGNAL, [0, 0, 1], [N, C, W - 1]), 2),
            ),
            Fraction(1, 4),
        ),
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
        max_pool(max_1d(SIGNAL), [Q], strides=[T]),
        max_pool(SIGNAL, [(Q - 1) * S + K], strides=[S * T]),
        lt(S, K + 1),
    ),
    TensorRule(
        "max pooling of a nearest upsampling",
        max_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K]),
        IMAGE,
        row="6.9",
    ),
    over_reals(
        "average pooling of a nearest upsampling",
        avg_pool(upsample(IMAGE, [1, 1, K, K]), [K, K], strides=[K, K], count_include_pad=True),
        IMAGE,
    ),
    TensorRule("relu commutes with max pooling", max_2d(relu(IMAGE)), relu(max_2d(IMAGE)), MET, row="6.9"),
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
    over_reals(
        "bias commutes with max pooling",
        max_2d(bias(IMAGE, input_("b", C), 1)),
        bias(max_2d(IMAGE), input_("b", C), 1),
        MET,
    ),
    TensorRule(
        "maximum commutes with max pooling", max_2d(largest(IMAGE, OTHER)), largest(max_2d(IMAGE), max_2d(OTHER))
    ),
    TensorRule(
        "global maximum as max pooling",
        reduce("max", IMAGE, [2, 3]),
        reshape(max_pool(IMAGE, [H, W]), N, C),
        at_least(1, C, H, W),
    ),
    over_reals(
        "global mean as average pooling",
        mean(IMAGE, [2, 3]),
        reshape(avg_pool(IMAGE, [H, W], count_include_pad=True), N, C),
        at_least(1, C),
    ),
    over_reals(
        "average pooling in two steps without overlap",
        avg_pool(avg_pool(SIGNAL, [K], strides=[K], count_include_pad=True), [Q], strides=[Q], count_include_pad=True),
        avg_pool(SIGNAL, [K * Q], strides=[K * Q], count_include_pad=True),
    ),
    over_reals(
        "average pooling as a convolution",
        avg_1d(input_("x", N, 1, W), count_include_pad=True),
        conv(input_("x", N, 1, W), broadcast(div(number(1), number(K)), [1, 1, K], []), strides=[S]),
    ),
    over_reals("average pooling is linear", avg_2d(scale(IMAGE, input_("a"))), scale(avg_2d(IMAGE), input_("a")), MET),
    TensorRule(
        "pad with -inf into max pooling",
        max_pool(pad(IMAGE, [0, 0, P, P], [0, 0, P, P], float("-inf")), [K, K], strides=[S, S]),
        max_2d(IMAGE),
    ),
    TensorRule(
        "max pooling of channel parts",
        max_2d(concat(1, IMAGE, input_("y", N, Q, H, W))),
        concat(1, max_2d(IMAGE), max_2d(input_("y", N, Q, H, W))),
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
