"""The laws.  Each function checks that a step is an instance of its law, and asks for the side conditions.

Every law holds in every notion of equality unless it says otherwise: *reals* (``over_reals``), *sums* (``over_reals``
and ``up_to_reduction_order``: addition is a commutative monoid whose unit is the sum of nothing).  In the laws, H are
the hypotheses of a step; a premise may have fewer.  No variable is free and bound in one step (:mod:`.replay`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import (
    FALSE,
    Condition,
    both,
    either,
    equal,
    indices_of,
    inside,
    le,
    negation,
    rebuild_condition,
    substitute_condition,
)
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, Quotient, divisors

from .forms import BINARY, NOTHING, UNIT, Forms, Ranges, opened, within
from .steps import Step, need, replaced, variable

Law = Callable[[Forms, Step, Element], None]
LAWS: dict[str, Law] = {}
COMMUTATIVE = frozenset({"add", "mul"})


def law(check: Callable[[Forms, Step, Element], None]) -> Law:
    """Registers a law under its name."""
    LAWS[check.__name__.replace("_", " ")] = check
    return check


def _premise(step: Step, position: int, left: Element, right: Element, *more: Condition) -> None:
    """The premise says ``left = right`` under the step's hypotheses and ``more``."""
    premise = step.premises[position]
    allowed = extended(step.hypotheses, *more)
    need(premise.left == left and premise.right == right, "a premise must be about the parts of the step")
    need(all(h in allowed for h in premise.hypotheses), "a premise must not have other hypotheses")


# -- equality ---------------------------------------------------------------------------------------


@law
def chain(forms: Forms, step: Step, right: Element) -> None:
    """a = a; a = b and b = c give a = c; a = b gives b = a: ``data`` says which premises are read backwards."""
    current = step.left
    for position, (premise, backwards) in enumerate(zip(step.premises, step.data, strict=True)):
        assert premise.right is not None
        _premise(step, position, premise.left, premise.right)
        start, end = (premise.right, premise.left) if backwards else (premise.left, premise.right)
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
        case Apply(op, args), Apply(other, others) if op == other:
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
    """a = b where it holds in each of several cases, of which one always holds; or none, where H exclude each other."""
    for position, case in enumerate(step.data):
        _premise(step, position, step.left, right, case)
    forms.ask(step.hypotheses, either(*step.data), "one of the cases holds")


# -- indices ----------------------------------------------------------------------------------------


@law
def indices(forms: Forms, step: Step, right: Element) -> None:
    """Equal subscripts, numbers, extents and conditions make equal elements.

    ``data`` are (a, b, p, c), used one after the other: a // (b*c) = p // c where 0 <= a - p*b < b follows from H.
    """
    for a, b, p, _ in step.data:
        forms.ask(step.hypotheses, inside(a - p * b, b), f"({a}) // ({b}) is {p}")

    def known(value: Index) -> Index:
        for a, b, p, c in step.data:
            old, new = Quotient(a, b * c), p // c
            value = value.rebuild(lambda atom, old=old, new=new: new if atom == old else None)  # type: ignore[misc]
        return value

    pairs: list[tuple[Index, Index]] = []
    match step.left, right:
        case Read(name, a), Read(other, b) if name == other:
            pairs = list(zip(a, b, strict=True))
        case IndexValue(i), IndexValue(j):
            pairs = [(i, j)]
        case Reduce(op, name, i, body), Reduce(other, also, j, b) if (op, name, body) == (other, also, b):
            pairs = [(i, j)]
        case Choice(condition, yes, no), Choice():
            need(right == Choice(rebuild_condition(condition, known), yes, no), "the condition must be the same")
        case _:
            need(False, "both sides must have one form")
    forms.ask(step.hypotheses, both(*(equal(known(i), j) for i, j in pairs)), "the indices are equal")


@law
def renamed(forms: Forms, step: Step, right: Element) -> None:
    """A bound variable may have any new name."""
    left = step.left
    assert isinstance(left, Reduce) and isinstance(right, Reduce)
    body = replaced(left.body, {left.variable: variable(right.variable)})
    need(right == Reduce(left.op, right.variable, left.extent, body), "the right side must be renamed")


# -- arithmetic -------------------------------------------------------------------------------------


@law
def sums_of_products(forms: Forms, step: Step, right: Element) -> None:
    """*Sums*: two elements are equal that are the same sum of products under guards (:class:`.forms.Forms`)."""
    left, other = (forms.merged(e, step.hypotheses) for e in (step.left, right))
    need(left == other, "the sums must be the same")


@law
def counted(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: a sum of n times the same finite number is n times the number, where n is at least 0."""
    match step.left:
        case Reduce("sum", _, extent, body):
            need(forms.real(body, step.hypotheses), "a finite number, each time")
            forms.ask(step.hypotheses, le(0, extent), f"{extent} is no less than 0")
            need(right == Apply("mul", (IndexValue(extent), body)), "the right side must be the product")
        case _:
            need(False, "a sum")


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
    """*Reals*: exp(0) = 1; exp(-inf) = 0; tanh(0) = 0; exp(a + b) = exp(a) * exp(b).

    For finite b, exp(a - b) = exp(a) / exp(b).
    """
    need(forms.ring, "over the reals only")
    match step.left:
        case Apply("exp", (Number(value),)):
            need(value in (0, -math.inf) and right == Number(Fraction(value == 0)), "a known exponential")
        case Apply("tanh", (Number(value),)):
            need(value == 0 and right == Number(Fraction(0)), "a known hyperbolic tangent")
        case Apply("exp", (Apply("add" | "sub" as op, (a, b)),)):
            need(op == "add" or forms.real(b, step.hypotheses), f"{b} must be finite")
            powers = Apply("exp", (a,)), Apply("exp", (b,))
            need(right == Apply("mul" if op == "add" else "div", powers), "exponentials of both")
        case _:
            need(False, "exp of a sum or difference")


@law
def infinity(forms: Forms, step: Step, right: Element) -> None:
    """*Reals*: for an infinity i, neg(i) = -i; a + i = i for finite a; c * i = i for positive c."""
    need(forms.ring, "over the reals only")
    match step.left:
        case Apply("neg", (Number(value),)):
            need(math.isinf(value) and right == Number(-value), "the other infinity")
        case Apply("add" | "mul" as op, (a, Number(value))):
            need(forms.real(a, step.hypotheses, positive=op == "mul"), f"{a} must be finite, a factor positive")
            need(math.isinf(value) and right == Number(value), "the same infinity")
        case _:
            need(False, "a function of an infinity")


# -- reductions -------------------------------------------------------------------------------------


def _members(op: str, element: Element, unit: Element) -> list[tuple[Ranges, Condition, Element]]:
    """Bound variables, guard and body of each of the elements that are added, or whose extremum is taken."""
    if isinstance(element, Apply) and element.op == BINARY[op]:
        return [m for a in element.args for m in _members(op, a, unit)]
    return [opened(op, element, unit)]


@law
def bijection(forms: Forms, step: Step, right: Element) -> None:
    """*Sums*: sums are equal whose summands correspond one to one, equal ones to each other.

    ``data`` are pieces (a, b, f, g): maps between the bound variables of summand a of the left and b of the right side.
    Let P be the points x of a for which f(x) is a point of b and g(f(x)) = x, and Q the points y of b with g(y) in a
    and f(g(y)) = y.  f is a bijection from P to Q.  The sets P of all pieces must partition the points of a, the sets Q
    those of b, and a premise of each piece is a(x) = b(f(x)).
    """
    need(forms.monoid, "addition is neither commutative nor associative here")
    unit: Element = Number(Fraction(0)) if forms.ring else NOTHING
    a, b = (_members("sum", side, unit) for side in (step.left, right))
    points: tuple[list[list[Condition]], list[list[Condition]]] = [[] for _ in a], [[] for _ in b]
    for position, (i, j, f, g) in enumerate(step.data):
        (bound, guard, body), (other, there, image) = a[i], b[j]
        own, others = {v for v, _ in bound}, {v for v, _ in other}
        for values, domain, codomain in ((f, own, others), (g, others, own)):
            strange = frozenset().union(*(e.variables for e in values.values())) & (codomain - domain)
            need(not strange, f"a map must not depend on {sorted(strange)}")
        p = both(_point(other, there, f), *(equal(g[v].substitute(f), variable(v)) for v, _ in bound))
        q = both(_point(bound, guard, g), *(equal(f[v].substitute(g), variable(v)) for v, _ in other))
        _premise(step, position, body, replaced(image, f), *_ranges(bound), guard, p)
        divide(forms, within(step.hypotheses, bound, [guard]), f.values())
        divide(forms, within(step.hypotheses, other, [there]), g.values())
        points[0][i].append(p)
        points[1][j].append(q)
    for side, points_of_side, name in ((a, points[0], "left"), (b, points[1], "right")):
        for (bound, guard, _), sets in zip(side, points_of_side, strict=True):
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


def divide(forms: Forms, at: Hypotheses, values: Iterable[Index]) -> None:
    """Indices divide by positive numbers only; index arithmetic rests on that.

    So do hypotheses, as those of them say that do not divide; otherwise they could say anything.
    """
    own = {h: divisors(indices_of(h)) for h in at}
    plain = tuple(h for h, divisors_of in own.items() if not divisors_of)
    for hypotheses, divisors_of in (*((plain, divisors_of) for divisors_of in own.values()), (at, divisors(values))):
        for divisor in divisors_of:
            forms.ask(hypotheses, le(1, divisor), f"{divisor} is positive")


@law
def same_candidates(forms: Forms, step: Step, right: Element) -> None:
    """Extrema of the same set of candidates under guards are equal; ``data`` is the operator."""
    left, other = (set(forms.candidates(step.data, e, step.hypotheses)) for e in (step.left, right))
    need(step.data in UNIT and left == other, "the candidates must be the same")


@law
def covering(forms: Forms, step: Step, right: Element) -> None:
    """Extrema are equal if every candidate of each side is equal to one of the other side.

    ``data`` are the operator and (side, a, b, f): where f leads from a point of member a of a side to a point of member
    b of the other one, a premise is that both have equal elements.  The places must cover a, unless both sides have it.
    """
    op, maps = step.data
    sides = [_members(op, e, UNIT[op]) for e in (step.left, right)]
    covered: dict[tuple[int, int], list[Condition]] = {}
    for position, (side, i, j, f) in enumerate(maps):
        (bound, guard, body), (other, there, image) = sides[side][i], sides[1 - side][j]
        place = _point(other, there, f)
        _premise(step, position, body, replaced(image, f), *_ranges(bound), guard, place)
        divide(forms, within(step.hypotheses, bound, [guard]), f.values())
        covered.setdefault((side, i), []).append(place)
    for side, members in enumerate(sides):
        for i, (bound, guard, body) in enumerate(members):
            if (bound, guard, body) not in sides[1 - side]:
                places = either(*covered.get((side, i), []))
                forms.ask(within(step.hypotheses, bound, [guard]), places, "every candidate stands on the other side")


@law
def monotone(forms: Forms, step: Step, right: Element) -> None:
    """f(max a) = max f(a), and so for minima, for f(x) = min(x, b) or max(x, b), and (*reals*) x * b and x + b.

    b must be positive in a product and finite in a sum; in an extremum it must be finite, or a have a candidate.
    ``data`` is the operator.
    """
    assert isinstance(step.left, Apply)
    (inner, b), at = step.left.args, step.hypotheses
    match step.left.op:
        case "mul":
            need(forms.real(b, at, positive=True), f"{b} must be positive")
        case "add":
            need(forms.real(b, at), f"{b} must be finite")
        case "minimum" | "maximum" as other if other != BINARY[step.data]:
            if not forms.real(b, at):
                forms.inhabited(forms.candidates(step.data, inner, at), at)
        case _:
            need(False, "a monotone function")
    moved = each_candidate(step.data, inner, lambda a: Apply(step.left.op, (a, b)))  # type: ignore[union-attr]
    need(right == moved, "the extremum of the function's values")


def each_candidate(op: str, element: Element, function: Callable[[Element], Element]) -> Element:
    """An extremum with a function of its candidates; that of nothing stays as it is."""
    match element:
        case Reduce(name, v, extent, body) if name == op:
            return Reduce(op, v, extent, each_candidate(op, body, function))
        case Apply(name, (a, b)) if name == BINARY[op]:
            return Apply(name, (each_candidate(op, a, function), each_candidate(op, b, function)))
        case Choice(condition, yes, no):
            return Choice(condition, each_candidate(op, yes, function), each_candidate(op, no, function))
    return element if element == UNIT[op] else function(element)
