"""The iteration in which a write wrote a cell, as terms over coordinates and counters that agree with samples.

Extents may depend on outer counters, and a loop may begin at one of them: for ``j < i + 1`` or ``i + j`` below n the
terms found for outer counters stand in what is tried for inner ones.  Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from chc.mapping.arithmetic.exact import less, total
from chc.mapping.program.writes import Loops, Point, Write, shared_loops
from chc.mapping.sampling.candidates import candidates, digits
from chc.mapping.sampling.samples import Samples
from ila_lang import BvSort, Expr, all_of, free_variables, postorder, resize, substitute
from smt_encodings.claims import Unsupported

from .layout import Iteration, narrow

_FEW = 12


def witness(
    samples: Samples, ranges: Loops, write: Write, iterations: Sequence[tuple[int, ...]], address: Expr, until: Point
) -> Iteration:
    """Terms for the counters of a write in ``iterations``, one at each sample, which write ``address`` before a point.

    ``ranges`` are coordinates and counters around.  Raises Unsupported where a term is not found.
    """
    last = [e - 1 for _, e in write.loops if not set(free_variables(e).values()) & set(write.counters)]
    table = candidates(samples, ranges, [address, *until.counters, *last], write)
    by_digits: dict[tuple[int, ...], Expr] | None = None
    at: dict[Expr, Expr] = {}
    shared = _shared(samples, write, until)
    for (counter, extent), values in zip(write.loops, zip(*iterations, strict=True), strict=True):
        term = shared.get((counter, tuple(values)), table.get(tuple(values)))
        if term is None:
            ends = [substitute(extent, narrow(at)), *_limits(write, at)]
            likely = [*(resize(end, 32) - 1 for end in ends), *_distances(ranges, write, address, at)]
            columns = zip(likely, zip(*samples.evaluate(likely), strict=True), strict=True)
            term = next((t for t, column in columns if column == values), None)
        if term is None:
            by_digits = digits(samples, address, write) if by_digits is None else by_digits
            term = by_digits.get(tuple(values))
        if term is None:
            where = f"{counter.name} of the iteration in which {write.label} writes {write.memory.name}"
            raise Unsupported(f"no term was found for {where}")
        at[counter] = resize(term, 32)
    return at


def _shared(samples: Samples, write: Write, until: Point) -> dict[tuple[Expr, tuple[int, ...]], Expr]:
    """The iteration of the loops around both a write and a point: by counter, and by its values at the samples."""
    most = shared_loops(write, until)
    columns = zip(*samples.evaluate(until.counters[:most]), strict=True) if most else ()
    pairs = zip(write.counters, until.counters, columns, strict=False)
    return {(counter, tuple(column)): term for counter, term, column in pairs}


def iteration_exists(write: Write, at: Iteration) -> Expr:
    """The condition that a write has an iteration, in a form that is exact also where it has none: nothing wraps."""
    here = narrow(at)
    conditions: list[Expr] = []
    for counter, extent in write.loops:
        more, less_by = at[counter], []
        while more.op == "bvsub":
            more, by = more.args
            less_by.append(by)
        if less_by:
            begin = total(less_by)
            conditions += [~less(more, begin), less(more, total([begin, substitute(extent, here)]))]
        else:
            conditions.append(less(more, substitute(extent, here)))
    return all_of([*conditions, substitute(write.guard, here)])


def _limits(write: Write, at: Iteration) -> list[Expr]:
    """The words in a write's condition that no counter moves but known ones: a mask may end there."""
    unknown = set(write.counters) - set(at)
    words = (n for n in _words(write.guard) if n.args and not unknown & set(free_variables(n).values()))
    return [substitute(n, narrow(at)) for n in words][-_FEW:]


def _distances(ranges: Loops, write: Write, address: Expr, at: Iteration) -> list[Expr]:
    """By how much coordinates and parts of an address exceed a write's parts that no counter moves but known ones."""
    unknown = set(write.counters) - set(at)
    here = narrow(at)
    fixed = [n for n in _words(write.address) if not unknown & set(free_variables(n).values())]
    begins = [b for term in at.values() for b in (term, term + 1)]
    begins += [substitute(n, here) for n in fixed[-_FEW:]]
    parts = [*(c for c, _ in ranges), *(n for n in _words(address)[-_FEW:] if n.args)]
    return [resize(n, 32) - resize(b, 32) for n in parts for b in dict.fromkeys(begins)]


def _words(term: Expr) -> list[Expr]:
    return [n for n in postorder([term]) if isinstance(n.sort, BvSort) and n.op not in ("const", "load", "apply")]
