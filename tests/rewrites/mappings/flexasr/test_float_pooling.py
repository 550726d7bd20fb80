"""Poolings of float32 tensors, with the host's loops around FlexASR's program: proofs, and faults of the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang import Command, Expr, For, Kernel, Statement, bv, const, var
from ila_lang.mapping import SizeError, TensorMapping
from ila_lang.streams.programs import Program
from ila_lang.streams.simulator import Simulator
from rewrites.mappings.flexasr.buffers import NV
from rewrites.mappings.flexasr.claims import FLOAT_POOLS
from rewrites.mappings.flexasr.float_pooling import EXPONENT, C, H, Y, float_pooling_mapping, ir_fragment
from tests.accel_models.flexasr import tensor_oracle
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import changed, require_proved, require_refuted, require_unproved, with_body

MAX = float_pooling_mapping("max", 1)
DOWN_PART, ACROSS_PART = var("down_part", bv(32)), var("across_part", bv(32))
STORE, INSIDE, RESULT, START = "store x", "inside_", "host_y", "start LayerReduce"


def only_where(where: str, condition: Expr, mapping: TensorMapping = MAX) -> TensorMapping:
    """The mapping with the commands of a note sent under a condition."""
    found: list[Statement] = []

    def go(statement: Statement) -> Statement:
        if isinstance(statement, For):
            return For(statement.counter, statement.extent, tuple(map(go, statement.body)))
        if isinstance(statement, Command) and statement.note == where:
            found.append(statement)
            program = Kernel("when")
            with program.when("only", condition):
                program.command(where, **dict(statement.inputs))
            return program.body[0]
        return statement

    return with_body(mapping, [go(s) for s in mapping.device.program.body], found)


FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "the last column is lost": lambda: changed(MAX, INSIDE, {C: C - 1}),
    "a column of padding is stored": lambda: changed(MAX, INSIDE, {C: C + 1}),
    "the last row is lost": lambda: changed(MAX, INSIDE, {Y: Y - 1}),
    "parts overlap where they are stored": lambda: changed(MAX, STORE, {H: H - 1}),
    "parts overlap where they are loaded": lambda: changed(MAX, RESULT, {H: H - 1}),
    "columns of parts overlap": lambda: changed(MAX, STORE, {NV: NV - 1}),
    "rows of the first part in every part": lambda: changed(MAX, STORE, {DOWN_PART: const(0, 32)}),
    "columns of the first part in every part": lambda: changed(MAX, STORE, {ACROSS_PART: const(0, 32)}),
    "rows of the next part": lambda: changed(MAX, STORE, {DOWN_PART: DOWN_PART + 1}),
    "rounded in another format": lambda: changed(MAX, STORE, {EXPONENT: EXPONENT + 1}),
    "read in another format": lambda: changed(MAX, RESULT, {EXPONENT: EXPONENT + 1}),
    "started for the first part only": lambda: only_where(START, DOWN_PART == 0),
    "the last column is padding": lambda: changed(MAX, STORE, {C: C - 1}),
    "means in the IR": lambda: replace(MAX, ir=ir_fragment("mean", 1)),
}
QUICK = ("the last column is lost", "parts overlap where they are stored", "read in another format")


@pytest.mark.parametrize("name", slow_but(QUICK, FAULTS))
def test_a_fault_is_refuted_by_a_run_that_replays(name: str) -> None:
    require_refuted(FAULTS[name]())


@pytest.mark.parametrize("name", slow_but(["a column of padding is stored"], FAULTS))
def test_a_fault_is_not_proved_for_every_size(name: str) -> None:
    require_unproved(FAULTS[name]())


def test_parts_that_are_fewer_than_rows_need_are_not_all() -> None:
    """Then some elements are those of no coordinates."""
    require_unproved(replace(MAX, domain=tuple(c for c in MAX.domain if c[0] != "Y in down parts")))


@pytest.mark.parametrize(
    "pair", [p if p == ("max", 1) else pytest.param(p, marks=pytest.mark.slow) for p in FLOAT_POOLS]
)
def test_it_is_proved_for_every_size(pair: tuple[str, int]) -> None:
    require_proved(FLOAT_POOLS[pair].mapping)


@pytest.mark.parametrize("shape", [(2, 1, 2, 1), (10, 20, 4, 1), (8, 70, 6, 2), (6, 33, 2, 3)])
def test_a_run_is_the_pooling_of_rounded_numbers(shape: tuple[int, ...]) -> None:
    sizes = MAX.sizes_for(shape)
    x = (np.random.default_rng(len(shape)).normal(size=shape[:2]) / 8).astype(np.float32)
    program = Program.of(MAX.device, sizes)
    assert (program.reads, program.writes) == ({"host_x": x.size}, {"host_y": x.size // 2})
    result = program.run(Simulator(MAX.device.ila), {"host_x": x.reshape(-1).view(np.uint32)})["host_y"]
    wanted = Quantised(tensor_oracle.pool("max", quantise(x, 0)), 0).values
    assert np.array_equal(result.view(np.float32).reshape(wanted.shape), wanted)


def test_sizes_outside_are_refused() -> None:
    with pytest.raises(SizeError, match="Rows of 2 FlexASR poolings of a float32 tensor must be a positive multiple"):
        float_pooling_mapping("mean", 2).sizes_for((6, 16, 4, 1))
    with pytest.raises(SizeError, match="Y in down parts"):
        MAX.require({**MAX.sizes_for((8, 16, 4, 1)), "down": 1})
    with pytest.raises(SizeError, match="2 <= exponent <= 247"):
        MAX.require({**MAX.sizes_for((8, 16, 4, 1)), "exponent": 1})
