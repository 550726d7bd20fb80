"""The session of docs/explanation/hlscnn.md prints what the text shows."""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "explanation" / "hlscnn.md").read_text(encoding="utf-8")
# blocks may stand in a list, indented
BLOCKS = [textwrap.dedent(b) for _, b in re.findall(r"^( *)```python\n(.*?)^\1```$", TEXT, re.DOTALL | re.MULTILINE)]


def test_every_block_is_a_session() -> None:
    assert len(BLOCKS) == TEXT.count("```python") >= 12
    assert all(block.startswith(">>> ") for block in BLOCKS)


def test_the_session_prints_what_the_text_shows() -> None:
    session = doctest.DocTestParser().get_doctest("\n".join(BLOCKS), {}, "hlscnn", "docs/explanation/hlscnn.md", 0)
    assert sum(bool(example.want) for example in session.examples) >= 20
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == len(session.examples)
