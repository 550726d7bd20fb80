"""GEMM and ALU: micro-ops in two loops.

Micro-op u of iteration (y, x) works on the accumulator ``uop[u].dst + y * dst_factor_out + x * dst_factor_in``, and
likewise on an input vector (for the ALU, a second accumulator) and a weight tile.  Iterations happen in the order y,
x, u; :mod:`~accel_models.vta.nest` has the loops, and what an iteration finds of those before it.
"""

from __future__ import annotations

from ila_lang import Expr, Ila, Kernel, concat, const, ite, true

from .isa import AluOp, MemoryId
from .nest import Index, Nest
from .numerics import (
    alu_add,
    alu_max,
    alu_min,
    alu_mul,
    alu_shr,
    alu_shr_chisel,
    alu_shr_signed5,
    multiply,
    narrow,
    widen_imm,
)
from .options import VtaOptions
from .scratchpads import SCRATCHPADS
from .transfers import FieldOf

INP, WGT, ACC, OUT = (SCRATCHPADS[m] for m in (MemoryId.INP, MemoryId.WGT, MemoryId.ACC, MemoryId.OUT))


def uops_fit(field: FieldOf, options: VtaOptions) -> Expr:
    """Whether the range of micro-ops lies in their memory (an empty one is anywhere)."""
    if options.index_overflow == "truncated":
        return true
    begin, end = field("uop_bgn").zext(14), field("uop_end")
    if options.zero_iterations == "nothing":
        return (end <= options.uop_depth) | (end <= begin)
    return ite(end <= begin, begin < options.uop_depth, end <= options.uop_depth)


_DST = Index("dst", ACC)


def gemm_kernel(ila: Ila, options: VtaOptions, *, reset: bool) -> Kernel:
    """Adds input vector times weight tile to the accumulator: lane j gets the sum over k of inp[k] * wgt[j, k].

    With ``reset`` the accumulator becomes 0 instead.
    """
    kernel = Kernel("gemm_reset" if reset else "gemm", "clears accumulators" if reset else "adds matrix products")
    nest = Nest(ila, kernel, options)
    states, outputs = ila.states, options.store_source == "out"
    products = not reset or (outputs and options.gemm_reset == "zero_out_dot")
    src, wgt = Index("src", INP), Index("wgt", WGT)
    nest.refuse_overflow((_DST, src, wgt) if products else (_DST,))
    if options.back_to_back == "refused" and products:
        nest.refuse_revisits(_DST, (_DST,), options.write_latency)
    with nest.lanes("j") as (y, x, word, j):
        row, vector, tile = (nest.index(i, word, y, x) for i in (_DST, src, wgt))
        place = ACC.address(row, j)
        if products:
            total = kernel.let("total", const(0, 32))
            with kernel.loop("k", const(16, 5), 4) as k:
                a = kernel.load("a", states["inp"], INP.address(vector, k))
                b = kernel.load("b", states["wgt"], WGT.address(tile, concat(j, k)))
                kernel.assign(total, total + multiply(a, b))
            old = kernel.load("old", states["acc"], place)
            result = kernel.let("result", old + total)
        nest.write(place, const(0, 32) if reset else result)
        if outputs and (not reset or options.gemm_reset == "zero_out_dot"):
            kernel.store(states["out"], OUT.address(row, j), narrow(result))
        elif outputs and options.gemm_reset == "zero":
            kernel.store(states["out"], OUT.address(row, j), 0)
    return kernel


def alu_kernel(ila: Ila, operation: AluOp, options: VtaOptions, *, immediate: bool) -> Kernel:
    """Combines accumulator ``dst`` with the immediate or with accumulator ``src``, lane by lane, into ``dst``."""
    suffix = "_imm" if immediate else ""
    kernel = Kernel(f"alu_{operation.name.lower()}{suffix}", f"{operation.name} of accumulators, in place")
    nest = Nest(ila, kernel, options)
    states = ila.states
    src = Index("src", ACC)
    operands = {_DST, src} if not immediate else {src if options.immediate_operand == "source" else _DST}
    nest.refuse_overflow([i for i in (_DST, src) if i in {_DST} | operands])
    if operation == AluOp.MUL and options.mul == "unchanged":
        return kernel
    if options.back_to_back == "refused":
        nest.refuse_revisits(_DST, [i for i in (_DST, src) if i in operands], options.write_latency)
    elif options.back_to_back == "refused_alu":
        nest.refuse_revisits(_DST, (_DST,) if immediate else (src,), 1)
    with nest.lanes("lane") as (y, x, word, lane):
        row, other = nest.index(_DST, word, y, x), nest.index(src, word, y, x)
        first = other if immediate and options.immediate_operand == "source" else row
        a = kernel.load("a", states["acc"], ACC.address(first, lane))
        imm = states["loops_imm"]
        b = widen_imm(imm) if immediate else kernel.load("b", states["acc"], ACC.address(other, lane))
        result = kernel.let("result", _combine(operation, a, b, imm, options))
        nest.write(ACC.address(row, lane), result)
        if options.store_source == "out":
            kernel.store(states["out"], OUT.address(row, lane), narrow(result))
    return kernel


def _combine(operation: AluOp, a: Expr, b: Expr, imm: Expr, options: VtaOptions) -> Expr:
    if operation == AluOp.SHR:
        if options.shr == "chisel":
            return alu_shr_chisel(a, b, imm)
        return (alu_shr if options.shr == "full" else alu_shr_signed5)(a, b)
    table = {AluOp.MIN: alu_min, AluOp.MAX: alu_max, AluOp.ADD: alu_add, AluOp.MUL: alu_mul}
    return table[operation](a, b)
