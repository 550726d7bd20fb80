"""A fragment's commands and stores as columns with gaps, and the places of elements of host tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.expr import Expr
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command, Store
from ila_lang.language.ops import WIDEST
from ila_lang.language.sorts import BOOL, BvSort, MemSort

from .sites import InstanceError, Site, evaluate, refuse
from .words import ELEMENT_BITS, Elements, row_of_input, words_of

#: Elements and their places are numbered with 32 bits.
MOST_ELEMENTS = 1 << 31


@dataclass(frozen=True, eq=False)
class Gather:
    """Elements of a host tensor in a column.

    The column's bytes are taken as runs of ``run`` elements of ``bits`` bits; run ``places[i]`` is the elements
    ``elements[i]``, ``elements[i] + 1``, ... of ``tensor``.
    """

    column: str
    tensor: str
    bits: int
    run: int
    places: NDArray[np.int32]
    elements: NDArray[np.int32]

    @property
    def extent(self) -> int:
        """The least number of elements of the tensor."""
        return int(self.elements.max()) + self.run

    def put(self, column: NDArray[Any], codes: NDArray[Any]) -> None:
        """Puts the elements of ``codes`` (unsigned integers of ``bits`` bits) into the column."""
        slots = column.reshape(-1).view(f"<u{self.bits // 8}")
        if self.run == 1:
            slots[self.places] = codes[self.elements]
        else:
            runs = np.lib.stride_tricks.sliding_window_view(codes, self.run)
            slots.reshape(-1, self.run)[self.places] = runs[self.elements]


@dataclass(frozen=True, eq=False)
class Scatter:
    """The elements of a host tensor, ``bits`` bits each: element i is number ``words[i]`` of all that is read."""

    bits: int
    words: NDArray[np.int32]

    def take(self, words: NDArray[np.uint8]) -> NDArray[Any]:
        """The tensor, of the rows of bytes that are read."""
        slots = np.ascontiguousarray(words).reshape(-1).view(f"<u{self.bits // 8}")
        elements: NDArray[Any] = slots[self.words]
        return elements


def gathers_of(fragment: Fragment, sites: Sequence[Site]) -> tuple[dict[str, NDArray[Any]], tuple[Gather, ...]]:
    """The columns of all commands, 0 where elements go, and these elements.

    Raises InstanceError on commands that depend on more than elements, or have elements which the program may have
    written.
    """
    commands = [s for s in sites if isinstance(s.statement, Command)]
    count = sum(site.size for site in commands)
    rows = {name: np.zeros((count, row_of_input(v)), np.uint8) for name, v in fragment.ila.inputs.items()}
    moved: dict[tuple[str, str, int, int], list[Elements]] = {}
    for site in commands:
        assert isinstance(site.statement, Command)
        for name, term in site.statement.inputs:
            base, elements = words_of(fragment, site, name, term)
            if base.any():
                rows[name][site.commands] = base
            for part in elements:
                if rows[name].shape[1] % (part.bits // 8):
                    row = f"{part.bits} bits of {part.tensor} in {rows[name].shape[1]} bytes"
                    raise refuse(fragment, f"Input {name} of {site.name}", "hold a whole number of elements", row)
                moved.setdefault((name, part.tensor, part.bits, part.run), []).append(part)
    _check_order(fragment, sites, chain.from_iterable(moved.values()))
    gathers = tuple(
        Gather(
            column,
            tensor,
            bits,
            run,
            _numbers(fragment, tensor, [_places(part, rows[column].shape[1]) for part in parts]),
            _numbers(fragment, tensor, [part.first for part in parts], run),
        )
        for (column, tensor, bits, run), parts in moved.items()
    )
    return {name: _column(fragment.ila.inputs[name], part) for name, part in rows.items()}, gathers


def _places(part: Elements, row: int) -> NDArray[np.int64]:
    size = part.bits // 8 * part.run
    return part.commands * (row // size) + part.byte // size


def _column(variable: Expr, rows: NDArray[np.uint8]) -> NDArray[Any]:
    if variable.sort == BOOL:
        return rows[:, 0].astype(bool)
    return rows.view("<i8")[:, 0] if variable.width <= WIDEST else rows


def _numbers(fragment: Fragment, tensor: str, parts: Sequence[NDArray[np.int64]], run: int = 0) -> NDArray[np.int32]:
    numbers = np.concatenate(parts)
    if numbers.size and int(numbers.max()) + run > MOST_ELEMENTS:
        raise InstanceError(
            f"Elements of {tensor} of fragment {fragment.name} must have numbers below {MOST_ELEMENTS}, not "
            f"{int(numbers.max())}; split the tensor"
        )
    return numbers.astype(np.int32)


def _check_order(fragment: Fragment, sites: Sequence[Site], moved: Iterable[Elements]) -> None:
    """Refuses a command with elements of a tensor that the program has begun to write."""
    begun: dict[str, int] = {}
    for site in sites:
        if isinstance(site.statement, Store):
            name = site.statement.memory.describe()
            begun[name] = min(begun.get(name, MOST_ELEMENTS), int(site.commands.min()))
    for part in moved:
        if int(part.commands.max()) >= begun.get(part.tensor, MOST_ELEMENTS):
            what = f"an element of {part.tensor} after a store to it"
            raise refuse(fragment, "Commands", "send only what is known before the program runs", what)


def scatters_of(fragment: Fragment, sites: Sequence[Site]) -> tuple[str, NDArray[np.int64], dict[str, Scatter]]:
    """The state that the host reads, after which commands, and the tensors that it writes.

    Raises InstanceError on stores of anything but whole elements of one state, and where elements are left out.
    """
    stores = [(site, *_source(fragment, site)) for site in sites if isinstance(site.statement, Store)]
    names = sorted({state.name for _, state, _, _ in stores})
    if len(names) != 1:
        raise refuse(fragment, "Stores", "read one output of the device", ", ".join(names) or "none")
    row = -(-stores[0][1].width // 8)
    for site, *_ in stores:
        if int(site.commands.min()) < 1:
            raise refuse(fragment, site.name, "read an output after a command", "before all of them")
    reads = np.unique(np.concatenate([site.commands for site, *_ in stores])) - 1
    by_tensor: dict[str, list[tuple[Site, int, NDArray[np.int64]]]] = {}
    for site, _, byte, numbers in stores:
        assert isinstance(site.statement, Store)
        by_tensor.setdefault(site.statement.memory.name, []).append((site, byte, numbers))
    scatters: dict[str, Scatter] = {}
    for name, parts in by_tensor.items():
        sort = fragment.tensors[name].sort
        assert isinstance(sort, MemSort)
        size = sort.data_width // 8
        if row % size:
            raise refuse(fragment, f"Output {names[0]}", f"hold a whole number of elements of {name}", f"{row} bytes")
        numbers = np.concatenate([n for *_, n in parts])
        places = [np.searchsorted(reads, s.commands - 1) * (row // size) + byte // size for s, byte, _ in parts]
        order = np.argsort(np.concatenate([s.stores for s, *_ in parts]))  # of two stores to an element the last counts
        words = _newest(fragment, name, numbers[order], np.concatenate(places)[order])
        scatters[name] = Scatter(sort.data_width, words)
    return names[0], reads, scatters


def _source(fragment: Fragment, site: Site) -> tuple[Expr, int, NDArray[np.int64]]:
    """The state from which a store takes bytes, the first byte, and the numbers of the elements stored."""
    statement = site.statement
    assert isinstance(statement, Store)
    if not any(statement.memory is tensor for tensor in fragment.tensors.values()):
        raise refuse(fragment, site.name, "be one to a host tensor", statement.memory.describe())
    value = statement.value
    state, low = (value.args[0], int(value.params[1])) if value.op == "extract" else (value, 0)
    is_output = isinstance(state.sort, BvSort) and fragment.outputs.get(state.describe()) is state
    if not is_output or value.width not in ELEMENT_BITS or low % value.width:
        must = "be of whole elements of 8, 16 or 32 bits of an output, aligned to their size"
        raise refuse(fragment, site.name, must, value.describe())
    (numbers,) = evaluate(fragment, f"Address of {site.name}", [statement.address], site)
    return state, low // 8, numbers


def _newest(fragment: Fragment, tensor: str, numbers: NDArray[Any], places: NDArray[Any]) -> NDArray[np.int32]:
    """The last place given for each element of a tensor; raises InstanceError for an element without one."""
    last = int(numbers.max())
    written, newest = np.unique(numbers[::-1], return_index=True)
    if last >= len(numbers) or len(written) != last + 1:
        raise refuse(fragment, f"Tensor {tensor}", "be written as a whole", f"with gaps below its element {last}")
    return places[::-1][newest].astype(np.int32)
