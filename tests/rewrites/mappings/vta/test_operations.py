"""Operations as programs of VTA's mappings, at sizes that are no multiples of 16, and their messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.vta.model import vta
from ila_lang import Machine, Simulator
from ila_lang.mapping import SizeError
from rewrites.mappings.vta.operations import dense, elementwise


def numbers(seed: int, *shape: int, kind: Any = np.int8) -> np.ndarray:
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, int(info.max) + 1, shape).astype(kind)


@settings(max_examples=15)
@given(
    st.integers(1, 4), st.integers(1, 35), st.integers(1, 20), st.integers(0, 15), st.booleans(), st.integers(0, 99)
)  # fmt: skip
def test_dense(rows: int, inputs: int, outputs: int, shift: int, saturate: bool, seed: int) -> None:
    x, w, b = numbers(seed, rows, inputs), numbers(seed + 1, outputs, inputs), numbers(seed + 2, outputs, kind=np.int32)
    sums = (x.astype(np.int64) @ w.T.astype(np.int64) + b).astype(np.int32) >> shift
    wanted = (np.clip(sums, -128, 127) if saturate else sums).astype(np.int8)
    program = dense(x, w, b, shift=shift, saturate=saturate)
    for device in (Machine(vta()), Simulator(vta())):
        assert np.array_equal(program.run(device), wanted)


MEANING: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "relu": lambda a, b: np.maximum(a, 0),
    "min": np.minimum,
    "max": np.maximum,
    "add": lambda a, b: a + b,
    "bias_add": lambda a, b: a + b[:1],
    "shift": lambda a, b: a >> 3,
    "max_imm": lambda a, b: np.maximum(a, -5),
}


@settings(max_examples=20)
@given(st.sampled_from(list(MEANING)), st.integers(1, 4), st.integers(1, 35), st.integers(0, 99))
def test_elementwise(name: str, rows: int, columns: int, seed: int) -> None:
    a, b = (numbers(seed + i, rows, columns, kind=np.int32) for i in range(2))
    second = {"bias_add": b[:1]}.get(name, b if name in ("min", "max", "add") else None)
    program = elementwise(name, a, second, imm={"shift": 3, "max_imm": -5}.get(name))
    for device in (Machine(vta()), Simulator(vta())):
        assert np.array_equal(program.run(device), MEANING[name](a, b).astype(np.int8))


X, A = np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: dense(X, X[:, :2]),
            "x, w and b must be [M, K], [N, K] and [N], not [2, 3], [2, 2] and [2]; w has a row for each output",
        ),
        (
            lambda: dense(X, X, np.zeros(3, int)),
            "x, w and b must be [M, K], [N, K] and [N], not [2, 3], [2, 3] and [3]",
        ),
        (lambda: dense(X + np.int16(200), X), "x must hold codes of 8 bits, -128 .. 127; quantise it to that format"),
        (lambda: dense(X, X, shift=16), "Sizes of mapping vta_dense must satisfy: shift <= 15; given m = 2"),
        (
            lambda: elementwise("add", A, A[:1]),
            "vta_add must be given a matrix, a second one of its shape and no immediate; reshape them",
        ),
        (
            lambda: elementwise("shift", A),
            "vta_shift must be given a matrix, no second one and an immediate of 4 bits; reshape them",
        ),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, SizeError)) as error:
        call()
    assert str(error.value).startswith(message)
