"""Registers and buffers of the processing elements, and readings of the port."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from accel_models.flexasr.config import ACT_MNGR_WORD, ACT_VECTOR_WORDS, MEM_MNGR_WORD, RNN_LAYER_SIZING_WORD
from accel_models.flexasr.driver import setup_commands
from accel_models.flexasr.layout import PeRegion, pe_register_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from accel_models.flexasr.program import parse_program, run, write_program
from accel_models.mmio_program import Program, ProgramCommand, ProgramError
from ila_lang import CommandError, Machine
from tests.accel_models.flexasr.port import LARGE, SMALL, read, reset, write
from tests.accel_models.flexasr.test_gb_control import linear

WORD = 0x0123456789ABCDEF_FEDCBA9876543210
WIDE_OPEN = FlexAsrOptions(unanswered="ignored")


# -- words --------------------------------------------------------------------------------------------


def test_recorded_words() -> None:
    # an LSTM of the recorded programs
    sizing = RNN_LAYER_SIZING_WORD.pack(is_valid=1, is_bias=1, num_manager=2, num_output=4)
    assert sizing == 0x40201000001
    second = MEM_MNGR_WORD.pack(
        zero_active=0, adpfloat_bias_w=1, adpfloat_bias_b=2, adpfloat_bias_i=3, num_input=4, base_weight=0x80,
        base_bias=10, base_input=6,
    )  # fmt: skip
    assert second == 0x6000A0080000403020100
    act = ACT_MNGR_WORD.pack(is_valid=1, adpfloat_bias=3, num_inst=24, num_output=1, output_addr_base=1)
    assert act == 0x10000000118030001
    assert ACT_VECTOR_WORDS[1].pack(Inst16=0x20, Inst17=0xB0, Inst18=0x30) == 0x30B020


@pytest.mark.parametrize("pe", range(4))
def test_registers_are_kept_field_by_field(pe: int) -> None:
    machine = reset(flexasr())
    written = {
        f"pe{pe}_rnn_layer_sizing_": (RNN_LAYER_SIZING_WORD, PeRegion.CORE, 1),
        f"pe{pe}_mem_mngr_first_": (MEM_MNGR_WORD, PeRegion.CORE, 2),
        f"pe{pe}_mem_mngr_second_": (MEM_MNGR_WORD, PeRegion.CORE, 4),
        f"pe{pe}_act_mngr_": (ACT_MNGR_WORD, PeRegion.ACT, 1),
        f"pe{pe}_act_vector_": (ACT_VECTOR_WORDS[0], PeRegion.ACT, 2),
    }
    expected = dict(machine.values)
    for number, (prefix, (word, region, index)) in enumerate(written.items()):
        fields = {n: (j * 37 + number + 5) % (1 << f.width) for j, (n, f) in enumerate(word.fields.items())}
        write(machine, pe_register_address(pe, region, index), word.pack(**fields))
        expected |= {prefix + name: value for name, value in fields.items()}
    expected[f"pe{pe}_act_mngr_buffer_addr_base"] %= 32
    write(machine, pe_register_address(pe, PeRegion.ACT, 3), 0xAB << 120 | 7)
    expected |= {f"pe{pe}_act_vector_Inst{i}": 0 for i in range(16, 32)}
    expected |= {f"pe{pe}_act_vector_Inst16": 7, f"pe{pe}_act_vector_Inst31": 0xAB}
    write(machine, pe_register_address(pe, PeRegion.SRAM), 0x5_0000_0003)
    expected[f"pe{pe}_sram_config"] = 3
    assert machine.values == expected


def test_reset_values() -> None:
    values = reset(flexasr()).values
    ones = {n for n, v in values.items() if n.startswith("pe2") and v == 1}
    assert ones == {
        "pe2_rnn_layer_sizing_num_manager", "pe2_rnn_layer_sizing_num_output", "pe2_mem_mngr_first_num_input",
        "pe2_mem_mngr_second_num_input", "pe2_act_mngr_num_inst", "pe2_act_mngr_num_output",
    }  # fmt: skip
    assert not any(v for n, v in values.items() if n.startswith("pe2") and n not in ones)


@pytest.mark.parametrize("pe", range(4))
def test_tables_of_clustered_weights(pe: int) -> None:
    machine = reset(flexasr())
    write(machine, pe_register_address(pe, PeRegion.CORE, 3), WORD)
    write(machine, pe_register_address(pe, PeRegion.CORE, 5), WORD + 1)
    table = machine.memories["pe_core_cluster_table"]
    entries = [table[pe << 5 | i] for i in range(32)]
    assert bytes(entries) == WORD.to_bytes(16, "little") + (WORD + 1).to_bytes(16, "little")
    assert len(table) == 32


@pytest.mark.parametrize(
    ("region", "vectors", "memory", "bits"),
    [(5, 65536, "pe_core_weight_buffer", 20), (6, 256, "pe_core_input_buffer", 12), (9, 32, "pe_act_buffer", 9)],
)
@pytest.mark.parametrize("pe", [0, 3])
def test_buffers_keep_vectors(pe: int, region: int, vectors: int, memory: str, bits: int) -> None:
    machine = reset(flexasr())
    first = pe_register_address(pe, region, 0)
    last = first + 16 * (vectors - 1)
    write(machine, last + 7, WORD)  # unaligned: the same vector
    assert (read(machine, last), read(machine, first)) == (WORD, 0)
    assert machine.memories[memory][(pe << bits) + 16 * (vectors - 1) + 1] == 0x32
    assert len(machine.memories[memory]) == 16


# -- readings of the port -------------------------------------------------------------------------------


def test_loads_of_processing_elements() -> None:
    machine = reset(flexasr(FlexAsrOptions(pe_loads=False)))
    write(machine, 0x35600000, WORD)
    with pytest.raises(CommandError, match="RESERVED: no register or buffer answers this command"):
        read(machine, 0x35600000)


def test_starts_by_reads() -> None:
    for options, starts in ((WIDE_OPEN, 1), (FlexAsrOptions(starts="write", unanswered="ignored"), 0)):
        machine = reset(flexasr(options))
        write(machine, 0x33A00010, 1)
        read(machine, 0x33000040)
        assert machine.values["top_interrupt_request"] == starts
        write(machine, 0x33000040)
        assert machine.values["top_interrupt_request"] == 1


def test_commands_that_nothing_answers_may_have_no_effect() -> None:
    machine = reset(flexasr(WIDE_OPEN))
    write(machine, LARGE, WORD)
    assert read(machine, LARGE) == WORD
    before = dict(machine.values)
    assert write(machine, 0x33C00010, 5) == "RESERVED"
    assert read(machine, 0x33700010) == WORD  # the word of the last read
    assert machine.values == before


@pytest.mark.parametrize(
    ("base", "last"), [(LARGE, 0xFFFF0), (SMALL, 0x3FF0), (0x34500000, 0xFFFF0), (0x36600000, 4080)]
)
def test_buffers_answer_at_any_byte_in_the_published_ila(base: int, last: int) -> None:
    machine = reset(flexasr(FlexAsrOptions(addresses="byte", unanswered="ignored")))
    write(machine, base + 16, WORD)
    write(machine, base + 13, 0xEE)
    assert read(machine, base + 16) == WORD >> 104 << 104  # bytes 3 to 15 of the second word are zeros
    assert read(machine, base + 13) == 0xEE
    write(machine, base + last, WORD)
    write(machine, base + last + 1, 0xEE)  # beyond: the first byte decides
    assert read(machine, base + last) == WORD


def test_registers_answer_at_their_own_address_in_the_published_ila() -> None:
    for options, kept in ((WIDE_OPEN, 5), (FlexAsrOptions(addresses="byte", unanswered="ignored"), 0)):
        machine = reset(flexasr(options))
        write(machine, 0x3330001F, 5)
        write(machine, 0x36300014, 5)
        assert machine.values["gb_core_sram_config"] == machine.values["pe2_sram_config"] == kept
        write(machine, 0x36300010, 6)
        assert machine.values["pe2_sram_config"] == 6


def test_readings_are_checked() -> None:
    for name, value, message in (
        ("act_buffer_base", 8, "act_buffer_base must be 5 or 16, not 8"),
        ("act_buffer_base", 5.0, "act_buffer_base must be 5 or 16, not 5.0"),
        ("pe_loads", 1, "pe_loads must be False or True, not 1"),
        ("sigmoid", "C", "sigmoid must be A or B, not 'C'"),
        ("starts", "read", "starts must be any or write, not 'read'"),
    ):
        with pytest.raises(ValueError) as error:
            FlexAsrOptions(**{name: value})  # type: ignore[arg-type]
        assert str(error.value) == message


def test_the_recorded_simulator_departs_in_every_reading_but_the_numerics() -> None:
    hardware, recorded = asdict(FlexAsrOptions()), asdict(RECORDED_SIMULATOR)
    same = {name for name, value in hardware.items() if recorded[name] == value}
    assert same == {"saturation", "sigmoid"}


# -- programs -----------------------------------------------------------------------------------------


def test_state_is_set_by_commands() -> None:
    values = linear(b"\x30\xc0\x40", pe1_rnn_layer_sizing_is_cluster=1, pe3_act_mngr_buffer_addr_base=9)
    memories = {
        "pe_core_weight_buffer": {3 << 20 | 0xFFFF7: 0x99, 5: 1},
        "pe_core_input_buffer": {1 << 12 | 0xFFF: 0x12},
        "pe_act_buffer": {2 << 9 | 0x1F0: 0x34},
        "pe_core_cluster_table": {1 << 5 | 1 << 4 | 15: 0x56, 0: 0x78},
        "gb_core_small_buffer": {0x3FFF: 0x9A},
    }
    machine = reset(flexasr())
    for command in setup_commands(values, memories):
        machine.step(command)
    assert {n: machine.values[n] for n in values} == values
    for name, cells in memories.items():
        assert {a: x for a, x in machine.memories[name].items() if x} == cells


@pytest.mark.parametrize(
    ("registers", "memories", "message"),
    [
        ({"data_out": 1}, {}, "No command of FlexASR sets data_out"),
        (
            {},
            {"pe_act_regs": {0: 1}},
            "Memory pe_act_regs of FlexASR must be one of gb_core_large_buffer, gb_core_small_buffer, "
            "pe_core_weight_buffer, pe_core_input_buffer, pe_act_buffer, pe_core_cluster_table to be set by commands",
        ),
        (
            {},
            {"pe_act_buffer": {4 << 9: 1}},
            "Vectors of pe_act_buffer must be below 128 to be set, not 128",
        ),
    ],
)
def test_state_that_no_command_sets(
    registers: dict[str, int], memories: dict[str, dict[int, int]], message: str
) -> None:
    with pytest.raises(ValueError) as error:
        setup_commands(registers, memories)
    assert str(error.value) == message


def layer_program(*, valid: int = 1) -> list[ProgramCommand]:
    values = linear(pe3_act_mngr_is_valid=valid)
    memories = {"gb_core_large_buffer": dict.fromkeys(range(16), 0x30)}
    memories["pe_core_weight_buffer"] = {pe << 20 | i: 0x50 for pe in range(4) for i in range(1024)}
    commands = [ProgramCommand("W", c["addr_in"], c["data_in"]) for c in setup_commands(values, memories)]
    return [*commands, ProgramCommand("W", 0x33000010)]


def test_a_layer_as_a_program() -> None:
    text = write_program(Program((*layer_program(), ProgramCommand("R", LARGE + 16 * 64)), waits=False))
    program = parse_program(text)
    assert program.commands[-2].mode == "Q"
    [(_, word)] = run(program, Machine(flexasr()))
    # weights of 2^-4 (0x50 at bias 1) and inputs of 2^-5 (0x30 at bias 2): 16 products are 2^-5, 0x20 at bias 3
    assert word == int.from_bytes(b"\x20" * 16, "little")


def test_a_layer_that_never_ends_is_reported() -> None:
    commands = layer_program(valid=0)
    assert '"mode": "Q"' not in write_program(Program(tuple(commands), waits=False))
    with pytest.raises(ProgramError, match="must wait for a unit that runs, but none was started since the last wait"):
        run(Program((*commands, ProgramCommand("Q"))), Machine(flexasr()))
