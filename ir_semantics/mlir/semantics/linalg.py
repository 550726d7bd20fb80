"""The operators of linalg.  Source: the MLIR documentation of the dialect, and the maps of its named operators.

A named operator is the loop nest that MLIR's generalisation gives: its loops, in this order, and its region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ir_semantics.elements.operators import either
from ir_semantics.elements.terms import Symbol, Term, integer_value, is_false, is_true, truth
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Expression

from .buffers import require_nested, view, write
from .loops import Loops
from .memory import Buffer, apart, same_view
from .program import Call, MeaningOfValue, Operator, Proviso, Scope
from .tensor import read_zero
from .values import Element, Tensor, defined


def _loops(
    call: Call,
    operands: Sequence[MeaningOfValue],
    maps: Sequence[AffineMap],
    outputs: int,
    parallel: frozenset[int] = frozenset(),
) -> list[MeaningOfValue]:
    """The results of loops: tensors; what starts from a buffer is written there.  ``parallel`` are loops said to be."""
    reads = call.memory.accesses.reads
    read: dict[Buffer, frozenset[Symbol]] = {}

    def run(elements: Sequence[Element], at: Sequence[Term], scope: Scope) -> Sequence[Element]:
        before = len(reads)
        yielded = call.run_body(elements, scope, at)
        read.update(dict.fromkeys((b for b, _ in reads[before:]), frozenset().union(*(i.symbols for i in at))))
        return [read_zero(call, e) for e in yielded]

    _require_apart(call, operands, maps, outputs)
    used = {o for operation in call.body.operations for o in operation.operands}
    arguments = call.body.arguments
    views = [view(call, o, used=arguments[k] in used) if isinstance(o, Buffer) else o for k, o in enumerate(operands)]
    made = Loops(call, views, maps, outputs, run, parallel=parallel).results()
    written = [o for o in operands[-outputs:] if isinstance(o, Buffer)]
    for a, b in product(read, written):
        _state_apart(call, a, b, read[a])
    results: list[MeaningOfValue] = []
    for start, result in zip(operands[-outputs:], made, strict=True):
        if isinstance(start, Buffer):
            write(call, start, result)
        else:
            results.append(result)
    return results


def _state_apart(call: Call, read: Buffer, written: Buffer, varying: frozenset[Symbol]) -> None:
    """States that what the region reads by itself, in whatever iteration, is nothing that the operation writes."""
    if read.kind != written.kind:
        return
    why = call.fail("what the region reads and what the operation writes must be apart")
    for each in (read, written):
        require_nested(call, each)
    condition = apart(read, written)
    if is_false(condition) or not varying.isdisjoint(condition.symbols):
        raise why
    if not is_true(condition):
        call.scope.provisos.append(Proviso(condition, why, tuple(call.scope.requirements)))


def _single(operands: Sequence[MeaningOfValue], maps: Sequence[AffineMap]) -> set[int]:
    """The loops of which it is seen that they have one iteration."""
    return {
        expression.position
        for operand, map_ in zip(operands, maps, strict=True)
        if not isinstance(operand, Element)
        for size, expression in zip(operand.shape, map_.results, strict=True)
        if isinstance(expression, Dimension) and integer_value(size) == 1
    }


def _require_apart(call: Call, operands: Sequence[MeaningOfValue], maps: Sequence[AffineMap], outputs: int) -> None:
    """Requires that what is written overlaps nothing else, unless it is read in the one iteration that writes it."""
    first, single = len(operands) - outputs, _single(operands, maps)
    zero = {Dimension(k): Constant(0) for k in single}
    places = [[zero.get(e, e) if isinstance(e, Dimension) else e for e in m.results] for m in maps]
    for k, written in enumerate(operands[first:], first):
        for j, other in enumerate(operands):
            if isinstance(written, Buffer) and isinstance(other, Buffer) and j != k and (j < first or j < k):
                for each in (written, other):
                    require_nested(call, each)
                once = {e.position for e in maps[k].results if isinstance(e, Dimension)} | single
                in_place = places[j] == places[k] and len(once) == maps[k].dimensions and j < first
                may = same_view(written, other) if in_place else truth(False)
                condition = either(apart(written, other), may)
                if not is_true(condition):
                    call.scope.notes["to write a buffer that overlaps another one of the operation is undefined"] = None
                if is_false(condition):
                    why = "a source that writes a buffer which it reads in other iterations has no meaning here"
                    call.scope.limits.append(call.fail(why))
                call.require(condition, "what is written must not overlap another operand")


def _generic(call: Call) -> Sequence[MeaningOfValue]:
    outputs = call.wholes("operandSegmentSizes")[1]
    iterators = call.attribute("iterator_types")
    if not isinstance(iterators, ir.ArrayAttribute):
        raise call.wrong("iterator_types must be a list")
    texts = [getattr(e, "text", getattr(e, "value", "")) for e in iterators.elements]
    if any("parallel" not in x and "reduction" not in x for x in texts):
        raise call.wrong("loops must be parallel or reductions")
    parallel = frozenset(k for k, x in enumerate(texts) if "parallel" in x)
    return _loops(call, call.operands, call.maps("indexing_maps"), outputs, parallel)


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
