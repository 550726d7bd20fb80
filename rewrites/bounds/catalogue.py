"""All lemmas and operators by name."""

from __future__ import annotations

from collections.abc import Mapping

from .lemmas import activations, codes, host, machine
from .lemmas.lemma import Lemma

LEMMAS: Mapping[str, Lemma] = {
    lemma.name: lemma for module in (codes, activations, machine, host) for lemma in module.LEMMAS
}
"""Lemmas on primitives by name."""
