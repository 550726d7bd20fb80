"""Graphs are made cheaper by admitted rules only, compute the same, and say which certificates they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Graph
from ir_semantics.graph.run import run
from ir_semantics.graph.types import TensorType
from rewrites.claims.gate import Admission
from rewrites.claims.names import slug
from rewrites.claims.registry import entries
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, rewrites_of, weakest_of
from rewrites.egraph import (
    EGraph,
    EGraphError,
    ENode,
    Limits,
    Rule,
    Stop,
    check_graphs,
    explain_outputs,
    extract,
    from_graph,
    saturate,
    sides_of,
    to_graph,
)
from rewrites.rules.tensor.matching import RULES as MATCHING
from smt_encodings.claims import Equality, Status
from tests.rewrites.compiler.graph_rules.test_patterns import CUTS, PATTERNS

KNOWN = entries()
USED = [slug(n) for n in PATTERNS if KNOWN[slug(n)].expected is Status.PROVED and n not in CUTS]


def admitted(*left_out: str) -> dict[str, Admission]:
    found = {}
    for name in USED:
        if name not in left_out:
            subject = KNOWN[name].build()
            found[name] = Admission(name, subject, f"digest of {name}", subject.words(), {})
    return found


def computed_elements(egraph: EGraph, node: ENode) -> int:
    """A cost: the elements of results, of which inputs and constants have none, and one for each node."""
    symbol = node.symbol
    if symbol.operator in ("input", "constant"):
        return 0
    if not isinstance(symbol.type, TensorType) or symbol.operator == "broadcast":
        return 1
    return 1 + symbol.type.elements


class Optimised:
    """The cheapest equal graph by admitted rules and definitions, without the rules that make graphs longer."""

    def __init__(self, graph: Graph, rules: Mapping[str, Admission]) -> None:
        constants = Constants(graph.constants)
        longer = {slug(rule.name) for rule in MATCHING}
        taken = rewrites_of({n: a for n, a in rules.items() if n not in longer}, constants)
        rewrites = [*taken.values(), *definitions(constants).values()]
        network = from_graph(graph)
        self.stop = saturate(network.egraph, rewrites, Limits(nodes=20_000, iterations=12, seconds=30.0)).stop
        found = extract(network.egraph, network.roots, [computed_elements], 20_000)
        explanations = explain_outputs(network, found)
        self.graph, self.costs = to_graph(network, found, constants.data), found.costs
        check_graphs(graph, self.graph, explanations, sides_of(rewrites))
        self.rules: set[Rule] = {rule for e in explanations.values() for rule in e.rules()}
        self.equality = weakest_of(taken[rule.name].equality for rule in self.rules if rule.name in taken)


def same(before: Graph, after: Graph) -> None:
    draw = np.random.default_rng(3)
    inputs = {n: draw.normal(size=before.nodes[i].type.shape).astype("float32") for n, i in before.inputs.items()}
    one, two = run(before, inputs), run(after, inputs)
    assert one.keys() == two.keys()
    for name, value in one.items():
        # sums of fewer than 100 products of numbers of about 1, in another order: 100 roundings of 2^-24
        np.testing.assert_allclose(two[name], value, rtol=1e-4, atol=1e-4)


def rows(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def odd_elements_twice() -> Graph:
    b = Builder()
    x = b.input("x", rows(19))
    y = b.add("slice", b.add("slice", x, start=(1,), stop=(19,), stride=(2,)), start=(1,), stop=(9,), stride=(2,))
    return b.graph({"y": b.add("relu", y)})


def padded_convolution() -> Graph:
    b = Builder()
    x, w = b.input("x", rows(1, 2, 6, 6)), b.input("w", rows(3, 2, 3, 3))
    zero = b.constant(np.zeros((), "float32"))
    padded = b.add("pad", x, zero, before=(0, 0, 1, 1), after=(0, 0, 1, 1))
    plain = {"strides": (1, 1), "pads": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 1}
    return b.graph({"y": b.add("relu", b.add("conv", padded, w, **plain))})


def relu_before_pooling() -> Graph:
    b = Builder()
    x = b.input("x", rows(1, 2, 8, 8))
    window = {"kernel": (2, 2), "strides": (2, 2), "pads": ((0, 0), (0, 0)), "dilations": (1, 1)}
    return b.graph({"y": b.add("max_pool", b.add("relu", x), **window)})


CASES: Mapping[str, tuple[Graph, Equality, str]] = {
    "two slices are one": (odd_elements_twice(), Equality.BIT_EXACT, ""),
    "pads go into the convolution": (padded_convolution(), Equality.UP_TO_REDUCTION_ORDER, "pad"),
    "relu after pooling is cheaper": (relu_before_pooling(), Equality.BIT_EXACT, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_graph_becomes_cheaper_and_computes_the_same(case: str) -> None:
    before, equality, gone = CASES[case]
    rules = admitted()
    found = Optimised(before, rules)
    assert found.stop in (Stop.SATURATED, Stop.ITERATIONS, Stop.NODES)
    assert gone not in found.graph.operators()
    assert found.rules and found.costs < Optimised(before, {}).costs
    known = {f"digest of {n}" for n in rules} | {d.rule.certificate for d in definitions(Constants()).values()}
    assert {r.certificate for r in found.rules} <= known
    order = [Equality.BIT_EXACT, Equality.UP_TO_REDUCTION_ORDER, Equality.OVER_REALS]
    assert order.index(found.equality) >= order.index(equality) or found.equality is equality
    same(before, found.graph)


def test_without_a_certificate_a_rule_is_not_used() -> None:
    before = padded_convolution()
    whole = Optimised(before, admitted())
    (name,) = (r.name for r in whole.rules if r.name.startswith("pad-with-zeros"))
    without = Optimised(before, admitted(*(r.name for r in whole.rules)))
    assert "pad" in without.graph.operators() and name not in {r.name for r in without.rules}
    same(before, without.graph)


def test_only_the_equality_notions_that_are_wanted() -> None:
    before = padded_convolution()
    exact = {n: a for n, a in admitted().items() if a.claim.equality is Equality.BIT_EXACT}
    found = Optimised(before, exact)
    assert found.equality is Equality.BIT_EXACT and found.graph.operators() == before.operators()


def test_definitions_fold_what_they_unfold() -> None:
    b = Builder()
    x = b.input("x", rows(4, 4))
    zero = b.add("broadcast", b.constant(np.zeros((), "float32")), shape=(4, 4), axes=())
    before = b.graph({"y": b.add("maximum", x, zero)})
    found = Optimised(before, {})
    assert found.graph.operators() == {"relu": 1} and found.equality is Equality.BIT_EXACT
    assert [r.name for r in found.rules] == ["definition of relu, folded"]
    same(before, found.graph)


def test_a_definition_is_not_used_where_the_type_lacks_its_numbers() -> None:
    b = Builder()
    before = b.graph({"y": b.add("hard_swish", b.input("x", rows(3)))})  # 1/6 is no number of binary32
    assert Optimised(before, {}).graph.operators() == {"hard_swish": 1}
    with pytest.raises(EGraphError, match="1/6 must be a number of the type float32"):
        Constants().scalar(Fraction(1, 6), "float32")
    with pytest.raises(EGraphError, match="70000 must be a number of the type float16"):
        Constants().scalar(Fraction(70000), "float16")
