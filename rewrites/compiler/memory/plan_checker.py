"""A checker of memory plans, which shares no code with the planner.

It reads the problem and the plan, and nothing else of the planner; every pair of buffers is looked at (quadratic,
without a sweep or an index that could be wrong). What it accepts is safe: while a buffer is live, no other live
buffer has one of its cells.

It believes the problem: whether the intervals are those of a program is a matter of ``liveness``.
"""

from __future__ import annotations

from itertools import combinations

from .problem import MemoryPlan, MemoryProblem


class PlanError(Exception):
    """A plan that must not be used; the message names the buffers, their places and what must hold."""


def check_memory_plan(problem: MemoryProblem, plan: MemoryPlan) -> None:
    """Raises ``PlanError`` unless ``plan`` is a plan for ``problem``.

    Every buffer of the problem has an address, and nothing else has; addresses are integers of at least 0, and aligned;
    two buffers that are live together have no cell in common; and the peak is the largest end.
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
    _check_pairs(problem, plan)
    peak = max((plan.addresses[buffer.name] + buffer.size for buffer in problem.buffers), default=0)
    if plan.peak != peak:
        raise PlanError(f"the plan's peak must be its largest end {peak}, but it says {plan.peak}.")


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
