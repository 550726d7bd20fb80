"""Whether a condition follows from others: by cases, by folds that are equal step by step, and by the ladder of floats.

Every answer of the solvers that a proof rests on is an obligation.  The answers decide the form of a proof, so they are
written down as a list of Booleans; with that list the same obligations are written again without asking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import prod

from chc.bijections.matching import proved
from chc.bijections.pieces import pieces
from chc.bijections.reductions import Reductions
from chc.bijections.theorem import Goal
from ir_semantics.elements.bags import Family, Operator
from ir_semantics.elements.binders import (
    Fold,
    Loop,
    instance,
    loop_of,
    opened_array,
    opened_every,
    opened_fold,
    outside_binders,
    rebuilt,
    substitute,
)
from ir_semantics.elements.folds import linear_in
from ir_semantics.elements.operators import (
    apply,
    both,
    conjuncts,
    either,
    equal,
    inside,
    minus,
    negation,
    of_polynomial,
    polynomial,
    same,
    times,
)
from ir_semantics.elements.terms import Term, fresh, integer_value, is_true, number, truth, variable_of
from ir_semantics.mlir.semantics.tensor import digits, linear
from ir_semantics.tensors.index import Index
from smt_encodings.claims import Interpretation, Obligation
from smt_encodings.discharge import PATIENCE, Discharger, NotDischarged
from smt_encodings.interpretations import CannotInterpret
from smt_encodings.solvers import z3 as solver_z3

from .encode import Question, question
from .lockstep import Lockstep
from .products import products

FEW = 64
"""A condition of at most so many tuples is used of all of them."""

Ladder = tuple[Interpretation, ...]
COARSE: Ladder = (Interpretation.UNINTERPRETED, Interpretation.ABSTRACT_FLOAT, Interpretation.BITS)
FINE: Ladder = (*COARSE, Interpretation.IEEE)
SECONDS = {
    Interpretation.UNINTERPRETED: 5.0,
    Interpretation.ABSTRACT_FLOAT: 10.0,
    Interpretation.BITS: 10.0,
    Interpretation.IEEE: 5.0,
}
"""Seconds per solver."""
LOOK = 5.0
"""Seconds of z3 for a question that nothing is proved by."""
MOST_IEEE = 40
"""Terms with more operators on floats are not put to solvers with IEEE arithmetic, which does not end on them."""


@dataclass
class Prover:
    """Asks solvers, or (with ``answers``) takes answers that were written down; what it asks is of one claim.

    ``taken`` are the answers so far, ``used`` the interpretations that sufficed; ``tried`` gets models of questions
    whose goal does not follow.
    """

    discharger: Discharger
    subject: str
    answers: Sequence[bool] | None = None
    floats_are_symbols: bool = False
    tried: Callable[[Question, Mapping[str, int]], None] = lambda _, __: None
    taken: list[bool] = field(default_factory=list)
    used: dict[Interpretation, None] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    _pairs: dict[tuple[Loop, Loop, tuple[Term, ...]], bool] = field(default_factory=dict)
    _steps_known: dict[tuple[Loop, Loop, tuple[Term, ...], tuple[Term, ...]], bool] = field(default_factory=dict)
    _equal: dict[tuple[Term, Term, tuple[Term, ...]], bool] = field(default_factory=dict)
    _laws: dict[tuple[Operator, str], bool] = field(default_factory=dict)

    def follows(
        self,
        meaning: str,
        hypotheses: Sequence[Term],
        goal: Term,
        at: Sequence[Sequence[Term]] = (),
        ladder: Ladder = FINE,
    ) -> bool:
        """Whether a goal follows; ``at`` are tuples of values for which conditions of every tuple are used."""
        known = list(conjuncts(hypotheses))
        goals = [g for g in conjuncts([goal]) if g not in known]
        plain = []
        for each in goals:
            others, whole = _unless(each)
            if whole is not None:
                if not self.follows(meaning, [*known, *others], whole, at, ladder):
                    return False
            elif each.op != "every":
                plain.append(each)
            else:
                variables, extents, condition = opened_every(each)
                ranges = [inside(v, e) for v, e in zip(variables, extents, strict=True)]
                if not self.follows(meaning, [*known, *ranges], condition, [*at, variables], ladder):
                    return False
        return not plain or self._plain(meaning, known, both(*plain), at, ladder)

    def _plain(
        self, meaning: str, hypotheses: Sequence[Term], goal: Term, at: Sequence[Sequence[Term]], ladder: Ladder
    ) -> bool:
        if self.floats_are_symbols:
            goal = self._sorted(goal)
        known = [*hypotheses, *_instances(hypotheses, goal, at)]
        known += [] if _has_data(goal) else products(known, goal)
        if self._asked(meaning, [*known, *_laws([*known, goal])], goal, {}, ladder[:1]):
            return True
        lockstep = self._lockstep(meaning, at)
        goal = lockstep.joined(goal, hypotheses)
        if is_true(goal) or lockstep.by_start(goal, hypotheses):
            return True
        goal = self._reductions(meaning, at).replaced(goal, hypotheses)
        if is_true(goal):
            return True
        classes = self._classes(meaning, known, goal, at)
        laws = _laws([*known, goal])
        return self._asked(meaning, [*known, *laws], goal, classes, ladder if classes else ladder[1:])

    def joined(self, meaning: str, hypotheses: Sequence[Term], goal: Term, at: Sequence[Term]) -> Term:
        """A goal in which folds at the same place that are proved to be equal are one."""
        return self._lockstep(meaning, [at]).joined(goal, list(conjuncts(hypotheses)))

    def look(self, meaning: str, hypotheses: Sequence[Term], goal: Term) -> None:
        """Asks z3 alone where a goal is false, with the meaning of bits and of floats; nothing is proved by this."""
        is_float = any(t.kind.family == "float" for root in (*hypotheses, goal) for t in outside_binders(root))
        if is_float and self.floats_are_symbols:
            return
        interpretation = Interpretation.IEEE if is_float else Interpretation.BITS
        try:
            asked = question(hypotheses, goal, interpretation, {}, f"{self.subject}: {meaning}", converts=True)
        except CannotInterpret:
            return
        seconds = min(self.discharger.timeout, LOOK)
        answer = solver_z3.check(asked.script, seconds, PATIENCE, alone=solver_z3.FIRST_ATTEMPT)
        if answer.status == "sat":
            self.tried(asked, answer.model)

    def alike(self) -> bool:
        """Asks the one question that is left where both sides are one term: whether true is true."""
        return self._answer("both functions have one normal form", (), truth(True), {}, Interpretation.UNINTERPRETED)

    # -- reductions whose order is free ------------------------------------------------------------------------

    def _reductions(self, meaning: str, at: Sequence[Sequence[Term]]) -> Reductions:
        return Reductions(partial(self._goal, meaning, at), self._is_free, self._equal)

    def _lockstep(self, meaning: str, at: Sequence[Sequence[Term]]) -> Lockstep:
        def asked(text: str, hypotheses: Sequence[Term], goal: Term, variables: Sequence[Term]) -> bool:
            known = [*hypotheses, *_instances(hypotheses, goal, [*at, variables])]
            return self._asked(_within(meaning, text), [*known, *_laws([*known, goal])], goal, {}, COARSE)

        def follows(text: str, hypotheses: Sequence[Term], goal: Term, variables: Sequence[Term]) -> bool:
            return self.follows(_within(meaning, text), hypotheses, goal, [*at, variables], COARSE)

        return Lockstep(asked, follows, self._is_free, self._holds, self._steps_known)

    def _goal(self, meaning: str, at: Sequence[Sequence[Term]], goal: Goal, hypotheses: Sequence[Term]) -> bool:
        """Whether something follows that makes of a guess a proof."""
        text, known = _within(meaning, goal.meaning), [*hypotheses, *goal.hypotheses]
        of_indices = not _has_data(goal.goal) and not is_true(goal.goal)  # most need no other hypotheses
        if of_indices and self._answer(text, goal.hypotheses, goal.goal, {}, Interpretation.UNINTERPRETED):
            return True
        return self.follows(text, known, goal.goal, [*at, *goal.places], COARSE)

    def _is_free(self, operator: Operator) -> bool:
        """Whether an operator is associative and commutative on all values, or taken to be."""
        if operator.name == "add" and operator.kind.family == "float":
            return self.floats_are_symbols
        a, b, c = (fresh(name, operator.kind) for name in "abc")

        def of(x: Term, y: Term) -> Term:
            return apply(operator.name, x, y)

        unit = truth(True) if operator.unit is None else same(of(operator.unit, a), a)
        law = both(same(of(of(a, b), c), of(a, of(b, c))), unit)
        return self._commutes(operator) and self._holds(operator, "is associative, and has its unit", law)

    def _commutes(self, operator: Operator) -> bool:
        a, b = (fresh(name, operator.kind) for name in "ab")
        law = same(apply(operator.name, a, b), apply(operator.name, b, a))
        return self._holds(operator, "is commutative", law)

    def _holds(self, operator: Operator, text: str, law: Term) -> bool:
        """Whether a law holds of an operator on all values: of words on bits, of floats by IEEE 754."""
        key = operator, text
        if key not in self._laws:
            is_float = operator.kind.family == "float"
            ladder = (Interpretation.ABSTRACT_FLOAT, Interpretation.IEEE) if is_float else COARSE[-1:]
            words = f"{operator.name} of {operator.kind} {text}"
            self._laws[key] = any(self._answer(words, (), law, {}, i) for i in ladder)
        return self._laws[key]

    def _sorted(self, goal: Term) -> Term:
        """A goal in which products of floats have their factors in one order."""

        def changed(_: Term, new: Term) -> Term:
            is_product = new.op == "mul" and new.kind.family == "float"
            if not is_product or new.args[0].number < new.args[1].number:
                return new
            return apply("mul", *new.args[::-1]) if self._commutes(Operator("mul", new.kind)) else new

        return rebuilt(goal, lambda _: True, changed)

    # -- folds -----------------------------------------------------------------------------------------------

    def _classes(
        self, meaning: str, hypotheses: Sequence[Term], goal: Term, at: Sequence[Sequence[Term]]
    ) -> dict[Loop, Loop]:
        """Folds of a goal that are equal from equal starts, with one of each class."""
        folds = [t for t in outside_binders(goal) if t.op in ("fold", "array")]
        classes: dict[Loop, Loop] = {}
        for k, a in enumerate(folds):
            for b in folds[k + 1 :]:
                first, second = loop_of(a), loop_of(b)
                known = classes.get(first, first)
                if a.op != b.op or a.kind != b.kind or known == classes.get(second, second):
                    continue
                key = (first, second, tuple(hypotheses))
                if key not in self._pairs:
                    self._pairs[key] = self._alike(meaning, hypotheses, a, b, at)
                if self._pairs[key]:
                    classes[first], classes[second] = known, known
        return classes

    def _alike(self, meaning: str, hypotheses: Sequence[Term], a: Term, b: Term, at: Sequence[Sequence[Term]]) -> bool:
        """Whether two folds take the same steps in the same order, or two whole tensors are the same."""
        return (self._steps if a.op == "fold" else self._elements)(meaning, hypotheses, a, b, at)

    def _elements(
        self, meaning: str, hypotheses: Sequence[Term], a: Term, b: Term, at: Sequence[Sequence[Term]]
    ) -> bool:
        """Whether two whole tensors have the same shape, and the same elements where these are defined."""
        text = _within(meaning, "operands of calls are the same")
        (variables, extents, value, defined), (others, sizes, other, also) = opened_array(a), opened_array(b)
        shapes = both(*(equal(x, y) for x, y in zip(extents, sizes, strict=True)))
        if not self.follows(text, hypotheses, shapes, at, COARSE[:1]):
            return False
        here = {variable_of(o): v for o, v in zip(others, variables, strict=True)}
        goal = both(same(value, substitute(other, here)), same(defined, substitute(also, here)))
        ranges = [inside(v, e) for v, e in zip(variables, extents, strict=True)]
        return self.follows(text, [*hypotheses, *ranges], goal, [*at, variables])

    def _steps(self, meaning: str, hypotheses: Sequence[Term], a: Term, b: Term, at: Sequence[Sequence[Term]]) -> bool:
        """Whether two folds take the same steps in the same order."""
        one, other = opened_fold(a), opened_fold(b)
        text = _within(meaning, "folds have the same steps")
        for extents, values in self._matchings(text, hypotheses, one, other):
            step = other.after(one.accumulator, values)
            ranges = [inside(v, e) for v, e in zip(one.variables, extents, strict=True)]
            places = [*at, one.variables, values]
            if self.follows(text, [*hypotheses, *ranges], same(one.step, step), places):
                return True
        return self._steps_in_another_order(text, hypotheses, one, other, at)

    def _steps_in_another_order(
        self, meaning: str, hypotheses: Sequence[Term], one: Fold, other: Fold, at: Sequence[Sequence[Term]]
    ) -> bool:
        """Whether two folds take the same steps, of which any two may change places, whatever the accumulator is."""
        first = Family(tuple(zip(one.variables, one.extents, strict=True)), truth(True), one.step)
        ranges = tuple(zip(other.variables, other.extents, strict=True))
        second = Family(ranges, truth(True), other.after(one.accumulator, other.variables))

        def follows(goal: Goal) -> bool:
            return self._goal(meaning, at, goal, hypotheses)

        if not any(proved([first], [second], [p], follows) for p in pieces(first, second)):
            return False
        there = [fresh("there", v.kind) for v in one.variables]
        swapped = same(one.after(one.step, there), one.after(one.after(one.accumulator, there), one.variables))
        inside_both = [inside(v, e) for at in (one.variables, there) for v, e in zip(at, one.extents, strict=True)]
        places = [*at, one.variables, there]
        return self.follows(
            _within(meaning, "they may change places"), [*hypotheses, *inside_both], swapped, places, COARSE
        )

    def _matchings(
        self, meaning: str, hypotheses: Sequence[Term], one: Fold, other: Fold
    ) -> Iterator[tuple[Sequence[Term], Sequence[Term]]]:
        """The extents of one fold, and values of the other's variables at the same place in the order."""
        text = _within(meaning, "ranges are as long")
        if len(one.extents) == len(other.extents):
            alike = both(*(equal(x, y) for x, y in zip(one.extents, other.extents, strict=True)))
            if is_true(alike) or self.follows(text, hypotheses, alike, (), COARSE[:1]):
                yield one.extents, one.variables
                return
        total = equal(times(*one.extents), times(*other.extents))
        if is_true(total) or self.follows(text, hypotheses, total, (), COARSE[:1]):
            place = linear(one.variables, one.extents)
            yield one.extents, digits(place, other.extents)

    # -- solvers ---------------------------------------------------------------------------------------------

    def _asked(
        self, meaning: str, hypotheses: Sequence[Term], goal: Term, classes: dict[Loop, Loop], ladder: Ladder
    ) -> bool:
        for interpretation in ladder:
            if not _applies(interpretation, [*hypotheses, goal]):
                continue
            if self.floats_are_symbols and interpretation in (Interpretation.ABSTRACT_FLOAT, Interpretation.IEEE):
                continue
            if (_has_data(goal) or not hypotheses) and self._answer(meaning, (), goal, classes, interpretation):
                return True  # most equalities of data need no hypothesis, and solvers are faster without
            if hypotheses and self._answer(meaning, hypotheses, goal, classes, interpretation):
                return True
        return False

    def _answer(
        self,
        meaning: str,
        hypotheses: Sequence[Term],
        goal: Term,
        classes: dict[Loop, Loop],
        interpretation: Interpretation,
    ) -> bool:
        """The answer to one question, asked or taken from those that were written down."""
        known = self.answers is None or (len(self.taken) < len(self.answers) and self.answers[len(self.taken)])
        proved = known and self._ask(meaning, hypotheses, goal, classes, interpretation)
        self.taken.append(proved)
        if proved:
            self.used[interpretation] = None
        return proved

    def _ask(
        self,
        meaning: str,
        hypotheses: Sequence[Term],
        goal: Term,
        classes: dict[Loop, Loop],
        interpretation: Interpretation,
    ) -> bool:
        try:
            asked = question(hypotheses, goal, interpretation, classes, f"{self.subject}: {meaning}")
        except CannotInterpret as error:
            self.reasons.append(f"{interpretation.value}: {error}")
            return False
        name = f"question {len(self.taken) + 1}: {meaning}"
        obligation = Obligation(name, "refinement", asked.script, "unsat", meaning)
        patience = min(self.discharger.timeout, SECONDS[interpretation])
        own = replace(self.discharger, obligations=[], _pending=[], timeout=patience)
        try:
            own.ask_text(obligation)
        except NotDischarged as failed:
            answer = failed.obligation.answers[-1]
            self.reasons.append(f"{interpretation.value}: {meaning}: {answer.solver} says {answer.status}")
        else:
            self.discharger.obligations += own.obligations
            self.assumptions |= dict.fromkeys(asked.assumptions)
            return True
        if answer.status == "sat":
            self.tried(asked, answer.model)
        return False


def _within(meaning: str, text: str) -> str:
    """What a question is about, inside of what another one is about; it is said once, however deep folds nest."""
    return meaning if text in meaning.split(": ") else f"{meaning}: {text}"


def _unless(goal: Term) -> tuple[list[Term], Term | None]:
    """A goal that says *one of these does not hold, or all tuples have a property*: these, and the property."""
    parts = list(conjuncts([negation(goal)])) if goal.op == "not" else []
    wholes = [p for p in parts if p.op == "not" and p.args[0].op == "every"]
    return ([p for p in parts if p is not wholes[0]], wholes[0].args[0]) if wholes else ([], None)


def _has_data(goal: Term) -> bool:
    """Whether a goal speaks of anything but integers."""
    return any(t.kind.family not in ("int", "boolean", "array") for t in outside_binders(goal))


def _applies(interpretation: Interpretation, terms: Sequence[Term]) -> bool:
    """Whether an interpretation says more of some terms than the one before it."""
    if interpretation is Interpretation.UNINTERPRETED:
        return True
    families = {t.kind.family for root in terms for t in outside_binders(root)}
    if interpretation is Interpretation.BITS:
        return "float" not in families and "integer" in families
    if interpretation is Interpretation.IEEE and "float" in families:
        return sum(t.kind.family == "float" and bool(t.args) for r in terms for t in outside_binders(r)) <= MOST_IEEE
    return "float" in families


def _instances(hypotheses: Sequence[Term], goal: Term, at: Sequence[Sequence[Term]]) -> list[Term]:
    """What conditions of every tuple say of given tuples."""
    instances: dict[Term, None] = {}
    for each in hypotheses:
        if each.op == "every":
            places = [*at, *_all_places(each), *_read_at(each, [*hypotheses, goal]), *_compared_at(each, goal)]
            instances |= {instance(each, values): None for values in places if len(values) == len(each.args) - 1}
    return list(instances)


def _all_places(condition: Term) -> list[tuple[Term, ...]]:
    """All tuples of a condition of every tuple, where these are few."""
    sizes = [integer_value(e) for e in condition.args[:-1]]
    known = [n for n in sizes if n is not None]
    if len(known) < len(sizes) or prod(known) > FEW:
        return []
    return [tuple(map(number, at)) for at in product(*map(range, known))]


def _read_at(condition: Term, terms: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Tuples at which terms read what a condition of every tuple reads at its variables."""
    variables, _, body = opened_every(condition)
    places: dict[tuple[Term, ...], None] = {}
    reads = [t for root in terms for t in outside_binders(root) if t.op == "read"]
    for pattern in outside_binders(body):
        if pattern.op == "read" and set(variables) <= set(pattern.args):
            for other in reads:
                if other.payload is pattern.payload:
                    at = dict(zip(pattern.args, other.args, strict=True))
                    places[tuple(at[v] for v in variables)] = None
    return list(places)


def _compared_at(condition: Term, goal: Term) -> list[tuple[Term, ...]]:
    """Values at which a comparison of every tuple is one of the goal, such as that an element is inside of a block."""
    variables, _, body = opened_every(condition)
    if body.op != "le" or integer_value(body.args[0]) != 0:
        return []
    rest, factors = body.args[1], {}
    for variable in variables:
        if variable_of(variable) in rest.symbols:
            found = linear_in(rest, variable)
            if found is None or len(found[0].terms) != 1:
                return []
            factors[variable], rest = found[0], of_polynomial(found[1])
    parts = (p for g in conjuncts([goal]) for p in ([g] if g.op != "not" else map(negation, conjuncts(g.args))))
    goals = (p for p in parts if p.op == "le" and integer_value(p.args[0]) == 0)
    found_at = (_values_of(factors, polynomial(minus(g.args[1], rest))) for g in goals)
    return [tuple(at.get(v, number(0)) for v in variables) for at in found_at if at is not None]


def _values_of(factors: Mapping[Term, Index], whole: Index) -> dict[Term, Term] | None:
    """Values of variables whose products with factors, each of one term, give a sum; None where none are seen."""
    values = {}
    for variable in sorted(factors, key=lambda v: _size(factors[v]), reverse=True):
        ((monomial, coefficient),) = factors[variable].terms
        value = Index({})
        for term, count in whole.terms:
            left = Counter(term)
            left.subtract(monomial)
            if count % coefficient == 0 and min(left.values(), default=0) >= 0:
                value += Index({tuple(left.elements()): count // coefficient})
        whole -= value * factors[variable]
        values[variable] = of_polynomial(value)
    return values if whole == Index({}) else None


def _size(factor: Index) -> tuple[int, int]:
    """Of strides that of outer dimensions is larger: it has more sizes, or a larger number."""
    ((monomial, coefficient),) = factor.terms
    return len(monomial), abs(coefficient)


def _laws(terms: Sequence[Term]) -> list[Term]:
    """What folds over ranges of unknown length are where these are empty, or have one element."""
    laws = []
    for term in dict.fromkeys(t for root in terms for t in outside_binders(root) if t.op == "fold"):
        extents = term.args[1:-1]
        if all(integer_value(e) is not None for e in extents):
            continue
        opened = opened_fold(term)
        none = either(*(equal(e, number(0)) for e in extents))
        single = both(*(equal(e, number(1)) for e in extents))
        only = opened.after(opened.start, [number(0)] * len(extents))
        laws += [either(negation(none), same(term, opened.start)), either(negation(single), same(term, only))]
    return laws
