"""Where one output cell comes from: the distinguished-cell argument, step by step.

Starting from one arbitrary output cell, the program is read backwards.  For each nest that writes the cell's memory a
*witness* is searched: the iteration, as a term over the cell's coordinates, that writes this cell.  The search only
proposes (by evaluating candidates at sample sizes); what it proposes becomes obligations that solvers discharge:

* **hit**: the witness is inside the nest, and the address it writes is the cell's;
* **only writer**: no other iteration writes the cell;
* **source order**: every cell that the witness reads is written, if at all, by a later iteration.

"Exactly once" and "not before" over whole loop nests are then Horn clauses (:mod:`chc.levels`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ila_lang import BvSort, Expr, Store, compile_terms, free_variables, postorder, resize, substitute, var

from .nests import Nest, Unsupported

__all__ = ["Clobber", "Demand", "Samples", "SourceCell", "Trace", "Tracer", "WitnessNotFound"]

MAX_POOL = 24
"""Candidate terms kept per search; the first ones are the simplest."""


class WitnessNotFound(Unsupported):
    """No candidate iteration writes the demanded cell at the sample sizes."""


@dataclass(frozen=True)
class Samples:
    """Values of parameters and coordinates at which candidate witnesses are tried."""

    variables: tuple[Expr, ...]
    rows: tuple[tuple[int, ...], ...]

    def evaluate(self, terms: Sequence[Expr]) -> list[tuple[int, ...]]:
        """Values of the terms at each sample."""
        function = compile_terms(self.variables, terms)
        return [function(*row) for row in self.rows]


@dataclass(frozen=True)
class Demand:
    """One cell whose value is needed just after ``nest``, written by iteration ``witness``."""

    nest: int
    store: Store
    address: Expr
    witness: tuple[Expr, ...]


@dataclass(frozen=True)
class Clobber:
    """A cell read by iteration ``reader`` of a nest that the same nest overwrites at iteration ``writer``.

    ``store`` is the store that overwrites; ``address`` the cell.
    """

    nest: int
    store: Store
    address: Expr
    reader: tuple[Expr, ...]
    writer: tuple[Expr, ...]


@dataclass(frozen=True)
class SourceCell:
    """A cell of a memory as it was before the program: where a value finally comes from."""

    memory: Expr
    address: Expr
    symbol: Expr


@dataclass
class Trace:
    """The value of the demanded cell as a term over source cells, and everything that has to be proved for it."""

    value: Expr
    sources: list[SourceCell] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    clobbers: list[Clobber] = field(default_factory=list)
    untouched: list[tuple[int, Store, Expr]] = field(default_factory=list)


class Tracer:
    """Traces cells of one side's program.

    ``name`` labels the source symbols; ``pool`` are the terms over the distinguished cell that witnesses are made of.
    """

    def __init__(self, name: str, nests: Sequence[Nest], samples: Samples, pool: Sequence[Expr]) -> None:
        self.name = name
        self.nests = list(nests)
        self.samples = samples
        self.pool = list(pool)
        self.trace = Trace(value=pool[0])
        self._known: dict[tuple[Expr, Expr, int], Expr] = {}

    def run(self, memory: Expr, address: Expr) -> Trace:
        """Traces the cell ``memory[address]`` from the end of the program."""
        self.trace.value = self._value_after(memory, address, len(self.nests))
        return self.trace

    def _value_after(self, memory: Expr, address: Expr, upto: int) -> Expr:
        """The value of a cell after the first ``upto`` nests."""
        key = (memory, address, upto)
        if key not in self._known:
            self._known[key] = self._search(memory, address, upto)
        return self._known[key]

    def _search(self, memory: Expr, address: Expr, upto: int) -> Expr:
        for index in reversed(range(upto)):
            nest = self.nests[index]
            stores = nest.writes(memory)
            if not stores:
                continue
            if len(stores) > 1:
                raise Unsupported(f"{nest.label} writes {memory.name} in more than one way per iteration")
            store = stores[0]
            witness = self._witness(nest, store, address)
            if witness is None:
                self.trace.untouched.append((index, store, address))
                continue
            self._add(self.trace.demands, Demand(index, store, address, witness))
            return self._value_at(index, store, witness)
        for cell in self.trace.sources:
            if cell.memory is memory and cell.address is address:
                return cell.symbol
        symbol = var(f"{self.name}.cell{len(self.trace.sources)}", memory.load(address).sort)
        self.trace.sources.append(SourceCell(memory, address, symbol))
        return symbol

    def _value_at(self, index: int, store: Store, witness: tuple[Expr, ...]) -> Expr:
        """The value that iteration ``witness`` stores, with every load traced further back."""
        nest = self.nests[index]
        at = dict(zip(nest.counters, (resize(w, c.width) for w, c in zip(witness, nest.counters, strict=True)), strict=True))
        value = substitute(store.value, at)
        reads: dict[Expr, Expr] = {}
        for node in postorder([value]):
            if node.op == "load" and node not in reads:
                memory, where = node.args
                if memory.op != "var":
                    raise Unsupported(f"{nest.label} reads a memory after writing it")
                for other in nest.writes(memory):
                    writer = self._witness(nest, other, where, extended=True)
                    if writer is None:
                        self.trace.untouched.append((index, other, where))
                    else:
                        self._add(self.trace.clobbers, Clobber(index, other, where, witness, writer))
                reads[node] = self._value_after(memory, where, index)
        return substitute(value, reads)

    @staticmethod
    def _add(items: list, item: object) -> None:  # type: ignore[type-arg]
        if item not in items:
            items.append(item)

    # -- witness search ---------------------------------------------------------------------------

    def _witness(
        self, nest: Nest, store: Store, address: Expr, extended: bool = False
    ) -> tuple[Expr, ...] | None:
        """An iteration that writes ``address`` at all samples, or None.

        With ``extended`` the iteration may lie beyond the loops' extents (it then never happens).
        """
        candidates = self._candidates(address)
        wanted = [v[0] for v in self.samples.evaluate([address])]
        columns = self.samples.evaluate(candidates)
        extents = self.samples.evaluate([e for _, e in nest.loops])
        choices: list[list[int]] = []
        for level in range(len(nest.loops)):
            fit = [
                k
                for k in range(len(candidates))
                if extended or all(row[k] < limit[level] for row, limit in zip(columns, extents, strict=True))
            ]
            choices.append(fit)
        parameters = [v for v in self.samples.variables]
        where = compile_terms([*parameters, *nest.counters], [store.address])
        for combination in itertools.product(*choices):
            if all(
                where(*row, *(column[k] for k in combination))[0] == target
                for row, column, target in zip(self.samples.rows, columns, wanted, strict=True)
            ):
                return tuple(candidates[k] for k in combination)
        return None

    def _candidates(self, address: Expr) -> list[Expr]:
        """Terms over the cell's coordinates: the given pool, and the index terms inside ``address``."""
        coordinates = {name for term in self.pool for name in free_variables(term)}
        found = list(self.pool)
        for node in postorder([address]):
            if isinstance(node.sort, BvSort) and node.args and node.width <= 32 and node.op != "load":
                names = set(free_variables(node))
                if names and names <= coordinates:
                    found.append(node)
        seen: dict[tuple[int, ...], Expr] = {}
        for term, values in zip(found, zip(*self.samples.evaluate(found), strict=True), strict=True):
            seen.setdefault(tuple(values), term)
        return list(seen.values())[:MAX_POOL]
