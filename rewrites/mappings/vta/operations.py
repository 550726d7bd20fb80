"""Operations on matrices of integers as programs of VTA's mappings at the matrices' sizes; results are int8.

Features are filled with zeros to vectors of 16.  SizeError is raised where one program cannot hold the matrices, and
ValueError where they do not match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accel_models.vta.isa import BLOCK, AluOp
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.programs import DeviceProgram, filled, signed_codes

from .claims import DENSE, ELEMENTWISE
from .dense import SHIFT, dense_mapping
from .elementwise import OPERATIONS

Program = DeviceProgram[NDArray[np.int8]]
_LOW_BYTES: Final = MappingClaim(
    DENSE.name,
    "the program of a dense layer without its bounds: no claim is made of it",
    partial(dense_mapping, steps=((AluOp.SHR, SHIFT),)),
)


def dense(
    x: NDArray[np.integer],
    w: NDArray[np.integer],
    b: NDArray[np.integer] | None = None,
    *,
    shift: int = 0,
    saturate: bool = True,
) -> Program:
    """``x @ w.T + b`` shifted right and saturated to bytes, for x [M, K] and w [N, K] of int8, and b [N] of int32.

    Without ``saturate`` the low bytes are stored as they are, by the proved program less the steps that bound it.
    """
    b = np.zeros(len(w), np.int32) if b is None else b
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[1] or b.shape != w.shape[:1]:
        shapes = f"{list(x.shape)}, {list(w.shape)} and {list(b.shape)}"
        raise ValueError(f"x, w and b must be [M, K], [N, K] and [N], not {shapes}; w has a row for each output")
    (rows, features), outputs = x.shape, len(w)
    wide, high = _filled(features), _filled(outputs)
    claim = DENSE if saturate else _LOW_BYTES
    sizes = {**claim.mapping.sizes_for((rows, wide, high)), "shift": shift}
    tensors = {
        "host_x": (signed_codes("x", x, 8), (rows, wide)),
        "host_w": (signed_codes("w", w, 8), (high, wide)),
        "host_b": (signed_codes("b", b, 32), (high,)),
    }
    return filled(claim, sizes, tensors, _reader(rows, outputs))


def elementwise(
    name: str, a: NDArray[np.integer], b: NDArray[np.integer] | None = None, *, imm: int | None = None
) -> Program:
    """An operator of :data:`~.elementwise.OPERATIONS` on a [M, N] of int32; its low bytes.

    ``b`` is the second operand, a matrix of the same shape or a row [1, N], and ``imm`` the signed immediate, where the
    operator has one.
    """
    claim, operation = ELEMENTWISE[name], OPERATIONS[name]
    second = {"matrix": a.shape, "row": (1, *a.shape[1:]), None: None}[operation.second]
    if a.ndim != 2 or (None if b is None else b.shape) != second or (imm is None) != (operation.bits == 0):
        raise ValueError(f"{claim.name} must be given a matrix, {_operands(name)}; reshape them, or leave them out")
    rows, columns = a.shape
    wide = _filled(columns)
    sizes = claim.mapping.sizes_for((rows, wide))
    if imm is not None:
        sizes = {**sizes, "imm": imm & (1 << operation.bits) - 1}
    tensors = {"host_a": (signed_codes("a", a, 32), (rows, wide))}
    if b is not None:
        tensors["host_b"] = signed_codes("b", b, 32), (len(b), wide)
    return filled(claim, sizes, tensors, _reader(rows, columns))


def _operands(name: str) -> str:
    operation = OPERATIONS[name]
    second = {"matrix": "a second one of its shape", "row": "a second one of one row", None: "no second one"}
    immediate = f"an immediate of {operation.bits} bits" if operation.bits else "no immediate"
    return f"{second[operation.second]} and {immediate}"


def _filled(count: int) -> int:
    return -(-count // BLOCK) * BLOCK


def _reader(rows: int, columns: int) -> Callable[[Mapping[str, NDArray[Any]]], NDArray[np.int8]]:
    def read(tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.int8]:
        return np.ascontiguousarray(tensors["host_y"].view(np.int8).reshape(rows, -1)[:, :columns])

    return read
