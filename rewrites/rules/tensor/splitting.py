"""Rules that cut an operator in two at ``q``, so that each part fits an accelerator, and that join the parts.

Batches and outputs of a convolution stand in ``convolution``, batches and the inner axis of a product of
matrices in ``products``.
"""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import exp, relu, variable
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.index import IndexLike
from ir_semantics.tensors.operators import broadcast, concat, map_, pad, slice_, transpose
from ir_semantics.tensors.reductions import conv, matmul, mean
from ir_semantics.tensors.terms import Tensor, input_
from smt_encodings.claims import Equality

from .inputs import SIZES, A, B, along, first, rest
from .words import at_least, bias, sub, wrong, wrong_over_reals

N, C, H, W, K, S, P, Q, T, OUT, M = SIZES

IMAGE, KERNEL = input_("x", N, C, H, W), input_("w", OUT, C, K, T)
ROWS, WEIGHTS, BIAS = input_("x", N, C), input_("w", OUT, C), input_("b", OUT)
X, Y = input_("x", N, C), input_("y", M, C)
RISING, FALLING = exp(variable("x")), exp(-variable("x"))
"""The exponentials of the hyperbolic tangent: (e^x - e^-x) / (e^x + e^-x)."""


def dense(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x w^T + b."""
    return bias(matmul(x, transpose(w, [1, 0])), b, 1)


def strided(x: Tensor, columns: IndexLike = 1) -> Tensor:
    """The convolution with stride s along the height."""
    return conv(x, KERNEL, strides=[S, columns])


def band(first: IndexLike, last: IndexLike) -> Tensor:
    """Some rows of all images."""
    return slice_(IMAGE, [0, 0, first, 0], [N, C, last, W])


PRODUCT_ROWS = TensorRule(
    "rows of matmul in two parts", matmul(A, B), concat(0, matmul(first(A, Q), B), matmul(rest(A, Q), B)), le(Q, N)
)
PRODUCT_COLUMNS = TensorRule(
    "columns of matmul in two parts",
    matmul(A, B),
    concat(1, matmul(A, first(B, Q, 1)), matmul(A, rest(B, Q, 1))),
    le(Q, M),
)
DENSE_ROWS = TensorRule(
    "rows of a dense layer in two parts",
    dense(ROWS, WEIGHTS, BIAS),
    concat(0, dense(first(ROWS, Q), WEIGHTS, BIAS), dense(rest(ROWS, Q), WEIGHTS, BIAS)),
    le(Q, N),
)
DENSE_OUTPUTS = TensorRule(
    "outputs of a dense layer in two parts",
    dense(ROWS, WEIGHTS, BIAS),
    concat(1, dense(ROWS, first(WEIGHTS, Q), first(BIAS, Q)), dense(ROWS, rest(WEIGHTS, Q), rest(BIAS, Q))),
    le(Q, OUT),
)
CONVOLUTION_ROWS = TensorRule(
    "rows of a convolution with a stride in two parts",
    strided(IMAGE, columns=P),
    concat(2, strided(band(0, S * (Q - 1) + K), columns=P), strided(band(S * Q, H), columns=P)),
    both(at_least(1, Q), le(S * Q + K, H)),
)

_ACTIVATIONS = (
    ("relu", "relu", relu(variable("x"))),
    ("sigmoid", "the logistic function", 1 / (1 + exp(-variable("x")))),
    ("tanh", "the hyperbolic tangent", (RISING - FALLING) / (RISING + FALLING)),
)
ACTIVATION_OF_PARTS = {
    activation: TensorRule(
        f"{name} of a concatenation", map_(term, x=concat(0, X, Y)), concat(0, map_(term, x=X), map_(term, x=Y))
    )
    for activation, name, term in _ACTIVATIONS
}
"""By activation, as :mod:`ir_semantics.graph` calls them."""
PADDED_DENSE = dense(pad(ROWS, [0, 0], [P, Q]), pad(WEIGHTS, [0, 0], [T, Q]), pad(BIAS, [0], [T]))
"""A dense layer with p rows, q inputs and t outputs of zeros."""
DENSE_WITH_ZEROS = TensorRule(
    "a dense layer with zeros around it",
    dense(ROWS, WEIGHTS, BIAS),
    slice_(PADDED_DENSE, [0, 0], [N, OUT]),
    equality=Equality.OVER_REALS,
)
ACTIVATION_OF_SOME = {
    activation: TensorRule(
        f"{name} of some rows and columns",
        map_(term, x=slice_(ROWS, [0, 0], [P, Q])),
        slice_(map_(term, x=ROWS), [0, 0], [P, Q]),
        both(le(P, N), le(Q, C)),
    )
    for activation, name, term in _ACTIVATIONS
}
"""By activation, as :data:`ACTIVATION_OF_PARTS`."""

SEQUENCES = input_("x", N, M, C)
SEQUENCES_IN_PARTS = TensorRule(
    "sequences in two parts", concat(1, first(SEQUENCES, Q, 1), rest(SEQUENCES, Q, 1)), SEQUENCES, le(Q, M)
)
SOME_OF_A_NUMBER = TensorRule(
    "some rows of a number that is repeated",
    slice_(broadcast(input_("z"), [N, C], []), [Q, 0], [T, C]),
    broadcast(input_("z"), [T - Q, C], []),
)

_VALID = [
    SEQUENCES_IN_PARTS,
    SOME_OF_A_NUMBER,
    PRODUCT_ROWS,
    PRODUCT_COLUMNS,
    DENSE_ROWS,
    DENSE_OUTPUTS,
    TensorRule(
        "a band of rows of a convolution with a stride",
        slice_(strided(IMAGE), [0, 0, Q, 0], [N, OUT, M, W - T + 1]),
        strided(band(S * Q, S * (M - 1) + K)),
        both(le(Q + 1, M), le(S * (M - 1) + K, H)),
    ),
    CONVOLUTION_ROWS,
    TensorRule(
        "means of rows in two parts",
        mean(ROWS, [1]),
        concat(0, mean(first(ROWS, Q), [1]), mean(rest(ROWS, Q), [1])),
        both(le(Q, N), at_least(1, C)),
    ),
    *ACTIVATION_OF_PARTS.values(),
    DENSE_WITH_ZEROS,
    *ACTIVATION_OF_SOME.values(),
]

_WRONG = [
    wrong(
        "sequences in two parts, exchanged",
        concat(1, rest(SEQUENCES, Q, 1), first(SEQUENCES, Q, 1)),
        SEQUENCES,
        both(at_least(1, N, C, Q), le(Q + 1, M)),
    ),
    wrong(
        "outputs of a dense layer in two parts with one bias",
        dense(ROWS, WEIGHTS, BIAS),
        concat(1, dense(ROWS, first(WEIGHTS, Q), first(BIAS, Q)), dense(ROWS, rest(WEIGHTS, Q), first(BIAS, OUT - Q))),
        both(at_least(1, N, C, Q), le(Q + 1, OUT)),
    ),
    wrong(
        "rows of a convolution with a stride in two parts from row q",
        slice_(strided(IMAGE), [0, 0, Q, 0], [N, OUT, Q + 1, W - T + 1]),
        strided(band(Q, Q + K)),
        both(at_least(1, N, C, OUT, Q), le(S * Q + K, H)),
        note="the second part begins at row s q of the image",
    ),
    wrong(
        "rows of a convolution with a stride in two parts without overlap",
        strided(IMAGE),
        concat(2, strided(band(0, S * Q)), strided(band(S * Q, H))),
        both(at_least(1, N, C, OUT, Q), both(le(K, S * Q), le(S * Q + K, H))),
        note="windows that lie across the cut are lost where k > s",
    ),
    wrong(
        "a dense layer with zeros in front of x and behind w",
        dense(ROWS, WEIGHTS, BIAS),
        slice_(dense(pad(ROWS, [0, Q], [0, 0]), pad(WEIGHTS, [0, 0], [0, Q]), BIAS), [0, 0], [N, OUT]),
        at_least(1, N, C, OUT, Q),
    ),
    wrong_over_reals(
        "layer normalisation of a concatenation along the features",
        sub(ROWS, along(mean(ROWS, [1]), ROWS, 0)),
        concat(1, *(sub(part, along(mean(part, [1]), part, 0)) for part in (first(ROWS, Q, 1), rest(ROWS, Q, 1)))),
        both(at_least(1, N, Q), le(Q + 1, C)),
    ),
]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
