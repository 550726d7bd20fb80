"""The operators of linalg.  Source: the MLIR documentation of the dialect, and the maps of its named operators.

A named operator is the loop nest that MLIR's generalisation gives: its loops, in this order, and its region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ir_semantics.elements.operators import either
from ir_semantics.elements.terms import Term, integer_value, is_true, number, truth
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Expression

from .buffers import require_nested, view, write
from .loops import Loops
from .memory import Buffer, apart, same_view
from .program import Call, MeaningOfValue, Operator, Scope
from .tensor import read_zero
from .values import Element, Tensor, defined


def _loops(
    call: Call, operands: Sequence[MeaningOfValue], maps: Sequence[AffineMap], outputs: int
) -> list[MeaningOfValue]:
    """The results of loops: tensors; what starts from a buffer is written there."""

    def run(elements: Sequence[Element], at: Sequence[Term], scope: Scope) -> Sequence[Element]:
        return [read_zero(call, e) for e in call.run_body(elements, scope, at)]

    _require_apart(call, operands, maps, outputs)
    used = {o for operation in call.body.operations for o in operation.operands}
    arguments = call.body.arguments
    views = [view(call, o, used=arguments[k] in used) if isinstance(o, Buffer) else o for k, o in enumerate(operands)]
    results: list[MeaningOfValue] = []
    for start, result in zip(operands[-outputs:], Loops(call, views, maps, outputs, run).results(), strict=True):
        if isinstance(start, Buffer):
            write(call, start, result)
        else:
            results.append(result)
    return results


def _require_apart(call: Call, operands: Sequence[MeaningOfValue], maps: Sequence[AffineMap], outputs: int) -> None:
    """Requires that what is written overlaps nothing else, unless it is read at the same place of the same loops."""
    first = len(operands) - outputs
    for k, written in enumerate(operands[first:], first):
        for j, other in enumerate(operands):
            if isinstance(written, Buffer) and isinstance(other, Buffer) and j != k and (j < first or j < k):
                for each in (written, other):
                    require_nested(call, each)
                in_place = maps[j] == maps[k] and len(set(maps[k].results)) == maps[k].dimensions and j < first
                may = same_view(written, other) if in_place else truth(False)
                condition = either(apart(written, other), may)
                if not is_true(condition):
                    call.scope.notes["to write a buffer that overlaps another one of the operation is undefined"] = None
                call.require(condition, "what is written must not overlap another operand")


MOST_ITERATIONS = 64
"""Loops whose body writes memory are written out, up to so many iterations."""


def _written_out(call: Call, maps: Sequence[AffineMap], outputs: int) -> Sequence[MeaningOfValue]:
    """Loops whose body writes memory, one iteration after the other."""
    extents: dict[int, int] = {}
    for operand, map_ in zip(call.operands, maps, strict=True):
        if not isinstance(operand, Buffer):
            raise call.fail("a region that writes has no meaning here")
        require_nested(call, operand)
        call.require(call.scope.memory.whole(operand), "what is read must be inside of a block that is alive")
        for size, expression in zip(operand.shape, map_.results, strict=True):
            known = integer_value(size)
            if not isinstance(expression, Dimension) or known is None:
                raise call.fail("a region that writes has no meaning here")
            if extents.setdefault(expression.position, known) != known:
                raise call.wrong("sizes that one loop goes over must be equal")
    count = maps[0].dimensions
    if len(extents) < count or prod(extents.values()) > MOST_ITERATIONS:
        raise call.fail("a region that writes has no meaning here")
    for at in product(*(range(extents[k]) for k in range(count))):
        places = [[number(at[e.position]) for e in m.results if isinstance(e, Dimension)] for m in maps]
        buffers = [call.buffer(k) for k in range(len(maps))]
        elements = [call.scope.memory.at(b, place) for b, place in zip(buffers, places, strict=True)]
        yielded = call.run_body(elements, call.scope, [number(i) for i in at])
        for value, buffer, place in zip(yielded, buffers[-outputs:], places[-outputs:], strict=True):
            call.require(call.scope.memory.writable(buffer.block), "what is written must be in a block that may be")
            call.scope.memory = call.scope.memory.storing(buffer, place, value)
    return []


def _generic(call: Call) -> Sequence[MeaningOfValue]:
    outputs = call.wholes("operandSegmentSizes")[1]
    iterators = call.attribute("iterator_types")
    if isinstance(iterators, ir.ArrayAttribute):
        texts = [getattr(e, "text", getattr(e, "value", "")) for e in iterators.elements]
        if any("parallel" not in x and "reduction" not in x for x in texts):
            raise call.wrong("loops must be parallel or reductions")
    if any(o.name == "memref.store" for o in call.body.operations):
        return _written_out(call, call.maps("indexing_maps"), outputs)
    return _loops(call, call.operands, call.maps("indexing_maps"), outputs)


def _index(call: Call) -> Sequence[MeaningOfValue]:
    indices = call.environment.indices
    return [defined(indices[call.axis("dim", len(indices))])]


def _fill(call: Call) -> Sequence[MeaningOfValue]:
    value, into = read_zero(call, call.element(0)), call.operands[1]
    if value.kind != into.kind:
        raise call.wrong("what a tensor is filled with must have its format")
    if isinstance(into, Buffer):
        write(call, into, Tensor(into.kind, into.shape, lambda _: value))
        return []
    into = call.tensor(1)
    return [Tensor(into.kind, into.shape, lambda _: value)]


def _copy(call: Call) -> Sequence[MeaningOfValue]:
    if isinstance(call.operands[1], Buffer):
        rank = len(call.operands[1].shape)
        identity = AffineMap(rank, 0, tuple(Dimension(k) for k in range(rank)))
        return _loops(call, call.operands, [identity, identity], 1)
    source, into = call.tensor(0), call.tensor(1)
    call.require_equal(source.shape, into.shape, "operands must have one shape")
    if source.kind != into.kind:
        raise call.wrong("operands must have one format")
    return [source]


# -- named operators -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Named:
    """A loop nest in words: dimensions of operands by the letters of loops, in the order of ``loops``.

    ``h*s0+k*t0`` is a window: stride 0 times h, and dilation 0 times k.
    """

    loops: str
    operands: tuple[str, ...]


def _nest(loops: str, *operands: str) -> _Named:
    return _Named(loops, operands)


_NAMED: Mapping[str, _Named] = {
    "dot": _nest("k", "k", "k", ""),
    "matvec": _nest("m n", "m n", "n", "m"),
    "vecmat": _nest("n m", "m", "m n", "n"),
    "matmul": _nest("m n k", "m k", "k n", "m n"),
    "matmul_transpose_a": _nest("m n k", "k m", "k n", "m n"),
    "matmul_transpose_b": _nest("m n k", "m k", "n k", "m n"),
    "batch_matmul": _nest("b m n k", "b m k", "b k n", "b m n"),
    "batch_matmul_transpose_a": _nest("b m n k", "b k m", "b k n", "b m n"),
    "batch_matmul_transpose_b": _nest("b m n k", "b m k", "b n k", "b m n"),
    "batch_matvec": _nest("b m k", "b m k", "b k", "b m"),
    "batch_vecmat": _nest("b n k", "b k", "b k n", "b n"),
    "batch_reduce_matmul": _nest("b m n k", "b m k", "b k n", "m n"),
    "conv_1d": _nest("w k", "w+k", "k", "w"),
    "conv_2d": _nest("h w k l", "h+k w+l", "k l", "h w"),
    "conv_3d": _nest("d h w j k l", "d+j h+k w+l", "j k l", "d h w"),
    "conv_1d_nwc_wcf": _nest("n w f k c", "n w*s0+k*t0 c", "k c f", "n w f"),
    "conv_1d_ncw_fcw": _nest("n f w c k", "n c w*s0+k*t0", "f c k", "n f w"),
    "conv_2d_nhwc_hwcf": _nest("n h w f k l c", "n h*s0+k*t0 w*s1+l*t1 c", "k l c f", "n h w f"),
    "conv_2d_nhwc_fhwc": _nest("n h w f k l c", "n h*s0+k*t0 w*s1+l*t1 c", "f k l c", "n h w f"),
    "conv_2d_nchw_fchw": _nest("n f h w c k l", "n c h*s0+k*t0 w*s1+l*t1", "f c k l", "n f h w"),
    "depthwise_conv_1d_nwc_wc": _nest("n w c k", "n w*s0+k*t0 c", "k c", "n w c"),
    "depthwise_conv_2d_nhwc_hwc": _nest("n h w c k l", "n h*s0+k*t0 w*s1+l*t1 c", "k l c", "n h w c"),
    "depthwise_conv_2d_nchw_chw": _nest("n h w c k l", "n c h*s0+k*t0 w*s1+l*t1", "c k l", "n c h w"),
    "depthwise_conv_2d_nhwc_hwcm": _nest("n h w c m k l", "n h*s0+k*t0 w*s1+l*t1 c", "k l c m", "n h w c m"),
    **{
        f"pooling_nhwc_{kind}": _nest("n h w c k l", "n h*s0+k*t0 w*s1+l*t1 c", "k l", "n h w c")
        for kind in ("sum", "max", "min", "max_unsigned", "min_unsigned")
    },
    **{
        f"pooling_nchw_{kind}": _nest("n c h w k l", "n c h*s0+k*t0 w*s1+l*t1", "k l", "n c h w")
        for kind in ("sum", "max")
    },
}


def _named(call: Call) -> Sequence[MeaningOfValue]:
    maps = call.maps("indexing_maps") if "indexing_maps" in call.operation.attributes else usual_maps(call)
    return _loops(call, call.operands, maps, 1)


def usual_maps(call: Call) -> list[AffineMap]:
    """The maps of a named operator that states none."""
    nest = _NAMED[call.name.partition(".")[2]]
    windows = max((o.count("s") for o in nest.operands), default=0)
    strides, dilations = call.wholes("strides", [1] * windows), call.wholes("dilations", [1] * windows)
    for each in (*strides, *dilations):
        if each < 1:
            raise call.wrong("strides and dilations must be positive")
    return [_map(nest.loops.split(), operand, strides, dilations) for operand in nest.operands]


def _map(letters: Sequence[str], operand: str, strides: Sequence[int], dilations: Sequence[int]) -> AffineMap:
    return AffineMap(len(letters), 0, tuple(_expression(letters, d, strides, dilations) for d in operand.split()))


def _expression(letters: Sequence[str], text: str, strides: Sequence[int], dilations: Sequence[int]) -> Expression:
    total: Expression | None = None
    for part in text.split("+"):
        letter, _, factor = part.partition("*")
        value: Expression = Dimension(letters.index(letter))
        if factor:
            times = (strides if factor[0] == "s" else dilations)[int(factor[1:])]
            value = Binary("*", value, Constant(times))
        total = value if total is None else Binary("+", total, value)
    assert total is not None
    return total


def _elementwise(call: Call) -> Sequence[MeaningOfValue]:
    """A named operator on operands of one shape: its region at each place."""
    into = call.operands[-1]
    rank = 0 if isinstance(into, Element) else len(into.shape)
    identity = AffineMap(rank, 0, tuple(Dimension(k) for k in range(rank)))
    maps = [identity if not isinstance(o, Element) else AffineMap(rank, 0, ()) for o in call.operands]
    return _loops(call, call.operands, maps, 1)


_ELEMENTWISE = (
    "add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf", "exp", "log", "abs", "ceil", "floor", "negf",
    "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf", "select",
)  # fmt: skip


def _map_operator(call: Call) -> Sequence[MeaningOfValue]:
    into = call.tensor(len(call.operands) - 1)
    arguments = len(call.body.arguments)
    rank = len(into.shape)
    identity = AffineMap(rank, 0, tuple(Dimension(k) for k in range(rank)))

    def run(elements: Sequence[Element], at: Sequence[Term], scope: Scope) -> Sequence[Element]:
        return call.run_body(elements[:arguments], scope, at)

    return Loops(call, call.tensors(), [identity] * len(call.operands), 1, run).results()


def _reduce(call: Call) -> Sequence[MeaningOfValue]:
    dimensions = call.wholes("dimensions")
    count, first = len(call.operands) // 2, call.operands[0]
    rank = 0 if isinstance(first, Element) else len(first.shape)
    whole = AffineMap(rank, 0, tuple(Dimension(k) for k in range(rank)))
    rest = AffineMap(rank, 0, tuple(Dimension(k) for k in range(rank) if k not in dimensions))
    return _loops(call, call.operands, [whole] * count + [rest] * count, count)


def _transpose(call: Call) -> Sequence[MeaningOfValue]:
    order = call.wholes("permutation")
    if isinstance(call.operands[1], Buffer):
        return _moved(call, [list(order).index(k) for k in range(len(order))])
    source, into = call.tensor(0), call.tensor(1)
    call.require_equal([source.shape[k] for k in order], into.shape, "the result must have the shape of the operand")
    return [transposed(source, order)]


def _moved(call: Call, places: Sequence[int]) -> Sequence[MeaningOfValue]:
    """A buffer copied into another one: dimension k of the first is dimension ``places[k]`` of the other."""
    rank = len(call.buffer(1).shape)
    maps = [tuple(map(Dimension, places)), tuple(map(Dimension, range(rank)))]
    return _loops(call, call.operands, [AffineMap(rank, 0, results) for results in maps], 1)


def transposed(source: Tensor, order: Sequence[int]) -> Tensor:
    """Dimension k of the result is dimension ``order[k]`` of the operand."""
    places = [list(order).index(k) for k in range(len(order))]
    shape = tuple(source.shape[k] for k in order)
    return Tensor(source.kind, shape, lambda at: source.at([at[p] for p in places]))


def _broadcast(call: Call) -> Sequence[MeaningOfValue]:
    added = call.wholes("dimensions")
    if isinstance(call.operands[1], Buffer):
        return _moved(call, [k for k in range(len(call.operands[1].shape)) if k not in added])
    source, into = call.tensor(0), call.tensor(1)
    kept = [k for k in range(len(into.shape)) if k not in added]
    call.require_equal(source.shape, [into.shape[k] for k in kept], "sizes must be those of the operand")
    return [Tensor(into.kind, into.shape, lambda at: source.at([at[k] for k in kept]))]


OPERATORS: Mapping[str, Operator] = {
    "linalg.generic": _generic,
    "linalg.index": _index,
    "linalg.fill": _fill,
    "linalg.copy": _copy,
    "linalg.map": _map_operator,
    "linalg.reduce": _reduce,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    **{f"linalg.{name}": _named for name in _NAMED},
    **{f"linalg.{name}": _elementwise for name in _ELEMENTWISE},
}
"""By name."""
