"""Rules that are almost right must not be proved.

Each wrong rule is refuted by search as well, so that it is known to be wrong; some are right for all sizes but one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from chc.tensor_rules import refute as tensor_refute
from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.decide import mutants as decided_mutants
from chc.tensor_rules.mutants import mutant
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.refute import Counterexample, find_counterexample, replay
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.terms import exp, variable
from ir_semantics.tensors.conditions import TRUE, Condition, both, equal, le, lt
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    map_,
    number,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    upsample,
    where,
)
from ir_semantics.tensors.reductions import (
    avg_pool,
    conv,
    cumsum,
    dot,
    matmul,
    max_pool,
    mean,
    patches,
    reduce,
    softmax,
)
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.rules.tensor.catalogue import RULES
from rewrites.rules.tensor.words import add, at_least, bias, clip, div, largest, mul, relu, scale, sizes, sub
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger
from tests.rewrites.rules.named import rule_named

N, C, W, K, S, P, Q, T, M = sizes("n c w k s p q t m")
X, Y, MATRIX = input_("x", N), input_("y", N), input_("x", N, M)
A, B = input_("a", N, K), input_("b", K, M)
SIGNAL, TAPS = input_("x", N, C, W), input_("w", Q, C, K)
EXACT, ORDER, REALS = Equality.BIT_EXACT, Equality.UP_TO_REDUCTION_ORDER, Equality.OVER_REALS


def rule(left: Tensor, right: Tensor, domain: Condition = TRUE, equality: Equality = EXACT, **more: Any) -> TensorRule:
    return TensorRule("attack", left, right, domain, equality, **more, kind=Kind.WRONG)


def total(x: Tensor) -> Tensor:
    return reduce("sum", x, [0])


def top(x: Tensor) -> Tensor:
    return reduce("max", x, [0])


def part(x: Tensor, start: Index | int, stop: Index | int, stride: Index | int = 1) -> Tensor:
    return slice_(x, [start], [stop], [stride])


def spread_wrongly() -> Tensor:
    """Kernels of t groups over all channels, given to groups in turn."""
    w = input_("w", T * Q, C, K)
    full = reshape(broadcast(w, [T * Q, T, C, K], [0, 2, 3]), T * Q, T * C, K)
    return where(lambda o, c, k: equal(o % T, c // C), full, fill(0, T * Q, T * C, K))


WINDOWS: dict[str, Any] = {"strides": [S], "pads": [(P, P)]}
ONE = at_least(1, N)

WRONG = {
    "wrong permutation": rule(transpose(transpose(input_("x", N, N, N), [1, 2, 0]), [1, 2, 0]), input_("x", N, N, N)),
    "slice off by one": rule(part(part(X, 1, N, 2), 0, N // 2, 2), part(X, 2, N, 4), le(4, N)),
    "reversal of every second element: right for odd sizes": rule(
        part(reverse(X, 0), 0, N, 2), reverse(part(X, 0, N, 2), 0), ONE
    ),
    "wrong at size 1: maximum without an end": rule(top(concat(0, part(X, 1, N), part(X, 0, N - 1))), top(X), ONE),
    "wrong at size 0: a zero among the candidates of relu": rule(relu(top(X)), top(relu(X))),
    "wrong at one pad: windows that lie in the pads": rule(
        relu(max_pool(SIGNAL, [K], **WINDOWS)), max_pool(relu(SIGNAL), [K], **WINDOWS), both(le(P, K), at_least(1, W))
    ),
    "wrong at one stride: a gap of one element": rule(
        max_pool(max_pool(SIGNAL, [K], strides=[S]), [Q], strides=[T]),
        max_pool(SIGNAL, [(Q - 1) * S + K], strides=[S * T]),
        le(S, K + 1),
    ),
    "window too small by one": rule(
        max_pool(max_pool(SIGNAL, [K]), [K]),
        max_pool(slice_(SIGNAL, [0, 0, 0], [N, C, W - 1]), [2 * K - 2]),
        le(2, K),
    ),
    "average of averages with overlap": rule(
        avg_pool(avg_pool(SIGNAL, [K], count_include_pad=True), [K], count_include_pad=True),
        avg_pool(SIGNAL, [2 * K - 1], count_include_pad=True),
        at_least(1, K),
        REALS,
    ),
    "inner axis with one element missing": rule(
        matmul(A, B),
        add(
            matmul(slice_(A, [0, 0], [N, Q]), slice_(B, [0, 0], [Q, M])),
            matmul(slice_(A, [0, Q + 1], [N, K]), slice_(B, [Q + 1, 0], [K, M])),
        ),
        lt(Q, K),
        ORDER,
    ),
    "an element counted twice": rule(total(X), add(total(part(X, 0, Q + 1)), total(part(X, Q, N))), lt(Q, N), ORDER),
    "last element forgotten": rule(total(X), total(part(X, 0, N - 1)), ONE, ORDER),
    "every element twice": rule(total(concat(0, X, X)), total(X), TRUE, REALS),
    "doubled, and off by one copy": rule(total(concat(0, X, X, X)), scale(total(X), 2), TRUE, REALS),
    "an operand transposed": rule(
        matmul(input_("a", N, N), input_("b", N, N)),
        matmul(input_("a", N, N), transpose(input_("b", N, N), [1, 0])),
        TRUE,
        REALS,
    ),
    "pads on one side": rule(
        conv(SIGNAL, TAPS, pads=[(P, P)]), conv(SIGNAL, TAPS, pads=[(2 * P, 0)]), at_least(1, W), REALS
    ),
    "stride for dilation": rule(
        conv(input_("x", N, C, 2 * K - 1), TAPS, dilations=[2]),
        conv(input_("x", N, C, 2 * K - 1), TAPS, strides=[K]),
        le(1, K),
        REALS,
    ),
    "groups taken in turn": rule(
        conv(input_("x", N, T * C, W), input_("w", T * Q, C, K), groups=T),
        conv(input_("x", N, T * C, W), spread_wrongly()),
        at_least(1, T, Q, C, K),
        REALS,
    ),
    "a mean of one more": rule(
        mean(MATRIX, [1]), div(reduce("sum", MATRIX, [1]), broadcast(number(M + 1), [N], [])), at_least(1, M), REALS
    ),
    "softmax along the other axis": rule(softmax(input_("x", N, N), 0), softmax(input_("x", N, N), 1), TRUE, REALS),
    "a shift along the softmax axis": rule(
        softmax(bias(MATRIX, input_("c", M), 1), 1), softmax(MATRIX, 1), TRUE, REALS
    ),
    "choice off by one": rule(where(lambda i: le(i, Q), X, Y), concat(0, part(X, 0, Q), part(Y, Q, N)), lt(Q, N)),
    "reshape with exchanged sizes": rule(
        reshape(transpose(reshape(X, Q, T), [1, 0]), N),
        reshape(transpose(reshape(X, T, Q), [1, 0]), N),
        both(equal(N, Q * T), at_least(1, Q, T)),
    ),
    "cumulative sum without its own element": rule(
        cumsum(X, 0),
        dot(where(lambda i, j: lt(j, i), fill(1, N, N), fill(0, N, N)), X),
        TRUE,
        REALS,
    ),
    "upsampling read off by one": rule(
        upsample(X, [S]),
        concat(0, part(upsample(X, [S]), 1, N * S), part(X, N - 1, N)),
        both(ONE, le(1, S)),
    ),
    "pad with another value": rule(pad(X, [P], [0], input_("v")), pad(X, [P], [0], 0)),
    "a factor of any sign out of a maximum": rule(
        max_pool(scale(SIGNAL, input_("a")), [K]), scale(max_pool(SIGNAL, [K]), input_("a")), TRUE, REALS
    ),
    "clamp with exchanged bounds": rule(
        clip(MATRIX, 3, 1), largest(map_(variable("x") - 0, x=clip(MATRIX, 3, 1)), fill(3, N, M))
    ),
    "pooling of parts whose length is no multiple": rule(
        max_pool(concat(2, SIGNAL, input_("y", N, C, T)), [2], strides=[2]),
        concat(2, max_pool(SIGNAL, [2], strides=[2]), max_pool(input_("y", N, C, T), [2], strides=[2])),
        both(le(2, T), le(2, W)),
    ),
    "counted pads for uncounted ones": rule(
        avg_pool(SIGNAL, [K], **WINDOWS),
        avg_pool(SIGNAL, [K], **WINDOWS, count_include_pad=True),
        both(lt(P, K), at_least(1, W)),
        REALS,
    ),
    "the square of a sum": rule(mul(total(X), total(X)), total(mul(X, X)), TRUE, REALS),
    "the sum of products": rule(total(mul(X, Y)), mul(total(X), total(Y)), TRUE, REALS),
    "the exponential of a sum as a sum": rule(
        map_(exp(variable("x") + variable("y")), x=X, y=Y),
        map_(exp(variable("x")) + exp(variable("y")), x=X, y=Y),
        TRUE,
        REALS,
    ),
    "a minus too few": rule(sub(X, sub(Y, X)), sub(sub(X, Y), X), TRUE, REALS),
    "the shape alone": rule(pad(X, [1], [0]), pad(X, [0], [1])),
    "an axis of size 1 for an axis of any size": rule(
        reshape(transpose(MATRIX, [1, 0]), N * M), reshape(MATRIX, N * M), both(ONE, at_least(1, M))
    ),
    "a counterexample needs a large size": rule(
        part(X, 0, N), concat(0, part(X, 0, N - 6), part(reverse(X, 0), 0, 6)), le(6, N)
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_almost_right_rule_is_not_proved_and_is_refuted(name: str) -> None:
    wrong = WRONG[name]
    verdict = prove_tensor_rule(wrong, Discharger(timeout=1.0), seconds=10.0)
    assert verdict.status is Status.UNKNOWN, verdict.reason
    found = find_counterexample(wrong, 10.0)
    assert found is not None
    again = replay(wrong, found.sizes, found.inputs)
    assert again is not None and again.difference == found.difference


RIGHT_ELSEWHERE = {
    # the same rules where they are right: the side condition is what separates them
    "reversal of every second element": rule(
        part(reverse(input_("x", 2 * N + 1), 0), 0, 2 * N + 1, 2),
        reverse(part(input_("x", 2 * N + 1), 0, 2 * N + 1, 2), 0),
    ),
    "maximum without an end": rule(top(concat(0, part(X, 1, N), part(X, 0, N - 1))), top(X), le(2, N)),
    "every element twice, for a maximum": rule(top(concat(0, X, X)), top(X)),
    "pooling of parts whose length is a multiple": rule(
        max_pool(concat(2, input_("x", N, C, Q * K), input_("y", N, C, T)), [K], strides=[K]),
        concat(
            2,
            max_pool(input_("x", N, C, Q * K), [K], strides=[K]),
            max_pool(input_("y", N, C, T), [K], strides=[K]),
        ),
        both(le(K, T), at_least(1, Q)),
    ),
    "doubled sum": rule(total(concat(0, X, X)), scale(total(X), 2), TRUE, REALS),
}


@pytest.mark.parametrize("name", RIGHT_ELSEWHERE)
def test_with_its_side_condition_the_rule_is_proved(name: str) -> None:
    verdict = prove_tensor_rule(RIGHT_ELSEWHERE[name])
    assert verdict.status is Status.PROVED, verdict.reason


TOO_WEAK = {
    # right over the reals, and not in the finer notion that is claimed
    "order of a sum": rule(total(reverse(X, 0)), total(X)),
    "a sum in two parts": rule(total(X), add(total(part(X, 0, Q)), total(part(X, Q, N))), le(Q, N)),
    "zero times an element": rule(
        conv(SIGNAL, TAPS), conv(SIGNAL, pad(TAPS, [0, 0, 1], [0, 0, 0]), pads=[(1, 0)]), TRUE, ORDER
    ),
    "distribution": rule(
        matmul(add(A, input_("d", N, K)), B), add(matmul(A, B), matmul(input_("d", N, K), B)), TRUE, ORDER
    ),
    "x - x": rule(sub(X, X), fill(0, N), TRUE, ORDER),
    "adding zero": rule(add(X, fill(0, N)), X, TRUE, ORDER),
    "exponential of a sum": rule(
        map_(exp(variable("x") + variable("y")), x=X, y=Y), map_(exp(variable("x")) * exp(variable("y")), x=X, y=Y)
    ),
}


@pytest.mark.parametrize("name", TOO_WEAK)
def test_a_finer_notion_of_equality_is_not_proved_by_laws_of_the_reals(name: str) -> None:
    finer = TOO_WEAK[name]
    assert prove_tensor_rule(finer, Discharger(timeout=1.0)).status is Status.UNKNOWN
    over_reals = TensorRule("reals", finer.left, finer.right, finer.domain, REALS)
    assert prove_tensor_rule(over_reals).status is Status.PROVED


def test_the_minimum_of_nan_and_of_nothing_is_not_exchanged() -> None:
    """minimum(max of an empty window, NaN) is NaN; the maximum of no minima is -inf."""
    pooled = max_pool(SIGNAL, [K], **WINDOWS)
    six = clip(pooled, 0, 6)
    assert (
        prove_tensor_rule(
            rule(clip(max_pool(SIGNAL, [K], strides=[S]), -9, 6), clip(max_pool(SIGNAL, [K], strides=[S]), -9, 6))
        ).status
        is Status.PROVED
    )
    moved = max_pool(clip(SIGNAL, 0, 6), [K], **WINDOWS)
    assert prove_tensor_rule(rule(moved, six), Discharger(timeout=1.0)).status is Status.UNKNOWN


@pytest.mark.slow
def test_patches_with_exchanged_axes() -> None:
    columns = patches(SIGNAL, [K])
    flat = reshape(transpose(columns, [0, 2, 1, 3]), N, C * K, W - K + 1)
    weights = broadcast(reshape(TAPS, Q, C * K), [N, Q, C * K], [1, 2])
    wrong = rule(conv(SIGNAL, TAPS), matmul(weights, flat), at_least(1, N, C, K, Q), ORDER)
    assert prove_tensor_rule(wrong, Discharger(timeout=0.5), seconds=5.0).status is Status.UNKNOWN
    assert find_counterexample(wrong, 20.0) is not None


def test_no_sizes_at_all_is_vacuous() -> None:
    verdict = prove_tensor_rule(rule(X, reverse(X, 0), both(le(3, N), le(N, 2))))
    assert verdict.status is Status.VACUOUS
    assert verdict.reason == "no sizes satisfy the side condition"


def test_without_data_everything_is_equal() -> None:
    """At size 0 a wrong rule is right; that its domain is one size shows in the verdict."""
    verdict = prove_tensor_rule(rule(X, reverse(X, 0), equal(N, 0)))
    assert verdict.status is Status.PROVED
    assert "n = 0" in verdict.claim.size_domain


def test_a_right_side_that_is_ill_formed_is_refuted() -> None:
    verdict = decide_tensor_rule(rule(pad(X, [P], [0]), pad(pad(X, [P], [0]), [0], [P - Q])))
    assert verdict.status is Status.REFUTED
    assert verdict.reason.startswith("the right side is not well formed (pad needs q <= p")


def test_positive_data_are_positive_in_counterexamples() -> None:
    wrong = rule(scale(X, input_("a")), X, TRUE, REALS, positive=frozenset({"a"}))
    found = find_counterexample(wrong)
    assert found is not None and found.inputs["a"].item() > 0
    assert replay(wrong, found.sizes, {**found.inputs, "a": np.array(Fraction(-1), dtype=object)}) is None


def test_where_the_left_side_has_no_value_nothing_is_claimed() -> None:
    ratio = rule(div(X, X), fill(1, N), TRUE, REALS)
    zero = np.array([Fraction(0)], dtype=object)
    assert replay(ratio, {"n": 1}, {"x": zero}) is None
    assert prove_tensor_rule(ratio).status is Status.PROVED


def test_the_right_side_must_not_divide_by_zero_where_the_left_does_not() -> None:
    back = rule(fill(1, N), div(X, X), TRUE, REALS)
    verdict = prove_tensor_rule(back)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "the kernel does not accept the derivation: x[o.1] must not be 0"
    found = find_counterexample(back)
    assert found is not None
    assert str(found) == "the left side has a value, the right side divides by zero where n = 1; x = [0]"
    positive = rule(fill(1, N), div(X, X), TRUE, REALS, positive=frozenset({"x"}))
    assert prove_tensor_rule(positive).status is Status.PROVED
    other = rule(div(Y, X), div(mul(Y, Y), mul(X, Y)), TRUE, REALS)
    assert prove_tensor_rule(other).status is Status.UNKNOWN
    assert find_counterexample(other) is not None


def test_every_obligation_of_a_proof_was_answered_by_two_solvers() -> None:
    verdict = prove_tensor_rule(RIGHT_ELSEWHERE["maximum without an end"])
    assert len(verdict.obligations) > 3
    for obligation in verdict.obligations:
        assert obligation.discharged
        assert {a.solver.partition(" ")[0] for a in obligation.answers} == {"z3", "cvc5"}


HARD = ["max pooling k3s2 twice", "im2col", "batch normalisation into a convolution"]


@pytest.mark.parametrize(
    "name",
    ["softmax of x plus a scalar", "concat associates", *(pytest.param(n, marks=pytest.mark.slow) for n in HARD)],
)
def test_mutants_of_a_proved_rule_are_not_proved(name: str) -> None:
    for changed in decided_mutants(rule_named(name)):
        refuted = find_counterexample(changed, 2.0) is not None
        assert refuted or not changed.name.endswith("(right side plus 1)")
        assert not refuted or prove_tensor_rule(changed, Discharger(timeout=1.0)).status is not Status.PROVED


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change may read outside an input (no operator does): at such sizes it says nothing."""

    def inside(changed: TensorRule, sizes_: Mapping[str, int], inputs: Mapping[str, Any]) -> Counterexample | None:
        try:
            return replay(changed, sizes_, inputs)
        except IndexError:
            return None

    monkeypatch.setattr(tensor_refute, "replay", inside)


def attack(seed: int, count: int) -> tuple[int, list[str]]:
    """Random changes to random rules: how many were proved, and those that were also refuted."""
    draw = random.Random(seed)
    rules = [r for r in RULES if r.kind is not Kind.WRONG]
    proved, bad = 0, []
    for _ in range(count):
        try:
            changed = mutant(draw.choice(rules), draw)
        except (ValueError, ZeroDivisionError):  # the change makes an index that cannot be written
            continue
        if changed is None:
            continue
        if prove_tensor_rule(changed, Discharger(timeout=0.5), seconds=5.0).status is Status.PROVED:
            proved += 1
            if find_counterexample(changed, 3.0) is not None:
                bad.append(changed.name)
    return proved, bad


@pytest.mark.usefixtures("lenient")
def test_random_changes_are_not_proved_and_refuted() -> None:
    _, bad = attack(1, 12)
    assert bad == []


@pytest.mark.slow
@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_random_changes_are_not_proved_and_refuted(seed: int) -> None:
    proved, bad = attack(seed, 80)
    assert bad == []
    assert proved  # some changes are no change, such as a guard that always holds


@pytest.mark.usefixtures("lenient")
def test_the_attack_would_find_an_unsound_prover() -> None:
    """Of random changes most are wrong, and the search sees it."""
    draw, rules = random.Random(5), [rule_named("matmul in two blocks of the inner axis")]
    seen = [m for m in (mutant(rules[0], draw) for _ in range(8)) if m is not None]
    assert sum(find_counterexample(m, 2.0) is not None for m in seen) >= len(seen) / 2 > 2


def test_counterexamples_are_small() -> None:
    found = find_counterexample(WRONG["last element forgotten"])
    assert found is not None
    assert str(found) == "at [] the left side is 1, the right side 0, where n = 1; x = [1]"
    assert isinstance(found, Counterexample) and found.position == ()
    assert tensor_refute.replay(WRONG["last element forgotten"], {"n": 0}, {"x": np.empty((0,), dtype=object)}) is None


def test_the_sign_of_zero_counts_bit_by_bit() -> None:
    zeros = rule(pad(X, [1], [0], 0), pad(X, [1], [0], -0.0))
    assert prove_tensor_rule(zeros, Discharger(timeout=1.0)).status is Status.UNKNOWN
    over_reals = TensorRule("reals", zeros.left, zeros.right, zeros.domain, REALS)
    assert prove_tensor_rule(over_reals).status is Status.PROVED


def test_nan_is_no_real_number() -> None:
    nan = fill(float("nan"), N)
    for equality in (EXACT, ORDER):
        assert prove_tensor_rule(rule(sub(nan, nan), fill(0, N), TRUE, equality)).status is Status.UNKNOWN
        assert prove_tensor_rule(rule(add(X, nan), add(nan, X), TRUE, equality)).status is Status.PROVED
    with pytest.raises(ValueError, match="over the reals a literal must be a number, not NaN"):
        prove_tensor_rule(rule(sub(nan, nan), fill(0, N), TRUE, REALS))


def test_subscripts_and_digits_have_names_of_their_own() -> None:
    """Three subscripts, all of them written in digits: a name used twice would make different elements equal."""
    names = sizes("a b c")
    halves = [d for n in names for d in (n, 2)]
    positive = at_least(1, *names)
    x = input_("x", *halves)
    merged = reshape(x, *(2 * n for n in names))
    for order in ([0, 3, 2, 1, 4, 5], [0, 1, 2, 5, 4, 3], [0, 5, 2, 3, 4, 1]):
        wrong = rule(merged, reshape(transpose(x, order), *(2 * n for n in names)), positive)
        assert prove_tensor_rule(wrong, Discharger(timeout=0.5), seconds=5.0).status is Status.UNKNOWN
        assert find_counterexample(wrong) is not None
    assert prove_tensor_rule(rule(reshape(merged, *halves), x, positive)).status is Status.PROVED


def test_sizes_that_are_large_by_the_domain_are_tried() -> None:
    """No small size is in the domain, so searches begin at the least ones."""
    x, y, far = input_("x", N, M), input_("y", N, M), le(40, N)
    assert decide_tensor_rule(rule(mul(x, y), mul(y, x), far)).status is Status.PROVED
    wrong = decide_tensor_rule(rule(mul(x, y), mul(x, x), far))
    assert wrong.status is Status.REFUTED and wrong.details["counterexample"].sizes == {"m": 1, "n": 40}  # type: ignore[attr-defined]
    mended = concat(0, slice_(x, [0, 0], [39, M]), slice_(y, [39, 0], [N, M]))
    assert decide_tensor_rule(rule(x, mended, far)).status is Status.REFUTED


def test_sizes_and_inputs_may_be_called_like_words_of_solvers() -> None:
    m, n = sizes("true and")
    x = input_("select", m, n)
    assert decide_tensor_rule(rule(transpose(transpose(x, [1, 0]), [1, 0]), x)).status is Status.PROVED
    wrong = decide_tensor_rule(rule(transpose(x, [1, 0]), x, equal(m, n)))
    assert wrong.status is Status.REFUTED


def test_a_rule_that_nobody_can_read_is_refused() -> None:
    """Parts that are shared make it short for us, and long for everybody else."""
    doubled = matrix = input_("x", N)
    for _ in range(60):
        doubled = map_(variable("a") + variable("b"), a=doubled, b=doubled)
    with pytest.raises(ValueError, match=r"^the rule doubled must have at most 5,000 operators, not [\d,]{20,}$"):
        TensorRule("doubled", doubled, map_(2**60 * variable("a"), a=matrix))
