"""Functions of few argument bits as tables, and tables that are products of two factors.

A table is the function's own body evaluated at every argument, so it is the same meaning; looking it up is
what makes runs on arrays fast.  Where a table of two arguments is an outer product of integers (which is checked at
every entry), a sum of its values over an index is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .expr import postorder
from .function import Function
from .sorts import BvSort

__all__ = ["TABLE_BITS", "factors", "table"]

#: Functions of at most this many argument bits in all are tabulated.
TABLE_BITS = 16
#: Bodies of fewer nodes are as fast as a look-up.
WORTHWHILE = 8

Words = NDArray[np.int64]


def table(function: Function, evaluate: Callable[..., Any]) -> Words | None:
    """All values of ``function``, indexed by the concatenation of its arguments; None if there are too many.

    ``evaluate`` is the function's body on NumPy arrays.
    """
    widths = _widths(function)
    if widths is None or sum(widths) > TABLE_BITS or function.body is None:
        return None
    if sum(1 for _ in postorder([function.body])) < WORTHWHILE:
        return None
    return _values(widths, evaluate)


def _values(widths: list[int], evaluate: Callable[..., Any]) -> Words:
    index = np.arange(1 << sum(widths), dtype=np.int64)
    arguments, below = [], sum(widths)
    for width in widths:
        below -= width
        arguments.append(index >> below & (1 << width) - 1)
    return np.broadcast_to(np.asarray(evaluate(*arguments), dtype=np.int64), index.shape).copy()


@cache
def factors(function: Function) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Integers u and v with function(a, b) = u[a] * v[b] for all a and b, the result read as signed; or None.

    The equation is modulo nothing: it holds of the signed values, at every pair of arguments.
    """
    from .compile import compile_function

    widths = _widths(function)
    if widths is None or len(widths) != 2 or sum(widths) > TABLE_BITS or not isinstance(function.result, BvSort):
        return None
    values = _values(widths, compile_function(function, vector=True))
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


def _widths(function: Function) -> list[int] | None:
    if not isinstance(function.result, BvSort):
        return None
    widths = [p.sort.width for p in function.params if isinstance(p.sort, BvSort)]
    return widths if len(widths) == len(function.params) else None
