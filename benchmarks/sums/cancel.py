"""What is left of a claim about sums when what both sides add up is cancelled.

The hash encoding collects, of a sum, the hashes of its elements (:mod:`benchmarks.sums.encode`).  The difference of
both sides is a linear combination of hashes ``h(e)`` with integer coefficients: how much more often the left side adds
``e`` up than the right side.  :func:`difference` gives it, with sums among elements opened and -0.0 left out;
:func:`cancellation` writes down how it vanishes, for :mod:`benchmarks.sums.replay`, on which a PROVED rests.
Elements are the same where they must be the same values: symbols by name, literals by exact value, products of these in
either order.  All other products, of sums or of products, are the same only where they are the same term; whether they
are equal is a question about the values of sums, which is left to solvers.

Coefficients are Python integers, not integers modulo a power of two.  Where some are left, nothing follows from this
module.
"""

from __future__ import annotations

from typing import TypeAlias

from .replay import Cancellation, Place, numbered
from .terms import NEGATIVE_ZERO, Constant, Number, Product, Sum, SumClaim, Symbol, Term

Element: TypeAlias = str | Number | frozenset[str | Number] | Product
"""A symbol's name, a literal's value, the set of both factors of a product of such (of one, if it is a square), or the
product itself."""


def sums_within(*roots: Term) -> list[Sum]:
    """The roots that are sums and all sums that are elements of these, each once and after those among its elements.

    Sums that are factors are not among them.
    """
    order: dict[int, Sum] = {}
    stack = [root for root in roots[::-1] if isinstance(root, Sum)]
    while stack:
        term = stack[-1]
        if id(term) in order:
            stack.pop()
        elif waiting := [e for e in term.elements if type(e) is Sum and id(e) not in order]:
            stack.extend(reversed(waiting))
        else:
            order[id(term)] = term
    return list(order.values())


def _factor(term: Term) -> str | Number | None:
    return term.name if isinstance(term, Symbol) else term.exact if isinstance(term, Constant) else None


def _element(term: Term) -> tuple[str, Element]:
    """By which law elements are the same, and what is the same."""
    if isinstance(term, Product):
        a, b = _factor(term.left), _factor(term.right)
        return ("one product", term) if a is None or b is None else ("the same factors", frozenset((a, b)))
    if isinstance(term, Symbol):
        return "one symbol", term.name
    assert isinstance(term, Constant)
    return "one literal", term.exact


def _cancelled(claim: SumClaim) -> tuple[tuple[int, ...], dict[tuple[str, Element], list[Place]]]:
    """How often each sum is opened, and the places of each element.

    Each sum is opened once, with the number of times that it occurs, so that the time is linear in the number of terms.
    """
    sums = numbered(claim)
    times = dict.fromkeys(map(id, sums), 0) | {id(sums[0]): 1, id(sums[1]): -1}
    for term in reversed(sums_within(*sums)):  # a sum comes after all sums of which it is an element
        for element in term.elements if times[id(term)] else ():
            if isinstance(element, Sum):
                times[id(element)] += times[id(term)]
    places: dict[tuple[str, Element], list[Place]] = {}
    for number, term in enumerate(sums):
        for place, element in enumerate(term.elements if times[id(term)] else ()):
            if not isinstance(element, Sum) and not (isinstance(element, Constant) and element.exact is NEGATIVE_ZERO):
                places.setdefault(_element(element), []).append((number, place))
    return tuple(times[id(term)] for term in sums), places


def difference(claim: SumClaim) -> dict[Element, int]:
    """How much more often each element is added up on the left than on the right; only where that is not 0."""
    times, places = _cancelled(claim)
    counts = {element: sum(times[number] for number, _ in at) for (_, element), at in places.items()}
    return {element: n for element, n in counts.items() if n}


def cancellation(claim: SumClaim) -> Cancellation | None:
    """The derivation of a claim whose difference is empty; :func:`benchmarks.sums.replay.replay` checks it."""
    times, places = _cancelled(claim)
    if any(sum(times[number] for number, _ in at) for at in places.values()):
        return None
    return Cancellation(times, tuple((law, tuple(at)) for (law, _), at in places.items()))
