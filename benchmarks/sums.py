"""Sums and dot products up to reduction order: the hash encoding against multisets, in z3 and cvc5.

The pairs are those of mlir-tv's benchmark of this encoding (its pull request 282, ``tests/benchmark/type``, ``size``),
and three wrong twins of each.  A cell is one process that builds the claim, writes the encoding and asks one solver;
its time runs from before the claim is built to the answer.  Loading Python and the solvers is left out, and so is a
solver's first, empty question (they are in ``process``, the time seen from outside, which is what the limit is for).
The shortest of many empty questions says how fast any encoding could be at best.  What takes less than two seconds is
done three times, and what takes less than a tenth ten times; the shortest time is shown (all are in ``runs``), because
other work on the machine only ever adds.  A multiset cell is skipped where the same series has reached the limit at a
smaller size.

A wrong twin is decided by ``prove_sums``: refuted by numbers that are then evaluated again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from smt_encodings import solver_cvc5, solver_z3
from smt_encodings.claims import Status
from smt_encodings.sums import Constant, Sum, SumClaim, Symbol, Term, dot, evaluate, vector
from smt_encodings.sums_encode import Encoding, script
from smt_encodings.sums_prove import prove_sums

RESULTS = Path(__file__).parent / "results"
UNIT = Constant(-0.0)
"""Accumulators are filled with -0.0."""

EMPTY = "(set-logic QF_UFBV)\n(declare-const p Bool)\n(assert (and p (not p)))\n(check-sat)\n"
"""A question that says nothing: what a solver's answer takes at least."""

Vector = list[Term]


def constants(*values: int) -> Vector:
    return [Constant(v) for v in values]


def total(elements: Sequence[Term]) -> Sum:
    return Sum((UNIT, *elements))


def product(left: Vector, right: Vector) -> Sum:
    return dot(left, right, UNIT)


def sums(left: Vector, right: Vector, changed: Vector) -> dict[str, SumClaim]:
    """A sum of elements against the same in another order; ``changed`` differs from ``right`` in one element."""
    return {
        "right": SumClaim(total(left), total(right)),
        "one element changed": SumClaim(total(left), total(changed)),
        "an operand used twice": SumClaim(total(left), total([*right[:-1], right[0]])),
    }


def reversed_constants() -> dict[str, SumClaim]:
    up = constants(*range(1, 11))
    return sums(up[::-1], up, [*up[:9], Constant(11)])


def reversed_variables() -> dict[str, SumClaim]:
    t = vector("t", 100)
    return sums(t[::-1], t, [*t[:99], Symbol("z")])


def transposed() -> dict[str, SumClaim]:
    t = vector("t", 200)
    columns = [t[20 * row + column] for column in range(20) for row in range(10)]
    return sums(columns, t, [*t[:199], Symbol("z")])


def concatenated() -> dict[str, SumClaim]:
    s, t = vector("s", 5), vector("t", 5)
    apart = Sum((total(s), total(t)))
    return {
        "right": SumClaim(apart, total([*s, *t])),
        "one element changed": SumClaim(apart, total([*s, *t[:4], Symbol("z")])),
        "an operand used twice": SumClaim(apart, total([*s, *s])),
    }


def dots(a: Vector, b: Vector, z: Term) -> dict[str, SumClaim]:
    both = product(a[::-1], b[::-1])
    return {
        "right": SumClaim(both, product(a, b)),
        "one element changed": SumClaim(both, product(a, [*b[:-1], z])),
        "one operand reversed": SumClaim(product(a[::-1], b), product(a, b)),
        "an operand used twice": SumClaim(both, product(a, a)),
    }


def dots_of_constants() -> dict[str, SumClaim]:
    return dots(constants(-12, 3, 2, 5, 4), constants(1, 8, 5, 6, 0), Constant(7))


def dots_of_variables(length: int) -> dict[str, SumClaim]:
    return dots(vector("a", length), vector("b", length), Symbol("z"))


def concatenated_dots() -> dict[str, SumClaim]:
    a, b, c, d = vector("a", 50), vector("b", 50), vector("c", 100), vector("d", 100)
    apart = Sum((product(a, b), product(c, d)))
    joined = [*b, *d]
    return {
        "right": SumClaim(apart, product([*a, *c], joined)),
        "one element changed": SumClaim(apart, product([*a, *c], [*joined[:-1], Symbol("z")])),
        "one operand reversed": SumClaim(apart, product([*a, *c], joined[::-1])),
        "an operand used twice": SumClaim(apart, product([*a, *c], [*a, *c])),
    }


def sized(length: int) -> Callable[[], dict[str, SumClaim]]:
    return lambda: dots_of_variables(length)


LENGTHS = (5, 10, 25, 50, 100, 500, 5000)
"""The seven sizes of the size series; mlir-tv names them by the number of inputs of both vectors."""

PAIRS: dict[str, Callable[[], dict[str, SumClaim]]] = {
    "sum reversed, 10 constants": reversed_constants,
    "sum reversed, 100": reversed_variables,
    "sum transposed, 10 x 20": transposed,
    "sum concatenated, 5 + 5": concatenated,
    "dot reversed, 5 constants": dots_of_constants,
    "dot reversed, 100 (type)": sized(100),
    "dot concatenated, 50 + 100": concatenated_dots,
    **{f"dot reversed, {n}": sized(n) for n in LENGTHS},
}

COLUMNS = {
    "z3 hash": (solver_z3.check, Encoding.HASH),
    "cvc5 hash": (solver_cvc5.check, Encoding.HASH),
    "z3 counts": (solver_z3.check, Encoding.COUNTS),
    "cvc5 bags": (solver_cvc5.check, Encoding.BAGS),
}
HASHES = {"z3 counts": "z3 hash", "cvc5 bags": "cvc5 hash"}
"""The hash column of each multiset column: the same solver."""
TWINS = ("one element changed", "one operand reversed", "an operand used twice")


REPETITIONS, SHORT = 3, 2.0
"""How often, and below how many seconds, a measurement is repeated."""

MORE_REPETITIONS, SHORTER = 10, 0.1
"""Likewise, for times that are short enough to be mostly other work on the machine."""

EMPTY_QUESTIONS = 200
"""How often the empty question is asked."""


def repeated(once: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The shortest of a few measurements, with the times of all; raises RuntimeError where answers differ."""
    runs = [once()]
    times = MORE_REPETITIONS if runs[0]["seconds"] < SHORTER else REPETITIONS if runs[0]["seconds"] < SHORT else 1
    runs += [once() for _ in range(times - 1)]
    if len({r["answer"] for r in runs}) > 1:
        raise RuntimeError(f"repeated runs must have one answer, not {[r['answer'] for r in runs]}")
    return min(runs, key=lambda r: r["seconds"]) | {"runs": [r["seconds"] for r in runs]}


def cell(pair: str, column: str, limit: float) -> dict[str, Any]:
    """One cell, in this process."""
    check, encoding = COLUMNS[column]
    check(EMPTY, 1.0)

    def once() -> dict[str, Any]:
        start = time.perf_counter()
        claim = PAIRS[pair]()["right"]
        text = script(claim, encoding)
        built = time.perf_counter()
        answer = check(text, limit)
        end = time.perf_counter()
        return {"answer": answer.status, "seconds": round(end - start, 5), "building": round(built - start, 5)}

    return repeated(once)


def empty() -> dict[str, float]:
    """Seconds of the fastest empty question, by column of the hash."""
    found = {}
    for column in HASHES.values():
        check = COLUMNS[column][0]
        found[column] = round(min(check(EMPTY, 1.0).seconds for _ in range(EMPTY_QUESTIONS)), 6)
    return found


def twin(pair: str, name: str) -> dict[str, Any]:
    """One wrong twin, in this process."""

    def once() -> dict[str, Any]:
        start = time.perf_counter()
        claim = PAIRS[pair]()[name]
        verdict = prove_sums(claim)
        seconds = time.perf_counter() - start
        result: dict[str, Any] = {"answer": verdict.status.value, "seconds": round(seconds, 4)}
        if verdict.status is Status.REFUTED:
            found: Any = verdict.details["counterexample"]
            left, right = evaluate(claim, found.numbers)
            if left == right:
                raise RuntimeError(f"the counterexample of {pair}, {name}, does not replay: {found}")
            result["counterexample"] = str(found)
        return result

    return repeated(once)


def measure(argv: Sequence[str], limit: float) -> dict[str, Any]:
    """What a process prints, and its time from outside."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.sums", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"answer": "timeout", "seconds": limit, "process": limit}
    if process.returncode != 0:
        return {"answer": "failed", "seconds": limit, "reason": errors.strip()[-300:]}
    return json.loads(output) | {"process": round(time.perf_counter() - start, 2)}


def run(limit: float, pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Cells and twins; a multiset column of the size series ends at its first cell without an answer."""
    results: dict[str, dict[str, Any]] = {}
    ended: set[str] = set()
    for pair in pairs:
        row: dict[str, Any] = {}
        series = any(pair == f"dot reversed, {n}" for n in LENGTHS)
        for column in COLUMNS:
            if series and column in ended:
                row[column] = {"answer": "skipped"}
                continue
            row[column] = measure(["--cell", pair, column, "--limit", str(limit)], limit)
            if series and row[column]["answer"] != "unsat" and "hash" not in column:
                ended.add(column)
            print(f"{pair:<28} {column:<22} {row[column]['answer']:<8} {row[column]['seconds']:>8.4f} s", flush=True)
        for name in TWINS:
            if name in PAIRS[pair]():
                row[name] = measure(["--twin", pair, name], limit)
                print(f"{pair:<28} {name:<22} {row[name]['answer']:<8} {row[name]['seconds']:>8.4f} s", flush=True)
        results[pair] = row
    return results


def shown(found: dict[str, Any] | None) -> str:
    """A cell of the table."""
    match found:
        case None:
            return "–"
        case {"answer": "skipped"}:
            return "skipped"
        case {"answer": "timeout", "seconds": seconds}:
            return f"> {seconds:.0f}"
        case {"answer": "unsat" | "REFUTED", "seconds": seconds}:
            return f"{seconds:.3f}"
        case _:
            return f"{found['seconds']:.3f} ({found['answer']})"


def table(results: dict[str, dict[str, Any]], columns: Sequence[str]) -> str:
    """Some columns as Markdown."""
    lines = ["| pair | " + " | ".join(columns) + " |", "|" + " --- |" * (len(columns) + 1)]
    lines += ["| " + " | ".join((pair, *(shown(row.get(c)) for c in columns))) + " |" for pair, row in results.items()]
    return "\n".join(lines)


def speedups(results: dict[str, dict[str, Any]], least: dict[str, float]) -> list[str]:
    """Where a multiset finished: how much longer it took than the hash, and than an empty question, in that solver."""
    lines = ["| pair | multiset | seconds | hash | empty question | multiset / hash | multiset / empty question |"]
    lines.append("|" + " --- |" * 7)
    said = []
    for column, hashed in HASHES.items():
        ratios, most = list[float](), list[float]()
        for pair, row in results.items():
            if row[column]["answer"] == row[hashed]["answer"] == "unsat":
                slow, fast = row[column]["seconds"], row[hashed]["seconds"]
                ratios.append(slow / fast)
                most.append(slow / least[hashed])
                lines.append(
                    f"| {pair} | {column} | {slow:.4f} | {fast:.4f} | {least[hashed]:.4f} | "
                    f"{ratios[-1]:,.0f} | {most[-1]:,.0f} |"
                )
        reached, possible = (sum(r >= 100 for r in found) for found in (ratios, most))
        said.append(
            f"* {column} finished on {len(ratios)} of {len(results)} pairs.  It took 100 times as long as {hashed}, or "
            f"longer, on {reached}; 100 times as long as an empty question, or longer, on {possible}: on the other "
            f"{len(ratios) - possible} nothing that asks this solver could be 100 times faster."
        )
    return [*said, "", *lines]


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """The size series as a plot with logarithmic axes; needs the extra ``plot``."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sums"
    from matplotlib import pyplot

    rows = {n: results[f"dot reversed, {n}"] for n in LENGTHS if f"dot reversed, {n}" in results}
    figure, axes = pyplot.subplots(figsize=(8, 5))
    twins = ("one operand reversed",)
    for column, marker in zip((*COLUMNS, *twins), "osv^D", strict=True):
        points = [(n, r[column]["seconds"]) for n, r in rows.items() if r[column]["answer"] in ("unsat", "REFUTED")]
        label = f"{column} (refuted)" if column in twins else column
        (line,) = axes.plot(*zip(*points, strict=True), marker=marker, label=label)
        late = [(n, r[column]["seconds"]) for n, r in rows.items() if r[column]["answer"] in ("timeout", "unknown")]
        if late:
            axes.plot(*zip(points[-1], *late, strict=True), ":", color=line.get_color())
            axes.plot(*zip(*late, strict=True), "x", color=line.get_color(), markersize=12)
    axes.axhline(1.0, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="elements of each vector", ylabel="seconds, claim to answer")
    axes.set_title("dot(reverse a, reverse b) = dot(a, b) (crosses: limit reached)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def write(results: dict[str, dict[str, Any]], limit: float, least: dict[str, float]) -> None:
    """JSON, Markdown and the plot."""
    machine = {n: version(n) for n in ("z3-solver", "cvc5")} | {
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
    }
    command = "python -m benchmarks.sums"
    record = {"command": command, "limit": limit, "machine": machine, "empty": least, "cells": results}
    (RESULTS / "sums.json").write_text(json.dumps(record, indent=2) + "\n")
    text = f"""# Sums up to reduction order

Seconds from building the claim to one solver's answer; "> {limit:.0f}" is the limit.  Machine and versions: sums.json.

## Right pairs, proved

{table(results, tuple(COLUMNS))}

## Hash against multisets, where these finished

{chr(10).join(speedups(results, least))}

![Time against the size of vectors](sums.svg)

## Wrong twins, refuted by numbers that were evaluated again

{table(results, TWINS)}
"""
    (RESULTS / "sums.md").write_text(text)
    draw(results, RESULTS / "sums.svg")
    print(f"\n{text}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sums", description="Hash sums against multisets.")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds per cell")
    parser.add_argument("--cell", nargs=2, metavar=("PAIR", "COLUMN"), help=argparse.SUPPRESS)
    parser.add_argument("--twin", nargs=2, metavar=("PAIR", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--redraw", action="store_true", help="write table and plot again from sums.json")
    parser.add_argument("--empty", action="store_true", help="measure only empty questions, and keep the cells")
    options = parser.parse_args(arguments)
    if options.cell:
        print(json.dumps(cell(*options.cell, options.limit)))
    elif options.twin:
        print(json.dumps(twin(*options.twin)))
    elif options.redraw:
        record = json.loads((RESULTS / "sums.json").read_text())
        write(record["cells"], record["limit"], record["empty"])
    elif options.empty:
        record = json.loads((RESULTS / "sums.json").read_text())
        write(record["cells"], record["limit"], empty())
    else:
        write(run(options.limit, list(PAIRS)), options.limit, empty())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
