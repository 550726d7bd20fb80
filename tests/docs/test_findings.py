"""docs/reference/findings.md shows what the searches find today, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewrites.findings import FINDERS, Finding, find_all, section, updated

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return find_all()


@pytest.mark.slow
def test_every_finding_has_the_name_that_finds_it(findings: list[Finding]) -> None:
    assert [finding.name for finding in findings] == list(FINDERS)


@pytest.mark.slow
def test_the_document_is_what_the_searches_find(findings: list[Finding]) -> None:
    for finding in findings:
        assert section(finding) in TEXT, (
            f"run python -m rewrites.findings --write docs/reference/findings.md: {finding.name}"
        )
    assert updated(TEXT, findings) == TEXT


def test_links_of_the_overview_lead_to_the_sections() -> None:
    linked = re.findall(r"^\| \[`\w+`\]\(#([^)]+)\)", TEXT, re.MULTILINE)
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert linked == [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert len(linked) == len(FINDERS)


def test_every_section_says_all_six_things() -> None:
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        labels = re.findall(r"^\*\*([^*]+)\*\*", part, re.MULTILINE)
        assert labels == [
            "Claim", "How it was found", "Smallest counterexample", "What holds", "Status", "What it does not mean",
        ]  # fmt: skip


def test_quoted_commands_name_findings() -> None:
    quoted = re.findall(r"python -m rewrites\.findings ([a-z_]+)", " ".join(TEXT.split()))
    assert set(quoted) == {*FINDERS, "all"}  # "all" is the comment in the overview of commands
