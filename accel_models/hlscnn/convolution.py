"""The convolution: the loop nest in the hardware's order, storing 16 bits after every tap and channel block.

An output word is read back from SPAD1, the next tap's sum over eight channels is converted to 16 bits and added to it,
and it is stored again.  So the result is not the rounded convolution: it depends on the order of the loops.

Three things follow for software, all of them present in the published ILA:

* Only tap (0, 0) of channel block 0 ignores what SPAD1 holds.  Where that tap lies outside the input's reach ("same"
  coordinates, at the upper and left border), the output starts from the old contents of SPAD1.
* Only the last tap of the last channel block adds the bias and applies ReLU.  Where that tap is outside (the lower and
  right border), they are skipped.
* There is one bias for all filters of a start.

The hardware fetches up to eight columns of activations at a time.  That has no effect on results: the columns are used
one by one, in order.

Sources: the published ILA (hlscnn-ila, ``conv_child_instr``) for loops, addresses and the order of operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from ila_lang import Expr, Ila, Kernel, all_of, concat, const, ite

from .config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, RegisterWord, channel_word
from .layout import LANES, SPAD0_BASE, SPAD1_BASE, activation_index, blocks_of, output_index, weight_index
from .numerics import arithmetic
from .options import HlscnnOptions

# The hardware's counters of input rows and columns: a row or column number and one bit more.
_COUNTER_BITS = 11


@dataclass(frozen=True)
class _Axis:
    """One spatial direction: sizes of input, output and kernel, and the stride, as ``_COUNTER_BITS`` bits."""

    input: Expr
    output: Expr
    kernel: Expr
    stride: Expr

    def first_tap(self, position: Expr) -> Expr:
        """The first kernel row that meets input row ``position`` for some output: position mod stride."""
        return position % self.stride

    def taps(self, first: Expr, options: HlscnnOptions) -> Expr:
        """How many kernel rows first, first + stride, ... the loop visits."""
        if options.kernel_end == "last":
            # up to the first row that is not below K - 1, which may be beyond the kernel
            last = self.kernel - 1
            return ite(last <= first, const(0, _COUNTER_BITS), (last - first + self.stride - 1) // self.stride) + 1
        count = (self.kernel + (self.stride - 1) - first) // self.stride  # first is at most stride - 1
        if options.kernel_start == "checked":
            return count  # 0 if the first row is beyond the kernel
        return ite(self.kernel <= first, const(1, _COUNTER_BITS), count)

    def target(self, position: Expr, tap: Expr, options: HlscnnOptions) -> tuple[Expr, Expr]:
        """The output row of an input row and kernel row, and whether there is one."""
        if options.coordinates == "same":
            moved = position + (self.kernel >> 1)
            size, row = self.input, moved - tap
        else:
            moved, size, row = position, self.output, (position - tap) // self.stride
        inside = row < size
        if options.bounds == "signed":
            inside = (tap <= moved) & inside
        if options.kernel_start == "checked" and options.kernel_end == "last":
            inside = inside & (tap < self.kernel)  # with the right end of the loop, no other row is visited
        return row, inside


class _Shape:
    """The sizes in the configuration registers."""

    def __init__(self, ila: Ila, options: HlscnnOptions) -> None:
        def size(register: str, word: RegisterWord) -> dict[str, Expr]:
            return {name: word.select(ila.states[register], name) for name in word.fields}

        self.input = size("cfg_reg_conv_input_size_cfg", INPUT_SIZE)
        output = size("cfg_reg_conv_output_size_cfg", OUTPUT_SIZE)
        kernel = size("cfg_reg_conv_kernel_size_cfg", KERNEL_SIZE)
        self.channel = size("cfg_reg_conv_channel_cfg", channel_word(options))
        self.kernel = kernel
        self.blocks = blocks_of(self.input["channels"])
        self.rows, self.columns = (
            _Axis(*(x.zext(_COUNTER_BITS) for x in (self.input[a], output[a], kernel[a], kernel[f"{a[:3]}_stride"])))
            for a in ("rows", "cols")
        )


def convolution(ila: Ila, options: HlscnnOptions) -> Kernel:
    """The convolution that the registers describe, from start to end.

    With a size or a stride of 0 the hardware's answer is not published (a loop with step 0 never ends); here a
    division by 0 is that of SMT-LIB.  :mod:`accel_models.hlscnn.program` refuses such a start.
    """
    s, shape, ops = ila.states, _Shape(ila, options), arithmetic(options)
    rows, columns, channel = shape.rows, shape.columns, shape.channel
    memory = s["scratch_pad_1"]
    kernel = Kernel("convolution", "two-dimensional convolution with 16-bit partial sums in SPAD1")
    with (
        kernel.loop("filter", channel["filters"]) as filter_,
        kernel.loop("block", shape.blocks) as block,
        kernel.loop("row", shape.input["rows"]) as row,
        kernel.loop("column", shape.input["cols"]) as column,
    ):
        r, c = row.zext(_COUNTER_BITS), column.zext(_COUNTER_BITS)
        first_row, first_column = rows.first_tap(r), columns.first_tap(c)
        with (
            kernel.loop("row_tap", rows.taps(first_row, options)) as row_tap,
            kernel.loop("column_tap", columns.taps(first_column, options)) as column_tap,
        ):
            k_row = first_row + row_tap * rows.stride
            k_column = first_column + column_tap * columns.stride
            out_row, row_inside = rows.target(r, k_row, options)
            out_column, column_inside = columns.target(c, k_column, options)
            with kernel.when("inside", row_inside & column_inside):
                psum = kernel.let("psum", const(0, options.psum_bits))
                with kernel.loop("lane", const(LANES, 4)) as lane:
                    activation = _load_activation(kernel, ila, shape, options, (block, row, column), lane)
                    weight = _load_weight(kernel, ila, shape, options, (filter_, block, k_row, k_column), lane)
                    kernel.assign(psum, psum + ops.product(weight, activation))
                partial = kernel.let("partial", ops.requantise(psum))

                entry, out_lane = _output(ila, shape, options, filter_, out_row, out_column)
                old = kernel.load("old", memory, concat(entry, out_lane))
                first = all_of([k_row == 0, k_column == 0, block == 0, channel["enable_accum"] == 0])
                last = all_of(
                    [k_row == rows.kernel - 1, k_column == columns.kernel - 1, block == (shape.blocks - 1)],
                )
                bias = ite(last & (channel["enable_bias"] == 1), channel["bias"], const(0, 16))
                total = kernel.let("total", ops.total(partial, ite(first, const(0, 16), old), bias))
                rectified = ite(last & (channel["enable_relu"] == 1), ops.rectify(total), total)
                if options.other_lanes == "cleared":
                    with kernel.loop("other", const(LANES, 4)) as other:
                        kernel.store(memory, concat(entry, other[2:0]), const(0, 16))
                kernel.store(memory, concat(entry, out_lane), ops.stored(rectified))
    return kernel


def _load_activation(
    kernel: Kernel,
    ila: Ila,
    shape: _Shape,
    options: HlscnnOptions,
    at: tuple[Expr, Expr, Expr],
    lane: Expr,
) -> Expr:
    """The activation of a channel block at an input row and column."""
    base = ila.states["cfg_reg_conv_act_base_addr"]
    index = activation_index(*at, shape.input["rows"], shape.input["cols"])
    if options.activations == "soc":
        entry = ((base >> 4) + index)[13:0]
        return kernel.load("activation", ila.states["virtual_soc_memory"], concat(entry, lane[2:0]))
    entry = (((base - SPAD1_BASE) >> 4) + index)[12:0]
    return kernel.load("activation", ila.states["scratch_pad_1"], concat(entry, lane[2:0]))


def _load_weight(
    kernel: Kernel,
    ila: Ila,
    shape: _Shape,
    options: HlscnnOptions,
    at: tuple[Expr, Expr, Expr, Expr],
    lane: Expr,
) -> Expr:
    """The weight of a filter and channel block at a kernel row and column, as 16 bits."""
    memory = ila.states["scratch_pad_0"]
    base = ila.states["cfg_reg_conv_weight_base_addr"] - SPAD0_BASE
    index = weight_index(*at, (shape.blocks, shape.kernel["rows"], shape.kernel["cols"]))
    if options.weight_bits == 16:
        return kernel.load("weight", memory, concat(((base >> 4) + index)[12:0], lane[2:0]))
    # Vectors of 8 bytes, two in an entry; the byte becomes the high half of the weight.
    pair = kernel.load("pair", memory, concat(((base >> 3) + index)[13:0], lane[2:1]))
    return concat(ite(lane[0] == 0, pair[7:0], pair[15:8]), const(0, 8))


def _output(
    ila: Ila, shape: _Shape, options: HlscnnOptions, filter_: Expr, row: Expr, column: Expr
) -> tuple[Expr, Expr]:
    """Entry (13 bits) of SPAD1 and lane (3 bits) of an output."""
    if options.outputs == "blocked":
        plane, lane = filter_ >> 3, filter_[2:0]
    else:
        plane, lane = filter_, (shape.channel["filters"] - 1)[2:0]
    same = options.coordinates == "same"
    rows, columns = (axis.input if same else axis.output for axis in (shape.rows, shape.columns))
    base = (ila.states["cfg_reg_conv_output_base_addr"] - SPAD1_BASE) >> 4
    return (base + output_index(plane, row, column, rows, columns))[12:0], lane
