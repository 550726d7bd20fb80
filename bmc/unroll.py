"""Symbolic execution of a program fragment at concrete sizes.

Addresses, counters and configuration are integers; what lies in memories is symbolic.  A memory is a table of
words by address; a word never written is a variable of its own.  Words are built by substitution into
hash-consed expressions, so where both sides of a mapping do the same they end with the same expression.

The statements are executed one after the other in the order of :func:`ila_lang.machine.run_fragment`, with
the same checks: a command must be valid, and exactly one instruction must decode it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ila_lang import (
    Command,
    Expr,
    For,
    Fragment,
    Instruction,
    Kernel,
    Let,
    Load,
    MemSort,
    Statement,
    Store,
    bv,
    const,
    var,
)
from ila_lang.kernel import map_statement
from ila_lang.machine import StorePlan, store_plan
from ila_lang.mapping import TensorMapping
from smt_encodings.naming import ambiguous_name

from .terms import Terms, Unsupported, Value, Words, known, lift

__all__ = ["Arrays", "Cell", "Cells", "OutOfTime", "Side", "Unrolled", "unroll", "unroll_mapping"]

Step = Callable[[dict[str, Value]], None]


class OutOfTime(Unsupported):
    """Unrolling took longer than it was allowed."""


@dataclass(frozen=True)
class Cell:
    """What a variable of the unrolled terms stands for: initial contents of a register or a memory word.

    ``side`` is "input" for the tensors that both sides share (``owner`` is then the device's name for it),
    else "device", "host" or "ir"; ``address`` is None for a register.
    """

    side: str
    owner: str
    address: int | None = None


@dataclass
class Cells:
    """A memory resolved while unrolling: words by address; ``initial`` names the words never written."""

    initial: Callable[[int], Value]
    words: dict[int, Value] = field(default_factory=dict)

    def read(self, address: int) -> Value:
        """The word at an address: what was last written there, or its initial contents."""
        value = self.words.get(address)
        if value is None:
            value = self.words[address] = self.initial(address)
        return value

    def write(self, address: int, value: Value) -> None:
        """Replaces the word at an address."""
        self.words[address] = value


@dataclass
class Arrays:
    """A memory as the textbook has it: one array term that grows with every store; no load is resolved."""

    term: Expr

    def read(self, address: int) -> Value:
        """The selection at a constant address, unsimplified."""
        sort = self.term.sort
        assert isinstance(sort, MemSort)
        return Expr._make("load", (self.term, const(address, sort.addr_width)), (), bv(sort.data_width))

    def write(self, address: int, value: Value) -> None:
        """Adds a store at a constant address."""
        sort = self.term.sort
        assert isinstance(sort, MemSort)
        data = lift(value, bv(sort.data_width))
        self.term = Expr._make("store", (self.term, const(address, sort.addr_width), data), (), sort)


@dataclass
class Side:
    """One fragment while and after it is executed: registers and memories by name (states and host tensors)."""

    fragment: Fragment
    values: dict[str, Value]
    memories: dict[str, Words]
    commands: int = 0


@dataclass
class Unrolled:
    """Both sides of a mapping at one shape: per output element the device's and the IR's term."""

    pairs: list[tuple[Expr, Expr]]
    cells: dict[str, Cell]
    commands: int
    seconds: float


def unroll_mapping(
    mapping: TensorMapping, sizes: Mapping[str, int], *, arrays: bool = False, timeout: float = 600.0
) -> Unrolled:
    """Executes both fragments from arbitrary initial state; equal input tensors have equal variables.

    Raises Unsupported where an address, an extent, a decode or a guard stays symbolic, where the model does not accept
    a command, and where one name stands for two things; OutOfTime after ``timeout`` seconds.
    """
    start = time.perf_counter()
    ambiguous = ambiguous_name(mapping)
    if ambiguous is not None:
        raise Unsupported(ambiguous)
    names = _Names(arrays)
    inputs = {ours: k for k, (ours, _) in enumerate(mapping.inputs)}
    partners = {theirs: ours for ours, theirs in mapping.inputs}
    device = names.side(mapping.device, "device", {n: (n, k) for n, k in inputs.items()})
    ir = names.side(mapping.ir, "ir", {theirs: (ours, inputs[ours]) for theirs, ours in partners.items()})
    for side in (device, ir):
        unroll(side, sizes, mapping.abstract, start + timeout)
    rows, columns = mapping.output_extents(sizes)
    left, right = device.memories[mapping.output[0]], ir.memories[mapping.output[1]]
    words = mapping.device.tensor(mapping.output[0]).sort
    assert isinstance(words, MemSort)
    sort = bv(words.data_width)
    pairs = [(lift(left.read(i), sort), lift(right.read(i), sort)) for i in range(rows * columns)]
    return Unrolled(pairs, names.cells, device.commands + ir.commands, time.perf_counter() - start)


def unroll(side: Side, sizes: Mapping[str, int], abstract: frozenset[str], deadline: float) -> None:
    """Executes a fragment at concrete sizes on the symbolic state ``side``, in place."""
    fragment = side.fragment
    parameters: dict[Expr, Expr] = {v: const(sizes[n], v.width) for n, v in fragment.parameters.items()}
    body = [map_statement(s, parameters) for s in fragment.program.body]
    _Executor(side, abstract, deadline).program(body)


class _Names:
    """Variables for initial contents, and what they stand for."""

    def __init__(self, arrays: bool) -> None:
        self.arrays = arrays
        self.cells: dict[str, Cell] = {}

    def side(self, fragment: Fragment, label: str, inputs: Mapping[str, tuple[str, int]]) -> Side:
        """Arbitrary initial state; ``inputs`` gives the shared name and number of memories that hold inputs."""
        values: dict[str, Value] = {}
        memories: dict[str, Words] = {}
        for name, variable in [*fragment.ila.states.items(), *fragment.tensors.items()]:
            owner = "host" if name in fragment.tensors else label
            if isinstance(variable.sort, MemSort):
                if owner == label and name in fragment.idle:
                    memories[name] = _all_words(fragment.idle[name])
                else:
                    memories[name] = self.memory(owner, name, variable.sort, inputs.get(name))
            elif name in fragment.idle:
                values[name] = int(fragment.idle[name])
            else:
                symbol = f"{label}.register.{name}"
                self.cells[symbol] = Cell(label, name)
                values[name] = var(symbol, variable.sort)
        return Side(fragment, values, memories)

    def memory(self, owner: str, name: str, sort: MemSort, shared: tuple[str, int] | None) -> Words:
        if shared is not None:
            prefix, side, owned = ("x" if shared[1] == 0 else f"x{shared[1]}"), "input", shared[0]
        else:
            prefix, side, owned = f"{owner}.memory.{name}", owner, name
        if self.arrays:
            return Arrays(var(prefix, sort))
        word = bv(sort.data_width)

        def initial(address: int) -> Expr:
            symbol = f"{prefix}_{address}"
            self.cells[symbol] = Cell(side, owned, address)
            return var(symbol, word)

        return Cells(initial)


def _all_words(value: int) -> Cells:
    """A memory all of whose words have one known value."""
    return Cells(lambda _: value)


@dataclass
class _Code:
    """One instruction, ready to be executed symbolically."""

    scalars: list[str]
    memories: list[tuple[str, int]]
    updates: Terms
    guard: Terms | None
    done: list[str]
    on_done: Terms | None


class _Executor:
    """Executes statements; every expression is prepared once."""

    def __init__(self, side: Side, abstract: frozenset[str], deadline: float) -> None:
        self.side = side
        self.abstract = abstract
        self.deadline = deadline
        self.ila = side.fragment.ila
        self.codes: dict[str, _Code] = {}
        self.decode = self.terms([self.ila.valid, *(i.decode for i in self.ila.instructions.values())], "a decode")

    def terms(self, roots: Sequence[Expr], what: str) -> Terms:
        return Terms(roots, self.abstract, f"{what} of {self.side.fragment.name}")

    def program(self, body: Sequence[Statement]) -> None:
        # one table for registers of the device and of the program: the program reads the device's outputs
        _run(self.prepare(body), self.side.values)

    def prepare(self, body: Sequence[Statement]) -> list[Step]:
        return [self.statement(s) for s in body]

    def statement(self, statement: Statement) -> Step:
        memories = self.side.memories
        match statement:
            case For(counter=counter, extent=extent, body=inner):
                limit = self.terms([extent], f"the extent of loop {counter.name}")
                return self.loop(counter.name, 1 << counter.width, limit, self.prepare(inner))
            case Let(target=target, value=value):
                return self.binding(target.name, self.terms([value], "an address"))
            case Load(target=target, memory=memory, address=address):
                return self.binding(target.name, self.terms([memory.load(address)], "an address"))
            case Store(memory=memory, address=address, value=value):
                if memory.op != "var":
                    raise Unsupported(f"a store to {memory!r}, which is no single memory")
                both = self.terms([address, value], "an address")
                name, what = memory.name, both.what

                def store(values: dict[str, Value]) -> None:
                    where, data = both(values, memories)
                    memories[name].write(where if type(where) is int else known(where, what), data)

                return store
            case Command(inputs=inputs):
                names = [n for n, _ in inputs]
                given = self.terms([v for _, v in inputs], "an address")

                def command(values: dict[str, Value]) -> None:
                    self.step(dict(zip(names, given(values, memories), strict=True)))

                return command

    def binding(self, name: str, terms: Terms) -> Step:
        memories = self.side.memories

        def bind(values: dict[str, Value]) -> None:
            values[name] = terms(values, memories)[0]

        return bind

    def loop(self, name: str, most: int, extent: Terms, body: list[Step]) -> Step:
        memories = self.side.memories

        def run(values: dict[str, Value]) -> None:
            limit = known(extent(values, memories)[0], extent.what)
            if limit > most:
                raise Unsupported(f"{extent.what} is {limit}, more than its counter can count")
            for k in range(limit):
                if time.perf_counter() > self.deadline:
                    raise OutOfTime("unrolling takes longer than the timeout")
                values[name] = k
                for step in body:
                    step(values)

        return run

    def step(self, given: Mapping[str, Value]) -> None:
        """One command, and the kernel it starts."""
        side, ila = self.side, self.ila
        side.commands += 1
        inputs = {name: given.get(name, 0) for name in ila.inputs}
        valid, *decoded = self.decode({**side.values, **inputs}, side.memories)
        if not known(valid, f"validity of command {side.commands} of {side.fragment.name}"):
            raise Unsupported(f"command {side.commands} of {side.fragment.name} is not valid")
        what = f"the decoding of command {side.commands} of {side.fragment.name}"
        hits = [i for i, hit in zip(ila.instructions.values(), decoded, strict=True) if known(hit, what)]
        if len(hits) != 1:
            names = ", ".join(i.name for i in hits) or "none"
            raise Unsupported(f"{what} must select exactly one instruction; it selects {names}")
        self.execute(hits[0], inputs)

    def execute(self, instruction: Instruction, inputs: Mapping[str, Value]) -> None:
        side = self.side
        if instruction.reserved:
            raise Unsupported(f"{instruction.name} is reserved: {instruction.reserved}")
        code = self.codes.get(instruction.name)
        if code is None:
            code = self.codes[instruction.name] = self.compile(instruction)
        results = code.updates({**side.values, **inputs}, side.memories)
        at = len(code.scalars)
        side.values.update(zip(code.scalars, results, strict=False))
        for name, count in code.memories:
            memory = side.memories[name]
            for k in range(at, at + 3 * count, 3):
                if known(results[k], f"the condition of a store of {instruction.name}"):
                    memory.write(known(results[k + 1], f"an address of {instruction.name}"), results[k + 2])
            at += 3 * count
        if instruction.kernel is None or code.guard is None:
            return
        (starts,) = code.guard({**side.values, **inputs}, side.memories)
        if known(starts, f"the start condition of {instruction.kernel.name}"):
            self.kernel(instruction.kernel)
            if code.on_done is not None:
                side.values.update(zip(code.done, code.on_done({**side.values, **inputs}, side.memories), strict=True))

    def kernel(self, kernel: Kernel) -> None:
        """Runs a kernel with the known registers folded into its statements."""
        values = self.side.values
        folded = {v: lift(x, v.sort) for n, v in self.ila.states.items() if type(x := values.get(n)) is int}
        body = [map_statement(s, folded) for s in kernel.body]
        _run(self.prepare(body), dict(values))

    def compile(self, instruction: Instruction) -> _Code:
        scalars: list[str] = []
        memories: list[tuple[str, int]] = []
        roots: list[Expr] = []
        stores: StorePlan = []
        for name, term in instruction.updates.items():
            if isinstance(term.sort, MemSort):
                base, plan = store_plan(term)
                if base.name != name:
                    raise Unsupported(f"{instruction.name} copies {base.name} to {name}")
                memories.append((name, len(plan)))
                stores += plan
            else:
                scalars.append(name)
                roots.append(term)
        kernel, what = instruction.kernel, "an address"
        return _Code(
            scalars,
            memories,
            self.terms(roots + [x for entry in stores for x in entry], what),
            self.terms([instruction.kernel_guard], what) if kernel else None,
            list(kernel.on_done) if kernel else [],
            self.terms(list(kernel.on_done.values()), what) if kernel and kernel.on_done else None,
        )


def _run(steps: Sequence[Step], values: dict[str, Value]) -> None:
    for step in steps:
        step(values)
