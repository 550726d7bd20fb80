"""Program files: both forms, waits, and every message."""

from __future__ import annotations

import json

import pytest

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.program import parse_program, run, write_program
from accel_models.mmio_program import Program, ProgramCommand, ProgramError, format_reads
from ila_lang import Machine
from tests.accel_models.flexasr.words import pack_large_manager, pack_unit

MANAGER, CONFIG, START = "0x33400010", "0x33800010", "0x33000020"
PADDING_CONFIG, PADDING_START = "0x33a00010", "0x33000040"
WORDS = ["7f" * 16, "8" + "0" * 31]


def w(addr: str, data: str = "0x1") -> dict[str, str]:
    return {"addr": addr, "data": data, "mode": "W"}


def r(addr: str) -> dict[str, str]:
    return {"addr": addr, "data": "0x0", "mode": "R"}


Q = {"addr": "0x0", "data": "0x0", "mode": "Q"}
SETUP = [
    w(MANAGER, hex(pack_large_manager({0: 1}, {}))),
    w(CONFIG, hex(pack_unit(is_valid=1, num_vector_1=1, num_timestep_1=2))),
    w("33500000", WORDS[1]),
    w("0x33500010", "0X" + WORDS[0].upper()),
]


def newer(*entries: object) -> str:
    return json.dumps(
        {
            "comment": 1,
            "program fragment": [{"instr_No.": 0} | e if isinstance(e, dict) else e for e in entries],
        }
    )


def older(*entries: dict[str, object]) -> str:
    return json.dumps({"command inputs": entries})


def as_older(entry: dict[str, str]) -> dict[str, object]:
    return {
        "addr": entry["addr"],
        "data": entry["data"],
        "is_rd": entry["mode"] == "R",
        "is_wr": "0x1" if entry["mode"] == "W" else "0",
    }


def execute(text: str) -> list[tuple[int, int]]:
    return run(parse_program(text), Machine(flexasr()))


READS = [(0x33500000, int(WORDS[0], 16)), (0x33500010, int(WORDS[0], 16))]


def test_the_newer_form() -> None:
    assert execute(newer(*SETUP, w(START), Q, r("0x33500000"), r("0x33500010"))) == READS


def test_the_older_form_runs_each_command_to_completion() -> None:
    commands = [*SETUP, w(START), r("0x33500000"), r("0x33500010")]
    assert execute(older(*map(as_older, commands))) == READS


def test_a_command_list_runs_each_command_to_completion() -> None:
    """As the hardware's test bench has them: the wait is before the start, or after, or not there."""
    commands = [*SETUP, w(START), r("0x33500000"), r("0x33500010")]
    lines = [f"2,{c['mode']},{int(c['addr'], 16):#x},{int(c['data'], 16):#x}" for c in commands]
    for waits in ([], [len(SETUP)], [len(SETUP) + 1]):
        listed = [*lines, "2,W,0xdeaddead,0x0"]
        for at in waits:
            listed.insert(at, "2,Q,0x00000000,0x0")
        assert execute("// poolings\n\n" + "\n".join(listed)) == READS


def test_a_read_that_starts_returns_no_word() -> None:
    assert execute(newer(*SETUP, r(START), {"mode": "Q"}, r("0x33500000"))) == READS[:1]


def test_a_start_without_valid_configuration_needs_no_wait() -> None:
    assert execute(newer(w(START), r("0x33500000"))) == [(0x33500000, 0)]


def test_a_program_may_end_while_a_unit_runs() -> None:
    assert execute(newer(*SETUP, w(START))) == []


def test_writing_and_reading_again() -> None:
    program = parse_program(newer(*SETUP, w(START), Q, r("0x33500000")))
    text = write_program(program)
    assert parse_program(text) == program
    assert text.splitlines()[1] == (
        '  {"addr": "0x33400010", "data": "0x00000000000000000000000000000001", "mode": "W"},'
    )
    assert write_program(Program(())) == '{"program fragment": [\n\n]}\n'


def test_the_older_form_is_written_with_waits() -> None:
    program = parse_program(older(*map(as_older, [w(START), *SETUP, w(START), w(START), r("0x33500000")])))
    again = parse_program(write_program(program))
    assert [c.mode for c in again.commands] == list("WWWWWWQWQR")
    assert run(again, Machine(flexasr())) == run(program, Machine(flexasr())) == READS[:1]


def test_every_unit_gets_its_wait() -> None:
    # a configuration of one unit makes no other valid, and one that is not valid takes back an earlier one
    pad = [w(PADDING_START), w(PADDING_CONFIG), w(PADDING_START), w(START), w(PADDING_CONFIG, "0x0"), w(PADDING_START)]
    program = parse_program(older(*map(as_older, [*pad, *SETUP, r(START), r("0x33500000")])))
    again = parse_program(write_program(program))
    assert [c.mode for c in again.commands] == list("WWWQWWWWWWWRQR")
    assert run(again, Machine(flexasr())) == run(program, Machine(flexasr())) == READS[:1]


def test_padding_runs_until_it_is_awaited() -> None:
    padding = [w(PADDING_CONFIG, hex(pack_unit(is_valid=1, num_vector_1=1, num_timestep_2=2)))]
    program = [*SETUP, *padding, w(PADDING_START), Q, r("0x33500000"), r("0x33500010")]
    assert execute(newer(*program)) == [(0x33500000, 0), (0x33500010, 0)]
    idle = [*SETUP, w(PADDING_CONFIG, "0x0"), w(PADDING_START), r("0x33500000")]
    assert execute(newer(*idle)) == [(0x33500000, int(WORDS[1], 16))]


def test_reads_as_text() -> None:
    assert format_reads([(0x335000F0, 0xAB), (0x33600000, 1 << 127)]) == (
        f"0x335000f0,0x{0xAB:032x}\n0x33600000,0x8{0:031x}\n"
    )
    assert format_reads([]) == ""


def test_commands_before_an_error_have_been_executed() -> None:
    machine = Machine(flexasr())
    with pytest.raises(ProgramError):
        run(parse_program(newer(w("0x33500000", "0xff"), w("0x33f00000"))), machine)
    assert machine.memories["gb_core_large_buffer"][0] == 0xFF


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"program fragment": [',
            "Program must be complete JSON, not text that breaks at line 1, column 23 (Expecting value); "
            "write the file again",
        ),
        (
            "[" * 100000,
            "Program must be a list of flat objects, not JSON nested beyond reading; write the file again",
        ),
        ("[]", 'Program must be a JSON object, not a list; write it as {"program fragment": [...]}'),
        (
            '{"asm": []}',
            "Program must have exactly one of the keys 'program fragment' and 'command inputs', not keys "
            "'asm'; "
            'write it as {"program fragment": [...]}',
        ),
        (
            "{}",
            "Program must have exactly one of the keys 'program fragment' and 'command inputs', not no keys; "
            'write it as {"program fragment": [...]}',
        ),
        (
            '{"program fragment": [], "command inputs": []}',
            "Program must have exactly one of the keys 'program fragment' and 'command inputs', not both; "
            'write it as {"program fragment": [...]}',
        ),
        (
            '{"program fragment": null}',
            "'program fragment' must be a list of commands, not null; put it in brackets",
        ),
        (
            newer(Q, 3),
            'Command 2 must be an object, not a number; write it as {"addr": ..., "data": ..., "mode": ...}',
        ),
        (newer({"mode": "R"}), 'Command 1 must have addr, which is missing; add "addr": "0x33500000"'),
        (
            newer({"mode": "W", "addr": "0x33500000"}),
            'Command 1 must have data, which is missing; add "data": "0x0"',
        ),
        (
            newer(w("0x3350_0000")),
            'addr of command 1 must be a hexadecimal string such as "0x33500000", '
            'not "0x3350_0000"; correct it',
        ),
        (
            newer({"mode": "R", "addr": 5}),
            'addr of command 1 must be a hexadecimal string such as "0x33500000", not 5; correct it',
        ),
        (newer(r("0x133500000")), "addr of command 1 must fit in 32 bits, not 0x133500000; correct it"),
        (
            newer(Q, w("0x33500000", "1" + "0" * 32)),
            f"data of command 2 must fit in 128 bits, not 1{0:032}; correct it",
        ),
        (
            newer({"addr": "0x33500000", "mode": "X"}),
            'mode of command 1 must be "W" (write), "R" (read) or "Q" (wait), not "X"; set it',
        ),
        (
            newer({"addr": "0x33500000"}),
            'mode of command 1 must be "W" (write), "R" (read) or "Q" (wait), not missing; set it',
        ),
        (
            older({"addr": "0x33500000", "is_rd": 1, "is_wr": 1}),
            "Command 1 must set exactly one of is_rd and is_wr, not both; set one to 1 and the other to 0",
        ),
        (
            older({"addr": "0x33500000", "is_rd": 0}),
            "Command 1 must set exactly one of is_rd and is_wr, not neither; set one to 1 and the other to 0",
        ),
        (older({"addr": "0x33500000", "is_rd": 2}), "is_rd of command 1 must be 0 or 1, not 2; set it"),
    ],
)  # fmt: skip
def test_messages_of_reading(text: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        parse_program(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (
            [r("0x38500000")],
            "addr of command 1 must lie in FlexASR, 0x33000000 .. 0x37ffffff, not 0x38500000 (a read); "
            "remove the command",
        ),
        (
            [r("0x33500000"), w("0x33c00010")],
            "addr of command 2 must be a register or a vector of a buffer, not 0x33c00010 (a write): nothing answers "
            "there; correct it",
        ),
        (
            [w("0x35000010")],
            "Command 1 must start a unit of the global buffer, not PE1_START: where the output of a PE goes that the "
            "control unit of the global buffer did not start is open; start GBControl at 0x33000010, which starts all "
            "PEs",
        ),
        (
            [*SETUP, w(START), r("0x33500000")],
            "Command 6 must come after the unit started by command 5 (GB_LAYER_REDUCE_START) has finished, "
            "not while it runs: the read of 0x33500000 would have a result that depends on timing; "
            'put a command of mode "Q" before it',
        ),
        (
            [*SETUP, w(PADDING_CONFIG), w(PADDING_START), w(START)],
            "Command 7 must come after the unit started by command 6 (GB_ZEROPADDING_START) has finished, "
            "not while it runs: the write to 0x33000020 would have a result that depends on timing; "
            'put a command of mode "Q" before it',
        ),
        (
            [w(START), Q],
            "Command 2 must wait for a unit that runs, but none was started since the last wait; remove it, "
            "or start a unit whose configuration is valid before it",
        ),
    ],
)
def test_messages_of_running(commands: list[dict[str, str]], message: str) -> None:
    with pytest.raises(ProgramError) as error:
        execute(newer(*commands))
    assert str(error.value) == message


def test_a_wait_has_no_numbers() -> None:
    assert parse_program(newer(Q)).commands == (ProgramCommand("Q"),)
