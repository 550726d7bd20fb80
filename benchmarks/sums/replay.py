"""The kernel of cancellation: replays a derivation that both sides of a claim add up the same elements equally often.

It counts nothing itself and imports nothing of what does (:mod:`benchmarks.sums.cancel`).  A derivation says

* how much more often each sum stands on the left side than on the right one (:attr:`Cancellation.times`).  That is
  checked sum by sum: a side stands once on its side, and an element as often as the sums that it is an element of;
* which places of the opened sums cancel together (:attr:`Cancellation.classes`), by which law their elements are equal,
  and every place is in one class, unless the unit stands there.

So the difference of both sides is 0 in the free abelian group over elements, and both sides are one multiset.  The laws
that this rests on: addition is associative and commutative with the unit -0.0, multiplication is commutative, and a
name, a literal and a term have one value each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from .terms import NEGATIVE_ZERO, Constant, Product, Sum, SumClaim, Symbol, Term

Place = tuple[int, int]
"""The number of a sum, and the number of one of its elements."""


class Rejected(Exception):
    """A step that is no instance of its law."""


@dataclass(frozen=True)
class Cancellation:
    """``times`` has a number for each sum (:func:`numbered`); ``classes`` have a law's name and places, two or more."""

    times: tuple[int, ...]
    classes: tuple[tuple[str, tuple[Place, ...]], ...]


def numbered(claim: SumClaim) -> list[Sum]:
    """The left side and the right side, as sums of one element, and the sums among elements as they are met."""
    sums = [Sum((claim.left,)), Sum((claim.right,))]
    known: set[int] = set()
    for each in sums:
        for element in each.elements:
            if isinstance(element, Sum) and id(element) not in known:
                known.add(id(element))
                sums.append(element)
    return sums


def _one_symbol(a: Term, b: Term) -> bool:
    return isinstance(a, Symbol) and isinstance(b, Symbol) and a.name == b.name


def _one_literal(a: Term, b: Term) -> bool:
    return isinstance(a, Constant) and isinstance(b, Constant) and a.exact == b.exact


def _one_factor(a: Term, b: Term) -> bool:
    return _one_symbol(a, b) or _one_literal(a, b)


def _same_factors(a: Term, b: Term) -> bool:
    if not isinstance(a, Product) or not isinstance(b, Product):
        return False
    straight = _one_factor(a.left, b.left) and _one_factor(a.right, b.right)
    return straight or (_one_factor(a.left, b.right) and _one_factor(a.right, b.left))


def _one_product(a: Term, b: Term) -> bool:
    return isinstance(a, Product) and a is b


LAWS = {
    "one symbol": _one_symbol,
    "one literal": _one_literal,
    "the same factors": _same_factors,
    "one product": _one_product,
}
"""By name, when two elements have the same value, whatever the symbols are."""


def replay(claim: SumClaim, derivation: Cancellation) -> None:
    """Raises Rejected unless the derivation proves the claim."""
    sums, times = numbered(claim), derivation.times
    if len(times) != len(sums):
        raise Rejected(f"there must be a number for each of {len(sums)} sums, not {len(times)}")
    stands = {id(each): 0 for each in sums} | {id(sums[0]): 1, id(sums[1]): -1}
    places: set[Place] = set()
    for number, (each, n) in enumerate(zip(sums, times, strict=True)):
        for place, element in enumerate(each.elements if n else ()):
            if isinstance(element, Sum):
                stands[id(element)] += n
            elif not (isinstance(element, Constant) and element.exact is NEGATIVE_ZERO):
                places.add((number, place))
    for number, (each, n) in enumerate(zip(sums, times, strict=True)):
        if stands[id(each)] != n:
            raise Rejected(f"sum {number} stands {stands[id(each)]} times, not {n}")
    listed = list(chain.from_iterable(at for _, at in derivation.classes))
    if len(listed) != len(set(listed)) or set(listed) != places:
        raise Rejected("every place of an opened sum must be in one class, and no other place")
    for law, at in derivation.classes:
        if law not in LAWS or not at:
            raise Rejected(f"the law of a class with a place must be one of {', '.join(LAWS)}, not {law!r}")
        first, *others = (sums[number].elements[place] for number, place in at)
        if not all(LAWS[law](first, other) for other in others):
            raise Rejected(f"the elements of a class must be {law}")
        if sum(times[number] for number, _ in at):
            raise Rejected("the elements of a class must stand on both sides equally often")
