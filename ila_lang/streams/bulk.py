"""Many commands of one instruction at once: their inputs as columns, what they store and set as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ila_lang.arrays.values import WIDEST
from ila_lang.interpreter.compile import compile_terms, loads_resolved
from ila_lang.interpreter.machine import store_plan
from ila_lang.language.expr import Expr, free_variables, postorder, substitute
from ila_lang.language.model import Instruction
from ila_lang.language.sorts import BvSort, MemSort

from .rows import Row, row_load, row_store

Words = NDArray[Any]


class ArrayState(Protocol):
    """A memory as an array, which is told when its words have changed."""

    words: Words

    def touch(self) -> None:
        """Tells that the contents have changed."""

    def __getitem__(self, address: Any, /) -> Any:
        """The words at an address, or an array of them."""


@dataclass(frozen=True)
class Bulk:
    """An instruction whose commands do not depend on each other.

    ``evaluate`` gives for each stored word guard, address and data, then the parts of each scalar (bytes, or one
    number), then the numbers of the rows that are stored and of those that are loaded as a whole.
    """

    evaluate: Callable[..., Any]
    parameters: list[str]
    stores: list[tuple[str, int]]
    scalars: list[tuple[str, int]]
    stored_rows: list[Row]
    loaded_rows: list[tuple[str, Row]]

    @property
    def short(self) -> bool:
        """Whether it is worthwhile for a single command."""
        return bool(self.stored_rows or self.loaded_rows)

    def execute(
        self,
        memories: Mapping[str, ArrayState],
        values: MutableMapping[str, int],
        columns: Mapping[str, Words],
        wide: Mapping[str, Words],
        size: int,
    ) -> dict[str, Words] | None:
        """Executes ``size`` commands; the rows of each scalar, or None, with nothing done, if a word is stored twice.

        ``columns`` has the columns of its parameters, ``wide`` the rows of inputs that are stored as a whole.
        """
        arguments: list[Any] = []
        for name in self.parameters:
            if name in memories:
                arguments.append(memories[name])
            else:
                arguments.append(columns[name] if name in columns else values.get(name, 0))
        results = iter(self.evaluate(*arguments))
        writes = []
        for name, lanes in self.stores:
            places = np.empty((size, lanes), np.int64)
            contents = np.empty((size, lanes), memories[name].words.dtype)
            guards: Words | None = None
            for lane in range(lanes):
                guard, places[:, lane], contents[:, lane] = next(results), next(results), next(results)
                if not (guard.all() if isinstance(guard, np.ndarray) else guard):
                    guards = np.ones((size, lanes), bool) if guards is None else guards
                    guards[:, lane] = guard
            addresses, words = places.ravel(), contents.ravel()
            if guards is not None:
                addresses, words = addresses[guards.ravel()], words[guards.ravel()]
            if not _distinct(addresses, len(memories[name].words)):
                return None
            writes.append((name, addresses, words))
        found: dict[str, Words] = {}
        for name, parts in self.scalars:
            if parts > 1:
                rows = np.empty((size, parts), np.uint8)
                for lane in range(parts):
                    rows[:, lane] = next(results)
            else:
                rows = np.broadcast_to(np.asarray(next(results)), (size,))
            found[name] = rows
        numbers = [np.broadcast_to(np.asarray(n), (size,)) for n in results]
        row_writes = list(zip(self.stored_rows, numbers, strict=False))
        for row, number in row_writes:
            if not _distinct(number, len(memories[row.memory].words) // row.lanes):
                return None
        for (name, row), number in zip(self.loaded_rows, numbers[len(row_writes) :], strict=True):
            found[name] = row.load(memories[row.memory].words, number)
        for row, number in row_writes:
            row.store(memories[row.memory].words, number, wide[row.wide])
            memories[row.memory].touch()
        for name, addresses, words in writes:
            memory = memories[name]
            if addresses.size and addresses[-1] - addresses[0] == addresses.size - 1 and _rising(addresses):
                memory.words[addresses[0] : addresses[-1] + 1] = words
            else:
                memory.words[addresses] = words
            memory.touch()
        for name, rows in found.items():
            values[name] = int.from_bytes(rows[-1].tobytes(), "little") if rows.ndim > 1 else rows[-1].item()
        return found


def bulk_of(instruction: Instruction, narrow: Mapping[Expr, Expr], wide: Mapping[str, Any]) -> Bulk | None:
    """The instruction on columns, if what it does to one command does not depend on another of its commands.

    ``narrow`` gives ``wide`` inputs as their bytes.
    """
    if instruction.kernel is not None or instruction.reserved:
        return None
    store_roots: list[Expr] = []
    scalar_roots: list[Expr] = []
    stores: list[tuple[str, int]] = []
    scalars: list[tuple[str, int]] = []
    stored_rows: list[Row] = []
    loaded_rows: list[tuple[str, Row]] = []
    for name, term in instruction.updates.items():
        if isinstance(term.sort, MemSort):
            row = row_store(term, name)
            if row is not None and row.wide in wide:
                stored_rows.append(row)
                continue
            base, plan = store_plan(term)
            if base.name != name:
                return None
            stores.append((name, len(plan)))
            store_roots += [x for entry in plan for x in entry]
            continue
        size = row_bytes(term)
        row = row_load(loads_resolved(term)) if size else None
        if row is not None:
            loaded_rows.append((name, row))
            continue
        parts = [term[min(8 * i + 7, term.width - 1) : 8 * i] for i in range(size)] if size else [term]
        scalars.append((name, len(parts)))
        scalar_roots += parts
    rows = [*stored_rows, *(row for _, row in loaded_rows)]
    roots = [*store_roots, *scalar_roots, *(row.number for row in rows)]
    found = compiled([substitute(loads_resolved(r), narrow) for r in roots])
    if found is None or instruction.updates.keys() & {*found[1], *(row.memory for _, row in loaded_rows)}:
        return None
    return Bulk(*found, stores, scalars, stored_rows, loaded_rows)


def row_bytes(term: Expr) -> int:
    """The bytes of a row of a column for the term's values; 0 where a value is one number."""
    wide = isinstance(term.sort, BvSort) and term.width > WIDEST
    return (term.width + 7) // 8 if wide else 0


def compiled(roots: Sequence[Expr]) -> tuple[Callable[..., Any], list[str]] | None:
    """The terms as a function on columns, and the names of its parameters; None if a term is too wide or none given."""
    if not roots or too_wide(roots):
        return None
    parameters = {name: v for r in roots for name, v in free_variables(r).items()}
    return compile_terms(list(parameters.values()), roots, vector=True), list(parameters)


def too_wide(roots: Sequence[Expr]) -> bool:
    """Whether a value in the terms is no number in a column."""
    return any(map(row_bytes, postorder(roots)))


def _rising(addresses: Words) -> bool:
    return bool((addresses[1:] > addresses[:-1]).all())


def _distinct(addresses: Words, size: int) -> bool:
    if _rising(addresses):
        return True
    hit = np.zeros(size, bool)
    hit[addresses] = True
    return int(np.count_nonzero(hit)) == addresses.size
