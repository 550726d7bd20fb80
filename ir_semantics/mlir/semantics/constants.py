"""Constant tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ir_semantics.elements.terms import Table, Term, constant, read, table, truth
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import Format, Literal

from .program import Call, MeaningOfValue, Operator
from .values import Element, Tensor, defined, number_of, static_shape

MOST_ELEMENTS = 1 << 20
"""A constant that lists more elements has no meaning here."""


def elements_of(call: Call, value: ir.Attribute | None) -> Tensor:
    """The tensor of a dense, splat or sparse constant."""
    type_ = value.type if isinstance(value, ir.DenseElements | ir.SparseElements) else None
    constants = constant_table(value, call.format(type_)) if isinstance(type_, ir.TensorType) else None
    if constants is None:
        why = f"the constant must be a dense or sparse tensor that lists at most {MOST_ELEMENTS} numbers"
        raise call.fail(why, "take it as an argument")
    return tensor_of(constants)


def constant_table(value: ir.Attribute | None, kind: Format) -> Table | None:
    """The table of a dense, splat or sparse constant; None where it has no meaning here."""
    match value:
        case ir.DenseElements(type=ir.TensorType(shape=shape, element=element)):
            bits = value.bit_patterns()
            if len(bits) > MOST_ELEMENTS:
                return None
            numbers = [number_of(b, element) for b in bits]
            first = numbers[0] if numbers else Fraction(0)
            return table(kind, _static(shape), {} if value.is_splat else dict(enumerate(numbers)), first)
        case ir.SparseElements(indices=indices, values=ir.DenseElements() as listed):
            return _sparse(kind, value.type, indices, listed)
    return None


def _static(shape: ir.Shape) -> tuple[int, ...]:
    return tuple(n for n in shape if n is not None)


def _sparse(kind: Format, type_: ir.Type, indices: ir.DenseElements, listed: ir.DenseElements) -> Table | None:
    assert isinstance(type_, ir.TensorType)
    shape = _static(type_.shape)
    numbers = [number_of(bits, type_.element) for bits in listed.bit_patterns()]
    flat = indices.integers()
    rows = indices.type.shape[0] if len(indices.type.shape) == 2 else None
    count = rows if isinstance(rows, int) else len(flat) // max(1, len(shape))
    if count * max(1, len(shape)) > MOST_ELEMENTS:
        return None
    if indices.is_splat:
        flat = flat * (count * len(shape))
    values: dict[int, Literal] = {}
    for row in range(count):
        place = 0
        for i, n in zip(flat[row * len(shape) : (row + 1) * len(shape)], shape, strict=True):
            place = place * n + i
        values.setdefault(place, numbers[0] if listed.is_splat else numbers[row])  # of equal rows the first counts
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
