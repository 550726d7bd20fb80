"""Elementwise operators on VTA's ALU: proved for every size and at a shape, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import bmc.prove
import chc.mapping.prove
from accel_models.vta.isa import AluOp
from ila_lang import Expr, Machine, run_fragment, substitute
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.vta import elementwise
from rewrites.mappings.vta.elementwise import IMM, OPERATIONS, elementwise_mapping
from rewrites.mappings.vta.programs import COLUMNS, micro_op
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved
from tests.rewrites.mappings.vta.faults import Change, Faulty, faulty, given, micro_ops, where

WRONG_STEPS: dict[str, tuple[tuple[AluOp, object], ...]] = {
    "relu": ((AluOp.MAX, 1),),
    "min": ((AluOp.MAX, None),),
    "max": ((AluOp.MIN, None),),
    "add": ((AluOp.ADD, None), (AluOp.ADD, None)),
    "bias_add": ((AluOp.ADD, None), (AluOp.MAX, 0)),
    "min_imm": ((AluOp.MIN, IMM + 1),),
    "max_imm": ((AluOp.MAX, IMM << 1),),
    "add_imm": ((AluOp.ADD, IMM), (AluOp.ADD, 1)),
    "shift": ((AluOp.SHR, IMM + 1),),
    "requantise": ((AluOp.SHR, IMM), (AluOp.MAX, -127), (AluOp.MIN, 127)),
}
"""For each operator steps that are wrong in one place: another operation, bound, amount, or one step too many."""


def _rows_too_far_apart(program: Faulty, issue: Callable[..., None], fields: dict[str, Any]) -> None:
    row = program.counters.get("row")
    at = fields["dram_base"]
    issue(**fields | ({} if row is None else {"dram_base": substitute(at, {row * COLUMNS: row * (COLUMNS + 1)})}))


def _with_wrong_steps(name: str) -> TensorMapping:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OPERATIONS, name, replace(OPERATIONS[name], steps=WRONG_STEPS[name]))  # type: ignore[misc]
        return elementwise_mapping(name)


def _changes(name: str) -> dict[str, dict[str, Change]]:
    second = OPERATIONS[name].second is not None
    words = [micro_op(dst=1), *([micro_op(dst=1, src=COLUMNS)] if second else [])]
    changes: dict[str, dict[str, Change]] = {
        "the micro-op names another accumulator": {"write micro-ops": micro_ops(*words)},
        "the last vector is not computed": {"ALU": given(iter_in=COLUMNS - 1)},
        "the destination stays where it is": {"ALU": given(dst_factor_in=0)},
        "the last vector is not loaded": {
            "load ACC": where(lambda fields: isinstance(fields["sram_base"], int), given(x_size=COLUMNS - 1))
        },
        "rows are too far apart": {"load ACC": _rows_too_far_apart, "store OUT": _rows_too_far_apart},
    }
    if second:
        changes |= {
            "the second operand's index stays where it is": {"ALU": given(src_factor_in=0)},
            "the micro-op's second operand is one further on": {
                "write micro-ops": micro_ops(micro_op(), micro_op(src=COLUMNS + 1))
            },
            "the second operand overwrites the first one's end": {
                "load ACC": where(lambda fields: isinstance(fields["sram_base"], Expr), given(sram_base=COLUMNS - 1))
            },
        }
    return changes


FAULTS: dict[str, Callable[[], TensorMapping]] = {
    f"{name}: {what}": partial(faulty, partial(elementwise_mapping, name), elementwise, changes)
    for name in OPERATIONS
    for what, changes in _changes(name).items()
} | {f"{name}: wrong steps": partial(_with_wrong_steps, name) for name in OPERATIONS}
QUICK = (
    "relu: the micro-op names another accumulator",
    "requantise: wrong steps",
    "add: the last vector is not loaded",
)


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operator_is_proved_for_every_size(name: str) -> None:
    verdict = require_proved(elementwise_mapping(name))
    assert {"vta: decoding", "vta: conditions", "values"} <= {o.group for o in verdict.obligations}


@pytest.mark.parametrize("name", slow_but(["relu"], OPERATIONS))
def test_an_operator_is_proved_at_a_shape(name: str) -> None:
    verdict = bmc.prove.prove(elementwise_mapping(name), (2, 32))
    assert verdict.status is Status.PROVED, verdict.reason


def test_without_knowing_that_there_is_no_fault_nothing_is_proved() -> None:
    mapping = elementwise_mapping("relu")
    unknown = replace(mapping, device=replace(mapping.device, idle={}))
    verdict = chc.mapping.prove.prove(unknown, discharger=Discharger(timeout=2.0), horn_timeout=2.0)
    assert verdict.status is Status.UNKNOWN
    assert "depends on fault as it was before the program" in verdict.reason


@pytest.mark.parametrize("text", ["m*n <= 209714", "1 <= n <= 2048"])
def test_sizes_that_do_not_fit_are_not_proved(text: str) -> None:
    mapping = elementwise_mapping("relu")
    domain = tuple(c for c in mapping.domain if not c[0].startswith(text))
    assert len(domain) == len(mapping.domain) - 1
    verdict = chc.mapping.prove.prove(
        replace(mapping, domain=domain), discharger=Discharger(timeout=2.0), horn_timeout=2.0
    )
    assert verdict.status is Status.UNKNOWN


def test_shapes_that_do_not_fit_are_refused() -> None:
    mapping = elementwise_mapping("add")
    with pytest.raises(SizeError) as refused:
        mapping.sizes_for((2, 17))
    assert str(refused.value) == "Columns of shape 2x17 of mapping vta_add must be a multiple of 16, not 17; pad them"
    with pytest.raises(SizeError, match="Sizes of mapping vta_add must satisfy: 1 <= n <= 1024"):
        mapping.sizes_for((1, 16 * 1025))


# -- both sides, run: against NumPy --------------------------------------------------------------------


def ran(mapping: TensorMapping, sizes: dict[str, int], tensors: dict[str, np.ndarray]) -> np.ndarray:
    """The output of a claim's device program on host tensors."""
    words = {n: dict(enumerate((t.ravel().astype(np.int64) & 0xFFFFFFFF).tolist())) for n, t in tensors.items()}
    host = {n: Memory(0, words.get(n, {})) for n in mapping.device.tensors}
    run_fragment(mapping.device, sizes, host, Machine(mapping.device.ila))
    rows, columns = mapping.output_extents(sizes)
    return np.array([host["host_y"][i] for i in range(rows * columns)], np.uint8).view(np.int8).reshape(rows, columns)


MEANING: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "relu": lambda a, b, imm: np.maximum(a, 0),
    "min": lambda a, b, imm: np.minimum(a, b),
    "max": lambda a, b, imm: np.maximum(a, b),
    "add": lambda a, b, imm: a + b,
    "bias_add": lambda a, b, imm: a + b[0],
    "min_imm": lambda a, b, imm: np.minimum(a, imm),
    "max_imm": lambda a, b, imm: np.maximum(a, imm),
    "add_imm": lambda a, b, imm: a + imm,
    "shift": lambda a, b, imm: a >> imm,
    "requantise": lambda a, b, imm: np.clip(a >> imm, -128, 127),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_program_computes_what_numpy_does(name: str) -> None:
    mapping, operation = elementwise_mapping(name), OPERATIONS[name]
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3000, 3000, (3, 32)).astype(np.int32) for _ in range(2))
    if operation.second == "row":
        b = b[:1]
    imm = 3 if operation.bits == 4 else -700
    sizes = mapping.sizes_for(a.shape) | ({"imm": imm & (1 << operation.bits) - 1} if operation.bits else {})
    ours = ran(mapping, sizes, {"host_a": a, "host_b": b})
    assert np.array_equal(ours, MEANING[name](a, b, imm).astype(np.int8))
