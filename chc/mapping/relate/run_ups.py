"""The iterations in which a write adds to a cell, read off samples: guesses."""

from __future__ import annotations

from chc.mapping.arithmetic.exact import number_of
from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import ScatteredReduction, Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from chc.mapping.program.writes import Loops
from chc.mapping.sampling.candidates import candidates
from ila_lang import Expr, resize, substitute
from smt_encodings.claims import Unsupported


def iterations_of(device: Values, inside: Context, cell: ScatteredReduction, counters: Loops) -> dict[Expr, Expr]:
    """The iteration of the write for every iteration of the fold, as terms over coordinates and counters; a guess."""
    write, definition = cell.definition.write, cell.definition
    number, count = number_of(counters)
    last = [definition.at[c] for c in write.counters]
    address = substitute(write.address, narrow(definition.at))
    sampler = device.definitions.sampler
    iterations = sampler.run_up(inside.samples, write, address, last, count - 1 - number)
    table = candidates(inside.samples, inside.ranges, last, write)
    at: dict[Expr, Expr] = {}
    for loop, values in zip(write.counters, zip(*iterations, strict=True), strict=True):
        term = table.get(tuple(values))
        if term is None:
            raise Unsupported(f"no term was found for {loop.name} of the iterations in which {write.label} adds up")
        at[loop] = resize(term, 32)
    return at


def often(device: Values, context: Context, cell: ScatteredReduction, use: FoldUse) -> list[Expr]:
    """How often the cell is added to, as a term; nothing where none is found, or where ``use`` has several loops."""
    write, at = cell.definition.write, narrow(cell.definition.at)
    address = substitute(write.address, at)
    runs = device.definitions.sampler.runs(context.samples, write, address, cell.definition.point)
    hints = [substitute(e, at) for _, e in write.loops]
    table = candidates(context.samples, context.ranges, [*hints, *(e for _, e in use.loops)], write)
    term = table.get(tuple(len(run) + 1 for run in runs))
    return [] if term is None or len(use.loops) != 1 else [term]
