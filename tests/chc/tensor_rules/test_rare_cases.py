"""Extrema whose candidates are told apart by conditions that hold at few sizes, or at large ones alone."""

from __future__ import annotations

import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import lt
from ir_semantics.tensors.operators import fill, where
from ir_semantics.tensors.reductions import reduce
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.tensor.words import at_least, largest, sizes
from smt_encodings.claims import Equality, Status

(N,) = sizes("n")
X = input_("x", N)
NOTHING = fill(float("-inf"), N)
FAR = 10**6
"""Beyond the sizes of samples."""


def halves(begin: int) -> Tensor:
    """The maximum of what lies before FAR, and of what lies at ``begin`` or after it."""
    before, after = where(lambda i: lt(i, FAR), X, NOTHING), where(lambda i: lt(i, begin), NOTHING, X)
    return largest(reduce("max", before, [0]), reduce("max", after, [0]))


@pytest.mark.parametrize("equality", [Equality.BIT_EXACT, Equality.OVER_REALS])
def test_candidates_where_no_sample_lies_are_covered(equality: Equality) -> None:
    """They were left out: normal forms that are equal were not matched."""
    verdict = decide_tensor_rule(TensorRule("halves", reduce("max", X, [0]), halves(FAR), at_least(1, N), equality))
    assert verdict.status is Status.PROVED, verdict.reason


def test_a_candidate_that_is_missing_where_no_sample_lies_is_not_covered() -> None:
    verdict = decide_tensor_rule(TensorRule("halves", reduce("max", X, [0]), halves(FAR + 1), at_least(1, N)))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the normal forms were not matched"), verdict.reason
