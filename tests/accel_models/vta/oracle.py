"""VTA's instructions in NumPy, written from its description, to compare the model with.

Whole arrays of elements; nothing is shared with the model but the instruction classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load, MemoryId, Store
from accel_models.vta.options import VtaOptions

ROWS = {MemoryId.INP: 16, MemoryId.WGT: 256, MemoryId.ACC: 64, MemoryId.UOP: 4, MemoryId.ACC_8BIT: 16}


class Oracle:
    """Scratchpads as arrays of elements, DRAM as an array of bytes."""

    def __init__(self, options: VtaOptions, dram: np.ndarray) -> None:
        self.options, self.dram = options, dram.copy()
        self.inp = np.zeros((2048, 16), np.int8)
        self.wgt = np.zeros((1024, 16, 16), np.int8)
        self.acc = np.zeros((2048, 16), np.int32)
        self.out = np.zeros((2048, 16), np.int8)
        self.uop = np.zeros(options.uop_depth, np.uint32)

    def run(self, instruction: Instruction) -> None:
        match instruction:
            case Load():
                self.load(instruction)
            case Store():
                self.store(instruction)
            case Gemm() | Alu():
                self.loops(instruction)

    def load(self, x: Load) -> None:
        o = self.options
        pads = {
            MemoryId.INP: True,
            MemoryId.WGT: o.wgt_uop_padding == "honoured",
            MemoryId.UOP: o.wgt_uop_padding == "honoured",
        }.get(x.memory, o.acc_padding == "honoured")
        if x.x_size == 0 and o.empty_load == "nothing":
            return
        y_size = 1 if x.memory is MemoryId.UOP and not pads else x.y_size
        top, bottom, left, right = (x.y_pad_0, x.y_pad_1, x.x_pad_0, x.x_pad_1) if pads else (0, 0, 0, 0)
        size = ROWS[x.memory]
        image = np.zeros((top + y_size + bottom, left + x.x_size + right, size), np.uint8)
        for y in range(y_size):
            for c in range(x.x_size):
                at = (x.dram_base + y * x.x_stride + c) * size
                image[top + y, left + c] = self.dram[at : at + size]
        elements = np.ascontiguousarray(image).reshape(-1, size)
        memory, values = self.place(x.memory, elements)
        for i, value in enumerate(values):
            memory[(x.sram_base + i) % len(memory)] = value

    def place(self, memory: MemoryId, rows: np.ndarray) -> tuple[np.ndarray, Any]:
        match memory:
            case MemoryId.INP:
                return self.inp, rows.view(np.int8)
            case MemoryId.WGT:
                return self.wgt, rows.view(np.int8).reshape(-1, 16, 16)
            case MemoryId.ACC:
                return self.acc, rows.view("<i4")
            case MemoryId.UOP:
                return self.uop, rows.view("<u4")[:, 0]
            case _:
                return self.acc, rows.view(np.int8).astype(np.int32)

    def store(self, x: Store) -> None:
        source = self.out if self.options.store_source == "out" else self.acc.astype(np.int8)
        for y in range(x.y_size):
            for c in range(x.x_size):
                at = (x.dram_base + y * x.x_stride + c) * 16
                self.dram[at : at + 16] = source[(x.sram_base + y * x.x_size + c) % 2048].view(np.uint8)

    def loops(self, x: Gemm | Alu) -> None:
        o = self.options
        outer, inner, end = x.iter_out, x.iter_in, x.uop_end
        if o.zero_iterations == "do_while":
            outer, inner, end = max(outer, 1), max(inner, 1), max(end, x.uop_bgn + 1)
        for i in range(outer):
            for j in range(inner):
                for u in range(x.uop_bgn, end):
                    word = int(self.uop[u % len(self.uop)])
                    dst, src, wgt = word & 2047, word >> 11 & 2047, word >> 22
                    dst = (dst + i * x.dst_factor_out + j * x.dst_factor_in) % 2048
                    src = (src + i * x.src_factor_out + j * x.src_factor_in) % 2048
                    if isinstance(x, Gemm):
                        tile = (wgt + i * x.wgt_factor_out + j * x.wgt_factor_in) % 1024
                        self.gemm(x, dst, src, tile)
                    else:
                        self.alu(x, dst, src)

    def gemm(self, x: Gemm, dst: int, src: int, tile: int) -> None:
        dot = self.wgt[tile].astype(np.int64) @ self.inp[src].astype(np.int64)
        total = wrap(self.acc[dst].astype(np.int64) + dot)
        if not x.reset_reg:
            self.acc[dst], self.out[dst] = total, total.astype(np.int8)
            return
        self.acc[dst] = 0
        match self.options.gemm_reset:
            case "zero":
                self.out[dst] = 0
            case "zero_out_dot":
                self.out[dst] = total.astype(np.int8)

    def alu(self, x: Alu, dst: int, src: int) -> None:
        a = [int(v) for v in self.acc[dst]]
        b = [x.imm] * 16 if x.use_imm else [int(v) for v in self.acc[src]]
        if x.alu_opcode is AluOp.MUL and self.options.mul == "unchanged":
            return
        result = wrap(np.array([self.combine(x, p, q) for p, q in zip(a, b, strict=True)], dtype=object))
        self.acc[dst], self.out[dst] = result, result.astype(np.int8)

    def combine(self, x: Alu, a: int, b: int) -> int:
        match x.alu_opcode:
            case AluOp.MIN:
                return min(a, b)
            case AluOp.MAX:
                return max(a, b)
            case AluOp.ADD:
                return a + b
            case AluOp.MUL:
                return a * b
        match self.options.shr:
            case "full":
                return a >> b if b >= 0 else a << min(-b, 64)
            case "signed5":
                s = b % 32
                return a >> s if s < 16 else a << 32 - s
            case _:
                return a << (-b) % 32 if x.imm < 0 else a >> b % 32


def wrap(values: np.ndarray) -> np.ndarray:
    """The low 32 bits, signed."""
    return np.array([(int(v) + 2**31) % 2**32 - 2**31 for v in values], dtype=np.int64).astype(np.int32)
