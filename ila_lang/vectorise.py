"""Kernels on whole NumPy arrays: loops become axes of index grids.

Every loop is taken for an axis at first.  One that carries a register from iteration to iteration runs one iteration
at a time, on the whole arrays of the loops around it, unless the register is only added to: then its addends are
summed over the axis (by a matrix product where they are products).  Iterations that an extent leaves out are masked.
All stores and loads of a stored memory are checked to be in the scalar order (:mod:`ila_lang.regions`); where they
are not, the run starts again with one loop less as an axis.  So the result is that of the scalar interpreter, bit for
bit.

What was learned about a kernel is kept for each configuration, that is, for each tuple of the scalars it uses: which
loops are no axes; that the order was right (if no address depends on the contents of memories); and arrays that depend
on nothing else than unchanged memories.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter, ne
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .clock import Clock, Restart
from .expr import free_variables
from .kernel import Kernel, terms, walk
from .plan import Add, Assign, Block, CompiledKernel, Loop, Node, Put
from .products import EXACT, Product, matrix_sum
from .regions import Axis, NotParallel, Region
from .sorts import MemSort
from .values import Value

__all__ = ["Plan", "plan_of", "run_vectorised"]

Words = NDArray[Any]

#: Loops are cut so that a grid has about this many points at most.
POINTS = 1 << 19
#: A sum over at least this many points of the grid is worth a matrix product.
PRODUCT_POINTS = 1 << 11
#: Arrays kept for one kernel have at most this many bytes, and belong to at most so many configurations.
KEPT_BYTES = 24 << 20
CONFIGURATIONS = 64

_VERSIONS = count()


def run_vectorised(
    kernel: Kernel, values: Mapping[str, int], memories: MutableMapping[str, Words], points: int = POINTS
) -> None:
    """Runs ``kernel`` on arrays of words, in place.

    ``values`` gives the external scalars and ``memories`` a one-dimensional integer array for each memory,
    which may stop short of the memory's last address; ``points`` bounds the grid.  Final values of states
    (:attr:`Kernel.on_done`) are not applied.  Raises ValueError if the kernel issues commands, stores to a
    conditional memory or uses a width above 62 bits; if an argument is missing, or an array does not fit
    its memory; if an extent does not fit its counter; or if the run leaves an array.  Stored memories are unchanged
    then.
    """
    plan = plan_of(kernel)
    for name, sort in plan.memories.items():
        if name not in memories:
            raise ValueError(f"Kernel {kernel.name} must be given the memory {name}")
        _check_array(name, sort, memories[name], name in plan.flow.stored)
    for name in sorted(plan.flow.stored):
        for other in plan.memories:
            if other != name and np.may_share_memory(memories[name], memories[other]):
                raise ValueError(f"Memories {name} and {other} must be separate arrays")
    plan.run(values, memories, {name: next(_VERSIONS) for name in plan.memories}, points)


_PLANS: WeakKeyDictionary[Kernel, Plan] = WeakKeyDictionary()


def plan_of(kernel: Kernel) -> Plan:
    """The plan of a kernel, made once; the kernel must be complete."""
    if kernel not in _PLANS:
        _PLANS[kernel] = Plan(kernel)
    return _PLANS[kernel]


@dataclass
class _Configuration:
    """What is known of a kernel for one tuple of scalars."""

    serial: set[str]
    layout: dict[tuple[str, ...], list[int]]
    ordered: bool = False
    kept: dict[tuple[Any, ...], Any] = field(default_factory=dict)


class Plan:
    """A kernel compiled for runs on arrays."""

    def __init__(self, kernel: Kernel) -> None:
        compiled = CompiledKernel(kernel)
        self.flow = compiled.flow
        self.body = compiled.body
        self.name = kernel.name
        external = kernel.external_variables()
        self.memories = {n: v.sort for n, v in external.items() if isinstance(v.sort, MemSort)}
        used = set[str]()
        for statement in walk(kernel.body):
            used |= {n for t in terms(statement) for n in free_variables(t)}
        self.scalars = [n for n in external if n not in self.memories and n in used]
        self.configurations: dict[tuple[Any, ...], _Configuration] = {}
        self.bytes = 0

    def run(
        self,
        values: Mapping[str, int],
        memories: Mapping[str, Words],
        versions: Mapping[str, int],
        points: int = POINTS,
    ) -> None:
        """Runs the kernel on ``memories`` in place; equal ``versions`` of a memory promise equal contents."""
        missing = [name for name in self.scalars if name not in values]
        if missing:
            raise ValueError(f"Kernel {self.name} must be given the value {missing[0]}")
        scalars = tuple(int(values[name]) for name in self.scalars)
        key = (points, *scalars)
        if key not in self.configurations:
            if len(self.configurations) >= CONFIGURATIONS:
                self.configurations.clear()
                self.bytes = 0
            self.configurations[key] = self._new_configuration(scalars)
        configuration = self.configurations[key]
        while True:
            run = _Run(self, configuration, dict(zip(self.scalars, scalars, strict=True)), memories, versions, points)
            try:
                # products wrap around on purpose; NumPy warns about it on single numbers
                with np.errstate(over="ignore"):
                    run.block(self.body)
                break
            except NotParallel as found:
                assert found.counter not in configuration.serial
                configuration.serial.add(found.counter)
            except Restart:
                pass
            except ValueError:
                run.undo()
                raise
            run.undo()
            self.forget(configuration)
        configuration.ordered = self.flow.static

    def _new_configuration(self, scalars: tuple[int, ...]) -> _Configuration:
        """What the most similar configuration has taught is a good guess; more serial loops are never wrong."""
        known = [(sum(map(ne, key[1:], scalars)), c) for key, c in self.configurations.items()]
        if not known:
            return _Configuration(set(self.flow.serial), {})
        _, nearest = min(known, key=itemgetter(0))
        return _Configuration(set(nearest.serial), {path: list(bits) for path, bits in nearest.layout.items()})

    def forget(self, configuration: _Configuration) -> None:
        """Drops the arrays kept for a configuration."""
        self.bytes -= sum(v.nbytes for v in configuration.kept.values() if isinstance(v, np.ndarray))
        configuration.kept.clear()

    def keep(self, configuration: _Configuration, key: tuple[Any, ...], found: Any) -> None:
        """Keeps a value for later runs of the configuration."""
        if isinstance(found, np.ndarray):
            self.bytes += found.nbytes
            if self.bytes > KEPT_BYTES:
                for other in self.configurations.values():
                    self.forget(other)
                self.bytes = found.nbytes
        configuration.kept[key] = found


# -- one run ------------------------------------------------------------------------------------------


class _Run:
    """One run of one kernel; ``env`` holds a number or an array (of one dimension for each axis) for each name."""

    def __init__(
        self,
        plan: Plan,
        configuration: _Configuration,
        scalars: dict[str, Any],
        memories: Mapping[str, Words],
        versions: Mapping[str, int],
        points: int,
    ) -> None:
        self.plan = plan
        self.configuration = configuration
        self.env: dict[str, Any] = scalars
        self.memories = memories
        self.versions = versions
        self.points = points
        self.axes: list[Axis] = []
        self.counts: tuple[int, ...] = ()
        self.mask: Words | None = None
        # of open loops: where the counter stands (for an axis: its first value and their number)
        self.place: dict[str, int] = {}
        self.introduced: dict[str, int] = {}
        self.clock = Clock(configuration.layout)
        self.checked = not configuration.ordered and configuration.serial != plan.flow.loops.keys()
        times = self.clock.times if self.checked else None
        self.regions = {name: Region(memories[name], times, self.clock.culprit) for name in plan.flow.stored}

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
                    found = np.where(self.mask, found, self.pick(node.name))
                self.env[node.name] = found
                if not node.update:
                    self.introduced[node.name] = len(self.axes)
            elif isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, Put):
                address, word = self.value(node.address), self.value(node.value)
                self.check_range(node.memory, address)
                self.regions[node.memory].store(address, word, self.mask, len(self.axes))
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
            self.plan.keep(self.configuration, key, found)
        return found

    def loop(self, node: Loop) -> None:
        """Runs a loop as an axis, or one iteration at a time."""
        limits = self.value(node.extent)
        ragged = None
        if isinstance(limits, np.ndarray):
            if not limits.size:
                return
            extent = int(limits.max())
            if int(limits.min()) != extent:
                ragged = limits
        else:
            extent = limits
        counter = node.statement.counter
        if extent > 1 << counter.width:
            raise ValueError(f"Extent {extent} must fit the counter {counter.name} of {self.plan.name}")
        if extent == 0:
            return
        mask = self.mask
        if extent == 1 or counter.name in self.configuration.serial:
            for i in range(extent):
                self.env[counter.name] = self.place[counter.name] = i
                if ragged is not None:
                    self.mask = i < ragged if mask is None else mask & (i < ragged)
                self.block(node.body)
                self.mask = mask
            return
        size = int(np.prod(self.counts, dtype=np.int64))
        chunk = max(1, self.points // size)
        dim, counts = len(self.axes), self.counts
        for first in range(0, extent, chunk):
            number = min(chunk, extent - first)
            axis = Axis(counter.name, dim, first, number)
            values = np.arange(first, first + number, dtype=np.int64).reshape((1,) * dim + (number,))
            self.env[counter.name], self.place[counter.name] = values, first << 32 | number
            self.axes.append(axis)
            self.clock.open(axis)
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
                self.regions[name].leave()

    def add(self, node: Add) -> None:
        """Adds to a register, over all axes that opened since it was introduced."""
        depth, first = len(self.axes), self.introduced[node.name]
        limit = (1 << node.width) - 1
        total: Any = None
        if first < depth and node.product is not None and np.prod(self.counts, dtype=np.int64) >= PRODUCT_POINTS:
            total = self.sum_of_products(node.product, first)
        if total is None:
            total = self.value(node.value)
            if self.mask is not None:
                total = np.where(self.mask, total, 0)
            if first < depth:
                if not isinstance(total, np.ndarray):
                    total = np.full((1,) * depth, total)
                axes = tuple(range(first, depth))
                missing = np.prod([self.counts[d] for d in axes if total.shape[d] == 1], dtype=np.int64)
                total = total.sum(axis=axes) * missing
                total = int(total) if first == 0 else total
        old = self.env[node.name]
        self.env[node.name] = (old + total) & limit

    def sum_of_products(self, node: Product, first: int) -> Any:
        """The sum over the axes from ``first`` on, as a product of matrices; None where it would not be exact."""
        summed = int(np.prod(self.counts[first:], dtype=np.int64))
        if summed * node.magnitude > EXACT:
            return None
        depth = len(self.counts)
        left = self.factor(node.left, node.as_left, depth)
        right = self.factor(node.right, node.as_right, depth)
        if self.mask is not None:
            if left.size < right.size:
                left = left * self.mask
            else:
                right = right * self.mask
        return matrix_sum(left, right, self.counts, first)

    def factor(self, node: Value, convert: Any, depth: int) -> Words:
        """A factor as an array of float64 over the grid."""
        key = None
        if node.name is not None and node.name in self.plan.flow.reach:
            # a register that depends on nothing that changes keeps its factor, too
            reach = self.plan.flow.reach[node.name] | {node.name}
            if not reach & (self.plan.flow.updated | self.plan.flow.stored):
                key = (id(convert), node.name, *self.places(node))
        elif node.kept:
            key = (id(convert), id(node), *self.places(node))
        if key is not None and key in self.configuration.kept:
            found: Words = self.configuration.kept[key]
            return found
        words = self.value(node)
        if not isinstance(words, np.ndarray):
            words = np.full((1,) * depth, words, dtype=np.int64)
        found = convert(words)
        if key is not None:
            self.plan.keep(self.configuration, key, found)
        return found

    # -- values ----

    def places(self, node: Value) -> tuple[int, ...]:
        """Where the counters and memories stand that ``node`` depends on."""
        place = self.place
        return (
            *(place.get(c, -1) for c in node.counters),
            *(self.versions[m] for m in node.memories),
        )

    def pick(self, name: str) -> Any:
        """The present value of a name, with a dimension for each axis if it is an array."""
        found = self.env[name]
        if isinstance(found, np.ndarray) and found.ndim < len(self.axes):
            return found.reshape(found.shape + (1,) * (len(self.axes) - found.ndim))
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
            found = self.configuration.kept.get(key)
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
            self.plan.keep(self.configuration, key, found)
        return found

    def apply(self, node: Value, words: Mapping[str, Any]) -> Any:
        """The term over the present values of names and the words loaded for it."""
        arguments = [words[n] if n in words else self.pick(n) for n in node.names]
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                found = node.on_arrays(*arguments)[0]
                if isinstance(found, np.ndarray) and found.ndim:
                    return found
                return found.item() if hasattr(found, "item") else found
        return node.on_integers(*arguments)[0]

    def load(self, memory: str, address: Any) -> Any:
        """The words of a memory at an address or an array of addresses."""
        self.check_range(memory, address)
        region = self.regions.get(memory)
        if region is not None:
            return region.load(address, self.mask, len(self.axes))
        found = self.memories[memory][address]
        return found.astype(np.int64) if isinstance(found, np.ndarray) else int(found)

    def check_range(self, memory: str, address: Any) -> None:
        """Refuses addresses beyond an array that stops short of its memory."""
        length = len(self.memories[memory])
        if length == 1 << self.plan.memories[memory].addr_width:
            return
        active = address
        if self.mask is not None and isinstance(address, np.ndarray):
            active = np.where(self.mask, address, 0)
        largest = int(np.max(active)) if np.size(active) else 0
        if largest >= length:
            raise ValueError(f"Address {largest:#x} must lie in the array of {memory}, which has {length} words")


def _check_array(name: str, sort: MemSort, words: Words, written: bool) -> None:
    if not isinstance(words, np.ndarray) or words.ndim != 1 or not np.issubdtype(words.dtype, np.integer):
        raise ValueError(f"Memory {name} must be a one-dimensional array of integers")
    if len(words) > 1 << sort.addr_width:
        raise ValueError(f"Memory {name} must have at most {1 << sort.addr_width} words, not {len(words)}")
    largest = (1 << sort.data_width) - 1
    if written and np.iinfo(words.dtype).max < largest:
        raise ValueError(f"Array {name} must have a type for {sort.data_width} bits, not {words.dtype}")
    if words.size and (int(words.min()) < 0 or int(words.max()) > largest):
        raise ValueError(f"Words of {name} must lie in 0 .. {largest}")
