"""The iterations of the IR's fold that a fold of the device stands against: a part of them, or blocks.

Both sides' loops need not be cut alike.  A loop may be interrupted: its iterations are those of its first part, and
then those of its rest, or those of blocks, one after the other.  Nothing is asked of what an iteration does.

* Where the device goes on from another fold, the IR's is taken from that iteration on (**goes on**).
* Where writes that take turns make a step together, it is taken in blocks of as many iterations (**blocks**).
* Where a step of the device is a fold of its own, whose length depends on which step it is, it is taken in blocks of
  these lengths.  That they cover the loop is an obligation: each block but the last is as long as blocks are apart, the
  last one ends where the loop does (**blocks**), and without blocks the loop has no iteration (**no block**).
"""

from __future__ import annotations

from dataclasses import replace

from chc.mapping.arithmetic.exact import equal, less, product
from chc.mapping.contents.alternating import Alternating
from chc.mapping.contents.folds import Blocks, FoldUse
from chc.mapping.contents.unrolled import Cycle
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context

from .block_lengths import found_blocks, length_before, step_length, steps_are_folds
from .iterations import a_block


def partnered(context: Context, label: str, device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse]) -> FoldUse:
    """The IR's fold with those of its iterations that the device's stands against, in blocks where it has such."""
    (here, one), (there, other) = device, ir
    other = _from_where_it_goes_on(context, label, here, one, (there, other))
    if one.cycle is not None:
        return _in_blocks(context, label, one, one.cycle, other)
    return _in_blocks_of_steps(context, label, here, one, other)


def _from_where_it_goes_on(
    context: Context, label: str, side: Values, device: FoldUse, ir: tuple[Values, FoldUse]
) -> FoldUse:
    """The IR's fold from that iteration on with which the device goes on from another fold; all of it without such.

    Both of the device's folds, one after the other, stand against the IR's: the other one against its beginning.
    """
    there, other = ir
    length = length_before(context, (side, device), ir)
    fits = None if length is None else ~less(other.loops[0][1], length)
    if length is None or fits is None or not context.proves(fits):
        return other
    context.theorem("lock-step", f"{label}: goes on", fits, "the other side's fold has the iterations before, too")
    return there.in_parts(other, length)


def _in_blocks(context: Context, label: str, device: FoldUse, turns: Cycle | Alternating, ir: FoldUse) -> FoldUse:
    """The IR's fold in blocks of as many iterations as the writes have together that make a step of the device's.

    Where there are no such blocks, it is as it was.
    """
    blocks = device.loops[0][1] if len(device.loops) == 1 else product(e for _, e in device.loops)
    length = step_length(context, turns, ir)
    same = None if length is None else equal(ir.loops[0][1], product([blocks, length]))
    if length is None or same is None or not context.proves(same):
        return ir
    context.theorem("lock-step", f"{label}: blocks", same, "the other side's fold has as many iterations in blocks")
    return replace(ir, blocks=Blocks(blocks, length, ir.loops[0][0], length))


def _in_blocks_of_steps(context: Context, label: str, side: Values, device: FoldUse, ir: FoldUse) -> FoldUse:
    """The IR's fold in blocks as long as the fold that a step of the device's is; as it was where there are none."""
    is_cut = ir.blocks is None and steps_are_folds(side, device)
    inside = a_block(context, context.called(f"{label}, blocks"), device) if is_cut else None
    if inside is None:
        return ir
    whole = ir.loops[0][1]
    found = found_blocks((context, inside), (side, device), ir, whole)
    if found is None:
        return ir
    (length, apart), _ = found
    number, count = inside.ranges[-1]
    blocks = Blocks(count, apart, number, length)
    meaning = "blocks follow each other, and the last one ends with the other side's fold"
    inside.theorem("lock-step", f"{label}: blocks", blocks.cover(whole), meaning)
    meaning = "without blocks the other side's fold has no iteration"
    context.theorem("lock-step", f"{label}: no block", blocks.none(whole), meaning)
    return replace(ir, blocks=blocks)
