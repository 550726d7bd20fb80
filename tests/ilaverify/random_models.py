"""Random small ONNX models of what accelerators execute, with odd sizes and extreme numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

STYLES = ("whole", "normal", "constant", "zeros", "huge", "tiny", "spike", "sparse", "mixed", "halves")
"""Ways to draw numbers; whole numbers are -2 .. 2, so that sums of products of them are exact."""


def numbers(style: str, seed: int, *shape: int) -> NDArray[np.float32]:
    """An array of this shape."""
    draw = np.random.default_rng(seed)
    count = int(np.prod(shape))
    found = draw.normal(size=count)
    match style:
        case "whole":
            found = draw.integers(-2, 3, count).astype(float)
        case "constant":
            found[:] = draw.normal()
        case "zeros":
            found *= 0.0  # of both signs
        case "huge":
            found *= 2.0**20
        case "tiny":
            found *= 2.0**-25
        case "spike":
            found *= 1e-3
            found[draw.integers(count)] = 50.0
        case "sparse":
            found *= draw.random(count) < 0.2
        case "mixed":
            found *= 2.0 ** draw.integers(-12, 6, count)
        case "halves":  # on the boundaries of number formats
            found = (draw.integers(-200, 201, count) + 0.5) * 2.0 ** draw.integers(-8, 2)
    return found.reshape(shape).astype(np.float32)


class Model:
    """An ONNX model under construction: the output of the last node goes on; weights have one style."""

    def __init__(self, style: str, seed: int) -> None:
        self.style, self.seed = style, seed
        self.at, self.count = "x", 0
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shape: tuple[int, ...] = ()

    def weight(self, *shape: int, value: NDArray[Any] | None = None) -> str:
        """The name of a new constant."""
        name = f"w{len(self.weights)}"
        array = numbers(self.style, self.seed + len(self.weights), *shape) if value is None else value
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def add(self, operator: str, *operands: str, outputs: int = 1, **attributes: Any) -> None:
        """A node on the last output and other operands; of several outputs the last one goes on."""
        names = [f"t{self.count}.{i}" for i in range(outputs)]
        self.count += 1
        first = [] if operands and operands[0] == self.at else [self.at]
        self.nodes.append(
            helper.make_node(operator, [*first, *operands], names, f"{operator}{self.count}", **attributes)
        )
        self.at = names[-1]

    def proto(self, shape: tuple[int, ...]) -> onnx.ModelProto:
        """The model, of which the result has ``shape``."""
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        nodes = [*self.nodes, helper.make_node("Identity", [self.at], ["y"])]
        graph = helper.make_graph(nodes, "random", [given], [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _activation(draw: st.DrawFn, model: Model) -> None:
    chosen = draw(st.sampled_from(["", "", "Relu", "Sigmoid", "Tanh"]))
    if chosen:
        model.add(chosen)


def _convolution(draw: st.DrawFn, model: Model) -> None:
    """A convolution of any form, on its own or with what follows it, and a second one of pixels."""
    batch, groups = draw(st.integers(1, 2)), draw(st.sampled_from([1, 1, 2, 3, 20]))
    channels, outputs = (groups * draw(st.integers(1, 9 if groups == 1 else 3)) for _ in range(2))
    kernel, strides = ([draw(st.integers(1, most)) for _ in range(2)] for most in (3, 4))
    pads = draw(st.sampled_from([[0, 0, 0, 0], [1, 0, 2, 1], [1, 1, 1, 1]]))
    model.shape = (batch, channels, *(k + draw(st.integers(0, 6)) for k in kernel))
    operands = [model.weight(outputs, channels // groups, *kernel)]
    if draw(st.booleans()):
        operands.append(model.weight(outputs))
    model.add("Conv", *operands, strides=strides, pads=pads, group=groups)
    if draw(st.booleans()):
        vectors = [model.weight(outputs) for _ in range(3)]
        variance = model.weight(value=4.0 ** np.arange(outputs).clip(0, 2) / 4)
        model.add("BatchNormalization", *vectors, variance, epsilon=0.0)
    _activation(draw, model)
    if draw(st.booleans()):
        model.add("Conv", model.weight(3, outputs, 1, 1), strides=[draw(st.integers(1, 2)), 2])


def _dense(draw: st.DrawFn, model: Model) -> None:
    """A dense layer as Gemm, or as a product of matrices with or without a bias."""
    rows, inputs, outputs = draw(st.integers(1, 9)), draw(st.integers(1, 40)), draw(st.integers(1, 70))
    if draw(st.booleans()):
        model.shape = (rows, inputs)
        bias = [model.weight(*draw(st.sampled_from([(outputs,), (1,), (rows, outputs)])))]
        factors = {name: draw(st.sampled_from([1.0, 1.0, 0.5, -1.0])) for name in ("alpha", "beta")}
        model.add("Gemm", model.weight(outputs, inputs), *bias[: draw(st.integers(0, 1))], transB=1, **factors)
    else:
        model.shape = draw(st.sampled_from([(rows, inputs), (2, rows, inputs)]))
        model.add("MatMul", model.weight(inputs, outputs))
        if draw(st.booleans()):
            model.add("Add", model.weight(outputs))
    _activation(draw, model)


def _pooling(draw: st.DrawFn, model: Model) -> None:
    """Max pooling with windows of any size."""
    window, strides = ([draw(st.integers(1, 4)) for _ in range(2)] for _ in range(2))
    model.shape = (1, draw(st.integers(1, 3)), *(k + draw(st.integers(0, 8)) for k in window))
    model.add("MaxPool", kernel_shape=window, strides=strides)


def _normalisation(draw: st.DrawFn, model: Model) -> None:
    """Layer normalisation of rows."""
    features = draw(st.sampled_from([16, 32, 48, 17]))
    model.shape = (draw(st.integers(1, 6)), features)
    epsilon = draw(st.sampled_from([1e-5, 1e-12, 1e-3]))
    model.add("LayerNormalization", model.weight(features), model.weight(features), epsilon=epsilon)


def _recurrent(draw: st.DrawFn, model: Model) -> None:
    """A recurrent layer of up to three sequences, in any direction; the last states go on."""
    operator, gates = draw(st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]))
    steps, inputs, hidden = draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(1, 6))
    direction = draw(st.sampled_from(["forward", "forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    model.shape = (steps, draw(st.integers(1, 3)), inputs)
    weights = [model.weight(directions, gates * hidden, n) for n in (inputs, hidden)]
    more = {"linear_before_reset": draw(st.integers(0, 1))} if operator == "GRU" else {}
    biases = model.weight(directions, 2 * gates * hidden)
    model.add(operator, *weights, biases, outputs=2, hidden_size=hidden, direction=direction, **more)


@st.composite
def random_models(draw: st.DrawFn) -> Model:
    """A model of one or two layers that accelerators may execute."""
    model = Model(draw(st.sampled_from(STYLES)), draw(st.integers(0, 10_000)))
    kinds = [_convolution, _convolution, _dense, _dense, _pooling, _normalisation, _recurrent]
    draw(st.sampled_from(kinds))(draw, model)
    return model
