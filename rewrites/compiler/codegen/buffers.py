"""Memory plans of compiled graphs: host tensors in one arena.

In a device's memories a program's tensors are where its mapping has them: that they are apart and inside is part of the
size domain, which a call's sizes must satisfy.  Across programs devices keep nothing.
"""

from __future__ import annotations

import numpy as np

from ir_semantics.graph import Graph
from rewrites.compiler.memory.liveness import Step, live_intervals
from rewrites.compiler.memory.plan import plan_memory
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem

ALIGNMENT = 64
"""Host tensors are aligned to this number of bytes: a cache line of common processors."""


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
    return plan_memory(host_problem(graph))


def _name(number: int) -> str:
    return f"%{number}"
