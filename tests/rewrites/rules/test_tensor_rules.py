"""Every tensor rule gets the verdict that is known of it; known wrong ones with a replayed counterexample."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.refute import Counterexample, find_counterexample, replay
from chc.tensor_rules.rule import Kind, TensorRule
from chc.tensor_rules.sizes import sizes_drawn
from docs.tables import tensor_entries
from ir_semantics.tensors.conditions import TruthOf
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.operators import fill, where
from ir_semantics.tensors.terms import input_
from rewrites.rules.tensor import layout as tensor_rules_layout
from rewrites.rules.tensor.catalogue import RULES
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger
from tests.rewrites.rules.named import rule_named

WRONG = [r.name for r in RULES if r.kind is Kind.WRONG]
RIGHT = [r.name for r in RULES if r.kind is not Kind.WRONG]
LONG = 6
"""Of the rules that belong to no known row, every LONG-th is proved by default."""
SECONDS = {
    "convolution with bias as windows times filters with bias",
    "pairs of groups of 2 channels as one with zeros",
}
"""Rules of which the proof takes seconds."""
DEFAULT = [n for j, n in enumerate(RIGHT) if rule_named(n).row or (j % LONG == 0 and n not in SECONDS)]

ROWS = {
    *("C7", "C9", "C11", "C13", "C15"),
    *(f"L{j}" for j in range(1, 40, 2) if j != 35),
    *("H9", "H17"),
}
REPAIRED = {"C9", "C13", "C15", "L1", "L5", "L11", "L15", "L17", "L19", "L23", "L25", "L27", "L29", "L31", "H9", "H17"}
CONTROLS = {
    "max pooling k3s2 twice",
    "1 x 1 convolution commutes with subsampling",
    "1 x 1 convolution as 3 x 3 with pads",
    "transposes (0, 2, 1) and (1, 2, 0)",
    "odd elements twice",
    "softmax of x plus a scalar",
    "rows through matmul",
    "matmul in two blocks of the inner axis",
    "max pooling of a nearest upsampling",
    "relu commutes with max pooling",
}


def test_every_known_row_is_there_with_its_repair() -> None:
    assert {r.row for r in RULES if r.kind is Kind.WRONG and r.row} == ROWS
    assert {r.row for r in RULES if r.kind is Kind.REPAIRED} >= REPAIRED
    assert {r.name for r in RULES if r.kind is not Kind.WRONG} >= CONTROLS


def test_names_are_unique_and_rules_are_entries_of_the_table() -> None:
    entries = tensor_entries()
    assert len({r.name for r in RULES}) == len(RULES) == len(entries)
    assert sum(r.kind is not Kind.WRONG for r in RULES) >= 80
    assert [e.wrong for e in entries].count(True) == len(WRONG)


@pytest.mark.parametrize(
    "name", [name if rule_named(name).row else pytest.param(name, marks=pytest.mark.slow) for name in WRONG]
)
def test_a_wrong_rule_is_refuted(name: str) -> None:
    rule = rule_named(name)
    found = find_counterexample(rule, 15.0)
    assert found is not None
    again = replay(rule, found.sizes, found.inputs)
    assert again is not None and str(again) == str(found)


def proved(name: str) -> None:
    rule = rule_named(name)
    verdict = prove_tensor_rule(rule)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.obligations and all(o.discharged for o in verdict.obligations)
    health = [o for o in verdict.obligations if o.group == "health"]
    assert [o.expected for o in health] == ["sat"]


@pytest.mark.parametrize("name", DEFAULT)
def test_a_right_rule_is_proved(name: str) -> None:
    proved(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RIGHT if name not in DEFAULT])
def test_another_right_rule_is_proved(name: str) -> None:
    proved(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_no_counterexample_is_found_to_a_right_rule(name: str) -> None:
    assert find_counterexample(rule_named(name), 3.0, seed=3) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_not_proved(name: str) -> None:
    verdict = prove_tensor_rule(rule_named(name), Discharger(timeout=1.0), seconds=20.0)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason


def test_all_transposes_of_rank_3_compose() -> None:
    rules = tensor_rules_layout.compositions(3)
    assert len(rules) == 36
    for rule in rules:
        assert prove_tensor_rule(rule, Discharger(timeout=1.0)).status is Status.PROVED, rule.name


def test_verdicts_carry_what_they_are_about() -> None:
    verdict = decide_tensor_rule(rule_named("scale after masking with -inf"))
    assert verdict.status is Status.PROVED
    assert verdict.claim.equality is Equality.OVER_REALS
    assert verdict.claim.assumptions == ("s > 0 everywhere",)
    assert "x[n, m]" in verdict.claim.size_domain
    refuted = decide_tensor_rule(rule_named("odd elements twice from 2"))
    assert refuted.status is Status.REFUTED
    assert isinstance(refuted.details["counterexample"], Counterexample)
    words = r"at \[0\] the left side is ([01]), the right side ([01]), where n = 4; x = \[0, 0, ([01]), ([01])\]"
    found = re.fullmatch(words, refuted.reason)
    assert found is not None and found[1] != found[2] and found[3] != found[4]


def test_maximum_in_floats_is_an_assumption() -> None:
    claim = rule_named("relu twice").claim
    assert claim.assumptions == ("maximum and minimum are those of IEEE 754-2019, with one NaN",)
    assert rule_named("concat associates").claim.assumptions == ()


def test_one_name_has_one_shape() -> None:
    n, m = size("n"), size("m")
    rule = TensorRule("two shapes", input_("x", n), input_("x", m), kind=Kind.WRONG)
    with pytest.raises(
        ValueError, match=r"the input x of the rule two shapes must have one shape, not \[n\] and \[m\]"
    ):
        _ = rule.inputs
    within = TensorRule("within", input_("x", n), input_("x", n), equality=Equality.WITHIN, kind=Kind.WRONG)
    with pytest.raises(ValueError, match="the rule within must be claimed bit_exact"):
        prove_tensor_rule(within)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "name of the rule 3 must be a text, not 3"),
        ({"left": 3}, "left of the rule r must be a tensor term; a number is written fill(...), not 3"),
        ({"right": None}, "right of the rule r must be a tensor term; a number is written fill(...), not None"),
        ({"kind": "valid"}, "kind of the rule r must be a Kind, such as Kind.VALID, not 'valid'"),
        (
            {"equality": "over_reals"},
            "equality of the rule r must be an Equality, such as Equality.OVER_REALS, not 'over_reals'",
        ),
        ({"domain": True}, "domain of the rule r must be a condition on sizes, such as le(1, n), not True"),
        (
            {"positive": "x"},
            """positive of the rule r must be a set of names of inputs, such as frozenset({"x"}), not 'x'""",
        ),
        (
            {"masks": {"q": ()}},
            'masks of the rule r must be a tuple of names with shapes, such as (("mask", shape([n, m])),), '
            "not {'q': ()}",
        ),
        ({"masks": ("q",)}, "masks of the rule r must be pairs of a name and a shape, not 'q'"),
        ({"masks": (("q", (3,)),)}, "masks of the rule r must be pairs of a name and a shape, not ('q', (3,))"),
        ({"positive": frozenset("xz")}, "positive inputs of the rule r must be among its inputs (x), not z"),
    ],
)
def test_arguments_of_another_type_are_refused(change: dict[str, Any], message: str) -> None:
    x = input_("x", size("n"))
    arguments: dict[str, Any] = {"name": "r", "left": x, "right": x}
    with pytest.raises((TypeError, ValueError)) as caught:
        TensorRule(**{**arguments, **change})
    assert str(caught.value) == message


def test_a_boolean_tensor_is_a_mask() -> None:
    n = size("n")
    x = input_("x", n)

    def masked(name: str, *masks: tuple[str, tuple[Index, ...]], rank: int = 1) -> TensorRule:
        left = where(lambda i: TruthOf(name, (i,) * rank), x, fill(0, n))
        return TensorRule("masked", left, left, masks=masks, kind=Kind.WRONG)

    must = "the Boolean tensor q of the rule masked, read at {} subscripts, must be one of its masks: {}"
    for rule, message in (
        (masked("q"), must.format(1, "none")),
        (masked("q", ("q", (n,)), rank=2), must.format(2, "q[n]")),
        (masked("x", ("x", (n,))), "the mask x of the rule masked must not be an input, too; rename one of them"),
    ):
        with pytest.raises(ValueError) as caught:
            prove_tensor_rule(rule)
        assert str(caught.value) == message
    assert prove_tensor_rule(masked("q", ("q", (n,)))).status is Status.PROVED


def test_no_rule_is_only_about_empty_tensors() -> None:
    draw = random.Random(0)
    for rule in RULES:
        drawn = [p for largest in (4, 12) for p in sizes_drawn(rule.sizes, rule.premise, 60, largest, draw)]
        elements = [math.prod(shape_at(rule.left, point)) for point in drawn]
        fixed = all(d.constant is not None for d in rule.left.shape)
        assert max(elements) >= (1 if fixed else 2), rule.name
