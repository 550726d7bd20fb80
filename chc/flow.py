"""Mappings whose programs are any tree of loops: origins of cells, values, folds.

The theorem is the one of :mod:`chc.prove`, about one arbitrary output cell.  Here the cell has coordinates that follow
how the device divides the work (time, processing element, vector, lane); that these reach every element of the output
is a theorem of its own.
"""

from __future__ import annotations

from ila_lang import const, resize

from .agreement import Agreement, Iteration
from .commands import Unsupported
from .context import Proof
from .nests import Nest
from .origins import Origins
from .scenes import Scene
from .schedule import Schedule, schedule_of
from .systems import LevelPlan, plan_levels
from .values import Values
from .writers import Writers, trials_of

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
        schedule = schedule_of(fragment)
        _names_apart(proof, schedule)
        for text, condition in dict.fromkeys(schedule.requires):
            scene.theorem(f"{prefix}: decoding", text, condition, "what decoding relies on holds for all sizes")
        sides.append(Values(Origins(proof, prefix, schedule, Writers(schedule))))
    device, ir = sides
    _covers(scene)
    row, column = mapping.cell[0][0], mapping.cell_column
    assert column is not None
    index = mapping.output_index(row, column)
    results = [
        side.after(scene, memory, index)
        for side, memory in (
            (device, mapping.device.tensors[mapping.output[0]]),
            (ir, mapping.ir.ila.states[mapping.output[1]]),
        )
    ]
    agreement = Agreement(proof, device, ir)
    agreement.values(scene, "the cell", *results)
    for side in sides:
        proof.fits(scene.encoding, "the cell")
        for spot in side.origins.spots.values():
            spot.fits()
    return [*_written_once(proof, device), *_written_once(proof, ir), *agreement.levels]


def _names_apart(proof: Proof, schedule: Schedule) -> None:
    """Refuses programs in which one name stands for two things: a term could then speak of the wrong one."""
    common = {*proof.mapping.parameters, *(c.name for c, _ in proof.mapping.cell)}
    if len(common) < len(proof.mapping.parameters) + len(proof.mapping.cell):
        raise Unsupported("parameters and coordinates of the output cell must have names of their own")
    folds = [(f"a fold of {schedule.fragment.name}", [c for c, _ in f.loops]) for f in schedule.folds.values()]
    for label, counters in [*((w.label, w.counters) for w in schedule.writes), *folds]:
        names = [c.name for c in counters]
        clash = next((n for i, n in enumerate(names) if n in common or n in names[:i]), None)
        if clash is not None:
            raise Unsupported(f"counter {clash} of {label} must have a name of its own")


def _covers(scene: Scene) -> None:
    """Every element of the output is the cell of some coordinates.

    The column is the number that the coordinates after the first one are the digits of, with the extents as radices;
    every number below the product of the radices has such digits.
    """
    mapping = scene.proof.mapping
    (row, rows), *digits = mapping.cell
    assert mapping.cell_column is not None
    number, count = const(0, 40), const(1, 40)
    for digit, radix in digits:
        number = number * resize(radix, 40) + resize(digit, 40)
        count = count * resize(radix, 40)
    meaning = "the coordinates of the cell reach every element of the output"
    scene.theorem("coordinates", f"{row.name} is the row", resize(mapping.rows, 40) == resize(rows, 40), meaning)
    scene.theorem("coordinates", "as many columns as coordinates", resize(mapping.columns, 40) == count, meaning)
    same = resize(mapping.cell_column, 40) == number
    scene.theorem("coordinates", "the column has the coordinates as its digits", same, meaning)


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
