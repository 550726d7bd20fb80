"""Proving everything from an empty store, again from a full one, and checking every certificate with each solver.

Whole processes, two claims at a time.  The seconds of one claim are those of its process in the first run, in which the
other core proves another claim.  ``python -m benchmarks.proofs PROOFS`` leaves the certificates in a new folder PROOFS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, write

JOBS = "2"
TARGETS = {
    "prove --all, empty store": 900.0,
    "prove --all, full store": 10.0,
    "check --solver z3": 300.0,
    "check --solver cvc5": 300.0,
}
"""Seconds that each command is meant to stay below on 2 cores."""

MAPPING_TARGET = 60.0


def run(*arguments: str) -> tuple[float, int, str]:
    """Seconds, exit code and standard output of one command."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "ilaverify", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return time.perf_counter() - start, done.returncode, done.stdout


def main() -> int:
    """Measures everything once and writes JSON, Markdown and a plot to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs")
    parser.add_argument("proofs", nargs="?", type=Path, metavar="PROOFS", help="a new folder for the certificates")
    kept = parser.parse_args().proofs
    totals: dict[str, dict[str, Any]] = {}
    claims: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        store, proofs = str(Path(directory) / "store.sqlite3"), str(kept or Path(directory) / "proofs")
        commands = {
            "prove --all, empty store": ["prove", "--all", "--store", store, "-o", proofs, "--json"],
            "prove --all, full store": ["prove", "--all", "--store", store, "--json"],
            "check --solver z3": ["check", proofs, "--solver", "z3", "--json"],
            "check --solver cvc5": ["check", proofs, "--solver", "cvc5", "--json"],
        }
        for label, arguments in commands.items():
            seconds, code, output = run(*arguments, "--jobs", JOBS)
            report = json.loads(output)
            if arguments[0] == "prove":
                claims = claims or report["claims"]
                right = sum(c["as_expected"] for c in report["claims"])
                answers = f"{right} of {len(report['claims'])} as expected"
            else:
                answers = f"{sum(c['accepted'] for c in report)} of {len(report)} accepted"
            totals[label] = {"seconds": round(seconds, 1), "exit": code, "answers": answers}
            print(f"{label:<43} {seconds:8.1f} s  (target {TARGETS[label]:.0f} s)  {answers}", flush=True)
    mappings = [c for c in claims if c["kind"] == "mapping" and c["status"] == "PROVED"]
    rows = [{k: c[k] for k in ("name", "method", "obligations", "seconds")} for c in mappings]
    counts = Counter(f"{c['kind']} {c['status']}" for c in claims)
    record = {"jobs": int(JOBS), "totals": totals, "claims": dict(sorted(counts.items())), "mappings": rows}
    write("proofs", record, show(totals, rows, counts))
    draw(rows, RESULTS / "proofs.svg")
    return 0 if all(t["exit"] == 0 for t in totals.values()) else 1


def show(totals: dict[str, dict[str, Any]], mappings: list[dict[str, Any]], counts: Counter[str]) -> str:
    """The tables as Markdown."""
    lines = ["# Proving and checking everything", ""]
    lines += ["Seconds, whole processes, two claims at a time, one run.  Machine and versions: proofs.json.", ""]
    lines += ["| command | seconds | target | answers |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {n} | {t['seconds']:.1f} | {TARGETS[n]:.0f} | {t['answers']} |" for n, t in totals.items()]
    lines += ["", f"Claims: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}.", ""]
    lines += [
        f"| mapping | method | obligations | seconds (target {MAPPING_TARGET:.0f}) |",
        "| --- | --- | ---: | ---: |",
    ]
    lines += [f"| {m['name']} | {m['method']} | {m['obligations']} | {m['seconds']:.1f} |" for m in mappings]
    return "\n".join([*lines, ""])


def draw(mappings: list[dict[str, Any]], path: Path) -> None:
    """The seconds of each mapping's proof as bars; needs the extra ``plot``."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "proofs"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.28 * len(mappings) + 1.2))
    names = [m["name"] for m in mappings][::-1]
    axes.barh(names, [m["seconds"] for m in mappings][::-1], color="#3b6ea5")
    axes.axvline(MAPPING_TARGET, color="grey", linestyle="--", linewidth=1)
    axes.set(xlabel="seconds, from an empty store, two proofs at a time (dashed: target)")
    axes.set_title("Mappings proved for every size (those by hash: for one shape)")
    axes.grid(alpha=0.3, axis="x")
    axes.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
