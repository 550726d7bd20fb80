"""What benchmarks.sums measured, as Markdown and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sums.pairs import LENGTHS, TWINS

DECIDED = "decided"
HASHES = ("z3 hash", "cvc5 hash")
MULTISETS = ("z3 published", "cvc5 published", "z3 counts", "cvc5 bags")
FACTOR = 100
"""How many times as long as a hash a multiset is expected to take."""

Results = dict[str, dict[str, Any]]


def solver(column: str) -> str:
    return column.split()[0]


def shown(cell: dict[str, Any] | None) -> str:
    """A cell of the table."""
    match cell:
        case None:
            return "–"
        case {"answer": "skipped"}:
            return "skipped"
        case {"answer": "timeout", "seconds": seconds}:
            return f"> {seconds:.0f}"
        case {"answer": "unsat" | "REFUTED" | "PROVED", "seconds": seconds}:
            return digits(seconds)
        case _:
            return f"{digits(cell['seconds'])} ({cell['answer']})"


def digits(seconds: float) -> str:
    """Seconds to the millisecond, below a tenth to the microsecond."""
    return f"{seconds:.3f}" if seconds >= 0.1 else f"{seconds:.6f}"


def table(results: Results, columns: Sequence[str]) -> str:
    """Some columns as Markdown."""
    lines = ["| pair | " + " | ".join(columns) + " |", "|" + " --- |" * (len(columns) + 1)]
    lines += ["| " + " | ".join((pair, *(shown(row.get(c)) for c in columns))) + " |" for pair, row in results.items()]
    return "\n".join(lines)


def finished(row: dict[str, Any], column: str) -> bool:
    return row[column]["answer"] in ("unsat", "PROVED")


def ratio(row: dict[str, Any], column: str, fast: str) -> float:
    return float(row[column]["seconds"] / row[fast]["seconds"])


def summary(results: Results, least: dict[str, float]) -> str:
    """How many cells of each multiset took a hundred times as long as the hash, and as an empty question."""
    lines = [
        f"| multiset | finished | {FACTOR} times decided | {FACTOR} times the same solver's hash | "
        f"{FACTOR} times an empty question |",
        "|" + " --- |" * 5,
    ]
    for column in MULTISETS:
        rows = [row for row in results.values() if finished(row, column)]
        hashed = f"{solver(column)} hash"
        decided = sum(ratio(row, column, DECIDED) >= FACTOR for row in rows)
        asked = sum(ratio(row, column, hashed) >= FACTOR for row in rows)
        possible = sum(row[column]["seconds"] >= FACTOR * least[solver(column)] for row in rows)
        lines.append(f"| {column} | {len(rows)} of {len(results)} | {decided} | {asked} | {possible} |")
    return "\n".join(lines)


def misses(results: Results) -> str:
    """The cells in which a multiset that finished did not take a hundred times as long as the decision."""
    lines = [
        f"* {pair}, {column}: {digits(row[column]['seconds'])} s, {ratio(row, column, DECIDED):,.0f} times as long"
        for pair, row in results.items()
        for column in MULTISETS
        if finished(row, column) and ratio(row, column, DECIDED) < FACTOR
    ]
    return "\n".join(lines) if lines else "* none"


def ratios(results: Results) -> str:
    """Every cell of a multiset that finished, against the decision and against the same solver's hash."""
    lines = ["| pair | multiset | seconds | / decided | / hash of that solver |", "|" + " --- |" * 5]
    for column in MULTISETS:
        for pair, row in results.items():
            if finished(row, column):
                of_decided, of_hash = (ratio(row, column, fast) for fast in (DECIDED, f"{solver(column)} hash"))
                seconds = digits(row[column]["seconds"])
                lines.append(f"| {pair} | {column} | {seconds} | {of_decided:,.0f} | {of_hash:,.0f} |")
    return "\n".join(lines)


def first(results: Results) -> str:
    """How long the first decision of a process takes, which loads what is then there."""
    longest = max(row[DECIDED]["first"] / row[DECIDED]["seconds"] for row in results.values())
    return f"A first decision in a process took up to {longest:.1f} times the shortest one."


def busy(results: Results, machine: dict[str, str]) -> str:
    """How much other work ran on the machine."""
    loads = [row["load"] for row in results.values()]
    return f"The load average of the machine was {min(loads)} to {max(loads)} on {machine['cores']} cores."


def markdown(record: dict[str, Any]) -> str:
    """The whole page."""
    results, least, limit = record["cells"], record["empty"], record["limit"]
    deciders = sorted({row[DECIDED]["by"] for row in results.values()})
    return f"""# Sums up to reduction order

Processor seconds from before the claim is built to the answer, the shortest of several; "> {limit:.0f}" is the limit.
{busy(results, record["machine"])}
Machine, versions, medians and first times: sums.json.

* *decided* is `prove_sums`, as it is called by default, with its verdict.  What decided: {", ".join(deciders)}.
  {first(results)}
* *hash* is the full text of the hash encoding, put to one solver.  An empty question takes {digits(least["z3"])} s in
  z3 and {digits(least["cvc5"])} s in cvc5.
* *published* are multisets as mlir-tv has them, *counts* and *bags* those of this repository.  Where z3 finished on
  multisets, it was asked in two ways, and the faster one counts.

## Right pairs, proved

{table(results, (DECIDED, *HASHES, *MULTISETS))}

## Hash against multisets, where these finished

{summary(results, least)}

Multisets that finished in less than {FACTOR} times what the decision took:

{misses(results)}

All that finished:

{ratios(results)}

![Time against the size of vectors](sums.svg)

## Wrong twins, refuted by numbers that were evaluated again

{table(results, TWINS)}
"""


def draw(results: Results, path: Path) -> None:
    """The size series as a plot with logarithmic axes; needs the extra ``plot``."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sums"
    from matplotlib import pyplot

    rows = {n: results[f"dot reversed, {n}"] for n in LENGTHS if f"dot reversed, {n}" in results}
    figure, axes = pyplot.subplots(figsize=(8, 5.5))
    twins = ("one operand reversed",)
    for column, marker in zip((DECIDED, *HASHES, *MULTISETS, *twins), "Posv^<>D", strict=True):
        points = [(n, r[column]["seconds"]) for n, r in rows.items() if finished(r, column) or column in twins]
        if not points:
            continue
        label = f"{column} (refuted)" if column in twins else column
        (line,) = axes.plot(*zip(*points, strict=True), marker=marker, markersize=5, label=label)
        late = [(n, r[column]["seconds"]) for n, r in rows.items() if r[column]["answer"] in ("timeout", "unknown")]
        if late:
            axes.plot(*zip(points[-1], *late, strict=True), ":", color=line.get_color())
            axes.plot(*zip(*late, strict=True), "x", color=line.get_color(), markersize=12)
    axes.axhline(1.0, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="elements of each vector", ylabel="processor seconds, claim to answer")
    axes.set_title("dot(reverse a, reverse b) = dot(a, b) (crosses: limit reached)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
