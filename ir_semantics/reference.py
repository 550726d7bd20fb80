"""Layers on NumPy arrays, over the real numbers and over machine integers: what measurements compare accelerators with.

The real-valued ones compute in float64, whose own error (about 1e-16 of the result's scale per operation) is far below
that of any 8-bit or 16-bit format; they are no bit-exact specification and no proof rests on them.  The integer ones
are exact.

A layer's weights are [outputs, inputs], a sequence is [timesteps, features], images are [batch, channels, height,
width] and kernels [outputs, inputs, height, width].  The gates of a recurrent layer are stacked along the first axis of
weights and biases, in the order i, f, g, o (LSTM) and r, z, n (GRU).

Sources: the ONNX operator specification (Gemm, RNN, GRU with linear_before_reset = 1, LSTM, LayerNormalization, Conv),
and the attention of FlexASR, which does not scale its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def sigmoid(x: Reals) -> Reals:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def softmax(x: Reals) -> Reals:
    """exp(x) / sum(exp(x)) along the last axis, without overflow."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def dense(x: Reals, w: Reals, b: Reals) -> Reals:
    """x w^T + b."""
    return np.asarray(x @ w.T + b)


def layer_norm(x: Reals, gamma: Reals, beta: Reals, *, eps: float = 1e-5) -> Reals:
    """(x - mean) / sqrt(variance + eps) * gamma + beta along the last axis; the variance is that of the population."""
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + eps)
    return np.asarray(centred / deviation * gamma + beta)


def attention(keys: Reals, query: Reals) -> Reals:
    """softmax(K q) K for one query: keys K [T, F] are also the values, scores are not scaled; the result is [F]."""
    return np.asarray(softmax(keys @ query) @ keys)


def pool_over_time(x: Reals, kind: Literal["max", "mean", "add"]) -> Reals:
    """Pairs of timesteps of x [T, F] folded into one each; the last one of an odd number is left out."""
    pairs = x[: len(x) // 2 * 2].reshape(-1, 2, *x.shape[1:])
    folds: Mapping[str, Callable[..., Any]] = {"max": np.max, "mean": np.mean, "add": np.sum}
    return np.asarray(folds[kind](pairs, axis=1))


def conv2d(x: Reals, w: Reals, *, stride: tuple[int, int] = (1, 1)) -> Reals:
    """The cross-correlation of images with kernels, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    sums = np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3)))  # [N, H', W', O]
    return np.moveaxis(sums, 3, 1)


# -- recurrent layers: x [T, I], w [G*H, I], u [G*H, H], b and c [G*H] for G gates and a state of H --------------------


def rnn(*layer: Reals) -> Reals:
    """h' = tanh(W x + b + U h + c) for every timestep, from 0 or h [1, H], given after c; the result is [T, H]."""
    return _over_time(layer, 1, lambda i, h, _: (np.tanh(i[0] + h[0]),))[0]


def gru(*layer: Reals) -> Reals:
    """The hidden states [T, H] of a gated recurrent unit whose reset gate acts after the hidden product.

    The first one may be given after the layer's tensors, as [1, H]; it is 0 otherwise.

    * r = sigmoid(W_r x + b_r + U_r h + c_r) and z likewise,
    * n = tanh(W_n x + b_n + r * (U_n h + c_n)),
    * h' = (1 - z) * n + z * h.
    """

    def step(i: list[Reals], h: list[Reals], states: tuple[Reals, ...]) -> tuple[Reals, ...]:
        r, z = sigmoid(i[0] + h[0]), sigmoid(i[1] + h[1])
        return ((1 - z) * np.tanh(i[2] + r * h[2]) + z * states[0],)

    return _over_time(layer, 3, step)[0]


def lstm(*layer: Reals) -> tuple[Reals, Reals]:
    """The hidden and the cell states, each [T, H], of a long short-term memory without peepholes.

    The first ones may be given after the layer's tensors, as [1, H] each; they are 0 otherwise.

    * i = sigmoid(W_i x + b_i + U_i h + c_i), f and o likewise, and g with tanh,
    * c' = f * c + i * g,
    * h' = o * tanh(c').
    """

    def step(inputs: list[Reals], hidden: list[Reals], states: tuple[Reals, ...]) -> tuple[Reals, ...]:
        i, f, g, o = (a + b for a, b in zip(inputs, hidden, strict=True))
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    hidden, cells = _over_time(layer, 4, step, states=2)
    return hidden, cells


def _over_time(
    layer: tuple[Reals, ...],
    gates: int,
    step: Callable[[list[Reals], list[Reals], tuple[Reals, ...]], tuple[Reals, ...]],
    states: int = 1,
) -> tuple[Reals, ...]:
    """All states, the hidden one first; ``step`` takes W x + b and U h + c by gate, and the states."""
    x, w, u, b, c, *first = layer
    current = tuple(state[0] for state in first) or (np.zeros(u.shape[1]),) * states
    over_time = []
    for from_input in x @ w.T + b:
        current = step(np.split(from_input, gates), np.split(current[0] @ u.T + c, gates), current)
        over_time.append(current)
    return tuple(map(np.stack, zip(*over_time, strict=True)))


# -- machine integers -------------------------------------------------------------------------------------


def dense_int8(x: NDArray[np.int8], w: NDArray[np.int8], b: NDArray[np.int32] | int = 0) -> NDArray[np.int32]:
    """x w^T + b in 32 bits with wrap-around."""
    # 2^14 * I is below 2^63 for every I that fits a memory
    return np.asarray(x.astype(np.int64) @ w.astype(np.int64).T + b).astype(np.int32)


def alu_int32(
    operation: Literal["add", "mul", "min", "max", "shr"], a: NDArray[np.int32], b: NDArray[np.int32] | int
) -> NDArray[np.int32]:
    """An element-wise operation on 32-bit integers; ``b`` may be one number for all.

    Sums and products wrap around; shr is the arithmetic shift to the right (the quotient by a power of two, rounded
    down) and takes amounts from 0 to 31.
    """
    operations: Mapping[str, Callable[..., Any]] = {
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "shr": np.right_shift,
    }
    return np.asarray(operations[operation](a.astype(np.int64), np.asarray(b, np.int64))).astype(np.int32)


def truncate_int8(x: NDArray[np.int32]) -> NDArray[np.int8]:
    """The low eight bits of 32-bit integers, as signed numbers; nothing saturates."""
    return x.astype(np.int8)
