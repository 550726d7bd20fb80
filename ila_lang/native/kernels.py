"""Kernels as LLVM IR: loops, registers, loads and stores, and how a run ends before its end.

A function returns 0, or 1 with what went wrong in the record of errors: its number in :func:`faults_of` and a value.
Loops ask now and then (:data:`FUEL`) whether they shall go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ila_lang.language.build import const
from ila_lang.language.expr import Expr, postorder, substitute, variables_of
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store, map_statement, terms, walk
from ila_lang.language.sorts import BvSort, MemSort

from .layout import Layout
from .terms import WIDEST, Body, Module, NotNative, Place, Words, bits_of

#: Iterations between two questions whether to go on, whichever kernels make them.
FUEL = 1 << 20
#: Operations that count as an iteration; a division of n bits is n^2 where processors have none.
OPERATIONS = 16
#: Loops whose inner ones make at most so many iterations together do not ask inside.
LEAF = 64
#: Loops of more iterations are cut into parts of so many, or of fewer where these do much.
PART = 1 << 18

# places in the table of addresses that every function is given; LEFT holds what is left of FUEL
BLOCK, ERROR, POLL, SLOW, START, KERNELS, STEP, LEFT, FIRST = range(9)

#: What a kernel's code returns where it is not for these values of scalars.
OTHER = 3

ASK = "i32 {}() nounwind memory(inaccessiblemem: readwrite)"


@dataclass(frozen=True)
class ExtentFault:
    """The value is an extent that does not fit a counter."""

    counter: str


@dataclass(frozen=True)
class AddressFault:
    """The value is an address outside of the array of a memory."""

    memory: str


Fault = ExtentFault | AddressFault


class Runtime(NamedTuple):
    """Where code finds the record of errors, the function that it asks whether to go on, and what is left of FUEL."""

    error: str
    poll: str
    left: str


class Statements:
    """Statements in the body of a function that returns an i32, 0 at the end and 1 at one of the ``faults``.

    ``issue`` emits a command.
    """

    def __init__(
        self,
        body: Body,
        runtime: Runtime,
        faults: Sequence[Fault],
        issue: Callable[[Command], None] | None = None,
        volatile: Set[Expr] = frozenset(),
    ) -> None:
        self.body, self.runtime, self.faults = body, runtime, faults
        self.issue, self.volatile = issue, volatile
        body.fail = self.fail
        self._asks = True
        self._divided: dict[int, list[Expr]] = {}  # of statements that the kernel keeps

    def fail(self, condition: str, number: int, value: str, bits: int) -> None:
        """Ends the run with an error if a condition holds."""
        body = self.body
        bad, good = body.label(), body.label()
        body.lines.append(f"  br i1 {condition}, label %{bad}, label %{good}, !prof !0")
        body.lines.append(f"{bad}:")
        body.line(f"store i64 {number + 1}, ptr {self.runtime.error}")
        at = body.let(f"getelementptr i8, ptr {self.runtime.error}, i64 8")
        body.line(f"store i{WIDEST} {body.extended('zext', value, bits, WIDEST)}, ptr {at}")
        body.line("ret i32 1")
        body.lines.append(f"{good}:")

    def run(self, body: Sequence[Statement]) -> None:
        """Emits all that the function does, and its end."""
        self._charge(str(_work(body, nested=False)))
        self.block(body)
        self.body.line("ret i32 0")

    def block(self, body: Sequence[Statement]) -> None:
        """Emits statements."""
        b = self.body
        for statement in body:
            match statement:
                case For():
                    self._loop(statement)
                case Let(target=target, value=value, update=update):
                    self._register(target, b.term(value), update)
                case Load(target=target, memory=memory, address=address):
                    self._register(target, b.term(memory.load(address)), False)
                case Store(memory=memory, address=address, value=value):
                    where, word = b.term(address), b.term(value)
                    b.store(memory, address, where, word)
                    b.forget(v for v in variables_of(memory) if isinstance(v.sort, MemSort))
                case Command():
                    if self.issue is None:
                        raise NotNative("A command has no native code here")
                    self._charge("256")
                    self.issue(statement)
                    b.forget(self.volatile)

    def _register(self, target: Expr, value: str, update: bool) -> None:
        b = self.body
        width = bits_of(target.sort)
        if not update:
            b.places[target] = Place(b.local(width), width)
        b.forget([target])
        b.write(b.places[target], width, value)
        b.know(target, value)

    def _loop(self, loop: For) -> None:
        b = self.body
        width, counter_bits = bits_of(loop.extent.sort), bits_of(loop.counter.sort)
        limit = b.term(loop.extent)
        if width > counter_bits:
            large = b.let(f"icmp ugt i{width} {limit}, {1 << counter_bits}")
            self.fail(large, self.faults.index(ExtentFault(loop.counter.name)), limit, width)
        # from the second iteration on, these do not hold what they held before the loop
        changed = {loop.counter, *changed_by(loop.body)}
        if any(isinstance(s, Command) for s in walk(loop.body)):
            changed |= self.volatile
        b.forget(changed)
        self._hoist(loop.body, changed)
        if width == 1:
            inside, after = b.label(), b.label()
            b.branch(limit, inside, after)
            with b.scope():
                b.know(loop.counter, "0")
                self.block(loop.body)
            b.place(after)
            b.forget(changed)
            return
        n = max(64, width + 1)
        end = b.extended("zext", limit, width, n)
        if _inner(loop.body) is None:
            with self._counted(loop.counter, "0", end, n):
                self._charge(str(_work(loop.body, nested=False)))
                self.block(loop.body)
        else:
            asks = self._asks
            self._leaf(loop, end, n)
            self._asks = asks
        b.forget(changed)

    def _hoist(self, body: tuple[Statement, ...], changed: set[Expr]) -> None:
        """Divides before a loop what does not change in it; LLVM does not, for it does not know that it may."""
        b = self.body
        divisions = [node for statement in walk(body) for node in self._divisions(statement)]
        if divisions:
            known = {v for v in b.memo if v.op == "var"} | b.places.keys()
            for node in divisions:
                variables = variables_of(node)
                if variables and known.issuperset(variables) and changed.isdisjoint(variables):
                    b.term(node)

    def _divisions(self, statement: Statement) -> list[Expr]:
        """The divisions in a statement's own terms."""
        known = self._divided.get(id(statement))
        if known is None:
            known = [node for node in postorder(terms(statement)) if node.op in ("bvudiv", "bvurem")]
            self._divided[id(statement)] = known
        return known

    def _leaf(self, loop: For, end: str, n: int) -> None:
        """A loop that does not ask inside, in parts where it may be long."""
        b, inner = self.body, _work(loop.body)
        bits = max(1, min(PART, PART * LEAF // inner)).bit_length() - 1
        if _most_bits(loop.extent) <= bits:
            cost = b.let(f"mul i64 {b.extended('trunc', end, n, 64)}, {inner}")
            self._charge(b.let(f"add i64 {cost}, 1"))
            self._asks = False
            with self._counted(loop.counter, "0", end, n):
                self.block(loop.body)
            return
        parts = b.let(f"add i{n} {end}, {(1 << bits) - 1}")
        count = b.let(f"lshr i{n} {parts}, {bits}")
        with self._counted(None, "0", count, n) as part:
            self._charge(str(inner << bits))
            self._asks = False
            first = b.let(f"shl i{n} {part}, {bits}")
            most = b.let(f"add i{n} {first}, {1 << bits}")
            less = b.let(f"icmp ult i{n} {most}, {end}")
            last = b.let(f"select i1 {less}, i{n} {most}, i{n} {end}")
            with self._counted(loop.counter, first, last, n):
                self.block(loop.body)

    @contextmanager
    def _counted(self, counter: Expr | None, first: str, end: str, n: int) -> Iterator[str]:
        """A loop from ``first`` to before ``end``, numbers of ``n`` bits whose signed value is the same."""
        b = self.body
        head, inside, after = b.label(), b.label(), b.label()
        place = b.local(n)
        b.line(f"store i{n} {first}, ptr {place}")
        b.place(head)
        at = b.let(f"load i{n}, ptr {place}")
        b.branch(b.let(f"icmp ult i{n} {at}, {end}"), inside, after)
        with b.scope():
            if counter is not None:
                width = bits_of(counter.sort)
                b.know(counter, b.extended("zext" if width > n else "trunc", at, n, width))
            yield at
        b.line(f"store i{n} {b.let(f'add nuw nsw i{n} {at}, 1')}, ptr {place}")
        b.line(f"br label %{head}")
        b.lines.append(f"{after}:")

    def _charge(self, cost: str) -> None:
        """Counts iterations, and asks whether to go on when there were many."""
        if not self._asks:
            return
        b = self.body
        left = b.let(f"sub i64 {b.let(f'load i64, ptr {self.runtime.left}')}, {cost}")
        b.line(f"store i64 {left}, ptr {self.runtime.left}")
        ask, stop, on = b.label(), b.label(), b.label()
        empty = b.let(f"icmp slt i64 {left}, 0")
        b.lines.append(f"  br i1 {empty}, label %{ask}, label %{on}, !prof !0")
        b.lines.append(f"{ask}:")
        b.line(f"store i64 {FUEL}, ptr {self.runtime.left}")
        answer = b.let("call " + ASK.format(self.runtime.poll))
        again = b.let(f"icmp eq i32 {answer}, 0")
        b.line(f"br i1 {again}, label %{on}, label %{stop}")
        b.lines.append(f"{stop}:")
        b.line("ret i32 1")
        b.lines.append(f"{on}:")


def changed_by(body: Sequence[Statement]) -> Iterator[Expr]:
    """Counters of loops in a body, registers that it sets and memories that it stores to."""
    for statement in walk(body):
        match statement:
            case For(counter=counter):
                yield counter
            case Let(target=target) | Load(target=target):
                yield target
            case Store(memory=memory):
                yield from (v for v in variables_of(memory) if isinstance(v.sort, MemSort))


def stored_memories(body: Sequence[Statement]) -> set[str]:
    """The names of the memories that a body stores to."""
    return {v.name for v in changed_by(body) if isinstance(v.sort, MemSort)}


def _inner(body: Sequence[Statement]) -> int | None:
    """How many iterations the loops in a body make at most, at least 1; None where that is not known, or too many."""
    total = 1
    for statement in body:
        if isinstance(statement, Command):
            return None
        if isinstance(statement, For):
            inner = _inner(statement.body)
            extent = (
                1
                if bits_of(statement.extent.sort) == 1
                else statement.extent.value
                if statement.extent.is_const
                else None
            )
            if inner is None or extent is None:
                return None
            total += inner * extent
    return total if total <= LEAF else None


def _work(body: Sequence[Statement], *, nested: bool = True) -> int:
    """How many iterations what a body does counts for, at least 1; of loops in it, of which the extents are known."""
    operations, inner = 0, 0
    for statement in body:
        for node in postorder(terms(statement)):
            wide = node.op in ("bvudiv", "bvurem") and node.width > 128
            operations += node.width**2 if wide else 1
        if isinstance(statement, For) and nested:
            inner += (statement.extent.value if statement.extent.is_const else 1) * _work(statement.body)
    return 1 + operations // OPERATIONS + inner


def _most_bits(extent: Expr) -> int:
    """Bits above which an extent has none."""
    if extent.is_const:
        return extent.value.bit_length()
    if extent.op == "zext":
        return _most_bits(extent.args[0])
    if extent.op == "ite":
        return max(map(_most_bits, extent.args[1:]))
    return extent.width


class Table:
    """The table of addresses that native functions are given, and what they read from it at their beginning."""

    def __init__(self, body: Body, argument: str = "%args") -> None:
        self.body, self.argument = body, argument

    def pointer(self, number: int) -> str:
        """The address with a number."""
        return self._read(number, "ptr")

    def length(self, number: int) -> str:
        """The number of words of an array that is checked."""
        return self._read(number, "i64")

    def place(self, number: int) -> str:
        """The address of a place of the table."""
        return self.body.let(f"getelementptr inbounds i64, ptr {self.argument}, i64 {number}")

    def _read(self, number: int, kind: str) -> str:
        return self.body.let(f"load {kind}, ptr {self.place(number)}")


PROFILE = '!0 = !{!"branch_weights", i32 1, i32 1048576}'


def faults_of(body: Sequence[Statement], checked: Iterable[str]) -> tuple[Fault, ...]:
    """What may go wrong in a run, by number, where these memories are checked."""
    counters = dict.fromkeys(s.counter.name for s in walk(body) if isinstance(s, For))
    return (*map(AddressFault, checked), *map(ExtentFault, counters))


def divisors(kernel: Kernel) -> tuple[Expr, ...]:
    """The scalars from outside of which a kernel's divisors are made: registers that hold strides, as a rule."""
    roots = [term for statement in walk(kernel.body) for term in terms(statement)]
    denominators = [n.args[1] for n in postorder(roots) if n.op in ("bvudiv", "bvurem")]
    inside = set(changed_by(kernel.body))
    return tuple(v for v in variables_of(*denominators) if isinstance(v.sort, BvSort) and v not in inside)


def kernel_text(
    kernel: Kernel,
    layout: Layout,
    memories: Sequence[Expr],
    checked: Sequence[str] = (),
    known: Mapping[Expr, int] | None = None,
) -> str:
    """The code of a kernel that issues no commands, as the function ``run`` of a table.

    ``layout`` says where its scalars are; ``memories`` are the arrays in the table, in order, and behind them the
    lengths of those that are ``checked``.  With ``known`` it is the code for these values of scalars, and returns
    :data:`OTHER`, with nothing done, where they have others.  Raises NotNative where the interpreter has to serve.
    """
    module = Module()
    values = {variable: const(value, variable.width) for variable, value in (known or {}).items()}
    if values:
        kernel = Kernel(kernel.name, "", [map_statement(s, partial(substitute, mapping=values)) for s in kernel.body])
    external = kernel.external_variables()
    used = {n: v for n, v in external.items() if isinstance(v.sort, MemSort)}
    inner, body = Body(module, changing=set(changed_by(kernel.body))), Body(module)
    table = Table(body)
    fixed = {"%s": BLOCK, "%error": ERROR, "%poll": POLL}
    arguments = [*(f"ptr {table.pointer(number)}" for number in fixed.values()), f"ptr {table.place(LEFT)}"]
    parameters = [f"ptr {'noalias ' * (name != '%poll')}{name}" for name in (*fixed, "%left")]
    faults = faults_of(kernel.body, checked)
    statements = Statements(inner, Runtime("%error", "%poll", "%left"), faults)
    places = layout.places("%s")
    numbers = {memory: number for number, memory in enumerate(memories)}
    # read at the beginning, for in a loop they would be read again and again
    for variable in (v for v in external.values() if v in places):
        inner.memo[variable] = inner.read(places[variable], bits_of(variable.sort))
    for i, (name, memory) in enumerate(used.items()):
        if memory not in numbers:
            raise NotNative(f"Memory {name} of kernel {kernel.name} is none of those in the table")
        arguments.append(f"ptr {table.pointer(FIRST + numbers[memory])}")
        parameters.append(f"ptr noalias %m{i}")
        length, error = "", 0
        if name in checked:
            arguments.append(f"i64 {table.length(FIRST + len(memories) + checked.index(name))}")
            parameters.append(f"i64 %n{i}")
            length, error = f"%n{i}", faults.index(AddressFault(name))
        inner.memories[memory] = Words(f"%m{i}", length, error)
    statements.run(kernel.body)
    module.add(f"internal i32 @kernel({', '.join(parameters)}) noinline nounwind", inner)
    block = layout.places(arguments[0].removeprefix("ptr "))
    for variable, value in values.items():
        there = body.read(block[variable], bits_of(variable.sort))
        same, other = body.label(), body.label()
        body.branch(body.let(f"icmp ne i{variable.width} {there}, {value.value}"), other, same)
        body.line(f"ret i32 {OTHER}")
        body.lines.append(f"{same}:")
    body.line("ret i32 " + body.let(f"call i32 @kernel({', '.join(arguments)})"))
    module.add("i32 @run(ptr %args) nounwind", body)
    return module.text + PROFILE + "\n"
