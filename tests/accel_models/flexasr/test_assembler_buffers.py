"""Assembled programs of the global buffer's units: run on the model, and compared with oracles on whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr import assembler as asm
from accel_models.flexasr.layout import vector_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.program import parse_program, run, write_program
from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang import Machine, bv, compile_terms, const, var
from tests.accel_models.flexasr import assembler_oracle as oracle

MACHINE_COMMANDS = 400  # more take seconds on the scalar interpreter


def codes(seed: int, *shape: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng([seed, *shape]).integers(0, 256, shape).astype(np.uint8)


def execute(assembled: asm.Assembled) -> Quantised:
    assert len(assembled.commands) <= MACHINE_COMMANDS
    return assembled.read_output(run(assembled.program, Machine(flexasr())))


# -- pooling ------------------------------------------------------------------------------------------


def halves(kind: str, pair: Any) -> int:
    """What LayerReduce makes of two codes, from the definition: bias 0, one rounding."""
    a, b = (int(Quantised(pair, 0).values[i] * 2**14) for i in (0, 1))
    if kind == "max":
        larger = int(pair[0] if a >= b else pair[1])
        return 0 if larger & 0x7F == 0 else larger
    return oracle.encode(a + b, 15 if kind == "mean" else 14, 0)


POOLS: dict[str, Callable[[Quantised], asm.Assembled]] = {
    "max": asm.max_pool,
    "mean": asm.mean_pool,
    "add": asm.add_pool,
}


@settings(max_examples=12)
@given(st.sampled_from(list(POOLS)), st.integers(1, 10), st.integers(1, 40), st.integers(0, 7), st.integers(0, 99))
def test_pooling(kind: str, pairs: int, features: int, bias: int, seed: int) -> None:
    x = codes(seed, 2 * pairs, features)
    result = execute(POOLS[kind](Quantised(x, bias)))
    wanted = [[halves(kind, x[2 * t : 2 * t + 2, f]) for f in range(features)] for t in range(pairs)]
    assert (result.codes.tolist(), result.bias) == (wanted, bias)


def test_pooling_across_groups_of_timesteps() -> None:
    x = quantise(np.random.default_rng(1).normal(size=(36, 18)), 4)
    result = execute(asm.max_pool(x))
    assert np.array_equal(result.values, np.maximum(x.values[0::2], x.values[1::2]))


# -- layer normalisation ------------------------------------------------------------------------------


@settings(max_examples=8)
@given(st.integers(1, 18), st.integers(1, 3), st.tuples(*[st.integers(0, 7)] * 3), st.integers(0, 99))
def test_layer_norm(timesteps: int, size: int, biases: tuple[int, int, int], seed: int) -> None:
    x, gamma, beta = (
        Quantised(codes(seed + k, *shape), bias)
        for k, (shape, bias) in enumerate(
            zip([(timesteps, 16 * size), (16 * size,), (16 * size,)], biases, strict=True)
        )
    )
    result = execute(asm.layer_norm(x, gamma, beta))
    assert np.array_equal(result.codes, oracle.layer_norm(x, gamma, beta))
    assert result.bias == x.bias


def test_layer_norm_is_near_the_real_one() -> None:
    rng = np.random.default_rng(1)
    x, gamma, beta = (quantise(rng.normal(size=shape), 5) for shape in ((3, 48), 48, 48))
    centred = x.values - x.values.mean(axis=1, keepdims=True)
    real = centred / x.values.std(axis=1, keepdims=True) * gamma.values + beta.values
    result = execute(asm.layer_norm(x, gamma, beta)).values
    assert np.linalg.norm(result - real) / np.linalg.norm(real) < 0.02  # a code's own error is at most 1/32


# -- zero padding -------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(1, 20), st.integers(1, 40), st.data())
def test_zero_padding(timesteps: int, features: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, timesteps - 1))
    end = data.draw(st.integers(begin + 1, timesteps))
    x = codes(5, timesteps, features)
    wanted = x.copy()
    wanted[begin:end] = 0
    result = execute(asm.zero_padding(Quantised(x, 6), begin, end))
    assert (result.codes.tolist(), result.bias) == (wanted.tolist(), 6)


# -- commands and reads -------------------------------------------------------------------------------


def test_places_are_those_of_the_layout() -> None:
    t, v = var("t", bv(16)), var("v", bv(8))
    place = compile_terms([t, v], [vector_address(const(7, 16), const(3, 8), t, v)])
    wanted = [[place(i, j)[0] for j in range(3)] for i in range(40)]
    assert asm.tiling.matrix_places(7, 40, 3).tolist() == wanted


def test_a_program_file_holds_the_same_commands() -> None:
    assembled = asm.max_pool(Quantised(codes(1, 4, 20), 2))
    assert parse_program(write_program(assembled.program)) == assembled.program
    assert [c.mode for c in assembled.program.commands] == [*"W" * 11, "Q", *"R" * 4]


def test_reads_as_an_array_of_bytes() -> None:
    assembled = asm.max_pool(Quantised(codes(1, 4, 20), 2))
    reads = run(assembled.program, Machine(flexasr()))
    array = np.array([list(word.to_bytes(16, "little")) for _, word in reads], np.uint8)
    assert np.array_equal(assembled.read_output(array).codes, assembled.read_output(reads).codes)


def test_reads_of_another_run_are_refused() -> None:
    assembled = asm.max_pool(Quantised(codes(1, 4, 20), 2))
    reads = [(0x33500000, 1), (0x33500100, 2), (0x33500010, 3), (0x33500110, 4)]
    assert assembled.read_output(reads).codes[1, 16] == 4
    for wrong, message in [
        (reads[:3], "The program reads 4 words, not 3; give what a run of this very program returned"),
        (
            [reads[1], *reads[1:]],
            "Word 0 must come from 0x33500000, not 0x33500100; give what a run of this very program returned",
        ),
    ]:
        with pytest.raises(ValueError) as error:
            assembled.read_output(wrong)
        assert str(error.value) == message


# -- messages -----------------------------------------------------------------------------------------


def q(*shape: int) -> Quantised:
    return Quantised(np.zeros(shape, np.uint8), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: asm.max_pool(q(3, 4)),
            "Timesteps of x must be even, not 3: LayerReduce works on pairs; drop the last timestep",
        ),
        (
            lambda: asm.max_pool(q(4)),
            "x must have shape [T, F] without an empty axis, not [4]; reshape it",
        ),
        (
            lambda: asm.max_pool(q(4, 0)),
            "x must have shape [T, F] without an empty axis, not [4, 0]; reshape it",
        ),
        (
            lambda: asm.mean_pool(q(2, 4081)),
            "Features of x must be at most 4080 (num_vector has 8 bits, 16 features each), not 4081; split the tensor",
        ),
        (
            lambda: asm.add_pool(q(65536, 1)),
            "Timesteps of x must be at most 65535 (num_timestep has 16 bits), not 65536; split the sequence",
        ),
        (
            lambda: asm.max_pool(q(32770, 17)),
            "Vectors of x must be at most 65536 (the large buffer, in groups of 16 timesteps), not 65568; "
            "split the sequence",
        ),
        (
            lambda: asm.layer_norm(q(2, 20), q(20), q(20)),
            "Features of x must be a multiple of 16, not 20: LayerNorm would take the padding for features; use "
            "another unit or change the model",
        ),
        (
            lambda: asm.layer_norm(q(2, 16), q(16), q(1, 16)),
            "beta must have shape [16], not [1, 16]; reshape or transpose it",
        ),
        (
            lambda: asm.zero_padding(q(2, 16), 2, 2),
            "begin and end must enclose at least one of the timesteps 0 .. 1, not be 2 and 2",
        ),
        (
            lambda: asm.attention(q(1025, 80), q(80), output_bias=1),
            "Timesteps of keys must be at most 1024 (256 vectors of four scores), not 1025; shorten the sequence",
        ),
        (
            lambda: asm.attention(q(16, 20), q(21), output_bias=1),
            "query must have shape [20], not [21]; reshape or transpose it",
        ),
        (lambda: asm.attention(q(16, 20), q(20), output_bias=8), "output_bias must be in 0 .. 7, not 8"),
        (
            lambda: asm.attention(q(16, 20), q(20), output_bias=1, weight_bias=-1),
            "weight_bias must be in 0 .. 7, not -1",
        ),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


def test_the_largest_that_fits() -> None:
    assert len(asm.max_pool(q(4096, 256)).commands) == 65536 + 4 + 32768
    assert len(asm.attention(q(16, 4080), q(4080), output_bias=1).commands) == 5 + 255 * 18
