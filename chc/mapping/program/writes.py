"""What is left of a program that has been decoded: writes, folds, and snapshots of what was read.

The text of :mod:`chc.mapping.program.schedule` says what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ila_lang import Expr, Fragment, false, free_variables, postorder, resize, substitute, true
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

Loops = tuple[tuple[Expr, Expr], ...]
"""Counters and extents, outermost first."""


def conjuncts_of(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, in order."""
    if condition.op == "and":
        return [part for argument in condition.args for part in conjuncts_of(argument)]
    return [condition]


class NotDistributable(Unsupported):
    """A loop carries registers and writes memories, and these depend on each other."""


@dataclass(frozen=True, eq=False)
class Write:
    """One store: in iteration ``counters`` of ``loops``, if ``guard`` holds, ``memory[address] := value``."""

    label: str
    loops: Loops
    place: tuple[int, ...]
    memory: Expr
    address: Expr
    value: Expr
    guard: Expr = true

    @property
    def counters(self) -> tuple[Expr, ...]:
        """The loop counters, outermost first."""
        return tuple(c for c, _ in self.loops)


@dataclass(frozen=True, eq=False)
class Fold:
    """``registers := initial; for loops: registers := step``; ``results`` stand for the final values.

    ``step`` speaks of the registers and counters, and of what holds around the fold.
    """

    here: Write
    """Where and when it runs, as a write to nowhere (the write itself, where the register is a cell of a memory)."""
    loops: Loops
    registers: tuple[Expr, ...]
    initial: tuple[Expr, ...]
    step: tuple[Expr, ...]
    results: tuple[Expr, ...]
    digits: Mapping[Expr, Expr] = field(default_factory=dict)
    """Counters of ``here`` in terms of the first loop's, which counts the iterations of their loops in order."""

    @property
    def counters(self) -> set[Expr]:
        """Counters of ``here``, and the one that counts iterations of their loops."""
        return {*self.here.counters, *(c for c, _ in self.loops[:1] if self.digits)}

    def at(self, number: Expr) -> dict[Expr, Expr]:
        """The counters whose digits a number in the first loop has."""
        first = {c: resize(number, c.width) for c, _ in self.loops[:1]}
        return {c: substitute(term, first) for c, term in self.digits.items()}

    @property
    def terms(self) -> tuple[Expr, ...]:
        """What it begins with, does in each step, and how often."""
        return (*self.initial, *self.step, *(e for _, e in self.loops))


@dataclass(frozen=True, eq=False)
class Condition:
    """``here.value`` must hold wherever ``here``, a write to nowhere, is reached; ``meaning`` says what it is for."""

    group: str
    name: str
    meaning: str
    here: Write


@dataclass(eq=False)
class Schedule:
    """All writes of a fragment, its folds by result, and conditions that its decoding relies on, with a text each."""

    fragment: Fragment
    writes: list[Write] = field(default_factory=list)
    folds: dict[Expr, Fold] = field(default_factory=dict)
    requires: list[tuple[str, Expr]] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    """What must hold of sizes, counters and memories wherever a statement is reached."""
    registers: set[Expr] = field(default_factory=set)
    """What stands for registers in the steps of folds: another value in each iteration."""
    unknown: dict[Expr, tuple[Expr, ...]] = field(default_factory=dict)
    """Symbols of state that is not followed, with the counters of the loops around: one for an arbitrary iteration."""
    snapshots: dict[Expr, Write] = field(default_factory=dict)
    """Values that were read before the memory changed, by symbol; as writes to nowhere, which say where and when."""

    def writes_to(self, memory: Expr) -> list[Write]:
        """The writes to one memory, in textual order; none that never happen."""
        return [w for w in self.writes if w.memory is memory and w.guard is not false]

    def sources(self, *values: Expr) -> set[Expr]:
        """The memories that a term loads from; what folds and snapshots read, they read earlier."""
        return {node.args[0] for node in postorder(values) if node.op == "load"}

    def mentions(self, value: Expr, registers: set[Expr]) -> bool:
        """Whether a term depends on one of some registers, by way of folds and snapshots, too."""
        return any(node in registers for node in self._reached([value], snapshots=True))

    def _reached(self, terms: Iterable[Expr], *, snapshots: bool) -> Iterator[Expr]:
        """The nodes of terms, of what their folds consist of and, where asked, of ``snapshots``, each once."""
        seen: set[Expr] = set()
        open_ = list(terms)
        while open_:
            for node in postorder([open_.pop()], seen):
                seen.add(node)
                yield node
                if snapshots and node in self.snapshots:
                    open_.append(self.snapshots[node].value)
                if node in self.folds:
                    open_ += self.folds[node].terms

    def loop_variant(self, term: Expr) -> Expr | None:
        """A symbol in a term that stands for another value in each iteration, and was not replaced by one; or None."""
        apart = (self.registers, self.unknown, self.snapshots, self.folds)
        return next((v for v in variables_of(term) if any(v in symbols for symbols in apart)), None)

    def names(self, fold: Fold) -> set[str]:
        """The variables that a fold depends on, by way of other folds and snapshots, too; its own are among them."""
        names = {c.name for c in fold.here.counters}
        for node in self._reached(fold.terms, snapshots=False):
            if node.op == "var":
                names.add(node.name)
            here = self.folds[node].here if node in self.folds else self.snapshots.get(node)
            names |= set() if here is None else {c.name for c in here.counters}
        return names

    def parts(self, value: Expr, registers: set[Expr], memories: set[Expr]) -> list[Expr]:
        """The largest parts of a term that read some memories; none depends on ``registers``.

        Raises NotDistributable where what is read depends on them.
        """
        parts: dict[Expr, None] = {}
        seen: set[Expr] = set()
        open_ = [value]
        while open_:
            term = open_.pop()
            if term in seen or not memories & self.sources(term):
                continue
            seen.add(term)
            if not self.mentions(term, registers):
                parts[term] = None
            elif term.op == "load":
                names = " or ".join(sorted(m.name for m in memories))
                raise Unsupported(f"what is read from {names} depends on a register")
            else:
                open_ += term.args[::-1]
        return list(parts)

    def nested(self, fold: Fold, count: int) -> Fold:
        """A fold over its first ``count`` loops, of which each step is a fold over the others that goes on from it."""
        registers = tuple(fresh(r.name, r.sort) for r in fold.registers)
        results = tuple(fresh(f"{r.name}.inner", r.sort) for r in fold.registers)
        renamed = dict(zip(fold.registers, registers, strict=True))
        step = tuple(self._renamed(t, renamed) for t in fold.step)
        inner = Fold(fold.here, fold.loops[count:], registers, fold.registers, step, results)
        self.registers |= set(registers)
        self.folds |= dict.fromkeys(results, inner)
        return replace(fold, loops=fold.loops[:count], step=results)

    def _renamed(self, term: Expr, names: Mapping[Expr, Expr]) -> Expr:
        """A term with other registers, also in the folds whose results it has."""
        results: dict[Expr, Expr] = {}
        for node in postorder([term]):
            if node in results or not self.mentions(node, set(names)):
                continue
            if node in self.snapshots:
                raise Unsupported(f"what is read before {self.snapshots[node].label} depends on a register")
            if node in self.folds:
                fold = self.folds[node]
                initial, step = ([self._renamed(t, names) for t in terms] for terms in (fold.initial, fold.step))
                loops = tuple((c, self._renamed(e, names)) for c, e in fold.loops)
                copies = tuple(fresh(f"{plain(r.name)}.renamed", r.sort) for r in fold.results)
                copy = replace(fold, loops=loops, initial=tuple(initial), step=tuple(step), results=copies)
                self.folds |= dict.fromkeys(copies, copy)
                results |= zip(fold.results, copies, strict=True)
        return substitute(term, {**names, **results})

    def flat(self, fold: Fold) -> Fold:
        """A fold whose step is a whole fold that goes on from its registers, as one over the loops of both.

        Its loops are a rectangle, entered once: how often the inner ones run is read from no memory and is no value
        that an iteration computes or keeps, but said by sizes and counters around both.
        """
        inner = self.folds.get(fold.step[0]) if fold.step else None
        if inner is None or len(inner.registers) != len(fold.registers):
            return fold
        pairs = [*zip(fold.step, inner.results, strict=True), *zip(fold.registers, inner.initial, strict=True)]
        counters = {c.name for c, _ in fold.loops}
        extents = [e for _, e in inner.loops]
        loop_variant = any(self.loop_variant(e) is not None for e in extents) or self.sources(*extents)
        if any(a is not b for a, b in pairs) or loop_variant or counters & set(free_variables(*extents)):
            return fold
        if any(self.mentions(t, set(fold.registers)) for t in inner.step):
            return fold
        return Fold(fold.here, (*fold.loops, *inner.loops), inner.registers, fold.initial, inner.step, fold.results)


@dataclass(frozen=True)
class Point:
    """A program point: just before the instance of a statement at ``place`` in iteration ``counters``."""

    place: tuple[int, ...]
    counters: tuple[Expr, ...] = ()


def shared_loops(write: Write, point: Point) -> int:
    """How many loops are around both a write and a point."""
    most = min(len(write.loops), len(point.counters))
    return next((k for k in range(most) if write.place[k] != point.place[k]), most)


END = Point((1 << 30,))
"""After the program."""
