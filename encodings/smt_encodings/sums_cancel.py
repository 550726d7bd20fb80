"""What is left of a claim about sums when what both sides add up is cancelled.

The hash encoding collects, of a sum, the hashes of its elements (:mod:`smt_encodings.sums_encode`).  The difference of
both sides is a linear combination of hashes ``h(e)`` with integer coefficients: how much more often the left side adds
``e`` up than the right side.  :func:`difference` gives it, with sums among elements opened and -0.0 left out.  Elements
are the same where they must be the same values: symbols by name, literals by exact value, products of these in either
order.  All other products, of sums or of products, are the same only where they are the same term; whether they are
equal is a question about the values of sums, which is left to solvers.

Coefficients are Python integers, not integers modulo a power of two.  Where none is left, the sides are equal by the
laws of addition alone; docs/reductions.md has the argument.  Where some are left, nothing follows from this module.
"""

from __future__ import annotations

from typing import TypeAlias

from .sums import NEGATIVE_ZERO, Constant, Number, Product, Sum, SumClaim, Symbol, Term

__all__ = ["Element", "difference", "sums_within"]

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


def difference(claim: SumClaim) -> dict[Element, int]:
    """How much more often each element is added up on the left than on the right; only where that is not 0.

    Each sum is opened once, with the number of times that it occurs, so that the time is linear in the number of terms.
    """
    sides = [side if isinstance(side, Sum) else Sum((side,)) for side in (claim.left, claim.right)]
    order = sums_within(*sides)
    times = dict.fromkeys(map(id, order), 0)
    times[id(sides[0])] += 1
    times[id(sides[1])] -= 1
    found: dict[Element, int] = {}
    count = found.get
    for term in reversed(order):  # a sum comes after all sums of which it is an element
        n = times[id(term)]
        if n == 0:
            continue
        for element in term.elements:
            key: Element
            if isinstance(element, Product):
                left, right = element.left, element.right
                a = left.name if isinstance(left, Symbol) else left.exact if isinstance(left, Constant) else None
                b = right.name if isinstance(right, Symbol) else right.exact if isinstance(right, Constant) else None
                key = element if a is None or b is None else frozenset((a, b))
            elif isinstance(element, Symbol):
                key = element.name
            elif isinstance(element, Constant):
                key = element.exact
                if key is NEGATIVE_ZERO:
                    continue
            else:
                times[id(element)] += n
                continue
            found[key] = count(key, 0) + n
    return {element: n for element, n in found.items() if n}
