"""What the writer of derivations asks of loops, conditions and memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

from ila_lang import Expr, const
from ila_lang.language.kernel import Let, Statement, walk

from .names import Unread


def updated(body: tuple[Statement, ...], env: Mapping[Expr, Expr]) -> list[Expr]:
    """The registers that statements change."""
    return [*dict.fromkeys(s.target for s in walk(body) if isinstance(s, Let) and s.update and s.target in env)]


def conjuncts(test: Expr) -> frozenset[Expr]:
    """The conditions of a conjunction."""
    return frozenset().union(*map(conjuncts, test.args)) if test.op == "and" else frozenset([test])


def reached(extent: Expr) -> Expr | None:
    """The condition under which there is one iteration, and not none."""
    if extent.op == "ite":
        test, *numbers = extent.args
        for condition, ends in ((test, (1, 0)), (~test, (0, 1))):
            if all(map(is_, numbers, (const(n, extent.width) for n in ends))):
                return condition
    return None


def row_major(counters: Sequence[Expr], extents: Sequence[Expr]) -> Expr:
    """The number with these digits: where counters of loops are subscripts."""
    place = counters[0]
    for counter, extent in zip(counters[1:], extents[1:], strict=True):
        place = place * extent + counter
    return place


def require_memory(memory: Expr) -> None:
    """Raises Unread for a memory that is an expression."""
    if memory.op != "var":
        raise Unread(f"{memory.describe()} must be a memory of words")
