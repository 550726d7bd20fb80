"""Axes that are run in phases: every n-th iteration at a time, inside a loop whose extent depends on their counters."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import Expr, Kernel, const, mem, var
from ila_lang.arrays.flow import Flow
from ila_lang.arrays.vectorise import plan_of
from ila_lang.templates.instance import Template, run_columns
from ilaverify.catalogue import find_mapping
from tests.ila_lang.arrays.test_fast_simulation import same_as_the_walk

SOURCE, TARGET, STRIDE = var("source", mem(8, 8)), var("target", mem(8, 8)), var("stride", il.bv(8))
CONTENTS = {"source": {i: 37 * i % 251 for i in range(256)}, "target": {i: 91 * i % 241 for i in range(256)}}


def mixed(old: Expr, more: Expr) -> Expr:
    """What depends on the order in which words are added."""
    return (old * 5 + more) ^ (old >> 3)


def scattering(random: Random) -> Kernel:
    """A convolution by input rows and columns: each adds to the outputs that its taps meet, in the input's order."""
    kernel = Kernel("scattering")
    rows, columns, taps = (random.randint(1, most) for most in (7, 5, 4))
    stride: Expr = STRIDE if random.random() < 0.5 else const(random.randint(1, 4), 8)
    two = random.random() < 0.7
    early, late, channel = (random.random() < 0.5 for _ in range(3))

    def visited(position: Expr) -> Expr:
        return (const(taps, 8) + (stride - 1) - position % stride) // stride

    def inner(row: Expr, column: Expr, row_tap: Expr, column_tap: Expr, more: Expr) -> None:
        k_row, k_column = row % stride + row_tap * stride, column % stride + column_tap * stride
        out_row, out_column = (row - k_row) // stride, (column - k_column) // stride
        word = kernel.load("word", SOURCE, (row * 5 + column) * 3 + k_row * 2 + k_column)
        place = out_row * 16 + out_column + more * 4

        def put() -> None:
            old = kernel.load("old", TARGET, place)
            kernel.store(TARGET, place, mixed(old, word + row_tap))

        if late:
            with kernel.when("inside", (k_row <= row) & (k_column <= column)):
                put()
        else:
            put()

    with kernel.loop("more", const(2 if channel else 1, 8)) as more, kernel.loop("row", const(rows, 8)) as row:
        offset = kernel.load("offset", SOURCE, row) if early else const(0, 8)
        if two:
            with (
                kernel.loop("column", const(columns, 8)) as column,
                kernel.loop("row_tap", visited(row)) as row_tap,
                kernel.loop("column_tap", visited(column)) as column_tap,
            ):
                inner(row, column, row_tap, column_tap, more + (offset & 1))
        else:
            with kernel.loop("row_tap", visited(row)) as row_tap, kernel.loop("column", const(columns, 8)) as column:
                inner(row, column, row_tap, const(0, 8), more + (offset & 1))
    return kernel


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_random_scattering(random: Random) -> None:
    values = {"stride": random.randint(1, 4)}
    same_as_the_walk(scattering(random), values, CONTENTS, random.choice([7, 1 << 19, 1 << 19]))


def lines(extra: int = 0) -> Kernel:
    """One row of a convolution of three taps and a stride; ``extra`` reads words that later iterations write."""
    kernel = Kernel("lines")
    with (
        kernel.loop("row", const(12, 8)) as row,
        kernel.loop("tap", (const(2, 8) + STRIDE - row % STRIDE) // STRIDE) as tap,
    ):
        place = (row - (row % STRIDE + tap * STRIDE)) // STRIDE
        old = kernel.load("old", TARGET, place + extra * (row % 2))
        word = kernel.load("word", SOURCE, row + tap)
        kernel.store(TARGET, place, mixed(old, word))
    return kernel


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_phases_are_as_many_as_iterations_that_meet(stride: int) -> None:
    kernel = lines()
    same_as_the_walk(kernel, {"stride": stride}, CONTENTS)
    (configuration,) = plan_of(kernel).configurations.values()
    assert configuration.phases == ({} if stride == 1 else {"tap": ("row", stride)})
    assert configuration.serial == {"tap"}


def test_where_phases_do_not_help_the_loop_is_no_axis() -> None:
    kernel = lines(extra=1)
    same_as_the_walk(kernel, {"stride": 2}, CONTENTS)
    (configuration,) = plan_of(kernel).configurations.values()
    assert configuration.phases == {}
    assert configuration.serial == {"row", "tap"}


def test_loops_that_may_have_phases() -> None:
    """The outermost loop whose extent depends on a counter, if its iterations share no register and no copies."""
    kernel = Kernel("loops")
    with (
        kernel.loop("a", const(4, 8)) as a,
        kernel.loop("b", const(4, 8)) as b,
        kernel.loop("c", a + 1) as c,
        kernel.loop("d", a + b) as d,
        kernel.loop("e", d + b) as e,
    ):
        kernel.store(TARGET, a + b + d, c + e)
    assert Flow(kernel).ragged == {"a": "c", "b": "d", "d": "e"}
    copies = Kernel("copies")
    with (
        copies.loop("a", const(4, 8)) as a,
        copies.loop("b", a + 1) as b,
        copies.loop("c", const(3, 8)) as c,
    ):
        copies.store(TARGET, c, SOURCE.load(a + b))
    assert Flow(copies).ragged == {}
    register = Kernel("register")
    with register.loop("a", const(4, 8)) as a:
        total = register.let("total", const(0, 8))
        with register.loop("b", a + 1) as b:
            register.assign(total, total + b)
        register.store(TARGET, a, total)
    assert Flow(register).ragged == {}


def test_strided_convolutions_of_hlscnn_take_few_steps() -> None:
    mapping = find_mapping("hlscnn_conv2d")
    program = Template.of(mapping.device, mapping.sizes_for((8, 8, 13, 13, 3, 3, 2, 2)))
    rng = np.random.default_rng(2)
    tensors: dict[str, Any] = {name: rng.integers(0, 1 << 16, n, np.uint16) for name, n in program.inputs.items()}
    columns = program.columns(tensors)
    simulator = il.Simulator(mapping.device.ila)
    results = [run_columns(program, simulator, columns)["host_y"].tolist() for _ in range(3)]
    assert results[0] == results[1] == results[2]
    (kernel,) = [k for name, k in mapping.device.ila.kernels.items() if name == "convolution"]
    traces = [t for key, t in plan_of(kernel).traces.items() if t is not None]
    assert min(len(t.steps) for t in traces) < 200
