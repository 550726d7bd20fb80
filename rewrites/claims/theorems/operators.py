"""All operators with bounds by name, without what proves the lemmas that they rest on."""

from __future__ import annotations

from collections.abc import Mapping

from rewrites.bounds.derivations.calculus import Operator

from . import flexasr, machines

OPERATORS: Mapping[str, Operator] = {o.name: o for o in (*flexasr.OPERATORS, *machines.OPERATORS)}
"""Operators with their bounds by name."""
