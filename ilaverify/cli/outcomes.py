"""What verbs share: which claims are asked for, how outcomes are shown and counted, and the JSON of ``--json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from ilaverify.errors import EXIT_BAD_USAGE, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

if TYPE_CHECKING:
    from reports.outcomes import ProofOutcome
    from reports.subjects import Entry

RESULT_SCHEMA = "ilaverify-prove-2"
"""Version of the JSON that a run prints."""


def print_json(document: Any, written: Iterable[object] | None = None) -> None:
    """Prints a document for machines, with the files that were written."""
    if written is not None:
        document = document | {"written": [str(path) for path in written]}
    print(json.dumps(document, indent=2, sort_keys=True))


def chosen_entries(
    names: Sequence[str], *, every: bool, kinds: Sequence[str] = (), targets: Sequence[str] = ()
) -> dict[str, Entry]:
    """The claims asked for, each once, in the catalogue's order; raises UsageError unless it is clear which."""
    from ilaverify.catalogue import all_entries, mapping_entries, mappings, no_claim

    if every + bool(names) + bool(kinds) + bool(targets) != 1:
        raise UsageError("prove must be given either the names of claims, or --kind, or --target, or --all")
    if targets:
        from ilaverify.catalogue import find_backends
        from ilaverify.models.compilation import claims_for

        needed = set(claims_for(find_backends(targets)))
        return {name: entry for name, entry in all_entries().items() if name in needed}
    if names and mappings().keys() >= set(names):
        return {name: entry for name, entry in mapping_entries().items() if name in names}
    known = mapping_entries() if set(kinds) == {"mapping"} else all_entries()
    for name in names:
        if name not in known:
            raise no_claim(name, known)
    return {name: e for name, e in known.items() if every or name in names or e.kind in kinds}


def exit_code_of(outcomes: Sequence[ProofOutcome]) -> int:
    """1 one refuted that should hold, 64 a claim that its author's code does not build, 0 all as expected, else 2."""
    wrong = [o for o in outcomes if not o.as_expected]
    if any(o.status == "REFUTED" and o.expected != "REFUTED" for o in wrong):
        return EXIT_REFUTED
    if any(o.refused for o in outcomes):
        return EXIT_BAD_USAGE
    return EXIT_UNPROVED if wrong or not outcomes else EXIT_PROVED


def name_width(names: Iterable[str]) -> int:
    """The width of a column of names."""
    return max((len(name) for name in names), default=0)


def show_outcome(outcome: ProofOutcome, width: int) -> str:
    """One outcome as text, with names in a column of this width."""
    from rewrites.claims.advice import METHODS, advice_for
    from rewrites.compiler.artefact.origins import printable

    mark = "" if outcome.as_expected and outcome.status == "PROVED" else f"  expected {outcome.expected}"
    store = ", from store" if outcome.from_store else ""
    lines = [f"{outcome.status:<8} {outcome.name:<{width}} {outcome.seconds:6.1f} s{store}{mark}"]
    if outcome.kind != "mapping" and outcome.as_expected:
        return lines[0]  # there are hundreds of them
    if outcome.claim is not None and outcome.status == "PROVED":
        lines.append(f"         {outcome.claim['size_domain']}")
    if outcome.reason:
        lines.append(f"         {printable(shorten(outcome.reason, 300))}")
        if outcome.status == "UNKNOWN" and outcome.method in METHODS and (advice := advice_for(outcome.reason)):
            lines.append(f"         advice: {advice}")
    return "\n".join(lines)


def outcome_json(outcome: ProofOutcome) -> dict[str, Any]:
    """An outcome as it stands in the output; certificates are files of their own."""
    fields = ("name", "kind", "status", "expected", "as_expected", "origin", "reason", "seconds", "method", "claim",
            "obligations", "runs")  # fmt: skip
    return {name: getattr(outcome, name) for name in fields} | {
        "solvers": list(outcome.solvers),
        "counterexample": outcome.counterexample or None,
        "counterexample_data": outcome.shown,
        "location": {"file": outcome.file, "line": outcome.line},
        "notes": list(outcome.notes),
    }
