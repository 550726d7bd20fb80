"""Runs that proofs survive: sizes from the domain's conditions, corners first, the same ones every time."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest

from bmc.counterexample import Counterexample, replays
from bmc.runs import draws, survey
from bmc.sizes import SizeSampler
from bmc.unroll import Cell
from ila_lang import Function, bv, const, ite
from ila_lang.mapping import TensorMapping
from rewrites.claims.verify import verify
from smt_encodings.claims import Status
from smt_encodings.runs import Points, corners
from tests.chc.mapping.toy import DOMAIN, M, N, copy_body, mapping


def wrong_where(condition: Any, idle: int = 0) -> TensorMapping:
    """A copy that adds 1 where a condition of the registers n and m holds, and takes ``idle`` steps before a row."""

    def body(k: Any, s: Any) -> None:
        with k.loop("r", s["n"]), k.loop("w", const(idle, 32)):
            pass
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, ite(condition(s), word + 1, word))

    return mapping(copy_body, body)


# -- corners and points ---------------------------------------------------------------------------------------


def test_corners_are_small_numbers_powers_of_two_and_literals_with_their_neighbours() -> None:
    found = corners([100], 1000)
    assert found == sorted(set(found)) and found[0] == 0 and found[-1] == 1000
    assert {0, 1, 2, 99, 100, 101, 255, 256, 257, 511, 512, 513, 999} <= set(found) and 150 not in found
    assert corners([], 1) == [0, 1]


def test_a_literal_that_only_a_kernel_compares_a_size_with_is_a_corner() -> None:
    assert 201 in SizeSampler(wrong_where(lambda s: s["n"] == 201)).points.corners["n"]
    assert 201 not in SizeSampler(wrong_where(lambda s: s["n"] == 5)).points.corners["n"]


def inside(point: Any) -> bool:
    return point["a"] == 2 * point["b"] and point["a"] >= 4 and point["c"] >= 1


def test_sizes_that_are_tied_change_together() -> None:
    points = Points({name: corners([], 64) for name in "abc"}, inside)
    assert points.lowered({"a": 8, "b": 4, "c": 9}) == {"a": 8, "b": 4, "c": 1}  # alone only c can
    above = points.above({"a": 4, "b": 2, "c": 1}, "a")
    assert above is not None and inside(above) and above["a"] > 4
    assert points.largest({"a": 4, "b": 2, "c": 1}, "c", 20) == {"a": 4, "b": 2, "c": 17}
    drawn = list(points.drawn([{"a": 4, "b": 2, "c": 1}], {"a": 64, "b": 64, "c": 64}, Random(1)))
    assert drawn and all(map(inside, drawn))


def test_the_smallest_sizes_come_from_the_conditions() -> None:
    domain = (*DOMAIN, ("n = 3 m", const(3, 16) * M == N), ("m >= 7", M >= 7))
    sampler = SizeSampler(mapping(domain=domain))
    least = sampler.smallest()
    assert least is not None and least["n"] == 3 * least["m"] and least["m"] >= 7
    assert sampler.above(least, "m") != least
    empty = SizeSampler(mapping(domain=(*DOMAIN, ("never", N != N))))
    assert empty.smallest() is None


# -- runs -----------------------------------------------------------------------------------------------------


def test_a_right_claim_survives_the_same_runs_every_time() -> None:
    claim = mapping(copy_body, copy_body)
    first, again = survey(claim), survey(claim)
    assert (first.count, first.at, first.notes) == (again.count, again.at, again.notes)
    assert first.difference is None and first.count >= 8 and first.at[0] == "n = 1, m = 1"
    sizes = [dict(part.split(" = ") for part in text.split(", ")) for text in first.at]
    assert {int(s["n"]) for s in sizes} >= {1, 2} and max(int(s["n"]) for s in sizes) > 50
    assert max(int(s["m"]) for s in sizes) > 50


@pytest.mark.parametrize(
    "condition",
    [
        lambda s: s["n"] == 1,
        lambda s: s["m"] == 2,
        lambda s: (s["n"] == 2) & (s["m"] == 2),
        lambda s: (s["n"] > 127) & (s["m"] == 1),
    ],
    ids=["the smallest", "next to the smallest", "both a little larger", "large alone"],
)
def test_differences_at_corners_are_seen(condition: Any) -> None:
    claim = wrong_where(condition)
    found = survey(claim)
    assert isinstance(found.difference, Counterexample) and replays(claim, found.difference)
    assert found.shown == found.difference.summary()


def test_all_sizes_are_enlarged_once_where_the_smallest_use_up_the_work() -> None:
    claim = wrong_where(lambda s: (s["n"] == 2) & (s["m"] == 2), idle=39_000)
    found = survey(claim)
    assert found.at[:2] == ("n = 1, m = 1", "n = 2, m = 2")
    assert isinstance(found.difference, Counterexample) and replays(claim, found.difference)


def test_given_sizes_are_the_only_ones() -> None:
    found = survey(wrong_where(lambda s: s["n"] == 1), {"n": 3, "m": 2})
    assert found.at == ("n = 3, m = 2",) and found.count > 3 and found.difference is None


def test_extreme_data_are_seen() -> None:
    def body(k: Any, s: Any) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, ite(word == 0x80, const(0, 8), word))

    assert isinstance(survey(mapping(copy_body, body), {"n": 1, "m": 1}).difference, Counterexample)


def test_state_that_nobody_sets_is_random() -> None:
    def body(k: Any, s: Any) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["tmp"], i * s["m"] + j))

    assert isinstance(survey(mapping(body, body), {"n": 1, "m": 1}).difference, Counterexample)
    cell = Cell("device", "tmp", 0)
    assert len({draw(cell, 16) for draw in islice(draws(0), 9)}) > 5


def test_what_cannot_be_run_is_said() -> None:
    unknown = Function("unknown", {"a": bv(8)}, bv(8), None)

    def body(k: Any, s: Any) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, unknown(k.load("word", s["src"], i * s["m"] + j)))

    found = survey(mapping(body, body, abstract=frozenset({"unknown"})))
    assert found.count == 0 and found.notes[0].startswith("not run: Function unknown must have a body to be run")


def test_a_second_opinion_by_bmc() -> None:
    assert survey(mapping(copy_body, copy_body), opinion=True).notes == ("bmc at n = 2, m = 2: PROVED",)


def test_a_run_that_an_interpreter_refuses_is_a_difference_and_no_pass() -> None:
    """The IR's counter of two bits cannot count five rows, which the domain allows."""

    def narrow(k: Any, s: Any) -> None:
        with k.loop("i", s["n"], width=2) as i, k.loop("j", s["m"]) as j:
            at = i.zext(32) * s["m"] + j
            k.store(s["dst"], at, k.load("word", s["src"], at))

    claim = mapping(copy_body, narrow)
    runs = survey(claim)
    assert isinstance(runs.difference, Counterexample) and replays(claim, runs.difference)
    assert runs.shown == ("sizes (n = 7, m = 1): toyir_fragment: Extent 7 must fit the counter i of toyir_kernel")
    for verdict in (verify(claim), verify(claim, "bmc", shape=(5, 2))):
        assert verdict.status is Status.REFUTED
        assert verdict.reason.endswith(": toyir_fragment: Extent 5 must fit the counter i of toyir_kernel")
    assert verify(claim, "bmc", shape=(4, 2)).status is Status.PROVED
