"""All lemmas and operators by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import activations, codes, machine
from .lemma import Lemma
from .operators import OPERATORS
from .real_rules import RULES

__all__ = ["LEMMAS", "OPERATORS", "RULES"]

LEMMAS: Mapping[str, Lemma] = {lemma.name: lemma for lemma in (*codes.LEMMAS, *activations.LEMMAS, *machine.LEMMAS)}
"""Lemmas on primitives by name."""
