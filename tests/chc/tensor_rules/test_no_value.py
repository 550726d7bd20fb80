"""Operations without a value: where the left side has a value, the right side must have it, too.

What is divided by may be the exponential of an empty maximum, a partial function may cancel, an infinity may be
subtracted from itself.  Each wrong rule stands beside a right one that differs from it in the condition that matters.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.refute import find_counterexample, replay
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.terms import exp, maximum, select, variable
from ir_semantics.scalars.terms import log as logarithm
from ir_semantics.scalars.terms import sqrt as square_root
from ir_semantics.tensors.conditions import TRUE, Condition, both, equal, le, lt
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.operators import broadcast, concat, fill, map_, reshape, slice_, where
from ir_semantics.tensors.reductions import max_pool, reduce
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.tensor.words import add, at_least, div, mul, sizes, sub
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger

N, M, P = sizes("n m p")
INFINITY = float("inf")
X, Y, A = input_("x", N), input_("y", N), input_("a", M)


def rule(left: Tensor, right: Tensor, domain: Condition = TRUE, **more: Any) -> TensorRule:
    return TensorRule("partial", left, right, domain, Equality.OVER_REALS, **more, kind=Kind.WRONG)


def power(x: Tensor) -> Tensor:
    return map_(exp(variable("x")), x=x)


def log(x: Tensor) -> Tensor:
    return map_(logarithm(variable("x")), x=x)


def sqrt(x: Tensor) -> Tensor:
    return map_(square_root(variable("x")), x=x)


def all_of(scalar: Tensor) -> Tensor:
    return broadcast(scalar, [N], [])


def top(x: Tensor) -> Tensor:
    return all_of(reduce("max", x, [0]))


def beside(x: Tensor) -> Tensor:
    """A part that can be evaluated alone, where n = 0."""
    return concat(0, input_("b", 2), x)


def few(start: Index) -> Tensor:
    """The maximum of 40 // (n + 1) elements: of none from n = 40 on."""
    return top(input_("c", 40 // (start + 1)))


IMAGE = input_("x", 1, 1, N)
WINDOWS = {"pads": [(P // 12, P // 12)]}
"""From p = 12 on the first window lies in the pads."""


def pooled() -> Tensor:
    return max_pool(IMAGE, [1], **WINDOWS)


def negative(x: Tensor) -> Tensor:
    return map_(-variable("x"), x=x)


def inverse(x: Tensor) -> Tensor:
    return map_(1 / variable("x"), x=x)


QUOTIENTS = {
    "exp of an empty maximum": (rule(power(sub(X, top(A))), div(power(X), power(top(A)))), at_least(1, M)),
    "exp of a maximum that is empty at large sizes": (
        rule(power(sub(X, few(N))), div(power(X), power(few(N)))),
        lt(N, 40),
    ),
    "exp of windows in pads": (
        rule(power(negative(pooled())), inverse(power(pooled())), at_least(1, N)),
        lt(P, 12),
    ),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_quotient_by_exp_of_an_extremum_that_may_be_empty_is_not_proved(name: str) -> None:
    wrong, _ = QUOTIENTS[name]
    verdict = prove_tensor_rule(wrong, Discharger(timeout=1.0))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the kernel does not accept the derivation")


def test_the_quotient_is_right_where_the_maximum_has_elements() -> None:
    for name in ("exp of an empty maximum", "exp of a maximum that is empty at large sizes"):
        wrong, met = QUOTIENTS[name]
        assert prove_tensor_rule(rule(wrong.left, wrong.right, met)).status is Status.PROVED, name


def test_the_search_sees_a_quotient_by_zero_whatever_stands_above() -> None:
    wrong, _ = QUOTIENTS["exp of an empty maximum"]
    data = {"x": np.array([Fraction(3)], dtype=object), "a": np.empty((0,), dtype=object)}
    found = replay(wrong, {"n": 1, "m": 0}, data)
    assert found is not None
    assert found.difference == "the left side has a value, the right side divides by zero"
    assert decide_tensor_rule(wrong).status is Status.REFUTED


ZERO = fill(0, N)
PARTIAL = {
    "0 times a logarithm": rule(beside(X), beside(add(X, mul(ZERO, log(Y))))),
    "a square root minus itself": rule(beside(X), beside(add(X, sub(sqrt(Y), sqrt(Y))))),
    "a logarithm over itself": rule(beside(X), beside(mul(X, div(log(Y), log(Y))))),
    "a logarithm times a sum of nothing": rule(
        beside(X), beside(add(X, mul(all_of(reduce("sum", input_("e", 0), [0])), log(Y))))
    ),
    "a logarithm times what is 0 somewhere": rule(
        beside(X), beside(add(X, mul(where(lambda i: lt(i, 0), Y, ZERO), log(Y))))
    ),
    "a square root below an infinity": rule(
        beside(power(fill(-INFINITY, N))), beside(power(add(fill(-INFINITY, N), sqrt(Y))))
    ),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_partial_function_that_cancels_is_not_proved(name: str) -> None:
    assert prove_tensor_rule(PARTIAL[name], Discharger(timeout=1.0)).status is Status.UNKNOWN
    found = find_counterexample(PARTIAL[name], 10.0)
    assert found is not None and "the left side has a value, the right side" in str(found)


def infinite(sign: int = 1) -> Tensor:
    return fill(sign * INFINITY, N)


NEVER = {
    "inf - inf": rule(beside(X), beside(add(X, sub(infinite(), infinite())))),
    "0 * inf": rule(beside(X), beside(add(X, mul(ZERO, infinite())))),
    "an empty maximum minus itself": rule(beside(X), beside(sub(add(X, few(N)), few(N)))),
    "0 times an empty maximum": rule(beside(X), beside(add(X, mul(ZERO, few(N))))),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_has_no_value_is_not_proved_under_an_assumption_that_never_holds(name: str) -> None:
    assert prove_tensor_rule(NEVER[name], Discharger(timeout=1.0)).status is Status.UNKNOWN


@pytest.mark.parametrize("name", ["inf - inf", "0 * inf"])
def test_what_never_has_a_value_is_refuted(name: str) -> None:
    verdict = decide_tensor_rule(NEVER[name])
    assert verdict.status is Status.REFUTED
    assert "which has none" in verdict.reason


def test_what_has_a_value_at_small_sizes_is_proved_there() -> None:
    for name in ("an empty maximum minus itself", "0 times an empty maximum"):
        assert prove_tensor_rule(rule(NEVER[name].left, NEVER[name].right, lt(N, 40))).status is Status.PROVED, name


def test_sizes_that_only_a_condition_on_subscripts_has_are_sizes() -> None:
    chosen = rule(where(lambda i: lt(M * i, N), X, Y), where(lambda i: le(N, M * i), Y, X))
    assert chosen.sizes == ("m", "n")
    assert decide_tensor_rule(chosen).status is Status.PROVED
    wrong = rule(chosen.left, where(lambda i: le(N, (M + 1) * i), Y, X))
    assert decide_tensor_rule(wrong).status is Status.REFUTED


def test_a_reshape_that_no_size_allows_is_ill_formed_on_the_right_and_vacuous_on_the_left() -> None:
    empty = input_("x", 2, 0)
    assert decide_tensor_rule(rule(empty, reshape(reshape(empty, 2, 0), 2, 0))).reason.startswith(
        "the right side is not well formed (reshape does not fit its operands at any sizes)"
    )
    assert decide_tensor_rule(rule(reshape(empty, 2, 0), empty)).status is Status.VACUOUS
    flat = rule(reshape(input_("x", 0, 2), 2, 0), input_("y", 2, 0), both(le(0, size("n")), equal(size("n"), 3)))
    assert decide_tensor_rule(flat).status is not Status.ERROR


def test_a_slice_of_what_has_no_value_has_none() -> None:
    """The element that is read is one that the left side has, too."""
    kept = rule(slice_(inverse(X), [0], [N]), inverse(slice_(X, [0], [N])))
    assert prove_tensor_rule(kept).status is Status.PROVED


# -- infinities that cancel in part --------------------------------------------------------------------------

z = variable("z")
FAR = where(lambda i: equal(i, 613), fill(-INFINITY, N), X)
"""-inf at one place, which no search over small sizes comes to."""


@pytest.mark.parametrize(
    "right",
    [
        map_(z * 2 - z, z=FAR),
        map_(z * 3 - z * 2, z=FAR),
        map_(maximum(z, z * 2 - z), z=FAR),
    ],
    ids=["2z - z", "3z - 2z", "max(z, 2z - z)"],
)
def test_an_infinity_that_cancels_in_part_has_no_value(right: Tensor) -> None:
    assert decide_tensor_rule(rule(FAR, right), Discharger(timeout=5)).status is not Status.PROVED
    data = {"x": np.array([Fraction(0)] * 614, dtype=object)}
    assert replay(rule(FAR, right), {"n": 614}, data) is not None


def test_a_finite_number_may_cancel_in_part() -> None:
    assert prove_tensor_rule(rule(X, map_(z * 2 - z, z=X))).status is Status.PROVED


def test_exponentials_of_what_cancels_in_part() -> None:
    right = map_(exp(z * 2) * exp(-z), z=FAR)
    assert decide_tensor_rule(rule(power(FAR), right), Discharger(timeout=5)).status is not Status.PROVED
    assert prove_tensor_rule(rule(power(X), map_(exp(z * 2) * exp(-z), z=X))).status is Status.PROVED


# -- choices by data -----------------------------------------------------------------------------------------


def test_what_is_not_chosen_need_not_have_a_value() -> None:
    """ONNX's Where gives x where y is 0; a quotient by y must not follow from the other operand."""
    guarded = select(variable("y").equals(0), variable("x"), variable("x") / variable("y"))
    left = map_(guarded, x=X, y=Y)
    wrong = map_(guarded * (variable("y") / variable("y")), x=X, y=Y)
    verdict = decide_tensor_rule(rule(left, wrong), Discharger(timeout=5))
    assert verdict.status is Status.REFUTED
    assert "divides by zero" in verdict.reason
    guard = variable("y").equals(0)
    kept = map_(select(guard, variable("x"), variable("x") * 2) + 0, x=X, y=Y)
    assert prove_tensor_rule(rule(map_(select(guard, z, z * 2), y=Y, z=X), kept)).status is Status.PROVED
