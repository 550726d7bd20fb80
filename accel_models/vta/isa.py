"""VTA's instruction words and micro-ops, bit by bit.

An instruction has 128 bits, a micro-op 32.  Two encodings of instructions exist: the present one, and the older one of
the published ILA, whose memory and ALU numbers are one bit shorter.  Bits that no unit reads are *unused*: they are
written as 0, and :func:`decode` refuses words in which one is set.

Source: ``hw_spec.h`` of the public VTA repository (apache/tvm-vta) with the configuration of all its targets; the older
encoding is that of vta-ila (LeeOHzzZ/vta-ila).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar

INSTRUCTION_BITS = 128
UOP_BITS = 32
BLOCK = 16  # lanes of a vector, rows and columns of a weight tile


class IsaError(ValueError):
    """An instruction that has no word, or a word that is no instruction."""


class Opcode(IntEnum):
    """Bits 2:0 of an instruction."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class MemoryId(IntEnum):
    """The memory that a transfer concerns; ACC_8BIT loads bytes into ACC, sign-extended."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


class AluOp(IntEnum):
    """What the ALU does with two accumulators, or one and the immediate."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class Unit(IntEnum):
    """The three modules that execute instructions concurrently, each from a queue of its own."""

    LOAD = 0
    COMPUTE = 1
    STORE = 2


FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")

# Queue of tokens that each flag of each unit's instructions means.
_QUEUES: Mapping[Unit, Mapping[str, str]] = {
    Unit.LOAD: {"pop_next": "g2l", "push_next": "l2g"},
    Unit.COMPUTE: {"pop_prev": "l2g", "pop_next": "s2g", "push_prev": "g2l", "push_next": "g2s"},
    Unit.STORE: {"pop_prev": "g2s", "push_prev": "s2g"},
}


def token_queues(unit: Unit) -> Mapping[str, str]:
    """The token queue behind each flag that instructions of ``unit`` may set.

    >>> token_queues(Unit.STORE)
    {'pop_prev': 'g2s', 'push_prev': 's2g'}
    """
    return _QUEUES[unit]


@dataclass(frozen=True, slots=True)
class Field:
    """Bits ``low + width - 1`` down to ``low`` of a word."""

    low: int
    width: int
    signed: bool = False

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return (1 << self.width) - 1 << self.low

    def get(self, word: int) -> int:
        """The field's value in ``word``."""
        value = word >> self.low & (1 << self.width) - 1
        return value - (1 << self.width) if self.signed and value >> self.width - 1 else value

    def holds(self, value: int) -> bool:
        """Whether ``value`` fits."""
        low = -(1 << self.width - 1) if self.signed else 0
        return low <= value < low + (1 << self.width)

    def range_text(self) -> str:
        """The values that fit, as messages give them."""
        low = -(1 << self.width - 1) if self.signed else 0
        return f"{low} .. {low + (1 << self.width) - 1}"


@dataclass(frozen=True)
class Encoding:
    """The fields of each kind of instruction; the header (bits 6:0) is common to all."""

    name: str
    transfer: Mapping[str, Field]
    gemm: Mapping[str, Field]
    alu: Mapping[str, Field]
    finish: Mapping[str, Field]

    def of(self, opcode: int) -> Mapping[str, Field]:
        """The fields of instructions with this opcode."""
        if opcode in (Opcode.LOAD, Opcode.STORE):
            return self.transfer
        return {Opcode.GEMM: self.gemm, Opcode.ALU: self.alu, Opcode.FINISH: self.finish}[Opcode(opcode)]


_HEADER = {"opcode": Field(0, 3)} | {flag: Field(3 + i, 1) for i, flag in enumerate(FLAGS)}


def _row(start: int, *parts: tuple[str, int]) -> dict[str, Field]:
    row = {}
    for name, width in parts:
        row[name] = Field(start, width, signed=name == "imm")
        start += width
    return row


def _encoding(name: str, memory_bits: int, alu_bits: int) -> Encoding:
    transfer = _row(7, ("memory", memory_bits), ("sram_base", 16), ("dram_base", 32)) | _row(
        64, ("y_size", 16), ("x_size", 16), ("x_stride", 16),
        ("y_pad_0", 4), ("y_pad_1", 4), ("x_pad_0", 4), ("x_pad_1", 4),
    )  # fmt: skip
    loops = _row(7, ("reset_reg", 1), ("uop_bgn", 13), ("uop_end", 14), ("iter_out", 14), ("iter_in", 14)) | _row(
        64, ("dst_factor_out", 11), ("dst_factor_in", 11), ("src_factor_out", 11), ("src_factor_in", 11)
    )
    return Encoding(
        name,
        _HEADER | transfer,
        _HEADER | loops | _row(108, ("wgt_factor_out", 10), ("wgt_factor_in", 10)),
        _HEADER | loops | _row(108, ("alu_opcode", alu_bits), ("use_imm", 1), ("imm", 16)),
        _HEADER,
    )


STANDARD = _encoding("standard", 3, 3)
OLDER = _encoding("older", 2, 2)
ENCODINGS: Mapping[str, Encoding] = {e.name: e for e in (STANDARD, OLDER)}


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """What all instructions have: the tokens that are popped before and pushed after execution.

    ``prev`` and ``next`` name the neighbours in the order load, compute, store.
    """

    opcode: ClassVar[Opcode]
    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False

    @property
    def unit(self) -> Unit:
        """The module whose queue receives the instruction."""
        return Unit.COMPUTE

    def pops(self) -> tuple[str, ...]:
        """The token queues of which one token each must be there before this executes."""
        return tuple(q for flag, q in _QUEUES[self.unit].items() if flag.startswith("pop") and getattr(self, flag))

    def pushes(self) -> tuple[str, ...]:
        """The token queues that get one token each after this has executed."""
        return tuple(q for flag, q in _QUEUES[self.unit].items() if flag.startswith("push") and getattr(self, flag))


@dataclass(frozen=True, kw_only=True)
class Transfer(Instruction):
    """What LOAD and STORE have in common: ``y_size`` rows of ``x_size`` elements.

    Addresses count elements: ``sram_base`` those of the scratchpad; ``dram_base`` and the distance ``x_stride`` of rows
    count units of DRAM of the same size.
    """

    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 1
    x_size: int = 0
    x_stride: int = 0


@dataclass(frozen=True, kw_only=True)
class Load(Transfer):
    """DRAM to a scratchpad, surrounded by rows (``y_pad_*``) and columns (``x_pad_*``) of zeros."""

    opcode = Opcode.LOAD
    memory: MemoryId
    y_pad_0: int = 0
    y_pad_1: int = 0
    x_pad_0: int = 0
    x_pad_1: int = 0

    @property
    def unit(self) -> Unit:
        """Micro-ops and accumulators are loaded by the compute module."""
        return Unit.LOAD if self.memory in (MemoryId.INP, MemoryId.WGT) else Unit.COMPUTE


@dataclass(frozen=True, kw_only=True)
class Store(Transfer):
    """Output bytes of a scratchpad to DRAM."""

    opcode = Opcode.STORE

    @property
    def unit(self) -> Unit:
        """The store module."""
        return Unit.STORE


@dataclass(frozen=True, kw_only=True)
class Loops(Instruction):
    """What GEMM and ALU have in common: micro-ops ``uop_bgn`` .. ``uop_end`` - 1 in two loops around them.

    In iteration (y, x) the factors times y and x are added to the indices of each micro-op.
    """

    uop_bgn: int = 0
    uop_end: int = 0
    iter_out: int = 1
    iter_in: int = 1
    dst_factor_out: int = 0
    dst_factor_in: int = 0
    src_factor_out: int = 0
    src_factor_in: int = 0


@dataclass(frozen=True, kw_only=True)
class Gemm(Loops):
    """Products of input vectors with weight tiles, added to accumulators; with ``reset_reg`` accumulators become 0."""

    opcode = Opcode.GEMM
    reset_reg: bool = False
    wgt_factor_out: int = 0
    wgt_factor_in: int = 0


@dataclass(frozen=True, kw_only=True)
class Alu(Loops):
    """An operation on accumulators, in place; the second operand is ``imm`` (signed) if ``use_imm``."""

    opcode = Opcode.ALU
    alu_opcode: AluOp
    use_imm: bool = False
    imm: int = 0


@dataclass(frozen=True, kw_only=True)
class Finish(Instruction):
    """The end of a program."""

    opcode = Opcode.FINISH


def encode(instruction: Instruction, encoding: Encoding = STANDARD, *, truncate: bool = False) -> int:
    """The instruction's word.

    Raises IsaError where a value does not fit its field or a flag has no meaning for the unit.  With ``truncate`` the
    bits that do not fit are lost, as in the bit-field packers of the public drivers.

    >>> hex(encode(Finish(pop_next=True)))
    '0x13'
    """
    layout = encoding.of(instruction.opcode)
    label = instruction.opcode.name
    word = int(instruction.opcode)
    for name, value in _values(instruction, encoding):
        field = layout[name]
        if not truncate and not field.holds(value):
            raise IsaError(
                f"{name} of {label} must fit in {_bits(field.width)} ({field.range_text()}), not {value}; "
                "split the instruction, or encode it with truncate=True to lose the upper bits as drivers do"
            )
        if not truncate and name in FLAGS and value and name not in _QUEUES[instruction.unit]:
            raise IsaError(f"{_flag_text(name, instruction.unit)}; clear it")
        word |= (value & (1 << field.width) - 1) << field.low
    return word


def _values(instruction: Instruction, encoding: Encoding) -> Iterator[tuple[str, int]]:
    for entry in fields(instruction):
        value = getattr(instruction, entry.name)
        if not isinstance(value, int):
            raise IsaError(f"{entry.name} of {instruction.opcode.name} must be an integer, not {value!r}; correct it")
        yield entry.name, int(value)
    if isinstance(instruction, Store):
        # In the older encoding OUT's number 4 loses its upper bit; STORE has no other memory.
        yield "memory", MemoryId.OUT & (1 << encoding.transfer["memory"].width) - 1


def decode(word: int, encoding: Encoding = STANDARD, *, strict: bool = True) -> Instruction:
    """The instruction that a word of 128 bits means.

    Raises IsaError on an unknown opcode, memory or ALU operation and, if ``strict``, where an unused bit is set.

    >>> decode(0x13)
    Finish(pop_prev=False, pop_next=True, push_prev=False, push_next=False)
    """
    if not 0 <= word < 1 << INSTRUCTION_BITS:
        raise IsaError(f"Instruction must have {INSTRUCTION_BITS} bits, not {word.bit_length()} ({word:#x})")
    if word & 7 not in tuple(Opcode):
        raise IsaError(
            f"opcode (bits 2:0) must be 0 (LOAD), 1 (STORE), 2 (GEMM), 3 (FINISH) or 4 (ALU), not {word & 7}; "
            "correct the word"
        )
    opcode = Opcode(word & 7)
    values: dict[str, Any] = {name: field.get(word) for name, field in encoding.of(opcode).items() if name != "opcode"}
    kind = _KINDS[opcode]
    if opcode == Opcode.STORE:
        out = MemoryId.OUT & (1 << encoding.transfer["memory"].width) - 1
        if values["memory"] != out:
            raise IsaError(f"memory of STORE must be {out} (OUT), not {values['memory']}; correct the word")
    if opcode == Opcode.LOAD:
        if values["memory"] not in _LOADED:
            names = ", ".join(f"{int(m)} ({m.name})" for m in _LOADED)
            raise IsaError(f"memory of LOAD must be one of {names}, not {values['memory']}; correct the word")
        values["memory"] = MemoryId(values["memory"])
    if opcode == Opcode.ALU:
        if values["alu_opcode"] not in tuple(AluOp):
            names = ", ".join(f"{int(a)} ({a.name})" for a in AluOp)
            raise IsaError(f"alu_opcode must be one of {names}, not {values['alu_opcode']}; correct the word")
        values["alu_opcode"] = AluOp(values["alu_opcode"])
    entries = {entry.name: entry for entry in fields(kind)}
    for name in values.keys() & entries.keys():
        if entries[name].type in ("bool", bool):
            values[name] = bool(values[name])
    instruction = kind(**{name: value for name, value in values.items() if name in entries})
    meant = kind(**{n: getattr(instruction, n) for n in entries if n not in FLAGS or n in _QUEUES[instruction.unit]})
    if strict and meant != instruction:
        flag = next(n for n in FLAGS if getattr(instruction, n) and n not in _QUEUES[instruction.unit])
        raise IsaError(f"{_flag_text(flag, instruction.unit)}; clear bit {_HEADER[flag].low}")
    if strict and word != encode(meant, encoding):
        raise IsaError(_unused_text(word ^ encode(meant, encoding), encoding, opcode))
    return meant


def _unused_text(bits: int, encoding: Encoding, opcode: Opcode) -> str:
    low = (bits & -bits).bit_length() - 1
    names = [n for n, f in encoding.of(opcode).items() if f.mask & bits]
    what = f"{names[0]} of {opcode.name}, which it does not have," if names else f"Bit {low} of {opcode.name}"
    return f"{what} must be 0, not set; clear it, or decode the word with strict=False to ignore it as hardware does"


def _flag_text(flag: str, unit: Unit) -> str:
    return f"{flag} must be 0 in an instruction of the {unit.name.lower()} module, which has no such neighbour"


_KINDS: Mapping[Opcode, type[Instruction]] = {
    Opcode.LOAD: Load,
    Opcode.STORE: Store,
    Opcode.GEMM: Gemm,
    Opcode.FINISH: Finish,
    Opcode.ALU: Alu,
}
_LOADED = (MemoryId.UOP, MemoryId.WGT, MemoryId.INP, MemoryId.ACC, MemoryId.ACC_8BIT)


@dataclass(frozen=True, slots=True)
class Uop:
    """A micro-op: indices of an accumulator, an input vector (for the ALU, an accumulator) and a weight tile."""

    dst: int = 0
    src: int = 0
    wgt: int = 0


UOP_FIELDS: Mapping[str, Field] = {"dst": Field(0, 11), "src": Field(11, 11), "wgt": Field(22, 10)}


def encode_uop(uop: Uop) -> int:
    """The word of 32 bits; raises IsaError where an index does not fit.

    >>> hex(encode_uop(Uop(dst=1, src=2, wgt=3)))
    '0xc01001'
    """
    word = 0
    for name, field in UOP_FIELDS.items():
        value = getattr(uop, name)
        if not field.holds(value):
            raise IsaError(
                f"{name} of a micro-op must fit in {_bits(field.width)} ({field.range_text()}), not {value}; "
                "use the loops' factors to reach it"
            )
        word |= value << field.low
    return word


def decode_uop(word: int) -> Uop:
    """The micro-op of a word of 32 bits; every word is one."""
    if not 0 <= word < 1 << UOP_BITS:
        raise IsaError(f"Micro-op must have {UOP_BITS} bits, not {word.bit_length()} ({word:#x})")
    return Uop(**{name: field.get(word) for name, field in UOP_FIELDS.items()})


def _bits(count: int) -> str:
    return "1 bit" if count == 1 else f"{count} bits"
