"""Means and sums as products with a row of one number, as convolutions, and as reductions of the rows of a matrix."""

from __future__ import annotations

from typing import Final

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.operators import broadcast, fill, number, reshape, slice_, transpose
from ir_semantics.tensors.reductions import avg_pool, conv, matmul, mean, reduce
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import IMAGE, MATRIX, C, H, M, N, S, T, W
from .words import at_least, div, over_reals, reordered, wrong_over_reals

COLUMNS, ONE = input_("x", N, M, C), input_("x", 1, M, C)
_SHARE = div(number(1), number(M))


def _product(row: Tensor) -> Tensor:
    """Rows of a matrix times one row."""
    return reshape(matmul(MATRIX, transpose(row, [1, 0])), N)


def _as_rows(x: Tensor, kept: Index, mean_of: str = "mean") -> Tensor:
    """Tensors [n, c, ...] as n c rows, and what each is reduced to."""
    rows = reshape(x, N * C, kept)
    return reshape(mean(rows, [1]) if mean_of == "mean" else reduce(mean_of, rows, [1]), N, C)


MEAN_AS_PRODUCT: Final = over_reals(
    "means of rows as a product with a row of shares",
    mean(MATRIX, [1]),
    _product(broadcast(_SHARE, [1, M], [])),
    at_least(1, N, M),
)
MEAN_AS_SUM: Final = over_reals(
    "means of rows as sums over their number",
    mean(MATRIX, [1]),
    div(reduce("sum", MATRIX, [1]), broadcast(number(M), [N], [])),
    at_least(1, M),
)
SUM_AS_PRODUCT: Final = over_reals(
    "sums of rows as a product with a row of ones",
    reduce("sum", MATRIX, [1]),
    _product(fill(1, 1, M)),
    at_least(1, N, M),
)
MEAN_OF_IMAGES: Final = over_reals(
    "means of images as means of rows", mean(IMAGE, [2, 3]), _as_rows(IMAGE, H * W), at_least(1, N, C, H, W)
)
SUM_OF_IMAGES: Final = reordered(
    "sums of images as sums of rows",
    reduce("sum", IMAGE, [2, 3]),
    _as_rows(IMAGE, H * W, "sum"),
    at_least(1, N, C, H, W),
)
POOLED_IMAGES: Final = over_reals(
    "average pooling of whole images as their means",
    avg_pool(IMAGE, [H, W], strides=[S, T]),
    reshape(mean(IMAGE, [2, 3]), N, C, 1, 1),
    at_least(1, N, C, H, W, S, T),
)
MEAN_OF_ROWS: Final = TensorRule(
    "the mean of the rows of one matrix",
    mean(ONE, [1]),
    reshape(mean(reshape(ONE, M, C), [0]), 1, C),
    at_least(1, M, C),
)
MEAN_AS_CONVOLUTION: Final = over_reals(
    "means of columns as a convolution with shares",
    mean(COLUMNS, [1]),
    reshape(conv(reshape(COLUMNS, N, M, C, 1), broadcast(_SHARE, [1, M, 1, 1], [])), N, C),
    at_least(1, N, M, C),
)
MEAN_OF_COLUMNS: Final = over_reals(
    "means of columns as means of rows",
    mean(COLUMNS, [1]),
    _as_rows(transpose(COLUMNS, [0, 2, 1]), M),
    at_least(1, N, M, C),
)

_WRONG = [
    wrong_over_reals(
        "means of rows as a product with shares of the number of rows",
        mean(MATRIX, [1]),
        _product(broadcast(div(number(1), number(N)), [1, M], [])),
        at_least(1, N, M),
    ),
    wrong_over_reals(
        "sums of rows as a product with a row of shares",
        reduce("sum", MATRIX, [1]),
        _product(broadcast(_SHARE, [1, M], [])),
        at_least(1, N, M),
    ),
    wrong_over_reals(
        "means of columns as means of rows without a transposition",
        mean(COLUMNS, [1]),
        _as_rows(COLUMNS, M),
        at_least(1, N, M, C),
    ),
    wrong_over_reals(
        "means of images as means of rows of one axis",
        mean(IMAGE, [2, 3]),
        reshape(mean(reshape(slice_(IMAGE, [0, 0, 0, 0], [N, C, 1, W]), N * C, W), [1]), N, C),
        at_least(1, N, C, H, W),
    ),
    wrong_over_reals(
        "average pooling of parts of images as the means of whole ones",
        avg_pool(IMAGE, [H, W], strides=[S, T], pads=[(1, 1), (1, 1)]),
        reshape(mean(IMAGE, [2, 3]), N, C, 1, 1),
        both(at_least(1, N, C), at_least(3, H, W, S, T)),
    ),
]

RULES = (
    *_WRONG,
    MEAN_AS_PRODUCT,
    MEAN_AS_SUM,
    SUM_AS_PRODUCT,
    MEAN_OF_IMAGES,
    SUM_OF_IMAGES,
    POOLED_IMAGES,
    POOLED_IMAGES.converse,
    MEAN_OF_ROWS,
    MEAN_AS_CONVOLUTION,
    MEAN_OF_COLUMNS,
)
"""All rules of this module."""
