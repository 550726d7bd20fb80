"""Mutants of rules on scalars."""

from __future__ import annotations

from random import Random

from chc.scalar_rules.mutants import drawn_mutants, mutants
from chc.scalar_rules.rule import ScalarRule
from ir_semantics.scalars.formats import REALS
from ir_semantics.scalars.terms import apply, variable

X, Y = variable("x"), variable("y")
RULE = ScalarRule("twice", X - Y + X, X * 2 - Y, REALS, condition=X < Y)


def test_each_place_of_a_rule_is_changed_once_at_a_time() -> None:
    found = dict(drawn_mutants(RULE, Random(0)))
    assert list(found) != list(dict(drawn_mutants(RULE, Random(1))))
    for what, part, changed in (
        ("left side: x - y becomes x + y", "left", X + Y + X),
        ("left side: x - y becomes y - x", "left", Y - X + X),
        ("right side: 2 becomes 3", "right", X * 3 - Y),
        ("right side: 2 becomes 1", "right", X * 1 - Y),
        ("right side: x * 2 becomes x + 2", "right", X + 2 - Y),
        ("right side: y becomes x", "right", X * 2 - X),
        ("condition: x < y becomes x <= y", "condition", X <= Y),
        ("condition: x < y becomes y < x", "condition", Y < X),
        ("condition: x < y becomes not (x < y)", "condition", ~(X < Y)),
    ):
        mutant = found[what]
        for name in ("left", "right", "condition"):
            assert getattr(mutant, name) is (changed if name == part else getattr(RULE, name)), what


def test_those_of_the_health_check_are_of_the_right_side() -> None:
    found = [m.right for m in mutants(RULE)]
    assert found == [Y * 2 - Y, X * 0 - Y, X + 2 - Y, X * 2 - X, apply("add", X * 2, Y)]
