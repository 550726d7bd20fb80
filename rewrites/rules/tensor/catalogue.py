"""All rewrite rules between tensor terms, by name and as entries of the table of rules."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from typing import Final

from chc.scalar_rules.rule import TableEntry, Unstated
from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import Kind, TensorRule
from rewrites.rules.rule_set import RuleSet

from . import convolution, hardware, layout, linear, matching, pooling, products, splitting, windows

MODULES = (pooling, linear, convolution, products, layout, hardware, matching, windows, splitting)
"""The modules that define rules."""

RULES: tuple[TensorRule, ...] = tuple(rule for module in MODULES for rule in module.RULES)
"""Every rule; names are unique."""

RULE_SET: Final = RuleSet("tensor", tensor=RULES)

UNSTATED: tuple[Unstated, ...] = ()
"""Rows of known wrong rules on tensors that are not stated: none."""


def rule_named(name: str) -> TensorRule:
    """The rule of that name; raises KeyError, with the most similar names, where there is none."""
    rules = {rule.name: rule for rule in RULES}
    if name not in rules:
        similar = ", ".join(map(repr, get_close_matches(name, sorted(rules), cutoff=0.0)))
        raise KeyError(f"there is no tensor rule named {name!r}; the most similar names of {len(rules)} are {similar}")
    return rules[name]


def entries() -> list[TableEntry]:
    """One entry for each rule, those of known rows first."""
    ordered = sorted(RULES, key=lambda rule: (not rule.row, rule.row.startswith("6"), rule.row))
    return [
        TableEntry(
            rule.row,
            rule.kind is Kind.WRONG,
            rule.statement,
            f"tensors of every size, {rule.equality.value}",
            partial(decide_tensor_rule, rule),
            rule.note,
        )
        for rule in ordered
    ]
