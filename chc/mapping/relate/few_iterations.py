"""Few iterations by which one side's fold is longer than the other's, which has them written out before or after it."""

from __future__ import annotations

from dataclasses import replace

from chc.mapping.arithmetic.exact import equal, product, total
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.folds import FoldUse
from chc.mapping.memory.values import Values
from ila_lang import Expr, const

FEW = 4
"""Iterations that a device may have before or after a loop without being one."""


def first_iterations(context: Context, device: FoldUse, ir: FoldUse) -> Expr | None:
    """The few iterations by which the IR's fold is longer: the device begins with them, written out."""
    iterations, inner = (product(e for _, e in loops) for loops in (device.loops, ir.loops[1:]))
    all_of_them = product([ir.loops[0][1], inner])
    for number in (const(k, 8) for k in range(1, FEW + 1)):
        if context.proves(equal(all_of_them, total([iterations, product([number, inner])]))):
            return number
    return None


def last_iterations(context: Context, side: Values, use: FoldUse, length: Expr) -> dict[Expr, Expr]:
    """The results of a fold that has a few iterations more than ``length``, in terms of that of the first ``length``.

    By the symbols that stand for them; nothing where there are no more, or not few.
    """
    extent = use.loops[0][1]
    if len(use.loops) > 1:
        return {}
    for number in (const(k, extent.width) for k in range(1, FEW + 1)):
        longer = equal(extent, total([length, number]))
        if context.proves(longer):
            meaning = "the fold has a few iterations more than that of the other side"
            context.theorem("lock-step", f"{use.fold.here.label}: goes on after it", longer, meaning)
            rest = side.in_parts(use, length)
            assert rest.part is not None
            return side.unrolled(replace(rest, part=(rest.part[0], number)))
    return {}
