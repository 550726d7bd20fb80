"""PROVED survives concrete runs: before the word is said, both sides are run on a few sizes and data.

A proof may be wrong because its method is, and its certificate then is wrong with it.  Runs share no code with provers.
They prove nothing; a difference shows that the proof, or the method, is wrong, and makes the verdict an ERROR.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from random import Random

from .claims import Runs, Status, Verdict


def corners(literals: Iterable[int], most: int) -> list[int]:
    """Numbers from 0 to ``most`` at which things change: small ones, powers of two, literals, and their neighbours.

    >>> corners([100], 130)
    [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 99, 100, 101, 127, 128, 129, 130]
    """
    middles = {0, most, *literals, *(1 << k for k in range(most.bit_length()))}
    return sorted({n for m in middles for n in (m - 1, m, m + 1) if 0 <= n <= most})


Point = dict[str, int]

MOST_TRIES = 60
"""Random points that are tried for one inside a domain."""


@dataclass(frozen=True)
class Points:
    """Points of a domain, which is a test ``inside``, at the ``corners`` of each of its sizes.

    Where a size has to change with another one, the ``near`` smallest corners of both are tried.
    """

    corners: Mapping[str, Sequence[int]]
    inside: Callable[[Mapping[str, int]], bool]
    near: int = 12

    def lowered(self, point: Point, kept: str = "") -> Point:
        """A point of which no size can be made smaller alone, but for one that is kept."""
        changed = True
        while changed:
            changed = False
            for name in point:
                lower = (v for v in self.corners[name] if v < point[name] and name != kept)
                value = next((v for v in lower if self.inside(point | {name: v})), None)
                if value is not None:
                    point, changed = point | {name: value}, True
        return point

    def above(self, point: Point, name: str) -> Point | None:
        """With the next larger value of one size; where it cannot change alone, another one changes with it."""
        larger = [v for v in self.corners[name] if v > point[name]]
        alone = ({name: value} for value in larger)
        pairs = (
            {name: value, other: with_it}
            for value in larger[: self.near]
            for other in point
            for with_it in self.corners[other][: self.near]
            if other != name
        )
        change = next((c for c in chain(alone, pairs) if self.inside(point | c)), None)
        return None if change is None else point | change

    def largest(self, point: Point, name: str, most: float) -> Point | None:
        """With the largest value of one size, not above ``most``, that is inside with the others as they are."""
        larger = (v for v in reversed(self.corners[name]) if point[name] < v <= most)
        return next((moved for v in larger if self.inside(moved := point | {name: v})), None)

    def drawn(self, points: Sequence[Point], most: Mapping[str, float], random: Random) -> Iterator[Point]:
        """Random points: one of the given ones with a few sizes at corners up to ``most``."""
        names = list(self.corners)
        choices = {n: [v for v in self.corners[n] if v <= most[n]] for n in names}
        for _ in range(MOST_TRIES):
            some = [n for n in random.sample(names, random.randint(1, len(names))) if choices[n]]
            point = random.choice(points) | {n: random.choice(choices[n]) for n in some}
            if self.inside(point):
                yield point


def surviving(verdict: Verdict, run: Callable[[], Runs]) -> Verdict:
    """The verdict with the runs that a PROVED survived; ERROR, with the difference, where it did not.

    The difference is the detail "counterexample", as in a refutation.  Other verdicts stay as they are; nothing is run.
    """
    if verdict.status is not Status.PROVED:
        return verdict
    start = time.perf_counter()
    runs = run()
    seconds = time.perf_counter() - start
    verdict.runs = replace(runs, seconds=seconds)
    verdict.seconds += seconds
    if runs.difference is not None:
        verdict.status = Status.ERROR
        verdict.reason = (
            "every obligation was discharged, and yet a run shows a difference, so that the proof or its method is "
            f"wrong: {runs.shown or runs.difference}"
        )
        verdict.details["counterexample"] = runs.difference
    return verdict
