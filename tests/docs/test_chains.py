"""The page on chains: its example runs, its tables name rules and claims that there are, and counts are current."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace

import pytest

from chc.tensor_rules.rule import Kind
from docs import tables
from docs.markdown_tables import with_table
from ilaverify import catalogue
from rewrites.targets.flexasr.rules import CHAIN_RULES
from tests.rewrites.rules.named import rule_named


def test_the_example_runs_as_shown() -> None:
    results = doctest.testfile(str(tables.CHAINS_PAGE), module_relative=False)
    assert results.attempted > 20 and results.failed == 0


def test_the_counts_are_current() -> None:
    text = tables.CHAINS_PAGE.read_text(encoding="utf-8")
    counts = tables.counts()
    assert text == with_table(text, "rules by kind", tables.by_kind(counts)), "run python -m docs.tables"
    other = [replace(counts[0], right=counts[0].right + 1), *counts[1:]]
    assert text != with_table(text, "rules by kind", tables.by_kind(other))
    with pytest.raises(ValueError, match=r"^the document must have the lines '<!-- rules by kind"):
        with_table("# Chains", "rules by kind", [])


def test_there_are_enough_rules_of_each_kind() -> None:
    right = dict.fromkeys(("IR to IR", "IR to accelerator", "accelerator to accelerator"), 0)
    for row in tables.counts():
        right[row.kind] += row.right
        assert row.right > 0 and row.wrong >= 0
    assert right["IR to IR"] >= 80 and right["IR to accelerator"] >= 9
    assert right["accelerator to accelerator"] == len(CHAIN_RULES)


def test_the_rules_that_cut_operators_are_right_ones() -> None:
    text = tables.CHAINS_PAGE.read_text(encoding="utf-8")
    cutting = text.partition("## Rules that cut")[2].partition("## Rules by kind")[0]
    names = [n for n in re.findall(r"`([^`]+)`", cutting) if " " in n and n != "mean pooling"]
    assert len(names) >= 10 and all(rule_named(n).kind is not Kind.WRONG for n in names)
    claimed = text.partition("## What is claimed")[2].partition("## Rules that cut")[0]
    mappings = set(re.findall(r"`(flexasr_\w+)`", claimed))
    assert len(mappings) >= 5 and mappings <= set(catalogue.mappings())
