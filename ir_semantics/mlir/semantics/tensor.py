"""The operators of the tensor dialect, and conversions of sparse tensors.  Source: the MLIR documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from ir_semantics.elements.operators import (
    at_most,
    below,
    both,
    choose,
    either,
    equal,
    inside,
    minus,
    plus,
    quotient,
    remainder,
    times,
)
from ir_semantics.elements.terms import Term, constant, fresh, integer_value, literal, number, table
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS, Literal

from .constants import tensor_of
from .program import DYNAMIC, Call, MeaningOfValue, Operator
from .values import Element, Tensor, chosen, defined, undefined

Subscripts = tuple[Term, ...]


def new_subscripts(rank: int) -> Subscripts:
    """Variables for subscripts."""
    return tuple(fresh(f"i{k}", INTEGERS) for k in range(rank))


def product_of(sizes: Sequence[Term]) -> Term:
    """The number of elements."""
    return times(*sizes)


def require_inside(call: Call, at: Sequence[Term], shape: Sequence[Term]) -> None:
    """Requires that subscripts are inside of a shape."""
    for i, n in zip(at, shape, strict=True):
        call.require(inside(i, n), "a subscript must be inside of the tensor")


def _empty(call: Call) -> Sequence[MeaningOfValue]:
    kind = call.result_format()
    return [Tensor(kind, sizes_of(call, call.result_shape(), call.operands), lambda _: undefined(kind))]


def sizes_of(call: Call, shape: ir.Shape, dynamic: Sequence[MeaningOfValue]) -> Subscripts:
    """The shape of a result whose dynamic sizes are operands, which must not be negative."""
    sizes = tuple(call.mixed([DYNAMIC if n is None else n for n in shape], dynamic))
    for size in sizes:
        call.require(at_most(number(0), size), "a size must not be negative")
    return sizes


def _splat(call: Call) -> Sequence[MeaningOfValue]:
    value = call.element(0)
    return [Tensor(value.kind, sizes_of(call, call.result_shape(), call.operands[1:]), lambda _: value)]


def _extract(call: Call) -> Sequence[MeaningOfValue]:
    source = call.tensor(0)
    at = [call.size(i) for i in range(1, len(call.operands))]
    require_inside(call, at, source.shape)
    return [source.at(at)]


def _insert(call: Call) -> Sequence[MeaningOfValue]:
    value, into = call.element(0), call.tensor(1)
    at = [call.size(i) for i in range(2, len(call.operands))]
    require_inside(call, at, into.shape)

    def element(place: Subscripts) -> Element:
        here = both(*(equal(i, p) for i, p in zip(at, place, strict=True)))
        return chosen(here, value, into.at(place))

    return [Tensor(into.kind, into.shape, element)]


def _from_elements(call: Call) -> Sequence[MeaningOfValue]:
    elements = [call.element(i) for i in range(len(call.operands))]
    kind = call.result_format()
    shape = tuple(n for n in call.result_shape() if n is not None)
    values = [literal(e.value) for e in elements]
    if elements and all(v is not None for v in values) and all(integer_value(e.defined) != 0 for e in elements):
        known: dict[int, Literal] = {i: v for i, v in enumerate(values) if v is not None}
        if all(literal(e.defined) == 1 for e in elements):
            return [tensor_of(table(kind, shape, known, known[0]))]
    sizes = tuple(map(number, shape))

    def element(at: Subscripts) -> Element:
        place = linear(at, sizes)
        known_place = integer_value(place)
        if known_place is not None and 0 <= known_place < len(elements):
            return elements[known_place]
        result = elements[-1] if elements else undefined(kind)
        for i, each in reversed(list(enumerate(elements[:-1]))):
            result = chosen(equal(place, number(i)), each, result)
        return result

    return [Tensor(kind, sizes, element)]


def linear(at: Sequence[Term], sizes: Sequence[Term]) -> Term:
    """The place in row-major order."""
    place = number(0)
    for i, n in zip(at, sizes, strict=True):
        place = plus(times(place, n), i)
    return place


def digits(place: Term, sizes: Sequence[Term]) -> Subscripts:
    """Subscripts from a place in row-major order; a place inside is assumed, so the first needs no remainder."""
    at: list[Term] = []
    wide = [k for k, n in enumerate(sizes) if integer_value(n) != 1]
    for k, size in enumerate(sizes):
        if integer_value(size) == 1:
            at.append(number(0))
            continue
        digit = quotient(place, product_of(sizes[k + 1 :]))
        at.append(digit if k == wide[0] else remainder(digit, size))
    return tuple(at)


def _generate(call: Call) -> Sequence[MeaningOfValue]:
    kind, shape = call.result_format(), sizes_of(call, call.result_shape(), call.operands)

    def element(at: Subscripts) -> Element:
        return call.run_body([defined(i) for i in at], call.inner())[0]

    require_of_body(call, shape)
    return [Tensor(kind, shape, element)]


def require_of_body(call: Call, shape: Sequence[Term]) -> None:
    """Requires what a body over subscripts requires."""
    at, inner = new_subscripts(len(shape)), call.inner()
    call.run_body([defined(i) for i in at], inner)
    call.require_every(inner, at, shape)


def extent_at(call: Call, shape: Sequence[Term], what: str) -> Sequence[MeaningOfValue]:
    """The extent of a buffer or tensor along the dimension that the second operand says."""
    place = call.size(1)
    known = integer_value(place)
    if known is not None and 0 <= known < len(shape):
        return [defined(shape[known])]
    call.require(inside(place, number(len(shape))), f"a dimension must be one of the {what}'s")
    size = number(0)
    for k, n in enumerate(shape):
        size = choose(equal(place, number(k)), n, size)
    return [defined(size)]


def _dim(call: Call) -> Sequence[MeaningOfValue]:
    return extent_at(call, call.tensor(0).shape, "tensor")


def _rank(call: Call) -> Sequence[MeaningOfValue]:
    return [defined(number(len(call.tensor(0).shape)))]


def _cast(call: Call) -> Sequence[MeaningOfValue]:
    source = call.tensor(0)
    call.shaped(source.shape, reason="the sizes of a tensor must be those it is cast to")
    stated = call.result_shape()
    shape = tuple(n if s is None else number(s) for s, n in zip(stated, source.shape, strict=True))
    return [Tensor(source.kind, shape, source.at)]


def groups_of(call: Call) -> list[list[int]]:
    """The dimensions that ``reassociation`` puts together."""
    value = call.attribute("reassociation")
    if not isinstance(value, ir.ArrayAttribute):
        raise call.wrong("the attribute reassociation must be a list of lists")
    groups = []
    for group in value.elements:
        if not isinstance(group, ir.ArrayAttribute):
            raise call.wrong("the attribute reassociation must be a list of lists")
        if not all(isinstance(e, ir.IntegerAttribute) for e in group.elements):
            raise call.wrong("the attribute reassociation must be lists of dimensions")
        groups.append([e.value for e in group.elements if isinstance(e, ir.IntegerAttribute)])
    return groups


def _collapse(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.tensor(0), groups_of(call)
    inner = [[source.shape[k] for k in group] for group in groups]
    shape = tuple(map(product_of, inner))
    call.shaped(shape)
    if not groups:  # all sizes are 1
        call.require_equal(source.shape, [number(1)] * len(source.shape), "sizes that are left out must be 1")

    def element(at: Subscripts) -> Element:
        parts = [digits(i, sizes) for i, sizes in zip(at, inner, strict=True)]
        return source.at([d for part in parts for d in part] if groups else [number(0)] * len(source.shape))

    return [Tensor(source.kind, shape, element)]


def _expand(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.tensor(0), groups_of(call)
    stated = [DYNAMIC if n is None else n for n in call.result_shape()]
    if call.attribute("static_output_shape") is not None:
        sizes = call.mixed(call.wholes("static_output_shape"), call.operands[1:])
    else:
        sizes = inferred_sizes(call, source.shape, groups, stated)
    call.shaped(sizes)
    for size in sizes:
        call.require(at_most(number(0), size), "a size must not be negative")
    for k, group in enumerate(groups):
        whole = product_of([sizes[d] for d in group])
        call.require(equal(whole, source.shape[k]), "the product of sizes must be the size that they expand")

    def element(at: Subscripts) -> Element:
        return source.at([linear([at[d] for d in g], [sizes[d] for d in g]) for g in groups])

    return [Tensor(source.kind, tuple(sizes), element)]


def inferred_sizes(
    call: Call, source: Sequence[Term], groups: Sequence[Sequence[int]], stated: Sequence[int]
) -> list[Term]:
    """Sizes of which at most one in each group is dynamic."""
    sizes = [number(n) for n in stated]
    for k, group in enumerate(groups):
        unknown = [d for d in group if stated[d] == DYNAMIC]
        if len(unknown) > 1:
            raise call.wrong("only one size of a group may be dynamic")
        for d in unknown:
            others = product_of([number(stated[e]) for e in group if e != d])
            sizes[d] = quotient(source[k], others)
    return sizes


def _reshape(call: Call) -> Sequence[MeaningOfValue]:
    source, into = call.tensor(0), call.tensor(1)
    stated = call.result_shape()
    sizes = []
    for k, n in enumerate(stated):
        size = call.settled(into.at((number(k),)), "a size may be undefined")
        if size.kind != INTEGERS:
            raise call.wrong("the sizes must be of type index")
        sizes.append(size if n is None else number(n))
        call.require(equal(size, sizes[-1]), "sizes must be those of the type")
        call.require(at_most(number(0), size), "a size must not be negative")
    return [reshaped(call, source, tuple(sizes))]


def reshaped(call: Call, source: Tensor, sizes: Subscripts) -> Tensor:
    """The same elements in row-major order in another shape, which must have as many."""
    call.require(equal(product_of(sizes), product_of(source.shape)), "both shapes must have as many elements")
    return Tensor(source.kind, sizes, lambda at: source.at(digits(linear(at, sizes), source.shape)))


# -- slices --------------------------------------------------------------------------------------------------


class Slice:
    """Offsets, sizes and strides of a slice, and the dimensions that the smaller tensor keeps."""

    def __init__(self, call: Call, groups: Sequence[Sequence[MeaningOfValue]], small: ir.Shape) -> None:
        self.offsets = call.mixed(call.wholes("static_offsets"), groups[0])
        self.static = call.wholes("static_sizes")
        self.sizes = call.mixed(self.static, groups[1])
        self.strides = call.mixed(call.wholes("static_strides"), groups[2])
        self.kept = kept_dimensions(call, self.static, small)

    def require_inside(self, call: Call, shape: Sequence[Term]) -> None:
        """Requires that all that the slice goes over is inside of a shape; a size of 0 may start at its end."""
        for offset, size, stride, extent in zip(self.offsets, self.sizes, self.strides, shape, strict=True):
            call.require(at_most(number(0), size), "a size must not be negative")
            last = plus(offset, times(minus(size, number(1)), stride))
            within = both(inside(offset, extent), inside(last, extent))
            none = both(equal(size, number(0)), at_most(number(0), offset), at_most(offset, extent))
            call.require(either(none, within), "a slice must be inside of the tensor")

    def place(self, at: Sequence[Term]) -> Subscripts:
        """Where an element of the slice is in the larger tensor."""
        full = self.widened(at)
        return tuple(plus(o, times(i, s)) for o, i, s in zip(self.offsets, full, self.strides, strict=True))

    def widened(self, at: Sequence[Term]) -> list[Term]:
        """Subscripts with 0 for dimensions that are not kept."""
        full = [number(0)] * len(self.sizes)
        for i, k in zip(at, self.kept, strict=True):
            full[k] = i
        return full


def kept_dimensions(call: Call, static: Sequence[int], small: ir.Shape) -> list[int]:
    """Which dimensions a smaller type has: the first ones that match; others must have the size 1."""
    kept: list[int] = []
    rest = list(small)
    for k, n in enumerate(static):
        if rest and n == (DYNAMIC if rest[0] is None else rest[0]):
            kept.append(k)
            rest.pop(0)
        elif n != 1:
            raise call.wrong("the smaller type must have the sizes of the slice, without some that are 1")
    if rest:
        raise call.wrong("the smaller type must have the sizes of the slice, without some that are 1")
    return kept


def _extract_slice(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.tensor(0), call.segments()
    part = Slice(call, groups[1:], call.result_shape())
    part.require_inside(call, source.shape)
    shape = tuple(part.sizes[k] for k in part.kept)
    return [Tensor(source.kind, shape, lambda at: source.at(part.place(at)))]


def inserted(call: Call) -> Tensor:
    """A tensor with another one in place of a slice."""
    source, into, groups = call.tensor(0), call.tensor(1), call.segments()
    type_ = call.operation.operands[0].type
    assert isinstance(type_, ir.TensorType)
    part = Slice(call, groups[2:], type_.shape)
    part.require_inside(call, into.shape)
    call.require_equal(source.shape, [part.sizes[k] for k in part.kept], "the slice must have the shape of the tensor")
    for stride in part.strides:
        call.require(at_most(number(1), stride), "a stride must be positive")

    def element(at: Subscripts) -> Element:
        within, places = [], []
        for i, offset, size, stride in zip(at, part.offsets, part.sizes, part.strides, strict=True):
            distance = minus(i, offset)
            place = quotient(distance, stride)
            within += [at_most(number(0), distance), below(place, size)]
            within.append(equal(times(place, stride), distance))
            places.append(place)
        return chosen(both(*within), source.at([places[k] for k in part.kept]), into.at(at))

    return Tensor(into.kind, into.shape, element)


def _pad(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.tensor(0), call.segments()
    low = call.mixed(call.wholes("static_low"), groups[1])
    high = call.mixed(call.wholes("static_high"), groups[2])
    shape = tuple(plus(a, n, b) for a, n, b in zip(low, source.shape, high, strict=True))
    for before, after, size in zip(low, high, shape, strict=True):
        call.require(at_most(number(0), before), "padding must not be negative")
        call.require(at_most(number(0), after), "padding must not be negative")
        call.require(at_most(number(0), size), "a size must not be negative")
    call.shaped(shape)
    require_of_body(call, shape)

    def element(at: Subscripts) -> Element:
        inner = tuple(minus(i, before) for i, before in zip(at, low, strict=True))
        within = both(*(inside(i, n) for i, n in zip(inner, source.shape, strict=True)))
        value = call.run_body([defined(i) for i in at], call.inner())[0]
        return chosen(within, source.at(inner), read_zero(call, value))

    return [Tensor(source.kind, shape, element)]


def read_zero(call: Call, value: Element) -> Element:
    """A literal +0.0 as -0.0, where that is the reading."""
    is_zero = value.kind.family == "float" and literal(value.value) == 0 and not isinstance(literal(value.value), float)
    if call.scope.reading.use_neg_zero and is_zero:
        return Element(constant(-0.0, value.kind), value.defined)
    return value


def concatenated(call: Call, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors one after the other along an axis."""
    for other in parts[1:]:
        for k, (a, b) in enumerate(zip(parts[0].shape, other.shape, strict=True)):
            if k != axis:
                call.require(equal(a, b), "tensors must have one shape but for the axis they are put together along")
    size = reduce(plus, (p.shape[axis] for p in parts))
    shape = tuple(size if k == axis else n for k, n in enumerate(parts[0].shape))

    def element(at: Subscripts) -> Element:
        start, pieces = number(0), []
        for part in parts:
            inner = (*at[:axis], minus(at[axis], start), *at[axis + 1 :])
            start = plus(start, part.shape[axis])
            pieces.append((below(at[axis], start), part.at(inner)))
        result = pieces[-1][1]
        for before, value in reversed(pieces[:-1]):
            result = chosen(before, value, result)
        return result

    return Tensor(parts[0].kind, shape, element)


def _concat(call: Call) -> Sequence[MeaningOfValue]:
    result = concatenated(call, call.tensors(), call.axis("dim", len(call.tensor(0).shape)))
    call.shaped(result.shape)
    return [result]


def identity(call: Call) -> Sequence[MeaningOfValue]:
    """The operand."""
    return [call.operands[0]]


def _convert_storage(call: Call) -> Sequence[MeaningOfValue]:
    call.scope.notes["how a sparse tensor is stored changes none of its elements"] = None
    return _cast(call)


OPERATORS: Mapping[str, Operator] = {
    "sparse_tensor.convert": _convert_storage,
    "tensor.empty": _empty,
    "tensor.splat": _splat,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "tensor.from_elements": _from_elements,
    "tensor.generate": _generate,
    "tensor.dim": _dim,
    "tensor.rank": _rank,
    "tensor.cast": _cast,
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.reshape": _reshape,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": lambda call: [inserted(call)],
    "tensor.pad": _pad,
    "tensor.concat": _concat,
}
"""By name."""
