"""Networks that the onnx package ships, with random weights, on the host and on onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ir_semantics.graph import run
from ir_semantics.onnx import import_model

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = sorted(p.stem.removeprefix("light_") for p in LIGHT.glob("light_*.onnx"))


def with_random_weights(name: str) -> onnx.ModelProto:
    """The network; its weights, all equal in the package, are drawn such that activations keep their size."""
    model, generator = onnx.load(LIGHT / f"light_{name}.onnx"), np.random.default_rng(0)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]].tolist()
        fan = np.prod(shape[1:])
        values = (
            generator.uniform(0.5, 1.5, shape)
            if len(shape) == 1
            else generator.standard_normal(shape) * (2 / fan) ** 0.5
        )
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.ir_version = 8  # since 4, initializers need not be inputs
    return model


def test_there_are_nine_networks() -> None:
    assert len(NETWORKS) == 9 and "resnet50" in NETWORKS


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_those_of_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = with_random_weights(name)
    before_softmax = [n for n in model.graph.node if n.op_type == "Softmax"]
    if before_softmax:  # compare what softmax would hide
        output = model.graph.output[0]
        output.CopyFrom(onnx.helper.make_tensor_value_info(before_softmax[-1].input[0], 1, None))
        inferred = onnx.shape_inference.infer_shapes(model)
        output.CopyFrom(next(v for v in (*inferred.graph.value_info, *inferred.graph.output) if v.name == output.name))
    graph = import_model(model)
    generator = np.random.default_rng(1)
    inputs = {n: generator.random(graph.nodes[i].type.shape).astype(np.float32) for n, i in graph.inputs.items()}
    options: Any = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    (found,) = run(graph, inputs).values()
    assert found.shape == expected.shape
    # Each of at most 160 layers sums at most 25,088 products; the errors of sums in two orders grow like the square
    # root of their number, in units of 2^-24 of the layer's scale, and add up over layers in the same way.
    bound = 2 * np.sqrt(160 * 25_088) * 2.0**-24
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()
