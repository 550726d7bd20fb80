"""The applications.  Sources are given with each; where a published implementation leaves a choice, the one is taken
that has as many convolutions and dense layers as table 1 of the paper counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import ModelProto, TensorProto

from .layers import Network


@dataclass(frozen=True)
class Application:
    """An application: how it is built from a seed, and its layers that accelerators may take.

    ``convolutions`` counts those without groups, ``dense`` the products with weights outside of attention and LSTM.
    """

    name: str
    build: Callable[[int], ModelProto]
    convolutions: int
    dense: int


def _conv_norm(net: Network, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
    """Convolution that keeps the size (but for its stride), then batch normalisation."""
    return net.batch_norm(net.conv(x, inputs, outputs, kernel, stride, groups, pad=kernel // 2), outputs)


def resnet20(seed: int) -> ModelProto:
    """ResNet-20 for CIFAR-10 (He et al. 2016, section 4.2, with projections as in Gluon's cifar_resnet20_v1)."""
    net = Network("ResNet-20", seed)
    x = net.node("Relu", _conv_norm(net, net.input("image", 1, 3, 32, 32), 3, 16, 3))
    inputs = 16
    for outputs in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and outputs != 16 else 1
            y = net.node("Relu", _conv_norm(net, x, inputs, outputs, 3, stride))
            y = _conv_norm(net, y, outputs, outputs, 3)
            if inputs != outputs:
                x = net.batch_norm(net.conv(x, inputs, outputs, 1, stride), outputs)
            x, inputs = net.node("Relu", net.node("Add", x, y)), outputs
    features = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.dense(features, 64, 10), [1, 10])


# Expansion, outputs, blocks, stride (Sandler et al. 2018, table 2); for CIFAR-10 the first two strides are 1.
_MOBILE = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2(seed: int) -> ModelProto:
    """MobileNet-V2 for CIFAR-10, as in kuangliu's pytorch-cifar: shortcuts with a convolution where channels change."""
    net = Network("MobileNet-V2", seed)
    x = net.node("Relu", _conv_norm(net, net.input("image", 1, 3, 32, 32), 3, 32, 3))
    inputs = 32
    for expansion, outputs, blocks, first in _MOBILE:
        for block in range(blocks):
            stride, wide = first if block == 0 else 1, expansion * inputs
            y = net.node("Relu", _conv_norm(net, x, inputs, wide, 1))
            y = net.node("Relu", _conv_norm(net, y, wide, wide, 3, stride, wide))
            y = _conv_norm(net, y, wide, outputs, 1)
            if stride == 1:
                y = net.node("Add", y, x if inputs == outputs else _conv_norm(net, x, inputs, outputs, 1))
            x, inputs = y, outputs
    x = net.node("Relu", _conv_norm(net, x, 320, 1280, 1))
    pooled = net.node("AveragePool", x, kernel_shape=[4, 4], strides=[4, 4])
    return net.model(net.dense(net.node("Flatten", pooled), 1280, 10), [1, 10])


# Expansion, outputs, blocks, stride, kernel (Tan and Le 2019, table 1: EfficientNet-B0).
_EFFICIENT = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def efficientnet(seed: int) -> ModelProto:
    """EfficientNet-B0 for ImageNet, without squeeze-and-excitation; the classifier is a convolution of 1x1.

    Table 1 counts 35 convolutions and no dense layer: the stem, two in each of 16 blocks, the head and the classifier.
    """
    net = Network("EfficientNet-B0", seed)

    def swish(x: str) -> str:
        return net.node("Mul", x, net.node("Sigmoid", x))

    x = swish(_conv_norm(net, net.input("image", 1, 3, 224, 224), 3, 32, 3, 2))
    inputs = 32
    for expansion, outputs, blocks, first, kernel in _EFFICIENT:
        for block in range(blocks):
            stride, wide = first if block == 0 else 1, expansion * inputs
            y = swish(_conv_norm(net, x, inputs, wide, 1))
            y = swish(_conv_norm(net, y, wide, wide, kernel, stride, wide))
            y = _conv_norm(net, y, wide, outputs, 1)
            x = net.node("Add", x, y) if stride == 1 and inputs == outputs else y
            inputs = outputs
    x = swish(_conv_norm(net, x, 320, 1280, 1))
    scores = net.conv(net.node("GlobalAveragePool", x), 1280, 1000, 1)
    return net.model(net.node("Flatten", scores), [1, 1000])


def resmlp(seed: int) -> ModelProto:
    """ResMLP (Touvron et al. 2021) for CIFAR-10: 384 features, 12 layers, patches of 16x16 of an image of 32x32."""
    net, features, patches, hidden = Network("ResMLP", seed), 384, 4, 1536

    def affine(x: str) -> str:
        scaled = net.node("Mul", x, net.uniform(0.5, 1.5, features))
        return net.node("Add", scaled, net.random(features, scale=0.1))

    def scaled_sum(x: str, y: str) -> str:
        return net.node("Add", x, net.node("Mul", y, net.uniform(0.05, 0.15, features)))

    cut = net.reshape(net.input("image", 1, 3, 32, 32), 1, 3, 2, 16, 2, 16)
    rows = net.reshape(net.node("Transpose", cut, perm=[0, 2, 4, 3, 5, 1]), 1, patches, 768)
    x = net.dense(rows, 768, features)
    for _ in range(12):
        across = net.node("Transpose", affine(x), perm=[0, 2, 1])
        mixed = net.node("Transpose", net.dense(across, patches, patches), perm=[0, 2, 1])
        x = scaled_sum(x, mixed)
        inner = net.dense(affine(x), features, hidden)
        inner = net.node("Mul", net.node("Mul", inner, net.constant(0.5)), _one_plus_erf(net, inner))
        x = scaled_sum(x, net.dense(inner, hidden, features))
    pooled = net.node("ReduceMean", affine(x), axes=[1], keepdims=0)
    return net.model(net.dense(pooled, features, 10), [1, 10])


def _one_plus_erf(net: Network, x: str) -> str:
    """1 + erf(x / sqrt(2)): with x / 2 the activation GELU."""
    return net.node("Add", net.node("Erf", net.node("Mul", x, net.constant(0.5**0.5))), net.constant(1.0))


def lstm_wlm(seed: int) -> ModelProto:
    """The word-level language model of PyTorch's examples: 35 steps, one layer, 200 features, 33,278 words."""
    net, steps, features, words = Network("LSTM-WLM", seed), 35, 200, 33_278
    tokens = net.input("tokens", steps, 1, dtype=TensorProto.INT64)
    embedded = net.node("Gather", net.random(words, features, scale=1.0), tokens)
    scale = features**-0.5
    weights = [net.random(1, 4 * features, features, scale=scale) for _ in range(2)]
    hidden = net.node("LSTM", embedded, *weights, net.random(1, 8 * features, scale=0.1), hidden_size=features)
    flat = net.reshape(hidden, steps, features)
    return net.model(net.node("LogSoftmax", net.dense(flat, features, words), axis=-1), [steps, words])


def transformer(seed: int) -> ModelProto:
    """nn.Transformer of PyTorch: 8 heads, 6 encoder and 6 decoder layers, 256 features, 1024 inside; 10 and 20 tokens.

    Dense layers: four in an encoder layer (queries, keys and values together; output; two of the feed-forward part) and
    seven in a decoder layer (where the second attention has one for queries, and one for keys and values).
    """
    net, features, heads, inner = Network("Transformer", seed), 256, 8, 1024
    width = features // heads

    def split(x: str, tokens: int, part: int, parts: int) -> str:
        """One of the stacked projections, by head: [heads, tokens, width]."""
        ends = [net.constant([part * features]), net.constant([(part + 1) * features]), net.constant([1])]
        own = net.node("Slice", x, *ends) if parts > 1 else x
        return net.node("Transpose", net.reshape(own, tokens, heads, width), perm=[1, 0, 2])

    def attend(queries: str, keys: str, values: str, tokens: int) -> str:
        scaled = net.node("Mul", queries, net.constant(width**-0.5))
        scores = net.node("MatMul", scaled, net.node("Transpose", keys, perm=[0, 2, 1]))
        joined = net.node("MatMul", net.node("Softmax", scores, axis=-1), values)
        return net.dense(
            net.reshape(net.node("Transpose", joined, perm=[1, 0, 2]), tokens, features), features, features
        )

    def self_attention(x: str, tokens: int) -> str:
        stacked = net.dense(x, features, 3 * features)
        return attend(*(split(stacked, tokens, j, 3) for j in range(3)), tokens)

    def cross_attention(x: str, tokens: int, memory: str, others: int) -> str:
        queries, stacked = net.dense(x, features, features), net.dense(memory, features, 2 * features)
        keys, values = (split(stacked, others, j, 2) for j in range(2))
        return attend(split(queries, tokens, 0, 1), keys, values, tokens)

    def normed(x: str, y: str) -> str:
        return net.layer_norm(net.node("Add", x, y), features)

    def feed_forward(x: str) -> str:
        return net.dense(net.node("Relu", net.dense(x, features, inner)), inner, features)

    memory, source = net.input("source", 10, features), 10
    for _ in range(6):
        memory = normed(memory, self_attention(memory, source))
        memory = normed(memory, feed_forward(memory))
    memory = net.layer_norm(memory, features)
    x, tokens = net.input("target", 20, features), 20
    for _ in range(6):
        x = normed(x, self_attention(x, tokens))
        x = normed(x, cross_attention(x, tokens, memory, source))
        x = normed(x, feed_forward(x))
    return net.model(net.layer_norm(x, features), [20, features])


APPLICATIONS = {
    a.name: a
    for a in (
        Application("efficientnet", efficientnet, 35, 0),
        Application("lstm_wlm", lstm_wlm, 0, 1),
        Application("mobilenet_v2", mobilenet_v2, 40, 1),
        Application("resmlp", resmlp, 0, 38),
        Application("resnet20", resnet20, 21, 1),
        Application("transformer", transformer, 0, 66),
    )
}
"""The six applications by name, with the counts of table 1."""
