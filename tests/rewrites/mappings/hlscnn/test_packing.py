"""Weights rounded and packed for HLSCNN: the proof, its faults, and a run against NumPy's reshaping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ila_lang import bv, const, true, var
from ila_lang.mapping import SizeError, TensorMapping
from ila_lang.streams.programs import Program
from ila_lang.streams.simulator import Simulator
from rewrites.mappings.hlscnn.packing import BLOCKS, EXPONENT, FIRST, C, K, P, packing_mapping
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import changed, require_proved, require_refuted, require_unproved

MAPPING = packing_mapping()
FILTER, BLOCK, TAP, LANE = (var(n, bv(32)) for n in ("filter", "block", "tap", "lane"))
RESULT = "host_y"
PLACE = (((FILTER * BLOCKS + BLOCK) * P + TAP) << 3) + LANE

FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "the first filters of x": lambda: changed(MAPPING, RESULT, {FIRST: const(0, 32)}),
    "filters from the next on": lambda: changed(MAPPING, RESULT, {FIRST: FIRST + 1}),
    "no zeros where there are no channels": lambda: changed(MAPPING, RESULT, {((BLOCK << 3) + LANE) < C: true}),
    "the last channel is 0": lambda: changed(MAPPING, RESULT, {((BLOCK << 3) + LANE) < C: (BLOCK << 3) + LANE < C - 1}),
    "taps beside each other": lambda: changed(
        MAPPING, RESULT, {PLACE: ((FILTER * BLOCKS + BLOCK) * 8 + LANE) * P + TAP}
    ),
    "blocks of filters": lambda: changed(MAPPING, RESULT, {FILTER * BLOCKS + BLOCK: BLOCK * K + FILTER}),
    "the last tap is missing": lambda: changed(MAPPING, "tap", {P: P - 1}),
    "the last filter is missing": lambda: changed(MAPPING, "filter", {K: K - 1}),
    "rounded in another format": lambda: changed(MAPPING, RESULT, {EXPONENT: EXPONENT + 1}),
}
QUICK = ("taps beside each other",)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    require_refuted(FAULTS[name]())


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(FAULTS[name]())


@pytest.mark.slow
def test_it_is_proved_for_every_size() -> None:
    require_proved(MAPPING)


@pytest.mark.parametrize(("filters", "first", "channels", "taps"), [(1, 0, 1, 1), (3, 2, 8, 9), (2, 1, 11, 6)])
def test_a_run_rounds_and_moves_channels_to_the_end(filters: int, first: int, channels: int, taps: int) -> None:
    sizes = MAPPING.sizes_for((filters, first, channels, taps)) | {"exponent": 127 - 6}
    program = Program.of(MAPPING.device, sizes)
    w = np.random.default_rng(channels).normal(size=(first + filters, channels, taps)).astype(np.float32)
    codes = np.zeros((filters, -(-channels // 8) * 8, taps), np.int8)
    codes[:, :channels] = np.clip(np.rint(w[first:].astype(np.float64) * 64), -128, 127)
    result = program.run(Simulator(MAPPING.device.ila), {"host_x": w.reshape(-1).view(np.uint32)})["host_y"]
    wanted = codes.reshape(filters, -1, 8, taps).transpose(0, 1, 3, 2)
    assert np.array_equal(result.view(np.int8).reshape(wanted.shape), wanted)


def test_sizes_outside_are_refused() -> None:
    sizes = MAPPING.sizes_for((1, 0, 1, 1))
    with pytest.raises(SizeError, match=r"k\*ceil\(c/8\)\*taps <= 16384"):
        MAPPING.require({**sizes, "k": 255, "taps": 65})
    with pytest.raises(SizeError, match="1 <= exponent <= 247"):
        MAPPING.require({**sizes, "exponent": 0})
