"""Rules that take pooling apart: windows flattened to rows of a matrix, and rows reduced by pairs (D2A, figure 7)."""

from __future__ import annotations

from typing import Any

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both
from ir_semantics.tensors.index import product
from ir_semantics.tensors.operators import concat, reshape, slice_, transpose
from ir_semantics.tensors.reductions import avg_pool, max_pool, mean, patches, reduce
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import IMAGE, C, H, K, M, N, P, Q, S, T, W
from .words import at_least, over_reals, wrong, wrong_over_reals

STRIDES: dict[str, Any] = {"strides": [S, T]}
WINDOWS = input_("x", N, C, K, Q, H, W)
"""Windows of k x q elements at h x w places."""
PAIRS, ODD, TWO = input_("x", 2 * M, N), input_("x", 2 * M + 1, N), input_("x", 2, N)
HALVES = slice_(PAIRS, [0, 0], [M, N]), slice_(PAIRS, [M, 0], [2 * M, N])


def rows_of(windows: Tensor, order: tuple[int, ...] = (2, 3, 0, 1, 4, 5)) -> Tensor:
    """Windows as a matrix: a row for each place in the window, a column for each window."""
    n, c, k, q, h, w = windows.shape
    return reshape(transpose(windows, order), k * q, product([n, c, h, w]))


def paired(x: Tensor) -> Tensor:
    """The rows of a matrix by pairs of neighbours: [pair, row of the pair, column]."""
    return reshape(x, M, 2, N)


MAX_POOL_AS_WINDOWS = TensorRule(
    "max pooling as maxima over windows",
    max_pool(IMAGE, [K, Q], **STRIDES),
    reduce("max", patches(IMAGE, [K, Q], **STRIDES), [2, 3]),
)
AVERAGE_POOL_AS_WINDOWS = over_reals(
    "average pooling as means over windows",
    avg_pool(IMAGE, [K, Q], **STRIDES),
    mean(patches(IMAGE, [K, Q], **STRIDES), [2, 3]),
)
WINDOWS_AS_MAXIMUM = TensorRule(
    "maxima over windows as a maximum over rows",
    reduce("max", WINDOWS, [2, 3]),
    reshape(reduce("max", rows_of(WINDOWS), [0]), N, C, H, W),
    at_least(1, N, C, H, W, K, Q),
)
WINDOWS_AS_MEAN = over_reals(
    "means over windows as a mean over rows",
    mean(WINDOWS, [2, 3]),
    reshape(mean(rows_of(WINDOWS), [0]), N, C, H, W),
    at_least(1, N, C, H, W),
)
MAXIMUM_BY_PAIRS = TensorRule(
    "a maximum over an even number of rows by pairs",
    reduce("max", PAIRS, [0]),
    reduce("max", reduce("max", paired(PAIRS), [1]), [0]),
    both(at_least(2, M), at_least(1, N)),
)
MEAN_BY_PAIRS = over_reals(
    "a mean over an even number of rows by pairs",
    mean(PAIRS, [0]),
    mean(mean(paired(PAIRS), [1]), [0]),
    both(at_least(2, M), at_least(1, N)),
)
MAXIMUM_OF_ODD_ROWS = TensorRule(
    "a maximum over an odd number of rows with the last row twice",
    reduce("max", ODD, [0]),
    reduce("max", concat(0, ODD, slice_(ODD, [2 * M, 0], [2 * M + 1, N])), [0]),
    at_least(1, M, N),
)
MAXIMUM_OF_PAIR = TensorRule(
    "a maximum over two rows as one pair",
    reduce("max", TWO, [0]),
    reshape(reduce("max", reshape(TWO, 1, 2, N), [1]), N),
    at_least(1, N),
)
MEAN_OF_PAIR = over_reals(
    "a mean over two rows as one pair", mean(TWO, [0]), reshape(mean(reshape(TWO, 1, 2, N), [1]), N), at_least(1, N)
)

_VALID = [
    MAX_POOL_AS_WINDOWS,
    AVERAGE_POOL_AS_WINDOWS,
    WINDOWS_AS_MAXIMUM,
    WINDOWS_AS_MEAN,
    MAXIMUM_BY_PAIRS,
    MEAN_BY_PAIRS,
    MEAN_BY_PAIRS.converse,
    MAXIMUM_OF_ODD_ROWS,
    MAXIMUM_OF_PAIR,
    MEAN_OF_PAIR,
]

_WRONG = [
    wrong(
        "max pooling with pads as maxima over windows",
        max_pool(IMAGE, [K, Q], **STRIDES, pads=[(P, P), (P, P)]),
        reduce("max", patches(IMAGE, [K, Q], **STRIDES, pads=[(P, P), (P, P)]), [2, 3]),
        at_least(1, N, C, H, W),
        note="patches have zeros in the pads, and pooling has nothing there",
    ),
    wrong(
        "maxima over windows as a maximum over rows without a transposition",
        reduce("max", WINDOWS, [2, 3]),
        reshape(reduce("max", reshape(WINDOWS, K * Q, product([N, C, H, W])), [0]), N, C, H, W),
        at_least(1, N, C, H, W, K, Q),
    ),
    wrong(
        "maxima over windows as a maximum over rows with places exchanged",
        reduce("max", WINDOWS, [2, 3]),
        reshape(reduce("max", rows_of(WINDOWS, (2, 3, 0, 1, 5, 4)), [0]), N, C, H, W),
        at_least(1, N, C, H, W, K, Q),
    ),
    wrong(
        "a maximum over an even number of rows by pairs of columns",
        reduce("max", PAIRS, [0]),
        reduce("max", reduce("max", reshape(PAIRS, M, N, 2), [2]), [0]),
        at_least(1, M, N),
    ),
    wrong(
        "a maximum over half of the rows",
        reduce("max", PAIRS, [0]),
        reduce("max", reduce("max", reshape(concat(0, HALVES[0], HALVES[0]), M, 2, N), [1]), [0]),
        at_least(1, M, N),
    ),
    wrong_over_reals(
        "a mean over an odd number of rows with the last row twice",
        mean(ODD, [0]),
        mean(concat(0, ODD, slice_(ODD, [2 * M, 0], [2 * M + 1, N])), [0]),
        at_least(1, M, N),
        note="a maximum may count a row twice, a mean may not",
    ),
]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
