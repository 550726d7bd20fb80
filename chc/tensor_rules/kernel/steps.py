"""Steps of a derivation, and operations on elements that must not capture variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chc.tensor_rules.obligations import Hypotheses
from ir_semantics.tensors.conditions import variables_of
from ir_semantics.tensors.elements import Apply, Choice, Element, Reduce, indices_of_element, substitute_element
from ir_semantics.tensors.index import Index


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


def names_in(element: Element) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that occur free, and those that are bound somewhere inside."""
    names: list[tuple[frozenset[str], frozenset[str]]]
    match element:
        case Apply(_, args):
            names = list(map(names_in, args))
        case Choice(condition, yes, no):
            names = [(variables_of(condition), frozenset()), names_in(yes), names_in(no)]
        case Reduce(_, name, extent, body):
            free, bound = names_in(body)
            names = [(extent.variables, frozenset({name})), (free - {name}, bound)]
        case _:
            names = [(i.variables, frozenset()) for i in indices_of_element(element)]
    return frozenset().union(*(free for free, _ in names)), frozenset().union(*(bound for _, bound in names))


def variables_in(element: Element) -> frozenset[str]:
    """All variables, bound ones included."""
    return frozenset().union(*names_in(element))


def replaced(element: Element, values: Mapping[str, Index]) -> Element:
    """The element with free variables replaced; raises Rejected where one of the names is bound inside."""
    _, inside = names_in(element)
    names = frozenset(values).union(*(v.variables for v in values.values()))
    need(names.isdisjoint(inside), f"{sorted(names & inside)} must not be bound where they are put")
    return substitute_element(element, values)


def fresh_in(name: str, hypotheses: Hypotheses, *elements: Element) -> None:
    """Raises Rejected where hypotheses or elements mention a name that must be new."""
    used = frozenset().union(*map(variables_of, hypotheses), *map(variables_in, elements))
    need(name not in used, f"{name} must be a new variable")
