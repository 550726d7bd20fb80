"""Which writes of a loop nest hit a cell in scattered iterations, as samples show: guesses for :mod:`.scatter_add`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Point, Write
from chc.mapping.sampling.samples import interleaved
from ila_lang import Expr, free_variables


def hitting(
    side: ReachingDefinitions,
    context: Context,
    nest: tuple[Sequence[Write], Point],
    reader: Reader,
    point: Point,
) -> list[Write]:
    """Those of the writes of a nest that samples show to hit the cell in iterations that are scattered.

    These differ in counters that the address depends on, or the writes do not take turns.  None where samples show
    others.
    """
    writes, start = nest
    numbers = {side.schedule.writes.index(w): w for w in writes}
    histories = side.sampler.histories(context.samples, writes[0].memory, reader.cell(), point)
    hit: set[int] = set()
    rounds: list[list[int]] = []
    scattered = False
    for history, around in zip(histories, context.samples.evaluate(start.counters), strict=True):
        beginning = interleaved(start.place, tuple(around))
        hits, writers = list[Mapping[Expr, int]](), list[int]()
        for other, iteration in history:
            if interleaved(side.schedule.writes[other].place, iteration) < beginning:
                break
            if other not in numbers:
                return []
            hit.add(other)
            writers.append(other)
            hits.append(_moved(numbers[other], iteration))
        scattered = scattered or any(a.get(c, v) != v for a, b in itertools.pairwise(hits) for c, v in b.items())
        rounds.append(writers[::-1])
    turns = sorted(hit)
    in_turn = all(one == turns[k % len(turns)] for writers in rounds for k, one in enumerate(writers))
    return [w for n, w in numbers.items() if n in hit] if scattered or not in_turn else []


def _moved(write: Write, iteration: tuple[int, ...]) -> Mapping[Expr, int]:
    """The counters that the address of a write depends on, in an iteration."""
    used = set(free_variables(write.address).values())
    return {c: value for c, value in zip(write.counters, iteration, strict=True) if c in used}
