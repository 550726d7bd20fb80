"""Where rules on means and sums are applied, and where products are cut along their inner axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from chc.tensor_rules.rule import TensorRule
from rewrites.egraph import EGraph, ENode
from rewrites.rules.tensor.means import (
    MEAN_AS_CONVOLUTION,
    MEAN_AS_PRODUCT,
    MEAN_AS_SUM,
    MEAN_OF_COLUMNS,
    MEAN_OF_IMAGES,
    MEAN_OF_ROWS,
    POOLED_IMAGES,
    SUM_AS_PRODUCT,
    SUM_OF_IMAGES,
)
from rewrites.rules.tensor.products import INNER_IN_PARTS

from .directed import Place, Suggestion
from .places import at, has, shape_of

LANES: Final = 16
"""Inner axes are cut at multiples of this: rows of multipliers are 16 wide, and the rest of one is padding."""


def _reduced(egraph: EGraph, node: ENode, rank: int) -> tuple[int, ...]:
    """The shape of what is reduced along axis 1, if it has so many axes."""
    shape = shape_of(egraph, node.operands[0])
    return shape if len(shape) == rank and dict(node.symbol.attributes)["axes"] == (1,) else ()


def exact_share(count: int) -> bool:
    """Whether 1 / count is a power of two, which codes of every accelerator have."""
    return count > 0 and count & (count - 1) == 0


def _rows(exact: bool) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """Means of rows, of so many elements that a share of them is a number of the accelerators, or not."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        shape = _reduced(egraph, node, 2)
        if shape and exact_share(shape[1]) is exact:
            yield {"x": node.operands[0]}, {"n": shape[0], "m": shape[1]}

    return suggest


def _columns(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """Means of the columns of several matrices, unless these are pairs of rows."""
    shape = _reduced(egraph, node, 3)
    if shape and shape[1] > 2:
        yield {"x": node.operands[0]}, dict(zip("nmc", shape, strict=True))


def _exact_columns(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    for inputs, sizes in _columns(egraph, node):
        if exact_share(sizes["m"]):
            yield inputs, sizes


def _one_matrix(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """Means of the columns of one matrix that is no pair of rows already."""
    shape = _reduced(egraph, node, 3)
    if shape and shape[0] == 1 and (shape[1] > 2 or (shape[1] == 2 and not has(egraph, node.operands[0], "reshape"))):
        yield {"x": node.operands[0]}, {"m": shape[1], "c": shape[2]}


MEANS: Final[Mapping[TensorRule, Place | None]] = {
    POOLED_IMAGES: None,
    MEAN_OF_IMAGES: None,
    SUM_OF_IMAGES: None,
    MEAN_OF_COLUMNS: at("mean", _columns),
    MEAN_AS_PRODUCT: at("mean", _rows(exact=True)),
    MEAN_AS_SUM: at("mean", _rows(exact=False)),
    SUM_AS_PRODUCT: None,
}
"""Means and sums as products with a row of one number: of 1 / n where codes have that number, else of ones."""
MEANS_OF_ONE: Final = {MEAN_OF_ROWS: at("mean", _one_matrix)}
"""Means of the columns of one matrix as the mean of its rows, which poolings of pairs of rows lead to."""
CONVOLVED_MEANS: Final = {MEAN_AS_CONVOLUTION: at("mean", _exact_columns)}
"""Means of columns as convolutions, by shares that codes have."""


def inner_parts(most: Callable[[], int]) -> dict[TensorRule, Place]:
    """Products of matrices with more inputs than ``most``, a multiple of 16, in two: of parts of much the same size."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        a, b = node.operands
        shape, limit = shape_of(egraph, a), most()
        if len(shape) == 2 and shape[1] > limit:
            n, k = shape
            share = -(-k // -(-k // limit))
            yield {"a": a, "b": b}, {"n": n, "k": k, "m": shape_of(egraph, b)[1], "q": -(-share // LANES) * LANES}

    return {INNER_IN_PARTS: at("matmul", suggest)}
