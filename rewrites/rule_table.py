"""The table of rules with their verdicts: ``python -m rewrites.rule_table [--write]``.

Each module named in :data:`SOURCES` has a function ``entries()`` that lists its rules.  With ``--write`` the table goes
into ``docs/rules.md``.  The exit code is 1 where a wrong rule is not refuted or another one not proved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

from .rules import TableEntry

__all__ = ["DOCUMENT", "SOURCES", "entries", "expected", "line", "main", "with_table"]

SOURCES = ("rewrites.scalar_rules",)
"""Modules with rules, in the table's order."""

DOCUMENT = Path(__file__).parents[1] / "docs" / "rules.md"
_BEGIN = "<!-- table of rules: written by python -m rewrites.rule_table --write -->"
_END = "<!-- end of the table -->"
_HEAD = ["| Row | Rule | Over | Verdict | Counterexample, or how it is proved |", "|---|---|---|---|---|"]


def entries() -> list[TableEntry]:
    """All rules."""
    return [entry for name in SOURCES for entry in import_module(name).entries()]


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


def with_table(document: str, lines: Iterable[str]) -> str:
    """The document with its table replaced; raises ValueError where it has no place for one."""
    head, begin, rest = document.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the document must have the lines {_BEGIN!r} and {_END!r} around its table")
    return "\n".join([head + begin, *_HEAD, *lines, end + tail])


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rewrites.rule_table", description="Decides all rules.")
    parser.add_argument("--write", action="store_true", help="write the table into docs/rules.md")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per solver and question")
    options = parser.parse_args(arguments)
    lines, wrong = [], 0
    for entry in entries():
        verdict = entry.prove(Discharger(timeout=options.timeout))
        lines.append(line(entry, verdict))
        wrong += verdict.status is not expected(entry)
        print(f"{verdict.status.value:8} {verdict.seconds:6.2f} s  {entry.row}: {entry.rule}", flush=True)
    if options.write:
        DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8"), lines), encoding="utf-8")
    print(f"{len(lines)} rules, {wrong} with another verdict than expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
