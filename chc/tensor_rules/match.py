"""Equality of normal forms: bijections of index spaces, coverings, and equal subscripts.

The theorem behind :meth:`Matcher.sums`.  Let L_a and R_b be families.  A *piece* (a, b, f, g) has maps f from the bound
variables of L_a to those of R_b and g back.  Let P be the points x of L_a for which f(x) is a point of R_b and
g(f(x)) = x, and Q the points y of R_b for which g(y) is a point of L_a and f(g(y)) = y.  Then f is a bijection from P
to Q with the inverse g: for x in P, g(f(x)) = x is a point of L_a and f(g(f(x))) = f(x), so f(x) is in Q; the rest is
symmetry.  If the sets P of all pieces of a partition L_a, for every a, and the sets Q of all pieces of b partition
R_b, for every b, then the pieces together are a bijection between all points of the left side and all points of the
right side.  If also the products at x and f(x) are equal for every x in P, both sides sum up the same elements, each
exactly once.

For extrema equality of sets is enough: every point of the left side has a point on the right side with an equal
value, and the reverse.

What is established are statements on integers under the hypotheses of a context; products are equal if their factors
are, and inputs are if they are read at equal subscripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ir_semantics.tensors.conditions import Condition, both, either, equal, inside, negation, substitute_condition
from ir_semantics.tensors.elements import Read
from ir_semantics.tensors.index import Index, index

from .context import Context
from .normal import (
    Atom,
    Extremum,
    Family,
    Group,
    IntegerAtom,
    Laws,
    Literal,
    Member,
    Opaque,
    OrderedSum,
    Powers,
    Value,
    merged,
    substitute_family,
    substitute_member,
    substitute_value,
)
from .witness import COMMUTATIVE, Map, alignments, bound_inside, pairings, witnesses

__all__ = ["Matcher"]

MOST_SELECTIONS = 64
MOST_COPIES = 4
SHORT = range(9)
"""Extents of sums that may be written out."""


@dataclass(frozen=True)
class Piece:
    """A map from points of a left family to points of a right one; see the module's text."""

    forward: Map
    backward: Map
    points: Condition
    images: Condition


@dataclass
class Matcher:
    """Decides equality of values in a context; True is proved by the recorded obligations, False says nothing."""

    laws: Laws
    group: str = "bodies"

    def values(self, left: Value, right: Value, context: Context) -> bool:
        """Whether two sums are established to be equal."""
        if left == right:
            return True
        obligations = context.proof.discharger.obligations
        mark = len(obligations)
        if self.sums(left, right, context):
            return True
        del obligations[mark:]
        others = []
        if self.laws is not Laws.EXACT and (_short(left) or _short(right)):
            others.append((self._unrolled(left), self._unrolled(right)))
        if self.laws is Laws.RING and (_copied(left), _copied(right)) != (left, right):
            others.append((_copied(left), _copied(right)))
        for a, b in others:
            if self.sums(a, b, context):
                return True
            del obligations[mark:]
        return False

    def _unrolled(self, value: Value) -> Value:
        """Sums over a few constant values of a variable, written out."""
        families = list(value)
        while short := [f for f in families if _short((f,))]:
            f = short[0]
            place = families.index(f)
            (variable, extent) = next((v, e) for v, e in f.bound if e.constant in SHORT)
            rest = Family(tuple(b for b in f.bound if b[0] != variable), f.guard, f.coefficient, f.powers)
            copies = [substitute_family(rest, {variable: index(i)}) for i in range(extent.constant or 0)]
            families[place : place + 1] = copies
        return merged(families) if self.laws is Laws.RING else tuple(families)

    # -- sums ---------------------------------------------------------------------------------------

    def sums(self, left: Value, right: Value, context: Context) -> bool:
        """Whether the pieces of two bags of families are a bijection between equal products."""
        lefts, rights = list(left), list(right)
        if self.laws is Laws.RING:  # a - b = c  iff  a = c + b
            lefts = [f for f in left if f.coefficient > 0] + [_negated(f) for f in right if f.coefficient < 0]
            rights = [f for f in right if f.coefficient > 0] + [_negated(f) for f in left if f.coefficient < 0]
        for f in list(lefts):
            if f in rights:
                lefts.remove(f)
                rights.remove(f)
        lefts, rights = self._possible(lefts, context), self._possible(rights, context)
        if not lefts and not rights:
            return True
        pairs = [(a, b) for a in range(len(lefts)) for b in range(len(rights))]
        found = {(a, b): self._pieces(lefts[a], rights[b], context) for a, b in pairs}
        usable = [pair for pair in pairs if found[pair]]
        if {a for a, _ in usable} != set(range(len(lefts))) or {b for _, b in usable} != set(range(len(rights))):
            return False
        choices: list[list[Piece | None]] = [[*found[pair], None] for pair in usable]  # a pair may have no part in it
        obligations = context.proof.discharger.obligations
        for selection in itertools.islice(itertools.product(*choices), MOST_SELECTIONS):
            mark = len(obligations)
            pieces = {pair: piece for pair, piece in zip(usable, selection, strict=True) if piece is not None}
            if self._bijective(lefts, rights, pieces, context) and all(
                self._products(lefts[a], rights[b], piece, context) for (a, b), piece in pieces.items()
            ):
                return True
            del obligations[mark:]
        return False

    def _possible(self, families: list[Family], context: Context) -> list[Family]:
        """Those families that are not established to be empty."""
        return [
            f
            for f in families
            if not context.under(f.guard, ranges=f.bound).contradictory(self.group, "no such element")
        ]

    def _pieces(self, left: Family, right: Family, context: Context) -> list[Piece]:
        """Maps that may be part of a bijection, with their products tried for equality on the way."""
        here, there = context.under(left.guard, ranges=left.bound), context.under(right.guard, ranges=right.bound)
        found: dict[tuple[object, ...], Piece] = {}
        hidden = bound_inside(left) | bound_inside(right)
        for equations in alignments(left, right):
            swapped = [(b, a) for a, b in equations]
            for forward in witnesses(equations, right, left, hidden):
                for backward in witnesses(swapped, left, right, hidden):
                    piece = _piece(left, right, forward, backward)
                    key = (piece.points, piece.images)
                    if key in found or not (here.possible(piece.points) and there.possible(piece.images)):
                        continue
                    obligations = context.proof.discharger.obligations
                    mark = len(obligations)
                    if self._products(left, right, piece, context):
                        found[key] = piece
                    del obligations[mark:]
                    total = not here.refuted(piece.points) and not there.refuted(piece.images)
                    if key in found and total:
                        return [piece]
        return list(found.values())

    def _products(self, left: Family, right: Family, piece: Piece, context: Context) -> bool:
        """Whether the products are equal at every point of a piece."""
        here = context.under(left.guard, piece.points, ranges=left.bound)
        if here.contradictory(self.group, "no such point"):
            return True
        moved = substitute_family(Family((), right.guard, right.coefficient, right.powers), piece.forward)
        return left.coefficient == moved.coefficient and self._powers(left.powers, moved.powers, here)

    def _bijective(
        self, lefts: list[Family], rights: list[Family], pieces: dict[tuple[int, int], Piece], context: Context
    ) -> bool:
        for a, left in enumerate(lefts):
            points = [piece.points for (i, _), piece in pieces.items() if i == a]
            if not self._partition(points, context.under(left.guard, ranges=left.bound), "left"):
                return False
        for b, right in enumerate(rights):
            images = [piece.images for (_, i), piece in pieces.items() if i == b]
            if not self._partition(images, context.under(right.guard, ranges=right.bound), "right"):
                return False
        return True

    def _partition(self, parts: Sequence[Condition], context: Context, side: str) -> bool:
        group = "exactly once"
        if not context.establish(either(*parts), group, f"every element of the {side} side has a partner"):
            return False
        return all(
            context.establish(negation(both(p, q)), group, f"no element of the {side} side has two partners")
            for p, q in itertools.combinations(parts, 2)
        )

    # -- extrema ------------------------------------------------------------------------------------

    def extrema(self, left: Sequence[Member], right: Sequence[Member], context: Context) -> bool:
        """Whether both sides are the extremum of one set."""
        return all(self._covered(m, right, context) for m in left) and all(
            self._covered(m, left, context) for m in right
        )

    def _covered(self, member: Member, others: Sequence[Member], context: Context) -> bool:
        """Whether every candidate of a member is equal to one of the others."""
        here = context.under(member.guard, ranges=member.bound)
        if member in others or here.contradictory("covering", "no such element"):
            return True
        parts: list[Condition] = []
        for other in others:
            hidden = bound_inside(member) | bound_inside(other)
            for equations in alignments(member, other):
                for forward in witnesses(equations, other, member, hidden):
                    part = _within(other, forward)
                    if part in parts or not here.possible(part):
                        continue
                    moved = substitute_member(Member((), other.guard, other.value), forward)
                    inner = here.under(part)
                    if not self.values(member.value, moved.value, inner):
                        continue
                    parts.append(part)
                    if len(parts).bit_count() == 1 and self._cover(
                        parts, here
                    ):  # not after every part: asking takes time
                        return True
        return len(parts).bit_count() > 1 and self._cover(parts, here)

    def _cover(self, parts: Sequence[Condition], context: Context) -> bool:
        return context.establish(either(*parts), "covering", "every candidate stands on the other side too")

    # -- factors ------------------------------------------------------------------------------------

    def _powers(self, left: Powers, right: Powers, context: Context) -> bool:
        return any(all(self._atoms(a, b, context) for a, b in pairs) for pairs in pairings(left, right))

    def _atoms(self, left: Atom, right: Atom, context: Context) -> bool:
        if left == right:
            return True
        match left, right:
            case Read(name, a), Read(other, b) if name == other and len(a) == len(b):
                same = both(*(equal(i, j) for i, j in zip(a, b, strict=True)))
                return context.establish(same, self.group, f"both read the same element of {name}")
            case IntegerAtom(a), IntegerAtom(b):
                return context.establish(equal(a, b), self.group, f"{a} = {b}")
            case Literal(), Literal():
                return False  # equal ones are the same object
            case Opaque(op, a), Opaque(other, b) if op == other and len(a) == len(b):
                orders = [b, b[::-1]] if op in COMMUTATIVE else [b]
                return any(all(self.values(x, y, context) for x, y in zip(a, o, strict=True)) for o in orders)
            case Extremum(op, a), Extremum(other, b) if op == other:
                return self.extrema(a, b, context)
            case Group(a), Group(b):
                return self.values(a, b, context)
            case OrderedSum(v, n, a), OrderedSum(w, m, b):
                if not context.establish(equal(n, m), self.group, "sums in order have one length"):
                    return False
                moved = substitute_value(b, {w: Index({(v,): 1})})
                return self.values(a, moved, context.under(ranges=[(v, n)]))
        return False


def _copied(value: Value) -> Value:
    """Small multiples of products as several products."""
    copies: list[Family] = []
    for f in value:
        times = abs(f.coefficient)
        if times.denominator == 1 and 2 <= times <= MOST_COPIES:
            copies += [Family(f.bound, f.guard, f.coefficient / times, f.powers)] * int(times)
        else:
            copies.append(f)
    return tuple(copies)


def _negated(f: Family) -> Family:
    return Family(f.bound, f.guard, -f.coefficient, f.powers)


def _short(value: Value) -> bool:
    return any(e.constant in SHORT for f in value for _, e in f.bound)


def _within(item: Family | Member, values: Map) -> Condition:
    """That an item has a point at given values of its bound variables."""
    ranges = [inside(values[v], extent.substitute(values)) for v, extent in item.bound]
    return both(*ranges, substitute_condition(item.guard, values))


def _piece(left: Family, right: Family, forward: Map, backward: Map) -> Piece:
    there = [equal(g.substitute(forward), Index({(v,): 1})) for v, g in backward.items()]
    back = [equal(f.substitute(backward), Index({(v,): 1})) for v, f in forward.items()]
    return Piece(forward, backward, both(_within(right, forward), *there), both(_within(left, backward), *back))
