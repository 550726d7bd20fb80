"""Laws of folds: terms mean the same after them, by an evaluation of their own, on random ranges and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_semantics.elements.binders import every, fold, substitute
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.folds import Simplification, has_one_step, joined
from ir_semantics.elements.operators import (
    apply,
    at_most,
    below,
    both,
    choose,
    either,
    equal,
    inside,
    minus,
    negation,
    plus,
    quotient,
    times,
)
from ir_semantics.elements.terms import Input, Term, constant, fresh, new_terms, number, read, variable_of
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format

WORD = Format("integer", (8, "signed", "wrap"))
small = st.integers(-2, 5)
X = Input("x", WORD, ())


def value_of(term: Term, **values: int) -> object:
    """What a term is, of symbols by name; elements of the input are 3 times the place plus 1, in a word."""

    def contents(_: Input, at: Sequence[int]) -> Fraction:
        return Fraction((3 * at[0] + 1) % 100)

    symbols = {s: Fraction(values[s.name]) if s.kind != BOOLEAN else bool(values[s.name]) for s in term.symbols}
    return Evaluation(symbols, contents, Budget(10**6)).value(term)


def mixed(acc: Term, other: Term) -> Term:
    """A step of which order and number matter: 3 acc + other."""
    return apply("add", apply("mul", acc, constant(3, acc.kind)), other)


def x(i: Term) -> Term:
    return read(X, (i,))


Case = Callable[[Term, Term, Term, Term, Term, Term], Term]
"""A step from the accumulator, two variables, a place, and two numbers."""
STEPS: dict[str, Case] = {
    "one place is written": lambda acc, i, j, p, a, b: choose(equal(plus(i, a), p), mixed(acc, x(i)), acc),
    "every other place": lambda acc, i, j, p, a, b: choose(equal(plus(times(number(2), i), a), p), x(i), acc),
    "a piece of three": lambda acc, i, j, p, a, b: choose(
        inside(minus(p, times(number(3), i)), number(3)), mixed(acc, x(p)), acc
    ),
    "pieces that overlap": lambda acc, i, j, p, a, b: choose(
        inside(minus(p, times(number(2), i)), number(3)), mixed(acc, x(p)), acc
    ),
    "pieces with gaps": lambda acc, i, j, p, a, b: choose(
        inside(minus(p, times(number(4), i)), number(3)), mixed(acc, x(p)), acc
    ),
    "a short last piece": lambda acc, i, j, p, a, b: choose(
        inside(
            minus(p, times(number(3), i)),
            choose(at_most(minus(a, times(number(3), i)), number(3)), minus(a, times(number(3), i)), number(3)),
        ),
        mixed(acc, x(p)),
        acc,
    ),
    "rows of a matrix": lambda acc, i, j, p, a, b: choose(
        both(equal(plus(times(i, a), j), p), inside(j, a)), mixed(acc, x(i)), acc
    ),
    "columns before rows": lambda acc, i, j, p, a, b: choose(
        equal(plus(times(j, number(5)), i), p), mixed(acc, x(i)), acc
    ),
    "a condition without variables": lambda acc, i, j, p, a, b: choose(below(p, a), mixed(acc, x(plus(i, j))), acc),
    "or else": lambda acc, i, j, p, a, b: choose(below(p, a), acc, mixed(acc, x(i))),
    "one within another": lambda acc, i, j, p, a, b: choose(
        below(i, a), choose(equal(plus(i, j), p), mixed(acc, x(j)), acc), acc
    ),
    "the last one": lambda acc, i, j, p, a, b: x(plus(i, times(j, number(2)))),
    "all": lambda acc, i, j, p, a, b: mixed(acc, x(plus(i, j))),
}


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=12, deadline=None)
@given(values=st.tuples(small, small, small, small, small))
def test_a_fold_means_the_same(name: str, values: tuple[int, ...]) -> None:
    with new_terms():
        acc, start = fresh("acc", WORD), fresh("s", WORD)
        i, j, n, m, p, a, b = (fresh(c, INTEGERS) for c in "ijnmpab")
        step = STEPS[name](acc, i, j, p, a, b)
        names = dict(zip("nmpab", values, strict=True)) | {"s": 5}
        inner = fresh("inner", WORD)
        whole = fold(start, acc, [(i, n), (j, m)], step)
        nested = fold(start, acc, [(i, n)], fold(acc, inner, [(j, m)], substitute(step, {variable_of(acc): inner})))
        assert joined(nested) in (whole, nested)
        for each in (whole, nested):
            simpler = Simplification().of(each)
            assert value_of(simpler, **names) == value_of(each, **names), simpler
        if whole.op == "fold" and has_one_step(whole):
            assert changes(step, names) <= 1


def changes(step: Term, names: dict[str, int]) -> int:
    """In how many steps the accumulator may change: in which some value of it does."""
    count = 0
    for i, j in product(range(max(0, names["n"])), range(max(0, names["m"]))):
        values = names | {"i": i, "j": j}
        known = {s.name for s in step.symbols}
        own = [{k: v for k, v in (values | {"acc": acc}).items() if k in known} for acc in (0, 1, 2)]
        count += any(value_of(step, **each) != each.get("acc") for each in own)
    return count


@settings(max_examples=20, deadline=None)
@given(whole=st.integers(-4, 11), size=st.integers(1, 4))
def test_pieces_of_a_range_are_the_range(whole: int, size: int) -> None:
    with new_terms():
        acc, inner, start = fresh("acc", WORD), fresh("in", WORD), fresh("s", WORD)
        i, k, n = (fresh(c, INTEGERS) for c in "ikn")
        left = minus(n, times(number(size), i))
        piece = choose(at_most(left, number(size)), left, number(size))
        count = quotient(plus(n, number(size - 1)), number(size))
        step = fold(acc, inner, [(k, piece)], mixed(inner, x(plus(times(number(size), i), k))))
        pieces = fold(start, acc, [(i, count)], step)
        one = Simplification().of(pieces)
        assert one is fold(start, acc, [(k, n)], mixed(acc, x(k)))
        assert value_of(one, n=whole, s=1) == value_of(pieces, n=whole, s=1)
        fewer = fold(start, acc, [(i, minus(count, number(1)))], step)
        assert value_of(Simplification().of(fewer), n=whole, s=1) == value_of(fewer, n=whole, s=1)


@settings(max_examples=30, deadline=None)
@given(whole=st.integers(-4, 11), size=st.integers(1, 4), p=st.integers(-2, 12))
def test_what_holds_in_all_pieces_of_a_range_holds_in_the_range(whole: int, size: int, p: int) -> None:
    with new_terms():
        i, k, n, place = (fresh(c, INTEGERS) for c in "iknp")
        left = minus(n, times(number(size), i))
        piece = choose(at_most(left, number(size)), left, number(size))
        count = quotient(plus(n, number(size - 1)), number(size))

        def differs(x: Term) -> Term:
            return negation(equal(x, place))

        at = plus(times(number(size), i), k)
        pieces = every([i], [count], every([k], [piece], differs(at)))
        assert Simplification().of(pieces) is every([k], [n], differs(k))
        digits = every([i, k], [n, number(size)], differs(at))
        assert Simplification().of(digits) is every([k], [times(n, number(size))], differs(k))
        fewer = every([i], [minus(count, number(1))], every([k], [piece], differs(at)))
        overlapping = every([i, k], [n, number(size + 1)], differs(at))
        for term in (pieces, digits, fewer, overlapping):
            assert value_of(Simplification().of(term), n=whole, p=p) == value_of(term, n=whole, p=p)


@settings(max_examples=20, deadline=None)
@given(n=small, p=small, a=small, start=st.booleans())
def test_conditions_that_are_joined(n: int, p: int, a: int, start: bool) -> None:
    with new_terms():
        acc, begin = fresh("acc", BOOLEAN), fresh("s", BOOLEAN)
        i, extent, place, other = (fresh(c, INTEGERS) for c in "inpa")
        here, low = equal(times(number(2), i), place), at_most(other, i)
        for step in (both(acc, low), either(acc, here), choose(here, low, acc), both(acc, either(low, here))):
            term = fold(begin, acc, [(i, extent)], step)
            values = {"n": n, "p": p, "a": a, "s": int(start)}
            known = {k: v for k, v in values.items() if k in {s.name for s in term.symbols}}
            simpler = Simplification().of(term)
            assert value_of(simpler, **known) == value_of(term, **known), simpler


def test_numbers_that_grow_are_a_product() -> None:
    with new_terms():
        acc, i, n, s, c = (fresh(name, INTEGERS) for name in ("acc", "i", "n", "s", "c"))
        grown = Simplification().of(fold(s, acc, [(i, n)], plus(acc, c)))
        assert grown.depth == 0
        for size in (-2, 0, 3):
            assert value_of(grown, n=size, s=7, c=5) == 7 + 5 * max(0, size)


def test_facts_decide_how_long_a_range_is() -> None:
    with new_terms():
        acc, i, n, m = fresh("acc", WORD), *(fresh(c, INTEGERS) for c in "inm")
        fact = at_most(number(0), n)
        extent = choose(fact, n, number(0))
        start = x(number(0))
        whole = fold(start, acc, [(i, extent)], mixed(acc, x(i)))
        assert Simplification(frozenset([fact])).of(whole) is fold(start, acc, [(i, n)], mixed(acc, x(i)))
        assert Simplification(frozenset([at_most(number(0), m)])).of(whole) is whole
