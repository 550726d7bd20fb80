"""The rules on tensors by which operators are computed in parts, by operator: claims that code may rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import flexasr_linear, flexasr_pools, hlscnn, vta

__all__ = ["SPLITS"]

SPLITS: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr.linear": (*flexasr_linear.RULES, *flexasr_linear.JOINED.values()),
    **{
        name: (flexasr_pools.RULES[pool.kind, "rows"], flexasr_pools.RULES[pool.kind, "columns"])
        for name, pool in flexasr_pools.POOLS.items()
    },
    "hlscnn.conv2d": tuple(hlscnn.RULES.values()),
    "vta.dense": vta.RULES,
}
"""Names of claims.  Operators that are not here are never computed in parts."""
