"""The six applications of examples/models: their layers, the import, and results against onnxruntime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.models.applications import APPLICATIONS
from ir_semantics.graph import Graph, run
from ir_semantics.onnx import import_model

ROOT = Path(__file__).parents[3]
OUTPUTS = {
    "efficientnet": (1, 1000),
    "lstm_wlm": (35, 33_278),
    "mobilenet_v2": (1, 10),
    "resmlp": (1, 10),
    "resnet20": (1, 10),
    "transformer": (20, 256),
}


def inputs_of(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    for name, number in graph.inputs.items():
        of = graph.nodes[number].type
        if of.dtype == "int64":
            drawn[name] = generator.integers(0, 33_278, of.shape)
        else:
            drawn[name] = generator.standard_normal(of.shape).astype(np.float32)
    return drawn


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("resnet20", "mobilenet_v2") else pytest.mark.slow) for n in APPLICATIONS]
)
def test_layers_are_those_of_table_1(name: str) -> None:
    application = APPLICATIONS[name]
    graph = import_model(application.build(0))
    plain = [n for n in graph.nodes if n.operator == "conv" and n.attribute("groups") == 1]
    dense = [n for n in graph.nodes if n.operator == "matmul" and graph.nodes[n.operands[1]].operator == "constant"]
    assert (len(plain), len(dense)) == (application.convolutions, application.dense)
    assert graph.operators().get("lstm", 0) == (1 if name == "lstm_wlm" else 0)
    (output,) = graph.outputs.values()
    assert graph.nodes[output].type.shape == OUTPUTS[name]


def test_resnet20_runs() -> None:
    graph = import_model(APPLICATIONS["resnet20"].build(0))
    (scores,) = run(graph, inputs_of(graph)).values()
    assert np.isfinite(scores).all() and np.ptp(scores) > 0.1


def test_a_seed_decides_the_weights() -> None:
    build = APPLICATIONS["resnet20"].build
    first, second, other = (build(seed).SerializeToString(deterministic=True) for seed in (3, 3, 4))
    assert first == second != other


def test_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.models.__main__ import main

    monkeypatch.setattr("sys.argv", ["models", "resnet20", "-o", str(tmp_path / "m.onnx")])
    main()
    assert import_model(tmp_path / "m.onnx").operators()["conv"] == 21


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_results_are_those_of_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = APPLICATIONS[name].build(0)
    graph = import_model(model)
    inputs = inputs_of(graph, 1)
    options: Any = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    (found,) = run(graph, inputs).values()
    # at most 90 layers of sums of at most 1,536 products; see test_networks.py for the form of the bound
    bound = 2 * np.sqrt(90 * 1_536) * 2.0**-24
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()


def test_without_onnx_the_command_names_the_extra() -> None:
    program = (
        "import runpy, sys; sys.modules['onnx'] = None; sys.argv = ['models', 'resnet20', '-o', 'r.onnx']; "
        "runpy.run_module('examples.models', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        64,
        "python -m examples.models needs the package onnx, which is not installed; pip install ilaverify[onnx]\n",
    )
