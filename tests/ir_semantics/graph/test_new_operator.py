"""A tensor operator is one definition: what it computes, costs and means to rules follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from ir_semantics.graph import OPERATORS, Builder, TensorType, run, terms_of
from ir_semantics.graph.ir import attributes_of, integer_of
from ir_semantics.graph.operator import tensor
from ir_semantics.tensors import arrays
from ir_semantics.tensors.conditions import le, lt
from ir_semantics.tensors.elements import Choice, Element, Reader
from ir_semantics.tensors.index import Index, IndexLike, Names, index, size
from ir_semantics.tensors.terms import Tensor, input_, make
from rewrites.compiler.graph_rules.patterns import _Lowering
from rewrites.compiler.offload.costs import moves_data, reduction_steps


def roll(x: Tensor, shift: IndexLike, axis: int) -> Tensor:
    """Elements moved on along an axis; what leaves it at the end comes in at the start."""
    extent = x.shape[axis]

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        behind, before = ([*at[:axis], at[axis] + by, *at[axis + 1 :]] for by in (extent - shift, -index(shift)))
        return Choice(lt(at[axis], shift), of[0](behind), of[0](before))

    return make("test.roll", [x], x.shape, rule, requires=[le(0, shift), le(shift, extent)], shift=shift, axis=axis)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    tensor("test.roll", roll, attributes={"shift": integer_of, "axis": integer_of}, doc=roll.__doc__ or "")
    yield
    del OPERATORS["test.roll"]


def test_graphs_run_it_and_are_terms_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    graph = b.graph({"y": b.add("test.roll", b.input("x", TensorType("float32", (2, 5))), shift=2, axis=1)})
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    monkeypatch.delattr(arrays._Forms, "general")
    for by_definition in (False, True):
        assert (run(graph, {"x": x}, by_definition=by_definition)["y"] == np.roll(x, 2, 1)).all()
    assert str(terms_of(graph)["y"]) == str(roll(input_("x", 2, 5), 2, 1))


def test_the_compiler_knows_what_it_costs_and_how_rules_call_it() -> None:
    matrix, attributes = TensorType("float32", (2, 5)), attributes_of({"shift": 2, "axis": 1})
    assert moves_data("test.roll", (matrix,), attributes)
    assert reduction_steps("test.roll", (matrix,), attributes, matrix) == 0
    n = size("n")
    assert _Lowering().pattern(roll(input_("x", n), n - 1, 0)).attributes == (("axis", 0), ("shift", n - 1))
