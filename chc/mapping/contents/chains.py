"""Iterations in which a write updates a cell, one after the other, as samples tell: guesses for :mod:`.reduction`."""

from __future__ import annotations

from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Reader
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Loops, Write
from chc.mapping.sampling.candidates import candidates
from ila_lang import Expr, compile_terms, const, free_variables

from .numbered import Numbered
from .numberings import Runs, numbering
from .updates import Update, update_of


def accumulates(side: ReachingDefinitions, context: Context, definition: Definition) -> bool:
    """Whether a write updates its cell again and again up to an iteration, as samples tell."""
    update = update_of(side.schedule, definition.write)
    return bool(counters_of(definition.write, chains_of(side, context, definition, update)))


def scatters(side: ReachingDefinitions, context: Context, definition: Definition) -> bool:
    """Whether a write accumulates over counters that its address depends on, such as a row and a tap of a kernel."""
    used = set(free_variables(definition.write.address).values())
    update = update_of(side.schedule, definition.write)
    return any(c in used for c in counters_of(definition.write, chains_of(side, context, definition, update)))


def chains_of(side: ReachingDefinitions, context: Context, definition: Definition, update: Update | None) -> Runs:
    """At each sample, the iterations in which the write updated the cell, with nothing else in between, the last first.

    None for a write whose value does not read the cell that it writes; none before an iteration that begins anew.
    """
    write = definition.write
    if update is None:
        return []
    here = Reader(write.address, None, definition.at).cell()
    runs = side.sampler.runs(context.samples, write, here, definition.point)
    adds = compile_terms([*context.samples.parameters, *write.counters], [update.adds])
    chains: list[list[tuple[int, ...]]] = []
    rows = zip(context.samples.rows, runs, context.samples.evaluate(definition.vector), strict=True)
    for row, run, last in rows:
        chain = [last]
        for earlier in run:
            if not adds(*context.samples.sizes(row), *chain[-1])[0]:
                break
            chain.append(earlier)
        chains.append(chain)
    return chains


def counters_of(write: Write, chains: Runs) -> set[Expr]:
    """The counters in which iterations of a chain differ."""
    pairs = ((chain[0], iteration) for chain in chains for iteration in chain)
    return {c for one, other in pairs for c, a, b in zip(write.counters, one, other, strict=True) if a != b}


def begin_of(context: Context, definition: Definition, counters: set[Expr], chains: Runs) -> Expr | None:
    """The first iteration of chains over one loop, where it is not always 0."""
    write = definition.write
    places = [n for n, c in enumerate(write.counters) if c in counters]
    first = tuple(chain[-1][places[0]] for chain in chains) if len(places) == 1 else ()
    if not any(first):
        return None
    here = Reader(write.address, None, definition.at).cell()
    near = [here, *definition.vector, *definition.limits]
    table = candidates(context.samples, context.ranges, near, write)
    return const(first[0], 32) if len(set(first)) == 1 else table.get(first)


def numbered_of(context: Context, definition: Definition, loops: Loops, chains: Runs) -> Numbered | None:
    """The iterations of some loops as those of one that counts them; None where that is not found."""
    write, counters = definition.write, [c for c, _ in loops]
    places = [k for k, c in enumerate(write.counters) if c in set(counters)]
    runs = [[tuple(iteration[k] for k in places) for iteration in reversed(chain)] for chain in chains]
    return numbering(context, write, definition.limits, counters, runs)
