"""Reference operators on NumPy arrays: what a layer computes over the real numbers, and over machine integers.

They take more than the layers of ``ir_semantics.reference``, which are compared with them: initial states, any order of
gates, padding, batches.

Conventions, those of ONNX and of the common frameworks:

* A dense layer's weights are [outputs, inputs]; a sequence is [timesteps, ..., features], where the axes between (a
  batch, say) are carried along.
* The gates of a recurrent layer are stacked along the first axis of weights and biases, by default in the order i, f,
  g, o (LSTM) and r, z, n (GRU); ``gates`` names another one: ONNX has "iofg" (which it writes iofc) and "zrn" (zrh).
* Images are [batch, channels, height, width] and kernels [outputs, inputs, height, width].

All functions raise ValueError on shapes that do not fit.

Sources: the ONNX operator specification (Gemm, RNN, GRU with linear_before_reset = 1, LSTM, LayerNormalization, Conv),
and the attention of FlexASR, which does not scale its scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Reals = NDArray[np.float64]

LSTM_GATES = "ifgo"  # input, forget, cell candidate, output
GRU_GATES = "rzn"  # reset, update, candidate


def sigmoid(x: ArrayLike) -> Reals:
    """1 / (1 + exp(-x)), without overflow."""
    halves = np.tanh(np.asarray(x, np.float64) / 2)
    return np.asarray((1 + halves) / 2)


def softmax(x: ArrayLike) -> Reals:
    """exp(x) / sum(exp(x)) along the last axis, without overflow."""
    x = np.asarray(x, np.float64)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


# -- layers on features -------------------------------------------------------------------------------


def dense(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None) -> Reals:
    """x w^T + b for x [..., I], w [O, I] and b [O]; the result is [..., O]."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    _check("w", w, (None, x.shape[-1]))
    return np.asarray(x @ w.T + _vector("b", b, len(w)))


def layer_norm(x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, *, eps: float = 1e-5) -> Reals:
    """(x - mean) / sqrt(variance + eps) * gamma + beta along the last axis; the variance is that of the population."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + eps)
    features = x.shape[-1]
    return np.asarray(centred / deviation * _vector("gamma", gamma, features) + _vector("beta", beta, features))


def attention(keys: ArrayLike, query: ArrayLike) -> Reals:
    """softmax(K q) K for one query: keys K [T, F] are also the values, scores are not scaled; the result is [F]."""
    keys, query = np.asarray(keys, np.float64), np.asarray(query, np.float64)
    _check("keys", keys, (None, None))
    _check("query", query, (keys.shape[1],))
    return np.asarray(softmax(keys @ query) @ keys)


def pool_over_time(
    x: ArrayLike, kind: Literal["max", "mean", "add"], *, window: int = 2, stride: int | None = None
) -> Reals:
    """Windows of timesteps of x [T, ...] folded into one each; a window that leaves the sequence is not taken.

    ``stride`` is ``window`` by default.  The result has (T - window) // stride + 1 timesteps.
    """
    x, stride = np.asarray(x, np.float64), window if stride is None else stride
    if window < 1 or stride < 1:
        raise ValueError(f"window and stride must be at least 1, not {window} and {stride}")
    if len(x) < window:
        raise ValueError(
            f"x must have at least {window} timesteps, a window, not {len(x)}; pad it or shrink the window"
        )
    windows = np.lib.stride_tricks.sliding_window_view(x, window, axis=0)[::stride]  # [outputs, ..., window]
    folds: dict[str, Callable[..., Any]] = {"max": np.max, "mean": np.mean, "add": np.sum}
    if kind not in folds:
        raise ValueError(f"kind must be 'max', 'mean' or 'add', not {kind!r}")
    return np.asarray(folds[kind](windows, axis=-1))


# -- recurrent layers -----------------------------------------------------------------------------------


def rnn(
    x: ArrayLike,
    w_input: ArrayLike,
    w_hidden: ArrayLike,
    b_input: ArrayLike | None = None,
    b_hidden: ArrayLike | None = None,
    *,
    initial: ArrayLike | None = None,
) -> Reals:
    """h_t = tanh(W x_t + b + U h_(t-1) + c) for every timestep of x [T, ..., I]; the result is [T, ..., H].

    ``w_input`` W is [H, I], ``w_hidden`` U [H, H], ``b_input`` b and ``b_hidden`` c are [H]; ``initial`` h is zero by
    default.
    """
    cell = _Cell("h", "h", x, w_input, w_hidden, b_input, b_hidden)
    h = cell.state(initial)
    states = []
    for t in range(cell.timesteps):
        [from_input], [from_hidden] = cell.gates(t, h)
        h = np.tanh(from_input + from_hidden)
        states.append(h)
    return cell.sequence(states)


def gru(
    x: ArrayLike,
    w_input: ArrayLike,
    w_hidden: ArrayLike,
    b_input: ArrayLike | None = None,
    b_hidden: ArrayLike | None = None,
    *,
    initial: ArrayLike | None = None,
    gates: str = GRU_GATES,
) -> Reals:
    """The hidden states [T, ..., H] of a gated recurrent unit whose reset gate acts after the hidden product.

    With W, U the rows of ``w_input`` [3H, I] and ``w_hidden`` [3H, H] of a gate, and b, c its biases ([3H]):

    * r = sigmoid(W_r x + b_r + U_r h + c_r) and z likewise,
    * n = tanh(W_n x + b_n + r * (U_n h + c_n)),
    * h' = (1 - z) * n + z * h.
    """
    cell = _Cell(gates, GRU_GATES, x, w_input, w_hidden, b_input, b_hidden)
    h = cell.state(initial)
    states = []
    for t in range(cell.timesteps):
        (r_input, z_input, n_input), (r_hidden, z_hidden, n_hidden) = cell.gates(t, h)
        r, z = sigmoid(r_input + r_hidden), sigmoid(z_input + z_hidden)
        h = (1 - z) * np.tanh(n_input + r * n_hidden) + z * h
        states.append(h)
    return cell.sequence(states)


def lstm(
    x: ArrayLike,
    w_input: ArrayLike,
    w_hidden: ArrayLike,
    b_input: ArrayLike | None = None,
    b_hidden: ArrayLike | None = None,
    *,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    gates: str = LSTM_GATES,
) -> tuple[Reals, Reals]:
    """The hidden and the cell states, each [T, ..., H], of a long short-term memory without peepholes.

    With W, U the rows of ``w_input`` [4H, I] and ``w_hidden`` [4H, H] of a gate, and b, c its biases ([4H]):

    * i = sigmoid(W_i x + b_i + U_i h + c_i), f and o likewise, and g with tanh,
    * c' = f * c + i * g,
    * h' = o * tanh(c').

    ``initial`` is the pair of hidden and cell state before the first timestep, zero by default.
    """
    cell = _Cell(gates, LSTM_GATES, x, w_input, w_hidden, b_input, b_hidden)
    h, c = (cell.state(s) for s in initial or (None, None))
    hidden, cells = [], []
    for t in range(cell.timesteps):
        i, f, g, o = (a + b for a, b in zip(*cell.gates(t, h), strict=True))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        hidden.append(h)
        cells.append(c)
    return cell.sequence(hidden), cell.sequence(cells)


class _Cell:
    """Weights and biases by gate, in the order of ``gates``; the inputs' part of all timesteps is computed at once."""

    def __init__(
        self,
        given: str,
        gates: str,
        x: ArrayLike,
        w_input: ArrayLike,
        w_hidden: ArrayLike,
        b_input: ArrayLike | None,
        b_hidden: ArrayLike | None,
    ) -> None:
        if sorted(given) != sorted(gates):
            raise ValueError(f"gates must be an order of {', '.join(gates)}, not {given!r}")
        x, w_input, w_hidden = (np.asarray(a, np.float64) for a in (x, w_input, w_hidden))
        if x.ndim < 2 or not len(x):
            raise ValueError(f"x must be [T, ..., I] with at least one timestep, not {list(x.shape)}")
        if w_hidden.ndim != 2 or len(w_hidden) != len(gates) * w_hidden.shape[1]:
            raise ValueError(
                f"w_hidden must have shape [{len(gates)}H, H], not {list(w_hidden.shape)}; stack the gates' rows"
            )
        self.hidden = w_hidden.shape[1]
        rows = len(w_hidden)
        _check("w_input", w_input, (rows, x.shape[-1]))
        self._count, self._order = len(gates), [given.index(gate) for gate in gates]
        self._from_input = x @ w_input.T + _vector("b_input", b_input, rows)
        self._w_hidden, self._b_hidden = w_hidden.T, _vector("b_hidden", b_hidden, rows)
        self.timesteps = len(x)

    def gates(self, t: int, h: Reals) -> tuple[list[Reals], list[Reals]]:
        """W x_t + b and U h + c, each split into gates."""
        return self._split(self._from_input[t]), self._split(h @ self._w_hidden + self._b_hidden)

    def state(self, initial: ArrayLike | None) -> Reals:
        """A state [..., H] to begin with."""
        shape = (*self._from_input.shape[1:-1], self.hidden)
        return np.zeros(shape) if initial is None else np.broadcast_to(np.asarray(initial, np.float64), shape)

    def sequence(self, states: list[Reals]) -> Reals:
        return np.stack(states)

    def _split(self, stacked: Reals) -> list[Reals]:
        parts = np.split(stacked, self._count, axis=-1)
        return [parts[i] for i in self._order]


# -- images -----------------------------------------------------------------------------------------------


def conv2d(
    x: ArrayLike,
    w: ArrayLike,
    b: ArrayLike | None = None,
    *,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
) -> Reals:
    """The cross-correlation of images x [N, C, H, W] with kernels w [O, C, R, S], plus b [O].

    ``padding`` rows and columns of zeros are put on either side.  The result is [N, O, H', W'] with
    H' = (H + 2 * padding_y - R) // stride_y + 1, and W' likewise.
    """
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    _check("x", x, (None, None, None, None))
    _check("w", w, (None, x.shape[1], None, None))
    if min(stride) < 1 or min(padding) < 0:
        raise ValueError(f"stride must be at least 1 and padding at least 0, not {stride} and {padding}")
    (py, px), (sy, sx) = padding, stride
    padded = np.pad(x, ((0, 0), (0, 0), (py, py), (px, px)))
    if padded.shape[2] < w.shape[2] or padded.shape[3] < w.shape[3]:
        raise ValueError(
            f"w must not be larger than the padded image, {padded.shape[2]}x{padded.shape[3]}, "
            f"not {w.shape[2]}x{w.shape[3]}; pad more"
        )
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))[:, :, ::sy, ::sx]
    sums = np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3)))  # [N, H', W', O]
    return np.moveaxis(sums + _vector("b", b, len(w)), 3, 1)


# -- machine integers -------------------------------------------------------------------------------------


def dense_int8(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None) -> NDArray[np.int32]:
    """x w^T + b for x [..., I] and w [O, I] of 8-bit and b [O] of 32-bit integers, in 32 bits with wrap-around."""
    x, w = _integers("x", x, np.int8), _integers("w", w, np.int8)
    _check("w", w, (None, x.shape[-1]))
    bias = np.zeros(len(w), np.int32) if b is None else _integers("b", b, np.int32)
    _check("b", bias, (len(w),))
    # 2^14 * I is below 2^63 for every I that fits a memory
    return np.asarray(x.astype(np.int64) @ w.astype(np.int64).T + bias).astype(np.int32)


def alu_int32(
    operation: Literal["add", "mul", "min", "max", "shr"], a: ArrayLike, b: ArrayLike | int
) -> NDArray[np.int32]:
    """An element-wise operation on 32-bit integers; ``b`` may be one number for all.

    Sums and products wrap around; shr is the arithmetic shift to the right (the quotient by a power of two, rounded
    down) and takes amounts from 0 to 31.
    """
    left, right = _integers("a", a, np.int32).astype(np.int64), _integers("b", b, np.int32).astype(np.int64)
    if operation == "shr" and not ((right >= 0) & (right < 32)).all():
        raise ValueError(f"b must be in 0 .. 31 for a shift, not {_range(right)}")
    operations: dict[str, Callable[..., Any]] = {
        "add": np.add,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "shr": np.right_shift,
    }
    if operation not in operations:
        raise ValueError(f"operation must be one of {', '.join(operations)}, not {operation!r}")
    return np.asarray(operations[operation](left, right)).astype(np.int32)


def truncate_int8(x: ArrayLike) -> NDArray[np.int8]:
    """The low eight bits of 32-bit integers, as signed numbers; nothing saturates."""
    return _integers("x", x, np.int32).astype(np.int8)


# -- checks -----------------------------------------------------------------------------------------------


def _check(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    if array.ndim != len(shape) or any(want not in (None, have) for have, want in zip(array.shape, shape, strict=True)):
        extents = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} must have shape [{extents}], not {list(array.shape)}; reshape or transpose it")


def _vector(name: str, values: ArrayLike | None, length: int) -> Reals:
    """A vector of that length, zeros where none is given."""
    vector = np.zeros(length) if values is None else np.asarray(values, np.float64)
    _check(name, vector, (length,))
    return vector


def _integers(name: str, values: ArrayLike, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    array, limits = np.asarray(values), np.iinfo(dtype)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, not {array.dtype}; quantise it first")
    if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
        raise ValueError(f"{name} must fit in {limits.bits} bits, not hold {_range(array)}; scale or clip it")
    return array.astype(dtype)


def _range(array: NDArray[Any]) -> str:
    return f"{array.min()} .. {array.max()}"
