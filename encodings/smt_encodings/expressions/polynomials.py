"""Integer terms as polynomials over their symbols."""

from __future__ import annotations

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from smt_encodings.caching import cached_with_symbols

Polynomial = dict[tuple[FNode, ...], int]
"""Coefficients of products of atoms; the empty product is the constant."""


@cached_with_symbols(100_000)
def expand(term: FNode) -> Polynomial:
    """The polynomial of a term over its atoms (symbols and whatever is neither sum nor product); not to be changed."""
    if term.is_int_constant():
        value = int(term.constant_value())
        return {(): value} if value else {}
    if term.is_plus() or term.is_minus():
        signs = [1, -1] if term.is_minus() else [1] * len(term.args())
        result: Polynomial = {}
        for sign, argument in zip(signs, term.args(), strict=True):
            for monomial, coefficient in expand(argument).items():
                result[monomial] = result.get(monomial, 0) + sign * coefficient
        return {m: c for m, c in result.items() if c}
    if term.is_times():
        result = {(): 1}
        for argument in term.args():
            result = product_of(result, expand(argument))
        return result
    return {(term,): 1}


@cached_with_symbols(100_000)
def text_of(term: FNode) -> str:
    """The text of an atom, by which products are ordered."""
    return str(term)


def polynomial_term(polynomial: Polynomial) -> FNode:
    """A polynomial as a term."""
    parts = []
    for monomial, coefficient in polynomial.items():
        factors = list(monomial) if coefficient == 1 and monomial else [smt.Int(coefficient), *monomial]
        parts.append(smt.Times(factors) if len(factors) > 1 else factors[0])
    return smt.Plus(parts) if len(parts) > 1 else parts[0] if parts else smt.Int(0)


def difference_of(left: Polynomial, right: Polynomial) -> Polynomial:
    """left - right."""
    result = dict(left)
    for monomial, coefficient in right.items():
        result[monomial] = result.get(monomial, 0) - coefficient
    return {m: c for m, c in result.items() if c}


def product_of(left: Polynomial, right: Polynomial) -> Polynomial:
    """left * right."""
    result: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            key = tuple(sorted((*a, *b), key=text_of))
            result[key] = result.get(key, 0) + x * y
    return {m: c for m, c in result.items() if c}


def quotient_of(polynomial: Polynomial, factors: tuple[FNode, ...]) -> Polynomial:
    """The sum that stands with a product: what is left of the monomials that have its factors."""
    divided = ((without(m, factors), c) for m, c in polynomial.items())
    return {m: c for m, c in divided if m is not None}


def without(monomial: tuple[FNode, ...], factors: tuple[FNode, ...]) -> tuple[FNode, ...] | None:
    """A product without some of its factors; None where it does not have them."""
    left = list(monomial)
    for factor in factors:
        place = next((i for i, a in enumerate(left) if a is factor), None)
        if place is None:
            return None
        del left[place]
    return tuple(left)
