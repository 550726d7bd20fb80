"""The cheapest selection, by branch and bound, within a budget.

A problem is reduced, split into components, and each solved alone: a greedy selection is improved by changing one class
at a time, and then branch and bound looks for a cheaper one until there is none or the budget is used up. The bound of
an unfinished selection is what is chosen plus, for each class that every completion has, its cheapest option.
"""

from __future__ import annotations

from dataclasses import dataclass

from .reduction import components, necessary, reduced
from .selection import Option, Problem, Selection, bits, greedy, improved, union


@dataclass(frozen=True)
class Solution:
    """The e-node picked for each class, the cost, and whether no selection is cheaper."""

    picks: dict[int, int]
    cost: int
    optimal: bool


def solve(problem: Problem, budget: int) -> Solution:
    """A cheap selection of the problem. The budget bounds the choices tried in each component; no clock is read.

    Raises EGraphError where a root cannot be selected.
    """
    picks: dict[int, int] = {}
    total, optimal = 0, True
    for part in components(reduced(problem)):
        chosen, cost = improved(part, greedy(part), budget)
        if any(len(options) > 1 for options in part.options.values()):
            chosen, cost, finished = branch_and_bound(part, chosen, cost, budget)
            optimal &= finished
        total += cost
        for c in _used(part, chosen):
            picks.update(chosen[c].picks)
    return Solution(picks, total, optimal)


def _used(problem: Problem, selection: Selection) -> list[int]:
    """The classes that a selection needs."""
    used, work = 0, problem.roots
    while work:
        used |= work
        work = union(selection[c].needs for c in bits(work)) & ~used
    return list(bits(used))


@dataclass
class _Frame:
    """A class to decide, its options in the order they are tried, and what was needed, decided and paid before."""

    at: int
    options: list[Option]
    needed: int
    decided: int
    bound: int


def branch_and_bound(problem: Problem, start: Selection, cost: int, budget: int) -> tuple[dict[int, Option], int, bool]:
    """The cheapest selection found, its cost, and whether the search was finished, so that none is cheaper.

    ``start`` is a selection and ``cost`` what it costs. The budget bounds the number of options tried.
    """
    always = necessary(problem)
    least = {c: min(o.cost for o in options) for c, options in problem.options.items()}
    best, best_cost = dict(start), cost
    chosen: dict[int, Option] = {}
    needed = union(always[c] for c in bits(problem.roots))
    bound = sum(least[c] for c in bits(needed))
    stack: list[_Frame] = []

    def descend(needed: int, decided: int, bound: int) -> None:
        nonlocal best, best_cost
        left = needed & ~decided
        if not left:
            best, best_cost = dict(chosen), bound
            return
        at = min(bits(left), key=lambda c: (len(problem.options[c]), c))
        options = sorted(problem.options[at], key=lambda o: (o.cost, o.needs.bit_count(), o.needs), reverse=True)
        stack.append(_Frame(at, options, needed, decided, bound))

    if bound < best_cost:
        descend(needed, 0, bound)
    while stack:
        frame = stack[-1]
        chosen.pop(frame.at, None)
        if not frame.options:
            stack.pop()
            continue
        if budget <= 0:
            return best, best_cost, False
        budget -= 1
        option = frame.options.pop()
        more = union(always[n] for n in bits(option.needs)) & ~frame.needed
        bound = frame.bound - least[frame.at] + option.cost + sum(least[c] for c in bits(more))
        if bound >= best_cost or _closes_cycle(frame.at, option, chosen):
            continue
        chosen[frame.at] = option
        descend(frame.needed | more, frame.decided | 1 << frame.at, bound)
    return best, best_cost, True


def _closes_cycle(at: int, option: Option, chosen: Selection) -> bool:
    """Whether a class would need itself through what is chosen already."""
    seen, work = 0, option.needs
    while work:
        if work >> at & 1:
            return True
        seen |= work
        work = union(chosen[c].needs for c in bits(work) if c in chosen) & ~seen
    return False
