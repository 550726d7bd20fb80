"""Boxes of tensors, moved and converted element by element, as an instruction of the tensor-IR ILA.

A box of a tensor y gets elements of a tensor x, converted; what lies outside of the box stays.  Where x has no element
(an offset that leaves x, padding) the box gets 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce
from operator import and_

from ila_lang import Expr, Function, Ila, Kernel, const

from .layer import Layer, bits

BOX_CODE = 19
"""``func_id`` of the instruction that converts a box."""
SIZES = ("X", "first", "before", "count", "place", "Y")
"""What is said of each axis: extent of x, its first element, zeros before it, extent and place of the box, extent of y.

Element i of the box along an axis is element first + i - before of x, and place + i of y.
"""


def sizes_of_axes(axes: int) -> tuple[str, ...]:
    """The names of all sizes, those of an axis with its number: ``X1``, ``first1`` and so on."""
    return tuple(f"{name}{axis}" for axis in range(1, axes + 1) for name in SIZES)


def number(digits: Sequence[Expr], radices: Sequence[Expr]) -> Expr:
    """The row-major place of an element at subscripts, in a tensor of these extents."""
    return reduce(lambda high, axis: high * radices[axis] + digits[axis], range(1, len(digits)), digits[0])


def box_ir(function: Function, formats: Sequence[str], axes: int) -> Ila:
    """The tensor IR as an ILA with the one instruction ``convert_box``.

    ``function`` makes an element of y of an element of x and of ``formats``, its other parameters.  Inputs:
    ``func_run``, ``func_id``, all :func:`sizes_of_axes` (32 bits each) and formats, with the suffix ``_in``.
    Memories, row-major: ``tensor_in`` x, ``tensor_before`` y before and ``tensor_out`` y after the instruction.
    """
    name, element = "convert_box", function.params[0]
    kernel = Kernel(name, f"{function.name} of a box of a row-major tensor")
    widths = {name: bits(p.sort) for name, p in zip(formats, function.params[1:], strict=True)}
    layer = Layer("a box of a tensor, converted", BOX_CODE, kernel, dict.fromkeys(sizes_of_axes(axes), 32) | widths)
    x = layer.tensor("in", bits(element.sort), "tensor x, row-major")
    before = layer.tensor("before", bits(function.result), "tensor y before, row-major")
    y = layer.tensor("out", bits(function.result), "tensor y, row-major")
    extents, firsts, zeros, counts, places, whole = (
        [layer.states[f"{n}{axis}"] for axis in range(1, axes + 1)] for n in SIZES
    )
    with ExitStack() as nest:
        at = [nest.enter_context(kernel.loop(f"y{axis + 1}", whole[axis])) for axis in range(axes)]
        value = kernel.let("value", kernel.load("old", before, number(at, whole)))
        boxed = [(p <= t) & (t < p + n) for t, p, n in zip(at, places, counts, strict=True)]
        # first + (at - place) - before is inside of x; nothing is subtracted here that may be larger
        given = [
            (z + p <= f + t) & (f + t < e + p + z)
            for t, e, f, z, p in zip(at, extents, firsts, zeros, places, strict=True)
        ]
        with kernel.when("in_box", reduce(and_, boxed)):
            kernel.assign(value, const(0, bits(function.result)))
            with kernel.when("in_x", reduce(and_, given)):
                source = [f + (t - p) - z for t, f, z, p in zip(at, firsts, zeros, places, strict=True)]
                read = kernel.load("element", x, number(source, extents))
                kernel.assign(value, function(read, *(layer.states[n] for n in formats)))
        kernel.store(y, number(at, whole), value)
    return layer.finished()
