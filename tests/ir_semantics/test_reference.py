"""Reference layers against loops over single numbers, written from definitions; the product's are the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_semantics import reference
from tests.ir_semantics import reference_layers as ref

seeds = st.integers(0, 10_000)
small = st.integers(1, 4)


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def close(got: Any, wanted: Any) -> bool:
    wanted = np.array(wanted)
    return np.shape(got) == wanted.shape and bool(np.allclose(got, wanted, rtol=1e-12, atol=1e-12))


# -- layers on features -------------------------------------------------------------------------------


@given(small, small, small, seeds)
def test_dense(timesteps: int, inputs: int, outputs: int, seed: int) -> None:
    x, w, b = numbers(seed, timesteps, inputs), numbers(seed, outputs, inputs), numbers(seed, outputs)
    wanted = [[b[o] + sum(w[o, i] * x[t, i] for i in range(inputs)) for o in range(outputs)] for t in range(timesteps)]
    assert close(ref.dense(x, w, b), wanted)
    assert close(ref.dense(x, w), ref.dense(x, w, 0 * b))


def test_sigmoid_and_softmax_do_not_overflow() -> None:
    with np.errstate(all="raise"):
        assert ref.sigmoid([-2000.0, 0, 2000]).tolist() == [0, 0.5, 1]
        assert ref.softmax([2000.0, 2000.0]).tolist() == [0.5, 0.5]


@given(small, st.integers(2, 6), st.sampled_from([0.0, 1e-5, 0.5]), seeds)
def test_layer_norm(timesteps: int, features: int, eps: float, seed: int) -> None:
    x, gamma, beta = numbers(seed, timesteps, features), numbers(seed, features), numbers(seed + 1, features)
    wanted = []
    for row in x:
        mean = math.fsum(row) / features
        variance = math.fsum((v - mean) ** 2 for v in row) / features
        wanted.append([(v - mean) / math.sqrt(variance + eps) * gamma[j] + beta[j] for j, v in enumerate(row)])
    assert close(ref.layer_norm(x, gamma, beta, eps=eps), wanted)


@given(st.integers(1, 6), small, seeds)
def test_attention(timesteps: int, features: int, seed: int) -> None:
    keys, query = numbers(seed, timesteps, features), numbers(seed, features)
    powers = [math.exp(sum(keys[t, j] * query[j] for j in range(features))) for t in range(timesteps)]
    wanted = [sum(powers[t] * keys[t, j] for t in range(timesteps)) / sum(powers) for j in range(features)]
    assert close(ref.attention(keys, query), wanted)


@given(st.integers(1, 9), small, small, small, seeds)
def test_pooling_over_time(timesteps: int, features: int, window: int, stride: int, seed: int) -> None:
    x = numbers(seed, timesteps, features)
    if timesteps < window:
        with pytest.raises(ValueError, match=f"at least {window} timesteps, a window, not {timesteps}; pad it"):
            ref.pool_over_time(x, "max", window=window, stride=stride)
        return
    folds: dict[Any, Callable[[list[float]], float]] = {
        "max": max,
        "add": math.fsum,
        "mean": lambda v: math.fsum(v) / len(v),
    }
    for kind, fold in folds.items():
        wanted = [
            [fold([x[t + k, j] for k in range(window)]) for j in range(features)]
            for t in range(0, timesteps - window + 1, stride)
        ]
        assert close(ref.pool_over_time(x, kind, window=window, stride=stride), wanted)


def test_windows_are_disjoint_by_default() -> None:
    assert ref.pool_over_time([[1.0], [2], [5], [4], [9]], "max").tolist() == [[2], [5]]


# -- recurrent layers -----------------------------------------------------------------------------------


def affine(w: Any, x: Any, b: Any, row: int) -> float:
    return float(b[row]) + sum(float(w[row, j]) * float(x[j]) for j in range(len(x)))


def parameters(seed: int, gates: int, inputs: int, hidden: int) -> tuple[Any, ...]:
    rows = gates * hidden
    return (
        numbers(seed, rows, inputs),
        numbers(seed + 1, rows, hidden),
        numbers(seed + 2, rows),
        numbers(seed + 3, rows),
    )


@given(small, small, small, seeds)
def test_rnn(timesteps: int, inputs: int, hidden: int, seed: int) -> None:
    x, h, (w, u, b, c) = numbers(seed, timesteps, inputs), numbers(seed, hidden), parameters(seed, 1, inputs, hidden)
    got, states = ref.rnn(x, w, u, b, c, initial=h), []
    for t in range(timesteps):
        h = [math.tanh(affine(w, x[t], b, j) + affine(u, h, c, j)) for j in range(hidden)]
        states.append(h)
    assert close(got, states)


@given(small, small, small, seeds)
def test_gru(timesteps: int, inputs: int, hidden: int, seed: int) -> None:
    x, h, (w, u, b, c) = numbers(seed, timesteps, inputs), numbers(seed, hidden), parameters(seed, 3, inputs, hidden)
    got, states = ref.gru(x, w, u, b, c, initial=h), []
    for t in range(timesteps):
        after = []
        for j in range(hidden):
            r, z, n = j, hidden + j, 2 * hidden + j
            reset = logistic(affine(w, x[t], b, r) + affine(u, h, c, r))
            update = logistic(affine(w, x[t], b, z) + affine(u, h, c, z))
            candidate = math.tanh(affine(w, x[t], b, n) + reset * affine(u, h, c, n))
            after.append((1 - update) * candidate + update * h[j])
        h = after
        states.append(h)
    assert close(got, states)


@given(small, small, small, seeds)
def test_lstm(timesteps: int, inputs: int, hidden: int, seed: int) -> None:
    x, (w, u, b, c) = numbers(seed, timesteps, inputs), parameters(seed, 4, inputs, hidden)
    h, cell = numbers(seed, hidden), numbers(seed + 9, hidden)
    got, states, cells = ref.lstm(x, w, u, b, c, initial=(h, cell)), [], []
    for t in range(timesteps):
        before, h, cell = h, [], list(cell)
        for j in range(hidden):
            i, f, g, o = (affine(w, x[t], b, k * hidden + j) + affine(u, before, c, k * hidden + j) for k in range(4))
            cell[j] = logistic(f) * cell[j] + logistic(i) * math.tanh(g)
            h.append(logistic(o) * math.tanh(cell[j]))
        states.append(h)
        cells.append(cell)
    assert close(got[0], states)
    assert close(got[1], cells)


@pytest.mark.parametrize(("layer", "standard", "other"), [(ref.lstm, "ifgo", "iofg"), (ref.gru, "rzn", "zrn")])
def test_gates_in_another_order(layer: Any, standard: str, other: str) -> None:
    x, weights = numbers(1, 3, 2), parameters(2, len(standard), 2, 3)
    order = [standard.index(gate) for gate in other]
    moved = [w.reshape(len(standard), 3, -1)[order].reshape(w.shape) for w in weights]
    assert np.array_equal(layer(x, *weights), layer(x, *moved, gates=other))
    assert not np.array_equal(layer(x, *weights), layer(x, *moved))


@pytest.mark.parametrize(("layer", "gates"), [(ref.rnn, 1), (ref.gru, 3), (ref.lstm, 4)])
def test_recurrent_layers_carry_a_batch_and_start_from_zero(layer: Any, gates: int) -> None:
    x, weights = numbers(1, 3, 5, 2), parameters(2, gates, 2, 4)
    together = np.asarray(layer(x, *weights))
    assert together.shape[-3:] == (3, 5, 4)
    for k in range(5):
        assert np.allclose(together[..., k, :], layer(x[:, k], *weights), atol=1e-12)
    zeros = np.zeros(4)
    from_zeros = layer(x[:, 0], *weights, initial=(zeros, zeros) if gates == 4 else zeros)
    assert np.array_equal(from_zeros, layer(x[:, 0], *weights))
    no_biases = layer(x, *weights[:2])
    assert np.array_equal(no_biases, layer(x, *weights[:2], np.zeros(4 * gates), np.zeros(4 * gates)))


# -- images -----------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.tuples(small, small, st.integers(1, 5), st.integers(1, 5)),
    st.tuples(small, st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seeds,
)
def test_conv2d(
    image: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, int], padding: tuple[int, int], seed: int
) -> None:
    (batch, channels, height, width), (outputs, rows, columns) = image, kernel
    x, w, b = numbers(seed, *image), numbers(seed, outputs, channels, rows, columns), numbers(seed, outputs)
    tall, wide = height + 2 * padding[0] - rows, width + 2 * padding[1] - columns
    if tall < 0 or wide < 0:
        with pytest.raises(ValueError, match="not be larger than the padded image"):
            ref.conv2d(x, w, b, stride=stride, padding=padding)
        return
    wanted = np.zeros((batch, outputs, tall // stride[0] + 1, wide // stride[1] + 1))
    for n, o, i, j in np.ndindex(wanted.shape):
        total = b[o]
        for c, r, s in product(range(channels), range(rows), range(columns)):
            y, z = i * stride[0] + r - padding[0], j * stride[1] + s - padding[1]
            if 0 <= y < height and 0 <= z < width:
                total += x[n, c, y, z] * w[o, c, r, s]
        wanted[n, o, i, j] = total
    assert close(ref.conv2d(x, w, b, stride=stride, padding=padding), wanted)


# -- machine integers -------------------------------------------------------------------------------------


def wrap(value: int, width: int = 32) -> int:
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


@given(small, small, small, seeds)
def test_dense_int8(timesteps: int, inputs: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = rng.integers(-128, 128, (timesteps, inputs)), rng.integers(-128, 128, (outputs, inputs))
    b = rng.choice([-(2**31), 2**31 - 1, 7], outputs)
    wanted = [
        [wrap(int(b[o]) + sum(int(x[t, i]) * int(w[o, i]) for i in range(inputs))) for o in range(outputs)]
        for t in range(timesteps)
    ]
    got = ref.dense_int8(x.astype(np.int8), w.astype(np.int8), b.astype(np.int32))
    assert got.dtype == np.int32
    assert got.tolist() == wanted
    assert ref.dense_int8(x, w).tolist() == ref.dense_int8(x, w, np.zeros(outputs, np.int32)).tolist()


words = st.integers(-(2**31), 2**31 - 1)


@given(words, words, st.integers(0, 31))
def test_alu(a: int, b: int, amount: int) -> None:
    wanted = {"add": wrap(a + b), "mul": wrap(a * b), "min": min(a, b), "max": max(a, b)}
    assert {name: ref.alu_int32(name, [a], [b]).tolist()[0] for name in wanted} == wanted  # type: ignore[arg-type]
    assert ref.alu_int32("shr", [a, a], amount).tolist() == [math.floor(a / 2**amount)] * 2
    assert ref.truncate_int8([a]).tolist() == [wrap(a, 8)]


# -- those of the product --------------------------------------------------------------------------------


@given(small, small, small, seeds)
def test_layers_of_the_product_are_the_same(timesteps: int, inputs: int, hidden: int, seed: int) -> None:
    x = numbers(seed, timesteps, inputs)
    for name, gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
        layer = (x, *parameters(seed, gates, inputs, hidden))
        np.testing.assert_array_equal(getattr(reference, name)(*layer), getattr(ref, name)(*layer))
    w, b = numbers(seed, hidden, inputs), numbers(seed, hidden)
    np.testing.assert_array_equal(reference.dense(x, w, b), ref.dense(x, w, b))
    np.testing.assert_array_equal(
        reference.layer_norm(x, w[0], w[-1], eps=0.5), ref.layer_norm(x, w[0], w[-1], eps=0.5)
    )
    np.testing.assert_array_equal(reference.attention(x, w[0]), ref.attention(x, w[0]))
    if timesteps > 1:
        for kind in ("max", "mean", "add"):
            np.testing.assert_array_equal(reference.pool_over_time(x, kind), ref.pool_over_time(x, kind))
    image, kernels = numbers(seed, 1, inputs, timesteps + 2, 5), numbers(seed, hidden, inputs, 2, 3)
    for stride in ((1, 1), (2, 1)):
        expected = ref.conv2d(image, kernels, stride=stride)
        np.testing.assert_array_equal(reference.conv2d(image, kernels, stride=stride), expected)


@given(words, words, st.integers(0, 31), seeds)
def test_integers_of_the_product_are_the_same(a: int, b: int, amount: int, seed: int) -> None:
    left, right = np.array([a, b], np.int32), np.array([b, b], np.int32)
    for name in ("add", "mul", "min", "max"):
        assert reference.alu_int32(name, left, right).tolist() == ref.alu_int32(name, left, right).tolist()
    assert reference.alu_int32("shr", left, amount).tolist() == ref.alu_int32("shr", left, amount).tolist()
    assert reference.truncate_int8(left).tolist() == ref.truncate_int8(left).tolist()
    rng = np.random.default_rng(seed)
    x, w = rng.integers(-128, 128, (3, 4), np.int8), rng.integers(-128, 128, (2, 4), np.int8)
    assert reference.dense_int8(x, w, right).tolist() == ref.dense_int8(x, w, right).tolist()


# -- messages ---------------------------------------------------------------------------------------------

X, W = np.ones((2, 3)), np.ones((4, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ref.dense(X, W.T), "w must have shape [any, 3], not [3, 4]; reshape or transpose it"),
        (lambda: ref.dense(X, W, X[0]), "b must have shape [4], not [3]; reshape or transpose it"),
        (lambda: ref.layer_norm(X, W[0], W[:, 0]), "beta must have shape [3], not [4]; reshape or transpose it"),
        (lambda: ref.attention(X, W[:, 0]), "query must have shape [3], not [4]; reshape or transpose it"),
        (lambda: ref.pool_over_time(X, "sum"), "kind must be 'max', 'mean' or 'add', not 'sum'"),  # type: ignore[arg-type]
        (lambda: ref.pool_over_time(X, "max", stride=0), "window and stride must be at least 1, not 2 and 0"),
        (
            lambda: ref.lstm(X, np.ones((4, 3)), np.ones((1, 4))),
            "w_hidden must have shape [4H, H], not [1, 4]; stack the gates' rows",
        ),
        (
            lambda: ref.gru(X, np.ones((6, 2)), np.ones((6, 2))),
            "w_input must have shape [6, 3], not [6, 2]; reshape or transpose it",
        ),
        (
            lambda: ref.gru(X, np.ones((6, 3)), np.ones((6, 2)), gates="zrh"),
            "gates must be an order of r, z, n, not 'zrh'",
        ),
        (
            lambda: ref.rnn(X[0], W[:, :1], np.ones((4, 4))),
            "x must be [T, ..., I] with at least one timestep, not [3]",
        ),
        (
            lambda: ref.conv2d(np.ones((1, 2, 3, 3)), np.ones((1, 3, 1, 1))),
            "w must have shape [any, 2, any, any], not [1, 3, 1, 1]; reshape or transpose it",
        ),
        (
            lambda: ref.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 1, 1)), stride=(0, 1)),
            "stride must be at least 1 and padding at least 0, not (0, 1) and (0, 0)",
        ),
        (lambda: ref.dense_int8(X, W), "x must hold integers, not float64; quantise it first"),
        (
            lambda: ref.dense_int8([[128, -5]], [[1, 1]]),
            "x must fit in 8 bits, not hold -5 .. 128; scale or clip it",
        ),
        (lambda: ref.alu_int32("shr", [1], [32]), "b must be in 0 .. 31 for a shift, not 32 .. 32"),
        (
            lambda: ref.alu_int32("xor", [1], [3]),  # type: ignore[arg-type]
            "operation must be one of add, mul, min, max, shr, not 'xor'",
        ),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
