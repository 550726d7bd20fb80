"""By what to replace symbols of one sum of products so that it becomes another: guesses, of which steps are made."""

from __future__ import annotations

from collections.abc import Iterator, Set

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from smt_encodings.expressions.polynomials import Polynomial, expand, polynomial_term, without


def corresponding(one: FNode, two: FNode, sizes: Set[FNode] = frozenset()) -> Iterator[dict[FNode, FNode]]:
    """By what to replace symbols of one sum of products, so that it becomes another: each symbol by another one.

    The last digit, such as the z of ``n*a + k + z`` against ``n*b + 16*v + c``, may become a sum.  ``sizes`` stay.

    >>> a, b, n = (smt.Symbol(x, smt.INT) for x in "abn")
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


def without_counters(one: FNode, two: FNode, counters: Set[FNode]) -> dict[FNode, FNode]:
    """By what to replace counters in a sum, so that it becomes another without them; nothing where that is not found.

    Of the counters with one factor one becomes all that has this factor in the other sum, and the rest become 0.
    """
    groups: dict[tuple[tuple[FNode, ...], int], list[FNode]] = {}
    here, there = expand(one), expand(two)
    rest = dict(there)
    for monomial, coefficient in here.items():
        own = [a for a in monomial if a in counters]
        if not own:
            rest[monomial] = rest.get(monomial, 0) - coefficient
        elif len(own) == 1:
            groups.setdefault((tuple(a for a in monomial if a is not own[0]), coefficient), []).append(own[0])
        else:
            return {}
    renamed: dict[FNode, FNode] = {}
    for (factor, coefficient), own in sorted(groups.items(), key=lambda g: -len(g[0][0])):
        digit: Polynomial = {}
        for monomial in [m for m, c in rest.items() if c == coefficient]:
            if (left := without(monomial, factor)) is not None:
                digit[left] = 1
                del rest[monomial]
        first, *others = own
        renamed |= {first: polynomial_term(digit), **dict.fromkeys(others, smt.Int(0))}
    return renamed if not any(rest.values()) and expand(one.substitute(renamed)) == there else {}
