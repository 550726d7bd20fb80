"""Index comprehensions on arrays: a tensor term's element expression, for all subscripts at once.

Subscripts become arrays, one axis each; the variable of a sum or an extremum runs in a loop, in increasing order, as
the expression says.  So the result is the definition's, bit for bit, given the arithmetic of
:mod:`ir_semantics.scalars.arrays`.  A subscript outside of an operand is an error unless a choice excludes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ir_semantics.scalars.arrays import apply_to_arrays, literal_of
from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, IsZero, OneOf, TruthOf
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reader, Reduce
from ir_semantics.tensors.index import Index, Names
from ir_semantics.tensors.terms import Tensor, operands_of

from .types import Array

_BINARY = {"sum": "add", "max": "maximum", "min": "minimum"}
_UNIT: Mapping[str, Fraction | float] = {"sum": Fraction(0), "max": float("-inf"), "min": float("inf")}


def comprehend(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    """The value of a term of static shape over inputs ``x0``, ``x1``, ...; its numbers are of the type ``dtype``.

    Raises IndexError where an operator reads outside of an operand.
    """
    done: dict[int, Array] = {}
    for part in operands_of(term):
        if part.operator == "input":
            done[id(part)] = operands[int(dict(part.attributes)["name"][1:])]
        else:
            done[id(part)] = _operator(part, [done[id(o)] for o in part.operands], dtype)
    return done[id(term)]


def _operator(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    extents = tuple(_static(d) for d in term.shape)
    names = Names()
    subscripts = [names.fresh("o") for _ in extents]

    def reader(position: int) -> Reader:
        return lambda at: Read(f"#{position}", tuple(at))

    element = term.rule([Index({(s,): 1}) for s in subscripts], [reader(j) for j in range(len(operands))], names)
    grid = {
        s: np.arange(d, dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(len(extents))])
        for axis, (s, d) in enumerate(zip(subscripts, extents, strict=True))
    }
    if 0 in extents:
        return np.zeros(extents, _result_dtype(element, operands, dtype))
    value = _Elements(operands, dtype, grid, np.bool_(True)).strong(element)
    return np.array(np.broadcast_to(value, extents), order="C")


def _result_dtype(element: Element, operands: Sequence[Array], dtype: str) -> Any:
    match element:
        case Read(name):
            return operands[int(name[1:])].dtype
        case Apply("lt" | "le" | "eq" | "same" | "is_nan" | "is_finite" | "and" | "or" | "not"):
            return np.dtype(bool)
        case Choice(_, yes, _):
            return _result_dtype(yes, operands, dtype)
    return np.dtype(dtype)


def _static(value: Index) -> int:
    assert value.constant is not None, "a term of static shape"
    return value.constant


@dataclass(frozen=True)
class _Weak:
    """A number that takes the type of what it is combined with: a literal, or an index as a number."""

    value: Any


@dataclass(frozen=True)
class _Elements:
    """Evaluates elements where ``mask`` holds; elsewhere results are arbitrary."""

    operands: Sequence[Array]
    dtype: str
    grid: Mapping[str, Any]
    mask: Any

    def index(self, value: Index) -> Any:
        total: Any = 0
        for monomial, coefficient in value.terms:
            factor: Any = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    factor = factor * self.grid[atom]
                    continue
                divisor = self.index(atom.divisor)
                if np.any(np.asarray(divisor) <= 0):
                    raise ZeroDivisionError(f"the divisor of {atom.key} must be positive")
                factor = factor * (self.index(atom.dividend) // divisor)
            total = total + factor
        return total

    def condition(self, condition: Condition) -> Any:
        match condition:
            case AtLeastZero(value):
                return np.asarray(self.index(value)) >= 0
            case IsZero(value):
                return np.asarray(self.index(value)) == 0
            case All(parts):
                held: Any = np.bool_(True)
                for part in parts:
                    held = np.logical_and(held, self.condition(part))
                return held
            case OneOf(parts):
                held_by_one: Any = np.bool_(False)
                for part in parts:
                    held_by_one = np.logical_or(held_by_one, self.condition(part))
                return held_by_one
            case TruthOf():
                raise ValueError(f"operators of graphs have no conditions on data such as {condition}")

    def strong(self, element: Element) -> Any:
        return self._typed(self.value(element), self.dtype)

    def _typed(self, value: Any, dtype: str) -> Any:
        if not isinstance(value, _Weak):
            return value
        if isinstance(value.value, Fraction | float):
            return np.asarray(literal_of(value.value, dtype))
        return np.asarray(value.value).astype(dtype)

    def value(self, element: Element) -> Any:
        match element:
            case Read(name, at):
                return self._read(self.operands[int(name[1:])], [self.index(i) for i in at], element)
            case Number(value):
                return _Weak(value)
            case IndexValue(value):
                return _Weak(np.asarray(self.index(value), np.int64))
            case Apply(op, args):
                return self._apply(op, [self.value(a) for a in args])
            case Choice(condition, yes, no):
                return self._choice(self.condition(condition), yes, no)
            case Reduce(op, variable, extent, body):
                return self._reduce(op, variable, self.index(extent), body)

    def _read(self, operand: Array, at: Sequence[Any], element: Element) -> Any:
        clipped = []
        for i, extent in zip(at, operand.shape, strict=True):
            outside = np.logical_or(np.asarray(i) < 0, np.asarray(i) >= extent)
            if np.any(np.logical_and(outside, self.mask)):
                raise IndexError(f"{element} is read outside of the shape {operand.shape}")
            clipped.append(np.clip(i, 0, max(extent - 1, 0)))
        if operand.size == 0:
            return np.zeros(np.broadcast_shapes(*(np.shape(i) for i in at)), operand.dtype)
        return operand[tuple(clipped)]

    def _apply(self, op: str, args: list[Any]) -> Any:
        numbers = args[1:] if op == "select" else args
        dtype = next((str(a.dtype) for a in numbers if not isinstance(a, _Weak)), None)
        if dtype is None and op == "select":
            dtype = "int64" if any(not isinstance(a.value, Fraction | float) for a in numbers) else self.dtype
            chosen = apply_to_arrays(op, [args[0], *(self._typed(a, dtype) for a in numbers)])
            return _Weak(chosen) if dtype == "int64" else chosen
        return apply_to_arrays(op, [self._typed(a, dtype or self.dtype) for a in args])

    def _choice(self, condition: Any, yes: Element, no: Element) -> Any:
        if np.all(condition):
            return self.value(yes)
        if not np.any(condition):
            return self.value(no)
        sides = (
            replace(self, mask=np.logical_and(self.mask, condition)).value(yes),
            replace(self, mask=np.logical_and(self.mask, np.logical_not(condition))).value(no),
        )
        dtype = next((str(s.dtype) for s in sides if not isinstance(s, _Weak)), self.dtype)
        return np.where(condition, self._typed(sides[0], dtype), self._typed(sides[1], dtype))

    def _reduce(self, op: str, variable: str, extent: Any, body: Element) -> Any:
        """Combined in increasing order of the variable; where the extent is not the same everywhere, under a mask."""
        unit = _Weak(_UNIT[op])
        total: Any = None
        for k in range(int(np.max(extent))):
            inside = np.asarray(k) < extent
            part = replace(self, grid={**self.grid, variable: k}, mask=np.logical_and(self.mask, inside)).value(body)
            dtype = self.dtype if isinstance(part, _Weak) else str(part.dtype)
            strong = self._typed(part, dtype)
            if total is None:
                total = strong if np.all(inside) else np.where(inside, strong, self._typed(unit, dtype))
            else:
                both = apply_to_arrays(_BINARY[op], [total, strong])
                total = both if np.all(inside) else np.where(inside, both, total)
        return unit if total is None else total
