"""Layers as ONNX nodes, with weights drawn from one seeded generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

OPSET = 17
"""The first version of ONNX's operator set that has LayerNormalization."""


class Network:
    """A model under construction; every method adds nodes and gives the name of their result."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._generator = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._weights: list[TensorProto] = []
        self._inputs: list[Any] = []

    def model(self, output: str, shape: Sequence[int | str]) -> ModelProto:
        """The checked model; extents of shapes are numbers or names."""
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape))
        graph = helper.make_graph(self._nodes, self.name, self._inputs, [result], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        checker.check_model(model)
        return model

    def input(self, name: str, *shape: int | str, dtype: int = TensorProto.FLOAT) -> str:
        """An input."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first result."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        results = [name, *(f"{name}_{j}" for j in range(1, outputs))]
        self._nodes.append(helper.make_node(operator, list(inputs), results, name=name, **attributes))
        return name

    def constant(self, values: ArrayLike) -> str:
        """A constant; numbers that are not whole become binary32."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        name = f"constant_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def random(self, *shape: int, scale: float) -> str:
        """Normally distributed weights."""
        return self.constant(self._generator.standard_normal(shape, np.float32) * np.float32(scale))

    def uniform(self, low: float, high: float, *shape: int) -> str:
        """Uniformly distributed weights."""
        return self.constant(self._generator.uniform(low, high, shape))

    # -- layers ------------------------------------------------------------------------------------------

    def conv(
        self, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, pad: int = 0
    ) -> str:
        """A convolution without bias."""
        fan = inputs // groups * kernel**2
        weights = self.random(outputs, inputs // groups, kernel, kernel, scale=(2 / fan) ** 0.5)
        around = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.node("Conv", x, weights, group=groups, **around)

    def batch_norm(self, x: str, channels: int) -> str:
        """Batch normalisation for inference, with statistics near 0 and 1."""
        scale, bias = self.uniform(0.5, 1.5, channels), self.uniform(-0.2, 0.2, channels)
        mean, variance = self.uniform(-0.2, 0.2, channels), self.uniform(0.5, 1.5, channels)
        return self.node("BatchNormalization", x, scale, bias, mean, variance)

    def dense(self, x: str, inputs: int, outputs: int, bias: bool = True) -> str:
        """x w (+ bias) for x of any rank."""
        product = self.node("MatMul", x, self.random(inputs, outputs, scale=inputs**-0.5))
        return self.node("Add", product, self.random(outputs, scale=0.1)) if bias else product

    def layer_norm(self, x: str, features: int) -> str:
        """Layer normalisation over the last axis."""
        scale, bias = self.uniform(0.5, 1.5, features), self.uniform(-0.2, 0.2, features)
        return self.node("LayerNormalization", x, scale, bias, axis=-1)

    def reshape(self, x: str, *shape: int) -> str:
        """The same elements under another shape."""
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))
