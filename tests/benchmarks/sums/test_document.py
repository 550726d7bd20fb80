"""What docs/explanation/reductions.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "reductions.md"


@pytest.mark.proof
def test_the_session_runs() -> None:
    failed, attempted = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert failed == 0
    assert attempted == 14
