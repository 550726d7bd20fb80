"""What nodes cost: counted by hand on small graphs; what depends on constants alone is free."""

from __future__ import annotations

import numpy as np
import pytest

from ilaverify.catalogue import find_backends
from ir_semantics.graph import Builder, Graph, TensorType
from rewrites.compiler.offload.costs import (
    COSTS,
    Fixed,
    costs_for,
    multiply_accumulates,
    reduction_steps,
    scalar_operations,
)
from rewrites.egraph import from_graph
from rewrites.targets.flexasr.operators import LINEAR
from rewrites.targets.vta.operators import DENSE

WINDOWS = (("dilations", (1, 1)), ("pads", ((0, 0), (0, 0))), ("strides", (1, 1)))


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


@pytest.mark.parametrize(
    ("operator", "types", "attributes", "result", "steps", "products", "scalars"),
    [
        ("matmul", (f32(2, 3), f32(3, 5)), (), f32(2, 5), 30, 30, 0),
        ("matmul", (f32(4, 2, 3), f32(4, 3, 5)), (), f32(4, 2, 5), 120, 120, 0),
        ("conv", (f32(1, 4, 5, 5), f32(6, 2, 3, 3)), (*WINDOWS, ("groups", 2)), f32(1, 6, 3, 3), 54 * 18, 54 * 18, 0),
        ("max_pool", (f32(1, 2, 4, 4),), (*WINDOWS, ("kernel", (2, 2))), f32(1, 2, 3, 3), 18 * 4, 0, 0),
        ("mean", (f32(3, 4),), (("axes", (1,)),), f32(3), 12, 0, 0),
        ("arg_max", (f32(3, 4),), (("axis", 1), ("last", False)), f32(3), 24, 0, 0),
        ("cumsum", (f32(3, 4),), (("axis", 1),), f32(3, 4), 12, 0, 0),
        ("gather", (f32(3, 4), TensorType("int64", (2,))), (("axis", 0),), f32(2, 4), 0, 0, 0),
        ("relu", (f32(3, 4),), (), f32(3, 4), 0, 0, 12),
        ("transpose", (f32(3, 4),), (("permutation", (1, 0)),), f32(4, 3), 0, 0, 0),
        # max, subtraction, exp, sum, division
        ("softmax", (f32(3, 4),), (("axis", 1),), f32(3, 4), 24, 0, 36),
        # two means; x - m, its square, v + epsilon, root, division
        ("layer_norm", (f32(3, 4),), (("axes", (1,)), ("epsilon", 0.5)), f32(3, 4), 24, 0, 12 * 3 + 3 * 2),
    ],
)
def test_work_is_counted(
    operator: str,
    types: tuple[TensorType, ...],
    attributes: tuple[tuple[str, object], ...],
    result: TensorType,
    steps: int,
    products: int,
    scalars: int,
) -> None:
    counts = [
        c(operator, types, attributes, result) for c in (reduction_steps, multiply_accumulates, scalar_operations)
    ]  # type: ignore[arg-type]
    assert counts == [steps, products, scalars]


def costs_of(graph: Graph, name: str) -> dict[str, tuple[int | None, ...]]:
    """The costs of each operator's nodes, which must all be the same."""
    network = from_graph(graph, Fixed())
    functions = costs_for(name, find_backends(["hlscnn", "flexasr"]))
    found: dict[str, tuple[int | None, ...]] = {}
    for number in network.numbers:
        (node,) = network.egraph.nodes(number)
        cost = tuple(function(network.egraph, node) for function in functions)
        assert found.setdefault(node.symbol.operator, cost) == cost
    return found


def example() -> Graph:
    """Two dense layers with weights that are prepared, and between them a bias that is repeated and a pad."""
    b = Builder()
    x, w = b.input("x", f32(2, 5)), b.constant(np.ones((5, 5), np.float32))
    prepared = b.add("transpose", b.add("reverse", w, axes=(0,)), permutation=(1, 0))
    layer = b.add(LINEAR.name, x, prepared, b.constant(np.ones(5, np.float32)), activation="none")
    repeated = b.add("broadcast", b.constant(np.ones(5, np.float32)), axes=(1,), shape=(2, 5))
    zero = b.constant(np.zeros((), np.float32))
    padded = b.add("pad", b.add("add", layer, repeated), zero, before=(0, 0), after=(1, 0))
    result = b.add(DENSE.name, padded, b.add("concat", prepared, axis=0))
    nodes = tuple(b.node(i) for i in range(result + 1))  # as they are: Builder.graph would compute constants
    return Graph(nodes, {"x": x}, {"y": result}, {}, ("",) * len(nodes))


@pytest.mark.parametrize("name", COSTS)
def test_what_moves_and_what_is_free(name: str) -> None:
    graph = example()
    nodes = [n for n in graph.nodes if n.operator != "vta.dense"]
    kept = Graph(tuple(nodes), graph.inputs, {"y": len(nodes) - 1}, graph.constants, ("",) * len(nodes))
    found = costs_of(kept, name)
    read, made = 2 * 5 + 5 * 5 + 5, 2 * 5
    offload = {
        "flexasr.linear": (0, 0, read + made, 0, 2, 1),
        "add": (0, 0, 10 + 5 + 10, 10, 0, 1),  # the bias is read once
        "pad": (0, 10 + 1 + 15, 10 + 1 + 15, 0, 0, 1),
    }
    movement = {
        "flexasr.linear": (0, read + made, 0, read + made, 0, 2, 1),
        "add": (0, 0, 0, 25, 10, 0, 1),
        "pad": (0, 0, 26, 26, 0, 0, 1),
    }
    wanted = offload if name == "offload" else movement
    assert {operator: found[operator] for operator in wanted} == wanted
    for free in ("input", "constant", "broadcast", "reverse", "transpose", "concat"):
        assert found[free][:-1] == (0,) * (len(found[free]) - 1), free


def test_operators_of_other_targets_must_not_be_chosen() -> None:
    network = from_graph(example(), Fixed())
    (node,) = network.egraph.nodes(network.roots[0])
    assert node.symbol.operator == "vta.dense"
    refused = [f(network.egraph, node) for f in costs_for("offload", find_backends(["flexasr"]))]
    assert None in refused
    assert None not in [f(network.egraph, node) for f in costs_for("offload", find_backends(["vta"]))]
    told = [
        f(network.egraph, node)
        for f in costs_for("offload", find_backends(["vta"]), lambda n, types: f"{n.operator} {types[0]}")
    ]
    assert None in told
