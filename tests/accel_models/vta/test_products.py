"""Matrix operations against NumPy, at every size, in every reading, blocked or not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.vta.isa import AluOp, MemoryId, encode_uop
from accel_models.vta.model import vta
from accel_models.vta.options import CHISEL, FSIM, HLS, PRESETS, VTA_ILA, VtaOptions
from accel_models.vta.order.revisits import check_revisits
from accel_models.vta.order.schedule import shuffled
from accel_models.vta.products import _MicroOps, dense, dense_program, post_steps
from accel_models.vta.program import run
from accel_models.vta.tiling import Blocks, Regions, dense_blocks, pack_tiles, pack_vectors, unpack_vectors
from ila_lang import Machine
from tests.accel_models.vta.elementwise import elementwise, elementwise_program

sizes = st.integers(1, 20)


def numbers(seed: int, *shape: int, kind: Any = np.int8) -> np.ndarray:
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, int(info.max) + 1, shape).astype(kind)


def reference(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, shift: int, relu: bool, clip: bool
) -> np.ndarray:
    total = x.astype(np.int64) @ weights.T.astype(np.int64) + (0 if bias is None else bias)
    total = total.astype(np.int32).astype(np.int64) >> shift
    if relu or clip:
        total = np.maximum(total, 0 if relu else -128)
    return (np.minimum(total, 127) if clip else total).astype(np.int8)


@settings(max_examples=25)
@given(
    st.integers(1, 4), st.integers(1, 35), st.integers(1, 20), st.booleans(), st.integers(0, 20), st.booleans(),
    st.booleans(), st.sampled_from(list(PRESETS.values())), st.integers(0, 99),
)  # fmt: skip
def test_dense(
    rows: int, inputs: int, outputs: int, has_bias: bool, shift: int, relu: bool, clip: bool, options: VtaOptions,
    seed: int,
) -> None:  # fmt: skip
    x, weights = numbers(seed, rows, inputs), numbers(seed + 1, outputs, inputs)
    bias = numbers(seed + 2, outputs, kind=np.int32) if has_bias else None
    program, plan = dense(x, weights, bias, steps=post_steps(shift=shift, relu=relu, clip=clip), options=options)
    found = plan.result(run(program, Machine(vta(options)), options, shuffled(seed)))
    assert np.array_equal(found, reference(x, weights, bias, shift, relu, clip))


@settings(max_examples=10)
@given(
    st.builds(Blocks, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
    st.booleans(), st.sampled_from([HLS, FSIM, CHISEL]), st.integers(0, 99),
)  # fmt: skip
def test_blocked_dense(cut: Blocks, has_bias: bool, options: VtaOptions, seed: int) -> None:
    rows, inputs, outputs = 4, 40, 33
    x, weights = numbers(seed, rows, inputs), numbers(seed + 1, outputs, inputs)
    bias = numbers(seed + 2, outputs, kind=np.int32) if has_bias else None
    plan = dense_program((rows, inputs, outputs), has_bias=has_bias, steps=post_steps(shift=8), blocks=cut, start=100)
    tensors = {"input": pack_vectors(x), "weights": pack_tiles(weights)}
    if bias is not None:
        tensors["bias"] = pack_vectors(bias[None, :])
    reads = run(plan.program(options, **tensors), Machine(vta(options)), options, shuffled(seed))
    assert np.array_equal(plan.result(reads), reference(x, weights, bias, 8, False, True))


DELAYED: list[Any] = [
    *(replace(HLS, back_to_back="stale", write_latency=n) for n in (1, 2, 3, 4)),
    replace(HLS, back_to_back="refused", write_latency=4),
    replace(CHISEL, back_to_back="stale", write_latency=4),
]


@settings(max_examples=20)
@given(
    st.integers(1, 4), st.integers(1, 70), st.integers(1, 40), st.booleans(), st.sampled_from(DELAYED),
    st.none() | st.builds(Blocks, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.just(2)),
)  # fmt: skip
def test_products_do_not_wait_for_results(
    rows: int, inputs: int, outputs: int, has_bias: bool, options: VtaOptions, cut: Blocks | None
) -> None:
    """Results that arrive late make no difference, and the static check says so."""
    x, weights = numbers(1, rows, inputs), numbers(2, outputs, inputs)
    bias = numbers(3, outputs, kind=np.int32) if has_bias else None
    plan = dense_program((rows, inputs, outputs), has_bias=has_bias, steps=post_steps(shift=20), blocks=cut)
    tensors = {"input": pack_vectors(x), "weights": pack_tiles(weights)}
    if bias is not None:
        tensors["bias"] = pack_vectors(bias[None, :])
    program = plan.program(options, **tensors)
    assert check_revisits(program.words, program.dram, options) == []
    found = plan.result(run(program, Machine(vta(options)), options))
    assert np.array_equal(found, reference(x, weights, bias, 20, False, True))


@pytest.mark.parametrize("options", DELAYED)
def test_elementwise_programs_do_not_wait_for_results(options: VtaOptions) -> None:
    a, b = numbers(1, 3, 40, kind=np.int32) >> 8, numbers(2, 3, 40, kind=np.int32) >> 8
    steps = [(AluOp.ADD, None), (AluOp.SHR, 15), (AluOp.ADD, 3)]
    program, plan = elementwise(a, steps, b, options=options)
    assert check_revisits(program.words, program.dram, options) == []
    found = plan.result(run(program, Machine(vta(options)), options))
    assert np.array_equal(found, (((a + b) >> 15) + 3).astype(np.int8))


OPERATIONS = {
    AluOp.MIN: np.minimum, AluOp.MAX: np.maximum, AluOp.ADD: lambda a, b: (a + b).astype(np.int32),
    AluOp.SHR: lambda a, b: a >> b,
}  # fmt: skip


@settings(max_examples=25)
@given(
    st.integers(1, 5), st.integers(1, 40), st.sampled_from(["matrix", "row", None]),
    st.sampled_from([AluOp.MIN, AluOp.MAX, AluOp.ADD, AluOp.SHR]), st.integers(0, 15),
    st.sampled_from(list(PRESETS.values())), st.integers(0, 99),
)  # fmt: skip
def test_elementwise(
    rows: int, columns: int, second: Any, operation: AluOp, imm: int, options: VtaOptions, seed: int
) -> None:
    a = numbers(seed, rows, columns, kind=np.int32) >> 20
    shape = (columns,) if second == "row" else (rows, columns)
    b = None if second is None else numbers(seed + 1, *shape, kind=np.int32)
    if b is not None:
        # amounts above 15 mean different things
        b = b & 15 if operation is AluOp.SHR else b >> 20
    steps = [(operation, imm if second is None else None), *((s.operation, s.imm) for s in post_steps())]
    program, plan = elementwise(a, steps, b, options=options)
    found = plan.result(run(program, Machine(vta(options)), options, shuffled(seed)))
    expected = np.clip(OPERATIONS[operation](a, np.int32(imm) if b is None else b), -128, 127)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("capacity", [2, 4, 6, 2048])
@pytest.mark.parametrize("second", ["matrix", "row", None])
def test_blocked_elementwise(capacity: int, second: Any) -> None:
    if capacity == 2 and second is not None:
        return
    a = numbers(1, 3, 40, kind=np.int32)
    b = None if second is None else numbers(2, *((40,) if second == "row" else (3, 40)), kind=np.int32)
    plan = elementwise_program(3, 40, [(AluOp.ADD, 5 if b is None else None)], second=second, capacity=capacity)
    tensors = {"a": pack_vectors(a)} | ({} if b is None else {"b": pack_vectors(b.reshape(-1, 40))})
    found = plan.result(run(plan.program(**tensors), Machine(vta())))
    assert np.array_equal(found, (a + (5 if b is None else b)).astype(np.int8))
    assert (len(plan.instructions) > 6) is (capacity < 10)


def test_a_matrix_without_steps_reaches_the_outputs() -> None:
    a = numbers(1, 2, 3, kind=np.int32)
    program, plan = elementwise(a, [])
    assert np.array_equal(plan.result(run(program, Machine(vta()))), a.astype(np.int8))


def test_a_product_that_fits_is_a_short_program() -> None:
    plan = dense_program((64, 64, 64), steps=post_steps(shift=7))
    assert [type(x).__name__ for x in plan.instructions] == [
        "Load", "Load", "Load", "Gemm", "Gemm", "Alu", "Alu", "Alu", "Store", "Finish",
    ]  # fmt: skip
    gemm = plan.instructions[4]
    assert (gemm.uop_end, gemm.iter_out, gemm.iter_in) == (4, 4, 64)  # type: ignore[attr-defined]


@given(st.integers(1, 3000), st.integers(1, 300), st.integers(1, 300))
def test_blocks_fit_the_scratchpads(rows: int, outputs: int, inputs: int) -> None:
    cut = dense_blocks(rows, outputs, inputs)
    assert cut.rows * cut.inputs * cut.halves <= 2048
    assert cut.outputs * cut.inputs * cut.halves <= 1024
    assert cut.rows * cut.outputs * cut.halves <= 2048
    assert 0 < cut.rows <= rows and 0 < cut.outputs <= outputs and 0 < cut.inputs <= inputs


@given(st.integers(1, 3000), st.integers(1, 4800), st.integers(1, 40000))
def test_micro_ops_fit_their_memory(rows: int, outputs: int, inputs: int) -> None:
    """In the smallest reading; large products do not fit DRAM, but their micro-ops are the same."""
    columns, depth = -(-outputs // 16), -(-inputs // 16)
    table = _MicroOps(dense_blocks(rows, columns, depth), rows, columns, depth).table
    assert len(table) <= 2048
    for uop in table:
        encode_uop(uop)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(300, 700, 100), (2100, 20, 20), (3, 33000, 17), (64, 64, 64)])
def test_large_products(shape: tuple[int, int, int]) -> None:
    from ila_lang import Simulator

    rows, inputs, outputs = shape
    x, weights = numbers(1, rows, inputs), numbers(2, outputs, inputs)
    program, plan = dense(x, weights, steps=post_steps(shift=9))
    found = plan.result(run(program, Simulator(vta())))
    assert np.array_equal(found, reference(x, weights, None, 9, False, True))


# -- packing --------------------------------------------------------------------------------------------------


@given(sizes, sizes, st.integers(0, 99))
def test_vectors_and_tiles(rows: int, columns: int, seed: int) -> None:
    matrix = numbers(seed, rows, columns)
    packed = pack_vectors(matrix)
    assert len(packed) == rows * -(-columns // 16) * 16
    assert np.array_equal(unpack_vectors(packed, rows, columns), matrix)
    tiles = np.frombuffer(pack_tiles(matrix), np.int8).reshape(-1, 16, 16)
    width = -(-columns // 16)
    for row in range(tiles.shape[0] // width * 16):
        for column in range(width * 16):
            inside = row < rows and column < columns
            expected = matrix[row, column] if inside else 0
            assert tiles[row // 16 * width + column // 16, row % 16, column % 16] == expected


def test_regions_do_not_overlap() -> None:
    plan = dense_program((5, 40, 40), has_bias=True, start=1000)
    spans = sorted((r.addr, r.addr + r.size) for r in plan.regions.values())
    assert spans[0][0] >= 1000
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(r.addr % r.unit == 0 for r in plan.regions.values())


# -- messages -------------------------------------------------------------------------------------------------

X = np.zeros((2, 3), np.int8)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: post_steps(shift=32), "shift must be in 0 .. 31, not 32; accumulators have 32 bits"),
        (
            lambda: dense(X, np.zeros((4, 2), np.int8)),
            "x and weights must be matrices with as many columns, not of shapes (2, 3) and (4, 2); weights have one "
            "row per output channel",
        ),
        (
            lambda: dense(X, X, np.zeros(3, np.int32)),
            "bias must have shape (2,), not (3,); it has one number per output",
        ),
        (lambda: dense(X, X.astype(np.int32)), "x and weights must be int8, not int8 and int32; quantise them"),
        (lambda: dense(X, X, np.zeros(2, np.int64)), "bias must be int32, not int64; convert it"),
        (lambda: dense_program((2, 0, 2)), "rows, inputs and outputs must be positive, not 2, 0 and 2"),
        (
            lambda: dense_program((1 << 20, 16, 16)),
            "The tensors must fit in DRAM (16777216 bytes), but input would end at byte 16777248; compute the "
            "operation in parts",
        ),
        (
            lambda: dense_program((1, 1, 1)).program(input=b"", weights=bytes(256)),
            "input must have 16 bytes, not 0; pack it",
        ),
        (
            lambda: pack_vectors(np.zeros((0, 3), np.int8)),
            "A tensor of VTA must be a non-empty matrix of int8 or int32, not int8 of shape (0, 3); reshape or "
            "convert it",
        ),
        (lambda: Regions((1 << 24) - 1).add("x", MemoryId.INP, 1),
         "The tensors must fit in DRAM (16777216 bytes), but x would end at byte 16777232; compute the operation in "
         "parts"),
    ],
)  # fmt: skip
def test_messages(act: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        act()
    assert str(error.value) == message


def test_the_published_ila_runs_assembled_programs() -> None:
    x, weights = numbers(1, 2, 17), numbers(2, 3, 17)
    program, plan = dense(x, weights, steps=post_steps(shift=8), options=VTA_ILA)
    assert np.array_equal(
        plan.result(run(program, Machine(vta(VTA_ILA)), VTA_ILA)), reference(x, weights, None, 8, False, True)
    )
