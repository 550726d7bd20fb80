"""The ILA: every instruction against the oracle in every reading, decodes, tokens, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.vta.assembly import parse_instruction
from accel_models.vta.isa import ENCODINGS, Alu, AluOp, Finish, Gemm, Instruction, Load, MemoryId, Store, Uop, encode
from accel_models.vta.model import QUEUES, CommandKind, vta
from accel_models.vta.options import CHISEL, FSIM, HLS, PRESETS, VTA_ILA, VtaOptions
from ila_lang import CommandError, Machine, Simulator, child_differs
from smt_encodings.claims import Status
from smt_encodings.wellformed import check_ila
from tests.accel_models.vta.device import contents, fill, issue, machine_with
from tests.accel_models.vta.oracle import Oracle

READINGS = [*PRESETS.values(), replace(HLS, gemm_reset="zero", mul="multiplies"), replace(FSIM, empty_load="pads")]
PIPELINED = [
    *(replace(HLS, back_to_back="stale", write_latency=latency) for latency in (1, 2, 3, 4)),
    *(replace(HLS, back_to_back="refused", write_latency=latency) for latency in (1, 4)),
    replace(CHISEL, back_to_back="stale"),
    replace(FSIM, back_to_back="stale", write_latency=1),
]


# -- well-formedness ------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("options", PRESETS.values(), ids=PRESETS)
def test_decodes_are_exclusive_and_complete_and_loops_end(options: VtaOptions) -> None:
    findings = check_ila(vta(options))
    assert len(findings) > 80
    assert [f.check for f in findings if f.status is not Status.PROVED] == []


def test_models_are_built_once_per_reading() -> None:
    assert vta() is vta(VtaOptions())
    assert vta(FSIM) is not vta()


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^shr must be full or signed5 or chisel, not 'signed'$"):
        VtaOptions(shr="signed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^acc_8bit must be False or True, not 'yes'$"):
        VtaOptions(acc_8bit="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^write_latency must be 1 or 2 or 3 or 4, not True$"):
        VtaOptions(write_latency=True)


def test_instructions_of_the_readings() -> None:
    loads = {"LOAD_UOP", "LOAD_WGT", "LOAD_INP", "LOAD_ACC"}
    alu = {f"ALU_{op.name}{s}" for op in AluOp for s in ("", "_IMM")}
    reserved = {"VTA_FAULTED", "VTA_FINISHED", "VTA_UNKNOWN", "VTA_BLOCKED", "VTA_OUT_OF_RANGE", "HOST_OUT_OF_RANGE"}
    host = {"HOST_WRITE", "HOST_WRITE_PART", "HOST_READ", "HOST_START"}
    hls = loads | alu | reserved | host | {"STORE", "GEMM", "GEMM_RESET", "FINISH"}
    assert set(vta().instructions) == hls
    assert {n for n, i in vta().instructions.items() if i.reserved} == reserved
    assert set(vta(FSIM).instructions) == hls | {"LOAD_ACC_8BIT"}
    assert set(vta(CHISEL).instructions) == hls - {"ALU_MUL", "ALU_MUL_IMM"}
    assert set(vta(VTA_ILA).instructions) == hls - {"ALU_MUL", "ALU_MUL_IMM"}
    assert set(vta().states) - set(vta(FSIM).states) == {"out"}
    assert set(vta().states) - set(vta(VTA_ILA).states) == set(QUEUES)


# -- random instructions against the oracle -------------------------------------------------------------------

small = st.integers(0, 3)


@st.composite
def loads(draw: Any) -> Load:
    memory = draw(st.sampled_from([MemoryId.INP, MemoryId.WGT, MemoryId.ACC, MemoryId.UOP, MemoryId.ACC_8BIT]))
    depth = 1024 if memory is MemoryId.WGT else 2048
    return Load(
        memory=memory,
        sram_base=draw(st.sampled_from([0, 5, 1000, depth - 3, depth - 70, depth])),
        dram_base=draw(st.integers(0, 8)), y_size=draw(small), x_size=draw(small), x_stride=draw(st.integers(0, 5)),
        y_pad_0=draw(small), y_pad_1=draw(small), x_pad_0=draw(small), x_pad_1=draw(small),
    )  # fmt: skip


@st.composite
def stores(draw: Any) -> Store:
    return Store(
        sram_base=draw(st.sampled_from([0, 1, 2046, 2047])), dram_base=draw(st.integers(0, 100)),
        y_size=draw(small), x_size=draw(small), x_stride=draw(st.integers(0, 5)),
    )  # fmt: skip


@st.composite
def computations(draw: Any) -> Gemm | Alu:
    factor = st.sampled_from([0, 1, 2, 3, 500, 1023])
    begin = draw(st.integers(0, 3))
    common = {
        "uop_bgn": begin, "uop_end": draw(st.integers(begin, begin + 2)) if draw(st.booleans()) else begin + 1,
        "iter_out": draw(small), "iter_in": draw(small),
        "dst_factor_out": draw(factor), "dst_factor_in": draw(factor),
        "src_factor_out": draw(factor), "src_factor_in": draw(factor),
    }  # fmt: skip
    if draw(st.booleans()):
        return Gemm(reset_reg=draw(st.booleans()), wgt_factor_out=draw(factor), wgt_factor_in=draw(factor), **common)
    imm = draw(st.one_of(st.integers(-40, 40), st.integers(-32768, 32767)))
    return Alu(alu_opcode=draw(st.sampled_from(list(AluOp))), use_imm=draw(st.booleans()), imm=imm, **common)


uops = st.builds(Uop, st.sampled_from([0, 1, 2, 100, 2047]), st.sampled_from([0, 1, 2, 2047]), st.integers(0, 2))


def prepared(options: VtaOptions, seed: int, table: list[Uop]) -> tuple[Machine, Oracle]:
    """A machine and an oracle with the same random contents."""
    source = np.random.default_rng(seed)
    dram = source.integers(0, 256, 8192).astype(np.uint8)
    oracle = Oracle(options, dram)
    machine = machine_with(options)
    fill(machine, "dram", dram)
    oracle.uop[: len(table)] = [u.dst | u.src << 11 | u.wgt << 22 for u in table]
    fill(machine, "uop", oracle.uop[: len(table)])
    for name, count in (("inp", 8), ("wgt", 4), ("acc", 8), ("out", 8)):
        memory = getattr(oracle, name)
        info = np.iinfo(memory.dtype)
        memory[:count] = source.integers(info.min, int(info.max) + 1, memory[:count].shape)
        if name == "acc":
            # shift amounts and other small numbers
            memory[1] = source.integers(-40, 40, 16)
        if name in machine.memories:
            fill(machine, name, memory)
    return machine, oracle


def agrees(options: VtaOptions, instruction: Instruction, seed: int, table: list[Uop]) -> bool:
    """Whether the model executes the instruction as the oracle does; False where it refuses or faults."""
    machine, oracle = prepared(options, seed, table)
    try:
        issue(machine, instruction, options)
    except CommandError:
        return False
    looping = isinstance(instruction, Gemm | Alu)
    assert machine.memories["fault"][1] == (looping and oracle.refused(instruction))
    if machine.memories["fault"][0] or machine.memories["fault"][1]:
        return False
    oracle.run(instruction)
    for name in ("uop", "inp", "wgt", "acc", "out"):
        if name in machine.memories:
            assert np.array_equal(contents(machine, name), getattr(oracle, name)), name
    assert machine.memories["dram"] == {
        i: int(v) for i, v in enumerate(oracle.dram) if v or i in machine.memories["dram"]
    }
    return True


@settings(max_examples=30)
@given(st.sampled_from(READINGS), st.one_of(loads(), stores()), st.integers(0, 2**32))
def test_transfers_do_what_the_description_says(options: VtaOptions, instruction: Instruction, seed: int) -> None:
    if options.encoding == "older" and isinstance(instruction, Load) and instruction.memory >= 4:
        return
    if options.padded_rows == "data" and isinstance(instruction, Load):
        options = replace(options, padded_rows="whole")
    agrees(options, instruction, seed, [])


@settings(max_examples=40)
@given(
    st.sampled_from([*READINGS, *PIPELINED]), computations(), st.integers(0, 2**32),
    st.lists(uops, min_size=5, max_size=5),
)  # fmt: skip
def test_computations_do_what_the_description_says(
    options: VtaOptions, instruction: Gemm | Alu, seed: int, table: list[Uop]
) -> None:
    if options.encoding == "older" and isinstance(instruction, Alu) and instruction.alu_opcode is AluOp.MUL:
        return
    agrees(options, instruction, seed, table)


@pytest.mark.parametrize("options", [*READINGS, *PIPELINED[:4]])
@pytest.mark.parametrize(
    "instruction",
    [
        Load(memory=MemoryId.INP, sram_base=2, dram_base=3, y_size=2, x_size=2, x_stride=3,
             y_pad_0=1, y_pad_1=2, x_pad_0=2, x_pad_1=1),
        Load(memory=MemoryId.WGT, sram_base=1023, dram_base=3, x_size=1),
        Load(memory=MemoryId.ACC, sram_base=2, dram_base=3, y_size=2, x_size=2, x_stride=3, y_pad_0=1, x_pad_1=1),
        Load(memory=MemoryId.UOP, sram_base=2, dram_base=3, y_size=2, x_size=2, x_stride=3, y_pad_0=1, x_pad_1=1),
        Store(sram_base=1, dram_base=7, y_size=3, x_size=2, x_stride=5),
        Gemm(uop_end=3, iter_out=2, iter_in=2, dst_factor_out=1, src_factor_in=2, wgt_factor_out=1),
        Gemm(uop_bgn=1, uop_end=3, iter_out=2, iter_in=2, dst_factor_in=1, reset_reg=True),
        *(Alu(alu_opcode=op, uop_end=3, iter_out=2, dst_factor_out=2, use_imm=imm, imm=-7)
          for op in (AluOp.MIN, AluOp.MAX, AluOp.ADD, AluOp.SHR) for imm in (False, True)),
    ],
)  # fmt: skip
def test_usual_instructions_are_accepted(options: VtaOptions, instruction: Instruction) -> None:
    options = replace(options, padded_rows="whole")
    # no accumulator is read in the iteration after it was written, as that is refused in one reading
    assert agrees(options, instruction, 7, [Uop(0, 3, 0), Uop(1, 4, 1), Uop(4, 5, 2)])


@pytest.mark.parametrize("latency", [1, 2, 3, 4])
@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5])
def test_results_arrive_late(apart: int, latency: Any) -> None:
    """Two additions to accumulator 0, so many iterations apart; the first one counts if it has arrived."""
    table = [Uop(dst=0), *(Uop(dst=n) for n in range(1, apart)), Uop(dst=0)]
    text = f"alu.add uops=0:{apart + 1} iters=1x1 imm=5"
    machine = machine_with(replace(HLS, back_to_back="stale", write_latency=latency), table)
    issue(machine, text)
    assert machine.memories["acc"][0] == (10 if apart > latency else 5)
    assert all(machine.memories["acc"][16 * n] == 5 for n in range(1, apart))
    machine = machine_with(replace(HLS, back_to_back="refused", write_latency=latency), table)
    issue(machine, text)
    assert machine.memories["fault"][1] == (apart <= latency)
    if apart <= latency:
        with pytest.raises(CommandError, match="VTA_FAULTED"):
            issue(machine, "finish")


@settings(max_examples=60)
@given(
    st.sampled_from([1, 2, 3, 4]), st.booleans(), st.integers(1, 3), st.integers(1, 3),
    st.tuples(*[st.integers(0, 2)] * 4), st.lists(st.builds(Uop, small, small), min_size=1, max_size=3),
    st.booleans(),
)  # fmt: skip
def test_reading_too_soon_is_refused_across_rounds(
    latency: Any, immediate: bool, outer: int, inner: int, factors: tuple[int, int, int, int], table: list[Uop],
    chisel: bool,
) -> None:  # fmt: skip
    options = CHISEL if chisel else replace(HLS, back_to_back="refused", write_latency=latency)
    alu = Alu(
        alu_opcode=AluOp.ADD, uop_end=len(table), iter_out=outer, iter_in=inner, use_imm=immediate, imm=1,
        dst_factor_out=factors[0], dst_factor_in=factors[1], src_factor_out=factors[2], src_factor_in=factors[3],
    )  # fmt: skip
    oracle = Oracle(options, np.zeros(16, np.uint8))
    oracle.uop[: len(table)] = [u.dst | u.src << 11 for u in table]
    machine = machine_with(options, table)
    issue(machine, alu, options)
    assert machine.memories["fault"][1] == oracle.refused(alu)


def test_a_pipeline_is_empty_between_instructions() -> None:
    machine = machine_with(replace(HLS, back_to_back="stale", write_latency=4), [Uop()])
    for _ in range(3):
        issue(machine, "alu.add uops=0:1 iters=1x1 imm=1")
    assert machine.memories["acc"][0] == 3


@settings(max_examples=25)
@given(computations(), st.lists(uops, min_size=5, max_size=5), st.integers(0, 2**32))
def test_an_extra_bit_of_indices_changes_nothing(x: Gemm | Alu, table: list[Uop], seed: int) -> None:
    """What begins again at twice the depth has been beyond it before."""
    found = []
    for options in (HLS, replace(HLS, index_overflow="extra_bit")):
        machine, _ = prepared(options, seed, table)
        issue(machine, replace(x, iter_in=3 * x.iter_in), options)
        found.append(machine.memories["fault"][0] or {n: dict(machine.memories[n]) for n in ("acc", "out")})
    assert found[0] == found[1]


def test_bytes_are_loaded_as_accumulators() -> None:
    load = Load(memory=MemoryId.ACC_8BIT, sram_base=2, dram_base=3, y_size=2, x_size=2, x_stride=3, x_pad_0=1)
    assert agrees(FSIM, load, 7, [])


# -- tokens ---------------------------------------------------------------------------------------------------

POPS_AND_PUSHES = [
    (Load(memory=MemoryId.INP, pop_next=True, push_next=True), "g2l", "l2g"),
    (Load(memory=MemoryId.WGT, pop_next=True, push_next=True), "g2l", "l2g"),
    (Load(memory=MemoryId.ACC, pop_prev=True, push_next=True), "l2g", "g2s"),
    (Load(memory=MemoryId.UOP, pop_next=True, push_prev=True), "s2g", "g2l"),
    (Store(pop_prev=True, push_prev=True), "g2s", "s2g"),
    (Gemm(pop_prev=True, push_prev=True), "l2g", "g2l"),
    (Gemm(pop_next=True, push_next=True, reset_reg=True), "s2g", "g2s"),
    (Alu(alu_opcode=AluOp.ADD, pop_prev=True, push_next=True), "l2g", "g2s"),
    (Finish(pop_next=True, push_next=True), "s2g", "g2s"),
]


@pytest.mark.parametrize(("instruction", "popped", "pushed"), POPS_AND_PUSHES)
def test_tokens_move(instruction: Instruction, popped: str, pushed: str) -> None:
    machine = machine_with()
    with pytest.raises(CommandError, match=r"VTA_BLOCKED: a token is missing, or has no room$"):
        issue(machine, instruction)
    machine.values[popped] = 3
    issue(machine, instruction)
    assert {q: machine.values[q] for q in QUEUES} == dict.fromkeys(QUEUES, 0) | {popped: 2, pushed: 1}


def test_full_queues() -> None:
    push = "gemm push=g2s"
    machine = machine_with(HLS)
    for _ in range(8):
        issue(machine, push)
    with pytest.raises(CommandError, match="VTA_BLOCKED"):
        issue(machine, push)
    machine = machine_with(CHISEL)
    for _ in range(300):
        issue(machine, push, CHISEL)
    assert machine.values["g2s"] == 255
    machine = machine_with(FSIM)
    for _ in range(300):
        issue(machine, push, FSIM)
    assert machine.values["g2s"] == 300
    machine.values["g2s"] = (1 << 32) - 1
    with pytest.raises(CommandError, match="VTA_BLOCKED"):
        issue(machine, push, FSIM)


def test_the_published_ila_has_no_tokens() -> None:
    issue(machine_with(VTA_ILA), "gemm iters=0x0 pop=l2g,s2g push=g2l", replace(VTA_ILA))


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "name"),
    [
        ("load.inp sram=2047 size=1x1", HLS, "LOAD_INP"),
        ("load.inp sram=2047 size=1x2", HLS, "VTA_OUT_OF_RANGE"),
        ("load.inp sram=2047 size=1x2", CHISEL, "LOAD_INP"),
        ("load.inp sram=2040 size=2x2 pad=0,0,1,1", HLS, "LOAD_INP"),
        ("load.inp sram=2041 size=2x2 pad=0,0,1,1", HLS, "VTA_OUT_OF_RANGE"),
        ("load.inp sram=2046 size=1x1 pad=1,1,0,0", HLS, "VTA_OUT_OF_RANGE"),
        ("load.wgt sram=1024 size=1x1", HLS, "VTA_OUT_OF_RANGE"),
        ("load.wgt sram=1023 size=1x1 pad=1,0,0,0", HLS, "LOAD_WGT"),
        ("load.wgt sram=1023 size=1x1 pad=1,0,0,0", FSIM, "VTA_OUT_OF_RANGE"),
        ("load.uop sram=8191 size=9x1", HLS, "LOAD_UOP"),
        ("load.uop sram=8191 size=9x1", FSIM, "VTA_OUT_OF_RANGE"),
        ("load.acc sram=65535 size=1x0", HLS, "LOAD_ACC"),
        ("load.acc sram=0 size=65535x65535 stride=0", HLS, "VTA_OUT_OF_RANGE"),
        ("load.inp dram=1048575 size=1x1", HLS, "LOAD_INP"),
        ("load.inp dram=1048576 size=1x1", CHISEL, "VTA_OUT_OF_RANGE"),
        ("load.inp dram=0x10000000 size=1x1", HLS, "VTA_OUT_OF_RANGE"),  # 2^32 bytes
        ("load.acc dram=262144 size=1x1", HLS, "VTA_OUT_OF_RANGE"),
        ("load.inp dram=1048575 size=0x5", HLS, "LOAD_INP"),
        ("load.inp dram=1048570 size=3x2 stride=2", HLS, "LOAD_INP"),
        ("load.inp dram=1048570 size=3x2 stride=3", HLS, "VTA_OUT_OF_RANGE"),
        ("store sram=2047 size=2x1", HLS, "VTA_OUT_OF_RANGE"),
        ("store sram=2046 size=2x1", HLS, "STORE"),
        ("gemm uops=8191:8192", HLS, "GEMM"),
        ("gemm uops=8191:8193", HLS, "VTA_OUT_OF_RANGE"),
        ("gemm uops=8191:8191", HLS, "GEMM"),
        ("gemm uops=2047:2049", CHISEL, "GEMM"),
        ("load.acc_8bit size=1x1", HLS, "VTA_UNKNOWN"),
        ("alu.mul", CHISEL, "VTA_UNKNOWN"),
        ("alu.mul", HLS, "ALU_MUL"),
    ],
)  # fmt: skip
def test_ranges(text: str, options: VtaOptions, name: str) -> None:
    machine = machine_with(options)
    word = encode(parse_instruction(text), ENCODINGS[options.encoding])
    assert machine.decode({"command": 0, "insn": word}).name == name


@pytest.mark.parametrize(
    ("text", "uop", "faults"),
    [
        ("gemm uops=0:1 iters=2x1 dst=1,0", Uop(dst=2047), True),
        ("gemm uops=0:1 iters=1x1 dst=1,0", Uop(dst=2047), False),
        ("gemm uops=0:1 iters=0x9 dst=0,1", Uop(dst=2047), False),
        ("gemm uops=0:0 iters=2x2 dst=2047,2047", Uop(dst=2047), False),
        ("gemm uops=0:1 iters=2x2 src=1,1", Uop(src=2046), True),
        ("gemm uops=0:1 iters=2x2 src=1,0", Uop(src=2046), False),
        ("gemm uops=0:1 iters=2x2 wgt=1,1", Uop(wgt=1022), True),
        ("gemm uops=0:1 iters=2x2 wgt=0,1", Uop(wgt=1022), False),
        ("gemm uops=0:3 iters=1x16383 dst=0,2047", Uop(), True),
        ("alu.add uops=0:1 iters=2x1 src=1,0 imm=0", Uop(src=2047), False),
        ("alu.add uops=0:1 iters=2x1 src=1,0", Uop(src=2047), True),
    ],
)
def test_an_index_beyond_a_scratchpad_is_a_fault(text: str, uop: Uop, faults: bool) -> None:
    if "16383" in text:
        text = text.replace("16383", "3").replace("2047", "1024")
    machine = machine_with(HLS, [uop])
    issue(machine, text)
    assert machine.memories["fault"][0] == faults
    if faults:
        with pytest.raises(CommandError, match=r"VTA_FAULTED: an instruction before it was undefined in this reading$"):
            issue(machine, "finish")
    else:
        issue(machine, "finish")
    truncating = machine_with(CHISEL, [uop])
    issue(truncating, text, CHISEL)
    assert truncating.memories["fault"][0] == 0


def test_nothing_executes_after_finish() -> None:
    machine = machine_with()
    issue(machine, "finish")
    assert machine.values["finished"]
    with pytest.raises(CommandError, match=r"VTA_FINISHED: the program has finished$"):
        issue(machine, "finish")
    machine.step({"command": CommandKind.START})
    issue(machine, "finish")


def test_the_hosts_bytes() -> None:
    machine = Machine(vta())
    machine.step({"command": CommandKind.WRITE, "addr": 0x20, "data": (1 << 128) - 1, "strobe": 0xFFFF})
    machine.step({"command": CommandKind.WRITE, "addr": 0x20, "data": 0, "strobe": 0x8001})
    machine.step({"command": CommandKind.READ, "addr": 0x20})
    assert machine.values["data_out"] == ((1 << 128) - 1) ^ 0xFF ^ (0xFF << 120)
    for addr in (8, 1 << 24, 1 << 31):
        for command in (CommandKind.WRITE, CommandKind.READ):
            with pytest.raises(CommandError, match=r"HOST_OUT_OF_RANGE: addr must be a multiple of 16 below 2\^24$"):
                machine.step({"command": command, "addr": addr})


# -- other interpretations ------------------------------------------------------------------------------------

SAMPLES = [
    "load.inp sram=2 dram=3 size=2x2 stride=3 pad=1,2,2,1",
    "load.wgt sram=1 dram=1 size=1x1",
    "load.acc sram=1 dram=2 size=2x1 stride=0",
    "load.uop sram=1 dram=9 size=1x3",
    "store sram=1 dram=7 size=2x1 stride=3",
    "gemm uops=0:2 iters=2x1 dst=1,0 src=1,0",
    "gemm uops=0:2 iters=2x1 dst=1,0 reset",
    "alu.shr uops=0:2 iters=1x2 dst=0,1",
    "alu.add uops=0:2 iters=1x2 dst=0,1 imm=-3",
]


@pytest.mark.parametrize("text", SAMPLES)
@pytest.mark.parametrize(
    "options",
    [HLS, replace(HLS, back_to_back="stale"), replace(HLS, back_to_back="refused")],
    ids=lambda o: o.back_to_back,
)
def test_flat_form_and_fast_simulator_agree(text: str, options: VtaOptions) -> None:
    if options is not HLS and not text.startswith(("gemm", "alu")):
        return
    machine, _ = prepared(options, 3, [Uop(0, 1, 1), Uop(1, 0, 0)])
    memories = {name: dict(memory) for name, memory in machine.memories.items()}
    fast = Simulator(vta(options))
    for name, words in memories.items():
        for address, word in words.items():
            fast.memories[name][address] = word
    executed = issue(machine, text, options)
    assert issue(fast, text, options) is executed
    for name, memory in machine.memories.items():
        assert {a: w for a, w in memory.items() if w} == dict(fast.memories[name]), name
    assert fast.values == machine.values
    inputs = {"command": 0, "insn": encode(parse_instruction(text))}
    assert child_differs(vta(options), executed.name, inputs, {}, memories) is None
