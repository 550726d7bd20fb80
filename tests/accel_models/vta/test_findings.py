"""Where public implementations of VTA disagree: each difference is found by search, not asserted.

:func:`difference` looks for a short program, and shrinks it, after which two readings leave other output bytes in DRAM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from accel_models.vta.assembly import format_instruction
from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load, MemoryId, Store, Uop, encode
from accel_models.vta.options import CHISEL, FSIM, HLS, VTA_ILA, VtaOptions
from ila_lang import CommandError
from tests.accel_models.vta.device import issue, machine_with

# -- the search -----------------------------------------------------------------------------------------------

ACCUMULATORS = [3, -5, 100, 1 << 20, -(1 << 20), 16, 17, 31]  # by element; each lane holds the same
OUTPUT = 4096  # elements
Run = Callable[[list[Instruction], VtaOptions], "list[int] | str"]


def _alu(operation: AluOp, imm: int | None) -> Alu:
    return Alu(alu_opcode=operation, uop_end=1, use_imm=imm is not None, imm=imm or 0)


loads_of_acc = st.builds(lambda at: Load(memory=MemoryId.ACC, dram_base=at, x_size=1, x_stride=1), st.integers(0, 7))
gemms = st.builds(
    lambda end, outer, inner, reset: Gemm(uop_end=end, iter_out=outer, iter_in=inner, reset_reg=reset),
    st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.booleans(),
)  # fmt: skip
alus = st.builds(_alu, st.sampled_from(list(AluOp)), st.none() | st.integers(0, 20) | st.integers(-20, -1))
padded_loads = st.builds(
    lambda memory, y, x, pads: Load(memory=memory, dram_base=16 if memory is MemoryId.INP else 0, y_size=y, x_size=x,
                                    x_stride=1, y_pad_0=pads[0], y_pad_1=pads[1], x_pad_0=pads[2], x_pad_1=pads[3]),
    st.sampled_from([MemoryId.INP, MemoryId.ACC]), st.integers(0, 2), st.integers(0, 1),
    st.tuples(*[st.integers(0, 1)] * 4),
)  # fmt: skip
# each lane of the input counts in one output channel: outputs show inputs
shows_inputs = st.just(Gemm(uop_end=1, iter_out=4, dst_factor_out=1, src_factor_out=1))
programs = st.lists(st.one_of(loads_of_acc, gemms, alus, padded_loads, shows_inputs), min_size=1, max_size=3)


def outputs(program: list[Instruction], options: VtaOptions) -> list[int] | str:
    """The first bytes of four output elements after the program and a STORE, or "refused"."""
    accumulators = {
        64 * element + 4 * lane + i: byte
        for element, value in enumerate(ACCUMULATORS)
        for lane in range(16)
        for i, byte in enumerate((value & 0xFFFFFFFF).to_bytes(4, "little"))
    }
    inputs = {256 + i: 1 + i // 16 for i in range(64)} if any(_loads_inputs(x) for x in program) else {}
    machine = machine_with(
        options,
        [Uop(src=0, dst=0)],
        # row r of the inputs is r + 1, weights are the identity
        dram=accumulators | inputs,
        inp=dict.fromkeys(range(64), 9),
        wgt={17 * i: 1 for i in range(16)},
    )
    try:
        for instruction in [*program, Store(dram_base=OUTPUT, x_size=4, x_stride=4)]:
            issue(machine, instruction, options)
    except CommandError:
        return "refused"
    return [machine.memories["dram"][16 * (OUTPUT + row)] for row in range(4)]


def _loads_inputs(instruction: Instruction) -> bool:
    return isinstance(instruction, Load) and instruction.memory is MemoryId.INP


def difference(left: VtaOptions, right: VtaOptions, within: Any = programs, examples: int = 2000) -> list[Instruction]:
    """A shortest program that tells two readings apart; raises NoSuchExample if none is among ``examples``."""
    found: list[Instruction] = find(
        within,
        lambda program: outputs(program, left) != outputs(program, right),
        settings=settings(
            max_examples=examples, derandomize=True, database=None, deadline=None,
            suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
        ),
    )  # fmt: skip
    return found


def text(program: list[Instruction]) -> list[str]:
    """The program's assembly, spaces joined."""
    return [" ".join(format_instruction(x).split()) for x in program]


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
    shifts = st.tuples(loads_of_acc, st.integers(0, 31)).map(lambda p: [p[0], _alu(AluOp.SHR, p[1])])
    program = difference(HLS, replace(HLS, shr="full"), shifts)
    shift = program[1]
    assert isinstance(shift, Alu) and shift.imm >= 16
    value = ACCUMULATORS[program[0].dram_base]  # type: ignore[attr-defined]
    assert outputs(program, FSIM)[0] == value >> shift.imm & 0xFF
    assert outputs(program, HLS)[0] == value << 32 - shift.imm & 0xFF
    below = shifts.filter(lambda p: p[1].imm < 16)  # type: ignore[attr-defined]
    with pytest.raises(NoSuchExample):
        difference(HLS, replace(HLS, shr="full"), below, examples=100)
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
    with pytest.raises(NoSuchExample):
        difference(chisel, HLS, shifts(0, 5), examples=50)


def test_negative_shifts() -> None:
    negative = st.tuples(loads_of_acc, st.integers(-33, -1)).map(lambda p: [p[0], _alu(AluOp.SHR, p[1])])
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
    loads = st.tuples(padded_loads.filter(_loads_inputs), shows_inputs).map(list)
    program = difference(HLS, replace(HLS, padded_rows="data"), loads)
    load = program[0]
    assert isinstance(load, Load) and load.y_size > 1 and (load.x_pad_0 or load.x_pad_1)
    one_row_or_no_pad = loads.filter(lambda p: p[0].y_size < 2 or not (p[0].x_pad_0 or p[0].x_pad_1))
    with pytest.raises(NoSuchExample):
        difference(HLS, replace(HLS, padded_rows="data"), one_row_or_no_pad, examples=100)


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
    machine = machine_with(CHISEL, [Uop(dst=2047)], acc={16 * 0: 7, 16 * 2047: 1})
    issue(machine, "alu.add uops=0:1 iters=2x1 dst=1,0 imm=1", CHISEL)
    assert (machine.memories["acc"][16 * 2047], machine.memories["acc"][0]) == (2, 8)
    machine = machine_with(HLS, [Uop(dst=2047)])
    issue(machine, "alu.add uops=0:1 iters=2x1 dst=1,0 imm=1")
    assert machine.memories["fault"][0] == 1


def test_fields_that_overflow_are_cut_by_the_packer() -> None:
    wide = Load(memory=MemoryId.INP, dram_base=16, x_size=1, x_stride=1, y_pad_0=17)
    word = encode(wide, truncate=True)
    assert word == encode(replace(wide, y_pad_0=1))


def test_readings_agree_on_programs_without_the_differences() -> None:
    harmless = st.lists(
        st.builds(_alu, st.sampled_from([AluOp.MIN, AluOp.MAX, AluOp.ADD]), st.none() | st.integers(-20, 20)),
        min_size=1, max_size=2,
    ).flatmap(lambda steps: loads_of_acc.map(lambda load: [load, *steps]))  # fmt: skip
    for other in (FSIM, CHISEL, VTA_ILA):
        with pytest.raises(NoSuchExample):
            # the untouched elements of OUT and ACC are 0 in both
            difference(HLS, other, harmless, examples=60)
