"""Memory plans of compiled graphs: host tensors in one arena, and the regions of every device program.

Plans come from :mod:`rewrites.compiler.memory.plan`, which has each of them checked by
:mod:`rewrites.compiler.memory.plan_checker`.  Where a mapping fixes an address, the plan has a fixed buffer: then the
plan says nothing new, and the check says that regions of a program are apart and inside the memory.  Across programs
devices keep nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ir_semantics.graph import Graph
from rewrites.compiler.memory.liveness import Step, live_intervals
from rewrites.compiler.memory.plan import plan_memory
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem

from .interface import Call
from .operators import AcceleratorOperator

ALIGNMENT = 64
"""Host tensors are aligned to this number of bytes: a cache line of common processors."""
_EFFORT = 100_000  # of the search, a fraction of a second


def host_problem(graph: Graph) -> MemoryProblem:
    """The tensors (in bytes) that a run of a graph keeps: inputs and results of all nodes, named %0, %1, ...

    Constants are not among them: they are never overwritten.  Tensors without elements need no place.
    """
    kept = {i for i, node in enumerate(graph.nodes) if node.operator != "constant" and node.type.elements}
    steps = [
        Step(node.operator, tuple(_name(j) for j in dict.fromkeys(node.operands) if j in kept), (_name(i),))
        for i, node in enumerate(graph.nodes)
        if i in kept and node.operator != "input"
    ]
    inputs = [_name(i) for i in graph.inputs.values() if i in kept]
    outputs = [_name(i) for i in dict.fromkeys(graph.outputs.values()) if i in kept]
    live = live_intervals(steps, inputs, outputs)
    sizes = {_name(i): graph.nodes[i].type.elements * np.dtype(graph.nodes[i].type.dtype).itemsize for i in kept}
    return MemoryProblem(Buffer(name, sizes[name], *times, alignment=ALIGNMENT) for name, times in live.items())


def host_plan(graph: Graph) -> MemoryPlan:
    """Places of these tensors in one arena, checked."""
    return plan_memory(host_problem(graph), _EFFORT)


def _name(number: int) -> str:
    return f"%{number}"


@dataclass(frozen=True)
class DeviceMemory:
    """The regions of a program in one memory of its device, in ``unit``, and their plan, which has been checked."""

    memory: str
    unit: str
    problem: MemoryProblem
    plan: MemoryPlan


def device_memories(operator: AcceleratorOperator, call: Call) -> tuple[DeviceMemory, ...]:
    """The regions that the program of an operator's call uses, by memory.

    Raises ValueError or DoesNotFit where two of them overlap or one leaves its memory, which would be a bug.
    """
    memories = []
    for memory, unit, capacity, regions in operator.programs[call.mapping].regions(call.sizes):
        buffers = [Buffer(name, size, 0, 1, fixed=address) for name, (address, size) in regions.items()]
        problem = MemoryProblem(buffers, capacity)
        memories.append(DeviceMemory(memory, unit, problem, plan_memory(problem)))
    return tuple(memories)
