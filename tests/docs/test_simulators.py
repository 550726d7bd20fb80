"""The session of docs/explanation/simulators.md prints what the text shows."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "simulators.md"


def test_the_session_prints_what_the_text_shows() -> None:
    failed, attempted = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert (failed, attempted >= 12) == (0, True)
