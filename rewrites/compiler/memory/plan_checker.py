"""A checker of memory plans, which shares no code with the planner.

It reads the problem and the plan, and nothing else of the planner; every pair of buffers is looked at (quadratic,
without a sweep or an index that could be wrong). What it accepts is safe: while a buffer is live, no other live
buffer has one of its cells.

It believes the problem: whether the intervals are those of a program is a matter of ``liveness``. Of the claim
that a peak is minimal it checks the part with evidence in the problem (``Minimality.BOUND``); that a search was
complete it cannot see.
"""

from __future__ import annotations

from itertools import combinations

from .problem import MemoryPlan, MemoryProblem, Minimality


class PlanError(Exception):
    """A plan that must not be used; the message names the buffers, their places and what must hold."""


def check_memory_plan(problem: MemoryProblem, plan: MemoryPlan) -> None:
    """Raises ``PlanError`` unless ``plan`` is a plan for ``problem``.

    Every buffer of the problem has an address, and nothing else has; addresses are integers of at least 0, aligned,
    and the fixed ones where they are fixed; buffers end within the capacity; two buffers that are live together have
    no cell in common; the peak is the largest end; no end is below the claimed lower bound of all peaks; and a peak
    that is said to be minimal by the bound is.
    """
    _check_names(problem, plan)
    for buffer in problem.buffers:
        address = plan.addresses[buffer.name]
        if type(address) is not int or address < 0:
            raise PlanError(
                f"buffer {buffer.name!r}: its address must be an integer of at least 0, but it is {address!r}."
            )
        if address % buffer.alignment != 0:
            raise PlanError(
                f"buffer {buffer.name!r}: its address must be a multiple of {buffer.alignment}, but it is {address}."
            )
        if buffer.fixed is not None and address != buffer.fixed:
            raise PlanError(f"buffer {buffer.name!r}: it is fixed at {buffer.fixed}, but the plan has it at {address}.")
        if problem.capacity is not None and address + buffer.size > problem.capacity:
            raise PlanError(
                f"buffer {buffer.name!r}: at {address} with size {buffer.size}, it must end within the capacity "
                f"{problem.capacity}, but it ends at {address + buffer.size}."
            )
    _check_pairs(problem, plan)
    _check_peak(problem, plan)


def _check_names(problem: MemoryProblem, plan: MemoryPlan) -> None:
    names = {buffer.name for buffer in problem.buffers}
    for name in sorted(names - set(plan.addresses)):
        raise PlanError(f"buffer {name!r} must have an address, but the plan has none.")
    for name in sorted(set(plan.addresses) - names):
        raise PlanError(f"the plan must have addresses of the problem's buffers only, but {name!r} is none of them.")


def _check_pairs(problem: MemoryProblem, plan: MemoryPlan) -> None:
    for one, two in combinations(problem.buffers, 2):
        time = max(one.start, two.start)
        if time >= min(one.end, two.end):
            continue
        cell = max(plan.addresses[one.name], plan.addresses[two.name])
        if cell < min(plan.addresses[one.name] + one.size, plan.addresses[two.name] + two.size):
            raise PlanError(
                f"buffers {one.name!r} and {two.name!r} are both live at time {time}, so they must not share a cell, "
                f"but both have cell {cell}: "
                f"{one.name!r} is {plan.addresses[one.name]}..{plan.addresses[one.name] + one.size - 1}, "
                f"{two.name!r} is {plan.addresses[two.name]}..{plan.addresses[two.name] + two.size - 1}."
            )


def _check_peak(problem: MemoryProblem, plan: MemoryPlan) -> None:
    peak = max((plan.addresses[buffer.name] + buffer.size for buffer in problem.buffers), default=0)
    if plan.peak != peak:
        raise PlanError(f"the plan's peak must be its largest end {peak}, but it says {plan.peak}.")
    if plan.lower_bound > peak:
        raise PlanError(f"the plan's lower bound must not exceed its peak {peak}, but it is {plan.lower_bound}.")
    if plan.minimal and plan.lower_bound != peak:
        raise PlanError(
            f"a minimal peak must equal the lower bound, but the peak is {peak} and the lower bound {plan.lower_bound}."
        )
    if plan.minimality is not Minimality.BOUND:
        return
    # A sum of live sizes changes only where a buffer starts, and it is greatest at one of these times.
    needed = 0
    for time in {buffer.start for buffer in problem.buffers}:
        needed = max(needed, sum(buffer.size for buffer in problem.buffers if buffer.start <= time < buffer.end))
    for buffer in problem.buffers:
        if buffer.fixed is not None:
            needed = max(needed, buffer.fixed + buffer.size)
    if needed != peak:
        raise PlanError(
            f"the plan says that no peak below {peak} is possible, but loads and fixed buffers only show {needed}."
        )
