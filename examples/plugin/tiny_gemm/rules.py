"""Rewrite rules with proofs: a product in parts, so that each fits tiny_gemm, and relu before or after its bytes."""

from __future__ import annotations

from typing import Final

from chc.scalar_rules.rule import row, rules_on
from chc.tensor_rules.rule import Kind
from ir_semantics.scalars.formats import integer
from ir_semantics.scalars.terms import Scalar, cast, relu, variable
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.index import Index, index
from ir_semantics.tensors.operators import transpose
from ir_semantics.tensors.reductions import matmul
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.rule_set import RuleSet
from rewrites.rules.tensor.boxes import BoxRule, in_boxes
from rewrites.rules.tensor.words import sizes

# -- tensors of every size: m rows of k inputs, n outputs ------------------------------------------------------------

M, K, N = sizes("m k n")
ROW, ROW_END, ROWS = sizes("row row_end rows")
FIRST, END, OUTPUTS = sizes("first end outputs")
X, W = input_("x", M, K), input_("w", N, K)
INPUTS = index(0), K


def product(x: Tensor, w: Tensor) -> Tensor:
    """x w^T, which is what the accelerator multiplies."""
    return matmul(x, transpose(w, [1, 0]))


def of_outputs(name: str, first: Index, kind: Kind = Kind.VALID) -> BoxRule:
    """The rule that rows and outputs are a product of rows of x with those of w from ``first`` on.

    Boxes of x and w may end behind the last row, where zeros are.
    """
    rows, outputs = (ROW, ROW + ROWS), (first, first + OUTPUTS)
    kept = (ROW, ROW_END), (FIRST, END)
    within = [le(ROW, ROW_END), le(ROW_END, M), le(ROW_END, ROW + ROWS)]
    within += [le(FIRST, END), le(END, N), le(END, FIRST + OUTPUTS)]
    boxes = (rows, INPUTS), (outputs, INPUTS), kept
    return in_boxes(name, product, (X, W), boxes, ([ROWS, 0], [OUTPUTS, 0]), domain=both(*within), kind=kind)


PRODUCT_IN_BOXES: Final = of_outputs("tiny_gemm a box of a product", FIRST)
_FIRST_OUTPUTS = of_outputs("tiny_gemm a box of a product with the first outputs", index(0), Kind.WRONG)

# -- numbers: accumulators of 32 bits, bytes -------------------------------------------------------------------------

WORD, BYTE, SATURATING = integer(32), integer(8), integer(8, overflow="saturate")
ACC = variable("acc", WORD)
rule = rules_on(WORD)


def saturated(acc: Scalar) -> Scalar:
    """The nearest byte."""
    return cast(cast(acc, SATURATING), BYTE)


RELU = row(
    "tiny_gemm relu of bytes",
    rule("tiny_gemm relu of low bytes", relu(cast(ACC, BYTE)), cast(relu(ACC), BYTE), WORD, {"acc": 200}),
    rule("tiny_gemm relu of saturated bytes", relu(saturated(ACC)), saturated(relu(ACC)), WORD),
    note="Relu may follow requantisation or go before it because the accelerator saturates.",
)

RULES: Final = RuleSet("tiny_gemm", scalar=(RELU,), tensor=(PRODUCT_IN_BOXES, _FIRST_OUTPUTS))
