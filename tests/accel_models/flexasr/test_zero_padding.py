"""The ZeroPadding unit: recorded programs, the cleared region, and where the simulator departs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from ila_lang import Machine, child_differs, run_on_arrays
from tests.accel_models.flexasr.port import recorded, replay, write
from tests.accel_models.flexasr.words import pack_large_manager, pack_unit

PROGRAMS = recorded("zero_padding")
START = 0x33000040
BUFFER = "gb_core_large_buffer"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p["id"])
def test_recorded_words_reproduce(program: dict[str, Any]) -> None:
    expected = (program["reads"], program["irq"])
    assert replay(program, flexasr(RECORDED_SIMULATOR)) == expected
    assert (replay(program, flexasr()) == expected) is not program["departs"]


def test_there_are_recorded_programs_of_both_kinds() -> None:
    assert len(PROGRAMS) == 12
    assert sum(p["departs"] for p in PROGRAMS) == 6


def cleared(
    options: FlexAsrOptions | None, first: int, end: int, vectors: int, *, stride: int, base: int = 0, index: int = 0
) -> set[int]:
    """The vector addresses that ZeroPadding clears in a buffer full of ones."""
    machine = Machine(flexasr(options))
    machine.memories[BUFFER].default = 1
    others = dict.fromkeys(range(4), stride + 1) | {index: stride}
    write(machine, 0x33400010, pack_large_manager(others, {i: base ^ (i ^ index) << 8 for i in range(4)}))
    config = pack_unit(
        is_valid=1, num_vector_1=vectors, num_timestep_1=first, num_timestep_2=end, memory_index_1=index | 4
    )
    write(machine, 0x33A00010, config)
    assert write(machine, START) == "GB_ZEROPADDING_START"
    assert machine.values["top_interrupt_request"] == 1
    lanes = [a for a, byte in machine.memories[BUFFER].items() if byte == 0]
    assert len(lanes) == 16 * len({a >> 4 for a in lanes})  # whole vectors
    return {a >> 4 for a in lanes}


def tiles(first: int, end: int, vectors: int, stride: int, base: int = 0) -> set[int]:
    """The vector addresses of timesteps and vectors by the tiling."""
    return {(base + t % 16 + (t // 16 * stride + v) * 16) % 65536 for t in range(first, end) for v in range(vectors)}


@given(
    st.integers(0, 70), st.integers(1, 40), st.integers(1, 4), st.integers(0, 2), st.integers(0, 65535),
    st.integers(0, 3),
)  # fmt: skip
def test_the_timesteps_of_the_matrix_are_cleared(
    first: int, count: int, vectors: int, more: int, base: int, index: int
) -> None:
    found = cleared(None, first, first + count, vectors, stride=vectors + more, base=base, index=index)
    assert found == tiles(first, first + count, vectors, vectors + more, base)


@pytest.mark.parametrize(("first", "end"), [(5, 5), (5, 3), (0, 0), (65535, 0)])
def test_no_timesteps_clear_the_first_one(first: int, end: int) -> None:
    assert cleared(None, first, end, 1, stride=1) == tiles(first, first + 1, 1, 1)


def test_no_vectors_behave_as_one() -> None:
    assert cleared(None, 2, 4, 0, stride=1) == tiles(2, 4, 1, 1)


def test_a_start_without_valid_configuration_does_nothing() -> None:
    machine = Machine(flexasr())
    write(machine, 0x33A00010, pack_unit(num_vector_1=1, num_timestep_2=4))
    write(machine, START)
    assert machine.values["top_interrupt_request"] == 0
    assert not machine.memories[BUFFER]


# -- where the recorded simulator departs --------------------------------------------------------------


@pytest.mark.parametrize(("reading", "base"), [("manager", 0x120), ("zero", 0)])
def test_the_recorded_simulator_ignores_the_base(reading: Literal["manager", "zero"], base: int) -> None:
    found = cleared(FlexAsrOptions(padding_base=reading), 1, 3, 2, stride=2, base=0x120, index=2)
    assert found == tiles(1, 3, 2, 2, base)


@pytest.mark.parametrize("vectors", [1, 2, 3, 4])
def test_the_recorded_simulator_misses_from_the_third_vector_on(vectors: int) -> None:
    found = cleared(FlexAsrOptions(padding_vectors="accumulated"), 0, 1, vectors, stride=4)
    assert found == set([0, 16, 48, 96][:vectors])
    assert (found == tiles(0, 1, vectors, 4)) is (vectors < 3)


def test_the_stride_may_be_the_units() -> None:
    assert cleared(FlexAsrOptions(padding_stride="unit"), 15, 18, 2, stride=5) == tiles(15, 18, 2, 2)


# -- other interpretations -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [None, RECORDED_SIMULATOR], ids=["hardware", "recorded"])
def test_flat_and_vectorised_forms_agree(options: FlexAsrOptions | None) -> None:
    ila = flexasr(options)
    values = {
        "gb_zero_padding_is_valid": 1,
        "gb_zero_padding_num_vector_1": 3,
        "gb_zero_padding_num_timestep_1": 14,
        "gb_zero_padding_num_timestep_2": 19,
        "gb_core_mem_mngr_large_num_vector_0": 3,
        "gb_core_mem_mngr_large_base_large_0": 5,
    }
    array = np.ones(1 << 20, dtype=np.uint8)
    contents = dict.fromkeys(range(2048), 1)
    inputs = {"if_axi_wr": 1, "addr_in": START}
    assert child_differs(ila, "GB_ZEROPADDING_START", inputs, values, {BUFFER: contents}) is None
    machine = Machine(ila)
    machine.values.update(values)
    machine.memories[BUFFER].default = 1
    run_on_arrays(ila.kernels["zero_padding"], machine.values, {BUFFER: array})
    machine.step(inputs)
    words = machine.memories[BUFFER]
    assert [words[a] for a in range(4096)] == array[:4096].tolist()
