"""VTA's memories: sizes, and addresses of lanes.

A scratchpad holds *elements* (a micro-op, a vector of 16 lanes, or a tile of 16 x 16 weights); each word of its
memory is one lane, at address ``element * lanes + lane``.  DRAM is bytes, lowest byte of a lane first.

Source: the configuration files of all public targets of VTA (``config/*.json``), which have the same numbers; the size
of DRAM is this model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang import Expr, concat, const

from .isa import MemoryId

DRAM_BITS = 24  # 16 MiB


@dataclass(frozen=True)
class Scratchpad:
    """``2**index_bits`` elements of ``2**lane_bits`` lanes of ``word_bits`` bits, ``dram_word_bits`` in DRAM."""

    name: str
    index_bits: int
    lane_bits: int
    word_bits: int
    dram_word_bits: int

    @property
    def depth(self) -> int:
        """The number of elements."""
        return 1 << self.index_bits

    @property
    def lanes(self) -> int:
        """The number of lanes of an element."""
        return 1 << self.lane_bits

    @property
    def element_bytes(self) -> int:
        """The size of an element in DRAM: the unit of ``dram_base`` and ``x_stride``."""
        return self.lanes * self.dram_word_bits // 8

    def address(self, index: Expr, lane: Expr | None) -> Expr:
        """The address of a lane; bits of ``index`` beyond the scratchpad are lost."""
        row = index[self.index_bits - 1 : 0]
        return row if lane is None else concat(row, lane)


SCRATCHPADS: Mapping[MemoryId, Scratchpad] = {
    MemoryId.UOP: Scratchpad("uop", 13, 0, 32, 32),
    MemoryId.WGT: Scratchpad("wgt", 10, 8, 8, 8),
    MemoryId.INP: Scratchpad("inp", 11, 4, 8, 8),
    MemoryId.ACC: Scratchpad("acc", 11, 4, 32, 32),
    MemoryId.OUT: Scratchpad("out", 11, 4, 8, 8),
    MemoryId.ACC_8BIT: Scratchpad("acc", 11, 4, 32, 8),
}


def dram_address(element: Expr, lane: Expr | None, byte: int, pad: Scratchpad) -> Expr:
    """The DRAM address of a byte of a lane; ``element`` counts elements of ``pad`` and must lie in DRAM."""
    lane_bytes = pad.dram_word_bits // 8
    low = [] if lane is None else [lane]
    if lane_bytes > 1:
        low.append(const(byte, lane_bytes.bit_length() - 1))
    above = DRAM_BITS - sum(part.width for part in low)
    return concat(element[above - 1 : 0], *low)
