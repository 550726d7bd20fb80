"""Table 4 of the D2A/3LA paper (arXiv 2203.00218, section 4.4.2): applications from end to end on the simulators.

``python -m benchmarks.table4 PROOFS`` needs the extra ``onnx``, and certificates that ``ilaverify prove --target
hlscnn,flexasr -o PROOFS`` has written.  Everything computes what the accelerators compute, bit by bit.

*Accuracy*: the paper's networks and data are not published with it, so that its columns are those of the trained
network that is shipped (``examples/digits``), on all 450 images held out.  *Original* is the accelerator as it was
published, HLSCNN with weights of 8 bits; *updated* has weights of 16 bits, which was its developers' answer to such
results; *scaled* has those, and powers of two move tensors to where number formats are finest.  FlexASR alone has no
choice of 16 bits.  On no image an operator left its bound (``beyond_bound``).  *s an image*: CPU seconds of the
fastest design.

*Time*: the six applications with random weights, each compiled and run in a process of its own.  Seconds are CPU
seconds of one thread: of compiling; of the first run, which loads native code or compiles it; and of the shortest of
three more, each on other data.  The paper's are the average for an image or a sentence on a core with 2.4 GHz.  *Error*
is the largest one of an accelerator's operator in the first run, against the exact operator on the same operands,
relative to the operator's largest result: that of the number formats.
Certificates decide what is offloaded, not how long it takes; recorded times were taken with stand-ins for them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ilaverify
from benchmarks.networks import inputs_of
from benchmarks.record import page, recorded, write
from ilaverify.catalogue import all_entries
from ilaverify.models.compilation import Request, compile_model
from ir_semantics.graph.build import run_node
from rewrites.compiler.artefact.model import Compiled
from rewrites.compiler.artefact.running import run_compiled
from rewrites.compiler.codegen import Devices, Options

REPEATS = 3
BOTH = ("hlscnn", "flexasr")


@dataclass(frozen=True)
class Model:
    """An application, its accelerators, what the paper's simulators took and what is aimed at, in seconds."""

    targets: tuple[str, ...]
    paper: float | None = None
    target: float | None = None


MODELS = {
    "lstm_wlm": Model(("flexasr",), 60 + 10, 2),
    "resmlp": Model(("flexasr",), 19 * 60 + 15, 5),
    "resnet20": Model(BOTH, 14 * 60 + 23, 2),
    "mobilenet_v2": Model(BOTH, 42 * 60 + 26, 10),
    "efficientnet": Model(BOTH),
    "transformer": Model(("flexasr",)),
}
DIGITS = {"digits-flexasr": ("flexasr",), "digits-hlscnn": ("hlscnn",), "digits-hlscnn-flexasr": BOTH}
DESIGNS: Mapping[str, Options] = {
    "original": Options(as_published=True),
    "updated": Options(as_published=True, chosen={"weight_bits": 16}),
    "scaled": Options(chosen={"weight_bits": 16}),
}


def measure(name: str, proofs: Path) -> dict[str, Any]:
    """A row of one of the tables."""
    return _accuracy(name, proofs) if name in DIGITS else _times(name, proofs)


def _accuracy(name: str, proofs: Path) -> dict[str, Any]:
    """What became of all images in each design."""
    from examples.digits import as_input, load
    from examples.digits.train import FILE

    digits, entries = load(), all_entries()
    images, calibration = as_input(digits.test_images), {"image": as_input(digits.calibration_images)[:, None]}
    row: dict[str, Any] = {"name": name, "targets": list(DIGITS[name])}
    for design, options in DESIGNS.items():
        request = Request(FILE, DIGITS[name], proofs, {"batch": 1}, calibration, options=options)
        compiled = compile_model(request, entries)
        comparison = ilaverify.run(compiled, {"image": images}, labels=digits.test_labels)
        (answers,) = comparison.answers
        devices, start = Devices(), time.process_time()
        for image in images:
            _run(compiled, {"image": image[None]}, devices)
        row |= {"images": comparison.samples, "reference": answers.reference_as_labelled}
        row[design] = {
            "right": answers.as_labelled,
            "as_reference": answers.as_reference,
            "beyond_bound": sum(node.inside is False for node in comparison.nodes),
            "image": (time.process_time() - start) / comparison.samples,
        }
    return row


def _times(name: str, proofs: Path) -> dict[str, Any]:
    import onnx

    from examples.models.applications import APPLICATIONS

    model = MODELS[name]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        onnx.save(APPLICATIONS[name].build(0), path)
        entries = all_entries()
        start = time.process_time()
        compiled = compile_model(Request(path, model.targets, proofs, {}), entries)
        compiling = time.process_time() - start
    devices, errors, seconds = Devices(), [0.0], []
    for seed in range(1 + REPEATS):
        inputs, start = inputs_of(compiled.graph, seed), time.process_time()
        outputs = _run(compiled, inputs, devices)
        seconds.append(time.process_time() - start)
        if seed == 0:
            first = outputs
    if not all(
        np.array_equal(first[name], again)
        for name, again in _run(compiled, inputs_of(compiled.graph, 0), devices, errors).items()
    ):
        raise RuntimeError(f"Runs of {name} on the same data must give the same result; report this as a fault")
    programs = [program for of_node in compiled.programs.values() for program in of_node]
    return {
        "name": name,
        "targets": list(model.targets),
        "paper": model.paper,
        "target": model.target,
        "nodes": len(compiled.implementations),
        "programs": len(programs),
        "commands": sum(program["commands"] for program in programs),
        "compile": compiling,
        "first": seconds[0],
        "run": min(seconds[1:]),
        "error": max(errors),
    }


def _run(
    compiled: Compiled, inputs: Mapping[str, Any], devices: Devices, errors: list[float] | None = None
) -> dict[int, Any]:
    """The outputs of a run; the relative error of each accelerator operator goes to ``errors``."""
    outputs, values = set(compiled.graph.outputs.values()), {}
    for ran in run_compiled(compiled.graph, compiled.implementations, inputs, devices):
        if ran.number in outputs:
            values[ran.number] = ran.value
        if errors is not None and ran.executed is not None:
            exact = run_node(compiled.graph.nodes[ran.number], ran.operands)
            errors.append(float(np.abs(ran.value - exact).max() / np.abs(exact).max()))
    return values


def tables(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| digits on | host (float32) | original | updated | scaled | s an image |", "|" + " --- |" * 6]
    for row in rows:
        if row["name"] in DIGITS:
            part = {design: f"{100 * row[design]['right'] / row['images']:.1f} %" for design in DESIGNS}
            numbers = [f"{100 * row['reference'] / row['images']:.1f} %", *part.values()]
            numbers.append(f"{min(row[design]['image'] for design in DESIGNS):.4f}")
            lines.append(f"| {_platform(row)} | " + " | ".join(numbers) + " |")
    heads = ["application", "on", "nodes", "programs", "commands", "compile, s", "first run, s", "run, s", "paper, s"]
    lines += ["", f"| {' | '.join([*heads, 'error'])} |", "|" + " --- |" * (len(heads) + 1)]
    for row in rows:
        if row["name"] in MODELS:
            numbers = [f"{row['nodes']}", f"{row['programs']}", f"{row['commands']:,}", f"{row['compile']:.1f}"]
            numbers += [f"{row['first']:.2f}", f"{row['run']:.2f}", f"{row['paper']:g}" if row["paper"] else ""]
            lines.append(f"| {row['name']} | {_platform(row)} | {' | '.join(numbers)} | {row['error']:.1g} |")
    return "\n".join(lines)


def _platform(row: Mapping[str, Any]) -> str:
    return " and ".join({"hlscnn": "HLSCNN", "flexasr": "FlexASR"}[target] for target in row["targets"])


def main(arguments: list[str]) -> int:
    """Measures the rows and writes JSON and Markdown to ``benchmarks/results``; 1 where a target is missed."""
    names = [*DIGITS, *MODELS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table4")
    parser.add_argument("proofs", type=Path, help="certificates of ilaverify prove --target hlscnn,flexasr -o PROOFS")
    parser.add_argument("--row", action="append", choices=names, help="measure this row, keep the others; default: all")
    parser.add_argument("--print", choices=names, help="measure one row in this process, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.print:
        print(json.dumps(measure(options.print, options.proofs)))
        return 0
    measured = {row["name"]: row for row in recorded("table4")["rows"]} if options.row else {}
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name in options.row or names:
        command = [sys.executable, "-m", "benchmarks.table4", str(options.proofs), "--print", name]
        done = subprocess.run(command, env=os.environ | single, check=True, stdout=subprocess.PIPE, text=True)
        measured[name] = json.loads(done.stdout)
        print(json.dumps(measured[name]), flush=True)
    rows = [measured[name] for name in names if name in measured]
    write(
        "table4",
        {"command": "python -m benchmarks.table4 PROOFS", "rows": rows},
        page("table4", "Table 4", __doc__, tables(rows)),
    )
    print(tables(rows))
    return int(any(row.get("target") and row["run"] > row["target"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
