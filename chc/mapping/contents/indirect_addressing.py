"""Words of memory that addresses and conditions depend on, replaced by what the program stored there.

A device may take an address from a memory, such as the index in a micro-op that the program has written before.  For an
arbitrary iteration of the statement that uses it, the word's reaching definition is proved as that of any cell
(:mod:`chc.mapping.memory.reaching_definitions`).  What it stored must be a term over sizes and counters, which then
takes the word's place.  Nothing is known of a word that the program did not write, but for what an idle device holds.

Memories are resolved one after the other: where a memory is written must not depend on what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from chc.mapping.arithmetic.exact import less
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Reader
from chc.mapping.program.writes import Condition, Fold, Loops, Point, Schedule, Write, conjuncts_of
from chc.mapping.sampling.samples import Samples
from ila_lang import Expr, false, postorder, substitute, true
from ila_lang.language.expr import free_variables, resize
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .values import Values


@dataclass(frozen=True)
class _Iteration:
    """An arbitrary iteration of loops: a context, and its coordinates by the loops' counters."""

    context: Context
    coordinates: dict[Expr, Expr]

    def inside(self, term: Expr) -> Expr:
        """A term over counters as one of the context."""
        return substitute(term, self.coordinates)

    def outside(self, term: Expr) -> Expr:
        """A term of the context as one over counters."""
        return substitute(term, {coordinate: counter for counter, coordinate in self.coordinates.items()})


@dataclass
class IndirectAddressing:
    """Resolves the addresses and conditions of one side's schedule, in place."""

    values: Values
    _ready: set[Expr] = field(default_factory=set)
    _open: list[Expr] = field(default_factory=list)
    _settled: set[Expr] = field(default_factory=set)
    """Nodes that were seen: results of folds and snapshots among them are resolved."""
    _forms: dict[Write, Expr] = field(default_factory=dict)
    _words: dict[tuple[object, ...], Expr] = field(default_factory=dict)
    _iterations: dict[tuple[int, ...], _Iteration] = field(default_factory=dict)

    @property
    def _schedule(self) -> Schedule:
        return self.values.definitions.schedule

    @property
    def _prefix(self) -> str:
        return self.values.definitions.prefix

    def resolve(self) -> None:
        """Replaces every word that an address or condition depends on, and proves the schedule's conditions.

        Raises Unsupported where such a word is not a term over sizes and counters.
        """
        for memory in dict.fromkeys(w.memory for w in self._schedule.writes):
            self._memory(memory)
        for number, condition in enumerate(self._schedule.conditions):
            self._holds(number, condition)

    def _memory(self, memory: Expr) -> None:
        """Resolves all writes to a memory."""
        if memory in self._ready:
            return
        if any(memory is m for m in self._open):
            raise Unsupported(f"where {memory.name} is written depends on what it holds")
        self._open.append(memory)
        try:
            for number, write in enumerate(self._schedule.writes):
                if write.memory is memory:
                    self._schedule.writes[number] = self._write(write)
        finally:
            self._open.pop()
        self._ready.add(memory)

    # -- statements ---------------------------------------------------------------------------------

    def _write(self, write: Write) -> Write:
        if any(_loads([extent]) for _, extent in write.loops):
            raise Unsupported(f"{write.label} repeats as often as a memory says")
        address = self._plain(write, write.address)
        guard = self._condition(write)
        value = write.value
        if guard is not false:
            value = self._value(write, value)
        if address is write.address and guard is write.guard and value is write.value:
            return write
        return replace(write, address=address, guard=guard, value=value)

    def _condition(self, write: Write) -> Expr:
        """The condition of a write; decided, where a memory had a part in it and it can be."""
        if not _loads([write.guard]):
            return write.guard
        guard = self._plain(write, write.guard)
        here = self._iteration(write.loops)
        for outcome, there in ((false, ~guard), (true, guard)):
            condition = here.inside(there)
            if here.context.proves(condition):
                what = "never" if outcome is false else "always"
                name = f"{write.label} {self._schedule.writes.index(write)} writes {plain(write.memory.name)} {what}"
                meaning = "the condition has this value in every iteration"
                here.context.theorem(f"{self._prefix}: conditions", name, condition, meaning)
                return outcome
        return guard

    def _value(self, write: Write, value: Expr) -> Expr:
        """A value with the addresses that it loads from resolved, in folds and snapshots, too."""
        for node in postorder([value]):
            if node in self._settled:
                continue
            self._settled.add(node)
            if node in self._schedule.folds:
                self._fold(self._schedule.folds[node])
            elif node in self._schedule.snapshots:
                snapshot = self._schedule.snapshots[node]
                self._schedule.snapshots[node] = replace(snapshot, value=self._value(snapshot, snapshot.value))
        return self._direct(write, value, ())

    def _fold(self, fold: Fold) -> None:
        """Resolves a fold at its own place, once, whoever uses it."""
        initial = tuple(self._value(fold.here, t) for t in fold.initial)
        step = tuple(self._direct(fold.here, t, fold.loops) for t in fold.step)
        before, after = (*fold.initial, *fold.step), (*initial, *step)
        if any(a is not b for a, b in zip(before, after, strict=True)):
            resolved = replace(fold, initial=initial, step=step)
            self._schedule.folds.update(dict.fromkeys(fold.results, resolved))

    def _direct(self, write: Write, value: Expr, inner: Loops) -> Expr:
        """A term with the words replaced that its loads take their addresses from, but for those that are data."""
        words = {word for n in postorder([value]) if n.op == "load" for word in _loads([n.args[1]])}
        known: dict[Expr, Expr] = {}
        for word in _loads([value]):  # inner ones first
            if word in words:
                with suppress(Unsupported):  # both sides must have it in common, then
                    known[word] = self._word(write, substitute(word, known), inner)
        return substitute(value, known)

    def _plain(self, write: Write, term: Expr) -> Expr:
        """A term without loads."""
        known: dict[Expr, Expr] = {}
        for word in _loads([term]):  # inner ones first
            known[word] = self._word(write, substitute(word, known), ())
        return substitute(term, known)

    def _holds(self, number: int, condition: Condition) -> None:
        """Proves what must hold wherever a statement is reached."""
        here = condition.here
        goal = here.guard.implies(self._plain(here, here.value))
        iteration = self._iteration(here.loops)
        for k, part in enumerate(dict.fromkeys(conjuncts_of(iteration.inside(goal)))):
            name = f"{here.label}, {number}: {condition.name}{f', part {k}' if k else ''}"
            iteration.context.theorem(f"{self._prefix}: {condition.group}", name, part, condition.meaning)

    # -- words --------------------------------------------------------------------------------------

    def _word(self, write: Write, load: Expr, inner: Loops) -> Expr:
        """What a load reads just before a write, as a term over the write's counters (and those of inner loops)."""
        memory, address = load.args
        if memory.op != "var":
            raise Unsupported(f"{write.label} reads an address from a memory that is a term")
        self._memory(memory)
        around = write.place[:-1]
        # statements that follow each other without writing the memory read the same
        changes = any(w.place[: len(around)] == around for w in self._schedule.writes_to(memory))
        used = set(free_variables(address).values())
        inner = inner if any(c in used for c, _ in inner) else ()
        key = (load, around, write.place if changes else (), _identity((*write.loops, *inner)))
        if key not in self._words:
            here = self._iteration((*write.loops, *inner))
            point = Point(write.place, tuple(here.coordinates[c] for c in write.counters))
            definition = self.values.definitions.of(here.context, memory, Reader(here.inside(address), None, {}), point)
            word = here.outside(self._stored(definition)) if definition is not None else self.values.idle(memory)
            if word is None:
                raise Unsupported(f"{write.label} depends on {memory.name} as it was before the program")
            self._words[key] = word
        return self._words[key]

    def _stored(self, definition: Definition) -> Expr:
        """What a write stored, as a term over sizes and the coordinates of the definition's iteration."""
        write = definition.write
        if write not in self._forms:
            for load in _loads([write.value]):
                if load.args[0].op == "var":
                    self._memory(load.args[0])
            here = self._iteration(write.loops)
            form = here.outside(self.values.term(here.context, write, here.coordinates, (), write.value))
            known = {*write.counters, *self.values.definitions.layout.proof.mapping.parameters.values()}
            for name, variable in free_variables(form).items():
                if variable not in known:
                    raise Unsupported(
                        f"an address depends on {write.memory.name}, where {write.label} stores data ({name})"
                    )
            self._forms[write] = form
        return substitute(self._forms[write], {c: resize(t, c.width) for c, t in definition.at.items()})

    def _iteration(self, loops: Loops) -> _Iteration:
        key = _identity(loops)
        if key not in self._iterations:
            proof = self.values.definitions.layout.proof
            name = f"{self._prefix}, loops {len(self._iterations)}"
            coordinates = {c: fresh(c.name, c.sort) for c, _ in loops}
            ranges = tuple((coordinates[c], substitute(extent, coordinates)) for c, extent in loops)
            encoding = proof.domain.fork(name)
            for counter, extent in ranges:
                encoding.assume(less(counter, extent))
            proof.fits(encoding, f"{name}: extents")
            samples = Samples(proof.parameters, (), tuple(proof.samples)).extend(ranges, 0, 5)
            if not samples.rows:
                raise Unsupported(f"{', '.join(c.name for c, _ in loops)} have no iteration at any sample")
            self._iterations[key] = _Iteration(Context(proof, encoding, ranges, samples, name), coordinates)
        return self._iterations[key]


def _loads(terms: Iterable[Expr]) -> list[Expr]:
    """The loads inside terms, inner ones first."""
    return [n for n in postorder(list(terms)) if n.op == "load"]


def _identity(loops: Loops) -> tuple[int, ...]:
    # terms are compared by identity: their equality is a term
    return tuple(id(t) for loop in loops for t in loop)
