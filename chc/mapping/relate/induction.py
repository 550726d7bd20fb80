"""Any number of timesteps: equal stored values as goals, proved for each timestep from the earlier ones.

A *goal* says that a write of the device stores, at coordinates that count timesteps first, what a write of the IR
stores at an iteration that these coordinates determine.  All goals are proved together by induction over the timestep:
while one is proved at an arbitrary timestep, every goal may be used at earlier ones.  The first goal is about the
output itself; further ones, such as the state of a cell, are found where the program reads what it stored earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chc.mapping.arithmetic.exact import equal, less
from chc.mapping.memory.contexts import Context, in_range
from chc.mapping.memory.layout import Definition, Iteration
from chc.mapping.program.writes import Loops, Write
from chc.mapping.sampling.candidates import candidates
from chc.mapping.sampling.samples import Samples
from ila_lang import Expr, all_of, bv, free_variables, resize, substitute
from smt_encodings.environment import fresh


@dataclass(frozen=True, eq=False)
class Goal:
    """At every value of ``coordinates``, both writes store the same, at the iterations ``device_at`` and ``ir_at``."""

    name: str
    coordinates: Loops
    device: Write
    device_at: Iteration
    ir: Write
    ir_at: Iteration


@dataclass
class Goals:
    """The goals so far; the first ones are proved first."""

    goals: list[Goal] = field(default_factory=list)

    def known(self, context: Context, device: Definition, ir: Definition, name: str) -> bool:
        """Whether both sides' earlier values are those of one goal at an earlier timestep, proved.

        Where there is no goal about these two writes, one is added.
        """
        goal = next((g for g in self.goals if g.device is device.write and g.ir is ir.write), None)
        if goal is None:
            goal = self._new(context, device, ir)
            if goal is None:
                return False
            self.goals.append(goal)
        at = _coordinates(goal, device)
        if at is None:
            return False
        expected = {c: substitute(t, at) for c, t in goal.ir_at.items()}
        earlier = at[goal.coordinates[0][0]]
        assert context.now is not None
        same = all_of(
            [
                *in_range(goal.coordinates, at),
                less(earlier, context.now),
                *(equal(ir.at[c], t) for c, t in expected.items()),
            ]
        )
        if not all(v for (v,) in context.samples.evaluate([same])):
            return False
        meaning = f"both values are those of {goal.name}, at one earlier timestep"
        context.theorem("induction", f"{name}: an instance of {goal.name}", same, meaning)
        return True

    def _new(self, context: Context, device: Definition, ir: Definition) -> Goal | None:
        """The goal that two writes always store the same, with the iterations' relation read off the samples."""
        number = len(self.goals) + 1
        cell = context.proof.mapping.coordinates
        if _like(context, device.write.loops, cell):  # the coordinates of the output serve here, too
            names = {c: coordinate for c, (coordinate, _) in zip(device.write.counters, cell, strict=True)}
            coordinates = cell
        else:
            names = {c: fresh(f"goal{number}.{c.name}", bv(32)) for c in device.write.counters}
            here = {c: resize(v, c.width) for c, v in names.items()}
            coordinates = tuple((names[c], substitute(e, here)) for c, e in device.write.loops)
        values = context.samples.evaluate([device.at[c] for c in device.write.counters])
        rows = tuple((*context.samples.sizes(r), *v) for r, v in zip(context.samples.rows, values, strict=True))
        samples = Samples(context.samples.parameters, tuple(names.values()), rows)
        table = candidates(samples, coordinates, [])
        iterations = context.samples.evaluate([ir.at[c] for c in ir.write.counters])
        relation: dict[Expr, Expr] = {}
        for counter, column in zip(ir.write.counters, zip(*iterations, strict=True), strict=True):
            term = table.get(tuple(column))
            if term is None:
                return None
            relation[counter] = term
        label = f"stored value {number}"
        return Goal(label, coordinates, device.write, dict(names), ir.write, relation)


def _like(context: Context, loops: Loops, cell: Loops) -> bool:
    """Whether loops have the extents of the output cell's coordinates, as samples tell."""
    if len(loops) != len(cell) or any(c in {n for n, _ in loops} for _, e in loops for c in free_variables(e).values()):
        return False
    pairs = [equal(a, b) for (_, a), (_, b) in zip(loops, cell, strict=True)]
    return all(all(values) for values in context.samples.evaluate(pairs))


def _coordinates(goal: Goal, definition: Definition) -> dict[Expr, Expr] | None:
    """The coordinates at which a goal is about an instance of its device write; None where they do not show."""
    at: dict[Expr, Expr] = {}
    for counter, term in goal.device_at.items():
        for coordinate, _ in goal.coordinates:
            if resize(term, 32) is resize(coordinate, 32):
                at[coordinate] = resize(definition.at[counter], 32)
    return at if len(at) == len(goal.coordinates) and len(goal.device_at) == len(at) else None
