"""The session of docs/explanation/vta.md prints what the text shows, and its table is that of the options."""

from __future__ import annotations

import dataclasses
import doctest
import re
from pathlib import Path

from accel_models.vta.options import VtaOptions

TEXT = (Path(__file__).parents[3] / "docs" / "explanation" / "vta.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_every_block_is_a_session() -> None:
    assert len(BLOCKS) == TEXT.count("```python") >= 9
    assert all(block.startswith(">>> ") for block in BLOCKS)


def test_the_session_prints_what_the_text_shows() -> None:
    session = doctest.DocTestParser().get_doctest("\n".join(BLOCKS), {}, "vta", "docs/explanation/vta.md", 0)
    assert sum(bool(example.want) for example in session.examples) >= 15
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == len(session.examples)


def test_the_table_has_every_option() -> None:
    named = set(re.findall(r"^\| `(\w+)`", TEXT, re.MULTILINE))
    assert named == {field.name for field in dataclasses.fields(VtaOptions)}
