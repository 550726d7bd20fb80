"""Number formats from ranges, calibration, and memory plans of graphs."""

from __future__ import annotations

import numpy as np
import pytest

from accel_models.flexasr.quantise import largest, smallest
from ir_semantics.graph import Builder, Graph, TensorType
from rewrites.compiler.codegen import Options, calibrate
from rewrites.compiler.codegen.buffers import ALIGNMENT, host_plan, host_problem
from rewrites.compiler.codegen.calibration import drawn_inputs
from rewrites.compiler.codegen.parts import equal_parts
from rewrites.compiler.memory.plan_checker import check_memory_plan
from rewrites.targets.flexasr.code.adaptive import adaptive_bias, adaptive_scale
from tests.rewrites.targets.nodes import DEVICES, case, normal

MAGNITUDES = [2.0**k * m for k in range(-30, 31) for m in (1.0, 1.25, 1.9374, 1.9376, 1.9999)]


def test_adaptive_floats_fit_their_range_and_no_coarser_format_is_chosen() -> None:
    options = Options()
    for magnitude in MAGNITUDES:
        scale = adaptive_scale(magnitude, options, 1.25)
        bias = adaptive_bias(magnitude * 2.0**-scale, options, 1.25)
        reached = magnitude * 1.25 * 2.0**-scale
        assert reached <= largest(bias)
        assert bias == 0 or reached > largest(bias - 1)  # the least bias
        assert bias > 0 or reached > largest(0) / 2  # the largest code is used up to a factor of 2
        assert scale == 0 or bias in (0, 7)  # no scale without need
        assert smallest(bias) < reached


def test_as_published_the_bias_is_that_of_the_drivers() -> None:
    published = Options(as_published=True)
    for magnitude, bias in ((0.0, 0), (0.01, 0), (0.125, 0), (0.5, 2), (0.99, 2), (1.0, 3), (31.9, 7), (1000.0, 7)):
        assert adaptive_bias(magnitude, published) == bias
        assert adaptive_scale(magnitude, published) == 0


@pytest.mark.slow
def test_sums_of_a_linear_layer_stay_in_their_formats() -> None:
    for seed, (x, w) in enumerate(((1.0, 1.0), (300.0, 0.01), (0.001, 0.001), (20.0, 20.0))):
        c = case(
            "flexasr.linear",
            (normal(seed, 4, 64, scale=x), normal(9, 64, 64, scale=w), normal(8, 64)),
            activation="none",
        )
        q = c.quantisation
        total = q["scale_x"] + q["scale_w"]
        assert np.abs(c.exact).max() * 1.25 * 2.0**-total <= largest(q["bias_y"]) <= 31
        products = c.operands[0].astype(np.float64) @ c.operands[1].T.astype(np.float64)
        assert np.abs(products).max() * 1.25 * 2.0**-total < 8 * 2.0 ** (q["bias_x"] + q["bias_w"])
        executed = c.run()
        assert not executed.saturated
        assert c.implementation().bounds(executed).on_quantised is not None


@pytest.mark.parametrize("bits", [8, 16])
def test_convolutions_use_the_range_of_results(bits: int) -> None:
    for x, w in ((1.0, 0.1), (100.0, 1.0), (0.01, 30.0)):
        c = case(
            "hlscnn.conv2d",
            (normal(1, 1, 8, 4, 4, scale=x), normal(2, 8, 8, 3, 3, scale=w)),
            Options(chosen={"weight_bits": bits}),
            stride_h=1,
            stride_w=1,
        )
        q = c.quantisation
        magnitude = np.abs(c.exact).max()
        assert 2.0 < magnitude * 2.0 ** -(q["scale_x"] + q["scale_w"]) < 256
        implementation = c.implementation()
        executed = implementation.run(c.operands, DEVICES)
        assert not executed.saturated
        bound = implementation.bounds(executed).on_quantised
        assert bound is not None
        assert bound < 0.02 * magnitude


def test_saturated_elements_are_counted() -> None:
    c = case("flexasr.max_pool", [[[100.0] * 16, [1.0] * 16]], seen=[[np.ones((2, 16))]])
    executed = c.run()
    assert executed.saturated == {"x": 16}
    assert c.implementation().bounds(executed).on_given == pytest.approx(100 - 1.9375)


@pytest.mark.parametrize("operator", ["vta.dense", "flexasr.linear"])
def test_results_that_the_accelerator_cuts_are_counted(operator: str) -> None:
    """The operands fit; of sums, one is the last that fits, one the first that does not, and 0 is inside."""
    alternating, ones = [[1.0, -1.0] * 8], np.ones((1, 16))
    vta = operator == "vta.dense"
    bias = () if vta else (np.zeros(4),)
    attributes = {} if vta else {"activation": "none"}
    w = np.zeros((4, 16))
    w[:3, 0], w[1, 1], w[2] = 1.0, -1.0, 1.0
    c = case(operator, (ones, w, *bias), seen=[(alternating, w, *bias)], **attributes)
    executed = c.run()
    implementation = c.implementation()
    top = float(executed.value.max())
    assert 1.0 < top < c.exact.max() == 16 and not executed.saturated
    assert implementation.cut(executed, c.exact) == 1
    bound = implementation.bounds(executed).on_quantised
    assert bound is not None and bound >= 16 - top  # it includes the cut
    inside = case(operator, (alternating, w, *bias), **attributes)
    assert inside.implementation().cut(inside.run(), inside.exact) == 0


def test_bytes_of_vta_are_cut_where_shifted_sums_leave_them() -> None:
    c = case("vta.dense", ([[127.0, 127.0, 127.0]], np.eye(3) * 127))
    shift = c.quantisation["shift"]
    implementation, executed = c.implementation(), c.run()
    unit, half = 1 << shift, (1 << shift) >> 1
    scale = 2.0 ** (c.quantisation["scale_x"] + c.quantisation["scale_w"])
    for sum_ in (127 * unit, 128 * unit - half - 1, 128 * unit - half, -128 * unit - half, -128 * unit - half - 1):
        value = (sum_ + half) >> shift
        assert implementation.cut(executed, np.array([[sum_ * scale]])) == int(not -128 <= value <= 127)


def test_cell_states_that_are_cut_are_counted() -> None:
    """Gates are open, so that the cell state grows by nearly 1 in a step; hidden states stay below 1."""
    n = 16
    x, w, u = np.ones((4, n)), np.zeros((4 * n, n)), np.zeros((4 * n, n))
    b, d = np.full(4 * n, 8.0), np.zeros(4 * n)
    c = case("flexasr.lstm", (x, w, u, b, d))
    executed = c.run(bias_h=3)
    assert largest(3) == 1.9375 and c.implementation(bias_h=3).cut(executed, c.exact) == 3 * n
    assert c.implementation().cut(executed, c.exact) == 0


def test_equal_parts() -> None:
    for count in range(1, 40):
        for most in range(1, 45):
            found = equal_parts(count, most)
            sizes = {end - first for first, end in found}
            assert len(sizes) == 1
            assert max(sizes) <= most
            assert [f for f, _ in found] == [i * max(sizes) for i in range(len(found))]
            assert found[-1][0] < count <= found[-1][1]
            assert len(found) == -(-count // max(sizes)) <= -(-count // most)


# -- calibration ---------------------------------------------------------------------------------------------


def small_graph() -> Graph:
    """Rows of a table, multiplied: the token is an input."""
    builder = Builder()
    tokens = builder.input("tokens", TensorType("int64", (3,)))
    table = builder.constant(np.arange(40, dtype=np.float32).reshape(10, 4))
    x = builder.add("gather", table, tokens, axis=0)
    w = builder.constant(np.ones((2, 4), np.float32) * 2)
    return builder.graph({"y": builder.add("relu", builder.add("vta.dense", x, w))})


def test_calibration_keeps_the_largest_magnitudes_of_all_samples() -> None:
    graph = small_graph()
    number = next(i for i, n in enumerate(graph.nodes) if n.operator == "vta.dense")
    one, two = np.array([0, 1, 2]), np.array([9, 0, 0])
    assert calibrate(graph, [{"tokens": one}]).ranges == {number: {"x": 11.0, "w": 2.0, "y": 76.0, "products": 76.0}}
    both = calibrate(graph, [{"tokens": two}, {"tokens": one}])
    assert both.ranges == {number: {"x": 39.0, "w": 2.0, "y": 300.0, "products": 300.0}}
    assert (both.samples, both.given) == (2, True)


def test_drawn_inputs_are_indices_of_the_table() -> None:
    graph = small_graph()
    drawn = drawn_inputs(graph, seed=1, count=40)
    tokens = np.stack([d["tokens"] for d in drawn])
    assert (tokens.min(), tokens.max()) == (0, 9)
    found = calibrate(graph)
    assert (found.samples, found.given) == (2, False)
    assert found.ranges == calibrate(graph).ranges


# -- memory plans --------------------------------------------------------------------------------------------


def test_host_tensors_share_an_arena() -> None:
    builder = Builder()
    x = builder.input("x", TensorType("float32", (100,)))
    y = x
    for _ in range(6):
        y = builder.add("relu", builder.add("neg", y))
    graph = builder.graph({"y": y, "first": builder.add("exp", x)})
    problem, plan = host_problem(graph), host_plan(graph)
    check_memory_plan(problem, plan)
    assert {b.name for b in problem.buffers} == {f"%{i}" for i in range(len(graph.nodes))}
    assert all(b.size == 400 and b.alignment == ALIGNMENT for b in problem.buffers)
    times = {b.name: (b.start, b.end) for b in problem.buffers}
    steps = len(graph.nodes) - 1
    assert times["%0"] == (0, steps)  # until exp, the last step
    assert times[f"%{graph.outputs['y']}"][1] == times[f"%{graph.outputs['first']}"][1] == steps + 1
    assert plan.peak == 3 * 448 - 48  # x, and two that follow each other
