"""The proof of one arbitrary output cell: reaching definitions of cells, values, folds.

Programs are any trees of loops.  The cell has coordinates that follow how the device divides the work (time, processing
element, vector, lane); that these reach every element of the output is a theorem of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ila_lang import Expr, all_of, any_of, resize, substitute
from ila_lang.mapping import TensorMapping

from .arithmetic.exact import at_most, equal, less, number_of, product
from .cells import output_choices, samples_of_cells
from .contents.indirect_addressing import IndirectAddressing
from .contents.values import Values
from .horn.align import align
from .horn.systems import ACCUMULATED_ONCE, READ_FIRST, WRITTEN_ONCE, AntiDependence, Nest, Track
from .memory.cases import Split, in_cases
from .memory.contexts import Context, in_range
from .memory.layout import Definition, Layout
from .memory.reaching_definitions import ReachingDefinitions
from .program.schedule import schedule_of
from .program.writes import Loops, Write
from .proof import Proof
from .relate.equivalence import Equivalence
from .relate.induction import Goal, Goals
from .relate.lockstep import lock_step, meet
from .sampling.samples import Sampler, Samples, samples_of
from .sampling.sizes import Tried

MOST_ANTI_DEPENDENCES = 2
"""How many pairs of reader and overwriter one Horn system tracks, which serves for all of their form: with 8 of them
Spacer takes 40 times as long."""


def prove_by_dataflow(proof: Proof) -> None:
    """Proves everything but the invariants of the loop levels, which it adds to those of the proof.

    Raises Unsupported and NotDischarged where something is not proved.
    """
    mapping = proof.mapping
    cell = mapping.coordinates
    sizes = Tried.of(mapping)
    fragments = (device_name(mapping), mapping.device), ("ir", mapping.ir)
    schedules = [schedule_of(fragment, sizes.points) for _, fragment in fragments]
    proof.name_quotients([e for schedule in schedules for write in schedule.writes for _, e in write.loops])
    sizes.samplers = [Sampler(schedule) for schedule in schedules]
    proof.samples = sizes.quick()
    context = Context(proof, proof.base, cell, samples_of_cells(proof))
    domain = Context(proof, proof.domain, (), Samples(proof.parameters, (), tuple(proof.samples)), "domain")
    sides = []
    for (prefix, _), sampler in zip(fragments, sizes.samplers, strict=True):
        for number, (text, condition) in enumerate(dict.fromkeys(sampler.schedule.requires), 1):
            meaning = "what decoding relies on holds for all sizes"
            domain.theorem(f"{prefix}: decoding", f"{number}: {text}", condition, meaning)
        sides.append(Values(ReachingDefinitions(Layout(proof, prefix, sampler.schedule), sampler)))
        IndirectAddressing(sides[-1]).resolve()
    device, ir = sides
    _covers(domain, context)
    together: dict[Write, Nest] = {}
    equivalence = Equivalence(proof, device, ir, Goals())

    def compare(case: Context, _: str) -> None:
        together.update(_output(equivalence, domain, case))

    try:
        compare(context, "")
    except Split:
        if mapping.recurrent:  # what holds at an earlier timestep must hold in all cases
            raise
        proof.samples, spare = sizes.recombined()
        in_cases(replace(context, samples=samples_of_cells(proof, spare)), "", compare)
    _track_writes(proof, sides, together)


def _output(equivalence: Equivalence, sizes: Context, context: Context) -> dict[Write, Nest]:
    """Proves that an output cell is equal on both sides, in a context; gives the writes that are in lock-step."""
    device, ir, mapping = equivalence.device, equivalence.ir, equivalence.proof.mapping
    index = mapping.output_index(mapping.row_at, mapping.column_at)
    outputs = mapping.device.tensor(mapping.output[0]), mapping.ir.tensor(mapping.output[1])
    on_ir = ir.copied(context, outputs[1], index)
    cases = _cases(context, ir, on_ir)
    on_device = device.copied(context, outputs[0], index) if len(cases) == 1 else None
    if on_device is None or on_ir is None:

        def compare(case: Context, name: str) -> None:
            equivalence.values(case, name, device.after(case, outputs[0], index), ir.after(case, outputs[1], index))

        for case in cases:
            in_cases(case, f"the output{f', {case.name}' if case.name else ''}", compare)
        return {}
    goals = Goals([Goal("the output", context.ranges, on_device.write, on_device.at, on_ir.write, on_ir.at)])
    for side, definition in ((device, on_device), (ir, on_ir)):
        if mapping.recurrent and definition.write.loops:
            side.time = definition.write.place[0], definition.write.counters[0]
    equivalence.goals = goals
    contexts = _GoalContexts(equivalence.proof, context)
    together: dict[Write, Nest] = {}
    for number, goal in enumerate(goals.goals):  # grows while goals are proved
        for case in contexts.of(goal, number == 0):
            name = f"{goal.name}{f', {case.name}' if case.name else ''}"
            values = [
                side.computed(case, Definition(write, at))
                for side, write, at in ((device, goal.device, goal.device_at), (ir, goal.ir, goal.ir_at))
            ]
            equivalence.values(case, name, *values)
        together |= _in_lock_step(sizes, contexts.around(goal), goal, device, ir)
    return together


def _track_writes(proof: Proof, sides: Sequence[Values], together: Mapping[Write, Nest]) -> None:
    """The loop levels that the theorem takes something from, in the order of the programs.

    ``together`` are writes of both sides in lock-step.
    """
    for side in sides:
        layout = side.definitions.layout
        for instance in layout.instances.values():
            instance.fits()
        for write in layout.schedule.writes:
            dependences = _tracked(list(dict.fromkeys(layout.anti_dependences.get(write, []))))
            if write in layout.written_once:
                track = layout.written_once[write].track(layout.prefix)
                nest = together.get(write) or Nest(write.label, track, [WRITTEN_ONCE])
            elif dependences:
                loops = write.loops[: max(len(d.reader) for d in dependences)]
                nest = Nest(write.label, Track(layout.prefix, loops, None), [])
            else:
                continue
            if dependences:
                nest.takes.append(READ_FIRST)
                nest.anti_dependences += dependences
            proof.levels.nests.append(nest)
        for (write, counters), definition in layout.accumulated.items():
            track = definition.track(layout.prefix).only(counters)
            proof.levels.nests.append(Nest(f"{write.label}, accumulation", track, [ACCUMULATED_ONCE]))


def _tracked(dependences: Sequence[AntiDependence]) -> list[AntiDependence]:
    """A few dependences: all that are there have the form of one of them."""
    chosen = [*dependences[:MOST_ANTI_DEPENDENCES]]
    for dependence in dependences:
        if all(dependence.form != other.form for other in chosen):
            chosen.append(dependence)
    return chosen


def _in_lock_step(sizes: Context, context: Context, goal: Goal, device: Values, ir: Values) -> dict[Write, Nest]:
    """Both writes of a goal in lock-step, where their loops correspond; each cell is written exactly once by both."""
    if goal.device not in device.definitions.layout.written_once or goal.ir not in ir.definitions.layout.written_once:
        return {}
    here = Definition(goal.device, goal.device_at).track(device.definitions.prefix)
    there = Definition(goal.ir, goal.ir_at).track(ir.definitions.prefix)
    levels = align(here.loops, there.loops, sizes.proves)
    if levels is None or not meet(context, levels, here, there):
        return {}
    lock_step(sizes, context, goal.device.label, levels, here, there)
    nest = Nest(goal.device.label, here, [WRITTEN_ONCE], (levels, there))
    return {goal.device: nest, goal.ir: nest}


@dataclass
class _GoalContexts:
    """Where goals are proved: arbitrary coordinates, for recurrent programs the first timestep and later ones."""

    proof: Proof
    cell: Context
    _cases: dict[Loops, list[Context]] = field(default_factory=dict)
    _around: dict[Loops, Context] = field(default_factory=dict)

    def of(self, goal: Goal, is_output: bool) -> list[Context]:
        """The contexts that make up all coordinates of a goal."""
        context = self.around(goal)
        if not is_output:
            for side, at, write in (("device", goal.device_at, goal.device), ("IR", goal.ir_at, goal.ir)):
                here = {c: resize(t, c.width) for c, t in at.items()}
                inside = [*in_range(write.loops, here), substitute(write.guard, here)]
                meaning = "the iterations that store the value exist"
                context.theorem("induction", f"{goal.name}: {side}", all_of(inside), meaning)
        if not self.proof.mapping.recurrent:
            return [context]
        if goal.coordinates not in self._cases:
            self._cases[goal.coordinates] = self._timesteps(context, goal.coordinates[0][0])
        return self._cases[goal.coordinates]

    def around(self, goal: Goal) -> Context:
        """All coordinates of a goal."""
        if goal.coordinates is self.cell.ranges:
            return self.cell
        if goal.coordinates not in self._around:
            self._around[goal.coordinates] = self._context(goal)
        return self._around[goal.coordinates]

    def _context(self, goal: Goal) -> Context:
        encoding = self.proof.base.fork(goal.name)
        for coordinate, extent in goal.coordinates:
            encoding.assume(less(coordinate, extent))
        self.proof.fits(encoding, f"{goal.name}: extents")
        samples = samples_of(self.proof.parameters, goal.coordinates, self.proof.samples)
        return Context(self.proof, encoding, goal.coordinates, samples, goal.name)

    @staticmethod
    def _timesteps(context: Context, time: Expr) -> list[Context]:
        cases = [("first timestep", time == 0), ("later timesteps", time >= 1)]
        prefix = f"{context.name}: " if context.name else ""
        context.theorem("induction", f"{prefix}cases", any_of([c for _, c in cases]), "there are no other timesteps")
        return [replace(context.where(condition, prefix + name), now=time) for name, condition in cases]


def _cases(context: Context, ir: Values, definition: Definition | None) -> list[Context]:
    """The context split by the choices that the IR's output makes by its place, such as between given and padded rows.

    A condition and its negation leave nothing out, so whatever is proved in all cases holds in the context.  Programs
    that go on from timestep to timestep have cases of their own.
    """
    if definition is None or context.proof.mapping.recurrent:
        return [context]
    cases = [context]
    for condition in output_choices(context, ir, definition):
        split = []
        for case in cases:
            if len({v for (v,) in case.samples.evaluate([condition])}) == 1:
                split.append(case)
                continue
            for outcome in (condition, ~condition):
                split.append(case.where(outcome, f"case {len(split) + 1}"))
        cases = split
    around = f"{context.name}, " if context.name else ""
    return [replace(c, name=f"{around}case {k}") for k, c in enumerate(cases, 1)] if len(cases) > 1 else cases


def device_name(mapping: TensorMapping) -> str:
    """What the proof calls the device's side; the other one is ``ir``."""
    name = mapping.device.ila.name
    return "device" if name.startswith("ir") else name


def _covers(sizes: Context, context: Context) -> None:
    """Every element of the output is the cell of some coordinates.

    The column is the number that the coordinates after those of the row are the digits of, with the extents as radices;
    every number below the product of the radices has such digits.  The row likewise has its coordinates as digits.
    How many there are is proved for all sizes of the domain: where no coordinates exist, there is no element.  Where
    coordinates may lie beyond the output, there are at least as many as elements.
    """
    mapping = context.proof.mapping
    of_row, of_column = mapping.coordinates[: mapping.row_coordinates], mapping.coordinates[mapping.row_coordinates :]
    meaning = "the coordinates of the cell reach every element of the output"
    row = " and ".join(c.name for c, _ in of_row)
    what = f"{row} is the row" if mapping.row_coordinates == 1 else f"as many rows as {row}"
    compare = at_most if mapping.cell_beyond else equal
    sizes.theorem("coordinates", what, compare(mapping.rows, product(e for _, e in of_row)), meaning)
    columns = compare(mapping.columns, product(e for _, e in of_column))
    sizes.theorem("coordinates", "as many columns as coordinates", columns, meaning)
    same = equal(mapping.column_at, number_of(of_column)[0])
    context.theorem("coordinates", "the column has the coordinates as its digits", same, meaning)
