"""A copy of a row-major tensor, as an instruction of the tensor-IR ILA: what moving data around must amount to."""

from __future__ import annotations

from ila_lang import Ila, Kernel

from .layer import Layer

COPY_CODE = 19
"""``func_id`` of the instruction that copies a tensor."""


def copy_ir() -> Ila:
    """The tensor IR as an ILA with the one instruction ``copy_rows``: y[t, c] = x[t, c].

    This is ONNX's ``Identity``.  Elements are bytes.  Inputs: ``func_run``, ``func_id``, the extents ``rows``
    and ``features`` (32 bits each), both with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x and
    ``tensor_out`` y.
    """
    kernel = Kernel("copy_rows", "the same elements at the same places of a row-major tensor")
    layer = Layer("a copy of a tensor", COPY_CODE, kernel, {"rows": 32, "features": 32})
    x = layer.tensor("in", 8, "input tensor x, row-major")
    y = layer.tensor("out", 8, "output tensor y, row-major")
    features = layer.states["features"]
    with kernel.loop("copied_row", layer.states["rows"]) as row, kernel.loop("copied_feature", features) as feature:
        kernel.store(y, row * features + feature, kernel.load("element", x, row * features + feature))
    return layer.finished()
