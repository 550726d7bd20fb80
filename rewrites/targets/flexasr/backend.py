"""FlexASR as a target of the compiler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from ir_semantics.graph.ir import Named, Node
from ir_semantics.graph.types import TensorType
from rewrites.claims.joints.layers import LAYER_OPTIONS
from rewrites.compiler.codegen.interface import CannotOffload
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.hardware import Hardware
from rewrites.compiler.offload.places import of_convolution
from rewrites.compiler.offload.takers import Taken, Taker, as_product, as_sums
from rewrites.compiler.offload.unfolding import (
    MOST_STEPS,
    Normalisation,
    Unfolding,
    Uniform,
    of_plain_layer,
    plain_layers,
    steps,
)
from rewrites.egraph import EGraph, ENode
from rewrites.egraph.rewrite import Rewrite

from .code.recurrent import Recurrent
from .code.rows import LayerNorm
from .operators import LAYER_NORM, LINEAR, OPERATORS, POOLS, RECURRENT, RECURRENT_FROM
from .places import EXACT, FLEXIBLE, NORMALISED
from .rules import CHAIN_RULES, RULES


def _definitions(constants: Constants, flexible: bool) -> Iterator[Rewrite]:
    if flexible:
        yield Unfolding.of("batch_norm", of_convolution, constants)
        yield Unfolding.of("layer_norm", _other_normalisation, constants)
        yield Normalisation.folded(constants)
        yield from plain_layers(constants)
        yield from steps(constants, _other_layer, " that is no program of FlexASR's")
    yield Uniform.of(constants)
    if flexible:
        yield from (d for d in definitions(constants).values() if d.name in ("relu", "reciprocal"))


def _other_layer(egraph: EGraph, node: ENode) -> bool:
    """Whether no program computes a layer, which is not by another one."""
    types = [egraph.type_of(operand) for operand in node.operands]
    attributes = {str(name): value for name, value in node.symbol.attributes}
    tensors = [t for t in types if isinstance(t, TensorType)]
    return of_plain_layer(attributes) == attributes and _lacking(node.symbol.operator, attributes, tensors) != ""


def _lacking(kind: str, attributes: Mapping[str, object], types: Sequence[TensorType]) -> str:
    """Why no program computes one sequence of a layer, or of what it is by definition; empty where one does."""
    attributes = of_plain_layer(attributes)
    others = [name for name, value in attributes.items() if value != LAYER_OPTIONS[kind].get(name)]
    if attributes["output"] == 2:
        return "its result is a state of cells, which FlexASR keeps to itself"
    if others:
        return f"FlexASR's layer has another {others[0]}"
    x = types[0].with_shape((types[0].shape[0], types[0].shape[2]))
    try:
        Recurrent.split(Node(RECURRENT[kind].name, (), (), x), (x, types[1], types[2]))
    except CannotOffload as error:
        return str(error)
    return ""


def _normalisation(node: Node, types: Sequence[TensorType]) -> Taken:
    shape, last = types[0].shape, types[0].rank - 1
    if last not in NORMALISED or node.attribute("axes") != (last,):
        return "it is no normalisation of the rows of matrices"
    rows = types[0].with_shape((math.prod(shape[:-1]), shape[-1]))
    vector = types[0].with_shape(shape[-1:])
    return Node(LAYER_NORM.name, (), (("epsilon", node.attribute("epsilon")),), rows), (rows, vector, vector)


def _other_normalisation(egraph: EGraph, node: ENode) -> bool:
    """Whether the unit can do a layer normalisation that is not of one matrix, or without factors or offsets."""
    symbol, types = node.symbol, [egraph.type_of(operand) for operand in node.operands]
    tensors = [t for t in types if isinstance(t, TensorType)]
    assert isinstance(symbol.type, TensorType), "graphs are of tensors"
    taken = _normalisation(Node(symbol.operator, (), cast(Named, symbol.attributes), symbol.type), tensors)
    if not isinstance(taken, tuple) or (len(tensors) == 3 and tensors[0].rank == 2):
        return False
    try:
        LayerNorm.split(*taken)
    except CannotOffload:
        return False
    return True


def _recurrent(node: Node, types: Sequence[TensorType]) -> str | None:
    lacking, timesteps = _lacking(node.operator, dict(node.attributes), types), types[0].shape[0]
    if lacking and timesteps > MOST_STEPS:
        return f"{lacking}; with {timesteps} timesteps, more than {MOST_STEPS}, it is not written out"
    return lacking or None


_POOLING = "FlexASR pools pairs of rows: the host would bring windows into rows, and move more than it compares"
HARDWARE: Final = Hardware(
    "FlexASR",
    frozenset({"relu", "sigmoid", "tanh", "add", "sub"}),
    "computes it on sums of products only: alone it would be a product with an identity matrix, a multiplication for "
    "each feature in place of one operation",
    {
        "exp": " but in its attention",
        "div": " but in its attention, by divisors modulo 4",
        "mul": " but inside its layers",
    },
)
"""Activation units add, subtract from 1, and know three functions; their operands come from their core.  They multiply
what layers keep inside, gates and states.

The weights of attention would be a softmax, were its divider (``divide_q24``) not of two integer bits: the divisor is a
sum of exponentials, each up to 1, and so 4 or more for rows of more than 3 elements.
"""

BACKEND: Final = Backend(
    "flexasr",
    OPERATORS,
    RULES,
    EXACT,
    FLEXIBLE,
    _definitions,
    {
        **as_product(LINEAR, {"activation": "none"}, bias=True),
        **{k: Taker(o, _recurrent) for k, o in RECURRENT_FROM.items()},
        "layer_norm": Taker(LAYER_NORM, _normalisation),
        **{name: Taker(POOLS["max"], otherwise=_POOLING) for name in ("max_pool", "reduce_max")},
        **as_sums(LINEAR, {"activation": "none"}, bias=True),
    },
    HARDWARE,
    CHAIN_RULES,
)
"""FlexASR."""
