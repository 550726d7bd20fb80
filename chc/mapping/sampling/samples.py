"""Which instance of which write gave a cell its value: found by trying small sizes, to be proved for all.

At sample sizes every write is executed on its addresses only.  The last instance that wrote a cell before a given
point is looked up there, and its iteration is expressed by terms over the distinguished cell that agree with it at all
samples.  Nothing here is trusted: :mod:`chc.mapping.memory.reaching_definitions` proves what is proposed.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chc.mapping.program.statements import variable_text
from chc.mapping.program.writes import Loops, Point, Schedule, Write, conjuncts_of
from ila_lang import BvSort, Expr, compile_terms, free_variables, postorder
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import plain

Words: TypeAlias = NDArray[Any]

ENOUGH = 200
"""Samples that a case of a proof has, where spare ones satisfy its condition."""

MOST_ITERATIONS = 1 << 19
"""Iterations of one write that are tried at a sample: half a minute, and some 200 MB."""


@dataclass(frozen=True)
class Samples:
    """Values of parameters, coordinates and counters at which witnesses are tried."""

    parameters: tuple[Expr, ...]
    variables: tuple[Expr, ...]
    rows: tuple[tuple[int, ...], ...]
    """Values of parameters and variables, in this order."""
    spare: Samples | None = field(default=None, compare=False, repr=False)
    """Others, of which some are taken where few of these satisfy a condition."""
    _known: dict[Expr, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Values of terms that were evaluated before, at each sample."""

    def evaluate(self, terms: Sequence[Expr]) -> list[tuple[int, ...]]:
        """Values of the terms at each sample."""
        new = [t for t in dict.fromkeys(terms) if t not in self._known]
        if new:
            self.require(*new)
            self._known.update(zip(new, self._columns(new), strict=True))
        columns = [self._known[t] for t in terms]
        return list(zip(*columns, strict=True)) if columns else [() for _ in self.rows]

    def _columns(self, terms: Sequence[Expr]) -> Iterable[tuple[int, ...]]:
        """The values of each term at all samples: at once where no word in it is too wide for that."""
        known = [*self.parameters, *self.variables]
        narrow = terms if _on_arrays(*terms) else [t for t in terms if _on_arrays(t)]
        columns: dict[Expr, tuple[int, ...]] = {}
        if narrow and self.rows:
            arrays = np.array(self.rows, np.int64).reshape(len(self.rows), len(known)).T
            values = compile_terms(known, narrow, vector=True)(*arrays)
            count = len(self.rows)
            columns = {t: tuple(np.broadcast_to(v, count).tolist()) for t, v in zip(narrow, values, strict=True)}
        wide = [t for t in terms if t not in columns]
        function = compile_terms(known, wide)
        values = [function(*row) for row in self.rows] if wide else []
        columns |= zip(wide, zip(*values, strict=True) if values else [()] * len(wide), strict=True)
        return (columns[t] for t in terms)

    def require(self, *terms: Expr) -> None:
        """Raises Unsupported where terms have other variables than the samples."""
        known = {v.name for v in (*self.parameters, *self.variables)}
        for variable in (v for n, v in free_variables(*terms).items() if n not in known):
            raise Unsupported(f"an address depends on {variable_text(variable)}, which the program does not determine")

    def determine(self, term: Expr) -> bool:
        """Whether the samples give a term its value: it reads nothing, and has no other variables."""
        known = {v.name for v in (*self.parameters, *self.variables)}
        return set(free_variables(term)) <= known and all(n.op != "load" for n in postorder([term]))

    def sizes(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """The parameters of a sample."""
        return row[: len(self.parameters)]

    def extend(self, loops: Loops, seed: int, copies: int = 2) -> Samples:
        """Samples with the counters of loops, at arbitrary iterations; extents may depend on counters further out."""
        random, counters = Random(seed), tuple(c for c, _ in loops)
        variables = (*self.variables, *counters)
        Samples(self.parameters, variables, ()).require(*(e for _, e in loops))
        limits = [
            compile_terms([*self.parameters, *self.variables, *counters[:k]], [e]) for k, (_, e) in enumerate(loops)
        ]
        rows = []
        for row in (row for row in self.rows for _ in range(copies)):
            longer = row
            for limit in limits:
                (extent,) = limit(*longer)
                if not extent:
                    break
                longer = (*longer, random.randrange(extent))
            else:
                rows.append(longer)
        spare = self.spare and self.spare.extend(loops, seed, 1)
        return Samples(self.parameters, variables, tuple(rows), spare)

    def where(self, condition: Expr) -> Samples:
        """The samples at which a condition holds; where they are few, spare ones with them."""
        values = self.evaluate([condition])
        rows = [row for row, (holds,) in zip(self.rows, values, strict=True) if holds]
        spare = self.spare and self.spare.where(condition)
        if spare:
            rows += spare.rows[: max(0, ENOUGH - len(rows))]
        return Samples(self.parameters, self.variables, tuple(dict.fromkeys(rows)), spare)


def samples_of(parameters: tuple[Expr, ...], coordinates: Loops, sizes: Sequence[tuple[int, ...]]) -> Samples:
    """Deterministic samples of coordinates of an output cell, at sizes."""
    random, others, each = Random(0), Random(1), 5
    extents = compile_terms(parameters, [e for _, e in coordinates])
    rows = []
    for values in sizes:
        limits = extents(*values)
        if all(limits):
            rows += [(*values, *(random.randrange(n) for n in limits)) for _ in range(each)]
            # the first iteration of the outermost loop is often a case of its own
            rows += [(*values, 0, *(random.randrange(n) for n in limits[1:])) for _ in range(each)]
            # the last iteration of a loop may be in a block that no other one is in
            for last in range(len(limits)):
                cell = (n - 1 if k == last else others.randrange(n) for k, n in enumerate(limits))
                rows.append((*values, *cell))
    if not rows:
        raise Unsupported("at the sample shapes the output has no element")
    return Samples(parameters, tuple(c for c, _ in coordinates), tuple(dict.fromkeys(rows)))


Instance = tuple[tuple[int, ...], int, tuple[int, ...]]
"""The place in time of an instance, the number of its write, and its iteration."""


@dataclass
class Sampler:
    """The writes of one side, executed at samples on demand."""

    schedule: Schedule
    _tables: dict[tuple[Expr, tuple[int, ...]], dict[int, list[tuple[int, tuple[int, ...]]]]] = field(
        default_factory=dict
    )
    _sorted: dict[tuple[Expr, tuple[int, ...], int], list[Instance]] = field(default_factory=dict)

    def takes(self, parameters: tuple[Expr, ...], sizes: tuple[int, ...], most: int) -> bool:
        """Whether all writes whose loops sizes determine have at most so many iterations together at some sizes."""
        counts: dict[tuple[Loops, Expr], int | None] = {}
        for write in self.schedule.writes:
            known = {*parameters, *write.counters}
            if not known.issuperset(variables_of(*(e for _, e in write.loops))):
                continue
            key = write.loops, write.guard
            if key not in counts:
                counts[key] = _count(write, parameters, sizes, most)
            count = counts[key]
            if count is None or count > most:
                return False
            most -= count
        return True

    def last(
        self, samples: Samples, memory: Expr, address: Expr, point: Point
    ) -> list[tuple[int, tuple[int, ...]] | None]:
        """The number of the write that wrote a cell last before a point, and its iteration, at each sample.

        None where there is none.
        """
        if not self.schedule.writes_to(memory):
            return [None for _ in samples.rows]
        before = self._before(samples, memory, address, point)
        return [earlier[position - 1][1:] if position else None for earlier, position in before]

    def meeting(self, samples: Samples, write: Write, address: Expr) -> list[tuple[int, ...]]:
        """The one iteration of a write that writes a cell, whenever that is, at each sample.

        Empty where there is none at some sample, or more than one.
        """
        number = self.schedule.writes.index(write)
        result: list[tuple[int, ...]] = []
        for row, (cell,) in zip(samples.rows, samples.evaluate([address]), strict=True):
            instances = self._instances(write.memory, samples, row, cell)
            iterations = [i for _, n, i in instances if n == number]
            if len(iterations) != 1:
                return []
            result += iterations
        return result

    def overwriting(self, samples: Samples, write: Write, address: Expr) -> list[tuple[int, ...] | None]:
        """The iteration of a write that writes a cell, whenever that is, at each sample; None where there is none.

        Empty where there is more than one at some sample.
        """
        number = self.schedule.writes.index(write)
        result: list[tuple[int, ...] | None] = []
        for row, (cell,) in zip(samples.rows, samples.evaluate([address]), strict=True):
            iterations = [i for _, n, i in self._instances(write.memory, samples, row, cell) if n == number]
            if len(iterations) > 1:
                return []
            result.append(iterations[0] if iterations else None)
        return result

    def runs(self, samples: Samples, write: Write, address: Expr, point: Point) -> list[list[tuple[int, ...]]]:
        """At each sample, the iterations of a write that wrote a cell before a point, with no other write since."""
        number = self.schedule.writes.index(write)
        result: list[list[tuple[int, ...]]] = []
        for instances, position in self._before(samples, write.memory, address, point):
            earlier = reversed(instances[:position])
            result.append([i for _, _, i in itertools.takewhile(lambda instance: instance[1] == number, earlier)])
        return result

    def histories(
        self, samples: Samples, memory: Expr, address: Expr, point: Point
    ) -> list[list[tuple[int, tuple[int, ...]]]]:
        """At each sample, the numbers and iterations of writes that wrote a cell before a point, the latest first."""
        before = self._before(samples, memory, address, point)
        return [[(n, i) for _, n, i in reversed(instances[:position])] for instances, position in before]

    def _before(
        self, samples: Samples, memory: Expr, address: Expr, point: Point
    ) -> Iterable[tuple[list[Instance], int]]:
        """At each sample, all instances that write a cell, and how many of them come before a point."""
        values = samples.evaluate([address, *point.counters])
        for row, (cell, *counters) in zip(samples.rows, values, strict=True):
            key = interleaved(point.place, tuple(counters))
            instances = self._instances(memory, samples, row, cell)
            yield instances, bisect_left(instances, key, key=lambda i: i[0])

    def run_up(
        self, samples: Samples, write: Write, address: Expr, last: Sequence[Expr], back: Expr
    ) -> list[tuple[int, ...]]:
        """The iteration of a write that wrote a cell ``back`` times before the iteration ``last``, at each sample.

        Raises Unsupported where there is none.
        """
        number = self.schedule.writes.index(write)
        result = []
        for row, (cell, steps, *end) in zip(samples.rows, samples.evaluate([address, back, *last]), strict=True):
            iterations = [i for _, n, i in self._instances(write.memory, samples, row, cell) if n == number]
            position = iterations.index(tuple(end)) - steps if tuple(end) in iterations else -1
            if position < 0:
                raise Unsupported(f"{write.label} does not write a cell of {write.memory.name} often enough")
            result.append(iterations[position])
        return result

    def _instances(self, memory: Expr, samples: Samples, row: tuple[int, ...], cell: int) -> list[Instance]:
        """All instances that write a cell, at the sizes of a sample, in the order in which they do."""
        key = (memory, samples.sizes(row))
        if key not in self._tables:
            self._tables[key] = self._table(memory, samples.parameters, key[1])
        if (*key, cell) not in self._sorted:
            writes = self.schedule.writes
            instances = [(interleaved(writes[n].place, i), n, i) for n, i in self._tables[key].get(cell, [])]
            self._sorted[*key, cell] = sorted(instances)
        return self._sorted[*key, cell]

    def _table(
        self, memory: Expr, parameters: tuple[Expr, ...], sizes: tuple[int, ...]
    ) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
        """Numbers and iterations of writes, by the address that they write."""
        table: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for number, write in enumerate(self.schedule.writes):
            if write.memory is memory:
                for iteration, address in _addresses(write, parameters, sizes):
                    table.setdefault(address, []).append((number, iteration))
        return table


def interleaved(place: tuple[int, ...], counters: tuple[int, ...]) -> tuple[int, ...]:
    """Places and counters in turns, outermost first; -1 where one of them has ended."""
    length = len(place) + len(counters)
    both = [-1] * (2 * max(len(place), len(counters)))
    both[0 : 2 * len(place) : 2] = place
    both[1 : 2 * len(counters) + 1 : 2] = counters
    return tuple(both[:length])


def _addresses(
    write: Write, parameters: tuple[Expr, ...], sizes: tuple[int, ...]
) -> Iterable[tuple[tuple[int, ...], int]]:
    """Every iteration of a write at concrete sizes, in order, with the address it writes."""
    names = {v.name for v in (*parameters, *write.counters)}
    for name, variable in free_variables(write.address, write.guard, *(e for _, e in write.loops)).items():
        if name not in names:
            what = variable_text(variable)
            raise Unsupported(f"whether and where {write.label} writes depends on {what}: this is not followed")
    iterations = _iterations(write, parameters, sizes, MOST_ITERATIONS)
    if iterations is None:
        raise Unsupported(
            f"{write.label} writes {plain(write.memory.name)} more than {MOST_ITERATIONS} times at sample "
            "sizes, too often to be tried; give smaller sample shapes or shorter loops"
        )
    known = (*parameters, *write.counters)
    addresses = _values(known, write.address, sizes, iterations)
    return zip(map(tuple, iterations.tolist()), addresses.tolist(), strict=True)


def _count(write: Write, parameters: tuple[Expr, ...], sizes: tuple[int, ...], most: int) -> int | None:
    """How many iterations a write has at concrete sizes; None where more than so many are tried."""
    terms = (write.guard, *(e for _, e in write.loops))
    if not set(parameters).issuperset(variables_of(*terms)):
        iterations = _iterations(write, parameters, sizes, most)
        return None if iterations is None else len(iterations)
    happens, *extents = _at_sizes(parameters, terms)(*sizes)
    count = int(happens)
    for extent in extents:
        count *= extent
        if count > most:
            return None
    return count


@lru_cache(maxsize=1000)
def _at_sizes(parameters: tuple[Expr, ...], terms: tuple[Expr, ...]) -> Callable[..., Any]:
    return compile_terms(parameters, terms)


def _iterations(write: Write, parameters: tuple[Expr, ...], sizes: tuple[int, ...], most: int) -> Words | None:
    """Every iteration in which a write happens at concrete sizes, in order; None where too many are tried.

    What its condition excludes is left out as soon as it is known: an extent may have no meaning there.
    """
    iterations: Words = np.zeros((1, 0), np.int64)  # a row for each, a column for each counter
    open_ = list(dict.fromkeys(conjuncts_of(write.guard)))
    for level in range(len(write.loops) + 1):
        known = (*parameters, *write.counters[:level])
        decided = {c for c in open_ if set(variables_of(c)) <= set(known)}
        open_ = [c for c in open_ if c not in decided]
        for condition in decided:
            iterations = iterations[np.flatnonzero(_values(known, condition, sizes, iterations))]
        if level == len(write.loops):
            break
        limits = _values(known, write.loops[level][1], sizes, iterations)
        if sum(limits.tolist()) > most:
            return None
        limits = limits.astype(np.int64)  # of wide words they are objects
        outer = np.repeat(np.arange(len(iterations)), limits)
        counter = np.arange(len(outer)) - np.repeat(np.cumsum(limits) - limits, limits)
        iterations = np.column_stack([iterations[outer], counter])
    return iterations


def _values(known: tuple[Expr, ...], term: Expr, sizes: tuple[int, ...], iterations: Words) -> Words:
    """A term's values at concrete sizes, in each iteration."""
    run, on_arrays = _compiled(known, term)
    if not on_arrays:
        return np.array([run(*sizes, *iteration)[0] for iteration in iterations.tolist()], np.object_)
    (values,) = run(*(np.array([size]) for size in sizes), *iterations.T)
    return np.broadcast_to(np.asarray(values), len(iterations))


@lru_cache(maxsize=1000)
def _compiled(known: tuple[Expr, ...], term: Expr) -> tuple[Callable[..., Any], bool]:
    """A term as a function, and whether it is one on arrays."""
    on_arrays = _on_arrays(term)
    return compile_terms(known, [term], vector=on_arrays), on_arrays


def _on_arrays(*terms: Expr) -> bool:
    """Whether terms are functions on arrays: their words have less than 63 bits."""
    return all(n.width < 63 for n in postorder(terms) if isinstance(n.sort, BvSort))
