"""Passes of a real ``mlir-opt``, one by one on many programs: is what each gives a refinement of what it gets?

    python -m benchmarks.mlir_passes FOLDER [--passes a,b{x=1}] [--most N] [--mlir-opt PROGRAM] [--record NAME]

Every pass is run on every ``*.mlir`` file of the folder, not one after the other; a file that a pass leaves as it was
counts as *same*.  The table has a row for each pass.  Below it stands each REFUTED with its inputs, which is a fault of
the pass, or of our reading of an operator, and is to be looked at.  ``--most`` draws pairs of files and passes,
always the same ones.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from chc.translation.refine import Options
from ilaverify.errors import UsageError
from ilaverify.mlir.translation import Claims, add_steps, converter_for, passes_of
from ilaverify.proving.workers import Task
from smt_encodings.discharge import Discharger

from .mlir_runs import ends_of, write
from .mlir_runs import parser as parser_of_runs

PASSES = (
    "arith-expand", "arith-int-range-narrowing{int-bitwidths-supported=32}", "canonicalize",
    "convert-elementwise-to-linalg", "convert-linalg-to-affine-loops", "convert-linalg-to-loops",
    "convert-linalg-to-parallel-loops", "cse", "empty-tensor-to-alloc-tensor", "fold-tensor-subset-ops",
    "int-range-optimizations", "linalg-detensorize", "linalg-fold-into-elementwise", "linalg-fold-unit-extent-dims",
    "linalg-fuse-elementwise-ops", "linalg-generalize-named-ops", "linalg-inline-scalar-operands",
    "linalg-specialize-generic-ops", "reify-result-shapes", "sccp", "tosa-layerwise-constant-fold",
    "tosa-make-broadcastable", "tosa-optional-decompositions", "tosa-to-arith", "tosa-to-linalg",
    "tosa-to-linalg-named", "tosa-to-tensor",
)  # fmt: skip
"""Passes of release 22 that work on the operators that have a meaning."""
TITLE = "Passes of mlir-opt, one by one"
COLUMNS = ("PROVED", "REFUTED", "UNKNOWN", "VACUOUS", "ERROR", "same")


@dataclass(frozen=True)
class Row:
    """One function of one file after one pass; ``same`` stands for a file that the pass left as it was."""

    file: str
    pass_name: str
    function: str
    verdict: str
    reason: str = ""


def run(path: Path, pass_name: str, mlir_opt: str | None, seconds: float) -> str:
    """In a process: rows as JSON."""
    claims = Claims()
    try:
        add_steps(claims, path, passes_of(pass_name), converter_for(mlir_opt), Options())
    except UsageError as error:
        return json.dumps([asdict(Row(str(path), pass_name, "", "ERROR", str(error)))])
    rows = [Row(str(path), pass_name, "", outcome.status, outcome.reason) for outcome in claims.broken]
    if not claims.entries and not claims.broken:
        rows.append(Row(str(path), pass_name, "", "same"))
    for name, entry in claims.entries.items():
        verdict = entry.build().prove(Discharger(timeout=seconds))
        rows.append(Row(str(path), pass_name, name.rpartition(".")[2], verdict.status.value, verdict.reason))
    return json.dumps([asdict(row) for row in rows])


def rows_of(pairs: Sequence[tuple[Path, str]], options: argparse.Namespace) -> list[Row]:
    """Results in the order of the pairs."""
    found: dict[int, list[Row]] = {}
    tasks = [
        Task(str(number), partial(run, path, name, options.mlir_opt, options.seconds))
        for number, (path, name) in enumerate(pairs)
    ]
    for end in ends_of(tasks, options):
        path, name = pairs[int(end.name)]
        failed = [asdict(Row(str(path), name, "", "ERROR", end.failure))]
        content = failed if end.text is None else json.loads(end.text)
        found[int(end.name)] = [Row(**row) for row in content]
    return [row for number in sorted(found) for row in found[number]]


def table(rows: Sequence[Row]) -> str:
    """Markdown: a row for each pass, and each REFUTED with its inputs."""
    counts = {name: Counter(r.verdict for r in rows if r.pass_name == name) for name in {r.pass_name for r in rows}}
    lines = [f"| pass | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    lines += [f"| {name} | {' | '.join(str(counts[name][c]) for c in COLUMNS)} |" for name in sorted(counts)]
    total = Counter(row.verdict for row in rows)
    lines.append(f"| **all** | {' | '.join(f'**{total[c]}**' for c in COLUMNS)} |")
    for row in rows:
        if row.verdict == "REFUTED":
            lines += ["", f"{row.file}, {row.pass_name}, @{row.function}: {row.reason}"]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where something is refuted, else 0."""
    parser = parser_of_runs("benchmarks.mlir_passes", __doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--passes", default=",".join(PASSES), help="default: those of release 22 that fit")
    parser.add_argument("--most", type=int, metavar="N", help="draw so many pairs of a file and a pass")
    options = parser.parse_args(arguments)
    files = sorted(options.folder.rglob("*.mlir"))
    if not files:
        parser.error(f"{options.folder} must hold MLIR files (*.mlir), and it holds none")
    try:
        names = [f"{name}{{{own}}}" if own else name for name, own in passes_of(options.passes)]
        release = converter_for(options.mlir_opt).release
    except UsageError as error:
        parser.error(str(error))
    pairs = [(path, name) for path in files for name in names]
    if options.most is not None and options.most < len(pairs):
        pairs = random.Random(0).sample(pairs, options.most)
    rows = rows_of(pairs, options)
    text = f"{table(rows)}\n{len(pairs)} pairs of a file and a pass, {release}"
    print(text)
    content = {"title": TITLE, "release": release, "rows": [asdict(row) for row in rows]}
    write(options, content, __doc__, text)
    return int(any(row.verdict == "REFUTED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
