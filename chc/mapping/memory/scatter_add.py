"""Scatter-add: what scattered iterations of loops add to a cell, as a fold over all iterations.

``out[i + t] := out[i + t] + x[i] * w[t]`` adds to a cell in the iterations ``i + t = o``.  An iteration that does not
happen, or writes another cell, leaves this one as it is.  So what the cell holds after the loops is a fold over *all*
their iterations, in their order, from what it held before them: the register is updated where the iteration hits the
cell, and kept elsewhere.  No iteration needs to be named.  By induction over the iterations this is so if nothing else
writes the cell from just before the loops to the point where it is read, which is an obligation.

It is taken where the update applies an operator whose order may be free: the fold is compared in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chc.mapping.arithmetic.exact import equal
from chc.mapping.program.writes import Fold, Write
from chc.mapping.sampling.samples import Point, interleaved, shared_loops
from ila_lang import Expr, Function, const, free_variables, ite, resize, true
from smt_encodings.environment import fresh, plain

from .contexts import Context
from .layout import Definition, Iteration, Reader
from .reaching_definitions import ReachingDefinitions
from .reduction import Update, depends, update_of

_OPERATORS = ("bvadd", "bvor", "bvxor", "bvand")


@dataclass(frozen=True)
class ScatterAdd:
    """A write of which scattered iterations add to a cell before a point, as samples tell."""

    write: Write
    update: Update
    reader: Reader
    point: Point

    @property
    def level(self) -> int:
        """How many loops are around both the write and the point; the others have ended there."""
        return shared_loops(self.write, self.point)

    @property
    def start(self) -> Point:
        """Just before the loops of the write."""
        return Point(self.write.place[: self.level + 1], self.point.counters[: self.level])

    @property
    def at(self) -> Iteration:
        """The counters of the loops around; those of the write's own loops are the fold's."""
        own = dict.fromkeys(self.write.counters, const(0, 32))
        return own | {c: resize(t, 32) for c, t in zip(self.write.counters, self.start.counters, strict=False)}

    def fold(self, side: ReachingDefinitions, context: Context) -> Fold:
        """The fold that the cell is, begun with what it held at the start; that nothing else writes it is proved."""
        write, level, register = self.write, self.level, self.update.register
        # where there is a statement before the loops, the place before them is its
        beginning = (*write.place[:level], write.place[level] - 1)
        around = Write(write.label, write.loops[:level], beginning, write.memory, write.address, write.value)
        name = f"{write.label} {side.schedule.writes.index(write)}, {side.numbered()}"
        side.not_killed(context, name, write, self.reader, self.point, Definition(around, self.at))
        hits = write.guard & equal(write.address, self.reader.cell())
        step = ite(hits, self.update.value, register)
        results = (fresh(f"{plain(register.name)}.scattered", register.sort),)
        initial = write.memory.load(write.address)
        return Fold(write, write.loops[level:], (register,), (initial,), (step,), results)


def scatter_add(
    side: ReachingDefinitions, context: Context, memory: Expr, reader: Reader, point: Point
) -> ScatterAdd | None:
    """What scattered iterations add to a cell before a point; None where they are not found to do so."""
    for write, update in _adding(side, memory):
        added = ScatterAdd(write, update, reader, point)
        ended = added.level < len(write.loops) and write.place[added.level] < point.place[added.level]
        if ended and depends(write.loops[added.level :]) is None and _scattered(side, context, added):
            return added
    return None


def _adding(side: ReachingDefinitions, memory: Expr) -> Iterator[tuple[Write, Update]]:
    """Writes that always add to their cell, by nothing of the same memory, at an address that some counters move."""
    declared = {r.operator for r in side.layout.proof.mapping.sums}
    for write in side.schedule.writes_to(memory):
        moved = set(free_variables(write.address).values()) & set(write.counters)
        update = update_of(side.schedule, write) if len(moved) > 1 else None
        if update is None or update.adds is not true:
            continue
        whole = update.value
        free = whole.op in _OPERATORS or (whole.func is not None and (whole.func in declared or _applies(whole.func)))
        if free and update.sum is None and memory not in side.schedule.sources(whole):
            yield write, update


def _applies(function: Function) -> bool:
    """Whether a function applies one of the operators to its operands, and does nothing else."""
    body = function.body
    return body is not None and body.op in _OPERATORS and set(body.args) == set(function.params)


def _scattered(side: ReachingDefinitions, context: Context, added: ScatterAdd) -> bool:
    """Whether samples show that the write alone writes the cell in its loops, in several iterations.

    These must differ in counters that the address depends on.
    """
    write, start = added.write, added.start
    number, used = side.schedule.writes.index(write), set(free_variables(write.address).values())
    places = [k for k, c in enumerate(write.counters) if c in used]
    histories = side.sampler.histories(context.samples, write.memory, added.reader.cell(), added.point)
    several = False
    for history, around in zip(histories, context.samples.evaluate(start.counters), strict=True):
        beginning, hits = interleaved(start.place, tuple(around)), list[tuple[int, ...]]()
        for other, iteration in history:
            if interleaved(side.schedule.writes[other].place, iteration) < beginning:
                break
            if other != number:
                return False
            hits.append(iteration)
        several |= len({tuple(i[k] for k in places) for i in hits}) > 1
    return several
