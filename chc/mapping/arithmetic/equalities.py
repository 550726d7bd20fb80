"""Equal sums of products, in steps: equal factors are found by linear arithmetic and put in each other's place.

``16*((16*b + r) div 16 * n + v)`` is ``16*(b*n + v)`` because the quotient is ``b``.  Asked at once, solvers answer in
milliseconds or never; that the quotient is ``b`` is linear, and the rest is a polynomial identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.integers import is_linear
from smt_encodings.expressions.polynomials import Polynomial, difference_of, expand, polynomial_term, quotient_of

from .ranges import Decide
from .steps import Step


def equality_steps(hypotheses: Sequence[FNode], left: FNode, right: FNode, decide: Decide) -> list[Step] | None:
    """Steps that prove ``left = right``; None where they are not found."""
    linear = [h for h in conjuncts(hypotheses) if is_linear(h)]
    one, two = expand(left), expand(right)
    steps: list[Step] = []
    conclusions: list[FNode] = []
    while True:
        difference = difference_of(one, two)
        products = [m for m in difference if len(m) > 1]
        if not products:
            break
        pair = _equal_factors(linear, [m for m in products if m in one], [m for m in products if m in two], decide)
        if pair is None and (pair := _vanishing_factor(linear, difference, decide)) is not None:
            two = _replaced(two, *pair)
        if pair is None:
            return None
        conclusion = smt.Equals(*pair)
        steps.append(Step(f"factor {len(steps)}", linear, conclusion))
        conclusions.append(conclusion)
        one = _replaced(one, *pair)
    rest = smt.Equals(polynomial_term(difference), smt.Int(0))
    if difference:
        if not decide(linear, rest):
            return None
        steps.append(Step("sum", linear, rest))
        conclusions.append(rest)
    steps.append(Step("whole", conclusions, smt.Equals(left, right)))
    return steps


def _equal_factors(
    linear: list[FNode], left: Sequence[tuple[FNode, ...]], right: Sequence[tuple[FNode, ...]], decide: Decide
) -> tuple[FNode, FNode] | None:
    """A symbol of the one side's products and one of the other's that are always equal."""
    pairs: dict[tuple[FNode, FNode], None] = {}
    for monomial in left:
        for other in right:
            if len(monomial) == len(other):
                pairs |= {(a, b): None for a in monomial if a not in other for b in other if b not in monomial}
    return next((p for p in pairs if p[0].is_symbol() and decide(linear, smt.Equals(*p))), None)


def _vanishing_factor(linear: list[FNode], difference: Polynomial, decide: Decide) -> tuple[FNode, FNode] | None:
    """A symbol of a sum that stands with a product and is always 0, and what the symbol then equals."""
    for product in {m[:i] + m[i + 1 :]: None for m in difference if len(m) > 1 for i in range(len(m))}:
        factor = quotient_of(difference, product)
        zero = smt.Equals(polynomial_term(factor), smt.Int(0))
        if not is_linear(zero) or not decide(linear, zero):
            continue
        unit = gcd(*factor.values())
        for symbol in (m[0] for m, c in factor.items() if m and abs(c) == unit and m[0].is_symbol()):
            others = {m: -c // factor[symbol,] for m, c in factor.items() if m != (symbol,)}
            if symbol not in (equal := polynomial_term(others)).get_free_variables():
                return symbol, equal
    return None


def _replaced(polynomial: Polynomial, symbol: FNode, by: FNode) -> Polynomial:
    return expand(polynomial_term(polynomial).substitute({symbol: by}))
