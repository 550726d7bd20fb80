"""The page on the tensor IR: its example runs as shown."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "tensor_ir.md"


def test_the_example_runs_as_shown() -> None:
    results = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert results.attempted == 8 and results.failed == 0
