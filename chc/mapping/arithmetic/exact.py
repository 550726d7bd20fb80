"""Comparisons and products of terms of any widths, as the numbers that they are: nothing is cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ila_lang import Expr, all_of, const, resize


def less(left: Expr, right: Expr) -> Expr:
    """``left < right``; below a minimum is below both."""
    both = minimum_of(right)
    if both:
        return all_of([less(left, part) for part in both])
    width = max(left.width, right.width)
    return resize(left, width) < resize(right, width)


def minimum_of(term: Expr) -> tuple[Expr, ...]:
    """The operands of a term that is the smaller one of two; none for other terms."""
    while term.op == "zext":
        term = term.args[0]
    if term.op != "ite" or term.args[0].op not in ("bvult", "bvule"):
        return ()
    condition, *arms = term.args
    return condition.args if all(a is b for a, b in zip(condition.args, arms, strict=True)) else ()


def at_most(left: Expr, right: Expr) -> Expr:
    """``left <= right``."""
    width = max(left.width, right.width)
    return resize(left, width) <= resize(right, width)


def equal(left: Expr, right: Expr) -> Expr:
    """``left == right``."""
    width = max(left.width, right.width)
    return resize(left, width) == resize(right, width)


def successor(term: Expr) -> Expr:
    """``term + 1``, in one bit more."""
    return resize(term, term.width + 1) + 1


def product(factors: Iterable[Expr]) -> Expr:
    """The product of some terms, in as many bits as they have together."""
    terms = list(factors)
    width = max(sum(t.width for t in terms), 1)
    return math.prod((resize(t, width) for t in terms), start=const(1, width))


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of some terms, in enough bits."""
    width = max((t.width for t in terms), default=1) + len(terms)
    return sum((resize(t, width) for t in terms), start=const(0, width))


def number_of(digits: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """The number that has the first terms as its digits and the second ones as radices, and the radices' product."""
    width = 1 + sum(max(digit.width, radix.width) + 1 for digit, radix in digits)
    number = const(0, width)
    for digit, radix in digits:
        number = number * resize(radix, width) + resize(digit, width)
    return number, resize(product(radix for _, radix in digits), width)
