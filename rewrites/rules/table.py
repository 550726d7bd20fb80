"""Tables of rules with their verdicts: ``python -m rewrites.rules.table [--write] [scalars] [tensors]``.

Each module named in :data:`SOURCES` has a function ``entries()`` that lists its rules.  With ``--write`` the tables go
into ``docs/reference/rules.md``.  The exit code is 1 where a wrong rule is not refuted or another one not proved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from chc.scalar_rules.rule import TableEntry
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

SOURCES: Mapping[str, str] = {
    "scalars": "rewrites.rules.scalar.catalogue",
    "tensors": "rewrites.rules.tensor.catalogue",
}
"""Modules with rules; each has a table of its own."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "rules.md"
_BEGIN = "<!-- rules on {}: written by python -m rewrites.rules.table --write -->"
_END = "<!-- end of rules on {} -->"
_HEAD = ["| Row | Rule | Over | Verdict | Counterexample, or how it is proved |", "|---|---|---|---|---|"]


def entries(source: str) -> list[TableEntry]:
    """All rules of a source."""
    rules: list[TableEntry] = import_module(SOURCES[source]).entries()
    return rules


def expected(entry: TableEntry) -> Status:
    """The verdict that a rule must get."""
    return Status.REFUTED if entry.wrong else Status.PROVED


def line(entry: TableEntry, verdict: Verdict) -> str:
    """The table's line of a rule."""
    if verdict.status is Status.REFUTED:
        evidence = f"`{verdict.details['counterexample']}`"
    elif verdict.status is Status.PROVED:
        ways = ", ".join(i.value.replace("_", " ") for i in verdict.claim.interpretations)
        assumed = "; ".join(verdict.claim.assumptions)
        evidence = ways + (f"; assumed: {assumed}" if assumed else "")
    else:
        evidence = verdict.reason
    note = f". {entry.note}" if entry.note else ""
    cells = [entry.row, f"`{entry.rule}`", entry.domain, verdict.status.value, evidence + note]
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def with_table(document: str, source: str, lines: Iterable[str]) -> str:
    """The document with the table of a source replaced; raises ValueError where it has no place for it."""
    first, last = _BEGIN.format(source), _END.format(source)
    head, begin, rest = document.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the document must have the lines {first!r} and {last!r} around its table")
    return "\n".join([head + begin, *_HEAD, *lines, end + tail])


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rewrites.rules.table", description="Decides rules.")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/reference/rules.md")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per solver and question")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=f"{' or '.join(SOURCES)}; all by default")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sources if name not in SOURCES]
    if unknown:
        parser.error(f"rules must be those on {' or '.join(SOURCES)}, not on {unknown[0]}")
    count = wrong = 0
    for source in options.sources or SOURCES:
        lines = []
        for entry in entries(source):
            verdict = entry.prove(Discharger(timeout=options.timeout))
            lines.append(line(entry, verdict))
            wrong += verdict.status is not expected(entry)
            print(f"{verdict.status.value:8} {verdict.seconds:6.2f} s  {entry.row}: {entry.rule}", flush=True)
        count += len(lines)
        if options.write:
            text = with_table(DOCUMENT.read_text(encoding="utf-8"), source, lines)
            DOCUMENT.write_text(text, encoding="utf-8")
    print(f"{count} rules, {wrong} with another verdict than expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
