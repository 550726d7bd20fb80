"""VTA as a target of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ir_semantics.graph.types import TensorType
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.places import NORMALISATION, PRODUCTS, WEIGHTS, of_convolution
from rewrites.compiler.offload.reductions import MEANS, inner_parts
from rewrites.compiler.offload.rules import AcceleratorRule
from rewrites.compiler.offload.takers import as_product
from rewrites.compiler.offload.unfolding import Unfolding
from rewrites.egraph import EGraph, ENode
from rewrites.egraph.pattern import operator
from rewrites.egraph.rewrite import Rewrite

from .code import LANES, MOST_VECTORS
from .operators import DENSE

MOST_STEPS: Final = 512
"""Timesteps of recurrent layers that are written out for VTA, some thirty nodes each; a bound of this code."""


def _few_steps(egraph: EGraph, node: ENode) -> bool:
    """Whether a recurrent layer has few timesteps."""
    of = egraph.type_of(node.operands[0])
    return isinstance(of, TensorType) and of.shape[0] <= MOST_STEPS


def _definitions(constants: Constants, flexible: bool) -> Iterator[Rewrite]:
    if flexible:
        yield Unfolding.of("batch_norm", of_convolution, constants)
    yield from (Unfolding.of(name, _few_steps, constants) for name in ("lstm", "gru", "rnn"))


_RULE: Final = AcceleratorRule(
    "product with transposed weights on VTA",
    operator("matmul", "x", operator("transpose", "w", attributes={"permutation": (1, 0)})),
    operator(DENSE.name, "x", "w", attributes={}),
)

BACKEND: Final = Backend(
    "vta",
    (DENSE,),
    (_RULE,),
    WEIGHTS,
    {**WEIGHTS, **PRODUCTS, **NORMALISATION, **MEANS, **inner_parts(lambda: MOST_VECTORS * LANES)},
    _definitions,
    as_product(DENSE, {}),
    {
        "relu": "compile does not use vta_relu of the catalogue",
        "add": "compile has no operator of VTA for sums, and does not use vta_add and vta_bias_add of the catalogue",
        "maximum": "compile does not use vta_max and vta_max_imm of the catalogue",
        "minimum": "compile does not use vta_min and vta_min_imm of the catalogue",
    },
)
"""VTA."""
