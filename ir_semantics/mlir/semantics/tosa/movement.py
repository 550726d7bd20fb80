"""TOSA's operators that move elements: reshape, transpose, tile, gather and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_semantics.elements.binders import every
from ir_semantics.elements.operators import apply, at_most, both, inside, minus, plus, quotient, remainder, times
from ir_semantics.elements.terms import Term, integer_value, literal, number
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.constants import elements_of
from ir_semantics.mlir.semantics.linalg import transposed
from ir_semantics.mlir.semantics.program import MOST_LISTED, Call, MeaningOfValue, Operator
from ir_semantics.mlir.semantics.tensor import concatenated, identity, new_subscripts, product_of, reshaped
from ir_semantics.mlir.semantics.values import Element, Tensor, chosen, defined, zero
from ir_semantics.scalars.formats import INTEGERS


def _const(call: Call) -> Sequence[MeaningOfValue]:
    return [elements_of(call, call.attribute("value", "values"))]


def numbers_of(call: Call, attribute: str, operand: int) -> list[int]:
    """Numbers that are an attribute, or a constant operand, of one or two dimensions."""
    if call.attribute(attribute) is not None:
        return call.wholes(attribute)
    tensor = call.tensor(operand)
    sizes = [integer_value(n) for n in tensor.shape]
    known = [n for n in sizes if n is not None]
    if known and known[0] > MOST_LISTED:
        raise call.wrong(f"{attribute} must list at most {MOST_LISTED} numbers")
    places = [(i,) for i in range(known[0])] if len(known) == 1 else [(i, j) for i in range(known[0]) for j in (0, 1)]
    values = [literal(tensor.at(tuple(map(number, at))).value) for at in places]
    if any(v is None for v in values):
        raise call.fail(f"{attribute} must be constant", "mlir-opt --canonicalize may make it so")
    return [int(v) for v in values if v is not None]


def _reshape(call: Call) -> Sequence[MeaningOfValue]:
    source = call.tensor(0)
    stated = numbers_of(call, "new_shape", 1)
    known = product_of([number(n) for n in stated if n >= 0])
    total = product_of(source.shape)
    shape = tuple(quotient(total, known) if n < 0 else number(n) for n in stated)
    if sum(n < 0 for n in stated) > 1:
        raise call.wrong("only one size may be left open")
    call.shaped(shape)
    return [reshaped(call, source, shape)]


def _transpose(call: Call) -> Sequence[MeaningOfValue]:
    result = transposed(call.tensor(0), numbers_of(call, "perms", 1))
    call.shaped(result.shape)
    return [result]


def _reverse(call: Call) -> Sequence[MeaningOfValue]:
    source = call.tensor(0)
    axis = call.axis("axis", len(source.shape))

    def element(at: tuple[Term, ...]) -> Element:
        mirrored = minus(minus(source.shape[axis], number(1)), at[axis])
        return source.at((*at[:axis], mirrored, *at[axis + 1 :]))

    return [Tensor(source.kind, source.shape, element)]


def _tile(call: Call) -> Sequence[MeaningOfValue]:
    source, multiples = call.tensor(0), numbers_of(call, "multiples", 1)
    if any(m < 0 for m in multiples):
        raise call.wrong("multiples must not be negative")
    shape = tuple(times(n, number(m)) for n, m in zip(source.shape, multiples, strict=True))
    call.shaped(shape)

    def element(at: tuple[Term, ...]) -> Element:
        inner = [
            i if m == 1 else number(0) if integer_value(n) == 1 else remainder(i, n)
            for i, n, m in zip(at, source.shape, multiples, strict=True)
        ]
        return source.at(inner)

    return [Tensor(source.kind, shape, element)]


def _concat(call: Call) -> Sequence[MeaningOfValue]:
    result = concatenated(call, call.tensors(), call.axis("axis", len(call.tensor(0).shape)))
    call.shaped(result.shape)
    return [result]


def _gather(call: Call) -> Sequence[MeaningOfValue]:
    values, indices = call.tensor(0), call.tensor(1)
    call.require_equal(values.shape[:1], indices.shape[:1], "batches must be of one size")
    at = new_subscripts(2)
    index = indices.at(at)
    place = apply("cast", index.value, target=INTEGERS)
    fits = both(index.defined, inside(place, values.shape[1]))
    call.require(every(at, indices.shape, fits), "an index must be defined, and inside of the tensor")
    shape = (values.shape[0], indices.shape[1], values.shape[2])
    call.shaped(shape)

    def element(place_: tuple[Term, ...]) -> Element:
        n, w, c = place_
        return values.at((n, apply("cast", indices.at((n, w)).value, target=INTEGERS), c))

    return [Tensor(values.kind, shape, element)]


def _slice(call: Call) -> Sequence[MeaningOfValue]:
    source = call.tensor(0)
    starts, sizes = numbers_of(call, "start", 1), numbers_of(call, "size", 2)
    shape = tuple(
        minus(n, number(s)) if m < 0 else number(m) for s, m, n in zip(starts, sizes, source.shape, strict=True)
    )
    for start, size, extent in zip(starts, shape, source.shape, strict=True):
        call.require(at_most(number(0), number(start)), "a slice must be inside of the tensor")
        call.require(at_most(plus(number(start), size), extent), "a slice must be inside of the tensor")
    call.shaped(shape)
    return [
        Tensor(source.kind, shape, lambda at: source.at([plus(i, number(s)) for i, s in zip(at, starts, strict=True)]))
    ]


def _pad(call: Call) -> Sequence[MeaningOfValue]:
    source, padding = call.tensor(0), numbers_of(call, "padding", 1)
    if any(n < 0 for n in padding):
        raise call.wrong("padding must not be negative")
    value = call.tensor(2) if len(call.operands) == 3 else None
    low, high = padding[::2], padding[1::2]
    shape = tuple(plus(number(a), n, number(b)) for a, n, b in zip(low, source.shape, high, strict=True))
    call.shaped(shape)
    if value is None and call.attribute("quantization_info") is not None:
        raise call.fail("zero points have no meaning here")
    outside = defined(zero(source.kind)) if value is None else value.at([number(0)] * len(value.shape))
    return [padded(source, low, shape, outside)]


def padded(source: Tensor, low: Sequence[int], shape: Sequence[Term], outside: Element) -> Tensor:
    """A tensor with other elements around it, so many before each dimension."""

    def element(at: tuple[Term, ...]) -> Element:
        inner = [minus(i, number(before)) for i, before in zip(at, low, strict=True)]
        within = both(*(inside(i, n) for i, n in zip(inner, source.shape, strict=True)))
        return chosen(within, source.at(inner), outside)

    return Tensor(source.kind, tuple(shape), element)


def _const_shape(call: Call) -> Sequence[MeaningOfValue]:
    value = call.attribute("values", "value")
    if not isinstance(value, ir.DenseElements):
        raise call.wrong("a shape must be a list of numbers")
    sizes = value.all_integers(MOST_LISTED)
    if sizes is None:
        raise call.wrong(f"a shape must list at most {MOST_LISTED} numbers")

    def element(at: tuple[Term, ...]) -> Element:
        place = integer_value(at[0])
        if place is None:
            raise call.fail("a shape is read at an unknown place")
        return defined(number(sizes[place]))

    return [Tensor(INTEGERS, (number(len(sizes)),), element)]


OPERATORS: Mapping[str, Operator] = {
    "tosa.const": _const,
    "tosa.const_shape": _const_shape,
    "tosa.reshape": _reshape,
    "tosa.transpose": _transpose,
    "tosa.reverse": _reverse,
    "tosa.tile": _tile,
    "tosa.concat": _concat,
    "tosa.gather": _gather,
    "tosa.slice": _slice,
    "tosa.pad": _pad,
    "tosa.identity": identity,
}
"""By name."""
