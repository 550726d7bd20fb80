"""What a derivation proves: one element of each side of a rule, at any subscripts, with all obligations.

``ask`` is given every obligation in turn.  It raises :class:`.steps.Rejected` where one is not established.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import both, equal, inside, negation, substitute_condition, variables_of
from ir_semantics.tensors.elements import Apply, Choice, Element, Reduce, indices_of_element
from ir_semantics.tensors.index import Index, Names
from ir_semantics.tensors.terms import Tensor, element_of, well_formed

from .forms import Forms
from .laws import LAWS, divide
from .steps import Rejected, Step, names_in, need, replaced, variable

MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What data of another form than a law's lead to."""


@dataclass(frozen=True)
class Derivation:
    """The last step, and where it is applied: variables of it as functions of the subscripts (digits of them)."""

    last: Step
    at: Mapping[str, Index] = field(default_factory=dict)


def opening(left: Tensor, right: Tensor, names: Names) -> tuple[list[str], Element, Element]:
    """New subscripts, and the elements of both sides there."""
    subscripts = [names.fresh("o") for _ in left.shape]
    at = [variable(s) for s in subscripts]
    return subscripts, element_of(left, at, names), element_of(right, at, names)


def replay(forms: Forms, premise: Hypotheses, left: Tensor, right: Tensor, derivation: Derivation) -> None:
    """Raises Rejected unless the derivation proves the sides equal wherever the left one has a value.

    That is: for all sizes that satisfy the premise, the right side is well formed, has the left one's shape, and each
    element of the left side that has a value is equal to that of the right side.
    """
    need(len(left.shape) == len(right.shape), "both sides must have one rank")
    divide(forms, premise, left.shape)
    forms.ask(premise, well_formed(right), "the right side is well formed")
    for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True)):
        forms.ask(premise, equal(a, b), f"both sides have one size along axis {axis}")
    subscripts, *sides = opening(left, right, Names())
    ranges = (inside(variable(v), extent) for v, extent in zip(subscripts, left.shape, strict=True))
    hypotheses = extended(premise, *ranges)
    try:
        need(_instance(forms, hypotheses, derivation) == sides, "the last step must be about both sides")
    except MALFORMED as error:
        raise Rejected(f"the last step must be applied to the subscripts: {error}") from error
    prove(forms, derivation.last)


def _instance(forms: Forms, hypotheses: Hypotheses, derivation: Derivation) -> list[Element]:
    """The sides of the last step where it is applied; its hypotheses must hold there."""
    divide(forms, hypotheses, derivation.at.values())
    for condition in derivation.last.hypotheses:
        goal = substitute_condition(condition, derivation.at)
        forms.ask(hypotheses, goal, f"the last step is about every element: {goal}")
    return [replaced(e, derivation.at) for e in _sides(derivation.last)]


def prove(forms: Forms, last: Step) -> None:
    """Raises Rejected unless a step and every step before it is an instance of its law.

    What the left side of the last one divides by is not 0: it need only be equal where that side has a value.
    """
    divisors = list(_divisors(last.left, last.hypotheses))
    own = frozenset().union(*map(variables_of, last.hypotheses), *(names_in(e)[0] for e in _sides(last)))
    for step in in_order(last):
        _check(forms, step, divisors, own)


def in_order(last: Step) -> list[Step]:
    """All steps, premises first."""
    ordered: dict[int, Step] = {}
    open_ = [last]
    while open_:
        step = open_[-1]
        missing = [p for p in step.premises if id(p) not in ordered]
        if missing:
            open_ += missing
        else:
            ordered.setdefault(id(open_.pop()), step)
    return list(ordered.values())


def _check(forms: Forms, step: Step, divisors: list[tuple[Hypotheses, Element]], own: frozenset[str]) -> None:
    """Raises Rejected unless a step is an instance of its law; what divides has values at the goal's ``own`` variables.

    So no step may bind one of these: it would speak of other subscripts and sizes than the goal does.
    """
    facts = tuple(p for p in step.premises if p.right is None)
    equations = replace(step, premises=tuple(p for p in step.premises if p.right is not None))
    elements = _sides(step)
    free, bound = (frozenset().union(*names) for names in zip(*map(names_in, elements), strict=True))
    both_ways = free.union(own, *map(variables_of, step.hypotheses)) & bound
    need(not both_ways, f"{sorted(both_ways)} must not be free and bound in one step")
    divide(forms, step.hypotheses, (i for e in elements for i in indices_of_element(e)))
    try:
        if step.right is None:
            _divides(forms, equations, divisors)
        else:
            LAWS[step.law](replace(forms, facts=facts), equations, step.right)
    except MALFORMED as error:
        raise Rejected(f"the data must be those of the law {step.law}: {error}") from error


def _sides(step: Step) -> list[Element]:
    return [e for e in (step.left, step.right) if e is not None]


def _divides(forms: Forms, step: Step, divisors: list[tuple[Hypotheses, Element]]) -> None:
    """What the left side divides by has a value other than 0, wherever the left side has a value."""
    (premise,) = step.premises
    need(step.law == "divisor of the left side" and premise.right == step.left, "an element that is equal to a divisor")
    need(all(h in step.hypotheses for h in premise.hypotheses), "a premise must not have other hypotheses")
    places = [[h for h in at if h not in step.hypotheses] for at, divisor in divisors if divisor == premise.left]
    forms.ask(step.hypotheses, both(*min(places, key=len)), "the left side divides in this place")


def _divisors(element: Element, at: Hypotheses) -> Iterator[tuple[Hypotheses, Element]]:
    match element:
        case Apply(op, args):
            if op == "div":
                yield at, args[1]
            for a in args[:1] if op == "select" else args:  # what is not chosen need not have a value
                yield from _divisors(a, at)
        case Choice(condition, yes, no):
            yield from _divisors(yes, extended(at, condition))
            yield from _divisors(no, extended(at, negation(condition)))
        case Reduce(_, name, extent, body):
            yield from _divisors(body, extended(at, inside(variable(name), extent)))
