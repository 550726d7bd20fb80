"""Operations as programs of FlexASR's mappings, against an oracle bit by bit, and against the real-valued operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised, quantise
from benchmarks.simulators import looked_up
from ila_lang import Machine, Simulator
from ila_lang.mapping import SizeError
from rewrites.mappings.flexasr.operations import attention, layer_norm, linear, pool, recurrent
from rewrites.mappings.programs import DeviceProgram
from tests.accel_models.flexasr import tensor_oracle as oracle
from tests.ir_semantics import reference_layers as reference

biases = st.integers(0, 7)
seeds = st.integers(0, 10_000)


def execute(program: DeviceProgram[Quantised]) -> Quantised:
    return program.run(Machine(flexasr()))


def codes(rng: np.random.Generator, bias: int, *shape: int, top: int = 256) -> Quantised:
    """Any codes, or below ``top`` (with either sign), so that sums do not all saturate."""
    magnitude = rng.integers(0, top // 2, shape)
    return Quantised((magnitude | rng.integers(0, 2, shape) << 7).astype(np.uint8), bias)


def normal(rng: np.random.Generator, scale: float, *shape: int, bias: int | None = None) -> Quantised:
    return quantise(rng.normal(scale=scale, size=shape), bias)


# -- dense --------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 18), st.integers(1, 70)),
    st.tuples(biases, biases, biases, biases),
    st.sampled_from(["none", "relu", "sigmoid", "tanh"]),
    st.sampled_from([96, 256]),
    seeds,
)
def test_linear(sizes: tuple[int, int, int], bias: tuple[int, ...], activation: str, top: int, seed: int) -> None:
    (timesteps, inputs, outputs), rng = sizes, np.random.default_rng(seed)
    x, w = codes(rng, bias[0], timesteps, inputs, top=top), codes(rng, bias[1], outputs, inputs, top=top)
    b = codes(rng, bias[2], outputs)
    result = execute(linear(x, w, b, output_bias=bias[3], activation=activation))
    known = None if activation == "none" else activation
    assert np.array_equal(result.codes, oracle.linear(x, w, b, bias[3], known))
    assert (result.shape, result.bias) == ((timesteps, outputs), bias[3])


def test_linear_across_groups_of_timesteps() -> None:
    rng = np.random.default_rng(1)
    x, w, b = codes(rng, 2, 18, 17), codes(rng, 1, 3, 17, top=8), codes(rng, 3, 3)
    assert np.array_equal(execute(linear(x, w, b, output_bias=4)).codes, oracle.linear(x, w, b, 4))


def test_linear_is_the_real_layer_rounded_down_once_and_then_to_a_code() -> None:
    rng = np.random.default_rng(2)
    x, w, b = normal(rng, 0.5, 3, 40), normal(rng, 0.2, 30, 40), normal(rng, 0.3, 30)
    real, result = reference.dense(x.values, w.values, b.values), execute(linear(x, w, b, output_bias=5))
    assert np.abs(real).max() < 7.75  # no saturation at bias 5
    # The sum of products is exact and is rounded down to 2^-14; a code is off by at most half a step of its binade,
    # 2^(k-5) <= |y| / 32, or by 2^(bias - 10) where there is no nearer one than zero.
    rounded_down = 2.0**-14
    assert (
        np.abs(result.values - real) <= rounded_down + np.maximum((np.abs(real) + rounded_down) / 32, 2.0**-5)
    ).all()


# -- recurrent ----------------------------------------------------------------------------------------

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@settings(max_examples=5)
@given(
    st.sampled_from(list(GATES)),
    st.tuples(st.integers(1, 3), st.integers(1, 18), st.integers(1, 20)),
    st.tuples(*[biases] * 6),
    seeds,
)
def test_recurrent_layers(kind: str, sizes: tuple[int, int, int], bias: Any, seed: int) -> None:
    (timesteps, inputs, hidden), rng = sizes, np.random.default_rng(seed)
    rows = GATES[kind] * hidden
    x = codes(rng, bias[0], timesteps, inputs, top=160)
    shapes = [(rows, inputs), (rows, hidden), (rows,), (rows,)]
    weights = tuple(codes(rng, b, *shape, top=160) for b, shape in zip(bias[1:], shapes, strict=False))
    result = execute(recurrent(kind, (x, *weights), state_bias=bias[5]))
    assert np.array_equal(result.codes, oracle.recurrent(kind, x, weights, bias[5]))
    assert (result.shape, result.bias) == ((timesteps, hidden), bias[5])


@pytest.mark.parametrize("kind", GATES)
def test_recurrent_layers_are_near_the_real_ones(kind: str) -> None:
    rng, hidden = np.random.default_rng(3), 20
    rows = GATES[kind] * hidden
    x = normal(rng, 0.5, 4, 10)
    weights = [normal(rng, 0.3, *shape) for shape in ((rows, 10), (rows, hidden), (rows,), (rows,))]
    result = execute(recurrent(kind, (x, *weights), state_bias=3))
    real = getattr(reference, kind)(x.values, *(w.values for w in weights))
    real = real[0] if kind == "lstm" else real
    # Codes are off by 1.5 % on average, and the lines of sigmoid and tanh by at most 0.007 and 0.005.  Measured on 100
    # such inputs: 1.6 % to 1.8 % on average, 2.7 % at most.
    assert 0.001 < np.linalg.norm(result.values - real) / np.linalg.norm(real) < 0.03


def test_an_lstm_with_a_partly_used_vector() -> None:
    rng, hidden = np.random.default_rng(4), 70  # one PE has two vectors, of which one is padding
    x, b = codes(rng, 2, 2, 20, top=160), codes(rng, 1, 4 * hidden)
    w, u = (codes(rng, 2, *s, top=160) for s in ((4 * hidden, 20), (4 * hidden, hidden)))
    result = recurrent("lstm", (x, w, u, b, b), state_bias=2).run(Simulator(flexasr()))
    assert np.array_equal(result.codes, oracle.recurrent("lstm", x, (w, u, b, b), 2))


def test_weights_in_tables_give_the_same() -> None:
    """Of 16 different weights, a layer may hold indices: the benchmark's other form of the same program."""
    rng = np.random.default_rng(5)
    table = rng.choice(np.arange(1, 100), 16, replace=False).astype(np.uint8)
    x, b = codes(rng, 2, 2, 32, top=160), codes(rng, 1, 4 * 64)
    w, u = (Quantised(rng.choice(table, s), 2) for s in ((4 * 64, 32), (4 * 64, 64)))
    plain, packed = Simulator(flexasr()), Simulator(flexasr())
    program = recurrent("lstm", (x, w, u, b, b), state_bias=2)
    result = program.run(plain)
    packed.execute(looked_up(program.stream))
    assert packed.values["pe0_rnn_layer_sizing_is_cluster"]
    assert dict(packed.memories["gb_core_large_buffer"]) == dict(plain.memories["gb_core_large_buffer"])
    assert dict(packed.memories["pe_core_weight_buffer"]) != dict(plain.memories["pe_core_weight_buffer"])
    assert len(np.unique(result.codes)) > 8


@pytest.mark.slow
def test_an_lstm_of_full_size() -> None:
    rng = np.random.default_rng(7)
    x, b = normal(rng, 0.5, 35, 256), normal(rng, 0.1, 1024, bias=0)
    w, u = (normal(rng, 0.05, 1024, 256, bias=0) for _ in "wu")
    result = recurrent("lstm", (x, w, u, b, b), state_bias=2).run(Simulator(flexasr()))
    assert np.array_equal(result.codes, oracle.recurrent("lstm", x, (w, u, b, b), 2))
    assert 0.01 < np.abs(result.values).mean() < 0.9


# -- units of the global buffer -----------------------------------------------------------------------


@settings(max_examples=12)
@given(st.sampled_from(["max", "mean", "add"]), st.integers(1, 10), st.integers(1, 40), biases, seeds)
def test_pooling(kind: str, pairs: int, features: int, bias: int, seed: int) -> None:
    x = codes(np.random.default_rng(seed), bias, 2 * pairs, features)
    result = execute(pool(kind, x))
    assert np.array_equal(result.codes, oracle.pool(kind, x))
    assert (result.shape, result.bias) == ((pairs, features), bias)


def test_pooling_across_groups_of_timesteps() -> None:
    x = quantise(np.random.default_rng(1).normal(size=(36, 18)), 4)
    assert np.array_equal(execute(pool("max", x)).values, np.maximum(x.values[0::2], x.values[1::2]))


@settings(max_examples=8)
@given(st.integers(1, 18), st.integers(1, 3), st.tuples(biases, biases, biases), seeds)
def test_layer_norm(timesteps: int, size: int, bias: tuple[int, int, int], seed: int) -> None:
    rng, features = np.random.default_rng(seed), 16 * size
    x, gamma, beta = (
        codes(rng, bias[0], timesteps, features),
        codes(rng, bias[1], features),
        codes(rng, bias[2], features),
    )
    result = execute(layer_norm(x, gamma, beta))
    assert np.array_equal(result.codes, oracle.layer_norm(x, gamma, beta))
    assert result.bias == x.bias


def test_layer_norm_is_near_the_real_one() -> None:
    rng = np.random.default_rng(1)
    x, gamma, beta = (quantise(rng.normal(size=shape), 5) for shape in ((3, 48), 48, 48))
    centred = x.values - x.values.mean(axis=1, keepdims=True)
    real = centred / x.values.std(axis=1, keepdims=True) * gamma.values + beta.values
    result = execute(layer_norm(x, gamma, beta)).values
    assert np.linalg.norm(result - real) / np.linalg.norm(real) < 0.02  # a code's own error is at most 1/32


@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 36), st.integers(1, 40)),
    st.tuples(biases, biases, biases, biases),
    st.sampled_from([64, 128, 256]),
    seeds,
)
@example((3, 2), (0, 0, 0, 0), 64, 492)  # a sum that is not 0, of which no bit is left
def test_attention(sizes: tuple[int, int], bias: tuple[int, ...], top: int, seed: int) -> None:
    (timesteps, features), rng = sizes, np.random.default_rng(seed)
    keys, query = codes(rng, bias[0], timesteps, features, top=top), codes(rng, bias[1], features, top=top)
    result = execute(attention(keys, query, output_bias=bias[2], weight_bias=bias[3]))
    assert np.array_equal(result.codes, oracle.attention(keys, query, bias[2], bias[3]))
    assert (result.shape, result.bias) == ((features,), bias[2])


def test_attention_is_near_the_real_one_while_its_sum_is_small() -> None:
    rng = np.random.default_rng(6)
    keys, query = normal(rng, 1, 3, 40), normal(rng, 0.1, 40)
    scores = keys.values @ query.values
    assert 1.5 < np.exp(scores - scores.max()).sum() < 3.5
    real = reference.attention(keys.values, query.values)
    result = execute(attention(keys, query, output_bias=keys.bias)).values
    # Dividend and divisor are cut to multiples of 1/16, which alone is 6 % of 1, and quotients to 1/256.  Measured on
    # 300 such inputs: 5.3 % on average, 9.4 % at most.
    assert np.linalg.norm(result - real) / np.linalg.norm(real) < 0.12


# -- both devices, and messages -----------------------------------------------------------------------


def test_the_simulator_gives_what_the_interpreter_gives() -> None:
    rng = np.random.default_rng(6)
    x, w, b = normal(rng, 0.3, 16, 64), normal(rng, 0.2, 64, 64), normal(rng, 0.2, 64)
    program = linear(x, w, b, output_bias=3)
    wanted = oracle.linear(x, w, b, 3)
    for device in (Simulator(flexasr()), Machine(flexasr())):
        assert np.array_equal(program.run(device).codes, wanted)


def q(*shape: int) -> Quantised:
    return Quantised(np.zeros(shape, np.uint8), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear(q(2, 5), q(7, 6), q(7), output_bias=0), "w must have shape [7, 5], not [7, 6]; reshape or"),
        (lambda: linear(q(2, 5), q(7, 5), q(6), output_bias=0), "b must have shape [7], not [6]; reshape or"),
        (
            lambda: linear(q(2, 5), q(7, 5), q(7), output_bias=9),
            "Sizes of mapping flexasr_linear must satisfy: bias_y <= 7; given T = 2",
        ),
        (
            lambda: linear(q(2, 4080), q(128, 4080), q(128), output_bias=0),
            "Input, state and bias vectors of shape 2x4080x128 of a FlexASR linear mapping must be at most 256",
        ),
        (lambda: linear(q(0, 5), q(7, 5), q(7), output_bias=0), "Rows of shape 0x16x64"),
        (
            lambda: recurrent("lstm", (q(1, 16), q(64, 16), q(64, 17), q(64), q(64)), state_bias=1),
            "w must have shape [68, 16], not [64, 16]; reshape or",
        ),
        (
            lambda: recurrent("gru", (q(1, 16), q(48, 16), q(48, 16), q(48), q(47)), state_bias=1),
            "c must have shape [48], not [47]; reshape or",
        ),
        (lambda: pool("max", q(3, 4)), "Rows of shape 3x16 of a FlexASR pooling mapping must be even, not 3"),
        (lambda: layer_norm(q(2, 20), q(20), q(20)), "Columns of shape 2x20 of a FlexASR layer-norm mapping must be a"),
        (lambda: layer_norm(q(2, 16), q(16), q(1, 16)), "beta must have shape [16], not [1, 16]; reshape or"),
        (
            lambda: attention(q(1025, 80), q(80), output_bias=1),
            "Rows of shape 1025x80 of a FlexASR attention mapping must be at most 1024, not 1025; shorten the sequence",
        ),
        (lambda: attention(q(16, 20), q(21), output_bias=1), "query must have shape [20], not [21]; reshape or"),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, SizeError)) as error:
        call()
    assert str(error.value).startswith(message)
