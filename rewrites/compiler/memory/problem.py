"""Memory planning: what is to be placed, and what a plan is.

One convention of time holds in this package: a time is an integer, and a buffer is *live* at ``t`` when
``start <= t < end`` (half-open). Two buffers are live together when some time belongs to both. Sources that write
intervals with their last time included (ONNC, TFLite, ONNX Runtime) must add 1 to the end; read unchanged, their
intervals let the input and the output of one operator share cells.

Sizes, alignments and addresses count cells of one memory, in one unit of the caller's choice (bytes, words). They are
Python integers, so nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType


def _demand_integer(owner: str, what: str, value: object, least: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{owner}: {what} must be an integer of at least {least}, but it is {value!r}. {advice}")


@dataclass(frozen=True)
class Buffer:
    """A buffer of ``size`` cells that is live from ``start`` until before ``end``.

    Its address must be a multiple of ``alignment`` (1: any). Raises ``ValueError`` for an empty name, a size or an
    alignment below 1, a negative start, and an interval without a time.
    """

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1

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


@dataclass(frozen=True)
class MemoryProblem:
    """Buffers that are to share the cells of one memory; raises ``ValueError`` for two buffers of one name."""

    buffers: tuple[Buffer, ...]

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        object.__setattr__(self, "buffers", tuple(buffers))
        seen: set[str] = set()
        for buffer in self.buffers:
            if buffer.name in seen:
                raise ValueError(
                    f"memory problem: names must differ, but two buffers are named {buffer.name!r}. Rename one."
                )
            seen.add(buffer.name)

    @property
    def load(self) -> int:
        """The most cells that are live at one time, which every placement needs."""
        changes = sorted([(b.start, b.size) for b in self.buffers] + [(b.end, -b.size) for b in self.buffers])
        return max(accumulate(change for _, change in changes), default=0)  # at one time, ends (negative) come first


@dataclass(frozen=True)
class MemoryPlan:
    """An address for each buffer, by name. ``peak`` is the largest end (address plus size), 0 without buffers."""

    addresses: Mapping[str, int]
    peak: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "addresses", MappingProxyType(dict(self.addresses)))
