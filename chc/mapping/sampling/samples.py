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
from chc.mapping.program.writes import Loops, Schedule, Write, conjuncts_of
from ila_lang import BvSort, Expr, compile_terms, concat, const, free_variables, postorder, resize
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import plain

Words: TypeAlias = NDArray[Any]

_FEW = 8
"""Literals tried as values, and as radices of digits (such as the gates of a cell)."""

MOST_CANDIDATES = 4000
"""Terms among which a component of a witness is looked up."""

_LARGEST_BLOCK = 1 << 10
"""Largest literal extent that is tried as a radix."""

ENOUGH = 200
"""Samples that a case of a proof has, where spare ones satisfy its condition."""

MOST_ITERATIONS = 1 << 19
"""Iterations of one write that are tried at a sample: half a minute, and some 200 MB."""


@dataclass(frozen=True)
class Point:
    """A program point: just before the instance of a statement at ``place`` in iteration ``counters``."""

    place: tuple[int, ...]
    counters: tuple[Expr, ...] = ()


def shared_loops(write: Write, point: Point) -> int:
    """How many loops are around both a write and a point."""
    most = min(len(write.loops), len(point.counters))
    return next((k for k in range(most) if write.place[k] != point.place[k]), most)


END = Point((1 << 30,))
"""After the program."""


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
            function = compile_terms([*self.parameters, *self.variables], new)
            values = [function(*row) for row in self.rows]
            self._known.update(zip(new, zip(*values, strict=True) if values else [()] * len(new), strict=True))
        columns = [self._known[t] for t in terms]
        return list(zip(*columns, strict=True)) if columns else [() for _ in self.rows]

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
        for write in self.schedule.writes:
            known = {*parameters, *write.counters}
            if not known.issuperset(variables_of(*(e for _, e in write.loops))):
                continue
            iterations = _iterations(write, parameters, sizes, most)
            if iterations is None:
                return False
            most -= len(iterations)
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
    """A term as a function, and whether it is one on arrays: these have words of less than 63 bits."""
    on_arrays = all(n.width < 63 for n in postorder([term]) if isinstance(n.sort, BvSort))
    return compile_terms(known, [term], vector=on_arrays), on_arrays


def candidates(
    samples: Samples, ranges: Loops, hints: Sequence[Expr], write: Write | None = None
) -> dict[tuple[int, ...], Expr]:
    """Terms over coordinates and counters by their values at the samples; the simplest term for each value.

    ``ranges`` are the coordinates and counters with their extents; ``hints`` are terms whose parts are tried, too, and
    ``write`` is one by whose extents, and by what it divides by, numbers are taken apart.
    """
    atoms = [resize(c, 32) for c, _ in ranges]
    extents = [resize(e, 32) for _, e in ranges]
    terms: list[Expr] = [*atoms, *(const(k, 32) for k in range(_FEW))]
    terms += [a - 1 for a in (*atoms, *extents)]
    # loops that begin at a size or at a literal
    terms += [a - begin for a in atoms for begin in (*(resize(p, 32) for p in samples.parameters), *range(2, _FEW))]
    for hint in hints:
        for node in postorder([hint]):
            if isinstance(node.sort, BvSort) and node.args and node.width <= 32 and node.op not in ("load", "apply"):
                terms.append(resize(node, 32))
    literals = {e.value for e in extents if e.is_const and e.value > 1} | {2, 16}
    if write is not None:
        literals |= _literals([e for _, e in write.loops])
        known = {p.name for p in samples.parameters}
        limits = [resize(e, 32) - 1 for _, e in write.loops if set(free_variables(e)) <= known]
        sizes = [resize(p, 32) for p in samples.parameters]
        ends = [*atoms, *(a - 1 for a in atoms), *(e - 1 for e in (*extents, *sizes)), *limits]
        terms += [*limits, *(resize(h, 32) - 1 for h in hints if isinstance(h.sort, BvSort) and h.width <= 32)]
        for size in _divisors(write, samples):
            terms += [t for a in ends for t in (a // size, a % size)]
            terms += [a * size + b for a in atoms for b in ends if a is not b]
    for k in sorted(literals):
        for atom in list(atoms):
            terms += [atom // const(k, 32), atom % const(k, 32), atom * k]
    terms += [a * k + r for a in atoms for k in range(2, _FEW + 1) for r in range(k)]
    pairs = [(a * e + b, f) for a in atoms for b, e, f in zip(atoms, extents, extents, strict=True) if a is not b]
    terms += [p for p, _ in pairs]
    terms += [p * e + c for p, _ in pairs for c, e in zip(atoms, extents, strict=True)]
    terms += [a + 1 for a in atoms]  # a peeled loop, which begins at 1
    terms += [a - b for a in atoms for b in atoms if a is not b]  # a loop that begins at a counter
    if write is not None:  # a loop from the last to the first
        terms += [last - a for last in limits for a in atoms]
    terms = list(dict.fromkeys(terms))[:MOST_CANDIDATES]
    table: dict[tuple[int, ...], Expr] = {}
    for term, values in zip(terms, zip(*samples.evaluate(terms), strict=True), strict=True):
        table.setdefault(tuple(values), term)
    return table


def digits(samples: Samples, address: Expr, write: Write) -> dict[tuple[int, ...], Expr]:
    """The digits of an address where a write's inner loops have literal extents, by their values at the samples.

    They are what its counters must be if the write goes through words in order, and others address them in other
    units.
    """
    terms: list[Expr] = []
    rest = address
    for _, extent in reversed(write.loops):
        if not extent.is_const or extent.value < 2:
            break
        rest, digit = _divided(rest, extent.value)
        terms += [digit, rest]
    return {tuple(v): t for t, v in zip(terms, zip(*samples.evaluate(terms), strict=True), strict=True)}


def _divided(number: Expr, by: int) -> tuple[Expr, Expr]:
    """Quotient and remainder (32 bits); lower parts of a concatenation stay as they are."""
    if number.op == "concat" and by & (by - 1) == 0 and 1 << number.args[-1].width <= by:
        low = number.args[-1]
        high, digit = _divided(concat(*number.args[:-1]), by >> low.width)
        return high, (digit << low.width) + resize(low, 32)
    wide = resize(number, 32)
    return (wide // const(by, 32), wide % const(by, 32)) if by > 1 else (wide, const(0, 32))


def _literals(extents: Sequence[Expr]) -> set[int]:
    """The literals in some extents, by which blocks of iterations are as long."""
    nodes = postorder(extents)
    shifts = (1 << n.args[1].value for n in nodes if n.op in ("bvshl", "bvlshr") and n.args[1].is_const)
    found = {*(n.value for n in nodes if n.is_const and isinstance(n.sort, BvSort)), *shifts}
    return {v for v in found if 1 < v <= _LARGEST_BLOCK}


def _divisors(write: Write, samples: Samples) -> list[Expr]:
    """The sizes that a write divides by."""
    known = {p.name for p in samples.parameters}
    terms = postorder([write.address, write.guard, *(e for _, e in write.loops)])
    divisors = [n.args[1] for n in terms if n.op in ("bvudiv", "bvurem") and set(free_variables(n.args[1])) <= known]
    return list(dict.fromkeys(resize(d, 32) for d in divisors if not d.is_const))
