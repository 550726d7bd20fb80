"""Where public implementations of VTA disagree: each difference is found by search, not asserted.

The searches stand in ``rewrites.findings``, which also shows to users what they find.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load, MemoryId, Uop, encode
from accel_models.vta.options import CHISEL, FSIM, HLS, VTA_ILA, VtaOptions
from rewrites.findings import vta_programs
from rewrites.findings.vta import HARMLESS, SHIFTS
from rewrites.findings.vta_programs import (
    ACCUMULATORS,
    alu,
    gemms,
    loads_inputs,
    loads_of_acc,
    outputs,
    padded_loads,
    shows_inputs,
    text,
)
from tests.accel_models.vta.device import issue, machine_with


def difference(left: VtaOptions, right: VtaOptions, within: Any = vta_programs.programs) -> list[Instruction]:
    """The shrunk program that tells two readings apart; there must be one."""
    found = vta_programs.difference(left, right, within)
    assert found is not None
    return found


def agree(left: VtaOptions, right: VtaOptions, within: Any, examples: int = 100) -> bool:
    """Whether none of so many programs tells two readings apart."""
    return vta_programs.difference(left, right, within, examples) is None


# -- the differences ------------------------------------------------------------------------------------------


def test_a_store_after_a_load_gives_stale_outputs() -> None:
    program = difference(HLS, replace(HLS, store_source="acc"))
    assert len(program) == 1
    (load,) = program
    assert isinstance(load, Load) and load.memory is MemoryId.ACC
    stored = ACCUMULATORS[load.dram_base] & 0xFF
    assert outputs(program, FSIM)[0] == stored
    # nothing has been computed: OUT is what it was after reset
    assert outputs(program, HLS) == outputs(program, CHISEL) == [0, 0, 0, 0]


def test_gemm_reset_leaves_the_product_in_the_outputs() -> None:
    resets = st.lists(gemms, min_size=1, max_size=2)
    program = difference(HLS, replace(HLS, gemm_reset="zero"), resets)
    assert text(program) == ["gemm uops=0:1 iters=1x1 reset"]
    assert outputs(program, HLS)[0] == 9
    assert outputs(program, FSIM)[0] == 0
    program = difference(HLS, replace(HLS, gemm_reset="zero_no_out"), resets)
    assert any(isinstance(x, Gemm) and x.reset_reg for x in program)
    program = difference(replace(HLS, gemm_reset="zero"), replace(HLS, gemm_reset="zero_no_out"), resets)
    assert isinstance(program[-1], Gemm) and program[-1].reset_reg and len(program) == 2


def test_a_shift_by_16_or_more_goes_left() -> None:
    shifts = SHIFTS
    program = difference(HLS, replace(HLS, shr="full"), shifts)
    shift = program[1]
    assert isinstance(shift, Alu) and shift.imm >= 16
    value = ACCUMULATORS[program[0].dram_base]  # type: ignore[attr-defined]
    assert outputs(program, FSIM)[0] == value >> shift.imm & 0xFF
    assert outputs(program, HLS)[0] == value << 32 - shift.imm & 0xFF
    below = shifts.filter(lambda p: p[1].imm < 16)  # type: ignore[attr-defined]
    assert agree(HLS, replace(HLS, shr="full"), below)
    program = difference(replace(HLS, shr="chisel"), replace(HLS, shr="signed5"), shifts)
    assert program[1].imm >= 16  # type: ignore[attr-defined]


def test_chisel_looks_at_the_immediate_of_a_register_shift() -> None:
    def shifts(low: int, high: int) -> Any:
        # an accumulator shifted by itself: 100 modulo 32 is 4
        load = Load(memory=MemoryId.ACC, dram_base=ACCUMULATORS.index(100), x_size=1, x_stride=1)
        return st.integers(low, high).map(lambda imm: [load, Alu(alu_opcode=AluOp.SHR, uop_end=1, imm=imm)])

    chisel = replace(HLS, shr="chisel")
    program = difference(chisel, HLS, shifts(-5, 5))
    assert text(program)[1] == "alu.shr uops=0:1 iters=1x1 idle_imm=-1"
    assert agree(chisel, HLS, shifts(0, 5), examples=50)


def test_negative_shifts() -> None:
    negative = st.tuples(loads_of_acc, st.integers(-33, -1)).map(lambda p: [p[0], alu(AluOp.SHR, p[1])])
    program = difference(HLS, replace(HLS, shr="full"), negative)
    assert program[1].imm < -16  # type: ignore[attr-defined]


@pytest.mark.parametrize("reading", ["unchanged", "rejected"])
def test_mul_multiplies_in_the_simulator_only(reading: Any) -> None:
    program = difference(replace(HLS, mul="multiplies"), replace(HLS, mul=reading))
    assert any(isinstance(x, Alu) and x.alu_opcode is AluOp.MUL for x in program)
    assert (outputs(program, replace(HLS, mul=reading)) == "refused") is (reading == "rejected")


def test_loops_of_no_iterations_run_once_in_some() -> None:
    program = difference(HLS, replace(HLS, zero_iterations="do_while"))
    # the shortest one clears, or adds to, an accumulator in no iterations
    (loop,) = program
    assert isinstance(loop, Gemm | Alu)
    assert 0 in (loop.iter_out, loop.iter_in, loop.uop_end - loop.uop_bgn)
    assert outputs(program, HLS) == [0, 0, 0, 0]
    assert outputs(program, CHISEL if not isinstance(loop, Gemm) or not loop.reset_reg else VTA_ILA) != [0, 0, 0, 0]


def test_rows_of_a_padded_load_overlap_in_the_published_ila() -> None:
    loads = st.tuples(padded_loads.filter(loads_inputs), shows_inputs).map(list)
    program = difference(HLS, replace(HLS, padded_rows="data"), loads)
    load = program[0]
    assert isinstance(load, Load) and load.y_size > 1 and (load.x_pad_0 or load.x_pad_1)
    one_row_or_no_pad = loads.filter(lambda p: p[0].y_size < 2 or not (p[0].x_pad_0 or p[0].x_pad_1))
    assert agree(HLS, replace(HLS, padded_rows="data"), one_row_or_no_pad)


def test_pads_of_accumulators_are_ignored_by_the_hls_design() -> None:
    program = difference(replace(FSIM, acc_padding="ignored"), FSIM)
    assert any(isinstance(x, Load) and x.memory is MemoryId.ACC for x in program)


def test_a_load_without_data_writes_its_pads_in_the_hls_design() -> None:
    program = difference(HLS, replace(HLS, empty_load="nothing"))
    load = next(x for x in program if isinstance(x, Load))
    assert load.memory is MemoryId.INP and load.x_size == 0


def test_pads_of_weights_move_the_weights() -> None:
    loads = st.builds(
        lambda pad: [
            Load(memory=MemoryId.WGT, dram_base=1, x_size=1, x_stride=1, x_pad_0=pad),
            Gemm(uop_end=1, iter_out=1),
        ],
        st.integers(0, 3),
    )
    program = difference(HLS, replace(HLS, wgt_uop_padding="honoured"), loads)
    assert isinstance(program[0], Load) and program[0].x_pad_0 == 1


def test_indices_beyond_a_scratchpad_wrap_around_in_chisel() -> None:
    machine = machine_with(CHISEL, [Uop(dst=2047, src=2047)], acc={16 * 0: 7, 16 * 2047: 1})
    issue(machine, "alu.add uops=0:1 iters=2x1 dst=1,0 src=1,0 imm=1", CHISEL)
    assert (machine.memories["acc"][16 * 2047], machine.memories["acc"][0]) == (2, 8)
    machine = machine_with(HLS, [Uop(dst=2047)])
    issue(machine, "alu.add uops=0:1 iters=2x1 dst=1,0 imm=1")
    assert machine.memories["fault"][0] == 1


def test_results_that_arrive_late_are_not_seen() -> None:
    late: Any = replace(HLS, back_to_back="stale", write_latency=2)
    program = difference(HLS, late, st.lists(vta_programs.repeating, min_size=1, max_size=2))
    assert text(program) == ["gemm uops=0:1 iters=2x1"]
    assert (outputs(program, HLS)[0], outputs(program, late)[0]) == (18, 9)
    assert outputs(program, replace(HLS, back_to_back="refused")) == "refused"
    # Chisel's GEMM has a bypass, its ALU an assertion
    assert outputs(program, CHISEL)[0] == 18
    assert outputs([Alu(alu_opcode=AluOp.ADD, uop_end=1, iter_out=2, use_imm=True, imm=1)], CHISEL) == "refused"


def test_immediates_combine_with_the_source_in_chisel() -> None:
    adds = st.builds(
        lambda src: [Alu(alu_opcode=AluOp.ADD, uop_end=1, iter_out=2, src_factor_out=src, use_imm=True, imm=5)],
        st.integers(0, 2),
    )
    chisel = replace(HLS, immediate_operand="source")
    program = difference(HLS, chisel, adds)
    # the second iteration adds to accumulator 1, which is 0, and puts the sum into accumulator 0
    assert text(program) == ["alu.add uops=0:1 iters=2x1 src=1,0 imm=5"]
    assert (outputs(program, HLS)[0], outputs(program, chisel)[0]) == (10, 5)


def test_fields_that_overflow_are_cut_by_the_packer() -> None:
    wide = Load(memory=MemoryId.INP, dram_base=16, x_size=1, x_stride=1, y_pad_0=17)
    word = encode(wide, truncate=True)
    assert word == encode(replace(wide, y_pad_0=1))


def test_readings_agree_on_programs_without_the_differences() -> None:
    for other in (FSIM, CHISEL, VTA_ILA):
        # the untouched elements of OUT and ACC are 0 in both
        assert agree(HLS, other, HARMLESS, examples=60)
