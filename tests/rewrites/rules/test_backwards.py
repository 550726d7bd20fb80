"""Lines of an explanation use a rule from left to right or from right to left: both must be theorems.

A rule whose left side divides by zero somewhere claims nothing there, and may still be PROVED; used backwards it would
bring in the division.  So each rule that compiling uses is proved with its sides exchanged, too.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import Kind, TensorRule
from ilaverify.catalogue import backends
from ir_semantics.tensors.terms import input_
from rewrites.claims.registry import LAYER_RULES
from rewrites.rules.tensor.words import div, mul, sizes
from smt_encodings.claims import Equality, Status
from tests.rewrites.rules.named import rule_named

LAYERS = {rule.name for rule in LAYER_RULES}
"""Rules on layers are equations of operators, proved by induction over steps; they are no rules on tensor terms."""
USED = tuple(
    dict.fromkeys(
        r.name
        for load in backends().values()
        for rules in (load().exact, load().flexible)
        for r in rules
        if r.name not in LAYERS
    )
)


def exchanged(rule: TensorRule) -> TensorRule:
    return replace(rule, name=f"{rule.name}, backwards", left=rule.right, right=rule.left)


def test_all_rules_that_compiling_uses_are_tried() -> None:
    assert len(USED) >= 29 and all(rule_named(name).name == name for name in USED)
    assert not any(rule_named(name).positive or rule_named(name).masks for name in USED)


@pytest.mark.slow
@pytest.mark.parametrize("name", USED)
def test_rules_hold_backwards(name: str) -> None:
    verdict = decide_tensor_rule(exchanged(rule_named(name)))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("name", USED[:2])
def test_a_few_rules_hold_backwards(name: str) -> None:
    verdict = decide_tensor_rule(exchanged(rule_named(name)))
    assert verdict.status is Status.PROVED, verdict.reason


def test_a_rule_that_holds_one_way_only_is_told_apart() -> None:
    (n,) = sizes("n")
    x, y = input_("x", n), input_("y", n)
    one_way = TensorRule("one way", mul(x, div(y, y)), x, equality=Equality.OVER_REALS, kind=Kind.WRONG)
    assert decide_tensor_rule(one_way).status is Status.PROVED
    assert decide_tensor_rule(exchanged(one_way)).status is Status.REFUTED
