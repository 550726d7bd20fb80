"""``campaign mlir_passes``: random MLIR programs and the passes of several releases of ``mlir-opt``."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ilaverify.cli.arguments import require_writable
from ilaverify.cli.outcomes import print_json
from ilaverify.cli.progress import Line
from ilaverify.errors import EXIT_INTERRUPTED, EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

if TYPE_CHECKING:
    from ilaverify.mlir.campaign import Result

COLUMNS = ("PROVED", "REFUTED", "UNKNOWN", "VACUOUS", "ERROR", "same", "refused", "crashed", "absent")


def run(options: argparse.Namespace) -> int:
    """Runs the campaign; the exit code is that of the verb."""
    from ilaverify.mlir.campaign import NAME, Request, converters_for, pipelines_for
    from ilaverify.mlir.campaign import run as run_campaign
    from ilaverify.proving.workers import Limits

    if options.replay is not None or options.cluster is not None:
        raise UsageError(f"{NAME} has no --replay and no --cluster; give a failure's two files to ilaverify tv")
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    converters = converters_for(options.mlir_opt)
    pipelines = pipelines_for(options.passes)
    request = Request(options.examples, options.seed, converters, pipelines, Limits(options.jobs, timeout=120.0))
    if not options.json:
        print(f"{NAME}: {options.examples} programs, seed {options.seed}, {', '.join(c.release for c in converters)}")
    line = Line(30.0)
    result = run_campaign(request, lambda done: line.show(lambda: f"{done} of {options.examples} programs"))
    line.clear()
    written: list[Path] = []
    if options.directory is not None:
        _write(result, options.directory, written)
    if options.json:
        print_json(result.as_json(), written)
    else:
        print(_report(result))
        for path in written:
            print(f"written   {path}")
    if result.interrupted:
        return EXIT_INTERRUPTED
    if any(failure.outcome.verdict == "REFUTED" for failure in result.failures):
        return EXIT_REFUTED
    return EXIT_PROVED if any(o.verdict == "PROVED" for o in result.outcomes) else EXIT_UNPROVED


def _report(result: Result) -> str:
    lines = [f"{'release':<18} {'pass':<34} " + " ".join(f"{c:>8}" for c in COLUMNS)]
    total = Counter[str]()
    for (release, name), counts in result.counts().items():
        total += counts
        lines.append(_row(release, name or "(read)", counts))
    lines.append(_row("all", "", total))
    for failure in result.failures:
        outcome = failure.outcome
        again = f", and {failure.again} times more" if failure.again else ""
        lines += ["", f"{outcome.verdict}  {outcome.pass_name} of {outcome.release}{again}: {outcome.reason}"]
        lines += ["  before:", *_indented(outcome.source), "  after:", *_indented(outcome.target)]
    if result.failures:
        lines += [
            "",
            "each is a fault of the pass, a licence that MLIR gives, or our reading of an operator: look at it",
        ]
    return "\n".join(lines)


def _row(release: str, name: str, counts: Counter[str]) -> str:
    return f"{release:<18} {name[:34]:<34} " + " ".join(f"{counts[c]:>8}" for c in COLUMNS)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


def _write(result: Result, directory: Path, written: list[Path]) -> None:
    """Writes the result, and the two programs of each failure; each path is added when it is there."""
    from ilaverify.mlir.campaign import NAME
    from reports.certificate import write_atomically

    texts = {f"{NAME}.campaign.json": json.dumps(result.as_json(), indent=1, sort_keys=True) + "\n"}
    for number, failure in enumerate(result.failures, 1):
        stem = f"{NAME}.{number}-{failure.outcome.pass_name.partition('{')[0]}"
        texts[f"{stem}.before.mlir"] = failure.outcome.source
        if failure.outcome.target:
            texts[f"{stem}.after.mlir"] = failure.outcome.target
    for name, text in texts.items():
        write_atomically(directory / name, text)
        written.append(directory / name)
