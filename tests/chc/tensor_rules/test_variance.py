"""A variance in two forms, with roots: sums that differ in names of variables, and divisors that are roots."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import sqrt, variable
from ir_semantics.tensors.operators import broadcast, map_
from ir_semantics.tensors.reductions import mean as mean_of
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.tensor.words import add, at_least, div, mul, scale, sizes, sub
from smt_encodings.claims import Equality, Status, Verdict
from smt_encodings.discharge import Discharger

(N,) = sizes("n")
X = input_("x", N)


def root(x: Tensor) -> Tensor:
    return map_(sqrt(variable("x")), x=x)


def mean(x: Tensor) -> Tensor:
    return mean_of(x, [0])


def centred() -> Tensor:
    return sub(X, broadcast(mean(X), [N], []))


def decided(left: Tensor, right: Tensor) -> Verdict:
    rule = TensorRule("variance", left, right, at_least(1, N), Equality.OVER_REALS)
    return decide_tensor_rule(rule, Discharger(timeout=8.0))


def squared() -> Tensor:
    return mean(mul(centred(), centred()))


def of_squares() -> Tensor:
    """The mean of squares less the square of the mean."""
    return sub(mean(mul(X, X)), mul(mean(X), mean(X)))


def normalised(variance: Tensor, inverse: bool) -> Tensor:
    deviation = broadcast(root(add(variance, input_("e"))), [N], [])
    one = map_(1 / variable("x"), x=deviation)
    return mul(centred(), one) if inverse else div(centred(), deviation)


def test_a_variance_is_the_mean_of_squares_less_the_square_of_the_mean() -> None:
    for wrap in (root, lambda x: x):
        verdict = decided(wrap(squared()), wrap(of_squares()))
        assert verdict.status is Status.PROVED, verdict.reason


def test_a_quotient_by_a_root_is_a_product_with_the_inverse_of_an_equal_root() -> None:
    verdict = decided(normalised(squared(), inverse=False), normalised(of_squares(), inverse=True))
    assert verdict.status is Status.PROVED, verdict.reason


WRONG: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
    "the square of the mean is missing": lambda: (root(squared()), root(mean(mul(X, X)))),
    "twice the square of the mean": lambda: (
        root(squared()),
        root(sub(mean(mul(X, X)), scale(mul(mean(X), mean(X)), 2))),
    ),
    "a root of what may be negative": lambda: (mul(mean(X), mean(X)), mul(root(mean(X)), root(mean(X)))),
    "one more in the root": lambda: (
        normalised(squared(), inverse=False),
        normalised(add(of_squares(), broadcast(scale(mean(X), Fraction(1, 10**6)), [], [])), inverse=True),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_forms_are_refuted(name: str) -> None:
    verdict = decided(*WRONG[name]())
    assert verdict.status is Status.REFUTED, verdict.reason


def test_a_root_that_is_no_divisor_is_not_taken_to_have_a_value() -> None:
    """x r - x r is 0 only where the root r has a value."""
    r = broadcast(root(mean(X)), [N], [])
    verdict = decided(sub(X, X), sub(mul(X, r), mul(X, r)))
    assert verdict.status is not Status.PROVED
