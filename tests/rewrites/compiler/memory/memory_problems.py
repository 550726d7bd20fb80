"""Problems of memory planning, the smallest peak by trying all addresses, and a memory that programs run in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from rewrites.compiler.memory.liveness import Step
from rewrites.compiler.memory.problem import Buffer, MemoryProblem

GAP = MemoryProblem(
    [
        Buffer("A", 3, 3, 5),
        Buffer("C", 2, 2, 4),
        Buffer("P", 3, 6, 8),
        Buffer("Q", 2, 7, 8),
        Buffer("E", 1, 5, 7),
        Buffer("G", 1, 4, 7),
        Buffer("H", 1, 4, 6),
    ]
)
"""At most 5 cells are live at a time, but every placement needs 6."""


def problems(most: int) -> st.SearchStrategy[MemoryProblem]:
    """Problems with up to ``most`` small buffers; some are aligned."""
    buffer = st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(1, 4), st.sampled_from([1, 1, 1, 2, 3]))
    return st.lists(buffer, max_size=most).map(
        lambda rows: MemoryProblem(
            Buffer(f"b{i}", size, start, start + length, alignment)
            for i, (size, start, length, alignment) in enumerate(rows)
        )
    )


def largest_load(problem: MemoryProblem) -> int:
    """The most cells that are live at one time."""
    times = {b.start for b in problem.buffers}
    return max((sum(b.size for b in problem.buffers if b.start <= t < b.end) for t in times), default=0)


def smallest_peak(problem: MemoryProblem) -> int:
    """The smallest peak, by trying every address of every buffer below 0, 1, 2, ... cells."""
    peak = 0
    while not _placeable(problem.buffers, peak, []):
        peak += 1
    return peak


def _placeable(buffers: Sequence[Buffer], peak: int, placed: list[tuple[Buffer, int]]) -> bool:
    if len(placed) == len(buffers):
        return True
    buffer = buffers[len(placed)]
    for address in range(peak - buffer.size + 1):
        if address % buffer.alignment:
            continue
        cells = set(range(address, address + buffer.size))
        times = set(range(buffer.start, buffer.end))
        if any(
            times & set(range(other.start, other.end)) and cells & set(range(at, at + other.size))
            for other, at in placed
        ):
            continue
        if _placeable(buffers, peak, [*placed, (buffer, address)]):
            return True
    return False


def lost_values(
    steps: Sequence[Step],
    inputs: Sequence[str],
    outputs: Sequence[str],
    sizes: Mapping[str, int],
    addresses: Mapping[str, int],
) -> list[str]:
    """Runs a program in a memory whose cells hold the name of who wrote them last, and tells what was read damaged.

    A step reads its operands when it has written its results, the worst order that a device may have.
    """
    memory: dict[int, str] = {}
    lost: list[str] = []

    def write(name: str) -> None:
        memory.update(dict.fromkeys(range(addresses[name], addresses[name] + sizes[name]), name))

    def read(name: str, reader: str) -> None:
        if any(memory[cell] != name for cell in range(addresses[name], addresses[name] + sizes[name])):
            lost.append(f"{reader} reads {name}")

    for name in inputs:
        write(name)
    for step in steps:
        for name in step.writes:
            write(name)
        for name in (*step.reads, *step.writes):
            read(name, step.name)
    for name in outputs:
        read(name, "host")
    return lost
