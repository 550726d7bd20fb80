"""Inputs of both functions that are drawn at random: special values, few values, values that depend on the order."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from chc.scalar_rules.search import random_value, special_values
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.terms import Input, Symbol
from ir_semantics.scalars.floats import round_to
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Value


@dataclass
class Inputs:
    """Concrete inputs; the elements of tensors are drawn when they are first read."""

    symbols: dict[Symbol, Value]
    draw: random.Random
    pools: dict[Format, list[Value]]
    budget: Budget
    number: int = 1
    over_reals: bool = False
    of_memory: tuple[Input, ...] = ()
    block_sizes: tuple[int, ...] = (0, 1)
    arrays: dict[Input, dict[tuple[int, ...], Value]] = field(default_factory=dict)
    at: tuple[int, ...] = ()
    of_64_bits: bool = False
    _few: dict[Input, list[Value]] = field(default_factory=dict)

    def evaluation(self, more: Mapping[Symbol, Value] | None = None) -> Evaluation:
        """What evaluates terms on these inputs."""

        def contents(array: Input, at: Sequence[int]) -> Value:
            elements = self.arrays.setdefault(array, {})
            key = tuple(at)
            if key not in elements:
                elements[key] = self._element(array)
            return elements[key]

        symbols = {**self.symbols, **(more or {})}
        evaluation = Evaluation(symbols, contents, self.budget, self.called, self.over_reals, self._uniform)
        evaluation.of_64_bits = self.of_64_bits
        return evaluation

    def called(self, name: str, kind: Format, operands: Sequence[object]) -> Value:
        """What functions give that are called: something that follows from the operands alone, the same in all runs."""
        place = zlib.crc32(repr((name, operands)).encode())
        some: Sequence[Value] = range(7) if kind == INTEGERS else _results(kind)
        return some[place % len(some)]

    def _uniform(self, array: Input) -> Value | None:
        """What all elements are, if it is known: of properties of memory, where none of them is false."""
        if array not in self.of_memory or array.kind != BOOLEAN or self._is_doubtful(array):
            return None
        return True if all(self.arrays.get(array, {}).values()) else None

    def _is_doubtful(self, array: Input) -> bool:
        """Whether a property of memory may not hold: in every fourth run one of them."""
        booleans = [a for a in self.of_memory if a.kind == BOOLEAN]
        return self.number % 4 == 1 and array is booleans[self.number // 4 % len(booleans)]

    def _element(self, array: Input) -> Value:
        """In every third run all elements are one special value; of some tensors they are one of two."""
        if array in self.of_memory and array.kind == BOOLEAN:
            return not self._is_doubtful(array) or self.draw.random() < 0.5
        if array in self.of_memory and array.kind == INTEGERS:
            return self.draw.choice(self.block_sizes)
        pool = self.pools[array.kind]
        if self.number % 3 == 0 and not self.over_reals:
            return pool[(self.number // 3 + 3) % len(pool)]  # infinities first
        few = self._few.setdefault(array, [self.value(array.kind) for _ in range(self.draw.choice((0, 0, 2)))])
        return self.draw.choice(few) if few else self.value(array.kind)

    def value(self, kind: Format) -> Value:
        """A value of a format: one of its special ones as often as any."""
        if kind.family == "float" and self.over_reals:
            return self.draw.choice(_wholes(kind))
        if kind.family == "float" and self.number % 3 == 2:
            return round_to(Fraction(self.draw.randint(-4096, 4096), 1000), kind)  # sums of these depend on their order
        pool = self.pools[kind]
        return self.draw.choice(pool) if self.draw.random() < 0.7 else _any(kind, self.draw)


@cache
def _wholes(kind: Format) -> tuple[Value, ...]:
    """Some whole numbers of a format of floats, with which exact arithmetic is fast."""
    return tuple(round_to(Fraction(n), kind) for n in range(-60, 61))


@cache
def _results(kind: Format) -> tuple[Value, ...]:
    """What functions that are called may give: special values, and random ones, always the same."""
    draw = random.Random(0)
    return (*special_values(kind, ()), *(random_value(kind, draw) for _ in range(20)))


def _any(kind: Format, draw: random.Random) -> Value:
    return draw.randint(-3, 8) if kind == INTEGERS else random_value(kind, draw)
