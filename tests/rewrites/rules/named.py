"""Rules on tensors by name."""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from rewrites.rules.tensor.catalogue import RULES

_BY_NAME = {rule.name: rule for rule in RULES}


def rule_named(name: str) -> TensorRule:
    return _BY_NAME[name]
