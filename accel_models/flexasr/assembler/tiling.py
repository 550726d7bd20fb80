"""Tensors as vectors of 16 lanes: padding, places in the large buffer, weight tiles, and the limits of all these.

The same layouts as :mod:`accel_models.flexasr.layout`, on whole NumPy arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.layout import LANES, LARGE_VECTORS, PE_COUNT
from accel_models.flexasr.quantise import Quantised

__all__ = [
    "AssemblyError",
    "at_most",
    "check_matrix",
    "check_rank",
    "check_shape",
    "matrix_places",
    "matrix_size",
    "output_vectors",
    "padded",
    "vectors",
    "weight_rows",
]

MOST_VECTORS = 255  # num_vector and num_input have 8 bits
MOST_TIMESTEPS = 65535  # num_timestep has 16 bits

Codes = NDArray[np.uint8]


class AssemblyError(ValueError):
    """A tensor operation that does not fit the accelerator, or whose tensors do not fit each other."""


def vectors(features: int) -> int:
    """The vectors that hold ``features`` numbers."""
    return -(-features // LANES)


def output_vectors(features: int) -> int:
    """The vectors that the PEs compute for ``features`` outputs: as many in each of the four."""
    return PE_COUNT * -(-features // (PE_COUNT * LANES))


def padded(codes: Codes, size: int) -> Codes:
    """The codes [..., F] with zeros up to ``size`` vectors: [..., size, 16]."""
    out = np.zeros((*codes.shape[:-1], size * LANES), np.uint8)
    out[..., : codes.shape[-1]] = codes
    return out.reshape(*codes.shape[:-1], size, LANES)


def matrix_places(base: int, timesteps: int, size: int) -> NDArray[np.int64]:
    """Where a matrix of ``size`` vectors per timestep lies in the large buffer: vector addresses [timesteps, size]."""
    t, v = np.arange(timesteps)[:, None], np.arange(size)
    return np.asarray(base + t % LANES + (t // LANES * size + v) * LANES)


def matrix_size(timesteps: int, size: int) -> int:
    """The vectors of the large buffer that a matrix takes: whole groups of 16 timesteps."""
    return -(-timesteps // LANES) * LANES * size


def weight_rows(weights: Codes, inputs: int, outputs: int) -> Codes:
    """Weights by gate [G, H, I] as rows of 16x16 tiles for each PE: [PEs, rows, 16].

    ``inputs`` and ``outputs`` count the vectors after padding.  PE p computes the vectors p * outputs/4 and on, and for
    each of them all gates; the tiles of one vector and gate follow each other along the inputs.
    """
    gates = len(weights)
    filled = np.zeros((gates, outputs * LANES, inputs * LANES), np.uint8)
    filled[:, : weights.shape[1], : weights.shape[2]] = weights
    tiles = filled.reshape(gates, PE_COUNT, outputs // PE_COUNT, LANES, inputs, LANES)
    return np.ascontiguousarray(tiles.transpose(1, 2, 0, 4, 3, 5)).reshape(PE_COUNT, -1, LANES)


def bias_rows(biases: Codes, outputs: int) -> Codes:
    """Biases by gate [G, H] as vectors for each PE, in the order in which it computes them: [PEs, vectors, 16]."""
    by_pe = padded(biases, outputs).reshape(len(biases), PE_COUNT, outputs // PE_COUNT, LANES)
    return np.ascontiguousarray(by_pe.transpose(1, 2, 0, 3)).reshape(PE_COUNT, -1, LANES)


# -- limits -------------------------------------------------------------------------------------------


def at_most(what: str, given: int, most: int, limit: str, next_step: str) -> None:
    """Raises AssemblyError where ``given`` is more than ``most``; ``limit`` names what sets it."""
    if given > most:
        raise AssemblyError(f"{what} must be at most {most} ({limit}), not {given}; {next_step}")


def check_rank(name: str, tensor: Quantised, axes: str) -> None:
    """Raises AssemblyError where the tensor is not of as many axes as named, such as "T, F", or is empty."""
    if len(tensor.shape) != axes.count(",") + 1 or 0 in tensor.shape:
        raise AssemblyError(
            f"{name} must have shape [{axes}] without an empty axis, not {list(tensor.shape)}; reshape it"
        )


def check_shape(name: str, tensor: Quantised, shape: tuple[int, ...]) -> None:
    """Raises AssemblyError where the tensor has another shape."""
    if tensor.shape != shape:
        raise AssemblyError(f"{name} must have shape {list(shape)}, not {list(tensor.shape)}; reshape or transpose it")


def check_matrix(name: str, timesteps: int, features: int) -> int:
    """The vectors of a timestep of a matrix in the large buffer.

    Raises AssemblyError where the counters of the units or the buffer are too small for it.
    """
    at_most(f"Timesteps of {name}", timesteps, MOST_TIMESTEPS, "num_timestep has 16 bits", "split the sequence")
    size = vectors(features)
    at_most(
        f"Features of {name}",
        features,
        MOST_VECTORS * LANES,
        "num_vector has 8 bits, 16 features each",
        "split the tensor",
    )
    at_most(
        f"Vectors of {name}",
        matrix_size(timesteps, size),
        LARGE_VECTORS,
        "the large buffer, in groups of 16 timesteps",
        "split the sequence",
    )
    return size
