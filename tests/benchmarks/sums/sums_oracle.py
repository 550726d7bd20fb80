"""Terms of sums to draw from, and an oracle of their equality that shares no code with what is tested."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import strategies as st

from benchmarks.sums.terms import Constant, Product, Sum, SumClaim, Symbol, Term

X, Y, Z = Symbol("x"), Symbol("y"), Symbol("z")
UNIT, ZERO = Constant(-0.0), Constant(0.0)


def add(*elements: Term) -> Sum:
    return Sum(elements)


def doubled(term: Term, times: int) -> Term:
    for _ in range(times):
        term = add(term, term)
    return term


def key(term: Term) -> object:
    """A canonical form: equal for terms that are equal by commutativity, associativity and the unit alone."""
    if isinstance(term, Symbol):
        return ("symbol", term.name)
    if isinstance(term, Constant):
        return ("constant", str(term.exact))
    if isinstance(term, Product):
        return ("product", tuple(sorted((repr(key(term.left)), repr(key(term.right))))))
    bag = elements(term)
    if not bag:
        return ("constant", "-0.0")
    if sum(bag.values()) == 1:
        return next(iter(bag))
    return ("sum", tuple(sorted((repr(k), n) for k, n in bag.items())))


def elements(term: Term) -> Counter[object]:
    """The multiset of what is added up, sums opened and units left out."""
    if isinstance(term, Sum):
        return sum((elements(e) for e in term.elements), Counter())
    found = key(term)
    return Counter() if found == ("constant", "-0.0") else Counter([found])


def equal(claim: SumClaim) -> bool:
    return elements(claim.left) == elements(claim.right)


LEAVES = st.sampled_from([X, Y, Z, UNIT, ZERO, Constant(2), Constant(-2)])
PRODUCTS = st.builds(Product, LEAVES, LEAVES)
ATOMS = LEAVES | PRODUCTS


def sums_of(parts: st.SearchStrategy[Term], most: int) -> st.SearchStrategy[Term]:
    return st.lists(parts, max_size=most).map(lambda x: Sum(tuple(x)))


TERMS = sums_of(ATOMS | sums_of(ATOMS, 3) | st.builds(Product, LEAVES, sums_of(LEAVES, 2)), 3)


def regrouped(term: Term, source: random.Random) -> Term:
    """The same elements in another order, in other groups, with units in between and factors exchanged."""
    if isinstance(term, Product):
        parts = [regrouped(term.left, source), regrouped(term.right, source)]
        source.shuffle(parts)
        return Product(*parts)
    if not isinstance(term, Sum):
        return term
    parts = []
    for element in term.elements:
        part = regrouped(element, source)
        parts += part.elements if isinstance(part, Sum) and source.random() < 0.5 else [part]
    parts += [UNIT] * source.randrange(2)
    source.shuffle(parts)
    if len(parts) > 1 and source.random() < 0.5:
        cut = source.randrange(len(parts))
        parts = [Sum(tuple(parts[:cut])), *parts[cut:]]
    return Sum(tuple(parts))
