"""VTA: where public implementations of one instruction set disagree."""

from __future__ import annotations

from collections.abc import Callable
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

_METHOD = (
    "Hypothesis draws programs of {what}, runs each in two readings on the interpreter, compares what a STORE leaves, "
    "and "
    "shrinks."
)
_STATUS = "REFUTED, each run on new interpreters"
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
class _Case:
    """Two readings, and the strategies from which programs that distinguish them, or do not, are drawn."""

    left: VtaOptions
    right: VtaOptions
    within: _Programs
    agree: _Programs

    def search(self) -> list[Instruction]:
        """The program that distinguishes the readings; raises NotFound for none, or where they should agree."""
        program = difference(self.left, self.right, self.within)
        if program is None:
            raise NotFound("no program tells the readings apart")
        other = difference(self.left, self.right, self.agree, examples=FEW)
        require(other is None, f"readings differ where they should agree: {text(other or [])}")
        return program


def _evidence(program: list[Instruction], *more: tuple[str, VtaOptions]) -> tuple[str, ...]:
    lines = "\n".join([*text(program), "store sram=0 dram=4096 size=1x4"])
    readings = [*PRESETS.items(), *more]
    results = [outputs(program, options) for _, options in readings]
    require(len({str(result) for result in results}) > 1, "the program found does not replay")
    return (
        f"```text\n{lines}\n```",
        _CONTENTS,
        table(["reading", "outputs"], [[name, result] for (name, _), result in zip(readings, results, strict=True)]),
    )


def _finding(
    name: str,
    title: str,
    claim: str,
    what: str,
    program: list[Instruction],
    holds: str,
    limits: str,
    *,
    status: str = _STATUS,
    method: str = "",
    counterexample: str = "",
    readings: tuple[tuple[str, VtaOptions], ...] = (),
) -> Finding:
    return Finding(
        name=name,
        title=title,
        claim=claim,
        method=_METHOD.format(what=what) + method,
        counterexample="; ".join(f"`{line}`" for line in text(program)) + counterexample,
        holds=holds,
        status=status,
        limits=_LIMITS + limits,
        evidence=_evidence(program, *readings),
    )


def _no_difference(what: str) -> str:
    return f"no difference in {FEW} random programs {what} (no proof)"


@cache
def stale() -> Finding:
    """STORE reads a memory of its own, which a LOAD of ACC does not write."""
    case = _Case(HLS, replace(HLS, store_source="acc"), programs, HARMLESS)
    return _finding(
        "vta_stale",
        "VTA: a STORE after a LOAD stores old outputs",
        "a STORE gives the low bytes of the accumulators",
        "up to three instructions",
        case.search(),
        _no_difference("in which MIN, MAX or ADD follows the LOAD"),
        "Programs that compute on every accumulator between its LOAD and the STORE are not affected.",
    )


@cache
def reset() -> Finding:
    """GEMM with reset_reg clears accumulators, and not the outputs."""
    resets = st.lists(gemms, min_size=1, max_size=2)
    plain = st.lists(gemms.filter(lambda g: not g.reset_reg), min_size=1, max_size=2)
    case = _Case(HLS, replace(HLS, gemm_reset="zero"), resets, plain)
    return _finding(
        "vta_reset",
        "VTA: a GEMM that resets leaves its product in the outputs",
        "a GEMM with reset gives outputs of 0, as it gives accumulators of 0",
        "one or two GEMMs",
        case.search(),
        _no_difference("of GEMMs without reset"),
        "Accumulators are 0 in every reading; a GEMM or ALU on them before the STORE writes their outputs again.",
    )


_A, _B = var("a", bv(32)), var("b", bv(32))


def same_shift(low: int, high: int) -> Expr:
    """The claim that both readings of SHR agree for amounts between two signed numbers."""
    outside = _B.slt(const(low & 0xFFFFFFFF, 32)) | const(high & 0xFFFFFFFF, 32).slt(_B)
    return outside | (alu_shr(_A, _B) == alu_shr_signed5(_A, _B))


@cache
def shift() -> Finding:
    """SHR takes five bits of the amount as a signed number."""
    values = smallest_counterexample("SHR", same_shift(0, 31), [_B, _A])
    prove("SHR by -16 .. 15", same_shift(-16, 15))
    below = SHIFTS.filter(lambda p: isinstance(p[1], Alu) and p[1].imm < 16)
    case = _Case(HLS, replace(HLS, shr="full"), SHIFTS, below)
    return _finding(
        "vta_shr",
        "VTA: a shift right by 16 shifts left",
        "SHR shifts right by any immediate from 0 to 31",
        "a LOAD of ACC and a shift by 0 to 31",
        case.search(),
        "both readings agree for all accumulators and amounts from -16 to 15: proved by z3 and cvc5",
        "Chisel's shift is a third reading, which differs for negative amounts.",
        status="REFUTED by z3 and cvc5, and run on new interpreters; restricted form PROVED by z3 and cvc5",
        method=" z3 and cvc5 on the bodies of `alu_shr` and `alu_shr_signed5`, all accumulators and amounts.",
        counterexample=f"; as numbers: {values['a']} shifted by {values['b']}",
    )


@cache
def multiplication() -> Finding:
    """MUL is an instruction of the simulator only."""
    others = programs.filter(lambda p: not any(isinstance(x, Alu) and x.alu_opcode is AluOp.MUL for x in p))
    case = _Case(HLS, replace(HLS, mul="multiplies"), programs, others)
    return _finding(
        "vta_mul",
        "VTA: MUL multiplies in the simulator only",
        "the ALU operation MUL multiplies accumulators",
        "up to three instructions",
        case.search(),
        _no_difference("without MUL"),
        "Nothing is said of how often compilers use MUL.",
        readings=(("hls that multiplies", replace(HLS, mul="multiplies")),),
    )


@cache
def zero_iterations() -> Finding:
    """Loops that are configured to run no time run once where the end is tested after the body."""

    def runs(x: Instruction) -> bool:
        return not isinstance(x, Gemm | Alu) or 0 not in (x.iter_out, x.iter_in, x.uop_end - x.uop_bgn)

    case = _Case(HLS, replace(HLS, zero_iterations="do_while"), programs, programs.filter(lambda p: all(map(runs, p))))
    return _finding(
        "vta_zero",
        "VTA: loops of no iterations run once",
        "a GEMM or ALU instruction with no iterations does nothing",
        "up to three instructions",
        case.search(),
        _no_difference("whose loops all run at least once"),
        "Programs without empty loops are not affected.",
    )


@cache
def padded_rows() -> Finding:
    """The published ILA forgets the pads in the distance between the rows of a LOAD."""
    loads = st.tuples(padded_loads.filter(loads_inputs), shows_inputs).map(list)

    def harmless(p: list[Instruction]) -> bool:
        load = p[0]
        return isinstance(load, Load) and (load.y_size < 2 or not (load.x_pad_0 or load.x_pad_1))

    case = _Case(HLS, replace(HLS, padded_rows="data"), loads, loads.filter(harmless))
    return _finding(
        "vta_rows",
        "VTA: rows of a padded LOAD overlap in the published ILA",
        "row y of a padded LOAD begins y whole rows, pads included, after the first",
        "a padded LOAD of INP and a GEMM that shows the inputs",
        case.search(),
        _no_difference("with one row or without pads at the sides"),
        "It is a defect of the published ILA, not of a design.",
    )


@cache
def late_results() -> Finding:
    """A pipelined design reads an accumulator before the result of a few iterations ago has arrived."""
    late = replace(HLS, back_to_back="stale", write_latency=2)

    def apart(program: list[Instruction]) -> bool:
        return all(isinstance(x, Gemm | Alu) and first_revisit(x, {}, late, 2) is None for x in program)

    within: _Programs = st.lists(repeating, min_size=1, max_size=2)
    case = _Case(HLS, late, within, within.filter(apart))
    return _finding(
        "vta_late",
        "VTA: a result that arrives late is not seen",
        "the iterations of a GEMM or ALU instruction act one after the other",
        "one or two instructions with up to three iterations each",
        case.search(),
        _no_difference("in which no iteration reads what one of the last two has written"),
        "How late results arrive is a property of a synthesised design, and the HLS source only tells the compiler "
        "that no iteration depends on another. The public runtime refuses micro-ops with one destination among three; "
        "the products of this repository leave at least four iterations between them.",
        readings=(
            ("hls, results after 1 iteration", replace(late, write_latency=1)),
            ("hls, results after 2 iterations", late),
            ("hls, refused", replace(HLS, back_to_back="refused")),
        ),
    )


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


@cache
def indices() -> Finding:
    """An index that goes beyond a scratchpad is undefined in one design, and begins again in another."""
    for what, depth in (("accumulators and inputs", 2048), ("weights", 1024)):
        prove(f"indices of {what} do not jump over the undefined ones", step_of_indices(depth))

    def inside(program: list[Instruction]) -> bool:
        return all(
            isinstance(x, Alu) and (x.iter_out - 1) * x.dst_factor_out + (x.iter_in - 1) * x.dst_factor_in < 2048
            for x in program
        )

    within: _Programs = striding.map(lambda x: [x])
    case = _Case(HLS, replace(HLS, index_overflow="truncated"), within, within.filter(inside))
    return _finding(
        "vta_index",
        "VTA: an index beyond a scratchpad begins again in one design only",
        "an index of GEMM or ALU that goes beyond a scratchpad begins again at its start",
        "an ALU instruction with an immediate and factors up to 2047",
        case.search(),
        _no_difference("whose indices stay within")
        + "; the extra bit that indices have in the HLS design makes no instruction defined: one that comes to twice "
        "the depth has met an undefined index before (step of an induction PROVED by z3 and cvc5)",
        "An undefined access of the HLS source may well begin again in a synthesised design, too.",
        status=_STATUS + "; step of the induction PROVED by z3 and cvc5",
        readings=(
            ("hls, indices with an extra bit", replace(HLS, index_overflow="extra_bit")),
            ("hls, indices that begin again", replace(HLS, index_overflow="truncated")),
        ),
    )


FINDERS: tuple[Callable[[], Finding], ...] = (
    stale,
    reset,
    shift,
    multiplication,
    zero_iterations,
    padded_rows,
    late_results,
    indices,
)
