"""Cutting sizes into parts that fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from ila_lang.mapping import SizeError
from ir_semantics.graph import Node
from rewrites.mappings.claim import MappingClaim

from .interface import CannotOffload, Part, Reals


def require_elements(node: Node, accelerator: str, *extents: int) -> None:
    """Raises CannotOffload where a tensor of a node has no elements."""
    if 0 in extents:
        raise CannotOffload(
            f"{node.operator} has a tensor without elements, and {accelerator}'s loops run at least once"
        )


def fits(claim: MappingClaim, *shape: int) -> bool:
    """Whether a mapping's domain has sizes for a shape."""
    try:
        claim.mapping.sizes_for(shape)
    except SizeError:
        return False
    return True


def most_that_fit(count: int, fit: Callable[[int], bool]) -> int:
    """The largest number up to ``count`` that fits, where smaller ones fit as well; 0 where none does.

    >>> most_that_fit(100, lambda n: n * n <= 50)
    7
    """
    return bisect_left(range(1, count + 1), True, key=lambda n: not fit(n))


def equal_parts(count: int, most: int) -> list[tuple[int, int]]:
    """0 .. count - 1 in the fewest parts of one size, at most ``most``; the last one may end beyond ``count``.

    >>> equal_parts(10, 4), equal_parts(5, 9)
    ([(0, 4), (4, 8), (8, 12)], [(0, 5)])
    """
    number = -(-count // most)
    size = -(-count // number)
    return [(first, first + size) for first in range(0, count, size)]


def viewed(box: Part, shape: Sequence[int], matrix: Sequence[int]) -> Part:
    """A box of a tensor as one of a view of it, each of whose axes is some axes of the tensor, one after the other.

    Raises ValueError where the view has other axes, or the elements of the box are no box of it.

    >>> viewed(((1, 2), (0, 3), (4, 6), (0, 9)), (2, 3, 8, 9), (6, 72))
    ((3, 6), (36, 54))
    >>> viewed(((0, 16), (0, 32)), (1, 1), (1, 1)), viewed(((2, 4),), (5,), (5, 1))
    (((0, 16), (0, 32)), ((2, 4), (0, 1)))
    """
    axes, spans = list(zip(box, shape, strict=True)), []
    for number, extent in enumerate(matrix):
        start, count, whole, before = 0, 1, 1, len(axes)
        while axes and (len(axes) == before or whole < extent or number == len(matrix) - 1):
            (first, end), of = axes.pop(0)
            if count > 1 and (first, end) != (0, of):
                raise ValueError(f"the box {box} of {tuple(shape)} must be one of {tuple(matrix)}")
            start, count, whole = start * of + first, count * (end - first), whole * of
        if whole != extent:
            break
        spans.append((start, start + count))
    if axes or len(spans) < len(matrix):
        raise ValueError(f"{tuple(matrix)} must be a view of {tuple(shape)}")
    return tuple(spans)


def padded(values: Reals, *part: tuple[int, int]) -> Reals:
    """A part of a tensor along its last axes, with zeros where it ends beyond it."""
    others = values.shape[: values.ndim - len(part)]
    inside = values[(*map(slice, others), *(slice(first, end) for first, end in part))]
    whole = np.zeros([*others, *(end - first for first, end in part)], inside.dtype)
    whole[tuple(map(slice, inside.shape))] = inside
    return whole


def flat(values: Reals, part: Part) -> Reals:
    """A part of samples of a tensor, padded, each as a row of elements."""
    return padded(values, *part).reshape(len(values), -1)
