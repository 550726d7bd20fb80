"""Counts of trusted lines are those of the modules, and modules that guess conclude nothing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.repository.trusted import ROOT, code_lines, counts, guessing, trusted

TABLE = re.compile(r"^\| (?P<method>[^|]+) \| [^|]+ \| (?P<now>[\d,]+(?: / [\d,]+)?) \|", re.M)
CONCLUDES = {"theorem", "follows", "follows_in_steps", "ask", "ask_text", "ask_in_background", "require_free", "assume"}


def test_counts_of_trusted_lines_are_those_of_the_modules() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## What is trusted")[2]
    stated = {m["method"]: m["now"] for m in TABLE.finditer(text)}
    assert stated == counts(), "ARCHITECTURE.md must state what `python -m tests.repository.trusted` prints"


def test_chc_is_no_larger() -> None:
    assert sum(map(code_lines, trusted("chc"))) < 5_500
    assert all(path.is_file() for path in guessing())


@pytest.mark.parametrize("path", sorted(guessing()), ids=lambda p: str(p.relative_to(ROOT)))
def test_what_guesses_concludes_nothing(path: Path) -> None:
    """It hands over data: it adds no obligation and no hypothesis, whatever it finds."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    calls = {n.func.attr for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    own = {"assume"} if path.stem == "diagnosis" else set[str]()  # of an encoding that no proof has
    assert not calls & CONCLUDES - own
    names = {a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}
    assert not names & {"Discharger", "conclude"}
