"""Padding of row-major tensors with rows of zeros, as an instruction of the tensor-IR ILA."""

from __future__ import annotations

from ila_lang import Ila, Kernel, const

from .layer import Layer

PADDING_CODE = 18
"""``func_id`` of the instruction that appends rows of zeros."""


def padding_ir() -> Ila:
    """The tensor IR as an ILA with the one instruction ``pad_rows``: y[t, c] = x[t, c] where t < rows, and 0 below.

    This is ONNX's ``Pad`` with mode ``constant``, value 0 and pads at the end of the first axis.  Elements
    are bytes, and all bits of the number zero are 0.  Inputs: ``func_run``, ``func_id``, the extents ``rows`` (of
    x), ``rows_out`` (of y) and ``features`` (32 bits each), all with the suffix ``_in``.  Memories, row-major:
    ``tensor_in`` x and ``tensor_out`` y.
    """
    kernel = Kernel("pad_rows", "rows of zeros after a row-major tensor")
    layer = Layer("rows of zeros after a tensor", PADDING_CODE, kernel, {"rows": 32, "rows_out": 32, "features": 32})
    x = layer.tensor("in", 8, "input tensor x, row-major")
    y = layer.tensor("out", 8, "output tensor y, row-major")
    features, states = layer.states["features"], layer.states
    with kernel.loop("row", states["rows_out"]) as row, kernel.loop("feature", features) as feature:
        value = kernel.let("value", const(0, 8))
        with kernel.when("given", row < states["rows"]):
            kernel.assign(value, kernel.load("element", x, row * features + feature))
        kernel.store(y, row * features + feature, value)
    return layer.finished()
