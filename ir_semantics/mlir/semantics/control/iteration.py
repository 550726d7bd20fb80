"""Loops that carry scalars, tensors and memory from one iteration to the next.

The body is read once, with unknowns for what it finds: a *slot* for each value that is carried, and for memory of each
format.  One element of a slot after the loop is a fold, where an iteration makes it of the same element before: what it
reads of other elements must be what the loop never writes, or a value of another slot, which is a fold of its own up to
this iteration.  All other loops have no meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ir_semantics.elements.binders import every, fold, postorder, substitute
from ir_semantics.elements.folds import Simplification, has_one_step, joined
from ir_semantics.elements.operators import both, choose, either, equal, negation
from ir_semantics.elements.terms import Input, Term, fresh, is_false, is_true, number, read, truth, variable_of
from ir_semantics.mlir.semantics.memory import Accesses, Buffer, Memory, Place, apart, same_view
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Proviso, Requirement, Scope
from ir_semantics.mlir.semantics.tensor import new_subscripts
from ir_semantics.mlir.semantics.values import WITHOUT, Element, Tensor
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format

from .replacement import Known, Replacement, same_places

Body: TypeAlias = Callable[[Sequence[MeaningOfValue], Scope], Sequence[MeaningOfValue]]
"""What an iteration makes of the values that it is given."""
Ranges: TypeAlias = Sequence[tuple[Term, Term]]


At: TypeAlias = tuple[Term, ...] | Place
"""Where an element is: subscripts of a value, or a place of memory."""


@dataclass(eq=False)
class _Slot:
    """What is carried: what it starts with, and what an iteration makes.

    ``start`` and ``after`` are those of a format, where it is memory.
    """

    kind: Format
    start: Callable[[At], Element]
    after: Callable[[At], Element] | None = None
    """What an iteration makes of an element; nothing of memory that it does not write."""
    is_memory: bool = False
    is_open: bool = False
    """Whether its step is just being made: what needs it then goes in a circle."""


@dataclass(frozen=True)
class _Mark:
    """What an unknown stands for: elements of a slot, or whether they are defined; of memory those of one buffer.

    Reads of it have as subscripts those of a value, or block, place, and subscripts of the buffer.
    """

    slot: _Slot
    is_value: bool
    buffer: Buffer | None = None


@dataclass
class _Step:
    """What an iteration makes of one element at variables: in terms of accumulators."""

    at: tuple[Term, ...]
    accumulators: tuple[Term, Term]
    element: Element


@dataclass(eq=False)
class Iteration:
    """A loop over variables below extents, in row-major order; ``parallel`` ones must not depend on an order.

    ``reduces``: what is carried is made by operators of which the order does not matter.
    """

    call: Call
    variables: Sequence[Term]
    extents: Sequence[Term]
    starts: Sequence[MeaningOfValue]
    parallel: bool = False
    reduces: bool = False
    _marks: dict[Input, _Mark] = field(default_factory=dict)
    _unknowns: dict[tuple[_Slot, Buffer | None], tuple[Input, Input]] = field(default_factory=dict)
    _of_memory: dict[Format, _Slot] = field(default_factory=dict)
    _steps: dict[tuple[_Slot, Term | None, Buffer | None], _Step] = field(default_factory=dict)
    _accesses: Accesses = field(default_factory=Accesses)
    _unwritten: dict[Buffer, None] = field(default_factory=dict)
    _provisos: dict[Term, Proviso] = field(default_factory=dict)
    _is_stated: bool = False
    """Whether it is stated what memory the loop must not write; it reads no other from then on."""

    def results(self, body: Body) -> list[MeaningOfValue]:
        """What is carried after the loop; memory and requirements of the scope are those after it."""
        call, before = self.call, self.call.scope.memory
        earlier = tuple(call.scope.requirements)
        carried = [self._carried(k, start) for k, start in enumerate(self.starts)]
        scope = call.scope.inner(replace(before, cells=self._cells, accesses=self._accesses, is_carried=True))
        yielded = body(carried, scope)
        if len(yielded) != len(carried):
            raise call.wrong(f"the body must yield {len(carried)} values, not {len(yielded)}")
        self._require_same_blocks(before, scope.memory)
        written = dict.fromkeys((b.kind, b.block) for b, _ in self._accesses.writes)
        for kind, _ in written:
            self._memory(kind).after = lambda at: scope.memory.cells(_place(at))
        made = [
            self._made(*each) for each in zip(self.starts, carried, yielded, strict=True)
        ]  # of all, before any step
        results = [self._result(start, slot) for start, slot in zip(self.starts, made, strict=True)]
        for kind, block in written:
            self._after(Place(kind, block, fresh("place", INTEGERS)))  # fails here or never
        if written:
            formats = tuple(dict.fromkeys((*before.formats, *scope.memory.formats)))
            call.scope.memory = replace(before, cells=self._after, made=scope.memory.made, formats=formats)
        self._require(scope)
        self._require_apart()
        self._accesses.loops |= dict(self._ranges)
        before.accesses.add(self._accesses)
        call.scope.provisos += [Proviso(p.condition, p.otherwise, earlier) for p in self._provisos.values()]
        return results

    # -- what is carried -----------------------------------------------------------------------------------

    def _carried(self, place: int, start: MeaningOfValue) -> MeaningOfValue:
        """The value as the body finds it."""
        if isinstance(start, Buffer):
            return start
        shape = start.shape if isinstance(start, Tensor) else ()
        slot = _Slot(start.kind, lambda at: start.at(_subscripts(at)) if isinstance(start, Tensor) else start)
        unknowns = self._unknown(slot, f"carried{place}", shape)

        def element(at: Sequence[Term]) -> Element:
            return Element(*(read(each, at) for each in unknowns))

        return Tensor(start.kind, shape, element) if isinstance(start, Tensor) else element(())

    def _unknown(
        self, slot: _Slot, name: str, shape: tuple[Term, ...], buffer: Buffer | None = None
    ) -> tuple[Input, Input]:
        """The unknowns for a slot, of memory as far as it is reached by way of one buffer."""
        key = slot, buffer
        if key not in self._unknowns:
            value, defined = Input(name, slot.kind, shape), Input(f"{name} is defined", BOOLEAN, shape)
            self._unknowns[key] = value, defined
            self._marks |= {value: _Mark(slot, True, buffer), defined: _Mark(slot, False, buffer)}
        return self._unknowns[key]

    def _cells(self, here: Place) -> Element:
        """An element of memory as the body finds it."""
        buffer, at = here.of or (None, ())
        shape = tuple(number(0) for _ in range(2 + len(at)))
        unknowns = self._unknown(self._memory(here.kind), f"memory of {here.kind}", shape, buffer)
        return Element(*(read(each, (here.block, here.place, *at)) for each in unknowns))

    def _memory(self, kind: Format) -> _Slot:
        """The slot of memory of a format."""
        if kind not in self._of_memory:
            self._of_memory[kind] = _Slot(kind, lambda at: self.call.memory.cells(_place(at)), is_memory=True)
        return self._of_memory[kind]

    def _require_same_blocks(self, before: Memory, after: Memory) -> None:
        """Raises where the body changes what may be done with blocks that were there before."""
        for block in (fresh("block", INTEGERS), *(number(-1 - k) for k in range(before.made))):
            for one, other in ((before.alive, after.alive), (before.writable, after.writable)):
                if one(block) is not other(block):
                    raise self.call.fail("a loop that frees a buffer, or ends writing to it, has no meaning here")

    # -- results -------------------------------------------------------------------------------------------

    def _made(self, start: MeaningOfValue, carried: MeaningOfValue, yielded: MeaningOfValue) -> _Slot | None:
        """The slot of a value, with what an iteration makes of it; none of a buffer, which must stay what it is."""
        if isinstance(start, Buffer):
            if yielded is not carried:
                raise self.call.fail("a buffer that changes from one iteration to the next has no meaning here")
            return None
        if isinstance(carried, Element) and isinstance(yielded, Element):
            slot = self._slot_of(carried)
            slot.after = lambda _: yielded
            return slot
        if isinstance(carried, Tensor) and isinstance(yielded, Tensor):
            if carried.kind != yielded.kind or not same_places(yielded.shape, carried.shape):
                raise self.call.fail("a tensor whose shape changes from one iteration to the next has no meaning here")
            slot = self._slot_of(carried.at(new_subscripts(len(carried.shape))))
            slot.after = lambda at: yielded.at(_subscripts(at))
            return slot
        raise self.call.wrong("the body must yield values of the types that it is given")

    def _slot_of(self, element: Element) -> _Slot:
        """The slot of a value as the body finds it."""
        assert isinstance(element.value.payload, Input)
        return self._marks[element.value.payload].slot

    def _result(self, start: MeaningOfValue, slot: _Slot | None) -> MeaningOfValue:
        if slot is None:
            return start
        if not isinstance(start, Tensor):
            return self._element(slot, (), self._ranges)
        self._element(slot, new_subscripts(len(start.shape)), self._ranges)  # fails here or never
        return Tensor(start.kind, start.shape, lambda at: self._element(slot, at, self._ranges))

    @property
    def _ranges(self) -> list[tuple[Term, Term]]:
        return list(zip(self.variables, self.extents, strict=True))

    def _after(self, here: Place) -> Element:
        """An element of memory after the loop."""
        if all(b.kind != here.kind for b, _ in self._accesses.writes):
            return self.call.memory.cells(here)
        return self._element(self._memory(here.kind), here, self._ranges)

    def _element(self, slot: _Slot, at: At, ranges: Ranges) -> Element:
        """An element of a slot after iterations; ranges have variables of the loop, or some in their place."""
        step, start = self._step(slot, at), slot.start(at)
        here = {variable_of(s): i for s, i in zip(step.at, _subscripts(at), strict=True)}
        here |= {variable_of(v): w for v, (w, _) in zip(self.variables, ranges, strict=True)}
        parts = [(start.value, step.element.value), (start.defined, step.element.defined)]
        value, is_defined = (
            joined(fold(begin, accumulator, ranges, substitute(term, here)))
            for accumulator, (begin, term) in zip(step.accumulators, parts, strict=True)
        )
        if is_true(start.defined) and is_true(step.element.defined):
            is_defined = start.defined
        return Element(value, is_defined)

    # -- one iteration -------------------------------------------------------------------------------------

    def _step(self, slot: _Slot, at: At) -> _Step:
        """What an iteration makes of an element at any subscripts; of memory in the block of ``at``, by its buffer."""
        block, buffer = (at.block, at.of and at.of[0]) if isinstance(at, Place) else (None, None)
        key = slot, block, buffer
        if key in self._steps:
            return self._steps[key]
        if slot.is_open:
            raise self.call.fail("values that need each other from one iteration to the next have no meaning here")
        assert slot.after is not None
        slot.is_open = True
        variables = tuple(new_subscripts(len(_subscripts(at))))
        here: At = variables
        if block is not None:
            here = Place(slot.kind, block, variables[0]) if buffer is None else buffer.place_of(variables)
        accumulators = fresh("acc", slot.kind), fresh("acc_defined", BOOLEAN)
        raw = slot.after(here)

        def own(mark: Input, there: tuple[Term, ...], known: Known) -> Term | None:
            found = self._marks[mark]
            is_here = found.slot is slot and _are_same(_where(found, there), here, known)
            return accumulators[0 if found.is_value else 1] if is_here else None

        found = Replacement(self._marks.__contains__, lambda mark, there: self._other(mark, there, slot), own)
        element = Element(found.of(raw.value), found.of(raw.defined))
        symbols = [variable_of(a) for a in accumulators]
        if symbols[1] in element.value.symbols or symbols[0] in element.defined.symbols:
            raise self.call.fail("a value that decides what is defined in the next iteration has no meaning here")
        slot.is_open = False
        is_free = buffer is not None or (self.reduces and not slot.is_memory)  # of a buffer it is seen of its block
        if self.parallel and not is_free and not self._has_one_step(accumulators, element):
            raise self.call.fail("iterations that may write the same element have no meaning here in any order")
        self._steps[key] = _Step(variables, accumulators, element)
        return self._steps[key]

    def _has_one_step(self, accumulators: tuple[Term, Term], element: Element) -> bool:
        """Whether it is seen that at most one iteration writes an element."""
        simpler = Simplification()
        parts = zip(accumulators, (element.value, element.defined), strict=True)
        folds = [fold(fresh("start", x.kind), a, self._ranges, simpler.of(x)) for a, x in parts]
        return all(has_one_step(each) for each in folds if each.op == "fold")

    def _other(self, mark: Input, there: tuple[Term, ...], of: _Slot | None) -> Term:
        """What an iteration finds at another place than the one that it is about."""
        found = self._marks[mark]
        slot, at = found.slot, _where(found, there)
        if isinstance(at, Place):
            self._require_unwritten(at)
            element = slot.start(at)
        elif slot is of:
            raise self.call.fail("an iteration that needs another element of what it changes has no meaning here")
        elif len(self.variables) != 1 or self.parallel:
            raise self.call.fail("what one iteration makes for another has no meaning here in loops of any order")
        else:
            element = self._element(slot, at, [(fresh("j", INTEGERS), self.variables[0])])
        return element.value if found.is_value else element.defined

    def _require_unwritten(self, at: Place) -> None:
        """Notes that an element of memory that is read must be none that the loop has written."""
        reads = self._accesses.reads
        readers = [at.of[0]] if at.of else [b for b, _ in reads if b.kind == at.kind and b.block is at.block]
        if not readers and any(b.kind == at.kind for b, _ in self._accesses.writes):
            raise self.call.fail("a loop that reads memory in this way has no meaning here")
        roots = dict.fromkeys(map(_root, readers))
        if self._is_stated and not roots.keys() <= self._unwritten.keys():  # a later read makes steps of its own
            raise self.call.fail("a loop that reads and writes memory by way of several views has no meaning here")
        self._unwritten |= roots

    def _require_apart(self) -> None:
        """States that what is read and what is written are apart, or elements of both are the same ones at a time."""
        self._is_stated = True
        for a in self._unwritten:
            writes = [(b, at) for b, at in self._accesses.writes if b.kind == a.kind]
            for b in dict.fromkeys(_root(b) for b, _ in writes):
                condition = self._apart(a, b)
                if not is_true(condition):
                    why = "buffers of which one is read and one is written must be apart in a loop"
                    step = WITHOUT if self.call.scope.reading.buffers_apart else "--buffers-apart says it of arguments"
                    self._provisos.setdefault(condition, Proviso(condition, self.call.fail(why, step)))

    def _apart(self, a: Buffer, b: Buffer) -> Term:
        condition = apart(a, b) if a.is_nested and b.is_nested else truth(False)
        if self._is_in_step(a, b):
            condition = either(condition, same_view(a, b))
        varies = not condition.symbols.isdisjoint(map(variable_of, self.variables))
        marks = any(t.payload in self._marks for t in postorder([condition]) if t.op == "read")
        if varies or marks or is_false(condition) or is_true(same_view(a, b)):
            raise self.call.fail("an iteration that reads what others write has no meaning here")
        return condition

    def _is_in_step(self, a: Buffer, b: Buffer) -> bool:
        """Whether an element of a buffer is read in the one iteration alone that may write the same one of another."""
        reads = [at if each is a else None for each, at in self._accesses.reads if _root(each) is a]
        writes = [at if each is b else None for each, at in self._accesses.writes if _root(each) is b]
        if any(x is None or y is None or not same_places(x, y) for x in reads for y in writes):
            return False
        step = self._steps[self._memory(b.kind), b.block, None]
        if not all(self._are_of_one_iteration(x) for x in reads if x is not None):
            return False
        return self._has_one_step(step.accumulators, step.element)

    def _are_of_one_iteration(self, at: tuple[Term, ...]) -> bool:
        """Whether it is seen that subscripts are those of one iteration alone, also of loops inside of this one."""
        if any(t.op == "read" for t in postorder(at)):  # what is carried may be the same one in several
            return False
        inner = [(v, e) for v, e in self._accesses.loops.items() if any(variable_of(v) in i.symbols for i in at)]
        accumulator, here = fresh("acc", BOOLEAN), new_subscripts(len(at))
        step = choose(both(*map(equal, at, here)), negation(accumulator), accumulator)
        changed = fold(truth(False), accumulator, [*self._ranges, *inner], step)
        return changed.op == "fold" and has_one_step(changed)

    # -- what is required ----------------------------------------------------------------------------------

    def _require(self, scope: Scope) -> None:
        """Requires what the body requires, of all iterations."""
        found = Replacement(self._marks.__contains__, lambda mark, at: self._other(mark, at, None))
        for each in scope.requirements:
            condition = every(self.variables, self.extents, found.of(each.condition))
            if not is_true(condition):
                stated = Requirement(condition, each.reason, each.operator, each.position)
                self.call.scope.requirements.append(stated)
        for proviso in scope.provisos:
            condition = every(self.variables, self.extents, found.of(proviso.condition))
            self._provisos.setdefault(condition, replace(proviso, condition=condition))


def _place(at: At) -> Place:
    assert isinstance(at, Place)
    return at


def _subscripts(at: At) -> tuple[Term, ...]:
    """The subscripts of a value; of memory those of its buffer, or the place in the block."""
    if not isinstance(at, Place):
        return tuple(at)
    return (at.place,) if at.of is None else at.of[1]


def _where(mark: _Mark, there: tuple[Term, ...]) -> At:
    """Where the element is that an unknown is read for.

    Variables of the loops inside have other names by now, also in subscripts, but not in the buffer: it is still the
    one, if the element of it is at that place.
    """
    if not mark.slot.is_memory:
        return there
    block, place, *at = there
    buffer = mark.buffer
    is_of = buffer is not None and buffer.block is block and buffer.address(at) is place
    return Place(mark.slot.kind, block, place, (buffer, tuple(at)) if buffer is not None and is_of else None)


def _are_same(a: At, b: At, known: Known) -> bool:
    """Whether it is seen that two elements are one, by conditions that are known."""
    if not (isinstance(a, Place) and isinstance(b, Place)):
        return same_places(_subscripts(a), _subscripts(b), known)
    if same_places((a.block, a.place), (b.block, b.place), known):
        return True
    one_view = a.of is not None and b.of is not None and is_true(same_view(a.of[0], b.of[0]))
    return one_view and same_places(_subscripts(a), _subscripts(b), known)


def _root(buffer: Buffer) -> Buffer:
    """The buffer of which another one is a view."""
    while buffer.parent is not None:
        buffer = buffer.parent[0]
    return buffer
