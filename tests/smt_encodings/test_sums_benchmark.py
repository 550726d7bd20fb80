"""The benchmark's pairs are right, its twins are wrong, and 5,000 elements are not slow."""

from __future__ import annotations

import time

import pytest

from benchmarks.sums import COLUMNS, PAIRS, TWINS, dots_of_variables
from smt_encodings.claims import Status
from smt_encodings.sums import Counterexample, evaluate
from smt_encodings.sums_prove import prove_sums

SMALL = [pair for pair in PAIRS if not pair.endswith(("500", "5000"))]


def test_the_benchmark_has_all_pairs() -> None:
    assert len(PAIRS) == 14
    assert len(COLUMNS) == 4


@pytest.mark.proof
@pytest.mark.parametrize("pair", SMALL)
def test_right_pairs_are_proved(pair: str) -> None:
    assert prove_sums(PAIRS[pair]()["right"]).status is Status.PROVED


@pytest.mark.parametrize("pair", PAIRS)
def test_wrong_twins_are_refuted(pair: str) -> None:
    claims = PAIRS[pair]()
    twins = [name for name in TWINS if name in claims]
    assert len(twins) == (3 if pair.startswith("dot") else 2)
    for name in twins:
        verdict = prove_sums(claims[name])
        assert verdict.status is Status.REFUTED, name
        found = verdict.details["counterexample"]
        assert isinstance(found, Counterexample)
        left, right = evaluate(claims[name], found.numbers)
        assert left != right


@pytest.mark.proof
def test_the_largest_pair_is_proved_in_linear_time() -> None:
    # processor time, because the machine may be busy; it takes about 0.8 s, and anything quadratic takes minutes
    start = time.process_time()
    assert prove_sums(dots_of_variables(5000)["right"]).status is Status.PROVED
    assert time.process_time() - start < 5
