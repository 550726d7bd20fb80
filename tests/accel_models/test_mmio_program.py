"""Program files for a device that no accelerator model knows: what is common to all of them."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from accel_models.mmio_program import (
    Program,
    ProgramCommand,
    ProgramError,
    describe,
    execute,
    format_program,
    format_reads,
    holds,
    parse_program,
)
from ila_lang import BOOL, Ila, Kernel, Machine, bv, const


def device() -> Ila:
    """One register at 0, read back at 0; a unit at 0x10 that adds one if enabled; a unit at 0x20 that is reserved."""
    ila = Ila("device")
    write, addr, data = ila.input("write", BOOL), ila.input("addr", 32), ila.input("data", 128)
    value, enabled = ila.state("value", bv(127), 0), ila.state("enabled", BOOL, 0)
    out = ila.state("data_out", bv(128), 0)
    ila.instruction("SET").set_decode((addr == 0) & write).update(value, data[127:1]).update(enabled, data[0] == 1)
    ila.instruction("GET").set_decode((addr == 0) & ~write).update(out, value.zext(128))
    kernel = Kernel("add")
    with kernel.loop("i", const(1, 1)):
        pass
    kernel.done(value, value + 1)
    ila.instruction("ADD").set_decode(addr == 0x10).start(kernel, when=enabled)
    ila.instruction("OTHER").set_decode(~((addr == 0) | (addr == 0x10))).reserved = "it is not described"
    return ila


def drive(command: ProgramCommand) -> dict[str, int]:
    return {"write": command.mode == "W", "addr": command.addr, "data": command.data}


def explain(number: int, command: ProgramCommand, machine: Machine, inputs: dict[str, int]) -> NoReturn:
    raise ProgramError(f"{number}: {describe(command)} is {machine.decode(inputs).reserved.split()[-1]}")


def run(*commands: ProgramCommand, waits: bool = True) -> list[int]:
    return [word for _, word in execute(Program(commands, waits), Machine(device()), drive, explain)]


ENABLE, START, GET = ProgramCommand("W", 0, 2 * 5 + 1), ProgramCommand("W", 0x10), ProgramCommand("R", 0)
WAIT = ProgramCommand("Q")


def test_units_are_awaited() -> None:
    assert run(ENABLE, START, WAIT, GET, GET) == [6, 6]
    assert run(START, GET) == [0]  # not enabled: nothing runs
    assert run(ENABLE, START, START, GET, waits=False) == [7]


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (
            (ENABLE, START, GET),
            "Command 3 must come after the unit started by command 2 (ADD) has finished, not while it runs: the read "
            'of 0x00000000 would have a result that depends on timing; put a command of mode "Q" before it',
        ),
        (
            (START, WAIT),
            "Command 2 must wait for a unit that runs, but none was started since the last wait; remove it, or start "
            "a unit whose configuration is valid before it",
        ),
        ((GET, ProgramCommand("R", 0x20)), "2: 0x00000020 (a read) is described"),
        ((ProgramCommand("W", 0x30),), "1: 0x00000030 (a write) is described"),
    ],
)
def test_messages(commands: tuple[ProgramCommand, ...], message: str) -> None:
    with pytest.raises(ProgramError) as error:
        run(*commands)
    assert str(error.value) == message


def test_commands_are_checked_before_they_are_issued() -> None:
    machine, seen = Machine(device()), []

    def check(number: int, command: ProgramCommand) -> None:
        seen.append((number, command, machine.values["value"]))
        if command.addr == 0x20:
            raise ProgramError("refused")

    with pytest.raises(ProgramError, match=r"^refused$"):
        execute(Program((ENABLE, START, WAIT, ProgramCommand("W", 0x20))), machine, drive, explain, check)
    assert seen == [(1, ENABLE, 0), (2, START, 5), (4, ProgramCommand("W", 0x20), 6)]


def test_conditions_on_the_state() -> None:
    machine = Machine(device())
    enabled, value = machine.ila.states["enabled"], machine.ila.states["value"]
    assert not holds(enabled, machine)
    machine.step({"write": True, "data": 11})
    assert holds(enabled & (value == 5), machine)
    assert not holds(value == 6, machine)


def test_files() -> None:
    commands = (ENABLE, START, WAIT, GET)
    text = format_program(commands)
    assert parse_program(text, example=0) == Program(commands)
    assert json.loads(text)["program fragment"][0] == {"addr": "0x00000000", "data": f"0x{11:032x}", "mode": "W"}
    assert format_reads([(0x10, 6)]) == f"0x00000010,0x{6:032x}\n"


def test_messages_show_the_devices_own_address() -> None:
    with pytest.raises(ProgramError) as error:
        parse_program('{"program fragment": [{"mode": "R", "addr": 1}]}', example=0x10)
    assert str(error.value) == (
        'addr of command 1 must be a hexadecimal string such as "0x00000010", not 1; correct it'
    )


# -- other published forms ------------------------------------------------------------------------------

LIST = """// a comment

0,W,0x33800010,0xB
2, R ,0x10,0x0\r
2,Q,0x00000000,0x0
2,W,0xdeaddead,0x0
2,W,0x0,0x1
"""


def test_a_command_list_is_recognised_and_named() -> None:
    found = parse_program(LIST, example=0x10)
    assert found == Program((ProgramCommand("W", 0x33800010, 11), ProgramCommand("R", 0x10)), waits=False)
    assert found.notes == (
        "read as a command list of a test bench: every command ends before the next; waits left out: 1, writes to the "
        "test bench left out: 2",
    )
    assert execute(parse_program("2,W,0x10,0x1\n2,Q,0x0,0x0", example=0), Machine(device()), drive, explain) == []


NO_LINE = (
    "Line 2 of a command list must be DELAY,MODE,ADDRESS,DATA such as 2,W,0x00000010,0x0, with mode W, R or Q, not {}; "
    "correct it, or write // before a comment"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2,X,0x10,0x0", NO_LINE.format('"2,X,0x10,0x0"')),
        ("{}", NO_LINE.format('"{}"')),
        (f"2,W,0x1{'0' * 8},0x0", "The address in line 2 must fit in 32 bits, not 0x100000000; correct it"),
        (f"2,W,0x10,0x1{'0' * 32}", f"The data in line 2 must fit in 128 bits, not 0x1{'0' * 32}; correct it"),
    ],
)
def test_lines_of_lists_that_are_refused(line: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        parse_program(f"0,W,0x10,0x0\n{line}\n", example=0x10)
    assert str(error.value) == message


FLAGS = {"addr": "0x10", "data": "0x1", "is_rd": "0", "is_wr": "1"}


def test_objects_of_the_older_form_under_the_newer_key_are_recognised_and_named() -> None:
    found = parse_program(json.dumps({"program fragment": [FLAGS]}), example=0)
    assert found == Program((ProgramCommand("W", 0x10, 1),), waits=False)
    assert found.notes == (
        "read as objects with is_rd and is_wr under 'program fragment': every command ends before the next",
    )
    assert parse_program(json.dumps({"command inputs": [FLAGS]}), example=0).notes == ()


@pytest.mark.parametrize("key", ["program fragment", "command inputs"])
def test_a_file_of_two_forms_is_refused(key: str) -> None:
    for entries in ([FLAGS, {"addr": "0x10", "data": "0x1", "mode": "W"}], [{**FLAGS, "mode": "W"}]):
        with pytest.raises(ProgramError) as error:
            parse_program(json.dumps({key: entries}), example=0)
        assert str(error.value) == (
            "Program must have commands with mode or commands with is_rd and is_wr, not both: what they mean differs; "
            "leave one of them out"
        )
