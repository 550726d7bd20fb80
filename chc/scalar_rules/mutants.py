"""Mutants of a rule on scalars: the rule with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random

from ir_semantics.scalars.formats import BOOLEAN
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import Scalar, apply, constant, not_, postorder, substitute, variable

from .rule import ScalarRule

_SIBLINGS = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "maximum": "minimum", "minimum": "maximum",
    "maxnum": "minnum", "minnum": "maxnum", "lt": "le", "le": "lt", "eq": "lt", "and": "or", "or": "and",
    "floor": "ceil", "ceil": "trunc", "trunc": "floor", "quotient": "floor_quotient", "floor_quotient": "quotient",
    "shift_left": "shift_right", "shift_right": "shift_left", "neg": "abs", "abs": "neg", "sqrt": "abs",
}  # fmt: skip

_ORDERED = frozenset({"sub", "div", "pow", "lt", "le", "quotient", "floor_quotient", "shift_left", "shift_right"})
"""Operators whose operands may not be exchanged."""


def mutants(rule: ScalarRule) -> Iterator[ScalarRule]:
    """The rule with one thing on its right side changed: an operator, a constant, a choice or a variable."""
    for term in postorder([rule.right]):
        changed = next(_changes(term, rule), None)
        if changed is not None and changed is not term:
            right = substitute(rule.right, {term: changed})
            if right is not rule.right:
                yield replace(rule, name=f"{rule.name}, changed", right=right, examples=())


def drawn_mutants(rule: ScalarRule, draw: Random) -> Iterator[tuple[str, ScalarRule]]:
    """All rules with one thing changed, on a side or in the condition, in random order and with the change in words."""
    places: tuple[tuple[str, Scalar, Callable[[Scalar], ScalarRule]], ...] = (
        ("left side", rule.left, lambda new: replace(rule, left=new)),
        ("right side", rule.right, lambda new: replace(rule, right=new)),
        ("condition", rule.condition, lambda new: replace(rule, condition=new)),
    )
    changed_rules: dict[str, ScalarRule] = {}
    for where, root, put in places:
        for term in postorder([root]):
            for changed in (*_changes(term, rule), *_more_changes(term)):
                new = substitute(root, {term: changed})
                if new is not root:
                    what = f"{where}: {term} becomes {changed}"
                    changed_rules[what] = replace(put(new), name=f"{rule.name}, {what}", examples=())
    order = list(changed_rules.items())
    draw.shuffle(order)
    yield from order


def _changes(term: Scalar, rule: ScalarRule) -> Iterator[Scalar]:
    """What may stand in a term's place, in the same format."""
    if term.op in _SIBLINGS:
        yield apply(_SIBLINGS[term.op], *term.args)
    elif term.op == "select":
        yield apply("select", term.args[0], term.args[2], term.args[1])
    elif term.format == BOOLEAN:
        yield not_(term)
    elif term.op == "constant":
        yield constant(Fraction(1 if term.payload == 0 else 0), term.format)
    elif term.op == "variable":
        formats = {variable(str(t.payload), t.format) for t in postorder(rule.terms) if t.op == "variable"}
        others = [v for v in sorted(formats, key=str) if v.format == term.format and v is not term]
        if others:
            yield others[0]
        else:
            yield constant(Fraction(0), term.format) if term.format.family == "code" else -term


def _more_changes(term: Scalar) -> Iterator[Scalar]:
    """Operands exchanged, a constant 1 more or less, a Boolean negated."""
    if term.op in _ORDERED:
        yield apply(term.op, *term.args[::-1])
    if term.op == "constant" and isinstance(term.payload, Fraction) and term.format != BOOLEAN:
        yield from (constant(term.payload + step, term.format) for step in (1, -1))
    if term.format == BOOLEAN:
        yield not_(term)


assert set(_SIBLINGS) <= set(OPERATORS)
