"""Program files of HLSCNN: which commands it answers, and which programs have a result that the model defines.

The form of the files stands in :mod:`accel_models.mmio_program`.  Addresses are HLSCNN's own (24 bits) or those of the
host (0x32000000 added); published programs use both.  There are no waits: a transfer or a convolution has ended when
the next command begins.

Beside commands without an answer, ``run`` refuses starts whose result is not described: a configuration with a size or
a stride of 0, and operands or results that do not fit their memories or overlap.

Source: the public 3LA tools (3la_ILA_tensor_op), which write such programs for the published ILA.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from accel_models import mmio_program
from accel_models.mmio_program import Port, Program, ProgramCommand, ProgramError, describe, execute, format_program
from ila_lang import Machine

from .config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, channel_word
from .layout import (
    CONFIG_BYTES,
    ENTRY_BYTES,
    HOST_BASE,
    LANES,
    REGISTERS,
    SOC_BASE,
    SOC_ENTRIES,
    SPAD0_BASE,
    SPAD1_BASE,
    SPAD_BYTES,
    SPAD_ENTRIES,
    Register,
    register_address,
)
from .model import options_of
from .options import HlscnnOptions

PORT = Port("top_slave_if_wr", "top_slave_if_rd", "top_slave_addr_in", "top_slave_data_in")

_OFFSET = 0xFFFFFF
_PARTITIONS = (0, HOST_BASE >> 24)  # values of addr[31:24]


def parse_program(text: str) -> Program:
    """The program in a text of any form; keys such as ``is_vir`` are ignored.

    Published programs in another form than ours write to registers 0 .. 3, which nothing uses; these are left out.
    Raises ProgramError where the text is no program, with the number of the command.
    """
    program = mmio_program.parse_program(text, example=register_address(Register.CONV_TRIGGER))
    used = tuple(c for c in program.commands if not (program.notes and _is_unused(c)))
    left_out = len(program.commands) - len(used)
    notes = (f"writes to registers 0 .. 3, which nothing uses, left out: {left_out}",) if left_out else ()
    return replace(program, commands=used, notes=program.notes + notes)


def write_program(program: Program) -> str:
    """The program as JSON text of the newer form, one command per line."""
    return format_program(program.commands)


def run(program: Program, machine: Machine, *, must_start: bool = True) -> list[tuple[int, int]]:
    """Issues the commands to ``machine``, a machine of :func:`~accel_models.hlscnn.model.hlscnn`.

    Returns (address, entry of 128 bits) of each read, in order.  With ``must_start=False`` a program need not start a
    convolution: a part of a longer one.

    Raises ProgramError with the command's number where the model does not answer a command, and where a transfer or a
    convolution has no described result.  The machine has then executed all commands before, except that a program with
    a wait, or without a convolution, is refused as a whole.  Raises ValueError on a machine of another model.
    """
    options = options_of(machine.ila)
    starts = False
    for number, command in enumerate(program.commands, 1):
        if command.mode == "Q":
            raise ProgramError(
                f"Command {number} must be a write or a read, not a wait: HLSCNN has no published interrupt, and "
                "every command ends before the next begins; remove it"
            )
        starts = starts or _triggers(command)
    if must_start and not starts:
        raise ProgramError(
            "Program must start a convolution, which it never does; write to ConvTrigger, "
            f"0x{register_address(Register.CONV_TRIGGER):08x}, after the configuration"
        )

    def check(number: int, command: ProgramCommand) -> None:
        if command.addr >> 24 not in _PARTITIONS:
            raise ProgramError(
                f"addr of command {number} must lie in HLSCNN, 0x{HOST_BASE:08x} .. 0x{HOST_BASE | _OFFSET:08x} or "
                f"0x00000000 .. 0x{_OFFSET:08x}, not {describe(command)}; correct it"
            )
        offset = command.addr & _OFFSET
        if command.mode == "W" and SPAD0_BASE <= offset < SPAD1_BASE + SPAD_BYTES:
            _check_transfer(number, offset, machine)
        elif _triggers(command):
            _check_convolution(number, machine, options)

    # no command runs while the next one comes
    return execute(Program(program.commands, waits=False), machine, PORT.inputs, _explain, check)


def _is_unused(command: ProgramCommand) -> bool:
    """Whether a command writes one of the registers that nothing uses."""
    offset = command.addr & _OFFSET
    inside = command.addr >> 24 in _PARTITIONS and offset < CONFIG_BYTES
    return inside and command.mode == "W" and (offset >> 2) % REGISTERS < min(Register)


def _triggers(command: ProgramCommand) -> bool:
    """Whether a command writes ConvTrigger."""
    offset = command.addr & _OFFSET
    return offset < CONFIG_BYTES and command.mode == "W" and (offset >> 2) % REGISTERS == Register.CONV_TRIGGER


def _explain(number: int, command: ProgramCommand, machine: Machine, inputs: dict[str, int]) -> NoReturn:
    """Raises the error for a command that the model refused."""
    instruction = machine.decode(inputs)
    if instruction.name != "HLSCNN_RESERVED":
        raise ProgramError(
            f"Command {number} must start a convolution, not {instruction.name}: {instruction.reserved}; remove the "
            "command"
        )
    text, offset = describe(command), command.addr & _OFFSET
    soc_end = SOC_BASE + SOC_ENTRIES * ENTRY_BYTES
    if offset < CONFIG_BYTES:
        what = "be that of a register with a published meaning" if command.mode == "W" else "not be that of a register"
        why = "no command reads registers" if command.mode == "R" else "registers 0 .. 3 are not used"
    elif SOC_BASE <= offset < soc_end and command.mode == "R":
        what, why = "not lie in SoC memory", "the host reads its own memory without HLSCNN"
    elif SPAD0_BASE <= offset < SPAD1_BASE + SPAD_BYTES or SOC_BASE <= offset < soc_end:
        what, why = f"be a multiple of {ENTRY_BYTES}", "a command moves a whole entry"
    else:
        what = (
            f"lie in registers, scratchpads (0x{SPAD0_BASE:06x} .. 0x{SPAD1_BASE + SPAD_BYTES - 1:06x}) or SoC memory "
            f"(0x{SOC_BASE:06x} .. 0x{soc_end - 1:06x})"
        )
        why = "nothing answers there"
    raise ProgramError(f"addr of command {number} must {what}, not {text}: {why}; correct it")


# -- what a start must satisfy -----------------------------------------------------------------------------


def _state(machine: Machine, register: Register) -> int:
    return machine.values[f"cfg_reg_{register.name.lower()}"]


def _check_transfer(number: int, offset: int, machine: Machine) -> None:
    """A transfer's source and target must lie in their memories."""
    beats = _state(machine, Register.SOC_MEM_RD_WR_LENGTH)
    source = _state(machine, Register.SOC_MEM_BASE_ADDR)
    if beats == 0:
        raise ProgramError(
            f"Command {number} must copy at least one entry, but RdWrLength is 0; write the number of entries to "
            f"0x{register_address(Register.SOC_MEM_RD_WR_LENGTH):08x} before it"
        )
    size, soc = beats * ENTRY_BYTES, SOC_ENTRIES * ENTRY_BYTES
    if source % ENTRY_BYTES or source + size > soc:
        raise ProgramError(
            f"Command {number} must copy entries of SoC memory, SoC addresses 0x0 .. 0x{soc - 1:x} in steps of "
            f"{ENTRY_BYTES}, not 0x{source:x} .. 0x{source + size - 1:x}; correct SocMemBase or RdWrLength"
        )
    name, base = ("SPAD0", SPAD0_BASE) if offset < SPAD1_BASE else ("SPAD1", SPAD1_BASE)
    if offset + size > base + SPAD_BYTES:
        raise ProgramError(
            f"Command {number} must copy into {name}, 0x{base:06x} .. 0x{base + SPAD_BYTES - 1:06x}, not to "
            f"0x{offset:06x} .. 0x{offset + size - 1:06x}; copy fewer than {beats} entries"
        )


_SOC = "SoC memory", 0, SOC_ENTRIES
_SPAD0, _SPAD1 = ("SPAD0", SPAD0_BASE, SPAD_ENTRIES), ("SPAD1", SPAD1_BASE, SPAD_ENTRIES)
"""Memories: their names, first addresses, and entries."""


def _check_convolution(number: int, machine: Machine, options: HlscnnOptions) -> None:
    """A convolution must be configured, and its operands and results must lie in their memories, apart."""
    words = {
        "InputSize": (INPUT_SIZE, Register.CONV_INPUT_SIZE_CFG, ("channels", "rows", "cols")),
        "OutputSize": (OUTPUT_SIZE, Register.CONV_OUTPUT_SIZE_CFG, ("rows", "cols")),
        "KernelSize": (KERNEL_SIZE, Register.CONV_KERNEL_SIZE_CFG, ("rows", "cols", "row_stride", "col_stride")),
        "ChannelCfg": (channel_word(options), Register.CONV_CHANNEL_CFG, ("filters",)),
    }
    fields = {}
    for name, (word, register, needed) in words.items():
        fields[name] = word.unpack(_state(machine, register))
        for field in needed:
            if fields[name][field] == 0:
                raise ProgramError(
                    f"Command {number} must start a convolution with {field} of {name} above 0, not 0: the result is "
                    f"not described; write {name}, 0x{register_address(register):08x}, before it"
                )
    size, kernel, filters = fields["InputSize"], fields["KernelSize"], fields["ChannelCfg"]["filters"]
    blocks = -(-size["channels"] // LANES)
    weights = filters * blocks * kernel["rows"] * kernel["cols"]
    plane = size if options.coordinates == "same" else fields["OutputSize"]
    planes = -(-filters // LANES) if options.outputs == "blocked" else filters

    def place(
        what: str, register: Register, memory: tuple[str, int, int], bytes_: int, step: int = 16
    ) -> tuple[int, int]:
        start, (name, base, entries) = _state(machine, register), memory
        if start % step or start < base or start + bytes_ > base + entries * ENTRY_BYTES:
            raise ProgramError(
                f"Command {number} must start a convolution whose {what} lie in {name}, 0x{base:x} .. "
                f"0x{base + entries * ENTRY_BYTES - 1:x}, from a multiple of {step} on, not 0x{start:x} .. "
                f"0x{start + bytes_ - 1:x}; correct their address, 0x{register_address(register):08x}, or make the "
                "convolution smaller"
            )
        return start, start + bytes_

    pixels = blocks * size["rows"] * size["cols"] * ENTRY_BYTES
    if options.activations == "soc":
        inputs = None
        place("activations", Register.CONV_ACT_BASE_ADDR, _SOC, pixels)
    else:
        inputs = place("activations", Register.CONV_ACT_BASE_ADDR, _SPAD1, pixels)
    each = LANES * options.weight_bits // 8
    place("weights", Register.CONV_WEIGHT_BASE_ADDR, _SPAD0, weights * each, each)
    results = planes * plane["rows"] * plane["cols"] * ENTRY_BYTES
    outputs = place("outputs", Register.CONV_OUTPUT_BASE_ADDR, _SPAD1, results)
    if inputs is not None and inputs[0] < outputs[1] and outputs[0] < inputs[1]:
        raise ProgramError(
            f"Command {number} must start a convolution whose outputs, 0x{outputs[0]:x} .. 0x{outputs[1] - 1:x}, do "
            f"not overwrite its activations, 0x{inputs[0]:x} .. 0x{inputs[1] - 1:x}; move one of them"
        )
