"""Indices with fewer quotients, once it is known what some of them are.

The equations used are those of integers: q = s where 0 <= a - s*b < b, for q = a // b, and a // (b*c) = (a // b) // c.
Divisors are positive: what divides says so (:mod:`ir_semantics.tensors.index`).
"""

from __future__ import annotations

from collections.abc import Callable

from ir_semantics.tensors.index import Index, Quotient, index

__all__ = ["simplified"]

Known = Callable[[Quotient], int | None]
"""The value of a quotient where it is known; the order of questions depends on the answers only."""


def simplified(value: Index, known: Known) -> Index:
    """An index that is equal, with fewer quotients where possible."""
    if not value.quotients:
        return value

    def new(atom: str | Quotient) -> Index | None:
        if isinstance(atom, str):
            return None
        return _quotient(simplified(atom.dividend, known), simplified(atom.divisor, known), known)

    return value.rebuild(new)


def _quotient(dividend: Index, divisor: Index, known: Known) -> Index:
    plain = dividend // divisor
    if not plain.quotients:
        return plain
    if len(divisor.terms) == 1 and divisor.constant is None:  # a // (b*c) = (a // b) // c
        ((monomial, coefficient),) = divisor.terms
        factors = [Index({(a,): 1}) for a in monomial] + ([index(coefficient)] if coefficient != 1 else [])
        for factor in factors if len(factors) > 1 else ():
            inner = _quotient(dividend, factor, known)
            if not inner.quotients:
                return _quotient(inner, divisor // factor, known)
    last = plain.quotients[-1]
    shift = known(last)
    return plain if shift is None else plain.rebuild(lambda atom: index(shift) if atom == last else None)
