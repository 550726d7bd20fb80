from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from ilaverify.catalogue import campaigns, find_campaign
from ilaverify.cli import main
from rewrites.campaigns.campaign import run_campaign
from rewrites.campaigns.definition import Margin, compare
from rewrites.campaigns.statistics import Margins, margins_of
from rewrites.claims.theorems.operators import OPERATORS

IDEAL = np.array([1.0, 2.0, 3.0])


def test_margins_take_what_is_stated() -> None:
    bound = np.array([0.5, np.inf, 1.0])
    margin, violation = compare(IDEAL + np.array([0.25, 9.0, 0.75]), IDEAL, bound, None)
    assert margin == Margin(0.75, 0.75, None, None)
    assert violation is None


def test_an_error_beyond_either_bound_is_a_violation() -> None:
    bound = np.full(3, 0.5)
    _, violation = compare(IDEAL + np.array([0.0, 0.75, 0.0]), IDEAL, bound, Fraction(1))
    assert violation is not None
    assert violation.name == "within the bound"
    margin, violation = compare(IDEAL + np.array([0.0, 0.375, 0.5]), IDEAL, bound, Fraction(7, 16))
    assert violation is not None
    assert violation.name == "within the a-priori bound"
    assert violation.text == "at [2]: 3.5 is not within 0.4375 of 3.0 (1 of 3 elements violate it)"
    assert margin == Margin(0.5, 1.0, 0.4375, 0.5 / 0.4375)
    assert compare(IDEAL + 0.4375, IDEAL, bound, Fraction(7, 16))[1] is None
    assert compare(IDEAL * np.nan, IDEAL, bound, Fraction(7, 16))[1] is not None


def test_a_priori_bounds_are_rounded_up() -> None:
    third = Fraction(1, 3)  # float64's is below it
    margin, _ = compare(IDEAL, IDEAL, np.ones(3), third)
    assert margin.a_priori is not None
    assert third < Fraction(margin.a_priori) < third * (1 + Fraction(1, 1 << 51))


def test_a_bound_of_the_first_rows_says_nothing_of_others() -> None:
    ideal, bound = np.zeros((3, 1)), np.full((3, 1), 4.0)
    result = np.array([[0.5], [1.0], [3.0]])
    margin, violation = compare(result, ideal, bound, Fraction(1), 2)
    assert (margin, violation) == (Margin(3.0, 0.75, 1.0, 1.0), None)
    assert compare(result, ideal, bound, Fraction(1), 3)[1] is not None


def test_margins_over_examples() -> None:
    assert margins_of([None, None]) is None
    assert margins_of([Margin(0.0, None, 0.0, None)]) == Margins(0.0, None, None, 1, 1)
    assert margins_of([Margin(0.5, 0.5, 1.0, 0.5), Margin(0.25, 1.0, 0.5, 0.75)]) == Margins(0.5, 1.0, 1 / 0.75, 2, 2)


@pytest.mark.parametrize("name", ["flexasr_maxpool", "flexasr_meanpool", "vta_add", "hlscnn_conv2d"])
def test_campaigns_have_margins_within_their_bounds(name: str) -> None:
    margins = run_campaign(find_campaign(name), examples=6, seed=2).margins
    assert margins is not None
    assert margins.stated == margins.count == 6
    if name in ("flexasr_maxpool", "vta_add"):
        assert (margins.largest, margins.derived_ratio) == (0.0, None)
    else:
        assert margins.derived_ratio is not None
        assert margins.a_priori_ratio is not None
        assert 1 <= margins.derived_ratio < 3
        assert 1 <= margins.a_priori_ratio < 3


def test_the_command_shows_and_writes_the_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["campaign", "flexasr_addpool", "--examples", "5", "--seed", "1"]
    assert main(arguments) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("bounds ")]
    assert main([*arguments, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    bounds = content["bounds"]
    assert bounds["are"] == "proved by bound-flexasr-add-pooling"
    assert line == (
        f"bounds         largest error {bounds['largest_error']:.4g}, "
        f"bound / error at least {bounds['derived_bound_over_error']:.3f}, "
        f"a-priori bound / error at least {bounds['a_priori_bound_over_error']:.3f} (5 of 5 examples); "
        f"bounds {bounds['are']}"
    )
    assert max(s["margin"]["largest_error"] for s in content["samples"]) == bounds["largest_error"]


def test_bounds_are_of_theorems_or_declared() -> None:
    theorems = {name: find_campaign(name).theorems for name in campaigns()}
    assert {t for names in theorems.values() for t in names} <= set(OPERATORS)
    bounded = {name for name, names in theorems.items() if names}
    assert bounded == {name for name in campaigns() if name.startswith(("flexasr", "hlscnn"))} - UNBOUNDED


UNBOUNDED = {"flexasr_attention_sum", "flexasr_encode_sign", "flexasr_encode_sign_2022", "flexasr_lstm_pre2022"}
"""Campaigns of other properties."""
