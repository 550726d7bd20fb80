"""What a derivation proves: one element of each side of a rule, at any subscripts, with all obligations.

``ask`` is given every obligation in turn.  It raises :class:`.steps.Rejected` where one is not established.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import both, equal, inside, negation, variables_of
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Reduce, substitute_element
from ir_semantics.tensors.index import Index, Names
from ir_semantics.tensors.terms import Tensor, element_of, well_formed

from .forms import Forms
from .laws import LAWS, has_digits
from .steps import Rejected, Step, bound_in, free_in, fresh_in, need, variable

__all__ = ["Derivation", "Goal", "Split", "in_order", "opening", "prove", "replay"]

MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What data of another form than a law's lead to."""
Split = tuple[str, Index, str, str]
"""A subscript that is written in two digits: its name, the divisor, the names of the digits."""


@dataclass(frozen=True)
class Derivation:
    """Subscripts that are written in digits, and the last step."""

    splits: tuple[Split, ...]
    last: Step


@dataclass(frozen=True)
class Goal:
    """Two elements at any subscripts within a shape, and the hypotheses on these."""

    premise: Hypotheses
    ranges: tuple[tuple[str, Index], ...]
    left: Element
    right: Element

    @property
    def hypotheses(self) -> Hypotheses:
        """The premise, and that subscripts lie in the shape."""
        return extended(self.premise, *(inside(variable(v), extent) for v, extent in self.ranges))

    def in_digits(self, split: Split) -> Goal:
        """The goal with one subscript written in digits."""
        name, divisor, high, low = split
        number = variable(high) * divisor + variable(low)
        left, right = (substitute_element(e, {name: number}) for e in (self.left, self.right))
        position = [v for v, _ in self.ranges].index(name)
        digits = ((high, self.ranges[position][1] // divisor), (low, divisor))
        return Goal(self.premise, (*self.ranges[:position], *digits, *self.ranges[position + 1 :]), left, right)


def opening(premise: Hypotheses, left: Tensor, right: Tensor, names: Names) -> Goal:
    """The elements of both sides at new subscripts."""
    subscripts = [names.fresh("o") for _ in left.shape]
    at = [variable(s) for s in subscripts]
    elements = element_of(left, at, names), element_of(right, at, names)
    return Goal(premise, tuple(zip(subscripts, left.shape, strict=True)), *elements)


def replay(forms: Forms, premise: Hypotheses, left: Tensor, right: Tensor, derivation: Derivation) -> None:
    """Raises Rejected unless the derivation proves the sides equal wherever the left one has a value.

    That is: for all sizes that satisfy the premise, the right side is well formed, has the left one's shape, and each
    element of the left side that has a value is equal to that of the right side.
    """
    need(len(left.shape) == len(right.shape), "both sides must have one rank")
    forms.ask(premise, well_formed(right), "the right side is well formed")
    for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True)):
        forms.ask(premise, equal(a, b), f"both sides have one size along axis {axis}")
    goal = opening(premise, left, right, Names())
    for split in derivation.splits:
        try:
            goal = _split(forms, goal, split)
        except MALFORMED as error:
            raise Rejected(f"a subscript must be written in two digits: {error}") from error
    prove(forms, goal, derivation.last)


def _split(forms: Forms, goal: Goal, split: Split) -> Goal:
    """The goal with one subscript written in digits, which are new variables and reach all its values."""
    name, divisor, high, low = split
    need(name in dict(goal.ranges), f"{name} must be a subscript")
    for digit in (high, low):
        fresh_in(digit, goal.hypotheses, goal.left, goal.right, IndexValue(divisor))
    has_digits(forms, goal.premise, (name, dict(goal.ranges)[name]), divisor, (high, low))
    return goal.in_digits(split)


def prove(forms: Forms, goal: Goal, last: Step) -> None:
    """Raises Rejected unless the last step is about the goal, and every step before it is an instance of its law."""
    need(last.left == goal.left and last.right == goal.right, "the last step must be about both sides")
    need(all(h in goal.hypotheses for h in last.hypotheses), "the last step must not have other hypotheses")
    divisors = list(_divisors(goal.left, goal.hypotheses))
    own = frozenset().union(*map(variables_of, goal.hypotheses), *map(free_in, (goal.left, goal.right)))
    for step in in_order(last):
        _check(forms, step, divisors, own)


def in_order(last: Step) -> list[Step]:
    """All steps, premises first."""
    found: dict[int, Step] = {}
    open_ = [last]
    while open_:
        step = open_[-1]
        missing = [p for p in step.premises if id(p) not in found]
        if missing:
            open_ += missing
        else:
            found.setdefault(id(open_.pop()), step)
    return list(found.values())


def _check(forms: Forms, step: Step, divisors: list[tuple[Hypotheses, Element]], own: frozenset[str]) -> None:
    """Raises Rejected unless a step is an instance of its law; what divides has values at the goal's ``own`` variables.

    So no step may bind one of these: it would speak of other subscripts and sizes than the goal does.
    """
    facts = tuple(p for p in step.premises if p.right is None)
    equations = replace(step, premises=tuple(p for p in step.premises if p.right is not None))
    elements = [*_elements((step.left, step.right, step.data))]
    free = frozenset().union(*map(variables_of, step.hypotheses), *map(free_in, elements))
    both_ways = (free | own) & frozenset().union(*map(bound_in, elements))
    need(not both_ways, f"{sorted(both_ways)} must not be free and bound in one step")
    try:
        if step.right is None:
            _divides(forms, equations, divisors)
        else:
            LAWS[step.law](replace(forms, facts=facts), equations, step.right)
    except MALFORMED as error:
        raise Rejected(f"the data must be those of the law {step.law}: {error}") from error


def _elements(data: object) -> Iterator[Element]:
    """The elements that a step is about, and those in its data."""
    if isinstance(data, tuple):
        for part in data:
            yield from _elements(part)
    elif isinstance(data, Element):
        yield data


def _divides(forms: Forms, step: Step, divisors: list[tuple[Hypotheses, Element]]) -> None:
    """What the left side divides by has a value other than 0, wherever the left side has a value."""
    (given,) = step.premises
    need(step.law == "divisor of the left side" and given.right == step.left, "an element that is equal to a divisor")
    need(all(h in step.hypotheses for h in given.hypotheses), "a premise must not have other hypotheses")
    places = [[h for h in at if h not in step.hypotheses] for at, divisor in divisors if divisor == given.left]
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
