"""Matrix products of any size that DRAM holds as VTA programs with tokens, which let its modules run at the same time.

They are what the theorem of token order (:mod:`chc.token_order.theorem`) is about; the programs of mappings are in
sequential order and move no tokens.

What fits the scratchpads is one round of loads, computation and stores.  What does not is cut into blocks, and the
scratchpads into halves: while one half is used, the other is filled or emptied.  Two tokens in each direction keep the
modules from overtaking each other, so that at most two are ever outstanding:

* a round's loads push l2g and its last product pushes g2l, which the loads two rounds later pop;
* a block's last operation pushes g2s and its STORE pushes s2g, which the first operation two blocks later pops; finish
  pops the last STORE's.

Results are bytes: the low 8 bits of accumulators.  ``clip`` bounds accumulators to -128 .. 127 first.

A block's product is one instruction: input channels are the outer iterations, rows the inner ones, and output channels
the micro-ops.  So an accumulator is read again only after all others of its block, when a pipelined design has written
it.  Where a block has no more than ``CLOSE`` accumulators there is one instruction for each vector of input channels,
and none reads an accumulator twice; :mod:`accel_models.vta.order.revisits` checks that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .isa import ENCODINGS, Alu, AluOp, Finish, Gemm, Instruction, Load, MemoryId, Store, Uop, encode, encode_uop
from .options import HLS, VtaOptions
from .program import Program
from .scratchpads import SCRATCHPADS
from .tiling import Blocks, Region, Regions, blocks_of, dense_blocks, pack_tiles, pack_vectors, unpack_vectors

INP, WGT, ACC = (SCRATCHPADS[m].depth for m in (MemoryId.INP, MemoryId.WGT, MemoryId.ACC))
MOST_SHIFT = 15  # a larger amount shifts left in the HLS design
CLOSE = 4  # the most iterations that a result takes to arrive, in any reading


@dataclass(frozen=True)
class Step:
    """An ALU operation on all accumulators, with the immediate ``imm``."""

    operation: AluOp
    imm: int


@dataclass(frozen=True)
class TensorProgram:
    """Instructions and micro-ops of an operation, and where its tensors lie in DRAM.

    ``regions`` are "uops", the operands by name, and "output", a matrix of int8 with ``rows`` rows and ``columns``
    columns.
    """

    instructions: tuple[Instruction, ...]
    uops: tuple[Uop, ...]
    regions: Mapping[str, Region]
    rows: int
    columns: int

    def program(self, options: VtaOptions = HLS, **tensors: bytes) -> Program:
        """The program with its operands, packed (:mod:`accel_models.vta.tiling`), and a read of the output."""
        encoding = ENCODINGS[options.encoding]
        contents = {"uops": b"".join(encode_uop(u).to_bytes(4, "little") for u in self.uops)} | tensors
        dram = []
        for name, region in self.regions.items():
            if name == "output":
                continue
            if len(contents.get(name, b"")) != region.size:
                raise ValueError(f"{name} must have {region.size} bytes, not {len(contents.get(name, b''))}; pack it")
            dram.append((region.addr, contents[name]))
        output = self.regions["output"]
        words = tuple(encode(x, encoding) for x in self.instructions)
        return Program(tuple(dram), words, ((output.addr, output.size),))

    def result(self, reads: Sequence[tuple[int, int]]) -> NDArray[np.int8]:
        """The output matrix from what the program read."""
        data = b"".join(word.to_bytes(16, "little") for _, word in reads)
        return unpack_vectors(data, self.rows, self.columns)


def post_steps(*, shift: int = 0, relu: bool = False, clip: bool = True) -> tuple[Step, ...]:
    """Arithmetic shift right by ``shift``, then bounds: the usual way from accumulators to bytes.

    Raises ValueError unless ``shift`` is in 0 .. 31.

    >>> [step.operation.name for step in post_steps(shift=20, relu=True)]
    ['SHR', 'SHR', 'MAX', 'MIN']
    """
    if not 0 <= shift <= 31:
        raise ValueError(f"shift must be in 0 .. 31, not {shift}; accumulators have 32 bits")
    steps = []
    while shift:
        steps.append(Step(AluOp.SHR, min(shift, MOST_SHIFT)))
        shift -= min(shift, MOST_SHIFT)
    if relu or clip:
        steps.append(Step(AluOp.MAX, 0 if relu else -128))
    if clip:
        steps.append(Step(AluOp.MIN, 127))
    return tuple(steps)


SATURATED = post_steps()
"""What a product ends with where nothing is said: bounds of bytes."""


def dense(
    x: NDArray[np.int8],
    weights: NDArray[np.int8],
    bias: NDArray[np.int32] | None = None,
    *,
    steps: Sequence[Step] = SATURATED,
    options: VtaOptions = HLS,
) -> tuple[Program, TensorProgram]:
    """``x @ weights.T + bias``, then ``steps``: a program with its data, and how to read its result.

    ``x`` is (rows, inputs), ``weights`` (outputs, inputs), both int8; ``bias`` (outputs,) int32.
    """
    if x.ndim != 2 or weights.ndim != 2 or x.shape[1] != weights.shape[1]:
        raise ValueError(
            f"x and weights must be matrices with as many columns, not of shapes {x.shape} and {weights.shape}; "
            "weights have one row per output channel"
        )
    if bias is not None and bias.shape != weights.shape[:1]:
        raise ValueError(f"bias must have shape {weights.shape[:1]}, not {bias.shape}; it has one number per output")
    if x.dtype != np.int8 or weights.dtype != np.int8:
        raise ValueError(f"x and weights must be int8, not {x.dtype} and {weights.dtype}; quantise them")
    if bias is not None and bias.dtype != np.int32:
        raise ValueError(f"bias must be int32, not {bias.dtype}; convert it")
    shape = (x.shape[0], x.shape[1], weights.shape[0])
    tensor_program = dense_program(shape, has_bias=bias is not None, steps=steps)
    tensors = {"input": pack_vectors(x), "weights": pack_tiles(weights)}
    if bias is not None:
        tensors["bias"] = pack_vectors(bias[None, :])
    return tensor_program.program(options, **tensors), tensor_program


def dense_program(
    shape: tuple[int, int, int],
    *,
    has_bias: bool = False,
    steps: Sequence[Step] = (),
    blocks: Blocks | None = None,
    start: int = 0,
) -> TensorProgram:
    """The program of a matrix product of (rows, inputs) and (outputs, inputs), then ``steps``, without data.

    ``shape`` is rows, inputs and outputs.  Tensors lie in DRAM from byte ``start`` on.  ``blocks`` is how to cut it, by
    default :func:`dense_blocks`.  Raises ValueError where DRAM is too small.
    """
    rows, inputs, outputs = shape
    if min(shape) < 1:
        raise ValueError(f"rows, inputs and outputs must be positive, not {rows}, {inputs} and {outputs}")
    columns, depth = blocks_of(outputs), blocks_of(inputs)
    blocks = blocks or dense_blocks(rows, columns, depth)
    regions = Regions(start)
    uops = _MicroOps(blocks, rows, columns, depth)
    table = regions.add("uops", MemoryId.UOP, len(uops.table))
    regions.add("input", MemoryId.INP, rows * depth)
    regions.add("weights", MemoryId.WGT, columns * depth)
    if has_bias:
        regions.add("bias", MemoryId.ACC, columns)
    regions.add("output", MemoryId.OUT, rows * columns)
    body = list(_Dense(regions.regions, blocks, columns, depth, tuple(steps), uops).instructions(rows))
    return _complete(table, uops.table, body, regions, rows, outputs)


def _complete(
    table: Region, uops: Sequence[Uop], body: Sequence[Instruction], regions: Regions, rows: int, columns: int
) -> TensorProgram:
    first = _load(MemoryId.UOP, 0, table.base, 1, len(uops))
    return TensorProgram((first, *body, Finish(pop_next=True)), tuple(uops), regions.regions, rows, columns)


_Span = tuple[int, int]  # start and length


@dataclass(frozen=True)
class _Tile:
    """A block of the output: its number, rows, columns (in vectors), and which half of the accumulators it uses."""

    number: int
    rows: _Span
    columns: _Span
    half: int

    @property
    def base(self) -> int:
        """The first of its accumulators, which follow each other."""
        return self.half * (ACC // 2)


class _Tiles:
    """The output's blocks, in order, with what all operations have in common."""

    def __init__(self, output: Region, blocks: Blocks, rows: int, columns: int) -> None:
        self.output, self.blocks, self.columns = output, blocks, columns
        spans = [(r, c) for r in blocks.cut(rows, blocks.rows) for c in blocks.cut(columns, blocks.outputs)]
        self.tiles = [_Tile(n, row, column, n % blocks.halves) for n, (row, column) in enumerate(spans)]

    def reuses(self, tile: _Tile) -> bool:
        """Whether an earlier block used the same accumulators: its STORE must have been."""
        return tile.number >= self.blocks.halves

    def stored(self, tile: _Tile, block: list[Instruction]) -> list[Instruction]:
        """A block's instructions with its STORE; the last one before it is of the compute module."""
        awaited = tile.number + self.blocks.halves < len(self.tiles) or tile.number + 1 == len(self.tiles)
        store = Store(
            sram_base=tile.base,
            dram_base=self.output.base + tile.rows[0] * self.columns + tile.columns[0],
            y_size=tile.rows[1],
            x_size=tile.columns[1],
            x_stride=self.columns,
            pop_prev=True,
            push_prev=awaited,
        )
        return [*block[:-1], replace(block[-1], push_next=True), store]


class _MicroOps:
    """The micro-ops of a matrix product: one for each vector of output channels.

    They depend on the halves of the scratchpads and on how many input vectors a row of weights has; those of small
    blocks also on the input vector.  Input vectors and tiles of a part lie one after the other, row by row.
    """

    def __init__(self, blocks: Blocks, rows: int, columns: int, depth: int) -> None:
        self.blocks = blocks
        self.table: list[Uop] = []
        self._begin: dict[tuple[int, int, int, int | None], int] = {}
        widths = {length for _, length in blocks.cut(columns, blocks.outputs)}
        cells = {r * c for _, r in blocks.cut(rows, blocks.rows) for c in widths}
        for part, half in np.ndindex(blocks.halves, blocks.halves):
            for length in sorted({n for _, n in blocks.cut(depth, blocks.inputs)}, reverse=True):
                if max(cells) > CLOSE:
                    self._add(part, half, length, None, max(widths))
                if min(cells) <= CLOSE:
                    for k in range(length):
                        self._add(part, half, length, k, min(max(widths), CLOSE))
        self.table += _in_place(blocks.halves)

    def _add(self, part: int, half: int, length: int, k: int | None, count: int) -> None:
        self._begin[part, half, length, k] = len(self.table)
        source, tile = part * (INP // 2) + (k or 0), part * (WGT // 2) + (k or 0)
        self.table += [Uop(dst=half * (ACC // 2) + c, src=source, wgt=tile + c * length) for c in range(count)]

    def begin(self, at: int, tile: _Tile, length: int, k: int | None) -> int:
        """The first micro-op for a block in round ``at``, whose part has ``length`` input vectors."""
        return self._begin[at % self.blocks.halves, tile.half, length, k]

    def steps(self, half: int) -> int:
        """The micro-op for operations with an immediate."""
        return len(self.table) - self.blocks.halves + half


class _Dense:
    """Emits the blocks of a matrix product."""

    def __init__(
        self,
        regions: Mapping[str, Region],
        blocks: Blocks,
        columns: int,
        depth: int,
        steps: tuple[Step, ...],
        uops: _MicroOps,
    ) -> None:
        self.regions, self.blocks, self.columns, self.depth, self.steps = regions, blocks, columns, depth, steps
        self.uops = uops

    def instructions(self, rows: int) -> Iterator[Instruction]:
        """Loads, products, steps and stores of all blocks, in program order."""
        tiles = _Tiles(self.regions["output"], self.blocks, rows, self.columns)
        parts = list(self.blocks.cut(self.depth, self.blocks.inputs))
        rounds = len(tiles.tiles) * len(parts)
        for tile in tiles.tiles:
            block: list[Instruction] = []
            for p, part in enumerate(parts):
                at = tile.number * len(parts) + p
                block += self._loads(at, tile, part)
                products = self._first(at, tile, part, reuses=tiles.reuses(tile)) if p == 0 else []
                products += self._products(at, tile, part, pop=not _pops_l2g(products))
                awaited = at + self.blocks.halves < rounds
                block += [*products[:-1], replace(products[-1], push_prev=awaited)]
            begin, cells = self.uops.steps(tile.half), tile.rows[1] * tile.columns[1]
            block += [_alu(step, begin, cells) for step in self.steps]
            yield from tiles.stored(tile, block)

    def _loads(self, at: int, tile: _Tile, part: _Span) -> Iterator[Instruction]:
        half = at % self.blocks.halves
        inp, wgt = (
            self.regions[name].base + span[0] * self.depth + part[0]
            for name, span in (("input", tile.rows), ("weights", tile.columns))
        )
        load = _load(MemoryId.INP, half * (INP // 2), inp, tile.rows[1], part[1], self.depth)
        yield replace(load, pop_next=at >= self.blocks.halves)
        load = _load(MemoryId.WGT, half * (WGT // 2), wgt, tile.columns[1], part[1], self.depth)
        yield replace(load, push_next=True)

    def _products(self, at: int, tile: _Tile, part: _Span, *, pop: bool) -> list[Instruction]:
        """The products of a part; the first instruction pops the loads' token if ``pop``."""
        rows, columns, length = tile.rows[1], tile.columns[1], part[1]
        small = rows * columns <= CLOSE
        gemms: list[Instruction] = []
        for k in range(length) if small else [None]:
            begin = self.uops.begin(at, tile, length, k)
            gemm = Gemm(
                uop_bgn=begin,
                uop_end=begin + columns,
                iter_out=1 if small else length,
                iter_in=rows,
                dst_factor_in=columns,
                src_factor_out=0 if small else 1,
                src_factor_in=length,
                wgt_factor_out=0 if small else 1,
                pop_prev=pop and not gemms,
            )
            gemms.append(gemm)
        return gemms

    def _first(self, at: int, tile: _Tile, part: _Span, *, reuses: bool) -> list[Instruction]:
        """What gives the accumulators their first values: the bias on every row, or 0."""
        rows, columns = tile.rows[1], tile.columns[1]
        if "bias" in self.regions:
            base = self.regions["bias"].base + tile.columns[0]
            return [replace(_load(MemoryId.ACC, tile.base, base, rows, columns, 0), pop_next=reuses)]
        begin = self.uops.begin(at, tile, part[1], 0 if rows * columns <= CLOSE else None)
        # The HLS design reads inputs and weights even to clear, so the loads' token comes first.
        return [
            Gemm(
                uop_bgn=begin,
                uop_end=begin + 1,
                iter_in=rows * columns,
                dst_factor_in=1,
                reset_reg=True,
                pop_prev=True,
                pop_next=reuses,
            )
        ]


def _pops_l2g(instructions: Sequence[Instruction]) -> bool:
    return any(x.pop_prev for x in instructions)


def _alu(step: Step, begin: int, cells: int) -> Alu:
    """A step on accumulators that follow each other."""
    return Alu(
        alu_opcode=step.operation,
        use_imm=True,
        imm=step.imm,
        uop_bgn=begin,
        uop_end=begin + 1,
        iter_in=cells,
        dst_factor_in=1,
        src_factor_in=1,
    )


def _in_place(halves: int) -> list[Uop]:
    """Micro-ops with the first accumulator of each half as destination and, as Chisel's immediates need, source."""
    return [Uop(dst=half * (ACC // 2), src=half * (ACC // 2)) for half in range(halves)]


def _load(memory: MemoryId, sram: int, dram: int, rows: int, columns: int, stride: int | None = None) -> Load:
    return Load(
        memory=memory,
        sram_base=sram,
        dram_base=dram,
        y_size=rows,
        x_size=columns,
        x_stride=columns if stride is None else stride,
    )
