"""Equal sums of products in steps, and what the text of a loop shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

import pysmt.shortcuts as smt
import pytest
from pysmt.fnode import FNode
from pysmt.typing import INT

from chc.mapping.arithmetic.correspondence import corresponding
from chc.mapping.arithmetic.equalities import equality_steps
from chc.mapping.arithmetic.injectivity import injectivity_steps, part_steps
from chc.mapping.arithmetic.products import linearised
from chc.mapping.arithmetic.ranges import apart_steps, digit_steps, quick, range_steps
from chc.mapping.arithmetic.steps import Step
from chc.mapping.program.statements import distributable
from chc.mapping.prove import prove
from chc.mapping.sampling.samples import Samples, interleaved
from ila_lang import For, Function, Kernel, bv, const, mem, var
from smt_encodings.claims import Status, Unsupported
from smt_encodings.expressions.polynomials import expand
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.toy import mapping, model


def symbols() -> tuple[list[FNode], dict[str, FNode]]:
    """What is known of b, q, r, n, v: q and v are quotient and remainder of 16*b + r."""
    s = {n: smt.Symbol(n, INT) for n in "bqrnv"}
    sixteen = smt.Int(16)
    known = [
        smt.Equals(smt.Plus(smt.Times(sixteen, s["b"]), s["r"]), smt.Plus(smt.Times(sixteen, s["q"]), s["v"])),
        *(smt.And(smt.LE(smt.Int(0), s[x]), smt.LT(s[x], sixteen)) for x in "rv"),
    ]
    return known, s


def form(s: dict[str, FNode], factor: int, high: str, low: str, more: int = 0) -> FNode:
    return smt.Plus(smt.Times(smt.Int(factor), s[high], s["n"]), s[low], smt.Int(more))


def test_a_product_with_a_quotient_is_the_product_with_what_it_is() -> None:
    known, s = symbols()
    left, right = form(s, 16, "q", "v"), form(s, 16, "b", "r")
    steps = equality_steps(known, left, right, quick)
    assert steps is not None and steps[-1][2] == smt.Equals(left, right)
    assert all(quick(given, goal) for _, given, goal, _ in steps)
    reached = [step[2] for step in steps[:-1]]
    assert all(h in reached for h in steps[-1][1]), "the last step rests on the ones before only"


@pytest.mark.parametrize("right", [(16, "b", "q"), (16, "b", "r", 1), (8, "b", "r"), (16, "r", "r")])
def test_no_steps_are_found_for_what_is_not_equal(right: tuple[int, str, str]) -> None:
    known, s = symbols()
    assert equality_steps(known, form(s, 16, "q", "v"), form(s, *right), quick) is None


@pytest.mark.parametrize("last", [True, False])
def test_a_row_that_can_only_be_the_last_one_is_put_in_its_place(last: bool) -> None:
    """A row from 2*q on and below m = 2*q + rest is m - 1 where the rest is at most 1."""
    row, v, m, n, q, rest = (smt.Symbol(name, INT) for name in ("row", "v", "m", "n", "q", "rest"))
    twice = smt.Times(smt.Int(2), q)
    known = [smt.LE(twice, row), smt.LT(row, m), smt.Equals(m, smt.Plus(twice, rest))]
    known.append(smt.LE(rest, smt.Int(1 if last else 2)))
    left, right = (smt.Plus(smt.Times(r, n, n), v) for r in (row, smt.Minus(m, smt.Int(1))))
    steps = equality_steps(known, left, right, quick)
    assert (steps is not None) is last
    for _, given, goal, _ in steps or ():
        assert quick(given, goal)
    if steps:
        (_, _, place, _), (_, premises, whole, _) = steps
        assert premises == [place] and whole == smt.Equals(left, right)


def test_sums_that_are_built_alike_are_told_by_their_symbols() -> None:
    _, s = symbols()
    one, two = form(s, 16, "q", "v"), form(s, 16, "b", "r")
    assert next(corresponding(one, two, {s["n"]})) == {s["q"]: s["b"], s["v"]: s["r"]}
    for other in (two, form(s, 8, "b", "r"), form(s, 16, "b", "r", 1)):
        for renamed in corresponding(one, other, {s["n"]}):
            assert expand(one.substitute(renamed)) == expand(other)
            assert other is two or any(not to.is_symbol() for to in renamed.values()), "a last digit is a sum"
    twice = smt.Plus(smt.Times(smt.Int(16), s["q"], s["n"]), s["q"])
    assert not list(corresponding(twice, two)), "one symbol cannot stand for two"
    product = smt.Times(s["n"], s["v"])
    left, right = (smt.Plus(s[x], product) for x in "nb")
    assert not list(corresponding(left, right)), "what both have in common has the symbol, too"


def plane(slack: int = 0) -> tuple[list[FNode], FNode, list[FNode], dict[FNode, FNode]]:
    """An address row*w + column of a plane h x w, what is known of it and of another one, sizes, and counters of both.

    A row is half + s*q - s*t and a column edge + s*c - s*d; rows may be at most h - 1 + ``slack``.
    """
    h, w, s, half, edge = sizes = [smt.Symbol(n, INT) for n in ("h", "w", "s", "half", "edge")]
    known = [smt.And(smt.LE(smt.Int(1), n), smt.LE(n, smt.Int(1023))) for n in (h, w, s)]
    addresses, counters = [], []
    for side in ("", ".other"):
        q, t, c, d = (smt.Symbol(f"{n}{side}", INT) for n in "qtcd")
        row, column = digits(s, half, q, t), digits(s, edge, c, d)
        known += [smt.LE(smt.Int(0), row), smt.LT(row, smt.Plus(h, smt.Int(slack)))]
        known += [smt.LE(smt.Int(0), column), smt.LT(column, w)]
        addresses.append(smt.Plus(smt.Times(row, w), column))
        counters.append((q, t, c, d))
    return known, addresses[0], sizes, dict(zip(*counters, strict=True))


def digits(step: FNode, first: FNode, high: FNode, low: FNode) -> FNode:
    return smt.Plus(first, smt.Minus(smt.Times(step, high), smt.Times(step, low)))


def test_a_sum_that_is_bounded_as_a_whole_is_a_digit() -> None:
    known, address, sizes, renamed = plane()
    h, w, s, half, edge = sizes
    steps = range_steps(known, address, smt.Times(h, w), {*sizes}, quick, 1)
    assert steps is not None and steps[-1][2] == smt.LE(smt.Plus(address, smt.Int(1)), smt.Times(h, w))
    assert all(quick(given, goal) for _, given, goal, _ in steps)
    steps, conclusions, parts = part_steps(known, address, renamed)
    assert all(quick(given, goal) for _, given, goal, _ in steps)
    q, t, c, d = renamed
    wanted = [digits(s, edge, c, d), digits(s, half, q, t)]
    assert [quick([], smt.Equals(*pair)) for pair in zip(parts, wanted, strict=True)] == [True, True]
    assert len(conclusions) >= len(parts)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_guard_bounds_a_sum_of_counters(guarded: bool) -> None:
    """Blocks of two rows: that 2*t + u is a row of a matrix of m rows says the guard alone, not the blocks' number."""
    t, u, v, m, n, blocks = (smt.Symbol(x, INT) for x in ("t", "u", "v", "m", "n", "blocks"))
    zero, two = smt.Int(0), smt.Int(2)
    row = smt.Plus(smt.Times(two, t), u)
    known = [
        *(smt.LE(zero, x) for x in (t, u, v, m, n)),
        *(smt.LE(smt.Times(two, blocks), smt.Plus(m, smt.Int(1))), smt.LT(t, blocks), smt.LT(u, two), smt.LT(v, n)),
    ]
    steps = range_steps(
        [*known, smt.LT(row, m)] if guarded else known,
        smt.Plus(smt.Times(row, n), v),
        smt.Times(m, n),
        {m, n, blocks},
        quick,
        1,
    )
    assert (steps is not None) is guarded
    for _, given, goal, _ in steps or []:
        assert quick(given, goal)


def test_a_sum_that_may_go_beyond_the_plane_is_no_digit() -> None:
    known, address, sizes, _ = plane(slack=1)
    h, w, *_ = sizes
    assert range_steps(known, address, smt.Times(h, w), {*sizes}, quick, 1) is None
    # nor is a sum of which nothing is known as a whole
    fewer = [k for k in plane()[0] if not (k.is_lt() and h in k.get_free_variables())]
    assert len(fewer) == len(known) - 2
    assert range_steps(fewer, address, smt.Times(h, w), {*sizes}, quick, 1) is None


BOUNDED = ["products", "distance", "factor", "sizes", "sum", "whole"]
DIGIT = ["not negative", "below the radix"]


def names(steps: list[Step] | None) -> list[str]:
    """What the steps are called, without numbers."""
    assert steps is not None and all(quick(given, goal) for _, given, goal, _ in steps)
    return list(dict.fromkeys(re.sub(r" ?\d+", "", name) for name, _, _, _ in steps))


def test_every_step_to_a_bound_and_to_a_digit_is_there() -> None:
    known, address, sizes, renamed = plane()
    h, w, s, _, edge = sizes
    assert names(range_steps(known, address, smt.Times(h, w), {*sizes}, quick, 1)) == BOUNDED
    _, _, c, d = renamed
    digit = [x for side in DIGIT for x in (*(f"{side}, {step}" for step in BOUNDED), side)]
    assert names(digit_steps(known, digits(s, edge, c, d), w, {*sizes}, quick)) == digit
    both = [f"digit{side}: {step}" for side in ("", ", other") for step in digit]
    assert names(part_steps(known, address, renamed)[0]) == [
        "the address, digit by digit",
        "radix",
        "parts",
        "parts, other",
        *both,
    ]


def test_every_step_to_an_address_of_its_own_is_there() -> None:
    """16*(a*n + x) + lane determines a, x and the lane."""
    a, b, x, y, lane, other, n = (smt.Symbol(name, INT) for name in ("a", "b", "x", "y", "lane", "other", "n"))
    known = [smt.LE(smt.Int(1), n), smt.LE(n, smt.Int(99))]
    for symbols_, limit in (((a, b), smt.Int(9)), ((x, y), n), ((lane, other), smt.Int(16))):
        known += [smt.And(smt.LE(smt.Int(0), symbol), smt.LT(symbol, limit)) for symbol in symbols_]
    address = smt.Plus(smt.Times(smt.Int(16), smt.Plus(smt.Times(a, n), x)), lane)
    pairs = [(a, b), (x, y), (lane, other)]
    assert names(injectivity_steps(known, address, dict(pairs), pairs)) == [
        "the address, digit by digit",
        *(f"digit lane{side} below" for side in ("", ", other")),
        "digit lane of weight of",
        "radix",
        "parts",
        "parts, other",
        *(f"digit{side}: {step}" for side in ("", ", other") for step in DIGIT),
        "counters",
    ]


def test_every_step_to_addresses_that_differ_is_there() -> None:
    a, b, d, e, n = (smt.Symbol(name, INT) for name in "abden")
    known = [smt.LE(smt.Int(1), n), smt.LE(n, smt.Int(99)), smt.LT(d, e)]
    known += [smt.And(smt.LE(smt.Int(0), x), smt.LT(x, n)) for x in (a, b)]
    known += [smt.And(smt.LE(smt.Int(0), x), smt.LT(x, smt.Int(8))) for x in (d, e)]
    assert names(apart_steps(known, smt.Times(a, n), smt.Times(n, n), {n}, quick)) == [*BOUNDED, "apart"]
    left, right = (smt.Plus(smt.Times(smt.Int(8), high, n), low) for high, low in ((a, d), (b, e)))
    sides = [
        f"{side}{what}" for side in ("left", "right") for what in (", digit and rest", *(f" digit, {x}" for x in DIGIT))
    ]
    assert names(apart_steps(known, left, right, {n}, quick)) == [*sides, "digits: apart", "radix"]


SOURCE, TARGET = var("m", mem(8, 8)), var("o", mem(8, 8))


def loop_of(body: Callable[[Kernel], None]) -> For:
    k = Kernel("k")
    body(k)
    loop = k.body[-1]
    assert isinstance(loop, For)
    return loop


def running(*, stored: str, when: bool = False) -> For:
    """A running sum of m; what is stored to o is the word, or comes from the sum in some way."""

    def body(k: Kernel) -> None:
        acc = k.let("acc", const(0, 8))
        with k.loop("i", const(4, 8)) as i:
            word = k.load("word", SOURCE, i)
            late = k.let("late", acc + 1) if stored == "late" else word
            inner = k.load("inner", SOURCE, acc) if stored == "inner" else word
            if when:
                with k.when("some", acc == 3):
                    k.store(TARGET, i, word)
            else:
                k.store(TARGET, acc if stored == "place" else i, {"late": late, "inner": inner}.get(stored, word))
            k.assign(acc, acc + word)

    return loop_of(body)


def test_the_text_shows_whether_what_a_loop_writes_depends_on_its_registers() -> None:
    assert distributable(running(stored="word"))
    assert not any(distributable(running(stored=how)) for how in ("late", "inner", "place"))
    assert not distributable(running(stored="word", when=True))


def test_a_function_may_have_a_name_that_a_solver_takes_for_its_own() -> None:
    exp = Function("exp", {"x": bv(8)}, bv(8), None)
    exp.body = exp.params[0] ^ 5

    def body(k: Kernel, s: dict) -> None:  # type: ignore[type-arg]
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, exp(k.load("word", s["src"], i * s["m"] + j)))

    assert model("named", "", body).kernels
    claim = replace(flow(mapping(body, body, abstract=frozenset({"exp"}))), name="named")
    verdict = prove(claim)
    assert verdict.status is Status.PROVED, verdict.reason
    assert any("exp!2" in o.smtlib for o in verdict.obligations)


def test_terms_are_evaluated_at_every_sample_however_often_and_in_whatever_order() -> None:
    n, i, x = (var(name, bv(8)) for name in "nix")
    samples = Samples((n,), (i,), ((3, 1), (5, 4), (9, 0)))
    assert samples.evaluate([n + i]) == [(4,), (9,), (9,)]
    assert samples.evaluate([i, n + i, n - i, i]) == [(1, 4, 2, 1), (4, 9, 1, 4), (0, 9, 9, 0)]
    assert samples.evaluate([]) == [(), (), ()]
    for _ in range(2):
        with pytest.raises(Unsupported, match="an address depends on x, which the program does not determine"):
            samples.evaluate([n + i, x])
    odd = samples.where(i % 2 == 1)  # values are those of its own samples
    assert odd.rows == ((3, 1),) and odd.evaluate([n + i]) == [(4,)]
    none = samples.where(i == 7)
    assert none.rows == () and none.evaluate([n, n + i]) == []
    assert samples == Samples((n,), (i,), samples.rows)


@pytest.mark.parametrize(
    ("place", "counters"), [((), ()), ((4,), ()), ((4, 0), (7,)), ((4, 0, 2), (7, 8)), ((4,), (7, 8))]
)
def test_places_and_counters_take_turns(place: tuple[int, ...], counters: tuple[int, ...]) -> None:
    turns = [x for pair in zip_longest(place, counters, fillvalue=-1) for x in pair]
    assert interleaved(place, counters) == tuple(turns[: len(place) + len(counters)])


def test_a_choice_of_conditions_is_linearised_like_other_connectives() -> None:
    a, b, n = (smt.Symbol(name, INT) for name in "abn")
    choice = smt.Ite(smt.LT(a, b), smt.LT(smt.Times(a, n), n), smt.LE(n, smt.Times(a, n)))
    (plain,), _ = linearised([choice])
    product = smt.Symbol("!product0", INT)
    assert plain.is_ite() and plain.get_free_variables() == {a, b, n, product}
    assert smt.is_valid(smt.Iff(plain, smt.Ite(smt.LT(a, b), smt.LT(product, n), smt.LE(n, product))), solver_name="z3")
