"""Layer normalisation over the rows of a row-major tensor, as an instruction of the tensor-IR ILA.

The meaning is one kernel: for every row the sum of its elements and the sum of their squares, from these a centre and
a scale, and then each element normalised, multiplied with gamma and moved by beta.  What adding, dividing and rounding
are is the element type's business (:class:`NormOperator`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ila_lang import Function, Ila, Kernel, const

from .layer import Layer, bits

NORM_CODE = 19
"""``func_id`` of the instruction of layer normalisation."""


@dataclass(frozen=True)
class NormOperator:
    """How elements of one type are normalised.

    Sums are taken in blocks, as types do whose partial sums have a width of their own: ``block`` consecutive elements
    are added by ``add(acc, x)`` (their squares by ``add_square``), and ``join(total, part)`` adds the blocks; all begin
    with 0.  ``widen(element, *parameters)`` makes a number of an element of the input.  ``centre(total, count)`` is the
    mean, and ``scale(total, total_squares, count)`` the inverse deviation; ``count`` has ``count_width`` bits.
    ``finish(x, centre, scale, gamma, beta, *parameters)`` is the element of the result.  ``parameters`` are operands of
    the instruction with their widths in bits; ``widening`` and ``finishing`` name those that both functions take.
    """

    block: int
    widen: Function
    add: Function
    add_square: Function
    join: Function
    centre: Function
    scale: Function
    finish: Function
    count_width: int
    parameters: Mapping[str, int] = field(default_factory=dict)
    widening: Sequence[str] = ()
    finishing: Sequence[str] = ()


def layer_norm_ir(operator: NormOperator) -> Ila:
    """The tensor IR as an ILA with the one instruction ``layer_norm`` over the last axis of x [T, C].

    Inputs: ``func_run``, ``func_id``, the extents ``rows`` and ``blocks`` (32 bits each; a block is ``operator.block``
    features) and the operator's parameters, all with the suffix ``_in``.  Memories, row-major: ``tensor_in`` x,
    ``tensor_gamma`` and ``tensor_beta`` [C], and ``tensor_out`` y [T, C].
    """
    width = bits(operator.finish.result)
    k = Kernel("layer_norm", "layer normalisation of the rows of a row-major tensor")
    layer = Layer("layer normalisation", NORM_CODE, k, {"rows": 32, "blocks": 32, **operator.parameters})
    s = layer.states
    x, gamma, beta, y = (
        layer.tensor(name, width, doc)
        for name, doc in (
            ("in", "input tensor x, row-major"),
            ("gamma", "factor of each feature"),
            ("beta", "offset of each feature"),
            ("out", "output tensor y, row-major"),
        )
    )
    features = s["blocks"] * operator.block
    count = features[operator.count_width - 1 : 0]
    widening, finishing = ([s[n] for n in names] for names in (operator.widening, operator.finishing))
    zero, zero_part = const(0, bits(operator.join.result)), const(0, bits(operator.add.result))
    with k.loop("row", s["rows"]) as row:
        total, total_squares = k.let("total", zero), k.let("total_squares", zero)
        with k.loop("block", s["blocks"]) as block:
            added, squares = k.let("added", zero_part), k.let("squares", zero_part)
            with k.loop("within", const(operator.block, 32)) as within:
                code = k.load("code", x, row * features + (block * operator.block + within))
                number = k.let("number", operator.widen(code, *widening))
                k.assign(added, operator.add(added, number))
                k.assign(squares, operator.add_square(squares, number))
            k.assign(total, operator.join(total, added))
            k.assign(total_squares, operator.join(total_squares, squares))
        centre = k.let("centre", operator.centre(total, count))
        scale = k.let("scale", operator.scale(total, total_squares, count))
        with k.loop("feature", features) as feature:
            again = operator.widen(k.load("again", x, row * features + feature), *widening)
            factor, offset = k.load("factor", gamma, feature), k.load("offset", beta, feature)
            value = operator.finish(again, centre, scale, factor, offset, *finishing)
            k.store(y, row * features + feature, value)
    return layer.finished()
