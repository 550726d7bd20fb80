"""Sums of products over axes of a grid, as products of matrices.

A function of two arguments whose table is an outer product of integers counts as a product, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_function
from ila_lang.interpreter.tables import TABLE_BITS, argument_widths, values_at_all
from ila_lang.language.expr import Expr, Function
from ila_lang.language.sorts import BvSort

from .flow import Flow
from .values import Value, value

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


@cache
def factors(function: Function) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Integers u and v with function(a, b) = u[a] * v[b] for all a and b, the result read as signed; or None.

    The equation is modulo nothing: it is checked of the signed values, at every pair of arguments.
    """
    widths = argument_widths(function)
    if widths is None or len(widths) != 2 or sum(widths) > TABLE_BITS or not isinstance(function.result, BvSort):
        return None
    values = values_at_all(widths, compile_function(function, vector=True))
    sign = 1 << function.result.width - 1
    grid = ((values ^ sign) - sign).reshape(1 << widths[0], 1 << widths[1])
    rows = np.flatnonzero(grid.any(axis=1))
    if not rows.size:
        return None
    row = grid[rows[0]]
    v = row // gcd(*(int(x) for x in row))
    column = int(np.flatnonzero(v)[0])
    u = grid[:, column] // v[column]
    if not np.array_equal(np.multiply.outer(u, v), grid):
        return None
    return u.astype(np.float64), v.astype(np.float64)


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


class Contraction:
    """The sum of left * right over the axes from ``first`` on of a grid, as a product of matrices.

    Both arrays hold integers as float64, with one dimension for each axis of the grid of ``counts`` points (of length 1
    where they do not depend on it); every partial sum must stay below :data:`EXACT`.  The three steps are separate, so
    that a matrix that does not change is made once.
    """

    def __init__(self, left: Sequence[int], right: Sequence[int], counts: Sequence[int], first: int) -> None:
        self.first = first
        self.times = 1
        self.batch: list[int] = []
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.inner: list[int] = []
        self.only_left: list[int] = []
        self.only_right: list[int] = []
        for d, count in enumerate(counts):
            a, b = left[d] > 1, right[d] > 1
            if d >= first:
                if a and b:
                    self.inner.append(d)
                elif a or b:
                    (self.only_left if a else self.only_right).append(d)
                else:
                    self.times *= count
            elif a and b:
                self.batch.append(d)
            elif a or b:
                (self.rows if a else self.columns).append(d)
        self.depth = len(counts)
        self.sizes = {d: max(left[d], right[d]) for d in range(self.depth)}

    def left(self, array: NDArray[Any]) -> NDArray[Any]:
        """The matrices of the left factor: rows, then what is summed."""
        return self._matrix(array, self.only_left, self.rows, self.inner)

    def right(self, array: NDArray[Any]) -> NDArray[Any]:
        """The matrices of the right factor: what is summed, then columns."""
        return self._matrix(array, self.only_right, self.inner, self.columns)

    def _matrix(self, array: NDArray[Any], alone: list[int], rows: list[int], columns: list[int]) -> NDArray[Any]:
        if alone:
            array = array.sum(axis=tuple(alone), keepdims=True)
        order = [*self.batch, *rows, *columns]
        rest = [d for d in range(self.depth) if d not in order]
        shape = [int(np.prod([self.sizes[d] for d in group], dtype=np.int64)) for group in (rows, columns)]
        return np.ascontiguousarray(
            array.transpose(*order, *rest).reshape(*(self.sizes[d] for d in self.batch), *shape)
        )

    def sum(self, left: NDArray[Any], right: NDArray[Any]) -> Any:
        """The sums, as an integer array over the first axes, or a number."""
        kept = [*self.batch, *self.rows, *self.columns]
        result = np.matmul(left, right).reshape([self.sizes[d] for d in kept])
        result = result.transpose(np.argsort(kept)) if kept else result
        result = result.reshape([self.sizes[d] if d in kept else 1 for d in range(self.first)])
        whole = result.astype(np.int64) * self.times
        return whole if self.first else int(whole)
