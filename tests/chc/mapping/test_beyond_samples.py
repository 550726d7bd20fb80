"""Claims that hold at all sizes which the prover tries, and fail at larger ones: each must fail at an obligation.

Witnesses are guessed at small sizes.  Every claim here makes a right guess wrong above 100, in one way, so that
one obligation alone stands between it and PROVED; it is named.  Its twin with the limit out of reach is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, ite, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_flow import CELL, flow
from tests.chc.mapping.test_flow_revisits import claim as scattered
from tests.chc.mapping.toy import M, copy_body, differs, mapping

States = Mapping[str, Expr]
Build = Callable[[int], TensorMapping]
CLAIMS: dict[str, tuple[Build, str]] = {}
OUT_OF_REACH = 300
SIZES = (3, 4, 2), (101, 101, 2)
ONE = const(1, 32)

step = Function("step", {"acc": bv(8), "x": bv(8)}, bv(8), None)
step.body = (step.params[0] << 1) + (step.params[1] ^ step.params[0])  # in another order, another result


def fails_at(obligation: str) -> Callable[[Build], Build]:
    """Notes a claim that is wrong at more than ``limit`` rows, and the obligation that says so."""

    def note(build: Build) -> Build:
        CLAIMS[build.__name__.replace("_", " ")] = build, obligation
        return build

    return note


def large(s: States, limit: int, then: Expr, otherwise: Expr) -> Expr:
    return ite(s["n"] > limit, then, otherwise)


def words(
    *,
    count: Callable[[States], Expr] = lambda s: s["n"],
    source: Callable[[Expr, States], Expr] = lambda i, s: i,
    only: Callable[[Expr, States], Expr] = lambda i, s: true,
) -> TensorMapping:
    """A copy of n words."""

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, k.load("word", s["src"], i))

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", count(s)) as i:
            word = k.load("word", s["src"], source(i, s))
            with k.when("only", only(i, s)):
                k.store(s["dst"], i, word)

    return flow(mapping(device, ir, columns=ONE))


@fails_at("happens")
def the_last_word_is_not_written(limit: int) -> TensorMapping:
    return words(count=lambda s: s["n"] - large(s, limit, ONE, const(0, 32)))


@fails_at("happens")
def the_first_word_is_left_out(limit: int) -> TensorMapping:
    return words(only=lambda i, s: (i != 0) | (s["n"] <= limit))


@fails_at("src, ")
def the_word_beside_it_is_read(limit: int) -> TensorMapping:
    return words(source=lambda i, s: i + large(s, limit, ONE, const(0, 32)))


@fails_at("same address")
def rows_are_moved_by_one(limit: int) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            k.store(s["dst"], at + large(s, limit, s["m"], const(0, 32)), k.load("word", s["src"], at))

    return flow(mapping(device, copy_body))


@fails_at("before")
def a_word_is_read_before_it_is_written(limit: int) -> TensorMapping:
    """Row i takes word f(i) of a buffer that row f(i) has written: at most i, until f is another function."""

    def f(i: Expr, s: States) -> Expr:
        return (i * 3 + large(s, limit, const(8, 32), const(0, 32))) >> 2

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["tmp"], i, k.load("word", s["src"], i))
            k.store(s["dst"], i, k.load("kept", s["tmp"], f(i, s)))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, k.load("word", s["src"], f(i, s)))

    return flow(mapping(device, ir, columns=ONE))


@fails_at("does not come in between")
def a_row_is_written_again(limit: int) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t, k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            with k.when("now", (t == 0) | (s["n"] > limit)):
                k.store(s["dst"], at, k.load("word", s["src"], at) + t[7:0])

    return flow(mapping(device, copy_body))


@fails_at("does not come in between")
def two_iterations_of_a_row_write_one_word(limit: int) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"] * 2) as j:
            at = i * s["m"] + (j >> 1)
            with k.when("now", (j[0] == 0) | (s["n"] > limit)):
                k.store(s["dst"], at, k.load("word", s["src"], at) + (j[7:0] & 1))

    return flow(mapping(device, copy_body))


def sum_of_words(count: str) -> Callable[[Kernel, States], None]:
    def body(k: Kernel, s: States) -> None:
        acc = k.let("acc", const(0, 8))
        with k.loop("x", s[count]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], x)))
        k.store(s["dst"], const(0, 32), acc)

    return body


@fails_at("only the fold's iterations")
def a_sum_takes_words_twice(limit: int) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        k.store(s["tmp"], const(0, 32), const(0, 8))
        with k.loop("x", s["n"]) as x, k.loop("t", s["m"]) as t:
            with k.when("now", (t == 0) | (s["n"] > limit)):
                old = k.load("old", s["tmp"], const(0, 32))
                k.store(s["tmp"], const(0, 32), step(old, k.load("word", s["src"], x)))
            with k.when("end", (x == s["n"] - 1) & (t == 0)):
                k.store(s["dst"], const(0, 32), k.load("sum", s["tmp"], const(0, 32)))

    return flow(mapping(device, sum_of_words("n"), rows=ONE, columns=ONE, abstract=frozenset({"step"})))


def state_of(column: Callable[[Expr, States], Expr]) -> Callable[[Kernel, States], None]:
    """dst[i, j] = step(dst[i - 1, column(j)], src[i, j]), with 0 before the first row."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            state = k.let("state", const(0, 8))
            with k.when("later", i != 0):
                k.assign(state, k.load("before", s["dst"], (i - 1) * s["m"] + column(j, s)))
            k.store(s["dst"], i * s["m"] + j, step(state, k.load("word", s["src"], i * s["m"] + j)))

    return body


@fails_at("does not come in between")
def a_sum_begins_anew_after_its_first_word(limit: int) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        k.store(s["dst"], const(0, 32), const(0, 8))
        with k.loop("x", s["m"]) as x:
            old = k.load("old", s["dst"], const(0, 32))
            k.store(s["dst"], const(0, 32), step(old, k.load("word", s["src"], x)))
            with k.when("again", (x == 0) & (s["m"] > limit)):
                k.store(s["dst"], const(0, 32), const(0, 8))

    return flow(mapping(device, sum_of_words("m"), rows=ONE, columns=ONE, abstract=frozenset({"step"})))


@fails_at("an instance of the output")
def another_columns_state_goes_on(limit: int) -> TensorMapping:
    def column(j: Expr, s: States) -> Expr:
        return (j * 3 + ite(s["m"] > limit, const(4, 32), const(0, 32))) >> 2

    claim = mapping(state_of(column), state_of(lambda j, s: (j * 3) >> 2), abstract=frozenset({"step"}))
    return flow(claim, recurrent=True)


@fails_at("an instance of stored value 2")
def a_state_goes_on_that_no_element_of_the_output_has(limit: int) -> TensorMapping:
    """States of columns beyond those of the output, which both sides compute differently."""

    def side(beyond: int) -> Callable[[Kernel, States], None]:
        def body(k: Kernel, s: States) -> None:
            more = ite(s["m"] > limit, const(100, 32), const(0, 32))
            with k.loop("t", s["n"]) as t:
                with k.loop("o", s["m"]) as o:
                    state = k.let("state", const(0, 8))
                    with k.when("later", t != 0):
                        k.assign(state, k.load("kept", s["tmp"], (t - 1) * 512 + ((o * 3 + more * 4) >> 2)))
                    k.store(s["dst"], t * s["m"] + o, step(state, k.load("word", s["src"], t * s["m"] + o)))
                with k.loop("b", s["m"] + more) as b:
                    k.store(s["tmp"], t * 512 + b, step(ite(b < s["m"], const(0, 8), const(beyond, 8)), b[7:0]))

        return body

    return flow(mapping(side(1), side(2), abstract=frozenset({"step"})), recurrent=True)


@fails_at("last, ")
def sums_take_one_word_more(limit: int) -> TensorMapping:
    """dst[o] = fold over so many words of src from o*s on; the device goes through src instead."""

    def words(s: States, more: Expr | int = 0) -> Expr:
        return (s["m"] * 3 + more) >> 1

    def device(k: Kernel, s: States) -> None:
        taps = words(s, ite(s["m"] > limit, const(2, 32), const(0, 32)))
        with k.loop("r", (s["n"] - 1) * s["s"] + taps) as r, k.loop("t", taps) as t:
            o = (r - t) // s["s"]
            with k.when("inside", (t <= r) & ((r - t) % s["s"] == 0) & (o < s["n"])):
                old = k.load("old", s["dst"], o)
                k.store(s["dst"], o, step(ite(t == 0, const(0, 8), old), k.load("in", s["src"], r)))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("o", s["n"]) as o:
            acc = k.let("acc", const(0, 8))
            with k.loop("x", words(s)) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], o * s["s"] + x)))
            k.store(s["dst"], o, acc)

    shapes = ((1, 2, 1), (1, 4, 2), (3, 5, 2), (4, 2, 3), (5, 4, 1), (6, 7, 3))
    return replace(scattered(device, ir), sample_shapes=shapes)


@fails_at("does not come in between")
def rows_lie_closer_from_a_row_on(limit: int) -> TensorMapping:
    """Row 50, with 8 words a row, lies where row 100 does, with 4."""
    four = const(4, 32)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("d", four) as d:
            k.store(s["dst"], i * 4 + d, k.load("word", s["src"], i * 4 + d))

    def device(k: Kernel, s: States) -> None:
        def at(i: Expr, d: Expr) -> Expr:
            return ite(i < limit, const(8, 32), four) * i + d

        with k.loop("i", s["n"]) as i, k.loop("d", four) as d:
            k.store(s["tmp"], at(i, d), k.load("word", s["src"], i * 4 + d))
        with k.loop("r", s["n"]) as r, k.loop("c", four) as c:
            k.store(s["dst"], r * 4 + c, k.load("kept", s["tmp"], at(r, c)))

    return flow(mapping(device, ir, columns=four))


@pytest.mark.parametrize("name", CLAIMS)
def test_what_fails_at_large_sizes_is_not_proved(name: str) -> None:
    build, obligation = CLAIMS[name]
    right, wrong = build(OUT_OF_REACH), build(100)
    verdict = prove(wrong, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN
    failed = verdict.obligations[-1]
    assert obligation in failed.name and not failed.discharged, verdict.reason
    few, many = ({x: k for x, k in zip("nms", at, strict=True) if x in wrong.parameters} for at in SIZES)
    assert not differs(wrong, few, rounds=2) and differs(wrong, many, rounds=2)
    verdict = prove(right, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("every,wanted", [(1, Status.PROVED), (4, Status.UNKNOWN)])
def test_coordinates_that_do_not_reach_all_columns_are_not_enough(every: int, wanted: Status) -> None:
    """Both sides copy every column, or one in four; the coordinates, as many as there are columns, stop there."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("q", s["m"]) as q, k.loop("l", const(4 // every, 32)) as x:
            at = (i * s["m"] + q) * 4 + x
            k.store(s["dst"], at, k.load("word", s["src"], at))

    claim = mapping(body, body, columns=M.zext(32) * 4)
    quarter, lane = var("quarter", bv(32)), var("lane", bv(32))
    cell = (CELL[0], claim.rows), (quarter, M.zext(32)), (lane, const(4, 32))
    claim = replace(flow(claim), cell=cell, cell_column=quarter * 4 + (lane if every == 1 else 0))
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert verdict.status is wanted, verdict.reason
    assert differs(claim, {"n": 2, "m": 3}, rounds=2) is (wanted is Status.UNKNOWN)
    if wanted is Status.UNKNOWN:
        assert verdict.obligations[-1].name == "the column has the coordinates as its digits"


@pytest.mark.parametrize("fewer,wanted", [(0, Status.PROVED), (1, Status.UNKNOWN)])
def test_columns_that_no_coordinates_reach_are_not_proved(fewer: int, wanted: Status) -> None:
    """The device copies as many blocks of four columns as there are coordinates, which may be one less than the IR."""

    def body(blocks: int) -> Callable[[Kernel, States], None]:
        def side(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("q", s["m"] - blocks) as q, k.loop("l", const(4, 32)) as x:
                at = (i * s["m"] + q) * 4 + x
                k.store(s["dst"], at, k.load("word", s["src"], at))

        return side

    claim = mapping(body(fewer), body(0), columns=M.zext(32) * 4)
    block, lane = var("block", bv(32)), var("lane", bv(32))
    cell = (CELL[0], claim.rows), (block, M.zext(32) - fewer), (lane, const(4, 32))
    claim = replace(flow(claim), cell=cell, cell_column=block * 4 + lane)
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert verdict.status is wanted, verdict.reason
    assert differs(claim, {"n": 2, "m": 3}, rounds=2) is (wanted is Status.UNKNOWN)
    if wanted is Status.UNKNOWN:
        assert verdict.obligations[-1].name == "as many columns as coordinates"
