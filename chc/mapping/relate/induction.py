"""Any number of timesteps: equal stored values as goals, proved for each timestep from the earlier ones.

A *goal* says that a write of the device stores, at coordinates that count timesteps first, what a write of the IR
stores at an iteration that these coordinates determine.  All goals are proved together by induction over the timestep:
while one is proved at an arbitrary timestep, every goal may be used at earlier ones.  The first goal is about the
output itself; further ones, such as the state of a cell, are found where the program reads what it stored earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chc.mapping.arithmetic.exact import equal, less
from chc.mapping.memory.contexts import Scene, in_range
from chc.mapping.memory.layout import At, Origin
from chc.mapping.memory.samples import Trials, candidates
from chc.mapping.program.writes import Loops, Write
from ila_lang import Expr, all_of, bv, free_variables, resize, substitute
from smt_encodings.environment import fresh

__all__ = ["Goal", "Goals"]


@dataclass(frozen=True, eq=False)
class Goal:
    """At every value of ``coordinates``, both writes store the same, at the iterations ``mine`` and ``theirs``."""

    name: str
    coordinates: Loops
    device: Write
    mine: At
    ir: Write
    theirs: At


@dataclass
class Goals:
    """The goals so far; the first ones are proved first."""

    found: list[Goal] = field(default_factory=list)

    def known(self, scene: Scene, mine: Origin, theirs: Origin, name: str) -> bool:
        """Whether both sides' earlier values are those of one goal at an earlier timestep, proved.

        Where there is no goal about these two writes, one is added.
        """
        goal = next((g for g in self.found if g.device is mine.write and g.ir is theirs.write), None)
        if goal is None:
            goal = self._new(scene, mine, theirs)
            if goal is None:
                return False
            self.found.append(goal)
        at = _coordinates(goal, mine)
        if at is None:
            return False
        expected = {c: substitute(t, at) for c, t in goal.theirs.items()}
        earlier = at[goal.coordinates[0][0]]
        assert scene.now is not None
        same = all_of(
            [
                *in_range(goal.coordinates, at),
                less(earlier, scene.now),
                *(equal(theirs.at[c], t) for c, t in expected.items()),
            ]
        )
        if not all(v for (v,) in scene.trials.evaluate([same])):
            return False
        meaning = f"both values are those of {goal.name}, at one earlier timestep"
        scene.theorem("induction", f"{name}: an instance of {goal.name}", same, meaning)
        return True

    def _new(self, scene: Scene, mine: Origin, theirs: Origin) -> Goal | None:
        """The goal that two writes always store the same, with the iterations' relation read off the samples."""
        number = len(self.found) + 1
        cell = scene.proof.mapping.coordinates
        if _like(scene, mine.write.loops, cell):  # the coordinates of the output serve here, too
            names = {c: coordinate for c, (coordinate, _) in zip(mine.write.counters, cell, strict=True)}
            coordinates = cell
        else:
            names = {c: fresh(f"goal{number}.{c.name}", bv(32)) for c in mine.write.counters}
            here = {c: resize(v, c.width) for c, v in names.items()}
            coordinates = tuple((names[c], substitute(e, here)) for c, e in mine.write.loops)
        values = scene.trials.evaluate([mine.at[c] for c in mine.write.counters])
        rows = tuple((*scene.trials.sizes(r), *v) for r, v in zip(scene.trials.rows, values, strict=True))
        trials = Trials(scene.trials.parameters, tuple(names.values()), rows)
        table = candidates(trials, coordinates, [])
        wanted = scene.trials.evaluate([theirs.at[c] for c in theirs.write.counters])
        relation: dict[Expr, Expr] = {}
        for counter, column in zip(theirs.write.counters, zip(*wanted, strict=True), strict=True):
            term = table.get(tuple(column))
            if term is None:
                return None
            relation[counter] = term
        label = f"stored value {number}"
        return Goal(label, coordinates, mine.write, dict(names), theirs.write, relation)


def _like(scene: Scene, loops: Loops, cell: Loops) -> bool:
    """Whether loops have the extents of the output cell's coordinates, as samples tell."""
    if len(loops) != len(cell) or any(c in {n for n, _ in loops} for _, e in loops for c in free_variables(e).values()):
        return False
    pairs = [equal(a, b) for (_, a), (_, b) in zip(loops, cell, strict=True)]
    return all(all(values) for values in scene.trials.evaluate(pairs))


def _coordinates(goal: Goal, origin: Origin) -> dict[Expr, Expr] | None:
    """The coordinates at which a goal is about an instance of its device write; None where they do not show."""
    at: dict[Expr, Expr] = {}
    for counter, term in goal.mine.items():
        for coordinate, _ in goal.coordinates:
            if resize(term, 32) is resize(coordinate, 32):
                at[coordinate] = resize(origin.at[counter], 32)
    return at if len(at) == len(goal.coordinates) and len(goal.mine) == len(at) else None
