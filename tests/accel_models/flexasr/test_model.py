"""The global buffer's ILA: recorded programs, decodes, and the points where published models disagree."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr import numerics
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from ila_lang import CommandError, Machine, compile_function, compile_terms, show_ila
from tests.accel_models.flexasr.port import LARGE, read, recorded, replay, write
from tests.accel_models.flexasr.words import pack_large_manager, pack_unit

PROGRAMS = recorded("reduce")
START = 0x33000020


def rows(machine: Machine, timesteps: int, stride: int = 1, vector: int = 0) -> list[int]:
    """Lane 0 of each timestep."""
    at = [LARGE + 16 * (t % 16 + (t // 16 * stride + vector) * 16) for t in range(timesteps)]
    return [read(machine, a) & 0xFF for a in at]


def prepared(
    options: FlexAsrOptions | None, timesteps: int, vectors: int = 1, stride: int = 1, **config: int
) -> Machine:
    """A machine whose configuration is written and whose lane 0 of timestep t, vector 0 is t + 1."""
    machine = Machine(flexasr(options))
    write(machine, 0x33400010, pack_large_manager({0: stride}, {}))
    values = {"is_valid": 1, "num_vector_1": vectors, "num_timestep_1": timesteps} | config
    write(machine, 0x33800010, pack_unit(**values))
    for t in range(timesteps + 2):
        write(machine, LARGE + 16 * (t % 16 + t // 16 * stride * 16), t + 1)
    return machine


# -- recorded programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p["id"])
def test_recorded_words_reproduce(program: dict[str, Any]) -> None:
    expected = (program["reads"], program["irq"])
    assert replay(program, flexasr(RECORDED_SIMULATOR)) == expected
    assert (replay(program, flexasr()) == expected) is not program["odd"]


def test_there_are_recorded_programs_of_both_kinds() -> None:
    assert len(PROGRAMS) == 45
    assert sum(p["odd"] for p in PROGRAMS) == 8


# -- decoding ----------------------------------------------------------------------------------------


def decoded(addr: np.ndarray, is_write: bool) -> np.ndarray:
    """How many instructions decode each address (a column per instruction)."""
    ila = flexasr()
    inputs = [ila.inputs[n] for n in ("if_axi_wr", "if_axi_rd", "addr_in")]
    run = compile_terms(inputs, [i.decode for i in ila.instructions.values()], vector=True)
    hits = run(np.full(addr.shape, is_write), np.full(addr.shape, not is_write), addr)
    return np.stack([np.broadcast_to(h, addr.shape) for h in hits])


@pytest.mark.parametrize("is_write", [True, False])
@pytest.mark.parametrize("partition", [0x33, 0x34, 0x37])
def test_every_command_is_decoded_exactly_once(partition: int, is_write: bool) -> None:
    # a partition's aligned commands: 16 regions of 2^16 indices, every 31st one and all of the first 1100
    indices = np.union1d(np.arange(0, 1 << 20, 31), (np.arange(16)[:, None] << 16 | np.arange(1100)).ravel())
    hits = decoded((partition << 24) + 16 * indices, is_write)
    assert (hits.sum(axis=0) == 1).all()


def test_the_low_four_address_bits_are_ignored() -> None:
    aligned = 0x33000000 + 16 * np.arange(0, 5 << 20, 97)
    assert np.array_equal(decoded(aligned, True), decoded(aligned + 13, True))


def test_instructions() -> None:
    published = {
        "CONFIG_GB_CONTROL", "CONFIG_GB_LAYER_REDUCE", "CONFIG_GB_LAYER_NORM", "CONFIG_GB_ZERO_PADDING",
        "CONFIG_GB_ATTENTION", "CONFIG_GB_CORE_MEM_MNGR_LARGE", "CONFIG_GB_CORE_MEM_MNGR_SMALL",
        "GB_CORE_STORE_LARGE", "GB_CORE_LOAD_LARGE", "GB_CORE_STORE_SMALL", "GB_CORE_LOAD_SMALL",
        "GB_CONTROL_START", "GB_LAYER_REDUCE_START", "GB_LAYER_NORM_START",
        "GB_ZEROPADDING_START", "GB_ATTENTION_START",
    }  # fmt: skip
    of_a_pe = {
        "CONFIG_RNN_LAYER_SIZING", "CONFIG_MEM_MNGR_FIRST", "CONFIG_MEM_MNGR_SECOND", "CONFIG_CLUSTER_TABLE_FIRST",
        "CONFIG_CLUSTER_TABLE_SECOND", "CONFIG_ACT_MNGR", "CONFIG_ACT_VECTOR_0_15", "CONFIG_ACT_VECTOR_16_31",
        "CORE_STORE_WEIGHT_BUFFER", "CORE_STORE_INPUT_BUFFER", "ACT_STORE_BUFFER", "LOAD_ACT_BUFFER",
    }  # fmt: skip
    published |= {f"PE{pe}_{name}" for pe in range(4) for name in of_a_pe}
    assert len(published) == 64
    own = {"CORE_LOAD_WEIGHT_BUFFER", "CORE_LOAD_INPUT_BUFFER", "CONFIG_SRAM", "START"}
    own = {f"PE{pe}_{name}" for pe in range(4) for name in own} | {"CONFIG_GB_CORE_SRAM", "RESERVED"}
    ila = flexasr()
    assert set(ila.instructions) == published | own
    reserved = {n for n, i in ila.instructions.items() if i.reserved}
    assert reserved == {"PE0_START", "PE1_START", "PE2_START", "PE3_START", "RESERVED"}
    assert all(not ila.instructions[n].updates and not ila.instructions[n].kernel for n in reserved)
    assert set(ila.inits) == set(ila.states)
    unknown = {n for n in ila.instructions if n.startswith("PE") and ("LOAD" in n or "START" in n)}
    assert set(flexasr(RECORDED_SIMULATOR).instructions) == set(ila.instructions) - unknown


@pytest.mark.parametrize(
    ("addr", "reason"),
    [
        (0x33C00010, "RESERVED: no register or buffer answers this command"),
        (0x33604000, "RESERVED: no register or buffer answers this command"),
        (0x34601000, "RESERVED: no register or buffer answers this command"),
        (0x37900200, "RESERVED: no register or buffer answers this command"),
        (0x34000010, "PE0_START: where the output of a PE goes that the control unit of the global buffer did not "
                     "start is open"),
        (0x37000020, "PE3_START: where the output of a PE goes that the control unit of the global buffer did not "
                     "start is open"),
        (0x32FFFFF0, "is not a valid command of flexasr"),
        (0x38000000, "is not a valid command of flexasr"),
    ],
)  # fmt: skip
def test_commands_without_a_described_answer_are_refused(addr: int, reason: str) -> None:
    with pytest.raises(CommandError) as error:
        write(Machine(flexasr()), addr)
    assert str(error.value).endswith(reason)


def test_write_and_read_at_once_is_no_command() -> None:
    with pytest.raises(CommandError, match="is not a valid command"):
        Machine(flexasr()).step({"if_axi_wr": True, "if_axi_rd": True, "addr_in": LARGE})


def test_models_are_built_once_per_reading() -> None:
    assert flexasr() is flexasr(FlexAsrOptions())
    assert flexasr(RECORDED_SIMULATOR) is not flexasr()
    with pytest.raises(ValueError, match="reduce_odd must be rtl or recorded, not 'floor'"):
        FlexAsrOptions(reduce_odd="floor")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="padding_base must be manager or zero, not 0"):
        FlexAsrOptions(padding_base=0)  # type: ignore[arg-type]
    assert "starts kernel layer_reduce when gb_layer_reduce_is_valid" in show_ila(flexasr())


# -- state -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "last"), [(LARGE, 0x335FFFF0), (0x33600000, 0x33603FF0)])
def test_buffers_keep_vectors(base: int, last: int) -> None:
    machine = Machine(flexasr())
    word = 0x0123456789ABCDEF_FEDCBA9876543210
    write(machine, last + 7, word)  # unaligned: the same vector
    assert (read(machine, last), read(machine, base)) == (word, 0)
    name = "gb_core_large_buffer" if base == LARGE else "gb_core_small_buffer"
    assert machine.memories[name][(last - base) + 1] == 0x32


def test_configurations_are_kept_field_by_field() -> None:
    machine = Machine(flexasr())
    assert machine.values["gb_control_num_vector_2"] == machine.values["gb_zero_padding_num_timestep_2"] == 1
    write(machine, 0x33700010, pack_unit(is_valid=1, mode=5, is_rnn=1, num_vector_2=7))
    write(machine, 0x33A00010, pack_unit(num_timestep_2=0xBEEF))
    write(machine, 0x33B00010, pack_unit(adpbias_4=6, memory_index_2=3))
    write(machine, 0x33400020, 0xABCD << 112)
    write(machine, 0x33300010, 0x1_0000_0005)
    values = machine.values
    assert (values["gb_control_is_valid"], values["gb_control_mode"], values["gb_control_is_rnn"]) == (
        1,
        5,
        1,
    )
    assert values["gb_control_num_vector_2"] == 7
    assert values["gb_zero_padding_num_timestep_2"] == 0xBEEF
    assert (values["gb_attention_adpbias_4"], values["gb_attention_memory_index_2"]) == (6, 3)
    assert values["gb_core_mem_mngr_small_base_small_7"] == 0xABCD
    assert values["gb_core_sram_config"] == 5


# -- LayerReduce, and where published models disagree ------------------------------------------------


@pytest.mark.parametrize(("mode", "operator"), [(0, "max"), (1, "mean"), *((m, "add") for m in range(2, 8))])
def test_modes(mode: int, operator: str) -> None:
    machine = prepared(None, 2, mode=mode)
    write(machine, LARGE, 0xF5)
    write(machine, LARGE + 16, 0xE3)
    write(machine, START)
    expected = compile_function(getattr(numerics, f"adpfloat_{operator}"))(0xF5, 0xE3)
    assert rows(machine, 2) == [expected, 0xE3]
    assert machine.values["top_interrupt_request"] == 1


@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 3), st.sampled_from(list(range(0, 1 << 16, 4093))))
def test_max_pooling_against_the_tiling(timesteps: int, vectors: int, index: int, base: int) -> None:
    # one random byte per vector; strides and bases of all managers differ
    machine = Machine(flexasr())
    strides = {i: vectors + (i != index) for i in range(4)}
    write(machine, 0x33400010, pack_large_manager(strides, {i: base ^ (i ^ index) for i in range(4)}))
    config = pack_unit(is_valid=1, num_vector_1=vectors, num_timestep_1=timesteps, memory_index_1=index | 4)
    write(machine, 0x33800010, config)

    def address(t: int, v: int) -> int:
        return LARGE + 16 * ((base + t % 16 + (t // 16 * vectors + v) * 16) % 65536)

    padded = timesteps + timesteps % 2
    matrix = np.random.default_rng(timesteps).integers(0, 0x60, (padded, vectors))
    for t in range(padded):
        for v in range(vectors):
            write(machine, address(t, v), int(matrix[t, v]) << 120)
    write(machine, START)
    result = [[read(machine, address(t, v)) >> 120 for v in range(vectors)] for t in range(padded // 2)]
    assert result == matrix.reshape(-1, 2, vectors).max(axis=1).tolist()


def test_an_odd_count_takes_one_more_pair_in_hardware() -> None:
    machine = prepared(None, 7)
    write(machine, START)
    assert rows(machine, 8) == [2, 4, 6, 8, 5, 6, 7, 8]  # timestep 7 is beyond the matrix


def test_an_odd_count_loses_its_last_timestep_in_the_recorded_simulator() -> None:
    machine = prepared(RECORDED_SIMULATOR, 7)
    write(machine, START)
    assert rows(machine, 8) == [2, 4, 6, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("timesteps", [0, 1])
def test_fewer_than_two_timesteps(timesteps: int) -> None:
    hardware, simulator = prepared(None, timesteps), prepared(RECORDED_SIMULATOR, timesteps)
    for machine in (hardware, simulator):
        write(machine, LARGE + 16, 2)
        write(machine, START)
    assert (rows(hardware, 2), hardware.values["top_interrupt_request"]) == ([2, 2], 1)
    assert (rows(simulator, 2), simulator.values["top_interrupt_request"]) == ([1, 2], 0)


def test_no_vectors_behave_as_one() -> None:
    machine = prepared(None, 2, vectors=0)
    write(machine, START)
    assert rows(machine, 2) == [2, 2]


@pytest.mark.parametrize(("reading", "ninth"), [("manager", 18), ("unit", 0)])
def test_the_stride_is_the_managers_in_hardware_and_the_units_in_the_published_ila(
    reading: Literal["manager", "unit"], ninth: int
) -> None:
    # manager: 2 vectors per timestep, unit: 1; the unit's stride finds timesteps 16 and 17 unwritten
    machine = prepared(FlexAsrOptions(reduce_stride=reading), 18, stride=2)
    write(machine, START)
    assert rows(machine, 9, stride=2) == [2, 4, 6, 8, 10, 12, 14, 16, ninth]


def test_the_largest_count_ends() -> None:
    extent = flexasr().kernels["layer_reduce"].body[0].extent  # type: ignore[union-attr]
    run = compile_terms([flexasr().states["gb_layer_reduce_num_timestep_1"]], [extent], vector=True)
    (pairs,) = run(np.arange(65536))
    assert np.array_equal(pairs, np.maximum((np.arange(65536) + 1) // 2, 1))


def test_a_start_without_valid_configuration_does_nothing() -> None:
    machine = prepared(None, 4, is_valid=0)
    assert write(machine, START) == "GB_LAYER_REDUCE_START"
    assert rows(machine, 4) == [1, 2, 3, 4]
    assert machine.values["top_interrupt_request"] == 0


def test_a_read_starts_too() -> None:
    machine = prepared(None, 4)
    before = machine.values["data_out"]
    assert read(machine, START) == before
    assert rows(machine, 2) == [2, 4]


def test_the_result_may_be_reduced_again() -> None:
    machine = prepared(None, 4)
    write(machine, START)
    write(machine, START)
    assert rows(machine, 2) == [4, 4]
