"""Operations of MLIR as tensor terms: arith and math on tensors, tensor, and linalg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TypeAlias

from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Expression, Symbol
from ir_semantics.mlir.semantics.floats import SCALAR_OPERATORS, require_exact_floats
from ir_semantics.mlir.semantics.linalg import usual_maps
from ir_semantics.mlir.semantics.tensor import groups_of, kept_dimensions
from ir_semantics.scalars.formats import Literal
from ir_semantics.scalars.terms import Scalar, apply, variable, variables
from ir_semantics.tensors.index import Index, index, product
from ir_semantics.tensors.operators import broadcast, concat, map_, pad, reshape, slice_, transpose
from ir_semantics.tensors.reductions import conv, dot, matmul, max_pool, reduce
from ir_semantics.tensors.terms import Shape, Tensor

from .steps import Empty, Step, Value, filled

Operator: TypeAlias = Callable[[Step], Value]
_A, _B, _SUM = variable("a"), variable("b"), variable("sum")


def mapped(step: Step, term: Scalar, operands: Mapping[str, Tensor], shape: Shape) -> Tensor:
    """A scalar term on tensors of one shape, of which those that it does not use are left out."""
    used = {name: operands[name] for name in variables(term)}
    for operand in operands.values():
        step.require_equal(operand.shape, shape)
    if term.op == "variable":
        return used[str(term.payload)]
    if term.op == "constant":
        assert term.payload is not None and not isinstance(term.payload, str)
        return filled(term.payload, shape)
    return map_(term, **used)


def elementwise(op: str) -> Operator:
    """A scalar operator on scalars, or on tensors of one shape."""

    def read(step: Step) -> Value:
        require_exact_floats(step.call)
        operands = {f"x{i}": step.tensor(i) for i in range(len(step.operands))}
        return mapped(step, apply(op, *map(variable, operands)), operands, step.tensor(0).shape)

    return read


def constant_of(step: Step) -> Value:
    """A number, a tensor filled with one, a size, or a list of integers."""
    value = step.call.attribute("value", "values")
    match value:
        case ir.IntegerAttribute(value=n, type=ir.IndexType()):
            return index(n)
        case ir.FloatAttribute():
            return filled(step.number(value), ())
        case ir.DenseElements(type=ir.TensorType(shape=shape, element=element)):
            sizes = [index(n) for n in shape if n is not None]
            if isinstance(element, ir.FloatType) and value.is_splat:
                (bits,) = value.bit_patterns()
                return filled(step.number(ir.FloatAttribute(bits, element)), sizes)
            if isinstance(element, ir.IntegerType | ir.IndexType):
                numbers = value.all_integers(64)
                if numbers is not None:
                    return tuple(map(index, numbers))
    raise step.fail("a constant must be one float, in one or all elements, or a few integers")


# -- sizes ---------------------------------------------------------------------------------------------------


def _on_sizes(compute: Callable[[Index, Index], Index]) -> Operator:
    def read(step: Step) -> Value:
        step.call.attribute("overflowFlags")
        return compute(step.size(0), step.size(1))

    return read


def _floor_quotient(a: Index, b: Index) -> Index:
    if b.constant is None or b.constant < 1:
        raise ValueError("sizes must be divided by positive constants")
    return a // b


def _dim(step: Step) -> Value:
    place = step.size(1).constant
    shape = step.shape(0)
    if place is None or not 0 <= place < len(shape):
        raise step.fail("the dimension must be a constant, and one of the tensor's")
    return shape[place]


def _affine(step: Step) -> Value:
    map_of = step.call.attribute("map")
    if not isinstance(map_of, AffineMap) or len(map_of.results) != 1:
        raise step.fail("the attribute map must be an affine map with one result")
    sizes = [step.size(k) for k in range(len(step.operands))]
    return index_of(map_of.results[0], sizes[: map_of.dimensions], sizes[map_of.dimensions :])


def index_of(expression: Expression, dimensions: Sequence[Index], symbols: Sequence[Index] = ()) -> Index:
    """An affine expression of sizes; raises ValueError for divisors that are no positive constants."""
    match expression:
        case Constant(value):
            return index(value)
        case Dimension(position):
            return dimensions[position]
        case Symbol(position):
            return symbols[position]
        case Binary(operator, left, right):
            a, b = index_of(left, dimensions, symbols), index_of(right, dimensions, symbols)
    match operator:
        case "+":
            return a + b
        case "*":
            return a * b
        case "floordiv":
            return _floor_quotient(a, b)
        case "ceildiv":
            return _floor_quotient(a + b - 1, b)
    return a - b * _floor_quotient(a, b)


def _elements(step: Step) -> Value:
    if isinstance(step.operation.results[0].type, ir.TensorType):
        return tuple(step.size(k) for k in range(len(step.operands)))
    raise step.fail("the result must be a tensor")


# -- tensors -------------------------------------------------------------------------------------------------


def result_sizes(step: Step, dynamic: Sequence[Value]) -> list[Index]:
    """The sizes that the type of the result states; those that it does not are operands."""
    rest, sizes = list(dynamic), []
    for stated in step.call.result_shape():
        size = rest.pop(0) if stated is None else index(stated)
        if not isinstance(size, Index):
            raise step.fail("a size must be an index")
        sizes.append(size)
    return sizes


def _splat(step: Step) -> Value:
    return spread(step.tensor(0), result_sizes(step, step.operands[1:]))


def spread(scalar: Tensor, dimensions: Sequence[Index]) -> Tensor:
    """A scalar in every element."""
    number = dict(scalar.values).get("value") if scalar.operator == "fill" else None
    if number is not None:
        return filled(number, dimensions)  # type: ignore[arg-type]
    return broadcast(scalar, dimensions, []) if dimensions else scalar


def _extract(step: Step) -> Value:
    if step.tensor(0).rank:
        raise step.fail("the tensor must have no dimensions")
    return step.tensor(0)


def _cast(step: Step) -> Value:
    return step.operands[0]


def _collapse(step: Step) -> Value:
    x, groups = step.tensor(0), groups_of(step.call)
    return reshape(x, *(product(x.shape[k] for k in group) for group in groups))


def _expand(step: Step) -> Value:
    x, groups = step.tensor(0), groups_of(step.call)
    sizes = step.mixed("static_output_shape", list(step.operands[1:]))
    for group, extent in zip(groups, x.shape, strict=True):
        step.require_equal([product(sizes[d] for d in group)], [extent])
    return reshape(x, *sizes)


def _reshape(step: Step) -> Value:
    sizes = step.operands[1]
    if not isinstance(sizes, tuple):
        raise step.fail("the shape must be made of sizes")
    return reshape(step.tensor(0), *sizes)


def _slice(step: Step) -> Value:
    x, rest = step.tensor(0), list(step.operands[1:])
    offsets, sizes = step.mixed("static_offsets", rest), step.mixed("static_sizes", rest)
    strides = step.mixed("static_strides", rest)
    step.call.attribute("operandSegmentSizes")
    if any(s.constant is None or s.constant < 1 for s in strides):
        raise step.fail("strides must be positive constants")
    stops = [o + (n - 1) * s + 1 for o, n, s in zip(offsets, sizes, strides, strict=True)]
    part = slice_(x, offsets, stops, strides)
    kept = kept_dimensions(step.call, step.call.wholes("static_sizes"), step.call.result_shape())
    return part if len(kept) == x.rank else reshape(part, *(sizes[k] for k in kept))


def _pad(step: Step) -> Value:
    x, rest = step.tensor(0), list(step.operands[1:])
    before, after = step.mixed("static_low", rest), step.mixed("static_high", rest)
    places = [variable(f"i{k}") for k in range(x.rank)]
    term, outer = step.body(places)
    if term.op == "variable" and str(term.payload) in outer:
        return pad(x, before, after, outer[str(term.payload)])
    if term.op != "constant" or isinstance(term.payload, str) or term.payload is None:
        raise step.fail("what is around the tensor must be a number")
    return pad(x, before, after, term.payload)


def _concat(step: Step) -> Value:
    parts = [step.tensor(k) for k in range(len(step.operands))]
    return concat(step.call.axis("dim", parts[0].rank), *parts)


# -- linalg --------------------------------------------------------------------------------------------------


def _generic(step: Step) -> Value:
    iterators = step.call.attribute("iterator_types")
    step.call.attribute("operandSegmentSizes")
    if not isinstance(iterators, ir.ArrayAttribute) or any("parallel" not in str(e) for e in iterators.elements):
        raise step.fail("loops must be parallel; --linalg-specialize-generic-ops names reductions that have names")
    return _loops(step, step.call.maps("indexing_maps"))


def _named(step: Step) -> Value:
    step.call.attribute("operandSegmentSizes")
    rank = len(step.shape(len(step.operands) - 1))
    return _loops(step, [_identity(len(step.shape(k)), rank) for k in range(len(step.operands))])


def _map(step: Step) -> Value:
    rank = len(step.shape(len(step.operands) - 1))
    return _loops(step, [_identity(rank, rank)] * len(step.operands))


def _identity(rank: int, loops: int) -> AffineMap:
    """The map of an operand that is a scalar, or has a dimension for each loop."""
    return AffineMap(loops, 0, tuple(Dimension(k) for k in range(rank)))


def _loops(step: Step, maps: Sequence[AffineMap]) -> Value:
    """Parallel loops with one result: each operand along all loops, and the body's term on them."""
    last = len(step.operands) - 1
    into = [e.position for e in maps[last].results if isinstance(e, Dimension)]
    if len(step.operation.results) != 1 or sorted(into) != list(range(maps[last].dimensions)):
        raise step.fail("each loop must be over one dimension of one result")
    extents = [index(0)] * len(into)
    for loop, extent in zip(into, step.shape(last), strict=True):
        extents[loop] = extent
    operands = {f"x{k}": _along(step, k, maps[k], extents) for k in range(last)}
    arguments = [variable(f"x{k}") for k in range(len(step.call.body.arguments))]
    term, outer = step.body(arguments)
    operands |= {name: spread(scalar, extents) for name, scalar in outer.items()}
    if f"x{last}" in variables(term):
        result = step.operands[last]
        if not isinstance(result, Tensor):
            raise step.fail("the region must not use what is not defined")
        operands[f"x{last}"] = _along(step, last, maps[last], extents)
    result = mapped(step, term, operands, tuple(extents))
    return result if into == sorted(into) else transpose(result, into)


def _along(step: Step, place: int, map_of: AffineMap, extents: Sequence[Index]) -> Tensor:
    """An operand with a dimension for each loop."""
    x = step.tensor(place)
    loops, kept = [], []
    for k, expression in enumerate(map_of.results):
        match expression:
            case Dimension(position) if position not in loops:
                loops.append(position)
                kept.append(k)
            case Constant(0):
                step.require_equal([x.shape[k]], [index(1)])
            case _:
                raise step.fail("operands must be read at different loops, or at 0")
    if len(kept) < x.rank:
        x = reshape(x, *(x.shape[k] for k in kept))
    step.require_equal(x.shape, [extents[loop] for loop in loops])
    order = sorted(range(len(loops)), key=loops.__getitem__)
    x = x if order == list(range(len(loops))) else transpose(x, order)
    return x if len(loops) == len(extents) else broadcast(x, list(extents), sorted(loops))


def _fill(step: Step) -> Value:
    return spread(step.tensor(0), step.shape(1))


def _transpose(step: Step) -> Value:
    result = transpose(step.tensor(0), step.call.wholes("permutation"))
    step.require_equal(result.shape, step.shape(1))
    return result


def _broadcast(step: Step) -> Value:
    added, shape = step.call.wholes("dimensions"), step.shape(1)
    return broadcast(step.tensor(0), list(shape), [k for k in range(len(shape)) if k not in added])


STARTS: Mapping[str, tuple[str, Literal]] = {"add": ("sum", 0), "maximum": ("max", -inf), "minimum": ("min", inf)}
"""Reductions by the operator on scalars, with what they start with."""


def _reduce(step: Step) -> Value:
    if len(step.operands) != 2:
        raise step.fail("one tensor must be reduced")
    x, axes = step.tensor(0), step.call.wholes("dimensions")
    term, _ = step.body([_A, _SUM])
    op = next((op for op in STARTS if term in (apply(op, _A, _SUM), apply(op, _SUM, _A))), None)
    if op is None:
        raise step.fail("the region must be a sum, a maximum or a minimum of both its arguments")
    require_start(step, 1, op)
    result = reduce(STARTS[op][0], x, axes)
    step.require_equal(result.shape, step.shape(1))
    return result


def require_start(step: Step, place: int, op: str) -> None:
    """Raises unless an operand is filled with what a reduction starts with."""
    start = step.literal(place)
    if start is None or start != STARTS[op][1] or str(start) == "-0.0":
        raise step.fail(f"the {STARTS[op][0]} must start with {STARTS[op][1]}, in all elements")


def product_of(term: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    """A sum of products that starts with 0."""

    def read(step: Step) -> Value:
        step.call.attribute("operandSegmentSizes")
        if "indexing_maps" in step.operation.attributes and step.call.maps("indexing_maps") != usual_maps(step.call):
            raise step.fail("maps must be the usual ones")
        _require_products(step)
        result = term(step.tensor(0), step.tensor(1))
        step.require_equal(result.shape, step.shape(2))
        return result

    return read


def _require_products(step: Step) -> None:
    term, _ = step.body([_A, _B, _SUM])
    if term not in (apply("add", _SUM, apply("mul", _A, _B)), apply("add", apply("mul", _A, _B), _SUM)):
        raise step.fail("the region must add a product of its first two arguments")
    require_start(step, 2, "add")


def _conv(step: Step) -> Value:
    _require_products(step)
    strides, dilations = _windows(step)
    return _fitting(step, conv(step.tensor(0), step.tensor(1), strides=strides, dilations=dilations))


def _max_pool(step: Step) -> Value:
    term, _ = step.body([_A, _B, _SUM])
    if term not in (apply("maximum", _SUM, _A), apply("maximum", _A, _SUM)):
        raise step.fail("the region must be a maximum")
    require_start(step, 2, "maximum")
    strides, dilations = _windows(step)
    return _fitting(step, max_pool(step.tensor(0), step.shape(1), strides=strides, dilations=dilations))


def _windows(step: Step) -> tuple[list[int], list[int]]:
    """Strides and dilations."""
    step.call.attribute("operandSegmentSizes")
    rank = step.tensor(0).rank - 2
    return step.call.wholes("strides", [1] * rank), step.call.wholes("dilations", [1] * rank)


def _fitting(step: Step, result: Tensor) -> Tensor:
    step.require_equal(result.shape, step.shape(2))
    return result


_NAMED = ("add", "sub", "mul", "div", "max", "min", "powf", "exp", "log", "abs", "ceil", "floor", "negf", "sqrt")

OPERATORS: Mapping[str, Operator] = {
    **{name: elementwise(op) for name, op in SCALAR_OPERATORS.items()},
    "arith.constant": constant_of,
    "arith.addi": _on_sizes(lambda a, b: a + b),
    "arith.subi": _on_sizes(lambda a, b: a - b),
    "arith.muli": _on_sizes(lambda a, b: a * b),
    "arith.floordivsi": _on_sizes(_floor_quotient),
    "arith.ceildivsi": _on_sizes(lambda a, b: _floor_quotient(a + b - 1, b)),
    "affine.apply": _affine,
    "tensor.empty": lambda step: Empty(tuple(result_sizes(step, step.operands))),
    "tensor.splat": _splat,
    "tensor.extract": _extract,
    "tensor.dim": _dim,
    "tensor.cast": _cast,
    "tensor.from_elements": _elements,
    "tensor.collapse_shape": _collapse,
    "tensor.expand_shape": _expand,
    "tensor.reshape": _reshape,
    "tensor.extract_slice": _slice,
    "tensor.pad": _pad,
    "tensor.concat": _concat,
    "linalg.generic": _generic,
    "linalg.map": _map,
    "linalg.fill": _fill,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "linalg.reduce": _reduce,
    "linalg.matmul": product_of(matmul),
    "linalg.batch_matmul": product_of(matmul),
    "linalg.matvec": product_of(dot),
    "linalg.conv_1d_ncw_fcw": _conv,
    "linalg.conv_2d_nchw_fchw": _conv,
    "linalg.pooling_nchw_max": _max_pool,
    **{f"linalg.{name}": _named for name in _NAMED},
}
"""By name."""
