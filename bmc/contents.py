"""Initial contents that a search for counterexamples runs both sides from."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

from .unroll import Cell

Draw = Callable[[Cell, int], int]
"""The initial value of a cell of a given number of bits."""


def dirty(seed: int, rounds: int) -> Iterator[Draw]:
    """Distinct, random and boundary codes as input, always with arbitrary registers and words."""

    yield lambda cell, _: _distinct(seed, cell)
    for number in range(1, rounds + 1):
        yield lambda cell, _, number=number: _mixed(seed, number, cell)  # type: ignore[misc]

        def boundary(cell: Cell, width: int, number: int = -number) -> int:
            top = 1 << (width - 1)
            return (0, top, top - 1, 2 * top - 1, 1, top + 1)[_mixed(seed, number, cell) % 6]

        yield boundary


def settled(
    seed: int, reset: Callable[[Cell], int], tensors: Sequence[str], operands: Sequence[Sequence[int]] = ()
) -> Iterator[Draw]:
    """Contents from which programs seldom run long: registers at reset, then at small numbers.

    ``operands`` are what a function was applied to where two functions differ: they are the elements of ``tensors`` in
    each turn, and then in any order; what a solver answers comes last, so that a counterexample rarely depends on it.
    """

    def small(cell: Cell, _: int) -> int:
        return _mixed(seed, 0, cell) % (1 << 62 if cell.side == "input" or cell.address is not None else 4)

    yield lambda cell, _: _distinct(seed, cell) if cell.side == "input" else reset(cell)
    yield small
    for numbers in operands:
        for turn in range(len(numbers) + 1):

            def applied(cell: Cell, _: int, numbers: Sequence[int] = numbers, turn: int = turn) -> int:
                if cell.side != "input":
                    return reset(cell)
                place = tensors.index(cell.owner) + turn if turn < len(numbers) else _mixed(seed, turn, cell)
                return numbers[place % len(numbers)]

            yield applied


def _distinct(seed: int, cell: Cell) -> int:
    # an odd factor: 256 consecutive elements have 256 codes, and neighbours differ in sign and size
    return _mixed(seed, 0, cell) if cell.side != "input" or cell.address is None else cell.address * 73 + 9


def _mixed(seed: int, number: int, cell: Cell) -> int:
    address = -1 if cell.address is None else cell.address
    text = f"{seed}.{number}.{cell.side}.{cell.owner}.{address}".encode()
    return int.from_bytes(b"".join(zlib.crc32(text, k).to_bytes(4, "little") for k in range(1, 5)), "little")
