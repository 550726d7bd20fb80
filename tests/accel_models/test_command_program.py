"""Program files of any model: what they print, and what is refused before anything runs."""

from __future__ import annotations

import json

import pytest

from accel_models.command_program import format_commands, run_commands
from accel_models.mmio_program import ProgramError
from ila_lang import BOOL, Ila


def toy() -> Ila:
    ila = Ila("toy")
    go, data = ila.input("go", BOOL), ila.input("data", 12)
    ila.set_valid(go)
    kept, odd = ila.state("kept", 12, 3), ila.state("odd", BOOL, False)
    ila.memory("words", 4, 8, 0)
    ila.instruction("KEEP").set_decode(go & (data < 100)).update(kept, data).update(odd, data[0:0] == 1)
    ila.instruction("PASS").set_decode(go & (data >= 100))
    return ila


def test_states_are_shown_after_commands_that_set_them() -> None:
    text = format_commands([{"go": 1, "data": 33}, {"go": 1, "data": 0x100}, {"go": 1, "data": 4}], ["kept", "odd"])
    assert text == (
        '{"show": ["kept", "odd"], "commands": [\n  {"go": 1, "data": "0x21"},\n  {"go": 1, "data": "0x100"},\n'
        '  {"go": 1, "data": 4}\n]}\n'
    )
    assert run_commands(toy(), text) == "1 KEEP kept=0x021 odd=0x1\n3 KEEP kept=0x004 odd=0x0\n"
    assert run_commands(toy(), '{"show": [], "commands": []}') == ""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            [],
            "Program must be a JSON object with show and commands, and nothing else; write it as "
            '{"show": ["data_out"], "commands": [{"address": "0x10", "data": 1}]}',
        ),
        (
            {"show": "kept", "commands": {}},
            'show and commands must be lists; write them as {"show": ["data_out"], "commands": [{"address": "0x10", '
            '"data": 1}]}',
        ),
        (
            {"show": ["words"], "commands": []},
            'show must be a list of states of toy (kept, odd), not have "words"; memories are not shown',
        ),
        (
            {"show": [], "commands": [1]},
            'Command 1 must be an object, not 1; write it as in {"show": ["data_out"], "commands": [{"address": '
            '"0x10", "data": 1}]}',
        ),
        (
            {"show": [], "commands": [{}, {"date": 1}]},
            "Command 2 must give values of inputs of toy (go, data), not of date",
        ),
        (
            {"show": [], "commands": [{"go": 1, "data": "0x1000"}]},
            'data of command 1 must be a number of 12 bits, such as 1 or "0x1", not "0x1000"',
        ),
        (
            {"show": [], "commands": [{"go": 1, "data": 1.5}]},
            'data of command 1 must be a number of 12 bits, such as 1 or "0x1", not 1.5',
        ),
        ({"show": [], "commands": [{"go": 2}]}, 'go of command 1 must be a number of 1 bit, such as 1 or "0x1", not 2'),
    ],
)
def test_what_is_no_program_is_refused(program: object, message: str) -> None:
    with pytest.raises(ProgramError) as refused:
        run_commands(toy(), json.dumps(program))
    assert str(refused.value) == message


def test_a_command_that_the_model_refuses() -> None:
    with pytest.raises(ProgramError, match=r"^Command 2 must be one that toy takes: "):
        run_commands(toy(), '{"show": [], "commands": [{"go": true}, {"go": 0}]}')
