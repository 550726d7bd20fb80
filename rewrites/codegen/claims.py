"""The rules on tensors by which operators are computed in parts, by operator: claims that code may rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import flexasr_linear, flexasr_rows, hlscnn, vta

__all__ = ["SPLITS"]

SPLITS: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr.linear": (*flexasr_linear.RULES, *flexasr_linear.JOINED.values()),
    "flexasr.max_pool": (flexasr_rows.RULES["flexasr_maxpool"],),
    "flexasr.mean_pool": (flexasr_rows.RULES["flexasr_meanpool"],),
    "hlscnn.conv2d": tuple(hlscnn.RULES.values()),
    "vta.dense": vta.RULES,
}
"""Names of claims.  Operators that are not here are never computed in parts."""
