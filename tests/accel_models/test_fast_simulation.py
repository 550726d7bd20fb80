"""The fast simulator against the scalar interpreter on real devices: every memory and every register.

Programs need not make sense: registers hold whatever the device accepts, buffers overlap, operations follow each other
on what the ones before have left.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.layout import Region, Start, register_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from accel_models.hlscnn.config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, channel_word
from accel_models.hlscnn.layout import SOC_BASE, SPAD0_BASE, SPAD1_BASE, Register
from accel_models.hlscnn.layout import register_address as hlscnn_address
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import MASTER, HlscnnOptions, Rounding
from accel_models.vta.isa import (
    ENCODINGS,
    Alu,
    AluOp,
    Gemm,
    Instruction,
    Load,
    MemoryId,
    Store,
    Uop,
    encode,
    encode_uop,
)
from accel_models.vta.model import vta
from accel_models.vta.options import HLS, VtaOptions
from ila_lang import CommandError, Ila, Machine, MemSort, Simulator
from ila_lang.native import code, session


@pytest.fixture(autouse=True)
def always_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is too short to be compiled."""
    monkeypatch.setattr(code, "TRIED", 0)
    monkeypatch.setattr(session, "LONG", 0)


#: A session makes too many choices to be drawn one by one.
RANDOMS = st.integers(0, 1 << 32).map(Random)


class Pair:
    """A scalar and a fast machine that are told the same."""

    def __init__(self, ila: Ila) -> None:
        self.ila = ila
        self.slow, self.fast = Machine(ila), Simulator(ila)

    def set(self, values: Mapping[str, int]) -> None:
        assert values.keys() <= self.ila.states.keys()
        for machine in (self.slow, self.fast):
            machine.values.update(values)

    def fill(self, name: str, words: Any, first: int = 0) -> None:
        """Sets words of a memory from an address on."""
        self.slow.memories[name].update(enumerate(words.tolist(), first))
        memory = self.fast.memories[name]
        memory.words[first : first + len(words)] = words

    def randomise(self, random: Random, sizes: Mapping[str, int]) -> None:
        """Random words in the first places of each memory, in one of several distributions."""
        for name, size in sizes.items():
            self.fill(name, random_words(random, self.ila, name, size))

    def step(self, inputs: Mapping[str, int]) -> str:
        """One command; what both devices say if they refuse it."""
        said = []
        for machine in (self.slow, self.fast):
            try:
                machine.step(inputs)
                said.append("")
            except CommandError as error:
                said.append(str(error))
        assert said[0] == said[1]
        return said[0]

    def compare(self) -> None:
        """Fails unless the whole states agree."""
        assert self.fast.values == self.slow.values
        for name, slow in self.slow.memories.items():
            words = self.fast.memories[name].words
            places = np.flatnonzero(words != slow.default)
            fast = dict(zip(places.tolist(), words[places].tolist(), strict=True))
            expected = {a: w for a, w in slow.items() if w != slow.default}
            if fast != expected:
                at = next(a for a in sorted({*fast, *expected}) if fast.get(a) != expected.get(a))
                raise AssertionError(f"{name}[{at:#x}] = {fast.get(at)}, not {expected.get(at)}")


def random_words(random: Random, ila: Ila, name: str, size: int) -> Any:
    sort = ila.states[name].sort
    assert isinstance(sort, MemSort)
    source, top = np.random.default_rng(random.randrange(1 << 30)), (1 << sort.data_width) - 1
    size = min(size, 1 << sort.addr_width)
    edges = np.array([0, 1, top, top >> 1, (top >> 1) + 1])
    match random.randrange(4):
        case 0:
            return source.choice(edges, size)
        case 1:
            return source.integers(0, min(top, 7) + 1, size)
        case _:
            return source.integers(0, top + 1, size)


def draw_values(random: Random, choices: Mapping[str, Any]) -> dict[str, int]:
    return {name: random.choice(list(options)) for name, options in choices.items()}


# -- FlexASR ----------------------------------------------------------------------------------------------

BUFFERS = {
    "gb_core_large_buffer": 1 << 13, "gb_core_small_buffer": 1 << 14, "pe_core_weight_buffer": 1 << 12,
    "pe_core_cluster_table": 128, "pe_act_regs": 256, "gb_attention_accum_vector": 16,
    "gb_attention_softmax_result_vector": 16,
}  # fmt: skip
UNITS = {"layer_reduce": Start.LAYER_REDUCE, "layer_norm": Start.LAYER_NORM, "zero_padding": Start.ZERO_PADDING,
         "attention": Start.ATTENTION}  # fmt: skip


def managers(random: Random) -> dict[str, int]:
    """Memory managers whose matrices often overlap."""
    choices: dict[str, Any] = {f"gb_core_mem_mngr_large_base_large_{i}": [0, 0, 1, 16, 33, 65535] for i in range(4)}
    choices |= {f"gb_core_mem_mngr_large_num_vector_{i}": [0, 1, 1, 2, 3, 255] for i in range(4)}
    choices |= {f"gb_core_mem_mngr_small_base_small_{i}": [0, 1, 2, 16, 1023, 65535] for i in range(8)}
    return draw_values(random, choices)


def unit_registers(random: Random, ila: Ila, unit: str) -> dict[str, int]:
    choices: dict[str, Any] = {}
    for name in ila.states:
        if name.startswith(f"gb_{unit}_"):
            field = name.removeprefix(f"gb_{unit}_")
            if field.startswith("num_timestep"):
                choices[name] = [0, 1, 2, 2, 3, 5, 16, 17] if unit != "attention" else [0, 1, 2, 3, 16, 17]
            elif field.startswith("num_vector"):
                choices[name] = [0, 1, 1, 2, 3]
            elif field == "is_valid":
                choices[name] = [1, 1, 1, 1, 1, 0]
            else:
                choices[name] = range(8)
    return draw_values(random, choices)


def control_registers(random: Random) -> dict[str, int]:
    """GBControl and its processing elements; also programs that the device would never end, which have no effect."""
    values = draw_values(
        random,
        {
            "gb_control_is_valid": [1, 1, 1, 1, 0], "gb_control_mode": range(8), "gb_control_is_rnn": [0, 1],
            "gb_control_memory_index_1": range(8), "gb_control_memory_index_2": range(8),
            "gb_control_num_vector_1": [0, 1, 1, 2], "gb_control_num_vector_2": [0, 1, 2],
            "gb_control_num_timestep_1": [0, 1, 1, 2, 3],
        },
    )  # fmt: skip
    for pe in range(4):
        outputs, number, valid = random.choice([1, 1, 2]), random.choice([1, 1, 2]), random.random() < 0.85
        total = outputs * number if valid else 0
        takes = random.choice([d for d in (1, 2, 4) if total and total % d == 0] or [0])
        program = [random.randrange(256) for _ in range(random.randint(takes == 0, 8))]
        program = [code if code >> 4 != 3 else code ^ 0x80 for code in program]
        for _ in range(takes):
            program.insert(random.randint(0, len(program)), 0x30 | random.randrange(16))
        values |= {f"pe{pe}_act_vector_Inst{i}": code for i, code in enumerate(program)}
        fields = {
            "rnn_layer_sizing_is_valid": int(valid), "rnn_layer_sizing_num_output": outputs,
            "rnn_layer_sizing_num_manager": number, "act_mngr_is_valid": 1, "act_mngr_num_inst": len(program),
            "act_mngr_num_output": total // takes if takes else random.choice([1, 2]),
        } | draw_values(
            random,
            {
                "rnn_layer_sizing_is_zero_first": [0, 1], "rnn_layer_sizing_is_cluster": [0, 1],
                "rnn_layer_sizing_is_bias": [0, 1], "act_mngr_is_zero_first": [0, 1],
                "act_mngr_adpfloat_bias": range(8), "act_mngr_buffer_addr_base": range(32),
                "act_mngr_output_addr_base": [0, 1, 2, 3, 15, 255],
            },
        )  # fmt: skip
        for manager in ("first", "second"):
            fields |= draw_values(
                random,
                {f"mem_mngr_{manager}_adpfloat_bias_{kind}": range(8) for kind in "wbi"}
                | {
                    f"mem_mngr_{manager}_zero_active": [0, 0, 0, 1],
                    f"mem_mngr_{manager}_num_input": [1, 1, 2],
                    f"mem_mngr_{manager}_base_weight": [0, 0, 16, 33, 65530],
                    f"mem_mngr_{manager}_base_bias": [0, 1, 128, 65535],
                    f"mem_mngr_{manager}_base_input": [0, 0, 1, 2, 255, 65535],
                },
            )
        values |= {f"pe{pe}_{name}": value for name, value in fields.items()}
    return values


def flexasr_session(random: Random, options: FlexAsrOptions, operations: int) -> None:
    """Operations on one device; registers and buffers change a little between them, or not at all."""
    ila = flexasr(options)
    pair = Pair(ila)
    pair.randomise(random, BUFFERS)
    for memory in ("pe_core_input_buffer", "pe_act_buffer"):
        sort = ila.states[memory].sort
        assert isinstance(sort, MemSort)
        for pe in range(4):
            pair.fill(memory, random_words(random, ila, memory, 512), pe << sort.addr_width - 2)
    pair.set(managers(random))
    pair.set(control_registers(random))
    for unit in UNITS:
        pair.set(unit_registers(random, ila, unit))
    for _ in range(operations):
        match random.randrange(8):
            case 0:
                pair.set(managers(random))
            case 1 | 2:
                pair.set(unit_registers(random, ila, random.choice(list(UNITS))))
            case 3:
                pair.set(control_registers(random))
            case 4:
                pair.randomise(random, {random.choice(list(BUFFERS)): 64})
            case _:
                pass
        start = random.choice([Start.CONTROL, Start.CONTROL, *UNITS.values()])
        said = pair.step({"if_axi_wr": 1, "addr_in": register_address(Region.START, start)})
        assert not said
        pair.compare()


@settings(max_examples=10, deadline=None)
@given(RANDOMS)
def test_flexasr(random: Random) -> None:
    flexasr_session(random, FlexAsrOptions(), 5)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    RANDOMS, st.sampled_from([FlexAsrOptions(), FlexAsrOptions(saturation="pre2022", sigmoid="B"), RECORDED_SIMULATOR])
)
def test_flexasr_at_length(random: Random, options: FlexAsrOptions) -> None:
    flexasr_session(random, options, 12)


# -- HLSCNN -----------------------------------------------------------------------------------------------


def hlscnn_layer(random: Random, options: HlscnnOptions) -> dict[str, int]:
    """Registers of a small convolution; operands and results may overlap, and sizes may be 0."""
    size = INPUT_SIZE.pack(
        channels=random.choice([0, 1, 8, 9, 17]), rows=random.randint(0, 3), cols=random.randint(0, 3)
    )
    output = OUTPUT_SIZE.pack(rows=random.randint(0, 4), cols=random.randint(0, 4))
    kernel = KERNEL_SIZE.pack(
        rows=random.randint(0, 3), cols=random.randint(0, 3), row_stride=random.randint(1, 3),
        col_stride=random.choice([1, 1, 2, 4]),
    )  # fmt: skip
    word = channel_word(options)
    channel = word.pack(
        filters=min(random.choice([0, 1, 2, 7]), word.limit("filters")), enable_accum=random.randint(0, 1),
        enable_relu=random.randint(0, 1), enable_bias=random.randint(0, 1), bias=random.choice([0, 1, 0x7FFF, 0x8000]),
    )  # fmt: skip
    bases = [SPAD0_BASE, SPAD1_BASE, SOC_BASE, SPAD1_BASE + 16 * 8190, 0, 0xFFFFFFF0]
    near = [random.choice(bases) + 16 * random.choice([0, 0, 1, 3, 9]) for _ in range(3)]
    places = draw_values(random, {"act": near, "weight": near, "output": near})
    return {
        "cfg_reg_conv_input_size_cfg": size, "cfg_reg_conv_output_size_cfg": output,
        "cfg_reg_conv_kernel_size_cfg": kernel, "cfg_reg_conv_channel_cfg": channel,
    } | {f"cfg_reg_conv_{name}_base_addr": place & 0xFFFFFFFF for name, place in places.items()}  # fmt: skip


def hlscnn_session(random: Random, options: HlscnnOptions, operations: int) -> None:
    pair = Pair(hlscnn(options))
    pair.randomise(random, {"scratch_pad_0": 8192, "scratch_pad_1": 4096, "virtual_soc_memory": 8192})
    pair.set(hlscnn_layer(random, options))
    write = {"top_slave_if_wr": 1, "top_slave_if_rd": 0}
    for _ in range(operations):
        match random.randrange(6):
            case 0 | 1:
                pair.set(hlscnn_layer(random, options))
            case 2:
                pair.set({
                    "cfg_reg_soc_mem_rd_wr_length": random.choice([0, 1, 2, 7, 40]),
                    "cfg_reg_soc_mem_base_addr": random.choice([0, 16, 17, 0x2FFF0, 0xFFFFFFF0]),
                })  # fmt: skip
                base = random.choice([SPAD0_BASE, SPAD1_BASE]) + 16 * random.choice([0, 5, 8191])
                assert not pair.step(write | {"top_slave_addr_in": base})
            case 3:
                pair.randomise(random, {random.choice(["scratch_pad_0", "scratch_pad_1"]): 64})
            case _:
                pass
        assert not pair.step(write | {"top_slave_addr_in": hlscnn_address(Register.CONV_TRIGGER)})
        pair.compare()


@settings(max_examples=14, deadline=None)
@given(RANDOMS, st.sampled_from([HlscnnOptions(), MASTER]))
def test_hlscnn(random: Random, options: HlscnnOptions) -> None:
    hlscnn_session(random, options, 4)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(RANDOMS)
def test_hlscnn_at_length(random: Random) -> None:
    options = HlscnnOptions(
        coordinates=random.choice(["valid", "same"]),
        outputs=random.choice(["blocked", "per_filter"]),
        other_lanes=random.choice(["kept", "cleared"]),
        activations=random.choice(["soc", "spad1"]),
        weight_bits=random.choice([8, 16]),
        channel_word=random.choice(["implemented", "wide", "documented"]),
        weight_fraction=random.randint(8, 15),
        activation_fraction=random.randint(5, 9),
        output_fraction=random.randint(2, 9),
        psum_fraction=random.randint(12, 22),
        tap_rounding=random.choice(get_args(Rounding)),
        store_rounding=random.choice(get_args(Rounding)),
        overflow=random.choice(["wrap", "saturate"]),
    )
    hlscnn_session(random, options, 8)


# -- VTA --------------------------------------------------------------------------------------------------

FACTORS = [0, 0, 1, 1, 2, 5, 1023]


def vta_instruction(random: Random) -> Instruction:
    """A small instruction that needs no tokens."""
    sizes: dict[str, Any] = {
        "y_size": random.choice([0, 1, 2, 3]),
        "x_size": random.choice([0, 1, 2, 5]),
        "x_stride": random.randint(0, 6),
    }
    place: dict[str, Any] = {
        "sram_base": random.choice([0, 0, 1, 3, 40, 2040]),
        "dram_base": random.choice([0, 1, 2, 64]),
    }
    kind = random.randrange(8)
    if kind == 0:
        pads: dict[str, Any] = {
            name: random.choice([0, 0, 1, 3]) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
        }
        memory = random.choice([MemoryId.UOP, MemoryId.WGT, MemoryId.INP, MemoryId.ACC])
        return Load(memory=memory, **place, **sizes, **(pads if random.random() < 0.5 else {}))
    if kind == 1:
        return Store(**place, **sizes)
    begin = random.randint(0, 6)
    loops: dict[str, Any] = {
        "uop_bgn": begin,
        "uop_end": begin + random.randint(0, 4),
        "iter_out": random.choice([0, 1, 2, 3]),
        "iter_in": random.choice([0, 1, 2, 3]),
    }
    for name in ("dst_factor_out", "dst_factor_in", "src_factor_out", "src_factor_in"):
        loops[name] = random.choice(FACTORS)
    if kind <= 4:
        weights: dict[str, Any] = {"wgt_factor_out": random.choice(FACTORS), "wgt_factor_in": random.choice(FACTORS)}
        return Gemm(reset_reg=random.random() < 0.15, **loops, **weights)
    operation = random.choice([AluOp.MIN, AluOp.MAX, AluOp.ADD, AluOp.SHR, AluOp.MUL])
    imm = random.choice([0, 1, -1, 7, 16, 31, 32, -16, -31, 32767, -32768])
    return Alu(alu_opcode=operation, use_imm=random.random() < 0.5, imm=imm, **loops)


def uops(random: Random, number: int) -> Any:
    """Micro-operations whose operands often coincide or chain."""
    near = [0, 0, 1, 1, 2, 3, 7, 1023]
    words = [
        encode_uop(Uop(dst=random.choice(near), src=random.choice(near), wgt=random.choice([0, 1, 2, 3])))
        for _ in range(number)
    ]
    return np.array(words, np.int64)


def vta_session(random: Random, options: VtaOptions, operations: int) -> None:
    ila = vta(options)
    pair = Pair(ila)
    sizes = {"wgt": 2048, "inp": 256, "acc": 1024, "dram": 4096} | ({"out": 256} if "out" in ila.states else {})
    pair.randomise(random, sizes)
    pair.fill("uop", uops(random, 16))
    again: list[Instruction] = []
    executed = 0
    for _ in range(operations):
        if random.random() < 0.15:
            pair.fill("uop", uops(random, 3), random.randrange(8))
        if random.random() < 0.1:
            name = random.choice(list(sizes))
            pair.randomise(random, {name: 64})
        # known configurations, on other contents
        instruction = random.choice(again) if again and random.random() < 0.5 else vta_instruction(random)
        again.append(instruction)
        before = len(pair.step({"command": 0, "insn": encode(instruction, ENCODINGS[options.encoding], truncate=True)}))
        executed += not before
        pair.compare()
        if pair.slow.memories["fault"].get(0, 0):
            pair.fill("fault", np.zeros(1, np.int64))
    assert executed or operations < 10


@settings(max_examples=25, deadline=None)
@given(RANDOMS)
def test_vta(random: Random) -> None:
    vta_session(random, HLS, 12)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(RANDOMS)
def test_vta_at_length(random: Random) -> None:
    vta_session(random, HLS, 25)
