"""Networks that the onnx package ships, with random weights, on the host and on onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from examples.models.shipped import SHIPPED, shipped
from ir_semantics.graph import run
from ir_semantics.onnx import import_model


def test_there_are_nine_networks() -> None:
    assert len(SHIPPED) == 9 and "resnet50" in SHIPPED


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_networks_are_those_of_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = shipped(name)
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
