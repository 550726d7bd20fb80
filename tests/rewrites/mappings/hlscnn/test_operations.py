"""Convolutions as programs of the mappings, against the published loop, against mathematics, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import BY_WEIGHT_BITS, WGT_16BITS, HlscnnOptions
from ila_lang import Machine, Simulator
from ila_lang.mapping import SizeError
from rewrites.mappings.hlscnn.operations import conv2d
from rewrites.mappings.programs import DeviceProgram
from tests.accel_models.hlscnn import oracle
from tests.accel_models.hlscnn.oracle import Layer

READINGS = {
    "default": HlscnnOptions(),
    "16-bit weights": WGT_16BITS,
    "saturating": HlscnnOptions(overflow="saturate", tap_rounding="half_even"),
    "16-bit weights, cut": replace(WGT_16BITS, tap_rounding="truncate"),
}


def random(shape: tuple[int, ...], bits: int, seed: int) -> NDArray[np.integer]:
    half = 1 << (bits - 1)
    return np.random.default_rng(seed).integers(-half, half, shape)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(READINGS.values())),
    st.tuples(st.integers(1, 10), st.sampled_from([1, 3, 8, 9, 16]), st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([0, 1234, -5000]),
    st.booleans(),
    st.integers(0, 1000),
)  # fmt: skip
def test_outputs_are_those_of_the_published_loop(
    options: HlscnnOptions,
    sizes: tuple[int, int, int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    bias: int,
    relu: bool,
    seed: int,
) -> None:
    filters, channels, rows, cols = sizes
    kernel, bits = (min(kernel[0], rows), min(kernel[1], cols)), options.weight_bits
    x, w = random((channels, rows, cols), 12, seed), random((filters, channels, *kernel), bits, seed)
    result = conv2d(x, w, bias=bias, stride=stride, relu=relu, weight_bits=bits).run(Machine(hlscnn(options)))
    assert np.array_equal(result, oracle.convolution(x, w, options, bias, stride, relu))


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([8, 16]), st.integers(1, 9), st.integers(1, 17), st.integers(1, 3), st.integers(1, 2),
    st.booleans(), st.integers(0, 1000),
)  # fmt: skip
def test_without_rounding_it_is_the_convolution(
    bits: int, filters: int, channels: int, kernel: int, stride: int, relu: bool, seed: int
) -> None:
    # weights are multiples of 1/4 and activations of 1/2, and no sum leaves the range: every conversion is exact
    rng, options = np.random.default_rng(seed), BY_WEIGHT_BITS[bits]
    x = np.pad(rng.integers(-4, 5, (channels, 4, 5)) * 64, ((0, 0), (1, 1), (1, 1)))
    quarter = 1 << options.weight_fraction - (16 - bits) - 2
    w = rng.integers(-1, 2, (filters, channels, kernel, kernel)) * quarter
    program = conv2d(x, w, bias=1 << 14, stride=(stride, stride), relu=relu, weight_bits=bits)
    exact = mathematical(x / 128, w / quarter / 4, stride) + 1.0
    assert np.array_equal(program.run(Machine(hlscnn(options))) / 128, np.maximum(exact, 0) if relu else exact)


def mathematical(x: NDArray[np.float64], w: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (1, 2))[:, ::stride, ::stride]
    return np.einsum("crqij,fcij->frq", windows, w)


@pytest.mark.parametrize("bits", [8, 16])
def test_the_fast_simulator_leaves_the_same_memories(bits: int) -> None:
    ila = hlscnn(BY_WEIGHT_BITS[bits])
    for seed, (stride, relu) in enumerate([(1, False), (2, True)]):
        x, w = random((9, 6, 5), 16, seed), random((9, 9, 3, 2), bits, seed)
        program = conv2d(x, w, bias=seed - 1, stride=(stride, stride), relu=relu, weight_bits=bits)
        slow, fast = Machine(ila), Simulator(ila)
        assert np.array_equal(program.run(fast), program.run(slow))
        assert fast.values == slow.values
        for name, memory in slow.memories.items():
            assert {at: word for at, word in fast.memories[name].items() if word} == {
                at: word for at, word in memory.items() if word
            }


def written(program: DeviceProgram[Any]) -> dict[int, int]:
    """What a program writes, by bus address."""
    return {c["top_slave_addr_in"]: c["top_slave_data_in"] for c in program.commands if c["top_slave_if_wr"]}


@pytest.mark.parametrize("bits", [8, 16])
def test_operands_lie_as_published(bits: int) -> None:
    x, w = random((11, 3, 3), 16, 1), random((3, 11, 2, 3), bits, 2)
    layer = Layer(3, 11, 3, 3, 2, 3, activations=tuple(x.ravel().tolist()), weights=tuple(w.ravel().tolist()))
    wanted = oracle.entries(oracle.packed_activations(layer)) + oracle.entries(oracle.packed_weights(layer), bits)
    found = written(conv2d(x, w, weight_bits=bits))
    assert [found[0x32050000 + 16 * i] for i in range(len(wanted))] == wanted
    assert 0x32050000 + 16 * len(wanted) not in found


X, W = np.zeros((2, 4, 4), np.int16), np.zeros((3, 2, 2, 2), np.int16)


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ((X, W[:, :1]), "x and w must be [C, H, W] and [F, C, KH, KW], not [2, 4, 4] and [3, 1, 2, 2]"),
        ((X[0], W), "x and w must be [C, H, W] and [F, C, KH, KW], not [4, 4] and [3, 2, 2, 2]"),
        ((X + 0.5, W), "x must hold codes of 16 bits, -32768 .. 32767; quantise it to that format"),
        ((X.astype(int) + 32768, W), "x must hold codes of 16 bits, -32768 .. 32767; quantise it to that format"),
        ((X, W - 129), "w must hold codes of 8 bits, -128 .. 127; quantise it to that format"),
    ],
)
def test_messages(operands: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        conv2d(*operands)
    assert str(error.value) == message


def test_what_one_start_does_not_hold_is_refused() -> None:
    with pytest.raises(SizeError, match=r"^Weights of shape .* must fill at most 8192 entries of 8 words, not 8832"):
        conv2d(np.zeros((1100, 8, 8), int), np.zeros((1, 1100, 8, 8), int), weight_bits=16)
