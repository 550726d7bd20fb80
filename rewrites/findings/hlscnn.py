"""HLSCNN: the order of channel blocks, outputs at borders, and the faults that were corrected in the published ILA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import strategies as st

from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import WGT_16BITS, HlscnnOptions
from ila_lang import Expr, bv, const, var

from .finding import Finding, NotFound, require, table
from .hlscnn_layers import CODES, Layer, Most, Words, differs, layers, operands, replayed, run_layer, shown
from .queries import prove, smallest_counterexample
from .search import simplest

DEFAULT = HlscnnOptions()
VALID = HlscnnOptions(coordinates="valid")
SATURATE = HlscnnOptions(overflow="saturate")

_SEARCH = "Hypothesis draws layers, runs them on the interpreter, and shrinks."
_REPLAYED = "replayed at the port of a new interpreter"


def _search(strategy: st.SearchStrategy[Layer], condition: Callable[[Layer], bool], what: str) -> Layer:
    layer = simplest(strategy, condition)
    if layer is None:
        raise NotFound(f"no layer shows that {what}")
    return layer


# -- the order of the loops ----------------------------------------------------------------------------------


@st.composite
def two_blocks(draw: st.DrawFn, *, relu: bool) -> Layer:
    """One pixel and tap of 24 channels, of which only 0, 8 and 16, one of each block, are not zero; weights are 1.0."""
    codes = {channel: draw(CODES) for channel in (0, 8, 16)}
    acts = tuple(codes.get(channel, 0) for channel in range(24))
    wgts = (1 << 6,) * 24
    return Layer(1, 24, 1, 1, 1, 1, relu=relu, activations=acts, weights=wgts)


def channels_permuted(layer: Layer, channels: list[int]) -> Layer:
    """The layer with its channels in another order, in activations and weights: the same convolution."""
    pixels, taps = layer.rows * layer.cols, layer.kernel_rows * layer.kernel_cols
    acts = [layer.activations[c * pixels : (c + 1) * pixels] for c in channels]
    wgts = [
        layer.weights[(f * layer.channels + c) * taps : (f * layer.channels + c + 1) * taps]
        for f in range(layer.filters)
        for c in channels
    ]
    return replace(layer, activations=sum(acts, ()), weights=sum(wgts, ()))


def backwards(layer: Layer) -> Layer:
    """The layer with its channel blocks from the last to the first."""
    return channels_permuted(layer, [8 * block + lane for block in reversed(range(layer.blocks)) for lane in range(8)])


def order_matters(options: HlscnnOptions) -> Callable[[Layer], bool]:
    """Whether taking the channel blocks from the last to the first changes the result."""
    return lambda layer: run_layer(layer, options) != run_layer(backwards(layer), options)


_P, _Q, _OLD, _CONSTANT = (var(name, bv(16)) for name in ("p", "q", "old", "bias"))


def exchanged(options: HlscnnOptions, *, relu: bool = False) -> Expr:
    """The claim that two taps p and q, the second of which is the last, may change places."""
    ops = arithmetic(options)

    def stored_after(first: Expr, second: Expr) -> Expr:
        before = ops.stored(ops.total(first, _OLD, const(0, 16)))
        total = ops.total(second, before, _CONSTANT)
        return ops.stored(ops.rectify(total) if relu else total)

    return stored_after(_P, _Q) == stored_after(_Q, _P)


@cache
def order_layer(*, relu: bool) -> Layer:
    """A simplest layer whose result depends on the order of its blocks: with ReLU, or where sums saturate."""
    options = DEFAULT if relu else SATURATE
    return _search(two_blocks(relu=relu), order_matters(options), "the order of channel blocks matters")


@cache
def order() -> Finding:
    """Adding words is not associative where they saturate, and ReLU after a sum that wrapped is not that of the sum."""
    prove("exchange of taps", exchanged(DEFAULT))
    prove("exchange of taps, stores rounded half up", exchanged(HlscnnOptions(store_rounding="half_up")))
    rows = []
    for relu, options in ((False, SATURATE), (True, DEFAULT)):
        layer = order_layer(relu=relu)
        require(
            not relu or not order_matters(options)(replace(layer, relu=False)),
            "ReLU is not what makes the order matter",
        )
        smallest_counterexample("exchange of taps", exchanged(options, relu=relu), [])
        operands = ", ".join(str(layer.activations[c]) for c in (0, 8, 16))
        results = [shown(replayed(x, options)) for x in (layer, backwards(layer))]
        rows.append(["ReLU, words wrap" if relu else "words saturate", operands, *results])
    return Finding(
        name="hlscnn_order",
        title="HLSCNN: the order of channel blocks",
        claim="a convolution's result does not depend on the order in which blocks of 8 channels are taken",
        method=(
            "Hypothesis draws layers of one pixel and 24 channels, runs them with the blocks in either order, and "
            "shrinks; z3 and cvc5 decide for all words whether two taps may change places."
        ),
        counterexample="; ".join(
            f"{reading}, activations {codes} in channels 0, 8, 16: {forwards}, in reverse order {backwards_}"
            for reading, codes, forwards, backwards_ in rows
        ),
        holds=(
            "proved for all words by z3 and cvc5: two taps may change places where words wrap and there is no ReLU, "
            "whether stores are cut or rounded half up; refuted with saturation, and with ReLU"
        ),
        status=f"REFUTED, {_REPLAYED}; restricted form PROVED by z3 and cvc5",
        limits=(
            "which overflow mode the hardware has is not recorded; wrapping is the model's default. Layers in "
            "which no sum leaves 16 bits are not affected. Which channels share a block matters besides, because "
            "the words of a block are added before they are rounded."
        ),
        evidence=(
            "Activations of channels 0, 8 and 16, with weights of 1.0, and the one output in either order:",
            table(["reading", "activations", "blocks 0, 1, 2", "blocks 2, 1, 0"], rows),
        ),
    )


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
    """Entries and lanes of filter 0 that some tap contributes to in "same" coordinates."""
    taps = product(range(layer.kernel_rows), range(layer.kernel_cols))
    return set().union(*(reached(layer, *tap) for tap in taps))


def last_tap(layer: Layer) -> set[tuple[int, int]]:
    """Entries and lanes of filter 0 that the last tap contributes to."""
    return reached(layer, layer.kernel_rows - 1, layer.kernel_cols - 1)


def dirty(layer: Layer) -> Words:
    """Old contents: 5 in each output of filter 0."""
    return {(entry, 0): 5 for entry in range(layer.rows * layer.cols)}


def leaking(layer: Layer) -> set[tuple[int, int]]:
    """Outputs of the model that depend on what SPAD1 held before."""
    left, right = run_layer(layer, DEFAULT, dirty(layer)), run_layer(layer, DEFAULT)
    return {where for where in reached_by_any(layer) if left.get(where) != right.get(where)}


def without_bias(layer: Layer) -> set[tuple[int, int]]:
    """Outputs to which the bias is not added."""
    # 1.0 is added to what the layer gives without a bias, which is not the same modulo 2^16
    left, right = (run_layer(replace(layer, bias=b, relu=False), DEFAULT) for b in (1 << 14, None))
    return {where for where in reached_by_any(layer) if left.get(where) == right.get(where)}


def negative_outputs(layer: Layer) -> set[tuple[int, int]]:
    """Outputs below 0 in spite of ReLU."""
    words = run_layer(replace(layer, bias=None, relu=True), DEFAULT)
    return {where for where, value in words.items() if value < 0}


@cache
def leaking_layer() -> Layer:
    """A simplest layer whose outputs depend on old contents."""
    return _search(layers(Most(filters=1, channels=1)), lambda x: bool(leaking(x)), "old contents leak")


@cache
def leak() -> Finding:
    """Where tap (0, 0) is outside the input, an output starts from what SPAD1 held."""
    layer = leaking_layer()
    places = leaking(layer)
    require(places == reached_by_any(layer) - reached(layer, 0, 0), "outputs that leak are not those tap (0, 0) misses")
    clean, old = replayed(layer, DEFAULT), replayed(layer, DEFAULT, dirty(layer))

    def leaks(x: Layer) -> bool:
        return x.fits and replace_old(x) != run_layer(x, VALID)

    def replace_old(x: Layer) -> Words:
        rows, cols = x.out_size
        return run_layer(x, VALID, {(entry, lane): 5 for entry in range(rows * cols) for lane in range(x.filters)})

    tried = _none(layers(), leaks, "old contents leak in valid coordinates")
    return Finding(
        name="hlscnn_leak",
        title="HLSCNN: old contents at the upper and left border",
        claim="the result does not depend on what SPAD1 held before",
        method=_SEARCH + " SPAD1 holds zeros or 5 in every output.",
        counterexample=(
            f"{layer}: {shown(clean)}; after 5 everywhere {shown(old)} (activations and weights {operands(layer)})"
        ),
        holds=(
            "in the layer found, exactly the outputs are affected that tap (0, 0) does not reach; no difference in "
            f'{tried} random layers in "valid" coordinates, those of later branches of the published ILA (no proof)'
        ),
        status=f"REFUTED, {_REPLAYED}",
        limits=(
            "drivers that write zeros to SPAD1 first, or pad on the host and read only inner outputs as the "
            "mappings' programs do, are not affected. The recording of the hardware's model, which decides "
            "the coordinates, has no such output: it began with zeros."
        ),
    )


@cache
def missing_bias() -> Layer:
    """A simplest layer some of whose outputs, but not all, lack the bias."""
    return _search(
        layers(Most(filters=1, channels=1)),
        lambda x: bool(without_bias(x)) and bool(reached_by_any(x) - without_bias(x)),
        "the bias is skipped",
    )


@cache
def negative_layer() -> Layer:
    """A simplest layer with ReLU and an output below 0."""
    return _search(layers(Most(filters=1, channels=1)), lambda x: bool(negative_outputs(x)), "ReLU is skipped")


@cache
def borders() -> Finding:
    """Where the last tap is outside the input, bias and ReLU are skipped."""
    biased, rectified = missing_bias(), replace(negative_layer(), bias=None, relu=True)
    require(without_bias(biased) == reached_by_any(biased) - last_tap(biased), "the bias is missing elsewhere, too")
    require(not negative_outputs(rectified) & last_tap(rectified), "ReLU is missing elsewhere, too")
    with_bias = replayed(replace(biased, bias=1 << 14, relu=False), DEFAULT)
    without = replayed(replace(biased, bias=None, relu=False), DEFAULT)
    plain = replace(biased, bias=None, relu=False)
    return Finding(
        name="hlscnn_border",
        title="HLSCNN: no bias and no ReLU at the lower and right border",
        claim="every output has the bias added, and none is negative after ReLU",
        method=_SEARCH,
        counterexample=(
            f"{plain}: {shown(without)}; with a bias of 1.0 {shown(with_bias)}. {rectified}: "
            f"{shown(replayed(rectified, DEFAULT))}"
        ),
        holds="in the layers found, exactly outputs that the last tap reaches have the bias and ReLU",
        status=f"REFUTED, {_REPLAYED}",
        limits=(
            'it concerns "same" coordinates: the main branch of the published ILA, and the recorded hardware. Inner '
            'outputs, to which all taps contribute, are right in both, and all are in "valid" coordinates.'
        ),
        evidence=(
            f"Activations and weights of the first layer: {operands(biased)}; of the second: {operands(rectified)}.",
        ),
    )


def _none(strategy: st.SearchStrategy[Layer], condition: Callable[[Layer], bool], what: str) -> int:
    """Raises NotFound if a layer has a property; returns how many were drawn at most."""
    layer = simplest(strategy, condition, examples=FEW, shrink=False)
    require(layer is None, f"{what}: {layer}")
    return FEW


FEW = 200
"""Layers drawn where none should be found."""

# -- corrected faults ------------------------------------------------------------------------------------------

UNCHECKED = replace(WGT_16BITS, kernel_start="unchecked")
_Fault = tuple[HlscnnOptions, HlscnnOptions, st.SearchStrategy[Layer], HlscnnOptions | None]
FAULTS: dict[str, _Fault] = {
    'kernel_end="last"': (
        UNCHECKED,
        replace(UNCHECKED, kernel_end="last"),
        layers(Most(filters=1, channels=1, rows=5)).filter(lambda x: x.fits),
        None,
    ),
    'kernel_start="unchecked"': (
        WGT_16BITS,
        UNCHECKED,
        layers(Most(filters=1, channels=1, rows=5, stride=3)).filter(lambda x: x.fits),
        None,
    ),
    'bounds="unsigned"': (
        WGT_16BITS,
        replace(WGT_16BITS, bounds="unsigned"),
        layers(Most(filters=1, channels=1, rows=1, kernel=9, stride=7, out_rows=500)),
        None,
    ),
    'channel_word="documented"': (
        WGT_16BITS,
        replace(WGT_16BITS, channel_word="documented"),
        layers(Most(filters=9, channels=1, rows=1, kernel=1, stride=1)),
        WGT_16BITS,
    ),
}
"""By option: the right reading, the wrong one, where to search, and the reading in which drivers pack ChannelCfg."""


@cache
def fault(name: str) -> Layer:
    """A simplest layer on which a corrected fault shows."""
    right, wrong, strategy, driver = FAULTS[name]
    return _search(strategy, differs(right, wrong, driver), f"{name} changes a result")


@cache
def faults() -> Finding:
    """The faults that the published ILA's history names."""
    rows = []
    for name, (right, wrong, _, driver) in FAULTS.items():
        layer = fault(name)
        results = [shown(replayed(layer, options, driver=driver)) for options in (right, wrong)]
        require(results[0] != results[1], f"{name} does not replay")
        rows.append([f"`{name}`", str(layer), operands(layer), *results])
    repaired = _none(
        layers(Most(rows=5, stride=3)),
        lambda x: run_layer(x, replace(WGT_16BITS, kernel_end="last")) != run_layer(x, WGT_16BITS),
        "the check of kernel rows does not repair the end of the loop",
    )
    return Finding(
        name="hlscnn_faults",
        title="HLSCNN: faults that the published ILA corrected",
        claim="each of four readings of the published ILA's history gives the results of the present one",
        method=_SEARCH,
        counterexample="; ".join(f"{name}: {layer}" for name, layer, *_ in rows),
        holds=(
            "the present readings are the corrected ones; with the check of kernel rows, the old end of the loop is "
            f"harmless (no difference in {repaired} random layers, no proof)"
        ),
        status=f"REFUTED, each {_REPLAYED}",
        limits=(
            "these are faults of earlier versions of a model, found again, not faults of hardware; they are shown in "
            "the reading of its branch wgt_16bits. The unsigned "
            "bounds need an OutputSize that is larger than the convolution's. A fifth correction, the strides' "
            "reset value, concerns programs that never write KernelSize, which are refused here."
        ),
        evidence=(
            "Outputs that are not 0 (words of 8 filters per entry), in the right and in the wrong reading:",
            table(["fault", "layer", "activations and weights", "right", "wrong"], rows),
        ),
    )
