"""Terms that are put into e-graphs."""

from __future__ import annotations

from rewrites.egraph import EGraph, Term


def add_term(egraph: EGraph, whole: Term) -> int:
    """The number of a term."""
    numbers: dict[Term, int] = {}
    for at in whole.below():
        numbers[at] = egraph.add(at.symbol, [numbers[o] for o in at.operands])
    return numbers[whole]
