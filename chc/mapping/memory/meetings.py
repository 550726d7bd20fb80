"""In which iterations another write writes a cell that is read, as terms that agree with samples: guesses."""

from __future__ import annotations

from collections.abc import Sequence

from chc.mapping.program.writes import Point, Write, shared_loops
from chc.mapping.sampling.candidates import candidates
from chc.mapping.sampling.samples import Sampler, Samples
from ila_lang import Expr, resize

from .contexts import Context
from .layout import Iteration, Reader


def meeting(context: Context, other: Write, reader: Reader, iterations: Sequence[tuple[int, ...]]) -> Iteration | None:
    """The iteration of a write that writes a cell, which samples have; None where no terms are found."""
    table = candidates(context.samples, context.ranges, [reader.cell()])
    terms = [table.get(tuple(values)) for values in zip(*iterations, strict=True)]
    at = {c: resize(t, 32) for c, t in zip(other.counters, terms, strict=True) if t is not None}
    return at if len(at) == len(terms) else None


def overwriting(context: Context, sampler: Sampler, other: Write, read: tuple[Reader, Point]) -> tuple[Expr, ...]:
    """The iteration of the loops around a write and a read that overwrites the cell, if one does."""
    (reader, point), samples = read, context.samples
    shared = shared_loops(other, point)
    iterations = sampler.overwriting(samples, other, reader.cell()) if shared else []
    rows = [k for k, iteration in enumerate(iterations) if iteration is not None]
    if not rows:
        return ()
    some = Samples(samples.parameters, samples.variables, tuple(samples.rows[k] for k in rows))
    table = candidates(some, context.ranges, [reader.cell(), *point.counters])
    columns = zip(*(iterations[k][:shared] for k in rows), strict=True)  # type: ignore[index]
    components = tuple(resize(term, 32) for term in map(table.get, columns) if term is not None)
    return components if len(components) == shared else ()
