"""Memories that a run on arrays stores to, and the proof that the run's order did not matter.

A run on arrays executes each statement for a whole grid of loop iterations before it comes to the next statement,
so accesses happen in another order than in the scalar interpreter.  The result is the same if every two accesses to
one word, of which one is a store, happen in the scalar order.  *Times* are numbers in that order, and each word keeps
the times of its last store and load; a store or load that comes too late raises :class:`NotParallel`.

A loop whose iterations all use the same addresses of a memory may still be a grid axis: the memory then gets one copy
for each iteration (a *level*), as if each iteration had a private memory.  That is right if no iteration loads a word
that an iteration stores, before it stores it itself, and if no word of a copy is loaded when the loop around has gone
on; when the loop ends, the last iteration's words go to the level below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]
Times = Callable[[frozenset[int], frozenset[int]], Any]
Culprit = Callable[[int, int], tuple[str, int]]

#: Copies of the memories of a loop may have this many bytes in all.
MOST_BYTES = 1 << 24


class NotParallel(Exception):
    """The loop with this counter cannot be an axis in this run.

    ``distance`` is the difference of its values at two iterations that were in the wrong order; 0 if none were.
    """

    def __init__(self, counter: str, distance: int = 0) -> None:
        super().__init__(counter)
        self.counter = counter
        self.distance = distance


@dataclass(frozen=True)
class Axis:
    """A loop that is a dimension of the grid: its counter has ``count`` values, ``start`` and so on by ``step``."""

    counter: str
    dim: int
    start: int
    count: int
    step: int = 1

    @property
    def last(self) -> int:
        """The last value."""
        return self.start + self.step * (self.count - 1)


class _Stamps:
    """A time for each word, 0 at first, in a window that grows to the addresses in use."""

    def __init__(self) -> None:
        self.low = 0
        self.times = np.zeros(0, np.int64)

    def get(self, address: Words) -> Words:
        """The times of these words."""
        places = self._places(address)
        return self.times[places]

    def set(self, address: Words, times: Words) -> None:
        """Sets the times of these words."""
        places = self._places(address)
        self.times[places] = times

    def raise_to(self, address: Words, times: Words) -> None:
        """Sets the times of these words, where they are later."""
        places = self._places(address)
        np.maximum.at(self.times, places, times)

    def _places(self, address: Words) -> Words:
        if not address.size:
            return address
        low, high = int(address.min()), int(address.max()) + 1
        if not self.times.size:
            self.low = low
        end = self.low + len(self.times)
        if low < self.low or high > end:
            room = max(high, end) - min(low, self.low)
            first = max(0, low - room // 4) if low < self.low else self.low
            grown = np.zeros(max(high + room // 4, end) - first, np.int64)
            grown[self.low - first : end - first] = self.times
            self.low, self.times = first, grown
        return address - self.low


def words_of(memory: Words, address: Any) -> Any:
    """Words of a memory as int64, or a number."""
    found = memory[address]
    return found.astype(np.int64) if isinstance(found, np.ndarray) else int(found)


@dataclass(frozen=True, eq=False)
class Piece:
    """Words at ``index`` of a copy (None: of the memory itself), where ``holds`` (None: everywhere)."""

    words: Words | None
    index: Any
    holds: Words | None

    def read(self, memory: Words, otherwise: Any) -> Any:
        """The words as int64, or a number; ``otherwise`` where they do not hold."""
        found = words_of(memory if self.words is None else self.words, self.index)
        return found if self.holds is None else np.where(self.holds, found, otherwise)


def read_pieces(pieces: list[Piece], memory: Words) -> Any:
    """The words of a load; the last piece holds everywhere."""
    found: Any = None
    for piece in reversed(pieces):
        found = piece.read(memory, found)
    return found


@dataclass(frozen=True, eq=False)
class Place:
    """Where a store goes: ``index`` of a copy or of the memory; of a value that fills ``grid``, ``active`` counts."""

    words: Words | None
    index: tuple[Any, ...]
    grid: tuple[int, ...] | None
    active: Words | None

    def write(self, memory: Words, value: Any) -> None:
        """Stores a number or an array over the grid."""
        if self.grid is not None:
            value = np.broadcast_to(value, self.grid)
            if self.active is not None:
                value = value[self.active]
        (memory if self.words is None else self.words)[self.index] = value


@dataclass(frozen=True, eq=False)
class Move:
    """The last iteration's words that stay when a loop ends, from a copy to the level below (None: the memory)."""

    target: Words | None
    source: Words
    addresses: Words

    @cached_property
    def places(self) -> Words | slice:
        """The addresses, as a range where they are one."""
        found = self.addresses
        whole = found.size > 0 and int(found[-1]) - int(found[0]) == found.size - 1
        return slice(int(found[0]), int(found[-1]) + 1) if whole else found

    def apply(self, memory: Words) -> None:
        """Moves the words."""
        target = memory if self.target is None else self.target
        target[..., self.places] = self.source[..., -1, :][..., self.places]


class _Level:
    """One copy of the memory for each iteration of an axis (and of the axes of the levels below)."""

    def __init__(self, axis: Axis | None, words: Words) -> None:
        size = words.shape[-1] if axis is not None else 0
        self.axis = axis
        self.words = words
        # per word: set in this iteration; loaded in this iteration before it was set
        self.defined = np.zeros(size, bool)
        self.passed = np.zeros(size, bool)
        self.written = _Stamps()
        self.read = _Stamps()


class Region:
    """A memory during a run.

    ``times`` gives the time of the present statement for the whole grid, without the counters of given dimensions, at
    the last iteration of others, as an even number (the statement's loads; the next number is its store); None where
    the order is known to be right.
    ``culprit`` names the loop to blame for two times in the wrong order, and how far apart they are; ``around`` gives
    the number of bits of times to the right of what happens around an axis.
    """

    def __init__(self, words: Words, times: Times | None, culprit: Culprit, around: Callable[[Axis], int]) -> None:
        self.words = words
        self.times = times
        self.culprit = culprit
        self.around = around
        self.levels = [_Level(None, words)]
        # what stores replaced, to take them back
        self.log: list[tuple[Any, Any]] = []
        self.logged = times is not None
        self.excluded: frozenset[int] = frozenset()
        self.depth = 0
        # copies of loops that have ended, for others of the same shape
        self.spare: dict[tuple[int, ...], list[Words]] = {}

    @property
    def bytes(self) -> int:
        """The bytes of one more copy for each iteration around."""
        return self.levels[-1].words.nbytes

    def enter(self, axis: Axis) -> None:
        """Begins a loop whose iterations get private copies."""
        shape = (*self.levels[-1].words.shape[:-1], axis.count, len(self.words))
        spare = self.spare.get(shape)
        self.levels.append(_Level(axis, spare.pop() if spare else np.empty(shape, self.words.dtype)))
        self.excluded |= {axis.dim}

    def leave(self) -> Move:
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
        if self.times is not None:
            times = top.written.get(set_words)
            self._in_order(below, set_words, times)
            below.written.set(set_words, times)
        if below.axis is None:
            self._remember(set_words)
        move = Move(None if below.axis is None else below.words, top.words, set_words)
        move.apply(self.words)
        self.spare.setdefault(top.words.shape, []).append(top.words)
        return move

    def undo(self) -> None:
        """Takes back all stores that were remembered."""
        for address, words in reversed(self.log):
            self.words[address] = words
        self.log.clear()

    def _remember(self, address: Any) -> None:
        if self.logged:
            self.log.append((address, self.words[address].copy()))

    def load(self, address: Any, mask: Words | None, depth: int) -> list[Piece]:
        """Where the words at ``address`` come from (a number, or an array over the grid).

        ``mask`` says which points are active; ``depth`` is the number of axes of the grid, which all arrays have.
        """
        self.depth = depth
        pieces: list[Piece] = []
        for at in range(len(self.levels) - 1, 0, -1):
            level = self.levels[at]
            defined = level.defined[address]
            if np.any(defined):
                self._check_load(level, address, mask)
                index = (*self._iterations(at), address)
                if np.all(defined):
                    return [*pieces, Piece(level.words, index, None)]
                pieces.append(Piece(level.words, index, defined))
                mask = ~defined if mask is None else mask & ~defined
            level.passed[address if mask is None else _active(mask, address)[0]] = True
        self._check_load(self.levels[0], address, mask)
        return [*pieces, Piece(None, address, None)]

    def target(self, address: Any, depth: int) -> tuple[Words | None, tuple[Any, ...]]:
        """Where a store at ``address`` goes: a copy (None: the memory itself), and the index in it."""
        self.depth = depth
        level = self.levels[-1]
        return None if level.axis is None else level.words, (*self._iterations(len(self.levels) - 1), address)

    def store(self, address: Any, value: Any, mask: Words | None, depth: int) -> Place:
        """Sets the words at ``address``, where active, and says where that was."""
        self.depth = depth
        level = self.levels[-1]
        if self.times is not None:
            times = self.times(self.excluded, frozenset()) + 1
            where, when = _active(mask, address, times, shape=np.shape(times))
            self._in_order(level, where, when)
            level.written.set(where, when)
            stamps = level.written.get(where)
            self._blame(stamps != when, stamps, when)
        index = [*self._iterations(len(self.levels) - 1), address]
        if level.axis is not None:
            for other in self.levels[1:]:
                assert other.axis is not None
                if mask is not None and mask.shape[other.axis.dim] != 1:
                    raise NotParallel(other.axis.counter)
            where = address if mask is None else _active(mask, address)[0]
            if np.any(level.passed[where]):
                raise NotParallel(level.axis.counter)
            level.defined[where] = True
        shapes = [np.shape(i) for i in index]
        place = Place(None if level.axis is None else level.words, tuple(index), None, None)
        if mask is not None:
            grid = np.broadcast_shapes(mask.shape, np.shape(value), *shapes)
            place = Place(place.words, tuple(_active(mask, *index, shape=grid)), grid, np.broadcast_to(mask, grid))
        elif level.axis is None and np.shape(value) and np.shape(value) != shapes[0]:
            grid = np.broadcast_shapes(np.shape(value), *shapes)
            place = Place(None, (np.broadcast_to(address, grid),), grid, None)
        if level.axis is None:
            self._remember(place.index[0])
        place.write(self.words, value)
        return place

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
        if self.times is None:
            return
        # along axes that the address does not depend on, the first and the last of its times tell all
        shape = np.shape(address) or (1,) * self.depth
        same = [mask is None or mask.shape[d] == 1 for d in range(self.depth)]
        free = frozenset(d for d in range(self.depth) if shape[d] == 1 and same[d]) - self.excluded
        where, when = _active(mask, address, self.times(self.excluded | free, frozenset()))
        stamps = level.written.get(where)
        self._blame(stamps >= when, stamps, when)
        if free:
            where, when = _active(mask, address, self.times(self.excluded, free))
            stamps = level.written.get(where)
        if level.axis is not None:
            # a later iteration of the loops around would see the word of the last copy, in every copy
            bits = self.around(level.axis)
            before, now = stamps >> bits << bits, when >> bits << bits
            self._blame((stamps > 0) & (before < now), before, now)
        level.read.raise_to(where, when)

    def _in_order(self, level: _Level, where: Words, when: Words) -> None:
        """Refuses a store at these times to words that were loaded or stored at later ones."""
        for stamps in (level.written, level.read):
            before = stamps.get(where)
            self._blame(before >= when, before, when)

    def _blame(self, wrong: NDArray[np.bool_], before: Words, now: Words) -> None:
        """Refuses the first of the wrong pairs of times, if there is one."""
        if np.any(wrong):
            first = int(np.argmax(wrong))
            raise NotParallel(*self.culprit(int(before[first]), int(now[first])))


def _active(mask: Words | None, *arrays: Any, shape: tuple[int, ...] = ()) -> list[Words]:
    """The values of ``arrays`` at the active points of their common grid, each in one dimension."""
    if mask is None:
        grid = np.broadcast_shapes(shape, *(np.shape(a) for a in arrays))
        return [np.broadcast_to(a, grid).ravel() for a in arrays]
    grid = np.broadcast_shapes(shape, mask.shape, *(np.shape(a) for a in arrays))
    active = np.broadcast_to(mask, grid)
    return [np.broadcast_to(a, grid)[active] for a in arrays]
