"""LOAD and STORE: two-dimensional copies between DRAM and a scratchpad."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from ila_lang import Expr, Ila, Kernel, concat, const, true

from .isa import MemoryId
from .options import VtaOptions
from .scratchpads import DRAM_BITS, SCRATCHPADS, Scratchpad, dram_address

FieldOf = Callable[[str], Expr]

# No sum or product of an instruction's fields needs more: rows and columns have 17 bits each.
WIDE = 36


def scratchpad(memory: MemoryId, options: VtaOptions) -> Scratchpad:
    """The memory with its depth in this reading."""
    pad = SCRATCHPADS[memory]
    if memory == MemoryId.UOP:
        return Scratchpad(pad.name, options.uop_depth.bit_length() - 1, pad.lane_bits, 32, 32)
    return pad


def padded(memory: MemoryId, options: VtaOptions) -> bool:
    """Whether a LOAD of this memory writes zeros around its data."""
    if memory in (MemoryId.UOP, MemoryId.WGT):
        return options.wgt_uop_padding == "honoured"
    if memory in (MemoryId.ACC, MemoryId.ACC_8BIT):
        return options.acc_padding == "honoured"
    return memory == MemoryId.INP


def one_row(memory: MemoryId, options: VtaOptions) -> bool:
    """Whether a LOAD of this memory ignores y_size and x_stride, too."""
    return memory == MemoryId.UOP and options.wgt_uop_padding == "ignored"


class _Shape:
    """The sizes of a transfer, from the fields of its instruction."""

    def __init__(self, field: FieldOf, memory: MemoryId, options: VtaOptions, *, pads: bool) -> None:
        self.base, self.dram_base = field("sram_base").zext(WIDE), field("dram_base").zext(WIDE)
        self.columns, self.stride = field("x_size").zext(WIDE), field("x_stride").zext(WIDE)
        self.rows = const(1, WIDE) if one_row(memory, options) else field("y_size").zext(WIDE)
        zero = const(0, WIDE)
        self.top, self.bottom, self.left, self.right = (
            field(name).zext(WIDE) if pads else zero for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
        )
        self.width = self.left + self.columns + self.right


def transfer_fits(field: FieldOf, memory: MemoryId, options: VtaOptions) -> tuple[Expr, Expr]:
    """Whether a transfer stays within its scratchpad, and whether its data lie within DRAM."""
    pad = scratchpad(memory, options)
    shape = _Shape(field, memory, options, pads=padded(memory, options))
    cells = shape.width * (shape.top + shape.rows + shape.bottom)
    empty = shape.columns == 0
    within = true if options.index_overflow == "truncated" else shape.base + cells <= pad.depth
    if memory == MemoryId.OUT or options.empty_load == "nothing" or not padded(memory, options):
        within = within | empty
    end = shape.dram_base + (shape.rows - 1) * shape.stride + shape.columns
    return within, empty | (shape.rows == 0) | (end <= (1 << DRAM_BITS) // pad.element_bytes)


def transfer_starts(ila: Ila, options: VtaOptions) -> Expr:
    """The condition under which a LOAD does anything."""
    return true if options.empty_load == "pads" else ~(ila.states["transfer_x_size"] == 0)


def load_kernel(ila: Ila, memory: MemoryId, options: VtaOptions) -> Kernel:
    """Rows of zeros, then each row between its zeros, then rows of zeros, one after the other from ``sram_base`` on."""
    pad, pads = scratchpad(memory, options), padded(memory, options)
    states = ila.states
    shape = _Shape(lambda name: states[f"transfer_{name}"], memory, options, pads=pads)
    target, dram = states[pad.name], states["dram"]
    kernel = Kernel(f"load_{memory.name.lower()}", f"copies elements from DRAM to {pad.name}")
    lanes = _Lanes(kernel, pad)

    def clear(name: str, count: Expr, place: Callable[[Expr], Expr]) -> None:
        with kernel.loop(name, count) as i, lanes.each(f"{name}_lane") as lane:
            kernel.store(target, pad.address(place(i.zext(WIDE)), lane), 0)

    def row(y: Expr) -> Expr:
        length = shape.columns if memory == MemoryId.INP and options.padded_rows == "data" else shape.width
        return shape.base + shape.top * shape.width + y.zext(WIDE) * length

    if pads:
        clear("top", (shape.top * shape.width)[21:0], lambda i: shape.base + i)
    with kernel.loop("y", shape.rows[15:0]) as y:
        if pads:
            clear("left", states["transfer_x_pad_0"], lambda i: row(y) + i)
        with kernel.loop("x", states["transfer_x_size"]) as x, lanes.each("lane") as lane:
            element = shape.dram_base + y.zext(WIDE) * shape.stride + x.zext(WIDE)
            count = pad.dram_word_bits // 8
            parts = [kernel.load(f"byte_{b}", dram, dram_address(element, lane, b, pad)) for b in range(count)]
            word = concat(*reversed(parts)).sext(pad.word_bits)
            kernel.store(target, pad.address(row(y) + shape.left + x.zext(WIDE), lane), word)
        if pads:
            clear("right", states["transfer_x_pad_1"], lambda i: row(y) + shape.left + shape.columns + i)
    if pads:
        below = shape.base + (shape.top + shape.rows) * shape.width
        clear("bottom", (shape.bottom * shape.width)[21:0], lambda i: below + i)
    return kernel


def store_kernel(ila: Ila, options: VtaOptions) -> Kernel:
    """Rows of output bytes, one after the other from ``sram_base`` on, to rows of DRAM ``x_stride`` apart."""
    states = ila.states
    shape = _Shape(lambda name: states[f"transfer_{name}"], MemoryId.OUT, options, pads=False)
    out = SCRATCHPADS[MemoryId.OUT]
    source = states["out" if options.store_source == "out" else "acc"]
    kernel = Kernel("store", "copies output bytes to DRAM")
    lanes = _Lanes(kernel, out)
    with (
        kernel.loop("y", states["transfer_y_size"]) as y,
        kernel.loop("x", states["transfer_x_size"]) as x,
        lanes.each("lane") as lane,
    ):
        place = shape.base + y.zext(WIDE) * shape.columns + x.zext(WIDE)
        word = kernel.load("word", source, out.address(place, lane))
        element = shape.dram_base + y.zext(WIDE) * shape.stride + x.zext(WIDE)
        kernel.store(states["dram"], dram_address(element, lane, 0, out), word[7:0])
    return kernel


class _Lanes:
    """Loops over the lanes of an element; none where there is one."""

    def __init__(self, kernel: Kernel, pad: Scratchpad) -> None:
        self.kernel, self.pad = kernel, pad

    def each(self, name: str) -> AbstractContextManager[Expr | None]:
        """A loop with the lane's number as its counter."""
        if self.pad.lane_bits == 0:
            return nullcontext(None)
        return self.kernel.loop(name, const(self.pad.lanes, self.pad.lane_bits + 1), self.pad.lane_bits)
