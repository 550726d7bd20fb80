"""All lemmas and operators by name."""

from __future__ import annotations

from collections.abc import Mapping

from .lemmas import activations, codes, machine
from .lemmas.lemma import Lemma

LEMMAS: Mapping[str, Lemma] = {lemma.name: lemma for lemma in (*codes.LEMMAS, *activations.LEMMAS, *machine.LEMMAS)}
"""Lemmas on primitives by name."""
