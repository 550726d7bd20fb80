"""The door for rules on scalars and tensors, under the entry points ``ilaverify.rules``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chc.scalar_rules.rule import RuleRow
from chc.tensor_rules.rule import TensorRule
from ila_lang.extensions import Door

__all__ = ["RULE_SETS", "RuleSet", "applied_rules"]


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules by name of the set: rows of rules on scalars, each with its wrong and repaired forms, and rules on tensors.

    A rule that is known to be wrong is as expected if it is REFUTED, any other if it is PROVED.  Names of rules are
    unique over all sets.  Rules on tensors of an ``applied`` set are applied by compilers wherever they match, if they
    hold a certificate; others only where a target names them.
    """

    name: str
    scalar: tuple[RuleRow, ...] = ()
    tensor: tuple[TensorRule, ...] = ()
    applied: bool = False


RULE_SETS: Final = Door("ilaverify.rules", RuleSet)
"""All rule sets that are installed."""


def applied_rules() -> tuple[TensorRule, ...]:
    """The rules on tensors that compilers apply wherever they match."""
    return tuple(rule for rules in RULE_SETS.all().values() if rules.applied for rule in rules.tensor)
