"""Valid rules on products of matrices, sums and softmax."""

from __future__ import annotations

from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.terms import exp, variable
from ir_semantics.tensors.conditions import le
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    map_,
    number,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    where,
)
from ir_semantics.tensors.reductions import cumsum, dot, matmul, mean, reduce, softmax
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import GAIN, MATRIX, ORDER, OUT, REALS, VECTOR, A, B, H, K, M, N, P, Q, T, along, normalised
from .words import add, at_least, bias, div, largest, mul, relu, scale, sub

__all__ = [
    "BATCH_AS_ONE_PRODUCT",
    "RULES",
    "ZERO_BIAS",
]


def powers(x: Tensor) -> Tensor:
    """exp of every element."""
    return map_(exp(variable("x")), x=x)


LEFT, RIGHT = input_("a", H, N, K), input_("b", H, K, M)

BATCH_AS_ONE_PRODUCT = TensorRule(
    "batched matmul with one right side as one matmul",
    "a b for b the same in every batch = reshape(reshape(a, [h n, k]) b)",
    matmul(LEFT, broadcast(B, [H, K, M], [1, 2])),
    reshape(matmul(reshape(LEFT, H * N, K), B), H, N, M),
    Kind.VALID,
    at_least(1, H, N, K, M),
)
ZERO_BIAS = TensorRule(
    "a bias of zeros",
    "a b + 0 = a b",
    bias(matmul(A, B), fill(0, M), 1),
    matmul(A, B),
    Kind.VALID,
    equality=REALS,
)

_VALID = [
    TensorRule(
        "batches of matmul in two parts",
        "a b = concat(a[:q] b[:q], a[q:] b[q:]; batch)",
        matmul(LEFT, RIGHT),
        concat(
            0,
            matmul(slice_(LEFT, [0, 0, 0], [Q, N, K]), slice_(RIGHT, [0, 0, 0], [Q, K, M])),
            matmul(slice_(LEFT, [Q, 0, 0], [H, N, K]), slice_(RIGHT, [Q, 0, 0], [H, K, M])),
        ),
        Kind.VALID,
        le(Q, H),
    ),
    BATCH_AS_ONE_PRODUCT,
    TensorRule(
        "blocks of k elements of the inner axis",
        "a b = sum over blocks of products of blocks of length k, for an inner axis of q k",
        matmul(input_("a", N, Q * K), input_("b", Q * K, M)),
        reduce(
            "sum",
            matmul(
                transpose(reshape(input_("a", N, Q * K), N, Q, K), [1, 0, 2]),
                reshape(input_("b", Q * K, M), Q, K, M),
            ),
            [0],
        ),
        Kind.VALID,
        at_least(1, Q, K, M),
        equality=ORDER,
    ),
    TensorRule(
        "softmax of a concatenation along the other axis",
        "softmax(concat(x, y; rows); columns) = concat(softmax(x), softmax(y); rows)",
        softmax(concat(0, MATRIX, input_("y", K, M)), 1),
        concat(0, softmax(MATRIX, 1), softmax(input_("y", K, M), 1)),
        Kind.VALID,
        equality=REALS,
        note="what is left of the wrong rule L21",
    ),
    TensorRule(
        "softmax of a transpose",
        "softmax(transpose(x); rows) = transpose(softmax(x; columns))",
        softmax(transpose(MATRIX, [1, 0]), 0),
        transpose(softmax(MATRIX, 1), [1, 0]),
        Kind.VALID,
    ),
    TensorRule(
        "softmax weights into a product",
        "softmax(x) b = (exp(x) b) / sum(exp(x))",
        matmul(softmax(MATRIX, 1), input_("b", M, K)),
        div(
            matmul(powers(MATRIX), input_("b", M, K)),
            broadcast(reduce("sum", powers(MATRIX), [1]), [N, K], [0]),
        ),
        Kind.VALID,
        at_least(1, M),
        equality=REALS,
        note="what attention on blocks computes; without columns the right side would divide by 0",
    ),
    TensorRule(
        "the mean is linear",
        "mean(a x) = a mean(x)",
        mean(scale(MATRIX, input_("a")), [1]),
        scale(mean(MATRIX, [1]), input_("a")),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "mean along both axes in steps",
        "mean over all = mean of means, for rows of one length",
        mean(MATRIX, [0, 1]),
        mean(mean(MATRIX, [1]), [0]),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "sum of a concatenation",
        "sum(concat(x, y)) = sum(x) + sum(y)",
        reduce("sum", concat(0, VECTOR, input_("y", K)), [0]),
        add(reduce("sum", VECTOR, [0]), reduce("sum", input_("y", K), [0])),
        Kind.VALID,
        equality=ORDER,
    ),
    TensorRule(
        "maximum of a concatenation",
        "max(concat(x, y)) = maximum(max(x), max(y))",
        reduce("max", concat(0, VECTOR, input_("y", K)), [0]),
        largest(reduce("max", VECTOR, [0]), reduce("max", input_("y", K), [0])),
        Kind.VALID,
    ),
    TensorRule(
        "sum of a pad with zeros",
        "sum(pad(x, 0)) = sum(x)",
        reduce("sum", pad(VECTOR, [P], [Q]), [0]),
        reduce("sum", VECTOR, [0]),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "sum of a broadcast",
        "sum over a new axis of length k = k x",
        reduce("sum", broadcast(VECTOR, [K, N], [1]), [0]),
        mul(broadcast(number(K), [N], []), VECTOR),
        Kind.VALID,
        equality=REALS,
    ),
    TensorRule(
        "relu of a positive multiple",
        "relu(a x) = a relu(x) for a > 0",
        relu(scale(MATRIX, input_("a"))),
        scale(relu(MATRIX), input_("a")),
        Kind.VALID,
        equality=REALS,
        positive=frozenset({"a"}),
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
    ZERO_BIAS,
    TensorRule(
        "matrix times vector as matmul",
        "a v = reshape(a reshape(v, [k, 1]))",
        dot(A, input_("v", K)),
        reshape(matmul(A, reshape(input_("v", K), K, 1)), N),
        Kind.VALID,
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

RULES = tuple(_VALID)
"""All rules of this module."""
