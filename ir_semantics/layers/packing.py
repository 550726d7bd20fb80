"""Members of groups beside each other, as an instruction of the tensor-IR ILA: the layout OIHWi of other compilers."""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Expr, Function, Ila, Kernel, const

from .layer import Layer, bits

PACKING_CODE = 21
"""``func_id`` of the instruction that packs a tensor."""


def packing_ir(function: Function, formats: Sequence[str], size: int) -> Ila:
    """The tensor IR as an ILA with the one instruction ``pack_groups``.

    y [rows, groups, places, size] gets ``function`` of elements of x [.., channels, places], whose row ``first`` is the
    first one: element (r, g, p, m) is that of channel g * size + m, or 0 if there is no such channel.  The other
    parameters of the function are ``formats``.  Inputs: ``func_run``, ``func_id``, the extents (32 bits each) ``rows``,
    ``first``, ``channels`` and ``places``, and formats, with the suffix ``_in``.  Memories: ``tensor_in`` x and
    ``tensor_out`` y, row-major.
    """
    kernel = Kernel("pack_groups", f"{function.name} of elements, {size} channels beside each other")
    widths = dict.fromkeys(("rows", "first", "channels", "places"), 32)
    widths |= {name: bits(p.sort) for name, p in zip(formats, function.params[1:], strict=True)}
    layer = Layer("a tensor of which members of groups lie beside each other", PACKING_CODE, kernel, widths)
    x = layer.tensor("in", bits(function.params[0].sort), "input tensor x, row-major")
    y = layer.tensor("out", bits(function.result), "output tensor y, row-major")
    rows, first, channels, places = (layer.states[n] for n in ("rows", "first", "channels", "places"))
    groups = groups_of(channels, size)
    with (
        kernel.loop("row", rows) as row,
        kernel.loop("group", groups) as group,
        kernel.loop("place", places) as place,
        kernel.loop("member", const(size, 32)) as member,
    ):
        channel = group * size + member
        code = kernel.let("code", const(0, bits(function.result)))
        with kernel.when("given", channel < channels):
            element = kernel.load("element", x, ((first + row) * channels + channel) * places + place)
            kernel.assign(code, function(element, *(layer.states[n] for n in formats)))
        kernel.store(y, ((row * groups + group) * places + place) * size + member, code)
    return layer.finished()


def groups_of(channels: Expr, size: int) -> Expr:
    """How many groups hold so many channels."""
    return (channels + (size - 1)) // const(size, 32)
