"""Numbered steps of the documents: their numbers are consecutive, and every step that a text refers to exists."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ITEM = re.compile(r"^(\d+)\. ", re.MULTILINE)
REFERENCE = re.compile(r"(?:\]\(([\w./-]+\.md)\),\s+)?\b[Ss]teps?\s+([1-9]\d*(?:(?:,|,?\s+and)\s+\d+)*)\b")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def prose(document: Path) -> str:
    return FENCED.sub("", document.read_text(encoding="utf-8"))


def misnumbered(text: str) -> list[tuple[int, int]]:
    """Numbers that neither follow the one before nor begin a list."""
    numbers = [0, *map(int, ITEM.findall(text))]
    return [(a, b) for a, b in pairwise(numbers) if b not in (1, a + 1)]


def dangling(document: Path) -> list[str]:
    """Steps that a document refers to, its own or those of a linked one, and that are not there."""
    found = []
    for link, numbers in REFERENCE.findall(prose(document)):
        there = set(ITEM.findall(prose((document.parent / link) if link else document)))
        found += [f"{link} step {n}" for n in re.findall(r"\d+", numbers) if n not in there]
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_steps_are_numbered_and_referred_to(document: Path) -> None:
    assert (misnumbered(prose(document)), dangling(document)) == ([], [])


def test_the_references_are_found(tmp_path: Path) -> None:
    counts = {d.stem: len(REFERENCE.findall(prose(d))) for d in DOCUMENTS}
    assert counts["concepts"] > 10 and min(counts[n] for n in ("LIMITATIONS", "CHANGELOG", "gemm", "vta")) >= 1
    (tmp_path / "a.md").write_text("1. x\n2. y\n2. z\n4. u\n\nSteps 1, 2 and 3.")
    (tmp_path / "b.md").write_text("[a](a.md), steps 4\nand 5")
    assert misnumbered(prose(tmp_path / "a.md")) == [(2, 2), (2, 4)]
    assert dangling(tmp_path / "a.md") == [" step 3"]
    assert dangling(tmp_path / "b.md") == ["a.md step 5"]
