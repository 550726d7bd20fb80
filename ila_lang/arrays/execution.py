"""One run of a kernel on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.kernel import ExtentError
from ila_lang.language.sorts import MemSort, Sort

from .clock import Clock, Layout
from .flow import Flow
from .plan import Add, Assign, Block, Loop, Node, Put
from .products import EXACT, Contraction, Product
from .regions import MOST_BYTES, Axis, NotParallel, Region, read_pieces, words_of
from .values import Value

Words = NDArray[Any]

#: A sum over at least this many points of the grid is worth a matrix product.
PRODUCT_POINTS = 1 << 11
#: Copies of memories for fewer iterations at a time are not worth their while.
FEWEST = 2
#: Arrays kept for one configuration have at most this many bytes.
KEPT_BYTES = 16 << 20


class Compiled(Protocol):
    """What a run needs of the compiled kernel."""

    @property
    def name(self) -> str:
        """The kernel's name."""

    @property
    def flow(self) -> Flow:
        """What its values depend on."""

    @property
    def steering(self) -> Sequence[str]:
        """Memories whose contents are part of a configuration."""

    @property
    def memories(self) -> Mapping[str, MemSort]:
        """Its memories."""


@dataclass
class Configuration:
    """What is known of a kernel for one tuple of scalars.

    ``serial`` are the counters of loops that are no axes, ``layout`` the digits of times
    (:mod:`ila_lang.arrays.clock`).  For loops in ``phases`` (by their counters, which are in ``serial``) each iteration
    is run several times, for every n-th iteration of an axis around it, from the first, the second, ... on: ``phases``
    has that axis's counter and n.  ``ordered`` says that the order of accesses is known to be right; ``kept`` has
    values that depend on nothing else than the counters and versions of memories in their keys.
    """

    serial: set[str]
    layout: Layout
    phases: dict[str, tuple[str, int]] = field(default_factory=dict)
    ordered: bool = False
    kept: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    bytes: int = 0

    def keep(self, key: tuple[Any, ...], found: Any) -> None:
        """Keeps a value; all others are dropped where there would be too many."""
        if isinstance(found, np.ndarray):
            self.bytes += found.nbytes
            if self.bytes > KEPT_BYTES:
                self.forget()
                self.bytes = found.nbytes
        self.kept[key] = found

    def forget(self) -> None:
        """Drops what was kept."""
        self.kept.clear()
        self.bytes = 0


class Ref:
    """A value that a recorded run computes: place, value in the present run, sort, and whether it is ``fixed``.

    Fixed values depend only on memories that the kernel does not store to.
    """

    __slots__ = ("__weakref__", "fixed", "slot", "sort", "value")

    def __init__(self, slot: int, value: Any, fixed: bool, sort: Sort | None = None) -> None:
        self.slot, self.value, self.fixed, self.sort = slot, value, fixed, sort


def actual(value: Any) -> Any:
    """The value itself: a number or an array."""
    return value.value if isinstance(value, Ref) else value


def sum_over(values: Any, counts: tuple[int, ...], first: int) -> Any:
    """The sum over the axes from ``first`` on of a grid of ``counts`` points."""
    depth = len(counts)
    if not isinstance(values, np.ndarray):
        values = np.full((1,) * depth, values)
    axes = tuple(range(first, depth))
    missing = np.prod([counts[d] for d in axes if values.shape[d] == 1], dtype=np.int64)
    total = values.sum(axis=axes) * missing
    return total if first else int(total)


def chosen(mask: Words, values: Words) -> Words:
    """The values at the active points, of which there is at least one."""
    shape = np.broadcast_shapes(mask.shape, values.shape)
    found: Words = np.broadcast_to(values, shape)[np.broadcast_to(mask, shape)]
    return found


def _code(axis: Axis) -> int:
    """An axis as a number."""
    return ((axis.dim + 1 << 40 | axis.start) << 40 | axis.count) << 40 | axis.step


class Run:
    """One run of one kernel; ``env`` holds a number or an array (of one dimension for each axis) for each name."""

    def __init__(
        self,
        plan: Compiled,
        configuration: Configuration,
        scalars: Mapping[str, int],
        memories: Mapping[str, Words],
        versions: Mapping[str, int],
        points: int,
    ) -> None:
        self.plan = plan
        self.configuration = configuration
        self.env: dict[str, Any] = dict(scalars)
        self.memories = memories
        self.versions = versions
        self.points = points
        self.axes: list[Axis] = []
        self.counts: tuple[int, ...] = ()
        self.mask: Words | None = None
        # of open loops: where the counter stands (for an axis: its dimension, its first value and their number)
        self.place: dict[str, int] = {}
        self.introduced: dict[str, int] = {}
        self.clock = Clock(configuration.layout)
        self.checked = not configuration.ordered and configuration.serial != plan.flow.loops.keys()
        times = self.clock.times if self.checked else None
        self.regions = {
            name: Region(memories[name], times, self.clock.culprit, self.clock.around) for name in plan.flow.stored
        }
        for region in self.regions.values():
            # a run that leaves an array takes back its stores; one that is known to be in order has not left any
            region.logged = not configuration.ordered

    def undo(self) -> None:
        """Puts back what the run has stored so far."""
        for region in self.regions.values():
            region.undo()

    # -- statements ----

    def block(self, block: Block) -> None:
        """Executes the statements of one block for the whole grid."""
        for node in self.nodes(block):
            self.clock.tick()
            if isinstance(node, Assign):
                found = self.value(node.value)
                if node.update and self.mask is not None:
                    found = self.choose(self.mask, found, self.pick(node.name), node.width)
                self.env[node.name] = found
                if not node.update:
                    self.introduced[node.name] = len(self.axes)
            elif isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, Put):
                address, word = self.value(node.address), self.value(node.value)
                self.put(node.memory, self.in_range(node.memory, address), word)
            else:
                self.add(node)

    def nodes(self, block: Block) -> list[Node]:
        """The statements of a block, without loops that are known to have no iteration here."""
        if not block.choices:
            return block.nodes
        key = (id(block), *(self.place.get(c, -1) for c in block.counters), *(self.versions[m] for m in block.memories))
        found: list[Node] | None = self.configuration.kept.get(key)
        if found is None:
            found = []
            for node in block.nodes:
                if node not in block.choices:
                    found.append(node)
                    continue
                assert isinstance(node, Loop)
                if np.any(self.value(node.extent)):
                    found.append(node)
            self.configuration.keep(key, found)
        return found

    def loop(self, node: Loop) -> None:
        """Runs a loop as an axis, or one iteration at a time."""
        limits = self.value(node.extent)
        ragged = None
        if isinstance(limits, np.ndarray):
            # points that are not active have any extent
            active = limits if self.mask is None else chosen(self.mask, limits)
            extent = int(active.max())
            if int(active.min()) != extent:
                ragged = limits
        else:
            extent = limits
        counter = node.statement.counter
        if extent > 1 << counter.width:
            raise ExtentError(extent, counter.name, self.plan.name)
        if extent == 0:
            return
        mask = self.mask
        if extent == 1 or counter.name in self.configuration.serial:
            for i in range(extent):
                self.env[counter.name] = self.place[counter.name] = i
                if ragged is not None:
                    self.mask = i < ragged if mask is None else mask & (i < ragged)
                self.iteration(node, counter.name)
                self.mask = mask
            return
        size = int(np.prod(self.counts, dtype=np.int64))
        chunk = max(1, self.points // size)
        copies = sum(self.regions[name].bytes for name in node.private)
        if copies:
            chunk = min(chunk, MOST_BYTES // copies)
            if chunk < FEWEST:
                raise NotParallel(counter.name)
        dim, counts = len(self.axes), self.counts
        for first in range(0, extent, chunk):
            number = min(chunk, extent - first)
            axis = Axis(counter.name, dim, first, number)
            values = np.arange(first, first + number, dtype=np.int64).reshape((1,) * dim + (number,))
            self.env[counter.name] = values
            self.place[counter.name] = _code(axis)
            self.axes.append(axis)
            self.clock.open(axis, extent)
            self.counts = (*counts, number)
            if mask is not None:
                self.mask = mask[..., None]
            if ragged is not None:
                active = values < ragged[..., None]
                self.mask = active if self.mask is None else self.mask & active
            for name in node.private:
                self.regions[name].enter(axis)
            self.block(node.body)
            self.axes.pop()
            self.clock.close()
            self.counts = counts
            self.mask = mask
            for name in node.private:
                self.leave(name)

    def iteration(self, node: Loop, counter: str) -> None:
        """Runs an iteration of a loop that is no axis, in phases where it has some."""
        split, phases = self.configuration.phases.get(counter, ("", 1))
        whole = next((axis for axis in self.axes if axis.counter == split and axis.count > 1), None)
        if whole is None:
            self.block(node.body)
            return
        dim, env, mask, counts = whole.dim, self.env, self.mask, self.counts
        for first in range(min(phases, whole.count)):
            part = (*(slice(None),) * dim, slice(first, None, phases))
            self.mask = mask
            if mask is not None and mask.shape[dim] > 1:
                self.mask = mask[part]
                if not self.mask.any():
                    continue
                if self.mask.all():
                    self.mask = None
            start, number = whole.start + first * whole.step, len(range(first, whole.count, phases))
            self.axes[dim] = self.clock.axes[dim] = axis = Axis(split, dim, start, number, whole.step * phases)
            self.place[split] = _code(axis)
            self.counts = (*counts[:dim], number, *counts[dim + 1 :])
            self.env = {name: self.part_of(value, dim, part) for name, value in env.items()}
            self.block(node.body)
        self.axes[dim] = self.clock.axes[dim] = whole
        self.env, self.mask, self.counts, self.place[split] = env, mask, counts, _code(whole)

    def part_of(self, value: Any, dim: int, part: tuple[slice, ...]) -> Any:
        """The part of an array along an axis, if it has one there."""
        words = actual(value)
        if not isinstance(words, np.ndarray) or words.ndim <= dim or words.shape[dim] == 1:
            return value
        return self.compute(lambda array: array[part], value)

    def add(self, node: Add) -> None:
        """Adds to a register, over all axes that opened since it was introduced."""
        depth, first = len(self.axes), self.introduced[node.name]
        total: Any = None
        if first < depth and node.product is not None and np.prod(self.counts, dtype=np.int64) >= PRODUCT_POINTS:
            total = self.sum_of_products(node.product, first)
        if total is None:
            total, mask = self.value(node.value), self.mask
            # what is left out for all that is summed can be left out of the sum
            later = mask is not None and first > 0 and all(size == 1 for size in mask.shape[first:])
            if mask is not None and not later:
                total = self.choose(mask, total, 0, node.width)
            if first < depth:
                total = self.total(total, first, node.width)
            if mask is not None and later:
                total = self.choose(mask.reshape(mask.shape[:first]), total, 0, node.width)
        self.env[node.name] = self.plus(self.env[node.name], total, node.width)

    def sum_of_products(self, node: Product, first: int) -> Any:
        """The sum over the axes from ``first`` on, as a product of matrices; None where it would not be exact."""
        summed = int(np.prod(self.counts[first:], dtype=np.int64))
        if summed * node.magnitude > EXACT:
            return None
        (left, left_key), (right, right_key) = (
            self.factor(node.left, node.as_left),
            self.factor(node.right, node.as_right),
        )
        if self.mask is not None:
            if actual(left).size < actual(right).size:
                left, left_key = self.compute(np.multiply, left, self.mask), None
            else:
                right, right_key = self.compute(np.multiply, right, self.mask), None
        shapes = actual(left).shape, actual(right).shape
        contraction = Contraction(*shapes, self.counts, first)
        form = (*shapes, self.counts, first)
        return self.compute(
            contraction.sum,
            self.matrix(node.left, contraction.left, left, left_key and (*left_key, "left", form)),
            self.matrix(node.right, contraction.right, right, right_key and (*right_key, "right", form)),
        )

    def matrix(self, node: Value, make: Callable[..., Any], factor: Any, key: tuple[Any, ...] | None) -> Any:
        """The matrix of a factor; made once where the factor is kept."""
        found = None if key is None else self.kept(node, key)
        if found is None:
            found = self.compute(make, factor)
            if key is not None:
                self.keep(node, key, found)
        return found

    def factor(self, node: Value, convert: Any) -> tuple[Any, tuple[Any, ...] | None]:
        """A factor as an array of float64 over the grid, and the key under which it is kept."""
        key = None
        if node.name is not None and node.name in self.plan.flow.reach:
            # a register that depends on nothing that changes keeps its factor, too
            reach = self.plan.flow.reach[node.name] | {node.name}
            if not reach & (self.plan.flow.updated | self.plan.flow.stored):
                key = (id(convert), node.name, *self.places(node))
        elif node.kept:
            key = (id(convert), id(node), *self.places(node))
        found = None if key is None else self.kept(node, key)
        if found is None:
            words = self.value(node)
            if not isinstance(actual(words), np.ndarray):
                words = self.compute(partial(np.full, (1,) * len(self.axes)), words)
            found = self.compute(convert, words)
            if key is not None:
                self.keep(node, key, found)
        return found, key

    # -- values ----

    def places(self, node: Value) -> tuple[int, ...]:
        """Where the counters and memories stand that ``node`` depends on."""
        place = self.place
        # one loop may be an axis for some iterations of the loops around it, and have one iteration for others
        return (
            len(self.axes),
            *(place.get(c, -1) for c in node.counters),
            *(self.versions[m] for m in node.memories),
        )

    def pick(self, name: str) -> Any:
        """The present value of a name, with a dimension for each axis if it is an array."""
        found = self.env[name]
        words = actual(found)
        if isinstance(words, np.ndarray) and words.ndim < len(self.axes):
            return self.reshaped(found, words.shape + (1,) * (len(self.axes) - words.ndim))
        return found

    def value(self, node: Value) -> Any:
        """The value of a term: a number, or an array over the grid."""
        if node.constant is not None:
            return node.constant
        if node.name is not None:
            return self.pick(node.name)
        key = None
        if node.kept:
            key = (id(node), *self.places(node))
            found = self.kept(node, key)
            if found is not None:
                return found
        words: dict[str, Any] = {}
        for target, memory, address in node.loads:
            if address.names and any(n in words for n in address.names):
                where = self.apply(address, words)
            else:
                where = self.value(address)
            words[target] = self.load(memory, where)
        found = self.apply(node, words)
        if key is not None:
            self.keep(node, key, found)
        return found

    def kept(self, node: Value, key: tuple[Any, ...]) -> Any:
        """What was kept of a value under a key, or None."""
        return self.configuration.kept.get(key)

    def keep(self, node: Value, key: tuple[Any, ...], found: Any) -> None:
        """Keeps a value for later runs."""
        self.configuration.keep(key, found)

    def apply(self, node: Value, words: Mapping[str, Any]) -> Any:
        """The term over the present values of names and the words loaded for it."""
        arguments = [words[n] if n in words else self.pick(n) for n in node.names]
        if any(isinstance(actual(a), np.ndarray) for a in arguments):
            return self.compute(node.evaluate, *arguments)
        return self.compute(node.evaluate_numbers, *arguments)

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's value; every value of the run that depends on memories comes from here or from a load."""
        return function(*arguments)

    def choose(self, mask: Words, found: Any, other: Any, width: int) -> Any:
        """``found`` where the mask holds, else ``other``; numbers of ``width`` bits."""
        return np.where(mask, found, other)

    def plus(self, old: Any, more: Any, width: int) -> Any:
        """The sum modulo 2^width."""
        return (old + more) & (1 << width) - 1

    def total(self, value: Any, first: int, width: int) -> Any:
        """The sum over the axes from ``first`` on, congruent modulo 2^width."""
        return sum_over(value, self.counts, first)

    def reshaped(self, found: Any, shape: tuple[int, ...]) -> Any:
        """An array in another shape."""
        return self.compute(lambda array: array.reshape(shape), found)

    def put(self, memory: str, address: Any, word: Any) -> None:
        """Stores words."""
        self.regions[memory].store(address, word, self.mask, len(self.axes))

    def leave(self, memory: str) -> None:
        """Ends a loop whose iterations have copies of a memory."""
        self.regions[memory].leave()

    def load(self, memory: str, address: Any) -> Any:
        """The words of a memory at an address or an array of addresses."""
        address = self.in_range(memory, address)
        region = self.regions.get(memory)
        if region is not None:
            return read_pieces(region.load(address, self.mask, len(self.axes)), self.memories[memory])
        return words_of(self.memories[memory], address)

    def in_range(self, memory: str, address: Any) -> Any:
        """The address, 0 where not active; refuses addresses beyond an array that stops short of its memory."""
        length = len(self.memories[memory])
        if length == 1 << self.plan.memories[memory].addr_width:
            return address
        if self.mask is not None and isinstance(actual(address), np.ndarray):
            address = self.compute(np.where, self.mask, address, 0)
        largest = int(np.max(actual(address)))
        if largest >= length:
            raise ValueError(f"Address {largest:#x} must lie in the array of {memory}, which has {length} words")
        return address
