"""Graphs as terms: evaluated on exact fractions they give what the graph gives on whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, GraphError, TensorType, run
from ir_semantics.graph.terms import terms_of
from ir_semantics.onnx import import_model
from ir_semantics.tensors.evaluate import evaluate
from ir_semantics.tensors.terms import operands_of
from tests.ir_semantics.onnx.onnx_models import model, node, tensor
from tests.ir_semantics.tensors.floats import Floats


def layers() -> Graph:
    """Convolution with bias, relu, pooling, reshape, product with a matrix; all on whole numbers."""
    generator = np.random.default_rng(0)
    weights = tensor("w", generator.integers(-2, 3, (2, 2, 2, 2)), "float32")
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 0, 1]),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["p", "s"], ["f"]),
        node("MatMul", ["f", "m"], ["y"]),
    ]
    constants = [weights, tensor("b", [1, -3], "float32"), tensor("s", [1, -1])]
    constants.append(tensor("m", generator.integers(-2, 3, (8, 3)), "float32"))
    return import_model(model(nodes, {"x": [1, 2, 4, 4]}, {"y": [1, 3]}, constants))


def test_terms_have_the_graph_s_values() -> None:
    graph = layers()
    (term,) = terms_of(graph).values()
    x = np.random.default_rng(1).integers(-3, 4, (1, 2, 4, 4))
    constants = [i for i, n in enumerate(graph.nodes) if n.operator == "constant"]
    data = {"x": x} | {f"constant_{i}": graph.constant(i) for i in constants}
    exact = {name: np.vectorize(lambda v: Fraction(int(v)), otypes=[object])(a) for name, a in data.items()}
    found = evaluate(term, {}, exact)
    (expected,) = run(graph, {"x": x.astype(np.float32)}).values()
    assert found.astype(np.float64).tolist() == expected.tolist()
    assert {t.operator for t in operands_of(term)} >= {"conv", "map", "max_pool", "reshape", "matmul", "broadcast"}


def test_composites_are_written_out() -> None:
    builder = Builder()
    x = builder.input("x", TensorType("float64", (2, 3)))
    graph = builder.graph({"y": builder.add("softmax", x, axis=1)})
    (term,) = terms_of(graph).values()
    data = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, -1.0]])
    # the same operations in the same order; exp of the math library and of NumPy differ by one unit at most
    np.testing.assert_allclose(
        evaluate(term, {}, {"x": data}, Floats()).astype(np.float64), run(graph, {"x": data})["y"], rtol=2.0**-50
    )


def test_what_is_no_term_is_refused() -> None:
    builder = Builder()
    x = builder.input("x", TensorType("float32", (4,)))
    with pytest.raises(
        GraphError, match=r"^cast must keep the elements' format to be a term, not make int8\[4\] of it$"
    ):
        terms_of(builder.graph({"y": builder.add("cast", x, to="int8")}))
    top = builder.add("top_k", x, k=1, axis=0, largest=True, output=0)
    with pytest.raises(GraphError) as caught:
        terms_of(builder.graph({"y": top}))
    assert str(caught.value) == "top_k must be an index comprehension to be a term; it is a host operator"
