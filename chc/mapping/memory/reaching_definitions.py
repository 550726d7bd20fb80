"""Where the value of a cell comes from, proved: the last write before a point of the program.

:mod:`chc.mapping.sampling.samples` proposes a write and its iteration.  The obligations that make it a theorem, for all
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
from dataclasses import dataclass, field

import pysmt.shortcuts as smt

from chc.mapping.program.writes import Fold, Loops, Point, Schedule, Write
from chc.mapping.sampling.samples import Sampler
from ila_lang import Expr
from smt_encodings.environment import plain

from .cases import split
from .contexts import Context, before
from .kills import NoKill
from .layout import Definition, Iteration, Layout, Reader
from .witnesses import witness


@dataclass
class ReachingDefinitions:
    """Finds and proves reaching definitions of cells on one side."""

    layout: Layout
    sampler: Sampler
    count: int = 0
    accumulations: dict[tuple[Write, Loops], Fold] = field(default_factory=dict)
    """What a write makes of a cell in all iterations of some of its loops: one fold, wherever it is met."""
    _known: dict[tuple[object, ...], tuple[Reader, Definition | None]] = field(default_factory=dict)
    """What was found, and for which reader; it holds in the cases of its context, too."""

    @property
    def prefix(self) -> str:
        """What the side is called."""
        return self.layout.prefix

    @property
    def schedule(self) -> Schedule:
        """The side's program."""
        return self.layout.schedule

    def of(
        self, context: Context, memory: Expr, reader: Reader, point: Point, likely: Sequence[Expr] = ()
    ) -> Definition | None:
        """The reaching definition of ``reader``, just before ``point``; None if it is as before the program.

        ``likely`` is an iteration that is tried first.  Raises Split where it differs between samples.
        """
        question = memory, reader.cell(), point.place, point.counters
        for around in [] if likely else context.cases():
            if (around, *question) in self._known:
                first, definition = self._known[around, *question]
                first.require_same(context, reader)
                return definition
        definition = self._found(context, memory, reader, point, likely)
        self._known[context, *question] = reader, definition
        return definition

    def _found(
        self, context: Context, memory: Expr, reader: Reader, point: Point, likely: Sequence[Expr]
    ) -> Definition | None:
        sampled = self.sampler.last(context.samples, memory, reader.cell(), point)
        numbers = [None if s is None else s[0] for s in sampled]
        if len(set(numbers)) > 1:
            raise split(context, self.schedule, memory, sampled, reader.cell(), point)
        self.count += 1
        name = f"{self.prefix} {plain(memory.name)}, {self.count}"
        if numbers[0] is None:
            for write in self.schedule.writes_to(memory):
                self._not_killed(context, name, write, reader, point, None)
            return None
        write, iterations = self.schedule.writes[numbers[0]], [s[1] for s in sampled if s is not None]
        if context.samples.evaluate(likely) == iterations:
            at: Iteration = dict(zip(write.counters, likely, strict=True))
        else:
            at = witness(context.samples, context.ranges, write, iterations, reader.cell(), point)
        definition = Definition(write, at)
        self._exists(context, name, definition)
        self._before(context, name, definition, point)
        self._same_address(context, name, definition, reader)
        for other in self.schedule.writes_to(memory):
            self._not_killed(context, name, other, reader, point, definition)
        return definition

    def not_killed(
        self, context: Context, name: str, writes: Sequence[Write], reader: Reader, point: Point, since: Definition
    ) -> None:
        """Proves that no other write than some writes a cell after an instance and before a point."""
        for other in self.schedule.writes_to(writes[0].memory):
            if not any(other is w for w in writes):
                self._not_killed(context, name, other, reader, point, since)

    def numbered(self) -> int:
        """A new number, for names."""
        self.count += 1
        return self.count

    # -- obligations --------------------------------------------------------------------------------

    def _group(self, context: Context) -> str:
        return f"{self.prefix}: cells{f' in {context.name}' if context.name else ''}"

    def _exists(self, context: Context, name: str, definition: Definition) -> None:
        meaning = f"{definition.write.label} has the iteration that writes the cell"
        context.theorem(self._group(context), f"{name}: happens", definition.exists(), meaning)

    def _before(self, context: Context, name: str, definition: Definition, point: Point) -> None:
        order = before(
            definition.write.place,
            [context.encoding.term(definition.at[c]) for c in definition.write.counters],
            point.place,
            [context.encoding.term(c) for c in point.counters],
        )
        if not order.is_true():
            meaning = "the write comes before the cell is read"
            context.proof.follows(self._group(context), f"{name}: before", context.encoding.hypotheses, order, meaning)

    def _same_address(self, context: Context, name: str, definition: Definition, reader: Reader) -> None:
        left = self.layout.instance(definition.write).instantiated(context, definition.write.address, definition.at)
        right = reader.term(context)
        if left is not right:
            context.proof.follows(
                self._group(context),
                f"{name}: same address",
                context.encoding.hypotheses,
                smt.Equals(left, right),
                "the write's iteration writes exactly the cell that is needed",
            )

    def _not_killed(
        self, context: Context, name: str, other: Write, reader: Reader, point: Point, definition: Definition | None
    ) -> None:
        NoKill(self.layout, self.sampler, context, self._group(context), name, other, reader, point, definition).prove()
