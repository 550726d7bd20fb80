"""Findings, their sections of Markdown, and the update of the document that has them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BEGIN = "<!-- begin: written by python -m rewrites.findings --write docs/reference/findings.md -->"
END = "<!-- end -->"


class NotFound(Exception):
    """A finding was not found: a search ended without a counterexample, or a repaired form was not proved."""


@dataclass(frozen=True)
class Finding:
    """One claim that was refuted by search, with what a reader needs to judge it; texts are Markdown.

    ``claim`` is the property that does not hold; ``method`` says how the counterexample was found, and
    ``counterexample`` what it is, in one line; ``holds`` gives the repaired form, or the condition under which the
    claim holds, and how sure that is; ``status`` the verdict on both.  ``evidence`` are blocks of more numbers, all
    computed during the search.  ``limits`` says what the finding does not mean.
    """

    name: str
    title: str
    claim: str
    method: str
    counterexample: str
    holds: str
    status: str
    limits: str
    evidence: tuple[str, ...] = ()


def require(condition: bool, what: str) -> None:
    """Raises NotFound with ``what`` unless the condition holds."""
    if not condition:
        raise NotFound(what)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [[1, 2]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    rendered = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join(rendered).replace("| --- | ", "|---|").replace("--- | ", "---|").replace("|--- |", "|---|")


def section(finding: Finding) -> str:
    """A finding as a section of Markdown."""
    parts = [
        f"## {finding.title}",
        _paragraph(f"**Claim** (refuted): {finding.claim}"),
        _paragraph(f"**How it was found**: {finding.method} Command: `python -m rewrites.findings {finding.name}`."),
        _paragraph(f"**Smallest counterexample**: {finding.counterexample}"),
        *finding.evidence,
        _paragraph(f"**What holds**: {finding.holds}"),
        _paragraph(f"**Status**: {finding.status}"),
        _paragraph(f"**What it does not mean**: {finding.limits}"),
    ]
    return "\n\n".join(parts)


def updated(document: str, findings: Sequence[Finding]) -> str:
    """The document with its generated part replaced; raises ValueError where its marks are missing."""
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"Document must contain the lines {BEGIN!r} and {END!r}; add them")
    overview = table(
        ["finding", "property that fails", "how found", "smallest counterexample", "holds", "status"],
        [
            [f"[`{f.name}`](#{_anchor(f.title)})", f.claim, f.method, f.counterexample, f.holds, f.status]
            for f in findings
        ],
    )
    return head + "\n\n".join([BEGIN, overview, *map(section, findings), END]) + tail


def _anchor(title: str) -> str:
    """The name that GitHub gives to a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
