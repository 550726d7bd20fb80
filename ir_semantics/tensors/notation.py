"""Terms as people write them: infix operators, slices in brackets, and no attribute that says what is usual.

Operands of elementwise operators broadcast as in NumPy: ``x + b[:, None]`` adds ``b`` along the last axis but one.

>>> from .index import size
>>> from .operators import broadcast, map_, slice_
>>> from .reductions import max_pool, softmax
>>> from .terms import input_
>>> n, m, k = size("n"), size("m"), size("k")
>>> x, b = input_("x", n, m), broadcast(input_("b", n), [n, m], [0])
>>> print(slice_(softmax(map_(variable("x") + variable("y"), x=x, y=b), 1), [k, 0], [n, m]))
softmax(x + b[:, None], axis=1)[k:]
>>> print(max_pool(input_("x", n, m, k), [2], strides=[2], pads=[(0, 1)]))
max_pool(x, [2], strides=[2], pads=[[0, 1]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from ir_semantics.scalars.terms import Scalar, exp, text_of, variable

from .index import Index, index

_USUAL = {"strides": 1, "dilations": 1, "pads": 0, "groups": 1, "correlate": True, "count_include_pad": False}
_REPEATED = ("broadcast", "fill", "number")
_EXP, _QUOTIENT = exp(variable("x")), variable("x") / variable("y")
_TIGHT = 7
"""The precedence of what stands before a bracket, above that of all infix operators."""


class _Term(Protocol):
    """What is shown of a :class:`.terms.Tensor`."""

    @property
    def operator(self) -> str: ...

    @property
    def operands(self) -> Sequence[_Term]: ...

    @property
    def values(self) -> Sequence[tuple[str, object]]: ...

    @property
    def shape(self) -> Sequence[Index]: ...


def notation(x: _Term, above: int = 0) -> str:
    """The term as text, for a place with the precedence ``above``, as in :func:`.scalars.terms.text_of`."""
    values = _values(x)
    first = x.operands[0] if x.operands else x
    match x.operator:
        case "input":
            return str(values["name"])
        case "number":
            text = str(values["value"])
            return _infix(text, _TIGHT if text.isalnum() else 5, above)
        case "map":
            return _map(x, values["term"], values["names"], above)
        case "matmul":
            return _infix(f"{notation(first, _TIGHT)} @ {notation(x.operands[1], _TIGHT)}", 6, above)
        case "slice":
            return notation(first, _TIGHT) + _cut(first.shape, values)
        case "transpose" if len(x.shape) == 2 and values["permutation"] == [1, 0]:
            return f"transpose({notation(first)})"
        case "where":
            return f"where({values['condition']}, {', '.join(o(0) for o in _beside(x.operands))})"
        case "fill":
            return f"fill({_value(values['value'])}, {_value(values['shape'])})"
        case "pad":
            return _pad(x, values)
    named = {k: v for k, v in values.items() if not _usual(k, v)}
    if x.operator == "conv":
        del named["kernel"]  # that of the second operand's shape
    if "pads" in named and all(before == after for before, after in named["pads"]):
        named["pads"] = [before for before, _ in named["pads"]]
    plain = [_value(named.pop(k)) for k in ("kernel", "shape", "permutation", "factors") if k in named]
    inner = [*map(notation, x.operands), *plain, *(f"{k}={_value(v)}" for k, v in named.items())]
    return f"{x.operator.removeprefix('reduce_')}({', '.join(inner)})"


def _values(x: _Term) -> dict[str, Any]:
    """The attributes, with sizes that are numbers as numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        return value.constant if isinstance(value, Index) and value.constant is not None else value

    return {name: plain(value) for name, value in x.values}


def _usual(name: str, value: Any) -> bool:
    if name == "initial":
        return bool(value == "none")
    return name in _USUAL and all(v == _USUAL[name] for v in _flat(value))


def _flat(value: Any) -> list[Any]:
    return [v for inner in value for v in _flat(inner)] if isinstance(value, list | tuple) else [value]


def _value(value: Any) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list | tuple) else str(value)


def _infix(text: str, level: int, above: int) -> str:
    return f"({text})" if level < above else text


def _map(x: _Term, term: Scalar, names: Sequence[str], above: int) -> str:
    softmax = _softmax(term, x.operands)
    if softmax is not None:
        return softmax
    operands = dict(zip(names, _beside(x.operands), strict=True))
    return text_of(term, lambda name, level: operands[name](level), above)


def _beside(operands: Sequence[_Term]) -> list[Callable[[int], str]]:
    """Operands of one shape as text for a place; what is repeated to the shape of another one stands by itself."""
    operand = _repeated if any(o.operator not in _REPEATED for o in operands) else notation
    return [partial(operand, o) for o in operands]


def _softmax(term: Scalar, operands: Sequence[_Term]) -> str | None:
    """The quotient of exp(x) and its sum along an axis, repeated to the shape of x."""
    if term is not _QUOTIENT:
        return None
    powers, total = operands
    if not (powers.operator == "map" and dict(powers.values)["term"] is _EXP and total.operator == "broadcast"):
        return None
    (summed,) = total.operands
    axes = _values(summed).get("axes", [])
    if summed.operator != "reduce_sum" or notation(summed.operands[0]) != notation(powers) or len(axes) != 1:
        return None
    if _values(total)["axes"] != [a for a in range(len(powers.shape)) if a not in axes]:
        return None
    return f"softmax({notation(powers.operands[0])}, axis={axes[0]})"


def _repeated(x: _Term, above: int) -> str:
    values = _values(x)
    if x.operator == "fill":
        text = _value(values["value"])
        return f"({text})" if above > 4 and (text.startswith("-") or "/" in text) else text
    if x.operator != "broadcast":
        return notation(x, above)
    axes: list[int] = values["axes"]
    places = [":" if a in axes else "None" for a in range(min(axes, default=len(x.shape)), len(x.shape))]
    (inner,) = x.operands
    if "None" in places and inner.operator != "fill":
        return f"{notation(inner, _TIGHT)}[{', '.join(places)}]"
    return _repeated(inner, above)


def _cut(extents: Sequence[Index], values: dict[str, Any]) -> str:
    places = []
    for extent, start, stop, stride in zip(extents, values["start"], values["stop"], values["stride"], strict=True):
        first, last = "" if start == 0 else str(start), "" if index(stop) == extent else str(stop)
        places.append(f"{first}:{last}" + ("" if stride == 1 else f":{stride}"))
    while len(places) > 1 and places[-1] == ":":
        places.pop()
    return f"[{', '.join(places)}]"


def _pad(x: _Term, values: dict[str, Any]) -> str:
    before, after = list(values["before"]), list(values["after"])
    amounts = {"before": before, "after": after}
    shown = [f"{k}={_value(v)}" for k, v in amounts.items() if any(a != 0 for a in v)]
    if before == after:
        shown = [_value(before)]
    if len(x.operands) == 2:
        shown.append(f"value={notation(x.operands[1])}")
    elif _value(values["value"]) != "0":
        shown.append(f"value={_value(values['value'])}")
    return f"pad({', '.join([notation(x.operands[0]), *shown])})"
