"""All rules on scalars."""

from __future__ import annotations

from typing import Final

from chc.scalar_rules.rule import RuleRow
from rewrites.rules.rule_set import RuleSet

from . import floats as float_rules
from . import hardware as hardware_rules
from . import integers as integer_rules

ROWS: tuple[RuleRow, ...] = (*float_rules.ROWS, *integer_rules.ROWS, *hardware_rules.ROWS)
"""Every row on scalars: wrong rules with their repairs, and valid rules."""

RULE_SET: Final = RuleSet("scalar", scalar=ROWS)
