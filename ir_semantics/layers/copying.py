"""A copy of a row-major tensor, as an instruction of the tensor-IR ILA: what moving data around must amount to."""

from __future__ import annotations

from ila_lang import BOOL, Ila, Kernel, mem

__all__ = ["COPY_CODE", "copy_ir"]

COPY_CODE = 19
"""``func_id`` of the instruction that copies a tensor."""


def copy_ir(width: int = 8) -> Ila:
    """The tensor IR as an ILA with the one instruction ``copy_rows``: y[t, c] = x[t, c].

    This is ONNX's ``Identity``.  Elements have ``width`` bits.  Inputs: ``func_run``, ``func_id``, the extents ``rows``
    and ``features`` (32 bits each), both with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x and
    ``tensor_out`` y.
    """
    ila = Ila("ir", "Tensor IR: a copy of a tensor")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    names = ("rows", "features")
    inputs = {n: ila.input(f"{n}_in", 32) for n in names}
    states = {n: ila.state(n, 32, 0, doc="operand of the running instruction") for n in names}
    x = ila.state("tensor_in", mem(32, width), doc="input tensor x, row-major")
    y = ila.state("tensor_out", mem(32, width), doc="output tensor y, row-major")
    ila.set_valid(run & (func == COPY_CODE))
    kernel = Kernel("copy_rows", "the same elements at the same places of a row-major tensor")
    features = states["features"]
    with kernel.loop("copied_row", states["rows"]) as row, kernel.loop("copied_feature", features) as feature:
        kernel.store(y, row * features + feature, kernel.load("element", x, row * features + feature))
    instruction = ila.instruction("copy_rows").set_decode(run & (func == COPY_CODE))
    for name, given in inputs.items():
        instruction.update(states[name], given)
    instruction.start(kernel)
    return ila
