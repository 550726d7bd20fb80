"""VTA as a target of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.directed import Suggestion
from rewrites.compiler.offload.hardware import Hardware
from rewrites.compiler.offload.places import (
    DENSE_LAYERS,
    NORMALISATION,
    PRODUCTS,
    WEIGHTS,
    at,
    of_convolution,
    unbiased,
)
from rewrites.compiler.offload.reductions import MEANS, inner_parts
from rewrites.compiler.offload.rules import PRODUCT, AcceleratorRule, dense_layer_rule
from rewrites.compiler.offload.takers import as_product, as_sums, of_steps
from rewrites.compiler.offload.unfolding import Unfolding, steps
from rewrites.egraph import EGraph, ENode
from rewrites.egraph.pattern import operator
from rewrites.egraph.rewrite import Rewrite
from rewrites.rules.tensor.products import ZERO_BIAS

from .code import LANES, MOST_VECTORS
from .operators import ACTIVATIONS, DENSE, LINEAR


def _definitions(constants: Constants, flexible: bool) -> Iterator[Rewrite]:
    if flexible:
        yield Unfolding.of("batch_norm", of_convolution, constants)
        yield from (d for d in definitions(constants).values() if d.name == "relu")
    yield from steps(constants)


def _rectified(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A product that a relu is of: the ALU has relu behind a bias."""
    for product in egraph.nodes(node.operands[0]):
        if product.symbol.operator == "matmul":
            yield from unbiased(egraph, product)


RULES: Final = (
    AcceleratorRule("product with transposed weights on VTA", PRODUCT, operator(DENSE.name, "x", "w", attributes={})),
    *(dense_layer_rule(LINEAR.name, activation, "VTA") for activation in ACTIVATIONS),
)
"""Rules from the tensor IR."""

HARDWARE: Final = Hardware(
    "VTA",
    frozenset({"add", "sub", "maximum", "minimum"}),
    "computes it on integers, in its ALU: the host would round each operand and read each result, which costs it more "
    "than the operation",
    {"mul": " on the boards, where its MUL changes nothing"},
)
"""The ALU on accumulators; a difference is a sum with a negated operand."""

BACKEND: Final = Backend(
    "vta",
    (DENSE, LINEAR),
    RULES,
    WEIGHTS,
    {
        **WEIGHTS,
        **PRODUCTS,
        **NORMALISATION,
        **DENSE_LAYERS,
        ZERO_BIAS: at("relu", _rectified, backwards=True),
        **MEANS,
        **inner_parts(lambda: MOST_VECTORS * LANES),
    },
    _definitions,
    {**as_product(DENSE, {}), **as_sums(DENSE, {}), **of_steps(DENSE)},
    HARDWARE,
)
"""VTA."""
