"""Program files: what is read, run and written, and every message."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.mmio_program import ProgramError, format_reads
from accel_models.vta.assembly import assemble
from accel_models.vta.model import vta
from accel_models.vta.options import FSIM, HLS, VTA_ILA
from accel_models.vta.products import dense, post_steps
from accel_models.vta.program import Program, format_program, parse_program, read_bytes, run, write_bytes
from ila_lang import Machine, Simulator

TEXT = """{
 "comment": "adds 3 to four accumulators and stores their bytes",
 "dram": [{"addr": "0x0", "data": "00000000"}, {"addr": "0x41", "data": "010000ff"}],
 "program": ["load.uop size=1x1", "load.acc sram=0 dram=1 size=1x1",
             "alu.add uops=0:1 imm=3 push=g2s", "store dram=32 size=1x1 pop=g2s push=s2g", "finish pop=s2g"],
 "read": [{"addr": "0x200", "bytes": 16}]
}"""


def test_a_program_runs_and_reads() -> None:
    program = parse_program(TEXT)
    reads = run(program, Machine(vta()))
    # lane 0 is 0x00000100 and lane 1 is 0x000000ff, to which 3 is added
    assert format_reads(reads) == f"0x00000200,0x{'03' * 14}0203\n"
    assert run(program, Machine(vta(FSIM)), FSIM) == reads


def test_words_and_text_may_be_mixed() -> None:
    words = [f"{w:#034x}" for w in assemble("gemm\nfinish")]
    assert parse_program(json.dumps({"program": words})) == parse_program('{"program": ["gemm", "finish"]}')
    older = parse_program('{"program": ["load.acc sram=1"]}', VTA_ILA)
    assert older.words[0] == assemble("load.acc sram=1")[0] ^ (1 << 10 | 1 << 9)


def test_writing_and_reading_again() -> None:
    x = np.arange(40, dtype=np.int8).reshape(2, 20)
    for options in (HLS, VTA_ILA):
        program, _ = dense(x, x, options=options)
        assert parse_program(format_program(program, options), options) == program
    assert format_program(Program(((16, b"\x01"),), (3,), ((0, 16),))) == (
        '{\n "dram": [\n  {"addr": "0x10", "data": "01"}],\n "program": [\n  "finish"],\n'
        ' "read": [\n  {"addr": "0x0", "bytes": 16}]\n}\n'
    )


@pytest.mark.parametrize("kind", [Machine, Simulator])
def test_the_hosts_transfers(kind: type[Machine]) -> None:
    machine = kind(vta())
    write_bytes(machine, 0, b"\xee" * 100)
    for addr, count in ((16, 32), (3, 5), (14, 4), (30, 40), (47, 1), (20, 0)):
        data = bytes(range(1, count + 1))
        write_bytes(machine, addr, data)
        assert read_bytes(machine, addr, count) == data
    assert [machine.memories["dram"][i] for i in (2, 8, 13, 18, 29, 70)] == [0xEE, 0xEE, 0xEE, 3, 14, 0xEE]


@given(st.integers(0, 60), st.binary(max_size=60))
def test_only_the_given_bytes_are_written(addr: int, data: bytes) -> None:
    machine = Machine(vta())
    write_bytes(machine, 0, b"\xaa" * 128)
    write_bytes(machine, addr, data)
    expected = bytearray(b"\xaa" * 128)
    expected[addr : addr + len(data)] = data
    assert read_bytes(machine, 0, 128) == expected


def test_both_machines_run_programs_alike() -> None:
    source = np.random.default_rng(1)
    for _ in range(2):
        x, weights = (source.integers(-128, 128, (20, 20)).astype(np.int8) for _ in range(2))
        program, plan = dense(x, weights, steps=post_steps(shift=6))
        assert np.array_equal(plan.result(run(program, Machine(vta()))), plan.result(run(program, Simulator(vta()))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"program": [',
            "Program must be complete JSON, not text that breaks at line 1, column 14 (Expecting value); write the "
            "file again",
        ),
        (
            '{"program": [], "program": []}',
            "Program must be JSON text without doubt: an object must have a key once, not 'program' twice; remove one",
        ),
        ("[" * 100000, "Program must be three flat lists, not JSON nested beyond reading; write the file again"),
        (
            '{"program fragment": []}',
            'Program must be a JSON object with the key "program"; write it as {"program": [...]}',
        ),
        ("[]", 'Program must be a JSON object with the key "program"; write it as {"program": [...]}'),
        ('{"program": "finish"}', '"program" must be a list, not "finish"; put it in brackets'),
        (
            '{"program": ["gemm", 3]}',
            "Instruction 2 must be a string, assembly text or a word in hexadecimal, not 3; write it as "
            '"finish" or "0x3"',
        ),
        ('{"program": [" "]}', "Instruction 1: it must not be empty; remove it"),
        (
            '{"program": ["halt"]}',
            "Instruction 1: Instruction must be one of load.uop, load.wgt, load.inp, load.acc, load.acc_8bit, store, "
            "gemm, alu.min, alu.max, alu.add, alu.shr, alu.mul, finish, not 'halt'; correct it",
        ),
        (
            '{"program": ["0x7"]}',
            "Instruction 1: opcode (bits 2:0) must be 0 (LOAD), 1 (STORE), 2 (GEMM), 3 (FINISH) or 4 (ALU), not 7; "
            "correct the word",
        ),
        (
            '{"program": ["0x83"]}',
            "Instruction 1: Bit 7 of FINISH must be 0, not set; clear it, or decode the word with strict=False to "
            "ignore it as hardware does",
        ),
        (
            '{"program": [], "dram": [4]}',
            'Entry 1 of "dram" must be an object, not 4; write it as {"addr": "0x100", "data": "00ff"}',
        ),
        (
            '{"program": [], "dram": [{"addr": "0x0"}]}',
            'Entry 1 of "dram" must have data, which is missing; write it as {"addr": "0x100", "data": "00ff"}',
        ),
        (
            '{"program": [], "dram": [{"addr": 5, "data": ""}]}',
            'addr of entry 1 of "dram" must be a hexadecimal string such as "0x100", not 5; correct it',
        ),
        (
            '{"program": [], "dram": [{"addr": "0x0", "data": "0"}]}',
            'data of entry 1 of "dram" must be a string of two hexadecimal digits per byte such as "00ff", not "0"; '
            "correct it",
        ),
        (
            '{"program": [], "dram": [{"addr": "0xffffff", "data": "0000"}]}',
            'Entry 1 of "dram" must lie in DRAM, 0x0 .. 0xffffff, not reach 0x1000000; move it',
        ),
        (
            '{"program": [], "read": [{"addr": "0x8", "bytes": 16}]}',
            'Entry 1 of "read" must have addr and bytes that are multiples of 16, not 0x8 and 16; read the whole '
            "words around it",
        ),
        (
            '{"program": [], "read": [{"addr": "0x10", "bytes": true}]}',
            'Entry 1 of "read" must have addr and bytes that are multiples of 16, not 0x10 and true; read the whole '
            "words around it",
        ),
        (
            '{"program": [], "read": [{"addr": "0x1000000", "bytes": 16}]}',
            'Entry 1 of "read" must lie in DRAM, 0x0 .. 0xffffff, not reach 0x100000f; move it',
        ),
    ],
)  # fmt: skip
def test_messages(text: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        parse_program(text)
    assert str(error.value) == message


def test_messages_of_running() -> None:
    with pytest.raises(ProgramError, match=r"^Program must end with finish, which is missing"):
        run(parse_program('{"program": ["gemm"]}'), Machine(vta()))
