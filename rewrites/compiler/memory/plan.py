"""Plans of static memory: addresses for the buffers of a program, such that those that are live together share no cell.

``plan_memory`` places buffers by first and best fit in several orders (``placement``), settles the best
result, and looks for a smaller peak by branch and bound (``search``). Groups of buffers between which no time
is shared are planned apart. Every plan passes ``plan_checker`` before it is returned. The same problem always
has the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from .placement import ORDERS, best_fit, first_fit, lower_bound, neighbours, place, settle
from .plan_checker import check_memory_plan
from .problem import Buffer, MemoryPlan, MemoryProblem, Minimality
from .search import search

DEFAULT_EFFORT = 1_000_000
"""Buffers that the search may look at, over all groups: about a second of Python."""

_NAMED = 8  # buffers that a refusal names one by one


class DoesNotFit(Exception):
    """No plan within the capacity was found; the message names the largest buffers that are live at the busiest time.

    ``needed`` cells are proved to be necessary, ``best`` is the peak of the best plan that was found, and ``proved``
    says whether no plan exists (``needed > capacity``); otherwise the search stopped before it knew.
    """

    def __init__(self, message: str, capacity: int, needed: int, best: int) -> None:
        super().__init__(message)
        self.capacity = capacity
        self.needed = needed
        self.best = best

    @property
    def proved(self) -> bool:
        """Whether no plan within the capacity exists."""
        return self.needed > self.capacity


def plan_memory(problem: MemoryProblem, effort: int = DEFAULT_EFFORT) -> MemoryPlan:
    """A plan with the smallest peak that was found; it says whether no smaller one exists.

    ``effort`` limits the search (0: heuristics alone). Raises ``DoesNotFit`` if no plan within the capacity was
    found, and ``ValueError`` for a negative effort.
    """
    if effort < 0:
        raise ValueError(f"the effort must be at least 0, but it is {effort}. Give 0 for heuristics alone.")
    bound, _ = lower_bound(problem.buffers)
    addresses: dict[str, int] = {}
    peak, needed = 0, bound
    # The group that needs most comes first: once its peak is known, smaller groups need no search.
    for group in sorted(_groups(problem.buffers), key=lambda group: -lower_bound(group)[0]):
        result = search(group, _by_heuristics(group), max(needed, peak), effort)
        addresses |= result.addresses
        peak = max(peak, result.peak)
        effort = result.effort_left
        if result.exhausted:
            needed = max(needed, result.peak)  # this group alone has no smaller peak
    minimality = Minimality.UNPROVED
    if peak == needed:
        minimality = Minimality.BOUND if peak == bound else Minimality.SEARCH
    if problem.capacity is not None and peak > problem.capacity:
        raise _refusal(problem.buffers, problem.capacity, needed, peak)
    plan = MemoryPlan({b.name: addresses[b.name] for b in problem.buffers}, peak, needed, minimality)
    check_memory_plan(problem, plan)
    return plan


def _groups(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Buffers that are connected by shared times; two groups share none, so that they may be placed apart."""
    groups: list[list[Buffer]] = []
    end = 0
    for buffer in sorted(buffers, key=lambda b: (b.start, b.name)):
        if not groups or buffer.start >= end:
            groups.append([])
        groups[-1].append(buffer)
        end = max(end, buffer.end)
    return groups


def _by_heuristics(buffers: Sequence[Buffer]) -> dict[str, int]:
    """The best result of all orders with both rules, the first one among equals, settled."""
    near = neighbours(buffers)
    tried = [place(order(buffers, near), fit, near) for order in ORDERS.values() for fit in (first_fit, best_fit)]
    best = min(tried, key=lambda addresses: max(addresses[b.name] + b.size for b in buffers))
    return settle(buffers, best, near)


def _refusal(buffers: Sequence[Buffer], capacity: int, needed: int, best: int) -> DoesNotFit:
    _, busiest = lower_bound(buffers)
    live = sorted((b for b in buffers if b.start <= busiest < b.end), key=lambda b: (-b.size, b.name))
    named = ", ".join(f"{b.name!r} (size {b.size})" for b in live[:_NAMED])
    rest = live[_NAMED:]
    more = f" and {len(rest)} smaller ones (size {sum(b.size for b in rest)} together)" if rest else ""
    load = f"at time {busiest}, {named}{more} are live and need {sum(b.size for b in live)}"
    advice = "Give more capacity, or split a tensor."
    if needed > capacity:
        message = f"no plan fits {capacity}: at least {needed} are needed; {load}. {advice}"
    else:
        message = (
            f"no plan that fits {capacity} was found, and none is proved impossible: the best one needs {best}, "
            f"at least {needed} are needed, and the search stopped at its limit; {load}. "
            f"A larger effort may find a plan. {advice}"
        )
    return DoesNotFit(message, capacity, needed, best)
