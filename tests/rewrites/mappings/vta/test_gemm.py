"""Dense layers on VTA in blocks: proved for every size and block, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import bmc.prove
from accel_models.vta.isa import AluOp
from ila_lang import Expr
from ila_lang.mapping import SizeError
from rewrites.mappings.vta import gemm
from rewrites.mappings.vta.gemm import INPUT_BLOCKS, INPUTS, OUTPUTS, ROWS, gemm_mapping
from rewrites.mappings.vta.programs import micro_op
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved
from tests.rewrites.mappings.vta.faults import Change, Faulty, faulty, given, left_out, micro_ops, twice, where
from tests.rewrites.mappings.vta.test_elementwise import ran

CLEAR = "clear accumulators"
BLOCK: dict[str, Any] = {"iter_out": ROWS, "iter_in": OUTPUTS, "dst_factor_out": OUTPUTS, "dst_factor_in": 1}


def _cleared_in_every_round(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    program.clear(uop_bgn=1, uop_end=2, **BLOCK)
    issue(**fields)


def _cleared_once(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    issue(**fields)
    if not isinstance(fields["dram_base"], Expr):
        program.clear(uop_bgn=1, uop_end=2, **BLOCK)


def _table(entry: Callable[[Expr], Expr]) -> dict[str, Change]:
    def change(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
        issue(fields["vector"], entry(program.counters["column"]).zext(128))

    return {"write the table": change}


def _table_from_the_start(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    of_table = isinstance(fields["dram_base"], Expr)
    issue(**fields | ({"dram_base": program.counters["vector"] << 2} if of_table else {}))


def _then_added(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    issue(**fields)
    issue(**fields | {"alu_opcode": AluOp.ADD, "imm": gemm.HALF})


def _first_bounded(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    issue(**fields | {"alu_opcode": AluOp.MAX, "use_imm": 1, "imm": 0})
    issue(**fields)


CHANGES: dict[str, dict[str, Change]] = {
    "accumulators are never cleared": {CLEAR: left_out},
    "accumulators are cleared before the first block only": {CLEAR: left_out, "load UOP": _cleared_once},
    "accumulators are cleared in every round": {CLEAR: left_out, "load INP": _cleared_in_every_round},
    "micro-ops name the next accumulator": _table(lambda c: micro_op(dst=c + 1, wgt=c * INPUTS)),
    "micro-ops name the tile after the next": _table(lambda c: micro_op(dst=c, wgt=c * INPUTS + 1)),
    "all micro-ops name one accumulator": _table(lambda c: micro_op(wgt=c * INPUTS)),
    "micro-ops are loaded from one place before": {"load UOP": _table_from_the_start},
    "rows of a block of inputs are as far apart as in the block": {"load INP": given(x_stride=INPUTS)},
    "rows of a block of weights are as far apart as in the block": {"load WGT": given(x_stride=INPUTS)},
    "rows of a block of outputs are as far apart as in the block": {"store OUT": given(x_stride=OUTPUTS)},
    "rows of inputs are as far apart as outputs": {"GEMM": given(src_factor_in=OUTPUTS)},
    "the bias is that of the vector before": {
        "write micro-ops": micro_ops(micro_op(), micro_op(src=ROWS * OUTPUTS - 1))
    },
    "one bit more is shifted out": {"ALU SHR": given(imm=lambda shift: shift + 1)},
    "nothing is added before the shift": {"ALU ADD": where(lambda fields: "imm" in fields, left_out)},
    "the bias is added twice": {"ALU ADD": where(lambda fields: "imm" not in fields, twice)},
    "a unit is added before the shift": {
        "ALU ADD": where(lambda fields: "imm" in fields, given(imm=lambda half: half << 1))
    },
    "half a unit is added to the shifted sum, too": {"ALU SHR": _then_added},
}
RELU: dict[str, dict[str, Change]] = {
    "relu: results may be negative": {"ALU MAX": given(imm=-128)},
    "relu: nothing below 1": {"ALU MAX": given(imm=1)},
    "relu: left out": {"ALU MAX": left_out},
    "relu: before the bias": {
        "ALU ADD": where(lambda fields: "imm" not in fields, _first_bounded),
        "ALU MAX": left_out,
    },
    "relu: from above": {"ALU MAX": given(alu_opcode=AluOp.MIN)},
}
relu_mapping = partial(gemm_mapping, activation="relu")
FAULTS = {
    name: partial(faulty, build, gemm, changes)
    for build, all_changes in ((gemm_mapping, CHANGES), (relu_mapping, RELU))
    for name, changes in all_changes.items()
} | {
    "the last micro-op is not written": partial(faulty, gemm_mapping, gemm, {}, column=OUTPUTS - 1),
    "the last round is left out": partial(faulty, gemm_mapping, gemm, {}, round=INPUT_BLOCKS - 1),
}
QUICK = ("micro-ops name the next accumulator", "relu: before the bias", "a unit is added before the shift")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("activation", gemm.FINISH)
def test_a_blocked_layer_is_proved_for_every_size(activation: str) -> None:
    verdict = require_proved(gemm_mapping(activation=activation))
    assert {"vta: accumulation", "lock-step", "vta: decoding"} <= {o.group for o in verdict.obligations}
    assert any("vta.round with ir.depth" in level for level in verdict.invariants)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 16, 32, 2, 16, 16), (1, 32, 16, 1, 16, 16)])
def test_a_blocked_layer_is_proved_at_a_shape(shape: tuple[int, ...]) -> None:
    verdict = bmc.prove.prove(gemm_mapping(), shape)
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_and_blocks_that_do_not_fit_are_refused() -> None:
    mapping = gemm_mapping()
    with pytest.raises(SizeError) as refused:
        mapping.sizes_for((3, 32, 32, 2, 16, 16))
    assert str(refused.value) == (
        "Rows of a VTA GEMM of shape 3x32x32 in blocks of 2x16x16 must be a multiple of the block's 2, not 3; "
        "pad them, or choose another block"
    )
    with pytest.raises(SizeError, match=r"Outputs of a VTA GEMM of shape 3x32x30 in blocks of .* multiple of 16"):
        mapping.sizes_for((3, 32, 30, 1, 16, 16))
    with pytest.raises(SizeError, match=r"must satisfy: block_m\*block_k <= 2048 \(input vectors\)"):
        mapping.require(mapping.sizes_for((2000, 32, 16, 2000, 32, 16)))


def test_the_program_computes_what_numpy_does() -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((6, 96), (64, 96)))
    b = rng.integers(-9000, 9000, 64).astype(np.int32)
    mapping = gemm_mapping()
    sizes = mapping.sizes_for((6, 96, 64, 2, 48, 32)) | {"shift": 8}
    tensors = {"host_x": x.view(np.uint8), "host_w": w.view(np.uint8), "host_b": b}
    sums = x.astype(np.int32) @ w.astype(np.int32).T + b
    for nearest in (0, 1):
        wanted = np.clip((sums + 128 * nearest) >> 8, -128, 127).astype(np.int8)
        assert np.array_equal(ran(mapping, sizes | {"nearest": nearest}, tensors), wanted)
    relu = gemm_mapping(activation="relu")
    assert np.array_equal(ran(relu, sizes, tensors), np.maximum(wanted, 0))
