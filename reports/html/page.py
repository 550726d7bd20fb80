"""Outcomes as one self-contained HTML page for people who have never seen the project.

The page says what is proved, for which sizes, in which sense, under which assumptions, and what that does not mean.  It
loads nothing and runs no script; a content security policy in it forbids both.  The text comes from templates with
automatic escaping, in which no value can become markup; characters that cannot be seen are shown as escapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.outcomes import NOT_RUN, ProofOutcome

from .claims import VERDICTS, ClaimView, Comparison, claim_view
from .inputs import CampaignRecord, Scaling
from .plots import histogram_plot, percent, scaling_plot, style_sheet, swatch

SIGNS: Mapping[str, str] = {
    "PROVED": "✓", "REFUTED": "✗", "UNKNOWN": "?", "VACUOUS": "∅", "ERROR": "!", NOT_RUN: "–",
}  # fmt: skip
"""The sign of each verdict."""

SCALING_METHODS: Mapping[str, str] = {
    "BMC": "both sides unrolled at this shape; memories resolved while unrolling; data operations as symbols",
    "BMC bits": "the same with data operations bit by bit",
    "BMC arrays": "the textbook encoding: memories as SMT arrays, one question to the solver",
    "CHC fixed": "inferred invariants, with the size domain cut down to this one shape",
    "CHC symbolic": "inferred invariants over the whole size domain; the proof is the same for every row",
}
"""What the methods of ``benchmarks.table3`` are."""


@dataclass(frozen=True)
class Beside:
    """What a page has beside its outcomes.

    By name of claim, ``comparisons`` has the outputs of counterexamples (or why they cannot be shown) and
    ``invariants`` readable lines by loop level; ``methods`` are those of mappings, in words.  ``source`` says in words
    where the outcomes come from; ``versions`` names the tools that wrote it.
    """

    comparisons: Mapping[str, Comparison | str] = field(default_factory=dict)
    invariants: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    methods: Mapping[str, tuple[str, str]] | None = None
    campaigns: Sequence[CampaignRecord] = ()
    scaling: Scaling | None = None
    source: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


def html_page(outcomes: Sequence[ProofOutcome], beside: Beside) -> str:
    """The page, in the order of the outcomes; what is not as expected comes first; the text is always the same."""
    scaling = beside.scaling
    views = [
        claim_view(
            outcome, anchor, beside.comparisons.get(outcome.name), beside.invariants.get(outcome.name), beside.methods
        )
        for outcome, anchor in zip(outcomes, _anchors(o.name for o in outcomes), strict=True)
    ]
    whole = [v for v in views if v.outcome.kind not in BRIEF or not v.as_expected]
    text = (
        _environment()
        .get_template("page.html")
        .render(
            claims=views,
            programs=bool(views) and all(v.outcome.kind == "translation" for v in views),
            whole=whole,
            parts=_parts(whole),
            tables=_tables(views),
            counts=_counts(views),
            verdicts=VERDICTS,
            campaigns=[(record, _histogram(record)) for record in beside.campaigns],
            scaling=scaling,
            scaling_plot="" if scaling is None else Markup(scaling_plot(scaling)),
            scaling_methods=SCALING_METHODS,
            source=beside.source,
            versions=beside.versions,
        )
    )
    return _visible(text) + "\n"


def _parts(views: Sequence[ClaimView]) -> list[tuple[str, str, list[ClaimView]]]:
    """Anchor, heading and claims of each part of the page that has claims."""
    wrong = [v for v in views if not v.as_expected]
    proved = [v for v in views if v.as_expected and v.proved]
    false = [v for v in views if v.as_expected and not v.proved]
    parts = [
        ("attention", "Not as expected", wrong),
        ("proved", "Proved", proved),
        ("refuted", "False on purpose, and refuted", false),
    ]
    return [part for part in parts if part[2]]


BRIEF: Mapping[str, tuple[str, str]] = {"rule": ("Rewrite rules", "rules"), "lemma": ("Lemmas", "lemmas")}
"""Kinds of claims of which there are hundreds: as a heading and as a word.  As expected, each has a line in a table."""


def _tables(views: Sequence[ClaimView]) -> list[tuple[str, str, bool, list[ClaimView]]]:
    """Anchor, heading, whether they are proved, and claims of each table of claims that get one line each."""
    tables = []
    for kind, (heading, word) in BRIEF.items():
        members = [v for v in views if v.outcome.kind == kind and v.as_expected]
        tables.append((f"{word}-proved", heading, True, [v for v in members if v.proved]))
        tables.append((f"{word}-refuted", f"Wrong {word}, refuted", False, [v for v in members if not v.proved]))
    return [table for table in tables if table[3]]


def _counts(views: Sequence[ClaimView]) -> dict[str, int]:
    """How many claims have which verdict, the five of them always; claims without an answer where there are some."""
    counts = Counter(view.verdict for view in views)
    return {verdict: counts[verdict] for verdict in VERDICTS if verdict != NOT_RUN or counts[verdict]}


def _anchors(names: Iterable[str]) -> list[str]:
    """An identifier for each name, made of letters, digits, ``_`` and ``-``; no two are alike."""
    anchors: list[str] = []
    for name in names:
        base = "claim-" + re.sub(r"[^A-Za-z0-9_]+", "-", name)[:80]
        anchor, number = base, 1
        while anchor in anchors:
            number += 1
            anchor = f"{base}-{number}"
        anchors.append(anchor)
    return anchors


def _histogram(record: CampaignRecord) -> Markup:
    return Markup(histogram_plot(record.errors)) if record.errors else Markup("")


# -- templates ------------------------------------------------------------------------------------------


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_not_none,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup(style_sheet())
    environment.globals["signs"] = SIGNS
    environment.globals["swatch"] = lambda index, line: Markup(swatch(index, line=line))
    environment.filters |= {"seconds": _seconds, "percent": lambda value: percent(100 * value), "plural": _plural}
    return environment


def _not_none(value: Any) -> Any:
    """Any value of a template but None, which would be shown as a word."""
    if value is None:
        raise TypeError("a value of the page must be something, not None")
    return value


def _visible(text: str) -> str:
    """The text with every character that cannot be seen as an escape, line ends excepted.

    >>> print(_visible("a\\x00b\\u202e\\nc"))
    a\\x00b\\u202e
    c
    """
    return "\n".join(line if line.isprintable() else "".join(map(_shown, line)) for line in text.split("\n"))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _seconds(value: float | None) -> str:
    """A time with a sensible number of digits; a dash where there is none.

    >>> _seconds(None), _seconds(0.0123), _seconds(7.666), _seconds(312.4)
    ('–', '0.012 s', '7.7 s', '312 s')
    """
    if value is None:
        return "–"
    return f"{value:.{3 if value < 1 else 1 if value < 100 else 0}f} s"


def _plural(count: int, word: str) -> str:
    """The number with its word.

    >>> _plural(1, "claim"), _plural(0, "claim")
    ('1 claim', '0 claims')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
