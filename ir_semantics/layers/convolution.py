"""Two-dimensional convolutions, as one instruction of the tensor IR.

The meaning is one kernel over tensors x [channels, height, width], w [filters, channels, kernel rows, kernel columns]
and y [filters, rows, columns].  Every element of y is a fold over groups of channels and, inside a group, over the
kernel's rows and columns: the products of a group's channels at one tap are added, and the sum joins the element.  What
a product is, how a sum joins, and what happens at the last one is the element type's business
(:class:`ConvolutionOperator`).  With one channel in a group, and sums that are exact, it is the textbook convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ila_lang import Function, Ila, Kernel, all_of, const, ite

from .layer import Layer, bits

CONVOLUTION_CODE = 24
"""``func_id`` of the instruction of a convolution."""

_EXTENTS = ("filters", "channels", "height", "width", "rows", "columns", "kernel_rows", "kernel_columns")
_STRIDES = ("row_stride", "column_stride")


@dataclass(frozen=True)
class ConvolutionOperator:
    """How elements of one type are multiplied and added.

    ``product(weight, x)`` is a term of a tap's sum, which begins with 0 and is added exactly over ``group`` channels.
    ``join(element, sum)`` is the element after a tap that others follow, and ``finish(element, sum, *parameters)`` the
    one after the last; the first tap joins 0.  ``parameters`` are operands of the instruction that the element type
    needs, with their widths in bits.
    """

    product: Function
    join: Function
    finish: Function
    group: int = 1
    parameters: Mapping[str, int] = field(default_factory=dict)


def convolution_ir(operator: ConvolutionOperator, *, packed: bool = False) -> Ila:
    """The tensor IR as an ILA with the one instruction ``conv2d``.

    Inputs: ``func_run``, ``func_id``, the extents (32 bits each) ``filters``, ``channels``, ``height``, ``width``,
    ``rows``, ``columns``, ``kernel_rows`` and ``kernel_columns``, the strides ``row_stride`` and ``column_stride``, and
    the operator's parameters, all with the suffix ``_in``.  Output (k, i, j) uses the inputs from (i * row_stride,
    j * column_stride) on; nothing is padded.  Memories, row-major: ``tensor_in`` x, ``tensor_weights`` w and
    ``tensor_out`` y.

    With ``packed`` groups are always complete: x has the channels of whole groups, and w is [filters, groups, kernel
    rows, kernel columns, members of a group] (the layout OIHWi of other compilers).
    """
    weight_width, input_width = (bits(p.sort) for p in operator.product.params)
    wide, result = bits(operator.product.result), bits(operator.finish.result)
    kernel = Kernel("conv2d", "a two-dimensional convolution over row-major tensors")
    widths = {**dict.fromkeys((*_EXTENTS, *_STRIDES), 32), **operator.parameters}
    layer = Layer("a two-dimensional convolution", CONVOLUTION_CODE, kernel, widths)
    s = layer.states
    x = layer.tensor("in", input_width, "input tensor x, row-major")
    w = layer.tensor("weights", weight_width, "weights w, row-major")
    y = layer.tensor("out", result, "output tensor y, row-major")
    size = operator.group
    groups = (s["channels"] + (size - 1)) // const(size, 32)
    with (
        kernel.loop("out_feature", s["filters"]) as k,
        kernel.loop("out_row", s["rows"]) as i,
        kernel.loop("out_column", s["columns"]) as j,
    ):
        element = kernel.let("element", const(0, result))
        with (
            kernel.loop("group", groups) as group,
            kernel.loop("tap_row", s["kernel_rows"]) as tap_row,
            kernel.loop("tap_column", s["kernel_columns"]) as tap_column,
        ):
            total = kernel.let("total", const(0, wide))
            with kernel.loop("member", const(size, 32)) as member:
                channel = group * size + member
                row, column = i * s["row_stride"] + tap_row, j * s["column_stride"] + tap_column
                value = kernel.load("value", x, (channel * s["height"] + row) * s["width"] + column)
                part = k * groups + group if packed else k * s["channels"] + channel
                tap = (part * s["kernel_rows"] + tap_row) * s["kernel_columns"] + tap_column
                weight = kernel.load("weight", w, tap * size + member if packed else tap)
                more = total + operator.product(weight, value)
                # the last group may be incomplete: what lies at the other members' places does not count
                kernel.assign(total, more if packed else ite(channel < s["channels"], more, total))
            last = all_of(
                [
                    tap_row == s["kernel_rows"] - 1,
                    tap_column == s["kernel_columns"] - 1,
                    group == groups - 1,
                ]
            )
            ended = operator.finish(element, total, *(s[n] for n in operator.parameters))
            kernel.assign(element, ite(last, ended, operator.join(element, total)))
        kernel.store(y, (k * s["rows"] + i) * s["columns"] + j, element)
    return layer.finished()
