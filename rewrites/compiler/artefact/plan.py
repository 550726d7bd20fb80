"""The memory plan of a compiled model as JSON: places of the host's tensors.

It is read as it is; :mod:`.contents` checks that it is a correct plan for the graph.
"""

from __future__ import annotations

from typing import Any

from ir_semantics.graph.build import MOST_NODES
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem, Minimality

from .errors import ArtefactError, items, natural, record, text

_LARGEST = 1 << 62


def plan_json(problem: MemoryProblem, plan: MemoryPlan) -> dict[str, Any]:
    """The host's problem and plan as JSON."""
    return {
        "host": {
            "unit": "bytes",
            "capacity": problem.capacity,
            "buffers": [{**vars(b), "address": plan.addresses[b.name]} for b in problem.buffers],
            "peak": plan.peak,
            "lower_bound": plan.lower_bound,
            "minimality": plan.minimality.name,
        }
    }


def plan_value(where: str, value: object) -> tuple[MemoryProblem, MemoryPlan]:
    """The host's problem and plan from JSON; raises ArtefactError for a document of another form."""
    content = record(where, value, ("host",))
    host = record(
        f"{where}: host", content["host"], ("unit", "capacity", "buffers", "peak", "lower_bound", "minimality")
    )
    if host["unit"] != "bytes" or host["capacity"] is not None:
        raise ArtefactError(f"{where}: host tensors must be planned in bytes, without a limit")
    given = items(f"{where}: buffers", host["buffers"])
    if len(given) > MOST_NODES:
        raise ArtefactError(f"{where} must have at most {MOST_NODES} buffers, not {len(given)}")
    buffers, addresses = [], {}
    for item in given:
        buffer = dict(
            record(f"{where}: a buffer", item, ("name", "size", "start", "end", "alignment", "fixed", "address"))
        )
        if buffer["fixed"] is not None:
            raise ArtefactError(f"{where}: the fixed place of a tensor must be None; the planner chooses")
        address = natural(f"{where}: address", buffer.pop("address"), _LARGEST)
        addresses[text(f"{where}: a buffer", buffer["name"])] = address
        try:
            buffers.append(Buffer(**buffer))
        except (TypeError, ValueError) as error:
            raise ArtefactError(f"{where}: {error}") from error
    if text(f"{where}: minimality", host["minimality"]) not in Minimality.__members__:
        raise ArtefactError(f"{where}: minimality must be one of {', '.join(Minimality.__members__)}")
    try:
        problem = MemoryProblem(buffers)
    except ValueError as error:
        raise ArtefactError(f"{where}: {error}") from error
    peak, bound = (natural(f"{where}: {key}", host[key], _LARGEST) for key in ("peak", "lower_bound"))
    return problem, MemoryPlan(addresses, peak, bound, Minimality[host["minimality"]])
