"""Plans of static memory: addresses for the buffers of a program, such that those that are live together share no cell.

The largest buffers come first, each at the lowest address that is free. Buffers that are live together with a new one
need not be live together with each other, so they may overlap in space: what is free before one of them starts behind
the largest end of **all** that are below it, not behind the end of the last one. With that, every order gives a plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from .plan_checker import check_memory_plan
from .problem import Buffer, MemoryPlan, MemoryProblem


def plan_memory(problem: MemoryProblem) -> MemoryPlan:
    """A plan, checked; the same for the same buffers, in whatever order they come."""
    addresses: dict[str, int] = {}
    placed: list[Buffer] = []
    for buffer in sorted(problem.buffers, key=lambda b: (-b.size, b.start, b.end, b.name)):
        live = [b for b in placed if b.start < buffer.end and buffer.start < b.end]
        addresses[buffer.name] = first_fit(
            buffer, sorted((addresses[b.name], addresses[b.name] + b.size) for b in live)
        )
        placed.append(buffer)
    peak = max((addresses[b.name] + b.size for b in placed), default=0)
    plan = MemoryPlan({b.name: addresses[b.name] for b in problem.buffers}, peak)
    check_memory_plan(problem, plan)
    return plan


def first_fit(buffer: Buffer, taken: Sequence[tuple[int, int]]) -> int:
    """The lowest aligned address of free cells; ``taken`` are ``(begin, end)``, by ``begin``, and may overlap."""
    address = 0
    for begin, end in taken:
        if address + buffer.size <= begin:
            break
        address = max(address, -(-end // buffer.alignment) * buffer.alignment)
    return address
