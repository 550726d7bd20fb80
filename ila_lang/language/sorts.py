"""Sorts: the types of the expression language.

Three sorts exist, as in ILAng: Booleans, bit-vectors of a fixed width, and memories from
bit-vector addresses to bit-vector words.  A memory of ``addr_width`` bits has exactly
``2**addr_width`` words; there is no out-of-range address.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_BITS = 1 << 20
"""Bits of a bit-vector, and of an address; a bound of this implementation."""


@dataclass(frozen=True, slots=True)
class BoolSort:
    """The sort of truth values."""

    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class BvSort:
    """The sort of bit-vectors of ``width`` bits, read as unsigned unless an operator says otherwise."""

    width: int

    def __post_init__(self) -> None:
        _require_positive("Width of a bit-vector", self.width)

    def __str__(self) -> str:
        return f"bv{self.width}"


@dataclass(frozen=True, slots=True)
class MemSort:
    """The sort of memories with ``2**addr_width`` words of ``data_width`` bits."""

    addr_width: int
    data_width: int

    def __post_init__(self) -> None:
        _require_positive("Address width of a memory", self.addr_width)
        _require_positive("Data width of a memory", self.data_width)

    def __str__(self) -> str:
        return f"mem{self.addr_width}x{self.data_width}"


Sort = BoolSort | BvSort | MemSort

BOOL = BoolSort()


def bv(width: int) -> BvSort:
    """The bit-vector sort of ``width`` bits.

    >>> str(bv(8))
    'bv8'
    """
    return BvSort(width)


def mem(addr_width: int, data_width: int) -> MemSort:
    """The memory sort with ``2**addr_width`` words of ``data_width`` bits.

    >>> str(mem(20, 8))
    'mem20x8'
    """
    return MemSort(addr_width, data_width)


def _require_positive(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{what} must be a positive integer, not {value!r}")
    if value > MOST_BITS:
        shown = value if value < 1 << 64 else f"a number of {value.bit_length()} bits"
        raise ValueError(f"{what} must be at most {MOST_BITS}, not {shown}")
