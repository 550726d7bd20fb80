"""Every rule on random operands: weighted differences of results are those of operands, up to float64's roundings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_semantics.graph import Builder, TensorType
from rewrites.compiler.composition import differences
from rewrites.compiler.composition.differences import Sides, Unbounded, difference

ROWS = 3
WINDOWS = {"strides": (1, 2), "pads": ((1, 0), (0, 1)), "dilations": (1, 1)}
INDICES = np.array([2, 0, 2])
CASES: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "broadcast": ("broadcast", [(3,)], {"shape": (2, 3, 4), "axes": (1,)}),
    "transpose": ("transpose", [(2, 3, 4)], {"permutation": (2, 0, 1)}),
    "slice": ("slice", [(5, 4)], {"start": (1, 0), "stop": (5, 4), "stride": (2, 1)}),
    "concat": ("concat", [(2, 3), (2, 1)], {"axis": 1}),
    "pad": ("pad", [(2, 3), ()], {"before": (1, 0), "after": (0, 2)}),
    "reverse": ("reverse", [(2, 3)], {"axes": (1,)}),
    "patches": ("patches", [(1, 2, 4, 5)], {**WINDOWS, "kernel": (2, 2)}),
    "reduce_sum": ("reduce_sum", [(2, 3, 4)], {"axes": (0, 2)}),
    "mean": ("mean", [(2, 3, 4)], {"axes": (1,)}),
    "cumsum": ("cumsum", [(2, 5)], {"axis": 1}),
    "matmul": ("matmul", [(2, 3, 4), (2, 4, 5)], {}),
    "conv": ("conv", [(2, 4, 4, 5), (6, 2, 2, 3)], {**WINDOWS, "groups": 2}),
    "reduce_max": ("reduce_max", [(2, 3, 4)], {"axes": (0, 2)}),
    "reduce_min": ("reduce_min", [(3, 4)], {"axes": (1,)}),
    "max_pool": ("max_pool", [(1, 2, 5, 5)], {**WINDOWS, "kernel": (3, 2)}),
    "avg_pool": ("avg_pool", [(1, 2, 5, 5)], {**WINDOWS, "kernel": (3, 2), "count_include_pad": False}),
    "avg_pool with pads": ("avg_pool", [(1, 2, 5, 5)], {**WINDOWS, "kernel": (3, 2), "count_include_pad": True}),
    "mul": ("mul", [(4, 3), (4, 3)], {}),
    "div": ("div", [(4, 3), (4, 3)], {}),
    "maximum": ("maximum", [(4, 3), (4, 3)], {}),
    "relu": ("relu", [(4, 5)], {}),
    "sigmoid": ("sigmoid", [(4, 5)], {}),
    "softmax": ("softmax", [(3, 4)], {"axis": 1}),
    "layer_norm": ("layer_norm", [(3, 4), (4,), (4,)], {"axes": (1,), "epsilon": 1e-5}),
    "lstm": ("flexasr.lstm", [(3, 2), (8, 2), (8, 2), (8,), (8,)], {}),
}
"""An operator of each rule, with shapes of operands and attributes."""


def sides(name: str, seed: int, apart: float) -> Sides:
    """The operator on operands of both sides, some elements of which are the same."""
    operator, shapes, attributes = CASES[name]
    builder, draw = Builder(), np.random.default_rng(seed)
    operands = [builder.input(f"x{k}", TensorType("float32", shape)) for k, shape in enumerate(shapes)]
    node = builder.node(builder.add(operator, *operands, **attributes))
    actual = [draw.normal(size=shape) for shape in shapes]
    moved = [a + apart * draw.normal(size=a.shape) * draw.integers(0, 2, a.shape) for a in actual]
    return Sides(node, [builder.type(o) for o in operands], actual, moved)


def missed(name: str, seed: int, apart: float) -> bool:
    """Whether the weighted differences of results and of operands are farther apart than float64 may be off."""
    of = sides(name, seed, apart)
    made = difference(of)
    assert np.allclose(made.actual, of.run(of.actual)) and np.allclose(made.reference, of.run(of.reference))
    weights = np.random.default_rng(seed).normal(size=(ROWS, *made.actual.shape))
    after = (weights * (made.actual - made.reference)).reshape(ROWS, -1).sum(axis=1)
    before = np.zeros(ROWS)
    for part, a, r in zip(made.pull(weights), of.actual, of.reference, strict=True):
        if part is not None:
            before = before + (part * (a - r)).reshape(ROWS, -1).sum(axis=1)
    return bool((np.abs(after - before) > 2.0**-40 * (1 + np.abs(after))).any())


@pytest.mark.parametrize("name", CASES)
def test_differences_are_weighted_alike_in_front_of_an_operator_and_behind_it(name: str) -> None:
    assert not any(missed(name, seed, apart) for seed in range(3) for apart in (1.0, 1e-3))


def test_every_rule_is_tested() -> None:
    assert {operator for operator, *_ in CASES.values()} >= differences._RULES.keys() - {
        "reshape", "gather", "gather_elements",
    }  # fmt: skip


def test_what_is_gathered_goes_back_to_where_it_was() -> None:
    builder = Builder()
    x = builder.input("x", TensorType("float32", (3, 2)))
    at = builder.constant(INDICES)
    node = builder.node(builder.add("gather", x, at, axis=0))
    types = [builder.type(x), builder.type(at)]
    of = Sides(node, types, [np.ones((3, 2)), INDICES], [np.zeros((3, 2)), INDICES])
    pulled, none = difference(of).pull(np.ones((1, 3, 2)))
    assert none is None and pulled is not None and pulled.tolist() == [[[1, 1], [0, 0], [2, 2]]]


def test_what_is_chosen_otherwise_has_no_bound() -> None:
    builder = Builder()
    x = builder.input("x", TensorType("float32", (3, 2)))
    at = builder.input("at", TensorType("int64", (3,)))
    node = builder.node(builder.add("gather", x, at, axis=0))
    one, zeros = np.ones((3, 2)), np.zeros(3, np.int64)
    with pytest.raises(Unbounded, match="operand 1 of gather is no real number, and differs from the reference's"):
        difference(Sides(node, [builder.type(x), builder.type(at)], [one, zeros], [one, zeros + 1]))


def test_the_test_of_rules_fails_where_a_rule_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "_RULES", {**differences._RULES, "reduce_max": differences._summed})
    assert missed("reduce_max", 0, 1.0)
