"""All lemmas and operators by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import activations, codes, flexasr, machine, machines, norm
from .calculus import Operator
from .lemma import Lemma
from .real_rules import RULES

__all__ = ["LEMMAS", "OPERATORS", "RULES"]

LEMMAS: Mapping[str, Lemma] = {lemma.name: lemma for lemma in (*codes.LEMMAS, *activations.LEMMAS, *machine.LEMMAS)}
"""Lemmas on primitives by name."""

OPERATORS: Mapping[str, Operator] = {
    operator.name: operator for operator in (*flexasr.OPERATORS, *norm.OPERATORS, *machines.OPERATORS)
}
"""Operators with their bounds by name."""
