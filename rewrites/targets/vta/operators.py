"""VTA's operators, with an exact meaning: ``vta.dense`` of x [M, K] and w [N, K], float32, is x w^T [M, N].

``vta.linear`` of these and b [N] is ``activation`` (none or relu) of x w^T + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly
from ir_semantics.graph.types import GraphError
from ir_semantics.graph.words import transpose
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import input_
from rewrites.bounds.kernel.readings import ANY
from rewrites.claims.joints.joint import Joint
from rewrites.claims.theorems import machines as bounds
from rewrites.compiler.codegen.interface import Options
from rewrites.compiler.codegen.operators import AcceleratorOperator, require_fit, shapes_of
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.vta import claims
from rewrites.mappings.vta.dense import requantise
from rewrites.mappings.vta.gemm import requantise_relu, requantise_rounded
from rewrites.rules.tensor.boxes import DENSE_IN_BOXES, PRODUCT_IN_BOXES

from .code import Dense, Linear


def _dense(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x w^T."""
    x, w = shapes_of(b, "vta.dense", of, 2, 2)
    require_fit(b, "vta.dense", of, x[1] == w[1], "x [M, K] and w [N, K]")
    return b.add("matmul", of[0], transpose(b, of[1], [1, 0]))


ACTIVATIONS: Final = tuple(claims.GEMMS)
"""What ``vta.linear`` may apply to its result."""


def _linear(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """activation(x w^T + b)."""
    x, w, bias = shapes_of(b, "vta.linear", of, 2, 2, 1)
    require_fit(b, "vta.linear", of, x[1] == w[1] and bias == w[:1], "x [M, K], w [N, K] and b [N]")
    activation = a.get("activation")
    if activation not in ACTIVATIONS:
        raise GraphError(f"the activation of vta.linear must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    product = b.add("matmul", of[0], transpose(b, of[1], [1, 0]))
    total = b.add("add", product, b.add("broadcast", of[2], axes=(1,), shape=(x[0], w[0])))
    return total if activation == "none" else b.add(str(activation), total)


ROWS, INPUTS, OUTPUTS = map(size, ("rows", "features_in", "features_out"))
X, W, B = input_("x", ROWS, INPUTS), input_("w", OUTPUTS, INPUTS), input_("b", OUTPUTS)
TENSORS = {"host_x": X, "host_w": W}
SUM: Final = ("+", ANY, ANY)
"""What a sum and a bias become."""

DENSE: Final = AcceleratorOperator(
    "vta.dense",
    "VTA's dense layer: x w^T.",
    range(2, 3),
    expand=_dense,
    mappings=(claims.GEMM, claims.DENSE),
    code=Dense,
    bounds={claims.GEMM: (bounds.DENSE["none"],)},
    splits=(PRODUCT_IN_BOXES,),
    joints=tuple(
        Joint(mapping, (X, W), {**TENSORS, "host_b": fill(0, OUTPUTS)}, readings={finish: SUM})
        for mapping, finish in ((claims.GEMM, requantise_rounded), (claims.DENSE, requantise))
    ),
)


def _by_activation(attributes: Mapping[str, object], options: Options) -> tuple[MappingClaim, ...]:
    return (claims.GEMMS[str(attributes["activation"])],)


LINEAR: Final = AcceleratorOperator(
    "vta.linear",
    "VTA's dense layer with bias and relu.",
    range(3, 4),
    expand=_linear,
    attributes=frozenset({"activation"}),
    mappings=tuple(claims.GEMMS.values()),
    selected=_by_activation,
    code=Linear,
    bounds={mapping: (bounds.DENSE[activation],) for activation, mapping in claims.GEMMS.items()},
    splits=tuple(DENSE_IN_BOXES[activation] for activation in claims.GEMMS),
    joints=(
        Joint(
            claims.GEMMS["none"],
            (X, W, B),
            {**TENSORS, "host_b": B},
            attributes={"activation": "none"},
            readings={requantise_rounded: SUM},
        ),
        Joint(
            claims.GEMMS["relu"],
            (X, W, B),
            {**TENSORS, "host_b": B},
            attributes={"activation": "relu"},
            readings={requantise_relu: ("rectify", SUM)},
        ),
    ),
)
