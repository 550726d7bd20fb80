"""Folds at an iteration of the loops around them: all of their iterations, or a part, blocks or more than their own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Iteration, narrow
from chc.mapping.program.writes import Fold, Loops
from ila_lang import Expr, all_of, const, ite, resize, substitute

from .alternating import Alternating
from .unrolled import Cycle


@dataclass(frozen=True, eq=False)
class Blocks:
    """Consecutive iterations of a loop in ``count`` blocks, which begin ``apart`` from each other.

    Block ``number``, a variable, has ``length`` iterations.
    """

    count: Expr
    apart: Expr
    number: Expr
    length: Expr

    def at(self, number: Expr) -> tuple[Expr, Expr]:
        """Where a block begins, and how many iterations it has."""
        here = {self.number: resize(number, self.number.width)}
        return resize(number, 32) * resize(self.apart, 32), substitute(self.length, here)

    def cover(self, whole: Expr) -> Expr:
        """That block ``number`` goes as far as the next one, or as the last one ends ``whole`` iterations."""
        end = total([product([self.number, self.apart]), self.length])
        is_last = equal(successor(self.number), self.count)
        return ite(is_last, equal(end, whole), equal(self.length, self.apart))

    def none(self, whole: Expr) -> Expr:
        """That there is a block, or no iteration."""
        return less(const(0, 1), self.count) | equal(whole, const(0, 1))


@dataclass(frozen=True, eq=False)
class FoldUse:
    """A fold at one iteration of the loops around it.

    ``inner`` are counters of folds around it, ``carried`` what their registers hold there, and ``initial`` the values
    it begins with.  With ``part`` it is not whole: its outermost loop begins at the first of both, and runs as often as
    the second says.
    """

    fold: Fold
    at: Iteration
    inner: Loops
    carried: Iteration
    initial: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    context: Context
    part: tuple[Expr, Expr] | None = None
    selected: tuple[tuple[Expr, Expr], ...] = ()
    """For each loop, where its first iteration and how many iterations are taken; none where all are."""
    blocks: Blocks | None = None
    """Blocks of iterations of the outermost loop, of which a step takes one."""
    cycle: Cycle | Alternating | None = None
    """The writes that make a step together, for a fold in memory by several of them."""
    longer: tuple[tuple[Expr, Expr], ...] | None = None
    """For each loop the first of its own iterations among those of a longer loop, and how often that one runs; in
    iterations that are not its own the fold does nothing."""

    @property
    def loops(self) -> Loops:
        """Counters and extents, the latter over the coordinates of the context; counters begin at 0 in a part, too."""
        here = narrow(self.at)
        loops = tuple((c, substitute(e, here)) for c, e in self.fold.loops)
        if self.selected:
            loops = tuple((c, length) for (c, _), (_, length) in zip(loops, self.selected, strict=True))
        if self.blocks is not None:
            return ((loops[0][0], self.blocks.count),)
        if self.longer is not None:
            return tuple((c, extent) for (c, _), (_, extent) in zip(loops, self.longer, strict=True))
        return loops if self.part is None else ((loops[0][0], self.part[1]), *loops[1:])

    def shifted(self, at: Iteration) -> Iteration:
        """Counters of the whole fold for counters that begin at 0, and those whose digits these are."""
        counter = self.fold.loops[0][0]
        first = zip(self.fold.loops, self.selected, strict=False)
        at = {**at, **{c: resize(at[c], 32) + begin for (c, _), (begin, _) in first}}
        if self.longer is not None:
            begins = zip(self.fold.loops, self.longer, strict=True)
            at = {**at, **{c: resize(at[c], 32) - begin for (c, _), (begin, _) in begins}}
        if self.part is not None:
            at = {**at, counter: resize(at[counter], 32) + resize(self.part[0], 32)}
        return {**at, **self.fold.at(at[counter])}

    def iteration(self, at: Iteration) -> Iteration:
        """All counters where the fold's begin at 0: its own and those around it, for terms that speak of the fold."""
        return {**self.at, **self.shifted(at)}

    def has(self, at: Iteration) -> Expr:
        """Whether an iteration is one of the fold's own."""
        begins = self.longer or ()
        own = replace(self, longer=None).loops if begins else ()
        limits = [(at[c], begin, total([begin, extent])) for (c, extent), (begin, _) in zip(own, begins, strict=True)]
        return all_of([~less(here, begin) & less(here, end) for here, begin, end in limits])

    @property
    def count(self) -> int:
        """The number of iterations, where all extents are literals; otherwise 0."""
        return math.prod(e.value if e.is_const else 0 for _, e in self.loops)
