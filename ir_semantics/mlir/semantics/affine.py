"""The operators of affine and shape on indices and elements.  Source: the MLIR documentation of the dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from ir_semantics.elements.operators import at_most, both, choose, equal
from ir_semantics.elements.terms import Term, integer_value, is_true, number
from ir_semantics.mlir.affine import AffineMap, Binary, Dimension, Expression, Symbol
from ir_semantics.scalars.formats import INTEGERS

from .buffers import loaded, stored
from .integers import note_index
from .loops import value_of
from .program import Call, MeaningOfValue, Operator
from .tensor import identity
from .values import Element, Tensor, combined, defined, static_shape


def results_of(call: Call, map_: AffineMap, operands: Sequence[MeaningOfValue]) -> list[Element]:
    """The results of a map for operands, dimensions before symbols."""
    elements = [o for o in operands if isinstance(o, Element)]
    values, before = [e.value for e in elements], len(call.scope.requirements)
    dimensions, symbols = values[: map_.dimensions], values[map_.dimensions :]
    note_index(call)
    used = {k for e in map_.results for k in _used(e, map_.dimensions)}
    if not all(is_true(e.defined) for k, e in enumerate(elements) if k not in used):
        raise call.fail("an operand that may be undefined, and that the map does not use, has no meaning here")
    results = [value_of(call, e, dimensions, symbols) for e in map_.results]
    is_defined = both(*(e.defined for e in elements))
    if len(call.scope.requirements) > before and not is_true(is_defined):
        raise call.fail("a divisor that is no constant has no meaning here where operands may be undefined")
    return [Element(r, is_defined) for r in results]


def _used(expression: Expression, dimensions: int) -> set[int]:
    """The operands that an expression uses."""
    match expression:
        case Dimension(position=k):
            return {k}
        case Symbol(position=k):
            return {dimensions + k}
        case Binary(left=left, right=right):
            return _used(left, dimensions) | _used(right, dimensions)
    return set()


def _results(call: Call, first: int = 0) -> list[Element]:
    """The results of the attribute ``map`` for the operands from ``first`` on."""
    map_ = call.attribute("map")
    if not isinstance(map_, AffineMap):
        raise call.wrong("the attribute map must be an affine map")
    return results_of(call, map_, [call.element(i) for i in range(first, len(call.operands))])


def _apply(call: Call) -> Sequence[MeaningOfValue]:
    return _results(call)[:1]


def extreme_of(results: Sequence[Element], is_smallest: bool) -> Element:
    """The smallest or the largest one."""

    def better(a: Term, b: Term) -> Term:
        return choose(at_most(a, b) if is_smallest else at_most(b, a), a, b)

    return combined(reduce(better, (r.value for r in results)), *results)


def _subscripts(call: Call, first: int) -> list[Term]:
    return [call.used(e, "an index is used that is not defined") for e in _results(call, first)]


def _shape_of(call: Call) -> Sequence[MeaningOfValue]:
    shape = call.tensor(0).shape

    def element(at: tuple[Term, ...]) -> Element:
        known = integer_value(at[0])
        if known is not None and 0 <= known < len(shape):
            return defined(shape[known])
        size = number(0)
        for k, n in enumerate(shape):
            size = choose(equal(at[0], number(k)), n, size)
        return defined(size)

    return [Tensor(INTEGERS, static_shape([len(shape)]), element)]


OPERATORS: Mapping[str, Operator] = {
    "affine.apply": _apply,
    "affine.min": lambda call: [extreme_of(_results(call), True)],
    "affine.max": lambda call: [extreme_of(_results(call), False)],
    "affine.load": lambda call: [loaded(call, call.buffer(0), _subscripts(call, 1))],
    "affine.store": lambda call: stored(call, call.element(0), call.buffer(1), _subscripts(call, 2)),
    "shape.shape_of": _shape_of,
    "shape.to_extent_tensor": identity,
}
"""By name."""
