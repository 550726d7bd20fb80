"""The networks that the onnx package ships, compiled for HLSCNN and FlexASR, and run on the simulators.

``python -m benchmarks.shipped_models PROOFS [NAME ...]`` needs the extra ``compare``, and certificates that ``ilaverify
prove --target hlscnn,flexasr -o PROOFS`` has written.  Every network, with random weights (the package ships none), is
compiled and run once by the commands ``ilaverify compile`` and ``ilaverify run``, as whole processes of one thread.
*Within* counts accelerator operators within their proved bounds on this input; others have no bound there.  *Error* is
that of the outputs, against onnxruntime, relative to the largest output: number formats were chosen by two random
inputs, and it says nothing about trained weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.record import page, recorded, write
from examples.models.shipped import SHIPPED

TARGETS = "hlscnn,flexasr"
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def command(*arguments: str) -> tuple[float, dict[str, Any]]:
    """Seconds and JSON output of ``ilaverify`` with these arguments; raises RuntimeError where it fails."""
    start = time.perf_counter()
    whole = [sys.executable, "-m", "ilaverify", *arguments, "--json"]
    done = subprocess.run(whole, env=os.environ | SINGLE, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):  # 2 is a run, too: random inputs may be beyond what calibration foresaw
        raise RuntimeError(
            f"ilaverify {' '.join(arguments)} must succeed, not exit with {done.returncode}: {done.stderr}"
        )
    report: dict[str, Any] = json.loads(done.stdout)
    return time.perf_counter() - start, report


def measure(name: str, proofs: Path) -> dict[str, Any]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as directory:
        model, compiled = Path(directory) / f"{name}.onnx", Path(directory) / "compiled"
        subprocess.run(
            [sys.executable, "-m", "examples.models", name, "-o", str(model)], check=True, capture_output=True
        )
        options = ("--target", TARGETS, "--proofs", str(proofs), "-o", str(compiled))
        compiling, compilation = command("compile", str(model), *options)
        size = sum(p.stat().st_size for p in compiled.rglob("*") if p.is_file())
        running, ran = command("run", str(compiled), "--random", "1", "--seed", "1", "--reference", "onnxruntime")
    operators = ran["operators"]
    return {
        "name": name,
        "nodes": len(compilation["accelerated"]),
        "programs": sum(a["programs"] for a in compilation["accelerated"]),
        "within": sum(o["inside"] is True for o in operators),
        "beyond": sum(o["inside"] is False for o in operators),
        "error": max(o["error"] / o["largest_of_reference"] for o in ran["outputs"]),
        "megabytes": size / 1e6,
        "compile": compiling,
        "run": running,
        "simulated": ran["accelerator_seconds"],
        "host": {f"{h['operator']}: {h['reason']}": h["count"] for h in compilation["host"]},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    heads = ["network", "nodes", "programs", "within", "error", "MB", "compile, s", "run, s", "of it simulators, s"]
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for row in rows:
        numbers = [f"{row['nodes']}", f"{row['programs']}", f"{row['within']}", f"{row['error']:.2g}"]
        numbers += [f"{row['megabytes']:.0f}", *(f"{row[k]:.1f}" for k in ("compile", "run", "simulated"))]
        lines.append(f"| {row['name']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Measures the networks and writes JSON and Markdown to ``benchmarks/results``; 1 where a bound was left."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shipped_models")
    parser.add_argument("proofs", type=Path, help="certificates of ilaverify prove --target hlscnn,flexasr -o PROOFS")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SHIPPED)}; default: all")
    options = parser.parse_args(arguments)
    rows = {row["name"]: row for row in recorded("shipped_models")["rows"]}
    for name in options.names or SHIPPED:
        rows[name] = measure(name, options.proofs)
        print(json.dumps(rows[name]), flush=True)
        ordered = [rows[n] for n in SHIPPED if n in rows]
        text = page("shipped_models", "Shipped networks", __doc__, table(ordered))
        write("shipped_models", {"command": "python -m benchmarks.shipped_models PROOFS", "rows": ordered}, text)
    return int(any(row["beyond"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
