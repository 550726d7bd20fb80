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
from random import Random

from ila_lang import BvSort, Expr, Store, compile_terms, free_variables, postorder, resize, substitute, var
from ila_lang.mapping import SizeError, TensorMapping

from .nests import Nest, Unsupported

__all__ = [
    "Clobber",
    "Demand",
    "Read",
    "Samples",
    "SourceCell",
    "Trace",
    "Tracer",
    "at_iteration",
    "sample_sizes",
]

MAX_POOL = 24
"""Candidate terms kept per search; the first ones are the simplest."""


@dataclass(frozen=True)
class Samples:
    """Values of parameters and coordinates at which candidate witnesses are tried."""

    variables: tuple[Expr, ...]
    rows: tuple[tuple[int, ...], ...]

    def evaluate(self, terms: Sequence[Expr]) -> list[tuple[int, ...]]:
        """Values of the terms at each sample."""
        known = {v.name for v in self.variables}
        for name in (n for t in terms for n in free_variables(t) if n not in known):
            raise Unsupported(f"an address depends on {name}, which the program does not determine")
        function = compile_terms(self.variables, terms)
        return [function(*row) for row in self.rows]


def sample_sizes(mapping: TensorMapping, row: Expr, column: Expr, count: int = 24) -> Samples:
    """Deterministic samples inside a mapping's size domain, with coordinates inside the output tensor."""
    random = Random(0)
    names = list(mapping.parameters)
    rows: list[tuple[int, ...]] = []
    common = [(r, c) for r in (1, 2, 3, 4, 6, 8, 18, 34, 50) for c in (1, 4, 6, 16, 32, 48, 80)]
    for shape in mapping.sample_shapes or common:
        try:
            sizes = mapping.sizes_for(shape)
        except SizeError:
            continue
        for name in names:
            other = sizes | {name: random.randrange(1, 200)}
            if mapping.holds(other):
                sizes = other if random.random() < 0.5 else sizes
        height, width = mapping.output_extents(sizes)
        for _ in range(2):
            if height and width:
                rows.append((*(sizes[n] for n in names), random.randrange(height), random.randrange(width)))
    random.shuffle(rows)
    return Samples((*mapping.parameters.values(), row, column), tuple(rows[:count]))


@dataclass(frozen=True, eq=False)
class Read:
    """A load of iteration ``witness`` of a nest; ``address`` is over the nest's counters."""

    nest: int
    address: Expr
    witness: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Demand:
    """One cell whose value is needed just after ``nest``, written by iteration ``witness``.

    ``address`` is the cell over the distinguished coordinates; ``read`` the load that needs it (None: the output).
    """

    nest: int
    store: Store
    address: Expr
    witness: tuple[Expr, ...]
    read: Read | None


@dataclass(frozen=True, eq=False)
class Clobber:
    """A cell read by ``read`` that the same nest overwrites, by ``store``, at iteration ``writer``."""

    nest: int
    store: Store
    read: Read
    writer: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class SourceCell:
    """A cell of a memory as it was before the program: where a value finally comes from."""

    memory: Expr
    address: Expr
    symbol: Expr
    read: Read | None


@dataclass
class Trace:
    """The value of the demanded cell as a term over source cells, and everything that has to be proved for it."""

    value: Expr
    sources: list[SourceCell] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    clobbers: list[Clobber] = field(default_factory=list)
    untouched: list[tuple[int, Store, Expr]] = field(default_factory=list)


def at_iteration(nest: Nest, witness: Sequence[Expr]) -> dict[Expr, Expr]:
    """The substitution of a nest's counters by a witness."""
    return {c: resize(w, c.width) for c, w in zip(nest.counters, witness, strict=True)}


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
        self.trace.value = self._value_after(memory, address, len(self.nests), None)
        return self.trace

    def _value_after(self, memory: Expr, address: Expr, upto: int, read: Read | None) -> Expr:
        """The value of a cell after the first ``upto`` nests."""
        key = (memory, address, upto)
        if key not in self._known:
            self._known[key] = self._search(memory, address, upto, read)
        return self._known[key]

    def _search(self, memory: Expr, address: Expr, upto: int, read: Read | None) -> Expr:
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
            self.trace.demands.append(Demand(index, store, address, witness, read))
            return self._value_at(index, store, witness)
        symbol = var(f"{self.name}.cell{len(self.trace.sources)}", memory.load(address).sort)
        self.trace.sources.append(SourceCell(memory, address, symbol, read))
        return symbol

    def _value_at(self, index: int, store: Store, witness: tuple[Expr, ...]) -> Expr:
        """The value that iteration ``witness`` stores, with every load traced further back."""
        nest = self.nests[index]
        at = at_iteration(nest, witness)
        values: dict[Expr, Expr] = {}
        for node in postorder([store.value]):
            if node.op != "load":
                continue
            memory, address = node.args
            if memory.op != "var" or any(n.op == "load" for n in postorder([address])):
                raise Unsupported(f"{nest.label} reads at an address that is itself read from memory")
            read = Read(index, address, witness)
            where = substitute(address, at)
            for other in nest.writes(memory):
                writer = self._witness(nest, other, where, extended=True)
                if writer is None:
                    self.trace.untouched.append((index, other, where))
                else:
                    self.trace.clobbers.append(Clobber(index, other, read, writer))
            values[node] = self._value_after(memory, where, index, read)
        return substitute(substitute(store.value, values), at)

    # -- witness search ---------------------------------------------------------------------------

    def _witness(self, nest: Nest, store: Store, address: Expr, extended: bool = False) -> tuple[Expr, ...] | None:
        """An iteration that writes ``address`` at all samples, or None.

        With ``extended`` the iteration may lie beyond the loops' extents (it then never happens).
        """
        candidates = self._candidates(address)
        shift = {c: resize(candidates[0], c.width) for c in nest.counters}
        self.samples.evaluate([substitute(store.address, shift)])
        wanted = [v[0] for v in self.samples.evaluate([address])]
        columns = self.samples.evaluate(candidates)
        extents = self.samples.evaluate([e for _, e in nest.loops])
        choices: list[list[int]] = []
        for level, counter in enumerate(nest.counters):
            inside = [
                k
                for k in range(len(candidates))
                if all(row[k] < limit[level] for row, limit in zip(columns, extents, strict=True))
            ]
            beyond = [
                k
                for k in range(len(candidates))
                if extended and k not in inside and all(row[k] < 1 << counter.width for row in columns)
            ]
            choices.append(inside + beyond)
        parameters = list(self.samples.variables)
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
