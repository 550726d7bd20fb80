"""FlexASR as a target of the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ir_semantics.graph.ir import Node
from ir_semantics.graph.types import TensorType
from rewrites.claims.joints.sequences import LAYER_OPTIONS
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.hardware import Hardware
from rewrites.compiler.offload.places import of_convolution
from rewrites.compiler.offload.takers import Taken, Taker, as_product, as_sums
from rewrites.compiler.offload.unfolding import Unfolding, Uniform, plain_layers
from rewrites.egraph.rewrite import Rewrite

from .operators import LAYER_NORM, LINEAR, OPERATORS, POOLS, RECURRENT
from .places import EXACT, FLEXIBLE
from .rules import CHAIN_RULES, RULES


def _definitions(constants: Constants, flexible: bool) -> Iterator[Rewrite]:
    if flexible:
        yield Unfolding.of("batch_norm", of_convolution, constants)
        yield from plain_layers(constants)
    yield Uniform.of(constants)
    if flexible:
        yield from (d for d in definitions(constants).values() if d.name == "relu")


def _normalisation(node: Node, types: Sequence[TensorType]) -> Taken:
    if types[0].rank != 2 or node.attribute("axes") != (1,) or len(types) != 3:
        return "it is no normalisation of the rows of a matrix with factors and biases"
    return Node(LAYER_NORM.name, (), (("epsilon", node.attribute("epsilon")),), node.type), tuple(types)


def _recurrent(node: Node, types: Sequence[TensorType]) -> str | None:
    attributes = dict(node.attributes)
    if types[0].shape[1] != 1 or attributes["lengths"]:
        return "it is a layer of several sequences, or of sequences with lengths"
    if attributes["output"] == 2:
        return "its result is a state of cells, which FlexASR keeps to itself"
    others = [name for name, value in attributes.items() if value != LAYER_OPTIONS[node.operator].get(name)]
    return f"FlexASR's layer has another {others[0]}" if others else None


_POOLING = "FlexASR pools pairs of rows: the host would bring windows into rows, and move more than it compares"
HARDWARE: Final = Hardware(
    "FlexASR",
    frozenset({"relu", "sigmoid", "tanh", "add", "sub", "mul"}),
    "computes it on sums of products only: alone it would be a product with an identity matrix, a multiplication for "
    "each feature in place of one operation",
    {"exp": " but in its attention, where sums of exponentials must be below 4"},
)
"""Activation units add, multiply, and know three functions; their operands come from their core."""

BACKEND: Final = Backend(
    "flexasr",
    OPERATORS,
    RULES,
    EXACT,
    FLEXIBLE,
    _definitions,
    {
        **as_product(LINEAR, {"activation": "none"}, bias=True),
        **{k: Taker(o, _recurrent) for k, o in RECURRENT.items()},
        "layer_norm": Taker(LAYER_NORM, _normalisation),
        **{name: Taker(POOLS["max"], otherwise=_POOLING) for name in ("max_pool", "reduce_max")},
        **as_sums(LINEAR, {"activation": "none"}, bias=True),
    },
    HARDWARE,
    CHAIN_RULES,
)
"""FlexASR."""
