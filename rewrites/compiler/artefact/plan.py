"""The memory plan of a compiled model as JSON: places of the host's tensors.

It is read as it is; :mod:`.contents` checks that it is a correct plan for the graph.
"""

from __future__ import annotations

from typing import Any

from ir_semantics.graph.build import MOST_NODES
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem

from .errors import ArtefactError, items, natural, record, text

_LARGEST = 1 << 62


def plan_json(problem: MemoryProblem, plan: MemoryPlan) -> dict[str, Any]:
    """The host's problem and plan as JSON."""
    return {
        "host": {
            "unit": "bytes",
            "buffers": [{**vars(b), "address": plan.addresses[b.name]} for b in problem.buffers],
            "peak": plan.peak,
        }
    }


def plan_value(where: str, value: object) -> tuple[MemoryProblem, MemoryPlan]:
    """The host's problem and plan from JSON; raises ArtefactError for a document of another form."""
    content = record(where, value, ("host",))
    host = record(f"{where}: host", content["host"], ("unit", "buffers", "peak"))
    if host["unit"] != "bytes":
        raise ArtefactError(f"{where}: host tensors must be planned in bytes")
    entries = items(f"{where}: buffers", host["buffers"])
    if len(entries) > MOST_NODES:
        raise ArtefactError(f"{where} must have at most {MOST_NODES} buffers, not {len(entries)}")
    buffers, addresses = [], {}
    for item in entries:
        buffer = dict(record(f"{where}: a buffer", item, ("name", "size", "start", "end", "alignment", "address")))
        address = natural(f"{where}: address", buffer.pop("address"), _LARGEST)
        addresses[text(f"{where}: a buffer", buffer["name"])] = address
        try:
            buffers.append(Buffer(**buffer))
        except (TypeError, ValueError) as error:
            raise ArtefactError(f"{where}: {error}") from error
    try:
        problem = MemoryProblem(buffers)
    except ValueError as error:
        raise ArtefactError(f"{where}: {error}") from error
    return problem, MemoryPlan(addresses, natural(f"{where}: peak", host["peak"], _LARGEST))
