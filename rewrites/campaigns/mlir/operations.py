"""Operations of arith, math, tensor and linalg that are drawn; each adds one, and what it needs, to a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from .drafts import INDEX, Draft, Type, Value

Maker: TypeAlias = Callable[[Draft], Value]

_BINARY_FLOATS = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")
_BINARY_INTEGERS = (
    "addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "divsi", "divui", "remsi", "remui",
    "ceildivsi", "ceildivui", "floordivsi", "maxsi", "minsi", "maxui", "minui",
)  # fmt: skip
_UNARY_FLOATS = ("arith.negf", "math.absf", "math.exp", "math.sqrt", "math.floor", "math.ceil", "math.tanh")
_DYNAMIC = -(1 << 63)


def _number(draft: Draft) -> Value:
    """Some scalar or tensor."""
    if draft.pick((True, False)):
        return draft.tensor()
    return draft.some(
        lambda t: not t.is_tensor and t != INDEX, lambda: Type(draft.pick(("f32", "i32", "i8", "i1", "f16", "i64")))
    )


def _binary(draft: Draft) -> Value:
    x = _number(draft)
    names = _BINARY_FLOATS if x.type.is_float else _BINARY_INTEGERS
    return draft.add(f"arith.{draft.pick(names)}", [x, draft.like(x.type)], x.type)


def _unary(draft: Draft) -> Value:
    x = _number(draft)
    if x.type.is_float:
        return draft.add(draft.pick(_UNARY_FLOATS), [x], x.type)
    return draft.add("math.absi", [x], x.type)


def _choice(draft: Draft) -> Value:
    x = _number(draft)
    y = draft.like(x.type)
    name, count = ("arith.cmpf", 16) if x.type.is_float else ("arith.cmpi", 10)
    held = draft.add(name, [x, y], x.type.of("i1"), f"predicate = {draft.whole(0, count - 1)} : i64")
    return draft.add("arith.select", [held, x, y], x.type) if draft.pick((True, False)) else held


def _conversion(draft: Draft) -> Value:
    x = _number(draft)
    if x.type.is_float:
        wide = {"f16": ("extf", "f32"), "f32": ("truncf", "f16"), "f64": ("truncf", "f32")}
        name, to = draft.pick((wide[x.type.element], ("fptosi", "i32"), ("fptoui", "i8")))
    else:
        narrow = x.type.element != "i64"
        name, to = draft.pick((("extsi", "i64"), ("extui", "i64"), ("sitofp", "f32"), ("uitofp", "f32"))
                              if narrow else (("trunci", "i8"), ("trunci", "i32"), ("sitofp", "f32")))  # fmt: skip
    return draft.add(f"arith.{name}", [x], x.type.of(to))


def _constant(draft: Draft) -> Value:
    type_ = draft.tensor_type()
    static = type_.sized([2 if n is None else n for n in type_.sizes])
    return draft.constant(static if draft.pick((True, False)) else Type(type_.element))


# -- tensor --------------------------------------------------------------------------------------------------


def _array(numbers: Sequence[int | None], width: int = 64) -> str:
    texts = [str(_DYNAMIC if n is None else n) for n in numbers]
    return f"array<i{width}{': ' if texts else ''}{', '.join(texts)}>"


def _slice(draft: Draft) -> Value:
    x = draft.tensor()
    offsets, sizes, strides, dynamic = [], list[int | None](), [], list[Value]()
    for n in x.type.sizes:
        offsets.append(draft.whole(0, 1 if n is None else min(1, n - 1)))
        stride = draft.pick((1, 1, 2))
        most = 2 if n is None else max(0, (n - offsets[-1] + stride - 1) // stride)
        sizes.append(draft.whole(0, most))
        strides.append(stride)
    if sizes and draft.whole(0, 1):
        sizes[0] = None
        dynamic = [draft.index(draft.whole(0, 2)) if draft.pick((True, False)) else draft.argument(INDEX)]
    properties = (
        f"operandSegmentSizes = {_array([1, 0, len(dynamic), 0], 32)}, static_offsets = {_array(offsets)}, "
        f"static_sizes = {_array(sizes)}, static_strides = {_array(strides)}"
    )
    return draft.add("tensor.extract_slice", [x, *dynamic], x.type.sized(sizes), properties)


def _insert(draft: Draft) -> Value:
    x = draft.tensor()
    sizes = [draft.whole(0, 2 if n is None else n) for n in x.type.sizes]
    offsets = [0 if n is None else draft.whole(0, n - size) for n, size in zip(x.type.sizes, sizes, strict=True)]
    part = draft.like(x.type.sized(sizes))
    properties = (
        f"operandSegmentSizes = {_array([1, 1, 0, 0, 0], 32)}, static_offsets = {_array(offsets)}, "
        f"static_sizes = {_array(sizes)}, static_strides = {_array([1] * len(sizes))}"
    )
    return draft.add("tensor.insert_slice", [part, x], x.type, properties)


def _pad(draft: Draft) -> Value:
    x = draft.tensor()
    low, high = ([draft.whole(0, 2) for _ in x.type.sizes] for _ in range(2))
    value = draft.like(Type(x.type.element))
    block = ", ".join(f"%p{draft.count}_{k}: index" for k in range(len(low)))
    region = f'  ^bb0({block}):\n    "tensor.yield"(%{value.name}) : ({value.type}) -> ()'
    shape = [None if n is None else a + n + b for a, n, b in zip(low, x.type.sizes, high, strict=True)]
    properties = (
        f"operandSegmentSizes = {_array([1, 0, 0], 32)}, static_low = {_array(low)}, static_high = {_array(high)}"
    )
    return draft.add("tensor.pad", [x], x.type.sized(shape), properties, region)


def _collapse(draft: Draft) -> Value:
    x = draft.tensor(draft.pick((2, 3)))
    a, b, *rest = x.type.sizes
    whole = None if a is None or b is None else a * b
    groups = "[[0, 1], [2]]" if rest else "[[0, 1]]"
    return draft.add("tensor.collapse_shape", [x], x.type.sized([whole, *rest]), f"reassociation = {groups}")


def _expand(draft: Draft) -> Value:
    x = draft.tensor(draft.pick((1, 2)))
    n, *rest = x.type.sizes
    factor = draft.pick([f for f in (1, 2, 3) if n is None or n % f == 0])
    shape = [factor, n if n is None else n // factor, *rest]
    groups = "[[0, 1], [2]]" if rest else "[[0, 1]]"
    dynamic = draft.sizes(x)
    if n is None:
        whole = draft.index(factor)
        dynamic[0] = draft.add("arith.floordivsi", [dynamic[0], whole], INDEX)
    properties = f"reassociation = {groups}, static_output_shape = {_array(shape)}"
    return draft.add("tensor.expand_shape", [x, *dynamic], x.type.sized(shape), properties)


def _cast(draft: Draft) -> Value:
    x = draft.tensor()
    shape = [draft.pick((n, None)) if n is not None else draft.pick((None, 2)) for n in x.type.sizes]
    return draft.add("tensor.cast", [x], x.type.sized(shape))


def _concat(draft: Draft) -> Value:
    x = draft.tensor(draft.pick((1, 2)))
    axis = draft.whole(0, len(x.type.sizes) - 1)
    sizes = x.type.sizes[axis]
    total = None if sizes is None else 2 * sizes
    shape = [total if k == axis else n for k, n in enumerate(x.type.sizes)]
    return draft.add("tensor.concat", [x, draft.like(x.type)], x.type.sized(shape), f"dim = {axis} : i64")


def _extract(draft: Draft) -> Value:
    x = draft.tensor()
    at = [draft.index(draft.whole(0, 1 if n is None else n - 1)) for n in x.type.sizes]
    return draft.add("tensor.extract", [x, *at], Type(x.type.element))


def _splat(draft: Draft) -> Value:
    x = draft.tensor()
    return draft.add("tensor.splat", [draft.like(Type(x.type.element)), *draft.sizes(x)], x.type)


def _elements(draft: Draft) -> Value:
    kind = Type(draft.pick(("f32", "i32")))
    return draft.add("tensor.from_elements", [draft.like(kind) for _ in range(2)], kind.sized([2]))


# -- linalg --------------------------------------------------------------------------------------------------


def _region(draft: Draft, types: Sequence[Type], lines: Sequence[str], result: str, kind: Type) -> str:
    """A block with arguments ``%a0``, ``%a1``, ..., which have the number of the draft's next value in their names."""
    block = ", ".join(f"%a{k}_{draft.count}: {t}" for k, t in enumerate(types))
    body = "\n    ".join([*lines, f'"linalg.yield"(%{result}) : ({kind}) -> ()'])
    return f"  ^bb0({block}):\n    {body}"


def _op_on(draft: Draft, name: str, a: str, b: str, kind: Type) -> tuple[str, str]:
    result = f"s{draft.count}"
    return f'%{result} = "arith.{name}"(%{a}, %{b}) : ({kind}, {kind}) -> {kind}', result


def _map(rank: int, results: Sequence[int]) -> str:
    loops = ", ".join(f"d{k}" for k in range(rank))
    return f"affine_map<({loops}) -> ({', '.join(f'd{k}' for k in results)})>"


def _generic(maps: Sequence[str], loops: str, inputs: int) -> str:
    kinds = ", ".join(f"#linalg.iterator_type<{'parallel' if k == 'p' else 'reduction'}>" for k in loops)
    segments = _array([inputs, 1], 32)
    return f"indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}], operandSegmentSizes = {segments}"


def _loops(draft: Draft) -> Value:
    """Parallel loops over a tensor, and the same, transposed, or a row of it."""
    x = draft.tensor(draft.pick((2, 1)))
    rank, kind = len(x.type.sizes), Type(x.type.element)
    whole = list(range(rank))
    form = draft.pick(("same", "transposed", "row", "scalar"))
    results = {"same": whole, "transposed": whole[::-1], "row": whole[-1:], "scalar": []}[form]
    y = draft.like(x.type.sized([x.type.sizes[k] for k in results]))
    into = draft.empty(x.type, x)
    names = _BINARY_FLOATS if kind.is_float else _BINARY_INTEGERS
    line, result = _op_on(draft, draft.pick(names), f"a0_{draft.count}", f"a1_{draft.count}", kind)
    region = _region(draft, [kind] * 3, [line], result, kind)
    maps = [_map(rank, whole), _map(rank, results), _map(rank, whole)]
    return draft.add("linalg.generic", [x, y, into], x.type, _generic(maps, "p" * rank, 2), region)


def _start(draft: Draft, type_: Type, of: Value, dimensions: Sequence[int]) -> Value:
    """What a reduction starts with: a tensor that is filled, or any."""
    if draft.pick((False, True)):
        return draft.like(type_)
    number = draft.constant(Type(type_.element))
    into = draft.empty(type_, of, dimensions)
    kind = number.type
    region = _region(draft, [kind, kind], [], f"a0_{draft.count}", kind)
    return draft.add("linalg.fill", [number, into], type_, f"operandSegmentSizes = {_array([1, 1], 32)}", region)


def _reduce(draft: Draft) -> Value:
    x = draft.tensor(draft.pick((2, 1)))
    rank, kind = len(x.type.sizes), Type(x.type.element)
    axis = draft.whole(0, rank - 1)
    kept = [k for k in range(rank) if k != axis]
    start = _start(draft, x.type.sized([x.type.sizes[k] for k in kept]), x, kept)
    names = ("addf", "maximumf", "minimumf", "mulf") if kind.is_float else ("addi", "maxsi", "muli", "andi")
    line, result = _op_on(draft, draft.pick(names), f"a0_{draft.count}", f"a1_{draft.count}", kind)
    region = _region(draft, [kind] * 2, [line], result, kind)
    if draft.pick((True, False)):
        return draft.add("linalg.reduce", [x, start], start.type, f"dimensions = {_array([axis])}", region)
    loops = "".join("r" if k == axis else "p" for k in range(rank))
    maps = [_map(rank, range(rank)), _map(rank, kept)]
    return draft.add("linalg.generic", [x, start], start.type, _generic(maps, loops, 1), region)


def _matmul(draft: Draft) -> Value:
    a = draft.tensor(2)
    columns = draft.pick((2, 1, 3))
    b = draft.like(a.type.sized([a.type.sizes[1], columns]))
    kind = Type(a.type.element)
    start = _start(draft, a.type.sized([a.type.sizes[0], columns]), a, [0])
    add, mul = ("addf", "mulf") if kind.is_float else ("addi", "muli")
    n = draft.count
    lines = [
        f'%m{n} = "arith.{mul}"(%a0_{n}, %a1_{n}) : ({kind}, {kind}) -> {kind}',
        f'%s{n} = "arith.{add}"(%a2_{n}, %m{n}) : ({kind}, {kind}) -> {kind}',
    ]
    region = _region(draft, [kind] * 3, lines, f"s{n}", kind)
    segments = f"operandSegmentSizes = {_array([2, 1], 32)}"
    return draft.add("linalg.matmul", [a, b, start], start.type, segments, region)


def _transpose(draft: Draft) -> Value:
    x = draft.tensor(2)
    type_, kind = x.type.sized(x.type.sizes[::-1]), Type(x.type.element)
    into = draft.empty(type_, x, [1, 0])
    region = _region(draft, [kind, kind], [], f"a0_{draft.count}", kind)
    return draft.add("linalg.transpose", [x, into], type_, "permutation = array<i64: 1, 0>", region)


def _broadcast(draft: Draft) -> Value:
    x = draft.tensor(1)
    type_, kind = x.type.sized([draft.pick((2, 1, 3)), *x.type.sizes]), Type(x.type.element)
    into = draft.add("tensor.empty", draft.sizes(x), type_)
    draft.values.remove(into)
    region = _region(draft, [kind, kind], [], f"a0_{draft.count}", kind)
    return draft.add("linalg.broadcast", [x, into], type_, "dimensions = array<i64: 0>", region)


MAKERS: Mapping[str, Maker] = {
    "binary": _binary,
    "unary": _unary,
    "choice": _choice,
    "conversion": _conversion,
    "constant": _constant,
    "slice": _slice,
    "insert": _insert,
    "pad": _pad,
    "collapse": _collapse,
    "expand": _expand,
    "cast": _cast,
    "concat": _concat,
    "extract": _extract,
    "splat": _splat,
    "elements": _elements,
    "loops": _loops,
    "reduce": _reduce,
    "matmul": _matmul,
    "transpose": _transpose,
    "broadcast": _broadcast,
}
"""By name."""
