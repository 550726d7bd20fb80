"""Scatter-add: what scattered iterations of loops add to a cell, as a fold over all iterations.

``out[i + t] := out[i + t] + x[i] * w[t]`` adds to a cell in the iterations ``i + t = o``.  An iteration that does not
happen, or writes another cell, leaves this one as it is.  So what the cell holds after the loops is a fold over *all*
their iterations, in their order, from what it held before them: the register is updated where the iteration hits the
cell, and kept elsewhere.  No iteration needs to be named.  By induction over the iterations this is so if nothing else
writes the cell from just before the loops to the point where it is read, which is an obligation.

Several writes in the loops, such as one for each tap, are as many folds, one after the other: the order in which they
add is another one, which makes no difference where the operator is associative and commutative, and each adds what does
not depend on the cell.

It is taken where updates apply an operator whose order may be free, as folds are compared in any order, and where
samples show that a cell is hit in iterations that its address tells apart, or by writes that do not take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chc.mapping.arithmetic.exact import equal
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Iteration, Reader
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.operators import Operator
from chc.mapping.program.writes import Fold, Point, Write, shared_loops
from ila_lang import Expr, const, free_variables, ite, resize, true
from smt_encodings.environment import fresh, plain

from .hits import hitting
from .reduction import rectangular
from .updates import Update, update_of


@dataclass(frozen=True)
class _Member:
    """A write that always combines its cell by an operator with what does not depend on it."""

    write: Write
    update: Update
    operator: Operator


@dataclass(frozen=True)
class ScatterAdd:
    """Writes in one loop nest of which scattered iterations add to a cell before a point, as samples tell."""

    members: tuple[_Member, ...]
    reader: Reader
    point: Point

    @property
    def start(self) -> Point:
        """Just before the loops of the writes that are not around the point, which have ended there."""
        return _start(self.members[0].write, self.point)

    def folds(self, side: ReachingDefinitions, context: Context) -> list[tuple[Fold, Iteration]]:
        """The folds that the cell is, one after the other, begun with what it held at the start; what this needs.

        Each with the counters of the loops around.
        """
        start, first = self.start, self.members[0].write
        level = len(start.counters)
        # where there is a statement before the loops, the place before them is its
        beginning = (*start.place[:level], start.place[level] - 1)
        around = Write(first.label, first.loops[:level], beginning, first.memory, first.address, first.value)
        since = Definition(around, {c: resize(t, 32) for c, t in zip(around.counters, start.counters, strict=True)})
        name = f"{first.label} {side.schedule.writes.index(first)}, {side.numbered()}"
        side.not_killed(context, name, [m.write for m in self.members], self.reader, self.point, since)
        if len(self.members) > 1:
            context.proof.operators.require_free(self.members[0].operator)
        return [(self._fold(side, member, level), self._at(member.write)) for member in self.members]

    def _at(self, write: Write) -> Iteration:
        """The counters of the loops around; those of a write's own loops are its fold's."""
        around = zip(write.counters, self.start.counters, strict=False)
        return dict.fromkeys(write.counters, const(0, 32)) | {c: resize(t, 32) for c, t in around}

    def _fold(self, side: ReachingDefinitions, member: _Member, level: int) -> Fold:
        write, register = member.write, member.update.register
        hits = write.guard & equal(write.address, self.reader.cell())
        step = ite(hits, member.update.value, register)
        results = (fresh(f"{plain(register.name)}.scattered", register.sort),)
        initial = write.memory.load(write.address)
        return rectangular(side.schedule, Fold(write, write.loops[level:], (register,), (initial,), (step,), results))


def scatter_add(
    side: ReachingDefinitions, context: Context, memory: Expr, reader: Reader, point: Point
) -> ScatterAdd | None:
    """What scattered iterations add to a cell before a point; None where they are not found to do so."""
    nests: dict[Point, list[_Member]] = {}
    for member in _members(side, memory):
        level = shared_loops(member.write, point)
        if level < len(member.write.loops) and member.write.place[level] < point.place[level]:
            nests.setdefault(_start(member.write, point), []).append(member)
    for start, members in nests.items():
        hit = hitting(side, context, ([m.write for m in members], start), reader, point)
        added = tuple(m for m in members if m.write in hit)
        if added and all(m.operator is added[0].operator for m in added):
            return ScatterAdd(added, reader, point)
    return None


def _start(write: Write, point: Point) -> Point:
    level = shared_loops(write, point)
    return Point(write.place[: level + 1], point.counters[:level])


def _members(side: ReachingDefinitions, memory: Expr) -> Iterator[_Member]:
    """Writes that always add to their cell, by nothing of the same memory, at an address that counters move."""
    for write in side.schedule.writes_to(memory):
        moved = set(free_variables(write.address).values()) & set(write.counters)
        update = update_of(side.schedule, write) if moved else None
        if update is None or update.sum is not None or update.adds is not true:
            continue
        operator = side.layout.proof.operators.applied(update.value)
        if operator is None or side.schedule.mentions(update.value, {memory}):
            continue
        difference = update.value.op == "bvsub"
        parts = list(operator.operands(update.value.args[0] if difference else update.value))
        parts += update.value.args[1:] if difference else ()
        own = [k for k, p in enumerate(parts) if side.schedule.mentions(p, {update.register})]
        if len(own) == 1 and parts[own[0]] is update.register and not (difference and own[0] == len(parts) - 1):
            yield _Member(write, update, operator)
