"""A loop against two loops that it is split into: both run the same iterations, in one order.

``for x < N`` stands against ``for q < n: for r < k`` where ``N = n*k``.  One step is one iteration of x and one of the
innermost loop; the inner counter starts over where it ends, and the outer one goes on.  The bad states are: one side
has ended and the other one has not, or x is not the number with the digits q and r, which is ``k*q + r`` with
``0 <= r < k``.  A loop that is split in three is split twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from .levels import System


@dataclass(frozen=True)
class Counted:
    """A loop: the full name of its counter, and its extent, a name or a literal."""

    counter: str
    extent: str | int


class SplitSystem(System):
    """The transition system of a loop and the two that it is split into.

    What it takes for granted (``facts``) is an obligation of its own: one extent is the product of the others.
    """

    def __init__(self, whole: Counted, high: Counted, low: Counted) -> None:
        self.whole, self.high, self.low = whole, high, low
        self.name = whole.counter
        loops = (high, low, whole)
        self.counters = {loop.counter: smt.Symbol(loop.counter, INT) for loop in loops}
        self.parameters = {
            e: smt.Symbol(e, INT) for e in dict.fromkeys(x.extent for x in loops if type(x.extent) is str)
        }
        if len({**self.counters, **self.parameters}) < len(loops) + len(self.parameters):
            raise ValueError(f"Names of split loop {self.name} must be different: a counter must not be an extent")
        zero, one = smt.Int(0), smt.Int(1)
        (n, k, most), (q, r, x) = (self._extent(loop) for loop in loops), self.counters.values()
        self.facts = smt.And(smt.LE(zero, n), smt.LE(zero, k), smt.Equals(most, smt.Times(n, k)))
        self.init = smt.And(self.facts, *(smt.Equals(c, zero) for c in self.counters.values()))
        runs, nested = smt.LT(x, most), smt.And(smt.LT(q, n), smt.LT(zero, k))
        self.guard = smt.And(runs, nested)
        again = smt.LT(smt.Plus(r, one), k)
        self.next = {
            x: smt.Plus(x, one),
            r: smt.Ite(again, smt.Plus(r, one), zero),
            q: smt.Ite(again, q, smt.Plus(q, one)),
        }
        digits = smt.And(smt.Equals(x, smt.Plus(smt.Times(k, q), r)), smt.LE(zero, r), smt.LT(r, k))
        self.bad = smt.Or(smt.Not(smt.Iff(runs, nested)), smt.And(nested, smt.Not(digits)))

    def _extent(self, loop: Counted) -> FNode:
        return smt.Int(loop.extent) if isinstance(loop.extent, int) else self.parameters[loop.extent]

    @property
    def arguments(self) -> dict[str, FNode]:
        """The predicate's arguments in order, by name: counters, parameters."""
        return {**self.counters, **self.parameters}

    def anonymous(self) -> SplitSystem:
        """The same system with names that say nothing but their positions."""
        new = {name: f"split.c{number}" for number, name in enumerate(self.counters)}
        new |= {name: f"split.p{number}" for number, name in enumerate(self.parameters)}
        loops = (self.whole, self.high, self.low)
        return SplitSystem(
            *(Counted(new[x.counter], x.extent if isinstance(x.extent, int) else new[x.extent]) for x in loops)
        )

    def seeds(self) -> list[FNode]:
        """Candidate invariants read off the loops."""
        zero = smt.Int(0)
        n, k = self._extent(self.high), self._extent(self.low)
        q, r, x = self.counters.values()
        return [
            self.facts,
            smt.Equals(x, smt.Plus(smt.Times(k, q), r)),
            smt.LE(zero, q),
            smt.LE(q, n),
            smt.LE(zero, r),
            smt.Or(smt.LT(r, k), smt.LE(k, zero)),
            smt.Or(smt.LT(q, n), smt.Equals(r, zero)),
        ]
