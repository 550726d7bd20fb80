"""Program files: lists of MMIO commands as published drivers write them, for every accelerator with a bus of 128 bits.

The newer form is ``{"program fragment": [{"addr", "data", "mode"}, ...]}`` with the
modes "W" (write), "R" (read) and "Q" (wait for the end of an operation).  The older one is ``{"command
inputs": [{"addr", "data", "is_rd", "is_wr"}, ...]}``; it has no waits: every command runs to completion before
the next.  Numbers are hexadecimal strings with or without ``0x``; other keys, such as ``instr_No.``, are
ignored.  Commands are numbered from 1 in messages.

Two more forms are published and read: objects of the older form under the newer key, and command lists, lines
``DELAY,MODE,ADDRESS,DATA`` as test benches have them, with ``//`` before comments.  In a list, too, every command runs
to completion before the next, so that waits say nothing, nor do writes to the test bench itself (0xdeaddead and 0).

What an address means, and which unit a command starts, is each accelerator's own: its module ``program``
joins this one with the model.

Source of the forms: the public 3LA tools (assembler output of 3la_ILA_tensor_op and input of flexasr-sim).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn

from ila_lang import BOOL, CommandError, CommandStream, Expr, Machine, Simulator, const, false, substitute, true
from ila_lang.errors import InputError
from ila_lang.language.sorts import BvSort
from ila_lang.text.files import KeyTwice
from ila_lang.text.files import read_json as read_unique

_LINE = re.compile(r"[0-9]+ *, *([WRQ]) *, *(0[xX][0-9a-fA-F]+) *, *(0[xX][0-9a-fA-F]+)", re.ASCII)
_LIST = re.compile(r"[0-9]+ *,", re.ASCII)
_TEST_BENCH = (0xDEADDEAD, 0)
"""Addresses to which lists write for the test bench, at which no device is."""

_NEWER = "program fragment"
_OLDER = "command inputs"
_FLAGS = {"is_rd", "is_wr"}
_HEX = re.compile(r"(0[xX])?[0-9a-fA-F]+", re.ASCII)
_ADDRESS_BITS = 32
_DATA_BITS = 128

Mode = Literal["W", "R", "Q"]


class ProgramError(InputError):
    """A program file that cannot be read, or a program whose result is not defined by the model."""


@dataclass(frozen=True, slots=True)
class ProgramCommand:
    """One command; ``addr`` has 32 bits, ``data`` 128 (both are 0 where they have no meaning)."""

    mode: Mode
    addr: int = 0
    data: int = 0


class Port(NamedTuple):
    """The names of the inputs at which a model takes commands: whether it is a write, or a read, address and data."""

    write: str
    read: str
    addr: str
    data: str

    def inputs(self, command: ProgramCommand) -> dict[str, int]:
        """The inputs of the model for a write or a read."""
        return dict(zip(self, (command.mode == "W", command.mode == "R", command.addr, command.data), strict=True))

    def program(self, commands: Iterable[Mapping[str, int]]) -> Program:
        """Values of the inputs as a program without waits."""
        taken = ([inputs[name] for name in self] for inputs in commands)
        listed = (ProgramCommand("W" if w else "R", addr, data if w else 0) for w, _, addr, data in taken)
        return Program(tuple(listed), waits=False)


@dataclass(frozen=True)
class Program:
    """Commands in issue order.

    ``waits`` is how the end of an operation is awaited: by commands of mode "Q" (True, the newer form), or
    implicitly after each command (False, the older form).  ``notes`` say what form was recognised, where it is neither
    of these two, and what was left out.
    """

    commands: tuple[ProgramCommand, ...]
    waits: bool = True
    notes: tuple[str, ...] = field(default=(), compare=False)


def parse_program(text: str, *, example: int) -> Program:
    """The program in a text of any form; ``example`` is the address that messages show as a model.

    Raises ProgramError where the text is no program, or of two forms at once, with the number of the command.

    >>> text = '{"program fragment": [{"addr": "0x33500000", "data": "0xff", "mode": "W"}]}'
    >>> parse_program(text, example=0x33500000).commands
    (ProgramCommand(mode='W', addr=860880896, data=255),)
    """
    lines = [(number, line) for number, line in enumerate(map(str.strip, text.split("\n")), 1) if _is_command(line)]
    if lines and _LIST.match(lines[0][1]):
        return _command_list(lines, f"0x{example:08x}")
    root = read_json(text, "a list of flat objects")
    if not isinstance(root, dict):
        raise ProgramError(f"Program must be a JSON object, not {_kind(root)}; {_name_the_list()}")
    keys = [key for key in (_NEWER, _OLDER) if key in root]
    if len(keys) != 1:
        have = "both" if keys else f"keys {', '.join(map(repr, root))}" if root else "no keys"
        raise ProgramError(
            f"Program must have exactly one of the keys {_NEWER!r} and {_OLDER!r}, not {have}; {_name_the_list()}"
        )
    entries = root[keys[0]]
    if not isinstance(entries, list):
        raise ProgramError(f"{keys[0]!r} must be a list of commands, not {_kind(entries)}; put it in brackets")
    modes, flags = (any(isinstance(e, dict) and keys & e.keys() for e in entries) for keys in ({"mode"}, _FLAGS))
    if modes and flags:
        raise ProgramError(
            "Program must have commands with mode or commands with is_rd and is_wr, not both: what they mean differs; "
            "leave one of them out"
        )
    newer = keys[0] == _NEWER and not flags
    read = _newer_command if newer else _older_command
    commands = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise ProgramError(
                f"Command {number} must be an object, not {_kind(entry)}; "
                'write it as {"addr": ..., "data": ..., "mode": ...}'
            )
        commands.append(read(number, entry, f"0x{example:08x}"))
    mixed = f"read as objects with is_rd and is_wr under {_NEWER!r}: every command ends before the next"
    return Program(tuple(commands), newer, (mixed,) if keys[0] == _NEWER and flags else ())


def _is_command(line: str) -> bool:
    return bool(line) and not line.startswith("//")


def _command_list(lines: Sequence[tuple[int, str]], example: str) -> Program:
    """The program in the lines of a command list, with their numbers in the file."""
    commands, waits, marks = [], 0, 0
    for number, line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ProgramError(
                f"Line {number} of a command list must be DELAY,MODE,ADDRESS,DATA such as 2,W,{example},0x0, with mode "
                f"W, R or Q, not {json.dumps(line)[:60]}; correct it, or write // before a comment"
            )
        mode, addr, data = match[1], int(match[2], 16), int(match[3], 16)
        for what, value, bits in (("address", addr, _ADDRESS_BITS), ("data", data, _DATA_BITS)):
            if value >= 1 << bits:
                raise ProgramError(f"The {what} in line {number} must fit in {bits} bits, not {value:#x}; correct it")
        if mode == "Q":
            waits += 1
        elif mode == "W" and addr in _TEST_BENCH:
            marks += 1
        else:
            commands.append(ProgramCommand("W" if mode == "W" else "R", addr, data if mode == "W" else 0))
    note = (
        f"read as a command list of a test bench: every command ends before the next; waits left out: {waits}, writes "
        f"to the test bench left out: {marks}"
    )
    return Program(tuple(commands), False, (note,))


def read_json(text: str, form: str) -> Any:
    """The content of a program's JSON text, which should be ``form``; raises ProgramError where it is not JSON."""
    try:
        return read_unique(text)
    except json.JSONDecodeError as error:
        raise ProgramError(
            f"Program must be complete JSON, not text that breaks at line {error.lineno}, column "
            f"{error.colno} ({error.msg}); write the file again"
        ) from None
    except KeyTwice as error:
        raise ProgramError(f"Program must be JSON text without doubt: {error}") from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise ProgramError(f"Program must have numbers of at most {most} digits; write the file again") from None
    except RecursionError:
        raise ProgramError(f"Program must be {form}, not JSON nested beyond reading; write the file again") from None


def format_program(commands: Iterable[ProgramCommand]) -> str:
    """The commands as JSON text of the newer form, one per line."""
    lines = []
    for command in commands:
        entry = {"addr": f"0x{command.addr:08x}", "data": f"0x{command.data:032x}", "mode": command.mode}
        lines.append("  " + json.dumps(entry))
    return f'{{"{_NEWER}": [\n' + ",\n".join(lines) + "\n]}\n"


def execute(
    program: Program,
    machine: Machine,
    drive: Callable[[ProgramCommand], dict[str, int]],
    explain: Callable[[int, ProgramCommand, Machine, dict[str, int]], NoReturn],
    check: Callable[[int, ProgramCommand], None] | None = None,
) -> list[tuple[int, int]]:
    """Issues the commands to ``machine``.

    ``drive`` gives the model's inputs for a write or a read.  ``check`` sees each command's number and the command
    before it is issued, and may refuse it with a ProgramError; what it makes of a command that starts nothing must not
    depend on the machine's state.  Where the model refuses a command, ``explain`` is
    called with the number, the command, the machine and the inputs, and raises the ProgramError.

    Returns (address, ``data_out``) of each command that updates the state ``data_out``, in order; a read that
    starts a unit returns no word.

    Raises ProgramError with the command's number where a command of the newer form comes to a unit that runs
    (its result would depend on timing), and where a wait would never end. The machine has then executed all
    commands before.
    """
    reads: list[tuple[int, int]] = []
    running: tuple[int, str] | None = None
    runs = _plain_runs(program, machine, drive) if isinstance(machine, Simulator) else {}
    done = 0
    for number, command in enumerate(program.commands, 1):
        if number <= done:
            continue
        if running is None and number in runs:
            assert isinstance(machine, Simulator)
            stream = runs[number]
            if check is not None:
                for other in range(number, number + len(stream)):
                    check(other, program.commands[other - 1])
            for place, word in machine.execute(stream, ["data_out"])["data_out"]:
                reads.append((program.commands[number - 1 + place].addr, int.from_bytes(word.tobytes(), "little")))
            done = number - 1 + len(stream)
            continue
        if command.mode == "Q":
            if running is None:
                raise ProgramError(
                    f"Command {number} must wait for a unit that runs, but none was started since the last "
                    "wait; remove it, or start a unit whose configuration is valid before it"
                )
            running = None
            continue
        if running is not None:
            raise ProgramError(
                f"Command {number} must come after the unit started by command {running[0]} "
                f"({running[1]}) has finished, not while it runs: {_show(command)} would have a result that "
                'depends on timing; put a command of mode "Q" before it'
            )
        if check is not None:
            check(number, command)
        inputs = drive(command)
        try:
            instruction = machine.step(inputs)
        except CommandError:
            explain(number, command, machine, inputs)
        if "data_out" in instruction.updates:
            reads.append((command.addr, machine.values["data_out"]))
        # What a start depends on is configuration, which no unit changes: it is the same after the operation.
        if program.waits and instruction.kernel is not None and holds(instruction.kernel_guard, machine):
            running = (number, instruction.name)
    return reads


def _plain_runs(
    program: Program, machine: Simulator, drive: Callable[[ProgramCommand], dict[str, int]]
) -> dict[int, CommandStream]:
    """Runs of commands that a simulator can execute at once, by the number of their first command."""
    sent = [(number, command) for number, command in enumerate(program.commands, 1) if command.mode != "Q"]
    stream = CommandStream.of(machine.ila, [drive(command) for _, command in sent])
    runs = {}
    for first, last in machine.plain_runs(stream):
        # a wait between two commands ends a run
        start = first
        for at in range(first + 1, last + 1):
            if at == last or sent[at][0] != sent[at - 1][0] + 1:
                part = {name: column[start:at] for name, column in stream.columns.items()}
                runs[sent[start][0]] = CommandStream(part)
                start = at
    return runs


def format_reads(reads: Iterable[tuple[int, int]]) -> str:
    """One line ``0xADDRESS,0xWORD`` per read: 8 and 32 lower-case hexadecimal digits.

    >>> format_reads([(0x33500000, 255)])
    '0x33500000,0x000000000000000000000000000000ff\\n'
    """
    return "".join(f"0x{address:08x},0x{word:032x}\n" for address, word in reads)


def describe(command: ProgramCommand) -> str:
    """Address and direction of a write or a read, as messages give them: ``0x33500000 (a read)``."""
    return f"0x{command.addr:08x} ({'a write' if command.mode == 'W' else 'a read'})"


def holds(condition: Expr, machine: Machine) -> bool:
    """Whether a Boolean over the model's state holds in the machine's present state."""
    values: dict[Expr, Expr] = {}
    for name, state in machine.ila.states.items():
        if state.sort == BOOL:
            values[state] = true if machine.values[name] else false
        elif isinstance(state.sort, BvSort):
            values[state] = const(machine.values[name], state.width)
    return bool(substitute(condition, values).value)


def _newer_command(number: int, entry: dict[str, object], example: str) -> ProgramCommand:
    mode = entry.get("mode")
    if mode == "Q":
        return ProgramCommand("Q")
    if mode == "W":
        return ProgramCommand("W", *_numbers(number, entry, example, with_data=True))
    if mode == "R":
        return ProgramCommand("R", *_numbers(number, entry, example, with_data=False))
    text = json.dumps(mode) if "mode" in entry else "missing"
    raise ProgramError(f'mode of command {number} must be "W" (write), "R" (read) or "Q" (wait), not {text}; set it')


def _older_command(number: int, entry: dict[str, object], example: str) -> ProgramCommand:
    is_read, is_write = (_flag(number, entry, key) for key in ("is_rd", "is_wr"))
    if is_read == is_write:
        raise ProgramError(
            f"Command {number} must set exactly one of is_rd and is_wr, "
            f"not {'both' if is_read else 'neither'}; set one to 1 and the other to 0"
        )
    return ProgramCommand("W" if is_write else "R", *_numbers(number, entry, example, with_data=is_write))


def _flag(number: int, entry: dict[str, object], key: str) -> bool:
    value = entry.get(key, 0)
    if value in (0, 1):  # JSON true and false included
        return bool(value)
    if isinstance(value, str) and _HEX.fullmatch(value) and int(value, 16) < 2:
        return int(value, 16) == 1
    raise ProgramError(f"{key} of command {number} must be 0 or 1, not {json.dumps(value)}; set it")


def _numbers(number: int, entry: dict[str, object], example: str, *, with_data: bool) -> tuple[int, int]:
    addr = _number(number, entry, "addr", _ADDRESS_BITS, example)
    return addr, _number(number, entry, "data", _DATA_BITS, "0x0") if with_data else 0


def _number(number: int, entry: dict[str, object], key: str, bits: int, example: str) -> int:
    if key not in entry:
        raise ProgramError(f'Command {number} must have {key}, which is missing; add "{key}": "{example}"')
    text = entry[key]
    if not isinstance(text, str) or not _HEX.fullmatch(text):
        raise ProgramError(
            f'{key} of command {number} must be a hexadecimal string such as "{example}", '
            f"not {json.dumps(text)}; correct it"
        )
    value = int(text, 16)
    if value >= 1 << bits:
        raise ProgramError(f"{key} of command {number} must fit in {bits} bits, not {text}; correct it")
    return value


def _show(command: ProgramCommand) -> str:
    return f"the {'write to' if command.mode == 'W' else 'read of'} 0x{command.addr:08x}"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a Boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _name_the_list() -> str:
    return f'write it as {{"{_NEWER}": [...]}}'
