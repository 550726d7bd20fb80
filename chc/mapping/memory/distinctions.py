"""Conditions that tell apart, at samples, the writes from which a cell gets its value: guesses for proofs by cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.program.writes import Loops, Point, Schedule, conjuncts_of
from chc.mapping.sampling.samples import Samples
from ila_lang import Expr, const, false, free_variables, true
from smt_encodings.claims import Unsupported

from .contexts import Context
from .witnesses import iteration_exists, witness

_FEW = 3
"""Literals that sizes are compared with."""

Sampled = Sequence[tuple[int, tuple[int, ...]] | None]
"""At each sample, the number of the write that gave a cell its value, and its iteration; None where no write did."""


def telling_apart(
    context: Context, schedule: Schedule, memory: Expr, sampled: Sampled, cell: tuple[Expr, Point]
) -> Expr | None:
    """A condition that tells apart the writes that gave a cell its value before a point; None where none is found.

    The cell has an address and the point just before which it is read.
    """
    conditions = [*_conditions(context, schedule, memory), *_iterations_exist(context, schedule, sampled, *cell)]
    guards = {c for w in schedule.writes_to(memory) for c in conjuncts_of(w.guard)}
    numbers = [None if s is None else s[0] for s in sampled]
    return _separating(context.samples, list(dict.fromkeys(conditions)), guards, numbers)


def _separating(
    samples: Samples, conditions: Sequence[Expr], guards: set[Expr], numbers: Sequence[int | None]
) -> Expr | None:
    """A condition such that one write gave the cell its value at all samples where it holds, or where it does not.

    One that tells all of them apart is taken first, then the first that leaves no write on both sides, then one of
    which one side has one write: a condition of the program if possible, and at as many samples as possible.
    """
    apart, alone, most = None, None, (False, 0)
    for condition, column in zip(conditions, zip(*samples.evaluate(conditions), strict=True), strict=True):
        rows = list(zip(numbers, map(bool, column), strict=True))
        sides = [[n for n, holds in rows if holds is side] for side in (True, False)]
        kinds = [set(side) for side in sides]
        pure = max((len(side) for side, kind in zip(sides, kinds, strict=True) if len(kind) == 1), default=0)
        if not all(kinds):
            continue
        if not kinds[0] & kinds[1]:
            if len(kinds[0]) == len(kinds[1]) == 1:
                return condition
            apart = condition if apart is None else apart
        if pure and (condition in guards, pure) > most:
            alone, most = condition, (condition in guards, pure)
    return alone if apart is None else apart


def _conditions(context: Context, schedule: Schedule, memory: Expr) -> Iterator[Expr]:
    """Conditions over coordinates, counters and sizes that may tell writes to a memory apart, simple ones first."""
    parameters = context.samples.parameters
    writes = schedule.writes_to(memory)
    known = set(parameters)

    def of_sizes(term: Expr) -> bool:
        return term.op != "const" and set(free_variables(term).values()) <= known

    for counter, extent in context.ranges:
        yield counter == 0
        yield equal(successor(counter), extent)
    extents = list(dict.fromkeys(e for w in writes for _, e in w.loops if of_sizes(e)))
    guards = [c for w in writes for c in conjuncts_of(w.guard) if c is not true and c is not false and of_sizes(c)]
    yield from guards
    yield from (less(const(k, 32), e) for e in extents for k in range(_FEW))
    yield from (equal(p, const(k, p.width)) for p in parameters for k in range(_FEW))
    for loops in (w.loops for w in writes):
        yield from _below(context, loops, of_sizes)
    blocks = sorted({int(e.value) for w in writes for _, e in w.loops if e.is_const and e.value > 1})
    for counter, extent in context.ranges:  # before the last block, which may overlap with others
        yield from (less(total([counter, const(b, 32)]), extent) for b in blocks)
    yield from (t[0:0] == 0 for t in (*(c for c, _ in context.ranges), *parameters))


def _iterations_exist(
    context: Context, schedule: Schedule, sampled: Sampled, address: Expr, point: Point
) -> Iterator[Expr]:
    """That a write has the iteration which wrote the cell where it was the last one, as a whole and in parts."""
    samples = context.samples
    for number in dict.fromkeys(s[0] for s in sampled if s is not None):
        rows = [(row, s[1]) for row, s in zip(samples.rows, sampled, strict=True) if s is not None and s[0] == number]
        here = Samples(samples.parameters, samples.variables, tuple(row for row, _ in rows))
        write = schedule.writes[number]
        try:
            at = witness(here, context.ranges, write, [iteration for _, iteration in rows], address, point)
        except Unsupported:  # the others may have one
            continue
        exists = iteration_exists(write, at)
        yield from dict.fromkeys([exists, *conjuncts_of(exists)])


def _below(context: Context, loops: Loops, of_sizes: Callable[[Expr], bool]) -> Iterator[Expr]:
    """That a coordinate is below the number of iterations of a loop, or of literal ones inside it."""
    for k, (_, extent) in enumerate(loops):
        literals = [e for _, e in itertools.takewhile(lambda loop: loop[1].is_const, loops[k + 1 :])]
        for most in range(len(literals) + 1 if of_sizes(extent) else 0):
            count = product([extent, *literals[:most]])
            yield from (less(counter, count) for counter, _ in context.ranges)
