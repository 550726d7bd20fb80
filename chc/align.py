"""Which loops of the two sides run in lock-step.

The extents of both nests are compared from the outside in, over the size domain.  Equal extents align two loops.
Where one side has a single loop for two of the other (``ox`` below ``columns`` against ``vector`` below ``nv`` and
``lane`` below 16), it is split: ``for ox < n * k`` runs the same iterations in the same order as
``for q < n: for r < k`` with ``ox = k*q + r``, for every literal k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ila_lang import Expr, const, resize

from .nests import Nest

__all__ = ["AlignedLevel", "align"]

Proves = Callable[[Expr], bool]


@dataclass(frozen=True)
class AlignedLevel:
    """Loop number ``device`` of the device nest against (a digit of) loop number ``ir`` of the IR nest.

    ``name`` is the IR counter's name, ``extent`` its extent and ``digit`` maps the IR witness component to this level.
    """

    device: int
    ir: int
    name: str
    extent: Expr
    digit: Callable[[Expr], Expr]
    equal: Expr


def align(device: Nest, ir: Nest, proves: Proves) -> list[AlignedLevel] | None:
    """The levels of two nests in lock-step, outermost first; None where the loops do not correspond."""
    levels: list[AlignedLevel] = []
    mine, theirs = list(device.loops), list(ir.loops)
    i = j = 0
    while i < len(mine) and j < len(theirs):
        (_, extent), (counter, other) = mine[i], theirs[j]
        same = _wide(extent) == _wide(other)
        if proves(same):
            levels.append(AlignedLevel(i, j, counter.name, other, lambda w: w, same))
            i, j = i + 1, j + 1
            continue
        if i + 1 < len(mine) and mine[i + 1][1].is_const:
            k = mine[i + 1][1].value
            split = _wide(other) == _wide(extent) * k
            if k > 1 and proves(split):
                levels.append(AlignedLevel(i, j, f"{counter.name}_div_{k}", extent, _quotient(k), split))
                levels.append(AlignedLevel(i + 1, j, f"{counter.name}_mod_{k}", const(k, 32), _remainder(k), split))
                i, j = i + 2, j + 1
                continue
        return None
    return levels if i == len(mine) and j == len(theirs) else None


def _wide(extent: Expr) -> Expr:
    return resize(extent, 40)


def _quotient(k: int) -> Callable[[Expr], Expr]:
    return lambda w: w // const(k, w.width)


def _remainder(k: int) -> Callable[[Expr], Expr]:
    return lambda w: w % const(k, w.width)
