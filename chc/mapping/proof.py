"""What the parts of one proof attempt share, and how obligations are asked in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from ila_lang import Expr
from ila_lang.language.expr import variables_of
from ila_lang.mapping import TensorMapping
from smt_encodings.discharge import Discharger, conjuncts, decide
from smt_encodings.expressions.integers import IntegerEncoding, NotLinearizable, is_linear

from .arithmetic.ranges import quick, range_steps
from .arithmetic.search import products_of_sizes, steps_to
from .arithmetic.steps import Step, require
from .horn.invariants import Inferred
from .horn.systems import Levels
from .operators import Operators

_FITS = "exact results fit their bit widths, and branches are decided, so integer arithmetic is exact here"


@dataclass
class Proof:
    """Shared context of one proof attempt."""

    mapping: TensorMapping
    discharger: Discharger
    horn_timeout: float
    given: Mapping[str, Sequence[str]] | None
    operators: Operators = field(init=False)
    base: IntegerEncoding = field(init=False)
    """The size domain, and that there is an output cell: what is only about values of the output."""
    domain: IntegerEncoding = field(init=False)
    """The size domain alone: what programs do at every size."""
    samples: Sequence[tuple[int, ...]] = ()
    """Sizes, values of the parameters, at which programs are tried."""
    levels: Levels = field(default_factory=Levels)
    inferred: dict[str, Inferred] = field(default_factory=dict)
    """Invariants found so far, by the Horn clauses of their systems without names."""
    invariants: dict[str, list[str]] = field(default_factory=dict)
    shown: dict[str, dict[str, object]] = field(default_factory=dict)
    """What verdicts and certificates show of the levels, by their keys."""
    takes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What the theorem takes from the invariants of loop levels, by their keys."""
    quotients: set[FNode] = field(default_factory=set)
    """Quotients and remainders of sizes that programs have, and the domain has not."""
    fits_seen: set[tuple[object, ...]] = field(default_factory=set)
    fits_numbers: dict[str, int] = field(default_factory=dict)
    same_cells: dict[str, int] = field(default_factory=dict)
    """How often two readers were proved to read one cell, by the names of contexts."""

    def __post_init__(self) -> None:
        self.operators = Operators(self.discharger, self.mapping.sums)
        self.base = self.domain = IntegerEncoding(self._decide, "size")

    def _decide(self, hypotheses: list[FNode], goal: FNode) -> bool:
        if not is_linear(goal) and self._steps(hypotheses, goal) is not None:
            return True
        return decide(hypotheses, goal)

    def fits(self, encoding: IntegerEncoding, name: str) -> None:
        """Adds the obligations that the operations translated by ``encoding`` stay within their widths."""
        sizes = self.sizes
        for value, _, parts in encoding.quotients():
            if value.get_free_variables() <= sizes:
                self.quotients |= set(parts) - sizes
        new: dict[tuple[FNode, ...], list[FNode]] = {}
        for assumed, condition in encoding.fits:
            key = (assumed, condition, encoding.meaning(condition))
            if key not in self.fits_seen:
                self.fits_seen.add(key)
                new.setdefault(assumed, []).append(condition)
        for assumed, conditions in new.items():
            # literal bounds are theorems of their own; sums of products are asked one by one
            general = [c for c in conditions if not c.is_implies()]
            products = [c for c in general if not is_linear(c)]
            literal = [c for c in conditions if c.is_implies()]
            for group in (literal, [c for c in general if is_linear(c)], *([p] for p in products)):
                if group:
                    self.fits_numbers[name] = number = self.fits_numbers.get(name, 0) + 1
                    count = "1 operation" if len(group) == 1 else f"{len(group)} operations"
                    known = [] if group is literal else [*encoding.definitions, *assumed]
                    ask = self.discharger.follows if group is literal else self.follows
                    ask("no overflow", f"{name} ({number}: {count})", known, smt.And(group), _FITS)

    def name_quotients(self, extents: Sequence[Expr]) -> None:
        """Translates those of some extents that are over sizes alone, so that their quotients are one symbol each."""
        sizes = set(self.mapping.parameters.values())
        for extent in dict.fromkeys(extents):
            if not extent.is_const and set(variables_of(extent)) <= sizes:
                with suppress(NotLinearizable):  # it may be so where the loop is
                    self.domain.term(extent)
        self.base = self.domain.fork("size")
        for condition in self.mapping.cell_conditions:
            self.base.assume(condition)

    @property
    def parameters(self) -> tuple[Expr, ...]:
        """The size variables of the mapping."""
        return tuple(self.mapping.parameters.values())

    @property
    def sizes(self) -> set[FNode]:
        """The symbols of the mapping's parameters and of quotients and remainders of them."""
        symbols = {self.base.symbol(p) for p in self.mapping.parameters.values()}
        for value, _, parts in self.base.quotients():
            if value.get_free_variables() <= symbols:
                symbols |= set(parts)
        return symbols

    def follows(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode, meaning: str) -> None:
        """Proves that ``goal`` follows from ``hypotheses``; bounds on sums of products and their equality in steps,
        if these are found."""
        if self.follows_in_steps(group, name, hypotheses, goal, meaning):
            return
        helped = self._bounded_quotients(group, name, hypotheses, goal) if is_linear(goal) else hypotheses
        self.discharger.follows(group, name, helped, goal, meaning)

    def follows_in_steps(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode, meaning: str) -> bool:
        """As :meth:`follows`, if steps are found; whether they are."""
        steps = None if is_linear(goal) else self._steps(hypotheses, goal)
        if steps is None:
            return False
        require(hypotheses, steps, [goal if goal.is_not() else steps[-1].goal])
        for step, premises, conclusion, _ in steps:
            self.discharger.follows(group, f"{name}: {step}", premises, conclusion, meaning)
        if not goal.is_not():  # two numbers are different by the last step, or by what it is an instance of
            self.discharger.follows(group, name, [steps[-1].goal], goal, meaning)
        return True

    def _bounded_quotients(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode) -> Sequence[FNode]:
        """The hypotheses, and bounds by sizes on sums of products that ``goal`` has quotients of, as far as found.

        Solvers find what follows from such a bound, and rarely the bound itself.
        """
        bounds: list[FNode] = []
        for fact in conjuncts(hypotheses):
            symbols = goal.get_free_variables() & fact.get_free_variables()
            if not fact.is_equals() or is_linear(fact.arg(0)) or not any("!div" in s.symbol_name() for s in symbols):
                continue
            for bound in products_of_sizes(hypotheses, self.sizes):
                steps = range_steps(hypotheses, fact.arg(0), bound, self.sizes, quick, 1)
                if steps is not None:
                    require(hypotheses, steps, [steps[-1].goal])
                    for step, facts, claim, _ in steps:
                        meaning = "a sum of products stays below a product of sizes"
                        self.discharger.follows(group, f"{name}, dividend {len(bounds)}: {step}", facts, claim, meaning)
                    bounds.append(steps[-1].goal)
                    break
        return [*hypotheses, *bounds]

    def _steps(self, hypotheses: Sequence[FNode], goal: FNode) -> list[Step] | None:
        return steps_to(hypotheses, goal, self.sizes, self.quotients)
