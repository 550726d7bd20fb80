"""Pairs of families of summands, with a guess which tuple of one is which tuple of the other.

Summands are laid over each other; where subscripts differ, they must be equal, and these equations are solved in both
directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from ir_semantics.elements.bags import Family
from ir_semantics.elements.binders import outside_binders
from ir_semantics.elements.operators import atom, minus, of_polynomial, polynomial
from ir_semantics.elements.terms import Symbol, Term, number, variable_of
from ir_semantics.scalars.formats import INTEGERS
from ir_semantics.tensors.index import Atom, Index, index_of

from .solve import replaced, solved
from .theorem import Piece

COMMUTATIVE = frozenset(
    ("add", "mul", "maximum", "minimum", "maxnum", "minnum", "bit_and", "bit_or", "bit_xor", "same")
)
MOST_WAYS = 8
"""Ways to lay a summand over another one, at most."""


def pieces(one: Family, other: Family) -> Iterator[Piece]:
    """Guesses, the most likely one first."""
    seen: set[object] = set()
    for equations in islice(_ways(one, other), MOST_WAYS):
        piece = _piece(one, other, [polynomial(e) for e in equations])
        if piece is not None and (piece.forwards, piece.backwards) not in seen:
            seen.add((piece.forwards, piece.backwards))
            yield piece


def _ways(one: Family, other: Family) -> Iterator[tuple[Term, ...]]:
    own = frozenset(variable_of(v) for f in (one, other) for v in f.variables)
    yield from _alike(one.summand, other.summand, own)
    reads = [[t for t in outside_binders(f.summand) if t.op == "read"] for f in (one, other)]
    if reads[0] and [r.payload for r in reads[0]] == [r.payload for r in reads[1]]:
        yield tuple(minus(x, y) for a, b in zip(*reads, strict=True) for x, y in zip(a.args, b.args, strict=True))
    alike = [(v, w) for v, e in one.ranges for w, f in other.ranges if e is f]
    if alike and len({v for v, _ in alike}) == len({w for _, w in alike}) == len(alike):
        yield tuple(minus(v, w) for v, w in alike)  # what else a summand has follows from conditions


def _alike(a: Term, b: Term, own: frozenset[Symbol]) -> Iterator[tuple[Term, ...]]:
    """Equations between integers that make two terms the same; of the rest, operators alone are compared."""
    if a is b or (own.isdisjoint(a.symbols) and own.isdisjoint(b.symbols)):
        yield ()
        return
    if a.kind != b.kind:
        return
    if a.kind == INTEGERS and (a.op != b.op or a.op in ("symbol", "polynomial", "constant")):
        yield (minus(a, b),)
        return
    if a.op != b.op or a.payload != b.payload or len(a.args) != len(b.args):
        return
    for args in (b.args, b.args[::-1]) if a.op in COMMUTATIVE else (b.args,):
        ways = [list(islice(_alike(x, y, own), MOST_WAYS)) for x, y in zip(a.args, args, strict=True)]
        for parts in product(*ways):
            yield tuple(e for part in parts for e in part)


def _piece(one: Family, other: Family, equations: Sequence[Index]) -> Piece | None:
    pairs = _pairs(one, other, equations)
    try:
        forwards, backwards = _map(one, other, equations, pairs), _map(other, one, equations, pairs)
    except ZeroDivisionError:
        return None
    piece = Piece(one, other, forwards, backwards)
    return piece if piece.is_of_maps else None


def _pairs(one: Family, other: Family, equations: Sequence[Index]) -> dict[str, str]:
    """Variables of one extent and one weight in each equation, such as those of a window that both sides read."""
    pairs: dict[str, str] = {}
    for (v, e), (w, f) in product(one.ranges, other.ranges):
        here, there = _name(v), _name(w)
        is_new = e is f and here not in pairs and there not in pairs.values()
        together = [replaced(q, {there: index_of(here)}) for q in equations if is_new and here in q.variables]
        if together and all(here not in q.variables for q in together):
            pairs[here] = there
    return pairs


def _map(one: Family, other: Family, equations: Sequence[Index], pairs: Mapping[str, str]) -> tuple[Term, ...]:
    """The variables of the other family as terms in those of the first one."""
    names = {f: {_name(v): polynomial(e) for v, e in f.ranges} for f in (one, other)}
    known: dict[Atom, Index] = {w: index_of(v) for p in pairs.items() for v, w in (p, p[::-1]) if v in names[one]}
    determined: dict[Atom, Index] = dict(solved(_equalities(one.condition), names[one], {}).items())
    within = [replaced(replaced(e, known), determined) for e in equations]
    conditions = [replaced(e, known) for e in _equalities(other.condition)]
    unknown = {n: e for n, e in names[other].items() if n not in known}
    values = {str(w): v for w, v in known.items()} | solved([*within, *conditions], unknown, names[one])
    used = {n for e in equations for n in e.variables} | determined.keys()
    unused = [v for v in one.variables if _name(v) not in used]
    left = [n for n in names[other] if n not in values]
    if len(left) != len(unused):
        unused = []
    values |= dict(zip(left, map(polynomial, unused), strict=False))
    return tuple(of_polynomial(values[n]) if n in values else number(0) for n in names[other])


def _equalities(condition: Term) -> list[Index]:
    """What is 0 where a condition holds."""
    if condition.op == "and":
        return [e for part in condition.args for e in _equalities(part)]
    is_equality = condition.op == "eq" and condition.args[0].kind == INTEGERS
    return [polynomial(minus(*condition.args))] if is_equality else []


def _name(variable: Term) -> str:
    (name,) = polynomial(variable).variables
    assert atom(name) is variable
    return name
