"""Unrolled sums: a cell that several writes of one loop update, one after the other in each iteration, as a fold.

Such a loop over pairs of tiles has a write for the first and one for the second of each pair.  One step of the fold is
what these writes make of the cell together.  That the cell holds the fold's register after each iteration is proved by
induction over the loop's iterations, which follow each other lexicographically:

* the iteration that wrote the cell last is the last one of the loop, and all iterations of that write exist;
* in an iteration, the reaching definition of what each write reads of its own cell is the write before it (**chain**);
* that of what the first of them reads is the last one's, in the iteration before (**before**);
* each goes on from the cell, but perhaps the first of them in the first iteration, which then begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chc.mapping.arithmetic.exact import equal
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Iteration, Reader, narrow
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Fold, Loops, Write
from ila_lang import Expr, all_of, any_of, resize, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .reduction import begins_anew, ends, fold_of, require_independent
from .turns import Turns
from .updates import Update, update_of


@dataclass(frozen=True, eq=False)
class Member:
    """One of the writes, and what it makes of the cell: a fold that begins with it, of no loops where it has no sum."""

    write: Write
    update: Update
    fold: Fold


@dataclass(frozen=True, eq=False)
class Cycle:
    """Writes that update a cell in turn, in the order of the program, in each iteration of ``loops`` of the last one.

    The first one begins with the cell at ``start``, or with ``begins``, a term over its counters.
    """

    members: tuple[Member, ...]
    loops: Loops
    start: Definition
    begins: Expr | None

    @property
    def together(self) -> tuple[Member, ...]:
        """The writes that one step of the loops has."""
        return self.members

    def steps(self, side: ReachingDefinitions, context: Context, at: Iteration) -> list[tuple[Definition, Member]]:
        """The updates of a step, in order."""
        return list(zip(self.chain(side, context, at), self.members, strict=True))

    def chain(self, side: ReachingDefinitions, context: Context, at: Iteration) -> list[Definition]:
        """The iterations of all writes in an iteration of the last one, in order; that they are is proved."""
        definitions = [Definition(self.members[-1].write, at)]
        for member in reversed(self.members[:-1]):
            definition = read_by(side, context, definitions[0])
            if definition is None or definition.write is not member.write:
                raise written_by_others(member.write)
            definitions.insert(0, definition)
        return definitions


def read_by(
    side: ReachingDefinitions, context: Context, definition: Definition, likely: tuple[Expr, ...] = ()
) -> Definition | None:
    """The reaching definition of what a write reads of its own cell at an iteration."""
    write = definition.write
    reader = Reader(write.address, side.layout.instance(write), definition.at)
    return side.of(context, write.memory, reader, definition.point, likely)


def cycle(side: ReachingDefinitions, context: Context, definition: Definition, turns: Turns) -> Cycle:
    """Whole rounds of writes that update a cell in turn, up to ``definition``.

    Raises Unsupported where they do so in a way that is not described above, and ValueError where the last one of a
    round is not that of ``definition``.
    """
    writes, counters, write = turns.writes, turns.counters, definition.write
    if writes[-1] is not write:
        raise ValueError("the last write of a round must be the one that gave the cell its value")
    require_independent(write, counters)
    name = f"{write.label} {side.schedule.writes.index(write)}, {side.numbered()}"
    loops = tuple(loop for loop in write.loops if loop[0] in counters)
    ends(context, side, name, definition, loops)
    members = members_of(side, name, writes)
    first = {c: resize(t, 32) * 0 if c in counters else t for c, t in definition.at.items()}
    unproved = Cycle(members, loops, definition, None)
    start = unproved.chain(side, context, first)[0]
    begins = _follow(side, context, name, unproved, definition, start)
    return Cycle(unproved.members, loops, start, begins)


def members_of(side: ReachingDefinitions, name: str, writes: Sequence[Write]) -> tuple[Member, ...]:
    """Writes that update a cell in turn, each with what it makes of the cell."""
    members = []
    for number, one in enumerate(writes, 1):
        update = update_of(side.schedule, one)
        assert update is not None
        members.append(Member(one, update, fold_of(side, f"{name}, write {number}", one, update, ())))
    return tuple(members)


def _follow(
    side: ReachingDefinitions, context: Context, name: str, turns: Cycle, last: Definition, start: Definition
) -> Expr | None:
    """The iterations follow each other; gives what the first one begins with where that is not the cell."""
    group, first, here = f"{side.prefix}: accumulation", turns.members[0], narrow(last.at)
    names = {c: fresh(f"turn.{plain(c.name)}", c.sort) for c, _ in turns.loops}
    iterations = tuple((names[c], substitute(e, here)) for c, e in turns.loops)
    inside = context.inside(iterations, context.called(name))
    at = {**last.at, **{c: resize(n, 32) for c, n in names.items()}}
    meaning = "the write has an iteration for each one of the loop"
    inside.theorem(group, f"{name}: happens", Definition(last.write, at).exists(), meaning)
    chain = turns.chain(side, inside, at)
    meaning = "the write goes on from the cell"
    for number, (definition, member) in enumerate(zip(chain, turns.members, strict=True)):
        goes_on = substitute(member.update.adds, narrow(definition.at))
        if number:
            inside.theorem(group, f"{name}: {number} goes on", goes_on, meaning)
        else:
            later = any_of([c >= 1 for c in names.values()])
            inside.theorem(group, f"{name}: goes on", later.implies(goes_on), meaning)
    for level in reversed(range(len(iterations))):
        counter, inner = iterations[level][0], iterations[level + 1 :]
        case = inside.where(all_of([counter >= 1, *(c == 0 for c, _ in inner)]), f"{inside.name}, {level} goes on")
        before = {counter: counter - 1, **{c: resize(e, c.width) - 1 for c, e in inner}}
        expected = tuple(substitute(at[c], before) for c in last.write.counters)
        definition_before = read_by(side, case, chain[0], expected)
        if definition_before is None or definition_before.write is not last.write:
            raise written_by_others(last.write)
        for loop, term in zip(last.write.counters, expected, strict=True):
            same = equal(term, definition_before.at[loop])
            meaning = "the iteration before stored what is read"
            case.theorem(group, f"{case.name}: before, {plain(loop.name)}", same, meaning)
    if first.update.begins is None:
        return None
    anew = begins_anew(context, side, name, start, first.update.adds)
    return first.update.begins if anew else None


def written_by_others(write: Write) -> Unsupported:
    """That more than writes that take turns write a cell."""
    return Unsupported(f"a cell of {write.memory.name} is written by others while {write.label} adds up")
