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

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from chc.mapping.arithmetic.exact import equal, less, product, successor, total
from chc.mapping.memory.contexts import Context, in_range
from chc.mapping.memory.layout import Definition, narrow
from chc.mapping.program.writes import Loops
from ila_lang import Expr, all_of, const, substitute
from smt_encodings.environment import fresh, plain


@dataclass(frozen=True)
class Numbered:
    """The iterations of some loops of a write as those of one: ``number`` is its counter, and ``length`` its extent."""

    number: Expr
    length: Expr
    weights: Mapping[Expr, int]
    """By counter, outermost first, by how much the number grows with it; each is a multiple of the next one, to 1."""

    def __post_init__(self) -> None:
        weights = list(self.weights.values())
        if weights[-1:] != [1] or min(weights) < 1 or any(a % b for a, b in pairwise(weights)):
            raise ValueError(f"weights of digits must be multiples of the next ones, down to 1, not {weights}")

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
        """Proves that these are all iterations of ``loops`` in which the write happens, up to the last one.

        Their order is that of the numbers if digits are in the order of the loops: else this raises ValueError.
        """
        if [*map(id, self.weights)] != [id(counter) for counter, _ in loops]:
            raise ValueError("weights of digits must be in the order of the loops")
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
