"""Steps of a derivation, and operations on elements that must not capture variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chc.tensor_rules.obligations import Hypotheses
from ir_semantics.tensors.conditions import Condition, variables_of
from ir_semantics.tensors.elements import Apply, Choice, Element, Reduce, indices_of_element, substitute_element
from ir_semantics.tensors.index import Index

__all__ = ["Rejected", "Step", "bound_in", "free_in", "fresh_in", "need", "replaced", "variable", "variables_in"]


class Rejected(Exception):
    """A step that is no instance of its law, or a side condition that is not established."""


@dataclass(frozen=True, eq=False)
class Step:
    """Under the hypotheses, for all integers: ``left = right``; without a right side: ``left`` has a value, not 0.

    ``law`` names why, ``premises`` are the steps and ``data`` the instance that it is applied to.
    """

    law: str
    hypotheses: Hypotheses
    left: Element
    right: Element | None
    premises: tuple[Step, ...] = ()
    data: Any = ()


def need(met: bool, reason: str) -> None:
    """Raises Rejected unless a condition is met."""
    if not met:
        raise Rejected(reason)


def variable(name: str) -> Index:
    """A variable as an index."""
    return Index({(name,): 1})


def bound_in(element: Element) -> frozenset[str]:
    """The variables that are bound somewhere inside."""
    match element:
        case Apply(_, args):
            return frozenset().union(*map(bound_in, args))
        case Choice(_, yes, no):
            return bound_in(yes) | bound_in(no)
        case Reduce(_, name, _, body):
            return bound_in(body) | {name}
    return frozenset()


def free_in(element: Element) -> frozenset[str]:
    """The variables that occur free."""
    match element:
        case Apply(_, args):
            return frozenset().union(*map(free_in, args))
        case Choice(condition, yes, no):
            return variables_of(condition) | free_in(yes) | free_in(no)
        case Reduce(_, name, extent, body):
            return extent.variables | (free_in(body) - {name})
    return frozenset().union(*(i.variables for i in indices_of_element(element)))


def variables_in(element: Element) -> frozenset[str]:
    """All variables, bound ones included."""
    return frozenset().union(*(i.variables for i in indices_of_element(element)), bound_in(element))


def replaced(element: Element, values: Mapping[str, Index]) -> Element:
    """The element with free variables replaced; raises Rejected where one of the names is bound inside."""
    inside = bound_in(element)
    names = frozenset(values).union(*(v.variables for v in values.values()))
    need(names.isdisjoint(inside), f"{sorted(names & inside)} must not be bound where they are put")
    return substitute_element(element, values)


def fresh_in(name: str, hypotheses: Hypotheses, *elements: Element, also: tuple[Condition, ...] = ()) -> None:
    """Raises Rejected where hypotheses or elements mention a name that must be new."""
    used = frozenset().union(*map(variables_of, (*hypotheses, *also)), *map(variables_in, elements))
    need(name not in used, f"{name} must be a new variable")
