"""When two bags of families are one bag: what must follow from what, for pieces that are guesses.

Let each piece p have maps f from the tuples of a family to those of another one, and g back.  Its tuples P are those x
with f(x) in the other family and g(f(x)) = x; Q are those y with g(y) in the first family and f(g(y)) = y.  Then f is a
bijection from P to Q, whatever f and g are: for x in P, f(x) is in the other family, g(f(x)) = x is in the first, and
f(g(f(x))) = f(x).  Where the P of all pieces are a partition of each family of one bag, the Q one of each family of the
other, and summands at x and f(x) are the same, the bags have the same summands, each as often.  Families are finite, as
each variable is below an extent.

Quotients mean something where divisors are positive, so this is asked of what maps divide by, first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ir_semantics.elements.bags import Family
from ir_semantics.elements.operators import at_most, both, either, equal, negation, of_polynomial, polynomial, same
from ir_semantics.elements.terms import Term, integer_value, number, variable_of
from ir_semantics.tensors.index import divisors


@dataclass(frozen=True)
class Piece:
    """Tuples of one family and of another one that are each other's images under maps there and back."""

    one: Family
    other: Family
    forwards: tuple[Term, ...]
    backwards: tuple[Term, ...]

    @property
    def is_of_maps(self) -> bool:
        """Whether both are maps: of the variables of the family that they map, with divisors that depend on none."""
        here, there = (frozenset(map(variable_of, f.variables)) for f in (self.one, self.other))
        maps = ((self.forwards, self.other, there - here), (self.backwards, self.one, here - there))
        return (
            all(len(terms) == len(to.variables) for terms, to, _ in maps)
            and all(foreign.isdisjoint(t.symbols) for terms, _, foreign in maps for t in terms)
            and all((here | there).isdisjoint(d.symbols) for d in self.divisors)
        )

    @property
    def divisors(self) -> list[Term]:
        """What the maps divide by, but for positive numbers."""
        divided = map(of_polynomial, divisors(map(polynomial, (*self.forwards, *self.backwards))))
        return [d for d in divided if (value := integer_value(d)) is None or value < 1]

    def condition(self) -> Term:
        """Whether a tuple of the first family, in its variables, has an image."""
        return _mapped(self.one, self.other, self.forwards, self.backwards)

    def back(self) -> Term:
        """Whether a tuple of the other family, in its variables, has one."""
        return _mapped(self.other, self.one, self.backwards, self.forwards)


def _mapped(one: Family, other: Family, there: Sequence[Term], back: Sequence[Term]) -> Term:
    returned = [equal(other.at(there, b), v) for b, v in zip(back, one.variables, strict=True)]
    return both(other.at(there, other.domain), *returned)


@dataclass(frozen=True)
class Goal:
    """What must follow from hypotheses; ``places`` are tuples at which conditions of every tuple matter.

    The first of them are the variables that it is about.  With ``piece`` the goal is that this piece's summands are the
    same.
    """

    meaning: str
    hypotheses: tuple[Term, ...]
    goal: Term
    places: tuple[tuple[Term, ...], ...]
    piece: Piece | None = None


def goals(one: Sequence[Family], other: Sequence[Family], pieces: Sequence[Piece]) -> Iterator[Goal]:
    """What makes of pieces between families of two bags a proof that the bags are one.

    Pieces name their families by identity, so no bag may have one object twice: raises ValueError.
    """
    for bag in (one, other):
        if len({id(f) for f in bag}) < len(bag):
            raise ValueError("each family of a bag must be an object of its own; copy those that it has several times")
    for piece in pieces:
        if not piece.is_of_maps or id(piece.one) not in map(id, one) or id(piece.other) not in map(id, other):
            raise ValueError("a piece must map variables of a family of either bag, and divide by none of them")
        divided = both(*(at_most(number(1), d) for d in piece.divisors))
        for family in (piece.one, piece.other):
            yield Goal("divisors are positive", (family.domain,), divided, (family.variables,))
    for family in one:
        yield from _partition(family, [p.condition() for p in pieces if p.one is family])
    for family in other:
        yield from _partition(family, [p.back() for p in pieces if p.other is family])
    for piece in pieces:
        image = piece.other.at(piece.forwards, piece.other.summand)
        known = (piece.one.domain, piece.condition()) if len(pieces) > 1 else (piece.one.domain,)
        places = piece.one.variables, piece.forwards
        yield Goal("summands are the same", known, same(piece.one.summand, image), places, piece)


def _partition(family: Family, conditions: Sequence[Term]) -> Iterator[Goal]:
    """That each tuple of a family satisfies one condition, and not two."""
    at = (family.variables,)
    yield Goal("each summand has its counterpart", (family.domain,), either(*conditions), at)
    for first, condition in enumerate(conditions[:-1], 1):
        others = either(*conditions[first:])
        yield Goal("no summand has two counterparts", (family.domain,), negation(both(condition, others)), at)
