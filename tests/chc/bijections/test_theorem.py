"""Pieces that satisfy what the theorem asks make bags equal, whatever their maps are; checked by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from chc.bijections.pieces import pieces
from chc.bijections.theorem import Piece, goals
from ir_semantics.elements.bags import Family, without_common
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.operators import at_most, minus, plus, quotient, remainder, times
from ir_semantics.elements.terms import Input, Term, fresh, new_terms, number, read, truth, variable_of
from ir_semantics.scalars.formats import INTEGERS, Format

AROUND = range(-1, 4)
"""Values of variables that are tried: extents are at most 3."""
WORD = Format("integer", (32, "signed", "wrap"))


def _evaluated(term: Term, variables: Sequence[Term], at: Sequence[int]) -> object:
    values = {variable_of(v): i for v, i in zip(variables, at, strict=True)}
    return Evaluation(values, lambda _, place: 1000 * place[0] + 10, Budget(10_000)).value(term)


def _tuples(family: Family) -> Iterator[tuple[int, ...]]:
    """All tuples of a family with literal extents, by trying those around as well."""
    for at in product(AROUND, repeat=len(family.ranges)):
        if _evaluated(family.domain, family.variables, at):
            yield at


def _bag(families: Sequence[Family]) -> Counter[object]:
    return Counter(_evaluated(f.summand, f.variables, at) for f in families for at in _tuples(f))


def _hold(one: Sequence[Family], other: Sequence[Family], guess: Sequence[Piece]) -> bool:
    """Whether all goals hold, tuple by tuple."""
    for goal in goals(one, other, guess):
        variables = goal.places[0]
        for at in product(AROUND, repeat=len(variables)):
            premises = all(_evaluated(h, variables, at) for h in goal.hypotheses)
            if premises and not _evaluated(goal.goal, variables, at):
                return False
    return True


def _family(vector: Input, sizes: Sequence[int], weights: Sequence[int], offset: int, least: int) -> Family:
    variables = [fresh(f"v{k}", INTEGERS) for k in range(len(sizes))]
    at = plus(number(offset), *(times(number(w), v) for w, v in zip(weights, variables, strict=True)))
    condition = at_most(number(least), variables[0]) if variables else truth(True)
    return Family(tuple(zip(variables, map(number, sizes), strict=True)), condition, read(vector, [at]))


families = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 3)), min_size=1, max_size=2),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=2,
)


def _drawn(data: st.DataObject, variables: Sequence[Term]) -> Term:
    """Some integer made of variables."""
    total = number(data.draw(st.integers(-1, 2)))
    for each in variables:
        value = data.draw(st.sampled_from((each, minus(number(1), each), quotient(each, number(2)), number(0))))
        total = plus(total, remainder(value, number(2)) if data.draw(st.booleans()) else value)
    return total


@given(families, families, st.data())
@settings(max_examples=60)
def test_what_satisfies_the_theorem_makes_bags_equal(
    one: Sequence[tuple[list[tuple[int, int]], int, int]],
    other: Sequence[tuple[list[tuple[int, int]], int, int]],
    data: st.DataObject,
) -> None:
    other = data.draw(st.sampled_from((one, one[::-1], [*one, *one], other)))
    with new_terms():
        vector = Input("x", WORD, (number(64),))
        bags = [[_family(vector, *zip(*ranges, strict=True), o, low) for ranges, o, low in b] for b in (one, other)]
        guess = [p for a, b in product(*bags) for p in [next(pieces(a, b), None)] if p is not None]
        if not guess or data.draw(st.booleans()):  # maps of any kind
            guess = [
                Piece(
                    a,
                    b,
                    tuple(_drawn(data, a.variables) for _ in b.variables),
                    tuple(_drawn(data, b.variables) for _ in a.variables),
                )
                for a, b in product(*bags)
            ]
        if _hold(*bags, guess):
            assert _bag(bags[0]) == _bag(bags[1])


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
@settings(max_examples=30)
def test_loops_in_another_order_or_direction_are_recognised(sizes: list[int], data: st.DataObject) -> None:
    count = len(sizes)
    weights = [1]
    for n in sizes[:-1]:
        weights.append(weights[-1] * n)
    order = data.draw(st.permutations(range(count)))
    flipped = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    with new_terms():
        vector = Input("x", WORD, (number(64),))
        one = _family(vector, sizes, weights, 0, 0)
        turned = [-weights[k] if flipped[k] else weights[k] for k in order]
        offset = sum(weights[k] * (sizes[k] - 1) for k in order if flipped[k])
        other = _family(vector, [sizes[k] for k in order], turned, offset, 0)
        assert any(_hold([one], [other], [p]) for p in pieces(one, other))
        wrong = _family(vector, [sizes[k] for k in order], turned, offset + 1, 0)
        assert not any(_hold([one], [wrong], [p]) for p in pieces(one, wrong))


def test_a_family_that_a_bag_has_twice_is_two_objects() -> None:
    with new_terms():
        vector = Input("x", WORD, (number(64),))
        one, other = (_family(vector, [3], [1], 0, 0) for _ in range(2))
        first, second = without_common([one, one], [])[0]
        assert first == second
        assert first is not second
        (guess,) = pieces(one, other)
        with pytest.raises(ValueError, match="each family of a bag must be an object of its own"):
            next(goals([one], [other, other], [guess]))


def test_a_map_is_one_of_its_own_family_and_divides_by_no_variable() -> None:
    """Where x goes to y, for any y, each y has a counterpart, and its summand is not x's."""
    with new_terms():
        vector = Input("x", WORD, (number(64),))
        one, other = (_family(vector, [3], [1], 0, 0) for _ in range(2))
        (x,), (y,) = one.variables, other.variables
        for forwards, backwards in (
            ((y,), (y,)),
            ((x,), (x,)),
            ((quotient(x, plus(x, number(1))),), (y,)),
            ((x, x), (y,)),
            ((), (y,)),
        ):
            with pytest.raises(ValueError, match="a piece must map variables of a family of either bag"):
                next(goals([one], [other], [Piece(one, other, forwards, backwards)]))
        right = Piece(one, other, (x,), (y,))
        assert _hold([one], [other], [right])
        for bags in (([one], [one]), ([other], [other]), ([other], [one])):
            with pytest.raises(ValueError, match="a piece must map variables of a family of either bag"):
                next(goals(*bags, [right]))
        size = fresh("n", INTEGERS)
        divided = Piece(one, other, (quotient(x, size),), (quotient(y, number(2)),))
        assert divided.divisors == [size]
        (positive, *_) = goals([one], [other], [divided])
        assert positive.meaning == "divisors are positive" and positive.goal is at_most(number(1), size)
