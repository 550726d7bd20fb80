"""Reads at affine subscripts as views of arrays: strides instead of an index for each element.

Variables of index expressions run over a box: an interval of integers for each.  A read has a view where every
subscript is affine on the box, or else the position in the row-major array is (so a reshape is a view).  Subscripts are
compared with the operand's extents once, by interval arithmetic.  A read that a choice guards by exactly the
comparisons that may fail, with a number otherwise, is a view of the operand with that number around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_semantics.scalars.arrays import literal_of

from .conditions import All, AtLeastZero, Condition
from .elements import Choice, Element, Number, Read
from .index import Index, Quotient, index

Array = NDArray[Any]
Box: TypeAlias = Mapping[str, range]
"""The values of variables: intervals that are not empty."""
Run: TypeAlias = Callable[[Sequence[Array]], Any]
"""Gives a value from those of the operands."""
Affine: TypeAlias = "tuple[int, dict[str, int]]"
"""A constant and coefficients of variables that count from 0; a variable with one value has none."""


def bounds(value: Index, box: Box) -> tuple[int, int] | None:
    """Numbers between which an index lies on the box; None where something is divided by no number."""
    for monomial, coefficient in value.terms:
        if coefficient < 0 and len(monomial) == 1 and isinstance(monomial[0], Quotient):
            rest = value - Index({monomial: coefficient})
            if rest // -coefficient == Index({monomial: 1}):  # a remainder: r - d * (r // d)
                return 0, -coefficient - 1
    low = high = 0
    for monomial, coefficient in value.terms:
        ends = (coefficient, coefficient)
        for atom in monomial:
            if isinstance(atom, str):
                factor: tuple[int, int] | None = (box[atom][0], box[atom][-1])
            else:
                factor = _quotient_bounds(atom, box)
            if factor is None:
                return None
            products = [a * b for a in ends for b in factor]
            ends = min(products), max(products)
        low, high = low + ends[0], high + ends[1]
    return low, high


def _quotient_bounds(quotient: Quotient, box: Box) -> tuple[int, int] | None:
    divisor, dividend = quotient.divisor.constant, bounds(quotient.dividend, box)
    return None if divisor is None or dividend is None else (dividend[0] // divisor, dividend[1] // divisor)


def simplified(value: Index, box: Box) -> Index:
    """The index without quotients that have one value on the box."""
    if not value.quotients:
        return value

    def replace(atom: str | Quotient) -> Index | None:
        ends = _quotient_bounds(atom, box) if isinstance(atom, Quotient) else None
        return index(ends[0]) if ends is not None and ends[0] == ends[1] else None

    return value.rebuild(replace)


def affine(value: Index, box: Box) -> Affine | None:
    """The index as an affine function on the box, if it is one."""
    constant, slopes = 0, dict[str, int]()
    for monomial, coefficient in simplified(value, box).terms:
        free: list[str] = []
        for atom in monomial:
            if not isinstance(atom, str):
                return None
            if len(box[atom]) == 1:
                coefficient *= box[atom][0]
            else:
                free.append(atom)
        if len(free) > 1:
            return None
        if free:
            slopes[free[0]] = slopes.get(free[0], 0) + coefficient
            coefficient *= box[free[0]][0]
        constant += coefficient
    return constant, {v: c for v, c in slopes.items() if c}


def decided(condition: Condition, box: Box) -> bool | None:
    """The truth value of a condition, where it is the same on all of the box."""
    if isinstance(condition, All):
        known = [decided(part, box) for part in condition.parts]
        return False if False in known else True if all(known) else None
    ends = bounds(condition.value, box) if isinstance(condition, AtLeastZero) else None
    if ends is None:
        return None
    return True if ends[0] >= 0 else False if ends[1] < 0 else None


@dataclass(frozen=True)
class Access:
    """A read that has a view.  ``shape`` is that of the array whose ``subscripts`` these are: of the operand with what
    is put ``around`` it (elements before and after every axis, equal to ``filler``), or of its elements in row-major
    order where it is ``reshaped``.
    """

    operand: int
    shape: tuple[int, ...]
    subscripts: tuple[Affine, ...]
    around: tuple[tuple[int, int], ...] = ()
    filler: Run | None = None
    reshaped: bool = False

    @property
    def variables(self) -> frozenset[str]:
        """The variables on which the element depends."""
        return frozenset().union(*(slopes for _, slopes in self.subscripts))

    @property
    def shared(self) -> frozenset[str]:
        """Variables that move along an axis together with others, as those of windows do."""
        return frozenset().union(*(slopes for _, slopes in self.subscripts if len(slopes) > 1))

    def view(self, axes: Sequence[str], box: Box) -> Run:
        """The elements, with an axis for each of these variables; its extent is 1 where nothing depends on it."""
        along = [v for _, slopes in self.subscripts for v in slopes]
        if len(along) == len(self.subscripts) - sum(not s for _, s in self.subscripts) == len(set(along)):
            cut = self._sliced(axes, along, box)
        else:
            cut = self._strided(axes, box)
        operand, around, filler, shape = self.operand, self.around, self.filler, self.shape
        if self._is_operand(axes, box):
            return itemgetter(operand)
        if filler is None:
            return lambda operands: cut(operands[operand])
        inner = tuple(slice(b, d - a) for (b, a), d in zip(around, shape, strict=True))

        def padded(operands: Sequence[Array]) -> Array:
            filled = np.empty(shape, operands[operand].dtype)
            filled[...] = filler(operands)
            filled[inner] = operands[operand]
            return cut(filled)

        return padded

    def _is_operand(self, axes: Sequence[str], box: Box) -> bool:
        in_order = [(0, {v: 1} if len(box[v]) > 1 else {}) for v in axes]
        whole = [*self.subscripts] == in_order and self.shape == tuple(len(box[v]) for v in axes)
        return whole and self.filler is None and not self.reshaped

    def _sliced(self, axes: Sequence[str], along: Sequence[str], box: Box) -> Callable[[Array], Array]:
        parts: list[Any] = []
        for constant, slopes in self.subscripts:
            if slopes:
                ((variable, step),) = slopes.items()
                stop = constant + step * len(box[variable])
                parts.append(slice(constant, stop if stop >= 0 else None, step))
            else:
                parts.append(constant)
        whole = parts == [slice(0, d, 1) for d in self.shape]
        take = (*parts, ...)
        order = [along.index(v) for v in axes if v in along]
        moved = order != sorted(order)
        new = tuple(slice(None) if v in along else None for v in axes)
        shape, reshaped = self.shape, self.reshaped

        def cut(array: Array) -> Array:
            if reshaped:
                array = array.reshape(shape)
            if not whole:
                array = array[take]
            if moved:
                array = array.transpose(order)
            return array if len(along) == len(new) else array[new]

        return cut

    def _strided(self, axes: Sequence[str], box: Box) -> Callable[[Array], Array]:
        places = list(accumulate(reversed(self.shape), lambda a, b: a * b, initial=1))[-2::-1]
        offset = sum(constant * place for (constant, _), place in zip(self.subscripts, places, strict=True))
        steps = [sum(s.get(v, 0) * place for (_, s), place in zip(self.subscripts, places, strict=True)) for v in axes]
        extents = tuple(len(box[v]) if any(v in s for _, s in self.subscripts) else 1 for v in axes)

        def cut(array: Array) -> Array:
            plain, size = np.asarray(array, order="C"), array.itemsize  # of a row-major array, memory is checked
            view: Array = np.ndarray(extents, plain.dtype, plain, offset * size, [s * size for s in steps])
            view.flags.writeable = False  # elements may stand in several places
            return view

        return cut


def access(element: Element, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], box: Box) -> Access | None:
    """A read, or a guarded read, as a view; None where it has none.

    Operands are called ``#0``, ``#1``, ...  Raises IndexError where a subscript may lie outside of the operand.
    """
    if isinstance(element, Read):
        return _read(element, shapes, box)
    guards: list[Condition] = []
    outside = element.no if isinstance(element, Choice) else None
    while isinstance(element, Choice) and isinstance(outside, Number | Read) and element.no == outside:
        guards += element.condition.parts if isinstance(element.condition, All) else [element.condition]
        element = element.yes
    if not (isinstance(element, Read) and isinstance(outside, Number | Read)):
        return None
    return _guarded(element, outside, guards, shapes, dtypes, box)


def position_of(read: Read) -> int:
    """The number of the operand that is read."""
    return int(read.name[1:])


def _read(read: Read, shapes: Sequence[tuple[int, ...]], box: Box) -> Access | None:
    shape = shapes[position_of(read)]
    subscripts = [affine(i, box) for i in read.at]
    for i, along, extent in zip(read.at, subscripts, shape, strict=True):
        ends = [bounds(i, box), bounds(simplified(i, box), box)]
        if not any(e is not None and e[0] >= 0 and e[1] < extent for e in ends):
            if along is not None:  # the interval is exact
                raise IndexError(f"{read} is read outside of the shape {shape}")
            return None
    known = tuple(s for s in subscripts if s is not None)
    if len(known) == len(subscripts):
        return Access(position_of(read), shape, known)
    position = index(0)
    for i, extent in zip(read.at, shape, strict=True):
        position = position * extent + i
    row = affine(position, box)
    return None if row is None else _in_a_row(position_of(read), math.prod(shape), row, box)


def _in_a_row(operand: int, size: int, row: Affine, box: Box) -> Access:
    """A position among all elements; where it counts through the box in order, through axes of its extents."""
    constant, slopes = row
    ordered = sorted(slopes.items(), key=lambda item: -item[1])
    extents = [len(box[v]) for v, _ in ordered]
    places = list(accumulate(reversed(extents), lambda a, b: a * b, initial=1))[-2::-1]
    if constant == 0 and math.prod(extents) == size and [c for _, c in ordered] == places:
        return Access(operand, tuple(extents), tuple((0, {v: 1}) for v, _ in ordered), reshaped=True)
    return Access(operand, (size,), (row,), reshaped=True)


def _guarded(
    read: Read,
    outside: Number | Read,
    guards: Sequence[Condition],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[str],
    box: Box,
) -> Access | None:
    shape = shapes[position_of(read)]
    subscripts, around = list[Affine](), list[tuple[int, int]]()
    open_ends: set[Index] = set()  # what may be negative, so that a guard must be that it is not
    for i, extent in zip(read.at, shape, strict=True):
        i = simplified(i, box)
        along, ends = affine(i, box), bounds(i, box)
        if along is None or ends is None:
            return None
        before, after = max(0, -ends[0]), max(0, ends[1] - extent + 1)
        open_ends |= ({i} if before else set()) | ({extent - 1 - i} if after else set())
        around.append((before, after))
        subscripts.append((along[0] + before, along[1]))
    guarded = {simplified(g.value, box) if isinstance(g, AtLeastZero) else None for g in guards if not decided(g, box)}
    if guarded != open_ends:
        return None
    if not guarded:
        return Access(position_of(read), shape, tuple(subscripts))
    filler = _number(outside, position_of(read), shapes, dtypes, box)
    padded = tuple(b + d + a for d, (b, a) in zip(shape, around, strict=True))
    return filler and Access(position_of(read), padded, tuple(subscripts), tuple(around), filler)


def _number(
    outside: Number | Read, operand: int, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], box: Box
) -> Run | None:
    """What is the same on all of the box, in the type of an operand."""
    if isinstance(outside, Number):
        value = literal_of(outside.value, dtypes[operand])
        return lambda operands: value
    known = None if any(i.variables for i in outside.at) else _read(outside, shapes, box)
    if known is None or dtypes[known.operand] != dtypes[operand]:
        return None
    return known.view((), box)
