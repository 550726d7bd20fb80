"""Rules over the reals with exponentials and powers are run in intervals, and wrong ones do not survive."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ir_semantics.scalars import NotInterpreted
from rewrites import scalar_rules
from rewrites.rule_enclosures import enclosed, replay_enclosed
from rewrites.rule_runs import survey
from rewrites.rules import ScalarRule

ROWS = {row.row: row for row in scalar_rules.ROWS}
ELEMENTARY = ("F9", "F11", "F19", "F27", "F29")


def rule(row: str) -> ScalarRule:
    return next(r for r in ROWS[row].repaired if r.number.family == "real")


@pytest.mark.parametrize("row", ELEMENTARY)
def test_rules_with_elementary_functions_survive_runs(row: str) -> None:
    runs = survey(rule(row))
    assert runs.count >= 12
    assert runs.difference is None, runs.difference


@pytest.mark.parametrize("row", ELEMENTARY)
def test_a_side_that_is_a_little_off_does_not_survive(row: str) -> None:
    """By 2^-80 of its value or more, somewhere."""
    right = rule(row)
    wrong = replace(right, right=right.right * (1 + Fraction(1, 1 << 80)))
    runs = survey(wrong)
    assert runs.difference is not None
    values = runs.difference.values  # type: ignore[attr-defined]
    assert replay_enclosed(wrong, values) is not None
    assert replay_enclosed(right, values) is None


def test_what_intervals_do_not_decide_is_said() -> None:
    with pytest.raises(NotInterpreted, match="no interval encloses a value: the exponent must be at most 4096"):
        enclosed(rule("F9"), {"x": Fraction(1 << 20)})
    assert enclosed(rule("F19"), {"x": Fraction(-1)}) == (False, None)
