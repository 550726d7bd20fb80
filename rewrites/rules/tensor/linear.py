"""Rules on convolution, products of matrices, sums and softmax that look right and are wrong, and their repairs."""

from __future__ import annotations

from ir_semantics.tensors.conditions import le
from ir_semantics.tensors.operators import broadcast, concat, number, pad, reshape, reverse, slice_, transpose, upsample
from ir_semantics.tensors.reductions import conv, cumsum, dot, matmul, reduce, softmax
from ir_semantics.tensors.terms import input_

from .inputs import (
    FIRST,
    GAIN,
    IMAGE,
    KERNEL,
    MASK,
    MATRIX,
    SECOND,
    SIGNAL,
    SIZES,
    SYMMETRIC,
    TAPS,
    VECTOR,
    A,
    B,
    along,
    composed,
    conv_1d,
    first,
    im2col,
    masked,
    normalised,
    rest,
)
from .words import (
    ORDER,
    add,
    at_least,
    bias,
    mul,
    relu,
    repaired,
    repaired_over_reals,
    scale,
    wrong,
    wrong_over_reals,
    wrong_reordered,
)

N, C, H, W, K, S, P, Q, T, OUT, M = SIZES

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
        "products of matrices commute",
        matmul(input_("a", N, N), input_("b", N, N)),
        matmul(input_("b", N, N), input_("a", N, N)),
        row="L7",
    ),
    wrong_over_reals(
        "flatten NHWC as NCHW",
        dot(input_("w", OUT, C * H * W), reshape(input_("x", C, H, W), C * H * W)),
        dot(input_("w", OUT, C * H * W), reshape(transpose(input_("x", C, H, W), [1, 2, 0]), H * W * C)),
        at_least(1, C, H, W),
        row="L11",
    ),
    wrong_over_reals(
        "sum of x plus a scalar",
        reduce("sum", add(VECTOR, broadcast(input_("b"), [N], [])), [0]),
        add(reduce("sum", VECTOR, [0]), input_("b")),
        row="L17",
    ),
    wrong(
        "maximum from 0", reduce("max", MATRIX, [1]), reduce("max", MATRIX, [1], initial=0), at_least(1, M), row="L19"
    ),
    wrong_over_reals(
        "softmax of a concatenation",
        softmax(concat(1, MATRIX, input_("y", N, K)), 1),
        concat(1, softmax(MATRIX, 1), softmax(input_("y", N, K), 1)),
        row="L21",
    ),
    wrong_over_reals(
        "softmax of x plus a vector", softmax(bias(MATRIX, input_("b", M), 1), 1), softmax(MATRIX, 1), row="L23"
    ),
    wrong_over_reals(
        "a factor into one operand of matmul plus bias",
        scale(add(matmul(A, B), input_("c", N, M)), input_("alpha")),
        add(matmul(scale(A, input_("alpha")), B), input_("c", N, M)),
        row="L25",
    ),
    wrong_over_reals(
        "scale after masking with -100",
        softmax(scale(masked(MATRIX, -100), input_("s")), 1),
        softmax(masked(scale(MATRIX, input_("s")), -100), 1),
        positive=frozenset({"s"}),
        masks=(MASK,),
        row="L27",
    ),
    wrong_over_reals(
        "convolution as cross-correlation", conv_1d(SIGNAL, TAPS, correlate=False), conv_1d(SIGNAL, TAPS), row="L29"
    ),
    wrong_over_reals(
        "rows through matmul become columns",
        matmul(concat(0, A, input_("d", N, K)), B),
        concat(1, matmul(A, B), matmul(input_("d", N, K), B)),
        row="L31",
    ),
    wrong_over_reals(
        "convolution commutes with upsampling",
        conv(upsample(SIGNAL, [1, 1, 2]), input_("w", OUT, C, 3), pads=[(1, 1)]),
        upsample(conv(SIGNAL, input_("w", OUT, C, 3), pads=[(1, 1)]), [1, 1, 2]),
        at_least(1, W),
        row="L37",
    ),
    wrong_over_reals(
        "reversal commutes with cumulative sums",
        reverse(cumsum(VECTOR, 0), 0),
        cumsum(reverse(VECTOR, 0), 0),
        row="L39",
    ),
    wrong_over_reals(
        "k x k convolution commutes with subsampling",
        slice_(conv(SIGNAL, TAPS), [0, 0, 0], [N, OUT, W - K + 1], [1, 1, S]),
        conv(slice_(SIGNAL, [0, 0, 0], [N, C, W], [1, 1, S]), TAPS),
        le(K, 1 + (W - 1) // S),
    ),
    wrong_reordered(
        "matmul in blocks with a wrong second block",
        matmul(A, B),
        add(matmul(first(A, Q, 1), first(B, Q)), matmul(rest(A, Q, 1), first(B, K - Q))),
        le(Q, K),
    ),
    wrong_reordered(
        "transpose of a product without exchange",
        transpose(matmul(input_("a", N, N), input_("b", N, N)), [1, 0]),
        matmul(transpose(input_("a", N, N), [1, 0]), transpose(input_("b", N, N), [1, 0])),
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
    repaired(
        "flatten NHWC with permuted weights",
        dot(input_("w", OUT, C * H * W), reshape(input_("x", C, H, W), C * H * W)),
        dot(
            reshape(transpose(reshape(input_("w", OUT, C * H * W), OUT, C, H, W), [0, 2, 3, 1]), OUT, H * W * C),
            reshape(transpose(input_("x", C, H, W), [1, 2, 0]), H * W * C),
        ),
        at_least(1, C, H, W),
        equality=ORDER,
        row="L11",
    ),
    repaired_over_reals(
        "sum of x plus a scalar, counted",
        reduce("sum", add(VECTOR, broadcast(input_("b"), [N], [])), [0]),
        add(reduce("sum", VECTOR, [0]), mul(number(N), input_("b"))),
        row="L17",
    ),
    repaired(
        "maximum from -inf", reduce("max", MATRIX, [1]), reduce("max", MATRIX, [1], initial=float("-inf")), row="L19"
    ),
    repaired_over_reals(
        "softmax of x plus a scalar",
        softmax(add(MATRIX, broadcast(input_("c"), [N, M], [])), 1),
        softmax(MATRIX, 1),
        row="L23",
    ),
    repaired_over_reals(
        "a factor into matmul and bias",
        scale(add(matmul(A, B), input_("c", N, M)), input_("alpha")),
        add(matmul(scale(A, input_("alpha")), B), scale(input_("c", N, M), input_("alpha"))),
        row="L25",
    ),
    repaired_over_reals(
        "scale after masking with -inf",
        softmax(scale(masked(MATRIX, float("-inf")), input_("s")), 1),
        softmax(masked(scale(MATRIX, input_("s")), float("-inf")), 1),
        positive=frozenset({"s"}),
        masks=(MASK,),
        row="L27",
    ),
    repaired_over_reals(
        "convolution as cross-correlation with a symmetric kernel",
        conv_1d(SIGNAL, SYMMETRIC, correlate=False),
        conv_1d(SIGNAL, SYMMETRIC),
        row="L29",
    ),
    repaired(
        "rows through matmul",
        matmul(concat(0, A, input_("d", OUT, K)), B),
        concat(0, matmul(A, B), matmul(input_("d", OUT, K), B)),
        row="L31",
        note="also the valid control: every element is the same sum in the same order",
    ),
]

RULES = (*_WRONG, *_REPAIRED)
"""All rules of this module."""
