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

    def iterations(self, x: Gemm | Alu) -> list[tuple[int, int, int]]:
        """Destination, source and tile of each iteration."""
        o = self.options
        outer, inner, end = x.iter_out, x.iter_in, x.uop_end
        if o.zero_iterations == "do_while":
            outer, inner, end = max(outer, 1), max(inner, 1), max(end, x.uop_bgn + 1)
        found = []
        for i in range(outer):
            for j in range(inner):
                for u in range(x.uop_bgn, end):
                    word = int(self.uop[u % len(self.uop)])
                    dst, src, wgt = word & 2047, word >> 11 & 2047, word >> 22
                    dst = (dst + i * x.dst_factor_out + j * x.dst_factor_in) % 2048
                    src = (src + i * x.src_factor_out + j * x.src_factor_in) % 2048
                    if isinstance(x, Gemm):
                        wgt = (wgt + i * x.wgt_factor_out + j * x.wgt_factor_in) % 1024
                    found.append((dst, src, wgt))
        return found

    def refused(self, x: Gemm | Alu) -> bool:
        """Whether an accumulator is read too soon, where that is refused."""
        o = self.options
        if o.back_to_back not in ("refused", "refused_alu"):
            return False
        latency = o.write_latency if o.back_to_back == "refused" else 1
        if isinstance(x, Gemm):
            product = not x.reset_reg or (o.store_source == "out" and o.gemm_reset == "zero_out_dot")
            reads = (0,) if product and o.back_to_back == "refused" else ()
        elif x.alu_opcode is AluOp.MUL and o.mul == "unchanged":
            reads = ()
        elif o.back_to_back == "refused_alu":
            reads = (0,) if x.use_imm else (1,)
        elif x.use_imm:
            reads = (1,) if o.immediate_operand == "source" else (0,)
        else:
            reads = (0, 1)
        steps = self.iterations(x)
        return any(
            steps[n][r] == earlier[0]
            for n in range(len(steps))
            for earlier in steps[max(0, n - latency) : n]
            for r in reads
        )

    def loops(self, x: Gemm | Alu) -> None:
        latency = self.options.write_latency if self.options.back_to_back == "stale" else 0
        pending: list[tuple[int, np.ndarray]] = []
        for dst, src, tile in self.iterations(x):
            result = self.gemm(x, dst, src, tile) if isinstance(x, Gemm) else self.alu(x, dst, src)
            if result is not None:
                pending.append((dst, result))
            if len(pending) > latency:
                row, value = pending.pop(0)
                self.acc[row] = value
        for row, value in pending:
            self.acc[row] = value

    def gemm(self, x: Gemm, dst: int, src: int, tile: int) -> np.ndarray:
        dot = self.wgt[tile].astype(np.int64) @ self.inp[src].astype(np.int64)
        total = wrap(self.acc[dst].astype(np.int64) + dot)
        if not x.reset_reg:
            self.out[dst] = total.astype(np.int8)
            return total
        match self.options.gemm_reset:
            case "zero":
                self.out[dst] = 0
            case "zero_out_dot":
                self.out[dst] = total.astype(np.int8)
        return np.zeros(16, np.int32)

    def alu(self, x: Alu, dst: int, src: int) -> np.ndarray | None:
        first = src if x.use_imm and self.options.immediate_operand == "source" else dst
        a = [int(v) for v in self.acc[first]]
        b = [x.imm] * 16 if x.use_imm else [int(v) for v in self.acc[src]]
        if x.alu_opcode is AluOp.MUL and self.options.mul == "unchanged":
            return None
        result = wrap(np.array([self.combine(x, p, q) for p, q in zip(a, b, strict=True)], dtype=object))
        self.out[dst] = result.astype(np.int8)
        return result

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
