"""Rules over the reals with exponentials and powers are run in intervals, and wrong ones do not survive."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from chc.scalar_rules.enclosures import enclosed, replay_enclosed
from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import Counterexample, ScalarRule
from chc.scalar_rules.runs import survey
from ir_semantics.scalars.formats import REALS
from ir_semantics.scalars.terms import NotInterpreted, Scalar, abs_, exp, sqrt, variable
from rewrites.rules.scalar import catalogue as scalar_rules
from smt_encodings.claims import Status

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
    with pytest.raises(NotInterpreted, match="no interval encloses a value: the exponent must be at most 65536"):
        enclosed(rule("F9"), {"x": Fraction(1 << 20)})
    assert enclosed(rule("F19"), {"x": Fraction(-1)}) == (False, None)


X = variable("x")


@pytest.mark.parametrize(
    "left, right, reason",
    [
        (sqrt(X * X), X, "x = -1: 1 vs -1"),
        (sqrt(X + 1), sqrt(X) + 1, "x = 1: about 1.41421 vs 2"),
        (exp(X) * exp(X), exp(X), "x = 1: about 7.38906 vs about 2.71828"),
    ],
)
def test_a_wrong_rule_with_roots_or_exponentials_is_refuted_in_intervals(
    left: Scalar, right: Scalar, reason: str
) -> None:
    verdict = prove_rule(ScalarRule("wrong", left, right, REALS))
    assert (verdict.status, verdict.reason) == (Status.REFUTED, reason)
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample)
    size = float(found.values["x"])
    values = (term.replace("X", repr(size)) for term in (str(left), str(right)))
    one, other = (eval(v, {"x": size, "sqrt": math.sqrt, "exp": math.exp}) for v in values)
    assert abs(one - other) > 0.5


def test_the_right_rule_beside_it_is_proved() -> None:
    assert prove_rule(ScalarRule("right", sqrt(X * X), abs_(X), REALS)).status is Status.PROVED
