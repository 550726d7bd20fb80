"""Cutting a convolution into starts of HLSCNN that lie in the domain of its mapping.

A *group* is a range of filters, a *band* a range of output rows with the input rows that they need.  Columns and
channels are not cut.  Every output is computed by one start, with all its taps and channel blocks in the hardware's
order, so cutting does not change results.
"""

from __future__ import annotations

from dataclasses import dataclass

from accel_models.hlscnn.layout import LANES
from ila_lang.mapping import TensorMapping
from rewrites.compiler.codegen.parts import most_that_fit


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
    def outputs(self) -> tuple[int, int]:
        """Output rows and columns."""
        return (
            (self.rows - self.kernel[0]) // self.stride[0] + 1,
            (self.columns - self.kernel[1]) // self.stride[1] + 1,
        )

    def input_rows(self, output_rows: int) -> int:
        """Input rows that this many output rows need."""
        return (output_rows - 1) * self.stride[0] + self.kernel[0]

    def sizes(self, filters: int, rows: int) -> dict[str, int]:
        """The mapping's sizes for a start of this many filters and output rows."""
        return {
            "k": filters,
            "c": self.channels,
            "h": self.input_rows(rows),
            "w": self.columns,
            "oh": rows,
            "ow": self.outputs[1],
            "kh": self.kernel[0],
            "kw": self.kernel[1],
            "sh": self.stride[0],
            "sw": self.stride[1],
            "bias": 0,
            "relu": 0,
        }


@dataclass(frozen=True)
class Tiling:
    """The most filters in a group, and output rows in a band."""

    group: int
    rows: int


def tile(mapping: TensorMapping, shape: Shape) -> Tiling:
    """The tiling with the fewest starts and loads of weights.

    Raises SizeError where not even one filter and one output row fit.
    """
    mapping.require(shape.sizes(1, 1))
    best: tuple[int, Tiling] | None = None
    # what a start needs grows with its filters and rows
    most = most_that_fit(shape.filters, lambda n: mapping.holds(shape.sizes(n, 1)))
    for group in [n for n in range(most, 0, -1) if n == most or n % LANES == 0 or n < LANES]:
        rows = most_that_fit(shape.outputs[0], lambda n, group=group: mapping.holds(shape.sizes(group, n)))  # type: ignore[misc]
        groups = -(-shape.filters // group)
        cost = groups * -(-shape.outputs[0] // rows) + groups
        if best is None or cost < best[0]:
            best = cost, Tiling(group, rows)
    assert best is not None, "one filter and one output row fit"
    return best[1]
