"""The kernel of an IR instruction as a tensor term over the real numbers.

What is read: loops around one store, one for each axis of the result, row-major; inside of them folds (sums and maxima)
into registers, or loops of a known number of iterations, which are written out.  A load is an element of a memory.
Words of memories and registers stand for numbers in some *form*, such as a code, a sum of products, or a signed
integer.  A primitive stands for the real operation that its lemma is about (:mod:`rewrites.bounds.kernel.readings`), or
that the joint names; another function is its body.  What has no such meaning raises :class:`.instruction.Unread`: words
of two forms that are added, a comparison of data, a store that another load may read.

Indices are read as integers.  That they do not wrap is an obligation of the mapping's own proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ila_lang import Expr, Function, bv, const, substitute
from ila_lang.language.expr import private_var
from ila_lang.language.kernel import For, Let, Load, Statement, Store, walk
from ila_lang.mapping import TensorMapping
from ir_semantics.tensors.conditions import Condition, both, le, lt
from ir_semantics.tensors.elements import Apply, Choice, Element, Read, Reader, Reduce, substitute_element
from ir_semantics.tensors.index import Index, IndexLike, Names, index, size
from ir_semantics.tensors.terms import Shape, Tensor, make
from rewrites.bounds.kernel.readings import Term

from .indices import digits
from .instruction import Called, Unread
from .words import ZERO, Data, Words, added

MOST_WRITTEN_OUT = 64
BEYOND = "beyond"
"""The input that words beyond what lies in a memory are read from: of these nothing is known."""


@dataclass(frozen=True)
class KernelReading:
    """A kernel with what it is read by; see :class:`.joint.Joint`."""

    called: Called
    mapping: TensorMapping
    memories: Mapping[str, Shape]
    given: Mapping[str, IndexLike]
    exponents: Mapping[str, IndexLike]
    readings: Mapping[Function, Term]

    def __post_init__(self) -> None:
        names = {state.name for state in self.called.operands}
        for name in (*self.memories, *self.given):
            if name not in (names if name in self.given else self.called.memories):
                raise Unread(f"{name} must be a memory or an operand of the instruction {self.called.name}")
        if self.mapping.output[1] in self.memories:
            raise Unread(f"{self.mapping.output[1]} must hold the result alone")

    @cached_property
    def premise(self) -> Condition:
        """What the sizes must satisfy so that conditional extents are as they are read."""
        return self._run(Names(), [lambda at, m=m: Read(m, tuple(at)) for m in self.memories]).premise  # type: ignore[misc]

    def tensor(self, operands: Sequence[Tensor], like: Shape) -> Tensor:
        """The result over flat memories, with as many axes as ``like``: those of one element have no loop."""
        first = self._run(Names(), [lambda at, m=m: Read(m, tuple(at)) for m in self.memories])  # type: ignore[misc]
        extents, missing = [extent for _, extent in first.axes], len(like) - len(first.axes)
        kept: list[int] = []
        for axis, extent in enumerate(like):
            if missing and extent == index(1):
                missing -= 1
            else:
                kept.append(axis)
        if missing or len(kept) != len(extents):
            raise Unread(
                f"the kernel stores under {len(extents)} loops, and the operator's result has {len(like)} axes"
            )
        shape = [index(1)] * len(like)
        for axis, extent in zip(kept, extents, strict=True):
            shape[axis] = extent

        def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
            run = self._run(names, of)
            assert run.stored is not None
            places = {name: at[axis] for (name, _), axis in zip(run.axes, kept, strict=True)}
            return substitute_element(run.stored, places)

        return make("kernel", operands, shape, rule, name=self.called.kernel.name)

    def _run(self, names: Names, of: Sequence[Reader]) -> Run:
        run = Run(self, names, dict(zip(self.memories, of, strict=True)))
        run.block(self.called.kernel.body, dict(run.fixed))
        if run.stored is None:
            raise Unread(f"the kernel {self.called.kernel.name} must store a result")
        run.require_exact()
        return run


class Run(Words):
    """A symbolic execution of a kernel: registers are expressions over counters, sizes and *leaves*, which are data."""

    def __init__(self, of: KernelReading, names: Names, readers: Mapping[str, Reader]) -> None:
        super().__init__(names, of.readings, of.mapping.lemmas)
        self.of, self.readers = of, readers
        self.fixed: dict[Expr, Expr] = {}
        self.axes: list[tuple[str, Index]] = []
        self.stored: Element | None = None
        for state, value in of.called.operands.items():
            told = of.given.get(state.name)
            if isinstance(told, int) or value.is_const:
                self.fixed[state] = const(told if isinstance(told, int) else value.value, state.width)
            else:
                self.indices[state] = size(state.name) if told is None else index(told)

    # -- statements ------------------------------------------------------------------------------------------

    def block(self, body: Iterable[Statement], env: dict[Expr, Expr], inside: bool = False) -> None:
        """Statements, which change the registers of ``env``; ``inside`` of folds nothing is stored."""
        for statement in body:
            match statement:
                case Let(target=target, value=value):
                    env[target] = substitute(value, env)
                case Load(target=target, memory=memory, address=address):
                    env[target] = self.load(memory, self.addressed(substitute(address, env)), target.width)
                case Store(memory=memory, address=address, value=value):
                    if inside or self.stored is not None or memory.name != self.of.mapping.output[1]:
                        raise Unread(f"the kernel must store once, to {self.of.mapping.output[1]}, and not in a fold")
                    place = index(0)
                    for name, extent in self.axes:
                        place = place * extent + Index({(name,): 1})
                    at = self.addressed(substitute(address, env))
                    if at != place:
                        raise Unread(f"the result must be stored row-major, at {place}, not at {at}")
                    result = self.data(substitute(value, env))
                    self.use(result, "", self.exponent(memory))
                    self.stored = result.element
                case For() if any(isinstance(s, Store) for s in walk(statement.body)):
                    self.axis(statement, env, inside)
                case For():
                    self.loop(statement, env)
                case _:
                    raise Unread(f"a kernel must issue no commands, such as {statement}")

    def axis(self, loop: For, env: dict[Expr, Expr], inside: bool) -> None:
        """A loop around the store: one axis of the result."""
        extent = self.addressed(substitute(loop.extent, env))
        if inside or any(extent.variables & {name for name, _ in self.axes}):
            raise Unread(f"the loop {loop.counter.name} around the store must be no part of a fold, of one extent")
        self.axes.append((self.names.fresh("o"), extent))
        inner = {**env, loop.counter: self.counter(loop, Index({(self.axes[-1][0],): 1}))}
        self.block(loop.body, inner)
        if any(inner[register] is not env[register] for register in env if register is not loop.counter):
            raise Unread(f"registers must not be kept from one iteration of {loop.counter.name} to the next")

    def loop(self, loop: For, env: dict[Expr, Expr]) -> None:
        """A fold, or where it is none and the number of iterations is known, these."""
        extent = substitute(loop.extent, env)
        before, premise = dict(env), self.premise
        try:
            self.fold(loop, extent, env)
        except Unread:
            if not extent.is_const or extent.value > MOST_WRITTEN_OUT:
                raise
            self.premise = premise
            for iteration in range(extent.value):
                inner = {**before, loop.counter: const(iteration, loop.counter.width)}
                self.block(loop.body, inner, inside=True)
                before |= {register: inner[register] for register in before}
            env |= before

    def fold(self, loop: For, extent: Expr, env: dict[Expr, Expr]) -> None:
        """Registers that keep a sum or a maximum; what an iteration adds must not depend on them."""
        bound, count = self.names.fresh("k"), self.addressed(extent)
        inner = {**env, loop.counter: self.counter(loop, Index({(bound,): 1}))}
        written = dict.fromkeys(
            s.target for s in walk(loop.body) if isinstance(s, Let) and s.update and s.target in env
        )
        begun: dict[Expr, Data] = {}
        for register in written:
            begun[register] = self.data(env[register])
            place = object()
            inner[register] = self.leaf(register.width, Data(Read(f"register {len(self.leaves)}", ()), place=place))
        kept = {register: self.leaves[inner[register]] for register in written}
        self.block(loop.body, inner, inside=True)
        for register in written:
            ended = self.data(inner[register])
            op, part = _added(ended.element, kept[register].element)
            if any(_occurs(k.element, part) for k in kept.values()):
                raise Unread(f"what {loop.counter.name} adds to {register.name} must not depend on what it keeps")
            form, exponent = self.alike((ended, kept[register], begun[register]))
            whole = Reduce(op, bound, count, part)
            element = (
                added(begun[register].element, whole)
                if op == "sum"
                else Apply("maximum", (begun[register].element, whole))
            )
            env[register] = self.leaf(register.width, Data(element, form, exponent))

    # -- leaves ----------------------------------------------------------------------------------------------

    def counter(self, loop: For, value: Index) -> Expr:
        """A loop's counter as a variable of its own, whatever others are called."""
        counter = private_var(f"counter {len(self.indices)}", bv(loop.counter.width))
        self.indices[counter] = value
        return counter

    def load(self, memory: Expr, at: Index, width: int) -> Expr:
        """The word of a memory at an address."""
        if memory.name not in self.readers:
            raise Unread(f"what lies in {memory.name} must be said")
        shape = self.of.memories[memory.name]
        places = digits(memory.name, at, shape)
        element = self.readers[memory.name](places)
        if not isinstance(element, Read):  # what is made of operands says nothing of words beyond it
            inside = [c for p, extent in zip(places, shape, strict=True) for c in (le(0, p), lt(p, extent))]
            element = Choice(both(*inside), element, Read(BEYOND, (at,)))
        return self.leaf(width, Data(element, "", self.exponent(memory), memory.name))

    def exponent(self, memory: Expr) -> Index:
        """That of the numbers in a memory."""
        return index(self.of.exponents.get(memory.name, 0))


def _occurs(register: Element, element: Element) -> bool:
    match element:
        case Apply(_, args):
            return any(_occurs(register, a) for a in args)
        case Choice(_, yes, no):
            return _occurs(register, yes) or _occurs(register, no)
        case Reduce(_, _, _, body):
            return _occurs(register, body)
    return element == register


def _added(element: Element, register: Element) -> tuple[str, Element]:
    """What is added to a register (or what it is the larger of), so that this is the element."""
    if element == register:
        return "sum", ZERO
    match element:
        case Apply("add", (first, second)) if _occurs(register, first) != _occurs(register, second):
            kept, other = (first, second) if _occurs(register, first) else (second, first)
            op, part = _added(kept, register)
            if op == "sum":
                return "sum", added(part, other)
        case Choice(condition, yes, no):
            (op, one), (other_op, other) = _added(yes, register), _added(no, register)
            if op == other_op == "sum":
                return "sum", Choice(condition, one, other)
        case Apply("maximum", (first, second)) if register in (first, second) and first != second:
            return "max", second if first == register else first
    raise Unread(f"a fold must add to what it keeps, or take the larger, not make {element} of it")
