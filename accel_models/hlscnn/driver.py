"""Driving HLSCNN: commands at its port as program files, and the commands that set up a given state.

What a host driver does besides computing addresses; mappings use it to write counterexamples that anyone can replay.
"""

from __future__ import annotations

from collections.abc import Mapping

from accel_models.mmio_program import Mode, ProgramCommand

from .layout import (
    ENTRY_BYTES,
    HOST_BASE,
    LANES,
    SOC_BASE,
    SOC_ENTRIES,
    SPAD0_BASE,
    SPAD1_BASE,
    SPAD_ENTRIES,
    Register,
    register_address,
)
from .program import PORT, write_program

_PADS = {"scratch_pad_0": SPAD0_BASE, "scratch_pad_1": SPAD1_BASE}
_SOC = "virtual_soc_memory"
_REGISTERS = {f"cfg_reg_{r.name.lower()}": r for r in Register}


def program_file(commands: list[Mapping[str, int]]) -> str:
    """Commands at HLSCNN's port as a program file of the newer JSON form."""
    return write_program(PORT.program(commands))


def setup_commands(registers: Mapping[str, int], memories: Mapping[str, Mapping[int, int]]) -> list[Mapping[str, int]]:
    """Commands that put registers and memory words of a reset HLSCNN in the given contents.

    Words of an entry that is written and not named get 0, and so do registers that are not named.  A scratchpad's
    entry takes the way through entry 0 of SoC memory, which is written last.  Raises ValueError on state that no
    command can set.
    """
    unknown = {*registers} - {*_REGISTERS, *(f"spad_{n}_wr_entry" for n in range(2)), "data_out"}
    if unknown:
        raise ValueError(f"No command of HLSCNN sets {', '.join(sorted(unknown))}")
    commands: list[Mapping[str, int]] = []

    def issue(address: int, data: int, mode: Mode = "W") -> None:
        commands.append(PORT.inputs(ProgramCommand(mode, address, data)))

    def register(number: Register, value: int) -> None:
        address = register_address(number)
        issue(address, value << 8 * (address % ENTRY_BYTES))

    def copy(target: int, entry: int) -> None:
        issue(HOST_BASE + SOC_BASE, entry)
        issue(HOST_BASE + target, 0)

    register(Register.SOC_MEM_RD_WR_LENGTH, 1)
    if registers.get("data_out"):
        copy(SPAD1_BASE, registers["data_out"])
        issue(HOST_BASE + SPAD1_BASE, 0, "R")
        copy(SPAD1_BASE, 0)
    for pad, (name, base) in enumerate(_PADS.items()):
        entries = _entries(name, memories.get(name, {}), SPAD_ENTRIES)
        # the last transfer leaves its target's number behind
        last = registers.get(f"spad_{pad}_wr_entry", 0)
        for number in [*(n for n in entries if n != last), last]:
            copy(base + number * ENTRY_BYTES, entries.get(number, 0))
    issue(HOST_BASE + SOC_BASE, 0)
    for number, entry in _entries(_SOC, memories.get(_SOC, {}), SOC_ENTRIES).items():
        issue(HOST_BASE + SOC_BASE + number * ENTRY_BYTES, entry)
    other = next((name for name in memories if name not in (*_PADS, _SOC)), None)
    if other is not None:
        raise ValueError(f"Memory {other} of HLSCNN must be one of {', '.join((*_PADS, _SOC))} to be set by commands")
    register(Register.SOC_MEM_RD_WR_LENGTH, 0)
    for name, number in _REGISTERS.items():
        if registers.get(name):
            register(number, registers[name])
    return commands


def _entries(name: str, words: Mapping[int, int], count: int) -> dict[int, int]:
    """The entries that hold words, by number; raises ValueError on a word beyond the memory."""
    entries: dict[int, int] = {}
    for address, value in sorted(words.items()):
        number, lane = divmod(address, LANES)
        if number >= count:
            raise ValueError(f"Entries of {name} must be below {count} to be set, not {number}")
        entries[number] = entries.get(number, 0) | value << 16 * lane
    return entries
