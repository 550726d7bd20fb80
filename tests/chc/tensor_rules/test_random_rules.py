"""Random rules with names from a small pool: what is proved, no example refutes.

A rule is a random term and the same term after random steps, each of which is right at some sizes or at all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from chc.tensor_rules.mutants import mutants
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.refute import find_counterexample
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.terms import exp, log, maximum, minimum, sqrt, variable
from ir_semantics.tensors.conditions import TRUE, Condition, both, equal, le, lt
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.operators import broadcast, concat, fill, map_, pad, reshape, reverse, slice_, upsample, where
from ir_semantics.tensors.reductions import cumsum, max_pool, reduce
from ir_semantics.tensors.terms import Tensor, input_
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger

SIZES = [size(name) for name in ("n", "m", "k", "x")]
"""Sizes; an input may be called x, too."""
A, B = variable("a"), variable("b")
UNARY = [A + 1, A * 2, -A, 0 - A, exp(A), log(A), sqrt(A), maximum(A, 0), minimum(A, 6), 1 / A, A - A, A * 0, A / A]
BINARY = [A + B, A - B, A * B, A / B, maximum(A, B), minimum(A, B), A * (A + B), exp(A) / exp(B), exp(A - B)]
NOTIONS = [Equality.OVER_REALS, Equality.OVER_REALS, Equality.UP_TO_REDUCTION_ORDER, Equality.BIT_EXACT]


def vector(draw: random.Random, extent: Index, depth: int) -> Tensor:
    """A random vector."""
    kind = draw.randrange(9) if depth else 0
    if kind <= 1:
        return input_(f"{draw.choice('xyn')}{SIZES.index(extent) if extent in SIZES else ''}", extent)
    inner = vector(draw, extent, depth - 1)
    if kind <= 3:
        return map_(draw.choice(UNARY), a=inner)
    if kind <= 5:
        return map_(draw.choice(BINARY), a=inner, b=vector(draw, extent, depth - 1))
    if kind == 6:
        other = draw.choice(SIZES)
        scalar = reduce(draw.choice(["sum", "max", "min"]), vector(draw, other, depth - 1), [0])
        return map_(draw.choice(BINARY), a=inner, b=broadcast(scalar, [extent], []))
    if kind == 7:
        bound = draw.choice(SIZES)
        return where(lambda i: lt(i, bound), inner, vector(draw, extent, depth - 1))
    return reverse(inner, 0)


def changed(draw: random.Random, x: Tensor) -> Tensor:
    """The same vector after a step that is right, or nearly."""
    (extent,) = x.shape
    cut = draw.choice([*SIZES, Index({(): 1})])
    steps: list[Callable[[], Tensor]] = [
        lambda: reverse(reverse(x, 0), 0),
        lambda: concat(0, slice_(x, [0], [cut]), slice_(x, [cut], [extent])),
        lambda: slice_(pad(x, [cut], [0]), [cut], [cut + extent]),
        lambda: slice_(upsample(x, [2]), [0], [2 * extent], [2]),
        lambda: map_(A + 0, a=x),
        lambda: map_(A * 1, a=x),
        lambda: map_(A + B - B, a=x, b=vector(draw, extent, 1)),
        lambda: map_(A * B / B, a=x, b=vector(draw, extent, 1)),
        lambda: map_(maximum(A, A), a=x),
        lambda: map_(maximum(A, minimum(A, B)), a=x, b=vector(draw, extent, 1)),
        lambda: map_(A + 0 * B, a=x, b=vector(draw, extent, 1)),
        lambda: where(lambda i: lt(i, cut), x, x),
        lambda: where(lambda i: lt(i, extent), x, fill(0, extent)),
        lambda: reshape(reshape(x, extent, 1), extent),
        lambda: map_(A - B, a=cumsum(x, 0), b=slice_(pad(cumsum(x, 0), [1], [0]), [0], [extent])),
        lambda: reshape(max_pool(reshape(x, 1, 1, extent), [1]), extent),
        lambda: reduce("max", reshape(x, extent, 1), [1]),
        lambda: reduce("sum", broadcast(x, [extent, 2], [0]), [1]),
        lambda: map_(-A, a=map_(-A, a=x)),
        lambda: reverse(x, 0),
    ]
    return draw.choice(steps)()


def drawn(draw: random.Random) -> TensorRule | None:
    extent = draw.choice(SIZES)
    left = vector(draw, extent, draw.choice([1, 2, 2, 3]))
    right = left
    for _ in range(draw.randint(1, 2)):
        right = changed(draw, right)
    if draw.random() < 0.3:
        left, right = (reduce(draw.choice(["sum", "max"]), left, [0]),) * 2
        right = reduce(left.operator.removeprefix("reduce_"), changed(draw, left.operands[0]), [0])
    if draw.random() < 0.3:
        left, right = right, left
    domain: Condition = draw.choice([TRUE, le(1, extent), both(*(le(1, s) for s in SIZES)), equal(extent, SIZES[0])])
    rule = TensorRule("random", left, right, domain, draw.choice(NOTIONS), kind=Kind.WRONG)
    try:
        _ = rule.inputs
    except ValueError:  # one name with two shapes
        return None
    if draw.random() < 0.5:
        return next(iter(mutants(rule, draw)), None)
    return rule


def campaign(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """How many rules got which verdict, and those that are proved and refuted."""
    draw, verdicts, bad = random.Random(seed), Counter[str](), []
    while verdicts.total() < count:
        try:
            rule = drawn(draw)
            if rule is None:
                continue
            verdict = prove_tensor_rule(rule, Discharger(timeout=0.5), seconds=3.0)
        except (ValueError, ZeroDivisionError):  # an index or a literal that cannot be written
            continue
        verdicts[verdict.status.value] += 1
        if verdict.status is Status.PROVED:
            try:
                found = find_counterexample(rule, 0.7, seed=seed)
            except IndexError:  # a change may read outside an input, about which nothing is said
                continue
            if found is not None:
                bad.append(f"{rule.left} = {rule.right} ({rule.equality.value}, {rule.domain}): {found}")
    return verdicts, bad


def test_random_rules_that_are_proved_are_not_refuted() -> None:
    verdicts, bad = campaign(0, 20)
    assert bad == []
    assert verdicts["PROVED"] >= 2 and verdicts["UNKNOWN"] >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_random_rules_that_are_proved_are_not_refuted(seed: int) -> None:
    _, bad = campaign(seed, 250)
    assert bad == []
