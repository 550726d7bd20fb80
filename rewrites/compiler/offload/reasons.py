"""What stays on the host, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ir_semantics.graph.ir import Graph, Node, integers_of, pairs_of
from ir_semantics.graph.types import TensorType
from rewrites.targets.flexasr.operators import ACCELERATOR_OPERATORS, LAYER_OPTIONS, mappings_of

from .costs import MOVEMENT, Implementable, reduction_steps

__all__ = ["MOVEMENT_REASON", "LeftOnHost", "left_on_host"]

MOVEMENT_REASON: Final = "data movement is the host's"
"""Why operators stay on the host that compute nothing."""

_TAKERS: Final[Mapping[str, Mapping[str, str]]] = {
    "conv": {"flexasr": "flexasr.linear", "hlscnn": "hlscnn.conv2d", "vta": "vta.dense"},
    "matmul": {"flexasr": "flexasr.linear", "vta": "vta.dense"},
    "lstm": {"flexasr": "flexasr.lstm"},
    "gru": {"flexasr": "flexasr.gru"},
    "rnn": {"flexasr": "flexasr.rnn"},
    "layer_norm": {"flexasr": "flexasr.layer_norm"},
    **{name: {"flexasr": "flexasr.max_pool"} for name in ("max_pool", "reduce_max")},
    **{name: {"flexasr": "flexasr.mean_pool"} for name in ("avg_pool", "mean")},
}
"""By operator and target, the accelerator operator that could do its work."""


_ACTIVATION = "flexasr.linear computes it as the activation of a dense layer, and compile uses nothing for it alone"
_ALONE: Final[Mapping[str, str]] = {
    "relu": f"{_ACTIVATION}: vta_relu and the relu of HLSCNN's convolution are in the catalogue, and compile does not "
    "use them",
    "sigmoid": _ACTIVATION,
    "tanh": _ACTIVATION,
    "add": "compile has no accelerator operator for sums, and does not use vta_add and vta_bias_add of the catalogue",
    "maximum": "compile does not use vta_max and vta_max_imm of the catalogue",
    "minimum": "compile does not use vta_min and vta_min_imm of the catalogue",
}
"""Why operators stay on the host that mappings of the catalogue compute: no accelerator operator stands for these."""


_EVERY_MAPPING: Final = frozenset(name for operator in ACCELERATOR_OPERATORS.values() for name in operator.mappings)


@dataclass(frozen=True)
class LeftOnHost:
    """Nodes of one operator that stay on the host for one reason: how many, and their reduction steps."""

    operator: str
    reason: str
    count: int
    steps: int


def left_on_host(
    graph: Graph,
    targets: Sequence[str],
    implementable: Implementable | None,
    missing: Mapping[str, str],
    flexible: bool,
) -> tuple[LeftOnHost, ...]:
    """The nodes of a compiled graph that no accelerator executes, by operator and reason; most work first."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for node in graph.nodes:
        if node.operator in ("input", "constant") or node.operator in ACCELERATOR_OPERATORS:
            continue
        types = tuple(graph.nodes[o].type for o in node.operands)
        key = node.operator, _reason(node, types, targets, implementable, missing, flexible)
        number, steps = counts.get(key, (0, 0))
        counts[key] = number + 1, steps + reduction_steps(node.operator, types, node.attributes, node.type)
    found = [LeftOnHost(operator, reason, n, steps) for (operator, reason), (n, steps) in counts.items()]
    return tuple(sorted(found, key=lambda h: (-h.steps, -h.count, h.operator, h.reason)))


def _reason(
    node: Node,
    types: Sequence[TensorType],
    targets: Sequence[str],
    implementable: Implementable | None,
    missing: Mapping[str, str],
    flexible: bool,
) -> str:
    if node.operator in MOVEMENT:
        return MOVEMENT_REASON
    if node.operator not in _TAKERS:
        return _ALONE.get(node.operator, "no accelerator operator computes it")
    takers = {t: _TAKERS[node.operator][t] for t in targets if t in _TAKERS[node.operator]}
    if not takers:
        return f"no operator of {' or '.join(targets)} computes it"
    form = _form(node, types)
    if form:
        return form
    able = [name for taker in takers.values() for name in mappings_of(taker, {"activation": "none"})]
    lacking = [f"{name}: {missing[name]}" for name in able if name in missing]
    if lacking:
        return f"without a live certificate it must not be offloaded ({lacking[0]})"
    refused = _refused(node, types, takers, implementable)
    if refused:
        return refused
    rules = [f"{name}: {reason}" for name, reason in missing.items() if name not in _EVERY_MAPPING]
    if rules:
        return f"rules that may have led to an accelerator have no live certificate ({rules[0]})"
    if not flexible:
        return "exact matching found no operator of an accelerator in it"
    if node.operator in ("avg_pool", "max_pool", "mean", "reduce_max"):
        return "FlexASR pools pairs of rows, and bringing it into that form is not possible or moves more data"
    if node.operator in LAYER_OPTIONS:
        return "its first states are not known to be zero"
    return "what was found with an accelerator operator costs no less, or the search ended before"


def _form(node: Node, types: Sequence[TensorType]) -> str:
    """Why the form of a node keeps it from accelerators; empty where it does not."""
    attributes = dict(node.attributes)
    if node.type.dtype != "float32":
        return f"its elements are {node.type.dtype}, and accelerator operators are float32"
    match node.operator:
        case "conv" if attributes["groups"] != 1:
            return "it is a convolution in groups: each would be a program of its own"
        case "conv" if types[0].rank != 4:
            return "it is no two-dimensional convolution"
        case "matmul" if types[0].rank != 2:
            return "it is a batch of products of two computed matrices: each would be a program of its own"
        case "layer_norm" if types[0].rank != 2 or attributes["axes"] != (1,) or len(types) != 3:
            return "it is no normalisation of the rows of a matrix with factors and biases"
        case "lstm" | "gru" | "rnn":
            return _recurrent_form(node.operator, types, attributes)
    return ""


def _recurrent_form(kind: str, types: Sequence[TensorType], attributes: Mapping[str, object]) -> str:
    if types[0].shape[1] != 1 or attributes["lengths"]:
        return "it is a layer of several sequences, or of sequences with lengths"
    if attributes["reverse"]:
        return "it is a layer from the last timestep to the first"
    if attributes["output"]:
        return "its result is a last state and not that of every timestep"
    others = [name for name, value in attributes.items() if value != LAYER_OPTIONS[kind].get(name)]
    return f"FlexASR's layer has another {others[0]}" if others else ""


def _refused(
    node: Node, types: Sequence[TensorType], takers: Mapping[str, str], implementable: Implementable | None
) -> str:
    """What code generation has against the accelerator operators that could take a node; empty for nothing."""
    for taker in takers.values() if implementable is not None else ():
        taken = _as_taken(node, types, taker)
        assert implementable is not None
        reason = None if taken is None else implementable(*taken)
        if reason is not None:
            return f"{taker}: {reason}"
    return ""


def _as_taken(node: Node, types: Sequence[TensorType], taker: str) -> tuple[Node, tuple[TensorType, ...]] | None:
    """The accelerator operator that would take a node, and the types of its operands."""
    activation: tuple[tuple[str, str], ...] = (("activation", "none"),) if taker == "flexasr.linear" else ()
    if node.operator == "matmul" or (node.operator == "conv" and taker != "hlscnn.conv2d"):
        if node.operator == "matmul":
            (rows, inner), outputs = types[0].shape, types[1].shape[1]
        else:
            outputs, inner = types[1].shape[0], math.prod(types[1].shape[1:])
            rows = node.type.elements // outputs
        given = (types[0].with_shape((rows, inner)), types[0].with_shape((outputs, inner)))
        if activation:
            given = (*given, types[0].with_shape((outputs,)))  # type: ignore[assignment]
        return Node(taker, (), activation, types[0].with_shape((rows, outputs))), given
    if node.operator == "conv":
        attributes = dict(node.attributes)
        pads, strides = pairs_of(attributes, "pads"), integers_of(attributes, "strides")
        height, width = (d + before + after for d, (before, after) in zip(types[0].shape[2:], pads, strict=True))
        padded = types[0].with_shape((*types[0].shape[:2], height, width))
        return Node(taker, (), (("stride_h", strides[0]), ("stride_w", strides[1])), node.type), (padded, types[1])
    if node.operator == "layer_norm":
        return Node(taker, (), (("epsilon", node.attribute("epsilon")),), node.type), tuple(types)
    return None
