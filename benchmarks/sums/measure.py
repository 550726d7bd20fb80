"""Sums and dot products up to reduction order: the hash encoding against multisets, in z3 and cvc5.

The pairs are those of mlir-tv's benchmark of this encoding (:mod:`benchmarks.sums.pairs`), with wrong twins of each.
A cell is one process that builds the claim and has it decided, in one of these ways:

* *decided*: ``prove_sums``, as it is called by default: equal hashes cancel, and the verdict is there;
* *hash*: the full text of the hash encoding, put to one solver;
* *multisets*: the text of the multisets of ``benchmarks.sums.encode``, put to one solver;
* *published*: the text of multisets as mlir-tv publishes them (:mod:`benchmarks.sums.published`), likewise.

z3 is given multisets in two ways: with several attempts, as the product asks, which is the first way for the product's
multisets, and once, with the tactics that z3 picks, which is the first for those of mlir-tv.  Where the first way
finishes within the limit, the other is measured as well, and the faster one counts.

Times are processor seconds, because other work may run on the machine, from before the claim is built to the answer.
(They are those of the thread: Linux measures those of the process by ticks of milliseconds, once the process has a
limit, and solvers use one thread.)  Loading Python and the solvers is left out, and so is a solver's first, empty
question.  The shortest of many empty questions says how fast anything that asks a solver could be.  What takes less
than two seconds is done three times, what takes less than a tenth ten times, and less than a millisecond 300 times; the
shortest time is shown, because other work only ever adds.  A multiset cell is skipped where the same series has reached
the limit at a smaller size.

A wrong twin is decided by ``prove_sums``: refuted by numbers that are then evaluated again.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.sums.encode import Encoding, script
from benchmarks.sums.pairs import LENGTHS, PAIRS, RIGHT, TWINS
from benchmarks.sums.prove import prove_sums
from benchmarks.sums.published import published
from benchmarks.sums.report import DECIDED, MULTISETS, draw, markdown
from benchmarks.sums.terms import SumClaim, evaluate
from smt_encodings.claims import Answer, Status
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

RESULTS = Path(__file__).parents[1] / "results"
STORED = RESULTS / "sums.json"

EMPTY = "(set-logic QF_UFBV)\n(declare-const p Bool)\n(assert (and p (not p)))\n(check-sat)\n"
"""A question that says nothing: what a solver's answer takes at least."""

Check = Callable[[str, float], Answer]
Text = Callable[[SumClaim], str]

z3_once: Check = functools.partial(solver_z3.check, alone=math.inf)
hashes: Text = functools.partial(script, encoding=Encoding.HASH)
counts: Text = functools.partial(script, encoding=Encoding.COUNTS)
bags: Text = functools.partial(script, encoding=Encoding.BAGS)
published_counts: Text = functools.partial(published, bags=False)
published_bags: Text = functools.partial(published, bags=True)

COLUMNS: dict[str, tuple[tuple[Check, Text], ...]] = {
    "z3 hash": ((solver_z3.check, hashes),),
    "cvc5 hash": ((solver_cvc5.check, hashes),),
    "z3 counts": ((solver_z3.check, counts), (z3_once, counts)),
    "cvc5 bags": ((solver_cvc5.check, bags),),
    "z3 published": ((z3_once, published_counts), (solver_z3.check, published_counts)),
    "cvc5 published": ((solver_cvc5.check, published_bags),),
}
"""The ways to have a solver asked, of each column but :data:`DECIDED`."""

REPETITIONS = ((0.001, 300), (0.1, 10), (2.0, 3))
"""Below how many seconds a measurement is done how often."""

EMPTY_QUESTIONS = 200
"""How often the empty question is asked."""

WALL = 15
"""A process gets so many times the limit of real time, because the limit is one of processor time."""


def repeated(once: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The shortest of a few measurements; raises RuntimeError where answers differ."""
    runs = [once()]
    times = next((n for below, n in REPETITIONS if runs[0]["seconds"] < below), 1)
    runs += [once() for _ in range(times - 1)]
    if len({r["answer"] for r in runs}) > 1:
        raise RuntimeError(f"repeated runs must have one answer, not {[r['answer'] for r in runs]}")
    seconds = [r["seconds"] for r in runs]
    about = {"runs": times, "first": seconds[0], "median": round(statistics.median(seconds), 7)}
    return min(runs, key=lambda r: r["seconds"]) | about


def cell(pair: str, column: str, way: int, limit: float) -> dict[str, Any]:
    """One cell, in this process, which is ended when a measurement takes more processor time than the limit."""
    build = PAIRS[pair][RIGHT]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # so cvc5 works in this process, whose time is limited and measured

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit + 1), resource.RLIM_INFINITY))

    def decided() -> dict[str, Any]:
        start = time.thread_time()
        verdict = prove_sums(build())
        seconds = time.thread_time() - start
        answer = {"answer": verdict.status.value, "seconds": round(seconds, 7)}
        return answer | {"by": verdict.details.get("decided_by", "nothing")}

    def asked() -> dict[str, Any]:
        limited()
        start = time.thread_time()
        text = write(build())
        built = time.thread_time()
        answer = check(text, WALL * limit)
        end = time.thread_time()
        return {"answer": answer.status, "seconds": round(end - start, 6), "building": round(built - start, 6)}

    if column == DECIDED:
        return repeated(decided)
    check, write = COLUMNS[column][way]
    check(EMPTY, 1.0)
    return repeated(asked)


def empty() -> dict[str, float]:
    """Processor seconds of the fastest empty question, by solver."""
    seconds = {}
    for solver, check in (("z3", solver_z3.check), ("cvc5", solver_cvc5.check)):
        times = []
        for _ in range(EMPTY_QUESTIONS):
            start = time.thread_time()
            check(EMPTY, 1.0)
            times.append(time.thread_time() - start)
        seconds[solver] = round(min(times), 6)
    return seconds


def twin(pair: str, name: str) -> dict[str, Any]:
    """One wrong twin, in this process."""
    build = PAIRS[pair][name]

    def once() -> dict[str, Any]:
        start = time.thread_time()
        claim = build()
        verdict = prove_sums(claim)
        seconds = time.thread_time() - start
        result: dict[str, Any] = {"answer": verdict.status.value, "seconds": round(seconds, 6)}
        if verdict.status is Status.REFUTED:
            counterexample: Any = verdict.details["counterexample"]
            left, right = evaluate(claim, counterexample.numbers)
            if left == right:
                raise RuntimeError(f"the counterexample of {pair}, {name}, does not replay: {counterexample}")
            result["counterexample"] = str(counterexample)
        return result

    return repeated(once)


def measure(argv: Sequence[str], limit: float) -> dict[str, Any]:
    """What a process prints, and its real time from outside.

    An answer "timeout" is one after more than the limit of processor time.  Raises RuntimeError where a process fails
    otherwise, or has not had its processor time after :data:`WALL` times the limit.
    """
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.sums", *argv, "--limit", str(limit)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=WALL * limit)
        except KeyboardInterrupt:
            process.kill()
            raise
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise RuntimeError(f"the machine is too busy to measure {' '.join(argv)}; try again later") from error
    if process.returncode == -signal.SIGXCPU:
        return {"answer": "timeout", "seconds": limit}
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} failed with {process.returncode}: {errors.strip()[-300:]}")
    result: dict[str, Any] = json.loads(output)
    if result["seconds"] > limit:
        result = {"answer": "timeout", "seconds": limit}
    return result | {"process": round(time.perf_counter() - start, 2)}


def best(pair: str, column: str, limit: float) -> dict[str, Any]:
    """The fastest answer "unsat" of the ways of a column, or what the first way gives instead."""
    results: list[dict[str, Any]] = []
    for way in range(len(COLUMNS[column])):
        results.append(measure(["--cell", pair, column, "--way", str(way)], limit))
        if results[0]["answer"] != "unsat":
            break
    answered = [f for f in results if f["answer"] == "unsat"]
    chosen = min(answered, key=lambda f: f["seconds"]) if answered else results[0]
    return chosen | {"way": results.index(chosen), "ways": [f["seconds"] for f in results]}


def ended(results: dict[str, dict[str, Any]], pair: str, column: str) -> bool:
    """Whether a multiset column of the size series had no answer at a smaller size."""
    series = {f"dot reversed, {n}": n for n in LENGTHS}
    smaller = [name for name, n in series.items() if name in results and n < series.get(pair, 0)]
    return column in MULTISETS and any(results[name][column]["answer"] != "unsat" for name in smaller)


def measured(pair: str, limit: float, results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The row of a pair: cells and twins; ``results`` are the rows that are there."""
    row: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    row[DECIDED] = measure(["--cell", pair, DECIDED], limit)
    for column in COLUMNS:
        row[column] = {"answer": "skipped"} if ended(results, pair, column) else best(pair, column, limit)
    for name in TWINS:
        if name in PAIRS[pair]:
            row[name] = measure(["--twin", pair, name], limit)
    for column, cell in row.items():
        if column != "load" and cell["answer"] != "skipped":
            print(f"{pair:<28} {column:<22} {cell['answer']:<8} {cell['seconds']:>10.6f} s", flush=True)
    return row


def machine() -> dict[str, str]:
    """Versions, cores and system."""
    return {n: version(n) for n in ("z3-solver", "cvc5")} | {
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
    }


def store(record: dict[str, Any]) -> None:
    """Keeps what was measured so far."""
    STORED.write_text(json.dumps(record, indent=2) + "\n")


def write(record: dict[str, Any]) -> None:
    """Markdown and the plot."""
    text = markdown(record)
    (RESULTS / "sums.md").write_text(text)
    draw(record["cells"], RESULTS / "sums.svg")
    print(f"\n{text}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sums", description="Hash sums against multisets.")
    parser.add_argument("--limit", type=float, default=40.0, help="processor seconds per cell")
    parser.add_argument("--cell", nargs=2, metavar=("PAIR", "COLUMN"), help=argparse.SUPPRESS)
    parser.add_argument("--way", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--twin", nargs=2, metavar=("PAIR", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--pair", nargs="*", choices=list(PAIRS), help="measure only these pairs, and keep the others")
    parser.add_argument("--redraw", action="store_true", help="write table and plot again from sums.json")
    options = parser.parse_args(arguments)
    if options.cell:
        pair, column = options.cell
        print(json.dumps(cell(pair, column, options.way, options.limit)))
    elif options.twin:
        print(json.dumps(twin(*options.twin)))
    elif options.redraw:
        write(json.loads(STORED.read_text()))
    else:
        rows = json.loads(STORED.read_text())["cells"] if options.pair else {}
        record = {"command": "python -m benchmarks.sums", "limit": options.limit, "machine": machine()}
        record["empty"] = empty()
        for pair in options.pair or PAIRS:
            rows[pair] = measured(pair, options.limit, rows)
            store(record | {"cells": {p: rows[p] for p in PAIRS if p in rows}})
        write(json.loads(STORED.read_text()))
    return 0
