"""Results in place of operands, outputs that are chosen by their place, sizes as operands: proved, and attacked.

Every wrong program differs from the right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const, ite
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, last, status, step
from tests.chc.mapping.toy import DOMAIN, N, differs, mapping, with_abstract

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]


def most_of_them_slow(wrong: Mapping[str, Body], quick: int) -> list[object]:
    """The names of wrong programs, all but the first few marked as slow."""
    return [n if i < quick else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(wrong)]


def claim_of(device: Body, ir: Body) -> TensorMapping:
    return flow(with_abstract(mapping(device, ir), step, last))


# -- in place ----------------------------------------------------------------------------------------


def normalise_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = step(fold over l of src[i, l], src[i, j])."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc = k.let("acc", const(0, 8))
        with k.loop("l", s["m"]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], i * s["m"] + x)))
        k.store(s["dst"], i * s["m"] + j, step(acc, k.load("own", s["src"], i * s["m"] + j)))


def in_place(
    *,
    total_row: Callable[[Expr], Expr] = lambda t: t,
    read: Callable[[Expr, States], Expr] = lambda o, s: o,
    place: Callable[[Expr, States], Expr] = lambda o, s: o,
    again: bool = False,
    stale: bool = False,
    extent: Callable[[States], Expr] = lambda s: s["m"],
) -> Body:
    """src is copied to dst, and every row of dst is replaced by its result, which needs the whole old row."""

    def body(k: Kernel, s: States) -> None:
        if not stale:
            with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
                k.store(s["dst"], a * s["m"] + b, k.load("in", s["src"], a * s["m"] + b))

        def total(t: Expr) -> Expr:
            acc = k.let("acc", const(0, 8))
            with k.loop("x", s["m"]) as x:
                k.assign(acc, step(acc, k.load("word", s["dst"], total_row(t) * s["m"] + x)))
            return acc

        with k.loop("t", s["n"]) as t:
            acc = None if again else total(t)
            with k.loop("o", extent(s)) as o:
                sum_of_row = total(t) if acc is None else acc
                own = k.load("own", s["dst"], t * s["m"] + read(o, s))
                k.store(s["dst"], t * s["m"] + place(o, s), step(sum_of_row, own))

    return body


def test_a_result_in_place_of_its_operand_is_proved() -> None:
    verdict = prove(claim_of(in_place(), normalise_ir))
    assert verdict.status is Status.PROVED, verdict.reason
    assert any("meets the cell" in o.name for o in verdict.obligations)
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))


WRONG_IN_PLACE: dict[str, Body] = {
    "the sum is taken again after each store": in_place(again=True),
    "the sum of the row before, which is a result already": in_place(total_row=lambda t: ite(t == 0, t, t - 1)),
    "half of what is read has been overwritten": in_place(read=lambda o, s: s["m"] - 1 - o),
    "the element before, which is a result already": in_place(read=lambda o, s: ite(o == 0, o, o - 1)),
    "results go one place too far": in_place(place=lambda o, s: o + 1),
    "two results go to one place": in_place(place=lambda o, s: o >> 1),
    "nothing was copied": in_place(stale=True),
    "the last element is left as it was": in_place(extent=lambda s: s["m"] - 1),
}


@pytest.mark.parametrize("name", most_of_them_slow(WRONG_IN_PLACE, 3))
def test_a_wrong_program_in_place_is_not_proved(name: str) -> None:
    claim = claim_of(WRONG_IN_PLACE[name], normalise_ir)
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


# -- chosen by place -----------------------------------------------------------------------------------


def padded_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = last(src[i, j]) in the first two rows, and 7 below."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        value = k.let("value", const(7, 8))
        with k.when("given", i < 2):
            k.assign(value, last(k.load("word", s["src"], i * s["m"] + j)))
        k.store(s["dst"], i * s["m"] + j, value)


def padding(
    *,
    begin: int = 2,
    word: int = 7,
    turned: bool = False,
    end: Callable[[States], Expr] = lambda s: s["n"],
    columns: Callable[[States], Expr] = lambda s: s["m"],
) -> Body:
    """All rows are copied, and rows from ``begin`` on overwritten."""

    def body(k: Kernel, s: States) -> None:
        def copy() -> None:
            with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
                k.store(s["dst"], a * s["m"] + b, last(k.load("in", s["src"], a * s["m"] + b)))

        def clear() -> None:
            rows = ite(const(begin, 32) < end(s), end(s) - begin, const(0, 32))
            with k.loop("t", rows) as t, k.loop("o", columns(s)) as o:
                k.store(s["dst"], (t + begin) * s["m"] + o, const(word, 8))

        for phase in (clear, copy) if turned else (copy, clear):
            phase()

    return body


def test_rows_that_are_given_and_rows_that_are_padded_are_proved_apart() -> None:
    sampled = claim_of(padding(), padded_ir)
    domain = (*sampled.domain, ("3 <= n", const(3, 16) <= sampled.parameters["n"]))
    claim = replace(sampled, domain=domain, sample_shapes=((3, 1), (3, 3), (4, 5), (5, 3), (6, 4)))
    verdict = prove(claim)
    assert verdict.status is Status.PROVED, verdict.reason
    assert {o.group for o in verdict.obligations} >= {"toy: cells in case 1", "toy: cells in case 2"}


WRONG_PADDING: dict[str, Body] = {
    "padding begins a row late": padding(begin=3),
    "padding begins a row early": padding(begin=1),
    "another word": padding(word=8),
    "the copy comes after the padding": padding(turned=True),
    "the last row keeps its words": padding(end=lambda s: s["n"] - 1),
    "the last column keeps its words": padding(columns=lambda s: s["m"] - 1),
}


@pytest.mark.parametrize("name", most_of_them_slow(WRONG_PADDING, 2))
def test_wrong_padding_is_not_proved(name: str) -> None:
    sampled = claim_of(WRONG_PADDING[name], padded_ir)
    domain = (*sampled.domain, ("4 <= n", const(4, 16) <= sampled.parameters["n"]))
    claim = replace(sampled, domain=domain, sample_shapes=((4, 1), (4, 3), (5, 3), (6, 4)))
    assert differs(claim, {"n": 5, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


# -- sizes as operands ---------------------------------------------------------------------------------


def counting(number: Callable[[Expr], Expr]) -> Body:
    """dst[i, j] = step(src[i, j], a number made of the size n)."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, step(word, number(s["n"])))

    return body


COUNT = counting(lambda n: n[7:0])


def test_a_size_among_the_operands_is_within_its_domain() -> None:
    verdict = prove(claim_of(counting(lambda n: ite(n <= 255, n[7:0], const(0, 8))), COUNT))
    assert verdict.status is Status.PROVED, verdict.reason


def test_a_size_at_the_end_of_its_domain_counts() -> None:
    claim = claim_of(counting(lambda n: ite(n <= 254, n[7:0], const(0, 8))), COUNT)
    assert differs(claim, {"n": 255, "m": 1})
    assert status(claim, second=False) is not Status.PROVED


# -- what the theorem takes from the invariants of loops -----------------------------------------------


def cleared(ahead: int) -> TensorMapping:
    """src is copied to tmp; then each step clears a row of tmp before it copies the row that is ``ahead`` to dst."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            k.store(s["tmp"], a * s["m"] + b, k.load("in", s["src"], a * s["m"] + b))
        with k.loop("t", s["n"]) as t:
            with k.loop("x", s["m"]) as x:
                k.store(s["tmp"], t * s["m"] + x, const(0, 8))
            with k.loop("not_last", ite(t + 1 < s["n"], const(1, 8), const(0, 8))), k.loop("y", s["m"]) as y:
                k.store(s["dst"], t * s["m"] + y, k.load("kept", s["tmp"], (t + ahead) * s["m"] + y))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"] - 1) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], (i + ahead) * s["m"] + j))

    domain = (("2 <= n <= 255", (const(2, 16) <= N) & (N <= 255)), DOMAIN[1])
    return flow(mapping(body, ir, domain=domain, rows=N.zext(32) - 1))


def test_a_row_is_read_in_an_iteration_before_the_one_that_clears_it() -> None:
    verdict = prove(cleared(1))
    assert verdict.status is Status.PROVED, verdict.reason
    asked = {o.name.rpartition(": ")[2] for o in verdict.obligations if o.group == "toy: cells"}
    assert asked >= {"iteration", "overwriting iteration", "read before"}
    takes = verdict.details["takes"]
    assert isinstance(takes, dict)
    assert [level for level, what in takes.items() if "a cell is read before it is overwritten" in what] == [
        "toy toy_kernel: toy.t"
    ]
    assert "not operand.stale" in verdict.invariants["toy toy_kernel: toy.t"]
    levels = verdict.details["levels"]
    assert isinstance(levels, dict)
    # the row is cleared before another one is copied, so the same iteration would be too late
    assert "(< cell_row cell_row_1)" in levels["toy toy_kernel: toy.t"]["horn"]


def test_a_row_that_is_read_after_it_was_cleared_is_not_proved() -> None:
    claim = cleared(0)
    assert differs(claim, {"n": 4, "m": 3})
    verdict = prove(claim)
    assert verdict.status is Status.UNKNOWN and "state of" not in verdict.reason


@pytest.mark.parametrize("words", [64, 255])
def test_a_write_that_comes_back_at_large_sizes_only_is_not_taken_to_write_once(words: int) -> None:
    """Rows go round in a ring; with 64 of them the first ones are overwritten where there are more rows than that."""

    def ring(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            row = i[5:0].zext(32) if words == 64 else i
            k.store(s["dst"], row * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    def first_rows(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    domain = (("4 <= n <= 255", (const(4, 16) <= N) & (N <= 255)), DOMAIN[1])
    claim = flow(mapping(ring, first_rows, domain=domain, rows=const(4, 32)))
    claim = replace(claim, sample_shapes=((4, 5), (5, 3), (6, 4)))
    right = words == 255
    assert differs(claim, {"n": 70, "m": 3}) is not right
    assert (prove(claim).status is Status.PROVED) is right
