"""Functions of few argument bits as tables.

A table is the function's own body evaluated at every argument, so it is the same meaning; looking it up is
what makes runs on arrays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.expr import Function, postorder
from ila_lang.language.sorts import BvSort

#: Functions of at most this many argument bits in all are tabulated.
TABLE_BITS = 16
#: Bodies of fewer nodes are as fast as a look-up.
WORTHWHILE = 8

Words = NDArray[np.int64]


def table(function: Function, evaluate: Callable[..., Any]) -> Words | None:
    """All values of ``function``, indexed by the concatenation of its arguments; None if there are too many.

    ``evaluate`` is the function's body on NumPy arrays.
    """
    widths = argument_widths(function)
    if widths is None or sum(widths) > TABLE_BITS or function.body is None:
        return None
    if sum(1 for _ in postorder([function.body])) < WORTHWHILE:
        return None
    return values_at_all(widths, evaluate)


def values_at_all(widths: list[int], evaluate: Callable[..., Any]) -> Words:
    """The values of a body on NumPy arrays, at all arguments of these widths."""
    index = np.arange(1 << sum(widths), dtype=np.int64)
    arguments, below = [], sum(widths)
    for width in widths:
        below -= width
        arguments.append(index >> below & (1 << width) - 1)
    return np.broadcast_to(np.asarray(evaluate(*arguments), dtype=np.int64), index.shape).copy()


def argument_widths(function: Function) -> list[int] | None:
    """The widths of the arguments of a function on bit-vectors; None for another one."""
    if not isinstance(function.result, BvSort):
        return None
    widths = [p.sort.width for p in function.params if isinstance(p.sort, BvSort)]
    return widths if len(widths) == len(function.params) else None
