"""Which loops of the two sides run in lock-step.

The extents of both nests are compared from the outside in, over the size domain.  Equal extents align two loops.
Where one side has a single loop for two of the other (``ox`` below ``columns`` against ``vector`` below ``nv`` and
``lane`` below 16), it is split: ``for ox < n * k`` runs the same iterations in the same order as
``for q < n: for r < k`` with ``ox = k*q + r``, for every k; likewise with three loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chc.mapping.arithmetic.exact import equal, product
from chc.mapping.program.writes import Loops
from ila_lang import Expr, const
from smt_encodings.environment import plain

Proves = Callable[[Expr], bool]


@dataclass(frozen=True)
class AlignedLevel:
    """Loop number ``device`` of the device against (a digit of) loop number ``ir`` of the IR.

    ``name`` is the IR counter's name, ``extent`` its extent and ``digit`` maps the IR witness component to this level.
    It is None where that takes a division by a size: then the component is composed of digits.
    """

    device: int
    ir: int
    name: str
    extent: Expr
    digit: Callable[[Expr], Expr] | None
    equal: Expr


def align(device: Loops, ir: Loops, proves: Proves, *, by_sizes: bool = False) -> list[AlignedLevel] | None:
    """The levels of two loop nests in lock-step, outermost first; None where the loops do not correspond.

    With ``by_sizes`` a single IR loop is also split where the inner extents are sizes, and into three loops.
    """
    levels: list[AlignedLevel] = []
    i = j = 0
    while i < len(device) and j < len(ir):
        (_, extent), (counter, other) = device[i], ir[j]
        same = equal(extent, other)
        if proves(same):
            levels.append(AlignedLevel(i, j, plain(counter.name), other, lambda w: w, same))
            i, j = i + 1, j + 1
            continue
        if i + 1 < len(device) and device[i + 1][1].is_const:
            k = device[i + 1][1].value
            split = equal(other, product([extent, device[i + 1][1]]))
            if k > 1 and proves(split):
                levels.append(AlignedLevel(i, j, f"{plain(counter.name)}_div_{k}", extent, _quotient(k), split))
                levels.append(
                    AlignedLevel(i + 1, j, f"{plain(counter.name)}_mod_{k}", const(k, 32), _remainder(k), split)
                )
                i, j = i + 2, j + 1
                continue
        parts = _parts(device[i:], other, proves) if by_sizes else 0
        if not parts:
            return None
        split = equal(other, product(e for _, e in device[i : i + parts]))
        for part in range(parts):
            levels.append(
                AlignedLevel(i + part, j, f"{plain(counter.name)}_digit{part}", device[i + part][1], None, split)
            )
        i, j = i + parts, j + 1
    return levels if i == len(device) and j == len(ir) else None


def _parts(loops: Loops, extent: Expr, proves: Proves) -> int:
    """How many of the first loops have extents whose product is an extent; 0 where that is not found."""
    return next((n for n in (2, 3) if n <= len(loops) and proves(equal(extent, product(e for _, e in loops[:n])))), 0)


def _quotient(k: int) -> Callable[[Expr], Expr]:
    return lambda w: w // const(k, w.width)


def _remainder(k: int) -> Callable[[Expr], Expr]:
    return lambda w: w % const(k, w.width)
