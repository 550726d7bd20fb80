"""Sums of products over axes of a grid, as products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .expr import Expr
from .flow import Flow
from .tables import factors
from .values import Value, value

__all__ = ["EXACT", "Product", "matrix_sum", "product"]

#: Integers of at most this magnitude are exact in float64, and so are sums that stay below it.
EXACT = 1 << 53


@dataclass(frozen=True, eq=False)
class Product:
    """A term that is congruent to left * right, both read as integers of at most the given magnitudes."""

    left: Value
    right: Value
    as_left: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    as_right: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    magnitude: int


def product(term: Expr, flow: Flow) -> Product | None:
    """``term`` as a product of integers modulo 2 to its width, where its form shows one."""
    inner = term
    while inner.op == "sext":
        inner = inner.args[0]
    if inner.op == "apply" and inner.func is not None and inner.func.body is not None and len(inner.args) == 2:
        found = factors(inner.func)
        if found is None:
            return None
        u, v = found
        magnitude = int(np.abs(u).max() * np.abs(v).max())
        left, right = (value(a, flow) for a in inner.args)
        return Product(left, right, u.__getitem__, v.__getitem__, magnitude)
    if inner.op == "bvmul":
        bits = [_signed_bits(a) for a in inner.args]
        # a product that is extended must not have wrapped before
        if inner is not term and sum(bits) > inner.width:
            return None
        if sum(bits) - 2 >= 48:
            return None
        left, right = (value(a, flow) for a in inner.args)
        as_left, as_right = (_signed(a.width) for a in inner.args)
        return Product(left, right, as_left, as_right, 1 << sum(bits) - 2)
    return None


def _signed(width: int) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    sign = 1 << width - 1
    return lambda words: ((words ^ sign) - sign).astype(np.float64)


def _signed_bits(term: Expr) -> int:
    """A number of bits in which ``term``, read as signed, fits."""
    if term.op == "sext":
        return _signed_bits(term.args[0])
    if term.op == "zext":
        return min(term.args[0].width + 1, term.width)
    return term.width


def matrix_sum(left: NDArray[Any], right: NDArray[Any], counts: Sequence[int], first: int) -> Any:
    """The sum of left * right over the axes from ``first`` on of a grid of ``counts`` points.

    Both arrays hold integers as float64, with one dimension for each axis (of length 1 where they do not depend on it);
    every partial sum must stay below :data:`EXACT`.  The result is an integer array of the first axes, or a number.
    """
    depth = len(counts)
    groups: dict[str, list[int]] = {"batch": [], "left": [], "right": [], "inner": []}
    times = 1
    for d in range(depth):
        a, b = left.shape[d] > 1, right.shape[d] > 1
        if d >= first and a and b:
            groups["inner"].append(d)
        elif d >= first:
            if a:
                left = left.sum(axis=d, keepdims=True)
            elif b:
                right = right.sum(axis=d, keepdims=True)
            else:
                times *= counts[d]
        elif a or b:
            groups["batch" if a and b else "left" if a else "right"].append(d)
    rest = [d for d in range(depth) if all(d not in group for group in groups.values())]

    def matrix(array: NDArray[Any], rows: list[int], columns: list[int], others: list[int]) -> NDArray[Any]:
        order = [*groups["batch"], *rows, *columns]
        shape = [int(np.prod([array.shape[d] for d in g], dtype=np.int64)) for g in (rows, columns)]
        batch = [array.shape[d] for d in groups["batch"]]
        return array.transpose(*order, *others, *rest).reshape(*batch, *shape)

    a = matrix(left, groups["left"], groups["inner"], groups["right"])
    b = matrix(right, groups["inner"], groups["right"], groups["left"])
    result = np.matmul(a, b)
    kept = [*groups["batch"], *groups["left"], *groups["right"]]
    sizes = {d: max(left.shape[d], right.shape[d]) for d in kept}
    result = result.reshape([sizes[d] for d in kept])
    result = result.transpose(np.argsort(kept)) if kept else result
    result = result.reshape([sizes.get(d, 1) for d in range(first)])
    whole = result.astype(np.int64) * times
    return whole if first else int(whole)
