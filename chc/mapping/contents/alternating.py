"""Writes that update a cell in turn, of which the last round is cut short: each update is one step of a fold.

A loop that is unrolled by four, with a condition ``4*b + s < n`` before each of its parts, updates a cell ``n`` times.
Number ``k < n`` is part ``k mod 4`` of iteration ``k / 4``.  That the cell holds the fold's register after each of them
is proved by induction over the numbers:

* the update of each number exists (**happens**), and goes on from the cell, but perhaps the first one (**goes on**);
* the reaching definition of what it reads of its own cell is the update with the number before (**before**);
* the one that wrote the cell last has the last number (**ends**).

How numbers and updates belong together is guessed at samples, as in :mod:`chc.mapping.contents.numbered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chc.mapping.arithmetic.exact import equal, successor
from chc.mapping.memory.cases import Split
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Iteration, narrow
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Loops, Write
from ila_lang import Expr, bv, const, resize, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .numbered import Numbered
from .numberings import numbering
from .reduction import begins_anew, require_independent
from .turns import Turns
from .unrolled import Member, members_of, read_by, written_by_others


@dataclass(frozen=True, eq=False)
class Alternating:
    """Writes that update a cell in turn, one in each step of the loop over numbers.

    The first one begins with the cell at ``start``, or with ``begins``, a term over its counters.
    """

    members: tuple[Member, ...]
    numbered: Numbered
    slot: Expr
    """What stands in the numbering for the place of a member among them."""
    others: tuple[Iteration, ...]
    """For each member its counters, those of the numbering aside."""
    start: Definition
    begins: Expr | None = None

    @property
    def loops(self) -> Loops:
        """The loop over the numbers."""
        return self.numbered.loops

    @property
    def together(self) -> tuple[Member, ...]:
        """Writes with as long sums as one step has."""
        return self.members[:1]

    def definition(self, number: int, at: Expr) -> Definition:
        """The update by a member with a number."""
        write = self.members[number].write
        terms = {**self.others[number], **self.numbered.digits_of(at)}
        return Definition(write, {c: terms[c] for c in write.counters})

    def of(self, number: int, at: Expr) -> Expr:
        """That the update with a number is one by a member."""
        return equal(self.numbered.digits_of(at)[self.slot], const(number, 32))

    def steps(self, side: ReachingDefinitions, context: Context, at: Iteration) -> list[tuple[Definition, Member]]:
        """The update with a number.  Raises Split where it is not always by one member."""
        at_number = resize(at[self.numbered.number], 32)
        conditions = [self.of(k, at_number) for k in range(len(self.members))]
        columns = zip(*context.samples.evaluate(conditions), strict=True)
        likely = [k for k, column in enumerate(columns) if any(column)]
        if len(likely) > 1:
            problem = "which write updates a cell differs between iterations"
            raise Split(problem, context, [conditions[k] for k in likely])
        (number,) = likely
        meaning = "the update is by this write"
        context.theorem(f"{side.prefix}: accumulation", f"{context.name}: in turn", conditions[number], meaning)
        return [(self.definition(number, at_number), self.members[number])]


def alternating(side: ReachingDefinitions, context: Context, definition: Definition, turns: Turns) -> Alternating:
    """The updates of writes that update a cell in turn, up to ``definition``, as those of one loop.

    Raises Unsupported where they are not as described above.
    """
    write, slot = definition.write, fresh("slot", bv(32))
    counters = [c for c in write.counters if c in turns.counters]
    chains = [[*reversed(chain)] for chain in turns.chains]
    numbers = [n for n, _ in max(chains, key=len)[: len(turns.writes)]]
    writes = [side.schedule.writes[n] for n in numbers]
    if any(len(w.loops) != len(write.loops) or not turns.counters <= set(w.counters) for w in writes):
        raise Unsupported(f"{write.label} accumulates in turn with others, which are in other loops")
    for one in writes:
        require_independent(one, turns.counters, exist=True)
    runs = [
        [(*_parts(side.schedule.writes[n], turns.counters, i), numbers.index(n)) for n, i in chain] for chain in chains
    ]
    numbered = numbering(context, write, definition.limits, [*counters, slot], runs)
    if numbered is None:
        raise Unsupported(f"{write.label} accumulates in turn with others, in iterations that have no numbers")
    name = f"{write.label} {side.schedule.writes.index(write)}, {side.numbered()}"
    members = members_of(side, name, writes)
    last = numbers.index(side.schedule.writes.index(write))
    # whether these are the ones is proved
    others = [dict(zip(w.counters, definition.vector, strict=True)) for w in writes]
    return _follow(side, context, name, Alternating(members, numbered, slot, tuple(others), definition), last)


def _follow(side: ReachingDefinitions, context: Context, name: str, turns: Alternating, last: int) -> Alternating:
    """The updates follow each other up to the last one, by a member; with the first one, and what it begins with."""
    group, numbered, own = f"{side.prefix}: accumulation", turns.numbered, fresh("turn", bv(32))
    around = context.called(name)
    inside = context.inside(((own, numbered.length),), around)
    ends = equal(successor(numbered.number_of({**turns.start.at, turns.slot: const(last, 32)})), numbered.length)
    context.theorem(group, f"{name}: ends", ends, "the update that wrote the cell last has the last number")
    for number, member in enumerate(turns.members):
        here, before = turns.definition(number, own), turns.definition((number - 1) % len(turns.members), own - 1)
        case = inside.where(turns.of(number, own), f"{around}, {number}")
        case.theorem(group, f"{name}: {number} happens", here.exists(), "each number has its update")
        case = case.where(own >= 1, f"{around}, {number} later")
        goes_on = substitute(member.update.adds, narrow(here.at))
        case.theorem(group, f"{name}: {number} goes on", goes_on, "later updates go on from the cell")
        read = read_by(side, case, here, tuple(before.at.values()))
        if read is None or read.write is not before.write:
            raise written_by_others(here.write)
        for counter, expected in before.at.items():
            meaning = "what the update before stored is read"
            same = equal(read.at[counter], expected)
            case.theorem(group, f"{case.name}: before, {plain(counter.name)}", same, meaning)
    start, update = turns.definition(0, const(0, 32)), turns.members[0].update
    anew = update.begins is not None and begins_anew(context, side, name, start, update.adds)
    return replace(turns, start=start, begins=update.begins if anew else None)


def _parts(write: Write, counters: set[Expr], iteration: Sequence[int]) -> Iterator[int]:
    return (value for c, value in zip(write.counters, iteration, strict=True) if c in counters)
