"""Tensor terms on arrays, by NumPy's functions: forms of element expressions that NumPy has a fast way for.

Reads are views (:mod:`.views`).  A sum of products of two reads is a product of matrices, which BLAS computes; other
reductions of a read are NumPy's, or run over the windows' taps; a choice by a subscript cuts the result into parts; an
element at a position that is data is taken at once.  What has no such form is evaluated by :mod:`.comprehension`.  The
result is the same, but for sums of floats: they are added in another order, and a sum that is zero may have another
sign.  Positions that are data must lie inside, and extrema whose position is
looked for must be numbers: DataError otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .comprehension import (
    Elements,
    Weak,
    applied,
    computed_in,
    extents_of,
    grid_of,
    narrowed,
    result_dtype,
    steps,
    typed,
    widened,
    written,
)
from .conditions import AtLeastZero
from .elements import Apply, Choice, Element, IndexValue, Reduce, indices_of_element, reads, substitute_element
from .index import Index, Names
from .selection import taken
from .terms import Tensor
from .views import Access, Array, Box, Run, access, affine, decided

MOST_TAPS: Final = 4096
"""Steps of a reduction that runs in a loop over whole arrays."""
FEW_TAPS: Final = 256
"""Steps up to which a product of windows and a vector runs in such a loop: its columns need not be copied."""
MOST_KEPT: Final = 1 << 14
"""Elements of a value without data, such as how many elements a window has, that is computed once."""
_UFUNCS: Final[dict[str, Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class DataError(ValueError):
    """Data for which an operator has no value."""


class Program:
    """A term of static shape over inputs ``x0``, ``x1``, ... of one shape and type each; ``dtype`` is its numbers'."""

    def __init__(self, term: Tensor, inputs: int, dtype: str) -> None:
        self._dtype = dtype
        self._steps = steps(term, inputs)
        self._wide = computed_in([part for part, _ in self._steps], dtype)
        self._runs: list[Run] = []

    def __call__(self, operands: Sequence[Array]) -> Array:
        """The value, perhaps a view of an operand.  Raises DataError, and IndexError for a read outside an operand."""
        values = [widened(o, self._dtype, self._wide) for o in operands]
        with np.errstate(all="ignore"):
            for j, (term, places) in enumerate(self._steps):
                own = [values[place] for place in places]
                if j == len(self._runs):
                    self._runs.append(_compiled(term, own, self._wide))
                values.append(self._runs[j](own))
            return narrowed(values[-1], self._dtype, self._wide)


def _compiled(term: Tensor, operands: Sequence[Array], dtype: str) -> Run:
    element, subscripts, names = written(term)
    extents = extents_of(term)
    if 0 in extents:
        kind = result_dtype(element, operands, dtype)
        return lambda _: np.zeros(extents, kind)
    forms = _Forms(term.operator, [o.shape for o in operands], [str(o.dtype) for o in operands], dtype, names)
    everywhere = dict(zip(subscripts, map(range, extents), strict=True))
    parts = sorted(
        forms.parts(element, subscripts, everywhere), key=lambda part: [values.start for values in part[1].values()]
    )
    runs = [forms.part(e, subscripts, box) for e, box in parts]
    return runs[0] if len(runs) == 1 else _joined(extents, [box for _, box in parts], runs)


def _joined(extents: tuple[int, ...], boxes: Sequence[Box], runs: Sequence[Run]) -> Run:
    """One array of parts that fill it, in the order of their subscripts."""
    places = [tuple(slice(r.start, r.stop) for r in box.values()) for box in boxes]
    cut = [axis for axis, column in enumerate(zip(*places, strict=True)) if any(c != column[0] for c in column)]

    def joined(operands: Sequence[Array]) -> Array:
        values = [run(operands) for run in runs]
        if len(cut) == 1:
            return np.concatenate(values, axis=cut[0])
        result = np.empty(extents, values[0].dtype)
        for at, value in zip(places, values, strict=True):
            result[at] = value
        return result

    return joined


@dataclass(frozen=True)
class _Forms:
    """Finds forms of an operator's elements.  A form gives an array with an axis for each of the variables ``axes``,
    of extent 1 where nothing depends on it.
    """

    operator: str
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[str]
    dtype: str
    names: Names

    def access(self, element: Element, box: Box) -> Access | None:
        return access(element, self.shapes, self.dtypes, box)

    def parts(self, element: Element, axes: Sequence[str], box: Box) -> Iterator[tuple[Element, Box]]:
        """The element in parts of the box, cut by the choices of the element that depend on one subscript."""
        while isinstance(element, Choice) and self.access(element, box) is None:
            known = decided(element.condition, box)
            if known is not None:
                element = element.yes if known else element.no
                continue
            condition = element.condition
            along = affine(condition.value, box) if isinstance(condition, AtLeastZero) else None
            if along is None or len(along[1]) != 1:
                break
            ((variable, step),) = along[1].items()
            values = box[variable]
            first = values.start + (-(along[0] // step) if step > 0 else along[0] // -step + 1)  # the second part's
            halves = {**box, variable: range(values.start, first)}, {**box, variable: range(first, values.stop)}
            yield from self.parts(element.yes, axes, halves[step > 0])
            element, box = element.no, halves[step < 0]
        yield element, box

    def part(self, element: Element, axes: Sequence[str], box: Box) -> Run:
        """An array with all extents of the box."""
        extents: tuple[int, ...] = tuple(len(box[a]) for a in axes)
        inner, inside = list(axes), dict(box)
        known = self.access(element, box)
        if known is None:
            element = self.split(element, inner, inside)
        elif all(a in known.variables or len(box[a]) == 1 for a in axes):
            return known.view(axes, box)
        value, shape, dtype = self.value(element, inner, inside), tuple(len(inside[a]) for a in inner), self.dtype

        def run(operands: Sequence[Array]) -> Array:
            result: Array = typed(value(operands), dtype)
            if result.shape != shape:
                result = np.broadcast_to(result, shape)
            return result if shape == extents else result.reshape(extents)

        return run

    def split(self, element: Element, axes: list[str], box: dict[str, range]) -> Element:
        """The element with subscripts i that are divided by a number d written as d * (i // d) + i % d, two others."""
        while True:
            for quotient in (q for i in indices_of_element(element) for q in i.quotients):
                name, divisor = quotient.dividend.variable, quotient.divisor.constant
                if name in axes and divisor and box[name].start == 0 and _divides(divisor, len(box[name])):
                    break
            else:
                return element
            assert name is not None and divisor is not None
            high, low = self.names.fresh("o"), self.names.fresh("o")
            box |= {high: range(len(box.pop(name)) // divisor), low: range(divisor)}
            axes[axes.index(name) : axes.index(name) + 1] = [high, low]
            element = substitute_element(element, {name: Index({(high,): divisor, (low,): 1})})

    def value(self, element: Element, axes: Sequence[str], box: Box) -> Run:
        """The form of an element."""
        known = self.access(element, box)
        if known is not None:
            return known.view(axes, box)
        if isinstance(element, Apply):
            op, number, runs = element.op, self.dtype, [self.value(a, axes, box) for a in element.args]
            return lambda operands: applied(op, [run(operands) for run in runs], number)
        form = None
        if isinstance(element, Reduce):
            form = self.chosen(element, axes, box) or self.running(element, axes, box)
            form = form or self.reduced(element, axes, box)
        return form or self.general(element, axes, box)

    def general(self, element: Element, axes: Sequence[str], box: Box) -> Run:
        """By the definition."""
        own, number = {a: box[a] for a in axes}, self.dtype

        def run(operands: Sequence[Array]) -> Any:
            return Elements(operands, number, grid_of(own), np.bool_(True)).value(element)

        involved = frozenset[str]().union(*(i.variables for i in indices_of_element(element)))
        if reads(element) or math.prod(len(box[a]) for a in axes if a in involved) > MOST_KEPT:
            return run
        kept = run(())
        return lambda _: kept

    # -- elements at positions that are data, and positions of extrema --

    def chosen(self, element: Reduce, axes: Sequence[str], box: Box) -> Run | None:
        k, extent = element.variable, element.extent.constant
        chosen = taken(element)
        inner = {**box, k: range(extent or 1)}
        match element.body:
            case _ if chosen and extent:
                where, within = self.access(chosen[0], box), self.access(chosen[2], inner)
                if where and within and "int" in self.dtypes[where.operand]:
                    return self._taken(where, within, k, extent, axes, box)
            case Apply("select", (Apply("eq", (x, Reduce(op, j, n, y))), IndexValue(at), IndexValue(none))) if (
                op != "sum" and n == element.extent and at.variable == k and extent
                and x == substitute_element(y, {j: at}) and all(k not in i.variables for i in indices_of_element(y))
                and (element.op, none.constant) in (("min", extent), ("max", -1))
            ):  # fmt: skip
                within = self.access(x, inner)
                return self._extremal(op, within, k, element.op == "max", axes, inner) if within else None
        return None

    def _taken(self, where: Access, within: Access, k: str, extent: int, axes: Sequence[str], box: Box) -> Run | None:
        along = [v for _, slopes in within.subscripts for v in slopes]
        if extent == 1:
            along = [k, *along]
        if k not in along:
            return None
        before, after = along[: along.index(k)], along[along.index(k) + 1 :]
        inner = {**box, k: range(extent)}
        at = [a for a in axes if a in where.variables]
        order = [*before, *at, *after]
        new = tuple(slice(None) if a in order else None for a in axes)
        at_once = order == [a for a in axes if a in order]
        values = within.view([*before, k, *after] if at_once else [*axes, k], inner)
        positions = where.view(at if at_once else axes, box)
        extents = [len(box[a]) if a in along else 1 for a in axes]

        def run(operands: Sequence[Array]) -> Array:
            index = positions(operands)
            if index.size and not (index.min() >= 0 and index.max() < extent):
                ends = f"{index.min()} .. {index.max()}"
                raise DataError(f"indices must be in 0 .. {extent - 1}, not {ends}; correct the model's input")
            index = index.astype(np.int64)
            if at_once:
                return np.asarray(np.take(values(operands), index, axis=len(before)))[new]
            return np.asarray(values(operands)[(*np.ix_(*map(np.arange, extents)), index)])

        return run

    def _extremal(self, op: str, within: Access, k: str, last: bool, axes: Sequence[str], box: Box) -> Run:
        values, extent, what = within.view([*axes, k], box), len(box[k]), self.operator
        find: Any = np.argmax if op == "max" else np.argmin

        def run(operands: Sequence[Array]) -> Weak:
            array = values(operands)
            if array.dtype.kind == "f" and np.isnan(array).any():
                raise DataError(f"{what} must be given numbers, not NaN; no position is that of an extremum")
            return Weak(extent - 1 - find(array[..., ::-1], axis=-1) if last else find(array, axis=-1))

        return run

    # -- sums and extrema --

    def running(self, element: Reduce, axes: Sequence[str], box: Box) -> Run | None:
        """The sum of all elements up to a subscript."""
        k, end = element.variable, (element.extent - 1).variable
        if element.op != "sum" or end is None or end not in axes or box[end].start != 0:
            return None
        inner = {**box, k: box[end]}
        body = self.access(element.body, inner)
        if body is None or end in body.variables or (k not in body.variables and len(box[end]) > 1):
            return None
        if self.dtypes[body.operand] == "bool":
            return None  # truth values have no sum
        values, axis = body.view([k if a == end else a for a in axes], inner), axes.index(end)

        def run(operands: Sequence[Array]) -> Array:
            array = values(operands)
            return np.add.accumulate(array, axis=axis, dtype=array.dtype)

        return run

    def reduced(self, element: Reduce, axes: Sequence[str], box: Box) -> Run | None:
        """A reduction of a read, or a sum of products of two."""
        inner, bound = dict(box), list[str]()
        body: Element = element
        while isinstance(body, Reduce) and body.op == element.op and body.extent.constant:
            inner[body.variable] = range(body.extent.constant)
            bound.append(body.variable)
            body = body.body
        bound = [k for k in bound if len(inner[k]) > 1]
        match body:
            case Apply("mul", (left, right)) if element.op == "sum":
                reads = [self.access(left, inner), self.access(right, inner)]
            case _:
                reads = [self.access(body, inner)]
        known = [r for r in reads if r is not None]
        kinds = {self.dtypes[r.operand] for r in known}
        if len(known) < len(reads) or len(kinds) > 1 or not all(r.variables.issuperset(bound) for r in known):
            return None
        if element.op == "sum" and kinds == {"bool"}:
            return None  # truth values have none
        if len(known) == 2:
            return self._product(known[0], known[1], bound, axes, inner)
        if known[0].shared.isdisjoint(bound):
            return _whole(element.op, known[0], bound, axes, inner)
        return _by_taps(element.op, known, bound, axes, inner)

    def _product(self, a: Access, b: Access, bound: Sequence[str], axes: Sequence[str], box: Box) -> Run | None:
        """As a product of matrices; axes of one side that come before those of the other are a batch."""
        outer = [v for v in axes if v in a.variables | b.variables]
        side = {v: v in a.variables for v in outer if (v in a.variables) != (v in b.variables)}
        end = side.get(outer[-1]) if outer else None
        if end is None:
            right, left = [v for v in side if not side[v]], [v for v in side if side[v]]
            batch = [v for v in outer if v not in side]
        else:
            right = _trailing(outer, [v for v in side if side[v] is end])
            left = _trailing(outer[: len(outer) - len(right)], [v for v in side if side[v] is not end])
            batch = outer[: len(outer) - len(left) - len(right)]
            a, b = (b, a) if end else (a, b)
        m, n, taps = (math.prod(len(box[v]) for v in group) for group in (left, right, bound))
        if min(m, n) == 1 and taps <= FEW_TAPS and not (a.shared | b.shared).isdisjoint(bound):
            return _by_taps("sum", [a, b], bound, axes, box)
        views = a.view([*batch, *left, *bound], box), b.view([*batch, *bound, *right], box)
        shapes = [[len(box[v]) if v in x.variables else 1 for v in batch] for x in (a, b)]
        shapes[0] += [m, taps]
        shapes[1] += [taps, n]
        order = [*batch, *left, *right]
        extents, moved = [len(box[v]) for v in order], [order.index(v) for v in outer]
        new = tuple(slice(None) if v in outer else None for v in axes)

        def run(operands: Sequence[Array]) -> Array:
            x, y = views[0](operands).reshape(shapes[0]), views[1](operands).reshape(shapes[1])
            product: Array = np.matmul(_for_blas(x), _for_blas(y)).reshape(extents)
            return (product if order == outer else product.transpose(moved))[new]

        return run


def _divides(divisor: int, extent: int) -> bool:
    return divisor < extent and extent % divisor == 0


def _trailing(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return list(itertools.takewhile(lambda v: v in others, reversed(names)))[::-1]


def _for_blas(array: Array) -> Array:
    """A view whose rows or columns lie side by side, which NumPy can give to BLAS."""
    return array if array.itemsize in array.strides[-2:] else np.ascontiguousarray(array)


def _whole(op: str, read: Access, bound: Sequence[str], axes: Sequence[str], box: Box) -> Run:
    view, ufunc = read.view([*axes, *bound], box), _UFUNCS[op]
    along = tuple(range(len(axes), len(axes) + len(bound)))

    def run(operands: Sequence[Array]) -> Array:
        array = view(operands)
        if op == "sum":
            return np.asarray(ufunc.reduce(array, axis=along, dtype=array.dtype))
        return _with_signs(op, np.asarray(ufunc.reduce(array, axis=along)), array, along, array)

    return run


def _by_taps(op: str, reads: Sequence[Access], bound: Sequence[str], axes: Sequence[str], box: Box) -> Run | None:
    """In a loop, in the order of the variables."""
    if math.prod(len(box[k]) for k in bound) > MOST_TAPS:
        return None
    views, ufunc = [r.view([*bound, *axes], box) for r in reads], _UFUNCS[op]
    multiply: Any = np.multiply
    along = tuple(range(len(bound)))
    first, *taps = itertools.product(*(range(len(box[k])) for k in bound))

    def run(operands: Sequence[Array]) -> Array:
        arrays = [view(operands) for view in views]
        total = np.asarray(multiply(*(a[first] for a in arrays)) if len(arrays) == 2 else arrays[0][first].copy())
        term = np.empty_like(total)
        for tap in taps:
            parts = [a[tap] for a in arrays]
            ufunc(total, multiply(*parts, out=term) if len(parts) == 2 else parts[0], out=total)
        return total if op == "sum" else _with_signs(op, total, arrays[0], along, operands[reads[0].operand])

    return run


def _with_signs(op: str, extrema: Array, of: Array, along: tuple[int, ...], operand: Array) -> Array:
    """-0 < +0, which NumPy leaves open: where the extremum is zero, the sign that decides is looked for."""
    if extrema.dtype.kind != "f" or np.all(extrema) or not np.any(np.signbit(operand) & (operand == 0)):
        return extrema
    zeros = of == 0
    negative = np.signbit(of) & zeros
    positive = np.any(zeros & ~negative, axis=along) if op == "max" else ~np.any(negative, axis=along)
    kind = extrema.dtype.type
    return np.where(extrema == 0, np.where(positive, kind(0.0), kind(-0.0)), extrema)
