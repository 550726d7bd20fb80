"""Table 1 of the D2A/3LA paper (arXiv 2203.00218, section 4.3): invocations of accelerators in six applications.

Each application is built by ``examples.models`` at the paper's sizes and compiled for one accelerator at a time, with
exact and with flexible matching, by rules and mappings that hold live certificates in ``--proofs DIR`` and code that
can be generated.  An invocation is an accelerator node of the compiled graph.  Seconds are those of compiling for all
three accelerators together, from the ONNX model in memory to the compiled graph: import, gate, saturation, extraction
and the check of explanations; the page shows those of the processor, which other work on the machine changes little.
Numbers are written to results/table1.json and .md, and between the markers of
docs/reference/table1.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "table1.md"
MARKERS = ("<!-- numbers: python -m benchmarks.table1 -->", "<!-- end of numbers -->")

PAPER_OPERATORS = {
    "efficientnet": 232,
    "lstm_wlm": 578,
    "mobilenet_v2": 757,
    "resmlp": 343,
    "resnet20": 494,
    "transformer": 872,
}
"""Relay operators before, in the paper's table 1, row 3."""

PAPER: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "flexasr": {
        "efficientnet": (0, 35),
        "lstm_wlm": (1, 1),
        "mobilenet_v2": (0, 41),
        "resmlp": (0, 38),
        "resnet20": (2, 22),
        "transformer": (0, 66),
    },
    "hlscnn": {
        "efficientnet": (35, 35),
        "lstm_wlm": (0, 0),
        "mobilenet_v2": (40, 40),
        "resmlp": (0, 0),
        "resnet20": (21, 21),
        "transformer": (0, 0),
    },
    "vta": {
        "efficientnet": (0, 35),
        "lstm_wlm": (36, 36),
        "mobilenet_v2": (1, 41),
        "resmlp": (38, 38),
        "resnet20": (2, 22),
        "transformer": (66, 66),
    },
}
"""Invocations with exact and with flexible matching, rows 4 to 6 of the paper's table 1."""


def measure(application: str, proofs: Path) -> dict[str, Any]:
    """What compiling an application gives, for each accelerator alone and for all of them."""
    from examples.models.applications import APPLICATIONS
    from ilaverify.catalogue import all_entries, backends, find_backends
    from ilaverify.models.compilation import claims_for
    from ir_semantics.onnx import import_model
    from rewrites.claims.gate import open_gate
    from rewrites.compiler.codegen import implementable
    from rewrites.compiler.offload.compiler import offload
    from rewrites.compiler.offload.settings import Settings

    model = APPLICATIONS[application].build(0)
    start, used = time.perf_counter(), time.process_time()
    graph = import_model(model)
    targets = find_backends(tuple(backends()))
    needed = set(claims_for(targets))
    claims = {name: entry for name, entry in all_entries().items() if name in needed}
    gate = open_gate(claims, proofs)
    opened = time.perf_counter()
    whole = offload(graph, gate, targets, Settings(implementable=implementable))
    seconds, used = time.perf_counter() - start, time.process_time() - used
    row: dict[str, Any] = {
        "nodes": sum(graph.operators().values()),
        "model_nodes": len(model.graph.node),
        "seconds": round(seconds, 1),
        "processor_seconds": round(used, 1),
        "seconds_of_import_and_gate": round(opened - start, 1),
        "e_nodes": whole.saturation.nodes,
        "saturation": whole.saturation.stop.value,
        "optimal": whole.optimal,
        "left_out": dict(gate.left_out),
        "targets": {"all": _figures(whole)},
    }
    for target in targets:
        exact = offload(graph, gate, [target], Settings(flexible=False, implementable=implementable))
        flexible = offload(graph, gate, [target], Settings(implementable=implementable))
        row["targets"][target.name] = {"exact": _figures(exact), "flexible": _figures(flexible)}
    return row


def _figures(result: Any) -> dict[str, Any]:
    from rewrites.compiler.offload.reasons import MOVEMENT_REASON

    return {
        "invocations": sum(result.invocations.values()),
        "operators": result.invocations,
        "rules": {use.name: use.count for use in result.rules},
        "host_multiply_accumulates": result.costs[0],
        "host": [[h.operator, h.count, h.steps, h.reason] for h in result.host if h.reason != MOVEMENT_REASON],
    }


def table(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Both tables as Markdown."""
    names = list(rows)
    lines = [
        "Invocations with exact / flexible matching; in brackets the paper's.",
        "",
        "| | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
        "| operators before (paper: of Relay) | "
        + " | ".join(f"{rows[n]['nodes']} ({PAPER_OPERATORS[n]})" for n in names)
        + " |",
    ]
    for target, paper in PAPER.items():
        cells = []
        for name in names:
            own = rows[name]["targets"][target]
            exact, flexible = own["exact"]["invocations"], own["flexible"]["invocations"]
            cells.append(f"**{exact}/{flexible}** ({paper[name][0]}/{paper[name][1]})")
        lines.append(f"| {target} | " + " | ".join(cells) + " |")
    seconds = " | ".join(str(rows[n]["processor_seconds"]) for n in names)
    lines.append(f"| processor seconds, for all three | {seconds} |")
    lines += [
        "",
        "Accelerator operators, with flexible matching, and the multiply-accumulates that stay on the host:",
        "",
    ]
    lines += ["| application | target | accelerator operators | host | most of it |", "|---|---|---|---|---|"]
    for name in names:
        for target in (*PAPER, "all"):
            own = rows[name]["targets"][target]
            figures = own.get("flexible", own)
            operators = ", ".join(f"{n} {o}" for o, n in figures["operators"].items()) or "none"
            host = figures["host"]
            most = f"{host[0][1]} {host[0][0]}: {host[0][3]}" if host else ""
            lines.append(f"| {name} | {target} | {operators} | {figures['host_multiply_accumulates']:,} | {most} |")
    lines += ["", "All that stays on the host but data movement, with flexible matching:", ""]
    lines += ["| target | nodes of all applications | why |", "|---|---|---|"]
    for target in PAPER:
        nodes: dict[tuple[str, str], int] = {}
        for name in names:
            for operator, count, _, reason in rows[name]["targets"][target]["flexible"]["host"]:
                nodes[operator, reason] = nodes.get((operator, reason), 0) + count
        reasons: dict[str, list[str]] = {}
        for (operator, reason), count in sorted(nodes.items()):
            reasons.setdefault(reason, []).append(f"{count} {operator}")
        lines += [f"| {target} | {', '.join(own)} | {reason} |" for reason, own in sorted(reasons.items())]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and the page's numbers; 1 where a count is below the paper's flexible row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table1", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--proofs", type=Path, required=True, help="certificates, as ilaverify prove -o writes them")
    parser.add_argument("--application", action="append", choices=list(PAPER_OPERATORS), help="default: all")
    options = parser.parse_args(arguments)
    rows: dict[str, dict[str, Any]] = {}
    for name in options.application or PAPER_OPERATORS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows[name] = measure(name, options.proofs)
    lines = table(rows)
    print("\n".join(lines))
    if options.application is None:
        _write(rows, lines)
    short = [
        f"{name} on {target}: {own} where the paper has {PAPER[target][name][1]}"
        for name, one in rows.items()
        for target in PAPER
        if (own := one["targets"][target]["flexible"]["invocations"]) < PAPER[target][name][1]
    ]
    for line in short:
        print(line, file=sys.stderr)
    return int(bool(short))


def _write(rows: Mapping[str, Mapping[str, Any]], lines: Sequence[str]) -> None:
    machine = {"machine": platform.machine(), "python": platform.python_version(), "processors": _processors()}
    RESULTS.mkdir(exist_ok=True)
    document = {"measured_on": machine, "applications": rows}
    (RESULTS / "table1.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "table1.md").write_text("\n".join(["# Table 1", "", *lines, ""]), encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKERS[0])
    after = rest.split(MARKERS[1])[1]
    PAGE.write_text("\n".join([before + MARKERS[0], "", *lines, "", MARKERS[1]]) + after, encoding="utf-8")


def _processors() -> int:
    import os

    return os.cpu_count() or 1


if __name__ == "__main__":
    raise SystemExit(main())
