"""Driving FlexASR: commands at its port as program files, and the writes that set up a given state.

What a host driver does beside computing addresses; mappings use it to write counterexamples that anyone can replay.
"""

from __future__ import annotations

from collections.abc import Mapping

from .config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD
from .layout import LARGE_BASE, SMALL_BASE, Region, register_address
from .program import Program, ProgramCommand, write_program

__all__ = ["program_file", "setup_commands"]


def program_file(commands: list[Mapping[str, int]]) -> str:
    """Commands at FlexASR's port as a program file of the newer JSON form, with a wait after each start."""
    listed = (
        ProgramCommand("W" if c["if_axi_wr"] else "R", c["addr_in"], c["data_in"] if c["if_axi_wr"] else 0)
        for c in commands
    )
    return write_program(Program(tuple(listed), waits=False))


def setup_commands(registers: Mapping[str, int], memories: Mapping[str, Mapping[int, int]]) -> list[Mapping[str, int]]:
    """Writes that put configuration registers and buffer bytes of a reset FlexASR in the given contents.

    Registers of a configuration word that are not named get their reset values, bytes of a written vector 0.
    Raises ValueError on state that no command can set.
    """
    left = set(registers)
    commands: list[Mapping[str, int]] = []

    def write(address: int, data: int) -> None:
        commands.append({"if_axi_wr": 1, "if_axi_rd": 0, "addr_in": address, "data_in": data})

    for prefix, word, region, index in _CONFIGURATION:
        names = {name for name in left if name.startswith(prefix) and name[len(prefix) :] in word.fields}
        if names:
            left -= names
            fields = {name: registers.get(prefix + name, field.reset) for name, field in word.fields.items()}
            write(register_address(region, index), word.pack(**fields))
    buffers = {"gb_core_large_buffer": LARGE_BASE, "gb_core_small_buffer": SMALL_BASE}
    for name, cells in memories.items():
        if name not in buffers:
            raise ValueError(f"Memory {name} of FlexASR must be one of {', '.join(buffers)} to be set by commands")
        vectors: dict[int, int] = {}
        for address, value in cells.items():
            vectors[address >> 4] = vectors.get(address >> 4, 0) | value << 8 * (address & 15)
        for vector, data in sorted(vectors.items()):
            write(buffers[name] | vector << 4, data)
    if left:
        raise ValueError(f"No command of FlexASR sets {', '.join(sorted(left))}")
    return commands


_CONFIGURATION = (
    ("gb_core_mem_mngr_large_", LARGE_MANAGER_WORD, Region.MANAGERS, 1),
    ("gb_core_mem_mngr_small_", SMALL_MANAGER_WORD, Region.MANAGERS, 2),
    ("gb_control_", UNIT_WORD, Region.CONTROL, 1),
    ("gb_layer_reduce_", UNIT_WORD, Region.LAYER_REDUCE, 1),
    ("gb_layer_norm_", UNIT_WORD, Region.LAYER_NORM, 1),
    ("gb_zero_padding_", UNIT_WORD, Region.ZERO_PADDING, 1),
    ("gb_attention_", UNIT_WORD, Region.ATTENTION, 1),
)
"""Prefix of the registers, layout and place of every configuration word."""
