from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import quantise
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import BY_WEIGHT_BITS, WGT_16BITS, HlscnnOptions
from accel_models.hlscnn.quantise import convolution_error
from accel_models.vta.model import vta
from docs.markdown_tables import with_table
from docs.numerics import PARTS
from docs.tables import NUMERICS_PAGE, TABLES
from ila_lang.text.portable import kernel_to_json
from ilaverify.catalogue import find_campaign
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.derivations.calculus import Bound, Operator
from rewrites.bounds.derivations.names import Written
from rewrites.bounds.kernel.formula import (
    MissingSymbol,
    constant,
    floor_log2,
    half_step,
    inverse_root,
    maximum,
    power_of_two,
    symbol,
)
from rewrites.bounds.lemmas.real_rules import RULES
from rewrites.campaigns.accelerators import hlscnn as hlscnn_campaign
from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr, run_hlscnn, run_vta
from rewrites.campaigns.campaign import CampaignResult, run_campaign
from rewrites.campaigns.definition import Campaign
from rewrites.claims.theorems import applied, recurrence
from rewrites.claims.theorems.flexasr import STEPS, STEPS_FROM
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.claims.theorems.recurrence import over_time, steady
from rewrites.mappings.flexasr.operations import attention
from rewrites.mappings.hlscnn.operations import conv2d
from rewrites.mappings.vta.operations import elementwise
from tests.rewrites.bounds.derivation import Derivation

# -- formulas ----------------------------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_logarithms_and_roots_are_exact_or_rounded_up(x: Fraction) -> None:
    k = floor_log2(x)
    assert Fraction(2) ** k <= x < Fraction(2) ** (k + 1)
    root = inverse_root(x).evaluate({})
    assert 1 <= root * root * x <= 1 + Fraction(1, 1 << 40)
    assert half_step(x).evaluate({}) == Fraction(2) ** (k - 5)


def test_formulas_are_simplified_and_written_as_people_do() -> None:
    x, y = symbol("x"), symbol("y")
    assert str(x + 0) == "x"
    assert x * 0 == constant(0)
    assert str(2 * (x + y) - Fraction(1, 1 << 14)) == "2 (x + y) - 2^-14"
    assert str(1 - (x + y)) == "-(x + y) + 1"
    assert str(maximum(x, x)) == "x"
    assert str(x / (y * power_of_two(y + 1))) == "x / (y 2^(y + 1))"
    assert (x - y).evaluate({"x": Fraction(1), "y": Fraction(3)}) == -2
    with pytest.raises(MissingSymbol, match="y must be given a value"):
        (x + y).evaluate({"x": Fraction(1)})
    with pytest.raises(ZeroDivisionError, match=r"^the divisor y must be positive, not 0.0$"):
        (x / y).evaluate({"x": Fraction(1), "y": Fraction(0)})
    with pytest.raises(ValueError, match=r"^2.x must be given an integer x, not 1/2$"):
        power_of_two(Fraction(1, 2))


# -- derivations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_derivations_use_lemmas_and_rules_that_exist_and_have_an_example(name: str) -> None:
    operator = OPERATORS[name]
    assert set(operator.lemmas) <= set(LEMMAS)
    assert set(operator.rules) <= set(RULES)
    bound = operator.bound(operator.example)
    assert bound.unmet == ()
    assert bound.value is not None
    assert 0 <= bound.value < 1


KERNELS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "GB_CONTROL_START": (flexasr, ("FlexASR linear + relu", "FlexASR RNN step", "FlexASR GRU step",
                                   "FlexASR LSTM step, hidden state", "FlexASR LSTM step, cell state")),
    "GB_LAYER_REDUCE_START": (flexasr, ("FlexASR max pooling", "FlexASR mean pooling", "FlexASR add pooling")),
    "GB_LAYER_NORM_START": (flexasr, ("FlexASR layer norm",)),
    "GB_ATTENTION_START": (flexasr, ("FlexASR attention",)),
    "ACCEL_CONV_TRIGGER": (hlscnn, ("HLSCNN conv2d, weights of 16 bits, bias",)),
    "GEMM": (vta, ("VTA dense", "VTA dense and relu")),
    "ALU_ADD": (vta, ("VTA sum",)),
    "ALU_MIN": (vta, ("VTA minimum",)),
    "ALU_MAX": (vta, ("VTA maximum and ReLU",)),
    "ALU_SHR": (vta, ("VTA shift",)),
}  # fmt: skip
# What other programs of the same instruction use, and what a rule stands for.
BESIDE = {
    "ACCEL_CONV_TRIGGER": {"hlscnn_rectify"},
    "GEMM": {"alu_add", "alu_min", "alu_max", "alu_shr_signed5", "widen_imm"},
}


@pytest.mark.parametrize("instruction", KERNELS)
def test_derivations_use_the_primitives_of_the_kernels(instruction: str) -> None:
    model, operators = KERNELS[instruction]
    kernel = model().instructions[instruction].kernel
    in_kernel = {f["n"] for f in kernel_to_json(kernel)["f"]}
    derived = {LEMMAS[n].function.name for o in operators for n in OPERATORS[o].lemmas}
    assert in_kernel ^ derived <= BESIDE.get(instruction, set())


def test_operators_say_what_they_were_not_given() -> None:
    layer = OPERATORS["FlexASR linear"]
    with pytest.raises(ValueError, match=r"^symbols of FlexASR linear must be among W, .*, not Q$"):
        layer.bound({"Q": 1.0})
    d = Derivation()
    d.lemma("encode", d.lemma("decode", d("given", names=["x", "code", "X", "0", "b_x"])), "b")
    with pytest.raises(ValueError, match=r"^symbols of op must all have a meaning; X, b has none$"):
        Operator("op", "", {}, lambda: Written(tuple(d.steps)), {}).theorem  # noqa: B018


def test_bounds_fail_with_the_condition_that_does_not_hold() -> None:
    layer = OPERATORS["FlexASR linear"]
    bound = layer.bound({**layer.example, "I": 4096})
    assert bound.value is None
    assert [c.reason for c in bound.unmet] == ["the accumulator of 32 bits wraps"]
    norm = OPERATORS["FlexASR layer norm"]
    assert norm.bound({**norm.example, "v": Fraction(1, 2000)}).value is None
    assert norm.bound({**norm.example, "X": 2}).value is None


def test_recurrent_bounds_start_with_the_step_and_grow() -> None:
    step = OPERATORS["FlexASR RNN step"]
    given = {n: v for n, v in step.example.items() if n != "e_h"}
    bounds = [b.value for b in over_time("rnn", given, 5)]
    first = step.bound(step.example).value
    assert first is not None
    assert bounds[0] is not None
    assert 0 <= bounds[0] - first < Fraction(1, 1 << 40)
    whole = OPERATORS["FlexASR RNN, T steps"]
    for steps, bound in enumerate(bounds, 1):
        closed = whole.bound({**given, "G": Fraction(steps)}).value
        assert bound is not None
        assert closed is not None
        assert bound <= closed + Fraction(steps, 1 << 40)
        assert closed <= 1.01 * float(bound)


def test_bounds_cover_all_steps_where_cell_states_become_smaller() -> None:
    """From a large cell state the step's bound is the largest at first: it grows with the cell."""
    hidden, _ = STEPS_FROM["lstm"]
    ranges = {n: v for n, v in hidden.example.items() if n not in ("e_h", "e_c", "C")} | {"F": Fraction(1, 4)}
    values = [b.value for b in over_time("lstm", ranges, 6, Fraction(8))]
    assert None not in values
    assert values == sorted(values), "each is about all states up to its timestep"  # type: ignore[type-var]
    later = over_time("lstm", ranges, 1, Fraction(2))[0].value
    assert values[0] is not None and later is not None and later < values[0]


def test_a_bound_for_any_number_of_steps_is_above_that_of_every_number() -> None:
    step = OPERATORS["FlexASR RNN step"]
    given = {n: v for n, v in step.example.items() if n != "e_h"} | {"u": Fraction(1, 32)}
    always = steady("rnn", given)
    over = [b.value for b in over_time("rnn", given, 200)]
    assert always is not None and always.value is not None
    assert all(b is not None and b <= always.value for b in over)
    assert over[-1] is not None and always.value < 1.05 * float(over[-1])
    again = step.bound({**given, "e_h": always.value}).value
    assert again is not None and again <= always.value, "a step does not enlarge it"
    # rows of hidden weights that sum up to 1, and gates of 1: every step adds something
    assert steady("rnn", {**given, "u": Fraction(1, 16)}) is None
    assert steady("gru", given) is None and steady("lstm", {**given, "C": 1}) is None


@pytest.mark.parametrize(("kind", "gate"), [("gru", Fraction(3, 4)), ("lstm", Fraction(5, 8))])
def test_gates_below_1_bound_any_number_of_steps(kind: str, gate: Fraction) -> None:
    hidden, *cell = (OPERATORS[o.name] for o in STEPS[kind])
    given = {n: v for n, v in hidden.example.items() if n not in ("e_h", "e_c", "C")}
    given |= {"u": Fraction(1, 256), "F": gate, **({"E": gate} if kind == "gru" else {})}
    always, over = steady(kind, given), [b.value for b in over_time(kind, given, 80)]
    assert always is not None and always.value is not None and always.value < 0.6
    assert len(over) == 80 and all(b is not None and b <= always.value for b in over)
    assert over[-1] is not None and over[-1] > Fraction(1, 2) * always.value
    assert steady(kind, {**given, "F": 1, "E": 1} if kind == "gru" else {**given, "F": 1}) is None
    for state in cell:  # F / (1 - F) is the most that cell states come to; from larger ones none is found to be smaller
        most = gate / (1 - gate)
        assert state.values({**given, "C": most, "e_h": 0, "e_c": 0})["V"] == most
        from_larger = steady(kind, given, 2 * most)
        assert from_larger is not None and from_larger.value is not None and from_larger.value > always.value


def test_a_bound_that_a_step_enlarges_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where errors of all steps before were forgotten, a formula may fall as they grow, or cell states grow on."""
    cells = {n: v for n, v in STEPS["lstm"][0].example.items() if n not in ("e_h", "e_c", "C")}
    cells |= {"u": Fraction(1, 256), "F": Fraction(5, 8)}
    assert steady("lstm", cells) is not None
    monkeypatch.setattr(recurrence, "_cell_after", lambda operators, ranges, before: before + 1)
    assert steady("lstm", cells) is None
    given = {n: v for n, v in OPERATORS["FlexASR RNN step"].example.items() if n != "e_h"} | {"u": Fraction(1, 32)}
    monkeypatch.setattr(recurrence, "_limit", lambda before, now, after: now * 9 / 10)
    assert steady("rnn", given) is None
    e, m = symbol("e_h"), symbol("m")
    assert recurrence.grows(maximum(e, m) * m + half_step(e) - 1, ["e_h"])
    assert not any(recurrence.grows(f, ["e_h"]) for f in (m - e, e * (m - 1), m / e))


def test_the_convolutions_bound_is_that_of_the_quantiser() -> None:
    for kernel, channels in ((1, 8), (3, 16), (5, 17)):
        taps = kernel**2 * math.ceil(channels / 8)
        for bits in (16, 8):
            operator = OPERATORS[f"HLSCNN conv2d, weights of {bits} bits"]
            bound = operator.bound({"n": taps, "x": 1, "w": 1, "M": 8}).value
            least, most = convolution_error(channels, (kernel, kernel), BY_WEIGHT_BITS[bits])
            stored = 2.0**-7 - 2.0**-16  # counted by the quantiser's also without a bias
            assert bound is not None
            assert float(bound) == pytest.approx(-least - stored, abs=1e-12)
            # taps are rounded to nearest; only products of weights of 16 bits are cut
            assert most == taps * 2.0**-8 <= float(bound)
            assert (most == float(bound)) is (bits == 8)


@pytest.mark.parametrize("name", ["flexasr_meanpool", "flexasr_addpool", "flexasr_linear", "flexasr_layernorm",
                                  "flexasr_attention", "hlscnn_conv2d", "flexasr_gru", "flexasr_lstm"])  # fmt: skip
def test_ranges_are_at_most_their_defaults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges that examples have, against what follows from sizes and the largest magnitudes alone."""
    right, compared = Operator.values, []

    def spy(operator: Operator, given: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
        found = right(operator, given)
        ranges = [n for n in operator.defaults if n in given and n not in ("s", "m")]  # these are lower bounds
        rest = right(operator, {n: v for n, v in given.items() if n not in operator.defaults})
        for n in ranges:
            assert found[n] <= rest[n] + Fraction(1, 1 << 30), n
            compared.append(n)
        assert all(found[n] >= rest[n] - Fraction(1, 1 << 30) for n in ("s", "m") if n in operator.defaults)
        return found

    monkeypatch.setattr(Operator, "values", spy)
    run_campaign(find_campaign(name), examples=4, seed=3)
    assert len(compared) >= 4


# -- bounds that are a little too small are refuted --------------------------------------------------------

# The part of the bound above which an example must be found: the closer to 1, the sharper the bound.
WHOLE = (applied.Applied, "whole")
SHARP: Mapping[str, tuple[tuple[Any, str], float]] = {
    "flexasr_meanpool": (WHOLE, 0.99),
    "flexasr_addpool": (WHOLE, 0.99),
    "flexasr_linear": (WHOLE, 0.98),
    "flexasr_layernorm": (WHOLE, 0.85),
    "flexasr_rnn": ((applied, "recurrent"), 0.4),
    "flexasr_gru": ((applied, "recurrent"), 0.25),
    "flexasr_lstm": ((applied, "recurrent"), 0.1),
    "flexasr_attention": (WHOLE, 0.08),
    "hlscnn_conv2d": ((hlscnn_campaign, "at_worst"), 0.85),
    "hlscnn_conv2d_8bit": ((hlscnn_campaign, "at_worst"), 0.8),
}
LONG = {"flexasr_layernorm", "flexasr_gru", "flexasr_lstm", "flexasr_rnn", "flexasr_attention", "hlscnn_conv2d_8bit"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in SHARP])
def test_a_bound_that_is_too_small_is_refuted_by_an_example_that_replays(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place, function), part = SHARP[name]
    right = getattr(place, function)

    def less(bound: Any) -> Any:
        if not isinstance(bound, Bound):
            return bound
        return replace(bound, value=None if bound.value is None else bound.value * Fraction(part))

    def smaller(*args: Any) -> Any:
        found = right(*args)
        return less(found) if isinstance(found, Bound) else type(found)(map(less, found))

    campaign = find_campaign(name)
    assert with_few(campaign).finding is None
    monkeypatch.setattr(place, function, smaller)
    finding = with_few(campaign).finding
    assert finding is not None
    assert finding.violation.name == "within the a-priori bound"
    again = campaign.evaluate(finding.example).violation
    assert again is not None
    assert again.text == finding.violation.text
    monkeypatch.undo()
    assert campaign.evaluate(finding.example).violation is None


def with_few(campaign: Campaign) -> CampaignResult:
    return run_campaign(campaign, examples=16, seed=1)


def test_a_convolution_reaches_nearly_all_of_its_bound() -> None:
    """Products that lose 31/32 of 2^-16 each, and sums that are just below half a unit of a word, or that half."""
    taps, x = 9, np.ones((8, 3, 3), int)  # 2^-7
    # in units of 2^-21, 8 products of which 255 2^-16 are left, one less than half of 2^-7
    below = np.full((1, 8, 3, 3), 32 * 32 + 31)
    below[:, 0] -= 32
    wide = OPERATORS["HLSCNN conv2d, weights of 16 bits"].bound({"n": taps, "x": 1, "w": 1, "M": 1}).value
    (result,) = run_hlscnn(conv2d(x, below, weight_bits=16), WGT_16BITS).ravel()
    assert wide is not None
    assert result == 0
    assert 0.99 * wide < Fraction(int(below.sum()), 1 << 21) <= wide
    # products of 2^-7 and 2^-6: a sum of 32 of them is 2^-8, half of 2^-7, which is rounded up
    half = np.full((1, 8, 3, 3), 4)
    narrow = OPERATORS["HLSCNN conv2d, weights of 8 bits"].bound({"n": taps, "x": 1, "w": 1, "M": 1}).value
    (result,) = run_hlscnn(conv2d(x, half), HlscnnOptions()).ravel()
    assert Fraction(int(result), 1 << 7) - Fraction(int(half.sum()), 1 << 13) == narrow == Fraction(taps, 1 << 8)


def test_bytes_wrap_where_the_condition_fails() -> None:
    a = np.array([[100]], np.int32)
    total = run_vta(elementwise("add", a, a))
    assert total[0, 0] == 200 - 256
    operator = OPERATORS["VTA sum"]
    assert operator.bound({"A": 100}).value is None
    assert operator.bound({"A": 60}).value == 0


# -- attention's wrap --------------------------------------------------------------------------------------


def run_attention(timesteps: int) -> tuple[np.ndarray, float]:
    """The result for equal keys of 1, which is 1 for every number of them."""
    keys, query = quantise_fitting(np.ones((timesteps, 16))), quantise_fitting(np.full(16, 0.25))
    bound = applied.attention(keys, query, 3, 6).whole().value
    result = run_flexasr(attention(keys, query, output_bias=6, weight_bias=3)).values
    return result, math.inf if bound is None else float(bound)


def test_up_to_four_timesteps_attention_has_a_bound_and_from_five_equal_ones_it_wraps() -> None:
    for timesteps in (1, 2, 3, 4):
        result, bound = run_attention(timesteps)
        assert np.abs(result - 1).max() <= bound < 2
    result, bound = run_attention(5)
    assert bound == math.inf
    assert (result == 5).all()


def test_attention_needs_its_conditions() -> None:
    operator = OPERATORS["FlexASR attention"]

    def reasons(**changes: float) -> list[str]:
        return [c.reason for c in operator.bound({**operator.example, **changes}).unmet]

    assert reasons() == []
    assert reasons(T=4) == []
    assert "the divider takes its operands modulo 4" in reasons(T=5)
    assert reasons(T=64, t=3.5, s=3) == []
    assert "the unit takes a score of exactly 0 for -64" in reasons(z=1)
    assert "rows that fill the last block count in the sum" in reasons(m=-48)
    assert "a difference of scores wraps (Q12.20)" in reasons(R=1024)


def test_a_score_that_is_rounded_down_to_0_is_not_taken_for_less() -> None:
    """The unit compares with 0 before it rounds: a score of 2^-28 counts, one of exactly 0 does not."""
    keys, query = np.zeros((2, 16)), np.zeros(16)
    keys[0, :2], query[:2] = (18 / 2**14, 17 / 2**14), (18 / 2**14, -19 / 2**14)
    keys[1, 0], keys[1, 3] = 30 / 2**14, 31 / 2**9
    for first, counts in ((keys[0], 2), (np.zeros(16), 1)):
        k, q = quantise(np.stack([first, keys[1]]), 0), quantise(query, 0)
        scores = k.values @ q.values
        assert scores[0] == (2.0**-28 if counts == 2 else 0) and scores[1] > 2.0**-20
        bound = applied.attention(k, q, 3, 0).whole()
        reasons = [c.reason for c in bound.unmet]
        assert ("the unit takes a score of exactly 0 for -64" in reasons) is (counts == 1)
        result = run_flexasr(attention(k, q, output_bias=0, weight_bias=3)).values
        assert result[3] == pytest.approx(keys[1, 3] / counts, rel=0.05)


# -- the document ------------------------------------------------------------------------------------------


def test_the_document_has_the_tables_of_today() -> None:
    text = NUMERICS_PAGE.read_text(encoding="utf-8")
    again = text.replace("| relu |", "| reru |")
    assert again != text
    for name in PARTS:
        lines, _ = TABLES[name].make(60.0)
        again = with_table(again, name, lines)
    assert again == text, "run python -m docs.tables --write " + " ".join(PARTS)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 3))
def test_bounds_grow_with_ranges(size: int, bias: int) -> None:
    """A larger range never makes a bound smaller, which the bound over time relies on."""
    layer = OPERATORS["FlexASR linear"]
    given_ = {**layer.example, "w": Fraction(1, 64), "b_y": bias}
    small = layer.bound({**given_, "I": 16 * size}).value
    large = layer.bound({**given_, "I": 16 * size + 16}).value
    assert small is not None
    assert large is not None
    assert small <= large
