"""What the compiler knows of tiny_gemm: products of float32 matrices become calls of the proved mapping.

x w^T is computed on bytes: x is close to X 2^s with X in -127 .. 127, and so is w; the accelerator adds up products of
these integers, and shifts the sums right to bytes of y.  The bias of its program makes that shift round to the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly
from ir_semantics.graph.words import transpose
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import input_
from rewrites.bounds.kernel.readings import ANY
from rewrites.claims.joints.joint import Joint
from rewrites.compiler.codegen.formats import check_scale, greatest, power_above, range_of, unscale
from rewrites.compiler.codegen.interface import (
    Bounds,
    Call,
    CannotOffload,
    Executed,
    Implementation,
    Options,
    Part,
    Ranges,
    Reals,
    Tensors,
)
from rewrites.compiler.codegen.operators import AcceleratorOperator, require_fit, shapes_of
from rewrites.compiler.codegen.parts import equal_parts, fits, flat, most_that_fit
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.places import PRODUCTS, WEIGHTS
from rewrites.compiler.offload.rules import AcceleratorRule
from rewrites.compiler.offload.takers import as_product
from rewrites.egraph.pattern import operator

from .mapping import DENSE_LAYER, ir_requantise
from .rules import PRODUCT_IN_BOXES

LARGEST = 127
MOST_SHIFT = 31


def _scale(magnitude: float) -> int:
    """An exponent with which numbers of this magnitude are at most 127 * 2^exponent."""
    return power_above(magnitude / LARGEST) if magnitude else 0


class Dense(Implementation):
    """``tiny_gemm.dense``: a call of the mapping for each part.

    Its quantisation: ``scale_x`` and ``scale_w`` (exponents of two), and ``shift``.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w")

    # -- which calls -----------------------------------------------------------------------------------

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> tuple[list[Part], list[Part]]:
        """Parts of x and of w that fit together; raises CannotOffload where not even a row of each does."""
        (rows, inputs), (outputs, _) = types[0].shape, types[1].shape
        if not rows or not inputs or not outputs:
            raise CannotOffload("tiny_gemm.dense has a tensor without elements, and the mapping is for 1 and more")
        if not fits(DENSE_LAYER, 1, inputs, 1):
            raise CannotOffload(f"tiny_gemm.dense has {inputs} inputs, and a scratchpad does not hold as many")
        xs = equal_parts(rows, most_that_fit(rows, lambda m: fits(DENSE_LAYER, m, inputs, 1)))
        length = xs[0][1]  # of a part, in rows
        ws = equal_parts(outputs, most_that_fit(outputs, lambda n: fits(DENSE_LAYER, length, inputs, n)))
        return [(part, (0, inputs)) for part in xs], [(part, (0, inputs)) for part in ws]

    def _calls(self) -> Sequence[Call]:
        xs, ws = self.split(self.node, self.types)
        scales = {"x": self.quantisation["scale_x"], "w": self.quantisation["scale_w"]}
        for what, scale in {**scales, "the result": sum(scales.values()) + self.quantisation["shift"]}.items():
            check_scale(scale, what)
        rules = (PRODUCT_IN_BOXES,) if len(xs) * len(ws) > 1 else ()
        calls = []
        for x in xs:
            for w in ws:
                (row, row_end), (_, inputs) = x
                (output, output_end), _ = w
                sizes = {"m": row_end - row, "k": inputs, "n": output_end - output, "shift": self.quantisation["shift"]}
                calls.append(Call(DENSE_LAYER, sizes, {"x": x, "w": w, "y": (x[0], w[0])}, rules))
        return calls

    # -- number formats --------------------------------------------------------------------------------

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        return {"x": greatest(operands[0]), "w": greatest(operands[1]), "y": greatest(result)}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The finest bytes for these ranges, and the least shift at which results fit a byte."""
        x, y = (_scale(range_of(ranges, name) * options.margin) for name in "xy")
        w = _scale(range_of(ranges, "w"))
        shift = min(max(y - x - w, 0), MOST_SHIFT)
        return {"scale_x": x, "scale_w": w, "shift": shift}

    def _codes(self, name: str, operand: Reals) -> NDArray[np.int8]:
        return np.clip(np.rint(self._moved(name, operand)), -LARGEST, LARGEST).astype(np.int8)

    def _values(self, name: str, codes: NDArray[np.int8]) -> Reals:
        return unscale(codes.astype(np.float64), self.quantisation[f"scale_{name}"])

    def _beyond(self, name: str, operand: Reals) -> int:
        return int(np.count_nonzero(np.abs(np.rint(self._moved(name, operand))) > LARGEST))

    def _moved(self, name: str, operand: Reals) -> Reals:
        if not np.isfinite(operand).all():
            raise ValueError("Numbers to quantise must be finite, not NaN or infinite; remove them from the tensor")
        return unscale(operand, -self.quantisation[f"scale_{name}"])

    # -- data before and after a call ------------------------------------------------------------------

    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        tensors = {f"host_{name}": flat(c, call.parts[name]) for name, c in codes.items()}
        if "w" in codes:
            shift = self.quantisation["shift"]
            # half a unit of what is cut, so that it is rounded; to the joint, which is over real numbers, this is 0
            tensors["host_b"] = np.full((1, call.sizes["n"]), 1 << (shift - 1) if shift else 0, np.int32)
        return tensors

    def _result(self, outputs: Sequence[Tensors]) -> Reals:
        result = np.zeros((len(outputs[0]["host_y"]), *self.node.type.shape))
        for call, tensors in zip(self.calls, outputs, strict=True):
            (row, row_end), (output, output_end) = call.parts["y"]
            values = tensors["host_y"].view(np.int8).reshape(-1, row_end - row, output_end - output)
            inside = result[:, row:row_end, output:output_end]  # a part may end beyond the tensor
            inside[...] = values[:, : inside.shape[1], : inside.shape[2]]
        q = self.quantisation
        return unscale(result, q["scale_x"] + q["scale_w"] + q["shift"])

    def cut(self, executed: Executed, exact: Reals) -> int:
        """Results that are not in -128 .. 127 when they were shifted."""
        q = self.quantisation
        scaled = unscale(exact, -(q["scale_x"] + q["scale_w"] + q["shift"]))
        shifted = np.floor(scaled + (0.5 if q["shift"] else 0.0))
        return int(np.count_nonzero((shifted < -LARGEST - 1) | (shifted > LARGEST)))

    def bounds(self, executed: Executed) -> Bounds:
        """None: there is no theorem about how far bytes are from real numbers here."""
        return Bounds(None, None, "none is proved for tiny_gemm")


def _product(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """What the operator means: x w^T."""
    x, w = shapes_of(b, "tiny_gemm.dense", of, 2, 2)
    require_fit(b, "tiny_gemm.dense", of, x[1] == w[1], "x [M, K] and w [N, K]")
    return b.add("matmul", of[0], transpose(b, of[1], [1, 0]))


ROWS, INPUTS, OUTPUTS = map(size, ("rows", "features_in", "features_out"))
X, W = input_("x", ROWS, INPUTS), input_("w", OUTPUTS, INPUTS)
JOINT: Final = Joint(
    DENSE_LAYER,
    operands=(X, W),
    tensors={"host_x": X, "host_w": W, "host_b": fill(0, OUTPUTS)},
    readings={ir_requantise: ("+", ANY, ANY)},
)
"""How the mapping is called for the operator: ilaverify proves that it computes what the operator means, above."""

OPERATOR: Final = AcceleratorOperator(
    "tiny_gemm.dense",
    "A product with transposed weights on tiny_gemm: x w^T.",
    range(2, 3),
    expand=_product,
    mappings=(DENSE_LAYER,),
    code=Dense,
    splits=(PRODUCT_IN_BOXES,),
    joints=(JOINT,),
)
RULE: Final = AcceleratorRule(
    "product with transposed weights on tiny_gemm",
    operator("matmul", "x", operator("transpose", "w", attributes={"permutation": (1, 0)})),
    operator(OPERATOR.name, "x", "w", attributes={}),
)

BACKEND: Final = Backend(
    "tiny_gemm",
    operators=(OPERATOR,),
    rules=(RULE,),
    exact=WEIGHTS,
    flexible={**WEIGHTS, **PRODUCTS},
    definitions=lambda constants, flexible: (),
    takers=as_product(OPERATOR, {}),
)
