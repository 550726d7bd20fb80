"""Passes of a real ``mlir-opt`` on many programs: is what each gives a refinement of what it gets?

    python -m benchmarks.mlir_passes PATH... [--passes a,b{x=1}] [--most N] [--mlir-opt PROGRAM] [--record NAME]

Every pass is run on every file, and on every ``*.mlir`` of every folder, not one after the other.  By default these are
all passes that work on operators that have a meaning.  Some of them need loops or buffers, which other passes make
first, and nothing is said of those.  ``--most`` draws pairs of files and passes, always the same ones.

The table has a row for each pass.  PROVED, REFUTED, UNKNOWN and VACUOUS count functions that the pass has changed; the
other columns count files: there was no answer in time (*ERROR*), the pass left it as it was (*same*), a pass ended
without a program (*no output*), or this release does not read it (*not read*).  Below stand each REFUTED with its
inputs, which is a fault of the pass, or of our reading of an operator, and is to be looked at, and what is UNKNOWN, by
reason.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from chc.translation.refine import Options
from ilaverify.errors import UsageError
from ilaverify.mlir.translation import Claims, PassFailed, add_step, converter_for, passes_of, steps
from ilaverify.proving.workers import Task
from ir_semantics.mlir.convert import Converter, ConverterError
from ir_semantics.mlir.scanner import MlirError
from ir_semantics.mlir.semantics.program import Reading
from rewrites.campaigns.mlir.passes import failure
from smt_encodings.discharge import Discharger

from .mlir_runs import ends_of, write
from .mlir_runs import parser as parser_of_runs

_AS_THEY_ARE = (
    "arith-expand", "arith-int-range-narrowing{int-bitwidths-supported=32}", "arith-unsigned-when-equivalent",
    "canonicalize", "control-flow-sink", "convert-elementwise-to-linalg", "convert-tensor-to-linalg", "cse",
    "eliminate-empty-tensors", "empty-tensor-to-alloc-tensor", "fold-tensor-subset-ops", "inline",
    "int-range-optimizations", "linalg-block-pack-matmul{block-factors=2,2,2}", "linalg-detensorize",
    "linalg-fold-into-elementwise", "linalg-fold-unit-extent-dims", "linalg-fuse-elementwise-ops",
    "linalg-generalize-named-ops", "linalg-inline-scalar-operands", "linalg-specialize-generic-ops",
    "loop-invariant-code-motion", "lower-affine", "math-expand-ops", "math-uplift-to-fma", "mem2reg",
    "one-shot-bufferize{allow-unknown-ops=1}", "reify-result-shapes", "remove-dead-values",
    "resolve-shaped-type-result-dims", "sccp", "scf-forall-to-for", "scf-forall-to-parallel", "simplify-depthwise-conv",
    "tosa-layerwise-constant-fold", "tosa-make-broadcastable", "tosa-optional-decompositions", "tosa-reduce-transposes",
    "tosa-to-arith", "tosa-to-linalg", "tosa-to-linalg-named", "tosa-to-scf", "tosa-to-tensor", "transform-interpreter",
)  # fmt: skip
_ON_BUFFERS = (
    "buffer-hoisting", "buffer-loop-hoisting", "convert-linalg-to-affine-loops", "convert-linalg-to-loops",
    "convert-linalg-to-parallel-loops", "expand-strided-metadata", "fold-memref-alias-ops", "normalize-memrefs",
    "promote-buffers-to-stack",
)  # fmt: skip
_ON_LOOPS = (
    "loop-invariant-code-motion", "scf-for-loop-canonicalization", "scf-for-loop-peeling",
    "scf-for-loop-range-folding", "scf-for-loop-specialization", "scf-for-to-while",
)  # fmt: skip
_ON_PARALLEL_LOOPS = (
    "scf-parallel-for-to-nested-fors", "scf-parallel-loop-fusion", "scf-parallel-loop-specialization",
    "scf-parallel-loop-tiling{parallel-loop-tile-sizes=2,2}",
)  # fmt: skip
_ON_AFFINE_LOOPS = (
    "affine-data-copy-generate{fast-mem-space=0 generate-dma=0}", "affine-loop-coalescing", "affine-loop-fusion",
    "affine-loop-invariant-code-motion",
    "affine-loop-normalize", "affine-loop-tile{tile-size=2}", "affine-loop-unroll{unroll-factor=2}",
    "affine-loop-unroll-jam{unroll-jam-factor=2}", "affine-parallelize", "affine-scalrep", "affine-simplify-structures",
    "lower-affine",
)  # fmt: skip
_LINALG = "tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith"
_BUFFERS = f"{_LINALG},one-shot-bufferize{{allow-unknown-ops=1}}"
PIPELINES = (
    *_AS_THEY_ARE,
    *(f"{_BUFFERS},{name}" for name in _ON_BUFFERS),
    *(f"{_BUFFERS},convert-linalg-to-loops,{name}" for name in _ON_LOOPS),
    *(f"{_BUFFERS},convert-linalg-to-parallel-loops,{name}" for name in _ON_PARALLEL_LOOPS),
    *(f"{_BUFFERS},convert-linalg-to-affine-loops,{name}" for name in _ON_AFFINE_LOOPS),
)
"""Passes of release 22 that work on the operators that have a meaning; those before the last one prepare for it."""
TITLE = "Passes of mlir-opt"
OF_FUNCTIONS = ("PROVED", "REFUTED", "UNKNOWN", "VACUOUS")
OF_FILES = ("ERROR", "same", "no output", "not read")
COLUMNS = (*OF_FUNCTIONS, *OF_FILES)


@dataclass(frozen=True)
class Row:
    """One function of one file after one pass, or what became of the file (``OF_FILES``)."""

    file: str
    pass_name: str
    function: str
    verdict: str
    reason: str = ""


def run(path: Path, file: str, pipeline: str, options: argparse.Namespace) -> str:
    """In a process: rows as JSON, about the last pass of the pipeline; ``file`` is what the path is called."""
    claims, name = Claims(), titles(pipeline)[-1]
    try:
        *_, step = steps(path, passes_of(pipeline), converter_for(options.mlir_opt))
        add_step(claims, step, Options(Reading(buffers_apart=options.buffers_apart)))
    except UsageError as error:
        return json.dumps([asdict(Row(file, name, "", "not read", _said(error, options)))])
    except PassFailed as error:
        return json.dumps([asdict(Row(file, name, "", "no output", _said(error, options)))])
    rows = []
    for claim, entry in claims.entries.items():
        verdict = entry.build().prove(Discharger(timeout=options.seconds))
        rows.append(Row(file, name, claim.rpartition(".")[2], verdict.status.value, verdict.reason))
    return json.dumps([asdict(row) for row in rows or [Row(file, name, "", "same")]])


def _said(error: Exception, options: argparse.Namespace) -> str:
    """A complaint that does not say where the program is."""
    return str(error).replace(converter_for(options.mlir_opt).program, "mlir-opt")


def titles(pipeline: str) -> list[str]:
    """The passes of a pipeline, with their options."""
    return [f"{name}{{{own}}}" if own else name for name, own in passes_of(pipeline)]


def rows_of(pairs: Sequence[tuple[Path, str, str]], options: argparse.Namespace) -> list[Row]:
    """Results in the order of the pairs: files, what they are called, and pipelines."""
    found: dict[int, list[Row]] = {}
    tasks = [Task(str(number), partial(run, *pair, options)) for number, pair in enumerate(pairs)]
    for end in ends_of(tasks, options):
        _, file, pipeline = pairs[int(end.name)]
        failed = [asdict(Row(file, titles(pipeline)[-1], "", "ERROR", end.failure))]
        content = failed if end.text is None else json.loads(end.text)
        found[int(end.name)] = [Row(**row) for row in content]
    return [row for number in sorted(found) for row in found[number]]


def table(rows: Sequence[Row]) -> str:
    """Markdown: a row for each pass, each REFUTED with its inputs, and how often each reason for UNKNOWN."""
    counts = {name: Counter(r.verdict for r in rows if r.pass_name == name) for name in {r.pass_name for r in rows}}
    lines = [f"| pass | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    lines += [f"| {name} | {' | '.join(str(counts[name][c]) for c in COLUMNS)} |" for name in sorted(counts)]
    total = Counter(row.verdict for row in rows)
    lines.append(f"| **all** | {' | '.join(f'**{total[c]}**' for c in COLUMNS)} |")
    for row in rows:
        if row.verdict == "REFUTED":
            lines += ["", f"{row.file}, {row.pass_name}, @{row.function}: {row.reason}"]
    reasons = Counter(_kind_of(row.reason) for row in rows if row.verdict in ("UNKNOWN", "ERROR"))
    lines += ["", *(f"* UNKNOWN or ERROR, {count} times: {reason}" for reason, count in reasons.most_common())]
    return "\n".join([*lines, ""])


def _kind_of(reason: str) -> str:
    """A reason without places and releases."""
    return re.sub(r" at \d+:\d+| \d+\.[\d.]+", "", reason)


def present(pipelines: Sequence[str], converter: Converter) -> tuple[list[str], list[str]]:
    """The pipelines of which a release has all passes, and the passes that it lacks."""
    absent = {title for title in {t for p in pipelines for t in titles(p)} if not _is_known(title, converter)}
    return [p for p in pipelines if absent.isdisjoint(titles(p))], sorted(absent)


def _is_known(title: str, converter: Converter) -> bool:
    try:
        converter.generic("", title)
    except (ConverterError, MlirError) as error:
        return failure(error) != "absent"
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where something is refuted, else 0."""
    parser = parser_of_runs("benchmarks.mlir_passes", __doc__)
    parser.add_argument("paths", type=Path, metavar="PATH", nargs="+")
    parser.add_argument("--passes", help="with commas between them; default: those of release 22 that fit")
    parser.add_argument("--buffers-apart", action="store_true", help="arguments that are buffers do not overlap")
    parser.add_argument("--most", type=int, metavar="N", help="draw so many pairs of a file and a pass")
    options = parser.parse_args(arguments)
    files = [(path, str(path)) for path in options.paths if not path.is_dir()]
    for folder in filter(Path.is_dir, options.paths):
        files += [(path, str(path.relative_to(folder))) for path in sorted(folder.rglob("*.mlir"))]
    if not files:
        parser.error(f"{options.paths[0]} must hold MLIR files (*.mlir), and it holds none")
    try:
        converter = converter_for(options.mlir_opt)
        pipelines, absent = present(titles(options.passes) if options.passes else PIPELINES, converter)
    except UsageError as error:
        parser.error(str(error))
    pairs = [(*file, pipeline) for file in files for pipeline in pipelines]
    if options.most is not None and options.most < len(pairs):
        pairs = random.Random(0).sample(pairs, options.most)
    rows = rows_of(pairs, options)
    changed = sum(row.verdict in OF_FUNCTIONS for row in rows)
    text = (
        f"{table(rows)}\n{len(pairs)} pairs of a file and a pass, {converter.release}: {changed} functions were changed"
        f"\n\nNot in this release: {', '.join(absent) or 'none'}"
    )
    print(text)
    given = sys.argv[1:] if arguments is None else arguments
    content = {
        "command": " ".join(["python -m benchmarks.mlir_passes", *given]),
        "title": TITLE,
        "release": converter.release,
        "buffers_apart": options.buffers_apart,
        "rows": [asdict(row) for row in rows],
    }
    write(options, content, __doc__, text)
    return int(any(row.verdict == "REFUTED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
