"""Constant tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ir_semantics.elements.terms import Table, Term, constant, read, table, truth
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import Format, Literal

from .program import Call, Operator
from .values import Element, MeaningOfValue, Tensor, defined, number_of, static_shape

MOST_ELEMENTS = 1 << 20
"""A constant that lists more elements has no meaning here."""


def elements_of(call: Call, value: ir.Attribute | None) -> Tensor:
    """The tensor of a dense, splat or sparse constant."""
    match value:
        case ir.DenseElements(type=ir.TensorType(shape=shape, element=element)):
            numbers = [number_of(bits, element) for bits in _bits(call, value)]
            if value.is_splat:
                return tensor_of(table(call.format(element), _static(shape), {}, numbers[0]))
            first = numbers[0] if numbers else Fraction(0)
            values: dict[int, Literal] = dict(enumerate(numbers))
            return tensor_of(table(call.format(element), _static(shape), values, first))
        case ir.SparseElements(type=ir.TensorType(shape=shape, element=element), indices=indices, values=listed):
            if not isinstance(listed, ir.DenseElements):
                raise call.fail("a constant of strings has no meaning here")
            numbers = [number_of(bits, element) for bits in _bits(call, listed)]
            return tensor_of(_sparse(call, call.format(element), _static(shape), indices, (numbers, listed.is_splat)))
    raise call.fail("the constant must be a number, or a dense or sparse tensor of them")


def _static(shape: ir.Shape) -> tuple[int, ...]:
    return tuple(n for n in shape if n is not None)


def _bits(call: Call, value: ir.DenseElements) -> list[int]:
    bits = value.bit_patterns()
    if len(bits) > MOST_ELEMENTS:
        raise call.fail(f"a constant of more than {MOST_ELEMENTS} elements has no meaning here")
    return bits


def _sparse(
    call: Call, kind: Format, shape: tuple[int, ...], indices: ir.DenseElements, listed: tuple[list[Literal], bool]
) -> Table:
    numbers, is_splat = listed
    flat = indices.integers()
    rows = indices.type.shape[0] if len(indices.type.shape) == 2 else None
    count = rows if isinstance(rows, int) else len(flat) // max(1, len(shape))
    if indices.is_splat:
        flat = flat * (count * len(shape))
    values: dict[int, Literal] = {}
    for row in range(count):
        place = 0
        for i, n in zip(flat[row * len(shape) : (row + 1) * len(shape)], shape, strict=True):
            place = place * n + i
        values[place] = numbers[0] if is_splat else numbers[row]
    return table(kind, shape, values, Fraction(0))


def tensor_of(constants: Table) -> Tensor:
    """A table as a tensor."""

    def element(at: tuple[Term, ...]) -> Element:
        return defined(read(constants, at))

    return Tensor(constants.kind, static_shape(constants.shape), element)


def _constant(call: Call) -> Sequence[MeaningOfValue]:
    value = call.attribute("value", "values")
    match value:
        case ir.IntegerAttribute(value=n, type=type_):
            return [Element(constant(n, call.format(type_)), truth(True))]
        case ir.FloatAttribute(bits=bits, type=type_):
            call.format(type_)
            return [Element(constant(number_of(bits, type_), call.format(type_)), truth(True))]
    return [elements_of(call, value)]


OPERATORS: Mapping[str, Operator] = {"arith.constant": _constant}
"""By name."""
