"""Padding of row-major tensors with rows of zeros, as an instruction of the tensor-IR ILA."""

from __future__ import annotations

from ila_lang import BOOL, Ila, Kernel, const, mem

__all__ = ["PADDING_CODE", "padding_ir"]

PADDING_CODE = 18
"""``func_id`` of the instruction that appends rows of zeros."""


def padding_ir(width: int = 8) -> Ila:
    """The tensor IR as an ILA with the one instruction ``pad_rows``: y[t, c] = x[t, c] where t < rows, and 0 below.

    This is ONNX's ``Pad`` with mode ``constant``, value 0 and pads at the end of the first axis.  Elements have
    ``width`` bits, and all bits of the number zero are 0.  Inputs: ``func_run``, ``func_id``, the extents ``rows`` (of
    x), ``rows_out`` (of y) and ``features`` (32 bits each), all with the suffix ``_in``.  Memories, row-major:
    ``tensor_in`` x and ``tensor_out`` y.
    """
    ila = Ila("ir", "Tensor IR: rows of zeros after a tensor")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    names = ("rows", "rows_out", "features")
    inputs = {n: ila.input(f"{n}_in", 32) for n in names}
    states = {n: ila.state(n, 32, 0, doc="operand of the running instruction") for n in names}
    x = ila.state("tensor_in", mem(32, width), doc="input tensor x, row-major")
    y = ila.state("tensor_out", mem(32, width), doc="output tensor y, row-major")
    ila.set_valid(run & (func == PADDING_CODE))
    kernel = Kernel("pad_rows", "rows of zeros after a row-major tensor")
    features = states["features"]
    with kernel.loop("row", states["rows_out"]) as row, kernel.loop("feature", features) as feature:
        value = kernel.let("value", const(0, width))
        with kernel.when("given", row < states["rows"]):
            kernel.assign(value, kernel.load("element", x, row * features + feature))
        kernel.store(y, row * features + feature, value)
    instruction = ila.instruction("pad_rows").set_decode(run & (func == PADDING_CODE))
    for name, given in inputs.items():
        instruction.update(states[name], given)
    instruction.start(kernel)
    return ila
