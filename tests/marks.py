"""Which parameters of a test belong to the default run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_but(quick: Collection[str], names: Iterable[str]) -> list[Any]:
    """Parameters of a test, of which all but the quick ones are slow."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]
