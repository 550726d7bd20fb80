"""Choices by the counter of a short loop as multiples of the counter."""

from __future__ import annotations

from collections.abc import Mapping

from ila_lang import BOOL, Expr, free_variables, postorder, substitute
from ila_lang.language.expr import bv_const, resize
from smt_encodings.environment import plain

Requirement = tuple[str, Expr]
"""A condition that decoding relies on, with a text."""

_SHORT = 8


def with_multiples(term: Expr, literal: Mapping[Expr, int], requires: list[Requirement]) -> Expr:
    """``term`` with choices by the counter of a short loop replaced by multiples of the counter, where they are.

    A table of four bases 0, n, 2*n, 3*n, of which processing element p takes its own, becomes p*n.  That the entries
    from 2 on are these multiples is added to ``requires``, as a theorem about sizes; 0 and 1 are by construction.
    ``literal`` gives the counters of open loops with literal extents.
    """
    mapping: dict[Expr, Expr] = {}
    below: set[Expr] = set()
    for node in reversed(postorder([term])):
        if node in below or node.op != "ite" or node.sort == BOOL:
            below |= set(node.args) if node in below else set()
            continue
        form = _multiple(node, literal, requires)
        if form is not None:
            mapping[node] = form
            below |= set(node.args)
    return substitute(term, mapping) if mapping else term


def _multiple(choice: Expr, literal: Mapping[Expr, int], requires: list[Requirement]) -> Expr | None:
    """A choice by one counter of a short loop as a multiple of the counter; None for other choices."""
    names = set(free_variables(choice.args[0]))
    counter = next((c for c, n in literal.items() if names == {c.name} and 2 <= n <= _SHORT), None)
    if counter is None:
        return None
    entries = [substitute(choice, {counter: bv_const(k, counter.width)}) for k in range(literal[counter])]
    if not entries[0].is_const or entries[0].value or counter.name in free_variables(*entries):
        return None
    if any(n.op == "load" for n in postorder(entries)) or any(e is entries[1] for e in entries[2:]):
        return None  # a choice between data, or between nothing and one value
    for k, entry in list(enumerate(entries))[2:]:
        multiple = entries[1] * k
        if multiple is not entry:
            text = f"entry {k} of what {plain(counter.name)} chooses is {k} times entry 1"
            requires.append((text, entry == multiple))
    return resize(counter, choice.width) * entries[1]
