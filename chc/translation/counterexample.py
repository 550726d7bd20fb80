"""Inputs on which a function does not refine another one, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ir_semantics.scalars.concrete import show_value
from ir_semantics.scalars.formats import Value

MEMORY = 1 << 20
"""What stands for memory where results have numbers."""
_SHOWN = 8
"""Elements of a tensor, and of a block, in the text."""


@dataclass(frozen=True)
class Block:
    """A block of memory as it is before both functions run.

    ``views`` are the arguments and the globals that lie in it, by name, with the place of their first element.
    ``held`` are its first elements, by format; None is one that was never written.  ``lacks`` is what it is not:
    alive, writable, freeable.
    """

    number: int
    views: Mapping[str, int]
    held: Mapping[str, Sequence[Value | None]]
    lacks: tuple[str, ...]

    def __str__(self) -> str:
        views = [f"{name} from {place}" if place else name for name, place in self.views.items()]
        lists = []
        for kind, held in self.held.items():
            numbers = ", ".join(_texts(held[:_SHOWN])) + (", ..." if len(held) > _SHOWN else "")
            lists.append(f"[{numbers}]" if len(self.held) == 1 else f"[{numbers}] of {kind}")
        words = [*(f"is not {what}" for what in self.lacks), f"holds {' and '.join(lists)}"]
        return f"block {self.number} ({', '.join(views)}) {' and '.join(words)}"

    def to_json(self) -> dict[str, Any]:
        """It as data; values are texts."""
        held = {kind: [None if v is None else show_value(v) for v in values] for kind, values in self.held.items()}
        return {"block": self.number, "views": dict(self.views), "held": held, "lacks": list(self.lacks)}


@dataclass(frozen=True)
class Cell:
    """A cell of memory: its block, its place there, its format, and which elements of arguments it is."""

    block: int
    place: int
    kind: str
    elements: tuple[str, ...]

    def __str__(self) -> str:
        which = f", which is {' and '.join(self.elements)}" if self.elements else ""
        return f"block {self.block} differs first at {self.place} ({self.kind}){which}"

    def to_json(self) -> dict[str, Any]:
        """It as data."""
        return {"block": self.block, "place": self.place, "format": self.kind, "elements": list(self.elements)}


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which the target is not what it may be, and where: both values, or what is undefined, and why.

    ``at`` are the result's number and the subscripts of its element where that is the place; of memory they are MEMORY,
    the block and the place in it, and ``cell`` is that cell.  ``blocks`` are those that arguments lie in; what these
    say, ``unshown`` names of the others.
    """

    sizes: dict[str, int]
    scalars: dict[str, Value]
    elements: dict[str, dict[tuple[int, ...], Value]]
    place: str
    source: str
    target: str
    at: tuple[int, ...] = ()
    cell: Cell | None = None
    blocks: tuple[Block, ...] = ()
    unshown: frozenset[str] = field(default=frozenset())

    @property
    def _numbers(self) -> dict[str, str]:
        numbers = {**self.sizes, **self.scalars}
        return {name: show_value(value) for name, value in numbers.items() if name not in self.unshown}

    def __str__(self) -> str:
        given = [f"{name} = {value}" for name, value in self._numbers.items()]
        for name, elements in self.elements.items():
            if name not in self.unshown:
                some = islice(elements.items(), _SHOWN)
                given += [f"{name}[{', '.join(map(str, at))}] = {show_value(v)}" for at, v in some]
        inputs = f"with {', '.join(given)}: " if given else ""
        blocks = sorted(self.blocks, key=lambda b: self.cell is not None and b.number != self.cell.block)
        before = f"; before, {'; '.join(map(str, blocks))}" if blocks else ""
        return f"{inputs}{self.place}: source {self.source}, target {self.target}{before}"

    def to_json(self) -> dict[str, Any]:
        """What it shows, as data; values are texts."""
        return {
            "place": self.place,
            "source": self.source,
            "target": self.target,
            "numbers": self._numbers,
            "tensors": {
                name: [[list(at), show_value(v)] for at, v in elements.items()]
                for name, elements in self.elements.items()
                if name not in self.unshown
            },
            "cell": None if self.cell is None else self.cell.to_json(),
            "blocks": [block.to_json() for block in self.blocks],
        }


def _texts(values: Sequence[Value | None]) -> list[str]:
    return ["never written" if value is None else show_value(value) for value in values]
