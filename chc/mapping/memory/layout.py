"""Which iterations write a cell: addresses as they stand in a program, and what a write's address determines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.exact import less
from chc.mapping.horn.systems import AntiDependence, Track
from chc.mapping.program.statements import variable_text
from chc.mapping.program.writes import Loops, Point, Schedule, Write
from chc.mapping.proof import Proof
from ila_lang import Expr, all_of, resize, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.environment import plain
from smt_encodings.expressions.integers import NotLinearizable

from .contexts import Context, SymbolicInstance
from .output_dependence import OutputDependence

Iteration = Mapping[Expr, Expr]
"""An iteration vector: a term for each counter."""


def narrow(at: Iteration) -> dict[Expr, Expr]:
    """The terms in their counters' widths."""
    return {c: resize(t, c.width) for c, t in at.items()}


@dataclass(frozen=True)
class Reader:
    """An address as it stands in a program: an expression over the counters of ``instance``, at the iteration ``at``.

    Without an instance the address is over the coordinates of the context.
    """

    address: Expr
    instance: SymbolicInstance | None
    at: Iteration

    def cell(self) -> Expr:
        """The cell that is read: its address over the coordinates of the context."""
        return substitute(self.address, {c: resize(self.at[c], c.width) for c in self.at})

    def term(self, context: Context) -> FNode:
        """The address as an integer term of the context."""
        if self.instance is None:
            term = context.encoding.term(self.address)
            context.proof.fits(context.encoding, f"a cell in {context.name}" if context.name else "the output cell")
            return term
        # What holds at every iteration may not suffice, such as for "the timestep before"; here more is known.  Where
        # iterations divide by sizes, it is simpler here, too.
        forms = [self._instantiated, self._direct]
        for form in reversed(forms) if self.instance.quotients() else forms:
            try:
                return form(context, self.instance)
            except NotLinearizable as error:
                problem = error
        raise problem

    def require_same(self, context: Context, other: Reader) -> None:
        """Proves that another reader, whose address is the same term, reads the same cell in a context.

        Terms of equal form are equal numbers only where their iterations exist: elsewhere they may have wrapped around.
        """
        if self.instance is other.instance and all(self.at[c] is other.at.get(c) for c in self.at):
            return
        one, two = self.term(context), other.term(context)
        if one is not two:
            meaning = "two addresses of the same form, at different places of the program, are one"
            name, asked = context.name or "the cell", context.proof.same_cells
            asked[name] = asked.get(name, 0) + 1
            name = f"{name} ({asked[name]})" if asked[name] > 1 else name
            context.proof.follows("cells", name, context.encoding.hypotheses, smt.Equals(one, two), meaning)

    def _instantiated(self, context: Context, instance: SymbolicInstance) -> FNode:
        return instance.instantiated(context, self.address, self.at)

    def _direct(self, context: Context, instance: SymbolicInstance) -> FNode:
        term = context.encoding.term(self.cell())
        context.proof.fits(context.encoding, f"{instance.write.label} in {context.name or 'the cell'}")
        return term


@dataclass(frozen=True)
class Definition:
    """A cell's reaching definition: the write that gave it its value, and the iteration."""

    write: Write
    at: Iteration

    @property
    def vector(self) -> tuple[Expr, ...]:
        """The iteration as a term for each counter, outermost first."""
        return tuple(self.at[c] for c in self.write.counters)

    @property
    def point(self) -> Point:
        """The program point just before the write in this iteration."""
        return Point(self.write.place, self.vector)

    @property
    def limits(self) -> list[Expr]:
        """The write's condition and its loops' extents in this iteration."""
        here = narrow(self.at)
        return [substitute(t, here) for t in (self.write.guard, *(e for _, e in self.write.loops))]

    def exists(self) -> Expr:
        """The condition that the iteration is in the write's loops, and the write's own condition holds there."""
        at = narrow(self.at)
        # components are compared before they are cut to the counters' widths
        conditions = [less(self.at[c], substitute(e, at)) for c, e in self.write.loops]
        return all_of([*conditions, substitute(self.write.guard, at)])

    def track(self, name: str) -> Track:
        """The write's loops, called ``name``, at this iteration."""
        here = narrow(self.at)
        loops = tuple((c, substitute(e, here)) for c, e in self.write.loops)
        return Track(name, loops, self.vector)


@dataclass
class Layout:
    """What the addresses of one side's writes determine, each proved once."""

    proof: Proof
    prefix: str
    schedule: Schedule
    instances: dict[tuple[Write, Loops], SymbolicInstance] = field(default_factory=dict)
    injective: dict[Write, list[Expr] | None] = field(default_factory=dict)
    disjoint: dict[tuple[Write, Write], bool] = field(default_factory=dict)
    """Whether two writes are known to write no cell both."""
    output_dependences: dict[Write, OutputDependence] = field(default_factory=dict)
    written_once: dict[Write, Definition] = field(default_factory=dict)
    """Writes of which a proof takes that they write a cell exactly once, each with one iteration."""
    anti_dependences: dict[Write, list[AntiDependence]] = field(default_factory=dict)
    """By write: where a proof takes that a cell is read before it is overwritten."""
    accumulated: dict[tuple[Write, tuple[Expr, ...]], Definition] = field(default_factory=dict)
    """Writes that add to a cell, and counters of loops of which a proof takes that the cell is written once, with an
    iteration."""

    def instance(self, write: Write, inner: Loops = ()) -> SymbolicInstance:
        """An arbitrary iteration of a write; the same one for the same arguments.

        Raises Unsupported where more than sizes and counters say where and when it writes: two iterations would share
        a symbol.
        """
        key = (write, inner)
        if key not in self.instances:
            for term in (write.address, write.guard, *(extent for _, extent in (*write.loops, *inner))):
                if (loop_variant := self.schedule.loop_variant(term)) is not None:
                    name = variable_text(loop_variant)
                    raise Unsupported(f"whether and where {write.label} writes depends on {name}: this is not followed")
            snapshot = not any(w is write for w in self.schedule.writes)
            number = f".kept{len(self.instances)}" if snapshot else self.schedule.writes.index(write)
            space = f"at.{self.prefix}{number}{f'.in{len(self.instances)}' if inner else ''}"
            self.instances[key] = SymbolicInstance(self.proof, space, write, inner)
        return self.instances[key]

    def once(self, write: Write) -> bool:
        """Whether a write's address determines all its counters: no two iterations write one cell."""
        determined = self.determined(write)
        return determined is not None and len(determined) == len(write.counters)

    def determined(self, write: Write) -> list[Expr] | None:
        """Counters of a write that its address determines, proved once; None where that was not found."""
        if write not in self.injective:
            injectivity = self.instance(write).injectivity()
            if injectivity is None:
                self.injective[write] = None
            else:
                used, steps = injectivity
                self.instance(write).fits()
                for step, hypotheses, goal, _ in steps:
                    self.proof.follows(
                        f"{self.prefix}: layout",
                        f"{write.label} {self.schedule.writes.index(write)} writes {plain(write.memory.name)} "
                        f"injectively: {step}",
                        hypotheses,
                        goal,
                        "two iterations that write the same address agree in the counters that it depends on",
                    )
                self.injective[write] = used
        return self.injective[write]

    def apart(self, one: Write, two: Write) -> bool:
        """Whether no iteration of a write writes a cell that any of the other one writes, proved once."""
        if (one, two) not in self.disjoint:
            here, there = self.instance(one), self.instance(two)
            addresses = [i.term(i.write.address) for i in (here, there)]
            for instance in (here, there):
                instance.fits()
            names = [f"{i.write.label}, {i.space}," for i in (here, there)]
            self.disjoint[one, two] = self.disjoint[two, one] = self.proof.follows_in_steps(
                f"{self.prefix}: layout",
                f"{names[0]} and {names[1]} write different cells of {plain(one.memory.name)}",
                [*here.encoding.hypotheses, *there.encoding.hypotheses],
                smt.Not(smt.Equals(*addresses)),
                "two writes write no cell of a memory both, whatever their iterations",
            )
        return self.disjoint[one, two]

    def output_dependence(self, write: Write) -> OutputDependence:
        """What is known of iterations of a write that write the same cell."""
        if write not in self.output_dependences:
            self.output_dependences[write] = OutputDependence(f"{self.prefix}: layout", self.instance(write))
        return self.output_dependences[write]
