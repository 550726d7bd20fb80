"""Index comprehensions on arrays: a tensor term's element expression, for all subscripts at once.

Subscripts become arrays, one axis each; the variable of a sum or an extremum runs in a loop, in increasing order, as
the expression says.  So the result is the definition's, bit for bit, given the arithmetic of
:mod:`ir_semantics.scalars.arrays`.  A subscript outside of an operand is an error unless a choice excludes it.

Integers that are no data, such as the number of elements that a mean divides by, are exact: what they are combined with
is computed in 64 bits and rounded (or wrapped) once.  What is computed on binary16 is computed in binary32, and each
element of the result is rounded once.
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
from .elements import BINARY, Apply, Choice, Element, IndexValue, Number, Read, Reader, Reduce
from .index import Index, Names, index_of
from .selection import moves
from .terms import Tensor, operands_of

Array = NDArray[Any]
_UNIT: Mapping[str, Fraction | float] = {"sum": Fraction(0), "max": float("-inf"), "min": float("inf")}


def by_definition(term: Tensor, operands: Sequence[Array], dtype: str) -> Array:
    """The value of a term of static shape over inputs ``x0``, ``x1``, ...; its numbers are of the type ``dtype``.

    Raises IndexError where an operator reads outside of an operand.
    """
    parts = steps(term, len(operands))
    wide = computed_in([part for part, _ in parts], dtype)
    values = [widened(o, dtype, wide) for o in operands]
    with np.errstate(all="ignore"):
        for part, places in parts:
            values.append(_operator(part, [values[j] for j in places], wide))
        return narrowed(values[-1], dtype, wide)


def computed_in(parts: Sequence[Tensor], dtype: str) -> str:
    """The type in which numbers of the type ``dtype`` are computed: binary32 for binary16.

    Sums of binary16 would soon overflow, or stop growing; 1 is lost beside 2048.
    """
    return "float32" if dtype == "float16" and not all(moves(written(part)[0]) for part in parts) else dtype


def widened(array: Array, dtype: str, wide: str) -> Array:
    """An operand in the type in which numbers of the type ``dtype`` are computed."""
    return array.astype(wide) if wide != dtype and array.dtype == dtype else array


def narrowed(array: Array, dtype: str, wide: str) -> Array:
    """A result rounded to the type ``dtype`` if it is one of its numbers."""
    return array.astype(dtype) if wide != dtype and array.dtype == wide else array


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

    element = term.rule(list(map(index_of, subscripts)), [reader(j) for j in range(len(term.operands))], names)
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
    """A number that takes the type of what it is combined with: a literal, or an array of exact integers, which are
    indices as numbers, and what is chosen from them and added up.
    """

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
    if op == "select":
        condition, yes, no = args
        return _select(condition, yes, no, number)
    indices = any(isinstance(a, Weak) and not _literal(a) for a in args)
    free = "int64" if indices and number == "bool" else number
    own = next((str(a.dtype) for a in args if not isinstance(a, Weak)), free)
    exact = [_integers(a, own) for a in args]
    wide = own
    if np.dtype(own).kind == "f" and not all(e is None or _fits(e, own) for e in exact):
        wide = "float64"
    elif own in _NARROW and indices:
        wide = "int64"
    if wide == own:
        compared = op in ("eq", "lt", "le", "same") and own == "uint64"  # with what may be negative
        values = [e if compared and e is not None else typed(a, own) for a, e in zip(args, exact, strict=True)]
        return apply_to_arrays(op, values)
    values = [np.asarray(typed(a, own) if e is None else e).astype(wide) for a, e in zip(args, exact, strict=True)]
    result = np.asarray(apply_to_arrays(op, values))
    return result.astype(own) if result.dtype == wide else result


_MOST = 1 << 32  # of literals that are exact integers, so that sums of them fit into 64 bits
_NARROW = frozenset(("int8", "int16", "int32", "uint8", "uint16", "uint32"))


def _select(condition: Any, yes: Any, no: Any, number: str) -> Any:
    """A choice, which is of exact integers where both sides are."""
    exact = _integers(yes, number), _integers(no, number)
    if exact[0] is not None and exact[1] is not None:
        return Weak(np.where(condition, *exact))
    dtype = next((str(side.dtype) for side in (yes, no) if not isinstance(side, Weak)), number)
    return np.where(condition, typed(yes, dtype), typed(no, dtype))


def _integers(value: Any, dtype: str) -> Any:
    """The exact integers of a number without a type; None where it has one or is no integer.

    A literal must be representable where numbers are integers.
    """
    if not isinstance(value, Weak):
        return None
    if not _literal(value):
        return value.value
    kind, literal = np.dtype(dtype).kind, value.value
    if kind == "b" or isinstance(literal, float) or literal.denominator != 1 or abs(literal) > _MOST:
        return None
    if kind in "iu":
        literal_of(literal, dtype)
    return np.asarray(int(literal), np.int64)


def _combined(op: str, total: Any, part: Any, number: str) -> Any:
    exact = _integers(total, number), _integers(part, number)
    if exact[0] is not None and exact[1] is not None:
        return Weak(apply_to_arrays(BINARY[op], exact))
    return applied(BINARY[op], [total, part], number)


def _fits(integers: Any, dtype: str) -> bool:
    """Whether all integers are numbers of a type of floats."""
    return bool(np.all(np.abs(integers) <= 1 << np.finfo(dtype).nmant + 1))


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
        return _select(condition, *sides, self.dtype)

    def _reduce(self, op: str, variable: str, extent: Any, body: Element) -> Any:
        """Combined in increasing order of the variable; where the extent is not the same everywhere, under a mask."""
        unit = Weak(_UNIT[op])
        total: Any = None
        for k in range(int(np.max(extent))):
            inside = np.asarray(k) < extent
            part = replace(self, grid={**self.grid, variable: k}, mask=np.logical_and(self.mask, inside)).value(body)
            if total is None:
                total = part if np.all(inside) else _select(inside, part, unit, self.dtype)
            else:
                both = _combined(op, total, part, self.dtype)
                total = both if np.all(inside) else _select(inside, both, total, self.dtype)
        return unit if total is None else total
