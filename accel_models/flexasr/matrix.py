"""The matrix that a unit of the global buffer works on."""

from __future__ import annotations

from typing import Literal

from ila_lang import Expr, Ila, const, ite

from .layout import byte_address, vector_address
from .terms import select

__all__ = ["Matrix", "at_least_one"]


class Matrix:
    """The matrix in the large buffer that a unit's memory_index_1 names, with the unit's num_vector_1 vectors."""

    def __init__(self, ila: Ila, unit: str, stride: Literal["manager", "unit"]) -> None:
        s = ila.states
        self.memory = s["gb_core_large_buffer"]
        self.vectors = s[f"gb_{unit}_num_vector_1"]
        # The configuration has three bits of memory index; the port of the large buffer has two.
        index = s[f"gb_{unit}_memory_index_1"][1:0]
        self.base = select(index, [s[f"gb_core_mem_mngr_large_base_large_{i}"] for i in range(4)])
        # Hardware strides by the manager's num_vector and loops over the unit's.
        self.stride = select(index, [s[f"gb_core_mem_mngr_large_num_vector_{i}"] for i in range(4)])
        if stride == "unit":
            self.stride = self.vectors

    def address(self, timestep: Expr, vector: Expr, lane: Expr) -> Expr:
        """The byte address of an element."""
        return byte_address(vector_address(self.base, self.stride, timestep, vector), lane)


def at_least_one(count: Expr) -> Expr:
    """The number of times a loop runs that is configured to run ``count`` times.

    Hardware tests the end after the body, as "counter >= count - 1" on signed numbers: 0 behaves as 1.
    """
    return ite(count == 0, const(1, count.width), count)
