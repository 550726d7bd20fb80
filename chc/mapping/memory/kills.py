"""No write kills a definition: a cell keeps what its reaching definition stored until it is read.

For every write to the memory, an instance of it that writes the cell after the definition and before the point where
the cell is read is excluded in one of several ways.  Each is one function here, and they are tried in this order.  Two
rest on the invariants of loop levels (:mod:`chc.mapping.horn.levels`) instead of an argument about the order of
iterations: that the definition's write writes the cell exactly once, and that a cell is read before it is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.correspondence import corresponding
from chc.mapping.arithmetic.injectivity import injectivity_steps
from chc.mapping.arithmetic.products import linearised
from chc.mapping.arithmetic.ranges import quick
from chc.mapping.arithmetic.steps import Step, require
from chc.mapping.horn.systems import AntiDependence
from chc.mapping.program.writes import Point, Write, shared_loops
from chc.mapping.sampling.samples import Sampler
from ila_lang import all_of
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.integers import is_linear

from .contexts import Context, SymbolicInstance, before
from .layout import Definition, Layout, Reader
from .meetings import meeting, overwriting

_MEANING = "no other write of this cell comes between its reaching definition and the point where it is read"


@dataclass
class NoKill:
    """That no instance of ``other`` that writes the cell of ``reader`` comes after ``definition`` and before ``point``.

    Without a reaching definition, none comes before the point at all.
    """

    layout: Layout
    sampler: Sampler
    context: Context
    group: str
    name: str
    other: Write
    reader: Reader
    point: Point
    definition: Definition | None
    _instance: SymbolicInstance = field(init=False)
    _between: FNode = field(init=False)
    _goal: FNode = field(init=False)

    def __post_init__(self) -> None:
        self._instance = self.layout.instance(self.other)
        counters = [self._instance.encoding.term(c) for c in self._instance.counters]
        until = [self.context.encoding.term(c) for c in self.point.counters]
        conditions = [before(self.other.place, counters, self.point.place, until)]
        if self.definition is not None:
            write = self.definition.write
            since = [self.context.encoding.term(self.definition.at[c]) for c in write.counters]
            conditions.append(before(write.place, since, self.other.place, counters))
        self._between = smt.simplify(smt.And(conditions))
        self._goal = smt.Not(self._between)

    def prove(self) -> None:
        """Proves it; raises NotDischarged where it is not proved."""
        ways = (
            self._by_text,
            self._written_once,
            self._by_determined_counters,
            self._by_order_of_loops,
            self._by_iteration_that_meets_the_cell,
            self._by_facts_of_output_dependence,
            self._by_writes_apart,
            self._by_equal_digits,
            self._by_other_address_in_steps,
            self._by_last_digit,
        )
        if not any(way() for way in ways):
            self._by_other_address()

    # -- ways, each a theorem -----------------------------------------------------------------------

    def _by_text(self) -> bool:
        """The statements' places exclude it, whatever the iterations."""
        return bool(self._between.is_false())

    def _written_once(self) -> bool:
        """The definition's write writes the cell in one iteration only: by the invariants of its levels."""
        if self.definition is None or self.definition.write is not self.other or not self.layout.once(self.other):
            return False
        self.layout.written_once.setdefault(self.other, self.definition)
        return True

    def _by_determined_counters(self) -> bool:
        """An iteration that writes the cell is known, and others agree with it in what the address determines."""
        known = self._known_counters()
        if not known:
            return False
        hypotheses = self._hypotheses()
        choices = (known, [*(h for h in conjuncts(hypotheses) if is_linear(h)), *known])
        self._ask(next((c for c in choices if quick(c, self._goal)), [*hypotheses, *known]))
        return True

    def _by_order_of_loops(self) -> bool:
        """The loops' ranges exclude it, whatever is written."""
        order = self._linear()
        if quick(order, self._goal):
            self._ask(order)
            return True
        return False

    def _by_iteration_that_meets_the_cell(self) -> bool:
        """The one iteration that writes the cell exists, and comes at another time."""
        known = self._meeting()
        return bool(known) and self._comes_at_another_time([*self._linear(), *known], [])

    def _by_facts_of_output_dependence(self) -> bool:
        """Facts about quotients distinguish iterations of the definition's write that write the same cell."""
        if self.definition is None or self.other is not self.definition.write:
            return False
        ends = [self.definition.at]
        if self.point.place == self.other.place:
            ends.append(dict(zip(self.other.counters, self.point.counters, strict=True)))
        facts = self.layout.output_dependence(self.other).facts(self.context, self.group, self._what(), ends)
        (*premises, goal), products = linearised([*self._linear(), *facts, self._goal])
        if not quick(premises, goal):
            return False
        require([*self._linear(), *facts], [Step(self._what(), premises, goal, [products])], [self._goal])
        self.context.proof.discharger.follows(self.group, self._what(), premises, goal, _MEANING)
        return True

    def _by_writes_apart(self) -> bool:
        """The definition's write and this one write no cell both, in any iterations; the cell is the definition's.

        A definition that only says since when, such as the beginning of loops, is no write of the program.
        """
        return (
            self.definition is not None
            and self.definition.write is not self.other
            and any(w is self.definition.write for w in self.layout.schedule.writes)
            and self.layout.apart(self.definition.write, self.other)
        )

    def _by_equal_digits(self) -> bool:
        """Both addresses are built alike of digits; where they are equal, so are these, which comes at another time."""
        there, _ = self._addresses()
        return self._by_digits(there, [r for r in self._renamings if _to_symbols(r)])

    def _by_last_digit(self) -> bool:
        """As before, where the last digit of one address is a sum in the other."""
        there, cell = self._addresses()
        if self._by_digits(there, [r for r in self._renamings if not _to_symbols(r)]):
            return True
        back = corresponding(cell, there, self.context.proof.sizes)
        return self._by_digits(cell, (r for r in back if not _to_symbols(r)))

    @cached_property
    def _renamings(self) -> list[dict[FNode, FNode]]:
        """By what to replace digits of the address that an instance writes, so that it becomes that of the cell."""
        return list(corresponding(*self._addresses(), self.context.proof.sizes))

    def _by_digits(self, address: FNode, renamings: Iterable[dict[FNode, FNode]]) -> bool:
        steps, known = _digits_agree(self._hypotheses(), address, islice(renamings, _MOST_RENAMINGS))
        require([*self._hypotheses(), smt.Equals(*self._addresses())], steps, known)
        # translating the address has added quotients
        return bool(known) and self._comes_at_another_time([*self._linear(), *known], steps)

    def _by_other_address_in_steps(self) -> bool:
        """An instance in between writes another address, as is found step by step."""
        hypotheses, goal = self._other_address()
        return self.context.proof.follows_in_steps(self.group, self._what(), hypotheses, goal, _MEANING)

    def _by_other_address(self) -> None:
        self._ask(*self._other_address())

    def _other_address(self) -> tuple[list[FNode], FNode]:
        there, cell = self._addresses()
        return [*self._hypotheses(), self._between], smt.Not(smt.Equals(there, cell))

    # -- parts of them ------------------------------------------------------------------------------

    def _comes_at_another_time(self, known: list[FNode], steps: Sequence[Step]) -> bool:
        """What is ``known`` of an instance that writes the cell excludes that it is in between.

        If that is because the cell is read before the instance overwrites it, in loops of both, it follows from the
        invariants of these loops; otherwise it is a theorem about the order of iterations.
        """
        if not quick(known, self._goal):
            return False
        for step, premises, goal, _ in steps:
            self.context.proof.discharger.follows(self.group, f"{self._what()}: {step}", premises, goal, _MEANING)
        if not self._read_before_overwritten(known):
            self._ask(known)
        return True

    def _read_before_overwritten(self, known: list[FNode]) -> bool:
        """An anti-dependence: overwritten in one iteration only, and read before, by invariants of both's levels."""
        shared = shared_loops(self.other, self.point)
        writer = overwriting(self.context, self.sampler, self.other, (self.reader, self.point))
        if not writer:
            return False
        instance, context = self._instance, self.context
        pairs = zip(instance.counters, writer, strict=False)
        only = smt.And([smt.Equals(instance.encoding.term(c), context.encoding.term(t)) for c, t in pairs])
        read_first = self.other.place[shared] >= self.point.place[shared]
        dependence = AntiDependence(self.point.counters[:shared], writer, read_first)
        facts = all_of(dependence.facts())
        if not quick(known, only) or not context.proves(facts):
            return False
        meaning = "an instance that overwrites the cell is in this iteration of the loops around the reader"
        self.context.proof.follows(self.group, f"{self._what()}: overwriting iteration", known, only, meaning)
        meaning = "the cell is read no later than it is overwritten"
        context.theorem(self.group, f"{self._what()}: read before", facts, meaning)
        self.layout.anti_dependences.setdefault(self.other, []).append(dependence)
        return True

    def _known_counters(self) -> list[FNode]:
        """Counters that the address determines, at an iteration that is known to write the cell."""
        at = None
        if self.reader.instance is not None and self.reader.instance.write is self.other:
            at = self.reader.at if self.reader.address is self.other.address else None
        if self.definition is not None and self.definition.write is self.other:
            at = self.definition.at
        if at is None:
            return []
        determined = self.layout.determined(self.other) or []
        return [smt.Equals(self._instance.term(c), self.context.encoding.term(at[c])) for c in determined]

    def _meeting(self) -> list[FNode]:
        """What the counters of an instance are if it writes the cell, whenever that is; proved.

        One iteration that writes the cell is guessed; where the address determines counters, any other agrees in them.
        Nothing where no such iteration is found.
        """
        context, other, reader = self.context, self.other, self.reader
        iterations = self.sampler.meeting(context.samples, other, reader.cell())
        determined = self.layout.determined(other) if iterations else None
        at = meeting(context, other, reader, iterations) if determined else None
        inside = None if at is None else Definition(other, at).exists()
        if not determined or at is None or inside is None or not context.proves(inside):
            return []
        pair = self._instance.instantiated(context, other.address, at), reader.term(context)
        same = smt.Equals(*pair)
        if pair[0] is not pair[1] and not quick(context.encoding.hypotheses, same):
            return []
        context.theorem(self.group, f"{self._write()} meets the cell: iteration", inside, "an iteration that exists")
        if pair[0] is not pair[1]:
            meaning = "this iteration writes the cell"
            context.proof.follows(
                self.group, f"{self._write()} meets the cell: address", context.encoding.hypotheses, same, meaning
            )
        return [smt.Equals(self._instance.term(c), context.encoding.term(at[c])) for c in determined]

    def _addresses(self) -> tuple[FNode, FNode]:
        """The address that an instance writes, and that of the cell."""
        there, cell = self._instance.term(self.other.address), self.reader.term(self.context)
        self._instance.fits()
        return there, cell

    def _hypotheses(self) -> list[FNode]:
        return [*self.context.encoding.hypotheses, *self._instance.encoding.hypotheses]

    def _linear(self) -> list[FNode]:
        return [h for h in conjuncts(self._hypotheses()) if is_linear(h)]

    def _write(self) -> str:
        return f"{self.name}: {self.other.label} {self.layout.schedule.writes.index(self.other)}"

    def _what(self) -> str:
        return f"{self._write()} does not come in between"

    def _ask(self, hypotheses: Sequence[FNode], goal: FNode | None = None) -> None:
        self.context.proof.follows(self.group, self._what(), hypotheses, goal or self._goal, _MEANING)


def _to_symbols(renaming: dict[FNode, FNode]) -> bool:
    return all(digit.is_symbol() for digit in renaming.values())


def _digits_agree(
    hypotheses: Sequence[FNode], one: FNode, renamings: Iterable[dict[FNode, FNode]]
) -> tuple[list[Step], list[FNode]]:
    """That an address and the one that it becomes by renaming digits have equal digits where they are equal.

    With the steps of a proof; nothing where none is found.
    """
    for renamed in renamings:
        with suppress(Unsupported):
            steps = injectivity_steps(hypotheses, one, renamed, list(renamed.items()))
            return steps, [smt.Equals(*pair) for pair in renamed.items()]
    return [], []


_MOST_RENAMINGS = 4
