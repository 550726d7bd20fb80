"""What stays on the host, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from ir_semantics.graph.build import nodes_within
from ir_semantics.graph.ir import Graph, Named, Node
from ir_semantics.graph.operator import OPERATORS
from ir_semantics.graph.types import TensorType
from rewrites.compiler.codegen import accelerator_operator
from rewrites.egraph import EGraph, Symbol

from .backend import Backend
from .costs import moves_data, reduction_steps
from .settings import Settings

MOVEMENT_REASON: Final = "data movement is the host's"
"""Why operators stay on the host that compute nothing."""


@dataclass(frozen=True)
class LeftOnHost:
    """Nodes of one operator that stay on the host for one reason: how many, and their reduction steps."""

    operator: str
    reason: str
    count: int
    steps: int


def left_on_host(
    graph: Graph,
    backends: Sequence[Backend],
    missing: Mapping[str, str],
    settings: Settings,
    egraph: EGraph,
) -> tuple[LeftOnHost, ...]:
    """The nodes of a compiled graph that no accelerator executes, by operator and reason; most work first.

    ``missing`` are claims whose rules could not be used, with reasons, and ``egraph`` has the graphs that
    were found.
    """
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    steps_of = _written_out(graph, backends, egraph)
    for node in graph.nodes:
        if node.operator in ("input", "constant") or accelerator_operator(node.operator) is not None:
            continue
        types = tuple(graph.nodes[o].type for o in node.operands)
        reason = _reason(node, types, backends, missing, settings, egraph)
        if reason != MOVEMENT_REASON and (layer := steps_of.get(Symbol(node.operator, node.attributes, node.type))):
            reason += f"; as a step of {layer}"
        key = node.operator, reason
        number, steps = counts.get(key, (0, 0))
        counts[key] = number + 1, steps + reduction_steps(node.operator, types, node.attributes, node.type)
    left = [LeftOnHost(operator, reason, n, steps) for (operator, reason), (n, steps) in counts.items()]
    return tuple(sorted(left, key=lambda h: (-h.steps, -h.count, h.operator, h.reason)))


def _written_out(graph: Graph, backends: Sequence[Backend], egraph: EGraph) -> dict[Symbol, str]:
    """Operators like those within composites whose form keeps them from an accelerator, and that are written out in a
    graph; each with its composite and the reason.
    """
    left, found = graph.operators(), dict[Symbol, str]()
    takers = {k: t for b in reversed(backends) for k, t in b.takers.items() if OPERATORS[k].expand and k not in left}
    for node in (node for number in egraph.classes() if takers for node in egraph.nodes(number)):
        if node.symbol.operator in takers:
            name, attributes = node.symbol.operator, cast(Named, node.symbol.attributes)
            types = tuple(cast(TensorType, egraph.type_of(c)) for c in node.classes)
            form = takers[name].taken(Node(name, (), attributes, cast(TensorType, node.symbol.type)), types)
            if isinstance(form, str):
                for part, _ in nodes_within(name, types, attributes):
                    symbol = Symbol(part.operator, part.attributes, part.type)
                    found.setdefault(symbol, f"{name}, which is written out: {form}")
    return found


def _reason(
    node: Node,
    types: Sequence[TensorType],
    backends: Sequence[Backend],
    missing: Mapping[str, str],
    settings: Settings,
    egraph: EGraph,
) -> str:
    if moves_data(node.operator, tuple(types), node.attributes):
        return MOVEMENT_REASON
    if node.type.dtype != "float32":
        return f"its elements are {node.type.dtype}, and accelerator operators are float32"
    takers = [b.takers[node.operator] for b in backends if node.operator in b.takers]
    if not takers:
        lacking = [b.hardware.reason(node.operator, types, node.attributes) for b in backends if b.hardware is not None]
        return "; ".join(lacking) or f"no operator of {' or '.join(b.name for b in backends)} computes it"
    taken = [(taker.operator, taker.taken(node, types)) for taker in takers]
    fitting = [(operator, result) for operator, result in taken if not isinstance(result, str)]
    if not fitting:
        return next(form for _, form in taken if isinstance(form, str))
    for operator, result in fitting:
        for mapping in operator.mappings_for({} if result is None else dict(result[0].attributes), settings.options):
            joint = operator.joint(mapping)
            for name in (mapping.name, *(() if joint is None else (joint.name, *operator.rests(mapping)))):
                if name in missing:
                    return f"without a live certificate it must not be offloaded ({name}: {missing[name]})"
    for operator, result in fitting:
        refused = None if result is None or settings.implementable is None else settings.implementable(*result)
        if refused is not None:
            return f"{operator.name}: {refused}"
    mappings = {m.name for b in backends for o in b.operators for m in o.mappings}
    rules = [f"{name}: {reason}" for name, reason in missing.items() if name not in mappings]
    if rules and not {operator.name for operator, _ in fitting}.isdisjoint(_found(node, egraph)):
        return f"{takers[0].otherwise}; further rules have no live certificate ({rules[0]})"
    if rules:
        return f"rules that may have led to an accelerator have no live certificate ({rules[0]})"
    return takers[0].otherwise if settings.flexible else "exact matching found no operator of an accelerator in it"


def _found(node: Node, egraph: EGraph) -> set[str]:
    """The accelerator operators that were found to compute such a node, but for data movement behind them."""
    symbol = Symbol(node.operator, node.attributes, node.type)
    waiting = [c for c in egraph.classes() if any(n.symbol == symbol for n in egraph.nodes(c))]
    seen, found = set(waiting), set[str]()
    while waiting:
        for way in egraph.nodes(waiting.pop()):
            if accelerator_operator(way.symbol.operator) is not None:
                found.add(way.symbol.operator)
            types = tuple(cast(TensorType, egraph.type_of(c)) for c in way.classes)
            if moves_data(way.symbol.operator, types, cast(Named, way.symbol.attributes)):
                waiting += [c for c in way.classes if c not in seen]
                seen.update(way.classes)
    return found
