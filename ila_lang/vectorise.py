"""Kernels on whole NumPy arrays: loops become axes of index grids.

A loop becomes an axis when its iterations do not depend on each other.  It runs one iteration at a time (on
the whole arrays of the loops around it) when it carries a register from one iteration to the next, or when an
extent inside it depends on its counter.

The result is that of the scalar interpreter, bit for bit, or there is none.  All loads read the memories as
they were before the run, so a run is refused when a store hits a word that another store hits, or that is
loaded later in the scalar order; loading a word before it is overwritten is sound (an operation in place).
The check is on the addresses of the run; a refused run leaves the memories unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compile import compile_terms, loads_resolved
from .expr import Expr, free_variables, postorder, substitute, var
from .function import Function, inline
from .kernel import Command, For, Kernel, Let, Load, Statement, Store, terms, walk
from .sorts import BvSort, MemSort

__all__ = ["run_vectorised"]

Words = NDArray[Any]

#: Widest bit-vector whose operators stay exact in int64.
WIDEST = 62
#: Loops are cut so that a grid has about this many points at most.
POINTS = 1 << 21
#: Later than every time.
NEVER = np.int64((1 << 63) - 1)


def run_vectorised(
    kernel: Kernel, values: Mapping[str, int], memories: MutableMapping[str, Words], points: int = POINTS
) -> None:
    """Runs ``kernel`` on arrays of words, in place.

    ``values`` gives the external scalars and ``memories`` a one-dimensional integer array for each memory,
    which may stop short of the memory's last address; ``points`` bounds the grid.  Final values of states
    (:attr:`Kernel.on_done`) are not applied.  Raises ValueError if the kernel issues commands, stores to a
    conditional memory or uses a width above 62 bits; if an argument is missing, or an array does not fit
    its memory; if an extent does not fit its counter; or if the run loads a word after storing it, stores
    one twice, or leaves an array.
    """
    _Run(kernel, values, memories, points).run()


@dataclass
class _Term:
    """A compiled expression: loads first (each may use the ones before), then the value over all of them."""

    loads: list[tuple[str, str, Callable[..., Any], list[str]]]
    value: Callable[..., Any]
    names: list[str]


@dataclass
class _Accesses:
    """What a run has done so far to a memory that it stores to: when each word was written and last read."""

    written: NDArray[np.int64]
    read: NDArray[np.int64]
    stores: list[tuple[Words, Words]] = field(default_factory=list)


class _Clock:
    """Scalar time as one number: per loop level the statement's position in its block, then the counter.

    ``positions`` and ``counters`` are the shifts of these digits by level; where they do not fit 62 bits
    all are 0 and ``exact`` is false: then nothing is known about the order.
    """

    def __init__(self, kernel: Kernel) -> None:
        widths: list[tuple[int, int]] = []

        def measure(body: Sequence[Statement], depth: int) -> None:
            if depth == len(widths):
                widths.append((0, 0))
            digits, counter = widths[depth]
            loops = [s for s in body if isinstance(s, For)]
            counter = max(counter, *(s.counter.width for s in loops)) if loops else counter
            widths[depth] = max(digits, len(body).bit_length()), counter
            for loop in loops:
                measure(loop.body, depth + 1)

        measure(kernel.body, 0)
        at = sum(a + b for a, b in widths)
        self.exact = at <= WIDEST
        self.positions: list[int] = []
        self.counters: list[int] = []
        for digits, counter in widths:
            self.positions.append(at - digits if self.exact else 0)
            self.counters.append(at - digits - counter if self.exact else 0)
            at -= digits + counter


class _Run:
    """One run of one kernel."""

    def __init__(self, kernel: Kernel, values: Mapping[str, int], memories: Mapping[str, Words], points: int) -> None:
        self.kernel = kernel
        self.points = points
        self.compiled: dict[Expr, _Term] = {}
        self.serial = _serial_counters(kernel)
        self.env: dict[str, Any] = {}
        self.grid: tuple[int, ...] = ()
        self.clock = _Clock(kernel)
        self.now: Any = 0
        self.depth = 0
        self.memories: dict[str, Words] = {}
        self.accesses: dict[str, _Accesses] = {}
        _check_widths(kernel)
        stored = set()
        for statement in walk(kernel.body):
            if isinstance(statement, Command):
                raise ValueError(f"Kernel {kernel.name} must not issue commands to be vectorised")
            if isinstance(statement, Store):
                if statement.memory.op != "var":
                    raise ValueError(f"Kernel {kernel.name} must store to memory variables only")
                stored.add(statement.memory.name)
        for name, variable in kernel.external_variables().items():
            if isinstance(variable.sort, MemSort):
                if name not in memories:
                    raise ValueError(f"Kernel {kernel.name} must be given the memory {name}")
                self.memories[name] = _checked_array(name, variable.sort, memories[name], name in stored)
            elif name in values:
                self.env[name] = int(values[name])
            elif any(name in free_variables(t) for s in walk(kernel.body) for t in terms(s)):
                raise ValueError(f"Kernel {kernel.name} must be given the value {name}")
        for name in sorted(stored):
            words = self.memories[name]
            for other, theirs in self.memories.items():
                if other != name and np.may_share_memory(words, theirs):
                    raise ValueError(f"Memories {name} and {other} must be separate arrays")
            self.accesses[name] = _Accesses(np.full(len(words), NEVER), np.full(len(words), np.int64(-1)))

    def run(self) -> None:
        # products wrap around on purpose; NumPy warns about it on single numbers
        with np.errstate(over="ignore"):
            self.block(tuple(self.kernel.body))
        for name, accesses in self.accesses.items():
            late = accesses.read > accesses.written
            if late.any():
                raise ValueError(
                    f"Kernel {self.kernel.name} cannot be vectorised on this data: it loads "
                    f"{name}[{int(late.argmax()):#x}] after it stores it"
                )
        for name, accesses in self.accesses.items():
            for addresses, words in accesses.stores:
                self.memories[name][addresses] = words

    def block(self, body: tuple[Statement, ...]) -> None:
        start = self.now
        for position, statement in enumerate(body):
            self.now = start | position << self.clock.positions[self.depth]
            match statement:
                case For():
                    self.loop(statement)
                case Let(target=target, value=value):
                    self.env[target.name] = self.value(value)
                case Load(target=target, memory=memory, address=address):
                    self.env[target.name] = self.value(memory.load(address))
                case Store(memory=memory, address=address, value=value):
                    self.store(memory.name, self.value(address), self.value(value))
        self.now = start

    def loop(self, loop: For) -> None:
        limits = np.asarray(self.value(loop.extent))
        extent = int(limits.flat[0])
        # no counter decides an extent inside its own axis (see _serial_counters), so the grid agrees on it
        assert (limits == extent).all()
        if extent > 1 << loop.counter.width:
            raise ValueError(f"Extent {extent} must fit the counter {loop.counter.name} of {self.kernel.name}")
        outer, grid, start = self.env, self.grid, self.now
        shift = self.clock.counters[self.depth]
        self.depth += 1
        if loop.counter in self.serial:
            inside = _introduced(loop.body)
            for i in range(extent):
                self.env[loop.counter.name] = i
                self.now = start | i << shift
                self.block(loop.body)
            for name in inside | {loop.counter.name}:
                self.env.pop(name, None)
            self.depth -= 1
            return
        size = int(np.prod(grid, dtype=np.int64))
        chunk = max(1, self.points // size)
        # arrays have one axis for each loop around them: the new axis is last
        inner = {n: v[..., None] if isinstance(v, np.ndarray) and v.ndim else v for n, v in outer.items()}
        for first in range(0, extent, chunk):
            count = min(chunk, extent - first)
            axis = np.arange(first, first + count, dtype=np.int64).reshape((1,) * len(grid) + (count,))
            self.env, self.grid = {**inner, loop.counter.name: axis}, (*grid, count)
            self.now = (start[..., None] if isinstance(start, np.ndarray) else start) | axis << shift
            self.block(loop.body)
        self.env, self.grid = outer, grid
        self.depth -= 1

    def store(self, name: str, address: Any, value: Any) -> None:
        accesses = self.accesses[name]
        addresses = np.broadcast_to(np.asarray(address, dtype=np.int64), self.grid).ravel()
        words = np.broadcast_to(np.asarray(value, dtype=np.int64), self.grid).ravel()
        self.check_range(name, addresses)
        hit = (accesses.written[addresses] != NEVER).any()
        accesses.written[addresses] = np.broadcast_to(self.now, self.grid).ravel()
        if not hit and addresses.size > 1:
            order = np.sort(addresses)
            hit = (order[1:] == order[:-1]).any()
        if hit:
            raise ValueError(
                f"Kernel {self.kernel.name} cannot be vectorised on this data: it stores a word of {name} twice"
            )
        accesses.stores.append((addresses, words))

    def load(self, name: str, address: Any) -> Any:
        addresses = np.asarray(address, dtype=np.int64)
        self.check_range(name, addresses)
        if name in self.accesses:
            when = self.now if self.clock.exact else NEVER - 1
            np.maximum.at(self.accesses[name].read, *map(np.ravel, np.broadcast_arrays(addresses, when)))
        return self.memories[name][addresses].astype(np.int64)

    def check_range(self, name: str, addresses: Words) -> None:
        length = len(self.memories[name])
        if addresses.size and int(addresses.max()) >= length:
            raise ValueError(
                f"Address {int(addresses.max()):#x} must lie in the array of {name}, which has {length} words"
            )

    def value(self, term: Expr) -> Any:
        """The value of ``term``: a number, or an array with one axis for each open loop."""
        if term not in self.compiled:
            self.compiled[term] = _compile(term)
        code = self.compiled[term]
        found = dict[str, Any]()

        def pick(name: str) -> Any:
            if name in found:
                return found[name]
            if name not in self.env:
                raise ValueError(f"Register {name} of {self.kernel.name} must be set in the loop that uses it")
            return self.env[name]

        for target, memory, address, names in code.loads:
            found[target] = self.load(memory, address(*map(pick, names))[0])
        return code.value(*map(pick, code.names))[0]


def _compile(term: Expr) -> _Term:
    """Takes the loads out of ``term``, so that their addresses can be recorded."""
    root = loads_resolved(inline(term, _scalar_functions(term)))
    replaced: dict[Expr, Expr] = {}
    loads: list[tuple[str, str, Callable[..., Any], list[str]]] = []
    for node in postorder([root]):
        if node.op == "load":
            memory, address = node.args
            address = substitute(address, replaced)
            names = list(free_variables(address))
            target = var(f"loaded.{len(loads)}", node.sort)
            code = compile_terms(list(free_variables(address).values()), [address], vector=True)
            loads.append((target.name, memory.name, code, names))
            replaced[node] = target
    rest = substitute(root, replaced)
    variables = free_variables(rest)
    return _Term(loads, compile_terms(list(variables.values()), [rest], vector=True), list(variables))


def _scalar_functions(term: Expr) -> frozenset[str]:
    """Names of applied functions that can be called on arrays: those that see no memory."""
    functions = [n.func for n in postorder([term]) if n.func is not None]
    with_memory = {f.name for f in functions if any(isinstance(p.sort, MemSort) for p in f.params)}
    return frozenset(f.name for f in functions) - with_memory


def _checked_array(name: str, sort: MemSort, words: Words, written: bool) -> Words:
    if not isinstance(words, np.ndarray) or words.ndim != 1 or not np.issubdtype(words.dtype, np.integer):
        raise ValueError(f"Memory {name} must be a one-dimensional array of integers")
    if len(words) > 1 << sort.addr_width:
        raise ValueError(f"Memory {name} must have at most {1 << sort.addr_width} words, not {len(words)}")
    largest = (1 << sort.data_width) - 1
    if written and np.iinfo(words.dtype).max < largest:
        raise ValueError(f"Array {name} must have a type for {sort.data_width} bits, not {words.dtype}")
    if words.size and (int(words.min()) < 0 or int(words.max()) > largest):
        raise ValueError(f"Words of {name} must lie in 0 .. {largest}")
    return words


def _check_widths(kernel: Kernel) -> None:
    seen: set[Function] = set()

    def check(roots: Iterable[Expr]) -> None:
        for node in postorder(roots):
            width = 0
            match node.sort:
                case BvSort(width=width):
                    pass
                case MemSort(addr_width=a, data_width=d):
                    width = max(a, d)
            if width > WIDEST:
                raise ValueError(
                    f"Terms of {kernel.name} must have at most {WIDEST} bits to be vectorised, "
                    f"not {width} ({node.describe()})"
                )
            if node.func is not None and node.func not in seen:
                seen.add(node.func)
                check([*node.func.params, *([node.func.body] if node.func.body is not None else [])])

    for statement in walk(kernel.body):
        check(terms(statement))
        match statement:
            case For(counter=c):
                check([c])
            case Let(target=t) | Load(target=t):
                check([t])


def _introduced(body: tuple[Statement, ...]) -> set[str]:
    """Counters and registers that are introduced in ``body``."""
    names = set()
    for statement in walk(body):
        match statement:
            case For(counter=t) | Let(target=t, update=False) | Load(target=t):
                names.add(t.name)
    return names


def _serial_counters(kernel: Kernel) -> set[Expr]:
    """Counters of the loops that must run one iteration at a time."""
    loops = [s for s in walk(kernel.body) if isinstance(s, For)]
    serial = set()
    for loop in loops:
        updated = {s.target.name for s in walk(loop.body) if isinstance(s, Let) and s.update}
        if updated - _introduced(loop.body):
            serial.add(loop.counter)
    # what a register's value may depend on, through any number of assignments and loads
    sources: dict[str, set[str]] = {}
    for statement in walk(kernel.body):
        match statement:
            case Let(target=t) | Load(target=t):
                found = sources.setdefault(t.name, set())
                for term in terms(statement):
                    found.update(free_variables(term))
    for loop in loops:
        open_names = set[str]()
        for inner in walk(loop.body):
            if isinstance(inner, For):
                open_names |= free_variables(inner.extent).keys()
        reached: set[str] = set()
        while open_names:
            name = open_names.pop()
            reached.add(name)
            open_names |= sources.get(name, set()) - reached
        if loop.counter.name in reached:
            serial.add(loop.counter)
    return serial
