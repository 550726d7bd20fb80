"""Rules on products of matrices, sums and softmax: wrong ones, their repairs, and valid ones."""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import exp, variable
from ir_semantics.tensors.conditions import TruthOf, le
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

from .inputs import GAIN, MATRIX, SIZES, VECTOR, A, B, along, first, normalised, rest
from .words import (
    ORDER,
    add,
    at_least,
    bias,
    div,
    largest,
    mul,
    over_reals,
    relu,
    reordered,
    repaired,
    repaired_over_reals,
    scale,
    sub,
    wrong,
    wrong_over_reals,
    wrong_reordered,
)

N, C, H, W, K, _, P, Q, T, OUT, M = SIZES


MASK = ("m", (N, M))


def masked(x: Tensor, outside: float | int) -> Tensor:
    """x where the mask holds, else a literal."""
    return where(lambda i, j: TruthOf("m", (i, j)), x, fill(outside, *x.shape))


def powers(x: Tensor) -> Tensor:
    """exp of every element."""
    return map_(exp(variable("x")), x=x)


LEFT, RIGHT = input_("a", H, N, K), input_("b", H, K, M)

BATCH_AS_ONE_PRODUCT = TensorRule(
    "batched matmul with one right side as one matmul",
    matmul(LEFT, broadcast(B, [H, K, M], [1, 2])),
    reshape(matmul(reshape(LEFT, H * N, K), B), H, N, M),
    at_least(1, H, N, K, M),
)
BATCHES_IN_PARTS = TensorRule(
    "batches of matmul in two parts",
    matmul(LEFT, RIGHT),
    concat(0, matmul(first(LEFT, Q), first(RIGHT, Q)), matmul(rest(LEFT, Q), rest(RIGHT, Q))),
    le(Q, H),
)
BATCH_OF_ONE = TensorRule(
    "a batch of one product of matrices",
    matmul(input_("a", 1, N, K), input_("b", 1, K, M)),
    reshape(matmul(reshape(input_("a", 1, N, K), N, K), reshape(input_("b", 1, K, M), K, M)), 1, N, M),
    at_least(1, N, K, M),
)
INNER_IN_PARTS = reordered(
    "matmul in two blocks of the inner axis",
    matmul(A, B),
    add(matmul(first(A, Q, 1), first(B, Q)), matmul(rest(A, Q, 1), rest(B, Q))),
    le(Q, K),
    row="6.9",
)
ZERO_BIAS = over_reals("a bias of zeros", bias(matmul(A, B), fill(0, M), 1), matmul(A, B))

_WRONG = [
    wrong(
        "batches of matmul in two parts, of one part of the right side",
        matmul(input_("a", 2 * H, N, K), input_("b", 2 * H, K, M)),
        concat(
            0,
            *(matmul(part(input_("a", 2 * H, N, K), H), first(input_("b", 2 * H, K, M), H)) for part in (first, rest)),
        ),
        at_least(1, H, N, K, M),
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
        "rows through matmul become columns",
        matmul(concat(0, A, input_("d", N, K)), B),
        concat(1, matmul(A, B), matmul(input_("d", N, K), B)),
        row="L31",
    ),
    wrong_over_reals(
        "reversal commutes with cumulative sums",
        reverse(cumsum(VECTOR, 0), 0),
        cumsum(reverse(VECTOR, 0), 0),
        row="L39",
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
]

_REPAIRED = [
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
    repaired(
        "rows through matmul",
        matmul(concat(0, A, input_("d", OUT, K)), B),
        concat(0, matmul(A, B), matmul(input_("d", OUT, K), B)),
        row="L31",
        note="also the valid control: every element is the same sum in the same order",
    ),
]

_VALID = [
    BATCHES_IN_PARTS,
    BATCH_AS_ONE_PRODUCT,
    BATCH_OF_ONE,
    reordered(
        "blocks of k elements of the inner axis",
        matmul(input_("a", N, Q * K), input_("b", Q * K, M)),
        reduce(
            "sum",
            matmul(
                transpose(reshape(input_("a", N, Q * K), N, Q, K), [1, 0, 2]), reshape(input_("b", Q * K, M), Q, K, M)
            ),
            [0],
        ),
        at_least(1, Q, K, M),
    ),
    over_reals(
        "softmax of a concatenation along the other axis",
        softmax(concat(0, MATRIX, input_("y", K, M)), 1),
        concat(0, softmax(MATRIX, 1), softmax(input_("y", K, M), 1)),
        note="what is left of the wrong rule L21",
    ),
    TensorRule("softmax of a transpose", softmax(transpose(MATRIX, [1, 0]), 0), transpose(softmax(MATRIX, 1), [1, 0])),
    over_reals(
        "softmax weights into a product",
        matmul(softmax(MATRIX, 1), input_("b", M, K)),
        div(matmul(powers(MATRIX), input_("b", M, K)), broadcast(reduce("sum", powers(MATRIX), [1]), [N, K], [0])),
        at_least(1, M),
        note="what attention on blocks computes; without columns the right side would divide by 0",
    ),
    over_reals("the mean is linear", mean(scale(MATRIX, input_("a")), [1]), scale(mean(MATRIX, [1]), input_("a"))),
    over_reals("mean along both axes in steps", mean(MATRIX, [0, 1]), mean(mean(MATRIX, [1]), [0])),
    reordered(
        "sum of a concatenation",
        reduce("sum", concat(0, VECTOR, input_("y", K)), [0]),
        add(reduce("sum", VECTOR, [0]), reduce("sum", input_("y", K), [0])),
    ),
    TensorRule(
        "maximum of a concatenation",
        reduce("max", concat(0, VECTOR, input_("y", K)), [0]),
        largest(reduce("max", VECTOR, [0]), reduce("max", input_("y", K), [0])),
    ),
    over_reals("sum of a pad with zeros", reduce("sum", pad(VECTOR, [P], [Q]), [0]), reduce("sum", VECTOR, [0])),
    over_reals(
        "sum of a broadcast",
        reduce("sum", broadcast(VECTOR, [K, N], [1]), [0]),
        mul(broadcast(number(K), [N], []), VECTOR),
    ),
    over_reals(
        "relu of a positive multiple",
        relu(scale(MATRIX, input_("a"))),
        scale(relu(MATRIX), input_("a")),
        positive=frozenset({"a"}),
    ),
    over_reals(
        "softmax of x plus a number per row", softmax(bias(MATRIX, input_("c", N), 0), 1), softmax(MATRIX, 1), row="6.9"
    ),
    INNER_IN_PARTS,
    TensorRule(
        "columns through matmul",
        matmul(A, concat(1, B, input_("d", K, OUT))),
        concat(1, matmul(A, B), matmul(A, input_("d", K, OUT))),
    ),
    TensorRule(
        "transpose of a product", transpose(matmul(A, B), [1, 0]), matmul(transpose(B, [1, 0]), transpose(A, [1, 0]))
    ),
    over_reals(
        "products of matrices associate",
        matmul(matmul(A, B), input_("c", M, OUT)),
        matmul(A, matmul(B, input_("c", M, OUT))),
    ),
    over_reals(
        "matmul distributes over a sum",
        matmul(add(A, input_("d", N, K)), B),
        add(matmul(A, B), matmul(input_("d", N, K), B)),
    ),
    TensorRule(
        "a block of rows of a product", slice_(matmul(A, B), [Q, 0], [T, M]), matmul(slice_(A, [Q, 0], [T, K]), B)
    ),
    TensorRule(
        "a block of columns of a product", slice_(matmul(A, B), [0, Q], [N, T]), matmul(A, slice_(B, [0, Q], [K, T]))
    ),
    over_reals(
        "matmul with zeros beyond the inner axis", matmul(A, B), matmul(pad(A, [0, 0], [0, Q]), pad(B, [0, 0], [Q, 0]))
    ),
    over_reals(
        "bias as one more column",
        bias(matmul(A, B), input_("c", M), 1),
        matmul(concat(1, A, fill(1, N, 1)), concat(0, B, reshape(input_("c", M), 1, M))),
        at_least(1, M),
    ),
    ZERO_BIAS,
    TensorRule(
        "matrix times vector as matmul", dot(A, input_("v", K)), reshape(matmul(A, reshape(input_("v", K), K, 1)), N)
    ),
    over_reals(
        "batch normalisation into matmul",
        normalised(matmul(A, input_("b", K, OUT)), input_("c", OUT)),
        bias(
            matmul(A, mul(input_("b", K, OUT), along(GAIN, input_("b", K, OUT), 1))),
            sub(input_("c", OUT), mul(input_("mu", OUT), GAIN)),
            1,
        ),
    ),
    over_reals(
        "cumulative sum as a product with a triangular matrix",
        cumsum(VECTOR, 0),
        dot(where(lambda i, j: le(j, i), fill(1, N, N), fill(0, N, N)), VECTOR),
    ),
    reordered(
        "sum along both axes in any order",
        reduce("sum", reduce("sum", MATRIX, [1]), [0]),
        reduce("sum", reduce("sum", MATRIX, [0]), [0]),
    ),
    reordered(
        "sum of a flattened matrix",
        reduce("sum", reshape(MATRIX, N * M), [0]),
        reduce("sum", MATRIX, [0, 1]),
        at_least(1, M),
    ),
    over_reals("sum as a product with ones", reduce("sum", MATRIX, [1]), dot(MATRIX, fill(1, M))),
    reordered("sum of a reversed vector", reduce("sum", reverse(VECTOR, 0), [0]), reduce("sum", VECTOR, [0])),
    reordered("sum of a transposed product", matmul(reverse(A, 1), reverse(B, 0)), matmul(A, B)),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
