"""Instructions that move whole rows of words: a wide input to consecutive words, or these to a wide state.

The words of a row have the addresses r * n, r * n + 1, ... r * n + n - 1 for a row number r, and n is a power of two.
Then a memory is an array of rows, and many commands are one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.machine import store_plan
from ila_lang.language.expr import Expr
from ila_lang.language.sorts import BvSort, MemSort

Words = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Row:
    """Row ``number`` of a memory: ``lanes`` words of ``size`` bytes; ``wide`` is the input that it is stored from."""

    memory: str
    lanes: int
    size: int
    number: Expr
    wide: str = ""

    def store(self, memory: Words, numbers: Words, rows: Words) -> None:
        """Stores rows of bytes; no number may occur twice."""
        words = np.ascontiguousarray(rows).view(f"<u{self.size}")
        table = memory.reshape(-1, self.lanes)
        if numbers[-1] - numbers[0] == numbers.size - 1 and bool(np.all(numbers[1:] > numbers[:-1])):
            table[numbers[0] : numbers[-1] + 1] = words
        else:
            table[numbers] = words

    def load(self, memory: Words, numbers: Words) -> Words:
        """Rows of bytes."""
        found = memory.reshape(-1, self.lanes)[numbers]
        return np.ascontiguousarray(found, f"<u{self.size}").view(np.uint8)


def row_store(term: Expr, memory: str) -> Row | None:
    """A memory's update as a store of a row from an input that has just its bits; None where it is no such store."""
    base, plan = store_plan(term)
    if base.name != memory or any(guard.op != "const" or not guard.value for guard, _, _ in plan):
        return None
    width = base.sort.data_width if isinstance(base.sort, MemSort) else 0
    source = plan[0][2].args[0] if plan and plan[0][2].op == "extract" else None
    if source is None or source.op != "var" or width not in (8, 16, 32) or source.width != width * len(plan):
        return None
    for lane, (_, _, data) in enumerate(plan):
        if data is not source[width * lane + width - 1 : width * lane]:
            return None
    number = _number([address for _, address, _ in plan])
    return None if number is None else Row(memory, len(plan), width // 8, number, source.name)


def row_load(term: Expr) -> Row | None:
    """A state's update as a load of a row that has just its bits; None where it is no such load."""
    if not isinstance(term.sort, BvSort):
        return None
    for width in (8, 16, 32):
        if term.width % width:
            continue
        words = [term[at + width - 1 : at] for at in range(0, term.width, width)]
        memories = {word.args[0] for word in words if word.op == "load"}
        if len(memories) == 1 and all(word.op == "load" and word.width == width for word in words):
            (memory,) = memories
            number = _number([word.args[1] for word in words])
            if memory.op == "var" and number is not None:
                return Row(memory.name, len(words), width // 8, number)
    return None


def _number(addresses: Sequence[Expr]) -> Expr | None:
    """The number of the row that has these addresses, in order."""
    bits = len(addresses).bit_length() - 1
    width = addresses[0].width
    if len(addresses) != 1 << bits or not 0 < bits < width:
        return None
    number = addresses[0][width - 1 : bits]
    for lane, address in enumerate(addresses):
        low = address[bits - 1 : 0]
        if low.op != "const" or low.value != lane or address[width - 1 : bits] is not number:
            return None
    return number
