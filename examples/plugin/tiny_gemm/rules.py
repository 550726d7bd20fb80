"""Rewrite rules with proofs: a product in parts, so that each fits tiny_gemm, and relu before or after its bytes."""

from __future__ import annotations

from typing import Final

from chc.scalar_rules.rule import row, rules_on
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.formats import integer
from ir_semantics.scalars.terms import Scalar, cast, relu, variable
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.operators import concat, slice_, transpose
from ir_semantics.tensors.reductions import matmul
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.rule_set import RuleSet
from rewrites.rules.tensor.words import at_least, sizes

# -- tensors of every size: m rows of k inputs, n outputs, cut at q --------------------------------------------------

M, K, N, Q = sizes("m k n q")
X, W = input_("x", M, K), input_("w", N, K)


def product(x: Tensor, w: Tensor) -> Tensor:
    """x w^T, which is what the accelerator multiplies."""
    return matmul(x, transpose(w, [1, 0]))


FIRST_ROWS, OTHER_ROWS = slice_(X, [0, 0], [Q, K]), slice_(X, [Q, 0], [M, K])
FIRST_OUTPUTS, OTHER_OUTPUTS = slice_(W, [0, 0], [Q, K]), slice_(W, [Q, 0], [N, K])

ROWS_IN_PARTS: Final = TensorRule(
    "tiny_gemm rows in two parts",
    product(X, W),
    concat(0, product(FIRST_ROWS, W), product(OTHER_ROWS, W)),
    le(Q, M),
)
OUTPUTS_IN_PARTS: Final = TensorRule(
    "tiny_gemm outputs in two parts",
    product(X, W),
    concat(1, product(X, FIRST_OUTPUTS), product(X, OTHER_OUTPUTS)),
    le(Q, N),
)
_EXCHANGED = TensorRule(
    "tiny_gemm outputs in two parts exchanged",
    product(X, W),
    concat(1, product(X, OTHER_OUTPUTS), product(X, FIRST_OUTPUTS)),
    both(at_least(1, M, K, Q), le(Q + 1, N)),
    kind=Kind.WRONG,
)

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

RULES: Final = RuleSet("tiny_gemm", scalar=(RELU,), tensor=(ROWS_IN_PARTS, OUTPUTS_IN_PARTS, _EXCHANGED))
