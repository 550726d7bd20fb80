"""A convolution of several images is offloaded to HLSCNN, and runs there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ilaverify.models.compilation import Request, compile_model
from rewrites.compiler.codegen import Devices
from tests.ilaverify.compiled_models import BOUNDS, RESTS_ON, entries, pretended


def test_a_convolution_of_several_images_runs_on_hlscnn(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    weights = draw.normal(size=(2, 3, 2, 2)).astype("float32")
    shapes = {"x": [2, 3, 5, 5], "y": [2, 2, 4, 4]}
    given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "images", [given], [result], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "images.onnx")
    claims = [name for name in (*RESTS_ON, *BOUNDS) if "flexasr" not in name]
    proofs = pretended(claims, tmp_path / "proofs")
    compiled = compile_model(Request(tmp_path / "images.onnx", ("hlscnn",), proofs, {}), entries())
    (made,) = compiled.implementations.values()
    assert made.node.operator == "hlscnn.conv2d" and len(made.calls) == 2 and not compiled.host
    x = draw.normal(size=shapes["x"]).astype("float32")
    done = made.run([x, weights], Devices())
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(float), (2, 2), axis=(2, 3))
    exact = np.einsum("nchwij,fcij->nfhw", windows, weights)
    bound = made.bounds(done).on_given
    assert bound is not None and np.abs(done.value - exact).max() <= bound
