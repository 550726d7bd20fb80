"""Several loops of a write as one that counts their iterations: strip-mined loops, of which the last block is short.

In ``for b < ceil(n / 8): for x < min(8, n - 8*b)`` the counters are the digits ``k / 8`` and ``k mod 8`` of a number
``k < n``, and iterations follow each other as their numbers do.  The same holds where a condition ``8*b + x < n``
leaves iterations out.  Weights, which are literals, and how many numbers there are, are guessed at samples.  The
obligations:

* the digits of each number are an iteration that exists, and whose condition holds (**happens**);
* each such iteration has a number, and its counters are the digits of it (**numbered**);
* the iteration that wrote the cell last has the last number (**ends**).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.memory.contexts import Context, in_range
from chc.mapping.memory.layout import Definition, narrow
from chc.mapping.program.writes import Loops, Write
from chc.mapping.sampling.candidates import candidates
from ila_lang import Expr, all_of, bv, const, postorder, resize, substitute
from smt_encodings.environment import fresh, plain

Runs = Sequence[Sequence[tuple[int, ...]]]
"""At each sample, the iterations in which a cell was updated, one after the other."""


@dataclass(frozen=True)
class Numbered:
    """The iterations of some loops of a write as those of one: ``number`` is its counter, and ``length`` its extent."""

    number: Expr
    length: Expr
    weights: Mapping[Expr, int]
    """By counter, outermost first, by how much the number grows with it; each is a multiple of the next one."""

    @property
    def loops(self) -> Loops:
        """The loop over the numbers."""
        return ((self.number, self.length),)

    @property
    def digits(self) -> dict[Expr, Expr]:
        """The counters in terms of the number."""
        return self.digits_of(self.number)

    def digits_of(self, number: Expr) -> dict[Expr, Expr]:
        """The counters of the iteration with a number, which are not cut to their widths."""
        rests = [number, *(number % const(weight, 32) for weight in self.weights.values())]
        pairs = zip(self.weights.items(), rests, strict=False)
        return {c: rest if weight == 1 else rest // const(weight, 32) for (c, weight), rest in pairs}

    def prove(self, context: Context, group: str, name: str, last: Definition, loops: Loops) -> None:
        """Proves that these are all iterations of ``loops`` in which the write happens, up to the last one."""
        around = context.called(name)
        own = fresh("number", self.number.sort)
        inside = context.inside(((own, self.length),), f"{around}, numbers")
        happens = Definition(last.write, {**last.at, **self.digits_of(own)}).exists()
        inside.theorem(group, f"{name}: happens", happens, "the write happens in the iteration of each number")
        names = {c: fresh(f"any.{plain(c.name)}", c.sort) for c, _ in loops}
        here = {**narrow(last.at), **names}
        anywhere = context.inside(tuple((names[c], substitute(e, here)) for c, e in loops), f"{around}, iterations")
        radices = [const(a // b, 32) for a, b in pairwise(self.weights.values())]
        digits = [less(names[c], radix) for c, radix in zip(list(names)[1:], radices, strict=True)]
        goal = all_of([less(self.number_of(names), self.length), *digits])
        exists = all_of([*in_range(loops, here), substitute(last.write.guard, here)])
        meaning = "each iteration in which the write happens has a number, of which its counters are the digits"
        anywhere.theorem(group, f"{name}: numbered", exists.implies(goal), meaning)
        end = equal(successor(self.number_of(last.at)), self.length)
        context.theorem(group, f"{name}: ends", end, "the last iteration that writes the cell has the last number")

    def number_of(self, at: Mapping[Expr, Expr]) -> Expr:
        """The number of an iteration."""
        return total([product([at[c], const(weight, 32)]) for c, weight in self.weights.items()])


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
    columns = zip(sizes, zip(*context.samples.evaluate(sizes), strict=True), strict=True)
    length = next((n for n, column in columns if column == lengths), None)
    if length is None:
        length = candidates(context.samples, context.ranges, parts, write).get(lengths)
    if length is None:
        return None
    return Numbered(fresh("number", bv(32)), resize(length, 32), dict(zip(counters, weights, strict=True)))
