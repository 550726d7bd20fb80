"""Sizes at which programs are tried: a mapping's own samples, and points that are drawn from its size domain.

Which write gives a cell its value may differ between sizes.  That must show, whatever an author's samples show.  So
sizes go up from the smallest in the steps that the domain allows, together and at random; literals of the programs and
their neighbours are tried, too.  What takes long to execute is left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from ila_lang.mapping import TensorMapping
from smt_encodings.runs import Point, Points
from smt_encodings.sizes import literals_of, points_of

from .candidates import MOST_CANDIDATES
from .samples import Sampler

Sizes: TypeAlias = tuple[int, ...]
"""Values of a mapping's parameters, in order."""

MOST_STEPS = 9
"""Numbers that are tried of each size, from the smallest upwards: a block of four twice, with a rest."""

LARGEST = 66
"""The largest literal that a size is compared with by trying it, and its neighbours."""

MOST_DRAWN = 32
"""Sizes that are drawn beside a mapping's own samples."""

MOST_IN_CASES = 60
"""Sizes that are tried beside these in a proof by cases."""

MOST_SPARE = 400
"""Sizes that stand by for cases which few of these are in."""

MOST_WORK = 4_000
"""Iterations of all writes of a program at sizes that are drawn."""


@dataclass
class Tried:
    """The sizes at which a mapping's programs are tried."""

    mapping: TensorMapping
    own: list[Sizes]
    drawn: list[Sizes]
    domain: Points
    samplers: Sequence[Sampler] = ()
    """Both sides' programs, which are executed."""

    @staticmethod
    def of(mapping: TensorMapping) -> Tried:
        """A mapping's own sizes, and some from its domain."""
        random, domain = Random(0), points_of(mapping)
        samples, literals = mapping.sample_sizes(random), literals_of(mapping)
        own, drawn = (
            [tuple(p[n] for n in mapping.parameters) for p in points]
            for points in (samples, _drawn(domain, literals, samples, random))
        )
        new = [row for row in dict.fromkeys(drawn) if row not in own]
        return Tried(mapping, list(dict.fromkeys(own)), new[:MOST_DRAWN], domain)

    @property
    def points(self) -> list[Point]:
        """All of them, by the names of parameters."""
        return [self._point(row) for row in (*self.own, *self.drawn)]

    def quick(self) -> list[Sizes]:
        """The mapping's own, and those that were drawn and are executed quickly.

        What is not has one size alone as it was drawn, and the others as small as they can be, for each size in turn.
        """
        rows = dict.fromkeys(self.own)
        for row in self.drawn:
            small = (self.domain.lowered(self._point(row), name) for name in self.mapping.parameters)
            rows |= dict.fromkeys(
                [row] if self._quick(row) else filter(self._quick, (tuple(p.values()) for p in small))
            )
        return list(rows)[: len(self.own) + MOST_DRAWN]

    def recombined(self) -> tuple[list[Sizes], list[Sizes]]:
        """Sizes whose numbers occur in these, the smaller ones, with these; and spare ones, at random.

        A case of a proof needs samples in which everything else varies.
        """
        sizes, random = self.quick(), Random(0)
        columns = [sorted(set(column)) for column in zip(*sizes, strict=True)]
        rows: Iterable[Sizes] = itertools.product(*columns)
        if math.prod(map(len, columns)) > MOST_CANDIDATES:
            rows = (tuple(map(random.choice, columns)) for _ in range(MOST_CANDIDATES))
        small = sorted({*rows} - {*sizes}, key=lambda r: (math.prod(r), r))
        new, spare = (
            list(itertools.islice((r for r in order if self.mapping.holds(self._point(r)) and self._quick(r)), most))
            for order, most in ((small, MOST_IN_CASES), (random.sample(small, len(small)), MOST_SPARE))
        )
        return [*sizes, *new], spare

    def _point(self, row: Sizes) -> Point:
        return dict(zip(self.mapping.parameters, row, strict=True))

    def _quick(self, sizes: Sizes) -> bool:
        parameters = tuple(self.mapping.parameters.values())
        return all(sampler.takes(parameters, sizes, MOST_WORK) for sampler in self.samplers)


def _drawn(domain: Points, literals: Set[int], own: Sequence[Point], random: Random) -> list[Point]:
    """Points of a domain near the smallest ones."""
    least = domain.lowered(min(own, key=lambda sizes: math.prod(sizes.values())))
    if not domain.inside(least):
        return []
    near: dict[str, list[int]] = {}
    visited, alone = [least], list[Point]()
    for name, value in least.items():
        above = domain.above(least, name)
        numbers = {sizes[name] for sizes in own}
        if above is not None:
            visited.append(above)
            step = math.gcd(*(v - value for v in (above[name], *numbers)))
            numbers |= {value + k * step for k in range(MOST_STEPS)}
        near[name] = sorted(numbers)
        beside = {v for k in literals for v in (k - 1, k, k + 1) if max(numbers) < v <= LARGEST}
        alone += [least | {name: v} for v in sorted(beside)]
    alone = [point for point in alone if domain.inside(point)]
    random.shuffle(alone)
    return [*visited, *_together(domain, near, [*visited, *own], random), *alone]


def _together(domain: Points, near: Mapping[str, Sequence[int]], known: Sequence[Point], random: Random) -> list[Point]:
    """Points at which all sizes are others than in known ones, as far as the domain allows; each number occurs."""
    columns = {name: random.sample(numbers, len(numbers)) for name, numbers in near.items()}
    rows = []
    for row in range(max(map(len, columns.values()))):
        point = random.choice(known)
        for name in random.sample(list(columns), len(columns)):
            moved = point | {name: columns[name][row % len(columns[name])]}
            point = moved if domain.inside(moved) else point
        rows.append(point)
    return rows
