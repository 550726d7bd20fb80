"""What each instruction of a program reads and writes.

Elements of a scratchpad are sets as bits of an integer, DRAM is intervals of bytes.  The sets of GEMM and ALU come from
the micro-ops that the program has loaded by then; where these are not known (a STORE of the same program may have
written them), the instruction is taken to touch everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load, Loops, MemoryId, Store, Uop, decode_uop
from accel_models.vta.options import VtaOptions
from accel_models.vta.scratchpads import DRAM_BITS, SCRATCHPADS, Scratchpad
from accel_models.vta.transfers import one_row, padded, scratchpad

Intervals = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Footprint:
    """Elements read and written by memory name (bit i of the integer is element i), and half-open intervals of DRAM."""

    reads: Mapping[str, int] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    dram_reads: Intervals = ()
    dram_writes: Intervals = ()

    def conflicts(self, later: Footprint) -> list[tuple[str, str]]:
        """(kind, memory) of each dependence of ``later`` on this: RAW, WAR or WAW."""
        conflicts = []
        for kind, before, after in (
            ("RAW", self.writes, later.reads),
            ("WAR", self.reads, later.writes),
            ("WAW", self.writes, later.writes),
        ):
            conflicts += [(kind, memory) for memory in before.keys() & after.keys() if before[memory] & after[memory]]
        for kind, left, right in (
            ("RAW", self.dram_writes, later.dram_reads),
            ("WAR", self.dram_reads, later.dram_writes),
            ("WAW", self.dram_writes, later.dram_writes),
        ):
            if _overlap(left, right):
                conflicts.append((kind, "dram"))
        return sorted(conflicts)


def footprints(
    instructions: Sequence[Instruction], dram: Iterable[tuple[int, bytes]], options: VtaOptions
) -> list[Footprint]:
    """The footprint of each instruction; ``dram`` is what DRAM holds at the start, 0 elsewhere."""
    by_instruction = []
    for instruction, uops in zip(instructions, known_uops(instructions, dram, options), strict=True):
        match instruction:
            case Load():
                by_instruction.append(_load(instruction, options))
            case Store():
                out = "out" if options.store_source == "out" else "acc"
                cells = _range(
                    instruction.sram_base, instruction.x_size * instruction.y_size, SCRATCHPADS[MemoryId.OUT]
                )
                rows = _rows(instruction, SCRATCHPADS[MemoryId.OUT], instruction.y_size)
                by_instruction.append(Footprint(reads={out: cells}, dram_writes=rows))
            case Loops():
                by_instruction.append(_loops(instruction, uops, options))
            case _:
                by_instruction.append(Footprint())
    return by_instruction


def known_uops(
    instructions: Sequence[Instruction], dram: Iterable[tuple[int, bytes]], options: VtaOptions
) -> Iterator[Mapping[int, Uop | None]]:
    """The micro-ops that each instruction finds, by number, if all execute in order.

    Those that no instruction has loaded are missing; those that a STORE of the program may have written are None.
    """
    memory = bytearray(1 << DRAM_BITS)
    for addr, content in dram:
        memory[addr : addr + len(content)] = content
    written = tuple(
        i for x in instructions if isinstance(x, Store) for i in _rows(x, SCRATCHPADS[MemoryId.OUT], x.y_size)
    )
    uops: dict[int, Uop | None] = {}
    for instruction in instructions:
        yield uops
        if isinstance(instruction, Load) and instruction.memory == MemoryId.UOP:
            _load_uops(instruction, memory, written, uops, options)


def _load(load: Load, options: VtaOptions) -> Footprint:
    pad = scratchpad(load.memory, options)
    if load.x_size == 0 and options.empty_load == "nothing":
        return Footprint()
    rows = 1 if one_row(load.memory, options) else load.y_size
    width, height = load.x_size, rows
    if padded(load.memory, options):
        width += load.x_pad_0 + load.x_pad_1
        height += load.y_pad_0 + load.y_pad_1
    return Footprint(writes={pad.name: _range(load.sram_base, width * height, pad)}, dram_reads=_rows(load, pad, rows))


def _load_uops(
    load: Load, dram: bytearray, written: Intervals, uops: dict[int, Uop | None], options: VtaOptions
) -> None:
    pad = scratchpad(MemoryId.UOP, options)
    honoured = padded(MemoryId.UOP, options)
    if load.x_size == 0 and options.empty_load == "nothing":
        return
    left, right = (load.x_pad_0, load.x_pad_1) if honoured else (0, 0)
    width = left + load.x_size + right
    rows = 1 if one_row(MemoryId.UOP, options) else load.y_size
    top, bottom = (load.y_pad_0, load.y_pad_1) if honoured else (0, 0)
    for i in range((top + rows + bottom) * width):
        y, x = i // width - top, i % width - left
        uop: Uop | None = Uop()
        if 0 <= y < rows and 0 <= x < load.x_size:
            at = 4 * (load.dram_base + y * load.x_stride + x)
            word = int.from_bytes(dram[at : at + 4], "little")
            uop = None if _overlap(written, ((at, at + 4),)) else decode_uop(word)
        uops[(load.sram_base + i) % pad.depth] = uop


def _loops(loops: Loops, uops: Mapping[int, Uop | None], options: VtaOptions) -> Footprint:
    once = options.zero_iterations == "do_while"
    outer, inner = (max(n, 1) if once else n for n in (loops.iter_out, loops.iter_in))
    end = max(loops.uop_end, loops.uop_bgn + 1) if once else loops.uop_end
    depth = scratchpad(MemoryId.UOP, options).depth
    used = {u % depth: uops.get(u % depth, Uop()) for u in range(loops.uop_bgn, end)} if outer and inner else {}
    reads: dict[str, int] = {"uop": sum(1 << u for u in used)}
    writes: dict[str, int] = {}

    def reach(index: str, pad: Scratchpad) -> int:
        if any(uop is None for uop in used.values()):
            return (1 << pad.depth) - 1
        cells = 0
        for uop in used.values():
            cells |= 1 << getattr(uop, index) % pad.depth
        for side, times in (("out", outer), ("in", inner)):
            cells = _spread(cells, getattr(loops, f"{index}_factor_{side}"), times, pad.depth)
        return cells

    inp, wgt, acc = (SCRATCHPADS[m] for m in (MemoryId.INP, MemoryId.WGT, MemoryId.ACC))
    if isinstance(loops, Alu) and loops.alu_opcode == AluOp.MUL and options.mul == "unchanged":
        return Footprint(reads=reads)
    target = reach("dst", acc)
    writes["acc"] = reads["acc"] = target
    clears = isinstance(loops, Gemm) and loops.reset_reg
    if options.store_source == "out" and not (clears and options.gemm_reset == "zero_no_out"):
        writes["out"] = target
    match loops:
        case Gemm(reset_reg=False):
            reads |= {"inp": reach("src", inp), "wgt": reach("wgt", wgt)}
        case Gemm():
            if options.store_source == "out" and options.gemm_reset == "zero_out_dot":
                reads |= {"inp": reach("src", inp), "wgt": reach("wgt", wgt)}
        case Alu(use_imm=use_imm):
            if not use_imm or options.immediate_operand == "source":
                reads["acc"] |= reach("src", acc)
    return Footprint(reads=reads, writes=writes)


def _spread(cells: int, factor: int, times: int, depth: int) -> int:
    """All of ``cells`` plus ``i * factor`` for i below ``times``, modulo ``depth``."""
    everything = (1 << depth) - 1
    spread = cells
    # sums repeat after depth steps at most
    for i in range(1, min(times, depth) if factor else 1):
        shift = i * factor % depth
        spread |= (cells << shift | cells >> depth - shift) & everything
    return spread


def _range(base: int, count: int, pad: Scratchpad) -> int:
    """Elements base .. base + count - 1, modulo the depth."""
    if count >= pad.depth:
        return (1 << pad.depth) - 1
    cells = ((1 << count) - 1) << base % pad.depth
    return (cells | cells >> pad.depth) & (1 << pad.depth) - 1


def _rows(transfer: Load | Store, pad: Scratchpad, rows: int) -> Intervals:
    """The DRAM bytes of a transfer's rows."""
    if transfer.x_size == 0:
        return ()
    unit = pad.element_bytes
    base, step, length = transfer.dram_base * unit, transfer.x_stride * unit, transfer.x_size * unit
    if step == length or rows <= 1 or step == 0:
        return ((base, base + (length if step == 0 else length * rows)),) if rows else ()
    return tuple((base + y * step, base + y * step + length) for y in range(rows))


def _overlap(left: Intervals, right: Intervals) -> bool:
    return any(a < d and c < b for a, b in left for c, d in right)
