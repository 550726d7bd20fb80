"""Accumulation in memory: proved as the fold that it is, and wrong programs of which none may be proved.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, ite, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status
from tests.chc.mapping.toy import M, N, differs, mapping, scaled

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]

step = Function("step", {"acc": bv(8), "x": bv(8)}, bv(8), None)
step.body = (step.params[0] << 1) + (step.params[1] ^ step.params[0])  # in another order, another result
weigh = scaled("weigh", lambda x: x * x)


def fold_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = fold over l of src[i, l], from 7 on."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc = k.let("acc", const(7, 8))
        with k.loop("l", s["m"]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], i * s["m"] + x)))
        k.store(s["dst"], i * s["m"] + j, acc)


def in_place(
    *,
    begin: int | None = 7,
    inside: bool = False,
    rounds: Callable[[States], Expr] = lambda s: s["m"],
    read: Callable[[Expr, States], Expr] = lambda x, s: x,
    place: Callable[[Expr, Expr, States], Expr] = lambda i, j, s: i * s["m"] + j,
    disturb: Callable[[Kernel, States, Expr], None] | None = None,
    twice: bool = False,
    neighbour: bool = False,
) -> Body:
    """All elements of dst are set, and then updated once for each column of src."""

    def clear(k: Kernel, s: States, suffix: str) -> None:
        if begin is not None:
            with k.loop(f"i{suffix}", s["n"]) as i, k.loop(f"j{suffix}", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, const(begin, 8))

    def body(k: Kernel, s: States) -> None:
        if not inside:
            clear(k, s, "_before")
        with k.loop("x", rounds(s)) as x:
            if inside:
                clear(k, s, "_inside")
            with k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
                at = place(u, v, s)
                old = k.load("old", s["dst"], at)
                word = k.load("word", s["src"], u * s["m"] + read(x, s))
                if neighbour:
                    word = k.load("beside", s["dst"], at + 1)
                k.store(s["dst"], at, step(step(old, word), word) if twice else step(old, word))
            if disturb is not None:
                disturb(k, s, x)

    return body


def first_cell(k: Kernel, s: States, x: Expr) -> None:
    """Between two rounds another statement sets a cell."""
    with k.when("second", x == 1):
        k.store(s["dst"], const(0, 32), const(3, 8))


def test_a_cell_that_is_updated_again_and_again_is_a_fold() -> None:
    verdict = prove(flow(mapping(in_place(), fold_ir, abstract=frozenset({"step"}))))
    assert verdict.status is Status.PROVED, verdict.reason
    assert {o.group for o in verdict.obligations} >= {"toy: accumulation", "values", "health"}
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))
    takes = verdict.details["takes"]
    assert isinstance(takes, dict)
    assert {what for level in takes.values() for what in level} >= {
        "a cell is written exactly once",
        "an iteration of the fold adds to a cell exactly once",
        "both folds are at one iteration, and end, together",
    }


WRONG: dict[str, Body] = {
    "it begins with what was there": in_place(begin=None),
    "it begins with another value": in_place(begin=8),
    "it begins anew in every round": in_place(inside=True),
    "the last round is left out": in_place(rounds=lambda s: s["m"] - 1),
    "the first column counts twice": in_place(read=lambda x, s: ite(x == 0, x, x - 1)),
    "from the last column to the first": in_place(read=lambda x, s: s["m"] - 1 - x),
    "each column counts twice": in_place(twice=True),
    "all rows share the cells of one": in_place(place=lambda i, j, s: j),
    "the cell beside it is added": in_place(neighbour=True),
    "another statement sets a cell in between": in_place(disturb=first_cell),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_accumulation_is_not_proved(name: str) -> None:
    claim = flow(mapping(WRONG[name], fold_ir, abstract=frozenset({"step"})))
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


# -- one row of accumulators serves one row of the output after the other -----------------------------


def row_by_row(*, clear: str = "each row", width: Callable[[States], Expr] = lambda s: s["m"]) -> Body:
    """The accumulators of a row are cleared, updated, and copied to the output; then the next row's."""

    def body(k: Kernel, s: States) -> None:
        def reset(suffix: str) -> None:
            with k.loop(f"c{suffix}", width(s)) as c:
                k.store(s["tmp"], c, const(7, 8))

        if clear == "once":
            reset("_once")
        with k.loop("u", s["n"]) as u:
            if clear == "each row":
                reset("_row")
            with k.loop("x", s["m"]) as x:
                if clear == "each round":
                    reset("_round")
                with k.loop("v", s["m"]) as v:
                    old = k.load("old", s["tmp"], v)
                    k.store(s["tmp"], v, step(old, k.load("word", s["src"], u * s["m"] + x)))
            with k.loop("o", s["m"]) as o:
                k.store(s["dst"], u * s["m"] + o, k.load("sum", s["tmp"], o))

    return body


def test_accumulators_that_are_used_again_are_folds() -> None:
    verdict = prove(flow(mapping(row_by_row(), fold_ir, abstract=frozenset({"step"}))))
    assert verdict.status is Status.PROVED, verdict.reason


REUSED: dict[str, Body] = {
    "cleared before the first row only": row_by_row(clear="once"),
    "cleared in every round": row_by_row(clear="each round"),
    "never cleared": row_by_row(clear=""),
    "the last one is not cleared": row_by_row(width=lambda s: s["m"] - 1),
}


@pytest.mark.parametrize("name", REUSED)
def test_wrong_use_of_accumulators_is_not_proved(name: str) -> None:
    claim = flow(mapping(REUSED[name], fold_ir, abstract=frozenset({"step"})))
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


# -- sums that are added to cells ---------------------------------------------------------------------


def blocks_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = sum over l < 4*m of weigh(src[i, l])."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc = k.let("acc", const(0, 8))
        with k.loop("l", s["m"] << 2) as x:
            k.assign(acc, acc + weigh(k.load("word", s["src"], i * (s["m"] << 2) + x)))
        k.store(s["dst"], i * s["m"] + j, acc)


def blocks(
    *,
    inner: Callable[[Expr, Expr], Expr] = lambda a, b: a + b,
    outer: Callable[[Expr, Expr], Expr] = lambda a, b: a + b,
    begin: int = 0,
) -> Body:
    """For each block of four, a sum that is added to the cell."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            k.store(s["dst"], a * s["m"] + b, const(0, 8))
        with k.loop("x", s["m"]) as x, k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
            total = k.let("total", const(begin, 8))
            with k.loop("four", const(4, 3)) as four:
                word = k.load("word", s["src"], u * (s["m"] << 2) + (x << 2) + four.zext(32))
                k.assign(total, inner(total, weigh(word)))
            old = k.load("old", s["dst"], u * s["m"] + v)
            k.store(s["dst"], u * s["m"] + v, outer(old, total))

    return body


def test_a_sum_that_is_added_to_a_cell_is_one_sum_with_it() -> None:
    verdict = prove(flow(mapping(blocks(), blocks_ir, abstract=frozenset({"weigh"}))))
    assert verdict.status is Status.PROVED, verdict.reason
    assert any("a step before or after" in o.name for o in verdict.obligations)
    loops = ("four and l_mod_4", "x and l_div_4")
    assert {o.name.partition(": ")[2] for o in verdict.obligations if o.group == "lock-step"} == {
        f"{both} {what}" for both in loops for what in ("meet the index together", "run equally often")
    }


SUMS: dict[str, Body] = {
    "every block begins with one": blocks(begin=1),
    "blocks are combined bit by bit": blocks(outer=lambda a, b: a ^ b),
    "blocks are subtracted": blocks(outer=lambda a, b: a - b),
    "the sum replaces the cell": blocks(outer=lambda a, b: b),
    "steps are combined bit by bit": blocks(inner=lambda a, b: a ^ b),
    "the cell counts twice": blocks(outer=lambda a, b: a + a + b),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_wrong_sum_is_not_proved(name: str) -> None:
    claim = flow(mapping(SUMS[name], blocks_ir, abstract=frozenset({"weigh"})))
    assert differs(claim, {"n": 2, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def rounds(words: Callable[[Expr, States], Expr]) -> Body:
    """To every cell the sum of some words is added in each of m rounds."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
            at = u * s["m"] + v
            k.store(s["dst"], at, const(0, 8))
            with k.loop("round", s["m"]) as r:
                total = k.let("total", const(0, 8))
                with k.loop("t", words(r, s)) as t:
                    k.assign(total, total + k.load("word", s["src"], t))
                k.store(s["dst"], at, k.load("old", s["dst"], at) + total)

    return body


@pytest.mark.parametrize("square", [True, False])
def test_a_sum_that_grows_with_each_round_is_not_the_last_rounds(square: bool) -> None:
    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("round", s["m"]), k.loop("t", s["m"]) as t:
                k.assign(acc, acc + k.load("word", s["src"], t))
            k.store(s["dst"], i * s["m"] + j, acc)

    claim = flow(mapping(rounds(lambda r, s: s["m"] if square else r + 1), ir))
    assert differs(claim, {"n": 2, "m": 3}) is not square
    assert status(claim) is (Status.PROVED if square else Status.UNKNOWN)


# -- one loop against loops whose extents are sizes, and rows of several coordinates -------------------


def whole_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = fold over all elements of src."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc = k.let("acc", const(7, 8))
        with k.loop("l", s["n"] * s["m"]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], x)))
        k.store(s["dst"], i * s["m"] + j, acc)


def whole(*, turned: bool = False, rows: Callable[[States], Expr] = lambda s: s["n"]) -> Body:
    """The same in place, row by row."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            k.store(s["dst"], a * s["m"] + b, const(7, 8))
        extents = [s["m"], rows(s)] if turned else [rows(s), s["m"]]
        with k.loop("x", extents[0]) as x, k.loop("y", extents[1]) as y:
            place = y * s["m"] + x if turned else x * s["m"] + y
            with k.loop("u", s["n"]) as u, k.loop("v", s["m"]) as v:
                at = u * s["m"] + v
                k.store(s["dst"], at, step(k.load("old", s["dst"], at), k.load("word", s["src"], place)))

    return body


def test_one_loop_runs_in_step_with_two_whose_extents_are_sizes() -> None:
    verdict = prove(flow(mapping(whole(), whole_ir, abstract=frozenset({"step"}))))
    assert verdict.status is Status.PROVED, verdict.reason
    split = "toy toy_kernel, fold 1: toy.x with toy.y with ir.l"
    takes = verdict.details["takes"]
    assert isinstance(takes, dict) and takes[split] == ("a split loop runs the same iterations",)
    assert "ir.l = (m * toy.x) + toy.y" in verdict.invariants[split]
    assert any("l_digit1" in level for level in verdict.invariants)


@pytest.mark.parametrize("body", [whole(turned=True), whole(rows=lambda s: s["n"] - 1)], ids=["turned", "short"])
def test_loops_in_another_order_or_number_are_not_proved(body: Body) -> None:
    claim = flow(mapping(body, whole_ir, abstract=frozenset({"step"})))
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


def of_rows(first: Expr = N, second: Expr = M, rows: Expr | None = None) -> TensorMapping:
    """A copy of n*m rows of four elements; a row has two coordinates."""

    def copy(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j, k.loop("four", const(4, 3)) as c:
            at = ((i * s["m"] + j) << 2) + c.zext(32)
            k.store(s["dst"], at, k.load("word", s["src"], at))

    count = N.zext(32) * M.zext(32)
    claim = flow(mapping(copy, copy, rows=count if rows is None else rows, columns=const(4, 32)))
    cell = tuple((var(n, bv(32)), e.zext(32)) for n, e in (("r1", first), ("r2", second), ("c", const(4, 16))))
    return replace(claim, cell=cell, cell_column=cell[2][0], row_coordinates=2)


def test_a_row_may_have_several_coordinates() -> None:
    verdict = prove(of_rows())
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize(
    "claim",
    [of_rows(second=M - 1), of_rows(first=const(1, 16)), of_rows(rows=N.zext(32) * M.zext(32) + 1)],
    ids=["a column of rows is left out", "only the first block", "there is one more row"],
)
def test_rows_that_no_coordinates_reach_are_not_proved(claim: TensorMapping) -> None:
    assert status(claim, second=False) is not Status.PROVED
