"""Tensor operators on arrays against their index comprehensions, which plain Python evaluates.

Elements are small whole numbers, so that sums of floats are exact in every order and results must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ir_semantics.graph import OPERATORS, Builder, Node, run_node
from ir_semantics.graph.ir import attributes_of
from ir_semantics.graph.operator import meaning
from ir_semantics.graph.types import GraphError, TensorType, type_of
from tests.ir_semantics.tensors.plain import evaluate
from tests.ir_semantics.tensors.test_arrays import same

Draw = st.DrawFn
SUMS = {"reduce_sum", "mean", "cumsum", "matmul", "conv", "avg_pool"}
"""The sign of a sum that is zero is left open: matrix products begin with +0."""
SIZE = st.integers(1, 4)


def array(
    draw: Draw, shape: tuple[int, ...], dtypes: str = "float32 float64 int32 uint8", special: bool = True
) -> np.ndarray:
    dtype = draw(st.sampled_from(dtypes.split()))
    generator = np.random.default_rng(draw(st.integers(0, 2**20)))
    if dtype == "bool":
        return generator.random(shape) < 0.5
    low = 0 if dtype == "uint8" else -4
    values = np.asarray(generator.integers(low, 5, shape)).astype(dtype)
    if dtype.startswith("float"):
        values[generator.random(shape) < 0.2] = -0.0
        if special:
            values[generator.random(shape) < draw(st.sampled_from([0, 0.1]))] = np.nan
            values[generator.random(shape) < draw(st.sampled_from([0, 0.1]))] = -np.inf
    if draw(st.booleans()):  # a view
        values = np.asarray(values, order="F")
    return values


def shapes(draw: Draw, low: int = 1, high: int = 4, least: int = 0) -> tuple[int, ...]:
    shape = tuple(draw(st.lists(SIZE, min_size=low, max_size=high)))
    return (least, *shape[1:]) if shape and draw(st.integers(0, 9)) == 0 else shape


def windows(draw: Draw, extents: tuple[int, ...], kernel: list[int]) -> dict[str, Any]:
    dilations = [draw(st.integers(1, 2)) for _ in kernel]
    spans = [(k - 1) * e + 1 for k, e in zip(kernel, dilations, strict=True)]
    pads = []
    for d, span in zip(extents, spans, strict=True):
        before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        pads.append((before, after + max(0, span - d - before - after)))
    return {"strides": [draw(st.integers(1, 3)) for _ in kernel], "dilations": dilations, "pads": pads}


@st.composite
def calls(draw: Draw, operator: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    anything = "float16 float32 float64 int8 int32 uint8 bool"
    match operator:
        case "broadcast":
            shape = shapes(draw)
            axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1))))
            return [array(draw, tuple(shape[a] for a in axes), anything)], {"shape": shape, "axes": axes}
        case "reshape":
            shape = shapes(draw)
            return [array(draw, shape, anything)], {"shape": draw(st.permutations(shape))}
        case "transpose":
            shape = shapes(draw)
            return [array(draw, shape)], {"permutation": draw(st.permutations(range(len(shape))))}
        case "slice":
            shape = shapes(draw)
            start = [draw(st.integers(0, d)) for d in shape]
            stop = [draw(st.integers(s, d)) for s, d in zip(start, shape, strict=True)]
            return [array(draw, shape)], {
                "start": start,
                "stop": stop,
                "stride": [draw(st.integers(1, 3)) for _ in shape],
            }
        case "concat":
            shape, count = shapes(draw), draw(st.integers(1, 3))
            axis = draw(st.integers(0, len(shape) - 1))
            parts = [array(draw, (*shape[:axis], draw(SIZE), *shape[axis + 1 :]), "float32") for _ in range(count)]
            return parts, {"axis": axis}
        case "pad":
            shape = shapes(draw)
            x = array(draw, shape)
            before, after = ([draw(st.integers(0, 2)) for _ in shape] for _ in range(2))
            return [x, np.array(3, x.dtype)], {"before": before, "after": after}
        case "reverse":
            shape = shapes(draw)
            return [array(draw, shape)], {"axes": sorted(draw(st.sets(st.integers(0, len(shape) - 1))))}
        case "gather":
            shape = shapes(draw, high=3, least=1)
            axis = draw(st.integers(0, len(shape) - 1))
            indices = array(draw, shapes(draw, low=0, high=2), "uint8") % shape[axis]
            return [array(draw, shape, anything), indices.astype(np.int64)], {"axis": axis}
        case "gather_elements":
            shape = shapes(draw, high=3, least=1)
            axis = draw(st.integers(0, len(shape) - 1))
            own = tuple(draw(SIZE) if j == axis else draw(st.integers(1, d)) for j, d in enumerate(shape))
            return [array(draw, shape), (array(draw, own, "uint8") % shape[axis]).astype(np.int64)], {"axis": axis}
        case "reduce_sum" | "reduce_max" | "reduce_min" | "mean":
            shape = shapes(draw)
            kinds = {"mean": "float64", "reduce_sum": "float32 float64 int32 uint8"}.get(operator, anything)
            return [array(draw, shape, kinds)], {"axes": sorted(draw(st.sets(st.integers(0, len(shape) - 1))))}
        case "cumsum":
            shape = shapes(draw)
            return [array(draw, shape)], {"axis": draw(st.integers(0, len(shape) - 1))}
        case "arg_max" | "arg_min":
            shape = shapes(draw)
            return [array(draw, shape, special=False)], {
                "axis": draw(st.integers(0, len(shape) - 1)),
                "last": draw(st.booleans()),
            }
        case "matmul":
            batch, (n, k, m) = shapes(draw, low=0, high=2), (draw(SIZE) for _ in range(3))
            kind = draw(st.sampled_from(["float32", "float16", "int8", "uint8"]))
            return [array(draw, (*batch, n, k), kind), array(draw, (*batch, k, m), kind)], {}
        case "conv":
            extents = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=2)))
            kernel = [draw(st.integers(1, 3)) for _ in extents]
            groups, inputs, outputs = (draw(st.integers(1, 3)) for _ in range(3))
            kind = draw(st.sampled_from(["float32", "float64", "int8"]))
            x = array(draw, (draw(st.integers(0, 2)), groups * inputs, *extents), kind)
            w = array(draw, (groups * outputs, inputs, *kernel), kind)
            return [x, w], {"groups": groups, **windows(draw, extents, kernel)}
        case "max_pool" | "avg_pool" | "patches":
            extents = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=2)))
            kernel = [draw(st.integers(1, 3)) for _ in extents]
            x = array(draw, (1, 2, *extents), "float64" if operator == "avg_pool" else "float32 int32 uint8")
            count = {"count_include_pad": draw(st.booleans())} if operator == "avg_pool" else {}
            return [x], {"kernel": kernel, **count, **windows(draw, extents, kernel)}
    raise AssertionError(f"no calls are made of {operator}")


@pytest.mark.parametrize("operator", sorted(name for name, o in OPERATORS.items() if o.kind == "tensor"))
def test_arrays_are_the_definitions(operator: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(calls(operator))
    def agree(call: tuple[list[np.ndarray], dict[str, Any]]) -> None:
        operands, attributes = call
        builder = Builder()
        try:
            number = builder.add(
                operator, *(builder.input(f"x{i}", type_of(o)) for i, o in enumerate(operands)), **attributes
            )
        except GraphError:
            assume(all(o.size for o in operands))  # some operators refuse what is empty
            raise
        node = builder.node(number)
        term = meaning(OPERATORS[operator], [type_of(o) for o in operands], dict(node.attributes))
        expected = evaluate(term, operands, node.type.dtype)
        same(run_node(node, operands), expected, signs=operator not in SUMS)
        same(run_node(node, operands, by_definition=True), expected)

    agree()


def test_indices_outside_are_refused() -> None:
    node = Node("gather", (0, 1), attributes_of({"axis": 0}), TensorType("float32", (1,)))
    with pytest.raises(GraphError, match=r"^indices must be in 0 \.\. 2, not 3 \.\. 3; correct the model's input$"):
        run_node(node, [np.zeros(3, np.float32), np.array([3])])


def test_no_position_of_nan() -> None:
    node = Node("arg_max", (0,), attributes_of({"axis": 0, "last": False}), TensorType("int64", ()))
    with pytest.raises(GraphError, match=r"^arg_max must be given numbers, not NaN"):
        run_node(node, [np.array([1.0, np.nan])])
