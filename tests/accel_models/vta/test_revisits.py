"""The check of accumulators that are read too soon: against enumeration, and against what delayed results change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.mmio_program import ProgramError
from accel_models.vta.assembly import assemble
from accel_models.vta.isa import Alu, Gemm, Uop, encode_uop
from accel_models.vta.model import vta
from accel_models.vta.options import CHISEL, FSIM, HLS, VTA_ILA, VtaOptions
from accel_models.vta.order.revisits import check_revisits, first_revisit
from accel_models.vta.program import Program, run
from ila_lang import Machine
from tests.accel_models.vta.device import contents, issue
from tests.accel_models.vta.oracle import Oracle
from tests.accel_models.vta.test_model import computations, prepared, uops

LATENCIES = (1, 2, 3, 4)
tables = st.lists(uops, min_size=5, max_size=5)


@given(
    computations(), tables, st.sampled_from([HLS, FSIM, CHISEL, VTA_ILA]), st.sampled_from(LATENCIES),
    st.integers(1, 7), st.integers(1, 7),
)  # fmt: skip
def test_looking_at_few_rounds_suffices(
    x: Gemm | Alu, table: list[Uop], options: VtaOptions, latency: Any, outer: int, inner: int
) -> None:
    x = replace(x, iter_out=outer * x.iter_out, iter_in=inner * x.iter_in)
    oracle = Oracle(
        replace(options, back_to_back="refused", write_latency=latency, mul="multiplies"), np.zeros(16, np.uint8)
    )
    oracle.uop[: len(table)] = [encode_uop(u) for u in table]
    found = first_revisit(x, dict(enumerate(table)), options, latency)
    assert (found is not None) == oracle.refused(x)


@settings(max_examples=20)
@given(computations(), tables, st.sampled_from(LATENCIES), st.integers(0, 2**32))
def test_without_revisits_late_results_change_nothing(x: Gemm | Alu, table: list[Uop], latency: Any, seed: int) -> None:
    if first_revisit(x, dict(enumerate(table)), HLS, latency) is not None:
        return
    machines = []
    for options in (HLS, replace(HLS, back_to_back="stale", write_latency=latency)):
        machine, _ = prepared(options, seed, table)
        issue(machine, x, options)
        machines.append(machine)
    for name in ("acc", "out"):
        assert (contents(machines[0], name) == contents(machines[1], name)).all()


def test_messages() -> None:
    words = assemble("gemm uops=0:2 iters=1x3 dst=0,1\nalu.add uops=0:1 iters=2x1\nfinish")
    assert [p.message for p in check_revisits(words, latency=1)] == [
        "instruction 1 (gemm uops=0:2 iters=1x3 dst=0,1) reads accumulator 0 in iteration (y=0, x=0, micro-op 1), "
        "which iteration (y=0, x=0, micro-op 0) has written shortly before; let more iterations pass between them, or "
        "split the instruction",
        "instruction 2 (alu.add uops=0:1 iters=2x1) reads accumulator 0 in iteration (y=1, x=0, micro-op 0), which "
        "iteration (y=0, x=0, micro-op 0) has written shortly before; let more iterations pass between them, or split "
        "the instruction",
    ]
    assert {(p.kind, p.first, p.second) for p in check_revisits(words)} == {("revisit", 1, 1), ("revisit", 2, 2)}
    stored = assemble("store dram=0 size=1x1\nload.uop size=1x1\nalu.add uops=0:1 imm=1\nfinish")
    assert [p.message for p in check_revisits(stored)] == [
        "instruction 3 (alu.add uops=0:1 iters=1x1 imm=1) uses micro-ops that a STORE of the program may have written; "
        "load others"
    ]
    assert [p.kind for p in check_revisits([7])] == ["program"]


def test_what_counts_as_read() -> None:
    clear = assemble("gemm uops=0:1 iters=2x1 reset")
    assert [len(check_revisits(clear, options=o)) for o in (HLS, FSIM, CHISEL)] == [1, 0, 0]
    dram = [(0, encode_uop(Uop(dst=1, src=0)).to_bytes(4, "little"))]
    # writes accumulator 1, 1 and reads 0, 1
    words = assemble("load.uop size=1x1\nalu.add uops=0:1 iters=2x1 src=1,0 imm=0")
    assert [len(check_revisits(words, dram, o, latency=1)) for o in (HLS, CHISEL)] == [1, 1]
    words = assemble("load.uop size=1x1\nalu.add uops=0:1 iters=2x1 dst=1,0 src=1,0 imm=0")
    assert [len(check_revisits(words, dram, o, latency=1)) for o in (HLS, CHISEL)] == [0, 1]


@pytest.mark.parametrize("latency", [1, 2])
def test_a_refused_program_says_why(latency: Any) -> None:
    words = tuple(assemble("gemm uops=0:1 iters=2x1\nfinish"))
    options = replace(HLS, back_to_back="refused", write_latency=latency)
    with pytest.raises(ProgramError) as error:
        run(Program((), words), Machine(vta(options)), options)
    assert str(error.value) == (
        "Instruction 1 (gemm uops=0:1 iters=2x1) must not read an accumulator before the write to it has arrived, but "
        "an iteration reads what one shortly before it has written; let more iterations pass between them, or split "
        "the instruction"
    )
