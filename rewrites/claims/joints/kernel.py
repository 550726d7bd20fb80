"""The kernel of an IR instruction as a tensor term over the real numbers.

What is read: loops around one store, one for each axis of the result, row-major; inside of them folds (sums and maxima)
into registers, or loops of a known number of iterations, which are written out, and what is done where a condition
holds.  A load is an element of a memory.  Where memories are *kept*, each iteration of the outermost loop stores a row
of every one of them, and may load the row before, which is an element of any tensor.
Words of memories and registers stand for numbers in some *form*, such as a code, a sum of products, or a signed
integer.  A primitive stands for the real operation that its lemma is about (:mod:`rewrites.bounds.kernel.readings`), or
that the joint names; another function is its body.  What has no such meaning raises :class:`.instruction.Unread`: words
of two forms that are added, a comparison of data, a store that another load may read.

A word at an address is an element of what lies in the memory.  That the address's subscripts lie inside of its extents
is an obligation wherever the word is part of a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

from ila_lang import Expr, Function, MemSort, bv, const, ite, postorder, substitute
from ila_lang.language.expr import private_var
from ila_lang.language.kernel import For, Let, Load, Statement, Store, walk
from ila_lang.mapping import Lemma
from ir_semantics.tensors.conditions import Condition, both, equal, inside, le
from ir_semantics.tensors.elements import Apply, Choice, Element, Read, Reader, Reduce, subelements, substitute_element
from ir_semantics.tensors.index import Index, IndexLike, Names, index, product, size
from ir_semantics.tensors.terms import Shape, Tensor, make
from rewrites.bounds.derivations.loops import reached
from rewrites.bounds.kernel.readings import Term

from .indices import digits
from .instruction import Called, Unread
from .words import MARK, ZERO, Data, Units, Words, added

MOST_WRITTEN_OUT = 64


@dataclass(frozen=True, eq=False)
class KernelReading:
    """A kernel with what it is read by, as in :class:`.joint.Joint`; ``shapes`` are those of what lies in memories.

    ``units`` are those that kernels which ran before have left, to which it adds its own.
    """

    called: Called
    shapes: Mapping[str, Shape]
    given: Mapping[str, IndexLike] = field(default_factory=dict)
    exponents: Mapping[str, IndexLike] = field(default_factory=dict)
    readings: Mapping[Function, Term] = field(default_factory=dict)
    lemmas: Sequence[Lemma] = ()
    units: Units = field(default_factory=Units)
    kept: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for statement in walk(self.called.kernel.body):
            parts = [getattr(statement, each.name) for each in fields(statement)]
            if any(MARK in v.name for v in postorder([p for p in parts if isinstance(p, Expr)]) if v.op == "var"):
                raise Unread(f"a variable of {self.called.kernel.name} must not have {MARK} in its name")
        for name in self.shapes:
            if name not in self.called.memories:
                raise Unread(f"{name} must be a memory of the instruction {self.called.name}")
        if self.kept != self.called.stored & set(self.shapes):
            raise Unread(f"{self.called.output} must hold the result alone")

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of what is read: memories."""
        return tuple(self.shapes)

    @cached_property
    def run(self) -> Run:
        """The kernel, executed once."""
        readers = [lambda at, m=m: Read(m, tuple(at)) for m in self.reads]
        return self._run(Names(), readers, self.units)

    @property
    def shape(self) -> Shape:
        """The extents of the loops around the store."""
        return tuple(extent for _, extent in self.run.axes)

    @cached_property
    def fits(self) -> Condition:
        """Every tensor lies in its memory."""
        shapes = {**self.shapes, **dict.fromkeys(self.called.stored, self.shape)}
        conditions: list[Condition] = []
        for name, shape in shapes.items():
            sort = self.called.memories[name].sort
            assert isinstance(sort, MemSort)
            conditions.append(le(product(shape), 1 << sort.addr_width))
        return both(*conditions)

    @cached_property
    def words(self) -> Condition:
        """What is known of the instruction's operands: they are words."""
        return both(*(inside(value, 1 << s.width) for s in self.called.operands for value in self.run.operands(s)))

    def tensor(self, operands: Sequence[Tensor], like: Shape | None = None, stored: str = "") -> Tensor:
        """What is stored (to one memory), with as many axes as ``like``: those of one element have no loop."""
        extents = self.shape
        like = extents if like is None else like
        missing = len(like) - len(extents)
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
            run = self._run(names, of, self.units.copy())
            places = {name: at[axis] for (name, _), axis in zip(run.axes, kept, strict=True)}
            return substitute_element(run.results[stored or self.called.output], places)

        return make("kernel", operands, shape, rule, name=self.called.kernel.name)

    def _run(self, names: Names, of: Sequence[Reader], units: Units) -> Run:
        run = Run(self, names, dict(zip(self.reads, of, strict=True)), units)
        try:
            self.read(run)
        except RecursionError:
            raise Unread(f"the kernel {self.called.kernel.name} is nested too deeply to be read") from None
        if set(run.results) != self.called.stored or not run.results:
            raise Unread(f"the kernel {self.called.kernel.name} must store a result")
        return run

    def read(self, run: Run) -> None:
        """Executes the kernel, which leaves its result in ``run``."""
        run.block(self.called.kernel.body, dict(run.fixed))


class Run(Words):
    """A symbolic execution of a kernel: registers are expressions over counters, sizes and *leaves*, which are data."""

    def __init__(
        self, of: KernelReading, names: Names, readers: Mapping[str, Reader], units: Units | None = None
    ) -> None:
        super().__init__(names, of.readings, of.lemmas, units)
        self.of, self.readers = of, readers
        self.fixed: dict[Expr, Expr] = {}
        self.axes: list[tuple[str, Index]] = []
        self.results: dict[str, Element] = {}
        self.nest: tuple[tuple[str, Index], ...] = ()
        for state, value in of.called.operands.items():
            name = of.called.names[state]
            assigned = index(of.given[name]) if name in of.given else None
            literal = assigned.constant if assigned is not None else value.value if value.is_const else None
            if literal is None:
                self.indices[state] = size(name) if assigned is None else assigned
            elif not 0 <= literal < 1 << state.width:
                raise Unread(f"{name} must be a number of {state.width} bits, not {literal}")
            else:
                self.fixed[state] = const(literal, state.width)

    def operands(self, state: Expr) -> tuple[Index, ...]:
        """The value of an operand that is no literal, as a tuple of one."""
        return (self.indices[state],) if state in self.indices else ()

    # -- statements ------------------------------------------------------------------------------------------

    def block(self, body: Iterable[Statement], env: dict[Expr, Expr], in_fold: bool = False) -> None:
        """Statements, which change the registers of ``env``; nothing is stored ``in_fold``."""
        for statement in body:
            self.step()
            match statement:
                case Let(target=target, value=value):
                    env[target] = substitute(value, env)
                case Load(target=target, memory=memory, address=address):
                    env[target] = self.load(memory, self.index(substitute(address, env)), target.width)
                case Store(memory=memory, address=address, value=value):
                    if in_fold or memory.name in self.results or (self.results and self.nest != (*self.axes,)):
                        raise Unread(f"the kernel must store once, to {memory.name}, and not in a fold")
                    self.nest = (*self.axes,)
                    place = index(0)
                    for name, extent in self.axes:
                        place = place * extent + Index({(name,): 1})
                    at = self.index(substitute(address, env))
                    self.require(equal(at, place), f"the result is stored row-major, at {place}, which {at} is")
                    result = self.data(substitute(value, env))
                    self.stored(memory.name, result, self.exponent(memory))
                    self.results[memory.name] = result.element
                case For() if any(isinstance(s, Store) for s in walk(statement.body)):
                    self.axis(statement, env, in_fold)
                case For():
                    self.loop(statement, env)
                case _:
                    raise Unread(f"a kernel must issue no commands, such as {statement}")

    def axis(self, loop: For, env: dict[Expr, Expr], in_fold: bool) -> None:
        """A loop around the store: one axis of the result."""
        extent = self.extent(loop, env)
        if in_fold or any(extent.variables & {name for name, _ in self.axes}):
            raise Unread(f"the loop {loop.counter.name} around the store must be no part of a fold, of one extent")
        name = self.names.fresh("o")
        self.axes.append((name, extent))
        inner = {**env, loop.counter: self.counter(loop, Index({(name,): 1}))}
        with self.under(inside(Index({(name,): 1}), extent)):
            self.block(loop.body, inner)
        if any(inner[register] is not env[register] for register in env if register is not loop.counter):
            raise Unread(f"registers must not be kept from one iteration of {loop.counter.name} to the next")

    def extent(self, loop: For, env: Mapping[Expr, Expr]) -> Index:
        """How many iterations a loop has, of which its counter has a word for each."""
        extent = self.exact(substitute(loop.extent, env))
        if loop.counter.width < loop.extent.width:
            most = 1 << loop.counter.width
            self.require(
                le(extent, most), f"the counter {loop.counter.name} of {loop.counter.width} bits does not wrap"
            )
        return extent

    def loop(self, loop: For, env: dict[Expr, Expr]) -> None:
        """What is done under a condition; a fold, or where it is none and the number of iterations is known, these."""
        extent = substitute(loop.extent, env)
        test = reached(extent)
        if test is not None:
            inner = {**env, loop.counter: const(0, loop.counter.width)}
            with self.under(self.condition(test)):
                self.block(loop.body, inner, in_fold=True)
            env |= {register: ite(test, inner[register], env[register]) for register in env}
            return
        before, premise, obligations = dict(env), self.premise, list(self.obligations)
        try:
            self.fold(loop, env)
        except Unread:
            if not extent.is_const or extent.value > min(MOST_WRITTEN_OUT, 1 << loop.counter.width):
                raise
            self.premise, self.obligations = premise, obligations
            self.forget()
            for iteration in range(extent.value):
                inner = {**before, loop.counter: const(iteration, loop.counter.width)}
                self.block(loop.body, inner, in_fold=True)
                before |= {register: inner[register] for register in before}
            env |= before

    def fold(self, loop: For, env: dict[Expr, Expr]) -> None:
        """Registers that keep a sum or a maximum; what an iteration adds must not depend on them."""
        bound, count = self.names.fresh("k"), self.extent(loop, env)
        inner = {**env, loop.counter: self.counter(loop, Index({(bound,): 1}))}
        written = dict.fromkeys(
            s.target for s in walk(loop.body) if isinstance(s, Let) and s.update and s.target in env
        )
        begun: dict[Expr, Data] = {}
        for register in written:
            begun[register] = self.data(env[register])
            place = object()
            inner[register] = self.leaf(
                register.width, Data(Read(f"register{MARK}{len(self.leaves)}", ()), place=place)
            )
        kept = {register: self.leaves[inner[register]] for register in written}
        with self.under(inside(Index({(bound,): 1}), count)):
            self.block(loop.body, inner, in_fold=True)
            ends = {register: self.data(inner[register]) for register in written}
        for register, ended in ends.items():
            op, part = _added(ended.element, kept[register].element)
            if any(k.element in subelements(part) for k in kept.values()):
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
        counter = private_var(f"{loop.counter.name}{MARK}{MARK}{len(self.indices)}", bv(loop.counter.width))
        self.indices[counter] = value
        return counter

    def load(self, memory: Expr, at: Index, width: int) -> Expr:
        """The word of a memory at an address."""
        if memory.name not in self.readers:
            raise Unread(f"what lies in {memory.name} must be said")
        shape = self.of.shapes[memory.name]
        places = digits(memory.name, at, shape)
        rows: tuple[Condition, ...] = ()
        if memory.name in self.of.kept:
            if not self.axes:
                raise Unread(f"{memory.name} must be read where rows of it are stored")
            rows = (equal(places[0], Index({(self.axes[0][0],): 1}) - 1),)
        within = both(*rows, *(inside(place, extent) for place, extent in zip(places, shape, strict=True)))
        element = self.readers[memory.name](places)
        word = self.leaf(width, Data(element, "", self.exponent(memory), self.units.place(memory.name)))
        which = "in its row before" if rows else "one of the tensor in it"
        self.inside[word] = within, f"the word {at} of {memory.name} is {which}"
        return word

    def exponent(self, memory: Expr) -> Index | None:
        """That of the numbers in a memory; None where it is that of what an instruction stored there."""
        exponent = self.of.exponents.get(memory.name)
        return None if exponent is None else index(exponent)


def _added(element: Element, register: Element) -> tuple[str, Element]:
    """What is added to a register (or what it is the larger of), so that this is the element."""
    if element == register:
        return "sum", ZERO
    match element:
        case Apply("add", (first, second)) if (register in subelements(first)) != (register in subelements(second)):
            kept, other = (first, second) if register in subelements(first) else (second, first)
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
