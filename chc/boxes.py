"""Address arithmetic of a nest at an arbitrary iteration.

A box fixes one iteration of a nest as fresh integer counters within bounds.  Its addresses are translated once, under
nothing but these bounds, so that "stays within its width" is proved for every iteration at once and every later
theorem about a particular iteration only adds equations for the counters.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysmt.fnode import FNode

from ila_lang import Expr, Store, resize, substitute, var
from smt_encodings.integers import IntegerEncoding

from .injectivity import injectivity_steps
from .nests import Nest
from .polynomials import Step

__all__ = ["Box", "less"]


def less(left: Expr, right: Expr) -> Expr:
    """``left < right`` on terms of any widths up to 40 bits."""
    return resize(left, 40) < resize(right, 40)


class Box:
    """One arbitrary iteration of a nest, every counter below its bound (default: the loop's extent)."""

    def __init__(
        self,
        base: IntegerEncoding,
        prefix: str,
        index: int,
        nest: Nest,
        bounds: Sequence[Expr] | None = None,
        tag: str = "",
    ) -> None:
        self.base, self.prefix, self.index, self.nest = base, prefix, index, nest
        self.bounds = list(bounds) if bounds is not None else [e for _, e in nest.loops]
        self.space = f"{prefix}{index}{'.' + tag if tag else ''}"
        self.encoding = base.fork(self.space)
        self.counters = [var(f"{self.space}.{c.name}", c.sort) for c in nest.counters]
        self._rename = dict(zip(nest.counters, self.counters, strict=True))
        for counter, bound in zip(self.counters, self.bounds, strict=True):
            self.encoding.assume(less(counter, bound))

    @property
    def within_loops(self) -> bool:
        """Whether the bounds are the loops' own extents."""
        return all(b is e for b, (_, e) in zip(self.bounds, self.nest.loops, strict=True))

    def term(self, address: Expr) -> FNode:
        """An expression over the nest's counters, at this iteration."""
        return self.encoding.term(substitute(address, self._rename))

    def term_at(self, address: Expr, witness: Sequence[Expr]) -> FNode:
        """An expression over the nest's counters at iteration ``witness``, which must lie within the bounds.

        Hypotheses about it join the base.
        """
        generic = self.term(address)
        point = {
            self.encoding.term(counter): self.base.term(resize(component, 40))
            for counter, component in zip(self.counters, witness, strict=True)
        }
        return self.base.instance(self.encoding, generic, point)

    def injectivity(self, store: Store) -> list[Step]:
        """The steps that show that no two iterations within the bounds write one address."""
        mine = self.term(store.address)
        other = self.encoding.fork(f"{self.space}.other")
        fresh = [var(f"{self.space}.other.{c.name}", c.sort) for c in self.nest.counters]
        for counter, bound in zip(fresh, self.bounds, strict=True):
            other.assume(less(counter, bound))
        pairs = [(self.encoding.term(a), other.term(b)) for a, b in zip(self.counters, fresh, strict=True)]
        renamed = other.renaming(self.encoding, dict(pairs))
        return injectivity_steps(other.hypotheses, mine, renamed, pairs)
