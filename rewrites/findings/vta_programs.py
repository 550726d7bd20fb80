"""Short VTA programs that distinguish two readings of the instruction set, found and shrunk by Hypothesis.

A program runs on the interpreter with fixed contents: accumulators to load in DRAM, inputs of 9, weights that are the
identity.  The results of a STORE afterwards are compared.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from accel_models.vta.assembly import format_instruction
from accel_models.vta.isa import (
    ENCODINGS,
    Alu,
    AluOp,
    Gemm,
    Instruction,
    IsaError,
    Load,
    MemoryId,
    Store,
    Uop,
    encode,
    encode_uop,
)
from accel_models.vta.model import vta
from accel_models.vta.options import VtaOptions
from ila_lang import CommandError, Machine

from .search import simplest

ACCUMULATORS = (3, -5, 100, 1 << 20, -(1 << 20), 16, 17, 31)
"""The contents of DRAM for LOADs of ACC, by element; all lanes hold the same."""

_OUTPUT = 4096  # element of DRAM where outputs go
_ROWS = 4  # elements that are stored


def alu(operation: AluOp, imm: int | None) -> Alu:
    """An ALU instruction on accumulator 0, with an immediate or with itself."""
    return Alu(alu_opcode=operation, uop_end=1, use_imm=imm is not None, imm=imm or 0)


loads_of_acc = st.builds(
    lambda at: Load(memory=MemoryId.ACC, dram_base=at, x_size=1, x_stride=1), st.integers(0, len(ACCUMULATORS) - 1)
)
gemms = st.builds(
    lambda end, outer, inner, reset: Gemm(uop_end=end, iter_out=outer, iter_in=inner, reset_reg=reset),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
    st.booleans(),
)
alus = st.builds(alu, st.sampled_from(list(AluOp)), st.none() | st.integers(0, 20) | st.integers(-20, -1))
padded_loads = st.builds(
    lambda memory, y, x, pads: Load(
        memory=memory,
        dram_base=16 if memory is MemoryId.INP else 0,
        y_size=y,
        x_size=x,
        x_stride=1,
        y_pad_0=pads[0],
        y_pad_1=pads[1],
        x_pad_0=pads[2],
        x_pad_1=pads[3],
    ),
    st.sampled_from([MemoryId.INP, MemoryId.ACC]),
    st.integers(0, 2),
    st.integers(0, 1),
    st.tuples(*[st.integers(0, 1)] * 4),
)
# each lane of the input counts in one output channel: outputs show inputs
shows_inputs = st.just(Gemm(uop_end=1, iter_out=4, dst_factor_out=1, src_factor_out=1))
repeating = st.one_of(
    st.builds(
        lambda outer, factor, reset: Gemm(uop_end=1, iter_out=outer, dst_factor_out=factor, reset_reg=reset),
        st.integers(1, 3),
        st.integers(0, 1),
        st.booleans(),
    ),
    st.builds(
        lambda outer, factor, imm: Alu(
            alu_opcode=AluOp.ADD,
            uop_end=1,
            iter_out=outer,
            dst_factor_out=factor,
            src_factor_out=factor,
            use_imm=True,
            imm=imm,
        ),
        st.integers(1, 3),
        st.integers(0, 1),
        st.integers(1, 5),
    ),
)
"""GEMM, or ALU with an immediate, in up to three iterations on one accumulator or on one after the other."""
striding = st.builds(
    lambda outer, inner, factors: Alu(
        alu_opcode=AluOp.ADD,
        uop_end=1,
        iter_out=outer,
        iter_in=inner,
        dst_factor_out=factors[0],
        dst_factor_in=factors[1],
        src_factor_out=factors[0],
        src_factor_in=factors[1],
        use_imm=True,
        imm=1,
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.tuples(*[st.sampled_from([0, 1, 683, 1024, 2047])] * 2),
)
"""ALU with an immediate, in steps that may lead beyond the accumulators."""
programs = st.lists(st.one_of(loads_of_acc, gemms, alus, padded_loads, shows_inputs), min_size=1, max_size=3)


def outputs(program: list[Instruction], options: VtaOptions) -> list[int] | str:
    """The first bytes of four output elements after the program and a STORE, on a new interpreter.

    It is "refused" where the model refuses an instruction or finds it undefined, and "no such word" where the encoding
    lacks one.
    """
    machine = Machine(vta(options))
    machine.memories["uop"][0] = encode_uop(Uop(src=0, dst=0))
    machine.memories["inp"].update(dict.fromkeys(range(64), 9))
    machine.memories["wgt"].update({17 * i: 1 for i in range(16)})
    dram = machine.memories["dram"]
    for element, value in enumerate(ACCUMULATORS):
        word = (value & 0xFFFFFFFF).to_bytes(4, "little") * 16
        dram.update({64 * element + i: byte for i, byte in enumerate(word)})
    if any(loads_inputs(x) for x in program):
        # row r of the inputs is r + 1; they lie in the same bytes as accumulators 4 to 7
        dram.update({256 + i: 1 + i // 16 for i in range(64)})
    try:
        for instruction in [*program, Store(dram_base=_OUTPUT, x_size=_ROWS, x_stride=_ROWS)]:
            machine.step({"command": 0, "insn": encode(instruction, ENCODINGS[options.encoding])})
    except CommandError:
        return "refused"
    except IsaError:
        return "no such word"
    return [dram[16 * (_OUTPUT + row)] for row in range(_ROWS)]


def loads_inputs(instruction: Instruction) -> bool:
    """Whether an instruction is a LOAD of INP."""
    return isinstance(instruction, Load) and instruction.memory is MemoryId.INP


def difference(
    left: VtaOptions, right: VtaOptions, within: st.SearchStrategy[Any] = programs, examples: int = 2000
) -> list[Instruction] | None:
    """A shrunk program that distinguishes two readings, or None if none is among ``examples``."""
    return simplest(within, lambda program: outputs(program, left) != outputs(program, right), examples=examples)


def text(program: list[Instruction]) -> list[str]:
    """The program's assembly, one line per instruction, without alignment."""
    return [" ".join(format_instruction(x).split()) for x in program]
