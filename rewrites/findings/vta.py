"""VTA: where public implementations of one instruction set disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load
from accel_models.vta.numerics import alu_shr, alu_shr_signed5
from accel_models.vta.options import HLS, PRESETS, VtaOptions
from accel_models.vta.order.revisits import first_revisit
from ila_lang import Expr, bv, const, ite, var

from .finding import Finding, NotFound, require, table
from .queries import prove, smallest_counterexample
from .vta_programs import (
    ACCUMULATORS,
    alu,
    difference,
    gemms,
    loads_inputs,
    loads_of_acc,
    outputs,
    padded_loads,
    programs,
    repeating,
    shows_inputs,
    striding,
    text,
)

_Programs = st.SearchStrategy[Any]

HARMLESS: _Programs = st.lists(
    st.builds(alu, st.sampled_from([AluOp.MIN, AluOp.MAX, AluOp.ADD]), st.none() | st.integers(-20, 20)),
    min_size=1,
    max_size=2,
).flatmap(lambda steps: loads_of_acc.map(lambda load: [load, *steps]))
"""A LOAD of ACC and one or two of MIN, MAX and ADD."""

SHIFTS: _Programs = st.tuples(st.integers(0, 31), loads_of_acc).map(lambda p: [p[1], alu(AluOp.SHR, p[0])])
"""A LOAD of ACC and a shift right by 0 to 31."""

_LIMITS = (
    "all columns are readings of this model (`VtaOptions`), taken from published sources, none of which ran here. "
)
_CONTENTS = f"""\
Before, all lanes of DRAM's accumulators 0, 1, ... hold {", ".join(map(str, ACCUMULATORS))}; inputs are 9, weights the
identity, the scratchpads of accumulators and outputs 0. Where a program loads inputs, row r of DRAM's holds r + 1.
First bytes of the four output elements, by reading:"""
FEW = 200
"""Programs drawn where readings should agree."""


@dataclass(frozen=True)
class Difference:
    """A reading that differs from that of the HLS design: a finding without its search.

    Programs ``within`` a strategy, ``what`` in words, are searched for one that distinguishes both.  Those that
    ``agree``, programs ``alike`` in words, must not; or ``holds`` says what does.  ``readings`` are shown beside the
    published ones.
    """

    name: str
    title: str
    claim: str
    other: VtaOptions
    what: str
    within: _Programs
    agree: _Programs
    limits: str
    alike: str = ""
    holds: str = ""
    method: str = ""
    counterexample: str = ""
    status: str = "REFUTED, each run on new interpreters"
    readings: tuple[tuple[str, VtaOptions], ...] = ()

    def finding(self) -> Finding:
        """What is found now; raises NotFound where no program distinguishes the readings, or one does that must not."""
        program = difference(HLS, self.other, self.within)
        if program is None:
            raise NotFound("no program tells the readings apart")
        exception = difference(HLS, self.other, self.agree, examples=FEW)
        require(exception is None, f"readings differ where they should agree: {text(exception or [])}")
        alike = f"no difference in {FEW} random programs {self.alike} (no proof)" if self.alike else ""
        return Finding(
            name=self.name,
            title=self.title,
            claim=self.claim,
            method=f"Hypothesis draws programs of {self.what}, runs each in two readings on the interpreter, compares "
            f"what a STORE leaves, and shrinks.{self.method}",
            counterexample="; ".join(f"`{line}`" for line in text(program)) + self.counterexample,
            holds=alike + self.holds,
            status=self.status,
            limits=_LIMITS + self.limits,
            evidence=self._evidence(program),
        )

    def _evidence(self, program: list[Instruction]) -> tuple[str, ...]:
        lines = "\n".join([*text(program), "store sram=0 dram=4096 size=1x4"])
        readings = [*PRESETS.items(), *self.readings]
        results = [(name, outputs(program, options)) for name, options in readings]
        require(len({str(result) for _, result in results}) > 1, "the program found does not replay")
        return f"```text\n{lines}\n```", _CONTENTS, table(["reading", "outputs"], results)


# -- claims about numbers -------------------------------------------------------------------------------------


_A, _B = var("a", bv(32)), var("b", bv(32))


def same_shift(low: int, high: int) -> Expr:
    """The claim that both readings of SHR agree for amounts between two signed numbers."""
    outside = _B.slt(const(low & 0xFFFFFFFF, 32)) | const(high & 0xFFFFFFFF, 32).slt(_B)
    return outside | (alu_shr(_A, _B) == alu_shr_signed5(_A, _B))


def step_of_indices(depth: int) -> Expr:
    """One step of an induction: an index that comes to the depth or beyond has been between it and twice the depth.

    Indices grow from a micro-op's own, which is below the depth, by one factor at a time, which are below it, too.
    """

    before, step, seen = var("before", bv(28)), var("step", bv(28)), var("seen", bv(1))

    def met(value: Expr, seen: Expr) -> Expr:
        return (value < depth) | (seen == 1)

    after = before + step
    between = ite((after >= depth) & (after < 2 * depth), const(1, 1), seen)
    # indices have at most 27 bits
    return (met(before, seen) & (before[27] == 0) & (step < depth)).implies(met(after, between))


# -- the findings ----------------------------------------------------------------------------------------------


def _multiplies(x: Instruction) -> bool:
    return isinstance(x, Alu) and x.alu_opcode is AluOp.MUL


def _runs(x: Instruction) -> bool:
    return not isinstance(x, Gemm | Alu) or 0 not in (x.iter_out, x.iter_in, x.uop_end - x.uop_bgn)


def _whole_rows(program: list[Instruction]) -> bool:
    load = program[0]
    return isinstance(load, Load) and (load.y_size < 2 or not (load.x_pad_0 or load.x_pad_1))


def _inside(x: Instruction) -> bool:
    return isinstance(x, Alu) and (x.iter_out - 1) * x.dst_factor_out + (x.iter_in - 1) * x.dst_factor_in < 2048


_LATE = replace(HLS, back_to_back="stale", write_latency=2)
_PADDED: _Programs = st.tuples(padded_loads.filter(loads_inputs), shows_inputs).map(list)
_REPEATING: _Programs = st.lists(repeating, min_size=1, max_size=2)
_STRIDING: _Programs = striding.map(lambda x: [x])


def _apart(x: Instruction) -> bool:
    return isinstance(x, Gemm | Alu) and first_revisit(x, {}, _LATE, 2) is None


STALE = Difference(
    "vta_stale",
    "VTA: a STORE after a LOAD stores old outputs",
    "a STORE gives the low bytes of the accumulators",
    replace(HLS, store_source="acc"),
    "up to three instructions",
    programs,
    HARMLESS,
    "Programs that compute on every accumulator between its LOAD and the STORE are not affected.",
    alike="in which MIN, MAX or ADD follows the LOAD",
)
"""STORE reads a memory of its own, which a LOAD of ACC does not write."""
RESET = Difference(
    "vta_reset",
    "VTA: a GEMM that resets leaves its product in the outputs",
    "a GEMM with reset gives outputs of 0, as it gives accumulators of 0",
    replace(HLS, gemm_reset="zero"),
    "one or two GEMMs",
    st.lists(gemms, min_size=1, max_size=2),
    st.lists(gemms.filter(lambda g: not g.reset_reg), min_size=1, max_size=2),
    "Accumulators are 0 in every reading; a GEMM or ALU on them before the STORE writes their outputs again.",
    alike="of GEMMs without reset",
)
"""GEMM with reset_reg clears accumulators, and not the outputs."""
SHIFT = Difference(
    "vta_shr",
    "VTA: a shift right by 16 shifts left",
    "SHR shifts right by any immediate from 0 to 31",
    replace(HLS, shr="full"),
    "a LOAD of ACC and a shift by 0 to 31",
    SHIFTS,
    SHIFTS.filter(lambda p: isinstance(p[1], Alu) and p[1].imm < 16),
    "Chisel's shift is a third reading, which differs for negative amounts.",
    holds="both readings agree for all accumulators and amounts from -16 to 15: proved by z3 and cvc5",
    method=" z3 and cvc5 on the bodies of `alu_shr` and `alu_shr_signed5`, all accumulators and amounts.",
    status="REFUTED by z3 and cvc5, and run on new interpreters; restricted form PROVED by z3 and cvc5",
)
"""SHR takes five bits of the amount as a signed number."""
MULTIPLICATION = Difference(
    "vta_mul",
    "VTA: MUL multiplies in the simulator only",
    "the ALU operation MUL multiplies accumulators",
    replace(HLS, mul="multiplies"),
    "up to three instructions",
    programs,
    programs.filter(lambda p: not any(map(_multiplies, p))),
    "Nothing is said of how often compilers use MUL.",
    alike="without MUL",
    readings=(("hls that multiplies", replace(HLS, mul="multiplies")),),
)
"""MUL is an instruction of the simulator only."""
ZERO_ITERATIONS = Difference(
    "vta_zero",
    "VTA: loops of no iterations run once",
    "a GEMM or ALU instruction with no iterations does nothing",
    replace(HLS, zero_iterations="do_while"),
    "up to three instructions",
    programs,
    programs.filter(lambda p: all(map(_runs, p))),
    "Programs without empty loops are not affected.",
    alike="whose loops all run at least once",
)
"""Loops that are configured to run no time run once where the end is tested after the body."""
PADDED_ROWS = Difference(
    "vta_rows",
    "VTA: rows of a padded LOAD overlap in the published ILA",
    "row y of a padded LOAD begins y whole rows, pads included, after the first",
    replace(HLS, padded_rows="data"),
    "a padded LOAD of INP and a GEMM that shows the inputs",
    _PADDED,
    _PADDED.filter(_whole_rows),
    "It is a defect of the published ILA, not of a design.",
    alike="with one row or without pads at the sides",
)
"""The published ILA forgets the pads in the distance between the rows of a LOAD."""
LATE_RESULTS = Difference(
    "vta_late",
    "VTA: a result that arrives late is not seen",
    "the iterations of a GEMM or ALU instruction act one after the other",
    _LATE,
    "one or two instructions with up to three iterations each",
    _REPEATING,
    _REPEATING.filter(lambda p: all(map(_apart, p))),
    "How late results arrive is a property of a synthesised design, and the HLS source only tells the compiler "
    "that no iteration depends on another. The public runtime refuses micro-ops with one destination among three; "
    "the products of this repository leave at least four iterations between them.",
    alike="in which no iteration reads what one of the last two has written",
    readings=(
        ("hls, results after 1 iteration", replace(_LATE, write_latency=1)),
        ("hls, results after 2 iterations", _LATE),
        ("hls, refused", replace(HLS, back_to_back="refused")),
    ),
)
"""A pipelined design reads an accumulator before the result of a few iterations ago has arrived."""
INDICES = Difference(
    "vta_index",
    "VTA: an index beyond a scratchpad begins again in one design only",
    "an index of GEMM or ALU that goes beyond a scratchpad begins again at its start",
    replace(HLS, index_overflow="truncated"),
    "an ALU instruction with an immediate and factors up to 2047",
    _STRIDING,
    _STRIDING.filter(lambda p: all(map(_inside, p))),
    "An undefined access of the HLS source may well begin again in a synthesised design, too.",
    alike="whose indices stay within",
    holds="; the extra bit that indices have in the HLS design makes no instruction defined: one that comes to twice "
    "the depth has met an undefined index before (step of an induction PROVED by z3 and cvc5)",
    status="REFUTED, each run on new interpreters; step of the induction PROVED by z3 and cvc5",
    readings=(
        ("hls, indices with an extra bit", replace(HLS, index_overflow="extra_bit")),
        ("hls, indices that begin again", replace(HLS, index_overflow="truncated")),
    ),
)
"""An index that goes beyond a scratchpad is undefined in one design, and begins again in another."""


def shift() -> Finding:
    """Programs that shift, and the numbers at which the two primitives differ."""
    values = smallest_counterexample("SHR", same_shift(0, 31), [_B, _A])
    prove("SHR by -16 .. 15", same_shift(-16, 15))
    return replace(SHIFT, counterexample=f"; as numbers: {values['a']} shifted by {values['b']}").finding()


def indices() -> Finding:
    """Programs whose indices leave the accumulators, after the step of the induction."""
    for what, depth in (("accumulators and inputs", 2048), ("weights", 1024)):
        prove(f"indices of {what} do not jump over the undefined ones", step_of_indices(depth))
    return INDICES.finding()


FINDERS: Mapping[str, Callable[[], Finding]] = {
    STALE.name: cache(STALE.finding),
    RESET.name: cache(RESET.finding),
    SHIFT.name: cache(shift),
    MULTIPLICATION.name: cache(MULTIPLICATION.finding),
    ZERO_ITERATIONS.name: cache(ZERO_ITERATIONS.finding),
    PADDED_ROWS.name: cache(PADDED_ROWS.finding),
    LATE_RESULTS.name: cache(LATE_RESULTS.finding),
    INDICES.name: cache(indices),
}
"""The functions that find them, by name; each searches once in a process."""
