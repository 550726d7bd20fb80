"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

node = helper.make_node


def tensor(name: str, value: Any, dtype: str | None = None) -> TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Sequence[int | str]],
    outputs: dict[str, Sequence[int | str]],
    constants: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
    **extra: Any,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, dtype, list(s)) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, dtype, list(s)) for n, s in outputs.items()],
        list(constants),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **extra)


def convolutional() -> ModelProto:
    """Convolution, relu, pooling, reshape, softmax and a gather, on an image of 8x8 with three channels."""
    generator = np.random.default_rng(0)
    weights = tensor("w", generator.standard_normal((4, 3, 3, 3)), "float32")
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["p", "s"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=-1),
        node("Gather", ["y", "i"], ["z"], axis=1),
    ]
    constants = [weights, tensor("s", [1, -1]), tensor("i", [3, 5])]
    return model(nodes, {"x": [1, 3, 8, 8]}, {"z": [1, 2]}, constants)
