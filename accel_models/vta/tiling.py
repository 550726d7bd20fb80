"""Tensors as VTA takes them: vectors of 16 lanes and tiles of 16 x 16 in DRAM, and blocks that fit the scratchpads.

A matrix of bytes (inputs, outputs) or of 32-bit words (accumulators) is cut into vectors of 16 columns, row by row;
weights, one row per output channel, are cut into tiles of 16 rows and 16 columns, tile row by tile row.  Tails are
filled with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .isa import BLOCK, MemoryId
from .scratchpads import DRAM_BITS, SCRATCHPADS


def blocks_of(count: int) -> int:
    """How many vectors ``count`` columns take.

    >>> blocks_of(17)
    2
    """
    return -(-count // BLOCK)


def pack_vectors(matrix: NDArray[np.generic]) -> bytes:
    """A matrix (rows, columns) of int8 or int32 as vectors, row by row; tails are zeros.

    >>> pack_vectors(np.array([[1, -1]], dtype=np.int8)).hex()
    '01ff0000000000000000000000000000'
    """
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


def unpack_vectors(data: bytes, rows: int, columns: int) -> NDArray[np.int8]:
    """The matrix of int8 behind packed vectors, without tails; the inverse of :func:`pack_vectors`."""
    return np.frombuffer(data, np.int8).reshape(rows, blocks_of(columns) * BLOCK)[:, :columns].copy()


def _require_matrix(matrix: NDArray[np.generic]) -> None:
    if matrix.ndim != 2 or matrix.dtype not in (np.int8, np.int32) or 0 in matrix.shape:
        raise ValueError(
            f"A tensor of VTA must be a non-empty matrix of int8 or int32, not {matrix.dtype} of shape {matrix.shape}; "
            "reshape or convert it"
        )


@dataclass(frozen=True)
class Region:
    """A tensor's place in DRAM; ``base`` is its address in elements of ``unit`` bytes."""

    addr: int
    size: int
    unit: int

    @property
    def base(self) -> int:
        """The address as instructions give it."""
        return self.addr // self.unit


class Regions:
    """Places tensors in DRAM one after the other, each aligned to its element and to the 16 bytes of the host."""

    def __init__(self, start: int = 0) -> None:
        self.end = start
        self.regions: dict[str, Region] = {}

    def add(self, name: str, memory: MemoryId, elements: int) -> Region:
        """Room for ``elements`` of a memory's elements; raises ValueError where DRAM is full."""
        unit = SCRATCHPADS[memory].element_bytes
        align = max(unit, 16)
        addr = -(-self.end // align) * align
        if addr + elements * unit > 1 << DRAM_BITS:
            raise ValueError(
                f"The tensors must fit in DRAM ({1 << DRAM_BITS} bytes), but {name} would end at byte "
                f"{addr + elements * unit}; compute the operation in parts"
            )
        self.regions[name] = Region(addr, elements * unit, unit)
        self.end = addr + elements * unit
        return self.regions[name]


@dataclass(frozen=True)
class Blocks:
    """How an operation is cut: at most ``rows`` x ``outputs`` accumulators, and ``inputs`` input vectors per row.

    ``halves`` is 2 where scratchpads are used in two halves, so that one can be filled while the other is used.
    """

    rows: int
    outputs: int
    inputs: int
    halves: int

    def cut(self, count: int, size: int) -> Iterator[tuple[int, int]]:
        """(start, length) of the pieces of ``count``."""
        for start in range(0, count, size):
            yield start, min(size, count - start)


def dense_blocks(rows: int, outputs: int, inputs: int) -> Blocks:
    """The blocks of a matrix product with these numbers of rows and vectors: one if it fits, else halves.

    >>> dense_blocks(64, 4, 4)
    Blocks(rows=64, outputs=4, inputs=4, halves=1)
    """
    inp, wgt, acc = (SCRATCHPADS[m].depth for m in (MemoryId.INP, MemoryId.WGT, MemoryId.ACC))
    if rows * inputs <= inp and outputs * inputs <= wgt and rows * outputs <= acc:
        return Blocks(rows, outputs, inputs, 1)
    inp, wgt, acc = inp // 2, wgt // 2, acc // 2
    # Squarish blocks load each operand least often; 32 columns of tiles leave room for 16 of output channels.
    inputs = min(inputs, 32)
    outputs = min(outputs, wgt // inputs, 32)
    return Blocks(min(rows, inp // inputs, acc // outputs), outputs, inputs, 2)
