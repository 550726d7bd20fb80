"""Calls of nodes of random shapes: inside their mappings' domains, with parts that cover the result."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.ir import attributes_of
from rewrites.compiler.codegen import Call, CannotOffload, Options, implement, implementable
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from tests.rewrites.compiler.offload.offload_gates import OPERATORS

BIASES = dict.fromkeys(("bias_x", "bias_w", "bias_b", "bias_y", "bias_u", "bias_c", "bias_h", "bias"), 3)
SCALES = {"scale_x": 0, "scale_w": 0, "scale": 0, "shift": 5, "rounding": 1}
SIZES = st.one_of(st.integers(1, 80), st.integers(1, 5000))


def made_of(operator: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], **attributes: Any) -> Any:
    """The implementation of a node of these shapes, or why there is none; ``implementable`` says the same."""
    bits = attributes.pop("weight_bits", 16)
    types = [TensorType("float32", shape) for shape in shapes]
    node = Node(
        OPERATORS[operator].name, tuple(range(len(shapes))), attributes_of(attributes), TensorType("float32", result)
    )
    try:
        found = implement(node, types, {**BIASES, **SCALES, "weight_bits": bits}, Options(chosen={"weight_bits": bits}))
    except CannotOffload as error:
        # of convolutions it says whether the hardware with weights of either width computes them
        assert implementable(node, types) == str(error) or operator == "hlscnn.conv2d"
        assert implementable(node, types) is not None
        return str(error)
    assert implementable(node, types) is None or operator == "hlscnn.conv2d"
    return found


def check(made: Any, result: tuple[int, ...]) -> None:
    """What the calls of every implementation must satisfy."""
    if isinstance(made, str):
        assert made
        return
    calls = made.calls
    for call in {str(c.sizes): c for c in calls}.values():
        call.mapping.mapping.require(call.sizes)
    covers([call.parts["y"] for call in calls], result)
    assert all(call.rules for call in calls) or len(calls) == 1


def covers(parts: list[Any], shape: tuple[int, ...]) -> None:
    """The parts are all combinations of intervals, an axis at a time, that leave no gap and all begin inside."""
    axes = [sorted({part[axis] for part in parts}) for axis in range(len(shape))]
    assert sorted(parts) == sorted(product(*axes))
    for intervals, extent in zip(axes, shape, strict=True):
        assert intervals[0][0] == 0
        assert all(one[1] >= two[0] > one[0] for one, two in pairwise(intervals))
        assert intervals[-1][0] < extent <= max(end for _, end in intervals)


@settings(max_examples=40)
@given(SIZES, SIZES, st.one_of(SIZES, st.integers(1, 40_000)))
@example(10, 1600, 4000)  # as many weights as fit a processing element
@example(3, 4080, 33_278)
@example(70_000, 20, 20)
@example(1, 1, 1)
def test_dense_layers(rows: int, inputs: int, outputs: int) -> None:
    shapes: list[tuple[int, ...]] = [(rows, inputs), (outputs, inputs)]
    check(made_of("vta.dense", shapes, (rows, outputs)), (rows, outputs))
    linear = made_of("flexasr.linear", [*shapes, (outputs,)], (rows, outputs), activation="relu")
    check(linear, (rows, outputs))
    assert isinstance(linear, str) == (inputs > 4080)


@settings(max_examples=40)
@given(st.one_of(SIZES, st.integers(1, 26_000)), SIZES)
@example(26_000, 4080)
def test_poolings(rows: int, features: int) -> None:
    for operator, group in (("flexasr.max_pool", 2), ("flexasr.mean_pool", 2)):
        made = made_of(operator, [(rows * group, features)], (rows, features))
        (call,) = made.calls  # parts are in the mapping's host loops
        call.mapping.mapping.require(call.sizes)
        assert not call.parts and not call.rules


@settings(max_examples=40)
@given(st.sampled_from([(1, "rnn"), (3, "gru"), (4, "lstm")]), SIZES, SIZES, st.integers(1, 1000))
@example((4, "lstm"), 5, 1600, 832)
@example((1, "rnn"), 60_000, 16, 64)
def test_recurrent_layers(kind: tuple[int, str], rows: int, inputs: int, hidden: int) -> None:
    gates, name = kind
    stacked = gates * hidden
    shapes: list[tuple[int, ...]] = [(rows, inputs), (stacked, inputs), (stacked, hidden), (stacked,), (stacked,)]
    check(made_of(f"flexasr.{name}", shapes, (rows, hidden)), (rows, hidden))


@settings(max_examples=25)
@given(
    st.integers(1, 2),
    st.one_of(st.integers(1, 40), st.integers(1, 600)),
    st.one_of(st.integers(1, 40), st.integers(1, 600)),
    st.integers(1, 120),
    st.integers(1, 120),
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from([8, 16]),
)
def test_convolutions(
    images: int, channels: int, filters: int, height: int, width: int, kh: int, kw: int, stride: int, bits: int
) -> None:
    kh, kw = min(kh, height), min(kw, width)
    rows, columns = (height - kh) // stride + 1, (width - kw) // stride + 1
    shapes: list[tuple[int, ...]] = [(images, channels, height, width), (filters, channels, kh, kw)]
    result = (images, filters, rows, columns)
    made = made_of("hlscnn.conv2d", shapes, result, stride_h=stride, stride_w=stride, weight_bits=bits)
    check(made, result)
    for call in () if isinstance(made, str) else made.calls:
        assert call.mapping is CONVOLUTIONS[bits]
        rows_of_x(call, kh, stride)


def rows_of_x(call: Call, kernel: int, stride: int) -> None:
    """A band of output rows is computed from just the rows that its windows meet."""
    (first, last), (top, bottom) = call.parts["y"][2], call.parts["x"][2]
    assert (top, bottom) == (first * stride, (last - 1) * stride + kernel)
    assert call.sizes["h"] == bottom - top
    assert call.sizes["oh"] == last - first
    assert call.parts["w"][0] == call.parts["y"][1]
