"""A trained network on the accelerators: what their number formats do to its answers, on all images held out.

Network and images are those of ``examples/digits``.  Each row compiles the network for some accelerators, with number
formats chosen by 64 training images, and runs every image on the simulators, bit for bit.  A row is a process of its
own with one thread; seconds are CPU seconds.  Certificates are read from the directory that is given, and proved first
where none is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.record import recorded, write
from examples.digits import as_input, load
from examples.digits.train import FILE
from ilaverify.catalogue import all_entries, find_backends
from ilaverify.models.comparison import Samples, compare
from ilaverify.models.compilation import Request, claims_for, compile_model
from ir_semantics.graph import run
from ir_semantics.onnx import import_model
from rewrites.compiler.artefact.running import run_samples
from rewrites.compiler.codegen import Devices, Options

TOGETHER = 64
"""So many images run together, as `ilaverify run` has them."""
CHECKED = 20
"""So many of the images are run again beside the host, and every accelerator operator is compared with its bound."""


@dataclass(frozen=True)
class Row:
    """A way to compile the network."""

    label: str
    targets: tuple[str, ...]
    exact: bool = False
    options: Options = field(default_factory=Options)


ROWS: Mapping[str, Row] = {
    "hlscnn-8-published": Row(
        "HLSCNN, weights of 8 bits, as published", ("hlscnn",), options=Options(as_published=True)
    ),
    "hlscnn-8": Row("HLSCNN, weights of 8 bits, scaled", ("hlscnn",)),
    "hlscnn-16-published": Row(
        "HLSCNN, weights of 16 bits, as published",
        ("hlscnn",),
        options=Options(as_published=True, chosen={"weight_bits": 16}),
    ),
    "hlscnn-16": Row("HLSCNN, weights of 16 bits, scaled", ("hlscnn",), options=Options(chosen={"weight_bits": 16})),
    "flexasr-dense": Row("FlexASR, the dense layer", ("flexasr",), exact=True),
    "flexasr": Row("FlexASR, convolutions as dense layers, too", ("flexasr",)),
    "vta-dense": Row("VTA, the dense layer", ("vta",), exact=True),
    "vta": Row("VTA, convolutions as products, too", ("vta",)),
    "hlscnn-flexasr": Row("HLSCNN (8 bits, scaled), FlexASR for the rest", ("hlscnn", "flexasr")),
}
"""Rows by name, in the order of the table."""


def host_scores() -> NDArray[np.float32]:
    """The network's scores [images, 10] on the host."""
    images = as_input(load().test_images)
    (scores,) = run(import_model(FILE, dimensions={"batch": len(images)}), {"image": images}).values()
    return scores


def measure(name: str, proofs: Path, count: int | None = None) -> dict[str, Any]:
    """A row: what became of the first ``count`` images held out, or of all."""
    row, digits = ROWS[name], load()
    images, labels = as_input(digits.test_images)[:count], digits.test_labels[:count]
    reference = host_scores()[:count]
    start = time.process_time()
    calibration = {"image": as_input(digits.calibration_images)[:, None]}
    request = Request(FILE, row.targets, proofs, {"batch": 1}, calibration, exact=row.exact, options=row.options)
    compiled = compile_model(request, all_entries())
    compiling = time.process_time() - start
    if not compiled.implementations:
        reasons = dict.fromkeys(h.reason for h in compiled.host)
        raise SystemExit(f"{name}: no operator runs on an accelerator: {'; '.join(reasons)}")
    devices, scores, executed = Devices(), [], []
    start = time.process_time()
    for first in range(0, len(images), TOGETHER):
        part = images[first : first + TOGETHER, None]
        for ran in run_samples(compiled.graph, compiled.implementations, {"image": part}, devices):
            if ran.number in compiled.graph.outputs.values():
                scores += [*ran.value[:, 0]]
            if ran.executed is not None:
                executed += [(ran.executed, number) for number in range(len(part))]
    running = time.process_time() - start
    saturated = sum(sum(runs.sample(number).saturated.values()) for runs, number in executed)
    nodes = []
    for image in images[:CHECKED]:
        inputs = {"image": image[None]}
        (comparison,) = compare(
            compiled.graph,
            compiled.implementations,
            Samples.one(inputs),
            devices,
            certified=compiled.proof.certificates,
        )
        nodes += comparison.nodes
    values = np.array(scores)
    answers = values.argmax(axis=1)
    return {
        "row": name,
        "right": int((answers == labels).sum()),
        "as_host": int((answers == reference.argmax(axis=1)).sum()),
        "largest_error": float(f"{np.abs(values - reference).max():.3g}"),
        "nodes": len(compiled.implementations),
        "programs": sum(len(i.calls) for i in compiled.implementations.values()),
        "saturated": saturated,
        "within_bound": sum(node.inside is True for node in nodes),
        "beyond_bound": sum(node.inside is False for node in nodes),
        "without_bound": sum(node.inside is None for node in nodes),
        "claims": len(compiled.proof.certificates),
        "compile_s": round(compiling, 1),
        "image_s": round(running / len(images), 5),
        "answers": "".join(map(str, answers)),
    }


def host_row() -> dict[str, Any]:
    """The network on the host, beside onnxruntime."""
    from onnxruntime import InferenceSession

    digits = load()
    images = as_input(digits.test_images)
    start = time.process_time()
    scores = host_scores()
    seconds = time.process_time() - start
    session = InferenceSession(str(FILE), providers=["CPUExecutionProvider"])
    (other,) = session.run(None, {"image": images})
    answers = scores.argmax(axis=1)
    return {
        "row": "host",
        "right": int((answers == digits.test_labels).sum()),
        "as_onnxruntime": int((answers == other.argmax(axis=1)).sum()),
        "difference_to_onnxruntime": float(f"{np.abs(scores - other).max():.1g}"),
        "largest_score": float(f"{np.abs(scores).max():.3g}"),
        "image_s": round(seconds / len(images), 4),
        "answers": "".join(map(str, answers)),
    }


def prove(directory: Path, rows: Sequence[str] = tuple(ROWS)) -> None:
    """Writes certificates of all claims that rows may use; what the user's store holds is not proved again."""
    chosen = [ROWS[name] for name in rows]
    names = dict.fromkeys(name for row in chosen for name in claims_for(find_backends(row.targets), exact=row.exact))
    known = all_entries()
    command = [sys.executable, "-m", "ilaverify", "prove", *(n for n in names if n in known), "-o", str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures rows, and writes JSON and Markdown to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits", description=__doc__)
    parser.add_argument("--proofs", type=Path, metavar="DIR", help="certificates, as ilaverify prove -o writes them")
    parser.add_argument("--row", action="append", choices=ROWS, help="measure this row, keep the others; default: all")
    parser.add_argument("--print", choices=ROWS, help="measure one row here, and print it")
    options = parser.parse_args(arguments)
    chosen = [options.print] if options.print else options.row or list(ROWS)
    with tempfile.TemporaryDirectory() as temporary:
        proofs = options.proofs
        if proofs is None:
            proofs = Path(temporary)
            prove(proofs, chosen)
        if options.print:
            print(json.dumps(measure(options.print, proofs)))
            return 0
        rows = {row["row"]: row for row in recorded("digits")["rows"]} if options.row else {}
        for name in chosen:
            command = [sys.executable, "-m", "benchmarks.digits", "--print", name, "--proofs", str(proofs)]
            one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is loaded
            done = subprocess.run(command, env=one_thread, stdout=subprocess.PIPE, text=True, check=True)
            rows[name] = json.loads(done.stdout)
            print({k: v for k, v in rows[name].items() if k != "answers"}, flush=True)
            _write(rows)
    return 0


def _write(rows: Mapping[str, Any]) -> None:
    content = {
        "images": len(load().test_labels),
        "host": host_row(),
        "rows": [rows[name] for name in ROWS if name in rows],
    }
    lines = ["# A trained network on the accelerators", "", *(__doc__ or "").strip().splitlines()[2:], ""]
    where = "What it means, and what not: docs/reference/digits.md.  Machine and versions: digits.json."
    write("digits", content, "\n".join([*lines, where, "", *table(content)]), ["onnx", "onnxruntime"])


def table(content: Mapping[str, Any]) -> list[str]:
    """The results as lines of a table."""
    images, host = content["images"], content["host"]
    head = ["executed by", "right", "answer of the host", "largest error", "nodes", "programs", "beyond", "s an image"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    lines.append(f"| host (float32) | {_part(host['right'], images)} | | | 0 | 0 | | {host['image_s']} |")
    for row in content["rows"]:
        cells = [
            ROWS[row["row"]].label,
            _part(row["right"], images),
            _part(row["as_host"], images),
            f"{row['largest_error']:.3g}",
            *(str(row[k]) for k in ("nodes", "programs", "saturated", "image_s")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _part(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)"


if __name__ == "__main__":
    sys.exit(main())
