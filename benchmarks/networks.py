"""Networks on the host: time to import a model and to run it on NumPy, beside onnxruntime on the same inputs.

Needs the extra ``compare``.  Times are CPU seconds of one thread (for both), those of runs the shortest of three;
*difference* is the largest one between the outputs (before a softmax), relative to the largest output.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from benchmarks.record import write
from examples.models.applications import APPLICATIONS
from examples.models.shipped import SHIPPED, shipped
from ir_semantics.graph import Graph, run
from ir_semantics.onnx import import_model

REPEATS = 3


def models() -> dict[str, Callable[[], onnx.ModelProto]]:
    """The models, the six applications of the paper first."""
    models: dict[str, Callable[[], onnx.ModelProto]] = {n: lambda a=a: a.build(0) for n, a in APPLICATIONS.items()}  # type: ignore[misc]
    return models | {n: lambda n=n: before_softmax(shipped(n)) for n in SHIPPED}  # type: ignore[misc]


def before_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the input of its last softmax, which would hide differences, as its output."""
    last = [n for n in model.graph.node if n.op_type == "Softmax"]
    if last:
        inferred = onnx.shape_inference.infer_shapes(model)
        (value,) = (v for v in inferred.graph.value_info if v.name == last[-1].input[0])
        model.graph.output[0].CopyFrom(value)
    return model


def inputs_of(graph: Graph, seed: int = 1) -> dict[str, Any]:
    """Random inputs; tokens below 1000."""
    generator = np.random.default_rng(seed)
    drawn: dict[str, Any] = {}
    for name, number in graph.inputs.items():
        of = graph.nodes[number].type
        whole = of.dtype == "int64"
        drawn[name] = generator.integers(0, 1000, of.shape) if whole else generator.random(of.shape, np.float32)
    return drawn


def shortest(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the last run gave."""
    times, result = [], None
    for _ in range(REPEATS):
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
    return min(times), result


def measure(name: str, model: onnx.ModelProto) -> dict[str, Any]:
    """One row of the table."""
    import onnxruntime

    start = time.process_time()
    graph = import_model(model)
    imported = time.process_time() - start
    inputs = inputs_of(graph)
    seconds, outputs = shortest(lambda: run(graph, inputs))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    reference, expected = shortest(lambda: session.run(None, inputs))
    (value,), (reference_value,) = outputs.values(), expected
    return {
        "model": name,
        "nodes": len(graph.nodes),
        "import_s": round(imported, 2),
        "run_s": round(seconds, 3),
        "onnxruntime_s": round(reference, 3),
        "difference": float(f"{np.abs(value - reference_value).max() / np.abs(reference_value).max():.1e}"),
    }


def main() -> int:
    """Measures every model, each in a process of one thread, and writes JSON and Markdown to ``benchmarks/results``."""
    rows = []
    for name in models():
        command = [sys.executable, "-m", "benchmarks.networks", name]
        one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is loaded
        done = subprocess.run(command, env=one_thread, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout))
        print(rows[-1], flush=True)
    write("networks", {"rows": rows}, markdown(rows), ["onnx", "onnxruntime"])
    return 0


def markdown(rows: list[dict[str, Any]]) -> str:
    """The results as a page."""
    lines = ["# Networks on the host", "", *(__doc__ or "").strip().splitlines()[2:], ""]
    lines += ["Machine and versions: networks.json.", ""]
    head = ["model", "nodes", "import, s", "run, s", "onnxruntime, s", "difference"]
    lines += [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    lines += [f"| {' | '.join(map(str, r.values()))} |" for r in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=models(), help="measure this model here, and print it")
    name = parser.parse_args().name
    if name is None:
        sys.exit(main())
    print(json.dumps(measure(name, models()[name]())))
