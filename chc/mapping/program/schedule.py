"""Programs as schedules: every store of a fragment with the loops around it and its place among the others.

A schedule keeps any tree of loops: phases that follow each other inside a loop over time, micro-programs, conditions,
and kernels started from host loops.  What remains after decoding is a list of writes.  A *write* has its loops, a
condition, and a *place*: the numbers of the statements on the way to it, which alternate with the counters of its
loops (a 2d+1 schedule).  Comparing these lists from the left tells which of two instances comes first.

Registers that a loop carries become *folds*: loops, initial values and steps, with a place of their own.  Every load
reads the memory as it is just before the write that uses it, or at the place of the fold; where another write stands in
between, the value is a *snapshot*: its term belongs to the place before that write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from ila_lang import (
    Command,
    Expr,
    For,
    Fragment,
    Let,
    Load,
    Statement,
    Store,
    const,
    false,
    free_variables,
    ite,
    mem,
    substitute,
    true,
)
from ila_lang.language.expr import bv_const, private_var, resize
from ila_lang.language.kernel import map_statement, walk
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .commands import Decoded, choices, decode, generalised, rolled_apart, rolled_up, start_values
from .multiples import with_multiples
from .patterns import changes_more
from .statements import (
    carried,
    carries,
    condition_of,
    deciding,
    distributable,
    loads_memory,
    own_memory,
    require_words,
    writes_memory,
)
from .writes import Condition, Fold, Loops, NotDistributable, Schedule, Write

_NOWHERE = private_var("nowhere!", mem(1, 1))

MOST_COPIES = 32
"""Largest literal extent of a loop that is written out, where its counter decides what its body does."""


def schedule_of(fragment: Fragment, samples: Sequence[Mapping[str, int]] = ()) -> Schedule:
    """The schedule of a fragment, run from any idle state of its device.

    ``samples`` are sizes at which an instruction is chosen where several may be meant: at the first ones, and proved to
    be the one; or each in some iterations, if that is so at any.
    Scalar state has unknown initial values (fresh variables) but for what ``fragment.idle`` gives.
    Raises Unsupported where a command cannot be decoded or a loop has another shape than described above.
    """
    require_words(fragment)
    builder = _Builder(fragment, samples)
    builder.block(fragment.program.body, start_values(fragment), _Scope())
    builder.schedule.writes = rolled_up(builder.schedule.writes)
    return builder.schedule


@dataclass(frozen=True)
class _Scope:
    """Where a statement stands: loops, the numbers of the enclosing statements, conditions and a name."""

    loops: Loops = ()
    prefix: tuple[int, ...] = ()
    guard: Expr = true
    label: str = "program"


class _Unroll(Exception):
    """The counter of a loop with a literal extent decides a condition: its body has to be written out."""

    def __init__(self, counter: Expr) -> None:
        self.counter = counter


Known = dict[Expr, Expr]


class _Builder:
    def __init__(self, fragment: Fragment, samples: Sequence[Mapping[str, int]]) -> None:
        self.fragment, self.samples = fragment, samples
        self.schedule = Schedule(fragment)
        self.positions: dict[tuple[int, ...], int] = {}
        self.entered: set[Expr] = set()  # counters of loops that were entered
        self.literal: dict[Expr, int] = {}  # counters of open loops with literal extents
        self.assigned: set[Expr] = set()
        self.touched: set[Expr] = set()
        self.changes: dict[int, tuple[set[Expr], set[Expr]]] = {}
        self.rehearsing = False
        self.open: set[Expr] = set()  # registers of open loops that carry registers and write memories
        self.unsettled: set[Expr] = set()  # memories that these loops write
        self.folding = False  # inside a fold, whose counters belong to no place

    # -- statements ---------------------------------------------------------------------------------

    def block(self, body: Iterable[Statement], known: Known, scope: _Scope) -> None:
        """Executes statements symbolically; ``known`` gives scalars and registers, and is updated."""
        for statement in body:
            match statement:
                case Let(target=target, value=value):
                    known[target] = self._linear(substitute(value, known))
                case Load(target=target, memory=memory, address=address):
                    known[target] = own_memory(memory).load(self._index(substitute(address, known)))
                case Store(memory=memory, address=address, value=value):
                    self._store(own_memory(memory), substitute(address, known), substitute(value, known), known, scope)
                case Command():
                    self._command(statement, known, scope)
                case For():
                    self._loop(statement, known, scope)

    def _command(self, command: Command, known: Known, scope: _Scope) -> None:
        mapped = map_statement(command, partial(substitute, mapping=known))
        assert isinstance(mapped, Command)
        scope = replace(scope, label=command.note or scope.label)
        meaning = "the command selects the instruction that it is taken for, and no other"
        chosen = self._choices(mapped, known, scope)
        name, before = "the instructions" if chosen[1:] else "the instruction", dict(known)
        for decoded in chosen:
            self._require(scope, "decoding", name, meaning, decoded.selected)
        for decoded in chosen:
            inside = dict(before)
            self._effect(decoded, command.note, inside, replace(scope, guard=scope.guard & decoded.condition))
            for target, value in inside.items():
                if value is not before.get(target):
                    known[target] = ite(decoded.condition, value, known[target])

    def _choices(self, command: Command, known: Known, scope: _Scope) -> list[Decoded]:
        """What a command does: by one instruction, or by each that iterations of the loops around choose."""
        chosen = choices(self.fragment, command, known, scope.loops, self.samples)
        if chosen is None:
            return [self._decode(command, known)]
        names = free_variables(*(d.condition for d in chosen))
        if any(counter.name in names for counter in self.literal):
            with suppress(Unsupported):  # the instructions may be one in each iteration of a short loop
                return [self._decode(command, known)]
        return chosen

    def _effect(self, decoded: Decoded, note: str, known: Known, scope: _Scope) -> None:
        """What an instruction does, and the kernel that it starts."""
        if len(decoded.stores) > 1:
            self._check_separate(decoded.stores)
        # what the command reads into registers it reads before it writes
        after = {**known, **decoded.updates}
        self._take_snapshots(after, [s.memory for s in decoded.stores], scope)
        groups = rolled_apart(decoded.stores)
        if groups is not None:
            for lane, store, count in groups:
                inner = self._enter(scope, lane, bv_const(count, lane.width))
                self._emit(store.memory, store.address, store.value, inner)
        else:
            for store in decoded.stores:
                self._emit(store.memory, store.address, store.value, scope)
        known.update(after)
        self.assigned |= set(decoded.updates)
        if decoded.kernel is not None:
            if decoded.guard is not true:
                self.schedule.requires.append((f"{note or 'the start'} has an effect", decoded.guard))
            label = f"{self.fragment.ila.name} {decoded.kernel.name}"
            states = self.fragment.ila.states
            self._take_snapshots(known, [s.memory for s in walk(decoded.kernel.body) if isinstance(s, Store)], scope)
            self.block(decoded.kernel.body, dict(known), replace(scope, label=label))
            done = {states[name]: substitute(term, known) for name, term in decoded.kernel.on_done.items()}
            known.update(done)
            self.assigned |= set(done)

    def _decode(self, command: Command, known: Known) -> Decoded:
        """Decodes a command, if need be for each value of the counter of an open loop with a literal extent."""
        free = {name for _, value in command.inputs for name in free_variables(value)}
        counters = [c for c in self.literal if c.name in free]
        try:
            return decode(self.fragment, command, known)
        except Unsupported:
            pass
        for counter in counters:
            try:
                cases = [
                    decode(self.fragment, command, known, {counter: bv_const(k, counter.width)})
                    for k in range(self.literal[counter])
                ]
            except Unsupported:
                continue
            return generalised(cases, counter, command.note or "a command")
        return decode(self.fragment, command, known, may_be_open=True, sizes=self.samples[0] if self.samples else None)

    def _store(self, memory: Expr, address: Expr, value: Expr, known: Known, scope: _Scope) -> None:
        self._take_snapshots(known, [memory], scope)
        self._emit(memory, address, value, scope)

    def _emit(self, memory: Expr, address: Expr, value: Expr, scope: _Scope) -> None:
        self.touched.add(memory)
        place = (*scope.prefix, self._next(scope.prefix))
        address, value = self._index(address), self._linear(value)
        self.schedule.writes.append(Write(scope.label, scope.loops, place, memory, address, value, scope.guard))

    def _next(self, prefix: tuple[int, ...]) -> int:
        number = self.positions.get(prefix, 0)
        self.positions[prefix] = number + 1
        return number

    def _check_separate(self, stores: Sequence[Store]) -> None:
        """Refuses stores of one command that read what another one writes: a command writes everything at once."""
        written = {s.memory for s in stores}
        for store in stores:
            if any(written & self.schedule.sources(term) for term in (store.address, store.value)):
                raise Unsupported(f"a command reads {store.memory.name} and writes it")

    def _require(self, scope: _Scope, group: str, name: str, meaning: str, condition: Expr) -> None:
        """Notes what must hold wherever a statement is reached."""
        if condition is not true:
            here = self._here(scope, condition, scope.guard)
            self.schedule.conditions.append(Condition(group, name, meaning, here))

    def _here(self, scope: _Scope, value: Expr, guard: Expr = true) -> Write:
        """The place that is reached now, as a write to nowhere."""
        place = (*scope.prefix, self._next(scope.prefix))
        return Write(scope.label, scope.loops, place, _NOWHERE, const(0, 1), value, guard)

    def _counted(self, counter: Expr, extent: Expr, scope: _Scope) -> None:
        """Every iteration of a loop has a number that fits its counter; otherwise the counter would start over."""
        if extent.width > 32 or counter.width > 32:
            raise Unsupported(f"loop {counter.name} is counted with more than 32 bits")
        width = max(extent.width, counter.width) + 1
        fits = resize(extent, width) <= (1 << counter.width)
        if fits is false:
            raise Unsupported(f"loop {counter.name} has more iterations than its {counter.width} bits can count")
        name, meaning = f"counter {plain(counter.name)} is wide enough", "the loop's extent fits its counter"
        self._require(scope, "loop facts", name, meaning, fits)

    def _enter(self, scope: _Scope, counter: Expr, extent: Expr) -> _Scope:
        prefix = (*scope.prefix, self._next(scope.prefix))
        return replace(scope, loops=(*scope.loops, (counter, extent)), prefix=prefix)

    def _take_snapshots(self, known: Known, memories: Iterable[Expr], scope: _Scope) -> None:
        """What was read from memories that change next stays what it is: its term belongs to this place."""
        changing = set(memories)
        for target, value in known.items():
            if changing & self.schedule.sources(value):
                known[target] = self._with_snapshots(target.name, value, changing, scope)

    def _with_snapshots(self, name: str, value: Expr, changing: set[Expr], scope: _Scope) -> Expr:
        """``value`` with what it reads from ``changing`` memories as symbols that belong to this place.

        A register of a loop that is open is not known at any place: what stands around it stays a term.
        """
        parts: dict[Expr, Expr] = {}
        for part in self.schedule.parts(value, self.open, changing):
            snapshot = fresh(f"kept.{name}", part.sort)
            self.schedule.snapshots[snapshot] = self._here(scope, part)
            parts[part] = snapshot
        return substitute(value, parts)

    def _unknown(self, like: Expr, loops: Loops) -> Expr:
        """State that is not followed; another value in each iteration of the loops around."""
        symbol = fresh(f"unknown.{like.name}", like.sort)
        self.schedule.unknown[symbol] = tuple(c for c, _ in loops)
        return symbol

    # -- loops --------------------------------------------------------------------------------------

    def _loop(self, loop: For, known: Known, scope: _Scope) -> None:
        if scope.label == _Scope.label:
            notes = list(dict.fromkeys(s.note for s in walk(loop.body) if isinstance(s, Command) and s.note))
            if notes:
                scope = replace(scope, label=notes[0] if len(notes) == 1 else f"{notes[0]} .. {notes[-1]}")
        # an extent is read once, before what the body writes
        extent = substitute(loop.extent, known)
        extent = self._with_snapshots(loop.counter.name, extent, self._written(loop, extent), scope)
        self._counted(loop.counter, extent, scope)
        known[loop.counter] = counter = self._own(loop.counter)
        self._write_out(deciding(extent, choices=True))
        condition = condition_of(extent)
        if extent.is_const and extent.value <= 1:
            if extent.value:
                known[loop.counter] = bv_const(0, loop.counter.width)
                self.block(loop.body, known, scope)
        elif condition is not None:
            self._when(loop, condition, known, scope)
        elif extent.is_const and extent.value <= MOST_COPIES:
            saved, before = self._save(), dict(known)
            self.literal[counter] = extent.value
            try:
                if carries(loop) and not (loads_memory(loop) and distributable(loop)):
                    raise _Unroll(counter)
                self._repeat(loop, extent, known, scope)
            except (_Unroll, NotDistributable) as request:
                if isinstance(request, _Unroll) and request.counter is not counter:
                    raise
                self._restore(saved)
                known.clear()
                known.update(before)
                del self.literal[counter]
                for k in range(extent.value):
                    known[loop.counter] = bv_const(k, loop.counter.width)
                    self.block(loop.body, known, scope)
            finally:
                self.literal.pop(counter, None)
        else:
            self._repeat(loop, extent, known, scope)

    def _write_out(self, terms: Sequence[Expr]) -> None:
        """Has the loop of a counter with a literal extent written out if the counter is in one of some terms."""
        for counter in (c for c in self.literal if c.name in free_variables(*terms)):
            raise _Unroll(counter)

    def _written(self, loop: For, term: Expr) -> set[Expr]:
        """The memories that a loop writes, of those that a term reads; what its commands write is not known yet."""
        sources = self.schedule.sources(term)
        return sources if _commands(loop) else sources & {s.memory for s in walk(loop.body) if isinstance(s, Store)}

    def _own(self, counter: Expr) -> Expr:
        """The counter of a loop that is entered: a loop that is entered again has another one."""
        if counter not in self.entered:
            self.entered.add(counter)
            return counter
        return fresh(counter.name, counter.sort)

    def _repeat(self, loop: For, extent: Expr, known: Known, scope: _Scope) -> None:
        goes_on = any(self.schedule.mentions(known[t], self.open) for t in carried(loop) if t in known)
        if carries(loop) and (writes_memory(loop) or goes_on) and not _commands(loop):
            self._distribute(loop, extent, known, scope)
        elif carries(loop):
            self._fold(loop, known, scope)
        else:
            self._iterate(loop, extent, known, scope)

    def _when(self, block: For, condition: Expr, known: Known, scope: _Scope) -> None:
        """A block that runs if a condition holds; registers that it sets become choices."""
        self._write_out([condition])
        inside = {**known, block.counter: bv_const(0, block.counter.width)}
        self.block(block.body, inside, replace(scope, guard=scope.guard & condition))
        for target, value in inside.items():
            if target in known and value is not known[target]:
                known[target] = ite(condition, value, known[target])

    def _iterate(self, loop: For, extent: Expr, known: Known, scope: _Scope) -> None:
        """A loop that carries nothing but memories: its body at an arbitrary iteration."""
        changed, written = self._changed(loop, known, scope)
        if self.rehearsing and _commands(loop):
            return  # what its body changes is known
        for target in changed:
            known[target] = self._unknown(target, (*scope.loops, (known[loop.counter], extent)))
        changing = {s.memory for s in walk(loop.body) if isinstance(s, Store)} | written
        self._take_snapshots(known, changing, scope)
        with self._apart():
            self.block(loop.body, dict(known), self._enter(scope, known[loop.counter], extent))
            if not (self.assigned <= changed and self.touched <= changing):
                raise Unsupported(changes_more(loop, self.fragment, known, self.schedule.unknown))
        for target in changed:  # whether the loop ran, and what its last iteration left, is not followed
            known[target] = self._unknown(target, scope.loops)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Collects what a block changes apart from what the ones around it have changed before."""
        around = self.assigned, self.touched
        self.assigned, self.touched = set(), set()
        try:
            yield
        finally:
            self.assigned, self.touched = self.assigned | around[0], self.touched | around[1]

    def _changed(self, loop: For, known: Known, scope: _Scope) -> tuple[set[Expr], set[Expr]]:
        """The scalar state and the memories that commands inside a loop change: they may differ between iterations.

        Found by a first run, which leaves nothing else behind.  The second one checks that it changes no more.
        """
        if not _commands(loop):
            return set(), set()
        if id(loop) not in self.changes:
            saved, rehearsing, self.rehearsing = self._save(), self.rehearsing, True
            try:
                with self._apart():
                    self.block(loop.body, dict(known), self._enter(scope, known[loop.counter], loop.extent))
                    self.changes[id(loop)] = self.assigned, self.touched
            finally:
                self._restore(saved)
                self.rehearsing = rehearsing
        changed, written = self.changes[id(loop)]
        self.assigned, self.touched = self.assigned | changed, self.touched | written
        return changed, written

    def _fold(self, loop: For, known: Known, scope: _Scope) -> None:
        """A loop that carries registers, and perhaps loops inside it that do nothing else, as one fold."""
        if _commands(loop):
            raise Unsupported(f"loop {loop.counter.name} carries a register and commands a device")
        targets = [t for t in carried(loop) if t in known]
        registers = self._registers(targets)
        initial, here = tuple(known[t] for t in targets), self._here(scope, true)
        inside = {**known, **dict(zip(targets, registers, strict=True))}
        loops: list[tuple[Expr, Expr]] = []
        body: Sequence[Statement] = (loop,)
        while len(body) == 1 and isinstance(body[0], For):
            extent = substitute(body[0].extent, inside)
            if body[0] is not loop:
                self._counted(body[0].counter, extent, scope)
            counters = {c.name for c, _ in loops}
            if extent.is_const and extent.value == 1:
                inside[body[0].counter] = bv_const(0, body[0].counter.width)
            elif condition_of(extent) is not None or counters & set(free_variables(extent)):
                break
            else:
                if body[0] is not loop:
                    inside[body[0].counter] = self._own(body[0].counter)
                loops.append((inside[body[0].counter], extent))
            body = body[0].body
        around, self.folding = self.folding, True
        try:
            self.block(body, inside, scope)
        finally:
            self.folding = around
        step = tuple(inside[t] for t in targets)
        results = tuple(fresh(f"result.{t.name}", t.sort) for t in targets)
        self._finish(Fold(here, tuple(loops), registers, initial, step, results), targets, known)

    def _distribute(self, loop: For, extent: Expr, known: Known, scope: _Scope) -> None:
        """A loop that carries registers and writes memories, distributed: writes, and a fold of snapshots inside it.

        No write depends on the registers, so that the writes are those of any loop; and what the registers depend on is
        read, and kept, in the iteration itself.
        """
        if self.folding:
            raise NotDistributable(
                f"loop {loop.counter.name} inside a fold goes on from a register of a loop that writes memory"
            )
        targets = [t for t in carried(loop) if t in known]
        registers = self._registers(targets)
        changing = {s.memory for s in walk(loop.body) if isinstance(s, Store)}
        self._take_snapshots(known, changing, scope)
        initial, here = tuple(known[t] for t in targets), self._here(scope, true)
        inside = {**known, **dict(zip(targets, registers, strict=True))}
        within, first = self._enter(scope, known[loop.counter], extent), len(self.schedule.writes)
        around = self.open, self.unsettled
        self.open, self.unsettled = self.open | set(registers), self.unsettled | changing
        try:
            self.block(loop.body, inside, within)
            for write in self.schedule.writes[first:]:
                terms = (write.address, write.value, write.guard, *(e for _, e in write.loops))
                if any(self.schedule.mentions(t, set(registers)) for t in terms):
                    raise NotDistributable(
                        f"loop {loop.counter.name} writes {write.memory.name} depending on its registers"
                    )
            step = tuple(self._with_snapshots(t.name, inside[t], self.unsettled, within) for t in targets)
        finally:
            self.open, self.unsettled = around
        results = tuple(fresh(f"result.{t.name}", t.sort) for t in targets)
        fold = Fold(here, ((known[loop.counter], extent),), registers, initial, step, results)
        self._finish(self.schedule.flat(fold), targets, known)

    def _registers(self, targets: Sequence[Expr]) -> tuple[Expr, ...]:
        registers = tuple(fresh(f"register.{t.name}", t.sort) for t in targets)
        self.schedule.registers |= set(registers)
        return registers

    def _finish(self, fold: Fold, targets: Sequence[Expr], known: Known) -> None:
        for target, result in zip(targets, fold.results, strict=True):
            self.schedule.folds[result] = fold
            known[target] = result

    # -- going back ---------------------------------------------------------------------------------

    def _save(self) -> tuple[tuple[int, int, int], set[Expr], dict[tuple[int, ...], int]]:
        s = self.schedule
        return (len(s.writes), len(s.requires), len(s.conditions)), set(s.folds), dict(self.positions)

    def _restore(self, saved: tuple[tuple[int, int, int], set[Expr], dict[tuple[int, ...], int]]) -> None:
        s = self.schedule
        (writes, requires, conditions), folds, self.positions = saved[0], saved[1], dict(saved[2])
        del s.writes[writes:], s.requires[requires:], s.conditions[conditions:]
        for result in [r for r in s.folds if r not in folds]:
            del s.folds[result]

    def _index(self, address: Expr) -> Expr:
        self._write_out(deciding(address, choices=False))
        return self._linear(address)

    def _linear(self, term: Expr) -> Expr:
        return with_multiples(term, self.literal, self.schedule.requires)


def _commands(loop: For) -> bool:
    return any(isinstance(s, Command) for s in walk(loop.body))
