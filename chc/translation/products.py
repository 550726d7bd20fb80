"""Products of what is not negative are not negative: what solvers need to be told of places in tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ir_semantics.elements.binders import outside_binders
from ir_semantics.elements.operators import at_most, conjuncts, either, negation, of_polynomial, polynomial, times
from ir_semantics.elements.terms import Term, number
from ir_semantics.scalars.formats import INTEGERS
from ir_semantics.tensors.index import Index

MOST = 60
"""So many products at most."""


def products(hypotheses: Sequence[Term], goal: Term) -> list[Term]:
    """``0 <= a and 0 <= b`` give ``0 <= a * b``, for products that a goal needs; each is true of all integers."""
    wanted = _factors(_integers([goal]))
    if not wanted:
        return []
    sides = [_side(c) for c in conjuncts([*hypotheses, negation(goal)])]
    found: dict[Term, None] = {}
    for side in sides:
        for name, others in wanted:
            if side is not None and name in side.variables and not side.quotients:
                found[_product(side, others)] = None
    for _, others in wanted:
        names = [n for (m, _) in others.terms for n in m]
        if len(names) == 2 and all(isinstance(n, str) for n in names):
            found[_product(Index({(names[0],): 1}), Index({(names[1],): 1}))] = None
    return list(found)[:MOST]


def _side(condition: Term) -> Index | None:
    """What a condition says is not negative."""
    return polynomial(condition.args[1]) if condition.op == "le" and condition.args[0] is number(0) else None


def _integers(terms: Iterable[Term]) -> list[Index]:
    return [
        polynomial(a)
        for root in terms
        for t in outside_binders(root)
        if t.op in ("le", "eq")
        for a in t.args
        if a.kind == INTEGERS
    ]


def _factors(values: Iterable[Index]) -> dict[tuple[str, Index], None]:
    """Atoms of products, each with what it is multiplied with."""
    found: dict[tuple[str, Index], None] = {}
    for value in values:
        for monomial, _ in value.terms:
            for k, name in enumerate(monomial):
                others = (*monomial[:k], *monomial[k + 1 :])
                if others and isinstance(name, str):
                    found[name, Index({others: 1})] = None
    return found


def _product(a: Index, b: Index) -> Term:
    one, other = of_polynomial(a), of_polynomial(b)
    given = [negation(at_most(number(0), x)) for x in (one, other)]
    return either(*given, at_most(number(0), times(one, other)))
