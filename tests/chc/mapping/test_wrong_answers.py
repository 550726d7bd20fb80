"""Questions that choose the form of a proof may be answered wrongly: then an obligation fails.

Every claim is wrong, and a prover that is told "yes" whatever it asks in one way must not prove it.  Its twin is right,
and is proved by a prover that is told the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import chc.mapping.arithmetic.injectivity
import chc.mapping.arithmetic.ranges
import chc.mapping.arithmetic.search
import chc.mapping.contents.reduction
import chc.mapping.memory.contexts
import chc.mapping.memory.kills
import chc.mapping.memory.output_dependence
import chc.mapping.proof
from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, bv, const, ite, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_beyond_samples import OUT_OF_REACH, large, step
from tests.chc.mapping.test_flow import CELL, flow
from tests.chc.mapping.test_flow_accumulate import blocks, blocks_ir
from tests.chc.mapping.test_flow_revisits import claim as scattered
from tests.chc.mapping.toy import DOMAIN, Body, M, N, copy_body, mapping
from tests.marks import slow_but

States = Mapping[str, Expr]
Build = Callable[[bool], TensorMapping]
QUESTIONS = {
    "whether a condition holds": ((chc.mapping.memory.contexts, "decide"),),
    "whether index arithmetic fits": ((chc.mapping.proof, "decide"),),
    "whether there are steps": ((chc.mapping.arithmetic.ranges, "decide_within"),),
    "whether digits are equal": ((chc.mapping.arithmetic.injectivity, "decide"),),
    "whether a sum may begin with a cell": ((chc.mapping.contents.reduction, "decide"),),
    "whether a short attempt suffices": tuple(
        (m, "quick")
        for m in (
            chc.mapping.memory.kills,
            chc.mapping.memory.output_dependence,
            chc.mapping.proof,
            chc.mapping.arithmetic.search,
            chc.mapping.arithmetic.injectivity,
            chc.mapping.memory.contexts,
        )
    ),
    "whether a digit is small": ((chc.mapping.arithmetic.injectivity, "quick"),),
    "whether another way suffices": ((chc.mapping.memory.kills, "quick"),),
    "whether a cell is read first": ((chc.mapping.memory.kills, "quick"), (chc.mapping.memory.contexts, "decide")),
}
SKIPPED = "whether another way suffices"
SKIPPING = (SKIPPED, "whether a cell is read first")
"""With these questions, the order of loops is not what excludes a write."""
CLAIMS: dict[str, Build] = {}
CASES: list[tuple[str, str, str]] = []
"""A claim, the question with a wrong answer, and the group of the obligation that fails."""
ZERO, ONE = const(0, 32), const(1, 32)


def asks(question: str, obligation: str) -> Callable[[Build], Build]:
    """Notes a claim, right for True, and the group of the obligation that fails where a question has a wrong answer."""

    def note(build: Build) -> Build:
        name = build.__name__.replace("_", " ")
        CLAIMS[name] = build
        CASES.append((name, question, obligation))
        return build

    return note


def limit(right: bool) -> int:
    return OUT_OF_REACH if right else 100


def fold_of(words: Callable[[States], Expr], change: Callable[[Expr, States], Expr] = lambda x, s: const(0, 8)) -> Body:
    """dst[i, j] = fold over some words of row i of src."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("x", words(s)) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], i * s["m"] + x) + change(x, s)))
            k.store(s["dst"], i * s["m"] + j, acc)

    return body


def copy(
    *,
    target: Callable[[Expr, Expr, States], Expr] = lambda i, j, s: i * s["m"] + j,
    source: Callable[[Expr, Expr, States], Expr] = lambda i, j, s: i * s["m"] + j,
    only: Callable[[Expr, States], Expr] | None = None,
    change: Callable[[States], Expr] = lambda s: const(0, 8),
) -> TensorMapping:
    """A copy of src to dst."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], source(i, j, s)) + change(s)
            if only is None:
                k.store(s["dst"], target(i, j, s), word)
            else:
                with k.when("only", only(i, s)):
                    k.store(s["dst"], target(i, j, s), word)

    return flow(mapping(device))


@asks("whether a condition holds", "toy: conditions")
def a_word_of_memory_lets_a_cell_be_overwritten(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        k.store(s["tmp"], ZERO, const(255 if right else 100, 8))
        with k.when("more", k.load("level", s["tmp"], ZERO).zext(32) < s["n"]):
            k.store(s["dst"], ZERO, const(7, 8))

    return flow(mapping(device))


@asks("whether a condition holds", "branches")
def another_value_is_chosen_of_many_rows(right: bool) -> TensorMapping:
    return copy(change=lambda s: large(s, limit(right), const(1, 8), const(0, 8)))


@asks("whether a condition holds", "lock-step")
def a_sum_takes_a_word_more_of_many_rows(right: bool) -> TensorMapping:
    device = fold_of(lambda s: s["m"] + large(s, limit(right), ONE, ZERO))
    return flow(mapping(device, fold_of(lambda s: s["m"]), abstract=frozenset({"step"})))


@asks("whether a condition holds", "digits")
def the_last_iteration_is_at_no_cell(right: bool) -> TensorMapping:
    """Both sides go through the columns, four for each of m; of many rows they make a step more, another one each."""

    def side(more: int) -> Body:
        def body(k: Kernel, s: States) -> None:
            columns = s["m"] * 4
            with k.loop("i", s["n"]) as i, k.loop("q", s["m"]) as q, k.loop("l", const(4, 32)) as lane:
                acc = k.let("acc", const(0, 8))
                with k.loop("x", columns + large(s, limit(right), ONE, ZERO)) as x:
                    word = k.load("word", s["src"], i * columns + x)
                    k.assign(acc, step(acc, word + ite(x < columns, const(0, 8), const(more, 8))))
                k.store(s["dst"], i * columns + q * 4 + lane, acc)

        return body

    claim = mapping(side(1), side(0), columns=M.zext(32) * 4, abstract=frozenset({"step"}))
    quarter, lane = var("quarter", bv(32)), var("lane", bv(32))
    cell = (CELL[0], claim.rows), (quarter, M.zext(32)), (lane, const(4, 32))
    return replace(flow(claim), cell=cell, cell_column=quarter * 4 + lane)


@asks("whether a condition holds", "branches")
def sums_begin_anew_with_their_second_word(right: bool) -> TensorMapping:
    """dst[o] = fold over some words of src from o*s on; the device goes through src instead."""

    def words(s: States) -> Expr:
        return (s["m"] * 3) >> 1

    def device(k: Kernel, s: States) -> None:
        taps = words(s)
        with k.loop("r", (s["n"] - 1) * s["s"] + taps) as r, k.loop("t", taps) as t:
            o = (r - t) // s["s"]
            with k.when("inside", (t <= r) & ((r - t) % s["s"] == 0) & (o < s["n"])):
                old = k.load("old", s["dst"], o)
                anew = (t == 0) | ((t == 1) & (s["m"] > limit(right)))
                k.store(s["dst"], o, step(ite(anew, const(0, 8), old), k.load("in", s["src"], r)))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("o", s["n"]) as o:
            acc = k.let("acc", const(0, 8))
            with k.loop("x", words(s)) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], o * s["s"] + x)))
            k.store(s["dst"], o, acc)

    shapes = ((1, 2, 1), (1, 4, 2), (3, 5, 2), (4, 2, 3), (5, 4, 1), (6, 7, 3))
    return replace(scattered(device, ir), sample_shapes=shapes)


@asks("whether digits are equal", "toy: layout")
@asks("whether a short attempt suffices", "toy: cells")
@asks(SKIPPED, "toy: cells")
def rows_are_written_again_as_their_neighbours(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        again = large(s, limit(right), ONE, ZERO)
        with k.loop("t", again + 1) as t, k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], (i + t) * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    return flow(mapping(device))


def cleared(often: Callable[[States], Expr], row: Callable[[Expr, States], Expr]) -> TensorMapping:
    """Row after row is cleared and copied, which is done ``often``; but rows are copied the first time only."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("u", often(s)) as u, k.loop("t", s["n"]) as t:
            with k.loop("c", s["m"]) as c:
                k.store(s["dst"], row(t, s) * s["m"] + c, const(0, 8))
            with k.loop("j", s["m"]) as j:
                word = k.load("word", s["src"], t * s["m"] + j)
                with k.when("first", u == 0):
                    k.store(s["dst"], t * s["m"] + j, word)

    return flow(mapping(device))


@asks(SKIPPED, "toy: cells")
def rows_are_cleared_again(right: bool) -> TensorMapping:
    return cleared(lambda s: large(s, limit(right), ONE, ZERO) + 1, lambda t, s: t)


@asks(SKIPPED, "toy: cells")
def even_rows_are_cleared_before_odd_ones_are_copied(right: bool) -> TensorMapping:
    return cleared(lambda s: ONE, lambda t, s: large(s, limit(right), (t >> 1) << 1, t))


def clear_row(k: Kernel, s: States, row: Expr, columns: Expr) -> None:
    with k.loop("c", columns) as c:
        k.store(s["tmp"], row * s["m"] + c, const(0, 8))


def copy_row(k: Kernel, s: States, row: Expr, source: Expr, columns: Expr) -> None:
    with k.loop("x", columns) as x:
        k.store(s["tmp"], row * s["m"] + x, k.load("word", s["src"], source * s["m"] + x))


def buffered(fill: Body, row: Callable[[Expr, States], Expr], rows: int = 255) -> TensorMapping:
    """A copy of up to so many rows by way of tmp, which ``fill`` fills."""

    def device(k: Kernel, s: States) -> None:
        fill(k, s)
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("kept", s["tmp"], row(i, s) * s["m"] + j))

    domain = (f"1 <= n <= {rows}", (const(1, 16) <= N) & (const(rows, 16) >= N)), DOMAIN[1]
    return flow(mapping(device, domain=domain))


@asks(SKIPPED, "toy: cells")
def a_row_is_cleared_after_its_copy_instead_of_before(right: bool) -> TensorMapping:
    def fill(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            clear_row(k, s, t + 1 - large(s, limit(right), ONE, ZERO), s["m"])
            copy_row(k, s, t + 1, t, s["m"])

    return buffered(fill, lambda i, s: i + 1)


@asks(SKIPPED, "toy: cells")
def rows_are_cleared_half_as_fast_as_copied(right: bool) -> TensorMapping:
    """Row i is cleared in iteration 2*i, and copied in iteration i + 9."""

    def fill(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"] * 2 + 9) as t:
            with k.loop("y", s["n"]) as y, k.when("clear", t == y * 2):
                clear_row(k, s, y + 9, s["m"])
            with k.when("copy", (t >= 9) & (t < s["n"] + 9)):
                copy_row(k, s, t, t - 9, s["m"])

    return buffered(fill, lambda i, s: i + 9, 10 if right else 255)


@asks("whether a digit is small", "toy: cells")
def the_next_row_loses_a_word_that_is_there(right: bool) -> TensorMapping:
    """From the last row on, each row is cleared twice and copied; more may be cleared than the row."""

    def fill(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t, k.loop("y", s["n"]) as y, k.when("now", t + y == s["n"] - 1):
            with k.loop("twice", const(2, 32)):
                clear_row(k, s, y, s["m"] + large(s, limit(right), ONE, ZERO))
            copy_row(k, s, y, y, s["m"])

    return buffered(fill, lambda i, s: (s["n"] - 1) - ((s["n"] - 1) - i))  # the iteration is a part of it


@asks("whether a condition holds", "toy: cells")
def the_last_word_of_a_row_is_cleared_as_the_first_of_the_next(right: bool) -> TensorMapping:
    """A single row of m words, and one more of many."""

    def words(s: States) -> Expr:
        return s["m"] + large(s, limit(right), ONE, ZERO)

    def device(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            clear_row(k, s, t, s["m"])
            with k.when("now", t == 0):
                copy_row(k, s, ZERO, ZERO, words(s))
        with k.loop("j", words(s)) as j:
            k.store(s["dst"], j, k.load("kept", s["tmp"], j))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("j", words(s)) as j:
            k.store(s["dst"], j, k.load("word", s["src"], j))

    return flow(mapping(device, ir, rows=ONE, columns=words({"n": N, "m": M.zext(32)})))


def taken(often: Callable[[States], Expr], now: Callable[[Expr, Expr, States], Expr], rows: int = 255) -> TensorMapping:
    """Rows of up to so many are taken from tmp one after the other, and cleared some time."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("f", s["n"]) as f:
            copy_row(k, s, f, f, s["m"])
        with k.loop("t", often(s)) as t:
            with k.when("there", t < s["n"]), k.loop("j", s["m"]) as j:
                k.store(s["dst"], t * s["m"] + j, k.load("kept", s["tmp"], t * s["m"] + j))
            with k.loop("y", s["n"]) as y, k.when("now", now(t, y, s)):
                clear_row(k, s, y, s["m"])

    domain = (f"1 <= n <= {rows}", (const(1, 16) <= N) & (const(rows, 16) >= N)), DOMAIN[1]
    return flow(mapping(device, domain=domain))


@asks(SKIPPED, "toy: cells")
def rows_are_cleared_before_they_are_taken_but_the_first(right: bool) -> TensorMapping:
    return taken(lambda s: s["n"], lambda t, y, s: (t + large(s, limit(right), ONE, ZERO) == y) & (y >= 1))


@asks("whether a cell is read first", "toy: cells")
def rows_are_all_cleared_when_eighty_were_taken(right: bool) -> TensorMapping:
    return taken(lambda s: s["n"] + 80, lambda t, y, s: t == 79, 80 if right else 255)


def narrow_product(i: Expr, s: States, right: bool) -> Expr:
    """i * m in 16 bits, which suffice, or in 14."""
    top = 15 if right else 13
    return (i[top:0] * s["m"][top:0]).zext(32)


@asks("whether index arithmetic fits", "no overflow")
def an_address_is_written_that_wraps_around(right: bool) -> TensorMapping:
    return copy(target=lambda i, j, s: narrow_product(i, s, right) + j)


@asks("whether index arithmetic fits", "no overflow")
def an_address_is_read_that_wraps_around(right: bool) -> TensorMapping:
    return copy(source=lambda i, j, s: narrow_product(i, s, right) + j)


@asks("whether index arithmetic fits", "no overflow")
def a_condition_wraps_around(right: bool) -> TensorMapping:
    top = 8 if right else 6
    return copy(only=lambda i, s: i[top:0] + const(1, top + 1) >= 1)


@asks("whether index arithmetic fits", "no overflow")
def a_choice_wraps_around(right: bool) -> TensorMapping:
    top = 8 if right else 6
    return copy(change=lambda s: ite(s["n"][top:0] + const(1, top + 1) >= 1, const(0, 8), const(1, 8)))


@asks("whether index arithmetic fits", "no overflow")
def the_number_of_words_wraps_around(right: bool) -> TensorMapping:
    top = 8 if right else 7
    device = fold_of(lambda s: ((s["m"][top:0] + const(2, top + 1)) >> 1).zext(32))
    return flow(mapping(device, fold_of(lambda s: (s["m"] + 2) >> 1), abstract=frozenset({"step"})))


@asks("whether index arithmetic fits", "no overflow")
def a_condition_says_of_itself_that_it_does_not_wrap_around(right: bool) -> TensorMapping:
    """In row 127 it does: 7 bits of 127, and 1, are 0."""
    top = 8 if right else 6

    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        with k.loop("c", s["n"]) as c, k.when("never", (c[top:0] + const(1, top + 1) <= 20) & (c >= 100) & (c <= 127)):
            k.store(s["dst"], c * s["m"], const(0, 8))

    return flow(mapping(device))


def chosen(change: Callable[[Expr], Expr]) -> Body:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + change(i))

    return body


@asks("whether index arithmetic fits", "no overflow")
def one_of_two_remainders_wraps_around(right: bool) -> TensorMapping:
    """Those of even numbers are 124 at most, and with 3 they have 7 bits."""
    top = 7 if right else 6

    def wrapped(number: Expr) -> Expr:
        return ite((number % 126)[top:0] + const(3, top + 1) >= 3, const(0, 8), const(1, 8))

    return flow(mapping(chosen(lambda i: wrapped(i * 2) + wrapped(i * 5))))


@asks("whether index arithmetic fits", "no overflow")
def a_choice_wraps_around_in_one_of_two_cases(right: bool) -> TensorMapping:
    top = 8 if right else 6

    def side(later: Callable[[Expr], Expr]) -> Body:
        return chosen(lambda i: ite(i * 2 < 4, const(0, 8), later(i)))

    device = side(lambda i: ite(i[top:0] + const(1, top + 1) >= 1, const(1, 8), const(2, 8)))
    return flow(mapping(device, side(lambda i: const(1, 8))))


@asks("whether a sum may begin with a cell", "toy: accumulation")
def a_sum_is_subtracted_from_a_cell(right: bool) -> TensorMapping:
    device = blocks(outer=lambda a, b: a + b if right else a - b)
    return flow(mapping(device, blocks_ir, abstract=frozenset({"weigh"})))


def attempt(claim: TensorMapping) -> Verdict:
    return prove(claim, discharger=Discharger(timeout=5.0), horn_timeout=3.0)


ONE_OF_EACH = {question: name for name, question, _ in CASES}
"""A claim for each question."""


@pytest.mark.parametrize("name", slow_but(ONE_OF_EACH.values(), CLAIMS))
def test_true_answers_prove_what_is_right(name: str) -> None:
    verdict = attempt(CLAIMS[name](True))
    assert verdict.status is Status.PROVED, verdict.reason
    assert attempt(CLAIMS[name](False)).status is Status.UNKNOWN


@pytest.mark.parametrize(("name", "question", "obligation"), CASES)
def test_a_wrong_answer_proves_nothing(
    name: str, question: str, obligation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, function in QUESTIONS[question]:
        monkeypatch.setattr(module, function, lambda *_: True)
    if question in SKIPPING:
        monkeypatch.setattr(chc.mapping.memory.kills.NoKill, "_by_order_of_loops", lambda _: False)
    verdict = attempt(CLAIMS[name](False))
    assert verdict.status is Status.UNKNOWN, verdict.reason
    failed = verdict.obligations[-1]
    assert failed.group.startswith(obligation) and not failed.discharged, verdict.reason
