"""Operations of TOSA that are drawn, as releases since TOSA 1.0 write them, and those before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .drafts import Draft, Type, Value
from .operations import Maker

_BINARY = {"add": "fi", "sub": "fi", "maximum": "fi", "minimum": "fi", "mul": "fi", "pow": "f"}
_UNARY = {"abs": "fi", "exp": "f", "log": "f", "negate": "fi", "ceil": "f", "floor": "f", "reciprocal": "f",
          "sigmoid": "f", "tanh": "f", "rsqrt": "f"}  # fmt: skip
_ELEMENTS = ("f32", "i32", "f16")


def _tensor(draft: Draft, rank: int | None = None, elements: Sequence[str] = _ELEMENTS) -> Value:
    """Some tensor of at least one dimension whose elements TOSA has."""

    def suits(t: Type) -> bool:
        return bool(t.sizes) and 0 not in t.sizes and rank in (None, len(t.sizes)) and t.element in elements

    return draft.some(suits, lambda: draft.tensor_type(rank or draft.pick((2, 1, 3)), draft.pick(elements)))


def _for(name: str, known: Mapping[str, str], draft: Draft) -> Value:
    return _tensor(draft, None, ("f32", "f16") if known[name] == "f" else _ELEMENTS)


def _shape(draft: Draft, numbers: Sequence[int]) -> Value:
    count = len(numbers)
    texts = ", ".join(map(str, numbers))
    stated = f"values = dense<[{texts}]> : tensor<{count}xindex>"
    value = draft.hidden("tosa.const_shape", f"!tosa.shape<{count}>", stated)
    line = draft.lines.pop()
    draft.lines.append(type(line)(line.new, f"// {value.name} is an attribute"))
    return value


def _constant(draft: Draft, kind: str, numbers: str) -> Value:
    return draft.hidden("tosa.const", kind, f"values = dense<{numbers}> : {kind}", f"value = dense<{numbers}> : {kind}")


def _old(numbers: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>"


def _binary(draft: Draft) -> Value:
    name = draft.pick(list(_BINARY))
    x = _for(name, _BINARY, draft)
    wide = [1 if n != 1 and draft.pick((False, False, True)) else n for n in x.type.sizes]
    y = draft.like(x.type.sized(wide))
    operands = [x, y]
    if name != "mul":
        return draft.add(f"tosa.{name}", operands, x.type)
    shift = draft.hidden(
        "tosa.const", "tensor<1xi8>", "values = dense<0> : tensor<1xi8>", "value = dense<0> : tensor<1xi8>"
    )
    return draft.add_both(("tosa.mul", [*operands, shift], ""), ("tosa.mul", operands, "shift = 0 : i8"), x.type)


def _unary(draft: Draft) -> Value:
    name = draft.pick(list(_UNARY))
    x = _for(name, _UNARY, draft)
    if name != "negate":
        return draft.add(f"tosa.{name}", [x], x.type)
    kind = f"tensor<1x{x.type.element}>"
    zero = "0.0" if x.type.is_float else "0"
    point = _constant(draft, kind, zero)
    return draft.add_both(("tosa.negate", [x, point, point], ""), ("tosa.negate", [x], ""), x.type)


def _clamp(draft: Draft) -> Value:
    x = _tensor(draft)
    low, high = draft.pick(((0, 6), (-1, 1), (0, 0), (-128, 127)))
    kind = x.type.element
    new = f"min_val = {_typed(low, kind)}, max_val = {_typed(high, kind)}"
    floats = "f32" if not x.type.is_float else kind
    old = (f"min_int = {low} : i64, max_int = {high} : i64, min_fp = {_typed(low, floats)}, "
           f"max_fp = {_typed(high, floats)}")  # fmt: skip
    return draft.add_both(("tosa.clamp", [x], new), ("tosa.clamp", [x], old), x.type)


def _typed(number: int, kind: str) -> str:
    return f"{number}.0 : {kind}" if kind.startswith("f") else f"{number} : {kind}"


def _select(draft: Draft) -> Value:
    x = _tensor(draft)
    y = draft.like(x.type)
    held = draft.add(f"tosa.{draft.pick(('greater', 'greater_equal', 'equal'))}", [x, y], x.type.of("i1"))
    return draft.add("tosa.select", [held, x, y], x.type)


def _reshape(draft: Draft) -> Value:
    x = _tensor(draft)
    sizes = list(x.type.sizes)
    if None in sizes[1:] or len(sizes) == 1:
        shape: list[int | None] = [1, *sizes] if sizes.count(None) <= 1 else []
    else:
        whole = 1
        for n in sizes[1:]:
            whole *= n or 1
        shape = [sizes[0], whole] if sizes.count(None) <= 1 else []
    if not shape:
        return draft.add("tosa.abs", [x], x.type)
    numbers = [-1 if n is None else n for n in shape]
    new = [x, _shape(draft, numbers)]
    return draft.add_both(
        ("tosa.reshape", new, ""), ("tosa.reshape", [x], f"new_shape = {_old(numbers)}"), x.type.sized(shape)
    )


def _transpose(draft: Draft) -> Value:
    x = _tensor(draft)
    rank = len(x.type.sizes)
    order = draft.pick(
        {1: [[0]], 2: [[1, 0], [0, 1]], 3: [[0, 2, 1], [2, 0, 1], [2, 1, 0]]}.get(rank, [list(range(rank))])
    )
    perms = ", ".join(map(str, order))
    kind = f"tensor<{rank}xi32>"
    held = _constant(draft, kind, f"[{perms}]")
    new = ("tosa.transpose", [x], f"perms = array<i32: {perms}>")
    return draft.add_both(new, ("tosa.transpose", [x, held], ""), x.type.sized([x.type.sizes[k] for k in order]))


def _slice(draft: Draft) -> Value:
    x = _tensor(draft)
    starts, sizes, shape = [], [], list[int | None]()
    for n in x.type.sizes:
        start = 0 if n is None else draft.whole(0, n - 1)
        size = draft.whole(1, n - start) if n is not None else draft.pick((-1, 2))
        starts.append(start)
        sizes.append(size)
        shape.append(None if size < 0 else size)
    new = [x, _shape(draft, starts), _shape(draft, sizes)]
    old = f"start = {_old(starts)}, size = {_old(sizes)}"
    return draft.add_both(("tosa.slice", new, ""), ("tosa.slice", [x], old), x.type.sized(shape))


def _pad(draft: Draft) -> Value:
    x = _tensor(draft)
    amounts = [draft.whole(0, 2) for _ in range(2 * len(x.type.sizes))]
    shape = [
        None if n is None else a + n + b for a, n, b in zip(amounts[::2], x.type.sizes, amounts[1::2], strict=True)
    ]
    kind = f"tensor<1x{x.type.element}>"
    number = draft.number(x.type.element)
    value = draft.hidden("tosa.const", kind, f"values = dense<{number}> : {kind}")
    line = draft.lines.pop()
    scalar = f"tensor<{x.type.element}>"
    old_value = Value(f"{value.name}o", Type(scalar))
    stated = f'%{old_value.name} = "tosa.const"() <{{value = dense<{number}> : {scalar}}}> : () -> {scalar}'
    draft.lines.append(type(line)(line.new, stated))
    count = len(amounts)
    listed = ", ".join(map(str, amounts))
    old_kind = f"tensor<{count}xi64>"
    paddings = Value(f"{value.name}p", Type(old_kind))
    stated = f'%{paddings.name} = "tosa.const"() <{{value = dense<[{listed}]> : {old_kind}}}> : () -> {old_kind}'
    draft.lines.append(type(line)(f"// {paddings.name} is of older releases", stated))
    new = ("tosa.pad", [x, _shape(draft, amounts), value], "")
    return draft.add_both(new, ("tosa.pad", [x, paddings, old_value], ""), x.type.sized(shape))


def _tile(draft: Draft) -> Value:
    x = _tensor(draft)
    times = [draft.pick((1, 2, 3)) for _ in x.type.sizes]
    shape = [None if n is None else n * m for n, m in zip(x.type.sizes, times, strict=True)]
    new = ("tosa.tile", [x, _shape(draft, times)], "")
    return draft.add_both(new, ("tosa.tile", [x], f"multiples = {_old(times)}"), x.type.sized(shape))


def _concat(draft: Draft) -> Value:
    x = _tensor(draft)
    axis = draft.whole(0, len(x.type.sizes) - 1)
    n = x.type.sizes[axis]
    shape = [(None if n is None else 2 * n) if k == axis else m for k, m in enumerate(x.type.sizes)]
    return draft.add("tosa.concat", [x, draft.like(x.type)], x.type.sized(shape), f"axis = {axis} : i32")


def _reverse(draft: Draft) -> Value:
    x = _tensor(draft)
    return draft.add("tosa.reverse", [x], x.type, f"axis = {draft.whole(0, len(x.type.sizes) - 1)} : i32")


def _reduce(draft: Draft) -> Value:
    x = _tensor(draft)
    axis = draft.whole(0, len(x.type.sizes) - 1)
    shape = [1 if k == axis else n for k, n in enumerate(x.type.sizes)]
    name = draft.pick(("sum", "max", "min"))
    return draft.add(f"tosa.reduce_{name}", [x], x.type.sized(shape), f"axis = {axis} : i32")


def _max_pool(draft: Draft) -> Value:
    kinds = ("f32", "f16", "i8")

    def suits(t: Type) -> bool:
        return len(t.sizes) == 4 and t.element in kinds and None not in t.sizes[1:3] and 0 not in t.sizes

    def drawn() -> Type:
        return Type(draft.pick(kinds), (1, draft.pick((2, 1, 3)), draft.pick((2, 1, 3)), draft.pick((1, 2))))

    x = draft.some(suits, drawn)
    batch, height, width, channels = x.type.sizes
    assert height is not None and width is not None
    kernel = [draft.whole(1, min(2, n)) for n in (height, width)]
    shape = [batch, height - kernel[0] + 1, width - kernel[1] + 1, channels]
    kernel_text = f"array<i64: {kernel[0]}, {kernel[1]}>"
    properties = f"kernel = {kernel_text}, stride = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>"
    return draft.add("tosa.max_pool2d", [x], x.type.sized(shape), properties)


def _matmul(draft: Draft) -> Value:
    a = _tensor(draft, 3, ("f32", "f16"))
    columns = draft.pick((2, 1, 3))
    b = draft.like(a.type.sized([a.type.sizes[0], a.type.sizes[2], columns]))
    kind = f"tensor<1x{a.type.element}>"
    point = _constant(draft, kind, "0.0")
    result = a.type.sized([a.type.sizes[0], a.type.sizes[1], columns])
    return draft.add_both(("tosa.matmul", [a, b, point, point], ""), ("tosa.matmul", [a, b], ""), result)


MAKERS: Mapping[str, Maker] = {
    "tosa binary": _binary,
    "tosa unary": _unary,
    "tosa clamp": _clamp,
    "tosa select": _select,
    "tosa reshape": _reshape,
    "tosa transpose": _transpose,
    "tosa slice": _slice,
    "tosa pad": _pad,
    "tosa tile": _tile,
    "tosa concat": _concat,
    "tosa reverse": _reverse,
    "tosa reduce": _reduce,
    "tosa max_pool": _max_pool,
    "tosa matmul": _matmul,
}
"""By name."""
