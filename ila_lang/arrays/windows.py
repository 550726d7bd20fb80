"""Places of words in an array; where they are regular, a view of the array instead of a list of indices.

Addresses of a kernel are mostly sums of multiples of counters.  Then the words of a whole grid are a view with one
stride for each axis (or for each digit of it, where a counter is split into a quotient and a remainder), which NumPy
copies much faster than it collects words by their indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]


def narrowed(values: Any) -> Any:
    """An array without the extent of dimensions along which nothing changes; a number where nothing changes at all."""
    if not isinstance(values, np.ndarray):
        return values
    for dim, size in enumerate(values.shape):
        if size > 1:
            first = values[(slice(None),) * dim + (slice(0, 1),)]
            if (values == first).all():
                values = first
    return values.reshape(-1)[0].item() if values.size == 1 else values


class Window:
    """Words of an array, at an ``index`` of arrays over one grid.

    ``words`` is the array where it is known, else :meth:`read` and :meth:`write` are given one that is ``like`` it: of
    the same shape and type, in C order.
    """

    def __init__(self, words: Words | None, like: Words, index: tuple[Any, ...], regular: bool = True) -> None:
        steps = np.cumprod([1, *like.shape[:0:-1]], dtype=np.int64)[::-1].tolist()
        self.flat: Words = np.asarray(sum(np.asarray(i) * s for i, s in zip(index, steps, strict=True)), np.intp)
        itemsize = like.itemsize
        self.words = words if words is None else words.reshape(-1)
        self.shape = self.flat.shape
        self.digits: tuple[int, ...] | None = None
        found = _regular(self.flat) if regular and like.flags.c_contiguous else None
        if found is not None:
            self.offset = int(self.flat.reshape(-1)[0]) * itemsize
            self.digits = tuple(n for n, _ in found)
            self.strides = tuple(s * itemsize for _, s in found)
            self.injective = _injective(found)
            self.nbytes = 0
            self.flat = np.empty(0, np.intp)
            self.view = None if self.words is None else self._look(self.words)
        else:
            self.nbytes = self.flat.nbytes

    def _look(self, words: Words) -> Words:
        assert self.digits is not None
        return np.ndarray(self.digits, words.dtype, words, self.offset, self.strides)

    def read(self, memory: Words) -> Words:
        """A copy of the words, of the array's type."""
        words = memory if self.words is None else self.words
        if self.digits is None:
            return words.take(self.flat)
        view = self._look(words) if self.view is None else self.view
        return view.copy().reshape(self.shape)

    def write(self, memory: Words, value: Any) -> None:
        """Stores a number, or an array that can be broadcast to the grid; no word may occur twice."""
        words = memory if self.words is None else self.words
        if self.digits is None:
            words[self.flat] = value
            return
        view = self._look(words) if self.view is None else self.view
        if isinstance(value, np.ndarray) and self.digits != self.shape:
            value = np.broadcast_to(value, self.shape).reshape(self.digits)
        view[...] = value


class Write:
    """A store of values of one shape to places of an array (see :class:`Window`), where ``mask`` holds."""

    def __init__(
        self, words: Words | None, like: Words, index: tuple[Any, ...], mask: Words | None, shape: tuple[int, ...]
    ) -> None:
        self.grid = np.broadcast_shapes(shape, *(np.shape(i) for i in index), () if mask is None else mask.shape)
        arrays = [np.broadcast_to(i, self.grid) for i in index]
        self.box: tuple[slice, ...] | None = None
        self.chosen: Words | None = None
        if mask is not None:
            active = np.broadcast_to(mask, self.grid)
            self.box = _box(active)
            if self.box is None:
                self.chosen = np.flatnonzero(active)
                arrays = [a.reshape(-1)[self.chosen] for a in arrays]
            else:
                arrays = [a[self.box] for a in arrays]
        source = like if words is None else words
        self.window = Window(words, source, tuple(arrays))
        if self.window.digits is not None and not self.window.injective:
            self.window = Window(words, source, tuple(arrays), regular=False)
        self.nbytes = self.window.nbytes + (0 if self.chosen is None else self.chosen.nbytes)

    def write(self, memory: Words, value: Any) -> None:
        """Stores a number or an array."""
        if isinstance(value, np.ndarray):
            if self.box is not None:
                value = np.broadcast_to(value, self.grid)[self.box]
            elif self.chosen is not None:
                value = np.broadcast_to(value, self.grid).reshape(-1).take(self.chosen)
        self.window.write(memory, value)


def _box(active: NDArray[np.bool_]) -> tuple[slice, ...] | None:
    """The range of each dimension, where all points within these ranges are active, and no others."""
    found = []
    for dim in range(active.ndim):
        places = np.flatnonzero(active.any(axis=tuple(d for d in range(active.ndim) if d != dim)))
        found.append(slice(int(places[0]), int(places[-1]) + 1) if places.size else slice(0, 0))
    box = tuple(found)
    return box if active[box].all() else None


def _regular(flat: Words) -> list[tuple[int, int]] | None:
    """Sizes and strides of the digits of each dimension, where places are a sum of what each dimension adds."""
    if not flat.size:
        return None
    total: Any = flat[(0,) * flat.ndim]
    found: list[tuple[int, int]] = []
    for dim in range(flat.ndim):
        along = flat[(0,) * dim + (slice(None),) + (0,) * (flat.ndim - dim - 1)]
        steps = along - along[0]
        digits = _digits(steps)
        if digits is None:
            return None
        found += digits
        total = total + steps.reshape((-1,) + (1,) * (flat.ndim - dim - 1))
    return found if np.array_equal(np.broadcast_to(total, flat.shape), flat) else None


def _digits(steps: Words) -> list[tuple[int, int]] | None:
    """Sizes and strides, the most significant first, of one dimension that begins at 0."""
    found: list[tuple[int, int]] = []
    while steps.size > 1:
        stride = int(steps[1])
        wrong = np.flatnonzero(steps != np.arange(steps.size) * stride)
        size = int(wrong[0]) if wrong.size else steps.size
        if steps.size % size or len(found) == 3:
            return None
        first, rest = steps[:size], steps[::size]
        if not np.array_equal(np.add.outer(rest, first).reshape(-1), steps):
            return None
        steps = rest
        found.insert(0, (size, stride))
    return found or [(1, 0)]


def _injective(digits: list[tuple[int, int]]) -> bool:
    """Whether no two places are the same."""
    reach = 0
    for stride, size in sorted((abs(s), n) for n, s in digits if n > 1):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True
