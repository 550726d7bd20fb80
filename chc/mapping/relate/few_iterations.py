"""Few iterations that one side has written out: all that the other side's fold has, or those by which it is longer.

A device that peels its first or last iteration has no loop where the sizes leave no other iteration.
"""

from __future__ import annotations

from dataclasses import replace

from chc.mapping.arithmetic.exact import equal, total
from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from ila_lang import Expr, const

FEW = 4
"""Iterations that a device may have before or after a loop, or instead of it, without being one."""

MOST_UNROLLED = 64
"""Largest literal number of iterations of a fold that is written out where the other side has no fold."""


def all_iterations(context: Context, side: Values, use: FoldUse) -> dict[Expr, Expr]:
    """The results of a fold in terms without it, where it has literal iterations, or as few in a context by proof.

    By the symbols that stand for them; nothing where there are others, or where that is not found.
    """
    if 1 <= use.count <= MOST_UNROLLED:
        return side.unrolled(use)
    if len(use.loops) > 1 or use.blocks or use.cycle or use.longer or not context.within(use.context):
        return {}
    extent = use.loops[0][1]
    begin = const(0, extent.width) if use.part is None else use.part[0]
    for number in _few(extent, 0):
        same = equal(extent, number)
        if context.proves(same):
            name = context.called(f"{_named(side, use)}: written out")
            context.theorem("lock-step", name, same, "the fold has a few iterations, which are written out")
            # in the context where it has them: elsewhere they may not exist
            return side.unrolled(replace(use, context=context, part=(begin, number)))
    return {}


def last_iterations(context: Context, side: Values, use: FoldUse, length: Expr) -> dict[Expr, Expr]:
    """The results of a fold that has a few iterations more than ``length``, in terms of that of the first ``length``.

    By the symbols that stand for them; nothing where there are no more, or not few.
    """
    extent = use.loops[0][1]
    if len(use.loops) > 1:
        return {}
    for number in _few(extent, 1):
        longer = equal(extent, total([length, number]))
        if context.proves(longer):
            meaning = "the fold has a few iterations more than that of the other side"
            context.theorem("lock-step", f"{_named(side, use)}: goes on after it", longer, meaning)
            rest = side.in_parts(use, length)
            assert rest.part is not None
            return side.unrolled(replace(rest, part=(rest.part[0], number)))
    return {}


def _few(extent: Expr, least: int) -> list[Expr]:
    """A few numbers from the least one on, as far as an extent may be one of them."""
    return [const(k, extent.width) for k in range(least, min(FEW, 2**extent.width - 1) + 1)]


def _named(side: Values, use: FoldUse) -> str:
    """A name for a use of a fold: there may be several, in several cases."""
    return f"{use.fold.here.label}, fold {side.definitions.numbered()}"
