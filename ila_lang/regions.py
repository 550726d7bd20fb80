"""Memories that a run on arrays stores to, and the proof that the run's order did not matter.

A run on arrays executes each statement for a whole grid of loop iterations before it comes to the next statement,
so accesses happen in another order than in the scalar interpreter.  The result is the same if every two accesses to
one word, of which one is a store, happen in the scalar order.  *Times* are numbers in that order, and each word keeps
the times of its last store and load; a store or load that comes too late raises :class:`NotParallel`.

A loop whose iterations all use the same addresses of a memory may still be a grid axis: the memory then gets one copy
for each iteration (a *level*), as if each iteration had a private memory.  That is right if no iteration loads a word
that an iteration stores, before it stores it itself; when the loop ends, the last iteration's words go to the level
below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "NotParallel", "Region"]

Words = NDArray[Any]
Times = Callable[[frozenset[int]], Any]

#: Copies of a memory may have this many bytes in all.
MOST_BYTES = 1 << 26


class NotParallel(Exception):
    """The loop with this counter cannot be an axis in this run."""

    def __init__(self, counter: str) -> None:
        super().__init__(counter)
        self.counter = counter


@dataclass(frozen=True)
class Axis:
    """A loop that is a dimension of the grid: its counter runs from ``start`` over ``count`` values."""

    counter: str
    dim: int
    start: int
    count: int


class _Level:
    """One copy of the memory for each iteration of an axis (and of the axes of the levels below)."""

    def __init__(self, axis: Axis | None, words: Words, checked: bool) -> None:
        size = words.shape[-1]
        self.axis = axis
        self.words = words
        # per word: set in this iteration; loaded in this iteration before it was set
        self.defined = np.zeros(size, bool)
        self.passed = np.zeros(size, bool)
        self.written = np.full(size, -1) if checked else None
        self.read = np.full(size, -1) if checked else None


class Region:
    """A memory during a run.

    ``times`` gives the time of the present statement for the whole grid, without the counters of given dimensions, as
    an even number (the statement's loads; the next number is its store); None where the order is known to be right.
    ``culprit`` names the loop to blame for two times in the wrong order.
    """

    def __init__(self, words: Words, times: Times | None, culprit: Callable[[int, int], str]) -> None:
        self.words = words
        self.times = times
        self.culprit = culprit
        self.levels = [_Level(None, words, times is not None)]
        self.excluded: frozenset[int] = frozenset()
        self.depth = 0

    def enter(self, axis: Axis) -> None:
        """Begins a loop whose iterations get private copies."""
        shape = (*self.levels[-1].words.shape[:-1], axis.count, len(self.words))
        if np.prod(shape, dtype=np.int64) * self.words.itemsize > MOST_BYTES:
            raise NotParallel(axis.counter)
        self.levels.append(_Level(axis, np.empty(shape, self.words.dtype), self.times is not None))
        self.excluded |= {axis.dim}

    def leave(self) -> None:
        """Ends the loop that was entered last: its last iteration's words stay."""
        top = self.levels.pop()
        below = self.levels[-1]
        assert top.axis is not None
        self.excluded -= {top.axis.dim}
        set_words = np.flatnonzero(top.defined)
        if below.axis is not None:
            if below.passed[set_words].any():
                raise NotParallel(below.axis.counter)
            below.defined[set_words] = True
        if top.written is not None and below.written is not None and below.read is not None:
            times = top.written[set_words]
            self._in_order(below.written[set_words], times)
            self._in_order(below.read[set_words], times)
            below.written[set_words] = times
        below.words[..., set_words] = top.words[..., -1, :][..., set_words]

    def load(self, address: Any, mask: Words | None, depth: int) -> Any:
        """The words at ``address`` (a number, or an array over the grid); ``mask`` says which points are active.

        ``depth`` is the number of axes of the grid, which all arrays have.
        """
        self.depth = depth
        return self._load(len(self.levels) - 1, address, mask)

    def _load(self, at: int, address: Any, mask: Words | None) -> Any:
        level = self.levels[at]
        if level.axis is None:
            self._check_load(level, address, mask)
            found = level.words[address]
            return found.astype(np.int64) if isinstance(found, np.ndarray) else int(found)
        defined = level.defined[address]
        if not np.any(defined):
            level.passed[address if mask is None else _active(mask, address)[0]] = True
            return self._load(at - 1, address, mask)
        self._check_load(level, address, mask)
        private = level.words[(*self._iterations(at), address)].astype(np.int64)
        if np.all(defined):
            return private
        rest = ~defined if mask is None else mask & ~defined
        level.passed[_active(rest, address)[0]] = True
        return np.where(defined, private, self._load(at - 1, address, rest))

    def store(self, address: Any, value: Any, mask: Words | None, depth: int) -> None:
        """Sets the words at ``address``, where active."""
        self.depth = depth
        level = self.levels[-1]
        if level.written is not None and level.read is not None and self.times is not None:
            times = self.times(self.excluded) + 1
            where, when = _active(mask, address, times, shape=np.shape(times))
            self._in_order(level.written[where], when)
            self._in_order(level.read[where], when)
            level.written[where] = when
            self._in_order(level.written[where], when, equal=True)
        if level.axis is None:
            if mask is None:
                if isinstance(value, np.ndarray) and np.shape(address) != value.shape:
                    address, value = np.broadcast_arrays(address, value)
                level.words[address] = value
            else:
                where, what = _active(mask, address, value)
                level.words[where] = what
            return
        for other in self.levels[1:]:
            assert other.axis is not None
            if mask is not None and mask.shape[other.axis.dim] != 1:
                raise NotParallel(other.axis.counter)
        where = address if mask is None else _active(mask, address)[0]
        if np.any(level.passed[where]):
            raise NotParallel(level.axis.counter)
        level.defined[where] = True
        iterations = self._iterations(len(self.levels) - 1)
        if mask is None:
            level.words[(*iterations, address)] = value
            return
        *index, what = _active(mask, *iterations, address, value)
        level.words[tuple(index)] = what

    def _iterations(self, at: int) -> list[Words]:
        """Index arrays of the levels up to ``at``: each iteration uses its own copy."""
        found = []
        for level in self.levels[1 : at + 1]:
            assert level.axis is not None
            shape = [1] * self.depth
            shape[level.axis.dim] = level.axis.count
            found.append(np.arange(level.axis.count).reshape(shape))
        return found

    def _check_load(self, level: _Level, address: Any, mask: Words | None) -> None:
        if level.written is None or level.read is None or self.times is None:
            return
        times = self.times(self.excluded)
        where, when = _active(mask, address, times)
        self._in_order(level.written[where], when)
        np.maximum.at(level.read, where, when)

    def _in_order(self, before: Any, now: Any, *, equal: bool = False) -> None:
        wrong = before != now if equal else before >= now
        if np.any(wrong):
            first = int(np.argmax(wrong))
            pair = (int(np.ravel(before)[first]), int(np.ravel(np.broadcast_to(now, np.shape(before)))[first]))
            raise NotParallel(self.culprit(*pair))


def _active(mask: Words | None, *arrays: Any, shape: tuple[int, ...] = ()) -> list[Words]:
    """The values of ``arrays`` at the active points of their common grid, each in one dimension."""
    if mask is None:
        grid = np.broadcast_shapes(shape, *(np.shape(a) for a in arrays))
        return [np.broadcast_to(a, grid).ravel() for a in arrays]
    grid = np.broadcast_shapes(shape, mask.shape, *(np.shape(a) for a in arrays))
    active = np.broadcast_to(mask, grid)
    return [np.broadcast_to(a, grid)[active] for a in arrays]
