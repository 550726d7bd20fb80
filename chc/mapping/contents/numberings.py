"""Which number an iteration has, read off samples: guesses for :mod:`.numbered` and :mod:`.alternating`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from chc.mapping.memory.contexts import Context
from chc.mapping.program.writes import Write
from chc.mapping.sampling.candidates import candidates
from ila_lang import Expr, bv, const, postorder, resize
from smt_encodings.environment import fresh

from .numbered import Numbered

Runs = Sequence[Sequence[tuple[int, ...]]]
"""At each sample, the iterations in which a cell was updated, one after the other."""


def numbering(
    context: Context, write: Write, parts: Sequence[Expr], counters: Sequence[Expr], runs: Runs
) -> Numbered | None:
    """A numbering of the iterations of counters that the samples show; None where they show none.

    ``parts`` are terms in which the length may occur, of ``write`` or of others with it.
    """
    weights: list[int] = []
    for place in range(len(counters)):
        unit = tuple(int(k == place) for k in range(len(counters)))
        found = {run.index(unit) for run in runs if unit in run}
        if len(found) != 1:
            return None
        weights += found
    if weights[-1] != 1 or any(a % b for a, b in pairwise(weights)):
        return None
    if any(sum(a * w for a, w in zip(i, weights, strict=True)) != n for run in runs for n, i in enumerate(run)):
        return None
    lengths = tuple(map(len, runs))
    sizes = [n for n in postorder(parts) if n.sort == bv(32) and context.samples.determine(n)]
    cut = [int(n.params[1]) for n in postorder([e for _, e in write.loops]) if n.op == "extract"]
    units = sorted({1 << low for low in cut if 0 < low < 16})
    sizes += [(n + const(k - 1, 32)) // const(k, 32) for n in sizes for k in units]  # blocks, the last one padded
    columns = zip(sizes, zip(*context.samples.evaluate(sizes), strict=True), strict=True)
    length = next((n for n, column in columns if column == lengths), None)
    if length is None:
        length = candidates(context.samples, context.ranges, parts, write).get(lengths)
    if length is None:
        return None
    return Numbered(fresh("number", bv(32)), resize(length, 32), dict(zip(counters, weights, strict=True)))
