"""Scalar time of what a run on arrays does, as one number.

A run executes statements one after the other, each for the whole grid.  Whatever happens outside the axes, loops that
run one iteration at a time included, happens in the scalar order, so it is enough to number it.  A time has these
digits, from the most significant: the number of the statement outside all axes, the first axis's counter, the number of
the statement within an iteration of that axis but outside the next axis, the second axis's counter, and so on; the last
bit tells the statement's loads (0) from its store (1).  Two points of the grid are in scalar order as their times are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .regions import Axis, NotParallel

#: Times have at most this many bits.
TIME_BITS = 62
#: Bits that statement numbers get beyond what they needed so far, and bits for axes inside the innermost ones that are
#: known: as many as there is room for, so that few digits turn out too short.
SPARE_BITS = ((6, 12), (4, 8), (2, 4), (2, 0), (0, 0))


class Restart(Exception):
    """Digits were too short; the layout has been mended, and the run has to start again."""


Layout = dict[tuple[str, ...], list[int]]


def without(layout: Layout, counter: str) -> Layout:
    """The layout when the loop of ``counter`` is no axis any more: its statements are numbered with those around it."""
    found: Layout = {}
    for path, (steps, counters) in layout.items():
        if path and path[-1] == counter:
            path, steps, counters = path[:-1], min(steps + counters, TIME_BITS // 4), 0
        else:
            path = tuple(c for c in path if c != counter)
        bits = found.setdefault(path, [0, 0])
        bits[0], bits[1] = max(bits[0], steps), max(bits[1], counters)
    return found


def joined(layouts: Iterable[Layout]) -> Layout | None:
    """A layout for whatever one of these is for; None where its times would be too long."""
    found: Layout = {}
    for layout in layouts:
        for path, bits in layout.items():
            longest = found.setdefault(path, [0, 0])
            longest[:] = map(max, longest, bits)
    return found if not found or Clock(found).length <= TIME_BITS else None


class Clock:
    """The clock of one run.

    ``layout`` has for each path of axes (counters, outermost first) the bits of statement numbers and of the last
    axis's counter; it is lengthened as needed.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.axes: list[Axis] = []
        # of the loops of these axes: the last iteration
        self.lasts: list[int] = []
        self.path: tuple[str, ...] = ()
        self.steps = [0]
        # per path: bits of the statement numbers, and their place; digits of axes below stand to the right
        self.wide: dict[tuple[str, ...], int] = {}
        self.low: dict[tuple[str, ...], int] = {}
        for self.spare, inside in SPARE_BITS:
            self.wide = {path: steps + self.spare for path, (steps, _) in layout.items()}
            self.low = {}
            for path in sorted(layout, key=len, reverse=True):
                low = self.low.setdefault(path, 1 + inside)
                if path:
                    above = self.low.get(path[:-1], 1)
                    self.low[path[:-1]] = max(above, low + self.wide[path] + layout[path][1])
            if not layout or self.length <= TIME_BITS:
                break

    @property
    def length(self) -> int:
        """The number of bits of times."""
        return self.low[()] + self.wide[()]

    def tick(self) -> None:
        """Comes to the next statement."""
        self.steps[-1] += 1

    def open(self, axis: Axis, extent: int) -> None:
        """Enters some iterations of a loop of ``extent`` ones, as an axis."""
        self.axes.append(axis)
        self.lasts.append(extent - 1)
        self.path = (*self.path, axis.counter)
        self.steps.append(0)

    def close(self) -> None:
        """Leaves the axis that was entered last."""
        self.axes.pop()
        self.lasts.pop()
        self.path = self.path[:-1]
        self.steps.pop()

    def times(self, excluded: frozenset[int], last: frozenset[int] = frozenset()) -> Any:
        """The time of the present statement's loads at each point.

        In the dimensions ``excluded`` it is that of the first iteration of the grid, in those of ``last`` that of the
        last.  Times are positive.  Raises :class:`Restart` where a digit does not fit, and :class:`NotParallel` where
        no digits can.
        """
        self._fit()
        total: Any = self.steps[0] << self.low[()]
        for level, axis in enumerate(self.axes, 1):
            path = self.path[:level]
            total = total + (self.steps[level] << self.low[path])
            place = self.low[path] + self.wide[path]
            if axis.dim in last:
                total = total + (axis.last << place)
            elif axis.dim in excluded:
                total = total + (axis.start << place)
            else:
                counter = np.arange(axis.start, axis.last + 1, axis.step, dtype=np.int64) << place
                total = total + counter.reshape((-1,) + (1,) * (len(self.axes) - 1 - axis.dim))
        return total

    def _fit(self) -> None:
        changed = False
        for level, step in enumerate(self.steps):
            path = self.path[:level]
            bits = self.layout.setdefault(path, [0, 0])
            last = self.lasts[level - 1] if level else 0
            long = [step >> self.wide.get(path, 0) > 0, last >> bits[1] > 0]
            if long[0]:
                bits[0] = max(bits[0], step.bit_length())
            if long[1]:
                bits[1] = last.bit_length()
            if path in self.low:
                changed |= any(long)
                continue
            # a loop met for the first time may fit below the statement numbers of the axis around it
            room = self.low[path[:-1]] - 1 - sum(bits) if level else -1
            changed |= room < 0
            self.wide[path] = bits[0] + min(self.spare, max(room, 0))
            self.low[path] = max(1, self.low[path[:-1]] - self.wide[path] - bits[1]) if level else 1
        if changed:
            if Clock(self.layout).length > TIME_BITS:
                # one axis less makes shorter times; what is serial needs no digits
                longest = self.path or max(self.layout, key=self._bits)
                self.layout.clear()
                raise NotParallel(longest[0])
            raise Restart

    def _bits(self, path: tuple[str, ...]) -> int:
        """The number of bits of the digits within the outermost axis of a path."""
        return sum(sum(self.layout.get(path[:level], ())) for level in range(1, len(path) + 1))

    def around(self, axis: Axis) -> int:
        """The number of bits of times to the right of what happens around an open axis."""
        return self.low[self.path[: axis.dim]]

    def culprit(self, before: int, now: int) -> tuple[str, int]:
        """The innermost axis in whose counter two times differ, among the axes that they share, and by how much."""
        found = self.axes[-1].counter, 0
        difference = before ^ now
        for level, axis in enumerate(self.axes, 1):
            above, path = self.path[: level - 1], self.path[:level]
            if difference >> self.low[above] & (1 << self.wide[above]) - 1:
                break
            place, digits = self.low[path] + self.wide[path], (1 << self.layout[path][1]) - 1
            if difference >> place & digits:
                found = axis.counter, abs((before >> place & digits) - (now >> place & digits))
        return found
