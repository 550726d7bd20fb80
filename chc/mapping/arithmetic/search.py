"""Which steps to look for, by the form of what is to be proved: guesses, as all steps are."""

from __future__ import annotations

from collections.abc import Sequence

from pysmt.fnode import FNode

from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.integers import is_linear

from .equalities import equality_steps
from .ranges import apart_steps, quick, range_steps
from .steps import Step


def steps_to(hypotheses: Sequence[FNode], goal: FNode, sizes: set[FNode], quotients: set[FNode]) -> list[Step] | None:
    """Steps that prove a comparison, or the last of which says what it follows from; None where none are found.

    ``quotients`` are further symbols that may be left where bounds of ``sizes`` alone are not found.
    """
    if goal.is_not() and goal.arg(0).is_equals():
        left, right = goal.arg(0).args()
        return apart_steps(hypotheses, left, right, sizes, quick)
    if goal.is_equals():
        return equality_steps(hypotheses, goal.arg(0), goal.arg(1), quick)
    for allowed in (sizes, sizes | quotients) if quotients else (sizes,):
        for smaller, larger, gap in _comparisons(goal):
            steps = range_steps(hypotheses, smaller, larger, allowed, quick, gap)
            if steps is not None:
                return steps
    return None


def products_of_sizes(hypotheses: Sequence[FNode], sizes: set[FNode]) -> list[FNode]:
    """Products that facts about sizes alone bound by literals."""
    smaller = (f.arg(0) for f in conjuncts(hypotheses) if f.is_le() and f.arg(1).is_constant())
    return [t for t in smaller if not is_linear(t) and t.get_free_variables() <= sizes]


def _comparisons(goal: FNode) -> list[tuple[FNode, FNode, int]]:
    """Inequalities ``smaller + gap <= larger`` of which any one implies the goal, where it has such a form."""
    if goal.is_and() and goal.args():
        lower = [a for a in goal.args() if a.is_le() and a.arg(0).is_int_constant(0)]
        upper = [a for a in goal.args() if not any(a is b for b in lower)]
        return _comparisons(upper[0]) if len(upper) == 1 else []
    if goal.is_or():
        return [c for part in goal.args() for c in _comparisons(part)]
    if goal.is_lt() or goal.is_le():
        return [(goal.arg(0), goal.arg(1), int(goal.is_lt()))]
    return []
