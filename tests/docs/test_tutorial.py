"""The tutorial is true: its sessions print what it shows, and its other code is part of the example."""

from __future__ import annotations

import doctest
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TUTORIAL = (ROOT / "docs" / "tutorials" / "row_pairs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)
SESSIONS = [b for b in BLOCKS if b.startswith(">>>")]
QUOTES = [b for b in BLOCKS if not b.startswith(">>>")]


@pytest.fixture
def examples_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    # the second solver answers in a process of its own, which takes its path from the environment
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "encodings"))))
    yield
    sys.modules.pop("row_pairs", None)


def test_quoted_code_is_part_of_the_example() -> None:
    example = (EXAMPLES / "row_pairs.py").read_text(encoding="utf-8")
    assert len(QUOTES) >= 5
    assert [q for q in QUOTES if q not in example] == []


@pytest.mark.proof
@pytest.mark.usefixtures("examples_on_path")
def test_sessions_print_what_the_tutorial_shows() -> None:
    session = doctest.DocTestParser().get_doctest("\n".join(SESSIONS), {}, "tutorial", "docs/tutorials/row_pairs.md", 0)
    for verdict in ("PROVED T is a multiple of 2", "REFUTED - input 2x4", "REFUTED - input 4x4", "((), ())"):
        assert any(verdict in example.want for example in session.examples), verdict
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == len(session.examples)
