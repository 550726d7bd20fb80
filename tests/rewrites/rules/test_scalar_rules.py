"""Every rule on scalars gets its verdict; wrong ones are proved by no interpretation; the document says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from chc.scalar_rules.prove import interpretations_of, prove_rule
from chc.scalar_rules.rule import Counterexample, ScalarRule
from chc.scalar_rules.search import find_counterexample, points, replay
from docs.tables import RULES_PAGE, Entry, scalar_entries
from ir_semantics.scalars.formats import BINARY32, Value
from ir_semantics.scalars.terms import constant, is_finite, variable
from rewrites.rules.scalar import catalogue as scalar_rules
from smt_encodings.claims import Interpretation, Status
from smt_encodings.discharge import Discharger
from tests.chc.scalar_rules.attempts import proved_by

ENTRIES = scalar_entries()
WRONG = [r for row in scalar_rules.ROWS for r in [*([row.wrong] if row.wrong else []), *row.still_wrong]]
REPAIRED = [(row.row, r) for row in scalar_rules.ROWS for r in row.repaired]
SLOW = {"F23", "F25", "F29", "F31", "I7", "I13", "C1", "C19"}
"""Rows with a repair that takes seconds to prove."""

STATED = [
    *(f"F{n}" for n in range(1, 36, 2)),
    *(f"I{n}" for n in range(1, 42, 2) if n not in (35, 37)),
    *("C1", "C3", "C5", "C17", "C19"),
    *(f"H{n}" for n in range(1, 22, 2) if n not in (9, 17)),  # those are rules on tensors
]


def test_every_row_on_scalars_is_stated_or_listed() -> None:
    stated = {row.row for row in scalar_rules.ROWS if row.wrong is not None}
    assert set(STATED) - stated == {"H1", "H13"}  # docs/reference/rules.md says why
    names = [r.name + str(r.condition) + str(r.number) + str(r.zero_signs) for r in WRONG]
    assert len(set(names)) == len(names)


def _parameters() -> list[object]:
    return [
        pytest.param(e, id=f"{i}-{e.row}", marks=[pytest.mark.slow] if not e.wrong and (e.row in SLOW or i % 3) else [])
        for i, e in enumerate(ENTRIES)
    ]


DOCUMENTED = [
    text
    for text in RULES_PAGE.read_text(encoding="utf-8").splitlines()
    if re.search(r"\| (PROVED|REFUTED|UNKNOWN|VACUOUS|ERROR) \|", text)
]


@pytest.mark.parametrize("entry", _parameters())
def test_verdicts_are_those_of_the_document(entry: Entry) -> None:
    verdict = entry.prove(Discharger(timeout=60))
    assert verdict.status is entry.expected, (entry.rule, verdict.reason)
    assert entry.line(verdict) in DOCUMENTED, "run `python -m docs.tables --write`"
    if verdict.status is Status.REFUTED:
        assert isinstance(verdict.details["counterexample"], Counterexample)
    else:
        health = verdict.details["health"]
        assert isinstance(health, dict) and health["changed rules refuted"]
        assert verdict.obligations
        for obligation in verdict.obligations:
            assert {a.solver.split()[0] for a in obligation.answers} == {"z3", "cvc5"}
            assert obligation.discharged


def test_the_document_has_no_other_lines() -> None:
    for text in DOCUMENTED:
        row, rule = text.split(" | ")[0].removeprefix("| "), text.split(" | ")[1].strip("`").replace("\\|", "|")
        if row in {e.row for e in ENTRIES}:
            assert any(e.row == row and e.rule == rule for e in ENTRIES), text


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.row)
def test_wrong_rules_are_refuted_by_each_of_their_examples(rule: ScalarRule) -> None:
    for example in rule.examples:
        assert replay(rule, example) is not None, example


PUBLISHED: Mapping[str, str] = {
    "F1": "x = -0.0: 0.0 vs -0.0", "F5": "x = nan: -inf vs nan", "F7": "x = nan, y = 1.0: 1.0 vs nan",
    "F9": "x = 89.0: inf vs 89.0", "F11": "a = 100.0, b = -100.0: inf vs 1.0", "F21": "a = 1.0, b = 1.0: -0.0 vs 0.0",
    "F23": "x = -0.25: -0.0 vs 0.0", "F27": "x = 100.0: inf vs 100.0", "F29": "x = 0.0, y = 200.0: -inf vs -200.0",
    "F33": "x = nan: 0.0 vs nan", "I1": "x = 64: -64 vs 64", "I3": "x = -1: 0 vs -1",
    "I9": "a = 100, b = -90: 20 vs -1",
    "I7": "x = 127, c1 = 1, c2 = 0: true vs false", "I11": "x = 300: 127 vs 44", "I13": "x = 1, y = 1: 1 vs 0",
    "I15": "x = 64: -64 vs 64", "I17": "u = 0, v = 1, t = 2: 2 vs 1", "I19": "x = -1: 0 vs 1", "I21": "x = 1: 1 vs 0",
    "I23": "z = 10, w = 3: 0 vs -30", "I25": "u = 0, v = 2: true vs false", "I29": "x = -125: -13 vs -12",
    "I31": "x = -1: -1 vs 255", "I33": "m = 200, n = 100: 100 vs -56", "I39": "x = 120: -126 vs 10",
    "I41": "x = 1, c1 = -2, c2 = -1: -2 vs undefined", "C1": "x = 2.0, a = 3.0, b = 1.0: 1.0 vs 3.0",
    "C3": "x = 0.5: -0.5 vs -1.0", "C5": "a = -1.0, b = 1.0: 0.0 vs 1.0", "C17": "x = 100: 6 vs 100",
    "C19": "x = 2.0, a = 1.5: 2.0 vs 3.0",
}  # fmt: skip
"""Counterexamples as they were published, with the values of both sides."""


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_counterexamples_give_the_published_values(row: str) -> None:
    (rule,) = [r.wrong for r in scalar_rules.ROWS if r.row == row]
    assert rule is not None
    assert str(replay(rule, rule.examples[0])) == PUBLISHED[row]


def test_published_counterexamples_with_rounded_constants() -> None:
    """Rows whose constants, such as 1e20, are not numbers of binary32."""
    found = {r.row: replay(r.wrong, r.wrong.examples[0]) for r in scalar_rules.ROWS if r.wrong and r.wrong.examples}
    assert [(found[r].left, found[r].right) for r in ("F3", "F13", "F17")][1] == (1.0, 0.0)  # type: ignore[union-attr]
    fused = found["F15"]
    assert fused is not None and fused.left == 0.0 and f"{fused.right:.2e}" == "4.99e+21"
    reciprocal = found["F17"]
    assert reciprocal is not None and reciprocal.left == 0.0 and f"{reciprocal.right:.0e}" == "1e-40"
    mean = found["F31"]
    assert mean is not None and str(mean).endswith("inf vs 30000.0")


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.row)
def test_counterexamples_are_found_without_the_published_one(rule: ScalarRule) -> None:
    assert find_counterexample(rule, points(replace(rule, examples=()))) is not None


def _attempts() -> list[object]:
    """IEEE arithmetic is slow at saying nothing.

    F29 is left out there: on quotients beside uninterpreted functions z3 sometimes ignores its time limit, and grows.
    """
    return [
        pytest.param(r, i, id=f"{r.row}-{i.value}", marks=[pytest.mark.slow] if i is Interpretation.IEEE else [])
        for r in WRONG
        for i in interpretations_of(r)
        if not (r.row == "F29" and i is Interpretation.IEEE)
    ]


@pytest.mark.parametrize(("rule", "interpretation"), _attempts())
def test_no_interpretation_proves_a_wrong_rule(rule: ScalarRule, interpretation: Interpretation) -> None:
    """Solvers alone, without values tried before; one solver that does not say "unsat" is enough."""
    assert not proved_by(rule, interpretation, Discharger(timeout=2.0, second=False))


@pytest.mark.slow
@pytest.mark.parametrize(("row", "rule"), REPAIRED, ids=lambda r: r if isinstance(r, str) else "")
def test_repairs_hold_wherever_they_are_evaluated(row: str, rule: ScalarRule) -> None:
    """At other values than those tried before the proof."""
    assert find_counterexample(rule, points(replace(rule, name=f"{rule.name} again"))) is None


def test_positive_roots_are_powers_in_binary32() -> None:
    """The repair of F19 is proved over the reals; correct rounding carries it over."""
    (row,) = [r for r in scalar_rules.ROWS if r.row == "F19"]
    assert row.wrong is not None
    positive = replace(row.wrong, condition=variable("x") > 0, examples=())
    assert find_counterexample(positive, points(positive)) is None


def test_the_documents_example() -> None:
    x = variable("x")
    wrong = prove_rule(ScalarRule("cancel", x - x, constant(0), BINARY32))
    right = prove_rule(ScalarRule("cancel finite numbers", x - x, constant(0), BINARY32, condition=is_finite(x)))
    assert (wrong.status.value, wrong.reason) == ("REFUTED", "x = nan: nan vs 0.0")
    assert (right.status.value, right.claim.interpretations[0].value) == ("PROVED", "abstract_float")
    assert right.details["ladder"] == ["uninterpreted: not implied"]


def test_examples_are_values_of_the_rules_formats() -> None:
    for rule in WRONG:
        for example in rule.examples:
            values: Mapping[str, Value] = example
            assert set(values) == set(rule.variables), rule.text
