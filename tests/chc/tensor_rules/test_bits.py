"""Runs of bit-exact rules on binary32: NaN and -0.0 tell sides apart that are equal on numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from chc.tensor_rules.refute import replay
from chc.tensor_rules.rule import Kind, TensorRule
from chc.tensor_rules.runs import BITS, survey
from ir_semantics.scalars.terms import constant, maximum, select, variable
from ir_semantics.tensors.index import size
from ir_semantics.tensors.numbers import Binary32, Undefined
from ir_semantics.tensors.operators import fill, map_
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.claims.subjects.tensor import TensorSubject
from smt_encodings.claims import Equality

N = size("n")
X, Y = input_("x", N), input_("y", N)
x, y = variable("x"), variable("y")

WRONG: dict[str, tuple[Tensor, Tensor]] = {
    "0 is added": (map_(x + 0, x=X), X),
    "0 is subtracted from": (map_(0 - x, x=X), map_(-x, x=X)),
    "equal to itself": (map_(select(x.equals(x), constant(1), constant(0)), x=X), fill(1, N)),
    "the larger one by comparison": (map_(select(x < y, y, x), x=X, y=Y), map_(maximum(x, y), x=X, y=Y)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_nan_or_a_negative_zero_refutes_survives_no_runs(name: str) -> None:
    rule = TensorRule(name, *WRONG[name], kind=Kind.WRONG)
    found = survey(rule)
    assert found.difference is not None and found.shown
    told = TensorSubject(name, rule).shown(found.difference)  # type: ignore[arg-type]
    again = TensorSubject(name, rule).replayed(told.document)
    assert again is not None and again.summary == told.summary
    over_reals = TensorRule(name, *WRONG[name], equality=Equality.OVER_REALS)
    assert survey(over_reals).difference is None


def test_data_of_bits_have_both() -> None:
    assert any(isinstance(v, float) and math.isnan(v) for v in BITS)
    assert any(v == 0 and math.copysign(1.0, v) < 0 for v in BITS)


@pytest.mark.parametrize("value", [math.nan, -0.0])
def test_only_rules_about_bits_are_about_nan_and_negative_zeros(value: float) -> None:
    data = {"x": np.array([value], dtype=object)}
    for equality, words in ((Equality.OVER_REALS, "fractions"), (Equality.UP_TO_REDUCTION_ORDER, "fractions or infin")):
        rule = TensorRule("r", X, X, equality=equality)
        with pytest.raises(ValueError, match=f"the input x of r must be of {words}"):
            replay(rule, {"n": 1}, data)
    with pytest.raises(ValueError, match=r"must be of fractions, infinities, NaN or -0\.0, not 0\.5$"):
        replay(TensorRule("r", X, X), {"n": 1}, {"x": np.array([0.5], dtype=object)})
    assert replay(TensorRule("r", X, X), {"n": 1}, data) is None


def test_literals_are_numbers_of_binary32() -> None:
    numbers = Binary32()
    assert numbers.literal(Fraction(1, 4)) == 0.25 and math.isnan(numbers.literal(math.nan))
    for value in (Fraction(1, 3), Fraction(1 << 200), 0.1):
        with pytest.raises(Undefined, match="is no number of binary32"):
            numbers.literal(value)
    assert numbers.apply("div", [1.0, 3.0]) == float(np.float32(1) / np.float32(3))
    with pytest.raises(Undefined, match="erf is not evaluated on binary32"):
        numbers.apply("erf", [1.0])
