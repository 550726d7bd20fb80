"""Operators that choose elements by the data: gather by indices, and where an extremum stands.

Subscripts are never data in this language.  An element at a position that is data is the maximum over all positions
of: the element where the position is the wanted one, else -inf.  Sources: the ONNX operators Gather, GatherElements,
ArgMax and ArgMin.
"""

from __future__ import annotations

from collections.abc import Sequence

from .conditions import le
from .elements import Apply, Choice, Element, IndexValue, Number, Read, Reader, Reduce, indices_of_element
from .index import Index, Names, index_of
from .terms import Tensor, make, require_axes

LEAST = Number(float("-inf"))


def _chosen(
    position: Element, extent: Index, read: Reader, around: tuple[Sequence[Index], Sequence[Index]], names: Names
) -> Element:
    """The element of ``read`` whose subscript between those ``around`` it is ``position``."""
    k = names.fresh("k")
    here = Apply("eq", (position, IndexValue(index_of(k))))
    return Reduce("max", k, extent, Apply("select", (here, read([*around[0], index_of(k), *around[1]]), LEAST)))


def taken(element: Element) -> tuple[Element, str, Element] | None:
    """Of an element at a position that is data: the position, the variable that is compared with it, and the element
    at that variable.
    """
    match element:
        case Reduce("max", k, _, Apply("select", (Apply("eq", (position, IndexValue(at))), body, Number() as least))):
            fixed = all(k not in i.variables for i in indices_of_element(position))
            return (position, k, body) if at.variable == k and least == LEAST and fixed else None
    return None


def moves(element: Element) -> bool:
    """Whether every value of the element is one of an operand or a literal: nothing is computed."""
    match element:
        case Read() | Number():
            return True
        case Choice(_, yes, no):
            return moves(yes) and moves(no)
    chosen = taken(element)
    return chosen is not None and moves(chosen[2])


def gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The parts of ``x`` along ``axis`` at the indices: the axes of ``indices`` take the place of that axis.

    An element at an index outside 0 <= index < extent is -inf.
    """
    require_axes("gather", x, [axis])

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        end = axis + indices.rank
        return _chosen(of[1](at[axis:end]), x.shape[axis], of[0], (at[:axis], at[end:]), names)

    dimensions = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    return make("gather", [x, indices], dimensions, rule, axis=axis)


def gather_elements(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The element of ``x`` at the subscripts, of which that along ``axis`` is replaced by the index that stands there.

    ``indices`` must have the rank of ``x`` and be no larger along the other axes.
    """
    require_axes("gather_elements", x, [axis])
    if indices.rank != x.rank:
        raise ValueError(f"gather_elements must be given tensors of one rank, not {x.rank} and {indices.rank}")

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return _chosen(of[1](at), x.shape[axis], of[0], (at[:axis], at[axis + 1 :]), names)

    fits = [le(i, d) for j, (i, d) in enumerate(zip(indices.shape, x.shape, strict=True)) if j != axis]
    return make("gather_elements", [x, indices], indices.shape, rule, requires=fits, axis=axis)


def arg_extremum(op: str, x: Tensor, axis: int, last: bool = False) -> Tensor:
    """The first (or last) position along ``axis`` where the max or min stands, as a number; the axis disappears.

    Where elements are NaN the position is that extent (or -1); the axis must not be empty.
    """
    if op not in ("max", "min"):
        raise ValueError(f"arg_extremum must be given max or min, not {op}")
    require_axes("arg_extremum", x, [axis])
    extent = x.shape[axis]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        j, k = names.fresh("j"), names.fresh("k")

        def read(name: str) -> Element:
            return of[0]([*at[:axis], index_of(name), *at[axis:]])

        here = Apply("eq", (read(k), Reduce(op, j, extent, read(j))))
        none = IndexValue(Index({(): -1}) if last else extent)
        return Reduce("max" if last else "min", k, extent, Apply("select", (here, IndexValue(index_of(k)), none)))

    dimensions = [d for j, d in enumerate(x.shape) if j != axis]
    return make(f"arg_{op}", [x], dimensions, rule, requires=[le(1, extent)], axis=axis, last=last)
