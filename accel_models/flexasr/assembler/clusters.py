"""Clustered weights: four-bit indices into a table of 16 codes, one table per PE and matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.layout import LANES

from .tiling import AssemblyError

__all__ = ["ENTRIES", "cluster_table", "clustered_rows"]

ENTRIES = 16

Codes = NDArray[np.uint8]


def cluster_table(codes: Codes, what: str = "Clustered weights") -> Codes:
    """The codes that occur, ascending and the last one repeated, as a table of 16; zeros where none occurs.

    Raises AssemblyError where there are more than 16.
    """
    values = np.unique(codes)
    if len(values) > ENTRIES:
        raise AssemblyError(
            f"{what} must have at most {ENTRIES} different codes, the entries of a PE's table, not {len(values)}; "
            "cluster them, or assemble without clustered=True"
        )
    last = values[-1:] if len(values) else np.zeros(1, np.uint8)
    return np.concatenate([values, np.repeat(last, ENTRIES - len(values))])


def clustered_rows(rows: Codes, used: NDArray[np.bool_], what: str = "Clustered weights") -> tuple[Codes, Codes]:
    """The tables [PEs, 16] and the packed rows [PEs, N/2, 16] of tile rows [PEs, N, 16].

    A packed row holds two rows of a tile, the even one in its lower eight bytes; the index of an even column is the
    lower half of its byte.  Weights that are not ``used`` [PEs, N, 16], because they are padding without effect, take
    no entry of the table and get any index.

    Raises AssemblyError where the weights of one PE have more than 16 different codes.
    """
    tables = np.stack([cluster_table(pe[mask], what) for pe, mask in zip(rows, used, strict=True)])
    indices = np.empty_like(rows)
    for pe, table in enumerate(tables):
        index_of = np.zeros(256, np.uint8)
        index_of[table] = np.arange(ENTRIES, dtype=np.uint8)
        indices[pe] = index_of[rows[pe]]
    pairs = indices.reshape(len(rows), -1, LANES // 2, 2)
    packed = pairs[..., 0] | np.left_shift(pairs[..., 1], np.uint8(4))
    return tables, packed.reshape(len(rows), -1, LANES)
