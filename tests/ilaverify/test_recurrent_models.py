"""Bidirectional recurrent layers of ONNX with two sequences and given states: compiled to FlexASR, run, compared."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ilaverify.catalogue import find_backends
from ilaverify.models.comparison import Samples, compare
from ilaverify.models.references import run_onnx
from ir_semantics.onnx import import_model
from rewrites.compiler.codegen import Devices, Options, implementable
from rewrites.compiler.offload.compiler import offload
from rewrites.compiler.offload.settings import Settings
from tests.ilaverify.test_random_models import implementations
from tests.rewrites.compiler.offload.offload_gates import gate

T, N, INPUTS, HIDDEN = 3, 2, 5, 4


def model(operator: str, gates: int) -> onnx.ModelProto:
    """A layer in both directions, from states that are inputs, with all of its outputs."""
    draw = np.random.default_rng(3)
    shapes = {"w": (2, gates * HIDDEN, INPUTS), "r": (2, gates * HIDDEN, HIDDEN), "b": (2, 2 * gates * HIDDEN)}
    weights = [numpy_helper.from_array(draw.normal(0, 0.3, s).astype("float32"), n) for n, s in shapes.items()]
    states, lasts = (["h", "c"], ["y_h", "y_c"]) if operator == "LSTM" else (["h"], ["y_h"])
    more = {"linear_before_reset": 1} if operator == "GRU" else {}
    node = helper.make_node(
        operator,
        ["x", "w", "r", "b", "", *states],
        ["y", *lasts],
        hidden_size=HIDDEN,
        direction="bidirectional",
        **more,
    )

    def tensor(name: str, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [tensor("x", T, N, INPUTS), *(tensor(name, 2, N, HIDDEN) for name in states)]
    outputs = [tensor("y", T, 2, N, HIDDEN), *(tensor(name, 2, N, HIDDEN) for name in lasts)]
    graph = helper.make_graph([node], "layer", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


OTHERS = (pytest.param(*layer, marks=pytest.mark.slow) for layer in (("GRU", 3), ("RNN", 1)))


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), *OTHERS])
def test_both_directions_of_several_sequences(operator: str, gates: int) -> None:
    pytest.importorskip("onnxruntime")
    proto = model(operator, gates)
    graph = import_model(proto)
    found = offload(graph, gate(), find_backends(["flexasr"]), Settings(implementable=implementable))
    by_steps = {"flexasr.linear": 8} if operator == "LSTM" else {}  # of its cells: inputs of all steps, and each state
    assert found.invocations == {f"flexasr.{operator.lower()}_from": 2 * N, **by_steps}
    draw = np.random.default_rng(5)
    inputs = {n: draw.normal(0, 0.4, graph.nodes[i].type.shape).astype("float32") for n, i in graph.inputs.items()}
    programs = implementations(found.graph, inputs, Options())
    reference = run_onnx(proto.SerializeToString(), inputs)
    compared = compare(found.graph, programs, Samples.one(inputs, reference), Devices())[0]
    assert len(compared.nodes) == sum(found.invocations.values()) and all(node.inside for node in compared.nodes)
    for output, bound in zip(compared.outputs, compared.network, strict=True):
        assert output.name == bound.output and bound.inside
        assert bound.bound is not None and output.error <= bound.bound < output.scale
