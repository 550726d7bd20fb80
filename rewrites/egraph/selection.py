"""Selections: one option for each class that is needed, without cycles, at the least total cost.

This is extraction with everything else taken away. A *problem* has classes by number; each has *options*, which cost
something and need further classes. A selection picks an option for the roots and for all classes that these
need, such that no class needs itself. A class that is needed many times is paid once, so the cost is that of a DAG.
Finding the cheapest is NP-hard; ``search`` does it within a budget, and this module has the heuristics it starts from.

Sets of classes are integers, bit ``i`` for class ``i``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .terms import EGraphError


@dataclass(frozen=True)
class Option:
    """A way to get a class: its cost, the classes it needs, and which e-nodes of the e-graph it stands for by class."""

    cost: int
    needs: int
    picks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Problem:
    """Options by class, and the set of classes that must be selected."""

    options: Mapping[int, Sequence[Option]]
    roots: int


Selection = Mapping[int, Option]


def bits(members: int) -> Iterator[int]:
    """The classes in a set, in increasing order."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def union(sets: Iterable[int]) -> int:
    """The union of sets."""
    result = 0
    for s in sets:
        result |= s
    return result


def cost_of(problem: Problem, selection: Selection) -> int | None:
    """The cost of what a selection needs for the roots; None where a class is missing or needs itself."""
    order = _needed(problem, selection)
    return None if order is None else sum(selection[c].cost for c in order)


def _needed(problem: Problem, selection: Selection) -> list[int] | None:
    """The classes that a selection needs, operands first; None where one is missing or needs itself."""
    opened: set[int] = set()
    closed: dict[int, None] = {}
    for start in bits(problem.roots):
        stack = [(start, False)]
        while stack:
            at, ready = stack.pop()
            if ready:
                closed[at] = None
            elif at not in closed:
                if at in opened or at not in selection:
                    return None
                opened.add(at)
                stack.append((at, True))
                for need in bits(selection[at].needs):
                    if need not in closed:
                        if need in opened:
                            return None
                        stack.append((need, False))
    return list(closed)


def greedy(problem: Problem) -> dict[int, Option]:
    """For each class an option whose DAG is cheap, among those made of the choices for other classes; never a cycle.

    Classes are settled in the order of what they cost alone, as in Dijkstra's algorithm, so that an option is
    considered when all that it needs is settled. Classes that cannot be got at all are left out.
    """
    waiting: dict[int, list[tuple[int, int]]] = {}
    missing: dict[tuple[int, int], int] = {}
    heap: list[tuple[int, int, int, int]] = []
    whole: dict[int, tuple[int, int]] = {}  # class -> set of the classes of its DAG, and their cost
    chosen: dict[int, Option] = {}

    def offer(c: int, position: int) -> None:
        option = problem.options[c][position]
        members, cost = 0, 0
        for need in sorted(bits(option.needs), key=lambda n: (-whole[n][1], n)):
            if not members:
                members, cost = whole[need]
            else:
                more = whole[need][0] & ~members
                members |= more
                cost += sum(chosen[m].cost for m in bits(more))
        heapq.heappush(heap, (cost + option.cost, c, position, members))

    for c, options in problem.options.items():
        for position, option in enumerate(options):
            missing[c, position] = option.needs.bit_count()
            for need in bits(option.needs):
                waiting.setdefault(need, []).append((c, position))
            if not option.needs:
                offer(c, position)
    while heap:
        cost, c, position, members = heapq.heappop(heap)
        if c in chosen:
            continue
        chosen[c] = problem.options[c][position]
        whole[c] = members | 1 << c, cost
        for user, place in waiting.get(c, ()):
            missing[user, place] -= 1
            if not missing[user, place] and user not in chosen:
                offer(user, place)
    return chosen


def improved(problem: Problem, selection: Selection, budget: int) -> tuple[dict[int, Option], int]:
    """The selection after changing one class at a time as long as that makes the whole cheaper, and what it costs.

    The budget bounds the number of classes looked at, all evaluations together. Raises EGraphError where the given
    selection is none.
    """
    now = dict(selection)
    best = cost_of(problem, now)
    if best is None:
        raise EGraphError("a selection must have an option for each class that is needed, without cycles")
    changed = True
    while changed and budget > 0:
        changed = False
        order = _needed(problem, now)
        assert order is not None
        for c in reversed(order):
            for option in problem.options[c]:
                kept = now[c]
                if option is kept or budget <= 0:
                    continue
                now[c] = option
                budget -= len(order)
                cost = cost_of(problem, now)
                if cost is not None and cost < best:
                    best, changed = cost, True
                else:
                    now[c] = kept
    return now, best
