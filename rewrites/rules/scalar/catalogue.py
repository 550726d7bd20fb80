"""All rules on scalars, for tables and for runs over everything."""

from __future__ import annotations

from functools import partial
from typing import Final

from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import RuleRow, ScalarRule, TableEntry, Unstated
from rewrites.rules.rule_set import RuleSet

from . import floats as float_rules
from . import hardware as hardware_rules
from . import integers as integer_rules

ROWS: tuple[RuleRow[ScalarRule], ...] = (*float_rules.ROWS, *integer_rules.ROWS, *hardware_rules.ROWS)
"""Every row on scalars: wrong rules with their repairs, and valid rules."""

RULE_SET: Final = RuleSet("scalar", scalar=ROWS)

UNSTATED: tuple[Unstated, ...] = (*float_rules.UNSTATED, *integer_rules.UNSTATED, *hardware_rules.UNSTATED)
"""Rows on scalars that are not stated."""


def entries() -> list[TableEntry]:
    """One entry for each rule, wrong ones first within a row."""
    return [entry for row in ROWS for entry in _entries(row)]


def _entries(row: RuleRow[ScalarRule]) -> list[TableEntry]:
    wrong = [*([row.wrong] if row.wrong else []), *row.still_wrong]
    rules = [(rule, True) for rule in wrong] + [(rule, False) for rule in row.repaired]
    return [
        TableEntry(row.row, wrong, rule.text, str(rule.number), partial(prove_rule, rule), _note(row, rule, i == 0))
        for i, (rule, wrong) in enumerate(rules)
    ]


def _note(row: RuleRow[ScalarRule], rule: ScalarRule, first: bool) -> str:
    """The row's note, on its first line, and where the rule was published."""
    return " ".join([*([f"From {rule.source}."] if rule.source else []), *([row.note] if first and row.note else [])])
