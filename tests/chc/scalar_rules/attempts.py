"""Proofs of rules on scalars in one interpretation alone."""

from __future__ import annotations

from chc.scalar_rules.prove import _Attempt
from chc.scalar_rules.rule import ScalarRule
from smt_encodings.claims import Interpretation
from smt_encodings.discharge import Discharger


def proved_by(rule: ScalarRule, interpretation: Interpretation, discharger: Discharger) -> bool:
    """Whether one interpretation proves a rule; no values are tried before, and no health check follows."""
    return _Attempt(rule, discharger).climb(interpretation)[0]
