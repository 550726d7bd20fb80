"""Elementwise operators over row-major matrices, as an instruction of the tensor-IR ILA.

The meaning is one kernel: y[r, c] = combine(a[r, c], b, parameters), where the second operand b is an element of
another matrix of the same shape, of a row that serves all rows (a bias), or missing.  What ``combine`` is, and what
elements are, is the operator's business (:class:`ElementwiseOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ila_lang import BOOL, BvSort, Function, Ila, Kernel, mem

__all__ = ["ELEMENTWISE_CODE", "ElementwiseOperator", "elementwise_ir"]

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
    sort, result = operator.combine.params[0].sort, operator.combine.result
    assert isinstance(sort, BvSort) and isinstance(result, BvSort)
    ila = Ila("ir", "Tensor IR: an elementwise operator")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    widths = {"rows": 32, "columns": 32, **operator.parameters}
    inputs = {n: ila.input(f"{n}_in", w) for n, w in widths.items()}
    states = {n: ila.state(n, w, 0, doc="operand of the running instruction") for n, w in widths.items()}
    a = ila.state("tensor_in", mem(32, sort.width), doc="input tensor a, row-major")
    kernel = Kernel("elementwise", "an elementwise operator over row-major matrices")
    b = None
    if operator.second is not None:
        b = ila.state("tensor_second", mem(32, sort.width), doc=f"second operand b: a {operator.second}")
    y = ila.state("tensor_out", mem(32, result.width), doc="output tensor y, row-major")
    ila.set_valid(run & (func == ELEMENTWISE_CODE))
    columns = states["columns"]
    with kernel.loop("row", states["rows"]) as row, kernel.loop("column", columns) as column:
        operands = [kernel.load("element", a, row * columns + column)]
        if b is not None:
            place = row * columns + column if operator.second == "matrix" else column
            operands.append(kernel.load("other", b, place))
        value = operator.combine(*operands, *(states[n] for n in operator.parameters))
        kernel.store(y, row * columns + column, value)
    instruction = ila.instruction("elementwise").set_decode(run & (func == ELEMENTWISE_CODE))
    for name, value in inputs.items():
        instruction.update(states[name], value)
    instruction.start(kernel)
    return ila
