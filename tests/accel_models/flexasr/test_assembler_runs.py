"""Assembled layers on the model, against an independent oracle bit by bit, and against the real-valued operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr import assembler as asm
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.program import run
from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang import CommandStream, Machine, Simulator
from ir_semantics import reference
from tests.accel_models.flexasr import assembler_oracle as oracle
from tests.accel_models.flexasr.test_assembler_layers import PROGRAMS, reassemble

biases = st.integers(0, 7)
seeds = st.integers(0, 10_000)


def execute(assembled: asm.Assembled) -> Quantised:
    return assembled.read_output(run(assembled.program, Machine(flexasr())))


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
    st.sampled_from([None, "relu", "sigmoid", "tanh"]),
    st.sampled_from([96, 256]),
    st.booleans(),
    seeds,
)
def test_linear(
    sizes: tuple[int, int, int], bias: tuple[int, ...], activation: str | None, top: int, biased: bool, seed: int
) -> None:
    (timesteps, inputs, outputs), rng = sizes, np.random.default_rng(seed)
    x, w = codes(rng, bias[0], timesteps, inputs, top=top), codes(rng, bias[1], outputs, inputs, top=top)
    b = codes(rng, bias[2], outputs) if biased else None
    result = execute(asm.linear(x, w, b, output_bias=bias[3], activation=activation))
    assert np.array_equal(result.codes, oracle.linear(x, w, b, bias[3], activation))
    assert (result.shape, result.bias) == ((timesteps, outputs), bias[3])


# those of other layers begin with another hidden state in each PE
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("linear")][::4])
def test_recorded_results(name: str) -> None:
    assembled = reassemble(PROGRAMS[name])
    words = [f"{word:032x}" for _, word in run(assembled.program, Machine(flexasr()))]
    assert words == PROGRAMS[name]["reads"]


def test_linear_across_groups_of_timesteps_and_with_clustered_weights() -> None:
    rng = np.random.default_rng(1)
    x, w, b = codes(rng, 2, 18, 17), codes(rng, 1, 3, 17, top=8), codes(rng, 3, 3)
    wanted = oracle.linear(x, w, b, 4)
    assert np.array_equal(execute(asm.linear(x, w, b, output_bias=4)).codes, wanted)
    assert np.array_equal(execute(asm.linear(x, w, b, output_bias=4, clustered=True)).codes, wanted)
    assert np.array_equal(execute(asm.linear(x, w, b, output_bias=4, output_base=777)).codes, wanted)


def test_linear_is_the_real_layer_rounded_down_once_and_then_to_a_code() -> None:
    rng = np.random.default_rng(2)
    x, w, b = normal(rng, 0.5, 3, 40), normal(rng, 0.2, 30, 40), normal(rng, 0.3, 30)
    real, result = reference.dense(x.values, w.values, b.values), execute(asm.linear(x, w, b, output_bias=5))
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
    st.booleans(),
    seeds,
)
def test_recurrent_layers(kind: str, sizes: tuple[int, int, int], bias: Any, begun: bool, seed: int) -> None:
    (timesteps, inputs, hidden), rng = sizes, np.random.default_rng(seed)
    rows = GATES[kind] * hidden
    x = codes(rng, bias[0], timesteps, inputs, top=160)
    shapes = [(rows, inputs), (rows, hidden), (rows,), (rows,)]
    weights = tuple(codes(rng, b, *shape, top=160) for b, shape in zip(bias[1:], shapes, strict=False))
    h, c = codes(rng, bias[5], hidden), codes(rng, bias[5], hidden)
    options: dict[str, Any] = {"initial": (h, c) if kind == "lstm" else h} if begun else {}
    result = execute(getattr(asm, kind)(x, *weights, state_bias=bias[5], **options))
    wanted = oracle.recurrent(kind, x, weights, bias[5], (h.codes, c.codes) if begun else None)
    assert np.array_equal(result.codes, wanted)
    assert (result.shape, result.bias) == ((timesteps, hidden), bias[5])


@pytest.mark.parametrize("kind", GATES)
def test_recurrent_layers_are_near_the_real_ones(kind: str) -> None:
    rng, hidden = np.random.default_rng(3), 20
    rows = GATES[kind] * hidden
    x = normal(rng, 0.5, 4, 10)
    weights = [normal(rng, 0.3, *shape) for shape in ((rows, 10), (rows, hidden), (rows,), (rows,))]
    result = execute(getattr(asm, kind)(x, *weights, state_bias=3))
    real = getattr(reference, kind)(x.values, *(w.values for w in weights))
    real = real[0] if kind == "lstm" else real
    # Codes are off by 1.5 % on average, and the lines of sigmoid and tanh by at most 0.007 and 0.005.  Measured on 100
    # such inputs: 1.6 % to 1.8 % on average, 2.7 % at most.
    assert 0.001 < np.linalg.norm(result.values - real) / np.linalg.norm(real) < 0.03


def test_an_lstm_with_clustered_weights_and_a_partly_used_vector() -> None:
    rng, hidden = np.random.default_rng(4), 70  # one PE has two vectors, of which one is padding
    x, b = codes(rng, 2, 2, 20, top=160), codes(rng, 1, 4 * hidden)
    w, u = (Quantised(codes(rng, 2, *s, top=16).codes, 2) for s in ((4 * hidden, 20), (4 * hidden, hidden)))
    w, u = (Quantised((t.codes & 0x87) | 0x30, 2) for t in (w, u))
    u = Quantised(np.where(u.codes & 7 == 7, 0, u.codes).astype(np.uint8), 2)
    result = execute(asm.lstm(x, w, u, b, b, state_bias=2, clustered=True))
    assert np.array_equal(result.codes, oracle.recurrent("lstm", x, (w, u, b, b), 2))


# -- in bulk ------------------------------------------------------------------------------------------


def in_bulk(assembled: asm.Assembled) -> Quantised:
    words = Simulator(flexasr()).execute(CommandStream(assembled.commands.columns()), ["data_out"])["data_out"]
    return assembled.read_output(np.array([word for _, word in words]))


def test_the_simulator_takes_commands_as_columns() -> None:
    rng = np.random.default_rng(6)
    x, w, b = normal(rng, 0.3, 16, 64), normal(rng, 0.2, 64, 64), normal(rng, 0.2, 64)
    assert np.array_equal(in_bulk(asm.linear(x, w, b, output_bias=3)).codes, oracle.linear(x, w, b, 3))


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_an_lstm_of_full_size(clustered: bool) -> None:
    rng = np.random.default_rng(7)
    x, b = normal(rng, 0.5, 35, 256), normal(rng, 0.1, 1024, bias=0)
    w, u = (normal(rng, 0.05, 1024, 256, bias=0) for _ in "wu")
    if clustered:
        w, u = (Quantised(t.codes & 0xBC, 0) for t in (w, u))
        w, u = (Quantised(np.where(t.codes & 0x3F < 0x24, 0, t.codes).astype(np.uint8), 0) for t in (w, u))
    result = in_bulk(asm.lstm(x, w, u, b, b, state_bias=2, clustered=clustered))
    assert np.array_equal(result.codes, oracle.recurrent("lstm", x, (w, u, b, b), 2))
    assert 0.01 < np.abs(result.values).mean() < 0.9


# -- attention ----------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 36), st.integers(1, 40)),
    st.tuples(biases, biases, biases, biases),
    st.sampled_from([64, 128, 256]),
    seeds,
)
def test_attention(sizes: tuple[int, int], bias: tuple[int, ...], top: int, seed: int) -> None:
    (timesteps, features), rng = sizes, np.random.default_rng(seed)
    keys, query = codes(rng, bias[0], timesteps, features, top=top), codes(rng, bias[1], features, top=top)
    result = execute(asm.attention(keys, query, output_bias=bias[2], weight_bias=bias[3]))
    assert np.array_equal(result.codes, oracle.attention(keys, query, bias[2], bias[3]))
    assert (result.shape, result.bias) == ((features,), bias[2])


def test_attention_is_near_the_real_one_while_its_sum_is_small() -> None:
    rng = np.random.default_rng(6)
    keys, query = normal(rng, 1, 3, 40), normal(rng, 0.1, 40)
    scores = keys.values @ query.values
    assert 1.5 < np.exp(scores - scores.max()).sum() < 3.5
    real = reference.attention(keys.values, query.values)
    result = execute(asm.attention(keys, query, output_bias=keys.bias)).values
    # Dividend and divisor are cut to multiples of 1/16, which alone is 6 % of 1, and quotients to 1/256.  Measured on
    # 300 such inputs: 5.3 % on average, 9.4 % at most.
    assert np.linalg.norm(result - real) / np.linalg.norm(real) < 0.12
