"""Proof contexts, which are coordinates and counters at arbitrary values, and symbolic instances of writes.

A *context* has the coordinates of the distinguished cell and, inside folds, the counters of an arbitrary iteration; its
hypotheses are the size domain and the ranges of these.  A *symbolic instance* is an arbitrary iteration of a write.
Its terms are translated once, under nothing but the ranges of its counters, so that "stays within its width" is proved
for every iteration at once; at a particular iteration they are instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.exact import less
from chc.mapping.arithmetic.injectivity import injectivity_steps, part_steps
from chc.mapping.arithmetic.ranges import quick
from chc.mapping.arithmetic.steps import Step, require
from chc.mapping.program.writes import Loops, Write, conjuncts_of
from chc.mapping.proof import Proof
from chc.mapping.sampling.samples import Samples
from ila_lang import Expr, free_variables, substitute, true
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import conjuncts, decide
from smt_encodings.environment import fresh, plain
from smt_encodings.expressions.integers import IntegerEncoding, NotLinearizable, is_linear


def in_range(loops: Loops, at: Mapping[Expr, Expr]) -> list[Expr]:
    """The conditions that iteration ``at`` of loops exists, outermost first."""
    return [less(substitute(counter, at), substitute(extent, at)) for counter, extent in loops]


@dataclass(eq=False)
class Context:
    """Coordinates and counters (``ranges``) at arbitrary values, with samples of them."""

    proof: Proof
    encoding: IntegerEncoding
    ranges: Loops
    samples: Samples
    name: str = ""
    now: Expr | None = None
    """The coordinate that counts timesteps, where values of earlier ones are known by induction."""
    outer: Context | None = None
    """The context of which this one is an iteration of loops, or a case; what holds there holds here."""
    is_case: bool = False
    """Whether this is a case of the context around it, by a further condition."""
    conditions: tuple[Expr, ...] = ()
    """Conditions over coordinates by which choices are made here; those of programs are compared with them."""

    def called(self, name: str) -> str:
        """A name for what is in the context."""
        return f"{self.name}, {name}" if self.name else name

    def inside(self, loops: Loops, name: str) -> Context:
        """The context at an arbitrary iteration of loops; their counters must have names of their own."""
        encoding = self.encoding.fork(name)
        for counter, extent in loops:
            encoding.assume(less(counter, extent))
        self.proof.fits(encoding, f"{name}: extents")
        samples = self.samples.extend(loops, seed=len(self.ranges))
        if not samples.rows:
            raise Unsupported(f"{name} has no iteration at any sample")
        ranges = (*self.ranges, *loops)
        return replace(self, encoding=encoding, ranges=ranges, samples=samples, name=name, outer=self, is_case=False)

    def within(self, other: Context) -> bool:
        """Whether what holds in another context holds here: it is this one, or this is an iteration or a case of it."""
        context: Context | None = self
        while context is not None and context.encoding is not other.encoding:
            context = context.outer
        return context is not None

    def cases(self) -> list[Context]:
        """This context and those of which it is a case, outwards."""
        around = [self]
        while around[-1].is_case and around[-1].outer is not None:
            around.append(around[-1].outer)
        return around

    def outward(self, last: Context | None = None) -> list[Context]:
        """This context and those around it, outwards, up to the last one, or to one that is a case.

        What has one value further out may have another reaching definition in each case.
        """
        around = [self]
        while around[-1] is not last and not around[-1].is_case and around[-1].outer is not None:
            around.append(around[-1].outer)
        return around

    def smallest(self, terms: Iterable[Expr], symbols: Mapping[Expr, Context]) -> Context:
        """The outermost context around this one where some terms have their values.

        They are over sizes, coordinates, counters, and ``symbols`` of values that belong to contexts around this one.
        Raises Unsupported for other variables: nothing says how far out they have one value.
        """
        around = self.outward()
        beyond: list[Context] = []  # contexts around a case: what has one value there has it in the case
        while (last := beyond[-1] if beyond else around[-1]).outer is not None:
            beyond.append(last.outer)
        own = {c: context for context in around for c, _ in context.ranges}
        sizes, deepest = set(self.proof.mapping.parameters.values()), len(around) - 1
        for variable in variables_of(*terms):
            if variable not in sizes:
                context = own.get(variable, symbols.get(variable))
                if context in beyond:
                    continue
                if context is None or context not in around:
                    raise Unsupported(f"the result depends on {plain(variable.name)}, which has no value here")
                deepest = min(deepest, around.index(context))
        return around[deepest]

    def where(self, condition: Expr, name: str) -> Context:
        """The context under a further condition; raises Unsupported where no sample satisfies it."""
        encoding = self.encoding.fork(name)
        encoding.assume(condition)
        self.proof.fits(encoding, f"{name}: condition")
        samples = self.samples.where(condition)
        if not samples.rows:
            raise Unsupported(f"no sample satisfies the condition of {name}")
        return replace(self, encoding=encoding, samples=samples, name=name, outer=self, is_case=True)

    def theorem(self, group: str, name: str, goal: Expr, meaning: str) -> None:
        """Proves ``goal`` for all sizes, coordinates and counters of the context."""
        if goal is true:
            return
        encoding = self.encoding.fork("goal")
        term = encoding.term(goal)
        self.proof.fits(encoding, name)
        parts = list(dict.fromkeys(conjuncts([term])))
        if len(parts) == 1 or is_linear(term):
            known = conjuncts(encoding.hypotheses)
            linear = [h for h in known if is_linear(h)]
            if len(linear) < len(known) and is_linear(term) and quick(linear, term):
                # a product that has nothing to do with the goal can be all that keeps solvers busy, and cvc5 replaces a
                # symbol only where an equation such as "T mod 16 = 0" comes before its use
                known = sorted(linear, key=lambda h: not (h.is_equals() and h.arg(1).is_constant()))
            self.proof.follows(group, name, known, term, meaning)
            return
        for number, part in enumerate(parts, 1):  # products are asked about one by one
            self.proof.follows(group, f"{name}, part {number}", encoding.hypotheses, part, meaning)

    def proves(self, condition: Expr) -> bool:
        """Whether a condition is a theorem here (to choose a form of proof; not recorded)."""
        encoding = self.encoding.fork("goal")
        try:
            term = encoding.term(condition)
        except NotLinearizable:
            return False
        return decide(encoding.hypotheses, term)


class SymbolicInstance:
    """An arbitrary iteration of a write, and of ``inner`` loops in its value."""

    def __init__(self, proof: Proof, space: str, write: Write, inner: Loops = ()) -> None:
        self.proof, self.space, self.write = proof, space, write
        self.loops = (*write.loops, *inner)
        self.encoding = proof.domain.fork(space)
        self._rename: dict[Expr, Expr] = {}
        sizes = set(proof.parameters)
        for condition in conjuncts_of(write.guard):  # first: an extent may have no meaning where it does not hold
            if condition is not true and set(variables_of(condition)) <= sizes:
                self.encoding.assume(condition)
        for counter, extent in self.loops:
            bound = substitute(extent, self._rename)
            self._rename[counter] = fresh(f"{space}.{counter.name}", counter.sort)
            self.encoding.assume(less(self._rename[counter], bound))
        if write.guard is not true:
            self.encoding.assume(substitute(write.guard, self._rename))
        self.counters = [self._rename[c] for c, _ in self.loops]

    def term(self, expression: Expr) -> FNode:
        """An expression over the write's counters, at this iteration."""
        return self.encoding.term(substitute(expression, self._rename))

    def fits(self) -> None:
        """Adds the obligations that what was translated here stays within its widths."""
        self.proof.fits(self.encoding, f"{self.write.label}: {self.space}")

    def instantiated(self, context: Context, expression: Expr, at: Mapping[Expr, Expr]) -> FNode:
        """An expression over the write's counters at the iteration ``at``, a map from counters to terms of a context.

        It is exact where that iteration exists and the write's condition holds there; to prove so is the caller's
        business.
        """
        generic = self.term(expression)
        self.fits()
        point = {
            self.encoding.term(self._rename[counter]): context.encoding.term(at[counter]) for counter, _ in self.loops
        }
        term = context.encoding.instance(self.encoding, generic, point)
        context.proof.fits(context.encoding, f"{self.write.label} in {context.name or 'the cell'}")
        return term

    def injectivity(self) -> tuple[list[Expr], list[Step]] | None:
        """Counters that the write's address determines, and the steps that prove it; None where none are found.

        Two iterations that write one address then agree in these counters.
        """
        names = set(free_variables(self.write.address))
        used = [c for c, _ in self.loops if c.name in names]
        hypotheses, address, renamed, pairs = self._twice()
        counters = [p for p, (c, _) in zip(pairs, self.loops, strict=True) if c in set(used)]
        try:
            steps = injectivity_steps(hypotheses, address, renamed, counters)
        except Unsupported:
            return None
        same = smt.Equals(address, address.substitute(renamed))
        require([*hypotheses, same], steps, [smt.Equals(*pair) for pair in counters])
        return used, steps

    def parts(self) -> tuple[list[FNode], list[Step]]:
        """Terms that the write's address determines, such as a sum of counters, and the steps that prove it."""
        hypotheses, address, renamed, _ = self._twice(guarded=True)
        steps, _, parts = part_steps(hypotheses, address, renamed)
        same = smt.Equals(address, address.substitute(renamed))
        require([*hypotheses, same], steps, [smt.Equals(part, part.substitute(renamed)) for part in parts])
        return parts, steps

    def _twice(self, guarded: bool = False) -> tuple[list[FNode], FNode, dict[FNode, FNode], list[tuple[FNode, FNode]]]:
        """Two iterations: what is known, one's address, what becomes of its symbols in the other, and counters."""
        address = self.term(self.write.address)
        other = self.encoding.fork(f"{self.space}.other")
        there: dict[Expr, Expr] = {}
        for counter, extent in self.loops:
            bound = substitute(extent, there)
            there[counter] = fresh(f"{self.space}.other.{counter.name}", counter.sort)
            other.assume(less(there[counter], bound))
        if guarded and self.write.guard is not true:
            other.assume(substitute(self.write.guard, there))
        # what was translated here fits: it is what was translated for the first iteration, with other names
        pairs = [(self.encoding.term(self._rename[c]), other.term(there[c])) for c, _ in self.loops]
        renamed = other.renaming(self.encoding, dict(pairs))
        return other.hypotheses, address, renamed, pairs

    def limits(self) -> list[tuple[FNode, FNode]]:
        """The counters of this iteration, each with its extent."""
        return [
            (self.encoding.term(self._rename[c]), self.encoding.term(substitute(e, self._rename)))
            for c, e in self.loops
        ]

    def quotients(self) -> list[tuple[FNode, FNode, FNode]]:
        """What this iteration divides by sizes: dividend, divisor and quotient."""
        known = {s for _, _, symbols in self.proof.domain.quotients() for s in symbols}
        return [
            (value, divisor, symbols[0])
            for value, divisor, symbols in self.encoding.quotients()
            if not isinstance(divisor, int) and symbols[0] not in known
        ]

    def point(self, context: Context, at: Mapping[Expr, Expr]) -> dict[FNode, FNode]:
        """What the symbols of this iteration are at the iteration ``at`` of a context, quotients included."""
        point = {
            self.encoding.term(self._rename[counter]): context.encoding.term(at[counter]) for counter, _ in self.loops
        }
        return context.encoding.renaming(self.encoding, point)


def before(place: Sequence[int], values: Sequence[FNode], other: Sequence[int], others: Sequence[FNode]) -> FNode:
    """The condition that the instance (place, values) comes strictly before the instance (other, others)."""
    if place[0] != other[0]:
        return smt.Bool(place[0] < other[0])
    if not values or not others:
        return smt.FALSE()  # one and the same instance
    rest = before(place[1:], values[1:], other[1:], others[1:])
    return smt.Or(smt.LT(values[0], others[0]), smt.And(smt.Equals(values[0], others[0]), rest))
