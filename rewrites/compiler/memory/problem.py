"""Memory planning: what is to be placed, and what a plan is.

One convention of time holds in all modules ``memory_...``: a time is an integer, and a buffer is *live* at ``t`` when
``start <= t < end`` (half-open). Two buffers are live together when some time belongs to both. Sources that write
intervals with their last time included (ONNC, TFLite, ONNX Runtime) must add 1 to the end; read unchanged, their
intervals let the input and the output of one operator share cells.

Sizes, alignments, addresses and capacities count cells of one memory, in one unit of the caller's choice (bytes,
words). They are Python integers, so nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from types import MappingProxyType


def _demand_integer(owner: str, what: str, value: object, least: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{owner}: {what} must be an integer of at least {least}, but it is {value!r}. {advice}")


@dataclass(frozen=True)
class Buffer:
    """A tensor that needs ``size`` consecutive cells at all times ``start <= t < end``.

    Its address must be a multiple of ``alignment`` (1: any), and ``fixed`` if that is given. Raises ``ValueError``
    for an empty name, a size or an alignment below 1, a negative start, an interval without a time, and a fixed
    address that is not aligned.
    """

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1
    fixed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(
                f"a buffer's name must be a text of at least one character, but it is {self.name!r}. Name it."
            )
        owner = f"buffer {self.name!r}"
        _demand_integer(owner, "the size", self.size, 1, "Leave tensors without elements out of the problem.")
        _demand_integer(owner, "the alignment", self.alignment, 1, "Give 1 if any address will do.")
        _demand_integer(owner, "the start", self.start, 0, "Count times from 0.")
        _demand_integer(
            owner, "the end", self.end, self.start + 1, "Intervals are half-open: the end is the last time plus 1."
        )
        if self.fixed is not None:
            _demand_integer(owner, "the fixed address", self.fixed, 0, "Give None if the planner may choose.")
            if self.fixed % self.alignment:
                raise ValueError(
                    f"{owner}: the fixed address must be a multiple of the alignment {self.alignment}, but it is "
                    f"{self.fixed}. Change one of them."
                )


@dataclass(frozen=True)
class MemoryProblem:
    """Buffers that are to share the cells ``0 .. capacity - 1`` of one memory; ``capacity`` of ``None`` sets no limit.

    Raises ``ValueError`` for two buffers of one name, a fixed buffer that ends behind the capacity, and two fixed
    buffers that are live together and overlap. That the other buffers fit is for the planner to find out.
    """

    buffers: tuple[Buffer, ...]
    capacity: int | None = None

    def __init__(self, buffers: Iterable[Buffer], capacity: int | None = None) -> None:
        object.__setattr__(self, "buffers", tuple(buffers))
        object.__setattr__(self, "capacity", capacity)
        if capacity is not None:
            _demand_integer("memory problem", "the capacity", capacity, 1, "Give None for no limit.")
        seen: set[str] = set()
        for buffer in self.buffers:
            if buffer.name in seen:
                raise ValueError(
                    f"memory problem: names must differ, but two buffers are named {buffer.name!r}. Rename one."
                )
            seen.add(buffer.name)
        fixed = [(buffer, buffer.fixed) for buffer in self.buffers if buffer.fixed is not None]
        for buffer, address in fixed:
            if capacity is not None and address + buffer.size > capacity:
                raise ValueError(
                    f"buffer {buffer.name!r}: fixed at {address} with size {buffer.size}, it must end within the "
                    f"capacity {capacity}, but it ends at {address + buffer.size}. Move it, or give more capacity."
                )
        for (one, at_one), (two, at_two) in combinations(fixed, 2):
            apart_in_time = one.end <= two.start or two.end <= one.start
            if not apart_in_time and at_one < at_two + two.size and at_two < at_one + one.size:
                raise ValueError(
                    f"buffers {one.name!r} and {two.name!r} are live together at time {max(one.start, two.start)}, so "
                    f"their fixed places must be disjoint, but they are {at_one}..{at_one + one.size - 1} "
                    f"and {at_two}..{at_two + two.size - 1}. Move one of them."
                )


class Minimality(Enum):
    """Why the peak of a plan cannot be smaller, or that this is unknown."""

    BOUND = "as large as the sizes that are live at one time, or as the end of a fixed buffer"
    SEARCH = "a search of all placements that could be lower has finished"
    UNPROVED = "unproved"


@dataclass(frozen=True)
class MemoryPlan:
    """An address for each buffer, by name. ``peak`` is the largest end (address plus size), 0 without buffers.

    No placement has a peak below ``lower_bound``; ``minimality`` says whether and why it equals ``peak``.
    """

    addresses: Mapping[str, int]
    peak: int
    lower_bound: int
    minimality: Minimality

    def __post_init__(self) -> None:
        object.__setattr__(self, "addresses", MappingProxyType(dict(self.addresses)))

    @property
    def minimal(self) -> bool:
        """Whether the peak is proved to be the smallest possible."""
        return self.minimality is not Minimality.UNPROVED
