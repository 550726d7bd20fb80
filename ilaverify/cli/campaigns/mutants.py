"""``prove NAME --mutants N``: fault campaigns on claims, as a table.

Exit codes: 0 no mutant that differs is PROVED, 1 one is, 2 no mutant of some claim differs, 64 bad usage.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ilaverify.cli.outcomes import print_json
from ilaverify.errors import EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ilaverify.proving.fault_campaign import Campaign
    from reports.subjects import Entry

RESULT_SCHEMA = "ilaverify-mutants-1"
"""Version of the JSON that is printed."""

_DIRECTORY = Path("mutants")
_KINDS = ("mapping", "rule")
_COLUMNS = ("made", "differ", "not PROVED", "wrongly PROVED", "no difference")


def try_mutants(entries: Mapping[str, Entry], options: argparse.Namespace) -> int:
    """Runs the campaigns that the options of ``prove`` ask for, and prints them; the exit code.

    Each wrongly proved mutant is written to a file of its own, in the directory of ``-o`` or in ``mutants``.
    """
    from ilaverify.proving.fault_campaign import PROOF_SECONDS, run_campaign
    from ilaverify.proving.workers import Limits
    from smt_encodings.claims import Status

    chosen = {n: e for n, e in entries.items() if e.kind in _KINDS and e.expected is Status.PROVED}
    others = [name for name in options.names if name not in chosen]
    if not entries or not (chosen or others):
        raise UsageError("--mutants must have a mapping or a rule to change; none of these claims is one")
    if others:
        raise UsageError(f"--mutants must be of mappings or rules that must be PROVED, not of {', '.join(others)}")
    limits = Limits(options.jobs, min(PROOF_SECONDS, options.timeout), options.memory)
    subjects = [entry.build() for entry in chosen.values()]
    campaigns: list[Campaign] = []
    written: list[Path] = []
    wide = max(len(s.name) for s in subjects)
    if not options.json:
        print(f"{'claim':<{wide}}  {'  '.join(_COLUMNS)}")
    for subject in subjects:
        campaign = run_campaign(subject, options.mutants, seed=options.seed or 0, limits=limits)
        campaigns.append(campaign)
        if not options.json:
            _show(campaign, wide)
        written += _write(campaign, options.directory or _DIRECTORY)
    if options.json:
        print_json({"schema": RESULT_SCHEMA, "claims": [c.to_json() for c in campaigns]}, written)
    else:
        for path in written:
            print(f"written   {path}")
    if any(c.wrongly_proved for c in campaigns):
        return EXIT_REFUTED
    return EXIT_PROVED if all(c.different for c in campaigns) else EXIT_UNPROVED


def _show(campaign: Campaign, wide: int) -> None:
    not_proved = campaign.not_proved
    equal = len(campaign.tried) - len(campaign.different) - len(campaign.not_run)
    numbers = len(campaign.tried), len(campaign.different), not_proved.total(), len(campaign.wrongly_proved), equal
    row = "  ".join(f"{n:>{len(c)}}" for n, c in zip(numbers, _COLUMNS, strict=True))
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(not_proved.items()))
    more = f"; {len(campaign.not_run)} not run" if campaign.not_run else ""
    print(f"{campaign.name:<{wide}}  {row}   {campaign.method}: {statuses or 'none'}{more}", flush=True)
    for tried in campaign.wrongly_proved:
        print(f"  WRONGLY PROVED: mutant {tried.number}: {tried.what}\n    {tried.difference}")


def _write(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes each wrongly proved mutant: how to make it again, what was changed, and where both sides differ."""
    from reports.certificate import write_atomically

    written = []
    for tried in campaign.wrongly_proved:
        path = directory / f"{campaign.name}.mutant-{campaign.seed}-{tried.number}.json"
        content = {
            "claim": campaign.name,
            "method": campaign.method,
            "seed": campaign.seed,
            "mutant": tried.number,
            "change": tried.what,
            "difference": tried.difference,
        }
        write_atomically(path, json.dumps(content, indent=2) + "\n")
        written.append(path)
    return written
