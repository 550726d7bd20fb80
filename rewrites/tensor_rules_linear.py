"""Rules on convolution, products of matrices, sums and softmax: wrong ones, their repairs, and valid ones."""

from __future__ import annotations

from typing import Any

from ir_semantics.tensors.index import TruthOf, le
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    number,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    upsample,
    where,
)
from ir_semantics.tensors.reductions import conv, cumsum, dot, matmul, patches, reduce, softmax
from ir_semantics.tensors.terms import Tensor, input_
from smt_encodings.claims import Equality

from .tensor_rule import Kind, TensorRule
from .tensor_words import add, at_least, bias, div, mul, relu, scale, sizes, sub

__all__ = ["RULES"]

N, C, H, W, K, S, P, Q, T, OUT, M = sizes("n c h w k s p q t o m")
IMAGE = input_("x", N, C, H, W)
SIGNAL = input_("x", N, C, W)
KERNEL = input_("w", OUT, C, K, K)
TAPS = input_("w", OUT, C, K)
SQUARE: dict[str, Any] = {"strides": [S, S], "pads": [(P, P), (P, P)]}
A, B, MATRIX = input_("a", N, K), input_("b", K, M), input_("x", N, M)
VECTOR = input_("x", N)
REALS, ORDER = Equality.OVER_REALS, Equality.UP_TO_REDUCTION_ORDER
MASK = ("m", (N, M))


def masked(x: Tensor, outside: float | int) -> Tensor:
    """x where the mask holds, else a literal."""
    return where(lambda i, j: TruthOf("m", (i, j)), x, fill(outside, *x.shape))


def composed(first: Tensor, second: Tensor) -> Tensor:
    """The kernel whose convolution is that of ``first`` and then ``second`` (1-D)."""
    k = second.shape[2]
    swapped = transpose(first, [1, 0, 2])
    full = conv(swapped, second, pads=[(k - 1, k - 1)], correlate=False)
    return transpose(full, [1, 0, 2])


FIRST, SECOND = input_("v", Q, C, K), input_("w", OUT, Q, T)
SYMMETRIC = where(lambda o, c, k: le(2 * k, K - 1), TAPS, reverse(TAPS, 2))
"""Every kernel with w[k] = w[K-1-k] is of this form."""

GAIN = div(input_("g", OUT), input_("d", OUT))
"""Of a batch normalisation: its factor over the root of the variance."""


def along(v: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector along ``axis``, repeated to the shape of ``x``."""
    return broadcast(v, x.shape, [axis])


def normalised(x: Tensor, shift: Tensor, axis: int = 1) -> Tensor:
    """(x - mu) g / d + shift."""
    centred = sub(x, along(input_("mu", OUT), x, axis))
    return add(mul(centred, along(GAIN, x, axis)), along(shift, x, axis))


def im2col(exchanged: bool = False) -> Tensor:
    """The convolution of SIGNAL with TAPS as a product of matrices."""
    columns = patches(SIGNAL, [K], strides=[S], pads=[(P, P)])
    windows = columns.shape[3]
    order = [0, 2, 1, 3] if exchanged else [0, 1, 2, 3]
    flat = reshape(transpose(columns, order), N, C * K, windows)
    weights = broadcast(reshape(TAPS, OUT, C * K), [N, OUT, C * K], [1, 2])
    return matmul(weights, flat)


_WRONG = [
    TensorRule(
        "pad with any value into convolution",
        "conv(pad(x, v)) = conv(x, pads)",
        conv(pad(SIGNAL, [0, 0, P], [0, 0, P], input_("v")), TAPS, strides=[S]),
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        Kind.WRONG,
        equality=REALS,
        row="L1",
    ),
    TensorRule(
        "relu out of convolution",
        "conv(relu(x)) = relu(conv(x))",
        conv(relu(SIGNAL), TAPS),
        relu(conv(SIGNAL, TAPS)),
        Kind.WRONG,
        equality=REALS,
        row="L3",
    ),
    TensorRule(
        "two convolutions with pads as one",
        "conv(conv(x, v), w) = conv(x, v * w), all with pads that keep the size",
        conv(conv(SIGNAL, input_("v", Q, C, 3), pads=[(1, 1)]), input_("w", OUT, Q, 3), pads=[(1, 1)]),
        conv(SIGNAL, composed(input_("v", Q, C, 3), input_("w", OUT, Q, 3)), pads=[(2, 2)]),
        Kind.WRONG,
        at_least(1, W),
        equality=REALS,
        row="L5",
    ),
    TensorRule(
        "products of matrices commute",
        "a b = b a",
        matmul(input_("a", N, N), input_("b", N, N)),
        matmul(input_("b", N, N), input_("a", N, N)),
        Kind.WRONG,
        equality=REALS,
        row="L7",
    ),
    TensorRule(
        "flatten NHWC as NCHW",
        "w flatten(x as CHW) = w flatten(x as HWC)",
        dot(input_("w", OUT, C * H * W), reshape(input_("x", C, H, W), C * H * W)),
        dot(input_("w", OUT, C * H * W), reshape(transpose(input_("x", C, H, W), [1, 2, 0]), H * W * C)),
        Kind.WRONG,
        at_least(1, C, H, W),
        equality=REALS,
        row="L11",
    ),
    TensorRule(
        "sum of x plus a scalar",
        "sum(x + b) = sum(x) + b",
        reduce("sum", add(VECTOR, broadcast(input_("b"), [N], [])), [0]),
        add(reduce("sum", VECTOR, [0]), input_("b")),
        Kind.WRONG,
        equality=REALS,
        row="L17",
    ),
    TensorRule(
        "maximum from 0",
        "max(x) = max(x) with the initial value 0",
        reduce("max", MATRIX, [1]),
        reduce("max", MATRIX, [1], initial=0),
        Kind.WRONG,
        at_least(1, M),
        row="L19",
    ),
    TensorRule(
        "softmax of a concatenation",
        "softmax(concat(x, y)) = concat(softmax(x), softmax(y))",
        softmax(concat(1, MATRIX, input_("y", N, K)), 1),
        concat(1, softmax(MATRIX, 1), softmax(input_("y", N, K), 1)),
        Kind.WRONG,
        equality=REALS,
        row="L21",
    ),
    TensorRule(
        "softmax of x plus a vector",
        "softmax(x + b) = softmax(x) for a vector along the softmax axis",
        softmax(bias(MATRIX, input_("b", M), 1), 1),
        softmax(MATRIX, 1),
        Kind.WRONG,
        equality=REALS,
        row="L23",
    ),
    TensorRule(
        "a factor into one operand of matmul plus bias",
        "alpha (a b + c) = (alpha a) b + c",
        scale(add(matmul(A, B), input_("c", N, M)), input_("alpha")),
        add(matmul(scale(A, input_("alpha")), B), input_("c", N, M)),
        Kind.WRONG,
        equality=REALS,
        row="L25",
    ),
    TensorRule(
        "scale after masking with -100",
        "softmax(s where(m, x, -100)) = softmax(where(m, s x, -100))",
        softmax(scale(masked(MATRIX, -100), input_("s")), 1),
        softmax(masked(scale(MATRIX, input_("s")), -100), 1),
        Kind.WRONG,
        equality=REALS,
        positive=frozenset({"s"}),
        masks=(MASK,),
        row="L27",
    ),
    TensorRule(
        "convolution as cross-correlation",
        "conv with the kernel reversed = conv with the kernel as it is",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)], correlate=False),
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        Kind.WRONG,
        equality=REALS,
        row="L29",
    ),
    TensorRule(
        "rows through matmul become columns",
        "concat(a, d; rows) b = concat(a b, d b; columns)",
        matmul(concat(0, A, input_("d", N, K)), B),
        concat(1, matmul(A, B), matmul(input_("d", N, K), B)),
        Kind.WRONG,
        equality=REALS,
        row="L31",
    ),
    TensorRule(
        "convolution commutes with upsampling",
        "conv(upsample(x, 2)) = upsample(conv(x), 2), kernel of 3 and pads of 1",
        conv(upsample(SIGNAL, [1, 1, 2]), input_("w", OUT, C, 3), pads=[(1, 1)]),
        upsample(conv(SIGNAL, input_("w", OUT, C, 3), pads=[(1, 1)]), [1, 1, 2]),
        Kind.WRONG,
        at_least(1, W),
        equality=REALS,
        row="L37",
    ),
    TensorRule(
        "reversal commutes with cumulative sums",
        "reverse(cumsum(x)) = cumsum(reverse(x))",
        reverse(cumsum(VECTOR, 0), 0),
        cumsum(reverse(VECTOR, 0), 0),
        Kind.WRONG,
        equality=REALS,
        row="L39",
    ),
    TensorRule(
        "k x k convolution commutes with subsampling",
        "conv(x)[::s] = conv(x[::s])",
        slice_(conv(SIGNAL, TAPS), [0, 0, 0], [N, OUT, W - K + 1], [1, 1, S]),
        conv(slice_(SIGNAL, [0, 0, 0], [N, C, W], [1, 1, S]), TAPS),
        Kind.WRONG,
        le(K, 1 + (W - 1) // S),
        equality=REALS,
    ),
    TensorRule(
        "matmul in blocks with a wrong second block",
        "a b = a[:, :q] b[:q] + a[:, q:] b[:k-q]",
        matmul(A, B),
        add(
            matmul(slice_(A, [0, 0], [N, Q]), slice_(B, [0, 0], [Q, M])),
            matmul(slice_(A, [0, Q], [N, K]), slice_(B, [0, 0], [K - Q, M])),
        ),
        Kind.WRONG,
        le(Q, K),
        equality=ORDER,
    ),
    TensorRule(
        "transpose of a product without exchange",
        "transpose(a b) = transpose(a) transpose(b)",
        transpose(matmul(input_("a", N, N), input_("b", N, N)), [1, 0]),
        matmul(transpose(input_("a", N, N), [1, 0]), transpose(input_("b", N, N), [1, 0])),
        Kind.WRONG,
        equality=ORDER,
    ),
    TensorRule(
        "batch normalisation folded with the mean left out",
        "(conv(x) - mu) g / d + b = conv(x; w g / d) + b",
        normalised(conv(SIGNAL, TAPS), input_("b", OUT)),
        bias(conv(SIGNAL, mul(TAPS, along(GAIN, TAPS, 0))), input_("b", OUT), 1),
        Kind.WRONG,
        equality=REALS,
    ),
    TensorRule(
        "im2col with kernel and channel exchanged",
        "conv(x) = w reshaped [o, c k] times patches [k c, windows]",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        im2col(exchanged=True),
        Kind.WRONG,
        at_least(1, N, C, K, OUT),
        equality=ORDER,
    ),
]

_REPAIRED = [
    TensorRule(
        "pad with zeros into convolution",
        "conv(pad(x, 0)) = conv(x, pads)",
        conv(pad(IMAGE, [0, 0, P, Q], [0, 0, P, Q]), KERNEL, strides=[S, T]),
        conv(IMAGE, KERNEL, strides=[S, T], pads=[(P, P), (Q, Q)]),
        Kind.REPAIRED,
        equality=REALS,
        row="L1",
    ),
    TensorRule(
        "two convolutions without pads as one",
        "conv(conv(x, v), w) = conv(x, v * w) without pads",
        conv(conv(SIGNAL, FIRST), SECOND),
        conv(SIGNAL, composed(FIRST, SECOND)),
        Kind.REPAIRED,
        equality=REALS,
        row="L5",
    ),
    TensorRule(
        "flatten NHWC with permuted weights",
        "w flatten(x as CHW) = (w with columns permuted) flatten(x as HWC)",
        dot(input_("w", OUT, C * H * W), reshape(input_("x", C, H, W), C * H * W)),
        dot(
            reshape(transpose(reshape(input_("w", OUT, C * H * W), OUT, C, H, W), [0, 2, 3, 1]), OUT, H * W * C),
            reshape(transpose(input_("x", C, H, W), [1, 2, 0]), H * W * C),
        ),
        Kind.REPAIRED,
        at_least(1, C, H, W),
        equality=ORDER,
        row="L11",
    ),
    TensorRule(
        "sum of x plus a scalar, counted",
        "sum(x + b) = sum(x) + n b",
        reduce("sum", add(VECTOR, broadcast(input_("b"), [N], [])), [0]),
        add(reduce("sum", VECTOR, [0]), mul(number(N), input_("b"))),
        Kind.REPAIRED,
        equality=REALS,
        row="L17",
    ),
    TensorRule(
        "maximum from -inf",
        "max(x) = max(x) with the initial value -inf",
        reduce("max", MATRIX, [1]),
        reduce("max", MATRIX, [1], initial=float("-inf")),
        Kind.REPAIRED,
        row="L19",
    ),
    TensorRule(
        "softmax of x plus a scalar",
        "softmax(x + c) = softmax(x) for one scalar c",
        softmax(add(MATRIX, broadcast(input_("c"), [N, M], [])), 1),
        softmax(MATRIX, 1),
        Kind.REPAIRED,
        equality=REALS,
        row="L23",
    ),
    TensorRule(
        "a factor into matmul and bias",
        "alpha (a b + c) = (alpha a) b + alpha c",
        scale(add(matmul(A, B), input_("c", N, M)), input_("alpha")),
        add(matmul(scale(A, input_("alpha")), B), scale(input_("c", N, M), input_("alpha"))),
        Kind.REPAIRED,
        equality=REALS,
        row="L25",
    ),
    TensorRule(
        "scale after masking with -inf",
        "softmax(s where(m, x, -inf)) = softmax(where(m, s x, -inf)) for s > 0",
        softmax(scale(masked(MATRIX, float("-inf")), input_("s")), 1),
        softmax(masked(scale(MATRIX, input_("s")), float("-inf")), 1),
        Kind.REPAIRED,
        equality=REALS,
        positive=frozenset({"s"}),
        masks=(MASK,),
        row="L27",
    ),
    TensorRule(
        "convolution as cross-correlation with a symmetric kernel",
        "conv with the kernel reversed = conv with the kernel as it is, for w[k] = w[K-1-k]",
        conv(SIGNAL, SYMMETRIC, strides=[S], pads=[(P, P)], correlate=False),
        conv(SIGNAL, SYMMETRIC, strides=[S], pads=[(P, P)]),
        Kind.REPAIRED,
        equality=REALS,
        row="L29",
    ),
    TensorRule(
        "rows through matmul",
        "concat(a, d; rows) b = concat(a b, d b; rows)",
        matmul(concat(0, A, input_("d", OUT, K)), B),
        concat(0, matmul(A, B), matmul(input_("d", OUT, K), B)),
        Kind.REPAIRED,
        row="L31",
        note="also the valid control: every element is the same sum in the same order",
    ),
]

_VALID = [
    TensorRule(
        "1 x 1 convolution commutes with subsampling",
        "conv(x)[::s] = conv(x[::s]) for kernels of 1",
        slice_(conv(IMAGE, input_("w", OUT, C, 1, 1)), [0] * 4, [N, OUT, H, W], [1, 1, S, T]),
        conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), input_("w", OUT, C, 1, 1)),
        Kind.VALID,
        at_least(1, H, W),
        row="6.9",
    ),
    TensorRule(
        "1 x 1 convolution with a stride as subsampling",
        "conv(x, stride s) = conv(x[::s]) for kernels of 1",
        conv(IMAGE, input_("w", OUT, C, 1, 1), strides=[S, T]),
        conv(slice_(IMAGE, [0] * 4, [N, C, H, W], [1, 1, S, T]), input_("w", OUT, C, 1, 1)),
        Kind.VALID,
    ),
    TensorRule(
        "1 x 1 convolution as 3 x 3 with pads",
        "conv(x, w) = conv(x, pad(w, 1), pads + 1)",
        conv(IMAGE, input_("w", OUT, C, 1, 1), strides=[S, S], pads=[(P, P), (P, P)]),
        conv(
            IMAGE,
            pad(input_("w", OUT, C, 1, 1), [0, 0, 1, 1], [0, 0, 1, 1]),
            strides=[S, S],
            pads=[(P + 1, P + 1), (P + 1, P + 1)],
        ),
        Kind.VALID,
        equality=REALS,
        row="6.9",
    ),
    TensorRule(
        "softmax of x plus a number per row",
        "softmax(x + c) = softmax(x) for one c per row",
        softmax(bias(MATRIX, input_("c", N), 0), 1),
        softmax(MATRIX, 1),
        Kind.VALID,
        equality=REALS,
        row="6.9",
    ),
    TensorRule(
        "matmul in two blocks of the inner axis",
        "a b = a[:, :q] b[:q] + a[:, q:] b[q:]",
        matmul(A, B),
        add(
            matmul(slice_(A, [0, 0], [N, Q]), slice_(B, [0, 0], [Q, M])),
            matmul(slice_(A, [0, Q], [N, K]), slice_(B, [Q, 0], [K, M])),
        ),
        Kind.VALID,
        le(Q, K),
        equality=ORDER,
        row="6.9",
    ),
    TensorRule(
        "columns through matmul",
        "a concat(b, d; columns) = concat(a b, a d; columns)",
        matmul(A, concat(1, B, input_("d", K, OUT))),
        concat(1, matmul(A, B), matmul(A, input_("d", K, OUT))),
        Kind.VALID,
    ),
    TensorRule(
        "transpose of a product",
        "transpose(a b) = transpose(b) transpose(a)",
        transpose(matmul(A, B), [1, 0]),
        matmul(transpose(B, [1, 0]), transpose(A, [1, 0])),
        Kind.VALID,
    ),
    TensorRule(
        "products of matrices associate",
        "(a b) c = a (b c)",
        matmul(matmul(A, B), input_("c", M, OUT)),
        matmul(A, matmul(B, input_("c", M, OUT))),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "matmul distributes over a sum",
        "(a + d) b = a b + d b",
        matmul(add(A, input_("d", N, K)), B),
        add(matmul(A, B), matmul(input_("d", N, K), B)),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "a block of rows of a product",
        "(a b)[q:t] = a[q:t] b",
        slice_(matmul(A, B), [Q, 0], [T, M]),
        matmul(slice_(A, [Q, 0], [T, K]), B),
        Kind.VALID,
    ),
    TensorRule(
        "a block of columns of a product",
        "(a b)[:, q:t] = a b[:, q:t]",
        slice_(matmul(A, B), [0, Q], [N, T]),
        matmul(A, slice_(B, [0, Q], [K, T])),
        Kind.VALID,
    ),
    TensorRule(
        "matmul with zeros beyond the inner axis",
        "a b = pad(a; columns) pad(b; rows)",
        matmul(A, B),
        matmul(pad(A, [0, 0], [0, Q]), pad(B, [0, 0], [Q, 0])),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "bias as one more column",
        "a b + c = concat(a, 1; columns) concat(b, c; rows)",
        bias(matmul(A, B), input_("c", M), 1),
        matmul(concat(1, A, fill(1, N, 1)), concat(0, B, reshape(input_("c", M), 1, M))),
        Kind.VALID,
        at_least(1, M),
        equality=REALS,
    ),
    TensorRule(
        "a bias of zeros",
        "a b + 0 = a b",
        bias(matmul(A, B), fill(0, M), 1),
        matmul(A, B),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "matrix times vector as matmul",
        "a v = reshape(a reshape(v, [k, 1]))",
        dot(A, input_("v", K)),
        reshape(matmul(A, reshape(input_("v", K), K, 1)), N),
        Kind.VALID,
    ),
    TensorRule(
        "1 x 1 convolution as matmul",
        "conv(x, w) = w reshaped times x with the spatial axes flattened",
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
        Kind.VALID,
        at_least(1, N, C, H, W, OUT),
        equality=ORDER,
    ),
    TensorRule(
        "im2col",
        "conv(x) = w reshaped [o, c k] times patches [c k, windows]",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        im2col(),
        Kind.VALID,
        at_least(1, N, C, K, OUT),
        equality=ORDER,
    ),
    TensorRule(
        "channels of a convolution in two parts",
        "conv(x, w) = conv(x[:, :q], w[:, :q]) + conv(x[:, q:], w[:, q:])",
        conv(IMAGE, KERNEL, **SQUARE),
        add(
            conv(slice_(IMAGE, [0] * 4, [N, Q, H, W]), slice_(KERNEL, [0] * 4, [OUT, Q, K, K]), **SQUARE),
            conv(slice_(IMAGE, [0, Q, 0, 0], [N, C, H, W]), slice_(KERNEL, [0, Q, 0, 0], [OUT, C, K, K]), **SQUARE),
        ),
        Kind.VALID,
        le(Q, C),
        equality=ORDER,
    ),
    TensorRule(
        "outputs of a convolution in two parts",
        "conv(x, w) = concat(conv(x, w[:q]), conv(x, w[q:]); channels)",
        conv(IMAGE, KERNEL, **SQUARE),
        concat(
            1,
            conv(IMAGE, slice_(KERNEL, [0] * 4, [Q, C, K, K]), **SQUARE),
            conv(IMAGE, slice_(KERNEL, [Q, 0, 0, 0], [OUT, C, K, K]), **SQUARE),
        ),
        Kind.VALID,
        le(Q, OUT),
    ),
    TensorRule(
        "batches of a convolution in two parts",
        "conv(x, w) = concat(conv(x[:q], w), conv(x[q:], w); batch)",
        conv(IMAGE, KERNEL, **SQUARE),
        concat(
            0,
            conv(slice_(IMAGE, [0] * 4, [Q, C, H, W]), KERNEL, **SQUARE),
            conv(slice_(IMAGE, [Q, 0, 0, 0], [N, C, H, W]), KERNEL, **SQUARE),
        ),
        Kind.VALID,
        le(Q, N),
    ),
    TensorRule(
        "batch normalisation into a convolution",
        "(conv(x, w) - mu) g / d + b = conv(x, w g / d) + (b - mu g / d)",
        normalised(conv(IMAGE, KERNEL, **SQUARE), input_("b", OUT)),
        bias(
            conv(IMAGE, mul(KERNEL, along(GAIN, KERNEL, 0)), **SQUARE),
            sub(input_("b", OUT), mul(input_("mu", OUT), GAIN)),
            1,
        ),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "batch normalisation into matmul",
        "(a b - mu) g / d + c = a (b g / d) + (c - mu g / d)",
        normalised(matmul(A, input_("b", K, OUT)), input_("c", OUT)),
        bias(
            matmul(A, mul(input_("b", K, OUT), along(GAIN, input_("b", K, OUT), 1))),
            sub(input_("c", OUT), mul(input_("mu", OUT), GAIN)),
            1,
        ),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "zeros around a kernel",
        "conv(x, w) = conv(x, pad(w, q), pads + q)",
        conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]),
        conv(SIGNAL, pad(TAPS, [0, 0, Q], [0, 0, Q]), strides=[S], pads=[(P + Q, P + Q)]),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "convolution of an image with one row",
        "2-D conv of [n, c, 1, w] = 1-D conv",
        conv(reshape(SIGNAL, N, C, 1, W), reshape(TAPS, OUT, C, 1, K), strides=[1, S], pads=[(0, 0), (P, P)]),
        reshape(conv(SIGNAL, TAPS, strides=[S], pads=[(P, P)]), N, OUT, 1, (W + 2 * P - K) // S + 1),
        Kind.VALID,
        at_least(1, N, C, W, OUT, K),
        equality=ORDER,
    ),
    TensorRule(
        "cumulative sum as a product with a triangular matrix",
        "cumsum(x) = t x for t[i, j] = 1 if j <= i else 0",
        cumsum(VECTOR, 0),
        dot(where(lambda i, j: le(j, i), fill(1, N, N), fill(0, N, N)), VECTOR),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "sum along both axes in any order",
        "sum over rows of sums over columns = sum over columns of sums over rows",
        reduce("sum", reduce("sum", MATRIX, [1]), [0]),
        reduce("sum", reduce("sum", MATRIX, [0]), [0]),
        Kind.VALID,
        equality=ORDER,
    ),
    TensorRule(
        "sum of a flattened matrix",
        "sum(reshape(x, [n m])) = sum(x)",
        reduce("sum", reshape(MATRIX, N * M), [0]),
        reduce("sum", MATRIX, [0, 1]),
        Kind.VALID,
        at_least(1, M),
        equality=ORDER,
    ),
    TensorRule(
        "sum as a product with ones",
        "sum over columns of x = x 1",
        reduce("sum", MATRIX, [1]),
        dot(MATRIX, fill(1, M)),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "sum of a reversed vector",
        "sum(reverse(x)) = sum(x)",
        reduce("sum", reverse(VECTOR, 0), [0]),
        reduce("sum", VECTOR, [0]),
        Kind.VALID,
        equality=ORDER,
    ),
    TensorRule(
        "sum of a transposed product",
        "a transpose(b) with both columns reversed = a transpose(b)",
        matmul(reverse(A, 1), reverse(B, 0)),
        matmul(A, B),
        Kind.VALID,
        equality=ORDER,
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
