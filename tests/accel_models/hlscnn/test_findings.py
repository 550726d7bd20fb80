"""What is surprising about HLSCNN, found by search: no example below was written by hand.

``find_layer`` looks for the simplest layer with a given property by running the model; ``differs`` compares two
readings on one layer.  Searches are reproducible: they start from a fixed seed and use no stored examples.
"""

from __future__ import annotations

import random as randomness
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pysmt.shortcuts as smt
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from accel_models.hlscnn.model import MASTER, HlscnnOptions
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import Rounding
from ila_lang import Expr, bv, const, inline, var
from smt_encodings.bits import BitEncoding
from smt_encodings.claims import Obligation
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.printer import script
from tests.accel_models.hlscnn.oracle import Layer, psum_of, run_layer

SAME = HlscnnOptions(coordinates="same")
SATURATE = HlscnnOptions(overflow="saturate")
CODES = st.integers(-(1 << 15), (1 << 15) - 1)


@st.composite
def layers(
    draw: st.DrawFn,
    *,
    filters: int = 2,
    channels: int = 2,
    rows: int = 3,
    kernel: int = 3,
    stride: int = 2,
    out_rows: int = 0,
    codes: st.SearchStrategy[int] = CODES,
) -> Layer:
    """Layers up to the given sizes with any operands; with ``out_rows`` OutputSize need not be what it should."""
    f, c = draw(st.integers(1, filters)), draw(st.integers(1, channels))
    h, w = draw(st.integers(1, rows)), draw(st.integers(1, min(rows, 3)))
    kr, kc = draw(st.integers(1, kernel)), draw(st.integers(1, min(kernel, 3)))
    sr, sc = draw(st.integers(1, stride)), draw(st.integers(1, min(stride, 2)))
    out = draw(st.integers(1, out_rows)) if out_rows else None
    bias = draw(st.none() | codes)
    layer = Layer(f, c, h, w, kr, kc, sr, sc, out_rows=out, bias=bias, relu=draw(st.booleans()))
    # the operands are a few codes, repeated: shrinking has little to do
    acts = draw(st.lists(codes, min_size=1, max_size=6))
    wgts = draw(st.lists(codes, min_size=1, max_size=6))
    return replace(layer, activations=_repeat(acts, c * h * w), weights=_repeat(wgts, f * c * kr * kc))


def _repeat(codes: list[int], count: int) -> tuple[int, ...]:
    return tuple(codes[i % len(codes)] for i in range(count))


def find_layer(
    strategy: st.SearchStrategy[Layer], condition: Callable[[Layer], bool], *, simplest: bool = True
) -> Layer:
    """The simplest layer of a strategy with a property, or any; fails with NoSuchExample if none is found."""
    chosen = settings(
        max_examples=2000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if simplest else (Phase.generate,),
    )
    return find(strategy, condition, settings=chosen, random=randomness.Random(1))


def differs(left: HlscnnOptions, right: HlscnnOptions, driver: HlscnnOptions | None = None) -> Callable[[Layer], bool]:
    """Whether two readings leave different words in SPAD1 after a layer; ``driver`` packs ChannelCfg its way."""
    return lambda layer: run_layer(layer, left, driver=driver) != run_layer(layer, right, driver=driver)


def channels_permuted(layer: Layer, order: list[int]) -> Layer:
    """The layer with its channels in another order, in activations and weights: the same convolution."""
    pixels, taps = layer.rows * layer.cols, layer.kernel_rows * layer.kernel_cols
    acts = [layer.activations[c * pixels : (c + 1) * pixels] for c in order]
    wgts = [
        layer.weights[(f * layer.channels + c) * taps : (f * layer.channels + c + 1) * taps]
        for f in range(layer.filters)
        for c in order
    ]
    return replace(layer, activations=sum(acts, ()), weights=sum(wgts, ()))


# -- the order of the loops ----------------------------------------------------------------------------------


@st.composite
def two_blocks(draw: st.DrawFn, *, relu: bool) -> Layer:
    """One pixel and tap of 16 channels, of which two blocks of 8 are not zero: two words are added."""
    first, second, third = (draw(st.tuples(CODES, CODES)) for _ in range(3))
    codes = dict(zip((0, 8, 16), (first, second, third), strict=True))
    acts = tuple(codes[c][0] if c in codes else 0 for c in range(24))
    wgts = tuple(codes[c][1] if c in codes else 0 for c in range(24))
    return Layer(1, 24, 1, 1, 1, 1, relu=relu, activations=acts, weights=wgts)


def order_matters(options: HlscnnOptions) -> Callable[[Layer], bool]:
    """Whether taking the channel blocks from the last to the first changes the result."""

    def condition(layer: Layer) -> bool:
        backwards = [8 * blk + lane for blk in reversed(range(layer.blocks)) for lane in range(8)]
        return run_layer(layer, options) != run_layer(channels_permuted(layer, backwards), options)

    return condition


def test_the_order_of_channel_blocks_matters_where_sums_saturate() -> None:
    layer = find_layer(two_blocks(relu=False), order_matters(SATURATE))
    exact = sum(a * w for a, w in zip(layer.activations, layer.weights, strict=True)) / 2**21
    (stored,) = run_layer(layer, SATURATE).values() or (0,)
    assert abs(exact - stored / 128) > 0.01


def test_the_order_of_channel_blocks_matters_where_relu_meets_a_sum_that_wrapped() -> None:
    layer = find_layer(two_blocks(relu=True), order_matters(HlscnnOptions()))
    assert not order_matters(HlscnnOptions())(replace(layer, relu=False))


@settings(max_examples=25, deadline=None)
@given(two_blocks(relu=False), st.permutations([0, 1, 2]))
def test_without_saturation_and_relu_the_order_of_blocks_does_not_matter(layer: Layer, order: list[int]) -> None:
    permuted = channels_permuted(layer, [8 * blk + lane for blk in order for lane in range(8)])
    assert run_layer(layer, HlscnnOptions()) == run_layer(permuted, HlscnnOptions())


def asked(claim: Expr) -> bool:
    """Whether both solvers prove a Boolean for all values of its variables; False if it is refuted."""
    with fresh_symbols():
        text = script([smt.And(BitEncoding().term(inline(~claim)))], comment="claim")
        try:
            Discharger(timeout=60).ask_text(Obligation("claim", "finding", text, "unsat", "claim"))
        except NotDischarged as error:
            assert error.obligation.answers[0].status == "sat"
            return False
    return True


def exchanged(options: HlscnnOptions, *, relu: bool = False) -> Expr:
    """The claim that two taps, the second of which is the last, may change places."""
    ops = arithmetic(options)
    p, q, old, bias = (var(name, bv(16)) for name in ("p", "q", "old", "bias"))

    def stored_after(first: Expr, second: Expr) -> Expr:
        before = ops.stored(ops.total(first, old, const(0, 16)))
        total = ops.total(second, before, bias)
        return ops.stored(ops.rectify(total) if relu else total)

    return stored_after(p, q) == stored_after(q, p)


@pytest.mark.proof
def test_for_all_words_taps_may_change_places_unless_they_saturate_or_meet_relu() -> None:
    assert asked(exchanged(HlscnnOptions()))
    assert asked(exchanged(HlscnnOptions(store_rounding="half_up")))
    assert not asked(exchanged(SATURATE))
    assert not asked(exchanged(HlscnnOptions(), relu=True))


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
    options = HlscnnOptions(tap_rounding=rounding, store_rounding=rounding, output_fraction=4)
    strategy = layers(filters=1, channels=1, rows=2, kernel=2, stride=1, codes=st.integers(-2000, 2000))

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

    layer = find_layer(strategy, condition, simplest=False)
    assert layer.kernel_rows * layer.kernel_cols > 1


def arithmetic_requantised(psum: int, options: HlscnnOptions) -> int:
    """The model's conversion of one partial sum."""
    term = inline(arithmetic(options).requantise(const(psum % 2**32, 32)))
    return (term.value + 2**15) % 2**16 - 2**15


# -- borders ---------------------------------------------------------------------------------------------------


def reached(layer: Layer, kernel_row: int, kernel_col: int) -> set[tuple[int, int]]:
    """Entries and lanes of filter 0 that a tap contributes to in "same" coordinates, by their definition."""

    def along(size: int, kernel: int, stride: int, tap: int) -> list[int]:
        inputs = [p + tap - kernel // 2 for p in range(size)]
        return [p for p, i in enumerate(inputs) if 0 <= i < size and i % stride == tap % stride]

    rows = along(layer.rows, layer.kernel_rows, layer.row_stride, kernel_row)
    cols = along(layer.cols, layer.kernel_cols, layer.col_stride, kernel_col)
    return {(p * layer.cols + q, 0) for p in rows for q in cols}


def reached_by_any(layer: Layer) -> set[tuple[int, int]]:
    taps = product(range(layer.kernel_rows), range(layer.kernel_cols))
    return set().union(*(reached(layer, *tap) for tap in taps))


def leaking(layer: Layer) -> set[tuple[int, int]]:
    """Outputs of the model that depend on what SPAD1 held before."""
    dirty = {(entry, 0): 5 for entry in range(layer.rows * layer.cols)}
    left, right = run_layer(layer, SAME, dirty), run_layer(layer, SAME)
    return {where for where in reached_by_any(layer) if left.get(where) != right.get(where)}


def test_old_contents_leak_where_the_first_tap_is_outside() -> None:
    layer = find_layer(layers(filters=1, channels=1), lambda x: bool(leaking(x)))
    assert leaking(layer) == reached_by_any(layer) - reached(layer, 0, 0)


@settings(max_examples=40, deadline=None)
@given(layers(rows=4), st.integers(-100, 100))
def test_nothing_leaks_in_valid_coordinates(layer: Layer, code: int) -> None:
    rows, cols = layer.out_size
    if layer.kernel_rows > layer.rows or layer.kernel_cols > layer.cols:
        return
    dirty = {(entry, lane): code for entry in range(rows * cols) for lane in range(layer.filters)}
    assert run_layer(layer, HlscnnOptions(), dirty) == run_layer(layer, HlscnnOptions())


def last_tap(layer: Layer) -> set[tuple[int, int]]:
    return reached(layer, layer.kernel_rows - 1, layer.kernel_cols - 1)


def test_the_bias_is_skipped_where_the_last_tap_is_outside() -> None:
    def biased(layer: Layer) -> set[tuple[int, int]]:
        # 1 added to what the layer gives without a bias, which is the same modulo 2^16
        left, right = (run_layer(replace(layer, bias=b, relu=False), SAME) for b in (1 << 14, None))
        return {where for where in reached_by_any(layer) if left.get(where) != right.get(where)}

    layer = find_layer(layers(filters=1, channels=1), lambda x: bool(reached_by_any(x) - biased(x)) and bool(biased(x)))
    assert biased(layer) == last_tap(layer)


def test_relu_is_skipped_where_the_last_tap_is_outside() -> None:
    def negative(layer: Layer) -> set[tuple[int, int]]:
        words = run_layer(replace(layer, bias=None, relu=True), SAME)
        return {where for where, value in words.items() if value < 0}

    layer = find_layer(layers(filters=1, channels=1), lambda x: bool(negative(x)))
    assert negative(layer) <= reached_by_any(layer) - last_tap(layer)


# -- corrected faults, and readings that change results ------------------------------------------------------

UNCHECKED = HlscnnOptions(kernel_start="unchecked")
LAST = HlscnnOptions(kernel_end="last", kernel_start="unchecked")


def fits(layer: Layer) -> bool:
    return layer.kernel_rows <= layer.rows and layer.kernel_cols <= layer.cols


def test_a_loop_that_ends_at_the_last_kernel_row_is_refuted() -> None:
    layer = find_layer(layers(rows=5), lambda x: fits(x) and differs(UNCHECKED, LAST)(x))
    # with stride 1 both ends are the same
    assert max(layer.row_stride, layer.col_stride) == 2


def test_a_loop_that_starts_beyond_the_kernel_is_refuted() -> None:
    layer = find_layer(layers(rows=5, stride=3), lambda x: fits(x) and differs(HlscnnOptions(), UNCHECKED)(x))
    assert layer.row_stride > layer.kernel_rows or layer.col_stride > layer.kernel_cols


@settings(max_examples=40, deadline=None)
@given(layers(rows=5, stride=3))
def test_the_check_of_kernel_rows_repairs_the_end_too(layer: Layer) -> None:
    assert run_layer(layer, HlscnnOptions(kernel_end="last")) == run_layer(layer, HlscnnOptions())


def test_unsigned_bounds_are_refuted_for_an_output_size_that_is_too_large() -> None:
    strategy = layers(filters=1, channels=1, rows=1, kernel=9, stride=7, out_rows=500)
    layer = find_layer(strategy, differs(HlscnnOptions(), HlscnnOptions(bounds="unsigned")))
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
    strategy = layers(filters=9, channels=1, rows=1, kernel=1, stride=1)
    layer = find_layer(strategy, differs(HlscnnOptions(), other, driver=HlscnnOptions()))
    # seven filters fit the three documented bits; the bit that is beyond the eight is enable_wb
    assert layer.filters == (8 if word == "documented" else 1)


@pytest.mark.parametrize(
    "other",
    [
        MASTER,
        SAME,
        SATURATE,
        HlscnnOptions(output_fraction=4),
        HlscnnOptions(psum_fraction=21, psum_bits=37),
        HlscnnOptions(weight_bits=8),
        *(HlscnnOptions(tap_rounding=r) for r in ("toward_zero", "half_up", "half_even")),
        *(HlscnnOptions(store_rounding=r) for r in ("toward_zero", "half_up", "half_even")),
    ],
    ids=lambda o: ", ".join(f"{k}={getattr(o, k)}" for k in o.__dataclass_fields__ if getattr(o, k) != getattr(
        HlscnnOptions(), k)),
)  # fmt: skip
def test_readings_that_change_results(other: HlscnnOptions) -> None:
    codes = st.integers(-128, 127) if other.weight_bits == 8 else CODES
    if other.psum_fraction == 21:
        codes = st.integers(-3, 3)  # products of less than one unit of the partial sum
    size = 2 if other.coordinates == "same" else 1
    strategy = layers(filters=1, channels=3, rows=size, kernel=size, stride=1, codes=codes)
    layer = find_layer(strategy, differs(HlscnnOptions(), other), simplest=False)
    if other.store_rounding != "truncate":
        assert layer.bias is not None  # sums of stored words are exact


@settings(max_examples=30, deadline=None)
@given(layers())
def test_where_activations_come_from_changes_nothing(layer: Layer) -> None:
    assert run_layer(layer, HlscnnOptions(activations="spad1")) == run_layer(layer, HlscnnOptions())


def test_storing_one_lane_may_clear_the_others() -> None:
    options = HlscnnOptions(other_lanes="cleared")

    def clears(layer: Layer) -> bool:
        before = {(0, lane): 1 for lane in range(8)}
        return len(run_layer(layer, options, before)) < 7

    layer = find_layer(layers(rows=1, kernel=1, stride=1), clears)
    assert len(run_layer(layer, HlscnnOptions(), {(0, lane): 1 for lane in range(8)})) >= 7
