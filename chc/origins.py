"""Where the value of a cell comes from, proved: the last write before a point of the program.

:mod:`chc.writers` proposes a write and its iteration.  The obligations that make it a theorem, for all sizes:

* **happens**: the iteration exists, the write's condition holds, and it comes before the point;
* **same address**: it writes the cell;
* **nothing in between**: no instance of any write to this memory that writes the cell comes after it and before the
  point.

A cell that no write gave its value keeps what it held before the program; then no instance that writes the cell comes
before the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from ila_lang import BvSort, Expr, all_of, free_variables, postorder, resize, substitute
from smt_encodings.discharge import conjuncts
from smt_encodings.integers import NotLinearizable, is_linear

from .collisions import Collisions
from .commands import Unsupported
from .context import Proof
from .exact import less
from .injectivity import injectivity_steps
from .polynomials import Step, corresponding, linearised
from .ranges import quick
from .scenes import Scene, Spot, before
from .systems import Track
from .writers import Point, Writers, candidates, digits
from .writes import Loops, Schedule, Write

__all__ = ["Origin", "Origins", "Reader"]

At = Mapping[Expr, Expr]


@dataclass(frozen=True)
class Reader:
    """An address as it stands in a program: an expression over the counters of a spot, at the iteration ``at``.

    Without a spot the address is over the coordinates of the scene.
    """

    address: Expr
    spot: Spot | None
    at: At

    def there(self) -> Expr:
        """The address over the coordinates of the scene."""
        return substitute(self.address, {c: resize(self.at[c], c.width) for c in self.at})

    def term(self, scene: Scene) -> FNode:
        """The address as an integer term of the scene."""
        if self.spot is None:
            term = scene.encoding.term(self.address)
            scene.proof.fits(scene.encoding, f"a cell in {scene.name}" if scene.name else "the output cell")
            return term
        # What holds at every iteration may not suffice, such as for "the timestep before"; here more is known.  Where
        # iterations divide by sizes, it is simpler here, too.
        forms = [self._instance, self._direct]
        for form in reversed(forms) if self.spot.quotients() else forms:
            try:
                return form(scene, self.spot)
            except NotLinearizable as error:
                problem = error
        raise problem

    def _instance(self, scene: Scene, spot: Spot) -> FNode:
        return spot.instance(scene, self.address, self.at)

    def _direct(self, scene: Scene, spot: Spot) -> FNode:
        term = scene.encoding.term(self.there())
        scene.proof.fits(scene.encoding, f"{spot.write.label} in {scene.name or 'the cell'}")
        return term


@dataclass(frozen=True)
class Origin:
    """The write that gave a cell its value, and its iteration."""

    write: Write
    at: At


@dataclass
class Origins:
    """Finds and proves origins of cells on one side."""

    proof: Proof
    prefix: str
    schedule: Schedule
    writers: Writers
    spots: dict[tuple[Write, Loops], Spot] = field(default_factory=dict)
    injective: dict[Write, list[Expr] | None] = field(default_factory=dict)
    collisions: dict[Write, Collisions] = field(default_factory=dict)
    count: int = 0

    def spot(self, write: Write, inner: Loops = ()) -> Spot:
        """An arbitrary iteration of a write; the same one for the same arguments."""
        key = (write, inner)
        if key not in self.spots:
            kept = not any(w is write for w in self.schedule.writes)
            number = f".kept{len(self.spots)}" if kept else self.schedule.writes.index(write)
            space = f"at.{self.prefix}{number}{f'.in{len(self.spots)}' if inner else ''}"
            self.spots[key] = Spot(self.proof, space, write, inner)
        return self.spots[key]

    def of(
        self, scene: Scene, memory: Expr, reader: Reader, point: Point, likely: Sequence[Expr] = ()
    ) -> Origin | None:
        """The origin of the cell that ``reader`` names, just before ``point``; None if it is as before the program.

        ``likely`` is an iteration that is tried first.
        """
        found = self.writers.last(scene.trials, memory, reader.there(), point)
        self.count += 1
        name = f"{self.prefix} {memory.name}, {self.count}"
        if found is None:
            for write in self.schedule.writes_to(memory):
                self._not_between(scene, name, write, reader, point, None)
            return None
        write, iterations = found
        if scene.trials.evaluate(likely) == iterations:
            at = dict(zip(write.counters, likely, strict=True))
        else:
            at = self._witness(scene, write, iterations, reader, point)
        origin = Origin(write, at)
        self._happens(scene, name, origin, point)
        self._same_address(scene, name, origin, reader)
        for other in self.schedule.writes_to(memory):
            self._not_between(scene, name, other, reader, point, origin)
        return origin

    def nothing_between(
        self, scene: Scene, name: str, write: Write, reader: Reader, point: Point, since: Origin
    ) -> None:
        """Proves that no other write than ``write`` writes a cell after an instance and before a point."""
        for other in self.schedule.writes_to(write.memory):
            if other is not write:
                self._not_between(scene, name, other, reader, point, since)

    def track(self, origin: Origin) -> Track:
        """The loops of a write, at the iteration that gave a cell its value."""
        loops, here = origin.write.loops, {c: resize(t, c.width) for c, t in origin.at.items()}
        at = tuple(origin.at[c] for c, _ in loops)
        return Track(self.prefix, tuple((c, substitute(e, here)) for c, e in loops), at)

    def once(self, write: Write) -> bool:
        """Whether a write's address was proved to determine all its counters."""
        determined = self.injective.get(write)
        return determined is not None and len(determined) == len(write.counters)

    def determined(self, write: Write) -> list[Expr] | None:
        """Counters that a write's address determines, proved; None where that was not found."""
        return self._injective(write)

    @staticmethod
    def before(write: Write, values: Sequence[FNode], others: Sequence[FNode]) -> FNode:
        """The condition that one iteration of a write comes strictly before another one."""
        return before(write.place, values, write.place, others)

    def numbered(self) -> int:
        """A new number, for names."""
        self.count += 1
        return self.count

    def _witness(
        self, scene: Scene, write: Write, iterations: list[tuple[int, ...]], reader: Reader, point: Point
    ) -> dict[Expr, Expr]:
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

    def _happens(self, scene: Scene, name: str, origin: Origin, point: Point) -> None:
        scene.theorem(
            self._group(scene),
            f"{name}: happens",
            self._exists(origin),
            f"{origin.write.label} has the iteration that writes the cell",
        )
        order = before(
            origin.write.place,
            [scene.encoding.term(origin.at[c]) for c in origin.write.counters],
            point.place,
            [scene.encoding.term(c) for c in point.counters],
        )
        if not order.is_true():
            self.proof.follows(
                self._group(scene),
                f"{name}: before",
                scene.encoding.hypotheses,
                order,
                "the write comes before the cell is read",
            )

    @staticmethod
    def _exists(origin: Origin) -> Expr:
        """The condition that an iteration of a write is in its loops, and the write's own condition holds there."""
        at = {c: resize(w, c.width) for c, w in origin.at.items()}
        # components are compared before they are cut to the counters' widths
        conditions = [less(origin.at[c], substitute(e, at)) for c, e in origin.write.loops]
        return all_of([*conditions, substitute(origin.write.guard, at)])

    def _same_address(self, scene: Scene, name: str, origin: Origin, reader: Reader) -> None:
        spot = self.spot(origin.write)
        left = spot.instance(scene, origin.write.address, origin.at)
        right = reader.term(scene)
        if left is right:
            return
        self.proof.follows(
            self._group(scene),
            f"{name}: same address",
            scene.encoding.hypotheses,
            smt.Equals(left, right),
            "the write's iteration writes exactly the cell that is needed",
        )

    def _not_between(
        self, scene: Scene, name: str, other: Write, reader: Reader, point: Point, origin: Origin | None
    ) -> None:
        """No instance of ``other`` that writes the cell comes after the origin and before the point."""
        spot = self.spot(other)
        mine = [spot.encoding.term(c) for c in spot.counters]
        until = [scene.encoding.term(c) for c in point.counters]
        conditions = [before(other.place, mine, point.place, until)]
        known: list[FNode] = []
        cell = (
            None  # an iteration of ``other`` that writes the cell: any other one agrees in what the address determines
        )
        if reader.spot is not None and reader.spot.write is other and reader.address is other.address:
            cell = reader.at
        if origin is not None:
            since = [scene.encoding.term(origin.at[c]) for c in origin.write.counters]
            conditions.append(before(origin.write.place, since, other.place, mine))
            cell = origin.at if other is origin.write else cell
        if cell is not None:
            for counter in self._injective(other) or []:
                known.append(smt.Equals(spot.term(counter), scene.encoding.term(cell[counter])))
        between = smt.simplify(smt.And(conditions))
        if between.is_false():
            return
        hypotheses = [*scene.encoding.hypotheses, *spot.encoding.hypotheses]
        what = f"{name}: {other.label} {self.schedule.writes.index(other)} does not come in between"
        meaning = "no other write of this cell comes between its origin and the point where it is read"
        ask = self.proof.follows
        if known:
            choices = (known, [*(h for h in conjuncts(hypotheses) if is_linear(h)), *known])
            needed = next((c for c in choices if quick(c, smt.Not(between))), [*hypotheses, *known])
            ask(self._group(scene), what, needed, smt.Not(between), meaning)
            return
        order = [h for h in conjuncts(hypotheses) if is_linear(h)]
        if quick(order, smt.Not(between)):
            ask(self._group(scene), what, order, smt.Not(between), meaning)
            return
        known = self._meeting(scene, f"{name}: {other.label} {self.schedule.writes.index(other)}", other, reader)
        if known and quick([*order, *known], smt.Not(between)):
            ask(self._group(scene), what, [*order, *known], smt.Not(between), meaning)
            return
        if origin is not None and other is origin.write:
            ends = [origin.at]
            if point.place == other.place:
                ends.append(dict(zip(other.counters, point.counters, strict=True)))
            facts = self._collisions(other).facts(scene, self._group(scene), what, ends)
            given = [h for h in conjuncts([*scene.encoding.hypotheses, *spot.encoding.hypotheses]) if is_linear(h)]
            *given, goal = linearised([*given, *facts, smt.Not(between)])
            if quick(given, goal):
                self.proof.discharger.follows(self._group(scene), what, given, goal, meaning)
                return
        there, cell = spot.term(other.address), reader.term(scene)
        spot.fits()
        hypotheses = [*scene.encoding.hypotheses, *spot.encoding.hypotheses]
        steps, known = _digits_agree(hypotheses, there, cell)
        order = [h for h in conjuncts(hypotheses) if is_linear(h)]  # translating the address has added quotients
        if known and quick([*order, *known], smt.Not(between)):
            for step, given, goal in steps:
                self.proof.discharger.follows(self._group(scene), f"{what}: {step}", given, goal, meaning)
            ask(self._group(scene), what, [*order, *known], smt.Not(between), meaning)
            return
        ask(self._group(scene), what, [*hypotheses, between], smt.Not(smt.Equals(there, cell)), meaning)

    def _meeting(self, scene: Scene, name: str, other: Write, reader: Reader) -> list[FNode]:
        """What the counters of an instance of ``other`` are if it writes the cell, whenever that is; proved.

        One iteration that writes the cell is guessed; where the address determines counters, any other agrees in them.
        Nothing where no such iteration is found.
        """
        iterations = self.writers.meeting(scene.trials, other, reader.there())
        determined = self._injective(other) if iterations else None
        if not iterations or not determined:
            return []
        table = candidates(scene.trials, scene.ranges, [reader.there()])
        found = [table.get(tuple(values)) for values in zip(*iterations, strict=True)]
        at = {c: resize(t, 32) for c, t in zip(other.counters, found, strict=True) if t is not None}
        inside = self._exists(Origin(other, at)) if len(at) == len(found) else None
        if inside is None or not scene.proves(inside):
            return []
        spot = self.spot(other)
        pair = spot.instance(scene, other.address, at), reader.term(scene)
        same = smt.Equals(*pair)
        if pair[0] is not pair[1] and not quick(scene.encoding.hypotheses, same):
            return []
        scene.theorem(self._group(scene), f"{name} meets the cell: iteration", inside, "an iteration that exists")
        if pair[0] is not pair[1]:
            meaning = "this iteration writes the cell"
            self.proof.follows(
                self._group(scene), f"{name} meets the cell: address", scene.encoding.hypotheses, same, meaning
            )
        return [smt.Equals(spot.term(c), scene.encoding.term(at[c])) for c in determined]

    def _collisions(self, write: Write) -> Collisions:
        """What is known of iterations of a write that write the same cell."""
        if write not in self.collisions:
            self.collisions[write] = Collisions(f"{self.prefix}: layout", self.spot(write))
        return self.collisions[write]

    def _injective(self, write: Write) -> list[Expr] | None:
        """Counters of a write that its address determines, proved once; None where that was not found."""
        if write not in self.injective:
            found = self.spot(write).injectivity()
            if found is None:
                self.injective[write] = None
            else:
                used, steps = found
                self.spot(write).fits()
                for step, hypotheses, goal in steps:
                    self.proof.follows(
                        f"{self.prefix}: layout",
                        f"{write.label} {self.schedule.writes.index(write)} writes {write.memory.name} "
                        f"injectively: {step}",
                        hypotheses,
                        goal,
                        "two iterations that write the same address agree in the counters that it depends on",
                    )
                self.injective[write] = used
        return self.injective[write]


def _distances(address: Expr, write: Write) -> list[Expr]:
    """By how much parts of an address exceed parts of a write's that no counter moves: where the write begins."""
    counters = set(write.counters)
    begins = [n for n in _words(write.address) if n.args and not counters & set(free_variables(n).values())]
    return [resize(n, 32) - resize(b, 32) for b in begins[-_FEW:] for n in _words(address)[-_FEW:] if n.args]


def _words(term: Expr) -> list[Expr]:
    return [n for n in postorder([term]) if isinstance(n.sort, BvSort) and n.op not in ("const", "load", "apply")]


_FEW = 12


def _digits_agree(hypotheses: Sequence[FNode], one: FNode, two: FNode) -> tuple[list[Step], list[FNode]]:
    """Where two addresses are built alike of digits: that equal addresses have equal digits, with the steps of a proof.

    Nothing where they are not, or where no proof is found.
    """
    renamed = corresponding(one, two)
    if not renamed:
        return [], []
    try:
        steps = injectivity_steps(hypotheses, one, renamed, list(renamed.items()))
    except Unsupported:
        return [], []
    return steps, [smt.Equals(*pair) for pair in renamed.items()]
