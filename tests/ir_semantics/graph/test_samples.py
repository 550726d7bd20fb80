"""Operators on many samples at once give the bits that each sample gives alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ir_semantics.graph import TensorType
from ir_semantics.graph.build import Builder, run_node
from ir_semantics.graph.operator import NAMES, OPERATORS
from ir_semantics.graph.run import run
from ir_semantics.graph.samples import run_on_samples, steps_on_samples
from ir_semantics.graph.types import GraphError, type_of
from tests.ir_semantics.graph.test_tensor_operators import calls

ATTRIBUTES = {"approximate": "none"}


def same(node: Any, samples: list[np.ndarray]) -> None:
    """Samples are the first axis of operands, one of which may stand for all."""
    count = max(map(len, samples))
    together = run_on_samples(node, samples)
    assert together.shape == (count, *node.type.shape) and together.dtype == node.type.dtype
    for k in range(count):
        alone = run_node(node, [s[k if len(s) > 1 else 0] for s in samples])
        assert together[k].tobytes() == alone.tobytes()


def several(operands: list[np.ndarray], shared: int, seed: int) -> list[np.ndarray]:
    """Operands of three samples, of the same elements in another order."""
    rng = np.random.default_rng(seed)
    return [
        o[None] if place == shared else np.stack([o, *(rng.permutation(o.reshape(-1)).reshape(o.shape) for _ in "ab")])
        for place, o in enumerate(operands)
    ]


@pytest.mark.parametrize("operator", sorted(name for name, o in OPERATORS.items() if o.kind == "tensor"))
def test_tensor_operators(operator: str) -> None:
    @settings(max_examples=12, deadline=None)
    @given(calls(operator), st.integers(-1, 2), st.integers(0, 99))
    def check(call: tuple[list[np.ndarray], dict[str, Any]], shared: int, seed: int) -> None:
        operands, attributes = call
        builder = Builder()
        try:
            inputs = [builder.input(f"x{i}", type_of(o)) for i, o in enumerate(operands)]
            number = builder.add(operator, *inputs, **attributes)
        except GraphError:
            assume(all(o.size for o in operands))
            raise
        assume(operator != "pad" or shared == 1 or operands[1].size)
        same(builder.node(number), several(operands, shared, seed))

    check()


@pytest.mark.parametrize("operator", sorted(name for name, o in OPERATORS.items() if o.kind == "scalar"))
def test_scalar_operators(operator: str) -> None:
    rng, of = np.random.default_rng(0), OPERATORS[operator]
    values = np.concatenate([rng.normal(size=80) * 4, [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5]])
    for dtype in ("float32", "float64", "int32", "bool"):
        builder = Builder()
        numbers = [builder.input(n, TensorType(dtype, (7, 5))) for n in NAMES[: of.arity.start]]
        try:
            attributes = {name: ATTRIBUTES.get(name, 1) for name in of.attributes}
            node = builder.node(builder.add(operator, *numbers, **attributes))
        except (GraphError, ValueError):
            continue
        with np.errstate(all="ignore"):
            drawn = [rng.choice(values, (3, 7, 5)).astype(dtype) for _ in numbers]
        same(node, drawn)
        same(node, [drawn[0], *(d[:1] for d in drawn[1:])])


@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_composites(operator: str) -> None:
    builder, rng = Builder(), np.random.default_rng(1)
    x = builder.input("x", TensorType("float32", (3, 8)))
    more = [builder.input(n, TensorType("float32", (8,))) for n in ("g", "b")] if operator == "layer_norm" else []
    attributes: dict[str, Any] = {"softmax": {"axis": 1}, "layer_norm": {"axes": (1,), "epsilon": 1e-5}}[operator]
    graph = builder.graph({"y": builder.add(operator, x, *more, **attributes)})
    samples = {n: rng.normal(size=(4, *graph.nodes[i].type.shape)).astype("float32") for n, i in graph.inputs.items()}
    together = dict(steps_on_samples(graph, samples))[graph.outputs["y"]]
    for k in range(4):
        alone = run(graph, {name: array[k] for name, array in samples.items()})["y"]
        assert together[k].tobytes() == alone.tobytes()
