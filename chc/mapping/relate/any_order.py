"""Sums of both sides that are equal in any order: a bijection between their index sets, for every size.

Where an operator is associative and commutative on all bits, what it combines is a bag of summands
(:mod:`chc.mapping.relate.summands`).  Which summand of the device is which one of the IR is guessed from the elements
of input tensors that both read; :mod:`chc.bijections` says what makes of the guess a proof.  That summands are the same
is a comparison of values like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from chc.bijections.matching import matched
from chc.bijections.theorem import Goal
from chc.mapping.arithmetic.exact import less, minimum_of
from chc.mapping.contents.values import Values
from chc.mapping.diagnosis import different_operators
from chc.mapping.memory.cases import MOST_CASES, Split, in_cases
from chc.mapping.memory.contexts import Context
from chc.mapping.operators import Operator
from chc.mapping.proof import Proof
from ila_lang import Expr, all_of, any_of, postorder, resize, substitute, true
from ir_semantics.elements.bags import Family
from ir_semantics.elements.terms import Term, new_terms
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh

from .digits import by_digits
from .hints import Hints, choice_in
from .padding import unchanged
from .subscripts import Subscripts
from .summands import Opened, Summands

FEW = 8
"""Iterations of a loop that may be written out."""

Compare = Callable[[Context, str, Expr, Expr], None]
"""Proves that a value of the device is one of the IR."""


class NoSums(Unsupported):
    """There is nothing whose order could be free."""


@dataclass
class AnyOrder:
    """Proves that sums of both sides are equal."""

    proof: Proof
    device: Values
    ir: Values
    compare: Compare
    opened: Opened = field(init=False)
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.opened = Opened(self.proof)

    def numbered(self) -> int:
        """A new number, for names: sums may be tried more than once, and what holds of a try is kept."""
        self.count += 1
        return self.count

    def shared(self, context: Context, name: str, left: Expr, right: Expr) -> tuple[Expr, Expr, list[Expr]]:
        """Two values of a context with symbols for sums that are proved to be equal, and these symbols.

        Raises Unsupported where some sum of folds is not, and NoSums where there is none.  A loop of a few iterations
        is written out where it is not found as it is: each iteration may read what another write stored.  So are
        functions of sums that are not abstract, which may add something to them.
        """
        try:
            return self._shared(context, name, left, right)
        except Split:
            raise
        except Unsupported:
            values = [self.opened.written_out(side, value) for side, value in ((self.device, left), (self.ir, right))]
            opened = _written_out(self.device, values[0]), _written_out(self.ir, values[1])
            if opened[0] is left and opened[1] is right:
                raise
        return self._shared(context, name, *opened)

    def _shared(self, context: Context, name: str, left: Expr, right: Expr) -> tuple[Expr, Expr, list[Expr]]:
        roots = [self.opened.roots(side, value) for side, value in ((self.device, left), (self.ir, right))]
        if not roots[0] and not roots[1]:
            raise NoSums("neither side has a sum")
        if len(roots[0]) != len(roots[1]):
            raise Unsupported(f"{name}: the device has {len(roots[0])} sums of loops where the IR has {len(roots[1])}")
        totals = []
        for number, (a, b) in enumerate(zip(*roots, strict=True), 1):
            operator, other = self.opened.operator(self.device, a), self.opened.operator(self.ir, b)
            if operator is None or other is not operator or a.sort != b.sort:
                raise Unsupported(different_operators((operator, a), (other, b)))
            total = fresh("total.any_order", a.sort)
            rest = self._total(context, f"{name}{', ' if name else ''}sum {number}", operator, (a, b))
            left, right = (
                substitute(value, {root: reduce(operator.reduction.operator, others, total)})
                for value, root, others in zip((left, right), (a, b), rest, strict=True)
            )
            totals.append(total)
        return left, right, totals

    def _total(
        self, context: Context, name: str, operator: Operator, roots: tuple[Expr, Expr]
    ) -> tuple[list[Expr], list[Expr]]:
        """What is left of sums beside the folds that are proved to be equal together, or beside all of their parts."""
        sides = self.device, self.ir
        parts = [self.opened.operands(root, operator) for root in roots]
        folds = [
            [o for o in of if any(n in side.folds for n in postorder([o]))]
            for side, of in zip(sides, parts, strict=True)
        ]
        self.proof.operators.require_free(operator)
        for one, other in dict.fromkeys(((tuple(folds[0]), tuple(folds[1])), (tuple(parts[0]), tuple(parts[1])))):
            if self._equal(context, name, operator, (one, other)):
                rest = [[o for o in of if o not in set(kept)] for of, kept in zip(parts, (one, other), strict=True)]
                return rest[0], rest[1]
        raise Unsupported(f"{name}: the device's summands are not found to be the IR's")

    def _equal(
        self, context: Context, name: str, operator: Operator, terms: tuple[Sequence[Expr], Sequence[Expr]]
    ) -> bool:
        """Whether terms of both sides together are proved to be equal."""
        summands = [
            self.opened.summands(side, context, of, operator)
            for side, of in zip((self.device, self.ir), terms, strict=True)
        ]
        with new_terms():
            matching, problems = _Matching(self, context, name, operator), list[Unsupported]()
            for apart in (False, True):
                try:
                    if matching.equal(summands, apart=apart):
                        return True
                except Split:
                    raise
                except Unsupported as problem:
                    problems.append(problem)
        if problems:
            raise problems[0]
        return False


def _written_out(side: Values, value: Expr) -> Expr:
    """A value with folds of a few literal iterations written out."""
    few = {n: side.folds[n] for n in postorder([value]) if n in side.folds and 1 <= side.folds[n].count <= FEW}
    return substitute(value, {symbol: term for use in few.values() for symbol, term in side.unrolled(use).items()})


@dataclass
class _Matching:
    """Families of both sides' summands, and the questions about them."""

    sums: AnyOrder
    context: Context
    name: str
    operator: Operator
    subscripts: Subscripts = field(default_factory=Subscripts)
    _cases: dict[Summands, list[_Case]] = field(default_factory=dict)
    _summands: dict[int, Summands] = field(default_factory=dict)
    """By the identities of their families, which are kept."""
    _contexts: dict[tuple[object, ...], Context] = field(default_factory=dict)
    """By variables and domains of families, where an arbitrary tuple of them is."""
    _families: list[Family] = field(default_factory=list)
    _hints: Hints = field(init=False)

    def __post_init__(self) -> None:
        self._hints = Hints.of(self.sums.proof.mapping, self.subscripts)

    def equal(self, summands: Sequence[Sequence[Summands]], *, apart: bool) -> bool:
        """Whether bags of both sides are proved to be one; with ``apart`` each case of a summand is a family."""
        one, other = ([f for s in of for f in self._families_of(s, apart)] for of in summands)
        return matched(one, other, self.follows)

    # -- families ------------------------------------------------------------------------------------------

    def _families_of(self, summands: Summands, apart: bool) -> Iterator[Family]:
        """Summands without those of cases that change nothing."""
        cases, done = self._cases_of(summands), list[Expr]()
        kept = cases if len(cases) == 1 else [case for case in cases if not self._is_unit(case)]
        done += [case.condition for case in cases if case not in kept]
        for case in kept if apart else kept[:1]:
            own = all_of([case.condition if apart else true, *(~c for c in done)])
            context = self._where(summands.context, own)
            yield self._family(summands, _Case(context, own, case.value))
            done.append(own)
        if any(case.condition is not true for case in cases):
            meaning = "a summand is in one of the cases, or changes nothing"
            summands.context.theorem("any order", f"{self.name}: cases, {self.sums.numbered()}", any_of(done), meaning)

    def _where(self, context: Context, condition: Expr) -> Context:
        if condition is true or context.proves(condition):
            return context  # in a case, what is read outside of it would be read anew
        return context.where(condition, f"{self.name}: {context.name}, case {self.sums.numbered()}")

    def _is_unit(self, case: _Case) -> bool:
        """Whether a summand changes nothing, proved."""
        unit, name = self.operator.unit, f"{self.name}: a summand, {self.sums.numbered()}"
        return unit is not None and unchanged(self.sums.proof, name, case.value, unit)

    def _cases_of(self, summands: Summands) -> list[_Case]:
        """A summand in cases, in each of which what it is made of is not chosen any more.

        Cases that no sample shows are left out.
        """
        if summands not in self._cases:
            at = [c for c, _ in summands.loops]
            self._cases[summands], pending = [], [(summands.context, true)]
            while pending:
                context, known = pending.pop(0)
                conditions, value = _chosen(summands, context, at)
                if value is not None:
                    self._cases[summands].append(_Case(context, known, value))
                shown = [c for c in conditions if any(v for (v,) in context.samples.evaluate([c]))]
                pending += [(self._where(context, c), known & c) for c in shown]
                if len(pending) + len(self._cases[summands]) > MOST_CASES:
                    raise Unsupported(f"{self.name}: a summand has more than {MOST_CASES} cases")
        return self._cases[summands]

    def _family(self, summands: Summands, case: _Case) -> Family:
        """The summands in a case as a family, whose subscripts are those of what it reads."""
        context = summands.context
        ranges, within_limits = [], list[Expr]()
        for counter, extent in summands.loops:
            parts = minimum_of(extent)  # one of which is the limit, and the other one is a condition
            limit = next((p for p in parts if p.is_const), parts[0] if parts else extent)
            within_limits += [less(counter, extent)] if parts else []
            index = self.subscripts.term(context, context.encoding.term(limit))
            ranges.append((self.subscripts.variable(context, counter), index))
        hint = self._hints.summand(summands, case.value)
        condition, within = self._condition(summands, case, all_of([*within_limits, case.condition]))
        family = Family(tuple(ranges), condition, hint)
        self._families.append(family)
        self._summands[id(family)] = summands
        self._contexts[family.variables, family.domain] = within
        return family

    def _condition(self, summands: Summands, case: _Case, condition: Expr) -> tuple[Term, Context]:
        """A condition that holds in a case, and the context where it holds."""
        context = summands.context
        stated = context.encoding.term(condition)
        context.proof.fits(context.encoding, f"{context.name}: condition")
        counters = {context.encoding.symbol(c) for c, _ in summands.loops}
        digits = by_digits(case.context, f"{self.name}: digits, {self.sums.numbered()}", stated, counters)
        holds = self.subscripts.truth(context, digits)
        if digits is stated:
            return holds, case.context
        return holds, case.context.where(self.subscripts.condition(holds), f"{case.context.name}, by digits")

    # -- questions -----------------------------------------------------------------------------------------

    def follows(self, goal: Goal) -> bool:
        """Whether a goal is a theorem; then it is recorded."""
        name = f"{self.name}: {goal.meaning}, {self.sums.numbered()}"
        if goal.piece is not None:
            return self._same_summands(goal, name)
        context = self._contexts[goal.places[0], goal.hypotheses[0]]
        claim = self.subscripts.condition(goal.goal)
        if claim is true:
            return True
        if not all(v for (v,) in context.samples.evaluate([claim])) or not context.proves(claim):
            return False
        context.theorem("any order", name, claim, f"{goal.meaning}, in a sum of the device and one of the IR")
        return True

    def _same_summands(self, goal: Goal, name: str) -> bool:
        piece = goal.piece
        assert piece is not None
        one, other = (self._summands[id(f)] for f in (piece.one, piece.other))
        context = self._contexts[piece.one.variables, piece.one.domain]
        # where there is but one piece, its condition is a theorem
        image = piece.other.at(piece.forwards, piece.other.condition)
        for condition in (image, *goal.hypotheses[1:]):
            context = self._where(context, self.subscripts.condition(condition))
        here: Sequence[Expr] = [c for c, _ in one.loops]
        there = [resize(self.subscripts.index(t), 32) for t in piece.forwards]

        def same(case: Context, case_name: str) -> None:
            self.sums.compare(case, case_name, one.value(case, here), other.value(case, there))

        in_cases(context, name, same)
        return True


@dataclass(frozen=True, eq=False)
class _Case:
    """A summand in a context, with what is assumed there beside what holds in the one that it is a case of."""

    context: Context
    condition: Expr
    value: Expr


def _chosen(summands: Summands, context: Context, at: Sequence[Expr]) -> tuple[Sequence[Expr], Expr | None]:
    """What a summand is in a context; conditions of which one holds, where it is chosen by these."""
    try:
        value = summands.value(context, at)
    except Split as split:
        if split.context is not context:
            raise
        return split.conditions, None
    choice = choice_in(context, value)
    return ((), value) if choice is None else ((choice, ~choice), None)
