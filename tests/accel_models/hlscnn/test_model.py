"""HLSCNN's registers, memories and transfers, and that every command has one meaning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.hlscnn.config import INPUT_SIZE, KERNEL_SIZE, channel_word
from accel_models.hlscnn.layout import Register, register_address
from accel_models.hlscnn.model import hlscnn, options_of
from accel_models.hlscnn.options import MASTER, HlscnnOptions
from ila_lang import CommandError, Ila, child_differs, show_ila
from smt_encodings.claims import Status
from smt_encodings.wellformed import check_ila
from tests.accel_models.hlscnn.oracle import SOC, SPAD0, SPAD1, Layer, fill, read, reset, set_register, start, write

WORD = 0x0123456789ABCDEF_FEDCBA9876543210


# -- one meaning for every command ---------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize(
    "options",
    [HlscnnOptions(), MASTER, HlscnnOptions(kernel_end="last", kernel_start="unchecked", bounds="unsigned")],
    ids=["default", "main branch", "faults"],
)
def test_decodes_are_exclusive_and_complete_and_loops_bounded(options: HlscnnOptions) -> None:
    ila = hlscnn(options)
    findings = check_ila(ila)
    assert [f for f in findings if f.status is not Status.PROVED] == []
    loops = 2 * 2 + 8 + (options.other_lanes == "cleared")
    assert len(findings) == len(ila.instructions) + 1 + loops


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1) | st.integers(0, 0x90000), st.booleans())
def test_addresses_select_what_the_map_says(addr: int, is_write: bool) -> None:
    inputs = {"top_slave_if_wr": is_write, "top_slave_if_rd": not is_write, "top_slave_addr_in": addr}
    name = reset(HlscnnOptions()).decode(inputs).name
    offset = addr % 2**24
    aligned = offset % 16 == 0
    number = (offset >> 2) % 30
    if offset < 0x4000 and is_write and number >= 4:
        expected = {12: "FC_START", 17: "ACCEL_CONV_TRIGGER", 25: "REDUCTION_TRIGGER"}.get(number)
        if number in (7, 8, 9, 10):
            expected = "SELF_TEST"
        assert name == (expected or f"CFG_WR_{Register(number).name}")
    elif SPAD0 <= offset < 0x44000 and aligned:
        assert name == f"SPAD{int(offset >= SPAD1)}_DATA_{'WR' if is_write else 'RD'}"
    elif SOC <= offset < 0x80000 and aligned and is_write:
        assert name == "VIR_MEM_WR"
    else:
        assert name == "HLSCNN_RESERVED"


@pytest.mark.parametrize(
    ("addr", "is_write", "reason"),
    [
        (0x32000030, True, "FC_START: fully connected layers have no public description"),
        (0x32000064, True, "REDUCTION_TRIGGER: reductions have no public description"),
        (0x3200001C, True, "SELF_TEST: self tests have no public description"),
        (0x32000028, True, "SELF_TEST: self tests have no public description"),
        (0x3200000C, True, "HLSCNN_RESERVED: no published description says what answers this command"),
        (0x32000044, False, "HLSCNN_RESERVED: no published description says what answers this command"),
        (0x32050000, False, "HLSCNN_RESERVED: no published description says what answers this command"),
        (0x32004008, True, "HLSCNN_RESERVED: no published description says what answers this command"),
        (0x32044000, True, "HLSCNN_RESERVED: no published description says what answers this command"),
        (0x32080000, True, "HLSCNN_RESERVED: no published description says what answers this command"),
    ],
)
def test_commands_without_a_described_answer_are_refused(addr: int, is_write: bool, reason: str) -> None:
    with pytest.raises(CommandError) as error:
        (write if is_write else read)(reset(HlscnnOptions()), addr)
    assert str(error.value).endswith(reason)


def test_reserved_instructions_do_nothing() -> None:
    reserved = [i for i in hlscnn().instructions.values() if i.reserved]
    assert [i.name for i in reserved] == ["FC_START", "REDUCTION_TRIGGER", "SELF_TEST", "HLSCNN_RESERVED"]
    assert not any(i.updates or i.kernel for i in reserved)
    assert set(hlscnn().inits) == set(hlscnn().states)


@pytest.mark.parametrize("both", [True, False])
def test_exactly_one_of_write_and_read_is_a_command(both: bool) -> None:
    with pytest.raises(CommandError, match="is not a valid command"):
        reset(HlscnnOptions()).step({"top_slave_if_wr": both, "top_slave_if_rd": both, "top_slave_addr_in": SPAD0})


def test_models_are_built_once_per_reading() -> None:
    assert hlscnn() is hlscnn(HlscnnOptions())
    assert hlscnn(MASTER) is not hlscnn()
    assert options_of(hlscnn(MASTER)) == MASTER
    assert "starts kernel convolution" in show_ila(hlscnn())
    with pytest.raises(ValueError) as error:
        options_of(Ila("hlscnn"))
    assert str(error.value) == (
        "Model must come from hlscnn(), not be another one with the name hlscnn; build it again"
    )


# -- registers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 0x80000000, 30 * 4, 135 * 120])
def test_registers_repeat_and_only_24_bits_of_the_address_count(offset: int) -> None:
    machine = reset(HlscnnOptions())
    for register in Register:
        addr = 0x32000000 + 4 * register + offset
        if hlscnn().instructions.get(f"CFG_WR_{register.name}"):
            value = 0x10203040 + register
            write(machine, addr % 2**32, value << 8 * (addr % 16))
            assert machine.values[f"cfg_reg_{register.name.lower()}"] == value


@pytest.mark.parametrize(
    ("addr", "expected"),
    [(0x50, 0x76543210), (0x51, 0x98765432), (0x5B, 0x23456789), (0x5C, 0x01234567), (0x5F, 0x01234567)],
)
def test_a_register_takes_the_bytes_that_its_address_points_to(addr: int, expected: int) -> None:
    machine = reset(HlscnnOptions())
    name = write(machine, addr, WORD)
    assert machine.values[name.lower().replace("cfg_wr_", "cfg_reg_")] == expected


def test_register_words() -> None:
    assert KERNEL_SIZE.pack(rows=3, cols=5, row_stride=2, col_stride=1) == 2 << 19 | 1 << 16 | 3 << 8 | 5
    fields = {"filters": 9, "bias": 0xFFFE, "enable_bias": 1, "enable_relu": 1, "enable_accum": 1}
    for name, low, high in (("implemented", 19, 27), ("wide", 19, 31)):
        word = channel_word(HlscnnOptions(channel_word=name)).pack(**fields, enable_wb=1)  # type: ignore[arg-type]
        assert word == 9 << low | 1 << high | 7 << 16 | 0xFFFE
    documented = channel_word(HlscnnOptions(channel_word="documented"))
    assert documented.unpack(1 << 22 | 5 << 19) == {
        "enable_wb": 1, "filters": 5, "enable_accum": 0, "enable_relu": 0, "enable_bias": 0, "bias": 0,
    }  # fmt: skip


def test_the_documented_stride_is_no_row_stride() -> None:
    # the header's comment has one stride in bits 23:16; for the hardware that is a column stride, and a row stride of 0
    for stride in range(1, 8):
        assert KERNEL_SIZE.unpack(stride << 16)["row_stride"] == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rows": 1024}, "rows of InputSize must be in 0 .. 1023, not 1024; make the operation smaller"),
        ({"channels": -1}, "channels of InputSize must be in 0 .. 4095, not -1; make the operation smaller"),
        ({"batch": 1}, "Field of InputSize must be one of channels, rows, cols, not batch"),
    ],
)
def test_register_word_messages(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError) as error:
        INPUT_SIZE.pack(**fields)
    assert str(error.value) == message


def test_host_addresses() -> None:
    assert register_address(Register.CONV_CHANNEL_CFG) == 0x32000060


# -- memories and transfers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "last"), [(SPAD0, 0x23FF0), (SPAD1, 0x43FF0)])
def test_a_write_to_a_scratchpad_copies_from_soc_memory(base: int, last: int) -> None:
    machine = reset(HlscnnOptions())
    for i in range(4):
        write(machine, SOC + 0x2FFC0 + 16 * i, WORD + i)
    set_register(machine, 4, 0x2FFC0)
    set_register(machine, 5, 4)
    write(machine, 0x32000000 + last - 48, 0xFFFF)  # the data of the command do not matter
    assert [read(machine, last + 16 * i) for i in range(-4, 1)] == [0, WORD, WORD + 1, WORD + 2, WORD + 3]
    other = SPAD1 if base == SPAD0 else SPAD0
    assert read(machine, other) == read(machine, base) == 0
    assert (
        machine.memories["scratch_pad_0" if base == SPAD0 else "scratch_pad_1"][(last - base) // 2]
        == (WORD + 3) % 2**16
    )


def test_the_lowest_lane_has_the_lowest_address() -> None:
    machine = reset(HlscnnOptions())
    write(machine, SOC + 0x20, WORD)
    soc = machine.memories["virtual_soc_memory"]
    assert [soc[16 + lane] for lane in range(8)] == [WORD >> 16 * lane & 0xFFFF for lane in range(8)]


@pytest.mark.parametrize("options", [HlscnnOptions(), MASTER], ids=["default", "main branch"])
def test_the_flat_form_of_the_convolution_agrees(options: HlscnnOptions) -> None:
    layer = Layer(2, 9, 3, 2, 2, 2, 2, 1, bias=99, relu=True).with_data(4, wgt=128)
    machine = start(layer, options, port=False)
    contents = {name: dict(memory) for name, memory in machine.memories.items()}
    inputs = {"top_slave_if_wr": 1, "top_slave_addr_in": 0x32000044}
    assert child_differs(machine.ila, "ACCEL_CONV_TRIGGER", inputs, dict(machine.values), contents) is None


def test_the_flat_form_of_a_transfer_agrees() -> None:
    machine = reset(HlscnnOptions())
    fill(machine, SOC, [WORD, WORD + 1])
    values = machine.values | {"cfg_reg_soc_mem_rd_wr_length": 2}
    contents = {name: dict(memory) for name, memory in machine.memories.items()}
    inputs = {"top_slave_if_wr": 1, "top_slave_addr_in": SPAD1 + 0x30}
    assert child_differs(machine.ila, "SPAD1_DATA_WR", inputs, values, contents) is None


# -- options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"coordinates": "full"}, "coordinates must be valid or same, not 'full'"),
        ({"weight_bits": 4}, "weight_bits must be 8 or 16, not 4"),
        ({"weight_bits": "8"}, "weight_bits must be 8 or 16, not '8'"),
        ({"overflow": None}, "overflow must be wrap or saturate, not None"),
        ({"tap_rounding": "up"}, "tap_rounding must be truncate or toward_zero or half_up or half_even, not 'up'"),
        ({"psum_fraction": 31}, "psum_fraction must be an integer in 0 .. 30, not 31"),
        ({"psum_bits": True}, "psum_bits must be an integer in 32 .. 48, not True"),
        ({"weight_bits": 8, "weight_fraction": 7}, "weight_fraction must be an integer in 8 .. 15, not 7"),
        (
            {"psum_fraction": 6},
            "output_fraction must be at most psum_fraction, 6, not 7: what is stored is a partial sum with fewer bits",
        ),
    ],
)
def test_options_are_checked(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        HlscnnOptions(**choice)
    assert str(error.value) == message
