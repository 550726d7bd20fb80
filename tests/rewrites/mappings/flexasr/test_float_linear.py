"""Dense layers of float32 tensors, with the host's loops around FlexASR's program: proof, and faults of the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang import bv, const, var
from ila_lang.mapping import SizeError, TensorMapping
from ila_lang.streams.programs import Program
from ila_lang.streams.simulator import Simulator
from rewrites.mappings.flexasr.buffers import T
from rewrites.mappings.flexasr.claims import FLOAT_LINEAR
from rewrites.mappings.flexasr.float_linear import FORMATS, INPUTS, OUTPUTS, R
from rewrites.mappings.flexasr.layers import NI
from tests.accel_models.flexasr import tensor_oracle
from tests.rewrites.mappings.mapping_checks import changed, require_proved, require_refuted, require_unproved, slow_but

LINEAR = FLOAT_LINEAR.mapping
DOWN_PART, ACROSS_PART = var("down_part", bv(32)), var("across_part", bv(32))
X, W, B = "store x", "store weights weights", "store biases weights"
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "the last output is lost": lambda: changed(LINEAR, "inside_", {OUTPUTS: OUTPUTS - 1}),
    "the last row is lost": lambda: changed(LINEAR, "inside_", {R: R - 1}),
    "parts of rows overlap": lambda: changed(LINEAR, X, {T: T - 1}),
    "rows of the first part in every part": lambda: changed(LINEAR, X, {DOWN_PART: const(0, 32)}),
    "weights of the first part in every part": lambda: changed(LINEAR, W, {ACROSS_PART: const(0, 32)}),
    "biases of the first part in every part": lambda: changed(LINEAR, B, {ACROSS_PART: const(0, 32)}),
    "rows are as long as their vectors": lambda: changed(LINEAR, X, {INPUTS: NI << 4}),
    "the last input is padding": lambda: changed(LINEAR, W, {INPUTS: INPUTS - 1}),
    "weights in the format of x": lambda: changed(LINEAR, W, {FORMATS["w"]: FORMATS["x"]}),
    "read in another format": lambda: changed(LINEAR, "host_y", {FORMATS["y"]: FORMATS["y"] + 1}),
}
QUICK = ("the last output is lost",)


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    require_refuted(FAULTS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(FAULTS[name]())


@pytest.mark.slow
def test_it_is_proved_for_every_size() -> None:
    require_proved(LINEAR)


def test_a_run_is_the_layer_of_rounded_numbers() -> None:
    sizes, draw = LINEAR.sizes_for((5, 20, 130, 2, 64)), np.random.default_rng(1)
    arrays = [(draw.normal(size=shape) / 8).astype(np.float32) for shape in ((5, 20), (130, 20), (130,))]
    program = Program.of(LINEAR.device, sizes)
    tensors = {f"host_{n}": a.reshape(-1).view(np.uint32) for n, a in zip("xwb", arrays, strict=True)}
    assert program.reads == {n: t.size for n, t in tensors.items()} and program.writes == {"host_y": 5 * 130}
    result = program.run(Simulator(LINEAR.device.ila), tensors)["host_y"].view(np.float32).reshape(5, 130)
    x, w, b = (quantise(a, 0) for a in arrays)
    assert np.array_equal(result, Quantised(tensor_oracle.linear(x, w, b, 0, None), 0).values)


def test_parts_of_other_sizes_are_refused() -> None:
    with pytest.raises(SizeError, match="a positive multiple of 64 outputs, not 2 and 32; cut it otherwise"):
        LINEAR.sizes_for((4, 20, 70, 2, 32))
