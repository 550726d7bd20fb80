"""All operators with bounds by name, without what proves the lemmas that they rest on."""

from __future__ import annotations

from collections.abc import Mapping

from . import flexasr, machines, norm
from .calculus import Operator

OPERATORS: Mapping[str, Operator] = {
    operator.name: operator for operator in (*flexasr.OPERATORS, *norm.OPERATORS, *machines.OPERATORS)
}
"""Operators with their bounds by name."""
