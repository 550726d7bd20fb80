"""Placing buffers one after the other: free gaps, first fit and best fit, and the orders in which they are tried.

Both rules look at the *free gaps* among the buffers that are already placed and live together with the new one. Those
neighbours need not be live together with each other, so they may overlap in space: what is free before a neighbour
starts behind the largest end of **all** neighbours below it, not behind the end of the last one. With that, every
rule here is sound in every order (by induction on the placements: the new buffer meets no neighbour).

Placing first-fit in order of the addresses of a valid plan never raises an address (``settle``): when a buffer's turn
comes, its address in that plan is still free, because the neighbours below it have moved down if at all. So some
order makes first fit optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from .problem import Buffer

Span = tuple[int, int]
"""Cells ``begin <= cell < end``."""

Neighbours = Mapping[str, Sequence[Buffer]]
"""For the name of each buffer, those that are live together with it."""

Fit = Callable[[Buffer, Sequence[Span]], int]
"""A rule of placement: an address for a buffer, given what its neighbours occupy (in order of ``begin``)."""


def neighbours(buffers: Sequence[Buffer]) -> Neighbours:
    """The buffers that are live together with each one, without itself, in order of their starts and names."""
    live_with: dict[str, list[Buffer]] = {buffer.name: [] for buffer in buffers}
    live: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (b.start, b.name)):
        live = [other for other in live if other.end > buffer.start]
        for other in live:
            live_with[other.name].append(buffer)
        live_with[buffer.name] += live
        live.append(buffer)
    return live_with


def free_gaps(size: int, alignment: int, taken: Sequence[Span]) -> Iterator[tuple[int, int | None]]:
    """Aligned addresses, the lowest of each free gap that holds ``size`` cells, with the size of the gap, from below.

    The last one is behind everything and has no size (``None``). ``taken`` is in order of ``begin``; its spans may
    overlap.
    """
    free = 0
    for begin, end in taken:
        address = _aligned(free, alignment)
        if address + size <= begin:
            yield address, begin - free
        free = max(free, end)
    yield _aligned(free, alignment), None


def _aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment


def first_fit(buffer: Buffer, taken: Sequence[Span]) -> int:
    """The lowest address that is free."""
    return next(free_gaps(buffer.size, buffer.alignment, taken))[0]


def best_fit(buffer: Buffer, taken: Sequence[Span]) -> int:
    """The lowest free address of the smallest gap that fits, of the lowest among equal ones; else behind everything."""
    best: tuple[int, int | None] | None = None
    for address, room in free_gaps(buffer.size, buffer.alignment, taken):
        if best is None or (room is not None and best[1] is not None and room < best[1]):
            best = address, room
    assert best is not None  # free_gaps yields at least the place behind everything
    return best[0]


Order = Callable[[Sequence[Buffer], Neighbours], list[Buffer]]

ORDERS: dict[str, Order] = {
    "size": lambda buffers, near: sorted(buffers, key=lambda b: (-b.size, b.start, b.end, b.name)),
    "start": lambda buffers, near: sorted(buffers, key=lambda b: (b.start, -b.size, b.end, b.name)),
    "length": lambda buffers, near: sorted(buffers, key=lambda b: (b.start - b.end, -b.size, b.start, b.name)),
    "area": lambda buffers, near: sorted(buffers, key=lambda b: (b.size * (b.start - b.end), b.start, b.name)),
    "conflicts": lambda buffers, near: sorted(buffers, key=lambda b: (-len(near[b.name]), -b.size, b.start, b.name)),
}
"""Orders of placement: large, early, long-lived, large times long-lived, and most contended ones first."""


def place(order: Sequence[Buffer], fit: Fit, near: Neighbours) -> dict[str, int]:
    """Addresses of all buffers in ``order``: the fixed ones first, then each of the others by the rule ``fit``."""
    addresses = {buffer.name: buffer.fixed for buffer in order if buffer.fixed is not None}
    for buffer in order:
        if buffer.fixed is None:
            placed = [(addresses[b.name], addresses[b.name] + b.size) for b in near[buffer.name] if b.name in addresses]
            addresses[buffer.name] = fit(buffer, sorted(placed))
    return addresses


def settle(buffers: Sequence[Buffer], addresses: dict[str, int], near: Neighbours) -> dict[str, int]:
    """A plan in which no buffer can be lower while all below it stay.

    It is ``addresses``, a valid plan, placed first-fit from below, again until nothing moves. No address rises, so this
    ends: the sum of addresses falls in every round but the last.
    """
    while True:
        order = sorted(buffers, key=lambda b: (addresses[b.name], b.name))
        lower = place(order, first_fit, near)
        if lower == addresses:
            return addresses
        addresses = lower


def lower_bound(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """A number of cells that every placement needs, and the first time at which most cells are live.

    The bound is the largest sum of sizes that are live at a time, or the end of a fixed buffer if that is larger. It
    need not be reached: seven buffers with the sum 5 that need 6 cells stand in the documentation. ``(0, 0)`` without
    buffers.
    """
    events = sorted([(b.start, b.size) for b in buffers] + [(b.end, -b.size) for b in buffers])
    largest, busiest, load = 0, 0, 0
    for time, change in events:  # at one time, ends (negative changes) come first
        load += change
        if load > largest:
            largest, busiest = load, time
    ends = [b.fixed + b.size for b in buffers if b.fixed is not None]
    return max([largest, *ends]), busiest
