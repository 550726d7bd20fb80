"""How many iterations of the IR's fold a fold of the device stands against, and in which blocks: guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chc.mapping.arithmetic.exact import equal, product, total
from chc.mapping.contents.alternating import Alternating
from chc.mapping.contents.folds import Blocks, FoldUse
from chc.mapping.contents.unrolled import Cycle
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from chc.mapping.program.writes import Fold
from ila_lang import BvSort, Expr, const, free_variables, postorder, substitute

from .few_iterations import FEW
from .iterations import a_block


def partner_length(context: Context, device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse]) -> Expr | None:
    """How many iterations of the IR's outermost loop a fold of the device stands against; None if not found."""
    (here, use), (there, other) = device, ir
    extents = [e for _, e in use.loops]
    if use.cycle is None and _step_fold(here, use.fold) is not None and _step_fold(there, other.fold) is None:
        inside = a_block(context, context.called("blocks"), use) if steps_are_folds(here, use) else None
        found = None if inside is None else found_blocks((context, inside), (here, use), other)
        return None if found is None else found[1]
    if use.cycle is None:
        return _outer(context, extents, other)
    length = step_length(context, use.cycle, other)
    return None if length is None else product([*extents, length])


def length_before(context: Context, device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse]) -> Expr | None:
    """How many iterations of the IR's outermost loop a fold of the device goes on from; None if not found."""
    side, use = device
    before: list[Expr] = []
    first = _begins_with(side, use)
    while first is not None:
        length = partner_length(context, (side, first), ir)
        if length is None:
            return None
        before.append(length)
        first = _begins_with(side, first)
    return total(before) if before else _first_iterations(context, use, ir[1])


def _begins_with(side: Values, use: FoldUse) -> FoldUse | None:
    """The fold with whose results a fold of the device begins."""
    before = side.folds.get(use.initial[0]) if use.initial else None
    same = before is not None and [*map(id, use.initial)] == [*map(id, before.symbols)]  # terms, by identity
    return before if same else None


def _first_iterations(context: Context, device: FoldUse, ir: FoldUse) -> Expr | None:
    """The few iterations by which the IR's fold is longer: the device begins with them, written out."""
    iterations, inner = (product(e for _, e in loops) for loops in (device.loops, ir.loops[1:]))
    all_of_them = product([ir.loops[0][1], inner])
    for number in (const(k, 8) for k in range(1, FEW + 1)):
        if context.proves(equal(all_of_them, total([iterations, product([number, inner])]))):
            return number
    return None


def step_length(context: Context, turns: Cycle | Alternating, ir: FoldUse) -> Expr | None:
    """As many as one step of writes in turn stands against."""
    here = narrow(turns.start.at)
    lengths = []
    for member in turns.together:
        length = _outer(context, [substitute(e, here) for _, e in member.fold.loops], ir)
        if length is None:
            return None
        lengths.append(length)
    return total(lengths)


def steps_are_folds(side: Values, device: FoldUse) -> bool:
    """Whether blocks may be found that are as long as the steps of the device's fold, which are folds."""
    alone = device.cycle is None and device.blocks is None and len(device.loops) == 1
    return alone and _step_fold(side, device.fold) is not None


def found_blocks(
    contexts: tuple[Context, Context],
    device: tuple[Values, FoldUse],
    ir: FoldUse,
    whole: Expr | None = None,
) -> tuple[tuple[Expr, Expr], Expr] | None:
    """The length of a block of the device's steps, by how much blocks are apart, and how many iterations all have.

    ``contexts`` are that of the fold and that of an arbitrary block.  How many iterations there are is ``whole``, or
    else looked for.  None where no blocks are found.
    """
    (context, inside), (side, use) = contexts, device
    ((counter, _),), (own, count), inner = use.loops, inside.ranges[-1], _step_fold(side, use.fold)
    assert inner is not None
    around = narrow(use.iteration({counter: own}))
    for length, apart in _blocks(inside, side, inner, around, ir, own):
        blocks = Blocks(count, apart, own, length)
        for together in _ends(total([product([own, apart]), length]), own) if whole is None else [whole]:
            covers = blocks.cover(together)
            likely = all(v for (v,) in inside.samples.evaluate([covers]))
            if likely and inside.proves(covers) and context.proves(blocks.none(together)):
                return (length, apart), together
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
