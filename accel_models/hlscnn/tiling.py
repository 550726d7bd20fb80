"""Cutting a convolution into starts whose operands and results fit HLSCNN's memories.

A *group* is a range of filters whose weights are in SPAD0 together; a *band* is a range of output rows with the input
rows that they need.  Columns and channels are not cut.  Every output is computed by one start, with all its taps and
channel blocks in the hardware's order, so cutting does not change results.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from .config import INPUT_SIZE, KERNEL_SIZE, channel_word
from .layout import LANES, SOC_ENTRIES, SPAD_ENTRIES
from .options import HlscnnOptions

__all__ = ["Shape", "Tiling", "tile"]


@dataclass(frozen=True)
class Shape:
    """Sizes of a convolution on an input that is already padded."""

    filters: int
    channels: int
    rows: int
    columns: int
    kernel: tuple[int, int]
    stride: tuple[int, int]

    @property
    def blocks(self) -> int:
        """Channel blocks."""
        return -(-self.channels // LANES)

    @property
    def outputs(self) -> tuple[int, int]:
        """Output rows and columns."""
        return (
            (self.rows - self.kernel[0]) // self.stride[0] + 1,
            (self.columns - self.kernel[1]) // self.stride[1] + 1,
        )

    def input_rows(self, output_rows: int) -> int:
        """Input rows that so many output rows need."""
        return (output_rows - 1) * self.stride[0] + self.kernel[0]

    def weight_entries(self, filters: int, options: HlscnnOptions) -> int:
        """Entries of 16 bytes that hold the weights of so many filters."""
        vectors = filters * self.blocks * self.kernel[0] * self.kernel[1]
        return -(-vectors * options.weight_bits // 16)

    def input_entries(self, output_rows: int) -> int:
        """Entries of the activations that so many output rows need."""
        return self.blocks * self.input_rows(output_rows) * self.columns

    def plane(self, output_rows: int, options: HlscnnOptions) -> tuple[int, int]:
        """Rows and columns of the outputs as they lie in SPAD1: in "same" coordinates, those of the input."""
        if options.coordinates == "same":
            return self.input_rows(output_rows), self.columns
        return output_rows, self.outputs[1]

    def output_entries(self, filters: int, output_rows: int, options: HlscnnOptions) -> int:
        """Entries of the outputs of one start."""
        rows, columns = self.plane(output_rows, options)
        planes = -(-filters // LANES) if options.outputs == "blocked" else filters
        return planes * rows * columns


@dataclass(frozen=True)
class Tiling:
    """The most filters in a group, filters in a start, and output rows in a band."""

    group: int
    start: int
    rows: int


def tile(shape: Shape, options: HlscnnOptions, *, one_by_one: bool) -> Tiling:
    """The tiling with the fewest starts; with ``one_by_one`` each start has one filter.

    Raises ValueError where a size exceeds its register, and where not even one filter and one output row fit.
    """
    _check_registers(shape)
    most = min(shape.filters, channel_word(options).limit("filters"))
    best: tuple[int, Tiling] | None = None
    for group in [n for n in range(most, 0, -1) if n == most or n % LANES == 0 or n < LANES]:
        start = 1 if one_by_one else group
        # what a band needs grows with its rows: the first size that is too large ends the ones that fit
        counts = range(1, shape.outputs[0] + 1)
        rows = bisect_left(counts, True, key=lambda n: not _fits(shape, options, group, start, n))
        if rows:
            starts = -(-shape.filters // start) * -(-shape.outputs[0] // rows)
            loads = -(-shape.filters // group)
            if best is None or starts + loads < best[0]:
                best = starts + loads, Tiling(group, start, rows)
    if best is None:
        raise ValueError(_too_large(shape, options))
    return best[1]


def _fits(shape: Shape, options: HlscnnOptions, group: int, start: int, rows: int) -> bool:
    fits = all(need <= have for _, need, have in _needs(shape, options, group, start, rows))
    return fits and shape.input_rows(rows) <= INPUT_SIZE.limit("rows")


def _needs(shape: Shape, options: HlscnnOptions, group: int, start: int, rows: int) -> list[tuple[str, int, int]]:
    """What a tile needs of each memory: (what and where, entries, entries there are)."""
    weights, inputs = shape.weight_entries(group, options), shape.input_entries(rows)
    outputs = shape.output_entries(start, rows, options)
    needs = [("weights of a filter in SPAD0", weights, SPAD_ENTRIES)]
    if options.activations == "spad1":
        needs.append(("activations of an output row and its outputs in SPAD1", inputs + outputs, SPAD_ENTRIES))
    else:
        needs.append(("outputs of an output row in SPAD1", outputs, SPAD_ENTRIES))
    needs.append(("weights of a filter and activations of an output row in SoC memory", weights + inputs, SOC_ENTRIES))
    return needs


def _check_registers(shape: Shape) -> None:
    values = (
        ("Channels", shape.channels, INPUT_SIZE.limit("channels")),
        ("Columns with padding", shape.columns, INPUT_SIZE.limit("cols")),
        ("Kernel rows", shape.kernel[0], KERNEL_SIZE.limit("rows")),
        ("Kernel columns", shape.kernel[1], KERNEL_SIZE.limit("cols")),
        ("Row stride", shape.stride[0], KERNEL_SIZE.limit("row_stride")),
        ("Column stride", shape.stride[1], KERNEL_SIZE.limit("col_stride")),
    )
    for what, value, limit in values:
        if not 1 <= value <= limit:
            raise ValueError(f"{what} of a convolution on HLSCNN must be in 1 .. {limit}, not {value}")


def _too_large(shape: Shape, options: HlscnnOptions) -> str:
    what, need, have = next(n for n in _needs(shape, options, 1, 1, 1) if n[1] > n[2])
    return (
        f"Convolution must fit HLSCNN's memories: {what} need {need} entries of 16 bytes, and there are {have}; "
        "use fewer channels or columns"
    )
