"""Dense layers over row-major tensors, as an instruction of the tensor-IR ILA.

The meaning is one kernel: every output element is a fold over the input features, from the first to the last, then a
layer bias and whatever else the element type does once at the end.  What a product, its accumulation and the end are
is the element type's business (:class:`DenseOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ila_lang import BOOL, BvSort, Function, Ila, Kernel, const, mem

__all__ = ["DENSE_CODE", "DenseOperator", "dense_ir"]

DENSE_CODE = 16
"""``func_id`` of the instruction of a dense layer."""


@dataclass(frozen=True)
class DenseOperator:
    """How elements of one type are multiplied and added.

    ``step(acc, weight, x)`` accumulates a product; the accumulator begins with 0.  ``finish(acc, bias, *parameters)``
    adds the layer's bias and narrows to an element.  ``parameters`` are the operands of the instruction that the
    element type needs, such as scales, with their widths in bits.
    """

    step: Function
    finish: Function
    parameters: Mapping[str, int] = field(default_factory=dict)


def dense_ir(operator: DenseOperator) -> Ila:
    """The tensor IR as an ILA with the one instruction ``dense``: y[t, o] = finish(fold over i of w[o, i], x[t, i]).

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` (of x and y), ``features_in`` and ``features_out`` (32 bits
    each) and the operator's parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x,
    ``tensor_weights`` w, ``tensor_bias`` b and ``tensor_out`` y.
    """
    sort = operator.step.params[1].sort
    result, bias_sort = operator.finish.result, operator.finish.params[1].sort
    assert isinstance(sort, BvSort) and isinstance(result, BvSort) and isinstance(bias_sort, BvSort)
    ila = Ila("ir", "Tensor IR: a dense layer")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    widths = {"rows": 32, "features_in": 32, "features_out": 32, **operator.parameters}
    inputs = {n: ila.input(f"{n}_in", w) for n, w in widths.items()}
    states = {n: ila.state(n, w, 0, doc="operand of the running instruction") for n, w in widths.items()}
    x = ila.state("tensor_in", mem(32, sort.width), doc="input tensor x, row-major")
    w = ila.state("tensor_weights", mem(32, sort.width), doc="weights w, a row per output feature")
    b = ila.state("tensor_bias", mem(32, bias_sort.width), doc="layer bias b")
    y = ila.state("tensor_out", mem(32, result.width), doc="output tensor y, row-major")
    ila.set_valid(run & (func == DENSE_CODE))
    kernel = Kernel("dense", "a dense layer over row-major tensors")
    depth, width = states["features_in"], states["features_out"]
    with kernel.loop("row", states["rows"]) as row, kernel.loop("feature", width) as feature:
        acc = kernel.let("acc", const(0, operator.step.result.width))  # type: ignore[union-attr]
        with kernel.loop("depth", depth) as i:
            weight = kernel.load("weight", w, feature * depth + i)
            element = kernel.load("element", x, row * depth + i)
            kernel.assign(acc, operator.step(acc, weight, element))
        bias = kernel.load("bias", b, feature)
        value = operator.finish(acc, bias, *(states[n] for n in operator.parameters))
        kernel.store(y, row * width + feature, value)
    instruction = ila.instruction("dense").set_decode(run & (func == DENSE_CODE))
    for name, value in inputs.items():
        instruction.update(states[name], value)
    instruction.start(kernel)
    return ila
