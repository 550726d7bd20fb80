"""Elementwise operators over row-major matrices, as an instruction of the tensor-IR ILA.

The meaning is one kernel: y[r, c] = combine(a[r, c], b, parameters), where the second operand b is an element of
another matrix of the same shape, of a row that serves all rows (a bias), or missing.  What ``combine`` is, and what
elements are, is the operator's business (:class:`ElementwiseOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ila_lang import Function, Ila, Kernel

from .layer import Layer, bits

ELEMENTWISE_CODE = 24
"""``func_id`` of the instruction of an elementwise operator."""


@dataclass(frozen=True)
class ElementwiseOperator:
    """How elements are combined.

    ``combine(a, *parameters)``, or ``combine(a, b, *parameters)`` where ``second`` says what b is an element of: a
    "matrix" of a's shape, or a "row" of a's columns.  ``parameters`` are scalar operands of the instruction, such as a
    shift amount, with their widths in bits.
    """

    combine: Function
    second: Literal["matrix", "row"] | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)


def elementwise_ir(operator: ElementwiseOperator) -> Ila:
    """The tensor IR as an ILA with the one instruction ``elementwise``.

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` and ``columns`` (32 bits each) and the operator's
    parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` a, ``tensor_second`` b (where there is
    one) and ``tensor_out`` y; their words are as wide as the function's operands and result.
    """
    width = bits(operator.combine.params[0].sort)
    kernel = Kernel("elementwise", "an elementwise operator over row-major matrices")
    widths = {"rows": 32, "columns": 32, **operator.parameters}
    layer = Layer("an elementwise operator", ELEMENTWISE_CODE, kernel, widths)
    states = layer.states
    a = layer.tensor("in", width, "input tensor a, row-major")
    b = None
    if operator.second is not None:
        b = layer.tensor("second", width, f"second operand b: a {operator.second}")
    y = layer.tensor("out", bits(operator.combine.result), "output tensor y, row-major")
    columns = states["columns"]
    with kernel.loop("row", states["rows"]) as row, kernel.loop("column", columns) as column:
        operands = [kernel.load("element", a, row * columns + column)]
        if b is not None:
            place = row * columns + column if operator.second == "matrix" else column
            operands.append(kernel.load("other", b, place))
        value = operator.combine(*operands, *(states[n] for n in operator.parameters))
        kernel.store(y, row * columns + column, value)
    return layer.finished()
