"""Copies of memories that iterations fill and read at the same addresses: for so many iterations as there is room."""

from __future__ import annotations

import pytest

from ila_lang import Kernel, const, mem, var
from ila_lang.arrays import execution
from ila_lang.arrays.vectorise import plan_of
from tests.ila_lang.arrays.test_fast_simulation import same_as_the_walk

SOURCE, TARGET, SCRATCH = var("source", mem(8, 8)), var("target", mem(8, 8)), var("scratch", mem(4, 8))
CONTENTS = {"source": {i: 37 * i % 251 for i in range(256)}, "scratch": {i: 200 + i for i in range(16)}}


def filtering() -> Kernel:
    """Each row goes through a scratchpad, twice: differences, and then differences of these."""
    kernel = Kernel("filtering")
    with kernel.loop("row", const(20, 8)) as row:
        with kernel.loop("a", const(8, 8)) as a:
            kernel.store(SCRATCH, a[3:0], SOURCE.load(row * 8 + a + 1) - SOURCE.load(row * 8 + a))
        with kernel.loop("b", const(7, 8)) as b:
            kernel.store(TARGET, row * 8 + b, SCRATCH.load((b + 1)[3:0]) - SCRATCH.load(b[3:0]))
    return kernel


@pytest.mark.parametrize(
    ("room", "arrays"),
    [
        (16 * 8 * 20, [(20, 16)]),
        (16 * 8 * 19, [(1, 16), (19, 16)]),
        (16 * 8 * 7, [(6, 16), (7, 16)]),
        (16 * 8 * 2, [(2, 16)]),
        (16 * 8 * 2 - 1, []),
    ],
)
def test_iterations_have_copies_while_there_is_room(
    monkeypatch: pytest.MonkeyPatch, room: int, arrays: list[tuple[int, ...]]
) -> None:
    """Copies are of 16 words of 64 bits; those of iterations that have ended serve the next ones."""
    monkeypatch.setattr(execution, "MOST_BYTES", room)
    made: list[tuple[int, ...]] = []
    leave = execution.Region.leave

    def watched(self: execution.Region) -> object:
        found = leave(self)
        made[:] = sorted(shape for shape, spare in self.spare.items() for _ in spare)
        return found

    monkeypatch.setattr(execution.Region, "leave", watched)
    kernel = filtering()
    same_as_the_walk(kernel, {}, CONTENTS)
    assert made == arrays
    (configuration,) = plan_of(kernel).configurations.values()
    assert ("row" in configuration.serial) == (not arrays)
