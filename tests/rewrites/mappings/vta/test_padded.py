"""Dense layers on zero-padded rows on VTA: proved for every size and at a shape, and faults of which none is proved."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import bmc.prove
from ila_lang import const
from ila_lang.mapping import SizeError
from rewrites.mappings.vta import dense
from rewrites.mappings.vta.padded import BOTTOM, TOP, padded_mapping
from rewrites.mappings.vta.programs import ROWS
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved
from tests.rewrites.mappings.vta.faults import faulty, given
from tests.rewrites.mappings.vta.test_elementwise import ran

NONE = const(0, 32)
CHANGES = {
    "there are no zeros above": given(y_pad_0=NONE),
    "there are no zeros below": given(y_pad_1=NONE),
    "zeros above and below change places": given(y_pad_0=BOTTOM, y_pad_1=TOP),
    "there is one row of zeros less above": given(y_pad_0=TOP - 1),
    "there is a column of zeros": given(x_pad_0=1),
    "the input begins one vector further on": given(sram_base=1),
    "the first vector of x is left out": given(dram_base=lambda first: first + 1),
    "the last row of x is left out": given(y_size=ROWS - 1),
}
"""Changes of the LOAD that pads."""
FAULTS = {name: partial(faulty, padded_mapping, dense, {"load INP": change}) for name, change in CHANGES.items()}
QUICK = ("there are no zeros above",)


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
def test_padded_rows_are_proved_for_every_size() -> None:
    verdict = require_proved(padded_mapping())
    values = [o.name for o in verdict.obligations if o.group == "values"]
    assert len([n for n in values if n.startswith("the output, case")]) == 3


@pytest.mark.slow
def test_padded_rows_are_proved_at_a_shape() -> None:
    verdict = bmc.prove.prove(padded_mapping(), (1, 16, 16, 1, 1))
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    mapping = padded_mapping()
    with pytest.raises(SizeError) as refused:
        mapping.sizes_for((2, 17, 16, 1, 1))
    assert str(refused.value) == (
        "Input features of shape 2x17x16 of a VTA layer on padded rows must be a multiple of 16, not 17; pad them"
    )
    with pytest.raises(SizeError, match="must satisfy: above <= 15"):
        mapping.require(mapping.sizes_for((2, 16, 16, 16, 1)))


def test_the_program_computes_what_numpy_does() -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((4, 48), (32, 48)))
    b = rng.integers(-9000, 9000, 32).astype(np.int32)
    mapping = padded_mapping()
    sizes = mapping.sizes_for((4, 48, 32, 2, 3)) | {"shift": 8}
    tensors = {"host_x": x.view(np.uint8), "host_w": w.view(np.uint8), "host_b": b}
    rows = np.pad(x.astype(np.int32), ((2, 3), (0, 0)))
    wanted = np.clip((rows @ w.astype(np.int32).T + b) >> 8, -128, 127).astype(np.int8)
    assert np.array_equal(ran(mapping, sizes, tensors), wanted)
