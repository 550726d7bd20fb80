"""Compiled models on the simulators: time of an image, or of a sentence, beside that of the D2A/3LA paper.

``python -m benchmarks.compiled_models PROOFS`` needs the extra ``onnx``, and certificates that ``ilaverify prove
--target hlscnn,flexasr -o PROOFS`` has written.  Each model, with random weights, is compiled and run in a process of
its own.  Times are CPU seconds, of all threads together: of compiling; of the first run, for which native code is found
in the cache or compiled; of the second one; and of the shortest of three more, each on other data.  All runs compute
what the accelerators compute, bit by bit.  *Error* is the largest one of an accelerator's operator in the first run,
against the exact operator on the same operands, relative to the operator's largest result: that of the number formats.
Certificates decide what is offloaded, not how long it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import inputs_of
from benchmarks.table3 import RESULTS, machine

REPEATS = 3


@dataclass(frozen=True)
class Model:
    """An application, its accelerators, what the paper's simulators took, and what is aimed at, in seconds."""

    name: str
    targets: tuple[str, ...]
    paper: float
    target: float


MODELS = (
    Model("resnet20", ("hlscnn", "flexasr"), 14 * 60 + 23, 2),
    Model("mobilenet_v2", ("hlscnn", "flexasr"), 42 * 60 + 26, 10),
    Model("lstm_wlm", ("flexasr",), 60 + 10, 2),
    Model("resmlp", ("flexasr",), 19 * 60 + 15, 5),
)


def measure(model: Model, proofs: Path) -> dict[str, Any]:
    """One row of the table."""
    import onnx

    from examples.models.applications import APPLICATIONS
    from ilaverify.catalogue import all_entries
    from ilaverify.compilation import Request, compile_model
    from ir_semantics.graph.build import run_node
    from rewrites.compiler.artefact.running import run_compiled
    from rewrites.compiler.codegen import Devices

    proto = APPLICATIONS[model.name].build(0)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        onnx.save(proto, path)
        entries = all_entries()
        start = time.process_time()
        compiled = compile_model(Request(path, model.targets, proofs, {}), entries)
        compiling = time.process_time() - start
    devices, errors, (output,) = Devices(), [0.0], compiled.graph.outputs.values()

    def result(seed: int, look: bool = False) -> tuple[float, Any]:
        inputs = inputs_of(compiled.graph, seed)
        looking, start = 0.0, time.process_time()
        found = None
        for ran in run_compiled(compiled.graph, compiled.implementations, inputs, devices):
            if ran.number == output:
                found = ran.value
            if look and ran.executed is not None:
                begun = time.process_time()
                exact = run_node(compiled.graph.nodes[ran.number], ran.operands)
                errors.append(float(np.abs(ran.value - exact).max() / np.abs(exact).max()))
                looking += time.process_time() - begun
        return time.process_time() - start - looking, found

    runs = [result(seed, seed == 0) for seed in (0, *range(1, 2 + REPEATS))]
    if not np.array_equal(runs[0][1], result(0)[1]):
        raise RuntimeError(f"Runs of {model.name} on the same data must give the same result; report this as a fault")
    programs = [program for made in compiled.programs.values() for program in made]
    return {
        "name": model.name,
        "targets": list(model.targets),
        "paper": model.paper,
        "target": model.target,
        "programs": len(programs),
        "commands": sum(program["commands"] for program in programs),
        "compile": compiling,
        "first": runs[0][0],
        "second": runs[1][0],
        "run": min(seconds for seconds, _ in runs[2:]),
        "error": max(errors),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    heads = ["model", "programs", "commands", "compile, s", "first run, s", "second, s", "run, s", "target, s"]
    heads += ["paper, s", "error"]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for row in rows:
        numbers = [f"{row['programs']}", f"{row['commands']:,}", f"{row['compile']:.1f}"]
        numbers += [f"{row[k]:.2f}" for k in ("first", "second", "run")]
        numbers += [f"{row['target']:g}", f"{row['paper']:g}", f"{row['error']:.1g}"]
        lines.append(f"| {row['name']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Measures every model and writes JSON and Markdown to ``benchmarks/results``; 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled_models")
    parser.add_argument("proofs", type=Path, help="certificates of ilaverify prove --target hlscnn,flexasr -o PROOFS")
    parser.add_argument("--model", choices=[m.name for m in MODELS], help="one model in this process, as JSON")
    options = parser.parse_args(arguments)
    if options.model:
        (model,) = (m for m in MODELS if m.name == options.model)
        print(json.dumps(measure(model, options.proofs)))
        return 0
    rows = []
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for model in MODELS:
        command = [sys.executable, "-m", "benchmarks.compiled_models", str(options.proofs), "--model", model.name]
        done = subprocess.run(command, env=os.environ | single, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout))
        print(json.dumps(rows[-1]), flush=True)
    content = {"command": "python -m benchmarks.compiled_models PROOFS", "machine": machine(), "rows": rows}
    (RESULTS / "compiled_models.json").write_text(json.dumps(content, indent=2) + "\n")
    note = "\n".join((__doc__ or "").strip().splitlines()[2:])
    text = f"# Compiled models\n\n{note}\n\nMachine and versions: compiled_models.json.\n\n{table(rows)}\n"
    (RESULTS / "compiled_models.md").write_text(text)
    print(table(rows))
    return int(any(row["run"] > row["target"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
