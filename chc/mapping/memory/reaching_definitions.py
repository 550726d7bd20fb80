"""Where the value of a cell comes from, proved: the last write before a point of the program.

:mod:`chc.mapping.memory.samples` proposes a write and its iteration.  The obligations that make it a theorem, for all
sizes:

* **happens**: the iteration exists, the write's condition holds, and it comes before the point;
* **same address**: it writes the cell;
* **nothing in between** (:mod:`chc.mapping.memory.kills`): no instance of any write to this memory that writes the
  cell comes after it and before the point.

A cell that no write gave its value keeps what it held before the program; then no instance that writes the cell comes
before the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pysmt.shortcuts as smt

from chc.mapping.program.writes import Schedule, Write
from chc.mapping.unsupported import Unsupported
from ila_lang import BvSort, Expr, free_variables, postorder, resize
from smt_encodings.environment import plain

from .contexts import Scene, before
from .kills import Between
from .layout import At, Layout, Origin, Reader
from .samples import Point, Writers, candidates, digits

__all__ = ["Origins"]


@dataclass
class Origins:
    """Finds and proves origins of cells on one side."""

    layout: Layout
    writers: Writers
    count: int = 0

    @property
    def prefix(self) -> str:
        """What the side is called."""
        return self.layout.prefix

    @property
    def schedule(self) -> Schedule:
        """The side's program."""
        return self.layout.schedule

    def of(
        self, scene: Scene, memory: Expr, reader: Reader, point: Point, likely: Sequence[Expr] = ()
    ) -> Origin | None:
        """The origin of the cell that ``reader`` names, just before ``point``; None if it is as before the program.

        ``likely`` is an iteration that is tried first.
        """
        found = self.writers.last(scene.trials, memory, reader.there(), point)
        self.count += 1
        name = f"{self.prefix} {plain(memory.name)}, {self.count}"
        if found is None:
            for write in self.schedule.writes_to(memory):
                self._nothing_between(scene, name, write, reader, point, None)
            return None
        write, iterations = found
        if scene.trials.evaluate(likely) == iterations:
            at: At = dict(zip(write.counters, likely, strict=True))
        else:
            at = self._witness(scene, write, iterations, reader, point)
        origin = Origin(write, at)
        self._exists(scene, name, origin)
        self._before(scene, name, origin, point)
        self._same_address(scene, name, origin, reader)
        for other in self.schedule.writes_to(memory):
            self._nothing_between(scene, name, other, reader, point, origin)
        return origin

    def nothing_between(
        self, scene: Scene, name: str, write: Write, reader: Reader, point: Point, since: Origin
    ) -> None:
        """Proves that no other write than ``write`` writes a cell after an instance and before a point."""
        for other in self.schedule.writes_to(write.memory):
            if other is not write:
                self._nothing_between(scene, name, other, reader, point, since)

    def numbered(self) -> int:
        """A new number, for names."""
        self.count += 1
        return self.count

    def _witness(
        self, scene: Scene, write: Write, iterations: list[tuple[int, ...]], reader: Reader, point: Point
    ) -> At:
        last = [e - 1 for _, e in write.loops if not set(free_variables(e).values()) & set(write.counters)]
        address = reader.there()
        table = candidates(scene.trials, scene.ranges, [address, *point.counters, *last], write)
        at: dict[Expr, Expr] = {}
        for counter, values in zip(write.counters, zip(*iterations, strict=True), strict=True):
            term = table.get(tuple(values))
            if term is None:
                table = candidates(scene.trials, scene.ranges, _distances(address, write)) | table
                term = table.get(tuple(values))
            if term is None:
                table = digits(scene.trials, address, write) | table
                term = table.get(tuple(values))
            if term is None:
                where = f"{counter.name} of the iteration in which {write.label} writes {write.memory.name}"
                raise Unsupported(f"no term was found for {where}")
            at[counter] = resize(term, 32)
        return at

    # -- obligations --------------------------------------------------------------------------------

    def _group(self, scene: Scene) -> str:
        return f"{self.prefix}: cells{f' in {scene.name}' if scene.name else ''}"

    def _exists(self, scene: Scene, name: str, origin: Origin) -> None:
        meaning = f"{origin.write.label} has the iteration that writes the cell"
        scene.theorem(self._group(scene), f"{name}: happens", origin.exists(), meaning)

    def _before(self, scene: Scene, name: str, origin: Origin, point: Point) -> None:
        order = before(
            origin.write.place,
            [scene.encoding.term(origin.at[c]) for c in origin.write.counters],
            point.place,
            [scene.encoding.term(c) for c in point.counters],
        )
        if not order.is_true():
            scene.proof.follows(
                self._group(scene),
                f"{name}: before",
                scene.encoding.hypotheses,
                order,
                "the write comes before the cell is read",
            )

    def _same_address(self, scene: Scene, name: str, origin: Origin, reader: Reader) -> None:
        left = self.layout.spot(origin.write).instance(scene, origin.write.address, origin.at)
        right = reader.term(scene)
        if left is not right:
            scene.proof.follows(
                self._group(scene),
                f"{name}: same address",
                scene.encoding.hypotheses,
                smt.Equals(left, right),
                "the write's iteration writes exactly the cell that is needed",
            )

    def _nothing_between(
        self, scene: Scene, name: str, other: Write, reader: Reader, point: Point, origin: Origin | None
    ) -> None:
        Between(self.layout, self.writers, scene, self._group(scene), name, other, reader, point, origin).prove()


def _distances(address: Expr, write: Write) -> list[Expr]:
    """By how much parts of an address exceed parts of a write's that no counter moves: where the write begins."""
    counters = set(write.counters)
    begins = [n for n in _words(write.address) if n.args and not counters & set(free_variables(n).values())]
    return [resize(n, 32) - resize(b, 32) for b in begins[-_FEW:] for n in _words(address)[-_FEW:] if n.args]


def _words(term: Expr) -> list[Expr]:
    return [n for n in postorder([term]) if isinstance(n.sort, BvSort) and n.op not in ("const", "load", "apply")]


_FEW = 12
