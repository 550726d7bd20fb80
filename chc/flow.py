"""Mappings whose programs are any tree of loops: origins of cells, values, folds.

The theorem is the one of :mod:`chc.prove`, about one arbitrary output cell.  Here the cell has coordinates that follow
how the device divides the work (time, processing element, vector, lane); that these reach every element of the output
is a theorem of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ila_lang import Expr, all_of, any_of, const, resize, substitute

from .agreement import Agreement
from .boxes import less
from .commands import Unsupported
from .context import Proof
from .indirect import Indirect
from .induction import Goal, Goals
from .nests import Nest
from .origins import Origin, Origins
from .scenes import Scene, in_range
from .schedule import schedule_of
from .systems import Iteration, LevelPlan, plan_levels
from .values import Values
from .writers import Writers, trials_of
from .writes import Loops, Schedule

__all__ = ["prove_by_origins"]

Levels = list[tuple[str, Nest, LevelPlan, bool]]


def prove_by_origins(proof: Proof) -> Levels:
    """Proves everything but the invariants of the loop levels that it returns.

    Raises Unsupported and NotDischarged where something is not proved.
    """
    mapping = proof.mapping
    trials = trials_of(mapping, mapping.cell)
    scene = Scene(proof, proof.base, mapping.cell, trials)
    sides = []
    for prefix, fragment in ((mapping.device.ila.name, mapping.device), ("ir", mapping.ir)):
        schedule = schedule_of(fragment, dict(zip(mapping.parameters, trials.rows[0], strict=False)))
        _names_apart(proof, schedule)
        for text, condition in dict.fromkeys(schedule.requires):
            scene.theorem(f"{prefix}: decoding", text, condition, "what decoding relies on holds for all sizes")
        sides.append(Values(Origins(proof, prefix, schedule, Writers(schedule))))
        Indirect(sides[-1]).resolve()
    device, ir = sides
    _covers(scene)
    row, column = mapping.cell_row, mapping.cell_column
    assert column is not None
    index = mapping.output_index(row, column)
    outputs = mapping.device.tensor(mapping.output[0]), mapping.ir.tensor(mapping.output[1])
    theirs = ir.copied(scene, outputs[1], index)
    cases = _cases(scene, ir, theirs)
    mine = device.copied(scene, outputs[0], index) if len(cases) == 1 else None
    if mine is None or theirs is None:
        whole = Agreement(proof, device, ir, Goals())
        for case in cases:
            name = f"the output{f', {case.name}' if case.name else ''}"
            whole.values(case, name, device.after(case, outputs[0], index), ir.after(case, outputs[1], index))
        return _levels(proof, sides, whole)
    goals = Goals([Goal("the output", mapping.cell, mine.write, mine.at, theirs.write, theirs.at)])
    for side, origin in ((device, mine), (ir, theirs)):
        if mapping.recurrent and origin.write.loops:
            side.time = origin.write.place[0], origin.write.counters[0]
    agreement = Agreement(proof, device, ir, goals)
    places = _Places(proof, scene)
    for number, goal in enumerate(goals.found):  # grows while goals are proved
        for place in places.of(goal, number == 0):
            name = f"{goal.name}{f', {place.name}' if place.name else ''}"
            values = [
                side.computed(place, Origin(write, at))
                for side, write, at in ((device, goal.device, goal.mine), (ir, goal.ir, goal.theirs))
            ]
            agreement.values(place, name, *values)
    return _levels(proof, sides, agreement)


def _levels(proof: Proof, sides: Sequence[Values], agreement: Agreement) -> Levels:
    for side in sides:
        for spot in side.origins.spots.values():
            spot.fits()
    return [*(level for side in sides for level in _written_once(proof, side)), *agreement.levels]


@dataclass
class _Places:
    """Where goals are proved: arbitrary coordinates, for recurrent programs the first timestep and later ones."""

    proof: Proof
    cell: Scene
    _cases: dict[Loops, list[Scene]] = field(default_factory=dict)

    def of(self, goal: Goal, first: bool) -> list[Scene]:
        """The scenes that make up all coordinates of a goal."""
        scene = self.cell if goal.coordinates is self.cell.ranges else self._scene(goal)
        if not first:
            for side, at, write in (("device", goal.mine, goal.device), ("IR", goal.theirs, goal.ir)):
                here = {c: resize(t, c.width) for c, t in at.items()}
                inside = [*in_range(write.loops, here), substitute(write.guard, here)]
                meaning = "the iterations that store the value exist"
                scene.theorem("induction", f"{goal.name}: {side}", all_of(inside), meaning)
        if not self.proof.mapping.recurrent:
            return [scene]
        if goal.coordinates not in self._cases:
            self._cases[goal.coordinates] = self._timesteps(scene, goal.coordinates[0][0])
        return self._cases[goal.coordinates]

    def _scene(self, goal: Goal) -> Scene:
        encoding = self.proof.base.fork(goal.name)
        for coordinate, extent in goal.coordinates:
            encoding.assume(less(coordinate, extent))
        self.proof.fits(encoding, f"{goal.name}: extents")
        return Scene(self.proof, encoding, goal.coordinates, trials_of(self.proof.mapping, goal.coordinates), goal.name)

    @staticmethod
    def _timesteps(scene: Scene, time: Expr) -> list[Scene]:
        cases = [("first timestep", time == 0), ("later timesteps", time >= 1)]
        prefix = f"{scene.name}: " if scene.name else ""
        scene.theorem("induction", f"{prefix}cases", any_of([c for _, c in cases]), "there are no other timesteps")
        return [replace(scene.where(condition, prefix + name), now=time) for name, condition in cases]


def _cases(scene: Scene, ir: Values, origin: Origin | None) -> list[Scene]:
    """The scene split by the choices that the IR's output makes by its place, such as between given and padded rows.

    A condition and its negation leave nothing out, so whatever is proved in all cases holds in the scene.  Programs
    that go on from timestep to timestep have cases of their own.
    """
    if origin is None or scene.proof.mapping.recurrent:
        return [scene]
    cases = [scene]
    for condition in ir.choices(scene, origin):
        split = []
        for case in cases:
            if len({v for (v,) in case.trials.evaluate([condition])}) == 1:
                split.append(case)
                continue
            for outcome in (condition, ~condition):
                split.append(case.where(outcome, f"case {len(split) + 1}"))
        cases = split
    return [replace(case, name=f"case {k}") for k, case in enumerate(cases, 1)] if len(cases) > 1 else cases


def _names_apart(proof: Proof, schedule: Schedule) -> None:
    """Refuses programs in which one name stands for two things: a term could then speak of the wrong one."""
    common = {*proof.mapping.parameters, *(c.name for c, _ in proof.mapping.cell)}
    if len(common) < len(proof.mapping.parameters) + len(proof.mapping.cell):
        raise Unsupported("parameters and coordinates of the output cell must have names of their own")
    dotted = next((n for n in sorted(common) if "." in n), None)
    if dotted is not None:
        raise Unsupported(f"{dotted} must have a name without dots: those are the proof's own")
    folds = [(f"a fold of {schedule.fragment.name}", [c for c, _ in f.loops]) for f in schedule.folds.values()]
    for label, counters in [*((w.label, w.counters) for w in schedule.writes), *folds]:
        names = [c.name for c in counters]
        # names with dots are the proof's own
        clash = next((n for i, n in enumerate(names) if n in common or n in names[:i] or "." in n), None)
        if clash is not None:
            raise Unsupported(f"counter {clash} of {label} must have a name of its own")


def _covers(scene: Scene) -> None:
    """Every element of the output is the cell of some coordinates.

    The column is the number that the coordinates after those of the row are the digits of, with the extents as radices;
    every number below the product of the radices has such digits.  The row likewise has its coordinates as digits.
    """
    mapping = scene.proof.mapping
    assert mapping.cell_column is not None
    meaning = "the coordinates of the cell reach every element of the output"
    _, rows = _number(mapping.cell[: mapping.row_coordinates])
    number, count = _number(mapping.cell[mapping.row_coordinates :])
    row = " and ".join(c.name for c, _ in mapping.cell[: mapping.row_coordinates])
    what = f"{row} is the row" if mapping.row_coordinates == 1 else f"as many rows as {row}"
    scene.theorem("coordinates", what, resize(mapping.rows, 40) == rows, meaning)
    scene.theorem("coordinates", "as many columns as coordinates", resize(mapping.columns, 40) == count, meaning)
    same = resize(mapping.cell_column, 40) == number
    scene.theorem("coordinates", "the column has the coordinates as its digits", same, meaning)


def _number(digits: Loops) -> tuple[Expr, Expr]:
    """The number that coordinates are the digits of, and how many there are."""
    number, count = const(0, 40), const(1, 40)
    for digit, radix in digits:
        number = number * resize(radix, 40) + resize(digit, 40)
        count = count * resize(radix, 40)
    return number, count


def _written_once(proof: Proof, side: Values) -> Levels:
    """The loop levels of writes that determine the cell they write: each cell is written exactly once."""
    levels: Levels = []
    seen: set[int] = set()
    for _, origin in side.wrote:
        write = origin.write
        determined = side.origins.injective.get(write)
        if id(write) in seen or determined is None or len(determined) < len(write.counters):
            continue
        seen.add(id(write))
        number = side.origins.schedule.writes.index(write)
        nest = Nest(write.label, write.loops, ())
        witness = Iteration(tuple(origin.at[c] for c in write.counters))
        prefix = f"{side.origins.prefix}{number}"
        for plan in plan_levels(nest, prefix, [witness], [], proof.names):
            levels.append((f"{write.label} {number}", nest, plan, False))
    return levels
