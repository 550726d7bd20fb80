"""Driving FlexASR: commands at its port as program files, and the writes that set up a given state.

What a host driver does besides computing addresses; mappings use it to write counterexamples that anyone can replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from accel_models.mmio_program import ProgramCommand

from .config import (
    ACT_MNGR_WORD,
    ACT_VECTOR_WORDS,
    LARGE_MANAGER_WORD,
    MEM_MNGR_WORD,
    RNN_LAYER_SIZING_WORD,
    SMALL_MANAGER_WORD,
    UNIT_WORD,
    ConfigWord,
)
from .layout import LARGE_BASE, PE_COUNT, SMALL_BASE, PeRegion, Region, pe_register_address, register_address
from .program import PORT, write_program


def program_file(commands: list[Mapping[str, int]]) -> str:
    """Commands at FlexASR's port as a program file of the newer JSON form, with a wait after each start."""
    return write_program(PORT.program(commands))


def setup_commands(registers: Mapping[str, int], memories: Mapping[str, Mapping[int, int]]) -> list[Mapping[str, int]]:
    """Writes that put configuration registers and buffer bytes of a reset FlexASR in the given contents.

    Registers of a configuration word that are not named get their reset values, bytes of a written vector 0.  State is
    that of the hardware reading (the default options).  Raises ValueError on state that no command can set.
    """
    left = set(registers)
    commands: list[Mapping[str, int]] = []

    def write(address: int, data: int) -> None:
        commands.append(PORT.inputs(ProgramCommand("W", address, data)))

    for prefix, word, address in _configuration():
        names = {name for name in left if name.startswith(prefix) and name[len(prefix) :] in word.fields}
        if names:
            left -= names
            fields = {name: registers.get(prefix + name, field.reset) for name, field in word.fields.items()}
            write(address, word.pack(**fields))
    for name, cells in memories.items():
        if name not in _BUFFERS:
            raise ValueError(f"Memory {name} of FlexASR must be one of {', '.join(_BUFFERS)} to be set by commands")
        bits, places = _BUFFERS[name]
        vectors: dict[int, int] = {}
        for at, value in cells.items():
            vectors[at >> 4] = vectors.get(at >> 4, 0) | value << 8 * (at & 15)
        for vector, data in sorted(vectors.items()):
            if vector >> bits >= len(places):
                raise ValueError(f"Vectors of {name} must be below {len(places) << bits} to be set, not {vector}")
            write(places[vector >> bits] | (vector & (1 << bits) - 1) << 4, data)
    if left:
        raise ValueError(f"No command of FlexASR sets {', '.join(sorted(left))}")
    return commands


# Memories that commands set: bits of a vector's number in one buffer, and the address of each of the buffers.
_BUFFERS = {
    "gb_core_large_buffer": (16, [LARGE_BASE]),
    "gb_core_small_buffer": (10, [SMALL_BASE]),
    "pe_core_weight_buffer": (16, [pe_register_address(pe, PeRegion.WEIGHT, 0) for pe in range(PE_COUNT)]),
    "pe_core_input_buffer": (8, [pe_register_address(pe, PeRegion.INPUT, 0) for pe in range(PE_COUNT)]),
    "pe_act_buffer": (5, [pe_register_address(pe, PeRegion.ACT_BUFFER, 0) for pe in range(PE_COUNT)]),
    "pe_core_cluster_table": (
        0,
        [pe_register_address(pe, PeRegion.CORE, 3 + 2 * manager) for pe in range(PE_COUNT) for manager in range(2)],
    ),
}


def _configuration() -> Iterator[tuple[str, ConfigWord, int]]:
    """Prefix of the registers, layout and address of every configuration word."""
    yield "gb_core_mem_mngr_large_", LARGE_MANAGER_WORD, register_address(Region.MANAGERS, 1)
    yield "gb_core_mem_mngr_small_", SMALL_MANAGER_WORD, register_address(Region.MANAGERS, 2)
    for unit, region in (
        ("control", Region.CONTROL),
        ("layer_reduce", Region.LAYER_REDUCE),
        ("layer_norm", Region.LAYER_NORM),
        ("zero_padding", Region.ZERO_PADDING),
        ("attention", Region.ATTENTION),
    ):
        yield f"gb_{unit}_", UNIT_WORD, register_address(region)
    for pe in range(PE_COUNT):
        yield f"pe{pe}_rnn_layer_sizing_", RNN_LAYER_SIZING_WORD, pe_register_address(pe, PeRegion.CORE, 1)
        yield f"pe{pe}_mem_mngr_first_", MEM_MNGR_WORD, pe_register_address(pe, PeRegion.CORE, 2)
        yield f"pe{pe}_mem_mngr_second_", MEM_MNGR_WORD, pe_register_address(pe, PeRegion.CORE, 4)
        yield f"pe{pe}_act_mngr_", ACT_MNGR_WORD, pe_register_address(pe, PeRegion.ACT, 1)
        for number, word in enumerate(ACT_VECTOR_WORDS):
            yield f"pe{pe}_act_vector_", word, pe_register_address(pe, PeRegion.ACT, 2 + number)
