"""Program files of HLSCNN: both address forms, and every message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accel_models.flexasr.model import flexasr
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import MASTER, HlscnnOptions
from accel_models.hlscnn.program import parse_program, run, write_program
from accel_models.mmio_program import ProgramError, format_reads
from ila_lang import Machine

SPAD0, SPAD1, SOC = 0x32004000, 0x32024000, 0x32050000

# One pixel, one channel, one filter: 1.5 * -2 = -3.0, in Q9.7 -384.
CONVOLUTION = {
    "soc 0": (SOC, 192),
    "soc 1": (SOC + 16, 0x80),
    "SocMemBase": (0x32000010, 16),
    "RdWrLength": (0x32000014, 1 << 32),
    "transfer": (SPAD0, 0),
    "activations": (0x32000048, 0),
    "weights": (0x3200004C, 0x4000 << 96),
    "outputs": (0x32000050, 0x24000),
    "InputSize": (0x32000054, (1 << 20 | 1 << 10 | 1) << 32),
    "OutputSize": (0x32000058, (1 << 20 | 1 << 10 | 1) << 64),
    "KernelSize": (0x3200005C, (1 << 19 | 1 << 16 | 1 << 8 | 1) << 96),
    "ChannelCfg": (0x32000060, 1 << 19),
    "start": (0x32000044, 0),
}


def text(commands: list[tuple[int, int] | int | str]) -> str:
    """Writes are pairs, reads addresses, waits "Q"."""
    entries: list[dict[str, Any]] = []
    for number, command in enumerate(commands):
        entry: dict[str, Any] = {"instr_No.": number, "is_vir": 0}
        if isinstance(command, tuple):
            entry |= {"addr": hex(command[0]), "data": hex(command[1]), "mode": "W"}
        elif isinstance(command, int):
            entry |= {"addr": hex(command), "data": "0x0", "mode": "R"}
        else:
            entry |= {"mode": command}
        entries.append(entry)
    return json.dumps({"program fragment": entries})


def changed(**values: int) -> list[tuple[int, int] | int | str]:
    """The convolution with other numbers in registers, at their place in the data word."""
    commands = dict(CONVOLUTION)
    for name, value in values.items():
        addr, _ = commands[name]
        commands[name] = addr, value << 8 * (addr % 16)
    return list(commands.values())


def execute(commands: list[tuple[int, int] | int | str], options: HlscnnOptions | None = None) -> list[tuple[int, int]]:
    return run(parse_program(text(commands)), Machine(hlscnn(options)))


def test_a_convolution() -> None:
    assert execute([*CONVOLUTION.values(), SPAD1]) == [(SPAD1, -384 % 65536)]
    assert execute([*CONVOLUTION.values(), SPAD1, SPAD0]) == [(SPAD1, -384 % 65536), (SPAD0, 0x80)]


def test_addresses_without_the_hosts_base() -> None:
    bare = [(addr - 0x32000000, data) for addr, data in CONVOLUTION.values()]
    reads = execute([*bare, SPAD1 - 0x32000000])
    assert format_reads(reads) == "0x00024000,0x0000000000000000000000000000fe80\n"


def test_the_older_form() -> None:
    entries = [{"addr": hex(addr), "data": hex(data), "is_rd": 0, "is_wr": 1} for addr, data in CONVOLUTION.values()]
    older = json.dumps({"command inputs": [*entries, {"addr": hex(SPAD1), "is_rd": 1, "is_wr": 0}]})
    assert run(parse_program(older), Machine(hlscnn())) == [(SPAD1, -384 % 65536)]


def test_objects_of_the_older_form_under_the_newer_key_may_write_registers_that_nothing_uses() -> None:
    unused = [(0x32000000, 1), (0x3200000C, 0), (4, 7)]
    written = [*unused, *CONVOLUTION.values()]
    entries = [{"addr": hex(addr), "data": hex(data), "is_rd": 0, "is_wr": 1} for addr, data in written]
    published = json.dumps({"program fragment": [*entries, {"addr": hex(SPAD1), "is_rd": 1, "is_wr": 0}]})
    program = parse_program(published)
    assert run(program, Machine(hlscnn())) == [(SPAD1, -384 % 65536)]
    assert program.notes == (
        "read as objects with is_rd and is_wr under 'program fragment': every command ends before the next",
        "writes to registers 0 .. 3, which nothing uses, left out: 3",
    )
    with pytest.raises(ProgramError) as error:
        execute(written)  # in a form of ours
    assert str(error.value) == (
        "addr of command 1 must be that of a register with a published meaning, not 0x32000000 (a write): registers "
        "0 .. 3 are not used; correct it"
    )


def test_writing_and_reading_again() -> None:
    program = parse_program(text([*CONVOLUTION.values(), SPAD1]))
    assert parse_program(write_program(program)) == program


def test_a_part_of_a_program_need_not_start_anything() -> None:
    program = parse_program(text([(SOC, 5), SPAD0]))
    assert run(program, Machine(hlscnn()), must_start=False) == [(SPAD0, 0)]


def test_commands_before_an_error_have_been_executed() -> None:
    machine = Machine(hlscnn())
    with pytest.raises(ProgramError):
        run(parse_program(text(changed(KernelSize=0))), machine)
    assert machine.memories["scratch_pad_0"][0] == 0x80


def test_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="Model must come from hlscnn"):
        run(parse_program(text([])), Machine(flexasr()))


def test_messages_of_reading_show_an_address_of_hlscnn() -> None:
    with pytest.raises(ProgramError) as error:
        parse_program('{"program fragment": [{"mode": "R"}]}')
    assert str(error.value) == 'Command 1 must have addr, which is missing; add "addr": "0x32000044"'


START = (0x32000044, 0)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (
            [(SOC, 1), SPAD1],
            "Program must start a convolution, which it never does; write to ConvTrigger, 0x32000044, after the "
            "configuration",
        ),
        (
            [*CONVOLUTION.values(), "Q"],
            "Command 14 must be a write or a read, not a wait: HLSCNN has no published interrupt, and every command "
            "ends before the next begins; remove it",
        ),
        (
            [(0x33500000, 0), START],
            "addr of command 1 must lie in HLSCNN, 0x32000000 .. 0x32ffffff or 0x00000000 .. 0x00ffffff, "
            "not 0x33500000 (a write); correct it",
        ),
        (
            [(0x32000030, 0), START],
            "Command 1 must start a convolution, not FC_START: fully connected layers have no public description; "
            "remove the command",
        ),
        (
            [(0x3200000C, 0), START],
            "addr of command 1 must be that of a register with a published meaning, not 0x3200000c (a write): "
            "registers 0 .. 3 are not used; correct it",
        ),
        (
            [0x32000054, START],
            "addr of command 1 must not be that of a register, not 0x32000054 (a read): no command reads registers; "
            "correct it",
        ),
        (
            [SOC, START],
            "addr of command 1 must not lie in SoC memory, not 0x32050000 (a read): the host reads its own memory "
            "without HLSCNN; correct it",
        ),
        (
            [(SOC + 8, 0), START],
            "addr of command 1 must be a multiple of 16, not 0x32050008 (a write): a command moves a whole entry; "
            "correct it",
        ),
        (
            [SPAD1 + 2, START],
            "addr of command 1 must be a multiple of 16, not 0x32024002 (a read): a command moves a whole entry; "
            "correct it",
        ),
        (
            [(0x32044000, 0), START],
            "addr of command 1 must lie in registers, scratchpads (0x004000 .. 0x043fff) or SoC memory "
            "(0x050000 .. 0x07ffff), not 0x32044000 (a write): nothing answers there; correct it",
        ),
        (
            [(SPAD0, 0), START],
            "Command 1 must copy at least one entry, but RdWrLength is 0; write the number of entries to 0x32000014 "
            "before it",
        ),
        (
            changed(SocMemBase=0x30000),
            "Command 5 must copy entries of SoC memory, SoC addresses 0x0 .. 0x2ffff in steps of 16, not "
            "0x30000 .. 0x3000f; correct SocMemBase or RdWrLength",
        ),
        (
            changed(SocMemBase=8),
            "Command 5 must copy entries of SoC memory, SoC addresses 0x0 .. 0x2ffff in steps of 16, not "
            "0x8 .. 0x17; correct SocMemBase or RdWrLength",
        ),
        (
            changed(RdWrLength=8193),
            "Command 5 must copy into SPAD0, 0x004000 .. 0x023fff, not to 0x004000 .. 0x02400f; copy fewer than 8193 "
            "entries",
        ),
        (
            [(0x32000014, 2 << 32), (0x32043FF0, 0), START],
            "Command 2 must copy into SPAD1, 0x024000 .. 0x043fff, not to 0x043ff0 .. 0x04400f; copy fewer than 2 "
            "entries",
        ),
        (
            [START],
            "Command 1 must start a convolution with channels of InputSize above 0, not 0: the result is not "
            "described; write InputSize, 0x32000054, before it",
        ),
        (
            changed(OutputSize=1),
            "Command 13 must start a convolution with rows of OutputSize above 0, not 0: the result is not "
            "described; write OutputSize, 0x32000058, before it",
        ),
        (
            changed(KernelSize=1 << 16 | 1 << 8 | 1),
            "Command 13 must start a convolution with row_stride of KernelSize above 0, not 0: the result is not "
            "described; write KernelSize, 0x3200005c, before it",
        ),
        (
            changed(ChannelCfg=7 << 16),
            "Command 13 must start a convolution with filters of ChannelCfg above 0, not 0: the result is not "
            "described; write ChannelCfg, 0x32000060, before it",
        ),
        (
            changed(activations=0x2FFF8),
            "Command 13 must start a convolution whose activations lie in SoC memory, 0x0 .. 0x2ffff, from a multiple "
            "of 16 on, not 0x2fff8 .. 0x30007; correct their address, 0x32000048, or make the convolution smaller",
        ),
        (
            changed(weights=0),
            "Command 13 must start a convolution whose weights lie in SPAD0, 0x4000 .. 0x23fff, from a multiple of 8 "
            "on, not 0x0 .. 0x7; correct their address, 0x3200004c, or make the convolution smaller",
        ),
        (
            changed(ChannelCfg=200 << 19, KernelSize=1 << 19 | 1 << 16 | 11 << 8 | 11),
            "Command 13 must start a convolution whose weights lie in SPAD0, 0x4000 .. 0x23fff, from a multiple of 8 "
            "on, not 0x4000 .. 0x3343f; correct their address, 0x3200004c, or make the convolution smaller",
        ),
        (
            changed(outputs=0x4000),
            "Command 13 must start a convolution whose outputs lie in SPAD1, 0x24000 .. 0x43fff, from a multiple of "
            "16 on, not 0x4000 .. 0x400f; correct their address, 0x32000050, or make the convolution smaller",
        ),
        (
            changed(InputSize=1 << 20 | 100 << 10 | 100),
            "Command 13 must start a convolution whose outputs lie in SPAD1, 0x24000 .. 0x43fff, from a multiple of "
            "16 on, not 0x24000 .. 0x4b0ff; correct their address, 0x32000050, or make the convolution smaller",
        ),
    ],
)
def test_messages_of_running(commands: list[tuple[int, int] | int | str], message: str) -> None:
    with pytest.raises(ProgramError) as error:
        execute(commands)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "values", "message"),
    [
        (
            HlscnnOptions(activations="spad1"),
            {"activations": 0x24000},
            "Command 13 must start a convolution whose outputs, 0x24000 .. 0x2400f, do not overwrite its activations, "
            "0x24000 .. 0x2400f; move one of them",
        ),
        (
            HlscnnOptions(activations="spad1"),
            {},
            "Command 13 must start a convolution whose activations lie in SPAD1, 0x24000 .. 0x43fff, from a multiple "
            "of 16 on, not 0x0 .. 0xf; correct their address, 0x32000048, or make the convolution smaller",
        ),
        (
            MASTER,
            {"ChannelCfg": 9 << 19, "outputs": 0x43F80},
            "Command 13 must start a convolution whose outputs lie in SPAD1, 0x24000 .. 0x43fff, from a multiple of "
            "16 on, not 0x43f80 .. 0x4400f; correct their address, 0x32000050, or make the convolution smaller",
        ),
        (
            MASTER,
            {"weights": 0x4004},
            "Command 13 must start a convolution whose weights lie in SPAD0, 0x4000 .. 0x23fff, from a multiple of 8 "
            "on, not 0x4004 .. 0x400b; correct their address, 0x3200004c, or make the convolution smaller",
        ),
    ],
)
def test_messages_of_other_readings(options: HlscnnOptions, values: dict[str, int], message: str) -> None:
    with pytest.raises(ProgramError) as error:
        execute(changed(**values), options)
    assert str(error.value) == message


def test_what_fits_exactly_runs() -> None:
    last = changed(SocMemBase=0x2FFF0, activations=0x2FFF0, outputs=0x43FF0)
    assert execute([*last, 0x32043FF0]) == [(0x32043FF0, 0)]
    # in SPAD1 activations may lie right behind the outputs
    assert execute([*changed(activations=0x24010), SPAD1], HlscnnOptions(activations="spad1")) == [(SPAD1, 0)]
