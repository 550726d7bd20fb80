"""Horn clauses, one system per loop level.

At each level of a nest one loop runs from 0 to its symbolic extent, in lock-step with the corresponding loop of the
other side where there is one.  The hits of a nest on a tracked cell happen exactly where all counters equal the
cell's witness (obligations *hit* and *only writer*), so at one level a hit is "counter = component of the witness".
The system's bad states are: the loops are out of step or end at different times, a tracked cell is not written exactly
once, or a source cell is overwritten before the iteration that reads it.

A nest follows from its levels: an event at witness (g1, ..., gn) happens once because at every level exactly one
iteration matches; a read at r precedes a write at h because at the first level where r and h differ it does, and in
one and the same iteration loads precede the store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT

from smt_encodings.printer import term_text


@dataclass(frozen=True)
class Side:
    """One side's loop at this level: the counter's full name, its extent's name, and the writes that are tracked."""

    counter: str
    extent: str
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Event:
    """A tracked write: ``name`` of its ghost counter, ``at`` the name of the iteration that performs it."""

    name: str
    at: str


@dataclass(frozen=True)
class Hazard:
    """A cell read at iteration ``reader`` and overwritten at iteration ``writer`` (names of parameters).

    With ``same_iteration`` both may be in one iteration, in which the read comes first; otherwise the write does.
    """

    name: str
    reader: str
    writer: str
    same_iteration: bool = True


class System(ABC):
    """A transition system of loops, its Horn clauses, and the obligations of a candidate invariant."""

    PREDICATE = "Inv"
    name: str
    counters: dict[str, FNode]
    parameters: dict[str, FNode]
    init: FNode
    guard: FNode
    next: dict[FNode, FNode]
    bad: FNode

    @property
    @abstractmethod
    def arguments(self) -> dict[str, FNode]:
        """The predicate's arguments in order, by name: what changes, then parameters."""

    @abstractmethod
    def anonymous(self) -> System:
        """The same system with names that say nothing but their positions: loops that are alike become one system.

        Arguments are in the same order.
        """

    @abstractmethod
    def seeds(self) -> list[FNode]:
        """Candidate invariants read off the loops."""

    def horn(self) -> str:
        """The system as SMT-LIB text of three Horn clauses."""
        symbols = list(self.arguments.values())
        sorts = " ".join("Bool" if s.symbol_type() == BOOL else "Int" for s in symbols)
        bound = " ".join(f"({term_text(s)} {'Bool' if s.symbol_type() == BOOL else 'Int'})" for s in symbols)
        here = f"({self.PREDICATE} {' '.join(term_text(s) for s in symbols)})"
        there = f"({self.PREDICATE} {' '.join(_plain(self.next.get(s, s)) for s in symbols)})"
        return "\n".join(
            [
                "(set-logic HORN)",
                f"(declare-fun {self.PREDICATE} ({sorts}) Bool)",
                f"(assert (forall ({bound}) (=> {_plain(self.init)} {here})))",
                f"(assert (forall ({bound}) (=> (and {here} {_plain(self.guard)}) {there})))",
                f"(assert (forall ({bound}) (=> (and {here} {_plain(self.bad)}) false)))",
                "(check-sat)",
                "",
            ]
        )

    def conditions(self, invariant: FNode) -> dict[str, list[FNode]]:
        """The three conditions under which ``invariant`` proves the system: each list must be unsatisfiable."""
        moved = invariant.substitute(self.next)
        return {
            "holds at the start": [self.init, smt.Not(invariant)],
            "kept by every iteration": [invariant, self.guard, smt.Not(moved)],
            "excludes the bad states": [invariant, self.bad],
        }


class LevelSystem(System):
    """The transition system of one loop level.

    What it takes for granted (``facts``) are obligations of their own: tracked iterations exist, and a cell is read no
    later than it is overwritten.  Without ``ordered`` the latter is not taken for granted.
    """

    def __init__(
        self,
        name: str,
        sides: Sequence[Side],
        hazards: Sequence[Hazard] = (),
        *,
        ordered: bool = True,
    ) -> None:
        self.name = name
        self.sides = list(sides)
        self.hazards = list(hazards)
        self.ordered = ordered
        zero, one = smt.Int(0), smt.Int(1)
        self.counters = {s.counter: smt.Symbol(s.counter, INT) for s in sides}
        self.ghosts = {e.name: smt.Symbol(e.name, INT) for s in sides for e in s.events}
        self.flags = {
            f"{h.name}!{what}": smt.Symbol(f"{h.name}!{what}", BOOL)
            for h in hazards
            for what in ("overwritten", "stale")
        }
        names = [s.extent for s in sides] + [e.at for s in sides for e in s.events]
        names += [n for h in hazards for n in (h.reader, h.writer)]
        self.parameters = {n: smt.Symbol(n, INT) for n in dict.fromkeys(names)}
        if len({**self.counters, **self.ghosts, **self.flags, **self.parameters}) < sum(
            map(len, (self.counters, self.ghosts, self.flags, self.parameters))
        ):
            raise ValueError(f"Names in level {name} must be different: a counter must not be its own extent")
        p = self.parameters
        facts = []
        for hazard in hazards if ordered else ():
            reader, writer = p[hazard.reader], p[hazard.writer]
            if not hazard.same_iteration:
                facts.append(smt.LT(reader, writer))
            elif reader is not writer:
                facts.append(smt.LE(reader, writer))
        for side in sides:
            for event in side.events:
                facts += [smt.LE(zero, p[event.at]), smt.LT(p[event.at], p[side.extent])]
        self.facts = smt.And(facts) if facts else smt.TRUE()
        start = [smt.Equals(c, zero) for c in (*self.counters.values(), *self.ghosts.values())]
        self.init = smt.And(self.facts, *start, *(smt.Not(f) for f in self.flags.values()))
        running = [smt.LT(self.counters[s.counter], p[s.extent]) for s in sides]
        self.guard = smt.And(running)
        self.next: dict[FNode, FNode] = {}
        for side in sides:
            counter = self.counters[side.counter]
            self.next[counter] = smt.Plus(counter, one)
            for event in side.events:
                ghost = self.ghosts[event.name]
                self.next[ghost] = smt.Ite(smt.Equals(counter, p[event.at]), smt.Plus(ghost, one), ghost)
        first = self.counters[sides[0].counter]
        for hazard in hazards:
            overwritten, stale = self.flags[f"{hazard.name}!overwritten"], self.flags[f"{hazard.name}!stale"]
            self.next[overwritten] = smt.Or(overwritten, smt.Equals(first, p[hazard.writer]))
            before = overwritten if hazard.same_iteration else self.next[overwritten]
            self.next[stale] = smt.Or(stale, smt.And(before, smt.Equals(first, p[hazard.reader])))
        good = [smt.GE(self.counters[s.counter], p[s.extent]) for s in sides]
        good += [smt.Equals(g, one) for g in self.ghosts.values()]
        good += [smt.Not(f) for n, f in self.flags.items() if n.endswith("!stale")]
        apart = [smt.Not(smt.Equals(first, c)) for c in list(self.counters.values())[1:]]
        self.bad = smt.Or(*apart, smt.And(smt.Not(self.guard), smt.Not(smt.And(good))))

    @property
    def arguments(self) -> dict[str, FNode]:
        """The predicate's arguments in order, by name: counters, ghosts, flags, parameters."""
        return {**self.counters, **self.ghosts, **self.flags, **self.parameters}

    def anonymous(self) -> LevelSystem:
        """The same system with names that say nothing but their positions."""
        kinds = (("c", self.counters), ("g", self.ghosts), ("p", self.parameters))
        new = {name: f"level.{kind}{number}" for kind, names in kinds for number, name in enumerate(names)}
        sides = [
            Side(new[s.counter], new[s.extent], tuple(Event(new[e.name], new[e.at]) for e in s.events))
            for s in self.sides
        ]
        hazards = [
            replace(h, name=f"level.h{i}", reader=new[h.reader], writer=new[h.writer])
            for i, h in enumerate(self.hazards)
        ]
        return LevelSystem("level", sides, hazards, ordered=self.ordered)

    def seeds(self) -> list[FNode]:
        """Candidate invariants read off the loop: an event has happened iff the counter is past its iteration."""
        zero, one = smt.Int(0), smt.Int(1)
        candidates: list[FNode] = [self.facts]
        counters = list(self.counters.values())
        candidates += [smt.Equals(counters[0], c) for c in counters[1:]]
        for side in self.sides:
            counter, extent = self.counters[side.counter], self.parameters[side.extent]
            candidates += [smt.LE(zero, counter), smt.LE(counter, extent)]
            for event in side.events:
                past = smt.GT(counter, self.parameters[event.at])
                candidates.append(smt.Equals(self.ghosts[event.name], smt.Ite(past, one, zero)))
        for hazard in self.hazards:
            past = smt.GT(counters[0], self.parameters[hazard.writer])
            candidates.append(
                smt.Iff(
                    self.flags[f"{hazard.name}!overwritten"],
                    smt.And(past, smt.GE(self.parameters[hazard.writer], zero)),
                )
            )
            candidates.append(smt.Implies(self.flags[f"{hazard.name}!overwritten"], past))
            candidates.append(smt.Not(self.flags[f"{hazard.name}!stale"]))
        return candidates


def _plain(term: FNode) -> str:
    """SMT-LIB text without ``let``; these terms are small."""
    from pysmt.smtlib.printers import to_smtlib

    return str(to_smtlib(term, daggify=False))
