"""Scalar time of what a run on arrays does, as one number.

A run executes statements one after the other, each for the whole grid.  Whatever happens outside the axes, loops that
run one iteration at a time included, happens in the scalar order, so it is enough to number it.  A time has these
digits, from the most significant: the number of the statement outside all axes, the first axis's counter, the number of
the statement within an iteration of that axis but outside the next axis, the second axis's counter, and so on; the last
bit tells the statement's loads (0) from its store (1).  Two points of the grid are in scalar order as their times are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .regions import Axis, NotParallel

__all__ = ["Clock", "Restart"]

#: Times have at most this many bits.
TIME_BITS = 62


class Restart(Exception):
    """Digits were too short; the layout has been mended, and the run has to start again."""


class Clock:
    """The clock of one run.

    ``layout`` has for each depth of axes the bits of statement numbers and of counters; it is lengthened as needed.
    """

    def __init__(self, layout: list[list[int]]) -> None:
        self.layout = layout
        self.axes: list[Axis] = []
        self.steps = [0]
        self.shifts: list[tuple[int, int]] = []
        at = 1
        for steps, counters in reversed(layout):
            # counter digits stand above the statement digits of their axis
            self.shifts.append((at, at + steps))
            at += steps + counters
        self.shifts.reverse()
        self.width = at

    def tick(self) -> None:
        """Comes to the next statement."""
        self.steps[-1] += 1

    def open(self, axis: Axis) -> None:
        """Enters the iterations of an axis."""
        self.axes.append(axis)
        self.steps.append(0)

    def close(self) -> None:
        """Leaves the axis that was entered last."""
        self.axes.pop()
        self.steps.pop()

    def times(self, excluded: frozenset[int]) -> Any:
        """The time of the present statement's loads at each point, without the counters of some dimensions.

        Raises :class:`Restart` where a digit does not fit, and :class:`NotParallel` where no digits can.
        """
        self._fit()
        total: Any = 0
        for level, step in enumerate(self.steps):
            steps, counters = self.shifts[level]
            total = total + (step << steps)
            if level:
                axis = self.axes[level - 1]
                if axis.dim not in excluded:
                    counter = np.arange(axis.start, axis.start + axis.count, dtype=np.int64) << counters
                    total = total + counter.reshape((-1,) + (1,) * (len(self.axes) - 1 - axis.dim))
        return total

    def _fit(self) -> None:
        changed = False
        for level, step in enumerate(self.steps):
            if level == len(self.layout):
                self.layout.append([0, 0])
                changed = True
            last = self.axes[level - 1].start + self.axes[level - 1].count - 1 if level else 0
            for place, bits in enumerate((step.bit_length(), last.bit_length())):
                if bits > self.layout[level][place]:
                    self.layout[level][place] = bits
                    changed = True
        if not changed:
            return
        if 1 + sum(map(sum, self.layout)) > TIME_BITS:
            # one axis less makes shorter times; what is serial needs no digits
            first = self.axes[0].counter
            self.layout.clear()
            raise NotParallel(first)
        raise Restart

    def culprit(self, before: int, now: int) -> str:
        """The innermost axis in whose counter two times differ, among the axes that they share."""
        found = self.axes[-1].counter
        difference = before ^ now
        for level, axis in enumerate(self.axes, 1):
            if difference >> self.shifts[level - 1][0] & (1 << self.layout[level - 1][0]) - 1:
                break
            if difference >> self.shifts[level][1] & (1 << self.layout[level][1]) - 1:
                found = axis.counter
        return found
