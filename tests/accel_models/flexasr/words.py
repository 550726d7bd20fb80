"""Configuration words that tests write."""

from __future__ import annotations

from collections.abc import Mapping

from accel_models.flexasr.config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD


def pack_unit(**values: int) -> int:
    """The configuration word of a unit, regions 7 .. B; see :data:`UNIT_WORD`."""
    return UNIT_WORD.pack(**values)


def pack_large_manager(num_vector: Mapping[int, int], base: Mapping[int, int]) -> int:
    """The large manager word from strides and bases by entry (0..3); other entries are 0."""
    strides = {f"num_vector_{i}": n for i, n in num_vector.items()}
    return LARGE_MANAGER_WORD.pack(**strides, **{f"base_large_{i}": b for i, b in base.items()})


def pack_small_manager(base: Mapping[int, int]) -> int:
    """The small manager word from bases by entry (0..7); other entries are 0."""
    return SMALL_MANAGER_WORD.pack(**{f"base_small_{i}": b for i, b in base.items()})
