"""Symbolic execution of a program fragment at concrete sizes.

Addresses, counters and configuration are integers; what lies in memories is symbolic.  A memory is a table of
words by address; a word never written is a variable of its own.  Words are built by substitution into
hash-consed expressions, so where both sides of a mapping do the same they end with the same expression.

The statements are executed one after the other in the order of :func:`ila_lang.interpreter.machine.run_fragment`, with
the same checks: a command must be valid, and exactly one instruction must decode it.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
    Sort,
    Statement,
    Store,
    bv,
    const,
    substitute,
)
from ila_lang.interpreter.machine import StorePlan, store_plan
from ila_lang.language.kernel import bound_names, map_statement
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh

from .terms import Terms, Value, Words, known, lift

Values = MutableMapping[Expr, Value]
Memories = Mapping[Expr, Words]
Step = Callable[[Values], None]


class OutOfTime(Unsupported):
    """Unrolling took longer than it was allowed."""


@dataclass(frozen=True)
class Cell:
    """What a variable of the unrolled terms stands for: initial contents of a register or a memory word.

    ``side`` is "input" for the tensors that both sides share (``owner`` is then the device's name for it), "device" or
    "ir" for states, "host" for other tensors of either program; "device host" or "ir host" where both programs have
    one of that name.  ``address`` is None for a register.
    """

    side: str
    owner: str
    address: int | None = None


def owners(mapping: TensorMapping, side: str) -> tuple[dict[str, Cell], dict[str, Cell]]:
    """What the states and the host tensors of a side ("device" or "ir") hold at first, by name; without addresses.

    No two of either side are the same, but for paired inputs.  A tensor hides the state of its name.
    """
    sides = {
        "device": (mapping.device, {device_name: Cell("input", device_name) for device_name, _ in mapping.inputs}),
        "ir": (mapping.ir, {ir_name: Cell("input", device_name) for device_name, ir_name in mapping.inputs}),
    }
    fragment, shared = sides.pop(side)
    ((other, paired),) = sides.values()
    rivals = other.tensors.keys() - paired.keys()
    states = {
        name: Cell(side, name) if name in fragment.tensors else shared.get(name, Cell(side, name))
        for name in fragment.ila.states
    }
    tensors = {
        name: shared.get(name, Cell(f"{side} host" if name in rivals else "host", name)) for name in fragment.tensors
    }
    return states, tensors


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
    """One fragment while and after it is executed: registers and memories of the device, and those of the program.

    The program sees its own tensors and registers before the device's, which they hide.
    """

    fragment: Fragment
    values: dict[Expr, Value]
    memories: dict[Expr, Words]
    tensors: dict[Expr, Words]
    commands: int = 0

    def tensor(self, name: str) -> Words:
        """The contents of what the mapping calls a tensor."""
        variable = self.fragment.tensor(name)
        return (self.tensors if name in self.fragment.tensors else self.memories)[variable]


@dataclass
class Unrolled:
    """Both sides of a mapping at one shape: per output element the device's and the IR's term."""

    pairs: list[tuple[Expr, Expr]]
    cells: dict[Expr, Cell]
    commands: int
    seconds: float


def unroll_mapping(
    mapping: TensorMapping, sizes: Mapping[str, int], *, arrays: bool = False, timeout: float = 600.0
) -> Unrolled:
    """Executes both fragments from arbitrary initial state; equal input tensors have equal variables.

    Raises Unsupported where an address, an extent, a decode or a guard stays symbolic, and where the model does not
    accept a command; OutOfTime after ``timeout`` seconds.
    """
    start = time.perf_counter()
    names = _Names(arrays)
    shared = [
        (mapping.device.tensor(device_name), mapping.ir.tensor(ir_name)) for device_name, ir_name in mapping.inputs
    ]
    inputs = [
        names.memory("x" if k == 0 else f"x{k}", Cell("input", device_name), device.sort, ir.sort)
        for k, ((device_name, _), (device, ir)) in enumerate(zip(mapping.inputs, shared, strict=True))
    ]
    device = names.side(mapping, "device", {d: words for (d, _), (words, _) in zip(shared, inputs, strict=True)})
    ir = names.side(mapping, "ir", {i: words for (_, i), (_, words) in zip(shared, inputs, strict=True)})
    for side in (device, ir):
        unroll(side, sizes, mapping.abstract, start + timeout)
    rows, columns = mapping.output_extents(sizes)
    left, right = device.tensor(mapping.output[0]), ir.tensor(mapping.output[1])
    words = mapping.device.tensor(mapping.output[0]).sort
    assert isinstance(words, MemSort)
    sort = bv(words.data_width)
    pairs = [(lift(left.read(i), sort), lift(right.read(i), sort)) for i in range(rows * columns)]
    return Unrolled(pairs, names.cells, device.commands + ir.commands, time.perf_counter() - start)


def unroll(side: Side, sizes: Mapping[str, int], abstract: frozenset[str], deadline: float) -> None:
    """Executes a fragment at concrete sizes on the symbolic state ``side``, in place."""
    fragment = side.fragment
    parameters: dict[Expr, Expr] = {v: const(sizes[n], v.width) for n, v in fragment.parameters.items()}
    body = [map_statement(s, partial(substitute, mapping=parameters)) for s in fragment.program.body]
    _Executor(side, abstract, deadline).program(body)


class _Names:
    """Variables for initial contents, and what they stand for."""

    def __init__(self, arrays: bool) -> None:
        self.arrays = arrays
        self.cells: dict[Expr, Cell] = {}

    def side(self, mapping: TensorMapping, label: str, inputs: Mapping[Expr, Words]) -> Side:
        """Arbitrary initial state; ``inputs`` has the contents of memories that hold inputs."""
        fragment = mapping.ir if label == "ir" else mapping.device
        cells, host = owners(mapping, label)
        values: dict[Expr, Value] = {}
        memories: dict[Expr, Words] = {}
        for name, state in fragment.ila.states.items():
            if not isinstance(state.sort, MemSort):
                known = fragment.idle.get(name)
                values[state] = int(known) if known is not None else self.variable(cells[name], state.sort)
            elif name in fragment.idle:
                memories[state] = _all_words(fragment.idle[name])
            elif cells[name].side == "input":
                memories[state] = inputs[state]
            else:
                memories[state] = self.memory(_word(cells[name]), cells[name], state.sort)[0]
        tensors = {
            tensor: inputs[tensor]
            if host[name].side == "input"
            else self.memory(_word(host[name]), host[name], tensor.sort)[0]
            for name, tensor in fragment.tensors.items()
        }
        return Side(fragment, values, memories, tensors)

    def variable(self, cell: Cell, sort: Sort) -> Expr:
        """The unknown initial value of a register."""
        symbol = fresh(f"{cell.side}.register.{cell.owner}", sort)
        self.cells[symbol] = cell
        return symbol

    def memory(self, prefix: str, cell: Cell, *sorts: Sort) -> list[Words]:
        """Memories of these sorts with the same unknown words, which are cells of the owner of ``cell``."""
        if self.arrays:
            terms = {sort: fresh(prefix, sort) for sort in dict.fromkeys(sorts)}
            return [Arrays(terms[sort]) for sort in sorts]
        known: dict[int, Expr] = {}
        words = sorts[0]
        assert isinstance(words, MemSort)

        def initial(address: int) -> Expr:
            if address not in known:
                known[address] = fresh(f"{prefix}_{address}", bv(words.data_width))
                self.cells[known[address]] = replace(cell, address=address)
            return known[address]

        return [Cells(initial) for _ in sorts]


def _word(cell: Cell) -> str:
    """What the words of an owner are called in terms."""
    return f"{cell.side.replace(' ', '.')}.memory.{cell.owner}"


def _all_words(value: int) -> Cells:
    """A memory all of whose words have one known value."""
    return Cells(lambda _: value)


@dataclass
class _Code:
    """One instruction, ready to be executed symbolically."""

    scalars: list[Expr]
    memories: list[tuple[Expr, int]]
    updates: Terms
    guard: Terms | None
    done: list[Expr]
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
        # the program reads the device's outputs, behind registers and tensors of its own
        side = self.side
        _run(self.prepare(body, {**side.memories, **side.tensors}), ChainMap({}, side.values))

    def prepare(self, body: Sequence[Statement], memories: Memories) -> list[Step]:
        return [self.statement(s, memories) for s in body]

    def statement(self, statement: Statement, memories: Memories) -> Step:
        match statement:
            case For(counter=counter, extent=extent, body=inner):
                limit = self.terms([extent], f"the extent of loop {counter.name}")
                return self.loop(counter, limit, self.prepare(inner, memories), memories)
            case Let(target=target, value=value):
                return _binding(target, self.terms([value], "an address"), memories)
            case Load(target=target, memory=memory, address=address):
                return _binding(target, self.terms([memory.load(address)], "an address"), memories)
            case Store(memory=memory, address=address, value=value):
                if memory.op != "var":
                    raise Unsupported(f"a store to {memory!r}, which is no single memory")
                both = self.terms([address, value], "an address")
                words, what = memories[memory], both.what

                def store(values: Values) -> None:
                    where, data = both(values, memories)
                    words.write(where if type(where) is int else known(where, what), data)

                return store
            case Command(inputs=inputs):
                names = [n for n, _ in inputs]
                operands = self.terms([v for _, v in inputs], "an address")

                def command(values: Values) -> None:
                    self.step(dict(zip(names, operands(values, memories), strict=True)))

                return command

    def loop(self, counter: Expr, extent: Terms, body: list[Step], memories: Memories) -> Step:
        def run(values: Values) -> None:
            limit = known(extent(values, memories)[0], extent.what)
            if limit > 1 << counter.width:
                raise Unsupported(f"{extent.what} is {limit}, more than its counter can count")
            for k in range(limit):
                if time.perf_counter() > self.deadline:
                    raise OutOfTime("unrolling takes longer than the timeout")
                values[counter] = k
                for step in body:
                    step(values)

        return run

    def step(self, operands: Mapping[str, Value]) -> None:
        """One command, and the kernel it starts."""
        side, ila = self.side, self.ila
        side.commands += 1
        inputs = {variable: operands.get(name, 0) for name, variable in ila.inputs.items()}
        valid, *decoded = self.decode({**side.values, **inputs}, side.memories)
        if not known(valid, f"validity of command {side.commands} of {side.fragment.name}"):
            raise Unsupported(f"command {side.commands} of {side.fragment.name} is not valid")
        what = f"the decoding of command {side.commands} of {side.fragment.name}"
        hits = [i for i, hit in zip(ila.instructions.values(), decoded, strict=True) if known(hit, what)]
        if len(hits) != 1:
            names = ", ".join(i.name for i in hits) or "none"
            raise Unsupported(f"{what} must select exactly one instruction; it selects {names}")
        self.execute(hits[0], inputs)

    def execute(self, instruction: Instruction, inputs: Mapping[Expr, Value]) -> None:
        side = self.side
        if instruction.reserved:
            raise Unsupported(f"{instruction.name} is reserved: {instruction.reserved}")
        code = self.codes.get(instruction.name)
        if code is None:
            code = self.codes[instruction.name] = self.compile(instruction)
        results = code.updates({**side.values, **inputs}, side.memories)
        at = len(code.scalars)
        side.values.update(zip(code.scalars, results, strict=False))
        for variable, count in code.memories:
            memory = side.memories[variable]
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
        own = set(bound_names(kernel))
        folded = {v: lift(x, v.sort) for v, x in values.items() if type(x) is int and v.name not in own}
        body = [map_statement(s, partial(substitute, mapping=folded)) for s in kernel.body]
        _run(self.prepare(body, self.side.memories), dict(values))

    def compile(self, instruction: Instruction) -> _Code:
        states = self.ila.states
        scalars: list[Expr] = []
        memories: list[tuple[Expr, int]] = []
        roots: list[Expr] = []
        stores: StorePlan = []
        for name, term in instruction.updates.items():
            if isinstance(term.sort, MemSort):
                base, plan = store_plan(term)
                if base.name != name:
                    raise Unsupported(f"{instruction.name} copies {base.name} to {name}")
                memories.append((base, len(plan)))
                stores += plan
            else:
                scalars.append(states[name])
                roots.append(term)
        kernel, what = instruction.kernel, "an address"
        return _Code(
            scalars,
            memories,
            self.terms(roots + [x for entry in stores for x in entry], what),
            self.terms([instruction.kernel_guard], what) if kernel else None,
            [states[name] for name in kernel.on_done] if kernel else [],
            self.terms(list(kernel.on_done.values()), what) if kernel and kernel.on_done else None,
        )


def _binding(target: Expr, terms: Terms, memories: Memories) -> Step:
    def bind(values: Values) -> None:
        values[target] = terms(values, memories)[0]

    return bind


def _run(steps: Sequence[Step], values: Values) -> None:
    for step in steps:
        step(values)
