"""Random kernels that are hard for simulators, and random machines to run them on.

They have what :func:`tests.ila_lang.oracle.kernels` does not: sums of products of extended operands and of tables,
several stored memories (one of them small, so that words are used again), memories that steer, blocks under several
conditions, loops whose extents depend on loops around them, and affine addresses that make real arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import ila_lang as il
from ila_lang import BOOL, Expr, Kernel, bv, const, ite, mem, resize, var
from ila_lang.language.expr import free_variables
from tests.ila_lang.native.levels import wrong_levels
from tests.ila_lang.oracle import run_kernel

BYTE = bv(8)
#: Memories by name: bits of an address, bits of a word.
SHAPES = {"src": (6, 8), "wgt": (6, 8), "steer": (4, 4), "dst": (8, 8), "tmp": (5, 8), "cells": (2, 20)}
MEMORIES = {name: var(name, mem(*shape)) for name, shape in SHAPES.items()}
SCALARS = {
    "n": var("n", bv(3)), "m": var("m", bv(3)), "large": var("large", bv(6)),
    "byte": var("byte", BYTE), "flag": var("flag", BOOL),
}  # fmt: skip
STORED = ("dst", "dst", "tmp", "cells")


@il.primitive(a=BYTE, b=BYTE)
def product(a: Expr, b: Expr) -> Expr:
    """A table that is an outer product: of sign and magnitude against two's complement."""
    magnitude = a[6:0].zext(16)
    return ite(a[7] == 1, const(0, 16) - magnitude, magnitude) * b.sext(16)


@il.primitive(a=BYTE, b=BYTE)
def nearly(a: Expr, b: Expr) -> Expr:
    """Almost an outer product: the last entry is another."""
    return ite((a == 255) & (b == 255), const(7, 16), a.sext(16) * b.sext(16))


@il.primitive(a=bv(4), b=bv(8))
def shifted(a: Expr, b: Expr) -> Expr:
    """An outer product with negative factors, of another shape, whose zero rows are in front."""
    return const(0, 14) - ite(a < 3, const(0, 14), a.zext(14) - 2) * ite(b < 9, const(0, 14), b.zext(14))


@il.primitive(a=BYTE, b=BYTE)
def mix(a: Expr, b: Expr) -> Expr:
    """A table that is no product."""
    return ite(a.slt(b), a * 3 + b, (b - a).ashr(a & 3))


class Maker:
    """Makes one random kernel."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.kernel = Kernel("k")
        self.names = iter(range(10_000))
        self.room = random.choice([2, 3, 4, 6, 10, 16])
        self.depth = random.choice([1, 2, 2, 3, 3, 4])
        # few memories and addresses that come again make accesses that meet
        self.stored = random.choice([STORED, ("dst",), ("tmp",), ("tmp", "dst"), ("cells", "dst")])
        self.addresses: list[tuple[Expr, frozenset[str]]] = []

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.names)}"

    def leaf(self, scope: Sequence[Expr]) -> Expr:
        if scope and self.random.random() < 0.75:
            return resize(self.random.choice(scope), 8)
        return self.pick(
            const(self.pick(0, 1, 2, 3, 5, 8, 127, 128, 255), 8),
            SCALARS["byte"],
            SCALARS["n"].zext(8),
            SCALARS["m"].zext(8),
        )

    def affine(self, scope: Sequence[Expr]) -> Expr:
        """An address: mostly sums of multiples."""
        known = {v.name for v in scope} | SCALARS.keys()
        again = [a for a, names in self.addresses if names <= known]
        if again and self.random.random() < 0.5:
            repeated: Expr = self.random.choice(again) + self.pick(0, 0, 0, 1, 2, 255)
            return repeated
        total = const(self.random.choice([0, 0, 1, 7, 32]), 8)
        for _ in range(self.random.randint(0, 3)):
            total = total + self.leaf(scope) * self.pick(1, 1, 2, 4, 8, 16)
        self.addresses.append((total, frozenset(free_variables(total))))
        return total

    def term(self, scope: Sequence[Expr], depth: int = 2) -> Expr:
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf(scope)
        a, b = self.term(scope, depth - 1), self.term(scope, depth - 1)
        makers: list[Callable[[], Expr]] = [
            lambda: self.load(a),
            lambda: self.load(self.affine(scope)),
            lambda: mix(a, b),
            lambda: ite(self.condition(scope, depth - 1), a, b),
            lambda: self.pick(a + b, a - b, a ^ b, a % b, a // b, a & b, a.ashr(b), a >> (b & 7), a << (b & 3)),
            lambda: product(a, b)[11:4],
        ]
        return self.random.choice(makers)()

    def condition(self, scope: Sequence[Expr], depth: int = 1) -> Expr:
        a, b = self.term(scope, depth), self.term(scope, depth)
        test: Expr = self.pick(a < b, a <= b, a.slt(b), a == b, a != b, a[0] == 1, SCALARS["flag"])
        return self.pick(test, ~test, test & SCALARS["flag"], test | (b == 3))

    def load(self, address: Expr, name: str = "") -> Expr:
        memory = MEMORIES[name or self.pick("src", "wgt", "steer", *self.stored, *self.stored)]
        assert isinstance(memory.sort, il.MemSort)
        return resize(memory.load(resize(address, memory.sort.addr_width)), 8)

    def addend(self, scope: Sequence[Expr], width: int) -> Expr:
        """Something to add to a register of ``width`` bits, mostly a product."""
        kind = self.random.randrange(9)
        a = self.pick(self.term(scope, 1), self.load(self.affine(scope), "src"), self.load(self.affine(scope)))
        b = self.pick(self.term(scope, 1), self.load(self.affine(scope), "wgt"), self.leaf(scope))
        if kind == 0:
            return resize(self.term(scope), width)
        if kind <= 2 or width < 16:
            table = self.pick(product(a, b), nearly(a, b), shifted(a[3:0], b))
            if table.width > width:
                return table[width - 1 : 0]
            return self.pick(table.sext(width), table.sext(width), table.zext(width))
        if kind == 3:
            # wraps where the inner width is short
            inner = self.pick(9, 12, 15, 16)
            return (self.extended(a, inner) * self.extended(b, inner)).sext(width)
        return self.extended(a, width) * self.extended(b, width)

    def extended(self, value: Expr, width: int) -> Expr:
        if width > 20 and self.random.random() < 0.2:
            value = il.concat(value, *[value] * ((width - 1) // 8 - 1))
        return self.pick(value.sext(width), value.zext(width))

    def extent(self, scope: Sequence[Expr], counters: Sequence[Expr]) -> Expr:
        kind = self.random.randrange(8)
        if not counters and self.random.random() < 0.3:
            return SCALARS["large"]
        if kind <= 2:
            return const(self.random.choice([0, 1, 2, 3, 4, 5, 6, 7]), 3)
        if kind <= 4:
            return self.pick(SCALARS["n"], SCALARS["m"])
        if kind == 5 and counters:
            return resize(self.random.choice(counters), 3) + self.pick(0, 1, 2)
        if kind == 6 and counters:
            return SCALARS["n"] - resize(self.random.choice(counters), 3)
        return self.pick(resize(self.load(self.affine(scope), "steer"), 3), resize(self.term(scope, 1), 3) & 3)

    def block(self, scope: list[Expr], registers: list[Expr], counters: list[Expr]) -> None:
        scope, registers = list(scope), list(registers)
        kernel = self.kernel
        for _ in range(self.random.randint(1, 5)):
            if self.room <= 0:
                return
            self.room -= 1
            kind = self.random.choices(
                ["for", "when", "whens", "let", "acc", "assign", "add", "load", "store", "cell"],
                [8, 3, 1, 3, 4, 2, 7, 4, 7, 3],
            )[0]
            if kind == "for" and len(counters) < self.depth:
                with kernel.loop(self.name("i"), self.extent(scope, counters)) as i:
                    self.block([*scope, i], registers, [*counters, i])
            elif kind == "when":
                with kernel.when(self.name("c"), self.condition(scope)):
                    self.block(scope, registers, counters)
            elif kind == "whens":
                place = kernel.let(self.name("r"), self.affine(scope))
                for _ in range(3):
                    condition = self.pick(self.condition(scope), self.load(place + next(self.names) % 3, "steer") < 8)
                    with kernel.when(self.name("c"), condition):
                        self.store(scope)
            elif kind == "let":
                scope.append(kernel.let(self.name("r"), self.term(scope)))
                registers.append(scope[-1])
            elif kind == "acc":
                width = self.pick(8, 16, 24, 40, 51, 62)
                register = kernel.let(self.name("a"), resize(self.term(scope, 1), width))
                registers.append(register)
                if len(counters) < self.depth and self.random.random() < 0.8:
                    with kernel.loop(self.name("i"), self.extent(scope, counters)) as i:
                        if self.random.random() < 0.5 and len(counters) + 1 < self.depth:
                            with kernel.loop(self.name("i"), self.extent(scope, [*counters, i])) as j:
                                kernel.assign(register, register + self.addend([*scope, i, j], width))
                        if self.random.random() < 0.3:
                            self.block([*scope, i], registers, [*counters, i])
                        kernel.assign(register, self.addend([*scope, i], width) + register)
                scope.append(register)
            elif kind in ("assign", "add") and registers:
                register = self.random.choice(registers)
                others = [v for v in scope if v is not register]
                if kind == "add":
                    kernel.assign(register, register + self.addend(others, register.width))
                else:
                    kernel.assign(register, resize(self.term(scope), register.width))
            elif kind == "load":
                memory = MEMORIES[self.pick("src", "steer", *self.stored, *self.stored)]
                address = self.pick(self.affine(scope), self.term(scope))
                assert isinstance(memory.sort, il.MemSort)
                scope.append(kernel.load(self.name("w"), memory, resize(address, memory.sort.addr_width)))
                if scope[-1].width == 8:
                    registers.append(scope[-1])
            elif kind == "store":
                self.store(scope)
            elif kind == "cell" and counters:
                self.cell(scope, counters)

    def store(self, scope: Sequence[Expr]) -> None:
        memory = MEMORIES[self.pick(*self.stored)]
        assert isinstance(memory.sort, il.MemSort)
        address = resize(self.pick(self.affine(scope), self.affine(scope), self.term(scope)), memory.sort.addr_width)
        wide = [v for v in scope if v.width > 8]
        word = self.random.choice(wide) if wide and self.random.random() < 0.5 else self.term(scope)
        if self.random.random() < 0.2:
            # in place
            word = resize(memory.load(address), 8) + resize(word, 8)
        self.kernel.store(memory, address, resize(word, memory.sort.data_width))

    def cell(self, scope: list[Expr], counters: Sequence[Expr]) -> None:
        """A word used as a register: its address does not depend on the innermost counters."""
        memory = MEMORIES[self.pick("tmp", "cells")]
        assert isinstance(memory.sort, il.MemSort)
        around = counters[: self.random.randrange(len(counters))]
        place = resize(self.affine(around), memory.sort.addr_width)
        word = resize(self.term([*scope, *counters], 1), memory.sort.data_width)
        parts = ["store", "load", "again"]
        if self.random.random() < 0.3:
            self.random.shuffle(parts)
        for part in parts:
            if part == "store":
                if self.random.random() < 0.2:
                    with self.kernel.when(self.name("c"), self.condition(around)):
                        self.kernel.store(memory, place, word)
                else:
                    self.kernel.store(memory, place, word)
            elif part == "load":
                shift = self.pick(0, 0, 1, (1 << memory.sort.addr_width) - 1)
                found = self.kernel.load(self.name("w"), memory, place + shift)
                self.kernel.store(MEMORIES["dst"], self.affine(counters), resize(found, 8))
            elif self.random.random() < 0.5:
                self.kernel.store(memory, place, memory.load(place) + word)


def random_kernel(random: Random) -> Kernel:
    """A random kernel over :data:`MEMORIES` and :data:`SCALARS`."""
    maker = Maker(random)
    while maker.room > 0:
        maker.block([], [], [])
    return maker.kernel


def random_words(random: Random, name: str) -> Any:
    """Contents of a memory: random, small, extreme or constant."""
    address, width = SHAPES[name]
    kind = random.randrange(4)
    top = (1 << width) - 1
    words = {
        0: lambda: random.randint(0, top),
        1: lambda: random.randint(0, min(3, top)),
        2: lambda: random.choice([0, 1, top, top >> 1, (top >> 1) + 1]),
        3: lambda: 5,
    }[kind]
    return np.array([words() for _ in range(1 << address)], np.int64)


def random_scalars(random: Random) -> dict[str, int]:
    """Values of :data:`SCALARS`."""
    return {
        "n": random.choice([0, 1, 2, 3, 3, 4, 5, 7]),
        "m": random.randint(0, 4),
        "large": random.choice([0, 1, 2, 5, 17, 40]),
        "byte": random.choice([0, 1, 3, 128, 255]),
        "flag": random.randint(0, 1),
    }


def first_difference(kernel: Kernel, random: Random, runs: int, walk: bool = False) -> str:
    """Runs ``kernel`` again and again on changing scalars and memories; what differs first from the interpreter.

    Empty if nothing does.  The reference is the compiled scalar interpreter, or the plain walker of the tests.
    """
    used = {n: v for n, v in kernel.external_variables().items() if n in MEMORIES}
    fast = {n: random_words(random, n).astype(np.uint8 if SHAPES[n][1] <= 8 else np.int64) for n in used}
    values = [random_scalars(random), random_scalars(random)]
    reference = il.compile_kernel(kernel)
    contents = {n: [random_words(random, n) for _ in range(2)] for n in used}
    for run in range(runs):
        given = values[random.randrange(2)] if random.random() < 0.9 else random_scalars(random)
        for name in used:
            if random.random() < 0.3:
                fast[name][:] = random.choice(contents[name])
        before = {n: dict(enumerate(a.tolist())) for n, a in fast.items()}
        old = {n: dict(words) for n, words in before.items()}
        if walk:
            run_kernel(kernel, given, before)
        else:
            reference(given, before, None)
        il.run_on_arrays(kernel, given, fast)
        for name, array in fast.items():
            for address, word in enumerate(array.tolist()):
                if before[name][address] != word:
                    expected = {n: [words[a] for a in range(len(words))] for n, words in before.items()}
                    levels = "\n".join(wrong_levels(kernel, given, old, expected))
                    return f"run {run}: {name}[{address}] = {word}, not {before[name][address]}; {given}\n{levels}"
    return ""


def hazard_kernel(random: Random) -> Kernel:
    """A nest of small loops whose few accesses meet in one small memory; what each load sees is stored apart."""
    kernel = Kernel("hazards")
    words, seen = var("words", mem(4, 8)), var("seen", mem(12, 8))
    names = iter(range(1000))
    budget = random.randint(2, 5)
    depth = random.randint(1, 3)
    # inner iterations that all use the same addresses
    usable = random.choice([3, 3, 2, 1])

    def address(counters: Sequence[Expr]) -> Expr:
        total = const(random.choice([0, 0, 1, 2, 5]), 4)
        for counter in counters[:usable]:
            total = total + counter.zext(4) * random.choice([0, 0, 1, 1, 2, 3, 15])
        return total

    def access(counters: Sequence[Expr]) -> None:
        nonlocal budget
        budget -= 1
        mixed = const(next(names), 8)
        for position, counter in enumerate(counters):
            mixed = mixed + counter.zext(8) * (16 << position)
        kind = random.randrange(5)
        if kind <= 1:
            kernel.store(words, address(counters), mixed + 1)
        elif kind == 2:
            kernel.store(words, address(counters), words.load(address(counters)) + mixed)
        else:
            load = words.load(address(counters))
            place = il.concat(const(next(names) & 7, 3), *([*counters, *[const(0, 3)] * 3][:3]))
            kernel.store(seen, place, load)

    def block(counters: list[Expr]) -> None:
        for part in ("before", "loop", "after"):
            if part == "loop":
                if len(counters) < depth:
                    kind = random.randrange(6)
                    extent = const(random.choice([2, 3, 4]), 3)
                    if counters and not kind:
                        extent = random.choice(counters) + 1
                    with kernel.loop(f"i{next(names)}", extent) as i:
                        block([*counters, i])
            elif len(counters) == depth or random.random() < 0.3:
                for _ in range(random.randint(0, 3)):
                    if counters and random.random() < 0.2:
                        with kernel.when(f"c{next(names)}", random.choice(counters) == random.randrange(3)):
                            access(counters)
                    else:
                        access(counters)

    while budget > 0:
        block([])
    return kernel
