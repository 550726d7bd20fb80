"""The page on the e-graph: its example runs as shown."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "egraph.md"


def test_the_example_runs_as_shown() -> None:
    results = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert results.attempted == 19 and results.failed == 0
