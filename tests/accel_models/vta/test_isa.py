"""Instruction words and assembly text: positions of fields, round trips, and every message."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.vta.assembly import AssemblyError, assemble, disassemble, format_instruction, parse_instruction
from accel_models.vta.isa import (
    OLDER,
    STANDARD,
    Alu,
    AluOp,
    Encoding,
    Finish,
    Gemm,
    Instruction,
    IsaError,
    Load,
    MemoryId,
    Store,
    Unit,
    Uop,
    decode,
    decode_uop,
    encode,
    encode_uop,
    token_queues,
)

# -- golden words, from the table of bits --------------------------------------------------------------------

GOLDEN: list[tuple[Instruction, int, int]] = [
    (Finish(), 3, 3),
    (Finish(pop_prev=True), 3 | 1 << 3, 3 | 1 << 3),
    (Finish(pop_next=True, push_prev=True, push_next=True), 3 | 7 << 4, 3 | 7 << 4),
    (Load(memory=MemoryId.WGT, y_size=0), 1 << 7, 1 << 7),
    (Load(memory=MemoryId.ACC, y_size=0, sram_base=0x8001), 3 << 7 | 0x8001 << 10, 3 << 7 | 0x8001 << 9),
    (Load(memory=MemoryId.UOP, y_size=0, dram_base=0x80000001), 0x80000001 << 26, 0x80000001 << 25),
    (Load(memory=MemoryId.UOP, y_size=0x8001), 0x8001 << 64, 0x8001 << 64),
    (Load(memory=MemoryId.UOP, y_size=0, x_size=0x8001), 0x8001 << 80, 0x8001 << 80),
    (Load(memory=MemoryId.UOP, y_size=0, x_stride=0x8001), 0x8001 << 96, 0x8001 << 96),
    (Load(memory=MemoryId.UOP, y_size=0, y_pad_0=9), 9 << 112, 9 << 112),
    (Load(memory=MemoryId.UOP, y_size=0, y_pad_1=9), 9 << 116, 9 << 116),
    (Load(memory=MemoryId.UOP, y_size=0, x_pad_0=9), 9 << 120, 9 << 120),
    (Load(memory=MemoryId.UOP, y_size=0, x_pad_1=9), 9 << 124, 9 << 124),
    # OUT's number is 4: its upper bit is lost in the older encoding
    (Store(y_size=0, push_prev=True), 1 | 1 << 5 | 4 << 7, 1 | 1 << 5),
    (Gemm(iter_out=0, iter_in=0, reset_reg=True), 2 | 1 << 7, 2 | 1 << 7),
    (Gemm(iter_out=0, iter_in=0, uop_bgn=0x1001), 2 | 0x1001 << 8, 2 | 0x1001 << 8),
    (Gemm(iter_out=0, iter_in=0, uop_end=0x2001), 2 | 0x2001 << 21, 2 | 0x2001 << 21),
    (Gemm(iter_out=0x2001, iter_in=0), 2 | 0x2001 << 35, 2 | 0x2001 << 35),
    (Gemm(iter_out=0, iter_in=0x2001), 2 | 0x2001 << 49, 2 | 0x2001 << 49),
    (Gemm(iter_out=0, iter_in=0, dst_factor_out=0x401), 2 | 0x401 << 64, 2 | 0x401 << 64),
    (Gemm(iter_out=0, iter_in=0, dst_factor_in=0x401), 2 | 0x401 << 75, 2 | 0x401 << 75),
    (Gemm(iter_out=0, iter_in=0, src_factor_out=0x401), 2 | 0x401 << 86, 2 | 0x401 << 86),
    (Gemm(iter_out=0, iter_in=0, src_factor_in=0x401), 2 | 0x401 << 97, 2 | 0x401 << 97),
    (Gemm(iter_out=0, iter_in=0, wgt_factor_out=0x201), 2 | 0x201 << 108, 2 | 0x201 << 108),
    (Gemm(iter_out=0, iter_in=0, wgt_factor_in=0x201), 2 | 0x201 << 118, 2 | 0x201 << 118),
    (Alu(alu_opcode=AluOp.SHR, iter_out=0, iter_in=0), 4 | 3 << 108, 4 | 3 << 108),
    (Alu(alu_opcode=AluOp.MIN, iter_out=0, iter_in=0, use_imm=True), 4 | 1 << 111, 4 | 1 << 110),
    (Alu(alu_opcode=AluOp.MIN, iter_out=0, iter_in=0, imm=-2), 4 | 0xFFFE << 112, 4 | 0xFFFE << 111),
]


@pytest.mark.parametrize(("instruction", "word", "older"), GOLDEN, ids=range(len(GOLDEN)))
def test_words_by_hand(instruction: Instruction, word: int, older: int) -> None:
    assert encode(instruction) == word
    assert decode(word) == instruction
    assert encode(instruction, OLDER) == older
    assert decode(older, OLDER) == instruction


def test_micro_ops_by_hand() -> None:
    assert encode_uop(Uop(dst=0x401)) == 0x401
    assert encode_uop(Uop(src=0x401)) == 0x401 << 11
    assert encode_uop(Uop(wgt=0x201)) == 0x201 << 22


@pytest.mark.parametrize("encoding", [STANDARD, OLDER], ids=lambda e: e.name)
def test_fields_cover_the_word_once(encoding: Encoding) -> None:
    # unused: 63:58 of a transfer (one more in the older encoding), 63 of GEMM and ALU, the rest of FINISH
    older = encoding is OLDER
    unused = {0: 0x7F << 57 if older else 0x3F << 58, 2: 1 << 63, 3: (1 << 128) - 128}
    unused[4] = 1 << 63 | (1 << 127 if older else 0)
    for opcode, gap in unused.items():
        masks = [field.mask for field in encoding.of(opcode).values()]
        joined = 0
        for mask in masks:
            assert not joined & mask
            joined |= mask
        assert joined == (1 << 128) - 1 ^ gap


# -- round trips ----------------------------------------------------------------------------------------------

LAYOUTS = {Load: STANDARD.transfer, Store: STANDARD.transfer, Gemm: STANDARD.gemm, Alu: STANDARD.alu, Finish: {}}


@st.composite
def instructions(draw: Any, older: bool = False) -> Instruction:
    """Any instruction that has a word."""
    kind = draw(st.sampled_from(list(LAYOUTS)))
    values: dict[str, Any] = {}
    for entry in dataclasses.fields(kind):
        if entry.name == "memory":
            loaded = [m for m in MemoryId if m is not MemoryId.OUT and not (older and m >= 4)]
            values["memory"] = draw(st.sampled_from(loaded))
        elif entry.name == "alu_opcode":
            values["alu_opcode"] = draw(st.sampled_from([a for a in AluOp if not (older and a >= 4)]))
        elif entry.type == "bool":
            values[entry.name] = draw(st.booleans())
        else:
            field = LAYOUTS[kind][entry.name]
            low = -(1 << field.width - 1) if field.signed else 0
            values[entry.name] = draw(st.integers(low, low + (1 << field.width) - 1))
    unit = kind(**values).unit
    for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
        if flag not in token_queues(unit):
            values[flag] = False
    found: Instruction = kind(**values)
    return found


@given(instructions())
def test_instructions_round_trip_through_words_and_text(instruction: Instruction) -> None:
    word = encode(instruction)
    assert decode(word) == instruction
    text = format_instruction(instruction)
    assert parse_instruction(text) == instruction
    assert assemble(text) == [word]
    assert disassemble([word]) == text + "\n"


@given(instructions(older=True))
def test_instructions_round_trip_through_older_words(instruction: Instruction) -> None:
    assert decode(encode(instruction, OLDER), OLDER) == instruction


@given(st.integers(0, (1 << 128) - 1), st.integers(0, 4), st.integers(0, 5), st.sampled_from([STANDARD, OLDER]))
def test_words_round_trip_but_for_unused_bits(word: int, opcode: int, number: int, encoding: Encoding) -> None:
    word = word & ~7 | opcode
    for name in ("memory", "alu_opcode"):
        field = encoding.of(opcode).get(name)
        if field is not None and word & field.mask:
            word = word & ~field.mask | (number << field.low & field.mask)
    try:
        instruction = decode(word, encoding, strict=False)
    except IsaError:
        return
    unused = word ^ encode(instruction, encoding)
    assert word & unused == unused  # no bit is set that the word does not have
    if unused:
        with pytest.raises(IsaError):
            decode(word, encoding)
    else:
        assert decode(word, encoding) == instruction


@given(st.integers(0, (1 << 32) - 1))
def test_every_word_is_a_micro_op(word: int) -> None:
    assert encode_uop(decode_uop(word)) == word


@given(instructions(), st.data())
def test_truncation_loses_upper_bits_only(instruction: Instruction, data: st.DataObject) -> None:
    names = [e.name for e in dataclasses.fields(instruction) if e.name in STANDARD.of(instruction.opcode)]
    names = [n for n in names if STANDARD.of(instruction.opcode)[n].width > 3]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    field = STANDARD.of(instruction.opcode)[name]
    value = getattr(instruction, name) + data.draw(st.integers(1, 5)) * (1 << field.width)
    wide = dataclasses.replace(instruction, **{name: value})
    assert encode(wide, truncate=True) == encode(instruction)
    with pytest.raises(IsaError, match=f"^{name} of {instruction.opcode.name} must fit in"):
        encode(wide)


# -- units and tokens -----------------------------------------------------------------------------------------


def test_modules_and_queues() -> None:
    everything = dict.fromkeys(("pop_prev", "pop_next", "push_prev", "push_next"), True)
    by_unit = {
        Unit.LOAD: [Load(memory=m, **everything) for m in (MemoryId.INP, MemoryId.WGT)],
        Unit.STORE: [Store(**everything)],
        Unit.COMPUTE: [
            *(Load(memory=m, **everything) for m in (MemoryId.UOP, MemoryId.ACC, MemoryId.ACC_8BIT)),
            Gemm(**everything), Alu(alu_opcode=AluOp.ADD, **everything), Finish(**everything),
        ],
    }  # fmt: skip
    queues = {
        Unit.LOAD: (("g2l",), ("l2g",)),
        Unit.COMPUTE: (("l2g", "s2g"), ("g2l", "g2s")),
        Unit.STORE: (("g2s",), ("s2g",)),
    }
    for unit, members in by_unit.items():
        for instruction in members:
            assert instruction.unit == unit
            assert (instruction.pops(), instruction.pushes()) == queues[unit]


# -- messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            Load(memory=MemoryId.INP, y_pad_0=16),
            "y_pad_0 of LOAD must fit in 4 bits (0 .. 15), not 16; split the instruction, or encode it with "
            "truncate=True to lose the upper bits as drivers do",
        ),
        (
            Store(x_size=65536),
            "x_size of STORE must fit in 16 bits (0 .. 65535), not 65536; split the instruction, or encode it with "
            "truncate=True to lose the upper bits as drivers do",
        ),
        (
            Gemm(dst_factor_out=2048),
            "dst_factor_out of GEMM must fit in 11 bits (0 .. 2047), not 2048; split the instruction, or encode it "
            "with truncate=True to lose the upper bits as drivers do",
        ),
        (
            Alu(alu_opcode=AluOp.ADD, imm=32768),
            "imm of ALU must fit in 16 bits (-32768 .. 32767), not 32768; split the instruction, or encode it with "
            "truncate=True to lose the upper bits as drivers do",
        ),
        (
            Store(pop_next=True),
            "pop_next must be 0 in an instruction of the store module, which has no such neighbour; clear it",
        ),
        (Gemm(iter_in=1.5), "iter_in of GEMM must be an integer, not 1.5; correct it"),  # type: ignore[arg-type]
    ],
)
def test_messages_of_encoding(instruction: Instruction, message: str) -> None:
    with pytest.raises(IsaError) as error:
        encode(instruction)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            5,
            "opcode (bits 2:0) must be 0 (LOAD), 1 (STORE), 2 (GEMM), 3 (FINISH) or 4 (ALU), not 5; correct the word",
        ),
        (
            4 << 7,
            "memory of LOAD must be one of 0 (UOP), 1 (WGT), 2 (INP), 3 (ACC), 5 (ACC_8BIT), not 4; correct the word",
        ),
        (1, "memory of STORE must be 4 (OUT), not 0; correct the word"),
        (
            4 | 5 << 108,
            "alu_opcode must be one of 0 (MIN), 1 (MAX), 2 (ADD), 3 (SHR), 4 (MUL), not 5; correct the word",
        ),
        (
            2 | 1 << 63,
            "Bit 63 of GEMM must be 0, not set; clear it, or decode the word with strict=False to ignore it as "
            "hardware does",
        ),
        (
            1 | 4 << 7 | 3 << 112,
            "y_pad_0 of STORE, which it does not have, must be 0, not set; clear it, or decode the word with "
            "strict=False to ignore it as hardware does",
        ),
        (
            4 | 1 << 7,
            "reset_reg of ALU, which it does not have, must be 0, not set; clear it, or decode the word with "
            "strict=False to ignore it as hardware does",
        ),
        (
            2 << 7 | 1 << 3,
            "pop_prev must be 0 in an instruction of the load module, which has no such neighbour; clear bit 3",
        ),
        (1 << 128, f"Instruction must have 128 bits, not 129 ({1 << 128:#x})"),
    ],
)
def test_messages_of_decoding(word: int, message: str) -> None:
    with pytest.raises(IsaError) as error:
        decode(word)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "finish\nhalt",
            "Line 2: Instruction must be one of load.uop, load.wgt, load.inp, load.acc, load.acc_8bit, store, gemm, "
            "alu.min, alu.max, alu.add, alu.shr, alu.mul, finish, not 'halt'; correct it",
        ),
        (
            "store size=3",
            "Line 1: size must be written size=NUMBERxNUMBER, not size=3; correct it",
        ),
        (
            "# only a comment\n\nstore wgt=1,2",
            "Line 3: Operand of store must be one of sram=, dram=, size=, stride=, pop=, push=, not 'wgt=1,2'; "
            "remove it",
        ),
        (
            "gemm pop",
            "Line 1: Operand of gemm must be one of uops=, iters=, dst=, src=, wgt=, pop=, push=, reset, not 'pop'; "
            "remove it",
        ),
        ("gemm uops=0:1 uops=0:1", "Line 1: uops must be given once, not twice; remove one"),
        (
            "alu.add imm=1 idle_imm=1",
            "Line 1: imm and idle_imm must not be given both: they are one field; remove idle_imm",
        ),
        (
            "load.inp pop=s2g",
            "Line 1: pop of an instruction of the load module must name g2l, not 's2g'; correct it",
        ),
        (
            "gemm push=l2g",
            "Line 1: push of an instruction of the compute module must name g2l or g2s, not 'l2g'; correct it",
        ),
        (
            "load.inp pad=16,0,0,0",
            "Line 1: y_pad_0 of LOAD must fit in 4 bits (0 .. 15), not 16; split the instruction, or encode it with "
            "truncate=True to lose the upper bits as drivers do",
        ),
    ],
)
def test_messages_of_assembly(text: str, message: str) -> None:
    with pytest.raises(AssemblyError) as error:
        assemble(text)
    assert str(error.value) == message


def test_messages_of_micro_ops_and_disassembly() -> None:
    with pytest.raises(IsaError) as error:
        encode_uop(Uop(wgt=1024))
    assert str(error.value) == (
        "wgt of a micro-op must fit in 10 bits (0 .. 1023), not 1024; use the loops' factors to reach it"
    )
    with pytest.raises(IsaError, match=r"^Instruction 2: opcode \(bits 2:0\) must be"):
        disassemble([3, 7])


def test_numbers_of_assembly() -> None:
    assert parse_instruction("store size=0x10x0x20 sram=0X1f") == Store(y_size=16, x_size=32, x_stride=32, sram_base=31)
    assert parse_instruction("alu.max imm=-0x80") == Alu(alu_opcode=AluOp.MAX, use_imm=True, imm=-128)
