"""A limit of time and memory on runs of the interpreter.

A program may loop for as long, and write as much, as its registers say, and in a search they hold any value.  Loops ask
for their iterations here (:attr:`ila_lang.Machine.steps`), so that a run ends soon after its time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

CHUNK = 512
"""Iterations between two looks at the clock; the longest bodies take about 0.1 ms."""

MOST_WORDS = 1_000_000
"""Words that a run may hold; with what is noted of each, they take about 450 bytes."""


class BudgetExceeded(Exception):
    """A run that takes more time or memory than it may."""


class Budget:
    """Lets runs go on until ``deadline`` (of ``time.perf_counter``), while ``words()`` says how much they hold."""

    def __init__(self, deadline: float, words: Callable[[], int]) -> None:
        self.deadline, self.words = deadline, words
        self._left = CHUNK

    def steps(self, iterations: int) -> Iterable[int]:
        """The iterations 0, 1, ... of a loop; raises BudgetExceeded there, or while they are gone through."""
        self._left -= iterations + 1
        if self._left < 0:
            self.check()
            self._left = CHUNK
        return range(iterations) if iterations <= CHUNK else self._watched(iterations)

    def _watched(self, iterations: int) -> Iterator[int]:
        for first in range(0, iterations, CHUNK):
            self.check()
            yield from range(first, min(first + CHUNK, iterations))

    def check(self) -> None:
        """Raises BudgetExceeded where the time is over or the words are too many."""
        if time.perf_counter() > self.deadline:
            raise BudgetExceeded("the run takes longer than it may")
        if self.words() > MOST_WORDS:
            raise BudgetExceeded(f"the run holds more than {MOST_WORDS} words")
