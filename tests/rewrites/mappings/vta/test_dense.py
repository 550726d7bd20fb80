"""Dense layers on VTA: proved for every size and at a shape, and faults of which none is proved."""

from __future__ import annotations

import numpy as np
import pytest

import bmc.prove
from accel_models.vta.isa import AluOp
from accel_models.vta.model import vta
from accel_models.vta.products import dense
from accel_models.vta.program import run
from ila_lang import Machine, const
from ila_lang.mapping import SizeError
from rewrites.mappings.vta.dense import DEPTH, SHIFT, DenseDetails, dense_mapping
from rewrites.mappings.vta.programs import ROWS, micro_op
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import require_proved, require_refuted, require_unproved, slow_but
from tests.rewrites.mappings.vta.test_elementwise import ran

SHIFTED = (AluOp.SHR, SHIFT)
FAULTS = {
    "accumulators are not cleared": DenseDetails(clear=False),
    "accumulators are cleared before the first vector only": DenseDetails(clear_once=True),
    "the last input vector is left out": DenseDetails(rounds=DEPTH - 1),
    "every round has the same input vector": DenseDetails(src_factor=0),
    "rows of the input are too close together": DenseDetails(row_factor=1),
    "every round has the same weights": DenseDetails(wgt_factor=0),
    "all products count twice": DenseDetails(twice=True),
    "the bias overwrites the last row's sum": DenseDetails(bias_at=ROWS - 1),
    "the first micro-op names another accumulator": DenseDetails(micro_ops=(micro_op(dst=1), micro_op(src=ROWS))),
    "the bias is one further on": DenseDetails(micro_ops=(micro_op(), micro_op(src=ROWS + 1))),
    "the first tile of weights is left out": DenseDetails(micro_ops=(micro_op(wgt=1), micro_op(src=ROWS))),
    "the last row is not computed": DenseDetails(cells=ROWS - 1),
    "one bit more is shifted out": DenseDetails(
        steps=((AluOp.SHR, SHIFT + 1), (AluOp.MAX, -128), (AluOp.MIN, 127)),
    ),
    "the lower bound is one too large": DenseDetails(steps=(SHIFTED, (AluOp.MAX, -127), (AluOp.MIN, 127))),
    "there is no upper bound": DenseDetails(steps=(SHIFTED, (AluOp.MAX, -128))),
    "bounds come before the shift": DenseDetails(steps=((AluOp.MAX, -128), (AluOp.MIN, 127), SHIFTED)),
    "rows of the output are too close together": DenseDetails(stride=const(1, 32)),
}
QUICK = ("accumulators are not cleared", "the first micro-op names another accumulator")


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    require_refuted(dense_mapping(None, FAULTS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(dense_mapping(None, FAULTS[name]))


@pytest.mark.slow
def test_a_dense_layer_is_proved_for_every_size() -> None:
    verdict = require_proved(dense_mapping())
    assert {"vta: accumulation", "lock-step", "vta: decoding"} <= {o.group for o in verdict.obligations}
    assert any("vta.y with ir.depth" in level for level in verdict.invariants)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 16, 32), (1, 32, 16)])
def test_a_dense_layer_is_proved_at_a_shape(shape: tuple[int, ...]) -> None:
    verdict = bmc.prove.prove(dense_mapping(), shape)
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    mapping = dense_mapping()
    with pytest.raises(SizeError) as refused:
        mapping.sizes_for((2, 17, 16))
    assert str(refused.value) == (
        "Input features of shape 2x17x16 of a VTA dense mapping must be a multiple of 16, not 17; pad them"
    )
    with pytest.raises(SizeError, match=r"must satisfy: m\*inner <= 2048 \(input vectors\)"):
        mapping.require(mapping.sizes_for((2000, 32, 16)))


def test_the_program_computes_what_that_with_tokens_and_numpy_do() -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 48), (32, 48)))
    b = rng.integers(-9000, 9000, 32).astype(np.int32)
    mapping = dense_mapping()
    sizes = mapping.sizes_for((5, 48, 32)) | {"shift": 8}
    tensors = {"host_x": x.view(np.uint8), "host_w": w.view(np.uint8), "host_b": b}
    ours = ran(mapping, sizes, tensors)
    wanted = np.clip((x.astype(np.int32) @ w.astype(np.int32).T + b) >> 8, -128, 127).astype(np.int8)
    assert np.array_equal(ours, wanted)
    program, layout = dense(x, w, b, shift=8)
    assert np.array_equal(ours, layout.result(run(program, Machine(vta()))))
