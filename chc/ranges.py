"""Bounds on sums of products of counters, in steps that solvers find easy.

``base + 16*((t div 16)*n + v) + t mod 16`` stays below a limit because each counter is at most its extent less one,
and the sum grows with every counter.  Asked at once, with symbolic ``n``, solvers answer in milliseconds or never.  The
steps replace one counter after the other by its bound: where the difference ``limit - sum`` is ``rest - k*c`` with
``k >= 0`` and ``c <= u``, it is at least ``rest - k*u``, for ``(u - c)*k >= 0``.  A counter that stands with a positive
factor is dropped, for ``c*k >= 0``.  What is left speaks of sizes only, and is linear in products of sizes.

The facts ``(u - c)*k >= 0`` follow from ``u - c >= 0`` and ``k >= 0`` by one lemma about two numbers, an obligation
like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.discharge import conjuncts
from smt_encodings.integers import is_linear

from .polynomials import Polynomial, Step, difference_of, expand, polynomial_term, product_of

__all__ = ["range_steps"]

Decide = Callable[[list[FNode], FNode], bool]

MOST_STEPS = 24


def range_steps(
    hypotheses: Sequence[FNode], smaller: FNode, larger: FNode, sizes: set[FNode], decide: Decide, gap: int = 0
) -> list[Step] | None:
    """Steps that prove ``smaller + gap <= larger``; None where they are not found.

    ``sizes`` are the symbols that may be left at the end; all others are replaced by bounds.
    """
    known = conjuncts(hypotheses)
    difference = difference_of(expand(larger), expand(smaller))
    steps: list[Step] = []
    stones: list[FNode] = []
    for _ in range(MOST_STEPS):
        found = _next(known, difference, sizes, decide)
        if found is None:
            break
        gain, factor, difference, facts = found
        if not steps:
            a, b = smt.Symbol("!a", INT), smt.Symbol("!b", INT)
            zero = smt.Int(0)
            steps.append(("products", [smt.LE(zero, a), smt.LE(zero, b)], smt.LE(zero, smt.Times(a, b))))
        number = len(stones) + 1
        for what, term in (("distance", gain), ("factor", factor)):
            steps.append((f"{what} {number}", facts, smt.LE(smt.Int(0), term)))
        stones.append(smt.LE(smt.Int(0), polynomial_term(product_of(expand(gain), expand(factor)))))
    left = {s for m in difference for a in m for s in a.get_free_variables()}
    if not left <= sizes or not stones:
        return None
    rest = smt.LE(smt.Int(gap), polynomial_term(difference))
    about = [h for h in known if h.get_free_variables() <= sizes]
    if not decide(about, rest):
        return None
    steps.append(("sizes", about, rest))
    difference_term = polynomial_term(difference_of(expand(larger), expand(smaller)))
    steps.append(("sum", [rest, *stones], smt.LE(smt.Int(gap), difference_term)))
    steps.append(("whole", [smt.LE(smt.Int(gap), difference_term)], smt.LE(smt.Plus(smaller, smt.Int(gap)), larger)))
    return steps


def _next(
    known: list[FNode], difference: Polynomial, sizes: set[FNode], decide: Decide
) -> tuple[FNode, FNode, Polynomial, list[FNode]] | None:
    """A counter to replace: what its bound exceeds it by, its factor, the difference that is left, and facts used."""
    atoms = {a for m in difference for a in m if not a.get_free_variables() <= sizes}
    for atom in sorted(atoms, key=str):
        if any(m.count(atom) > 1 for m in difference):
            continue
        with_atom = {m: c for m, c in difference.items() if atom in m}
        factor = {tuple(a for a in m if a is not atom): c for m, c in with_atom.items()}
        rest = {m: c for m, c in difference.items() if m not in with_atom}
        about = _about(known, {atom, *(s for m in factor for a in m for s in a.get_free_variables())})
        if all(c > 0 for c in factor.values()):
            if decide(about, smt.LE(smt.Int(0), atom)):
                return atom, polynomial_term(factor), rest, about
            continue
        if any(c > 0 for c in factor.values()):
            continue
        positive = {m: -c for m, c in factor.items()}
        for bound in _bounds(known, atom):
            wider = _about(known, {*bound.get_free_variables(), *(s for h in about for s in h.get_free_variables())})
            if decide(wider, smt.LE(smt.Int(0), smt.Minus(bound, atom))):
                taken = product_of(expand(bound), positive)
                return smt.Minus(bound, atom), polynomial_term(positive), difference_of(rest, taken), wider
    return None


def _bounds(known: list[FNode], atom: FNode) -> list[FNode]:
    """Terms that may bound an atom from above: sizes first, then literals, the smallest first."""
    found: list[FNode] = []
    if "!div" in str(atom):  # a quotient may be bounded by that of an extent
        others = {s for h in known for s in h.get_free_variables() if "!div" in s.symbol_name()}
        found += [_less_one(s) for s in sorted(others - {atom}, key=str)]
    for fact in known:
        if fact.is_lt() and fact.arg(0) is atom:
            found.append(_less_one(fact.arg(1)))
        elif fact.is_le() and fact.arg(0) is atom:
            found.append(fact.arg(1))
        elif fact.is_not() and fact.arg(0).is_le() and fact.arg(0).arg(1) is atom:
            found.append(_less_one(fact.arg(0).arg(0)))
        elif fact.is_not() and fact.arg(0).is_lt() and fact.arg(0).arg(1) is atom:
            found.append(fact.arg(0).arg(0))
    found.sort(key=lambda b: (1, int(b.constant_value())) if b.is_constant() else (0, 0))
    return found


def _less_one(bound: FNode) -> FNode:
    return smt.Int(int(bound.constant_value()) - 1) if bound.is_constant() else smt.Minus(bound, smt.Int(1))


def _about(known: list[FNode], symbols: set[FNode]) -> list[FNode]:
    """What is known of symbols and of what linear facts tie them to."""
    reached = set(symbols)
    for _ in range(2):
        for fact in known:
            free = fact.get_free_variables()
            if free & reached and len(free) <= 3 and is_linear(fact):
                reached |= free
    return [h for h in known if h.get_free_variables() <= reached and is_linear(h)]
