"""What programs compute, by a plain walk over their statements: an oracle that shares no code with the interpreter.

Only the classes of expressions and statements are taken from the language, no meaning of them.  Names are looked up in
chains of scopes: those of the loops around a statement, then sizes and host tensors, then the device's state.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ila_lang import BOOL, Command, Expr, For, Fragment, Let, Load, MemSort, Store
from ila_lang.mapping import TensorMapping

Draw = Callable[[str, str, int | None, int], int]
"""The initial value of a cell: whose ("input", a side, "device host", "ir host"), its owner's name, address, bits."""


class Refused(Exception):
    """A program does what no device does: a command that selects no instruction, or a counter that starts over."""


class TooLong(Exception):
    """A run takes more steps than it may."""


class Words(dict[int, int]):
    """A memory whose words are drawn when they are first read."""

    def __init__(self, draw: Callable[[int], int], copied: Words | None = None) -> None:
        super().__init__(copied or {})
        self.draw = draw

    def __missing__(self, address: int) -> int:
        self[address] = word = self.draw(address)
        return word


@dataclass
class Scope:
    """Names and what they stand for, inside of another scope."""

    outer: Scope | None = None
    own: dict[str, int | Words] = field(default_factory=dict)

    def find(self, name: str) -> Scope:
        """The innermost scope that has a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return scope
            scope = scope.outer
        raise KeyError(name)

    def __getitem__(self, name: str) -> int | Words:
        return self.find(name).own[name]


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def value_of(term: Expr, scope: Scope) -> int | Words:
    """The value of a term: Booleans are 0 and 1, bit-vectors numbers below 2^width."""
    op = term.op
    if op == "var":
        return scope[term.name]
    if op == "const":
        return int(term.value)
    if op == "ite":
        return value_of(term.args[1 if value_of(term.args[0], scope) else 2], scope)
    if op == "apply":
        assert term.func is not None and term.func.body is not None
        inner = Scope(None, {p.name: value_of(a, scope) for p, a in zip(term.func.params, term.args, strict=True)})
        return value_of(term.func.body, inner)
    args = [value_of(a, scope) for a in term.args]
    if op == "load":
        memory, address = args
        assert isinstance(memory, Words) and isinstance(address, int)
        return memory[address]
    if op == "store":
        memory, address, word = args
        assert isinstance(memory, Words) and isinstance(address, int) and isinstance(word, int)
        copy = Words(memory.draw, memory)
        copy[address] = word
        return copy
    a = args[0]
    b = args[1] if len(args) > 1 else 0
    assert isinstance(a, int) and isinstance(b, int)
    width = 1 if term.args[0].sort == BOOL else term.args[0].width
    most = (1 << width) - 1
    match op:
        case "not":
            return 1 - a
        case "and" | "bvand":
            return a & b
        case "or" | "bvor":
            return a | b
        case "xor" | "bvxor":
            return a ^ b
        case "eq":
            return int(a == b)
        case "bvnot":
            return most - a
        case "bvneg":
            return -a % (most + 1)
        case "bvadd":
            return (a + b) % (most + 1)
        case "bvsub":
            return (a - b) % (most + 1)
        case "bvmul":
            return a * b % (most + 1)
        case "bvudiv":
            return a // b if b else most
        case "bvurem":
            return a % b if b else a
        case "bvshl":
            return 0 if b >= width else a * 2**b % (most + 1)
        case "bvlshr":
            return 0 if b >= width else a // 2**b
        case "bvashr":
            return (_signed(a, width) >> min(b, width)) % (most + 1)
        case "bvult":
            return int(a < b)
        case "bvule":
            return int(a <= b)
        case "bvslt":
            return int(_signed(a, width) < _signed(b, width))
        case "bvsle":
            return int(_signed(a, width) <= _signed(b, width))
        case "concat":
            return a * 2 ** term.args[1].width + b
        case "extract":
            high, low = (int(p) for p in term.params)
            return a // 2**low % 2 ** (high - low + 1)
        case "zext":
            return a
        case "sext":
            return _signed(a, width) % 2**term.width
    raise ValueError(f"Operator must be one of the language, not {op}")


@dataclass
class Run:
    """One side's program at some sizes."""

    side: str
    fragment: Fragment
    sizes: Mapping[str, int]
    inputs: Mapping[str, str]
    """The tensors of this side whose contents are shared, by name, with the name by which they are."""
    draw: Draw
    steps: int

    def words(self, output: str, count: int) -> list[int]:
        """The first words of a tensor after the program."""
        fragment, ila = self.fragment, self.fragment.ila
        tensors = {n: self._memory(f"{self.side} host", n, v) for n, v in fragment.tensors.items()}
        state: dict[str, int | Words] = {}
        for name, variable in ila.states.items():
            if isinstance(variable.sort, MemSort):
                state[name] = self._memory(self.side, name, variable)
            else:
                bits = 1 if variable.sort == BOOL else variable.width
                known = fragment.idle.get(name)
                state[name] = self.draw(self.side, name, None, bits) if known is None else known
        self.state = Scope(None, state)
        self._block(fragment.program.body, Scope(self.state, {**self.sizes, **tensors}))
        found = tensors[output] if output in tensors else state[output]
        assert isinstance(found, Words)
        return [found[a] for a in range(count)]

    def _memory(self, owner: str, name: str, variable: Expr) -> Words:
        assert isinstance(variable.sort, MemSort)
        bits = variable.sort.data_width
        if owner == self.side and name in self.fragment.idle:
            return Words(lambda _: self.fragment.idle[name])
        hidden = owner == self.side and name in self.fragment.tensors
        if name in self.inputs and not hidden:
            owner, name = "input", self.inputs[name]
        return Words(lambda address: self.draw(owner, name, address, bits))

    def _block(self, body: object, scope: Scope) -> None:
        assert isinstance(body, list | tuple)
        for statement in body:
            self.steps -= 1
            if self.steps < 0:
                raise TooLong
            match statement:
                case For(counter=counter, extent=extent, body=inner):
                    count = value_of(extent, scope)
                    assert isinstance(count, int)
                    if count > 2**counter.width:
                        raise Refused(f"{count} iterations of {counter.name}, which has {counter.width} bits")
                    for number in range(count):
                        self._block(inner, Scope(scope, {counter.name: number}))
                case Let(target=target, value=value, update=True):
                    scope.find(target.name).own[target.name] = value_of(value, scope)
                case Let(target=target, value=value):
                    scope.own[target.name] = value_of(value, scope)
                case Load(target=target, memory=memory, address=address):
                    scope.own[target.name] = value_of(memory.load(address), scope)
                case Store(memory=memory, address=address, value=value):
                    words, at, word = (value_of(t, scope) for t in (memory, address, value))
                    assert isinstance(words, Words) and isinstance(at, int) and isinstance(word, int)
                    words[at] = word
                case Command(inputs=given):
                    self._command({n: value_of(t, scope) for n, t in given})

    def _command(self, given: dict[str, int | Words]) -> None:
        ila, state = self.fragment.ila, self.state
        here = Scope(state, {n: given.get(n, 0) for n in ila.inputs})
        hits = [i for i in ila.instructions.values() if value_of(i.decode, here)]
        if not value_of(ila.valid, here) or len(hits) != 1 or hits[0].reserved:
            raise Refused(f"a command that selects {', '.join(i.name for i in hits) or 'nothing'}")
        (instruction,) = hits
        new = {n: value_of(t, here) for n, t in instruction.updates.items()}
        for name, value in new.items():
            state.own[name] = value
        if instruction.kernel is not None and value_of(instruction.kernel_guard, here):
            self._block(instruction.kernel.body, Scope(state))
            state.own.update({n: value_of(t, here) for n, t in instruction.kernel.on_done.items()})


STEPS = 200_000
"""Statements that a run may take."""


def outputs(claim: TensorMapping, sizes: Mapping[str, int], draw: Draw, steps: int = STEPS) -> tuple[object, object]:
    """What both sides leave in the output, or why one of them is refused."""
    rows, columns = (value_of(t, Scope(None, dict(sizes))) for t in (claim.rows, claim.columns))
    assert isinstance(rows, int) and isinstance(columns, int)
    shared = {"device": {mine: mine for mine, _ in claim.inputs}, "ir": {theirs: mine for mine, theirs in claim.inputs}}
    results: list[object] = []
    for side, fragment, output in (
        ("device", claim.device, claim.output[0]),
        ("ir", claim.ir, claim.output[1]),
    ):
        try:
            results.append(Run(side, fragment, sizes, shared[side], draw, steps).words(output, rows * columns))
        except Refused as problem:
            results.append(f"{fragment.name}: {problem}")
    return results[0], results[1]


def drawn(seed: int) -> Draw:
    """Arbitrary contents, the same ones for the same cell."""

    def draw(owner: str, name: str, address: int | None, bits: int) -> int:
        return zlib.crc32(f"{seed} {owner} {name} {address}".encode()) % (1 << bits)

    return draw


def differs(claim: TensorMapping, sizes: Mapping[str, int], seed: int = 0, steps: int = STEPS) -> bool:
    """Whether both sides leave different words at some sizes, or one of them is refused where there is an output.

    Raises TooLong where a run takes too many steps.
    """
    rows, columns = (value_of(t, Scope(None, dict(sizes))) for t in (claim.rows, claim.columns))
    if not rows or not columns:
        return False
    mine, theirs = outputs(claim, sizes, drawn(seed), steps)
    return mine != theirs or isinstance(mine, str)
