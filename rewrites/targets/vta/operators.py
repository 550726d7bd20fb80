"""VTA's operator, with an exact meaning: ``vta.dense`` of x [M, K] and w [N, K], float32, is x w^T [M, N]."""

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
from rewrites.compiler.codegen.operators import AcceleratorOperator, require_fit, shapes_of
from rewrites.mappings.vta import claims
from rewrites.mappings.vta.dense import requantise
from rewrites.rules.tensor.boxes import PRODUCT_IN_BOXES

from .code import Dense


def _dense(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """x w^T."""
    x, w = shapes_of(b, "vta.dense", of, 2, 2)
    require_fit(b, "vta.dense", of, x[1] == w[1], "x [M, K] and w [N, K]")
    return b.add("matmul", of[0], transpose(b, of[1], [1, 0]))


ROWS, INPUTS, OUTPUTS = map(size, ("rows", "features_in", "features_out"))
X, W = input_("x", ROWS, INPUTS), input_("w", OUTPUTS, INPUTS)
TENSORS = {"host_x": X, "host_w": W, "host_b": fill(0, OUTPUTS)}

DENSE: Final = AcceleratorOperator(
    "vta.dense",
    "VTA's dense layer: x w^T.",
    range(2, 3),
    expand=_dense,
    mappings=(claims.GEMM, claims.DENSE),
    code=Dense,
    bounds={claims.GEMM: (bounds.DENSE,)},
    splits=(PRODUCT_IN_BOXES,),
    joints=tuple(
        Joint(mapping, (X, W), TENSORS, readings={requantise: ("+", ANY, ANY)})
        for mapping in (claims.GEMM, claims.DENSE)
    ),
)
