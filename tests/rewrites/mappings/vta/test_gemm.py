"""Dense layers on VTA in blocks: proved for every size and block, and faults of which none is proved."""

from __future__ import annotations

import numpy as np
import pytest

import bmc.prove
from ila_lang.mapping import SizeError
from rewrites.mappings.vta.gemm import INPUT_BLOCKS, INPUTS, OUTPUTS, ROWS, GemmDetails, gemm_mapping
from rewrites.mappings.vta.programs import micro_op
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import require_proved, require_refuted, require_unproved, slow_but
from tests.rewrites.mappings.vta.test_elementwise import ran

FAULTS = {
    "accumulators are never cleared": GemmDetails(clear=""),
    "accumulators are cleared before the first block only": GemmDetails(clear="once"),
    "accumulators are cleared in every round": GemmDetails(clear="each round"),
    "micro-ops name the next accumulator": GemmDetails(entry=lambda c: micro_op(dst=c + 1, wgt=c * INPUTS)),
    "micro-ops name the tile after the next": GemmDetails(entry=lambda c: micro_op(dst=c, wgt=c * INPUTS + 1)),
    "all micro-ops name one accumulator": GemmDetails(entry=lambda c: micro_op(wgt=c * INPUTS)),
    "the last micro-op is not written": GemmDetails(table=OUTPUTS - 1),
    "micro-ops are loaded from one place before": GemmDetails(table_offset=0),
    "the last round is left out": GemmDetails(round_blocks=INPUT_BLOCKS - 1),
    "rows of a block of inputs are as far apart as in the block": GemmDetails(input_stride=INPUTS),
    "rows of a block of weights are as far apart as in the block": GemmDetails(weight_stride=INPUTS),
    "rows of a block of outputs are as far apart as in the block": GemmDetails(output_stride=OUTPUTS),
    "rows of inputs are as far apart as outputs": GemmDetails(row_step=OUTPUTS),
    "the bias is that of the vector before": GemmDetails(bias_op=micro_op(src=ROWS * OUTPUTS - 1)),
    "one bit more is shifted out": GemmDetails(one_more=1),
}
QUICK = ("micro-ops name the next accumulator",)


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    require_refuted(gemm_mapping(None, FAULTS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(gemm_mapping(None, FAULTS[name]))


@pytest.mark.slow
def test_a_blocked_layer_is_proved_for_every_size() -> None:
    verdict = require_proved(gemm_mapping())
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
    wanted = np.clip((x.astype(np.int32) @ w.astype(np.int32).T + b) >> 8, -128, 127).astype(np.int8)
    assert np.array_equal(ran(mapping, sizes, tensors), wanted)
