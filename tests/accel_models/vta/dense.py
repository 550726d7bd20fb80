"""Matrix products as programs with tokens, with their data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accel_models.vta.isa import BLOCK
from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.products import Step, TensorProgram, dense_program, post_steps
from accel_models.vta.program import Program
from accel_models.vta.tiling import blocks_of


def pack_vectors(matrix: NDArray[np.generic]) -> bytes:
    """A matrix (rows, columns) of int8 or int32 as vectors, row by row; tails are zeros."""
    _require_matrix(matrix)
    rows, columns = matrix.shape
    wide = np.zeros((rows, blocks_of(columns) * BLOCK), matrix.dtype)
    wide[:, :columns] = matrix
    return wide.astype(wide.dtype.newbyteorder("<")).tobytes()


def pack_tiles(weights: NDArray[np.generic]) -> bytes:
    """A weight matrix (output channels, input channels) of int8 as tiles; tile (n, k) has index ``n * K + k``."""
    _require_matrix(weights)
    rows, columns = (blocks_of(n) for n in weights.shape)
    wide = np.zeros((rows * BLOCK, columns * BLOCK), np.int8)
    wide[: weights.shape[0], : weights.shape[1]] = weights
    return wide.reshape(rows, BLOCK, columns, BLOCK).swapaxes(1, 2).tobytes()


def _require_matrix(matrix: NDArray[np.generic]) -> None:
    if matrix.ndim != 2 or matrix.dtype not in (np.int8, np.int32) or 0 in matrix.shape:
        raise ValueError(
            f"A tensor of VTA must be a non-empty matrix of int8 or int32, not {matrix.dtype} of shape {matrix.shape}; "
            "reshape or convert it"
        )


def dense(
    x: NDArray[np.int8],
    weights: NDArray[np.int8],
    bias: NDArray[np.int32] | None = None,
    *,
    steps: Sequence[Step] = post_steps(),
    options: VtaOptions = HLS,
) -> tuple[Program, TensorProgram]:
    """``x @ weights.T + bias``, then ``steps``: a program with its data, and how to read its result.

    ``x`` is (rows, inputs), ``weights`` (outputs, inputs), both int8; ``bias`` (outputs,) int32.
    """
    shape = (x.shape[0], x.shape[1], weights.shape[0])
    tensor_program = dense_program(shape, has_bias=bias is not None, steps=steps)
    tensors = {"input": pack_vectors(x), "weights": pack_tiles(weights)}
    if bias is not None:
        tensors["bias"] = pack_vectors(bias[None, :])
    return tensor_program.program(options, **tensors), tensor_program
