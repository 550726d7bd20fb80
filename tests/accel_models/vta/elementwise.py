"""Elementwise operations as programs with tokens, of any size that DRAM holds: another form than that of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accel_models.vta.isa import Alu, AluOp, Instruction, MemoryId
from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.products import ACC, TensorProgram, _complete, _in_place, _load, _Tiles
from accel_models.vta.program import Program
from accel_models.vta.tiling import Blocks, Regions, blocks_of, pack_vectors

Step = tuple[AluOp, int | None]
"""An ALU operation, with an immediate or with a second matrix."""


def elementwise(
    a: NDArray[np.int32],
    steps: Sequence[Step],
    b: NDArray[np.int32] | None = None,
    *,
    options: VtaOptions = HLS,
) -> tuple[Program, TensorProgram]:
    """``steps`` on every element of ``a`` (rows, columns): a program with its data, and how to read its result.

    Steps without an immediate have ``b`` as second operand: a matrix of the same shape, or a row for all rows.
    """
    if a.ndim != 2 or (b is not None and b.shape not in (a.shape, a.shape[1:])):
        shown = "" if b is None else f" and {b.shape}"
        raise ValueError(
            f"a must be a matrix and b of its shape or one of its rows, not of shapes {a.shape}{shown}; reshape them"
        )
    second: Literal["matrix", "row"] | None = None
    if b is not None:
        second = "matrix" if b.ndim == 2 else "row"
    rows, columns = a.shape
    found = elementwise_program(rows, columns, steps, second=second)
    tensors = {"a": pack_vectors(a)}
    if b is not None:
        tensors["b"] = pack_vectors(b.reshape(-1, a.shape[1]))
    return found.program(options, **tensors), found


def elementwise_program(
    rows: int,
    columns: int,
    steps: Sequence[Step],
    *,
    second: Literal["matrix", "row"] | None = None,
    capacity: int = ACC,
    start: int = 0,
) -> TensorProgram:
    """The program of ``steps`` on a matrix of accumulators, without data.

    ``second`` says what steps without an immediate have as second operand; ``capacity`` is how many accumulators to
    use. Raises ValueError where that and the steps do not fit together, or DRAM is too small.
    """
    if min(rows, columns) < 1:
        raise ValueError(f"rows and columns must be positive, not {rows} and {columns}")
    if (second is not None) != any(imm is None for _, imm in steps):
        raise ValueError("A second operand must be given exactly if a step has no immediate; add or remove it")
    width, operands = blocks_of(columns), 1 if second is None else 2
    halves = 1 if rows * width * operands <= capacity else 2
    room = capacity // halves // operands
    across = min(width, room)
    blocks = Blocks(min(rows, room // across), across, 1, halves)
    regions = Regions(start)
    uops = _in_place(halves)
    if second is not None:
        uops += [replace(uop, src=uop.src + room) for uop in uops]
    table = regions.add("uops", MemoryId.UOP, len(uops))
    regions.add("a", MemoryId.ACC, rows * width)
    if second is not None:
        regions.add("b", MemoryId.ACC, width * (rows if second == "matrix" else 1))
    tiles = _Tiles(regions.add("output", MemoryId.OUT, rows * width), blocks, rows, width)
    body: list[Instruction] = []
    for tile in tiles.tiles:
        shape = tile.rows[1], tile.columns[1]
        at = tile.rows[0] * width + tile.columns[0]
        first = _load(MemoryId.ACC, tile.base, regions.regions["a"].base + at, *shape, width)
        block: list[Instruction] = [replace(first, pop_next=tiles.reuses(tile))]
        if second is not None:
            base = regions.regions["b"].base + (at if second == "matrix" else tile.columns[0])
            block.append(_load(MemoryId.ACC, tile.base + room, base, *shape, width if second == "matrix" else 0))
        # Without a step nothing would reach OUT, which only GEMM and ALU write.
        for operation, imm in steps or [(AluOp.ADD, 0)]:
            begin = tile.half + (halves if imm is None else 0)
            block.append(
                Alu(
                    alu_opcode=operation, use_imm=imm is not None, imm=imm or 0, uop_bgn=begin, uop_end=begin + 1,
                    iter_in=shape[0] * shape[1], dst_factor_in=1, src_factor_in=1,
                )
            )  # fmt: skip
        body += tiles.stored(tile, block)
    return _complete(table, uops, body, regions, rows, columns)
