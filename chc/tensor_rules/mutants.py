"""Mutants of a rule on tensors: the element of its right side with one thing changed at random.

That is an index off by one, exchanged subscripts, another extent, operator, order of operands, constant or condition.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, both, le, negation
from ir_semantics.tensors.elements import (
    Apply,
    Choice,
    Element,
    IndexValue,
    Number,
    Read,
    Reader,
    Reduce,
    parts_of,
    substitute_element,
    with_parts,
)
from ir_semantics.tensors.index import Index, Names, index
from ir_semantics.tensors.terms import Tensor, element_of, well_formed

from .rule import TensorRule

_DRAWS = 50
"""This number of draws in a row without a new mutant ends the drawing."""

OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "maximum": "minimum", "minimum": "maximum"}
OTHER_BIG = {"sum": "max", "max": "min", "min": "max"}


def mutants(rule: TensorRule, draw: random.Random) -> Iterator[TensorRule]:
    """Mutants of which no two have one element, each named by it; the iterator ends where draws bring nothing new."""
    seen: set[str] = set()
    fruitless = 0
    while fruitless < _DRAWS:
        fruitless += 1
        try:
            changed = mutant(rule, draw)
        except (ValueError, ZeroDivisionError):  # the change makes an index that cannot be written
            continue
        if changed is not None and changed.name not in seen:
            seen.add(changed.name)
            fruitless = 0
            yield changed


def mutant(rule: TensorRule, draw: random.Random) -> TensorRule | None:
    """The rule with one change to the right side's element; None where the draw changes nothing."""
    names = Names()
    subscripts = [f"s.{j}" for j in range(1000, 1000 + rule.right.rank)]
    element = element_of(rule.right, [Index({(s,): 1}) for s in subscripts], names)
    changed = _changed(element, draw)
    if changed is None or changed == element:
        return None
    inputs = rule.inputs
    order = list(inputs)

    def meaning(at: Sequence[Index], of: Sequence[Reader], fresh: Names) -> Element:
        def copy(e: Element) -> Element:
            match e:
                case Read(name, where):
                    return of[order.index(name)](where)
                case Reduce(op, variable, extent, body):
                    new = fresh.fresh("z")
                    return Reduce(op, new, extent, copy(substitute_element(body, {variable: Index({(new,): 1})})))
            return with_parts(e, list(map(copy, parts_of(e))))

        return copy(substitute_element(changed, dict(zip(subscripts, at, strict=True))))

    operands = tuple(inputs.values())
    shown = (("element", str(changed)),)
    right = Tensor("changed", operands, shown, rule.right.shape, well_formed(rule.right), meaning, ())
    return replace(rule, name=f"{rule.name}, changed to {changed}", right=right)


def _places(element: Element, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Element]]:
    yield path, element
    for j, part in enumerate(parts_of(element)):
        yield from _places(part, (*path, j))


def _put(element: Element, path: tuple[int, ...], new: Element) -> Element:
    if not path:
        return new
    return with_parts(element, [_put(p, path[1:], new) if j == path[0] else p for j, p in enumerate(parts_of(element))])


def _changed(element: Element, draw: random.Random) -> Element | None:
    path, node = draw.choice(list(_places(element)))
    match node:
        case Read(name, at) if at:
            moved = list(at)
            if len(at) > 1 and draw.random() < 0.4:
                i, j = draw.sample(range(len(at)), 2)
                moved[i], moved[j] = moved[j], moved[i]
            else:
                i = draw.randrange(len(at))
                moved[i] = moved[i] + draw.choice([-1, 1])
            new: Element = Read(name, tuple(moved))
        case Number(value):
            new = Number(value + draw.choice([-1, 1]) if isinstance(value, Fraction) else Fraction(0))
        case IndexValue(value):
            new = IndexValue(value + 1)
        case Apply(op, args) if op in OTHER:
            new = Apply(OTHER[op], args) if draw.random() < 0.7 else Apply(op, args[::-1])
        case Choice(condition, yes, no):
            new = Choice(condition, no, yes) if draw.random() < 0.2 else Choice(_other(condition, draw), yes, no)
        case Reduce(op, variable, extent, body):
            kind = draw.random()
            if kind < 0.6:
                new = Reduce(op, variable, extent + draw.choice([-1, 1]), body)
            elif kind < 0.8:
                new = Reduce(OTHER_BIG[op], variable, extent, body)
            else:
                new = substitute_element(body, {variable: index(0)})
        case _:
            return None
    return _put(element, path, new)


def _other(condition: Condition, draw: random.Random) -> Condition:
    match condition:
        case All(parts) if parts:
            j = draw.randrange(len(parts))
            changed = [] if draw.random() < 0.3 else [_other(parts[j], draw)]
            return both(*parts[:j], *changed, *parts[j + 1 :])
        case AtLeastZero(value):
            return le(0, value + draw.choice([-1, 1]))
    return negation(condition)
