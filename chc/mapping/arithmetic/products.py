"""Products of symbols as symbols: a form in which solvers are asked, of which what is meant is an instance."""

from __future__ import annotations

from collections.abc import Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.expressions.polynomials import expand, polynomial_term


def linearised(formulas: Sequence[FNode]) -> tuple[list[FNode], dict[FNode, FNode]]:
    """The formulas with a symbol for each product of symbols, the same one wherever the product stands; the products.

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

    linear = [walk(f) for f in formulas]
    return linear, {symbol: polynomial_term({monomial: 1}) for monomial, symbol in products.items()}
