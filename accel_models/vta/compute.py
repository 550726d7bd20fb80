"""GEMM and ALU: micro-ops in two loops.

Micro-op u of iteration (y, x) works on the accumulator ``uop[u].dst + y * dst_factor_out + x * dst_factor_in``, and
likewise on an input vector (for the ALU, a second accumulator) and a weight tile.  Iterations happen in the order y,
x, u and one after the other; the hazard that the hardware's pipelines have when an accumulator is the destination
twice in a row is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ila_lang import Expr, Ila, Kernel, concat, const, false, ite, true

from .isa import UOP_FIELDS, AluOp, Field, MemoryId
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
from .scratchpads import SCRATCHPADS, Scratchpad
from .transfers import FieldOf, scratchpad

__all__ = ["alu_kernel", "gemm_kernel", "uops_fit"]

INP, WGT, ACC, OUT = (SCRATCHPADS[m] for m in (MemoryId.INP, MemoryId.WGT, MemoryId.ACC, MemoryId.OUT))

# An index before it is cut to its scratchpad: products have at most 25 bits, and there are two.
INDEX = 27


def uops_fit(field: FieldOf, options: VtaOptions) -> Expr:
    """Whether the range of micro-ops lies in their memory (an empty one is anywhere)."""
    if options.index_overflow == "truncated":
        return true
    begin, end = field("uop_bgn").zext(14), field("uop_end")
    if options.zero_iterations == "nothing":
        return (end <= options.uop_depth) | (end <= begin)
    return ite(end <= begin, begin < options.uop_depth, end <= options.uop_depth)


@dataclass(frozen=True)
class _Index:
    """One of the three indices of a micro-op: its field, the prefix of its factors, the memory it selects from."""

    name: str
    pad: Scratchpad

    @property
    def field(self) -> Field:
        return UOP_FIELDS[self.name]


class _Nest:
    """The loops of one kernel, and what a micro-op's word means in them."""

    def __init__(self, ila: Ila, kernel: Kernel, options: VtaOptions) -> None:
        self.states, self.kernel, self.options = ila.states, kernel, options
        self.uops = scratchpad(MemoryId.UOP, options)
        begin, end = self.states["loops_uop_bgn"].zext(14), self.states["loops_uop_end"]
        self.begin = begin
        self.count = self._times(ite(begin < end, end - begin, const(0, 14)))
        self.outer, self.inner = (self._times(self.states[f"loops_iter_{side}"]) for side in ("out", "in"))

    def _times(self, count: Expr) -> Expr:
        return count if self.options.zero_iterations == "nothing" else ite(count == 0, const(1, 14), count)

    @contextmanager
    def run(self) -> Iterator[tuple[Expr, Expr, Expr]]:
        """Opens the three loops; gives y, x and the micro-op's word."""
        k = self.kernel
        with k.loop("y", self.outer) as y, k.loop("x", self.inner) as x, k.loop("u", self.count) as u:
            yield y, x, self._uop("uop_word", u)

    def _uop(self, name: str, u: Expr) -> Expr:
        return self.kernel.load(name, self.states["uop"], self.uops.address(self.begin + u, None))

    def index(self, index: _Index, word: Expr, y: Expr, x: Expr) -> Expr:
        """The element that a micro-op selects in iteration (y, x), before it is cut to the memory's depth."""
        field = index.field
        own = word[field.low + field.width - 1 : field.low].zext(INDEX)
        outer, inner = (self.states[f"loops_{index.name}_factor_{side}"].zext(INDEX) for side in ("out", "in"))
        return own + y.zext(INDEX) * outer + x.zext(INDEX) * inner

    def refuse_overflow(self, indices: Sequence[_Index]) -> None:
        """Sets the fault if any iteration's index lies beyond its memory: then the last iteration's does."""
        if self.options.index_overflow == "truncated":
            return
        k = self.kernel
        last_y, last_x = (ite(n == 0, n, n - 1) for n in (self.outer, self.inner))
        # Counts micro-ops instead of taking note of one: a sum does not depend on the order.
        count = k.let("overflows", const(0, 14))
        with k.loop("checked", self.count) as u:
            word = self._uop("checked_word", u)
            beyond = false
            for index in indices:
                beyond = beyond | (self.index(index, word, last_y, last_x) >= index.pad.depth)
            k.assign(count, count + ite(beyond, const(1, 14), const(0, 14)))
        with k.when("fault_found", ~(count == 0) & ~(self.outer == 0) & ~(self.inner == 0)):
            k.store(self.states["fault"], const(0, 1), 1)


_DST = _Index("dst", ACC)


def gemm_kernel(ila: Ila, options: VtaOptions, *, reset: bool) -> Kernel:
    """Adds input vector times weight tile to the accumulator: lane j gets the sum over k of inp[k] * wgt[j, k].

    With ``reset`` the accumulator becomes 0 instead.
    """
    kernel = Kernel("gemm_reset" if reset else "gemm", "clears accumulators" if reset else "adds matrix products")
    nest = _Nest(ila, kernel, options)
    states, outputs = ila.states, options.store_source == "out"
    products = not reset or (outputs and options.gemm_reset == "zero_out_dot")
    src, wgt = _Index("src", INP), _Index("wgt", WGT)
    nest.refuse_overflow((_DST, src, wgt) if products else (_DST,))
    with nest.run() as (y, x, word):
        row, vector, tile = (nest.index(i, word, y, x) for i in (_DST, src, wgt))
        with kernel.loop("j", const(16, 5), 4) as j:
            place = ACC.address(row, j)
            if products:
                total = kernel.let("total", const(0, 32))
                with kernel.loop("k", const(16, 5), 4) as k:
                    a = kernel.load("a", states["inp"], INP.address(vector, k))
                    b = kernel.load("b", states["wgt"], WGT.address(tile, concat(j, k)))
                    kernel.assign(total, total + multiply(a, b))
                old = kernel.load("old", states["acc"], place)
                result = kernel.let("result", old + total)
            kernel.store(states["acc"], place, 0 if reset else result)
            if outputs and (not reset or options.gemm_reset == "zero_out_dot"):
                kernel.store(states["out"], OUT.address(row, j), narrow(result))
            elif outputs and options.gemm_reset == "zero":
                kernel.store(states["out"], OUT.address(row, j), 0)
    return kernel


def alu_kernel(ila: Ila, operation: AluOp, options: VtaOptions, *, immediate: bool) -> Kernel:
    """Combines accumulator ``dst`` with the immediate or with accumulator ``src``, lane by lane, into ``dst``."""
    suffix = "_imm" if immediate else ""
    kernel = Kernel(f"alu_{operation.name.lower()}{suffix}", f"{operation.name} of accumulators, in place")
    nest = _Nest(ila, kernel, options)
    states = ila.states
    src = _Index("src", ACC)
    nest.refuse_overflow((_DST,) if immediate else (_DST, src))
    if operation == AluOp.MUL and options.mul == "unchanged":
        return kernel
    with nest.run() as (y, x, word), kernel.loop("lane", const(16, 5), 4) as lane:
        row = nest.index(_DST, word, y, x)
        a = kernel.load("a", states["acc"], ACC.address(row, lane))
        imm = states["loops_imm"]
        if immediate:
            b = widen_imm(imm)
        else:
            b = kernel.load("b", states["acc"], ACC.address(nest.index(src, word, y, x), lane))
        result = kernel.let("result", _combine(operation, a, b, imm, options))
        kernel.store(states["acc"], ACC.address(row, lane), result)
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
