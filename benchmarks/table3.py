"""Table 3 of the D2A/3LA paper (arXiv 2203.00218, section 4.4.1): FlexASR MaxPool, BMC against CHC.

Every cell is one process, timed from outside from start to exit, interpreter start-up and both solvers included:

* *BMC*: both sides unrolled, memories resolved by partial evaluation, uninterpreted max with its lemma;
* *BMC bits*: the same with the bit-exact max;
* *BMC arrays*: the textbook encoding with SMT arrays, one query (z3, then cvc5), 300 s limit per cell;
* *CHC fixed*: the CHC method with the size domain cut down to this one size;
* *CHC symbolic*: the CHC method over the whole size domain; it does not depend on the row.

The paper's figures are from another machine (i7-5500U, two 2.4 GHz cores, 8 GB) and are shown for orientation; ratios
across machines mean little.  ``--limit`` changes the limit, ``--shapes`` the rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, write

SHAPES = ("2x16", "4x16", "4x32", "8x64", "16x64", "64x256")
COLUMNS = ("BMC", "BMC bits", "BMC arrays", "CHC fixed", "CHC symbolic")
PAPER = {
    "2x16": ("443", "38"),
    "4x16": ("1976", "37"),
    "4x32": ("7954", "146"),
    "8x64": ("> 10800", "1831"),
    "16x64": ("> 10800", "5177"),
}
"""Seconds of BMC and CHC in the paper's table 3."""

COMMAND = (sys.executable, "-m", "ilaverify", "mapping", "flexasr_maxpool")


def command(column: str, shape: str) -> list[str]:
    """The command of one cell."""
    match column:
        case "BMC":
            return [*COMMAND, "--method", "bmc", "--shape", shape, "--data", "uninterpreted"]
        case "BMC bits":
            return [*COMMAND, "--method", "bmc", "--shape", shape, "--data", "bits"]
        case "BMC arrays":
            options = ["--data", "uninterpreted", "--memory", "arrays", "--timeout", "100000"]
            return [*COMMAND, "--method", "bmc", "--shape", shape, *options]
        case "CHC fixed":
            return [sys.executable, "-m", "benchmarks.table3", "--fixed", shape]
        case _:
            return [*COMMAND, "--method", "chc"]


def fixed(shape: str) -> int:
    """Proves the mapping by CHC with its size domain cut down to one shape; the exit code says PROVED or not."""
    from dataclasses import replace

    from chc.mapping.prove import prove
    from ilaverify.catalogue import find_mapping
    from ilaverify.errors import exit_code

    rows, columns = map(int, shape.split("x"))
    whole = find_mapping("flexasr_maxpool")
    sizes = whole.sizes_of(rows, columns)
    pinned = tuple((f"{n} = {v}", whole.parameters[n] == v) for n, v in sizes.items())
    mapping = replace(whole, domain=(*whole.domain, *pinned), sizes_of=lambda *_: dict(sizes))
    verdict = prove(mapping)
    print(verdict.status.value, verdict.reason)
    return exit_code(verdict.status)


def measure(argv: Sequence[str], limit: float) -> dict[str, Any]:
    """Wall-clock seconds of one process and how it ended."""
    start = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"seconds": limit, "answer": "timeout"}
        seconds = time.perf_counter() - start
    answer = output.split(maxsplit=1)[0] if output else ""
    return {"seconds": round(seconds, 2), "answer": answer, "exit": process.returncode}


def show(results: dict[str, dict[str, Any]]) -> str:
    """The table as Markdown."""
    lines = ["| input | " + " | ".join(COLUMNS) + " | paper BMC | paper CHC |"]
    lines.append("|" + " --- |" * (len(COLUMNS) + 3))
    for shape, row in results.items():
        cells = []
        for column in COLUMNS:
            cell = row[column]
            text = f"> {cell['seconds']:.0f}" if cell["answer"] == "timeout" else f"{cell['seconds']:.2f}"
            cells.append(text if cell["answer"] in ("PROVED", "timeout") else f"{text} ({cell['answer']})")
        lines.append(f"| {shape} | " + " | ".join((*cells, *PAPER.get(shape, ("-", "-")))) + " |")
    return "\n".join(lines)


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """The table as a plot with logarithmic axes; needs the extra ``plot``."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "table3"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    elements = [int(a) * int(b) for a, b in (s.split("x") for s in results)]
    for column, marker in zip(COLUMNS, "osv^D", strict=True):
        seconds = [row[column]["seconds"] for row in results.values()]
        (line,) = axes.plot(elements, seconds, marker=marker, label=column)
        late = [i for i, row in enumerate(results.values()) if row[column]["answer"] != "PROVED"]
        axes.plot([elements[i] for i in late], [seconds[i] for i in late], "x", color=line.get_color(), markersize=12)
    paper = [(e, float(PAPER[s][1])) for e, s in zip(elements, results, strict=True) if s in PAPER]
    axes.plot(*zip(*paper, strict=True), "--", color="grey", label="paper, CHC (other machine)")
    axes.set(xscale="log", yscale="log", xlabel="input elements", ylabel="seconds, whole process")
    axes.set_title("FlexASR MaxPool mapping: time to PROVED (crosses: limit reached)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str]) -> int:
    """Measures the table, prints it, and writes JSON, Markdown and a plot to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table3", description="Table 3: BMC against CHC.")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds per cell")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--fixed", metavar="SHAPE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fixed:
        return fixed(options.fixed)
    results: dict[str, dict[str, Any]] = {}
    for shape in options.shapes.split(","):
        results[shape] = {}
        for column in COLUMNS:
            results[shape][column] = measure(command(column, shape), options.limit)
            cell = results[shape][column]
            print(f"{shape:>7}  {column:<13} {cell['answer']:<8} {cell['seconds']:>8.2f} s", flush=True)
    text = show(results)
    print(f"\n{text}")
    note = "Seconds, whole process.  Machine and versions: table3.json."
    write("table3", {"limit": options.limit, "cells": results}, f"# Table 3\n\n{note}\n\n{text}\n")
    draw(results, RESULTS / "table3.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
