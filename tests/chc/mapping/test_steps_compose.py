"""Steps compose: what they say, and instances of their lemmas, give the goal, and nothing else is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import pysmt.shortcuts as smt
import pytest
from pysmt.fnode import FNode
from pysmt.operators import AND, IMPLIES, NOT, OR
from pysmt.typing import INT

from chc.mapping.arithmetic.injectivity import injectivity_steps
from chc.mapping.arithmetic.ranges import apart_steps, digit_steps, quick, range_steps
from chc.mapping.arithmetic.steps import Step, require
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.polynomials import difference_of, expand


def number(name: str) -> FNode:
    return smt.Symbol(name, INT)


def outline(formula: FNode) -> FNode:
    """A formula with a Boolean in place of each comparison: the same one for the same sum of products."""
    if formula.is_equals() or formula.is_le() or formula.is_lt():
        left, right = formula.args()
        terms = difference_of(expand(right), expand(smt.Plus(left, smt.Int(int(formula.is_lt())))))
        if formula.is_equals() and terms:
            divisor = gcd(*terms.values()) * (1 if terms[min(terms, key=str)] > 0 else -1)
            terms = {m: c // divisor for m, c in terms.items()}
        if not terms.keys() - {()}:
            literal = terms.get((), 0)
            return smt.Bool(literal == 0 if formula.is_equals() else literal >= 0)
        return smt.Symbol(f"{'0 =' if formula.is_equals() else '0 <='} {sorted(map(str, terms.items()))}")
    if formula.is_bool_constant():
        return formula
    make = {AND: smt.And, OR: smt.Or, NOT: smt.Not, IMPLIES: smt.Implies}[formula.node_type()]
    return make(*map(outline, formula.args()))


def follows(facts: Sequence[FNode], goal: FNode) -> bool:
    """Whether a goal follows from facts without any arithmetic but that of equal sums of products."""
    return bool(smt.is_valid(smt.Implies(smt.And(map(outline, facts)), outline(goal))))


def composed(known: Sequence[FNode], steps: Sequence[Step] | None, goal: FNode, given: Sequence[FNode] = ()) -> bool:
    """Whether steps, at their instances, that rest on what is known or said say enough for a goal.

    What replays them must say so, too.
    """
    assert steps is not None
    facts, shown = [*conjuncts(known), *given], [*given]
    for name, premises, conclusion, at in steps:
        assert quick([*premises], conclusion), name
        for instance in at:
            lemma = smt.Implies(smt.And(premises), conclusion)
            is_shown = all(h in facts or follows(shown, h) for h in conjuncts(premises))
            assert is_shown or instance, name
            shown.append(lemma.substitute(dict(instance)) if instance else conclusion)
    require(facts, steps, [goal])
    return follows(shown, goal)


def within(symbols: Sequence[FNode], limit: FNode) -> list[FNode]:
    return [smt.And(smt.LE(smt.Int(0), x), smt.LT(x, limit)) for x in symbols]


@pytest.mark.parametrize("gap", [0, 1])
def test_steps_to_a_bound(gap: int) -> None:
    a, b, n, slack = map(number, ("a", "b", "n", "slack"))
    known = [smt.LE(smt.Int(1), n), smt.LE(smt.Int(gap), slack), *within((a, b), n)]
    address, area = smt.Plus(smt.Times(a, n), b), smt.Times(n, n)
    limit = smt.Plus(area, slack, smt.Int(-1))
    steps = range_steps(known, address, limit, {n, slack}, quick, gap)
    goal = smt.LE(smt.Plus(address, smt.Int(gap)), limit)
    assert composed(known, steps, goal)


@pytest.mark.parametrize("nonlinear", [False, True])
def test_steps_to_a_digit(nonlinear: bool) -> None:
    a, b, n = map(number, "abn")
    known = [smt.LE(smt.Int(1), n), *within((a, b), n)]
    digit, radix = (smt.Plus(smt.Times(a, n), b), smt.Times(n, n)) if nonlinear else (a, n)
    steps = digit_steps(known, digit, radix, {n}, quick)
    assert composed(known, steps, *within([digit], radix))


def test_steps_to_an_address_of_its_own() -> None:
    """offset + 48*(a*n + x) + 3*lane determines a, x and the lane."""
    a, b, x, y, lane, other, n, offset = map(number, ("a", "b", "x", "y", "lane", "other", "n", "offset"))
    known = [
        smt.LE(smt.Int(1), n),
        *within((a, b), smt.Int(9)),
        *within((x, y), n),
        *within((lane, other), smt.Int(16)),
    ]
    pairs = [(a, b), (x, y), (lane, other)]
    highs = [smt.Plus(smt.Times(q, n), v) for q, v in ((a, x), (b, y))]
    address = smt.Plus(offset, smt.Times(smt.Int(48), highs[0]), smt.Times(smt.Int(3), lane))
    steps = injectivity_steps(known, address, dict(pairs), pairs)
    same = smt.Equals(address, address.substitute(dict(pairs)))
    goal = smt.And([smt.Equals(*pair) for pair in pairs])
    assert composed(known, steps, goal, [same])


def address_of_its_own() -> tuple[list[FNode], list[Step], list[FNode]]:
    """What is known of 48*(a*n + x) + 3*lane at two iterations, steps, and that the counters are equal."""
    a, b, x, y, lane, other, n = map(number, ("a", "b", "x", "y", "lane", "other", "n"))
    ranges = [*within((a, b), smt.Int(9)), *within((x, y), n), *within((lane, other), smt.Int(16))]
    known = [smt.LE(smt.Int(1), n), *conjuncts(ranges)]
    pairs = {a: b, x: y, lane: other}
    high = smt.Plus(smt.Times(a, n), x)
    address = smt.Plus(smt.Times(smt.Int(48), high), smt.Times(smt.Int(3), lane))
    steps = injectivity_steps(known, address, pairs, list(pairs.items()))
    known.append(smt.Equals(address, address.substitute(pairs)))
    return known, steps, [smt.Equals(*pair) for pair in pairs.items()]


def proves(known: Sequence[FNode], steps: Sequence[Step], claims: Sequence[FNode]) -> bool:
    """Whether steps are a proof: each is a theorem, and together they are replayed."""
    try:
        require(known, steps, claims)
    except Unsupported:
        return False
    return all(quick([*premises], goal) for _, premises, goal, _ in steps)


def mutants(steps: Sequence[Step], other: FNode, more: FNode) -> Iterator[list[Step]]:
    """Lists of steps of which one is used elsewhere, rests on less, says more or is left out."""
    for k, (name, premises, goal, at) in enumerate(steps):
        moved = [{**i, s: t} for i in at for s in i for t in (other, smt.Plus(i[s], smt.Int(1)))]
        fewer = [[p for j, p in enumerate(premises) if j != i] for i in range(min(len(premises), 3))]
        for changed in (
            *(Step(name, premises, goal, [i]) for i in moved),
            *(Step(name, of, goal, at) for of in ([], *fewer)),
            *(Step(name, premises, smt.And(goal, m), at) for m in (more, smt.Not(goal))),
            Step(name, premises, more, at),
            Step(name, premises, goal, []),
        ):
            yield [*steps[:k], changed, *steps[k + 1 :]]


def test_wrong_steps_prove_nothing_that_is_wrong() -> None:
    known, steps, claims = address_of_its_own()
    a, b, y, n = map(number, "abyn")
    assert proves(known, steps, claims)
    more = smt.LT(a, b)
    needed = [k for k, h in enumerate(known) if h.is_equals() or (h.is_lt() and h.arg(0) not in (a, b))]
    assert len(needed) == 5
    tried = 0
    for wrong in (steps, *mutants(steps, n, more)):
        tried += 1
        for claim in (smt.Equals(a, y), smt.Not(claims[0]), smt.FALSE()):
            assert not proves(known, wrong, [claim]), wrong
        for k in needed:
            assert not proves([h for i, h in enumerate(known) if i != k], wrong, claims), (known[k], wrong)
    assert tried > 100


def test_steps_are_used_at_numbers_in_place_of_symbols_only() -> None:
    """From 0 <= a*a, a theorem, nothing follows of a number that stands in place of a*a."""
    a, b = map(number, "ab")
    square = smt.Times(a, a)
    theorem = smt.LE(smt.Int(0), square)
    assert quick([], theorem)
    assert proves([], [Step("square", [], theorem, [{a: b}])], [smt.LE(smt.Int(0), smt.Times(b, b))])
    assert not proves([], [Step("square", [], theorem, [{square: b}])], [smt.LE(smt.Int(0), b)])


def test_steps_rest_on_each_other_in_no_circle() -> None:
    a, b = map(number, "ab")
    one, other = smt.LE(a, b), smt.LT(a, smt.Plus(b, smt.Int(1)))
    strict = smt.LT(a, b)
    assert proves([one], [], [other])
    assert not proves([], [Step("there", [one], other), Step("and back", [other], one)], [one])
    assert not proves([one], [], [strict]) and not proves([smt.Not(strict)], [], [one])
    assert proves([smt.Not(strict)], [], [smt.LE(b, a)])


def test_steps_to_counters_of_their_own() -> None:
    """3*a + 2*x determines a and x below 2 and 3, though x is no digit."""
    a, b, x, y = map(number, "abxy")
    known, pairs = [*within((a, b), smt.Int(2)), *within((x, y), smt.Int(3))], [(a, b), (x, y)]
    address = smt.Plus(smt.Times(smt.Int(3), a), smt.Times(smt.Int(2), x))
    same = smt.Equals(address, address.substitute(dict(pairs)))
    steps = injectivity_steps(known, address, dict(pairs), pairs)
    assert composed(known, steps, smt.And([smt.Equals(*pair) for pair in pairs]), [same])


def test_a_choice_by_a_counter_is_not_common_to_both_addresses() -> None:
    """x plus one or nothing determines x where a size decides, but not where a counter does."""
    a, b, x, y, n = map(number, "abxyn")
    known, renamed = within((x, y), smt.Int(16)), {a: b, x: y}

    def steps(low: FNode) -> list[Step]:
        address = smt.Plus(x, smt.Ite(smt.LT(low, n), smt.Int(0), smt.Int(1)))
        return injectivity_steps(known, address, renamed, [(x, y)])

    assert steps(smt.Int(7))
    with pytest.raises(Unsupported, match="not shown to be injective"):
        steps(a)


@pytest.mark.parametrize("which", ["digits", "rest"])
def test_steps_to_numbers_that_differ(which: str) -> None:
    """8*a*n + d and 8*b*n + e differ where d < e, or where a < b."""
    a, b, d, e, n = map(number, "abden")
    high, other = smt.Times(a, n), smt.Times(b, n)
    eight, less = smt.Int(8), smt.LT(d, e) if which == "digits" else smt.LT(a, b)
    below = [smt.LT(smt.Times(smt.Int(2), x), smt.Int(16)) for x in (d, e)]  # a bound that is not seen by its form
    known = [less, smt.LE(smt.Int(1), n), *within((a, b), n), *(smt.LE(smt.Int(0), x) for x in (d, e)), *below]
    left, right = (smt.Plus(smt.Times(eight, h), low) for h, low in ((high, d), (other, e)))
    steps = apart_steps(known, left, right, {n}, quick)
    assert any(name == f"{which}: apart" for name, _, _, _ in steps or ())
    assert composed(known, steps, smt.Not(smt.Equals(left, right)))


def test_steps_to_numbers_of_other_residues() -> None:
    a, b, n = map(number, "abn")
    left, right = (smt.Plus(smt.Times(smt.Int(4), x), smt.Int(c)) for x, c in ((smt.Times(a, n), 1), (b, 3)))
    steps = apart_steps([], left, right, {n}, quick)
    assert [name for name, _, _, _ in steps or ()] == ["residue", "no multiple"]
    assert composed([], steps, smt.Not(smt.Equals(left, right)))


@pytest.mark.parametrize("literal", [0, 1])
def test_steps_to_numbers_in_rows_of_symbolic_length(literal: int) -> None:
    """a*n + x and b*n + n - 1 differ where x < n - 1, and not where x < n only."""
    a, b, x, n = map(number, "abxn")
    known = [smt.LE(smt.Int(1), n), smt.LE(smt.Int(0), x), smt.LT(x, smt.Minus(n, smt.Int(1 - literal)))]
    last = smt.Minus(n, smt.Int(1))
    left, right = smt.Plus(smt.Times(a, n), x), smt.Plus(smt.Times(b, n), last)
    steps = apart_steps(known, left, right, {n}, quick)
    if literal:
        assert steps is None
    else:
        assert composed(known, steps, smt.Not(smt.Equals(left, right)))


def test_steps_to_rows_of_symbolic_length_that_differ() -> None:
    a, b, x, y, n = map(number, "abxyn")
    known = [smt.LE(smt.Int(1), n), *within((x, y), n)]
    rows = smt.Times(smt.Int(2), a), smt.Plus(smt.Times(smt.Int(2), b), smt.Int(1))
    left, right = (smt.Plus(smt.Times(row, n), digit) for row, digit in zip(rows, (x, y), strict=True))
    steps = apart_steps(known, left, right, {n}, quick)
    assert composed(known, steps, smt.Not(smt.Equals(left, right)))
