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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.contents.alternating import Alternating
from chc.mapping.contents.folds import Blocks, FoldUse
from chc.mapping.contents.unrolled import Cycle
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from chc.mapping.program.writes import Fold
from ila_lang import BvSort, Expr, const, free_variables, ite, postorder, substitute
from smt_encodings.environment import fresh

from .few_iterations import first_iterations


def partnered(context: Context, label: str, device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse]) -> FoldUse:
    """The IR's fold with those of its iterations that the device's stands against, in blocks where it has such."""
    (here, one), (there, other) = device, ir
    other = _from_where_it_goes_on(context, label, here, one, (there, other))
    if one.cycle is not None:
        return _in_blocks(context, label, one, one.cycle, other)
    return _in_blocks_of_steps(context, label, here, one, other)


def partner_length(context: Context, device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse]) -> Expr | None:
    """How many iterations of the IR's outermost loop a fold of the device stands against; None if not found."""
    (here, use), (there, other) = device, ir
    extents = [e for _, e in use.loops]
    if use.cycle is None and _step_fold(here, use.fold) is not None and _step_fold(there, other.fold) is None:
        cut = _cut(context, context.called("blocks"), here, use, other)
        return None if cut is None else cut.whole
    if use.cycle is None:
        return _outer(context, extents, other)
    length = _step_length(context, use.cycle, other)
    return None if length is None else product([*extents, length])


def _from_where_it_goes_on(
    context: Context, label: str, side: Values, device: FoldUse, ir: tuple[Values, FoldUse]
) -> FoldUse:
    """The IR's fold from that iteration on with which the device goes on from another fold; all of it without such.

    Both of the device's folds, one after the other, stand against the IR's: the other one against its beginning.
    """
    there, other = ir
    before: list[Expr] = []
    use = _begins_with(side, device)
    while use is not None:
        length = partner_length(context, (side, use), ir)
        if length is None:
            return other
        before.append(length)
        use = _begins_with(side, use)
    length = total(before) if before else first_iterations(context, device, other)
    if length is None:
        return other
    fits = ~less(other.loops[0][1], length)
    if not context.proves(fits):
        return other
    context.theorem("lock-step", f"{label}: goes on", fits, "the other side's fold has the iterations before, too")
    return there.in_parts(other, length)


def _begins_with(side: Values, use: FoldUse) -> FoldUse | None:
    """The fold with whose results a fold of the device begins."""
    before = side.folds.get(use.initial[0]) if use.initial else None
    same = before is not None and [*map(id, use.initial)] == [*map(id, before.symbols)]  # terms, by identity
    return before if same else None


def _in_blocks(context: Context, label: str, device: FoldUse, turns: Cycle | Alternating, ir: FoldUse) -> FoldUse:
    """The IR's fold in blocks of as many iterations as the writes have together that make a step of the device's.

    Where there are no such blocks, it is as it was.
    """
    blocks = device.loops[0][1] if len(device.loops) == 1 else product(e for _, e in device.loops)
    length = _step_length(context, turns, ir)
    same = None if length is None else equal(ir.loops[0][1], product([blocks, length]))
    if length is None or same is None or not context.proves(same):
        return ir
    context.theorem("lock-step", f"{label}: blocks", same, "the other side's fold has as many iterations in blocks")
    return replace(ir, blocks=Blocks(blocks, length, ir.loops[0][0], length))


def _step_length(context: Context, turns: Cycle | Alternating, ir: FoldUse) -> Expr | None:
    """As many as one step of writes in turn stands against."""
    here = narrow(turns.start.at)
    lengths = []
    for member in turns.together:
        length = _outer(context, [substitute(e, here) for _, e in member.fold.loops], ir)
        if length is None:
            return None
        lengths.append(length)
    return total(lengths)


def _in_blocks_of_steps(context: Context, label: str, side: Values, device: FoldUse, ir: FoldUse) -> FoldUse:
    """The IR's fold in blocks as long as the fold that a step of the device's is; as it was where there are none."""
    name = context.called(f"{label}, blocks")
    cut = _cut(context, name, side, device, ir, ir.loops[0][1]) if ir.blocks is None else None
    if cut is None:
        return ir
    meaning = "blocks follow each other, and the last one ends with the other side's fold"
    cut.inside.theorem("lock-step", f"{label}: blocks", cut.covers, meaning)
    meaning = "without blocks the other side's fold has no iteration"
    context.theorem("lock-step", f"{label}: no block", cut.none, meaning)
    return replace(ir, blocks=cut.blocks)


@dataclass(frozen=True)
class _Cut:
    """A loop of ``whole`` iterations in blocks; that these ``cover`` it, and that without blocks it has ``none``."""

    whole: Expr
    blocks: Blocks
    inside: Context
    covers: Expr
    none: Expr


def _cut(
    context: Context, name: str, side: Values, device: FoldUse, ir: FoldUse, whole: Expr | None = None
) -> _Cut | None:
    """The blocks in which a fold of the device runs whose steps are folds, found; None where there are none.

    How many iterations they have together is ``whole``, or else looked for.
    """
    inner = _step_fold(side, device.fold)
    if inner is None or device.cycle is not None or device.blocks is not None or len(device.loops) != 1:
        return None
    (counter, count), own = device.loops[0], fresh("block", device.loops[0][0].sort)
    if not context.samples.extend(((own, count),), 0).rows:
        return None
    inside = context.inside(((own, count),), name)
    around, last = narrow(device.iteration({counter: own})), equal(successor(own), count)
    for length, apart in _blocks(inside, side, inner, around, ir, own):
        end = total([product([own, apart]), length])
        for together in _ends(end, own) if whole is None else [whole]:
            covers = ite(last, equal(end, together), equal(length, apart))
            none = less(const(0, 1), count) | equal(together, const(0, 1))
            likely = all(v for (v,) in inside.samples.evaluate([covers]))
            if likely and inside.proves(covers) and context.proves(none):
                return _Cut(together, Blocks(count, apart, own, length), inside, covers, none)
    return None


def _ends(end: Expr, number: Expr) -> Iterator[Expr]:
    """How many iterations blocks may have together: parts of where one ends that are the same in all, and multiples."""
    nodes = list(dict.fromkeys(n for n in postorder([end]) if isinstance(n.sort, BvSort)))
    same = [n for n in nodes if number.name not in free_variables(n)]
    literals = [n for n in same if n.is_const and n.value > 0]
    sizes = [n for n in same if not n.is_const]
    shifts = [const(1 << n.args[1].value, 32) for n in nodes if n.op == "bvshl" and n.args[1].is_const]
    yield from (product([n, *unit]) for n in sizes for unit in ((), *((u,) for u in (*literals, *shifts))))


def _step_fold(side: Values, fold: Fold) -> Fold | None:
    """The fold that a step is, if that goes on from the registers; None where a step is something else."""
    inner = side.definitions.schedule.folds.get(fold.step[0])
    if inner is None or len(inner.registers) != len(fold.registers):
        return None
    pairs = [*zip(fold.step, inner.results, strict=True), *zip(fold.registers, inner.initial, strict=True)]
    return inner if all(a is b for a, b in pairs) else None


def _blocks(
    inside: Context, side: Values, inner: Fold, around: Mapping[Expr, Expr], ir: FoldUse, number: Expr
) -> Iterator[tuple[Expr, Expr]]:
    """How many iterations the blocks may have, and by how much these may be apart.

    Where a step of the inner fold is a fold, too, its length is among the parts of both's extents.
    """
    determined = inside.samples.determine
    extents = [substitute(e, around) for _, e in inner.loops]
    innermost = _step_fold(side, inner)
    if innermost is None:
        lengths = [_outer(inside, extents, ir)] if all(map(determined, extents)) else []
    else:
        while innermost is not None:
            inner, innermost = innermost, _step_fold(side, innermost)
            extents += [substitute(e, around) for _, e in inner.loops]
        words = [n for n in postorder(extents) if isinstance(n.sort, BvSort) and n.op == "ite" and determined(n)]
        units = [e for _, e in inner.loops[1:] if e.is_const]
        lengths = [product([n, *units[k:]]) for n in dict.fromkeys(words) for k in range(len(units) + 1)]
    for length in lengths:
        if length is not None:
            yield from ((length, unit) for unit in _units(length, number))


def _units(length: Expr, number: Expr) -> Iterator[Expr]:
    """By how much blocks may be apart: the length of one where a choice is made that is the same in all."""
    for node in postorder([length]):
        for arm in node.args[1:] if node.op == "ite" else ():
            unit = substitute(length, {node: arm})
            if number.name not in free_variables(unit):
                yield unit
    yield substitute(length, {number: const(0, number.width)})


def _outer(context: Context, extents: Sequence[Expr], ir: FoldUse) -> Expr | None:
    """The product of the first of some extents where the IR's inner loops make up the others; None if not found."""
    inner = product(e for _, e in ir.loops[1:])
    firsts = (product(extents[:k]) for k in range(len(extents) + 1))
    return next((p for p in firsts if context.proves(equal(product([p, inner]), product(extents)))), None)
