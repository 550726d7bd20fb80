"""Assembled convolutions against the published loop, against mathematics, and their limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accel_models.hlscnn.assembler import conv2d, pack_activations, pack_weights
from accel_models.hlscnn.model import MASTER, HlscnnOptions, hlscnn
from accel_models.hlscnn.options import WGT_16BITS
from accel_models.hlscnn.program import ProgramCommand, parse_program, run, write_program
from accel_models.hlscnn.tiling import Shape, tile
from ila_lang import Machine, Simulator
from tests.accel_models.hlscnn import oracle
from tests.accel_models.hlscnn.oracle import Layer

READINGS = {
    "default": HlscnnOptions(),
    "main branch": MASTER,
    "16-bit weights": WGT_16BITS,
    "one scratchpad": replace(WGT_16BITS, activations="spad1", channel_word="wide"),
    "one plane per filter": HlscnnOptions(outputs="per_filter", overflow="saturate", tap_rounding="half_even"),
}


def executed(convolution: Any) -> NDArray[np.int16]:
    machine = Machine(hlscnn(convolution.options))
    result: NDArray[np.int16] = convolution.outputs(run(convolution.program, machine))
    return result


def expected(
    x: NDArray[np.integer], w: NDArray[np.integer], bias: list[int] | None, stride: tuple[int, int], relu: bool,
    options: HlscnnOptions,
) -> NDArray[np.int64]:  # fmt: skip
    """The published loop, one filter at a time, on the padded input; outputs that all taps reach."""
    result = []
    for f in range(w.shape[0]):
        layer = Layer(
            1, *x.shape, *w.shape[2:], *stride,
            bias=None if bias is None else bias[f], relu=relu,
            activations=tuple(x.ravel().tolist()), weights=tuple(w[f].ravel().tolist()),
        )  # fmt: skip
        spad = oracle.convolve(layer, options)
        rows, cols = layer.out_size
        same = options.coordinates == "same"
        plane = [
            spad[oracle.place(layer, options, 0, *at)]
            for p, q in product(range(rows), range(cols))
            for at in [(p * stride[0] + w.shape[2] // 2, q * stride[1] + w.shape[3] // 2) if same else (p, q)]
        ]
        result.append(np.reshape(plane, (rows, cols)))
    return np.array(result)


def random(shape: tuple[int, ...], bits: int, seed: int) -> NDArray[np.integer]:
    half = 1 << (bits - 1)
    return np.random.default_rng(seed).integers(-half, half, shape)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(READINGS.values())),
    st.tuples(st.integers(1, 10), st.sampled_from([1, 3, 8, 9, 16]), st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 1)), st.tuples(st.integers(0, 1), st.integers(0, 2))),
    st.sampled_from([None, "one", "many"]),
    st.booleans(),
    st.integers(0, 1000),
)  # fmt: skip
def test_outputs_are_those_of_the_published_loop(
    options: HlscnnOptions,
    sizes: tuple[int, int, int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[tuple[int, int], tuple[int, int]],
    bias_kind: str | None,
    relu: bool,
    seed: int,
) -> None:
    filters, channels, rows, cols = sizes
    kernel = min(kernel[0], rows + sum(padding[0])), min(kernel[1], cols + sum(padding[1]))
    x, w = random((channels, rows, cols), 12, seed), random((filters, channels, *kernel), options.weight_bits, seed)
    bias = {None: None, "one": [1234] * filters, "many": [100 * f - 5000 for f in range(filters)]}[bias_kind]
    result = executed(conv2d(x, w, bias, stride=stride, padding=padding, relu=relu, options=options))
    assert np.array_equal(result, expected(np.pad(x, ((0, 0), *padding)), w, bias, stride, relu, options))


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([READINGS["default"], READINGS["main branch"], READINGS["one scratchpad"]]),
    st.integers(1, 9), st.integers(1, 17), st.integers(1, 3), st.integers(1, 2), st.booleans(), st.integers(0, 1000),
)  # fmt: skip
def test_without_rounding_it_is_the_convolution(
    options: HlscnnOptions, filters: int, channels: int, kernel: int, stride: int, relu: bool, seed: int
) -> None:
    # weights are multiples of 1/4 and activations of 1/2, and no sum leaves the range: every conversion is exact
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (channels, 4, 5)) * 64
    quarter = 1 << (weight_bits_after_point(options) - 2)
    w = rng.integers(-1, 2, (filters, channels, kernel, kernel)) * quarter
    result = executed(conv2d(x, w, [1 << 14] * filters, stride=stride, padding=1, relu=relu, options=options))
    exact = mathematical(np.pad(x, ((0, 0), (1, 1), (1, 1))) / 128, w / quarter / 4, stride) + 1.0
    assert np.array_equal(result / 128, np.maximum(exact, 0) if relu else exact)


def weight_bits_after_point(options: HlscnnOptions) -> int:
    return options.weight_fraction - (16 - options.weight_bits)


def mathematical(x: NDArray[np.float64], w: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (1, 2))[:, ::stride, ::stride]
    return np.einsum("crqij,fcij->frq", windows, w)


@pytest.mark.parametrize("reading", ["default", "main branch", "one scratchpad"])
def test_the_fast_simulator_gives_the_same_words(reading: str) -> None:
    options = READINGS[reading]
    for seed, (stride, relu) in enumerate([(1, False), (2, True)]):
        x, w = random((9, 6, 5), 16, seed), random((9, 9, 3, 2), options.weight_bits, seed)
        convolution = conv2d(x, w, [seed - 1] * 9, stride=stride, relu=relu, options=options)
        slow, fast = Machine(hlscnn(options)), Simulator(hlscnn(options))
        assert run(convolution.program, fast) == run(convolution.program, slow)
        assert fast.values == slow.values
        for name, memory in slow.memories.items():
            assert {at: word for at, word in fast.memories[name].items() if word} == {
                at: word for at, word in memory.items() if word
            }


# -- cutting into several starts -----------------------------------------------------------------------------


def small_memories(monkeypatch: pytest.MonkeyPatch, spad: int, soc: int) -> None:
    """Tells the tiling that the memories are smaller; the model's stay as they are."""
    monkeypatch.setattr("accel_models.hlscnn.tiling.SPAD_ENTRIES", spad)
    monkeypatch.setattr("accel_models.hlscnn.tiling.SOC_ENTRIES", soc)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("bias", [None, list(range(-4000, 5000, 1000))])
def test_cut_convolutions_compute_the_same(
    reading: str, bias: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = READINGS[reading]
    x, w = random((9, 7, 6), 12, 1), random((9, 9, 3, 2), options.weight_bits, 2)
    arguments: dict[str, Any] = {"bias": bias, "stride": (2, 1), "padding": 1, "relu": True, "options": options}
    whole = conv2d(x, w, **arguments)
    small_memories(monkeypatch, spad=110 if options.weight_bits == 16 else 50, soc=140)
    cut = conv2d(x, w, **arguments)
    assert len({s.rows.start for s in cut.starts}) > 1
    assert len({s.filters.start for s in cut.starts}) > 1
    assert len(cut.starts) > len(whole.starts)
    result = executed(cut)
    assert np.array_equal(result, executed(whole))
    assert np.array_equal(result, expected(np.pad(x, ((0, 0), (1, 1), (1, 1))), w, bias, (2, 1), True, options))


def test_as_few_starts_as_the_memories_allow() -> None:
    # 16 -> 16 channels, 32 x 32 with padding, 3 x 3: everything fits at once
    shape = Shape(16, 16, 34, 34, (3, 3), (1, 1))
    tiling = tile(shape, HlscnnOptions(), one_by_one=False)
    assert (tiling.group, tiling.start, tiling.rows) == (16, 16, 32)
    # a bias for each filter: a plane of 1024 entries per start, all weights still loaded once
    assert tile(shape, HlscnnOptions(), one_by_one=True).group == 16
    # 256 filters exceed the 8 bits of ChannelCfg, but not the 12 of the wide one
    many = Shape(256, 8, 3, 3, (1, 1), (1, 1))
    assert tile(many, HlscnnOptions(), one_by_one=False).group == 255
    assert tile(many, HlscnnOptions(channel_word="wide"), one_by_one=False).group == 256
    # the register for input rows limits a band, too
    assert tile(Shape(1, 1, 3000, 1, (1, 1), (1, 1)), HlscnnOptions(), one_by_one=False).rows == 1023


def test_tiles_use_the_memories_to_the_last_entry() -> None:
    full = Shape(8, 8, 64, 128, (1, 1), (1, 1))  # 8192 outputs
    assert tile(full, HlscnnOptions(), one_by_one=False).rows == 64
    assert tile(Shape(8, 8, 65, 128, (1, 1), (1, 1)), HlscnnOptions(), one_by_one=False).rows == 64
    weights = Shape(64, 1024, 1, 1, (1, 1), (1, 1))  # 64 * 128 vectors
    assert tile(weights, WGT_16BITS, one_by_one=False).group == 64
    assert tile(Shape(65, 1024, 1, 1, (1, 1), (1, 1)), WGT_16BITS, one_by_one=False).group == 64
    narrow = HlscnnOptions()
    assert tile(Shape(65, 1024, 1, 1, (1, 1), (1, 1)), narrow, one_by_one=False).group == 65
    # outputs lie in a plane as large as the input, or as the outputs
    strided = Shape(8, 8, 64, 130, (1, 1), (7, 7))
    assert tile(strided, HlscnnOptions(), one_by_one=False).rows == 9  # (9 - 1) * 7 + 1 rows of 130 entries
    assert tile(strided, WGT_16BITS, one_by_one=False).rows == 10
    # 145 * 113 vectors of 8 bytes are one more than SPAD0 holds, half an entry
    assert tile(Shape(145, 8, 113, 1, (113, 1), (1, 1)), narrow, one_by_one=False).group == 144


# -- the program ---------------------------------------------------------------------------------------------


def test_the_program_survives_its_file() -> None:
    convolution = conv2d(random((3, 3, 3), 8, 1), random((2, 3, 2, 2), 8, 2))
    again = parse_program(write_program(convolution.program))
    assert again.commands == convolution.program.commands
    assert np.array_equal(convolution.outputs(run(again, Machine(hlscnn()))), executed(convolution))


def test_registers_are_written_once() -> None:
    commands = conv2d(random((1, 3, 3), 8, 1), random((3, 1, 2, 2), 8, 2), [1, 2, 3]).program.commands
    addresses = [c.addr for c in commands if c.addr < 0x32004000]
    assert addresses.count(0x32000044) == 3  # ConvTrigger
    assert addresses.count(0x3200005C) == 1  # KernelSize
    assert addresses.count(0x32000060) == 3  # ChannelCfg: the bias
    assert addresses.count(0x32000050) == 1  # each start's outputs replace those that have been read


def test_transfers_can_be_limited_to_one_entry() -> None:
    x, w = random((8, 3, 3), 8, 1), random((2, 8, 2, 2), 8, 2)
    single = conv2d(x, w, dma_entries=1)
    transfers = [c for c in single.program.commands if 0x32004000 <= c.addr < 0x32024000]
    lengths = [c for c in single.program.commands if c.addr == 0x32000014]
    assert [c.addr for c in transfers] == [0x32004000 + 16 * i for i in range(4)]
    assert lengths == [ProgramCommand("W", 0x32000014, 1 << 32)]
    assert np.array_equal(executed(single), executed(conv2d(x, w)))


def test_the_packing_is_the_published_one() -> None:
    x, w = random((11, 3, 2), 16, 1), random((3, 11, 2, 3), 16, 2)
    layer = Layer(3, 11, 3, 2, 2, 3, activations=tuple(x.ravel().tolist()), weights=tuple(w.ravel().tolist()))
    assert pack_activations(x) == oracle.entries(oracle.packed_activations(layer))
    assert pack_weights(w, 16) == oracle.entries(oracle.packed_weights(layer))
    narrow = Layer(3, 11, 3, 2, 2, 3, weights=tuple((w >> 8).ravel().tolist()))
    assert pack_weights(w >> 8, 8) == oracle.entries(oracle.packed_weights(narrow), 8)


# -- messages ------------------------------------------------------------------------------------------------

X, W = np.zeros((2, 4, 4), np.int16), np.zeros((3, 2, 2, 2), np.int16)


@pytest.mark.parametrize(
    ("operands", "arguments", "message"),
    [
        (
            (X, W[:, :1]),
            {},
            "weights must have as many channels as activations, 2, not 1",
        ),
        ((X, W, [1, 2]), {}, "bias must have one code per filter, 3, not 2"),
        ((X[0], W), {}, "activations must have 3 dimensions, none of them empty, not shape (4, 4)"),
        ((X, W[:0]), {}, "weights must have 4 dimensions, none of them empty, not shape (0, 2, 2, 2)"),
        (
            (X + 0.5, W),
            {},
            "activations must be integer codes, not float64; quantise real numbers first",
        ),
        (
            (X.astype(int) + 32768, W),
            {},
            "activations must be codes of 16 bits, -32768 .. 32767; quantise them to that format",
        ),
        (
            (X, W - 129),
            {"options": MASTER},
            "weights must be codes of 8 bits, -128 .. 127; quantise them to that format",
        ),
        (
            (X, np.zeros((1, 2, 5, 1), int)),
            {},
            "Kernel must be at most as large as the padded input, 4 x 4, not 5 x 1; add padding",
        ),
        ((X, W), {"stride": 8}, "Row stride of a convolution on HLSCNN must be in 1 .. 7, not 8"),
        ((X, W), {"stride": (1, 0)}, "Column stride of a convolution on HLSCNN must be in 1 .. 7, not 0"),
        ((X, W), {"padding": -1}, "padding must not be negative, not -1"),
        ((X, W), {"dma_entries": 0}, "dma_entries must be at least 1, not 0"),
        (
            (np.zeros((1, 1, 1024), int), np.zeros((1, 1, 1, 1), int)),
            {},
            "Columns with padding of a convolution on HLSCNN must be in 1 .. 1023, not 1024",
        ),
        (
            (np.zeros((800, 9, 9), int), np.zeros((1, 800, 9, 9), int)),
            {"padding": 4},
            "Convolution must fit HLSCNN's memories: weights of a filter and activations of an output row in SoC "
            "memory need 19350 entries of 16 bytes, and there are 12288; use fewer channels or columns",
        ),
        (
            (np.zeros((1100, 8, 8), int), np.zeros((1, 1100, 8, 8), int)),
            {"options": WGT_16BITS},
            "Convolution must fit HLSCNN's memories: weights of a filter in SPAD0 need 8832 entries of 16 bytes, and "
            "there are 8192; use fewer channels or columns",
        ),
    ],
)  # fmt: skip
def test_messages(operands: tuple[Any, ...], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        conv2d(*operands, **arguments)
    assert str(error.value) == message


def test_reads_of_another_program_are_refused() -> None:
    with pytest.raises(ValueError) as error:
        conv2d(X, W).outputs([(0, 0)])
    assert str(error.value) == ("Reads of a convolution must be the 9 of its program, not 1; pass what run returns")
