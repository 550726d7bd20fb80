"""Cutting sizes into parts that fit."""

from __future__ import annotations

import numpy as np

from .interface import Reals


def equal_parts(count: int, most: int) -> list[tuple[int, int]]:
    """0 .. count - 1 in the fewest parts of one size, at most ``most``; the last one may end beyond ``count``.

    >>> equal_parts(10, 4), equal_parts(5, 9)
    ([(0, 4), (4, 8), (8, 12)], [(0, 5)])
    """
    number = -(-count // most)
    size = -(-count // number)
    return [(first, first + size) for first in range(0, count, size)]


def padded(values: Reals, *part: tuple[int, int]) -> Reals:
    """A part of a tensor, with zeros where it ends beyond it."""
    inside = values[tuple(slice(first, end) for first, end in part)]
    missing = [(0, end - first - extent) for (first, end), extent in zip(part, inside.shape, strict=True)]
    return np.pad(inside, missing)
