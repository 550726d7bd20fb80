"""The campaigns on the accelerators: they hold, they can fail, and the known flaws are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.numerics import fixed_to_adpfloat
from accel_models.flexasr.quantise import Quantised, dequantise, largest, quantise
from ilaverify.catalogue import campaigns, find_campaign
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Written
from rewrites.bounds.elementwise import Bounded, bound_elements
from rewrites.bounds.kernel.constants import EXP_ERROR, INV_SQRT_ERROR, SIGMOID_ERROR, TANH_ERROR
from rewrites.campaigns.accelerators import hlscnn, vta
from rewrites.campaigns.accelerators.device import fitting_bias, quantise_fitting
from rewrites.campaigns.accelerators.flexasr import attention as flexasr_attention
from rewrites.campaigns.accelerators.flexasr import layer_norm as flexasr_layer_norm
from rewrites.campaigns.accelerators.flexasr import linear as flexasr_linear
from rewrites.campaigns.accelerators.flexasr import pooling as flexasr_pooling
from rewrites.campaigns.accelerators.flexasr import recurrent as flexasr_recurrent
from rewrites.campaigns.accelerators.flexasr.numerics import UNIT, encoded
from rewrites.campaigns.campaign import CampaignResult, run_campaign
from rewrites.campaigns.definition import Example, Skip
from rewrites.claims.theorems import applied
from tests.ir_semantics import reference_layers as reference
from tests.rewrites.bounds.derivation import Derivation, plus, times

FLAWS = {"flexasr_encode_sign", "flexasr_attention_sum", "flexasr_lstm_pre2022"}
HOLDING = [name for name in campaigns() if name not in FLAWS]


def found(name: str, examples: int, seed: int = 0) -> CampaignResult:
    return run_campaign(find_campaign(name), examples=examples, seed=seed)


# -- they hold, and they can fail -----------------------------------------------------------------------


@pytest.mark.parametrize("name", HOLDING)
def test_no_violation_in_a_few_examples(name: str) -> None:
    result = found(name, 6, seed=3)
    assert result.campaign.name == name
    assert result.finding is None, result.finding.violation.text
    assert len(result.samples) == 6
    assert result.checked >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLDING)
def test_no_violation_in_many_examples(name: str) -> None:
    result = found(name, 300, seed=11)
    assert result.finding is None, result.finding.violation.text
    assert result.checked >= 100


# The largest error as a part of its bound: a bound that nothing comes near would never fail.
NEAR = {
    "flexasr_meanpool": 0.99, "flexasr_addpool": 0.99, "flexasr_linear": 0.99, "flexasr_layernorm": 0.9,
    "flexasr_rnn": 0.7, "flexasr_gru": 0.7, "flexasr_lstm": 0.7, "flexasr_attention": 0.35, "hlscnn_conv2d": 0.6,
    "hlscnn_conv2d_8bit": 0.6,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NEAR)
def test_errors_come_near_their_bounds(name: str) -> None:
    margins = run_campaign(find_campaign(name), examples=40, seed=1).margins
    assert margins is not None
    assert margins.derived_ratio is not None
    assert 1 <= margins.derived_ratio <= 1 / NEAR[name]


def test_flaws_are_marked_as_expected() -> None:
    assert {name for name in campaigns() if find_campaign(name).expects_violation} == FLAWS


def one_code_off(run: Callable[..., Quantised]) -> Callable[..., Quantised]:
    """The last element's mantissa one step up, or its sign changed where that is not possible."""

    def wrong(*args: Any) -> Quantised:
        right = run(*args)
        codes = right.codes.copy()
        last = codes.reshape(-1)[-1:]
        last ^= np.where(last & 15 == 15, 0x80, 0).astype(np.uint8)
        last += np.where(last & 15 == 15, 0, 2).astype(np.uint8) & 14
        return Quantised(codes, right.bias)

    return wrong


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (flexasr_pooling, "flexasr_maxpool"),
        (flexasr_pooling, "flexasr_meanpool"),
        (flexasr_pooling, "flexasr_addpool"),
        (flexasr_linear, "flexasr_linear"),
        (flexasr_layer_norm, "flexasr_layernorm"),
    ],
)
def test_two_steps_of_one_element_are_a_violation(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_flexasr", one_code_off(module.run_flexasr))
    result = run_campaign(find_campaign(name), examples=12, seed=1)
    assert result.violating >= 4


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (flexasr_recurrent, "flexasr_rnn"),
        (flexasr_recurrent, "flexasr_gru"),
        (flexasr_recurrent, "flexasr_lstm"),
        (flexasr_attention, "flexasr_attention"),
    ],
)
def test_results_of_the_other_sign_are_a_violation(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.run_flexasr
    monkeypatch.setattr(module, "run_flexasr", lambda *a: Quantised(right(*a).codes ^ np.uint8(0x80), right(*a).bias))
    campaign = find_campaign(name)
    examples = [campaign.example({p: v[0] for p, v in campaign.parameters.items()}, "uniform", s) for s in range(4)]
    assert any(campaign.evaluate(e).violation is not None for e in examples)


def test_a_convolution_and_a_product_off_by_little_are_violations(monkeypatch: pytest.MonkeyPatch) -> None:
    convolution, product = hlscnn.run_hlscnn, vta.run_vta
    monkeypatch.setattr(hlscnn, "run_hlscnn", lambda *a: convolution(*a) + np.int16(40))
    monkeypatch.setattr(vta, "run_vta", lambda *a: product(*a) ^ np.int8(1))
    assert run_campaign(find_campaign("hlscnn_conv2d"), examples=5).violating == 5
    for name in ("vta_gemm", "vta_add", "vta_relu"):
        assert run_campaign(find_campaign(name), examples=5).violating == 5


@pytest.mark.parametrize(
    ("name", "array", "value", "message"),
    [
        ("vta_gemm", "x", 128, "x must be in -128 .. 127, not hold 128 .. 128"),
        ("vta_relu", "a", -(2**31) - 1, "a must be in -2147483648 .. 2147483647, not hold -2147483649 .. -2147483649"),
        ("flexasr_encode_sign", "value", 2**19, "value must be in -524288 .. 524287, not hold 524288 .. 524288"),
    ],
)
def test_integers_beyond_their_type_do_not_wrap(name: str, array: str, value: int, message: str) -> None:
    campaign = find_campaign(name)
    parameters = {p: values[0] for p, values in campaign.parameters.items()}
    example = campaign.example(parameters, "small", 1)
    arrays = {**example.arrays, array: np.full_like(example.arrays[array], value)}
    with pytest.raises(ValueError) as caught:
        campaign.evaluate(Example(parameters, "small", None, arrays))
    assert str(caught.value) == message


# -- the known flaws --------------------------------------------------------------------------------------


def test_the_sign_flip_of_before_2022_is_found_and_shrunk_to_its_threshold() -> None:
    result = found("flexasr_encode_sign", 30)
    assert result.finding is not None
    assert result.finding.example.parameters == {"bias": 0, "elements": 1}
    # from -4033 on, numbers at bias 0 round to 2^-2, which is beyond the largest code
    assert result.finding.example.arrays["value"].tolist() == [-4033]
    assert result.finding.violation.text == (
        "at [0]: -4033 (-0.24615478515625) becomes 0x7f (0.2421875) at bias 0 (1 of 1 elements violate it)"
    )


@pytest.mark.parametrize(("rows", "total"), [(3, None), (4, None), (5, "5")])
def test_softmax_weights_of_equal_rows(rows: int, total: str | None) -> None:
    # each exponential is 1022/1024: four add up to less than 4, five wrap to less than 1
    campaign = find_campaign("flexasr_attention_sum")
    keys, query = np.zeros((rows, 16)), np.zeros(16)
    keys[:, 0] = query[0] = 1.0
    parameters = {"timesteps": rows, "vectors": 1}
    outcome = campaign.evaluate(Example(parameters, "uniform", None, {"keys": keys, "query": query}))
    if total is None:
        assert outcome.violation is None
        return
    assert outcome.violation is not None
    assert outcome.violation.text == (
        f"the weights sum up to {total}, more than 1.1001; the exponentials to {rows:.4f}"
    )


def test_a_score_of_zero_is_left_out() -> None:
    campaign = find_campaign("flexasr_attention_sum")
    arrays = {"keys": np.zeros((2, 16)), "query": np.ones(16)}
    with pytest.raises(Skip, match="a score is exactly 0, which the unit takes for -64"):
        campaign.evaluate(Example({"timesteps": 2, "vectors": 1}, "uniform", None, arrays))


@pytest.mark.slow
def test_the_softmax_denominator_that_wraps_is_found() -> None:
    result = found("flexasr_attention_sum", 40)
    assert result.finding is not None
    keys, query = (quantise_fitting(result.finding.example.arrays[n]).values for n in ("keys", "query"))
    scores = keys @ query
    assert np.exp(scores - scores.max()).sum() >= 4
    assert result.finding.violation.name == "sum of weights"
    assert result.finding.example.parameters["timesteps"] <= 8


@pytest.mark.slow
def test_the_effect_of_the_sign_flip_on_an_lstm_is_found() -> None:
    result = found("flexasr_lstm_pre2022", 50)
    assert result.finding is not None
    assert result.finding.violation.name == "unchanged"
    assert result.finding.example.parameters["timesteps"] >= 2  # the first cell state must have been stored


# -- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [0, 2, 7])
def test_the_bound_of_encoding_holds_for_all_numbers_and_is_attained(bias: int) -> None:
    words = np.arange(-(2**19), 2**19)
    value = words * UNIT
    error = np.abs(dequantise(encoded(fixed_to_adpfloat, words, bias), bias) - value)
    d = Derivation()
    d.lemma("encode", d("given", names=["x", "fixed", "X", "0", ""]), "b")
    operator = Operator("encode", "", dict.fromkeys("Xb", ""), lambda: Written(tuple(d.steps)), {})
    bound = bound_elements(operator, "n", {"x": ("n", value)}, {"b": bias}).error
    assert (error <= bound).all()
    inside = (np.abs(value) < largest(bias)) & (np.abs(value) > 2.0 ** (bias - 9)) & (np.abs(words) > 64)
    for k in np.unique(np.frexp(value[inside])[1]):  # in every binade
        binade = inside & (np.frexp(value)[1] == k)
        assert error[binade].max() == bound[binade].max()


def test_errors_of_the_functions_are_those_of_all_arguments() -> None:
    # measured in float64, and rounded up to a multiple of 2^-24
    assert float(SIGMOID_ERROR) == pytest.approx(0.0066929, abs=2e-7)
    assert float(TANH_ERROR) == pytest.approx(0.0049453, abs=2e-7)
    assert float(INV_SQRT_ERROR) == pytest.approx(0.00096999, abs=1e-7)
    assert float(EXP_ERROR) == pytest.approx(0.0021077, abs=2e-7)


def in_fixed_point(law: Callable[[Derivation, int, int], int], a: Bounded, b: Bounded) -> Bounded:
    """An operation on two numbers in Q6.14."""
    d = Derivation()
    law(d, *(d("given", names=[leaf, "fixed", leaf.upper(), f"e_{leaf}", ""]) for leaf in "ab"))
    operator = Operator("op", "", dict.fromkeys(("A", "B", "e_a", "e_b"), ""), lambda: Written(tuple(d.steps)), {})
    return bound_elements(operator, "n", {"a": ("n", a), "b": ("n", b)}, {})


@pytest.mark.parametrize("seed", range(5))
def test_products_stay_within_their_bound(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.uniform(-5, 5, (2, 1000))
    off_a, off_b = generator.uniform(-0.01, 0.01, (2, 1000))
    exact = in_fixed_point(times, Bounded(a, np.abs(off_a)), Bounded(b, np.abs(off_b)))
    moved = np.floor((a + off_a) * (b + off_b) / UNIT) * UNIT
    assert (np.abs(moved - exact.value) <= exact.error).all()
    six, sixteen = (Bounded(np.array([x]), np.zeros(1)) for x in (6.0, 16.0))
    assert np.isinf(in_fixed_point(times, six, six).error).all()  # 36 leaves Q6.14
    assert np.isinf(in_fixed_point(plus, sixteen, sixteen).error).all()


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_bounded_layer_follows_the_reference(kind: str) -> None:
    cell = flexasr_recurrent.CELLS[kind]
    make = flexasr_recurrent.make_layer(cell)
    arrays = make({"timesteps": 3, "input_vectors": 1, "hidden_vectors": 2}, "uniform", np.random.default_rng(1))
    inputs = [quantise_fitting(a) for a in arrays.values()]
    bounded = applied.recurrent_elements(cell.name, inputs, 3)
    np.testing.assert_allclose(bounded.value, cell.reference(*(q.values for q in inputs)), atol=1e-12)
    assert np.isfinite(bounded.error[0]).all()
    assert (bounded.error[0] < 0.2).all()


def test_bounded_layer_norm_and_attention_follow_the_reference() -> None:
    generator = np.random.default_rng(2)
    drawn = generator.uniform(-1, 1, (4, 32)), *generator.uniform(-0.2, 0.2, (2, 32))
    x, gamma, beta = map(quantise_fitting, drawn)
    normal = flexasr_layer_norm.bounded(x, gamma, beta)
    np.testing.assert_allclose(normal.value, reference.layer_norm(x.values, gamma.values, beta.values), atol=1e-12)
    assert (normal.error < 0.05).all()
    keys, query = (
        quantise_fitting(2 * generator.uniform(-1, 1, (8, 64))),
        quantise_fitting(generator.uniform(-1, 1, 64)),
    )
    context = flexasr_attention.bounded(keys, query, 3)
    np.testing.assert_allclose(context.value, reference.attention(keys.values, query.values), atol=1e-12)


@pytest.mark.parametrize(("rows", "stated"), [(1, True), (3, True), (5, False)])
def test_no_bound_of_attention_where_the_denominator_may_wrap(rows: int, stated: bool) -> None:
    keys, query = np.zeros((rows, 16)), np.zeros(16)
    keys[:, 0] = query[0] = 1.0
    bound = flexasr_attention.bounded(quantise_fitting(keys), quantise_fitting(query), 3).error
    assert np.isfinite(bound).all() == stated
    keys[0] = 0.0  # a score of zero is taken for -64
    assert np.isinf(flexasr_attention.bounded(quantise_fitting(keys), quantise_fitting(query), 3).error).all()


def test_rows_whose_sums_wrap_are_left_out() -> None:
    row = np.zeros((3, 32))
    row[0, :16] = 1.5  # squares sum up to 36 in one vector
    row[1, ::2], row[1, 1::2] = 0.9, -0.9  # to 13 in each of two
    row[2, :16] = 2.1  # the vector's sum is 33.6
    one = quantise_fitting(np.ones(32))
    error = flexasr_layer_norm.bounded(quantise(row, 4), one, one).error
    assert np.isinf(error).all(axis=1).tolist() == [True, False, True]
    assert np.isfinite(error[1]).all()


@pytest.mark.parametrize(("largest_value", "bias"), [(0.0, 0), (0.01, 0), (0.125, 0), (0.99, 2), (1.0, 3), (500.0, 7)])
def test_the_fitting_bias(largest_value: float, bias: int) -> None:
    assert fitting_bias(np.array([0.0, -largest_value])) == bias
