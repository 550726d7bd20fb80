"""Outcomes as a Markdown summary for a pull request: what is proved, for which sizes, under which assumptions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from reports.outcomes import ProofOutcome, tally

_MANY = {"rule": "rewrite rules", "lemma": "lemmas"}
"""Kinds of claims of which there are hundreds: counted, where they are as expected."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>&~$-])")
"""Characters that Markdown, tables and formulas in it, and HTML may take as their own."""


def summary_text(outcomes: Sequence[ProofOutcome]) -> str:
    """The Markdown text, in the order of the outcomes; what is not as expected comes first."""
    return "\n".join(_lines(list(outcomes))) + "\n"


def _lines(outcomes: list[ProofOutcome]) -> Iterator[str]:
    yield "# ilaverify"
    yield ""
    yield _escaped(tally(outcomes))
    wrong = [o for o in outcomes if not o.as_expected]
    if wrong:
        yield ""
        yield "## Not as expected"
        for outcome in wrong:
            yield ""
            yield f"**{_escaped(outcome.name)}**: {outcome.status}, expected {outcome.expected}."
            if outcome.reason:
                yield ""
                yield f"> {_escaped(outcome.reason)}"
    yield ""
    yield "## Verdicts"
    yield ""
    yield "| claim | verdict | as expected | sizes | equality | obligations | time | origin |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | --- |"
    shown = [o for o in outcomes if o.kind not in _MANY or not o.as_expected]
    for outcome in shown:
        claim = outcome.claim or {}
        sizes = claim.get("size_domain", "") if outcome.status == "PROVED" else ""
        cells = [
            outcome.name,
            outcome.status,
            "yes" if outcome.as_expected else "NO",
            sizes,
            claim.get("equality", "") if outcome.status == "PROVED" else "",
            str(outcome.obligations or ""),
            f"{outcome.seconds:.1f} s",
            outcome.origin if outcome.document else "",
        ]
        yield "| " + " | ".join(_escaped(cell) for cell in cells) + " |"
    for kind, words in _MANY.items():
        counts = Counter(o.status for o in outcomes if o.kind == kind and o.as_expected)
        if counts:
            yield ""
            yield f"As expected besides: {words}, {', '.join(f'{n} {status}' for status, n in sorted(counts.items()))}."
    refuted = [o for o in shown if o.counterexample]
    if refuted:
        yield ""
        yield "## Counterexamples"
        yield ""
        for outcome in refuted:
            yield f"* {_escaped(outcome.name)}: {_escaped(outcome.counterexample)}"
    proved = [o for o in shown if o.status == "PROVED" and o.claim is not None]
    if proved:
        yield ""
        yield "## Claims and assumptions"
        for outcome in proved:
            assert outcome.claim is not None
            yield ""
            yield f"**{_escaped(outcome.name)}**: {_escaped(outcome.claim['statement'])}"
            yield ""
            for text in outcome.claim["assumptions"] or ["no assumptions"]:
                yield f"* {_escaped(text)}"
    notes = list(dict.fromkeys(note for o in outcomes for note in o.notes))
    if notes:
        yield ""
        yield "## Notes"
        yield ""
        yield from (f"* {_escaped(note)}" for note in notes)
    yield ""
    yield "PROVED relates two models; that hardware and compiler behave like them is another question."


def _escaped(text: str) -> str:
    """Text on one line in which no character has a meaning of its own; control characters become escapes."""
    flat = " ".join(text.split())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in flat)
    return _SPECIAL.sub(r"\\\1", shown)
