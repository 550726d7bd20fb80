"""Dense layers on VTA: proved for every size and at a shape, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import bmc.prove
from accel_models.vta.isa import AluOp
from accel_models.vta.model import vta
from accel_models.vta.products import dense, post_steps
from accel_models.vta.program import run
from ila_lang import Expr, Machine, const
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.vta import dense as dense_module
from rewrites.mappings.vta.dense import DEPTH, SHIFT, dense_mapping
from rewrites.mappings.vta.programs import ROWS, micro_op
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved
from tests.rewrites.mappings.vta.faults import Change, Faulty, faulty, given, left_out, micro_ops, twice
from tests.rewrites.mappings.vta.test_elementwise import ran

SHIFTED = (AluOp.SHR, SHIFT)
CLEAR = "clear accumulators"


def _cleared_once(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    issue(**fields)
    program.clear(uop_bgn=0, uop_end=1, iter_out=1, iter_in=ROWS, dst_factor_in=1)


CHANGES: dict[str, dict[str, Change]] = {
    "accumulators are not cleared": {CLEAR: left_out},
    "accumulators are cleared before the first vector only": {CLEAR: left_out, "load INP": _cleared_once},
    "the last input vector is left out": {"GEMM": given(iter_out=DEPTH - 1)},
    "every round has the same input vector": {"GEMM": given(src_factor_out=0)},
    "rows of the input are too close together": {"GEMM": given(src_factor_in=1)},
    "every round has the same weights": {"GEMM": given(wgt_factor_out=0)},
    "all products count twice": {"GEMM": twice},
    "the bias overwrites the last row's sum": {"load ACC": given(sram_base=ROWS - 1)},
    "the first micro-op names another accumulator": {"write micro-ops": micro_ops(micro_op(dst=1), micro_op(src=ROWS))},
    "the bias is one further on": {"write micro-ops": micro_ops(micro_op(), micro_op(src=ROWS + 1))},
    "the first tile of weights is left out": {"write micro-ops": micro_ops(micro_op(wgt=1), micro_op(src=ROWS))},
    "the last row is not computed": {"GEMM": given(iter_in=ROWS - 1)},
    "rows of the output are too close together": {"store OUT": given(x_stride=const(1, 32))},
}
WRONG_STEPS: dict[str, tuple[tuple[AluOp, Expr | int], ...]] = {
    "one bit more is shifted out": ((AluOp.SHR, SHIFT + 1), (AluOp.MAX, -128), (AluOp.MIN, 127)),
    "the lower bound is one too large": (SHIFTED, (AluOp.MAX, -127), (AluOp.MIN, 127)),
    "there is no upper bound": (SHIFTED, (AluOp.MAX, -128)),
    "bounds come before the shift": ((AluOp.MAX, -128), (AluOp.MIN, 127), SHIFTED),
}
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    **{name: partial(faulty, dense_mapping, dense_module, changes) for name, changes in CHANGES.items()},
    **{name: partial(dense_mapping, steps=steps) for name, steps in WRONG_STEPS.items()},
}
QUICK = ("accumulators are not cleared", "the first micro-op names another accumulator")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


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
    program, layout = dense(x, w, b, steps=post_steps(shift=8))
    assert np.array_equal(ours, layout.result(run(program, Machine(vta()))))
