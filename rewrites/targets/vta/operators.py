"""VTA's operators, with an exact meaning: ``vta.dense`` of x [M, K] and w [N, K], float32, is x w^T [M, N].

``vta.linear`` of these and b [N] is ``activation`` (none or relu) of x w^T + b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly
from ir_semantics.graph.words import transpose
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import input_
from rewrites.bounds.kernel.readings import ANY
from rewrites.claims.joints.joint import Joint
from rewrites.claims.theorems import machines as bounds
from rewrites.compiler.codegen.operators import AcceleratorOperator, by_activation, dense_layer, require_fit, shapes_of
from rewrites.mappings.vta import claims
from rewrites.mappings.vta.dense import requantise
from rewrites.mappings.vta.gemm import FINISH
from rewrites.rules.tensor.boxes import DENSE_IN_BOXES, PRODUCT_IN_BOXES

from .code import Dense, Linear


def _dense(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x w^T."""
    x, w = shapes_of(b, "vta.dense", of, 2, 2)
    require_fit(b, "vta.dense", of, x[1] == w[1], "x [M, K] and w [N, K]")
    return b.add("matmul", of[0], transpose(b, of[1], [1, 0]))


ACTIVATIONS: Final = tuple(claims.GEMMS)
"""What ``vta.linear`` may apply to its result."""

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
        for mapping, finish in ((claims.GEMM, FINISH["none"][0]), (claims.DENSE, requantise))
    ),
)

LINEAR: Final = AcceleratorOperator(
    "vta.linear",
    "VTA's dense layer with bias and relu.",
    range(3, 4),
    expand=dense_layer("vta.linear", ACTIVATIONS, ("M", "K", "N")),
    attributes=frozenset({"activation"}),
    mappings=tuple(claims.GEMMS.values()),
    selected=by_activation(claims.GEMMS),
    code=Linear,
    bounds={mapping: (bounds.DENSE[activation],) for activation, mapping in claims.GEMMS.items()},
    splits=tuple(DENSE_IN_BOXES[activation] for activation in claims.GEMMS),
    joints=tuple(
        Joint(
            claims.GEMMS[activation],
            (X, W, B),
            {**TENSORS, "host_b": B},
            attributes={"activation": activation},
            readings={FINISH[activation][0]: reading},
        )
        for activation, reading in (("none", SUM), ("relu", ("rectify", SUM)))
    ),
)
