"""Pooling of the tensor IR: the kernel on arrays, against exact arithmetic and the scalar interpreter."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.numerics import value_of
from ila_lang import Ila, Machine, run_on_arrays
from ir_semantics.layers.pooling import POOL_CODES
from rewrites.mappings.flexasr.pooling import ir_model

VALUES = {code: value_of(code) for code in range(256)}
CANONICAL = [c for c in range(256) if c != 0x80]


def pool2d_reference(
    ila: Ila, name: str, tensor: np.ndarray, window: tuple[int, int], stride: tuple[int, int]
) -> np.ndarray:
    """Pools a 2-D array of element codes with NumPy, from the same kernel text."""
    (height, width), (pool_y, pool_x), (stride_y, stride_x) = tensor.shape, window, stride
    rows = max(0, (height - pool_y) // stride_y + 1)
    columns = max(0, (width - pool_x) // stride_x + 1)
    values = {"height": height, "width": width, "pool_y": pool_y, "pool_x": pool_x}
    values |= {"stride_y": stride_y, "stride_x": stride_x}
    memories = {"tensor_in": tensor.astype(np.int64).ravel(), "tensor_out": np.zeros(rows * columns, np.int64)}
    run_on_arrays(ila.kernels[name], values, memories)
    return memories["tensor_out"].astype(tensor.dtype).reshape(rows, columns)


def nearest(value: Fraction) -> int:
    """The code of a real number: nearest, ties toward plus infinity, 0x00 below the smallest, saturating."""
    if abs(value) >= VALUES[0x7F]:
        return 0x7F if value > 0 else 0xFF
    step = Fraction(1, 2**10)
    lowest = 1 + Fraction(1, 16)
    if abs(value) < step * lowest:  # the gap around zero is the rounding rule's business, see the exact cases
        raise ValueError("in the gap around zero")
    distance = min(abs(v - value) for c, v in VALUES.items() if c not in (0, 0x80))
    return max((c for c in CANONICAL if c and abs(VALUES[c] - value) == distance), key=lambda c: VALUES[c])


def oracle(
    name: str, rows: list[list[int]], window: tuple[int, int], stride: tuple[int, int]
) -> list[list[int | None]]:
    """Pooling in exact arithmetic; None where the result lies in the gap around zero."""
    height, width = len(rows), len(rows[0])
    result: list[list[int | None]] = []
    for y in range(0, height - window[0] + 1, stride[0]):
        line: list[int | None] = []
        for x in range(0, width - window[1] + 1, stride[1]):
            under = [VALUES[rows[y + i][x + j]] for i in range(window[0]) for j in range(window[1])]
            total = max(under) if name == "maxpool2d" else sum(under, Fraction(0))
            total = total / len(under) if name == "meanpool2d" else total
            try:
                line.append(0 if total == 0 else nearest(total))
            except ValueError:
                line.append(None)
        result.append(line)
    return result


tensors = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 255), min_size=width, max_size=width), min_size=1, max_size=6)
)
pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(st.sampled_from(sorted(POOL_CODES)), tensors, pairs, pairs)
@settings(max_examples=60)
def test_pooling_is_exact_and_rounded_once(
    name: str, rows: list[list[int]], window: tuple[int, int], stride: tuple[int, int]
) -> None:
    found = pool2d_reference(ir_model(), name, np.array(rows, np.uint8), window, stride)
    wanted = oracle(name, rows, window, stride) if window[0] <= len(rows) and window[1] <= len(rows[0]) else []
    assert found.dtype == np.uint8
    if not wanted:
        assert found.size == 0
        return
    assert found.shape == (len(wanted), len(wanted[0]))
    for line, expected in zip(found.tolist(), wanted, strict=True):
        for code, exact in zip(line, expected, strict=True):
            if exact is not None:
                assert code == exact
            else:
                assert abs(VALUES[code]) <= Fraction(17, 16) * Fraction(1, 2**10)


@given(st.sampled_from(sorted(POOL_CODES)), tensors, pairs, pairs)
@settings(max_examples=60)
def test_arrays_and_the_scalar_interpreter_agree(
    name: str, rows: list[list[int]], window: tuple[int, int], stride: tuple[int, int]
) -> None:
    tensor = np.array(rows, np.uint8)
    found = pool2d_reference(ir_model(), name, tensor, window, stride)
    machine = Machine(ir_model())
    machine.memories["tensor_in"].update(enumerate(tensor.ravel().tolist()))
    inputs = {"height": tensor.shape[0], "width": tensor.shape[1], "pool_y": window[0], "pool_x": window[1]}
    inputs |= {"stride_y": stride[0], "stride_x": stride[1]}
    machine.step({"func_run": 1, "func_id": POOL_CODES[name]} | {f"{n}_in": v for n, v in inputs.items()})
    assert [machine.memories["tensor_out"][i] for i in range(found.size)] == found.ravel().tolist()
    assert not any(i >= found.size for i in machine.memories["tensor_out"])


def test_a_window_larger_than_the_tensor_gives_nothing() -> None:
    for shape, window in (((2, 3), (3, 1)), ((2, 3), (1, 4)), ((1, 1), (9, 9))):
        found = pool2d_reference(ir_model(), "maxpool2d", np.ones(shape, np.uint8), window, (1, 1))
        assert found.size == 0


def test_max_pooling_by_hand() -> None:
    tensor = np.array([[0x10, 0x90, 0x80], [0x20, 0xA0, 0x90], [0x30, 0x00, 0x00]], np.uint8)
    found = pool2d_reference(ir_model(), "maxpool2d", tensor, (2, 1), (1, 1))
    assert found.tolist() == [[0x20, 0x90, 0x00], [0x30, 0x00, 0x00]]
