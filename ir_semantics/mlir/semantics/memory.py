"""Memory as blocks of elements, and buffers (memrefs) as views of them.

A block is a number: from 0 on those that were there before (the buffers of arguments, and globals), below 0 those that
the function makes.  Blocks of different element formats share no element.  A memory is what its cells hold, and which
blocks are alive, may be written, and may be freed; operators make a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TypeAlias

from ir_semantics.elements.binders import every
from ir_semantics.elements.operators import (
    at_most,
    below,
    both,
    choose,
    either,
    equal,
    inside,
    minus,
    negation,
    plus,
    quotient,
    times,
)
from ir_semantics.elements.terms import Input, Table, Term, fresh, integer_value, is_false, is_true, number, read, truth
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format

from .values import Element, chosen, defined, undefined

FEW = 8
"""Buffers of so many elements are written one element after the other."""
Cells: TypeAlias = Callable[["Place"], Element]
OfBlock: TypeAlias = Callable[[Term], Term]


@dataclass(frozen=True)
class Global:
    """A block that a module names; ``constant`` are its elements one after the other, where they are constant."""

    block: int
    kind: Format
    shape: tuple[int, ...]
    constant: Table | None


@dataclass(frozen=True, eq=False)
class Buffer:
    """A view of a block: element ``i`` is at ``offset`` plus the sum of subscripts times strides."""

    kind: Format
    block: Term
    offset: Term
    shape: tuple[Term, ...]
    strides: tuple[Term, ...]
    parent: tuple[Buffer, Callable[[Sequence[Term]], Sequence[Term]]] | None = None
    """Of a view the buffer that it is one of, and the subscripts there."""
    choice: tuple[Term, Buffer, Buffer] | None = None
    """Of one of two buffers the condition, and both."""

    @property
    def is_view(self) -> Term:
        """Whether it is not what an allocation gives, but a view."""
        if self.choice is None:
            return truth(self.parent is not None)
        condition, yes, no = self.choice
        return choose(condition, yes.is_view, no.is_view)

    def within(self, at: Sequence[Term]) -> Term:
        """Whether an element is inside of the buffer, and of all those that it is a view of."""
        here = both(*(inside(i, n) for i, n in zip(at, self.shape, strict=True)))
        return here if self.parent is None else both(here, self.parent[0].within(self.parent[1](at)))

    @property
    def contained(self) -> Term:
        """Whether all elements of a buffer, which has some, are inside of those that it is a view of."""
        ends = [number(0)] * len(self.shape), [minus(n, number(1)) for n in self.shape]
        return truth(True) if self.parent is None else both(*(self.within(at) for at in ends))

    def address(self, at: Sequence[Term]) -> Term:
        """The place in the block of an element."""
        return plus(self.offset, *(times(i, s) for i, s in zip(at, self.strides, strict=True)))

    def place_of(self, at: Sequence[Term]) -> Place:
        """The place of an element, as the buffer's."""
        return Place(self.kind, self.block, self.address(at), (self, tuple(at)))

    @property
    def is_row_major(self) -> bool:
        """Whether elements lie one after the other."""
        return all(
            integer_value(n) == 1 or s is own
            for n, s, own in zip(self.shape, self.strides, row_major(self.shape), strict=True)
        )

    @property
    def is_nested(self) -> bool:
        """Whether no two elements lie at one place, as strides grow beyond what is inside of them."""
        if self.is_row_major:
            return True
        sizes, strides = [integer_value(n) for n in self.shape], [integer_value(s) for s in self.strides]
        reach = 1
        for n, s in reversed(list(zip(sizes, strides, strict=True))):
            if n is None or s is None or (n > 1 and s < reach):
                return False
            reach += (n - 1) * s if n > 1 else 0
        return True

    @property
    def last(self) -> Term:
        """The place of the last element, of a buffer that has elements and is nested."""
        return self.address([minus(n, number(1)) for n in self.shape])

    @property
    def is_empty(self) -> Term:
        """Whether there is no element."""
        return either(*(equal(n, number(0)) for n in self.shape))

    def subscripts(self, place: Term) -> tuple[list[Term], Term]:
        """The subscripts of the element at a place of the block, and whether there is one; it must be nested."""
        rest, at, within = minus(place, self.offset), [], [at_most(self.offset, place)]
        for n, s in zip(self.shape, self.strides, strict=True):
            if integer_value(n) == 1:
                at.append(number(0))
                continue
            i = quotient(rest, s)
            rest = minus(rest, times(i, s))
            at.append(i)
            within.append(inside(i, n))
        return at, both(*within, equal(rest, number(0)))


@dataclass(frozen=True)
class Place:
    """A place of a block, in a block of elements of a format; ``of`` says of which buffer it is which element."""

    kind: Format
    block: Term
    place: Term
    of: tuple[Buffer, tuple[Term, ...]] | None = None


def row_major(shape: Sequence[Term]) -> tuple[Term, ...]:
    """The strides of elements that lie one after the other."""
    strides, stride = [], number(1)
    for n in reversed(shape):
        strides.append(stride)
        stride = times(stride, n)
    return tuple(reversed(strides))


@dataclass
class Accesses:
    """What the operations of a region read, and write: buffers, with subscripts of an element where it is one.

    ``loops`` are variables of loops in the region, which subscripts may have, with their extents.
    """

    reads: list[tuple[Buffer, tuple[Term, ...]]] = field(default_factory=list)
    writes: list[tuple[Buffer, tuple[Term, ...] | None]] = field(default_factory=list)
    loops: dict[Term, Term] = field(default_factory=dict)

    def add(self, other: Accesses) -> None:
        """Takes over all of another region."""
        self.reads += other.reads
        self.writes += other.writes
        self.loops |= other.loops


@dataclass(frozen=True)
class Memory:
    """What cells hold, and of each block its size and what may be done with it; ``accesses`` gets all of a region.

    ``of_tensors`` are blocks that tensors may still be read from.  ``is_carried`` is memory in a loop, where it helps
    to know of a cell that is written that subscripts are inside.
    """

    cells: Cells
    alive: OfBlock
    writable: OfBlock
    freeable: OfBlock
    size: OfBlock
    made: int = 0
    formats: tuple[Format, ...] = ()
    of_tensors: tuple[Term, ...] = ()
    accesses: Accesses = field(default_factory=Accesses)
    is_carried: bool = False

    def at(self, buffer: Buffer, at: Sequence[Term]) -> Element:
        """The element of a buffer."""
        self.accesses.reads.append((buffer, tuple(at)))
        return self.cells(buffer.place_of(at))

    def accessible(self, buffer: Buffer, at: Sequence[Term]) -> Term:
        """Whether an element of a buffer is one of a block that is alive."""
        block = buffer.block
        return both(buffer.within(at), self.alive(block), inside(buffer.address(at), self.size(block)))

    def whole(self, buffer: Buffer) -> Term:
        """Whether all elements of a buffer, which must be nested, are in a block that is alive."""
        size = self.size(buffer.block)
        there = both(self.alive(buffer.block), at_most(number(0), buffer.offset), below(buffer.last, size))
        return either(buffer.is_empty, both(there, buffer.contained))

    def storing(self, buffer: Buffer, at: Sequence[Term], value: Element) -> Memory:
        """The memory after an element is written."""
        place, old = buffer.address(at), self.cells
        self.accesses.writes.append((buffer, tuple(at)))
        within = (
            both(*(inside(i, n) for i, n in zip(at, buffer.shape, strict=True))) if self.is_carried else truth(True)
        )

        def cells(here: Place) -> Element:
            if here.kind != buffer.kind:
                return old(here)
            if here.of is not None and is_true(same_view(here.of[0], buffer)) and buffer.is_nested:
                mine = both(*map(equal, here.of[1], at), within)
            else:
                mine = both(same_block(here.block, buffer.block), equal(here.place, place), within)
            return chosen(mine, value, old(here))

        return replace(self, cells=cells, formats=_with(self.formats, buffer.kind))

    def filled(self, buffer: Buffer, element: Callable[[Sequence[Term]], Element]) -> Memory:
        """The memory after all elements of a nested buffer are written."""
        old = self.cells
        self.accesses.writes.append((buffer, None))
        sizes = [integer_value(n) for n in buffer.shape]
        known = [n for n in sizes if n is not None]
        is_small = len(known) == len(sizes) and prod(known) <= FEW
        few = [tuple(map(number, at)) for at in product(*map(range, known))] if is_small else []

        def cells(here: Place) -> Element:
            if here.kind != buffer.kind or is_false(same_block(here.block, buffer.block)):
                return old(here)
            if here.of is not None and is_true(same_view(here.of[0], buffer)):
                return element(here.of[1])
            if is_small:
                result = old(here)
                for at in few:
                    mine = both(same_block(here.block, buffer.block), equal(here.place, buffer.address(at)))
                    result = chosen(mine, element(at), result)
                return result
            subscripts, within = buffer.subscripts(here.place)
            return chosen(both(same_block(here.block, buffer.block), within), element(subscripts), old(here))

        return replace(self, cells=cells, formats=_with(self.formats, buffer.kind))

    def allocated(self, kind: Format, shape: tuple[Term, ...], *, freeable: bool) -> tuple[Memory, Buffer]:
        """The memory with a new block, and the buffer of all of it; nothing is written there."""
        block, old = number(-1 - self.made), self.cells
        buffer = Buffer(kind, block, number(0), shape, row_major(shape))

        def cells(here: Place) -> Element:  # in a region that is run again the block may have been there before
            if here.kind != kind:
                return old(here)
            fresh = same_block(here.block, block)
            return old(here) if is_false(fresh) else chosen(fresh, undefined(kind), old(here))

        memory = replace(
            self,
            cells=cells,
            alive=_changed(self.alive, block, truth(True)),
            writable=_changed(self.writable, block, truth(True)),
            freeable=_changed(self.freeable, block, truth(freeable)),
            size=_changed(self.size, block, times(*shape)),
            made=self.made + 1,
        )
        return memory, buffer

    def freed(self, block: Term) -> Memory:
        """The memory without a block."""
        return replace(self, alive=_changed(self.alive, block, truth(False)))

    def sealed(self, block: Term) -> Memory:
        """The memory of which a block must not be written any more."""
        return replace(self, writable=_changed(self.writable, block, truth(False)))

    def read_by_tensor(self, block: Term) -> Memory:
        """The memory of which a block may be read as a tensor, at any time."""
        return replace(self, of_tensors=(*self.of_tensors, block))


def _with(formats: tuple[Format, ...], kind: Format) -> tuple[Format, ...]:
    return formats if kind in formats else (*formats, kind)


def same_block(a: Term, b: Term) -> Term:
    """Whether two blocks are one; variables stand for blocks that were there before."""
    values = integer_value(a), integer_value(b)
    for value, other in (values, values[::-1]):
        if value is not None and value < 0 and other is None and "symbol" in (a.op, b.op):
            return truth(False)
    return equal(a, b)


def _changed(old: OfBlock, block: Term, value: Term) -> OfBlock:
    return lambda b: choose(same_block(b, block), value, old(b))


@dataclass
class Before:
    """The memory before a function runs: unknown but for globals; ``arrays`` has the unknowns."""

    globals: Mapping[str, Global] = field(default_factory=dict)
    arrays: list[Input] = field(default_factory=list)
    _cells: dict[Format, tuple[Input, Input]] = field(default_factory=dict)
    _of_blocks: dict[str, Input] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[Format, ...]:
        """The formats of elements that were asked for."""
        return tuple(self._cells)

    def memory(self) -> Memory:
        """It, as a memory."""
        kinds = tuple(dict.fromkeys(g.kind for g in self.globals.values()))
        return Memory(
            self._at,
            self._property("alive", lambda g: truth(True)),
            self._property("writable", lambda g: truth(g.constant is None)),
            self._property("freeable", lambda g: truth(False)),
            self._property("size", lambda g: times(*map(number, g.shape))),
            formats=kinds,
        )

    def _unknown(self, name: str, kind: Format, rank: int) -> Input:
        array = Input(name, kind, tuple(number(0) for _ in range(rank)))
        self.arrays.append(array)
        return array

    def _at(self, here: Place) -> Element:
        kind, block, place = here.kind, here.block, here.place
        known = integer_value(block)
        if known is not None and known < 0:
            return undefined(kind)
        if kind not in self._cells:
            self._cells[kind] = (
                self._unknown(f"memory of {kind}", kind, 2),
                self._unknown(f"written memory of {kind}", BOOLEAN, 2),
            )
        value, written = (read(array, (block, place)) for array in self._cells[kind])
        element = Element(value, written)
        for each in self.globals.values():
            if each.kind == kind and each.constant is not None:
                element = chosen(equal(block, number(each.block)), defined(read(each.constant, (place,))), element)
        return element

    def _property(self, name: str, of_global: Callable[[Global], Term]) -> OfBlock:
        def of(block: Term) -> Term:
            kind = INTEGERS if name == "size" else BOOLEAN
            known = integer_value(block)
            if known is not None and known < 0:
                return truth(False) if kind == BOOLEAN else number(0)
            if name not in self._of_blocks:
                self._of_blocks[name] = self._unknown(f"{name} blocks", kind, 1)
            value = read(self._of_blocks[name], (block,))
            for each in self.globals.values():
                value = choose(equal(block, number(each.block)), of_global(each), value)
            return value

        return of


LISTED = 4096
"""The places of buffers of so many elements are listed to see whether two buffers share one."""


def apart(a: Buffer, b: Buffer) -> Term:
    """Whether two nested buffers share no cell."""
    if a.kind != b.kind:
        return truth(True)
    a, b = sorted((a, b), key=lambda x: x.offset.number)  # one condition for a pair, in whatever order it is
    disjoint = either(a.is_empty, b.is_empty, below(a.last, b.offset), below(b.last, a.offset))
    if not (a.is_row_major and b.is_row_major):  # elements of one may lie between those of the other
        disjoint = either(disjoint, _share_no_place(a, b))
    return either(negation(same_block(a.block, b.block)), disjoint)


def _share_no_place(a: Buffer, b: Buffer) -> Term:
    """Whether no element of one buffer is at the place in a block of an element of the other."""
    ours, theirs, gap = _places_of(a), _places_of(b), integer_value(minus(b.offset, a.offset))
    if ours is not None and theirs is not None and gap is not None:
        return truth(ours.isdisjoint(gap + place for place in theirs))
    at, there = ([fresh(f"i{k}", INTEGERS) for k in range(len(x.shape))] for x in (a, b))
    return every([*at, *there], [*a.shape, *b.shape], negation(equal(a.address(at), b.address(there))))


def _places_of(buffer: Buffer) -> set[int] | None:
    """Where elements are, counted from the first one, of a buffer of few elements whose shape and strides are known."""
    sizes, strides = ([n for n in map(integer_value, x) if n is not None] for x in (buffer.shape, buffer.strides))
    if len(sizes) + len(strides) < 2 * len(buffer.shape) or prod(sizes) > LISTED:
        return None
    return {sum(i * s for i, s in zip(at, strides, strict=True)) for at in product(*map(range, sizes))}


def same_view(a: Buffer, b: Buffer) -> Term:
    """Whether two buffers have the same elements at the same subscripts."""
    if len(a.shape) != len(b.shape) or a.kind != b.kind:
        return truth(False)
    pairs = [(a.block, b.block), (a.offset, b.offset), *zip(a.shape, b.shape, strict=True)]
    strides = (
        either(at_most(n, number(1)), equal(x, y)) for n, x, y in zip(a.shape, a.strides, b.strides, strict=True)
    )
    return both(*(equal(x, y) for x, y in pairs), *strides)


def selected_buffer(condition: Element, yes: Buffer, no: Buffer) -> Buffer:
    """One of two buffers, with its own sizes and strides."""
    c = condition.value

    def one(a: Sequence[Term], b: Sequence[Term]) -> tuple[Term, ...]:
        return tuple(choose(c, x, y) for x, y in zip(a, b, strict=True))

    block, offset = choose(c, yes.block, no.block), choose(c, yes.offset, no.offset)
    shape, strides = one(yes.shape, no.shape), one(yes.strides, no.strides)
    return Buffer(yes.kind, block, offset, shape, strides, choice=(c, yes, no))
