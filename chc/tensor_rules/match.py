"""Equality of normal forms: bijections of index spaces, coverings, and equal subscripts.

Behind :meth:`Matcher.sums` is the theorem of :mod:`chc.bijections.theorem`: families are matched by pieces, and where
these partition both sides and products at x and f(x) are equal, both sides sum up the same elements, each exactly once.

For extrema equality of sets is enough: every point of the left side has a point on the right side with an equal
value, and the reverse.

What is established are statements on integers under the hypotheses of a context; products are equal if their factors
are, and inputs are if they are read at equal subscripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ir_semantics.tensors.conditions import FALSE, Condition, both, either, equal, negation
from ir_semantics.tensors.elements import Apply, Read, Reduce, substitute_element
from ir_semantics.tensors.index import Index, index

from .context import Context
from .kernel.forms import NOTHING
from .kernel.steps import Step
from .normal_forms.derive import chain, congruence, joined, joined_steps, parts, same, split, step
from .normal_forms.extrema import Normaliser
from .normal_forms.normal import (
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
from .witness import COMMUTATIVE, Map, alignments, bound_inside, maps_into, pairings, within, witnesses

MOST_SELECTIONS = 64
MOST_COPIES = 4
SHORT = range(9)
"""Extents of sums that may be written out."""


def _names(left: Family, right: Family) -> Map:
    """The variables of one family as those of another one, in their order."""
    return {v: Index({(w,): 1}) for (v, _), (w, _) in zip(left.bound, right.bound, strict=True)}


def _renamed(family: Family, like: Family) -> Family:
    """A family with the names of another one's variables."""
    plain = substitute_family(Family((), family.guard, family.coefficient, family.powers), _names(family, like))
    return replace(plain, bound=like.bound, powers=tuple(sorted(plain.powers, key=lambda p: str(p[0]))))


def _alike(value: Value) -> list[int]:
    """For each family of a sum, the first one that differs from it in names of variables and the coefficient alone."""
    places: list[int] = []
    for number, f in enumerate(value):
        places.append(number)
        for earlier in dict.fromkeys(places[:-1]):
            like = value[earlier]
            if [e for _, e in f.bound] == [e for _, e in like.bound] and f.bound:
                other = _renamed(f, like)
                if (other.guard, dict(other.powers)) == (like.guard, dict(like.powers)):
                    places[-1] = earlier
                    break
    return places


@dataclass(frozen=True)
class Piece:
    """A map from points of a left family to points of a right one; see the module's text."""

    forward: Map
    backward: Map
    points: Condition
    images: Condition
    equal: Step | None = None
    """That the products are equal at every point."""


@dataclass
class Matcher:
    """Decides equality of values in a context: a step that proves it, or None, which says nothing."""

    normaliser: Normaliser
    group: str = "bodies"

    def __post_init__(self) -> None:
        self.laws, self.elements = self.normaliser.laws, self.normaliser.elements

    def values(self, left: Value, right: Value, context: Context) -> Step | None:
        """That two sums are equal."""
        at = context.hypotheses
        if left == right:
            return same(at, self.elements.value(left))
        places = [_alike(v) for v in (left, right)] if self.laws is Laws.RING else []
        if any(len(own) > len(set(own)) for own in places):
            (one, first), (other, last) = (
                self._together(v, own, context) for v, own in zip((left, right), places, strict=True)
            )
            between = self.values(one, other, context)
            return between and chain(at, first, between, (last, True))
        if (equal_sums := self.sums(left, right, context)) is not None:
            return equal_sums
        others: list[tuple[Value, Value]] = []
        if self.laws is not Laws.EXACT and (_short(left) or _short(right)):
            others.append((self._unrolled(left), self._unrolled(right)))
        if self.laws is Laws.RING and (_copied(left), _copied(right)) != (left, right):
            others.append((_copied(left), _copied(right)))
        for one, other in others:
            if (equal_sums := self.sums(one, other, context)) is not None:
                first, last = (self._written_out(*pair, context) for pair in ((left, one), (right, other)))
                return chain(at, first, equal_sums, (last, True))
        return None

    def _together(self, value: Value, places: list[int], context: Context) -> tuple[Value, Step]:
        """A sum in which families that differ in names of variables are one, and the step that leads there."""
        at = context.hypotheses
        renamed = [_renamed(f, value[place]) for f, place in zip(value, places, strict=True)]
        start, end = (joined("sum", list(map(self.elements.family, fs)), self.elements.zero) for fs in (value, renamed))
        premises, data = list[Step](), []
        for number, (f, other) in enumerate(zip(value, renamed, strict=True)):
            there, back = _names(other, f), _names(f, other)
            here = context.under(f.guard, ranges=f.bound)
            body, image = (self.elements.product(e.coefficient, e.powers) for e in (f, other))
            premises.append(self.normaliser.arithmetic(here, body, substitute_element(image, there)))
            data.append((number, number, there, back))
        facts = self.normaliser.divisors_at(context)
        moved = step("bijection", at, start, end, *facts, *premises, data=tuple(data))
        total = merged(renamed)
        return total, chain(at, moved, self.normaliser.arithmetic(context, end, self.elements.value(total)))

    def _unrolled(self, value: Value) -> Value:
        """Sums over a few constant values of a variable, written out."""
        families = list(value)
        while _short(tuple(families)):
            families = [c for f in families for c in _copies(f)]
        return merged(families) if self.laws is Laws.RING else tuple(families)

    def _written_out(self, value: Value, end: Value, context: Context) -> Step:
        """That a sum is the one where sums over a few values are written out: each copy is where the variable is."""
        at, links, families = context.hypotheses, list[Step](), list(value)
        while _short(tuple(families)):
            links.append(joined_steps("sum", at, [self._copied_out(f, context) for f in families]))
            families = [c for f in families for c in _copies(f)]
        start = links[-1].right if links else self.elements.value(value)
        assert start is not None
        return chain(at, *links, self.normaliser.arithmetic(context, start, self.elements.value(end)))

    def _copied_out(self, f: Family, context: Context) -> Step:
        at, whole, variable = context.hypotheses, self.elements.family(f), _short_variable(f)
        if variable is None:
            return same(at, whole)
        copies, rest = _copies(f), {v: Index({(v,): 1}) for v, _ in f.bound if v != variable}
        body, premises = self.elements.product(f.coefficient, f.powers), []
        for i, copy in enumerate(copies):
            # of a copy that has no elements the point is false, and nothing else
            point = both(copy.guard, equal(i, Index({(variable,): 1})))
            here = context.under(f.guard, point, ranges=f.bound)
            moved = substitute_element(body, {variable: index(i)})
            last = self.normaliser.arithmetic(here, moved, self.elements.product(copy.coefficient, copy.powers))
            premises.append(chain(here.hypotheses, congruence(here.hypotheses, body, moved), last))
        data = tuple((0, i, rest, {variable: index(i), **rest}) for i in range(len(copies)))
        everything = joined("sum", list(map(self.elements.family, copies)), NOTHING)
        facts = self.normaliser.divisors_at(context)
        return step("bijection", at, whole, everything, *facts, *premises, data=data)

    # -- sums ---------------------------------------------------------------------------------------

    def sums(self, left: Value, right: Value, context: Context) -> Step | None:
        """That the pieces of two bags of families are a bijection between equal products."""
        lefts, rights, common = list(left), list(right), list[Family]()
        if self.laws is Laws.RING:  # a - b = c  iff  a = c + b
            lefts = [f for f in left if f.coefficient > 0] + [_negated(f) for f in right if f.coefficient < 0]
            rights = [f for f in right if f.coefficient > 0] + [_negated(f) for f in left if f.coefficient < 0]
            common = [f for f in left + right if f.coefficient < 0]
        for f in list(lefts):
            if f in rights:
                lefts.remove(f)
                rights.remove(f)
                common.append(f)
        if not lefts and not rights and self.laws is not Laws.EXACT:
            return self.normaliser.arithmetic(context, *map(self.elements.value, (left, right)))
        whole = lefts, rights
        lefts, rights = self._possible(lefts, context), self._possible(rights, context)
        empty = [[f for f in before if f not in after] for before, after in zip(whole, (lefts, rights), strict=True)]
        pairs = [(a, b) for a in range(len(lefts)) for b in range(len(rights))]
        pieces_of = {(a, b): self._pieces(lefts[a], rights[b], context) for a, b in pairs}
        usable = [pair for pair in pairs if pieces_of[pair]]
        if {a for a, _ in usable} != set(range(len(lefts))) or {b for _, b in usable} != set(range(len(rights))):
            return None
        choices: list[list[Piece | None]] = [
            [*pieces_of[pair], None] for pair in usable
        ]  # a pair may have no part in it
        for selection in itertools.islice(itertools.product(*choices), MOST_SELECTIONS):
            pieces = {pair: piece for pair, piece in zip(usable, selection, strict=True) if piece is not None}
            if not self._bijective(lefts, rights, pieces, context):
                continue
            if self.laws is Laws.EXACT:
                return self._by_cases(left, right, (lefts, rights), pieces, context)
            first, last = (
                joined("sum", list(map(self.elements.family, (*kept, *none))), NOTHING)
                for kept, none in zip((lefts, rights), empty, strict=True)
            )
            data = tuple((*pair, p.forward, p.backward) for pair, p in pieces.items())
            premises = [*self.normaliser.divisors_at(context), *(p.equal for p in pieces.values() if p.equal)]
            mapped = step("bijection", context.hypotheses, first, last, *premises, data=data)
            return self._beside(left, right, mapped, common, context)
        return None

    def _beside(self, left: Value, right: Value, mapped: Step, common: list[Family], context: Context) -> Step:
        """Sums that are what is mapped, and what both have besides."""
        rest = merged(common) if self.laws is Laws.RING else tuple(common)
        if rest:
            beside = self.elements.value(rest)
            ends = (Apply("add", (e, beside)) for e in (mapped.left, mapped.right))  # type: ignore[arg-type]
            mapped = parts(context.hypotheses, *ends, mapped)
        first, last = (
            self.normaliser.arithmetic(context, self.elements.value(side), end)  # type: ignore[arg-type]
            for side, end in ((left, mapped.left), (right, mapped.right))
        )
        return chain(context.hypotheses, first, mapped, (last, True))

    def _by_cases(
        self,
        left: Value,
        right: Value,
        families: tuple[list[Family], list[Family]],
        pieces: dict[tuple[int, int], Piece],
        context: Context,
    ) -> Step:
        """Choices are equal: in each case the side that is chosen on the left is the one on the right."""
        ends = self.elements.value(left), self.elements.value(right)
        cases: dict[Condition, tuple[Family, Family, Step | None]] = {f.guard: (f, f, None) for f in left if f in right}
        for (a, b), piece in pieces.items():
            one, other = families[0][a], families[1][b]
            cases[both(one.guard, piece.points)] = one, other, piece.equal
        steps = []
        for guard, (one, other, between) in cases.items():
            inner = context.under(guard)
            first, last = (
                self.normaliser.arithmetic(inner, end, self.elements.product(f.coefficient, f.powers))
                for end, f in zip(ends, (one, other), strict=True)
            )
            steps.append(chain(inner.hypotheses, first, *([between] if between else []), (last, True)))
        return split(context.hypotheses, *ends, tuple(cases), *steps)

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
        pieces: dict[tuple[object, ...], Piece] = {}
        hidden = bound_inside(left) | bound_inside(right)
        for equations in alignments(left, right):
            swapped = [(b, a) for a, b in equations]
            for forward in witnesses(equations, right, left, hidden):
                for backward in witnesses(swapped, left, right, hidden):
                    piece = _piece(left, right, forward, backward)
                    key = (piece.points, piece.images)
                    if key in pieces or not (here.possible(piece.points) and there.possible(piece.images)):
                        continue
                    equal_ = self._products(left, right, piece, context)
                    if equal_ is not None:
                        piece = pieces[key] = replace(piece, equal=equal_)
                    total = not here.refuted(piece.points) and not there.refuted(piece.images)
                    if key in pieces and total:
                        return [piece]
        return list(pieces.values())

    def _products(self, left: Family, right: Family, piece: Piece, context: Context) -> Step | None:
        """That the products are equal at every point of a piece."""
        here = context.under(left.guard, piece.points, ranges=left.bound)
        at = here.hypotheses
        a = self.elements.product(left.coefficient, left.powers)
        b = substitute_element(self.elements.product(right.coefficient, right.powers), piece.forward)
        if here.contradictory(self.group, "no such point"):
            return split(at, a, b)
        moved = substitute_family(Family((), right.guard, right.coefficient, right.powers), piece.forward)
        if left.coefficient != moved.coefficient:
            return None
        factors = self._powers(left.powers, moved.powers, here)
        if factors is None:
            return None
        first = self.elements.factors(at, left.coefficient, left.powers, factors)
        assert first.right is not None
        return chain(at, first, self.normaliser.arithmetic(here, first.right, b))

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

    def _partition(self, parts_: Sequence[Condition], context: Context, side: str) -> bool:
        group = "exactly once"
        if not context.establish(either(*parts_), group, f"every element of the {side} side has a partner"):
            return False
        return all(
            context.establish(negation(both(p, q)), group, f"no element of the {side} side has two partners")
            for p, q in itertools.combinations(parts_, 2)
        )

    # -- extrema ------------------------------------------------------------------------------------

    def extrema(self, op: str, left: Sequence[Member], right: Sequence[Member], context: Context) -> Step | None:
        """That both sides are the extremum of one set."""
        maps, steps = [], []
        for side, (members, others) in enumerate(((left, right), (right, left))):
            for i, member in enumerate(members):
                covered = self._covered(member, others, context)
                if covered is None:
                    return None
                maps += [(side, i, j, forward) for j, forward, _ in covered]
                steps += [s for *_, s in covered]
        a, b = (self.elements.extremum(op, members) for members in (left, right))
        return step("covering", context.hypotheses, a, b, *steps, data=(op, tuple(maps)))

    def _covered(
        self, member: Member, others: Sequence[Member], context: Context
    ) -> list[tuple[int, Map, Step]] | None:
        """Where every candidate of a member is equal to one of the others."""
        here = context.under(member.guard, ranges=member.bound)
        if member in others or here.contradictory("covering", "no such element"):
            return []
        covers: dict[Condition, tuple[int, Map, Step]] = {}
        unseen: list[tuple[int, Map]] = []
        for sampled in (True, False):
            for position, forward in maps_into(member, others) if sampled else unseen:
                part = within(others[position], forward)
                if part in covers or part == FALSE:
                    continue
                if sampled and not here.possible(part):
                    unseen.append((position, forward))
                    continue
                equal_ = self._candidates(member, others[position], forward, here.under(part))
                if equal_ is None:
                    continue
                covers[part] = position, forward, equal_
                # not after every part: asking takes time
                if len(covers).bit_count() == 1 and self._cover(covers, here):
                    return list(covers.values())
            if len(covers).bit_count() > 1 and self._cover(covers, here):
                return list(covers.values())
            if here.refuted(either(*covers)):  # else what is left out may be where no sample lies
                break
        return None

    def _candidates(self, member: Member, other: Member, forward: Map, context: Context) -> Step | None:
        """That a member's candidate is the other's at the image."""
        moved = substitute_member(Member((), other.guard, other.value), forward)
        equal_ = self.values(member.value, moved.value, context)
        if equal_ is None:
            return None
        assert equal_.right is not None
        image = substitute_element(self.elements.value(other.value), forward)
        return chain(context.hypotheses, equal_, self.normaliser.arithmetic(context, equal_.right, image))

    def _cover(self, parts_: Iterable[Condition], context: Context) -> bool:
        return context.establish(either(*parts_), "covering", "every candidate stands on the other side too")

    # -- factors ------------------------------------------------------------------------------------

    def _powers(self, left: Powers, right: Powers, context: Context) -> dict[Atom, Step] | None:
        for pairs in pairings(left, right):
            equalities: dict[Atom, Step] = {}
            for a, b in pairs:
                equal_ = self._atoms(a, b, context)
                if equal_ is None:
                    break
                equalities[a] = equal_
            else:
                return equalities
        return None

    def _atoms(self, left: Atom, right: Atom, context: Context) -> Step | None:
        at = context.hypotheses
        a, b = self.elements.atom(left), self.elements.atom(right)
        if left == right:
            return same(at, a)
        match left, right:
            case Read(name, i), Read(other, j) if name == other and len(i) == len(j):
                equal_ = both(*(equal(x, y) for x, y in zip(i, j, strict=True)))
                proved = context.establish(equal_, self.group, f"both read the same element of {name}")
                return step("indices", at, a, b) if proved else None
            case IntegerAtom(x), IntegerAtom(y):
                proved = context.establish(equal(x, y), self.group, f"{x} = {y}")
                return step("indices", at, a, b) if proved else None
            case Literal(), Literal():
                return None  # equal ones are the same object
            case Opaque(op, args), Opaque(other, others) if op == other and len(args) == len(others):
                return self._functions(op, args, others, context)
            case Extremum(op, m), Extremum(other, n) if op == other:
                return self.extrema(op, m, n, context)
            case Group(v), Group(w):
                return self.values(v, w, context)
            case OrderedSum(), OrderedSum():
                return self._ordered(left, right, context)
        return None

    def _functions(self, op: str, args: tuple[Value, ...], others: tuple[Value, ...], context: Context) -> Step | None:
        at = context.hypotheses
        for order in [others, others[::-1]] if op in COMMUTATIVE else [others]:
            steps = []
            for x, y in zip(args, order, strict=True):
                equal_ = self.values(x, y, context)
                if equal_ is None:
                    break
                steps.append(equal_)
            else:
                left, middle, right = (Apply(op, tuple(map(self.elements.value, v))) for v in (args, order, others))
                first = parts(at, left, middle, *steps)
                return chain(at, first, step("exchanged", at, middle, right)) if middle != right else first
        return None

    def _ordered(self, left: OrderedSum, right: OrderedSum, context: Context) -> Step | None:
        at = context.hypotheses
        if not context.establish(equal(left.extent, right.extent), self.group, "sums in order have one length"):
            return None
        moved = substitute_value(right.value, {right.variable: Index({(left.variable,): 1})})
        equal_ = self.values(left.value, moved, context.under(ranges=[(left.variable, left.extent)]))
        if equal_ is None:
            return None
        body = self.elements.value(moved)
        a, b = self.elements.atom(left), self.elements.atom(right)
        short, long = (Reduce("sum", left.variable, extent, body) for extent in (left.extent, right.extent))
        first = parts(at, a, short, equal_)
        return chain(at, first, step("indices", at, short, long), (step("renamed", at, b, long), True))


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
    return any(_short_variable(f) is not None for f in value)


def _short_variable(f: Family) -> str | None:
    """A variable of a few known values."""
    return next((v for v, e in f.bound if e.constant in SHORT), None)


def _copies(f: Family) -> list[Family]:
    """A family for each value of a variable of a few known values."""
    variable = _short_variable(f)
    if variable is None:
        return [f]
    rest = Family(tuple(b for b in f.bound if b[0] != variable), f.guard, f.coefficient, f.powers)
    return [substitute_family(rest, {variable: index(i)}) for i in range(dict(f.bound)[variable].constant or 0)]


def _piece(left: Family, right: Family, forward: Map, backward: Map) -> Piece:
    there = [equal(g.substitute(forward), Index({(v,): 1})) for v, g in backward.items()]
    back = [equal(f.substitute(backward), Index({(v,): 1})) for v, f in forward.items()]
    return Piece(forward, backward, both(within(right, forward), *there), both(within(left, backward), *back))
