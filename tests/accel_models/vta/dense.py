"""Matrix products as programs with tokens, with their data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.products import Step, TensorProgram, dense_program, post_steps
from accel_models.vta.program import Program
from accel_models.vta.tiling import pack_tiles, pack_vectors


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
