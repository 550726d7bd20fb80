"""Program files of FlexASR: which commands it answers, which start a unit, and how they run on the model.

The form of the files, and everything that is not FlexASR's own, stands in :mod:`accel_models.mmio_program`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from accel_models import mmio_program
from accel_models.mmio_program import (
    Port,
    Program,
    ProgramCommand,
    ProgramError,
    describe,
    execute,
    format_program,
    holds,
)
from ila_lang import CommandError, Instruction, Machine

from .layout import GB_PARTITION, PE_COUNT, PE_PARTITION, Region, Start, register_address
from .model import flexasr

PORT = Port("if_axi_wr", "if_axi_rd", "addr_in", "data_in")

# The first vector of the large buffer.
_EXAMPLE = 0x33500000


def parse_program(text: str) -> Program:
    """The program in a text of any form.

    Raises ProgramError where the text is no program, with the number of the command.

    >>> parse_program('{"program fragment": [{"addr": "0x33500000", "data": "0xff", "mode": "W"}]}').commands
    (ProgramCommand(mode='W', addr=860880896, data=255),)
    """
    return mmio_program.parse_program(text, example=_EXAMPLE)


def write_program(program: Program) -> str:
    """The program as JSON text of the newer form, one command per line.

    A program of the older form gets a wait after each start that has an effect in the hardware reading.
    """
    return format_program(program.commands if program.waits else _with_waits(program.commands))


def run(program: Program, machine: Machine) -> list[tuple[int, int]]:
    """Issues the commands to ``machine``, a machine of :func:`~accel_models.flexasr.model.flexasr`.

    Returns (address, word of 128 bits) of each read of a buffer, in order; a read that starts a unit returns
    no word.

    Raises ProgramError with the command's number where the model does not answer an address, where a
    command of the newer form comes to a unit that runs (its result would depend on timing), and where a
    wait would never end. The machine has then executed all commands before.
    """
    return execute(program, machine, PORT.inputs, _explain)


def _explain(number: int, command: ProgramCommand, machine: Machine, inputs: dict[str, int]) -> NoReturn:
    """Raises the error for a command that the model refused."""
    text = describe(command)
    low, high = GB_PARTITION << 24, (PE_PARTITION + PE_COUNT << 24) - 1
    if not low <= command.addr <= high:
        raise ProgramError(
            f"addr of command {number} must lie in FlexASR, 0x{low:08x} .. 0x{high:08x}, not {text}; remove the command"
        )
    instruction: Instruction = machine.decode(inputs)
    if instruction.name == "RESERVED":
        raise ProgramError(
            f"addr of command {number} must be a register or a vector of a buffer, not {text}: "
            "nothing answers there; correct it"
        )
    raise ProgramError(
        f"Command {number} must start a unit of the global buffer, not {instruction.name}: {instruction.reserved}; "
        f"start GBControl at 0x{register_address(Region.START, Start.CONTROL):08x}, which starts all PEs"
    )


def _with_waits(commands: Iterable[ProgramCommand]) -> Iterable[ProgramCommand]:
    """The commands with a wait after each start that has an effect, which the configuration alone decides."""
    machine = Machine(flexasr())
    for command in commands:
        yield replace(command, data=command.data if command.mode == "W" else 0)
        inputs = PORT.inputs(command)
        try:
            instruction = machine.decode(inputs)
        except CommandError:  # no command of FlexASR: the text says what the program says
            continue
        if instruction.kernel is not None:
            if holds(instruction.kernel_guard, machine):
                yield ProgramCommand("Q")
        elif not instruction.reserved:
            machine.step(inputs)
