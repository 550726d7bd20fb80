"""The page on tensor rules: its example runs as shown."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "tensor_rules.md"


def test_the_example_runs_as_shown() -> None:
    results = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert results.attempted > 10 and results.failed == 0
