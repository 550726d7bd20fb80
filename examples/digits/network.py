"""The network, written once: what interprets it decides whether it is trained (:mod:`.train`) or exported (here).

A residual network (He et al. 2016) as for CIFAR-10, made smaller for images of 8x8: a convolution, three blocks of two
convolutions each, two of them with stride 2 and a projection, the mean over all pixels, and a dense layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper

from examples.models.layers import Network

T = TypeVar("T")

CLASSES = 10
EPSILON = 1e-5
"""What batch normalisation adds to variances."""

_STEM = 8
_BLOCKS = ((8, 1), (16, 2), (32, 2))
"""Channels and stride of each block."""


class Layers(Protocol[T]):
    """An interpretation of layers; those with weights take them in the order of the calls."""

    def conv(self, x: T, inputs: int, outputs: int, kernel: int, stride: int) -> T:
        """A convolution without bias that keeps the size but for its stride; weights [outputs, inputs, k, k]."""
        ...

    def norm(self, x: T, channels: int) -> T:
        """Batch normalisation; weights: scale and bias, [channels] each."""
        ...

    def relu(self, x: T) -> T:
        """The larger of x and 0."""
        ...

    def add(self, x: T, y: T) -> T:
        """The sum."""
        ...

    def mean(self, x: T) -> T:
        """The mean over all pixels: [N, channels]."""
        ...

    def dense(self, x: T, inputs: int, outputs: int) -> T:
        """x w + b; weights [inputs, outputs] and [outputs]."""
        ...


def network(on: Layers[T], x: T) -> T:
    """The scores [N, 10] of images [N, 1, 8, 8]."""
    x = on.relu(on.norm(on.conv(x, 1, _STEM, 3, 1), _STEM))
    inputs = _STEM
    for outputs, stride in _BLOCKS:
        y = on.relu(on.norm(on.conv(x, inputs, outputs, 3, stride), outputs))
        y = on.norm(on.conv(y, outputs, outputs, 3, 1), outputs)
        if inputs != outputs or stride != 1:
            x = on.norm(on.conv(x, inputs, outputs, 1, stride), outputs)
        x, inputs = on.relu(on.add(x, y)), outputs
    return on.dense(on.mean(x), inputs, CLASSES)


class _Shapes:
    """Collects the shapes of weights."""

    def __init__(self) -> None:
        self.arrays: list[tuple[int, ...]] = []

    def conv(self, x: None, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        self.arrays.append((outputs, inputs, kernel, kernel))

    def norm(self, x: None, channels: int) -> None:
        self.arrays += [(channels,), (channels,)]

    def relu(self, x: None) -> None:
        pass

    def add(self, x: None, y: None) -> None:
        pass

    def mean(self, x: None) -> None:
        pass

    def dense(self, x: None, inputs: int, outputs: int) -> None:
        self.arrays += [(inputs, outputs), (outputs,)]


def shapes() -> list[tuple[int, ...]]:
    """The shapes of all weights, in the order in which layers take them."""
    on = _Shapes()
    network(on, None)
    return on.arrays


class _Onnx:
    """Layers as ONNX nodes."""

    def __init__(
        self, net: Network, weights: Iterator[NDArray[np.float32]], statistics: Iterator[NDArray[np.float32]]
    ) -> None:
        self._net, self._weights, self._statistics = net, weights, statistics

    def _weight(self) -> str:
        return self._net.constant(next(self._weights))

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, stride: int) -> str:
        around = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        return self._net.node("Conv", x, self._weight(), **around)

    def norm(self, x: str, channels: int) -> str:
        scale, bias = self._weight(), self._weight()
        mean, variance = (self._net.constant(next(self._statistics)) for _ in range(2))
        return self._net.node("BatchNormalization", x, scale, bias, mean, variance, epsilon=EPSILON)

    def relu(self, x: str) -> str:
        return self._net.node("Relu", x)

    def add(self, x: str, y: str) -> str:
        return self._net.node("Add", x, y)

    def mean(self, x: str) -> str:
        return self._net.node("Flatten", self._net.node("GlobalAveragePool", x))

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self._net.node("Gemm", x, self._weight(), self._weight())


def export(
    weights: Sequence[NDArray[np.float32]],
    statistics: Sequence[NDArray[np.float32]],
    notes: dict[str, str],
) -> ModelProto:
    """The checked ONNX model, with a symbolic extent ``batch``.

    ``statistics`` are mean and variance of each normalisation, ``notes`` become the model's metadata.  Raises
    ValueError where weights have other shapes.
    """
    expected = shapes()
    if [w.shape for w in weights] != expected:
        raise ValueError(
            f"weights must be {len(expected)} arrays of the shapes that shapes() gives; train the network anew"
        )
    net = Network("digits", 0)  # nothing is drawn: every weight is given
    scores = network(_Onnx(net, iter(weights), iter(statistics)), net.input("image", "batch", 1, 8, 8))
    model = net.model(scores, ["batch", CLASSES])
    helper.set_model_props(model, notes)
    return model
