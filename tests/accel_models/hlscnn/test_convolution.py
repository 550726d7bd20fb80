"""The convolution against the published description, through the port, for every reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.hlscnn.options import MASTER, WGT_16BITS, HlscnnOptions, Rounding
from tests.accel_models.hlscnn.oracle import Layer, convolve, run_layer, size_of, without_zeros

READINGS = st.builds(
    HlscnnOptions,
    coordinates=st.sampled_from(["valid", "same"]),
    outputs=st.sampled_from(["blocked", "per_filter"]),
    other_lanes=st.sampled_from(["kept", "cleared"]),
    activations=st.sampled_from(["soc", "spad1"]),
    weight_bits=st.sampled_from([8, 16]),
    channel_word=st.sampled_from(["implemented", "wide"]),
    weight_fraction=st.integers(8, 15),
    activation_fraction=st.integers(5, 9),
    output_fraction=st.integers(2, 9),
    psum_fraction=st.integers(12, 22),
    psum_bits=st.just(48),  # the description has no overflow of partial sums
    tap_rounding=st.sampled_from(get_args(Rounding)),
    store_rounding=st.sampled_from(get_args(Rounding)),
    overflow=st.sampled_from(["wrap", "saturate"]),
)


@st.composite
def layers(draw: st.DrawFn, bits: int) -> Layer:
    """Layers of every shape, kernels larger than the input included, with random codes of many sizes."""
    layer = Layer(
        filters=draw(st.sampled_from([1, 2, 7, 8, 9])),
        channels=draw(st.sampled_from([1, 2, 8, 9, 16, 17])),
        rows=draw(st.integers(1, 4)),
        cols=draw(st.integers(1, 4)),
        kernel_rows=draw(st.integers(1, 4)),
        kernel_cols=draw(st.integers(1, 3)),
        row_stride=draw(st.integers(1, 3)),
        col_stride=draw(st.integers(1, 4)),
        bias=draw(st.none() | st.integers(-(1 << 15), (1 << 15) - 1)),
        relu=draw(st.booleans()),
        accum=draw(st.booleans()),
    )
    if draw(st.booleans()):
        layer = replace(layer, out_rows=draw(st.integers(1, 5)), out_cols=draw(st.integers(1, 5)))
    return layer.with_data(draw(st.integers(0, 1 << 30)), act=1 << draw(st.integers(4, 15)), wgt=1 << (bits - 1))


@settings(max_examples=15)
@given(st.data())
def test_what_is_stored_is_what_the_description_says(data: st.DataObject) -> None:
    options = data.draw(READINGS)
    layer = data.draw(layers(options.weight_bits))
    words = data.draw(st.lists(st.integers(-(1 << 15), (1 << 15) - 1), min_size=1, max_size=16))
    where = [(entry, lane) for entry in range(size_of(layer, options)) for lane in range(8)]
    old = {at: words[i % len(words)] for i, at in enumerate(where)}
    assert run_layer(layer, options, old, port=True) == without_zeros(convolve(layer, options, old))


@pytest.mark.parametrize("options", [HlscnnOptions(), MASTER, WGT_16BITS], ids=["default", "main branch", "16"])
@settings(max_examples=25)
@given(st.data())
def test_published_formats(options: HlscnnOptions, data: st.DataObject) -> None:
    layer = data.draw(layers(options.weight_bits))
    assert run_layer(layer, options, port=True) == without_zeros(convolve(layer, options))


@pytest.mark.parametrize(
    "sizes",
    [
        {"kernel_rows": 255, "rows": 256, "row_stride": 7},
        {"kernel_cols": 255, "cols": 300, "col_stride": 5},
        {"rows": 1023, "row_stride": 7, "kernel_rows": 2},
        {"cols": 1023},
        {"channels": 4095},
        {"filters": 255},
    ],
    ids=str,
)
def test_the_largest_sizes(sizes: dict[str, Any]) -> None:
    ones = {"filters": 1, "channels": 1, "rows": 1, "cols": 1, "kernel_rows": 1, "kernel_cols": 1}
    layer = Layer(**(ones | sizes)).with_data(1, act=1 << 6, wgt=1 << 7)
    expected = without_zeros(convolve(layer, HlscnnOptions()))
    assert run_layer(layer, HlscnnOptions()) == expected
    assert expected


def test_a_partial_sum_wraps_where_it_has_no_room() -> None:
    # 21 fraction bits leave 11 of 32 for the integer: 8 products of -2 * -256 are 4096, four times the range
    layer = Layer(1, 8, 1, 1, 1, 1, activations=(-(1 << 15),) * 8, weights=(-(1 << 15),) * 8)
    exact = replace(WGT_16BITS, psum_fraction=21, output_fraction=0, psum_bits=37)
    assert run_layer(layer, exact) == {(0, 0): 4096}
    assert run_layer(layer, replace(exact, psum_bits=32)) == {}
    # the published 16 integer bits hold it
    assert run_layer(layer, replace(WGT_16BITS, output_fraction=0)) == {(0, 0): 4096}


def test_accumulation_goes_on_where_the_last_start_ended() -> None:
    whole = Layer(2, 16, 3, 3, 2, 2, bias=777, relu=True).with_data(3, act=1 << 9)
    acts, wgts = whole.activations, whole.weights
    halves = [
        Layer(
            2, 8, 3, 3, 2, 2, bias=777 if second else None, relu=second, accum=second,
            activations=acts[72 * second : 72 * second + 72],
            weights=tuple(w for f in range(2) for w in wgts[64 * f + 32 * second :][:32]),
        )
        for second in (False, True)
    ]  # fmt: skip
    first = run_layer(halves[0], HlscnnOptions())
    assert run_layer(halves[1], HlscnnOptions(), first) == run_layer(whole, HlscnnOptions())
