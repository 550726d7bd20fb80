"""The laws.  Each function checks that a step is an instance of its law, and asks for the side conditions.

Every law holds in every notion of equality unless it says otherwise: *reals* (``over_reals``), *sums* (``over_reals``
and ``up_to_reduction_order``: addition is a commutative monoid whose unit is the sum of nothing).  In the laws, H are
the hypotheses of a step; a premise may have fewer.  No variable is free and bound in one step (:mod:`.replay`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import (
    FALSE,
    Condition,
    both,
    either,
    equal,
    inside,
    le,
    negation,
    rebuild_condition,
    substitute_condition,
)
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, Quotient

from .forms import NOTHING, UNIT, Forms, Product, Ranges, opened, within
from .indices import simplified
from .steps import Step, need, replaced, variable

__all__ = ["LAWS", "has_digits"]

Law = Callable[[Forms, Step, Element], None]
LAWS: dict[str, Law] = {}
COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum"})


def law(check: Callable[[Forms, Step, Element], None]) -> Law:
    """Registers a law under its name."""
    LAWS[check.__name__.replace("_", " ")] = check
    return check


def _premise(step: Step, position: int, left: Element, right: Element, *more: Condition) -> None:
    """The premise says ``left = right`` under the step's hypotheses and ``more``."""
    given = step.premises[position]
    allowed = extended(step.hypotheses, *more)
    need(given.left == left and given.right == right, "a premise must be about the parts of the step")
    need(all(h in allowed for h in given.hypotheses), "a premise must not have other hypotheses")


# -- equality ---------------------------------------------------------------------------------------


@law
def same(forms: Forms, step: Step, right: Element) -> None:
    """a = a."""
    need(step.left == right, "both sides must be the same")


@law
def chain(forms: Forms, step: Step, right: Element) -> None:
    """a = b and b = c give a = c, and a = b gives b = a; ``data`` says which premises are read backwards."""
    current = step.left
    for position, (given, backwards) in enumerate(zip(step.premises, step.data, strict=True)):
        assert given.right is not None
        _premise(step, position, given.left, given.right)
        start, end = (given.right, given.left) if backwards else (given.left, given.right)
        need(current == start, "equations must follow each other")
        current = end
    need(current == right, "equations must lead to the right side")


@law
def parts(forms: Forms, step: Step, right: Element) -> None:
    """Equal parts make equal wholes; a side of a choice under its condition, a body within its range."""
    premises = iter(range(len(step.premises)))

    def agree(a: Element, b: Element, *more: Condition) -> None:
        if a != b:
            _premise(step, next(premises, len(step.premises)), a, b, *more)

    match step.left, right:
        case Apply(op, args), Apply(other, others) if op == other and len(args) == len(others):
            for a, b in zip(args, others, strict=True):
                agree(a, b)
        case Choice(condition, yes, no), Choice(other, b, c) if condition == other:
            agree(yes, b, condition)
            agree(no, c, negation(condition))
        case Reduce(op, name, extent, body), Reduce(other, also, n, b) if (op, name, extent) == (other, also, n):
            agree(body, b, inside(variable(name), extent))
        case _:
            need(False, "both sides must have one form")


@law
def cases(forms: Forms, step: Step, right: Element) -> None:
    """a = b where it holds in each of several cases, of which one always holds."""
    for position, case in enumerate(step.data):
        _premise(step, position, step.left, right, case)
    forms.ask(step.hypotheses, either(*step.data), "one of the cases holds")


@law
def absurd(forms: Forms, step: Step, right: Element) -> None:
    """Anything is equal under hypotheses that exclude each other."""
    forms.ask(step.hypotheses, FALSE, "there is no such point")


# -- indices ----------------------------------------------------------------------------------------


@law
def known_quotients(forms: Forms, step: Step, right: Element) -> None:
    """Quotients replaced by what they are (:mod:`.indices`) in the element's own indices."""
    tape = iter(step.data)

    def known(quotient: Quotient) -> int | None:
        shift: int | None = next(tape, None)
        if shift is not None:
            rest = quotient.dividend - shift * quotient.divisor
            forms.ask(step.hypotheses, inside(rest, quotient.divisor), f"{quotient.key} is {shift}")
        return shift

    def new(value: Index) -> Index:
        return simplified(value, known)

    match step.left:
        case Read(name, at):
            found: Element = Read(name, tuple(map(new, at)))
        case IndexValue(value):
            found = IndexValue(new(value))
        case Choice(condition, yes, no):
            found = Choice(rebuild_condition(condition, new), yes, no)
        case Reduce(op, name, extent, body):
            found = Reduce(op, name, new(extent), body)
        case _:
            found = step.left
    need(found == right, "the right side must have the simplified indices")


@law
def equal_indices(forms: Forms, step: Step, right: Element) -> None:
    """Elements that differ in their own subscripts, number or extent only are equal where these are."""
    match step.left, right:
        case Read(name, a), Read(other, b) if name == other and len(a) == len(b):
            pairs = list(zip(a, b, strict=True))
        case IndexValue(i), IndexValue(j):
            pairs = [(i, j)]
        case Reduce(op, name, i, body), Reduce(other, also, j, b) if (op, name, body) == (other, also, b):
            pairs = [(i, j)]
        case _:
            pairs = []
    need(bool(pairs) or step.left == right, "both sides must differ in their own indices only")
    forms.ask(step.hypotheses, both(*(equal(i, j) for i, j in pairs)), "the indices are equal")


@law
def renamed(forms: Forms, step: Step, right: Element) -> None:
    """A bound variable may have any new name."""
    left = step.left
    assert isinstance(left, Reduce) and isinstance(right, Reduce)
    body = replaced(left.body, {left.variable: variable(right.variable)})
    need(right == Reduce(left.op, right.variable, left.extent, body), "the right side must be renamed")


@law
def chosen(forms: Forms, step: Step, right: Element) -> None:
    """A choice is the side whose condition (or its negation) follows from H."""
    choice = step.left
    assert isinstance(choice, Choice)
    need(right == (choice.yes if step.data else choice.no), "the right side must be that side")
    goal = choice.condition if step.data else negation(choice.condition)
    forms.ask(step.hypotheses, goal, f"always {goal}")


@law
def digits(forms: Forms, step: Step, right: Element) -> None:
    """A sum (*sums*) or extremum over v < n is one over v = high * d + low, high < n // d, low < d."""
    (divisor, high, low), left = step.data, step.left
    assert isinstance(left, Reduce)
    need(left.op != "sum" or forms.monoid, "a reduction whose order does not matter")
    has_digits(forms, step.hypotheses, (left.variable, left.extent), divisor, (high, low))
    body = replaced(left.body, {left.variable: variable(high) * divisor + variable(low)})
    inner = Reduce(left.op, low, divisor, body)
    need(right == Reduce(left.op, high, left.extent // divisor, inner), "the reduction over two digits")


def has_digits(forms: Forms, at: Hypotheses, ranged: tuple[str, Index], divisor: Index, names: tuple[str, str]) -> None:
    """A range is that of the numbers of two digits.

    Each of its numbers v has digits, v // d and v mod d, in the digits' ranges; and d * (n // d) is no more than n.
    """
    (name, extent), (high, low) = ranged, names
    share, digit = extent // divisor, Index({(Quotient(variable(name), divisor),): 1})
    need(high != low, "digits must have names of their own")
    meaning = f"{name} < {extent} are the numbers of two digits below {share} and {divisor}"
    there = both(inside(digit, share), inside(variable(name) - divisor * digit, divisor))
    forms.ask(within(at, [(name, extent)], ()), there, meaning)


# -- arithmetic -------------------------------------------------------------------------------------


@law
def sums_of_products(forms: Forms, step: Step, right: Element) -> None:
    """*Sums*: two elements are equal that are the same sum of products under guards (:class:`.forms.Forms`).

    ``data`` names variables whose sums are written out, and (*reals*) those that multiply by their extent.
    """
    written_out, counted = map(frozenset, step.data or ((), ()))
    form = replace(forms, written_out=written_out, counted=counted)
    need(form.merged(step.left, step.hypotheses) == form.merged(right, step.hypotheses), "the sums must be the same")


@law
def exchanged(forms: Forms, step: Step, right: Element) -> None:
    """The operands of an addition or multiplication may change places (of floats, too: one NaN)."""
    assert isinstance(step.left, Apply)
    need(step.left.op in COMMUTATIVE and right == Apply(step.left.op, step.left.args[::-1]), "exchanged operands")


@law
def sides_of_choices(forms: Forms, step: Step, right: Element) -> None:
    """Choices are equal that have the same element wherever both of their conditions hold."""
    for (guard, a), (other, b) in itertools.product(_leaves(step.left), _leaves(right)):
        if a != b and not _exclusive(guard, other, step.hypotheses):
            forms.ask(extended(step.hypotheses, *guard, *other), FALSE, "these sides are never chosen together")


def _leaves(element: Element, guard: tuple[Condition, ...] = ()) -> Iterable[tuple[tuple[Condition, ...], Element]]:
    if isinstance(element, Choice):
        yield from _leaves(element.yes, (*guard, element.condition))
        yield from _leaves(element.no, (*guard, negation(element.condition)))
    else:
        yield guard, element


def _exclusive(guard: tuple[Condition, ...], other: tuple[Condition, ...], at: Hypotheses) -> bool:
    """Whether a condition and its negation are among some."""
    known = extended(at, *guard, *other)
    return any(all(p in known for p in extended((), negation(c))) for c in (*guard, *other))


@law
def exponential(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: exp(n*a + m*b) = exp(a)^n * exp(b)^m; a must be finite where n < 0, as exp(-inf) = 0."""
    assert isinstance(step.left, Apply)
    need(step.left.op == "exp", "exp of a sum of real numbers")
    summands: list[Product] = []
    powers: dict[Element, int] = {}
    for root, n in step.data:
        summands += [p._replace(coefficient=c * n) for p, c in forms.merged(root, step.hypotheses).items()]
        need(n > 0 or forms.finite(root, step.hypotheses), f"{root} must be finite")
        power = Apply("exp", (root,))
        need(power not in powers, "each exponential once")
        powers[power] = n
    found = forms.collected(summands, step.hypotheses)
    need(found == forms.merged(step.left.args[0], step.hypotheses), "the exponents must add up")
    terms = forms.terms(right, step.hypotheses)
    need(len(terms) == 1 and terms[0].simple and terms[0].coefficient == 1, "one product")
    need(dict(terms[0].powers) == powers, "the product of these exponentials")


@law
def exponential_of_minus_infinity(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: exp(-inf) = 0."""
    need(forms.ring and step.left == Apply("exp", (UNIT["max"],)) and right == Number(Fraction(0)), "exp(-inf) = 0")


@law
def infinite_summand(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: finite numbers and one infinity times positive numbers add up to that infinity."""
    need(forms.ring, "over the reals only")
    terms = forms.terms(step.left, step.hypotheses)
    (infinite,) = [p for p in terms if any(_infinity(factor) for factor, _ in p.powers)]
    need(infinite.simple, "the infinity must be there")
    forms.regular([p for p in terms if p is not infinite], step.hypotheses)
    sign = 1.0 if infinite.coefficient > 0 else -1.0
    for factor, n in infinite.powers:
        if _infinity(factor) and n == 1 and isinstance(factor, Number):
            sign *= float(factor.value)
        else:
            need(forms.positive(factor, step.hypotheses), f"{factor} must be positive")
    need(right == Number(sign), "the right side must be that infinity")


def _infinity(element: Element) -> bool:
    return isinstance(element, Number) and isinstance(element.value, float) and math.isinf(element.value)


# -- reductions -------------------------------------------------------------------------------------


@law
def bijection(forms: Forms, step: Step, right: Element) -> None:
    """*Sums*: sums are equal whose summands correspond one to one, equal ones to each other.

    ``data`` are summands of the left and right side (other summands are common to both) and pieces (a, b, f, g): maps
    between the bound variables of summand a and b.  Let P be the points x of a for which f(x) is a point of b and
    g(f(x)) = x, and Q the points y of b with g(y) in a and f(g(y)) = y.  f is a bijection from P to Q.  The sets P of
    all pieces must partition the points of a, the sets Q those of b, and a premise of each piece is a(x) = b(f(x)).
    """
    lefts, rights, pieces = step.data
    need(forms.monoid, "addition is neither commutative nor associative here")
    _common(forms, step.hypotheses, (step.left, lefts), (right, rights))
    unit: Element = Number(Fraction(0)) if forms.ring else NOTHING
    a, b = ([opened("sum", e, unit) for e in side] for side in (lefts, rights))
    points: tuple[list[list[Condition]], list[list[Condition]]] = [[] for _ in a], [[] for _ in b]
    for position, (i, j, f, g) in enumerate(pieces):
        (bound, guard, body), (other, there, image) = a[i], b[j]
        own, others = {v for v, _ in bound}, {v for v, _ in other}
        for values, mine, theirs in ((f, own, others), (g, others, own)):
            strange = frozenset().union(*(e.variables for e in values.values())) & (theirs - mine)
            need(not strange, f"a map must not depend on {sorted(strange)}")
        p = both(_point(other, there, f), *(equal(g[v].substitute(f), variable(v)) for v, _ in bound))
        q = both(_point(bound, guard, g), *(equal(f[v].substitute(g), variable(v)) for v, _ in other))
        _premise(step, position, body, replaced(image, f), *_ranges(bound), guard, p)
        _divisors(forms, within(step.hypotheses, bound, [guard]), f)
        _divisors(forms, within(step.hypotheses, other, [there]), g)
        points[0][i].append(p)
        points[1][j].append(q)
    for side, found, name in ((a, points[0], "left"), (b, points[1], "right")):
        for (bound, guard, _), sets in zip(side, found, strict=True):
            here = within(step.hypotheses, bound, [guard])
            forms.ask(here, either(*sets), f"every element of the {name} side has a partner")
            for one, another in itertools.combinations(sets, 2):
                forms.ask(here, negation(both(one, another)), f"no element of the {name} side has two partners")


def _point(bound: Ranges, guard: Condition, values: Mapping[str, Index]) -> Condition:
    """That values of the bound variables are a point."""
    need(set(values) == {v for v, _ in bound}, "a map must give each bound variable a value")
    ranges = [inside(values[v], extent.substitute(values)) for v, extent in bound]
    return both(*ranges, substitute_condition(guard, values))


def _ranges(bound: Ranges) -> list[Condition]:
    return [inside(variable(v), extent) for v, extent in bound]


def _divisors(forms: Forms, at: Hypotheses, values: Mapping[str, Index]) -> None:
    """Maps divide by positive numbers only."""
    for divisor in dict.fromkeys(q.divisor for value in values.values() for q in value.quotients):
        forms.ask(at, le(1, divisor), f"{divisor} is positive")


def _common(forms: Forms, at: Hypotheses, *sides: tuple[Element, tuple[Element, ...]]) -> None:
    """Each side is its summands and what is common to both; over the reals, what is finite may have moved over."""
    rest = []
    for whole, summands in sides:
        other = dict(forms.merged(whole, at))
        signs = {p: {c > 0} for p, c in other.items()}
        for product, coefficient in (pair for e in summands for pair in forms.merged(e, at).items()):
            other[product] = other.get(product, Fraction(0)) - coefficient
            signs.setdefault(product, set()).add(coefficient > 0)
        rest.append({p: c for p, c in other.items() if c})
        mixed = [p for p, found in signs.items() if len(found | {c > 0 for c in [other[p]] if c}) > 1]
        forms.regular(mixed, at)
    need(rest[0] == rest[1], "what is not mapped must be common to both sides")


@law
def same_candidates(forms: Forms, step: Step, right: Element) -> None:
    """Extrema of the same candidates are equal; those over variables that nothing depends on lose these."""
    op, needless = step.data
    form = replace(forms, needless=frozenset(needless))
    sides = [set(form.candidates(op, e, step.hypotheses)) for e in (step.left, right)]
    need(op in UNIT and sides[0] == sides[1], "the candidates must be the same")


def _members(
    forms: Forms, at: Hypotheses, op: str, whole: Element, members: Sequence[Element]
) -> list[tuple[Ranges, Condition, Element]]:
    """The members of an extremum; raises Rejected unless they have its candidates."""
    given = {c for m in members for c in forms.candidates(op, m, at)}
    need(given == set(forms.candidates(op, whole, at)), "members must have the candidates of their side")
    return [opened(op, m, UNIT[op]) for m in members]


@law
def covering(forms: Forms, step: Step, right: Element) -> None:
    """Extrema are equal if every candidate of each side is equal to one of the other side.

    ``data`` are the operator, the members of both sides, and (side, a, b, f): where f leads from a point of a member to
    a point of the other side's member b, a premise is that both have equal elements.  These places must cover a.
    """
    op, lefts, rights, maps = step.data
    sides = [_members(forms, step.hypotheses, op, *pair) for pair in ((step.left, lefts), (right, rights))]
    covered: dict[tuple[int, int], list[Condition]] = {}
    for position, (side, i, j, f) in enumerate(maps):
        (bound, guard, body), (other, there, image) = sides[side][i], sides[1 - side][j]
        place = _point(other, there, f)
        _premise(step, position, body, replaced(image, f), *_ranges(bound), guard, place)
        _divisors(forms, within(step.hypotheses, bound, [guard]), f)
        covered.setdefault((side, i), []).append(place)
    for side, members in enumerate((lefts, rights)):
        for i, member in enumerate(members):
            if member not in (rights, lefts)[side]:
                bound, guard, _ = sides[side][i]
                places = either(*covered.get((side, i), []))
                forms.ask(within(step.hypotheses, bound, [guard]), places, "every candidate stands on the other side")


@law
def minimum_of_maxima(forms: Forms, step: Step, right: Element) -> None:
    """min(max a, max b) = max of min(a, b) over all pairs; ``data`` are the members of both maxima.

    Both maxima must have a candidate, or (*reals*) all candidates be finite.
    """
    members = step.data
    assert isinstance(step.left, Apply)
    need(step.left.op == "minimum", "a minimum of two maxima")
    sides = []
    for whole, given in zip(step.left.args, members, strict=True):
        sides.append(_members(forms, step.hypotheses, "max", whole, given))
        found = forms.candidates("max", whole, step.hypotheses)
        if forms.ring:
            finite = (forms.finite(c.element, within(step.hypotheses, c.bound, c.guard)) for c in found)
            need(all(finite), "candidates must be finite")
        else:
            forms.inhabited(found, step.hypotheses)
    pairs = set()
    for (bound, guard, a), (other, there, b) in itertools.product(*sides):
        lowest: Element = Choice(both(guard, there), Apply("minimum", (a, b)), UNIT["max"])
        for v, extent in reversed((*bound, *other)):
            lowest = Reduce("max", v, extent, lowest)
        pairs |= set(forms.candidates("max", lowest, step.hypotheses))
    need(set(forms.candidates("max", right, step.hypotheses)) == pairs, "the right side must have all pairs")


@law
def out_of_an_extremum(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: max(c*a + s) = c * max(a) + s for positive c and finite s that do not depend on bound variables.

    ``data`` are the operator and pairs of members of both extrema.
    """
    op, pairs = step.data
    assert isinstance(right, Apply) and isinstance(right.args[0], Apply)
    (_, summand), (factor, inner) = right.args, right.args[0].args
    need((right.op, right.args[0].op) == ("add", "mul"), "the right side must be a product plus a summand")
    at = step.hypotheses
    need(forms.positive(factor, at) and forms.finite(summand, at), f"{factor} must be positive and {summand} finite")
    lefts = _members(forms, at, op, step.left, [a for a, _ in pairs])
    inners = _members(forms, at, op, inner, [b for _, b in pairs])
    for (bound, guard, body), (other, there, rest) in zip(lefts, inners, strict=True):
        need((bound, guard) == (other, there), "members must have the same points")
        moved = Apply("add", (Apply("mul", (factor, rest)), summand))
        here = within(at, bound, [guard])
        need(forms.merged(body, here) == forms.merged(moved, here), "each candidate must be moved")
