"""Index comprehensions in plain Python: one element after the other, one number after the other.

Nothing of the product's evaluation is used, only the classes that an expression is made of.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, IsZero, OneOf
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, Names
from ir_semantics.tensors.terms import Tensor

Array = NDArray[Any]
Values = Mapping[str, int]


def evaluate(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    """One operator on its operands; its numbers are of the type ``dtype``."""
    names = Names()
    subscripts = [names.fresh("o") for _ in term.shape]
    readers = [lambda at, j=j: Read(f"#{j}", tuple(at)) for j in range(len(operands))]
    element = term.rule([Index({(s,): 1}) for s in subscripts], readers, names)
    shape = [_index(d, {}) for d in term.shape]
    plain = _Plain(operands, dtype)
    result = [plain.element(element, dict(zip(subscripts, at, strict=True))) for at in np.ndindex(*shape)]
    return np.array(result, dtype).reshape(shape)


def _index(value: Index, values: Values) -> int:
    total = 0
    for monomial, coefficient in value.terms:
        factors = [
            values[a] if isinstance(a, str) else _index(a.dividend, values) // _index(a.divisor, values)
            for a in monomial
        ]
        total += coefficient * math.prod(factors)
    return total


def _holds(condition: Condition, values: Values) -> bool:
    match condition:
        case AtLeastZero(value):
            return _index(value, values) >= 0
        case IsZero(value):
            return _index(value, values) == 0
        case All(parts):
            return all(_holds(p, values) for p in parts)
        case OneOf(parts):
            return any(_holds(p, values) for p in parts)
    raise AssertionError(f"no condition on data: {condition}")


@dataclass(frozen=True)
class _Plain:
    operands: Sequence[Array]
    dtype: str

    def element(self, element: Element, values: Values) -> Any:
        """A Python number: what is stored is exact in it, and results are rounded or wrapped at once."""
        match element:
            case Read(name, at):
                array, subscripts = self.operands[int(name[1:])], tuple(_index(i, values) for i in at)
                assert all(0 <= i < d for i, d in zip(subscripts, array.shape, strict=True)), element
                return array[subscripts].item()
            case Number(value):
                return self.number(value)
            case IndexValue(value):
                return _index(value, values)
            case Choice(condition, yes, no):
                return self.element(yes if _holds(condition, values) else no, values)
            case Apply("select", (condition, yes, no)):
                return self.element(yes if self.element(condition, values) else no, values)
            case Apply(op, args):
                return self.apply(op, *(self.element(a, values) for a in args))
            case Reduce(op, variable, extent, body):
                each = (self.element(body, {**values, variable: k}) for k in range(_index(extent, values)))
                return self.reduce(op, each)

    def number(self, value: Fraction | float) -> Any:
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            return int(value) if isinstance(value, Fraction) and value.denominator == 1 else float(value)
        if not isinstance(value, float):
            return int(value)
        return bool(value > 0) if kind.kind == "b" else int(np.iinfo(kind).max if value > 0 else np.iinfo(kind).min)

    def reduce(self, op: str, each: Any) -> Any:
        binary, unit = {"sum": ("add", Fraction(0)), "max": ("maximum", -math.inf), "min": ("minimum", math.inf)}[op]
        first = list(itertools.islice(each, 1))
        total = first[0] if first else self.number(unit)
        for value in each:
            total = self.apply(binary, total, value)
        return total

    def apply(self, op: str, a: Any, b: Any) -> Any:
        if op in ("maximum", "minimum"):
            if any(isinstance(v, float) and math.isnan(v) for v in (a, b)):
                return math.nan
            return (max if op == "maximum" else min)(a, b, key=lambda v: (v, math.copysign(1, v)))
        if op == "eq":
            return a == b
        kind = np.dtype(self.dtype)
        if op == "add" and kind.kind == "f" and isinstance(a, int) and isinstance(b, int):
            return a + b  # no data: a count, which is exact
        if op == "div":  # of floats, by IEEE 754 as NumPy's
            with np.errstate(all="ignore"):
                return float(kind.type(np.divide(np.float64(a), np.float64(b))))
        result = {"add": lambda: a + b, "mul": lambda: a * b}[op]()
        if kind.kind == "f":
            with np.errstate(all="ignore"):
                return float(kind.type(result))
        span = 1 << kind.itemsize * 8
        return result % span - (span if kind.kind == "i" and result % span >= span // 2 else 0)
