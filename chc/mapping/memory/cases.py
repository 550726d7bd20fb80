"""Proofs by cases: where one of several writes gives a cell its value, what tells them apart is assumed in turn.

A library overwrites a sum with its first product and adds the others, or peels the first iteration off a loop.  Which
write a cell gets its value from then differs between sizes and places.  A condition that tells the writes apart is
guessed at the samples, and the comparison that met the cell is proved again under it, and under its negation.  A guess
that is wrong makes an obligation of a case fail.  That the cases leave nothing out is an obligation, too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.program.writes import Loops, Schedule, conjuncts_of
from chc.mapping.sampling.samples import Point, Samples
from ila_lang import Expr, any_of, const, false, free_variables, true
from smt_encodings.claims import Unsupported

from .contexts import Context
from .witnesses import iteration_exists, witness

_FEW = 3
"""Literals that sizes are compared with."""

MOST_CASES = 32
"""Cases of one comparison."""


class Split(Unsupported):
    """A value in ``context`` has several reaching definitions, which ``conditions``, of which one holds, tell apart."""

    def __init__(self, problem: str, context: Context, conditions: Sequence[Expr]) -> None:
        super().__init__(problem)
        self.context, self.conditions = context, conditions


def in_cases(context: Context, name: str, compare: Callable[[Context, str], None]) -> None:
    """Proves something in a context, or in each of cases of it where its values are split.

    ``compare`` gets the context and a name; what it adds to the proof before it raises Split is true in any case.
    """
    pending, count = [(context, name)], 0
    while pending:
        case, case_name = pending.pop(0)
        try:
            compare(case, case_name)
        except Split as split:
            if split.context is not case or count + len(pending) >= MOST_CASES:
                raise
            meaning = "a value has its reaching definition in one of the cases, and there are no others"
            case.theorem("cases", f"{case_name or 'the output'}: the cases are all", any_of(split.conditions), meaning)
            cases = []
            for condition in split.conditions:
                count += 1
                name_of = f"{name}{', ' if name else ''}case {count}"
                cases.append((case.where(condition, name_of), name_of))
            pending = [*cases, *pending]


Sampled = Sequence[tuple[int, tuple[int, ...]] | None]
"""At each sample, the number of the write that gave a cell its value, and its iteration; None where no write did."""


def split(context: Context, schedule: Schedule, memory: Expr, sampled: Sampled, address: Expr, point: Point) -> Split:
    """The cases of a cell of a memory, at ``address``, that different writes gave its value before a point.

    Raises Unsupported where no condition is found that tells them apart.
    """
    numbers = [None if s is None else s[0] for s in sampled]
    labels = Counter("no write" if n is None else schedule.writes[n].label for n in dict.fromkeys(numbers))
    which = ", ".join(label if count == 1 else f"{label} ({count} writes)" for label, count in labels.items())
    problem = (
        f"which write gives a cell of {memory.name} its value differs between sizes or places: {which}; "
        "what tells them apart must be a first or last iteration, a size, the end of a loop, or an even number"
    )
    conditions = [
        *_conditions(context, schedule, memory),
        *_iterations_exist(context, schedule, sampled, address, point),
    ]
    guards = {c for w in schedule.writes_to(memory) for c in conjuncts_of(w.guard)}
    condition = _separating(context.samples, list(dict.fromkeys(conditions)), guards, numbers)
    if condition is None:
        raise Unsupported(problem)
    return Split(problem, context, (condition, ~condition))


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
