"""All rewrite rules between tensor terms."""

from __future__ import annotations

from typing import Final

from chc.tensor_rules.rule import TensorRule
from rewrites.rules.rule_set import RuleSet

from . import (
    boxes,
    convolution,
    groups,
    hardware,
    layout,
    matching,
    means,
    normalisation,
    pooling,
    products,
    scales,
    splitting,
    windows,
)

MODULES = (
    pooling,
    convolution,
    groups,
    products,
    layout,
    hardware,
    matching,
    windows,
    means,
    normalisation,
    splitting,
    boxes,
    scales,
)
"""The modules that define rules."""

RULES: tuple[TensorRule, ...] = tuple(rule for module in MODULES for rule in module.RULES)
"""Every rule; names are unique."""

RULE_SET: Final = RuleSet("tensor", tensor=RULES)
