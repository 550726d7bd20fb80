"""Random bodies of kernels and programs: any tree of loops, blocks, folds, loads and stores.

Both sides of a claim take the same draws, so that their texts agree but for names.  Whether they leave the same is not
known: what was in a memory before may matter.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from ila_lang import Expr, Kernel, const, ite
from ila_lang.language.expr import resize

FAR = 0.06
"""How often something behaves in another way from 8 on, which the samples of a claim do not reach."""


class Place(Protocol):
    """Where a tree grows: its builder and a source of names."""

    k: Kernel

    @property
    def fresh(self) -> Callable[[], str]:
        """Gives a new name."""
        ...


class Tree:
    """A random body over sizes (32 bits), memories of bytes, and bytes that are known."""

    def __init__(
        self, place: Place, draws: Random, sizes: tuple[Expr, Expr], memories: list[Expr], known: list[Expr]
    ) -> None:
        self.place, self.k, self.draws = place, place.k, draws
        self.rows, self.columns = sizes
        self.memories, self.known = memories, known
        self.counters: list[Expr] = []

    def block(self, statements: int, depth: int) -> None:
        """A few statements; registers of a block are known in it only."""
        outside = list(self.known)
        for _ in range(statements):
            self.statement(depth)
        self.known[:] = outside

    def statement(self, depth: int) -> None:
        """One statement, with what it has inside."""
        simple = ["store", "store", "load", "load", "let", "stores"]
        kind = self.draws.choice(["loop"] * 3 + ["when", "fold", *simple] if depth > 0 else simple)
        if kind == "loop":
            extent = self.extent()
            if self.draws.random() < 0.1:
                extent = extent[7:0]
            narrow = 3 if self.draws.random() < 0.07 else None
            with self.k.loop(self.place.fresh(), extent, narrow) as counter:
                self.counters.append(resize(counter, 32))
                self.block(self.draws.randint(1, 2), depth - 1)
                self.counters.pop()
        elif kind == "when":
            with self.k.when(self.place.fresh(), self.condition()):
                self.block(self.draws.randint(1, 2), depth - 1)
        elif kind == "fold":
            self.fold(depth - 1)
        elif kind == "store":
            self.k.store(self.draws.choice(self.memories), self.address(), self.value())
        elif kind == "stores":  # which may become a loop
            memory, start, value = self.draws.choice(self.memories), self.index(), self.value()
            step = self.draws.choice([0, 0, 1, 7])
            for number in range(self.draws.randint(3, 5)):
                self.k.store(memory, start * self.columns + number, value + number * step)
        elif kind == "load":
            self.known.append(self.k.load(self.place.fresh(), self.draws.choice(self.memories), self.address()))
        else:
            self.known.append(self.k.let(self.place.fresh(), self.value()))

    def fold(self, depth: int) -> None:
        """A register that a loop carries, perhaps past stores and blocks."""
        register = self.k.let(self.place.fresh(), self.value())
        with self.k.loop(self.place.fresh(), self.extent()) as counter:
            self.counters.append(counter)
            word = self.k.load(self.place.fresh(), self.draws.choice(self.memories), self.address())
            step = (register << 1) + (word ^ self.value())
            if self.draws.random() < 0.3:
                with self.k.when(self.place.fresh(), self.condition()):
                    self.k.assign(register, step)
            else:
                self.k.assign(register, step)
            if self.draws.random() < 0.3:
                self.block(1, depth)
            self.counters.pop()
        self.known.append(register)

    def extent(self) -> Expr:
        """How often a loop runs."""
        one = self.draws.choice(self.counters) if self.counters else const(0, 32)
        rest = ite(one < self.rows, self.rows - one, const(0, 32))
        band = ite(one + 2 < self.columns, one + 2, self.columns)
        shorter = self.draws.choice([one + 1, one + 1, rest, band]) if self.counters else self.rows - 1
        literals = [const(k, 32) for k in (1, 2, 3)]
        far = [resize(self.columns[2:0], 32), ite(self.rows > 8, const(1, 32), self.columns)]
        if self.draws.random() < FAR:
            return self.draws.choice(far)
        return self.draws.choice([self.rows, self.columns, self.columns, self.rows - 1, shorter, *literals])

    def index(self) -> Expr:
        """A counter, or a small literal."""
        if self.counters and self.draws.random() < FAR:
            return resize(self.draws.choice(self.counters)[2:0], 32)
        return self.draws.choice([*self.counters, *self.counters, const(self.draws.randrange(3), 32)])

    def address(self) -> Expr:
        """A cell: a row and a column, or an element of a row."""
        one, two = self.index(), self.index()
        if self.draws.random() < 0.15:
            one = one + self.index()
        cell, turned = one * self.columns + two, (self.rows - 1 - one) * self.columns + two
        divided = (one // self.columns) * self.columns + one % self.columns
        read = self.draws.choice(self.memories).load(two).zext(32)
        forms = [cell, cell, cell, one, one + 1, turned]
        return self.draws.choice([*forms, self.draws.choice([divided, read])])

    def condition(self) -> Expr:
        """What a block depends on."""
        one = self.index()
        if self.draws.random() < FAR:
            return self.draws.choice([one == 8, self.rows <= 8, one < 8, self.columns != 9])
        return self.draws.choice([one == self.draws.randrange(3), one + 1 < self.rows, self.columns <= 2, one != 0])

    def value(self) -> Expr:
        """A byte."""
        one = self.draws.choice([*self.known, *self.known, const(self.draws.randrange(256), 8)])
        other = self.draws.choice([*self.known, self.index()[7:0]])
        return self.draws.choice([one, one, one + other, one ^ other, ite(self.condition(), one, other)])
