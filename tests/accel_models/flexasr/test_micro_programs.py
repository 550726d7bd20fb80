"""The assembler of the activation unit's micro-programs, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.flexasr.micro_programs import GRU, LSTM, OPERATIONS, RNN, assemble, disassemble, linear_program

# as public driver programs have them, in execution order
PUBLISHED = {
    "30 34 81 B0 40": RNN,
    "30 34 81 A0 34 38 92 81 B0 34 38 86 A4 18 99 D4 91 82 20 40": GRU,
    "30 34 81 A0 34 38 86 B4 91 34 38 86 A4 18 96 81 20 B0 34 38 86 A4 91 40": LSTM,
    "30 40": linear_program(None),
    "30 C0 40": linear_program("relu"),
    "30 A0 40": linear_program("sigmoid"),
    "30 B0 40": linear_program("tanh"),
}
BYTES = [byte for byte in range(256) if byte >> 4 in OPERATIONS.values()]


def without_ignored_bits(byte: int) -> int:
    return byte & {0x0: 0xF0, 0x7: 0xFF, 0x8: 0xFF, 0x9: 0xFF}.get(byte >> 4, 0xFC)


@pytest.mark.parametrize("published", PUBLISHED)
def test_published_programs(published: str) -> None:
    code = assemble(PUBLISHED[published])
    assert code == bytes.fromhex(published)
    assert assemble("; ".join(disassemble(code))) == code


@given(st.lists(st.sampled_from(BYTES), min_size=1, max_size=32))
def test_every_instruction_goes_both_ways(code: list[int]) -> None:
    lines = disassemble(bytes(code))
    assert list(assemble("\n".join(lines))) == list(map(without_ignored_bits, code))


def test_one_instruction_of_each_form() -> None:
    assert disassemble(bytes([0x00, 0x1C, 0x87, 0xD8])) == ["nop", "load r3", "eadd r1, r3", "onex r2"]
    assert assemble("  emul r3 ,r2 # a comment; copy r0\n\n nop;") == bytes([0x9E, 0x00])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "inpe r0; add r0, r1",
            "Op of instruction 'add r0, r1' must be one of nop, load, store, inpe, outgb, copy, eadd, emul, sigm, "
            "tanh, relu, onex, not 'add'",
        ),
        ("eadd r0", "Instruction 'eadd r0' must have two registers, r0 .. r3, with a comma between, not 'r0'"),
        ("inpe r4", "Instruction 'inpe r4' must have one register, r0 .. r3, not 'r4'"),
        ("tanh", "Instruction 'tanh' must have one register, r0 .. r3, not 'none'"),
        ("nop r1", "Instruction 'nop r1' must have no register, not 'r1'"),
        (" # nothing", "A micro-program must have 1 .. 32 instructions, not 0; the activation unit holds no more"),
        ("nop;" * 33, "A micro-program must have 1 .. 32 instructions, not 33; the activation unit holds no more"),
    ],
)
def test_messages(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        assemble(text)
    assert str(error.value) == message


def test_bytes_that_are_no_instruction() -> None:
    for op in (5, 6, 14, 15):
        with pytest.raises(ValueError) as error:
            disassemble(bytes([0x30, op << 4 | 2]))
        assert str(error.value) == (
            "Instruction 1 must have one of the ops 0, 1, 2, 3, 4, 7, 8, 9, a, b, c, d in its upper four bits, "
            f"not {op:x} (0x{op:x}2)"
        )


def test_an_unknown_activation_function() -> None:
    with pytest.raises(ValueError, match="activation must be None, 'relu', 'sigmoid' or 'tanh', not 'gelu'"):
        linear_program("gelu")
