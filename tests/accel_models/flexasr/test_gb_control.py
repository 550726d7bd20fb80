"""GBControl with cores and activation units: random layers against an oracle, hanging layers, and readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Ila, Machine, Memory, Simulator, child_differs
from tests.accel_models.flexasr import layer_oracle
from tests.accel_models.flexasr.port import reset, write

START = 0x33000010
MEMORIES = {
    "gb_core_large_buffer": 4096, "gb_core_small_buffer": 16384, "pe_core_input_buffer": 1 << 14,
    "pe_core_cluster_table": 128, "pe_act_buffer": 2048, "pe_act_regs": 256,
}  # fmt: skip
WEIGHTS = 4096  # bytes of each PE that hold random weights


def linear(program: bytes = b"\x30\x40", **others: int) -> dict[str, int]:
    """The registers of a layer of one input vector, one output vector per PE, one timestep; or ``others``."""
    values = {
        "gb_control_is_valid": 1, "gb_control_num_vector_1": 1, "gb_control_num_vector_2": 4,
        "gb_control_num_timestep_1": 1, "gb_control_memory_index_2": 1, "gb_core_mem_mngr_large_base_large_1": 64,
        "gb_core_mem_mngr_large_num_vector_1": 4, "gb_core_mem_mngr_small_base_small_1": 64,
    }  # fmt: skip
    for pe in range(4):
        sizing, act = f"pe{pe}_rnn_layer_sizing_", f"pe{pe}_act_mngr_"
        values |= {
            sizing + "is_valid": 1, sizing + "num_manager": 1, sizing + "num_output": 1, act + "is_valid": 1,
            act + "num_inst": len(program), act + "num_output": 1, act + "output_addr_base": pe,
            act + "adpfloat_bias": 3, f"pe{pe}_mem_mngr_first_adpfloat_bias_w": 1,
            f"pe{pe}_mem_mngr_first_adpfloat_bias_i": 2, f"pe{pe}_mem_mngr_first_base_weight": 16 * pe,
        }  # fmt: skip
        values |= {f"pe{pe}_act_vector_Inst{i}": inst for i, inst in enumerate(program)}
    assert others.keys() <= flexasr().states.keys()
    return values | others


def prepared(values: dict[str, int], seed: int = 0, ila: Ila | None = None) -> Machine:
    """A machine with random buffers; those of processing elements as commands write them."""
    ila = ila or flexasr()
    machine = reset(ila)
    machine.values.update(values)
    random = np.random.default_rng(seed)
    for name, size in MEMORIES.items():
        top = 1 << 20 if name == "pe_act_regs" else 256
        words = random.integers(0, top, size).tolist()
        if name in ("pe_core_input_buffer", "pe_act_buffer"):  # their sizes depend on the reading
            width = ila.states[name].sort.addr_width - 2  # type: ignore[union-attr]
            each = size // 4
            machine.memories[name].update({i // each << width | i % each: word for i, word in enumerate(words)})
        else:
            machine.memories[name].update(enumerate(words))
    for pe in range(4):
        codes = random.integers(0, 256, WEIGHTS).tolist()
        machine.memories["pe_core_weight_buffer"].update({pe << 20 | i: code for i, code in enumerate(codes)})
    return machine


def snapshot(machine: Machine) -> tuple[dict[str, int], dict[str, Memory]]:
    return dict(machine.values), {n: Memory(m.default, m) for n, m in machine.memories.items()}


def compare_with_oracle(machine: Machine, passes: str = "rtl") -> None:
    values, memories = snapshot(machine)
    write(machine, START)
    layer_oracle.run(values, memories, passes)
    assert machine.values == values
    for name in [*MEMORIES, "pe_core_weight_buffer"]:
        assert dict(machine.memories[name]) == dict(memories[name]), name


# -- against the oracle ---------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn, takes: int) -> bytes:
    """A program with ``takes`` INPE, of at most 32 instructions, often with NOPs and unused operations."""
    byte = st.integers(0, 255).filter(lambda i: i >> 4 != 3)
    instructions = draw(st.lists(byte, min_size=takes == 0, max_size=12 - takes))
    for _ in range(takes):
        place = draw(st.integers(0, len(instructions)))
        instructions.insert(place, 0x30 | draw(st.integers(0, 15)))
    return bytes(instructions + draw(st.sampled_from([[], [0x44]])))


@st.composite
def layers(draw: st.DrawFn) -> dict[str, int]:
    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    values = {
        "gb_control_is_valid": 1, "gb_control_mode": number(0, 4), "gb_control_is_rnn": number(0, 1),
        "gb_control_memory_index_1": number(0, 7), "gb_control_memory_index_2": number(0, 7),
        "gb_control_num_vector_1": number(0, 2), "gb_control_num_vector_2": number(0, 2),
        "gb_control_num_timestep_1": number(0, 3),
    }  # fmt: skip
    values |= {f"gb_core_mem_mngr_large_base_large_{i}": number(0, 65535) for i in range(4)}
    values |= {f"gb_core_mem_mngr_large_num_vector_{i}": number(0, 255) for i in range(4)}
    values |= {f"gb_core_mem_mngr_small_base_small_{i}": number(0, 65535) for i in range(8)}
    for pe in range(4):
        outputs, managers, valid = number(1, 2), number(1, 2), draw(st.sampled_from([1, 1, 1, 0]))
        total = outputs * managers * valid
        takes = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0] or [0]))
        program = draw(programs(takes))
        sizing = {"is_valid": valid, "num_output": outputs, "num_manager": managers, "is_zero_first": number(0, 1),
                  "is_cluster": number(0, 1), "is_bias": number(0, 1)}  # fmt: skip
        act = {"is_valid": 1, "is_zero_first": number(0, 1), "adpfloat_bias": number(0, 7), "num_inst": len(program),
               "num_output": total // takes if takes else number(1, 2), "buffer_addr_base": number(0, 31),
               "output_addr_base": number(0, 255)}  # fmt: skip
        values |= {f"pe{pe}_rnn_layer_sizing_{n}": x for n, x in sizing.items()}
        values |= {f"pe{pe}_act_mngr_{n}": x for n, x in act.items()}
        for name in ("first", "second"):
            manager = {"zero_active": number(0, 1), "num_input": number(1, 2), "base_input": number(0, 65535),
                       "base_bias": number(0, 65535)}  # fmt: skip
            manager |= {"base_weight": draw(st.sampled_from([0, 7, 130, 65530]))}
            manager |= {f"adpfloat_bias_{k}": number(0, 7) for k in "wbi"}
            values |= {f"pe{pe}_mem_mngr_{name}_{n}": x for n, x in manager.items()}
        values |= {f"pe{pe}_act_vector_Inst{i}": inst for i, inst in enumerate(program)}
    return values


@settings(max_examples=25)
@given(layers(), st.integers(0, 1000))
def test_layers(values: dict[str, int], seed: int) -> None:
    compare_with_oracle(prepared(values, seed))


@settings(max_examples=20)
@given(st.data(), st.integers(0, 1000))
def test_micro_programs(data: st.DataObject, seed: int) -> None:
    # cores give their biases only: the skipped products make room for many programs
    values = linear(gb_control_num_timestep_1=2)
    for pe in range(4):
        takes = data.draw(st.integers(1, 3))
        program = data.draw(programs(takes))
        values |= {f"pe{pe}_act_vector_Inst{i}": inst for i, inst in enumerate(program)}
        values |= {f"pe{pe}_act_mngr_num_inst": len(program), f"pe{pe}_act_mngr_adpfloat_bias": seed % 8}
        values |= {f"pe{pe}_rnn_layer_sizing_num_output": takes, f"pe{pe}_rnn_layer_sizing_is_bias": 1}
        values |= {f"pe{pe}_rnn_layer_sizing_is_zero_first": pe % 2, f"pe{pe}_mem_mngr_first_zero_active": 1}
        values |= {f"pe{pe}_act_mngr_is_zero_first": seed % 2, f"pe{pe}_mem_mngr_first_adpfloat_bias_b": 5}
    compare_with_oracle(prepared(values, seed))


@pytest.mark.parametrize("mode", range(8))
def test_modes_over_more_than_a_group_of_timesteps(mode: int) -> None:
    values = linear(gb_control_num_timestep_1=17, gb_control_mode=mode, gb_core_mem_mngr_large_num_vector_0=2)
    compare_with_oracle(prepared(values))


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("steps", [1, 3, 17])
def test_timesteps_of_the_public_simulators_passes(mode: int, steps: int) -> None:
    values = linear(gb_control_num_timestep_1=steps, gb_control_mode=mode, gb_core_mem_mngr_large_num_vector_0=2)
    compare_with_oracle(prepared(values, ila=flexasr(FlexAsrOptions(control_passes="recorded"))), "recorded")


def test_micro_programs_of_32_instructions_end() -> None:
    compare_with_oracle(prepared(linear(bytes(29) + b"\x30\xa0\x40")))


# -- layers that do not end -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        {"gb_control_is_valid": 0},
        {"pe2_act_mngr_is_valid": 0},
        {"pe3_rnn_layer_sizing_is_valid": 0},  # its activation unit waits
        {"pe0_rnn_layer_sizing_num_output": 0},
        {"pe0_rnn_layer_sizing_num_output": 2},  # a vector that nobody takes
        {"pe1_rnn_layer_sizing_num_manager": 0},
        {"pe1_rnn_layer_sizing_num_manager": 2},
        {"pe1_rnn_layer_sizing_num_manager": 3, "pe1_act_mngr_num_output": 3},
        {"pe2_mem_mngr_first_num_input": 0},
        {"pe0_act_mngr_num_output": 0},
        {"pe0_act_mngr_num_output": 2},
        {"pe0_act_mngr_num_inst": 0},
        {"pe0_act_mngr_num_inst": 33},
        {"pe0_act_vector_Inst0": 0x00},
        {"pe0_act_vector_Inst1": 0x30},
    ],
    ids=str,
)
def test_a_layer_that_never_ends_does_not_start(broken: dict[str, int]) -> None:
    machine = prepared(linear() | broken)
    before = snapshot(machine)
    assert write(machine, START) == "GB_CONTROL_START"
    assert (machine.values, machine.memories) == before
    assert machine.values["top_interrupt_request"] == 0


@pytest.mark.parametrize(
    "others",
    [
        {"pe1_mem_mngr_second_num_input": 0},  # of a manager that is not used
        {"pe1_rnn_layer_sizing_is_valid": 0, "pe1_act_vector_Inst0": 0},
        {"pe1_rnn_layer_sizing_is_valid": 0, "pe1_act_vector_Inst0": 0, "pe1_rnn_layer_sizing_num_output": 0},
        {"pe1_act_vector_Inst2": 0x30},  # beyond the program
    ],
    ids=str,
)
def test_what_a_layer_does_not_use_does_not_stop_it(others: dict[str, int]) -> None:
    compare_with_oracle(prepared(linear() | others))


# -- readings -----------------------------------------------------------------------------------------


def answer(options: FlexAsrOptions, values: dict[str, int]) -> tuple[Any, ...]:
    """Result rows and flags after a start."""
    machine = prepared(values, ila=flexasr(options))
    write(machine, START)
    memories = {name: dict(machine.memories[name]) for name in ("gb_core_large_buffer", "gb_core_small_buffer")}
    return memories, machine.values["top_interrupt_request"]


OTHER_BASE = {"gb_core_mem_mngr_large_base_large_0": 32, "gb_core_mem_mngr_small_base_small_0": 32}
FAR_BIASES = {"rnn_layer_sizing_is_bias": 1, "mem_mngr_first_base_bias": 257, "mem_mngr_first_adpfloat_bias_b": 7}
READINGS = [
    (FlexAsrOptions(saturation="pre2022"), linear(b"\x30\x80\x80\x80\x80\x40"), linear(b"\x30\xc0\x40")),
    (FlexAsrOptions(sigmoid="B"), linear(b"\x30\xa0\x40"), linear(b"\x30\xb0\x40")),
    (
        FlexAsrOptions(control_stride="unit"),
        linear(gb_control_num_timestep_1=17, gb_core_mem_mngr_large_num_vector_0=2),
        linear(gb_control_num_timestep_1=17, gb_core_mem_mngr_large_num_vector_0=1),
    ),
    (FlexAsrOptions(control_input_base="zero"), linear(**OTHER_BASE), linear()),
    (
        FlexAsrOptions(control_input_base="zero"),
        linear(**OTHER_BASE, gb_control_mode=3),
        linear(gb_control_mode=3),
    ),
    (
        FlexAsrOptions(control_passes="recorded"),
        linear(gb_control_mode=2, gb_control_num_timestep_1=2),
        linear(gb_control_mode=0, gb_control_num_timestep_1=2),
    ),
    (
        FlexAsrOptions(control_passes="recorded"),
        linear(gb_control_mode=1, gb_control_num_timestep_1=2),
        linear(gb_control_mode=1, gb_control_num_timestep_1=1),  # timestep 0 is both t and 2 t
    ),
    (FlexAsrOptions(control_high_modes="small"), linear(gb_control_mode=5), linear(gb_control_mode=3)),
    (
        # vector 33 is vector 1 of the buffer in hardware, and one that nothing has written in the published ILA
        FlexAsrOptions(act_buffer_base=16),
        linear(b"\x14\x30\x44", **{f"pe{pe}_act_mngr_buffer_addr_base": 33 for pe in range(4)}),
        linear(b"\x14\x30\x44"),
    ),
    (
        # inputs of two timesteps meet in the first register
        FlexAsrOptions(act_registers="cleared"),
        linear(b"\x34\x81\x40", gb_control_num_timestep_1=2),
        linear(b"\x30\xc0\x40", gb_control_num_timestep_1=2),
    ),
    (
        # the layer biases are at vector 257
        FlexAsrOptions(input_buffer=16),
        linear(**{f"pe{pe}_{n}": x for pe in range(4) for n, x in FAR_BIASES.items()}),
        linear(**{f"pe{pe}_mem_mngr_first_base_input": 257 for pe in range(4)}),
    ),
]

READING_NAMES = [
    "saturation", "sigmoid", "stride", "input base", "input base in the small buffer", "backward pass", "forward pass",
    "high modes",
    "activation buffer", "registers", "input buffer",
]  # fmt: skip


@pytest.mark.parametrize(("options", "differ", "agree"), READINGS, ids=READING_NAMES)
def test_readings_differ_where_they_say(options: FlexAsrOptions, differ: dict[str, int], agree: dict[str, int]) -> None:
    assert answer(options, differ) != answer(FlexAsrOptions(), differ)
    assert answer(options, agree) == answer(FlexAsrOptions(), agree)
    assert answer(options, differ)[1] == answer(options, agree)[1] == 1


# -- other interpretations -------------------------------------------------------------------------------


@settings(max_examples=4)
@given(layers(), st.integers(0, 1000))
def test_runs_on_arrays_agree(values: dict[str, int], seed: int) -> None:
    ila = flexasr()
    machine = prepared(values, seed)
    simulator = Simulator(ila)
    simulator.values.update(machine.values)
    for name, memory in machine.memories.items():
        simulator.memories[name].update(memory)
    for model in (machine, simulator):
        model.step({"if_axi_wr": True, "addr_in": START})
    assert simulator.values == machine.values
    for name, memory in machine.memories.items():
        words = simulator.memories[name]
        assert [words[address] for address in memory] == list(memory.values()), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [{"gb_control_num_timestep_1": 2}, {"gb_control_is_rnn": 1, "pe1_rnn_layer_sizing_is_cluster": 1}],
    ids=["two timesteps", "recurrent, clustered"],
)
def test_the_flat_form_agrees(others: dict[str, int]) -> None:
    ila = flexasr()
    machine = prepared(linear(b"\x14\x30\xa0\x20\x95\x40") | others)
    contents = {name: dict(memory) for name, memory in machine.memories.items()}
    inputs = {"if_axi_wr": 1, "addr_in": START}
    assert child_differs(ila, "GB_CONTROL_START", inputs, dict(machine.values), contents) is None
