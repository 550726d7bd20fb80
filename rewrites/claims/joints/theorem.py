"""The kernel of an IR instruction as the real number that its error bound is about.

A bound is derived from a kernel: its theorem is about the words that this stores and about a real number, in terms of
what lies in memories and of what the accelerator leaves out.  Here the derivation is written again, from the kernel
that the mapping runs, and must be the bound's own.  Then the real number is read as a tensor term.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from ila_lang import Expr, substitute
from ila_lang.language.expr import variables_of
from ila_lang.language.kernel import For
from ir_semantics.tensors.conditions import equal, inside
from ir_semantics.tensors.elements import Apply, Element, IndexValue, Number, Reduce
from ir_semantics.tensors.index import Index, index, product
from rewrites.bounds.derivations.calculus import Operator as Bounded
from rewrites.bounds.derivations.names import Layout
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.bounds.kernel.judgements import Rejected, Theorem
from rewrites.bounds.kernel.readings import Term

from .instruction import Unread
from .kernel import KernelReading, Run
from .words import Data

_SCALAR = {"+": "add", "-": "sub", "*": "mul"}

Loops = Sequence[tuple[Expr, Expr]]
"""Counters, and extents of their loops."""
Places = dict[Expr, Expr]
"""What counters of the derivation are: variables whose indices are known."""


@dataclass(frozen=True, eq=False)
class BoundReading(KernelReading):
    """A kernel that is read as the real number of ``bound``, of which leaves that are ``omitted`` have no place."""

    bound: Bounded = field(kw_only=True)
    omitted: frozenset[str] = field(kw_only=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """Memories, and what has no place in the kernel."""
        return (*self.shapes, *sorted(self.omitted))

    @cached_property
    def derived(self) -> tuple[Theorem, Layout]:
        """What is proved of this kernel, and where in it leaves lie; raises Unread where it is not the bound's."""
        kernel, bound = self.called.kernel, self.bound
        try:
            source = bound.written.source
            if source is None:
                raise Unread(f"the bound of {bound.name} must be derived from a kernel")
            written = derivation_of(
                kernel,
                self.called.operands,
                self.called.output,
                source.names,
                lemmas=source.lemmas,
                growth=source.growth,
            )
            if part := bound.written.differs(written):
                raise Unread(f"the bound of {bound.name} must be of the kernel {kernel.name}, which has other {part}")
            assert written.layout is not None
            return bound.theorem, written.layout
        except (ValueError, Rejected) as error:
            raise error if isinstance(error, Unread) else Unread(f"{kernel.name} has no bound: {error}") from error

    def read(self, run: Run) -> None:
        """One element of the result: the real number, at the digits of its place."""
        theorem, layout = self.derived
        for state, value in layout.given.items():
            if run.fixed.get(state) is not value:
                raise Unread(f"{self.called.names[state]} must be {value.value}, as in the bound of {self.bound.name}")
        memory, address = layout.result
        used = set(variables_of(address))
        free = [loop for loops in layout.indices.values() if used & {c for c, _ in loops} for loop in loops]
        with ExitStack() as reached:
            places: Places = {}
            for loops in (*([axis] for axis in layout.axes), free):
                places |= self._axis(run, loops, reached) if loops else {}
            at, place = run.index(substitute(address, {**run.fixed, **places})), index(0)
            for name, extent in run.axes:
                place = place * extent + Index({(name,): 1})
            run.require(equal(at, place), f"the result is stored row-major, at {place}, which {at} is")
            result = theorem.result
            element = self._element(run, result.real, places)
            data = Data(element, result.forms[0], self._exponent(run, *result.biases))
            run.stored(memory.name, data, run.exponent(memory))
            run.results[memory.name] = element

    def _axis(self, run: Run, loops: Loops, reached: ExitStack) -> Places:
        """Loops that are one axis of the result: counters are the digits of its subscript."""
        extents = [run.extent(For(counter, extent, ()), run.fixed) for counter, extent in loops]
        name = run.names.fresh("o")
        run.axes.append((name, product(extents)))
        rest, places = Index({(name,): 1}), Places()
        reached.enter_context(run.under(inside(rest, run.axes[-1][1])))
        for number, ((counter, _), extent) in reversed([*enumerate(zip(loops, extents, strict=True))]):
            if number and (extent.constant is None or extent.constant < 1):
                raise Unread(f"{counter.name} must be a digit with a known number of values, not {extent}")
            places[counter] = run.counter(For(counter, counter, ()), rest % extent if number else rest)
            rest = rest // extent if number else rest
        return places

    def _element(self, run: Run, term: Term, places: Places) -> Element:
        """A real term, at values of counters."""
        run.step()
        match term:
            case str() if term[:1].isdigit():
                return Number(Fraction(term))
            case str():
                return self._leaf(run, term, places)
            case ("sum", str() as name, body):
                return self._sum(run, name, body, places)[0]
            case ("average", str() as name, body):  # of groups of 16 terms, whose sums these are
                total, count = self._sum(run, name, body, places)
                return Apply("div", (total, IndexValue(16 * count)))
            case ("1/sqrt", of):
                root = Apply("sqrt", (self._element(run, of, places),))
                return Apply("div", (Number(Fraction(1)), root))
            case (str() as operation, first, second) if operation in _SCALAR:
                return Apply(_SCALAR[operation], tuple(self._element(run, t, places) for t in (first, second)))
        raise Unread(f"the operation {term[0]} of the bound has no tensor term")

    def _sum(self, run: Run, name: str, body: Term, places: Places) -> tuple[Element, Index]:
        """A sum over all values of an index, and how many there are."""
        _, layout = self.derived
        inner, ranges = dict(places), list[tuple[str, Index]]()
        with ExitStack() as reached:
            for counter, extent in layout.indices[name]:
                loop, bound = For(counter, extent, ()), run.names.fresh("k")
                ranges.append((bound, run.extent(loop, {**run.fixed, **inner})))
                inner[counter] = run.counter(loop, Index({(bound,): 1}))
                reached.enter_context(run.under(inside(Index({(bound,): 1}), ranges[-1][1])))
            element = self._element(run, body, inner)
        for bound, count in reversed(ranges):
            element = Reduce("sum", bound, count, element)
        return element, product([count for _, count in ranges])

    def _leaf(self, run: Run, name: str, places: Places) -> Element:
        """The number that a word of a memory stands for, or one that is left out."""
        theorem, layout = self.derived
        form, bias, *_ = theorem.leaves[name]
        if name in self.omitted and name not in layout.leaves:
            return run.readers[name](())
        place = layout.leaves.get(name, ())
        if len(place) != 2 or name in layout.guards or layout.words[name][0] is not layout.words[name][1]:
            raise Unread(f"{name} of the bound must be a word of a memory, as it lies there")
        memory, address = place
        at = run.index(substitute(address, {**run.fixed, **places}))
        data = run.data(run.load(memory, at, layout.words[name][1].width))
        run.use(data, form, self._exponent(run, bias) if bias else None)
        return data.element

    def _exponent(self, run: Run, *biases: str) -> Index | None:
        """That of a code with this bias: an operand of the instruction."""
        _, layout = self.derived
        operands = [layout.biases[name] for name in biases if name in layout.biases]
        return run.exact(substitute(operands[0], run.fixed)) if operands else None
