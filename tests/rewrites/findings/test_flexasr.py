"""FlexASR's findings against arithmetic from the published description, enumeration, and equal readings."""

from __future__ import annotations

import numpy as np
import pytest

from accel_models.flexasr.functions import exp
from accel_models.flexasr.layout import Start
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat, fixed_to_adpfloat_pre2022
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.program import parse_program, run
from ila_lang import Machine, compile_function
from rewrites.findings import flexasr_numbers, flexasr_programs
from rewrites.findings.finding import NotFound
from rewrites.findings.flexasr_numbers import affected_inputs, is_monotone, keeps_sign, weights_of_equal_scores
from rewrites.findings.flexasr_programs import Setup, final_buffer, paddings, program_text, reductions, smallest
from rewrites.findings.queries import smallest_counterexample

# -- the sign of saturated numbers ------------------------------------------------------------------------


def test_inputs_that_the_old_rule_changes_are_those_below_the_range() -> None:
    # the largest code is 31 * 2^(7 + b); from half a step beyond it on numbers saturate, ties going up
    assert affected_inputs() == [(1 << 19) - (63 << 6 + b) for b in range(8)]


def old_codes(bias: int) -> tuple[np.ndarray, np.ndarray]:
    """All numbers in ascending order, and the codes that they had before 2022."""
    numbers = np.arange(-(1 << 19), 1 << 19)
    convert = compile_function(fixed_to_adpfloat_pre2022, vector=True)
    return numbers, np.asarray(convert(numbers & 0xFFFFF, np.int64(bias)))


@pytest.mark.slow
def test_the_counterexamples_are_the_smallest_of_all() -> None:
    numbers, codes = old_codes(0)
    wrong = numbers[(codes & 0x7F != 0) & ((codes >> 7 == 1) != (numbers < 0))]
    values = np.asarray(compile_function(adpfloat_to_fixed, vector=True)(codes, np.int64(0)))
    values = values - (values >> 19 << 20)
    (falls,) = np.nonzero(np.diff(values) < 0)
    text = flexasr_numbers.saturation_sign().counterexample
    assert text.startswith(f"bias 0, {wrong[np.argmin(np.abs(wrong))]} · 2^-14")
    assert [f"not monotone: {numbers[at]} becomes" in text for at in falls] == [True]


@pytest.mark.parametrize("claim", [keeps_sign, is_monotone])
def test_without_the_fault_there_is_no_finding(claim) -> None:
    with pytest.raises(NotFound, match=r"needs the answer sat; z3 [0-9.]+: unsat"):
        smallest_counterexample("claim", claim(fixed_to_adpfloat), [])


def test_a_fault_that_is_still_there_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flexasr_numbers, "fixed_to_adpfloat", fixed_to_adpfloat_pre2022)
    with pytest.raises(NotFound, match=r"'keeps sign' .* needs the answer unsat; z3"):
        flexasr_numbers.saturation_sign.__wrapped__()


@pytest.mark.slow
def test_the_errors_grow_only_where_states_change() -> None:
    for _, now, old, changed in flexasr_numbers.lstm_errors(range(1)):
        assert all((a == b) == (count == 0) for a, b, count in zip(now, old, changed, strict=True))


# -- the denominator of softmax ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9, 16])
@pytest.mark.parametrize("code", [0x40, 0x55])
def test_weights_of_equal_scores_are_the_published_formula(count: int, code: int) -> None:
    power = compile_function(exp)(0)
    assert power == 1022 << 10
    numerator, denominator = power >> 16 & 63, count * power >> 16 & 63
    quotient = numerator * 256 // denominator % 1024 if denominator else 1023
    # as an AdaptivFloat number of five significant bits, which every such quotient fits
    kept = quotient >> max(quotient.bit_length() - 5, 0) << max(quotient.bit_length() - 5, 0)
    rounded = kept + (1 << quotient.bit_length() - 5 if quotient - kept >= 1 << quotient.bit_length() - 6 else 0)
    assert weights_of_equal_scores(count, code) == [min(rounded / 256, 1.9375)] * count


# -- programs ----------------------------------------------------------------------------------------------


def full_buffer(setup: Setup, vectors: int = 96) -> Setup:
    """The setup with another code in each vector of the buffer."""
    return Setup(setup.start, setup.registers, {v: v + 1 for v in range(vectors)}, setup.weights)


def reduction(count: int, unit: int, manager: int) -> Setup:
    registers = {
        "gb_layer_reduce_is_valid": 1,
        "gb_layer_reduce_num_vector_1": unit,
        "gb_layer_reduce_num_timestep_1": count,
        "gb_core_mem_mngr_large_num_vector_0": manager,
    }
    return full_buffer(Setup(Start.LAYER_REDUCE, registers, {}, {}))


def same(setup: Setup, other: FlexAsrOptions) -> bool:
    return final_buffer(setup, FlexAsrOptions()) == final_buffer(setup, other)


def test_strides_agree_up_to_16_timesteps() -> None:
    other = FlexAsrOptions(reduce_stride="unit")
    assert all(same(reduction(count, *sizes), other) for count in range(2, 17, 2) for sizes in ((1, 2), (2, 1), (1, 3)))
    assert not same(reduction(18, 1, 2), other)


def test_every_odd_number_of_timesteps_differs() -> None:
    other = FlexAsrOptions(reduce_odd="recorded")
    assert [count for count in range(2, 12) if not same(reduction(count, 1, 1), other)] == [3, 5, 7, 9, 11]


def test_padding_differs_from_three_vectors_on() -> None:
    other = FlexAsrOptions(padding_vectors="accumulated")

    def padding(vectors: int) -> Setup:
        registers = {
            "gb_zero_padding_is_valid": 1,
            "gb_zero_padding_num_vector_1": vectors,
            "gb_zero_padding_num_timestep_1": 0,
            "gb_zero_padding_num_timestep_2": 1,
        }
        return full_buffer(Setup(Start.ZERO_PADDING, registers, {}, {}))

    assert [same(padding(vectors), other) for vectors in range(1, 6)] == [True, True, False, False, False]


def test_readings_that_agree_are_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flexasr_programs, "EXAMPLES", 30)
    with pytest.raises(NotFound, match="no program among 30 tells the readings apart"):
        smallest(paddings, "gb_zero_padding_num_vector_1", range(1, 6), FlexAsrOptions())


def test_a_difference_where_readings_should_agree_is_no_finding() -> None:
    from hypothesis import strategies as st

    odd = reductions(st.just(3), st.just((1, 1)))
    with pytest.raises(NotFound, match="readings differ where they should agree: Setup"):
        flexasr_programs._agree(odd, FlexAsrOptions(reduce_odd="recorded"))


def test_the_program_file_reads_what_differs() -> None:
    setup, other = reduction(3, 1, 1), FlexAsrOptions(reduce_odd="recorded")
    program = parse_program(program_text(setup, other))
    left, right = (run(program, Machine(flexasr(options))) for options in (FlexAsrOptions(), other))
    assert len(left) == 1
    # row 1 is the maximum of rows 2 and 3, or as it was
    assert (left[0][1], right[0][1]) == (4, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flexasr_lstm_pre2022", "flexasr_attention_sum"])
def test_campaigns_find_them_too(name: str) -> None:
    from ilaverify.catalogue import find_campaign
    from rewrites.campaigns.campaign import run_campaign

    assert run_campaign(find_campaign(name), examples=100, seed=0).finding is not None
