"""The loops of GEMM and ALU: micro-ops in two loops, their indices, and accumulators on their way through a pipeline.

An *iteration* is one micro-op in one round (y, x) of the two loops; iterations are numbered in the order y, x, u.  Each
reads accumulators and writes one.  In the sequential reading it finds what all before it have written.  A pipelined
design reads the next iterations' accumulators before it has written this one's: in the reading "stale" an iteration
finds accumulators as they were before the last ``write_latency`` iterations of its instruction.  When the instruction
ends, everything is written: pipelines run empty between instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ila_lang import Expr, Ila, Kernel, const, false, ite, true

from .isa import UOP_FIELDS, Field, MemoryId
from .options import VtaOptions
from .scratchpads import SCRATCHPADS, Scratchpad
from .transfers import scratchpad

ACC = SCRATCHPADS[MemoryId.ACC]

# An index before it is cut to its scratchpad: products have at most 25 bits, and there are two.
INDEX = 27
# The number of iterations: three factors of 14 bits.
ITERATIONS = 42


@dataclass(frozen=True)
class Index:
    """One of the three indices of a micro-op: its field, the prefix of its factors, the memory it selects from."""

    name: str
    pad: Scratchpad

    @property
    def field(self) -> Field:
        """The micro-op's bits."""
        return UOP_FIELDS[self.name]


@dataclass(frozen=True)
class _At:
    """An iteration: its counters, and whether there is such a one."""

    y: Expr
    x: Expr
    u: Expr
    exists: Expr


class Nest:
    """The loops of one kernel, and what a micro-op's word means in them."""

    def __init__(self, ila: Ila, kernel: Kernel, options: VtaOptions) -> None:
        self.states, self.kernel, self.options = ila.states, kernel, options
        self.uops = scratchpad(MemoryId.UOP, options)
        begin, end = self.states["loops_uop_bgn"].zext(14), self.states["loops_uop_end"]
        self.begin = begin
        self.count = self._times(ite(begin < end, end - begin, const(0, 14)))
        self.outer, self.inner = (self._times(self.states[f"loops_iter_{side}"]) for side in ("out", "in"))
        self._slots: list[tuple[Expr, Expr, Expr]] = []

    def _times(self, count: Expr) -> Expr:
        return count if self.options.zero_iterations == "nothing" else ite(count == 0, const(1, 14), count)

    @contextmanager
    def lanes(self, name: str) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
        """Opens the loops over iterations and lanes; gives y, x, the micro-op's word and the lane.

        Lanes do not meet.  Where results are delayed, the loop over lanes is the outer one, so that each lane has its
        own results on the way.
        """
        k, sixteen = self.kernel, const(16, 5)
        if self.options.back_to_back != "stale":
            with self._run() as (y, x, word), k.loop(name, sixteen, 4) as lane:
                yield y, x, word, lane
            return
        with k.loop(name, sixteen, 4) as lane:
            width = ACC.index_bits + ACC.lane_bits
            self._slots = [
                (
                    k.let(f"full_{i}", const(0, 1)),
                    k.let(f"place_{i}", const(0, width)),
                    k.let(f"value_{i}", const(0, 32)),
                )
                for i in range(1, self.options.write_latency + 1)
            ]
            with self._run() as (y, x, word):
                yield y, x, word, lane
            for i in range(self.options.write_latency, 0, -1):
                self._arrive(f"last_{i}", i)

    @contextmanager
    def _run(self) -> Iterator[tuple[Expr, Expr, Expr]]:
        k = self.kernel
        with k.loop("y", self.outer) as y, k.loop("x", self.inner) as x, k.loop("u", self.count) as u:
            yield y, x, self._uop("uop_word", u)

    def write(self, place: Expr, value: Expr) -> None:
        """Writes a lane of an accumulator, as this iteration's last access to accumulators."""
        k = self.kernel
        if not self._slots:
            k.store(self.states["acc"], place, value)
            return
        self._arrive("oldest", len(self._slots))
        entering = (const(1, 1), place, value)
        for i in range(len(self._slots) - 1, -1, -1):
            for register, word in zip(self._slots[i], self._slots[i - 1] if i else entering, strict=True):
                k.assign(register, word)

    def _arrive(self, name: str, slot: int) -> None:
        """Writes a delayed result, if there is one: that of the iteration ``slot`` iterations ago."""
        full, place, value = self._slots[slot - 1]
        with self.kernel.when(name, full == 1):
            self.kernel.store(self.states["acc"], place, value)

    def _uop(self, name: str, u: Expr) -> Expr:
        return self.kernel.load(name, self.states["uop"], self.uops.address(self.begin + u, None))

    def index(self, index: Index, word: Expr, y: Expr, x: Expr) -> Expr:
        """The element that a micro-op selects in iteration (y, x), before it is cut to the memory's depth."""
        field = index.field
        own = word[field.low + field.width - 1 : field.low].zext(INDEX)
        outer, inner = (self.states[f"loops_{index.name}_factor_{side}"].zext(INDEX) for side in ("out", "in"))
        return own + y.zext(INDEX) * outer + x.zext(INDEX) * inner

    # -- instructions that are refused ---------------------------------------------------------------------------

    def refuse_overflow(self, indices: Sequence[Index]) -> None:
        """Sets the fault if an iteration's index lies beyond its memory."""
        if self.options.index_overflow == "refused":
            self._refuse_last(indices)
        elif self.options.index_overflow == "extra_bit":
            self._refuse_extra_bit(indices)

    def _refuse_last(self, indices: Sequence[Index]) -> None:
        """If any iteration's index lies beyond its memory, then the last iteration's does."""
        k = self.kernel
        last_y, last_x = (ite(n == 0, n, n - 1) for n in (self.outer, self.inner))
        # Counts micro-ops instead of taking note of one: a sum does not depend on the order.
        count = k.let("overflows", const(0, 14))
        with k.loop("checked", self.count) as u:
            word = self._uop("checked_word", u)
            beyond = false
            for index in indices:
                beyond = beyond | (self.index(index, word, last_y, last_x) >= index.pad.depth)
            k.assign(count, count + ite(beyond, const(1, 14), const(0, 14)))
        with k.when("fault_found", ~(count == 0) & ~(self.outer == 0) & ~(self.inner == 0)):
            k.store(self.states["fault"], const(0, 1), 1)

    def _refuse_extra_bit(self, indices: Sequence[Index]) -> None:
        """If an index, cut to one bit more than its memory's, has that bit set."""

        def beyond(at: _At) -> Expr:
            word, overflows = self._uop("checked_word", at.u), false
            for index in indices:
                overflows = overflows | (self.index(index, word, at.y, at.x)[index.pad.index_bits] == 1)
            return overflows

        self._refuse_any("overflows", 0, beyond)

    def refuse_revisits(self, target: Index, reads: Sequence[Index], latency: int) -> None:
        """Sets the fault if an iteration reads what one of the last ``latency`` iterations writes."""

        def cut(index: Index, word: Expr, at: _At) -> Expr:
            return self.index(index, word, at.y, at.x)[index.pad.index_bits - 1 : 0]

        def too_soon(at: _At) -> Expr:
            word, earlier, revisits = self._uop("read_word", at.u), at, false
            for i in range(1, latency + 1):
                earlier = self._before(earlier)
                written = cut(target, self._uop(f"written_{i}_word", earlier.u), earlier)
                for index in reads:
                    revisits = revisits | (earlier.exists & (cut(index, word, at) == written))
            return revisits

        self._refuse_any("revisits", 1, too_soon)

    def _refuse_any(self, name: str, word: int, condition: Callable[[_At], Expr]) -> None:
        k = self.kernel
        # Counts iterations, as above.
        count = k.let(name, const(0, ITERATIONS))
        with (
            k.loop(f"{name}_y", self.outer) as y,
            k.loop(f"{name}_x", self.inner) as x,
            k.loop(f"{name}_u", self.count) as u,
        ):
            holds = condition(_At(y, x, u, true))
            k.assign(count, count + ite(holds, const(1, ITERATIONS), const(0, ITERATIONS)))
        with k.when(f"{name}_found", ~(count == 0)):
            k.store(self.states["fault"], const(word, 1), 1)

    def _before(self, at: _At) -> _At:
        """The iteration before."""
        first_u, first = at.u == 0, (at.u == 0) & (at.x == 0)
        return _At(
            ite(first, at.y - 1, at.y),
            ite(first_u, ite(at.x == 0, self.inner - 1, at.x - 1), at.x),
            ite(first_u, self.count - 1, at.u - 1),
            at.exists & ~(first & (at.y == 0)),
        )
