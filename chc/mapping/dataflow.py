"""The proof of one arbitrary output cell: origins of cells, values, folds.

Programs are any trees of loops.  The cell has coordinates that follow how the device divides the work (time, processing
element, vector, lane); that these reach every element of the output is a theorem of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ila_lang import Expr, all_of, any_of, resize, substitute
from ila_lang.mapping import TensorMapping

from .arithmetic.exact import equal, less, number_of, product
from .horn.align import align
from .horn.systems import ACCUMULATED_ONCE, READ_FIRST, WRITTEN_ONCE, Nest, Track
from .memory.contexts import Scene, in_range
from .memory.indirect_addressing import Indirect
from .memory.layout import Layout, Origin
from .memory.reaching_definitions import Origins
from .memory.samples import Trials, Writers, sizes_of, trials_of
from .memory.values import Values
from .program.schedule import schedule_of
from .program.writes import Loops, Write
from .proof import Proof
from .relate.equivalence import Agreement, lock_step
from .relate.induction import Goal, Goals

__all__ = ["prove_by_origins"]

MOST_ORDERS = 2
"""How many pairs of reader and overwriter one Horn system tracks, which serves for all: with 8 of them Spacer takes 40
times as long."""


def prove_by_origins(proof: Proof) -> None:
    """Proves everything but the invariants of the loop levels, which it adds to those of the proof.

    Raises Unsupported and NotDischarged where something is not proved.
    """
    mapping = proof.mapping
    cell = mapping.coordinates
    trials = trials_of(mapping, cell)
    scene = Scene(proof, proof.base, cell, trials)
    sizes = Scene(proof, proof.domain, (), Trials(tuple(mapping.parameters.values()), (), sizes_of(mapping)), "domain")
    sides = []
    for prefix, fragment in ((device_name(mapping), mapping.device), ("ir", mapping.ir)):
        schedule = schedule_of(fragment, dict(zip(mapping.parameters, trials.rows[0], strict=False)))
        for number, (text, condition) in enumerate(dict.fromkeys(schedule.requires), 1):
            meaning = "what decoding relies on holds for all sizes"
            sizes.theorem(f"{prefix}: decoding", f"{number}: {text}", condition, meaning)
        sides.append(Values(Origins(Layout(proof, prefix, schedule), Writers(schedule))))
        Indirect(sides[-1]).resolve()
    device, ir = sides
    _covers(sizes, scene)
    index = mapping.output_index(mapping.row_at, mapping.column_at)
    outputs = mapping.device.tensor(mapping.output[0]), mapping.ir.tensor(mapping.output[1])
    theirs = ir.copied(scene, outputs[1], index)
    cases = _cases(scene, ir, theirs)
    mine = device.copied(scene, outputs[0], index) if len(cases) == 1 else None
    if mine is None or theirs is None:
        whole = Agreement(proof, device, ir, Goals())
        for case in cases:
            name = f"the output{f', {case.name}' if case.name else ''}"
            whole.values(case, name, device.after(case, outputs[0], index), ir.after(case, outputs[1], index))
        _track_writes(proof, sides, {})
        return
    goals = Goals([Goal("the output", cell, mine.write, mine.at, theirs.write, theirs.at)])
    for side, origin in ((device, mine), (ir, theirs)):
        if mapping.recurrent and origin.write.loops:
            side.time = origin.write.place[0], origin.write.counters[0]
    agreement = Agreement(proof, device, ir, goals)
    places = _Places(proof, scene)
    together: dict[Write, Nest] = {}
    for number, goal in enumerate(goals.found):  # grows while goals are proved
        for place in places.of(goal, number == 0):
            name = f"{goal.name}{f', {place.name}' if place.name else ''}"
            values = [
                side.computed(place, Origin(write, at))
                for side, write, at in ((device, goal.device, goal.mine), (ir, goal.ir, goal.theirs))
            ]
            agreement.values(place, name, *values)
        together |= _in_lock_step(sizes, places.around(goal), goal, device, ir)
    _track_writes(proof, sides, together)


def _track_writes(proof: Proof, sides: Sequence[Values], together: Mapping[Write, Nest]) -> None:
    """The loop levels that the theorem takes something from, in the order of the programs.

    ``together`` are writes of both sides in lock-step.
    """
    for side in sides:
        layout = side.origins.layout
        for spot in layout.spots.values():
            spot.fits()
        for write in layout.schedule.writes:
            orders = list(dict.fromkeys(layout.overwritten.get(write, [])))[:MOST_ORDERS]
            if write in layout.written_once:
                track = layout.written_once[write].track(layout.prefix)
                nest = together.get(write) or Nest(write.label, track, [WRITTEN_ONCE])
            elif orders:
                loops = write.loops[: max(len(o.reader) for o in orders)]
                nest = Nest(write.label, Track(layout.prefix, loops, None), [])
            else:
                continue
            if orders:
                nest.takes.append(READ_FIRST)
                nest.orders += orders
            proof.levels.nests.append(nest)
        for write, (origin, counters) in layout.accumulated.items():
            track = origin.track(layout.prefix).only(counters)
            proof.levels.nests.append(Nest(f"{write.label}, accumulation", track, [ACCUMULATED_ONCE]))


def _in_lock_step(sizes: Scene, scene: Scene, goal: Goal, device: Values, ir: Values) -> dict[Write, Nest]:
    """Both writes of a goal in lock-step, where their loops correspond; each cell is written exactly once by both."""
    if goal.device not in device.origins.layout.written_once or goal.ir not in ir.origins.layout.written_once:
        return {}
    here = Origin(goal.device, goal.mine).track(device.origins.prefix)
    there = Origin(goal.ir, goal.theirs).track(ir.origins.prefix)
    levels = align(here.loops, there.loops, sizes.proves)
    if levels is None:
        return {}
    lock_step(sizes, scene, goal.device.label, levels, here, there)
    nest = Nest(goal.device.label, here, [WRITTEN_ONCE], (levels, there))
    return {goal.device: nest, goal.ir: nest}


@dataclass
class _Places:
    """Where goals are proved: arbitrary coordinates, for recurrent programs the first timestep and later ones."""

    proof: Proof
    cell: Scene
    _cases: dict[Loops, list[Scene]] = field(default_factory=dict)
    _around: dict[Loops, Scene] = field(default_factory=dict)

    def of(self, goal: Goal, first: bool) -> list[Scene]:
        """The scenes that make up all coordinates of a goal."""
        scene = self.around(goal)
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

    def around(self, goal: Goal) -> Scene:
        """All coordinates of a goal."""
        if goal.coordinates is self.cell.ranges:
            return self.cell
        if goal.coordinates not in self._around:
            self._around[goal.coordinates] = self._scene(goal)
        return self._around[goal.coordinates]

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


def device_name(mapping: TensorMapping) -> str:
    """What the proof calls the device's side; the other one is ``ir``."""
    name = mapping.device.ila.name
    return "device" if name.startswith("ir") else name


def _covers(sizes: Scene, scene: Scene) -> None:
    """Every element of the output is the cell of some coordinates.

    The column is the number that the coordinates after those of the row are the digits of, with the extents as radices;
    every number below the product of the radices has such digits.  The row likewise has its coordinates as digits.
    How many there are is proved for all sizes of the domain: where no coordinates exist, there is no element.
    """
    mapping = scene.proof.mapping
    of_row, of_column = mapping.coordinates[: mapping.row_coordinates], mapping.coordinates[mapping.row_coordinates :]
    meaning = "the coordinates of the cell reach every element of the output"
    row = " and ".join(c.name for c, _ in of_row)
    what = f"{row} is the row" if mapping.row_coordinates == 1 else f"as many rows as {row}"
    sizes.theorem("coordinates", what, equal(mapping.rows, product(e for _, e in of_row)), meaning)
    columns = equal(mapping.columns, product(e for _, e in of_column))
    sizes.theorem("coordinates", "as many columns as coordinates", columns, meaning)
    same = equal(mapping.column_at, number_of(of_column)[0])
    scene.theorem("coordinates", "the column has the coordinates as its digits", same, meaning)
