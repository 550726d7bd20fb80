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
from numpy.typing import NDArray

from ir_semantics.scalars.arrays import apply_to_arrays, literal_of

from .conditions import All, AtLeastZero, Condition, IsZero, OneOf, TruthOf
from .elements import Apply, Choice, Element, IndexValue, Number, Read, Reader, Reduce
from .index import Index, Names
from .terms import Tensor, operands_of

Array = NDArray[Any]
_BINARY = {"sum": "add", "max": "maximum", "min": "minimum"}
_UNIT: Mapping[str, Fraction | float] = {"sum": Fraction(0), "max": float("-inf"), "min": float("inf")}


def by_definition(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    """The value of a term of static shape over inputs ``x0``, ``x1``, ...; its numbers are of the type ``dtype``.

    Raises IndexError where an operator reads outside of an operand.
    """
    values = list(operands)
    for part, places in steps(term, len(operands)):
        values.append(_operator(part, [values[j] for j in places], dtype))
    return values[-1]


def steps(term: Tensor, inputs: int) -> list[tuple[Tensor, tuple[int, ...]]]:
    """The operators of a term over inputs ``x0``, ``x1``, ... in order, with the places of their operands among the
    values of the inputs and those of the steps before.
    """
    places: dict[int, int] = {}
    result: list[tuple[Tensor, tuple[int, ...]]] = []
    for part in operands_of(term):
        if part.operator == "input":
            places[id(part)] = int(dict(part.attributes)["name"][1:])
        else:
            places[id(part)] = inputs + len(result)
            result.append((part, tuple(places[id(o)] for o in part.operands)))
    return result


def _operator(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    element, subscripts, _ = written(term)
    extents = extents_of(term)
    if 0 in extents:
        return np.zeros(extents, result_dtype(element, operands, dtype))
    everywhere = dict(zip(subscripts, map(range, extents), strict=True))
    value = Elements(operands, dtype, grid_of(everywhere), np.bool_(True)).value(element)
    return np.array(np.broadcast_to(typed(value, dtype), extents), order="C")


def written(term: Tensor) -> tuple[Element, list[str], Names]:
    """The operator's element at variable subscripts, their names, and names for others; operands are #0, #1, ..."""
    names = Names()
    subscripts = [names.fresh("o") for _ in term.shape]

    def reader(position: int) -> Reader:
        return lambda at: Read(f"#{position}", tuple(at))

    element = term.rule([Index({(s,): 1}) for s in subscripts], [reader(j) for j in range(len(term.operands))], names)
    return element, subscripts, names


def extents_of(term: Tensor) -> tuple[int, ...]:
    """The shape of a term of static shape."""
    extents = tuple(d.constant for d in term.shape if d.constant is not None)
    assert len(extents) == term.rank, "a term of static shape"
    return extents


def grid_of(box: Mapping[str, range]) -> dict[str, Any]:
    """The values of subscripts, each along an axis of its own."""
    return {
        name: np.arange(values.start, values.stop, dtype=np.int64).reshape(
            [-1 if a == axis else 1 for a in range(len(box))]
        )
        for axis, (name, values) in enumerate(box.items())
    }


def result_dtype(element: Element, operands: Sequence[Array], dtype: str) -> Any:
    """The type of an element of a tensor without any."""
    match element:
        case Read(name):
            return operands[int(name[1:])].dtype
        case Apply("lt" | "le" | "eq" | "same" | "is_nan" | "is_finite" | "and" | "or" | "not"):
            return np.dtype(bool)
        case Choice(_, yes, _):
            return result_dtype(yes, operands, dtype)
    return np.dtype(dtype)


@dataclass(frozen=True)
class Weak:
    """A number that takes the type of what it is combined with: a literal, or an index as a number."""

    value: Any


def typed(value: Any, dtype: str) -> Any:
    """A value in a type of its own, which is ``dtype`` where it takes any."""
    if not isinstance(value, Weak):
        return value
    if _literal(value):
        return np.asarray(literal_of(value.value, dtype))
    return np.asarray(value.value).astype(dtype)


def applied(op: str, args: Sequence[Any], number: str) -> Any:
    """A scalar operator on values; ``number`` is the type of numbers where all take any."""
    numbers = args[1:] if op == "select" else args
    dtype = next((str(a.dtype) for a in numbers if not isinstance(a, Weak)), None)
    if dtype is None and op == "select":
        dtype = "int64" if any(not _literal(a) for a in numbers) else number
        chosen = apply_to_arrays(op, [args[0], *(typed(a, dtype) for a in numbers)])
        return Weak(chosen) if dtype == "int64" else chosen
    own = dtype or number
    wide = "int64" if op in ("eq", "lt", "le") and "int" in own else own  # an index may not fit into the other's type
    return apply_to_arrays(op, [typed(a, own if isinstance(a, Weak) and _literal(a) else wide) for a in args])


def _literal(number: Weak) -> bool:
    return isinstance(number.value, Fraction | float)


@dataclass(frozen=True)
class Elements:
    """Evaluates elements where ``mask`` holds; elsewhere results are arbitrary."""

    operands: Sequence[Array]
    dtype: str
    grid: Mapping[str, Any]
    mask: Any

    def index(self, value: Index) -> Any:
        """An index."""
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
        """Where a condition holds."""
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

    def value(self, element: Element) -> Any:
        """An element."""
        match element:
            case Read(name, at):
                return self._read(self.operands[int(name[1:])], [self.index(i) for i in at], element)
            case Number(value):
                return Weak(value)
            case IndexValue(value):
                return Weak(np.asarray(self.index(value), np.int64))
            case Apply(op, args):
                return applied(op, [self.value(a) for a in args], self.dtype)
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

    def _choice(self, condition: Any, yes: Element, no: Element) -> Any:
        if np.all(condition):
            return self.value(yes)
        if not np.any(condition):
            return self.value(no)
        sides = (
            replace(self, mask=np.logical_and(self.mask, condition)).value(yes),
            replace(self, mask=np.logical_and(self.mask, np.logical_not(condition))).value(no),
        )
        dtype = next((str(s.dtype) for s in sides if not isinstance(s, Weak)), self.dtype)
        return np.where(condition, typed(sides[0], dtype), typed(sides[1], dtype))

    def _reduce(self, op: str, variable: str, extent: Any, body: Element) -> Any:
        """Combined in increasing order of the variable; where the extent is not the same everywhere, under a mask."""
        unit = Weak(_UNIT[op])
        total: Any = None
        for k in range(int(np.max(extent))):
            inside = np.asarray(k) < extent
            part = replace(self, grid={**self.grid, variable: k}, mask=np.logical_and(self.mask, inside)).value(body)
            dtype = self.dtype if isinstance(part, Weak) else str(part.dtype)
            strong = typed(part, dtype)
            if total is None:
                total = strong if np.all(inside) else np.where(inside, strong, typed(unit, dtype))
            else:
                both = apply_to_arrays(_BINARY[op], [total, strong])
                total = both if np.all(inside) else np.where(inside, both, total)
        return unit if total is None else total
