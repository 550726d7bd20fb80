"""Dense layers over row-major tensors, as an instruction of the tensor-IR ILA.

The meaning is one kernel: every output element is a sum over the input features, then a layer bias and whatever else
the element type does once at the end.  What a product, its accumulation and the end are is the element type's business
(:class:`DenseOperator`).  The order of the sum is part of the meaning (:class:`Order`): compilers that tile or
vectorise a layer sum in other orders than from the first feature to the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ila_lang import Expr, Function, Ila, Kernel, const, ite

from .layer import Layer, bits

DENSE_CODE = 16
"""``func_id`` of the instruction of a dense layer."""


BLOCK = 16
"""Features of a block of :data:`Order.BLOCKED`; the last block has what is left."""


class Order(Enum):
    """In which order an output element sums over its input features."""

    FORWARD = "forward"
    """From the first to the last."""
    BACKWARD = "backward"
    """From the last to the first."""
    BLOCKED = "blocked"
    """In blocks of :data:`BLOCK` features, each summed from 0; the sums of blocks are added up as they come."""

    @property
    def words(self) -> str:
        """The order in words."""
        return {
            Order.FORWARD: "from the first feature to the last",
            Order.BACKWARD: "from the last feature to the first",
            Order.BLOCKED: f"in blocks of {BLOCK} features",
        }[self]


@dataclass(frozen=True)
class DenseOperator:
    """How elements of one type are multiplied and added.

    ``step(acc, weight, x)`` accumulates a product; the accumulator begins with 0.  ``finish(acc, bias, *parameters)``
    adds the layer's bias and narrows to an element.  ``parameters`` are the operands of the instruction that the
    element type needs, such as scales, with their widths in bits.  ``add(acc, acc)`` joins the sums of blocks, where
    there are blocks.

    All are bit-vectors of any width, read off the functions: that of the accumulator is the result of ``step`` and its
    first operand, weights and inputs have the one of its second, the bias that of the second operand of ``finish``, and
    outputs that of its result.  ``finish`` takes the parameters after the bias, in their order; their names are
    those of states, and must not be rows, features_in, features_out, top or bottom.
    """

    step: Function
    finish: Function
    parameters: Mapping[str, int] = field(default_factory=dict)
    add: Function | None = None


def dense_ir(
    operator: DenseOperator, order: Order = Order.FORWARD, *, padded: bool = False, index_width: int = 0
) -> Ila:
    """The tensor IR as an ILA with the one instruction ``dense``: y[t, o] = finish(sum over i of w[o, i], x[t, i]).

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` (of x and y), ``features_in`` and ``features_out`` (32 bits
    each) and the operator's parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x,
    ``tensor_weights`` w, ``tensor_bias`` b and ``tensor_out`` y.  ``order`` is that of the sum.  With ``padded`` there
    are ``top`` rows of zeros before x and ``bottom`` after it (32 bits each); y has as many rows.  With ``index_width``
    elements of ``tensor_weights`` are clustered: indices of so many bits of the memory ``tensor_table``, which has the
    weights.

    Raises ValueError where blocks are to be added and the operator has no ``add``.
    """
    element_width = bits(operator.step.params[1].sort)
    kernel = Kernel("dense", "a dense layer over row-major tensors")
    pads = {"top": 32, "bottom": 32} if padded else {}
    widths = {"rows": 32, "features_in": 32, "features_out": 32, **pads, **operator.parameters}
    layer = Layer("a dense layer", DENSE_CODE, kernel, widths)
    states = layer.states
    x = layer.tensor("in", element_width, "input tensor x, row-major")
    w = layer.tensor("weights", index_width or element_width, "weights w, a row per output feature")
    table = layer.tensor("table", element_width, "what indices among weights stand for") if index_width else None
    b = layer.tensor("bias", bits(operator.finish.params[1].sort), "layer bias b")
    y = layer.tensor("out", bits(operator.finish.result), "output tensor y, row-major")
    depth, width = states["features_in"], states["features_out"]
    rows, top = states["rows"], states["top"] if padded else const(0, 32)
    total = rows + top + states["bottom"] if padded else rows
    with kernel.loop("row", total) as row, kernel.loop("feature", width) as feature:
        zero = const(0, bits(operator.step.result))
        acc = kernel.let("acc", zero)

        def accumulate(total: Expr, i: Expr) -> None:
            weight = kernel.load("weight", w, feature * depth + i)
            if table is not None:
                weight = kernel.load("looked_up", table, weight.zext(32))
            if padded:
                element = kernel.let("padded", const(0, element_width))
                with kernel.when("below_top", row >= top), kernel.when("above_bottom", row < top + rows):
                    kernel.assign(element, kernel.load("element", x, (row - top) * depth + i))
            else:
                element = kernel.load("element", x, row * depth + i)
            kernel.assign(total, operator.step(total, weight, element))

        if order is Order.BLOCKED:
            if operator.add is None:
                raise ValueError("An operator whose sums are blocked must have an 'add' for the sums of blocks")
            with kernel.loop("block", (depth + (BLOCK - 1)) >> (BLOCK.bit_length() - 1)) as block:
                partial, first = kernel.let("partial", zero), block * BLOCK
                with kernel.loop("lane", ite(depth - first < BLOCK, depth - first, const(BLOCK, 32))) as lane:
                    accumulate(partial, first + lane)
                kernel.assign(acc, operator.add(acc, partial))
        else:
            with kernel.loop("depth", depth) as i:
                accumulate(acc, i if order is Order.FORWARD else depth - 1 - i)
        bias = kernel.load("bias", b, feature)
        value = operator.finish(acc, bias, *(states[n] for n in operator.parameters))
        kernel.store(y, row * width + feature, value)
    return layer.finished()
