"""Writes that update a cell in turn, as samples tell: guesses for :mod:`.unrolled` and :mod:`.alternating`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Reader
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Write
from ila_lang import Expr, compile_terms

from .reduction import clash
from .updates import update_of


@dataclass(frozen=True)
class Turns:
    """Writes that update a cell in turn, as samples tell; the last one gave the cell its value."""

    writes: list[Write]
    counters: set[Expr]
    """Those in which iterations of the last one differ."""
    chains: list[list[tuple[int, tuple[int, ...]]]]
    """At each sample, numbers and iterations of these writes, one after the other, the last one first."""

    @property
    def whole(self) -> bool:
        """Whether all of them updated the cell equally often, in iterations that exist whatever their number is."""
        complete = all(len(chain) % len(self.writes) == 0 for chain in self.chains)
        return complete and clash(self.writes[-1], self.counters, among=False) is None


def in_turn(side: ReachingDefinitions, context: Context, definition: Definition) -> Turns | None:
    """Writes that update the cell in turn, as samples tell.

    None where only one does, or where one iteration of them gave the cell its value at all samples.
    """
    schedule, samples, write = side.schedule, context.samples, definition.write
    updates = {n: update_of(schedule, w) for n, w in enumerate(schedule.writes) if w.memory is write.memory}
    adds = {
        n: compile_terms([*samples.parameters, *schedule.writes[n].counters], [u.adds])
        for n, u in updates.items()
        if u is not None
    }
    last = schedule.writes.index(write)
    here = Reader(write.address, None, definition.at).cell()
    histories = side.sampler.histories(samples, write.memory, here, definition.point)
    ends_at = samples.evaluate([definition.at[c] for c in write.counters])
    chains: list[list[tuple[int, tuple[int, ...]]]] = []
    for row, history, iteration in zip(samples.rows, histories, ends_at, strict=True):
        chain = [(last, tuple(iteration))]
        for earlier in history:
            number, counters = chain[-1]
            if number not in adds or not adds[number](*samples.sizes(row), *counters)[0]:
                break
            chain.append(earlier)
        chains.append(chain)
    longest = [n for n, _ in max(chains, key=len)]
    period = longest.index(last, 1) if last in longest[1:] else 0
    pattern = longest[:period]
    if period < 2 or len(set(pattern)) < period or any(n not in adds for n in pattern):
        return None
    rounds = []
    for chain in chains:
        pairs = itertools.takewhile(lambda p: p[0][0] == p[1], zip(chain, itertools.cycle(pattern), strict=False))
        rounds.append([one for one, _ in pairs])
    counters_of: set[Expr] = set()
    for chain in rounds:
        for _, iteration in chain[::period]:
            differ = zip(write.counters, iteration, chain[0][1], strict=True)
            counters_of |= {c for c, a, b in differ if a != b}
    return Turns([schedule.writes[n] for n in reversed(pattern)], counters_of, rounds) if counters_of else None
