"""Memory plans of compiled graphs: host tensors in one arena, and the regions of every device program.

Plans come from :mod:`rewrites.compiler.memory.plan`, which has each of them checked by
:mod:`rewrites.compiler.memory.plan_checker`.  Where a mapping fixes an address, the plan has a fixed buffer: then the
plan says nothing new, and the check says that regions of a program are apart and inside the memory.  Across programs
devices keep nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from accel_models.flexasr.layout import LANES, LARGE_VECTORS, SMALL_VECTORS
from accel_models.hlscnn.layout import LANES as CHANNELS
from accel_models.hlscnn.layout import SOC_ENTRIES, SPAD_ENTRIES
from ir_semantics.graph import Graph
from rewrites.compiler.memory.liveness import Step, live_intervals
from rewrites.compiler.memory.plan import plan_memory
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem
from rewrites.mappings.vta.gemm import ROOM, WEIGHTS

from .interface import Call

__all__ = ["ALIGNMENT", "DeviceMemory", "device_memories", "host_plan", "host_problem"]

ALIGNMENT = 64
"""Host tensors begin at multiples of so many bytes: a cache line of common processors."""
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


def device_memories(call: Call) -> tuple[DeviceMemory, ...]:
    """The regions that a call's program uses, by memory.

    Raises ValueError or DoesNotFit where two of them overlap or one leaves its memory, which would be a bug.
    """
    kind = next(kind for kind in _REGIONS if call.mapping.startswith(kind))
    found = []
    for memory, unit, capacity, regions in _REGIONS[kind](call.sizes):
        buffers = [Buffer(name, size, 0, 1, fixed=address) for name, (address, size) in regions.items()]
        problem = MemoryProblem(buffers, capacity)
        found.append(DeviceMemory(memory, unit, problem, plan_memory(problem)))
    return tuple(found)


_Regions = list[tuple[str, str, int, dict[str, tuple[int, int]]]]
"""For each memory its name, its unit, how many there are, and the address and size of each region."""


def _layer(sizes: Mapping[str, int]) -> _Regions:
    rows = LANES * -(-sizes["T"] // LANES)
    regions = {"x": (0, rows * sizes["ni"]), "y": (sizes["base"], rows * 4 * sizes["no"])}
    return [("FlexASR large buffer", "vectors of 16 bytes", LARGE_VECTORS, regions)]


def _rows(sizes: Mapping[str, int]) -> _Regions:
    rows = LANES * -(-sizes["T"] // LANES)
    regions = {"x and y": (sizes["base"], rows * sizes["nv"])}
    return [("FlexASR large buffer", "vectors of 16 bytes", LARGE_VECTORS, regions)]


def _norm(sizes: Mapping[str, int]) -> _Regions:
    small = {name: (sizes[f"base_{name}"], sizes["nv"]) for name in ("gamma", "beta")}
    return [*_rows(sizes), ("FlexASR small buffer", "vectors of 16 bytes", SMALL_VECTORS, small)]


def _convolution(sizes: Mapping[str, int], narrow: bool = False) -> _Regions:
    blocks, groups = (-(-sizes[name] // CHANNELS) for name in ("c", "k"))
    pixels = blocks * sizes["h"] * sizes["w"]
    weights = sizes["k"] * blocks * sizes["kh"] * sizes["kw"]
    if narrow:
        weights = -(-weights // 2)
    # the hardware with weights of 8 bits stores a plane as large as the input, the other one that of the outputs
    plane = sizes["h"] * sizes["w"] if narrow else sizes["oh"] * sizes["ow"]
    unit = "entries of 16 bytes"
    return [
        ("HLSCNN SoC memory", unit, SOC_ENTRIES, {"x": (0, pixels), "w": (pixels, weights)}),
        ("HLSCNN SPAD0", unit, SPAD_ENTRIES, {"w": (0, weights)}),
        ("HLSCNN SPAD1", unit, SPAD_ENTRIES, {"y": (0, groups * plane)}),
    ]


def _gemm(sizes: Mapping[str, int]) -> _Regions:
    m, n, k = sizes["m"], sizes["n"], sizes["kk"]
    found: dict[str, tuple[int, int]] = {}
    address = 0
    for name, size in (("micro-ops", WEIGHTS), ("w", 16 * n * k), ("bias", 4 * n), ("x", m * k), ("y", m * n)):
        found[name] = address, size
        address += size
    return [("VTA DRAM", "vectors of 16 bytes", ROOM + WEIGHTS, found)]


_REGIONS: Mapping[str, Callable[[Mapping[str, int]], _Regions]] = {
    "flexasr_linear": _layer,
    "flexasr_rnn": _layer,
    "flexasr_gru": _layer,
    "flexasr_lstm": _layer,
    "flexasr_layernorm": _norm,
    "flexasr_": _rows,
    "hlscnn_conv2d_8bit": partial(_convolution, narrow=True),
    "hlscnn_conv2d": _convolution,
    "vta_gemm": _gemm,
}
"""The regions of a mapping's program, by the beginning of its name; the first that fits counts."""
