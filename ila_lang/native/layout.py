"""Where native code finds numbers: scalars in one block of bytes, each in whole words of 64 bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from operator import rshift
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.expr import Expr

from .terms import Place, bits_of

Words = NDArray[Any]


def row_bytes(bits: int) -> int:
    """The bytes of a number of so many bits in a block."""
    return 8 * -(-bits // 64)


class Layout:
    """Scalars by name in a block of :attr:`size` bytes.

    Raises NotNative where a scalar is too wide.
    """

    def __init__(self, variables: Iterable[Expr]) -> None:
        self.variables = list(variables)
        self.bits = {v.name: bits_of(v.sort) for v in self.variables}
        self.offsets: dict[str, int] = {}
        self.size = 0
        for name, bits in self.bits.items():
            self.offsets[name] = self.size
            self.size += row_bytes(bits)
        self.wide = [name for name, bits in self.bits.items() if bits > 64]
        self.names = [name for name, bits in self.bits.items() if bits <= 64]
        parts = ("Q" if bits <= 64 else f"{row_bytes(bits)}s" for bits in self.bits.values())
        self._struct = Struct("<" + "".join(parts))
        self._order = list(self.bits)

    def places(self, block: str) -> dict[Expr, Place]:
        """Where the scalars lie, of a block at a pointer."""
        return {v: Place(block, 8 * row_bytes(self.bits[v.name]), self.offsets[v.name]) for v in self.variables}

    def block(self) -> Words:
        """A new block of zeros."""
        return np.zeros(max(self.size, 8), np.uint8)

    def pack(self, values: Mapping[str, int], block: Words) -> None:
        """Puts the scalars into a block; raises ValueError where one does not fit its width."""
        numbers: list[Any] = [int(values[name]) for name in self._order]
        if any(map(rshift, numbers, self.bits.values())):
            name, value = next((n, v) for n, v in zip(self._order, numbers, strict=True) if v >> self.bits[n])
            raise ValueError(f"Value {name} must fit in {self.bits[name]} bits unsigned, not {value}")
        if self.wide:
            sized = zip(numbers, self.bits.values(), strict=True)
            wide = [v.to_bytes(row_bytes(b), "little") if b > 64 else v for v, b in sized]
            self._struct.pack_into(block.data, 0, *wide)
        else:
            self._struct.pack_into(block.data, 0, *numbers)

    def unpack(self, block: Words, values: MutableMapping[str, int]) -> None:
        """Takes the scalars out of a block."""
        values.update(zip(self._order, self._struct.unpack_from(block.data), strict=True))
        for name in self.wide:
            values[name] = int.from_bytes(values[name], "little")  # type: ignore[arg-type]

    def rows(self, columns: Mapping[str, Words], first: int, last: int) -> Words:
        """Blocks, one after the other, of scalars given as columns (numbers, or rows of bytes); others are 0."""
        blocks = np.zeros((last - first, max(self.size, 8)), np.uint8)
        for name, column in columns.items():
            at = self.offsets[name]
            part = column[first:last]
            if part.ndim > 1:
                blocks[:, at : at + part.shape[1]] = part
            else:
                blocks[:, at : at + 8].view(np.uint64)[:, 0] = part
        return blocks


def fits(bits: int, column: Words) -> bool:
    """Whether all numbers of a column have so many bits, so that they are what the interpreter would see."""
    if column.ndim > 1:
        spare = 8 * column.shape[1] - bits
        return not spare or not len(column) or int(column[:, -1].max()) < 1 << 8 - spare
    if column.dtype == bool or not len(column):
        return True
    if column.dtype.kind not in "iu":  # NumPy's durations are integers, too
        return False
    return int(column.min()) >= 0 and int(column.max()) < 1 << bits
