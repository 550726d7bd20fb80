"""The smallest peak, by branch and bound.

**What is searched.** Among the plans with the smallest peak there is a *settled* one (``memory_placement.settle``):
every free buffer is at the lowest address that the fixed buffers and those at lower addresses leave to it. Settled
plans are found by placing buffers first-fit with addresses that never fall, and, at equal addresses, in the order of
the list. The search tries exactly these sequences, so if it ends, it has found the smallest peak. It leaves out

* a buffer whose twin (same size, interval and alignment, earlier in the list) is not placed yet: twins can change
  names;
* a buffer whose address would be at or above the end that another unplaced buffer would have now: nothing placed from
  there on could hinder the other one from being lower, and then the sequence would have to fall;
* what cannot have a smaller peak than the best plan so far: where an unplaced buffer would end too high, or where at
  some time the unplaced buffers and what others occupy from the lowest of their addresses on do not fit between that
  address and that peak.

**When it stops.** When nothing is left, when the peak is the ``target``, or when ``effort`` is used up. Effort counts
the buffers that were looked at, not seconds, so that the same problem has the same plan on every machine.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from .placement import first_fit, neighbours
from .problem import Buffer


@dataclass(frozen=True)
class SearchResult:
    """The best plan that is known, its peak, and the effort that is left.

    ``exhausted``: the peak is above the target, and the search has shown that no smaller one exists.
    """

    addresses: dict[str, int]
    peak: int
    exhausted: bool
    effort_left: int


@dataclass
class _Node:
    """A sequence of placements: the address that each unplaced buffer would get now, and what to place next."""

    lows: dict[int, int]
    choices: list[int]
    placed: int | None


def search(buffers: Sequence[Buffer], addresses: dict[str, int], target: int, effort: int) -> SearchResult:
    """Looks for a plan with a smaller peak than the valid plan ``addresses``, until one has at most ``target``."""
    peak = max((addresses[b.name] + b.size for b in buffers), default=0)
    if peak <= target or effort <= 0:
        return SearchResult(addresses, peak, False, max(effort, 0))
    return _Search(buffers, addresses, target, effort).run()


class _Search:
    """The state of a search; free buffers are numbered by their place in the list, large and long-lived ones first."""

    def __init__(self, buffers: Sequence[Buffer], addresses: dict[str, int], target: int, effort: int) -> None:
        self.fixed = [(b, b.fixed) for b in buffers if b.fixed is not None]
        self.free = sorted(
            (b for b in buffers if b.fixed is None), key=lambda b: (b.size * (b.start - b.end), b.start, b.name)
        )
        self.best = addresses
        self.peak = max((addresses[b.name] + b.size for b in buffers), default=0)
        self.target = target
        self.effort = effort
        near = neighbours(buffers)
        index = {b.name: i for i, b in enumerate(self.free)}
        self.meets = [[index[other.name] for other in near[b.name] if other.fixed is None] for b in self.free]
        self.twin: list[int | None] = [None] * len(self.free)
        seen: dict[tuple[int, int, int, int], int] = {}
        for i, b in enumerate(self.free):
            kind = (b.size, b.start, b.end, b.alignment)
            self.twin[i] = seen.get(kind)
            seen[kind] = i
        times = sorted({b.start for b in self.free})
        self.times_of = [range(bisect_left(times, b.start), bisect_left(times, b.end)) for b in self.free]
        self.live: list[list[int]] = [[] for _ in times]
        for i, span in enumerate(self.times_of):
            for k in span:
                self.live[k].append(i)
        self.taken_at = [[(at, at + b.size) for b, at in self.fixed if b.start <= t < b.end] for t in times]
        self.taken = [
            sorted((o.fixed, o.fixed + o.size) for o in near[b.name] if o.fixed is not None) for b in self.free
        ]
        self.placed: dict[int, int] = {}

    def run(self) -> SearchResult:
        lows = {i: first_fit(b, self.taken[i]) for i, b in enumerate(self.free)}
        stack = [_Node(lows, self._choices(lows, 0, -1), None)] if self.free else []
        while stack and self.peak > self.target and self.effort > 0:
            node = stack[-1]
            if not node.choices:
                stack.pop()
                if node.placed is not None:
                    self._remove(node.placed)
                continue
            chosen = node.choices.pop()
            address = node.lows[chosen]
            if address + self.free[chosen].size >= self.peak:
                continue
            stack.append(self._add(node, chosen, address))
        return SearchResult(self.best, self.peak, not stack and self.peak > self.target, max(self.effort, 0))

    def _add(self, node: _Node, chosen: int, address: int) -> _Node:
        """The node after ``chosen`` is placed, without choices if it is a plan or cannot lead to a smaller peak."""
        end = address + self.free[chosen].size
        lows = dict(node.lows)
        del lows[chosen]
        self.placed[chosen] = address
        for i in self.meets[chosen]:
            insort(self.taken[i], (address, end))
            # What was taken stays taken, so that an address only changes when the new buffer covers it.
            if i in lows and lows[i] < end and address < lows[i] + self.free[i].size:
                lows[i] = first_fit(self.free[i], self.taken[i])
        for k in self.times_of[chosen]:
            self.taken_at[k].append((address, end))
        self.effort -= len(node.lows)
        if not lows:
            self._record()
            return _Node(lows, [], chosen)
        if self._hopeless(lows, address):
            return _Node(lows, [], chosen)
        return _Node(lows, self._choices(lows, address, chosen), chosen)

    def _remove(self, chosen: int) -> None:
        address = self.placed.pop(chosen)
        for i in self.meets[chosen]:
            self.taken[i].remove((address, address + self.free[chosen].size))
        for k in self.times_of[chosen]:
            self.taken_at[k].pop()

    def _choices(self, lows: dict[int, int], floor: int, last: int) -> list[int]:
        """What may come next, the lowest (then the earliest in the list) at the end."""
        ceiling = min(low + self.free[i].size for i, low in lows.items())
        return sorted(
            (i for i, low in lows.items() if (low, i) > (floor, last) and low < ceiling and self.twin[i] not in lows),
            key=lambda i: (-lows[i], -i),
        )

    def _hopeless(self, lows: dict[int, int], floor: int) -> bool:
        if any(max(low, floor) + self.free[i].size >= self.peak for i, low in lows.items()):
            return True
        for live, taken in zip(self.live, self.taken_at, strict=True):
            waiting = [i for i in live if i in lows]
            self.effort -= len(live)
            if waiting:
                bottom = min(max(lows[i], floor) for i in waiting)
                needed = sum(self.free[i].size for i in waiting)
                needed += sum(max(0, end - max(begin, bottom)) for begin, end in taken)
                if bottom + needed >= self.peak:
                    return True
        return False

    def _record(self) -> None:
        addresses = {self.free[i].name: address for i, address in self.placed.items()}
        addresses |= {b.name: at for b, at in self.fixed}
        peak = max(addresses[b.name] + b.size for b in [*self.free, *(b for b, _ in self.fixed)])
        if peak < self.peak:
            self.best, self.peak = addresses, peak
