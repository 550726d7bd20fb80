"""Memory plans of a compiled model as JSON: places of the host's tensors, and the regions of every program.

The regions of programs follow from the calls, and must be equal to those computed again.  The host's plan is read as it
is; :mod:`.contents` checks that it is a correct plan for the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ila_lang import canonical_text
from ir_semantics.graph.build import MOST_NODES
from rewrites.compiler.codegen import Implementation, device_memories, operator_of
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem, Minimality

from .errors import ArtefactError, items, natural, record, text

_LARGEST = 1 << 62


def plans_json(
    problem: MemoryProblem, plan: MemoryPlan, implementations: Mapping[int, Implementation]
) -> dict[str, Any]:
    """Both kinds of plans as JSON."""
    return {"host": {"unit": "bytes", **_plan_json(problem, plan)}, "devices": _devices_json(implementations)}


def _plan_json(problem: MemoryProblem, plan: MemoryPlan) -> dict[str, Any]:
    return {
        "capacity": problem.capacity,
        "buffers": [{**vars(b), "address": plan.addresses[b.name]} for b in problem.buffers],
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "minimality": plan.minimality.name,
    }


def _devices_json(implementations: Mapping[int, Implementation]) -> list[dict[str, Any]]:
    return [
        {
            "node": number,
            "program": k,
            "memories": [
                {
                    "memory": memory.memory,
                    "unit": memory.unit,
                    "capacity": memory.problem.capacity,
                    "regions": {b.name: [memory.plan.addresses[b.name], b.size] for b in memory.problem.buffers},
                }
                for memory in device_memories(operator_of(implementation), call)
            ],
        }
        for number, implementation in implementations.items()
        for k, call in enumerate(implementation.calls)
    ]


def plans_value(
    where: str, value: object, implementations: Mapping[int, Implementation]
) -> tuple[MemoryProblem, MemoryPlan]:
    """The host's problem and plan from JSON.

    Raises ArtefactError for a document of another form, and where regions of programs are not those of the calls.
    """
    content = record(where, value, ("host", "devices"))
    if canonical_text(content["devices"]) != canonical_text(_devices_json(implementations)):
        raise ArtefactError(f"{where}: regions in devices must be those of the calls' programs; they are others")
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
