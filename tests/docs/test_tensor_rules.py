"""The page on tensor rules: its example runs, and its table names every rule of a known row."""

from __future__ import annotations

import doctest
from pathlib import Path

from rewrites.rules.tensor.catalogue import RULES

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "tensor_rules.md"


def test_the_example_runs_as_shown() -> None:
    results = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert results.attempted > 10 and results.failed == 0


def test_the_table_has_every_rule_of_a_known_row() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    for rule in RULES:
        if rule.row and rule.row != "6.9":
            assert any(line.startswith(f"| {rule.row} |") and rule.statement in line for line in lines), rule.name
