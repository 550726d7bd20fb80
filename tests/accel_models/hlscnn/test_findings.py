"""What is surprising about HLSCNN, found by search: no example below was written by hand.

The searches stand in ``rewrites.findings.hlscnn``, which also shows what they find to users; here it is compared with
what the published description says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import MASTER, WGT_16BITS, HlscnnOptions, Rounding
from ila_lang import const, inline
from rewrites.findings.finding import NotFound
from rewrites.findings.hlscnn import (
    FAULTS,
    SATURATE,
    VALID,
    channels_permuted,
    exchanged,
    fault,
    last_tap,
    leaking,
    leaking_layer,
    missing_bias,
    negative_layer,
    negative_outputs,
    order_layer,
    order_matters,
    reached,
    reached_by_any,
    two_blocks,
    without_bias,
)
from rewrites.findings.hlscnn_layers import CODES, Layer, Most, differs, layers, replayed, run_layer
from rewrites.findings.queries import prove, smallest_counterexample
from rewrites.findings.search import simplest
from tests.accel_models.hlscnn import oracle
from tests.accel_models.hlscnn.oracle import psum_of


def find_layer(strategy: st.SearchStrategy[Layer], condition: Callable[[Layer], bool], *, shrink: bool = True) -> Layer:
    """A layer of a strategy with a property, the simplest or any; there must be one."""
    layer = simplest(strategy, condition, shrink=shrink)
    assert layer is not None
    return layer


READINGS = [
    HlscnnOptions(),
    VALID,
    SATURATE,
    MASTER,
    WGT_16BITS,
    HlscnnOptions(activations="spad1"),
    HlscnnOptions(outputs="per_filter"),
]


@settings(max_examples=60, deadline=None)
@given(
    layers(Most(filters=9, channels=9, rows=4, out_rows=3), codes=st.integers(-128, 127)),
    st.sampled_from(READINGS),
    st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 7)), CODES, max_size=3),
)
def test_searches_run_the_layers_that_they_say(layer: Layer, options: HlscnnOptions, old: dict) -> None:
    same = oracle.Layer(**{name: getattr(layer, name) for name in Layer.__dataclass_fields__})
    size = oracle.size_of(same, options)
    old = {(entry, lane): code for (entry, lane), code in old.items() if entry < size}
    assert run_layer(layer, options, old) == oracle.run_layer(same, options, old)
    assert replayed(layer, options, old) == run_layer(layer, options, old)


# -- the order of the loops ----------------------------------------------------------------------------------


def test_the_order_of_channel_blocks_matters_where_sums_saturate() -> None:
    layer = order_layer(relu=False)
    assert order_matters(SATURATE)(layer)
    # in one order or the other, a partial sum leaves the words
    assert any(not -(2**15) <= word < 2**15 for step in (1, -1) for word in partial_sums(layer, step))


def partial_sums(layer: Layer, step: int) -> list[int]:
    """Exact sums of the first one, two and three blocks, in units of stored words; the weights are 1.0."""
    words = [layer.activations[c] for c in (0, 8, 16)][::step]
    return [sum(words[: count + 1]) for count in range(3)]


def test_the_order_of_channel_blocks_matters_where_relu_meets_a_sum_that_wrapped() -> None:
    layer = order_layer(relu=True)
    assert order_matters(HlscnnOptions())(layer)
    assert not order_matters(HlscnnOptions())(replace(layer, relu=False))
    assert not -(2**15) <= sum(layer.activations) < 2**15


@settings(max_examples=25, deadline=None)
@given(two_blocks(relu=False), st.permutations([0, 1, 2]))
def test_without_saturation_and_relu_the_order_of_blocks_does_not_matter(layer: Layer, order: list[int]) -> None:
    permuted = channels_permuted(layer, [8 * blk + lane for blk in order for lane in range(8)])
    assert run_layer(layer, HlscnnOptions()) == run_layer(permuted, HlscnnOptions())


@pytest.mark.proof
def test_for_all_words_taps_may_change_places_unless_they_saturate_or_meet_relu() -> None:
    prove("exchange", exchanged(HlscnnOptions()))
    prove("exchange", exchanged(HlscnnOptions(store_rounding="half_up")))
    for claim in (exchanged(SATURATE), exchanged(HlscnnOptions(), relu=True)):
        smallest_counterexample("exchange", claim, [])
        with pytest.raises(NotFound, match="needs the answer unsat"):
            prove("exchange", claim)


def test_which_channels_share_a_block_matters() -> None:
    # no overflow: 16 channels with small operands, exchanged between the blocks
    small = st.integers(-100, 100)

    @st.composite
    def layer_of_16(draw: st.DrawFn) -> Layer:
        codes = [draw(st.tuples(small, small)) for _ in range(3)] + [(0, 0)] * 13
        return Layer(1, 16, 1, 1, 1, 1, activations=tuple(c[0] for c in codes), weights=tuple(c[1] for c in codes))

    moved = [8, *range(1, 8), 0, *range(9, 16)]  # channels 0 and 8 change places
    layer = find_layer(
        layer_of_16(),
        lambda x: run_layer(x, HlscnnOptions()) != run_layer(channels_permuted(x, moved), HlscnnOptions()),
    )
    assert all(abs(value) <= 2 for value in run_layer(layer, HlscnnOptions()).values())


@pytest.mark.parametrize("rounding", ["truncate", "toward_zero", "half_up", "half_even"])
def test_the_result_is_not_the_rounded_convolution(rounding: Rounding) -> None:
    # two taps whose fractions add up to more than what is left of each
    options = replace(WGT_16BITS, tap_rounding=rounding, store_rounding=rounding, output_fraction=4)
    codes = st.integers(-2000, 2000)
    strategy = layers(Most(filters=1, channels=1, rows=2, kernel=2, stride=1), codes=codes, weights=codes)

    def rounded_once(layer: Layer) -> dict[tuple[int, int], int]:
        rows, cols = layer.out_size
        result = {}
        for p, q in product(range(rows), range(cols)):
            taps = product(range(layer.kernel_rows), range(layer.kernel_cols))
            exact = sum(psum_of(layer, options, 0, 0, (p + i, q + j), (i, j)) for i, j in taps)
            result[p * cols + q, 0] = arithmetic_requantised(int(exact * 2**16), options)
        return {where: code for where, code in result.items() if code}

    def condition(layer: Layer) -> bool:
        fits = layer.kernel_rows <= layer.rows and layer.kernel_cols <= layer.cols
        plain = replace(layer, bias=None, relu=False)
        return fits and run_layer(plain, options) != rounded_once(plain)

    layer = find_layer(strategy, condition, shrink=False)
    assert layer.kernel_rows * layer.kernel_cols > 1


def arithmetic_requantised(psum: int, options: HlscnnOptions) -> int:
    """The model's conversion of one partial sum."""
    term = inline(arithmetic(options).requantise(const(psum % 2**32, 32)))
    return (term.value + 2**15) % 2**16 - 2**15


# -- borders ---------------------------------------------------------------------------------------------------


def test_old_contents_leak_where_the_first_tap_is_outside() -> None:
    layer = leaking_layer()
    assert leaking(layer)
    assert leaking(layer) == reached_by_any(layer) - reached(layer, 0, 0)


@settings(max_examples=40, deadline=None)
@given(layers(Most(rows=4)), st.integers(-100, 100))
def test_nothing_leaks_in_valid_coordinates(layer: Layer, code: int) -> None:
    rows, cols = layer.out_size
    if layer.kernel_rows > layer.rows or layer.kernel_cols > layer.cols:
        return
    dirty = {(entry, lane): code for entry in range(rows * cols) for lane in range(layer.filters)}
    assert run_layer(layer, VALID, dirty) == run_layer(layer, VALID)


def test_the_bias_is_skipped_where_the_last_tap_is_outside() -> None:
    layer = missing_bias()
    assert without_bias(layer)
    assert without_bias(layer) == reached_by_any(layer) - last_tap(layer)


def test_relu_is_skipped_where_the_last_tap_is_outside() -> None:
    layer = negative_layer()
    assert negative_outputs(layer)
    assert negative_outputs(layer) <= reached_by_any(layer) - last_tap(layer)


# -- corrected faults, and readings that change results ------------------------------------------------------


@pytest.mark.slow
def test_a_loop_that_ends_at_the_last_kernel_row_is_refuted() -> None:
    layer = fault('kernel_end="last"')
    # with stride 1 both ends are the same
    assert max(layer.row_stride, layer.col_stride) == 2


@pytest.mark.slow
def test_a_loop_that_starts_beyond_the_kernel_is_refuted() -> None:
    layer = fault('kernel_start="unchecked"')
    assert layer.row_stride > layer.kernel_rows or layer.col_stride > layer.kernel_cols


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_reading_does_not_differ_from_itself(name: str) -> None:
    right, _, strategy, driver = FAULTS[name]
    assert simplest(strategy, differs(right, right, driver), examples=30) is None


@settings(max_examples=40, deadline=None)
@given(layers(Most(rows=5, stride=3)))
def test_the_check_of_kernel_rows_repairs_the_end_too(layer: Layer) -> None:
    for right in (HlscnnOptions(), WGT_16BITS):
        assert run_layer(layer, replace(right, kernel_end="last")) == run_layer(layer, right)


@pytest.mark.slow
def test_unsigned_bounds_are_refuted_for_an_output_size_that_is_too_large() -> None:
    layer = fault('bounds="unsigned"')
    assert layer.row_stride > 2
    assert layer.out_rows is not None
    assert layer.out_rows > 1


def test_unsigned_bounds_are_harmless_for_the_right_output_size() -> None:
    # (r - k) mod 2^11 div stride against the number of output rows, for every kernel, stride and row above the kernel
    for stride, kernel in product(range(1, 8), range(1, 256)):
        outputs = (1023 - kernel) // stride + 1
        assert (2**11 - (kernel - 1)) // stride >= outputs


@pytest.mark.parametrize("word", ["documented", "wide"])
def test_other_layouts_of_channelcfg_are_refuted(word: str) -> None:
    other = HlscnnOptions(channel_word=word)  # type: ignore[arg-type]
    strategy = layers(Most(filters=9, channels=1, rows=1, kernel=1, stride=1))
    layer = find_layer(strategy, differs(HlscnnOptions(), other, driver=HlscnnOptions()))
    # seven filters fit the three documented bits; the bit that is beyond the eight is enable_wb
    assert layer.filters == (8 if word == "documented" else 1)


@pytest.mark.parametrize(
    "other",
    [
        MASTER,
        VALID,
        SATURATE,
        HlscnnOptions(output_fraction=4),
        HlscnnOptions(weight_bits=16),
        HlscnnOptions(kernel_start="unchecked"),
        *(HlscnnOptions(tap_rounding=r) for r in ("truncate", "toward_zero", "half_even")),
        *(HlscnnOptions(store_rounding=r) for r in ("toward_zero", "half_up", "half_even")),
    ],
    ids=lambda o: ", ".join(f"{k}={getattr(o, k)}" for k in o.__dataclass_fields__ if getattr(o, k) != getattr(
        HlscnnOptions(), k)),
)  # fmt: skip
def test_readings_that_change_results(other: HlscnnOptions) -> None:
    strategy = layers(Most(filters=2, channels=3, rows=2, kernel=2, stride=2))
    layer = find_layer(strategy, differs(HlscnnOptions(), other), shrink=False)
    if other.store_rounding != "truncate":
        assert layer.bias is not None  # sums of stored words are exact


def test_the_fraction_of_partial_sums_changes_products_of_weights_of_16_bits_only() -> None:
    exact = {"psum_fraction": 21, "psum_bits": 37}
    small = st.integers(-3, 3)  # products of less than one unit of the partial sum
    strategy = layers(Most(filters=1, channels=3, rows=1, kernel=1, stride=1), codes=small, weights=small)
    cut = replace(WGT_16BITS, tap_rounding="truncate")
    find_layer(strategy, differs(cut, replace(cut, **exact)), shrink=False)
    assert simplest(layers(), differs(HlscnnOptions(), HlscnnOptions(**exact)), examples=100) is None


@settings(max_examples=30, deadline=None)
@given(layers())
def test_where_activations_come_from_changes_nothing(layer: Layer) -> None:
    assert run_layer(layer, HlscnnOptions(activations="spad1")) == run_layer(layer, HlscnnOptions())


def test_storing_one_lane_may_clear_the_others() -> None:
    options = HlscnnOptions(other_lanes="cleared")

    def clears(layer: Layer) -> bool:
        before = {(0, lane): 1 for lane in range(8)}
        return len(run_layer(layer, options, before)) < 7

    layer = find_layer(layers(Most(rows=1, kernel=1, stride=1)), clears)
    assert len(run_layer(layer, HlscnnOptions(), {(0, lane): 1 for lane in range(8)})) >= 7
