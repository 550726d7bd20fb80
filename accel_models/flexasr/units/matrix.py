"""The matrix, and the rows of vectors, that a unit of the global buffer works on."""

from __future__ import annotations

from typing import Literal

from accel_models.flexasr.layout import SMALL_VECTORS, byte_address, vector_address
from accel_models.flexasr.terms import select
from ila_lang import Expr, Ila, concat, const, ite


class Matrix:
    """The matrix in the large buffer that a unit's memory_index names, with the unit's num_vector vectors.

    ``operand`` selects them: 1 for memory_index_1 and num_vector_1, 2 for the others.
    """

    def __init__(self, ila: Ila, unit: str, stride: Literal["manager", "unit"], operand: int = 1) -> None:
        s = ila.states
        self.memory = s["gb_core_large_buffer"]
        self.vectors = s[f"gb_{unit}_num_vector_{operand}"]
        # The configuration has three bits of memory index; the port of the large buffer has two.
        index = s[f"gb_{unit}_memory_index_{operand}"][1:0]
        self.base = select(index, [s[f"gb_core_mem_mngr_large_base_large_{i}"] for i in range(4)])
        # Hardware strides by the manager's num_vector and loops over the unit's.
        self.stride = select(index, [s[f"gb_core_mem_mngr_large_num_vector_{i}"] for i in range(4)])
        if stride == "unit":
            self.stride = self.vectors

    def address(self, timestep: Expr, vector: Expr, lane: Expr) -> Expr:
        """The byte address of an element."""
        return byte_address(vector_address(self.base, self.stride, timestep, vector), lane)


class Row:
    """Vectors in the small buffer, from the base of an entry of its manager on.

    ``entry`` is a number 0 .. 7 or an expression of 3 bits.
    """

    def __init__(self, ila: Ila, entry: int | Expr) -> None:
        bases = [ila.states[f"gb_core_mem_mngr_small_base_small_{i}"] for i in range(8)]
        self.memory = ila.states["gb_core_small_buffer"]
        self.base = bases[entry] if isinstance(entry, int) else select(entry, bases)

    def address(self, vector: Expr, lane: Expr) -> Expr:
        """The byte address of a lane (its low 4 bits) of a vector (at most 16 bits)."""
        # the buffer has 1024 vectors: higher bits of the vector's number are lost
        number = self.base + vector.zext(16)
        return concat(number[SMALL_VECTORS.bit_length() - 2 : 0], lane[3:0])


def at_least_one(count: Expr) -> Expr:
    """The number of times a loop runs that is configured to run ``count`` times.

    Hardware tests the end after the body, as "counter >= count - 1" on signed numbers: 0 behaves as 1.
    """
    return ite(count == 0, const(1, count.width), count)
