"""Sums over axes that are reversed, cut into blocks, split or exchanged, for every size; and what is no such order."""

from __future__ import annotations

import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from ir_semantics.tensors.operators import reshape, reverse, slice_, transpose
from ir_semantics.tensors.reductions import matmul, reduce
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.tensor.words import add, at_least, reordered, sizes
from smt_encodings.claims import Status

N, M, K, T, H, W = sizes("n m k t h w")
X, Y = input_("x", N, K * T), input_("y", K * T, M)
IMAGE, SQUARE = input_("x", N, H, W), input_("x", N, H, H)


def summed(x: Tensor, *axes: int) -> Tensor:
    return reduce("sum", x, list(axes))


def lanes(x: Tensor, y: Tensor) -> Tensor:
    """A product for each of t lanes, added up."""
    left, right = reshape(x, N, K, T), reshape(y, K, T, M)
    return summed(matmul(transpose(left, [2, 0, 1]), transpose(right, [1, 0, 2])), 0)


def blocks(x: Tensor, y: Tensor, *, is_both: bool = True) -> Tensor:
    """A product for each of k blocks, added up from the last to the first."""
    left, right = reverse(reshape(x, N, K, T), 1), reshape(y, K, T, M)
    return summed(matmul(transpose(left, [1, 0, 2]), reverse(right, 0) if is_both else right), 0)


def parts(x: Tensor, y: Tensor, begin: int) -> Tensor:
    """The products of the first t, and of those from ``begin`` on, after k + t in all, added up."""
    first = matmul(slice_(x, [0, 0], [N, T]), slice_(y, [0, 0], [T, M]))
    second = matmul(slice_(x, [0, T], [N, K + T]), slice_(y, [T - begin, 0], [K + T - begin, M]))
    return add(first, second)


SPLIT = input_("x", N, K + T), input_("y", K + T, M)
ORDERS = {
    "reversed": (matmul(X, Y), matmul(reverse(X, 1), reverse(Y, 0))),
    "lanes before blocks": (matmul(X, Y), lanes(X, Y)),
    "blocks from the last to the first": (matmul(X, Y), blocks(X, Y)),
    "split at any place": (matmul(*SPLIT), parts(*SPLIT, 0)),
    "axes exchanged": (summed(IMAGE, 1, 2), summed(reshape(transpose(IMAGE, [0, 2, 1]), N, H * W), 1)),
    "one axis of both, reversed": (summed(IMAGE, 1, 2), summed(reverse(reshape(IMAGE, N, H * W), 1), 1)),
}
WRONG = {
    "one factor reversed": (matmul(X, Y), matmul(reverse(X, 1), Y)),
    "one factor's blocks reversed": (matmul(X, Y), blocks(X, Y, is_both=False)),
    "split at two places": (matmul(*SPLIT), parts(*SPLIT, 1)),
    "rows in place of columns": (summed(SQUARE, 2), summed(SQUARE, 1)),
    "all but the last": (summed(IMAGE, 1, 2), summed(slice_(reshape(IMAGE, N, H * W), [0, 0], [N, H * W - 1]), 1)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_sum_in_another_order_is_proved_for_every_size(name: str) -> None:
    verdict = decide_tensor_rule(reordered(name, *ORDERS[name], at_least(1, N, M, K, T, H, W)))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_order_of_the_sum_is_not_proved(name: str) -> None:
    verdict = decide_tensor_rule(reordered(name, *WRONG[name], at_least(2, N, M, K, T, H, W)))
    assert verdict.status is not Status.PROVED
