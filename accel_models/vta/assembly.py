"""Assembly text of VTA instructions.

One instruction per line; ``#`` begins a comment.  Numbers are decimal or, with ``0x``, hexadecimal.  What is not
written is 0, except one row and one iteration, and a stride that is the row's size::

    load.inp  sram=0 dram=64 size=4x8 stride=8 pad=1,1,0,0 pop=g2l push=l2g
    gemm      uops=0:4 iters=16x4 dst=4,1 src=4,0 wgt=0,16 reset push=g2s
    alu.shr   uops=0:1 iters=1x16 dst=0,1 src=0,1 imm=8
    store     sram=0 dram=0 size=1x64 pop=g2s push=s2g
    finish    pop=s2g

``load`` names its memory (uop, wgt, inp, acc, acc_8bit), ``alu`` its operation (min, max, add, shr, mul).  ``size``
is rows x elements, ``pad`` is top, bottom, left, right; ``uops`` is begin:end, ``iters`` outer x inner; ``dst``,
``src`` and ``wgt`` are the factors of the outer and the inner loop.  An ``alu`` without ``imm`` combines two
accumulators; its immediate field, which Chisel reads nevertheless, is ``idle_imm``.  ``pop`` and ``push`` name
token queues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .isa import (
    STANDARD,
    Alu,
    AluOp,
    Encoding,
    Finish,
    Gemm,
    Instruction,
    IsaError,
    Load,
    Loops,
    MemoryId,
    Store,
    Transfer,
    Unit,
    decode,
    encode,
    token_queues,
)


class AssemblyError(IsaError):
    """Text that is no instruction; the message says in which line."""


_MOST_DIGITS = 40
"""The most digits of a number: longer ones fit no field."""
_NUMBER = "(-?0[xX][0-9a-fA-F]+|-?[0-9]+)"
_LOADED = {m.name.lower(): m for m in MemoryId if m is not MemoryId.OUT}
_ALU = {a.name.lower(): a for a in AluOp}
_MNEMONICS = (*(f"load.{m}" for m in _LOADED), "store", "gemm", *(f"alu.{a}" for a in _ALU), "finish")

# Text of each operand: what separates its numbers, and the fields they set.
_Shape = tuple[str, tuple[str, ...]]
_TRANSFER: Mapping[str, _Shape] = {
    "sram": ("", ("sram_base",)),
    "dram": ("", ("dram_base",)),
    "size": ("x", ("y_size", "x_size")),
    "stride": ("", ("x_stride",)),
}
_PAD: Mapping[str, _Shape] = {"pad": (",", ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"))}
_LOOPS: Mapping[str, _Shape] = {
    "uops": (":", ("uop_bgn", "uop_end")),
    "iters": ("x", ("iter_out", "iter_in")),
    "dst": (",", ("dst_factor_out", "dst_factor_in")),
    "src": (",", ("src_factor_out", "src_factor_in")),
}
_WGT: Mapping[str, _Shape] = {"wgt": (",", ("wgt_factor_out", "wgt_factor_in"))}
_IMM: Mapping[str, _Shape] = {"imm": ("", ("imm",)), "idle_imm": ("", ("imm",))}
# Operands that are written even if they say what is the case anyway.
_ALWAYS = ("sram", "dram", "size", "uops", "iters")


def parse_instruction(text: str) -> Instruction:
    """The instruction of one line without comment; raises AssemblyError.

    >>> parse_instruction("store sram=0 dram=16 size=1x4 pop=g2s").pops()
    ('g2s',)
    """
    mnemonic, *operands = text.split()
    name, _, variant = mnemonic.partition(".")
    make: Callable[..., Instruction]
    values: dict[str, Any] = {}
    if mnemonic not in _MNEMONICS:
        raise AssemblyError(f"Instruction must be one of {', '.join(_MNEMONICS)}, not {mnemonic!r}; correct it")
    shapes: Mapping[str, _Shape]
    match name:
        case "load":
            make, shapes, values["memory"] = Load, {**_TRANSFER, **_PAD}, _LOADED[variant]
        case "store":
            make, shapes = Store, _TRANSFER
        case "gemm":
            make, shapes = Gemm, {**_LOOPS, **_WGT}
        case "alu":
            make, shapes, values["alu_opcode"] = Alu, {**_LOOPS, **_IMM}, _ALU[variant]
        case _:
            make, shapes = Finish, {}
    tokens: list[tuple[str, str]] = []
    seen: set[str] = set()
    for operand in operands:
        key, equals, value = operand.partition("=")
        if key in seen:
            raise AssemblyError(f"{key} must be given once, not twice; remove one")
        seen.add(key)
        if operand == "reset" and name == "gemm":
            values["reset_reg"] = True
        elif key in ("pop", "push") and equals:
            tokens += [(key, queue) for queue in value.split(",")]
        elif key in shapes and equals:
            values |= _numbers(key, value, *shapes[key])
        else:
            known = [f"{k}=" for k in (*shapes, "pop", "push")] + ["reset"] * (name == "gemm")
            raise AssemblyError(f"Operand of {mnemonic} must be one of {', '.join(known)}, not {operand!r}; remove it")
    if "imm" in seen and "idle_imm" in seen:
        raise AssemblyError("imm and idle_imm must not be given both: they are one field; remove idle_imm")
    values |= {"use_imm": True} if "imm" in seen else {}
    if name in ("load", "store") and "stride" not in seen:
        values["x_stride"] = values.get("x_size", 0)
    unit = make(**values).unit
    for direction, queue in tokens:
        values[_flag(direction, queue, unit)] = True
    instruction = make(**values)
    try:
        encode(instruction)
    except IsaError as error:
        raise AssemblyError(str(error)) from None
    return instruction


def _numbers(key: str, text: str, separator: str, names: tuple[str, ...]) -> dict[str, int]:
    match = re.fullmatch(separator.join([_NUMBER] * len(names)), text, re.ASCII)
    if match is None:
        raise AssemblyError(
            f"{key} must be written {key}={separator.join(['NUMBER'] * len(names))}, not {key}={text}; correct it"
        )
    longest = max(map(len, match.groups()))
    if longest > _MOST_DIGITS:
        raise AssemblyError(f"{key} must have numbers of at most {_MOST_DIGITS} digits, not {longest}; correct it")
    return {name: int(part, 0 if "x" in part.lower() else 10) for name, part in zip(names, match.groups(), strict=True)}


def _flag(direction: str, queue: str, unit: Unit) -> str:
    flags = {q: flag for flag, q in token_queues(unit).items() if flag.startswith(direction)}
    if queue not in flags:
        raise AssemblyError(
            f"{direction} of an instruction of the {unit.name.lower()} module must name {' or '.join(flags)}, "
            f"not {queue!r}; correct it"
        )
    return flags[queue]


def format_instruction(instruction: Instruction) -> str:
    """The instruction's text; :func:`parse_instruction` reads it back.

    >>> format_instruction(Gemm(uop_end=4, iter_in=4, dst_factor_in=1, push_next=True))
    'gemm      uops=0:4 iters=1x4 dst=0,1 push=g2s'
    """
    name = instruction.opcode.name.lower()
    operands: list[str] = []

    def write(shapes: Mapping[str, _Shape]) -> None:
        for key, (separator, names) in shapes.items():
            values = [getattr(instruction, n) for n in names]
            if key in _ALWAYS or any(values):
                operands.append(f"{key}={separator.join(map(str, values))}")

    match instruction:
        case Transfer():
            write({k: v for k, v in _TRANSFER.items() if k != "stride"})
            if instruction.x_stride != instruction.x_size:
                operands.append(f"stride={instruction.x_stride}")
            if isinstance(instruction, Load):
                name += "." + instruction.memory.name.lower()
                write(_PAD)
        case Loops():
            write(_LOOPS)
            if isinstance(instruction, Gemm):
                write(_WGT)
                operands += ["reset"] * instruction.reset_reg
            if isinstance(instruction, Alu):
                name += "." + instruction.alu_opcode.name.lower()
                if instruction.use_imm or instruction.imm:
                    operands.append(f"{'imm' if instruction.use_imm else 'idle_imm'}={instruction.imm}")
    for word, queues in (("pop", instruction.pops()), ("push", instruction.pushes())):
        operands += [f"{word}={','.join(queues)}"] if queues else []
    return f"{name:<9} {' '.join(operands)}".rstrip()


def assemble(text: str, encoding: Encoding = STANDARD) -> list[int]:
    """The words of the instructions in ``text``.

    Raises AssemblyError with the number of the line.

    >>> [hex(w) for w in assemble("finish  # nothing else")]
    ['0x3']
    """
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0]
        if code.strip():
            try:
                words.append(encode(parse_instruction(code), encoding))
            except IsaError as error:
                raise AssemblyError(f"Line {number}: {error}") from None
    return words


def disassemble(words: Iterable[int], encoding: Encoding = STANDARD) -> str:
    """One line per word; raises IsaError with the number of a word that is no instruction."""
    lines = []
    for number, word in enumerate(words, 1):
        try:
            lines.append(format_instruction(decode(word, encoding)))
        except IsaError as error:
            raise IsaError(f"Instruction {number}: {error}") from None
    return "".join(line + "\n" for line in lines)
