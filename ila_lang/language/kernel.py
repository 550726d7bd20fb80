"""Kernels: structured bodies of multi-step operations.

A kernel is a list of statements: counted loops, loads, stores, local registers and (in program fragments)
commands to a device.  From this one text come the scalar interpreter, native code, the unrolled
BMC terms, the Horn clauses, and the flat child-ILA.

A loop runs its body ``extent`` times with its counter at 0, 1, ..., ``extent`` - 1.  The extent is read when the
loop is entered; it may use state, parameters and locals, not counters of loops inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .build import coerce, const, ite
from .expr import Expr, Operand, var, variables_of
from .sorts import BvSort, MemSort, bv


class ExtentError(ValueError):
    """An extent that is larger than what the loop's counter can count."""

    def __init__(self, extent: int, counter: str, kernel: str) -> None:
        self.counter, self.kernel = counter, kernel
        super().__init__(f"Extent {extent} must fit the counter {counter} of {kernel}")


def _require_word(memory: Expr, address: Expr, word: Expr) -> None:
    """Raises TypeError unless a memory has such addresses and words."""
    if memory.sort != MemSort(address.width, word.width):
        words = f"words of {word.width} bits at addresses of {address.width}"
        raise TypeError(f"{memory.describe()} must be a memory of {words}, not of sort {memory.sort}")


@dataclass(frozen=True, slots=True)
class For:
    """``for counter in 0 .. extent - 1: body``.

    A counter of w bits counts up to 2^w iterations; a run whose extent is larger ends with :class:`ExtentError`.
    """

    counter: Expr
    extent: Expr
    body: tuple[Statement, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.counter.sort, BvSort) or not isinstance(self.extent.sort, BvSort):
            raise TypeError(f"Counter {self.counter.name} and its extent must be bit-vectors")


@dataclass(frozen=True, slots=True)
class Let:
    """Sets the local register ``target``; ``update`` marks a second assignment (a loop-carried register)."""

    target: Expr
    value: Expr
    update: bool = False

    def __post_init__(self) -> None:
        if self.value.sort != self.target.sort:
            raise TypeError(
                f"Value of register {self.target.name} must have sort {self.target.sort}, not {self.value.sort}"
            )
        if not isinstance(self.target.sort, BvSort):
            raise TypeError(f"Register {self.target.name} must be a bit-vector, not of sort {self.target.sort}")


@dataclass(frozen=True, slots=True)
class Load:
    """Reads one word of ``memory`` into the local register ``target``."""

    target: Expr
    memory: Expr
    address: Expr

    def __post_init__(self) -> None:
        _require_word(self.memory, self.address, self.target)


@dataclass(frozen=True, slots=True)
class Store:
    """Writes one word of ``memory``."""

    memory: Expr
    address: Expr
    value: Expr

    def __post_init__(self) -> None:
        _require_word(self.memory, self.address, self.value)


@dataclass(frozen=True, slots=True)
class Command:
    """One command at a device's interface: a value for each of the device's inputs that matter."""

    inputs: tuple[tuple[str, Expr], ...]
    note: str = ""


Statement = For | Let | Load | Store | Command


@dataclass(eq=False)
class Kernel:
    """A named kernel under construction or complete.

    >>> from ila_lang import const, mem, var
    >>> k = Kernel("copy")
    >>> source, target = var("source", mem(8, 8)), var("target", mem(8, 8))
    >>> with k.loop("i", const(4, 8)) as i:
    ...     k.store(target, i, k.load("word", source, i))
    >>> from ila_lang import show_kernel
    >>> print(show_kernel(k))
    for i in 0 .. 0x4 - 1:
      word := source[i]
      target[i] := word
    """

    name: str
    doc: str = ""
    body: list[Statement] = field(default_factory=list)
    on_done: dict[str, Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open: list[list[Statement]] = [self.body]
        self._counters: list[Expr] = []
        self._names: set[str] = set()
        self._locals: dict[str, Expr] = {}
        if self.body:
            self.external_variables()  # for its errors
        for statement in walk(self.body):
            match statement:
                case For(counter=counter):
                    self._names.add(counter.name)
                case Let(target=target) | Load(target=target):
                    self._names.add(target.name)
                    self._locals[target.name] = target

    # -- building -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, name: str, extent: Expr, width: int | None = None) -> Iterator[Expr]:
        """Opens a loop; its counter has ``width`` bits (default: the extent's width)."""
        self._require_expression(f"Extent of loop {name}", extent, "const(4, 8)")
        counter = self._fresh(name, width or extent.width)
        del self._locals[name]  # a counter is not to be assigned
        block: list[Statement] = []
        self._open.append(block)
        self._counters.append(counter)
        yield counter
        self._open.pop()
        self._counters.pop()
        self._open[-1].append(For(counter, extent, tuple(block)))

    @contextmanager
    def when(self, name: str, condition: Expr) -> Iterator[None]:
        """Opens a block that runs if ``condition`` (a Boolean) holds when it is reached.

        It is a loop of one or no iteration, so that every interpretation of loops serves it; ``name`` names the
        loop's counter, which is always 0.

        >>> from ila_lang import const, mem, show_kernel, var
        >>> k, m = Kernel("clamp"), var("m", mem(4, 8))
        >>> word = k.load("word", m, const(0, 4))
        >>> with k.when("large", word > 100):
        ...     k.store(m, const(0, 4), const(100, 8))
        >>> print(show_kernel(k))
        word := m[0x0]
        when not (word <= 0x64):
          m[0x0] := 0x64
        """
        with self.loop(name, ite(condition, const(1, 1), const(0, 1))):
            yield

    def let(self, name: str, value: Expr) -> Expr:
        """Introduces a local register with an initial value."""
        self._require_expression(f"Value of register {name}", value, "const(4, 8)")
        target = self._fresh(name, value.width)
        self._open[-1].append(Let(target, value))
        return target

    def assign(self, target: Expr, value: Operand) -> None:
        """Gives an existing local register a new value."""
        if self._locals.get(target.name) is not target:
            raise ValueError(f"Register {target.name} must be introduced with let before kernel {self.name} assigns it")
        self._open[-1].append(Let(target, coerce(value, target.sort, "assign"), update=True))

    def load(self, name: str, memory: Expr, address: Operand) -> Expr:
        """Reads a word of ``memory`` into a new local register."""
        self._require_expression(f"Memory that register {name} is loaded from", memory)
        word = memory.load(address)  # checks the sorts
        assert isinstance(memory.sort, MemSort)
        address = coerce(address, bv(memory.sort.addr_width), "load")
        target = self._fresh(name, word.width)
        self._open[-1].append(Load(target, memory, address))
        return target

    def store(self, memory: Expr, address: Operand, value: Operand) -> None:
        """Writes a word of ``memory``."""
        self._require_expression("Memory of a store", memory)
        assert isinstance(memory.sort, MemSort) or memory.load(address)
        address = coerce(address, bv(memory.sort.addr_width), "store")
        term = coerce(value, bv(memory.sort.data_width), "store")
        memory.store(address, term)  # checks the sorts
        self._open[-1].append(Store(memory, address, term))

    def command(self, note: str = "", **inputs: Expr) -> None:
        """Issues a command to the device (program fragments only)."""
        for name, value in inputs.items():
            self._require_expression(f"Input {name} of a command", value, "const(4, 8) or true")
        self._open[-1].append(Command(tuple(inputs.items()), note))

    def done(self, state: Expr, value: Operand) -> None:
        """Sets a state variable when the kernel completes; a memory is written by stores.

        The value is a term over states.  Registers are gone by then: what a kernel computes leaves it in memories, of
        one word where it is a number.
        """
        if isinstance(state.sort, MemSort):
            raise TypeError(f"State {state.name} at the end of {self.name} must be no memory; use store in the kernel")
        if state.name in self.on_done:
            raise ValueError(f"State {state.name} must be set at most once at the end of {self.name}")
        term = coerce(value, state.sort, "done")
        local = next((v.name for v in variables_of(term) if v.name in self._names), None)
        if local is not None:
            raise ValueError(
                f"State {state.name} at the end of {self.name} must be set (done) to a term over states; "
                f"{local} is a register or counter of the kernel, which has ended: store it in a memory of one word"
            )
        self.on_done[state.name] = term

    def _require_expression(self, what: str, value: object, example: str = "") -> None:
        if not isinstance(value, Expr):
            such = f", such as {example}" if example else ""
            raise TypeError(f"{what} in kernel {self.name} must be an expression{such}, not {value!r:.60}")

    def _fresh(self, name: str, width: int) -> Expr:
        if name in self._names:
            raise ValueError(
                f"Name {name} must be introduced once in kernel {self.name}, not twice; a function that is "
                "called twice takes the name as an argument, or numbers it"
            )
        self._names.add(name)
        self._locals[name] = var(name, bv(width))
        return self._locals[name]

    # -- inspection -----------------------------------------------------------------------------

    def external_variables(self) -> dict[str, Expr]:
        """Variables that the kernel uses but does not bind: state, memories, parameters.

        Raises ValueError where a counter or register is used outside of its scope, which ends with the body of the loop
        around it, and where one name means two things at one place.
        """
        used: dict[str, Expr] = {}
        bound: set[str] = set()

        def use(variables: Iterable[Expr], visible: Mapping[str, Expr]) -> None:
            for variable in variables:
                name = variable.name
                if (visible[name] if name in visible else used.setdefault(name, variable)) is not variable:
                    raise ValueError(
                        f"Name {name} in kernel {self.name} must stand for one thing, not two of two sorts"
                    )

        def bind(variable: Expr, visible: dict[str, Expr], what: str) -> None:
            if variable.name in visible:
                raise ValueError(
                    f"{what} {variable.name} of kernel {self.name} must have a name of its own, not that of a counter "
                    "or register whose scope it is in"
                )
            visible[variable.name] = variable
            bound.add(variable.name)

        def block(body: Sequence[Statement], visible: dict[str, Expr]) -> None:
            for statement in body:
                use(variables_of(*terms(statement)), visible)
                match statement:
                    case For(counter=counter, body=inner):
                        within = dict(visible)
                        bind(counter, within, "Counter")
                        block(inner, within)
                    case Let(target=target, update=True):
                        if visible.get(target.name) is not target:
                            raise ValueError(
                                f"Register {target.name} of kernel {self.name} must be introduced before it is assigned"
                            )
                    case Let(target=target) | Load(target=target):
                        bind(target, visible, "Register")
                    case _:
                        pass

        block(self.body, {})
        use(variables_of(*self.on_done.values()), {})
        stray = next((name for name in used if name in bound), None)
        if stray is not None:
            raise ValueError(
                f"Name {stray} in kernel {self.name} must be used inside of its scope only, not outside; if a state or "
                f"parameter {stray} is meant there, give the counter or register {stray} another name"
            )
        return used


def bound_names(kernel: Kernel) -> list[str]:
    """The names of counters and registers, each once."""
    names: dict[str, None] = {}
    for statement in walk(kernel.body):
        match statement:
            case For(counter=variable) | Let(target=variable) | Load(target=variable):
                names[variable.name] = None
            case _:
                pass
    return list(names)


def terms(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement, memories included, bound registers excluded."""
    match statement:
        case For(extent=extent):
            return (extent,)
        case Let(value=value):
            return (value,)
        case Load(memory=memory, address=address):
            return (memory, address)
        case Store(memory=memory, address=address, value=value):
            return (memory, address, value)
        case Command(inputs=inputs):
            return tuple(value for _, value in inputs)


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement of a body, loops before their contents."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from walk(statement.body)


def map_statement(statement: Statement, go: Callable[[Expr], Expr]) -> Statement:
    """The statement with every expression replaced by what ``go`` makes of it; bound counters and registers, too."""
    match statement:
        case For(counter=counter, extent=extent, body=body):
            return For(go(counter), go(extent), tuple(map_statement(s, go) for s in body))
        case Let(target=target, value=value, update=update):
            return Let(go(target), go(value), update)
        case Load(target=target, memory=memory, address=address):
            return Load(go(target), go(memory), go(address))
        case Store(memory=memory, address=address, value=value):
            return Store(go(memory), go(address), go(value))
        case Command(inputs=inputs, note=note):
            return Command(tuple((n, go(v)) for n, v in inputs), note)
