"""Theorems about index terms in steps: products of symbols as symbols, terms that correspond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.expressions.polynomials import expand, polynomial_term

Step = tuple[str, list[FNode], FNode]
"""Name, hypotheses and goal of one step of a proof."""


def linearised(formulas: Sequence[FNode]) -> list[FNode]:
    """The formulas with a symbol for each product of symbols, the same one wherever the product stands.

    What follows from them for any values of these symbols follows from the formulas themselves.
    """
    products: dict[tuple[FNode, ...], FNode] = {}

    def plain(term: FNode) -> FNode:
        parts = []
        for monomial, coefficient in expand(term).items():
            if len(monomial) > 1 and monomial not in products:
                products[monomial] = smt.Symbol(f"!product{len(products)}", INT)
            factors = [products[monomial]] if len(monomial) > 1 else list(monomial)
            parts.append(smt.Times(smt.Int(coefficient), *factors) if factors else smt.Int(coefficient))
        return smt.Plus(parts) if parts else smt.Int(0)

    def walk(formula: FNode) -> FNode:
        if formula.is_le():
            return smt.LE(plain(formula.arg(0)), plain(formula.arg(1)))
        if formula.is_lt():
            return smt.LT(plain(formula.arg(0)), plain(formula.arg(1)))
        if formula.is_equals():
            return smt.Equals(plain(formula.arg(0)), plain(formula.arg(1)))
        if formula.is_symbol() or formula.is_bool_constant():
            return formula
        parts = [walk(a) for a in formula.args()]
        if formula.is_and():
            return smt.And(parts)
        if formula.is_or():
            return smt.Or(parts)
        if formula.is_not():
            return smt.Not(parts[0])
        if formula.is_implies():
            return smt.Implies(*parts)
        if formula.is_iff():
            return smt.Iff(*parts)
        if formula.is_ite():
            return smt.Ite(*parts)
        raise ValueError(f"Formula must be made of comparisons and connectives, not {formula}")

    return [walk(f) for f in formulas]


def corresponding(one: FNode, two: FNode, sizes: Set[FNode] = frozenset()) -> Iterator[dict[FNode, FNode]]:
    """By what to replace symbols of one sum of products, so that it becomes another: each symbol by another one.

    The last digit, such as the z of ``n*a + k + z`` against ``n*b + 16*v + c``, may become a sum.  ``sizes`` stay.

    >>> a, b, n = (smt.Symbol(x, INT) for x in "abn")
    >>> list(corresponding(smt.Plus(smt.Times(smt.Int(8), a), n), smt.Plus(smt.Times(smt.Int(8), b), n)))
    [{a: b}]
    """
    left, right = expand(one), expand(two)

    def match(
        rest: list[tuple[FNode, ...]], others: list[tuple[FNode, ...]], known: dict[FNode, FNode]
    ) -> Iterator[dict[FNode, FNode]]:
        if not rest or not others:
            if not rest and not others:
                yield known
            return
        for other in (o for o in others if right[o] == left[rest[0]] and len(o) == len(rest[0])):
            from_, to = [a for a in rest[0] if a not in other], [b for b in other if b not in rest[0]]
            if len(from_) != 1 or len(to) != 1 or not (from_[0].is_symbol() and to[0].is_symbol()):
                continue
            if from_[0] not in sizes and known.get(from_[0], to[0]) is to[0]:
                yield from match(rest[1:], [o for o in others if o is not other], {**known, from_[0]: to[0]})
        for digit in (m for m in rest if left[m] == len(m) == 1 and m[0].is_symbol() and len(rest) + len(others) > 2):
            if digit[0] not in sizes and digit[0] not in known:
                moved = {m: right[m] for m in others} | {m: -left[m] for m in rest if m is not digit}
                yield {**known, digit[0]: polynomial_term(moved)}

    left_only = [m for m, c in left.items() if right.get(m) != c]
    right_only = [m for m, c in right.items() if left.get(m) != c]
    for renamed in match(left_only, right_only, {}):
        # what both have in common may have symbols of these, too
        if renamed and expand(one.substitute(renamed)) == right:
            yield renamed
