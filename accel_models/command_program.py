"""Program files of any model: commands as values of the model's inputs, in JSON.

``{"show": ["data_out"], "commands": [{"write": 1, "address": "0x4004", "data": 1}, ...]}``: numbers are integers or
hexadecimal strings with ``0x``, an input that is not given is 0, and each command runs to its end before the next.
After a command whose instruction sets states of ``show``, these are printed.  Commands are numbered from 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ila_lang import BOOL, CommandError, Ila, MemSort, Simulator
from ila_lang.language.sorts import BvSort

from .mmio_program import ProgramError, read_json

_HEX = re.compile("0[xX][0-9a-fA-F]+", re.ASCII)
_EXAMPLE = '{"show": ["data_out"], "commands": [{"address": "0x10", "data": 1}]}'


def format_commands(commands: Sequence[Mapping[str, int]], show: Sequence[str]) -> str:
    """The program file of commands, one a line, that prints the states ``show`` after commands that set them."""
    lines = [json.dumps({name: _text(value) for name, value in command.items()}) for command in commands]
    return f'{{"show": {json.dumps(list(show))}, "commands": [\n  ' + ",\n  ".join(lines) + "\n]}\n"


def run_commands(ila: Ila, text: str) -> str:
    """Runs a program file on a model that is at reset.

    Returns a line ``NUMBER INSTRUCTION STATE=0xVALUE ...`` per command that sets a state of ``show``.  Raises
    ProgramError where the text is no program file of this model, before anything runs, and where the model refuses a
    command.

    >>> from ila_lang import BOOL, Ila
    >>> ila = Ila("counter")
    >>> go, total = ila.input("go", BOOL), ila.state("total", 8, 0)
    >>> ila.set_valid(go)
    >>> _ = ila.instruction("STEP").set_decode(go).update(total, total + 1)
    >>> run_commands(ila, format_commands([{"go": 1}, {"go": 1}], ["total"]))
    '1 STEP total=0x01\\n2 STEP total=0x02\\n'
    """
    show, commands = _parse(ila, text)
    machine = Simulator(ila)
    lines = []
    for number, command in enumerate(commands, 1):
        try:
            instruction = machine.step(command)
        except CommandError as error:
            raise ProgramError(f"Command {number} must be one that {ila.name} takes: {error}") from None
        seen = [name for name in show if name in instruction.updates]
        if seen:
            shown = (f"{name}=0x{machine.values[name]:0{-(-_width(ila, name) // 4)}x}" for name in seen)
            lines.append(f"{number} {instruction.name} {' '.join(shown)}\n")
    return "".join(lines)


def _parse(ila: Ila, text: str) -> tuple[list[str], list[dict[str, int]]]:
    root = read_json(text, "an object with lists of names and of flat objects")
    if not isinstance(root, dict) or set(root) != {"show", "commands"}:
        raise ProgramError(
            f"Program must be a JSON object with show and commands, and nothing else; write it as {_EXAMPLE}"
        )
    show, commands = root["show"], root["commands"]
    if not isinstance(show, list) or not isinstance(commands, list):
        raise ProgramError(f"show and commands must be lists; write them as {_EXAMPLE}")
    states = [name for name, state in ila.states.items() if not isinstance(state.sort, MemSort)]
    for name in show:
        if name not in states:
            raise ProgramError(
                f"show must be a list of states of {ila.name} ({', '.join(states)}), not have {json.dumps(name):.60}; "
                "memories are not shown"
            )
    return show, [_command(ila, number, entry) for number, entry in enumerate(commands, 1)]


def _command(ila: Ila, number: int, entry: Any) -> dict[str, int]:
    if not isinstance(entry, dict):
        raise ProgramError(
            f"Command {number} must be an object, not {json.dumps(entry):.60}; write it as in {_EXAMPLE}"
        )
    for name in entry:
        if name not in ila.inputs:
            raise ProgramError(
                f"Command {number} must give values of inputs of {ila.name} ({', '.join(ila.inputs)}), "
                f"not of {name:.60}"
            )
    return {name: _value(number, name, entry.get(name, 0), ila.inputs[name].sort) for name in ila.inputs}


def _value(number: int, name: str, entry: Any, sort: object) -> int:
    value = int(entry, 16) if isinstance(entry, str) and _HEX.fullmatch(entry) else entry
    bits = 1 if sort == BOOL else sort.width if isinstance(sort, BvSort) else 0
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ProgramError(
            f'{name} of command {number} must be a number of {bits} bit{"s" * (bits > 1)}, such as 1 or "0x1", not '
            f"{json.dumps(entry):.60}"
        )
    return int(value)


def _width(ila: Ila, name: str) -> int:
    sort = ila.states[name].sort
    return sort.width if isinstance(sort, BvSort) else 1


def _text(value: int) -> int | str:
    return value if value < 10 else hex(value)
