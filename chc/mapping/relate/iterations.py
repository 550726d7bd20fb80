"""Arbitrary iterations of loops, as contexts in which their counters have terms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from chc.mapping.arithmetic.exact import equal, product
from chc.mapping.contents.folds import FoldUse
from chc.mapping.memory.contexts import Context
from chc.mapping.program.writes import Loops
from ila_lang import Expr, bv, const, resize
from ila_lang.mapping import TensorMapping
from smt_encodings.environment import fresh


@dataclass
class Iterations:
    """Iterations of a mapping's loops, which may run over numbers that have the output's coordinates as digits."""

    mapping: TensorMapping
    _digit_count: int = 0

    def at(self, context: Context, loops: Loops, name: str) -> tuple[Context, dict[Expr, Expr]]:
        """An arbitrary iteration of loops: the context there, and the counters in its terms.

        A loop over all vectors of the output is at a vector of some processing element: its counter is taken as the
        number with the coordinates' digits, of which there are such for every number below the product of the radices.
        """
        prefix = name.replace(" ", "")
        ranges: list[tuple[Expr, Expr]] = []
        at: dict[Expr, Expr] = {}
        for counter, extent in loops:
            digits = self._digits(context, extent)
            if digits is None:
                own = fresh(f"{prefix}.{counter.name}", counter.sort)
                ranges.append((own, extent))
                at[counter] = resize(own, 32)
                continue
            number = const(0, 32)
            for k, radix in enumerate(digits):
                digit = fresh(f"{prefix}.{counter.name}.digit{k}", bv(32))
                ranges.append((digit, radix))
                number = number * radix + digit
            at[counter] = number
        return context.inside(tuple(ranges), name), at

    def _digits(self, context: Context, extent: Expr) -> list[Expr] | None:
        """Two consecutive radices of the output cell whose product is an extent, proved; None for other extents."""
        if extent.is_const:
            return None
        radices = [e for _, e in self.mapping.coordinates[1:]]
        for pair in pairwise(radices):
            same = equal(extent, product(pair))
            likely = not all(e.is_const for e in pair) and all(v for (v,) in context.samples.evaluate([same]))
            if likely and context.proves(same):
                self._digit_count += 1
                name = f"product {self._digit_count}"
                context.theorem("digits", name, same, "the extent is the product of the radices")
                return list(pair)
        return None


def a_block(context: Context, name: str, use: FoldUse) -> Context | None:
    """An arbitrary step of a fold over one loop; None where no sample has one."""
    ((counter, count),) = use.loops
    own = fresh("block", counter.sort)
    return context.inside(((own, count),), name) if context.samples.extend(((own, count),), 0).rows else None
