"""Saturation finds what rewrites imply, stops at its limits, and graphs come out equal, cheaper and explained."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_semantics.graph import Builder, Graph, TensorType, run
from ir_semantics.graph.ir import digest_of
from rewrites.egraph import (
    Bindings,
    Bound,
    Computed,
    EGraph,
    EGraphError,
    ENode,
    Limits,
    PatternRewrite,
    Rule,
    RuleApplication,
    Saturation,
    Stop,
    Substitution,
    Symbol,
    Term,
    Variable,
    check_explanation,
    check_graphs,
    check_steps,
    explain_outputs,
    extract,
    from_graph,
    operator,
    saturate,
    sides_of,
    term,
    to_graph,
    typing,
)
from tests.rewrites.egraph.adding import add_term


def untyped(name: str, types: Sequence[Hashable], attributes: Sequence[tuple[str, Hashable]]) -> Hashable:
    return "t"


def rewrite(name, left, right, condition=None, types=untyped):  # type: ignore[no-untyped-def]
    return PatternRewrite(Rule(name, f"sha256:{name}"), left, right, types, condition)


COMMUTE = rewrite("commute", operator("plus", "x", "y"), operator("plus", "y", "x"))
ASSOCIATE = rewrite(
    "associate", operator("plus", operator("plus", "x", "y"), "z"), operator("plus", "x", operator("plus", "y", "z"))
)
GROW = rewrite("grow", operator("g", "x"), operator("g", operator("h", "x")))


def leaves(egraph: EGraph, count: int) -> list[int]:
    return [egraph.add(Symbol(f"x{i}", (), "t")) for i in range(count)]


def plus(egraph: EGraph, *operands: int) -> int:
    total = operands[0]
    for o in operands[1:]:
        total = egraph.add(Symbol("plus", (), "t"), [total, o])
    return total


def one(egraph: EGraph, node: ENode) -> int:
    return 1


# Saturation -----------------------------------------------------------------------------------------------------------


def test_all_orders_of_a_sum_are_found_and_explained() -> None:
    egraph = EGraph()
    xs = leaves(egraph, 4)
    total = plus(egraph, *xs)
    rules = [COMMUTE, ASSOCIATE]
    report = saturate(egraph, rules)
    assert report.stop is Stop.SATURATED
    # A class for each non-empty set of leaves, split into two ordered non-empty parts: 3^4 - 2 * 2^4 + 1 ways.
    assert (report.classes, report.nodes) == (2**4 - 1, 3**4 - 2 * 2**4 + 1 + 4)
    sides = sides_of(rules)
    for order in itertools.permutations(xs):
        other = plus(egraph, *order)
        assert egraph.find(other) == egraph.find(total)
        explanation = egraph.explain(total, other)
        check_explanation(explanation, egraph.term(total), egraph.term(other), sides)
        check_steps(explanation.steps(), egraph.term(total), egraph.term(other), sides)


def test_what_does_not_follow_is_not_found() -> None:
    egraph = EGraph()
    a, b, c = leaves(egraph, 3)
    left, right = plus(egraph, plus(egraph, a, b), c), plus(egraph, a, plus(egraph, b, c))
    saturate(egraph, [COMMUTE])
    assert egraph.find(left) != egraph.find(right)


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(nodes=50), Stop.NODES),
        (Limits(iterations=7), Stop.ITERATIONS),
        (Limits(seconds=0.5), Stop.SECONDS),
    ],
)
def test_limits_stop_cleanly_and_say_which(limits: Limits, stop: Stop) -> None:
    egraph = EGraph()
    (x,) = leaves(egraph, 1)
    root = egraph.add(Symbol("g", (), "t"), [x])
    ticks = itertools.count()
    report = saturate(egraph, [GROW], limits, clock=lambda: next(ticks) * 0.01)
    assert report.stop is stop
    assert egraph.size <= limits.nodes + 2
    assert report.rules["grow"].applied > 0
    assert stop.value in str(report)
    assert report.iterations <= limits.iterations
    found = extract(egraph, [root], [one])
    assert found.costs == (2,) and found.optimal
    assert egraph.rebuild() == 0


def test_an_egraph_that_is_too_large_already_is_left_alone() -> None:
    egraph = EGraph()
    plus(egraph, *leaves(egraph, 30))
    nodes = len(egraph)
    assert saturate(egraph, [COMMUTE], Limits(nodes=10)).stop is Stop.NODES
    assert len(egraph) == nodes


def test_rules_that_explode_are_banned_and_others_get_their_turn() -> None:
    egraph = EGraph()
    total = plus(egraph, *leaves(egraph, 8))
    wrapped = egraph.add(Symbol("f", (), "t"), [egraph.add(Symbol("f", (), "t"), [total])])
    cancel = rewrite("cancel", operator("f", operator("f", "x")), Variable("x"))
    report = saturate(egraph, [COMMUTE, ASSOCIATE, cancel], Limits(iterations=4, matches=10, ban=2))
    assert report.rules["associate"].bans > 0
    assert report.rules["cancel"].applied == 1 and report.rules["cancel"].bans == 0
    assert egraph.find(wrapped) == egraph.find(total)
    assert "banned" in str(report)


def test_bans_end_so_that_saturation_is_complete() -> None:
    reports = []
    for matches in (1, 7, 10_000):
        egraph = EGraph()
        plus(egraph, *leaves(egraph, 5))
        reports.append(saturate(egraph, [COMMUTE, ASSOCIATE], Limits(iterations=200, matches=matches)))
    assert {(r.stop, r.nodes, r.classes) for r in reports} == {(Stop.SATURATED, 3**5 - 2 * 2**5 + 1 + 5, 2**5 - 1)}
    assert [any(s.bans for s in r.rules.values()) for r in reports] == [True, True, False]


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(EGraphError, match="rewrites must have different names; give each rule once"):
        saturate(EGraph(), [GROW, GROW])
    with pytest.raises(EGraphError, match="rules must have different names; grow occurs twice"):
        sides_of([GROW, dataclasses.replace(GROW, rule=Rule("grow", "sha256:other"))])


# Patterns -------------------------------------------------------------------------------------------------------------


def attributed(value: Hashable, inner: int | None = None) -> tuple[Symbol, list[int]]:
    return Symbol("op", (("k", value),), "t"), [] if inner is None else [inner]


def test_a_variable_that_occurs_twice_is_one_class() -> None:
    egraph = EGraph()
    a, b = leaves(egraph, 2)
    different, same = plus(egraph, a, b), plus(egraph, a, a)
    rule = rewrite("double", operator("plus", "x", "x"), operator("twice", "x"))
    assert [list(rule.matches(egraph, n)) for n in (different, same)] == [[], [Substitution.of({"x": a}, {})]]
    egraph.merge(a, b, Rule("axiom", ""), Substitution.of({}, {}))
    egraph.rebuild()
    assert len(list(rule.matches(egraph, different))) == 1


def test_attributes_are_matched_by_value_variable_and_predicate() -> None:
    egraph = EGraph()
    numbers = {value: egraph.add(*attributed(value)) for value in (0.0, 1, 5)}
    negative_zero = egraph.add(*attributed(-0.0))

    def matched(pattern):  # type: ignore[no-untyped-def]
        rule = rewrite("r", operator("op", attributes=pattern), operator("other"))
        return [n for n in (*numbers.values(), negative_zero) if list(rule.matches(egraph, n))]

    assert matched({"k": 0.0}) == [numbers[0.0]]
    assert matched({"k": True}) == []
    assert matched({"k": Bound("v")}) == [*numbers.values(), negative_zero]
    assert matched({"k": Bound("v", lambda v: v == 5)}) == [numbers[5]]
    assert matched(Bound("all")) == [*numbers.values(), negative_zero]
    assert matched({}) == [] and matched({"k": 1, "l": 2}) == []


def test_substitutions_outside_of_a_rule_are_refused() -> None:
    rule = rewrite(
        "shrink",
        operator("op", "x", attributes={"k": Bound("v", lambda v: isinstance(v, int) and v > 0)}),
        operator("op", "x", attributes={"k": Computed(lambda b: int(str(b.values["v"])) - 1)}),
        lambda b: b.values["v"] != 3,
    )
    sides = sides_of([rule])
    x = term(Symbol("x", (), "t"))

    def op(value: int) -> Term:
        return term(Symbol("op", (("k", value),), "t"), [x])

    assert sides(rule.rule, Substitution.of({"x": x}, {"v": 2})) == (op(2), op(1))
    with pytest.raises(EGraphError, match="v must be as its pattern says, not 0"):
        sides(rule.rule, Substitution.of({"x": x}, {"v": 0}))
    with pytest.raises(EGraphError, match="shrink: the side condition must hold, and it does not"):
        sides(rule.rule, Substitution.of({"x": x}, {"v": 3}))
    with pytest.raises(EGraphError, match="a substitution must have a value for v; it has none"):
        sides(rule.rule, Substitution.of({"x": x}, {}))
    with pytest.raises(EGraphError, match="a substitution must have an operand for x; it has none"):
        sides(rule.rule, Substitution.of({}, {"v": 2}))
    with pytest.raises(EGraphError, match="there is no rule shrink with the certificate sha256:old"):
        sides(Rule("shrink", "sha256:old"), Substitution.of({"x": x}, {"v": 2}))
    egraph = EGraph()
    leaf = add_term(egraph, x)
    tops = [egraph.add(*attributed(v, leaf)) for v in (0, 2, 3)]
    assert [len(list(rule.matches(egraph, t))) for t in tops] == [0, 1, 0]


def test_rules_that_cannot_be_built_are_refused() -> None:
    with pytest.raises(EGraphError, match="r: the left side must have all variables of the right, also v, y"):
        rewrite("r", operator("f", "x"), operator("f", "y", attributes={"k": Bound("v")}))
    with pytest.raises(EGraphError, match="r: a left side must not compute attributes; use a condition"):
        rewrite("r", operator("f", attributes={"k": Computed(lambda b: 1)}), operator("f"))


# Graphs of the tensor IR ----------------------------------------------------------------------------------------------


def permutation(bindings: Bindings, name: str) -> tuple[int, ...]:
    value = bindings.values[name]
    assert isinstance(value, tuple)
    return value


def ir_rule(name, left, right, condition=None):  # type: ignore[no-untyped-def]
    return rewrite(name, left, right, condition, typing)


P, Q = {"permutation": Bound("p")}, {"permutation": Bound("q")}
RULES = [
    ir_rule("relu_relu", operator("relu", operator("relu", "x")), operator("relu", "x")),
    ir_rule("add_commutes", operator("add", "x", "y"), operator("add", "y", "x")),
    ir_rule(
        "transposes_compose",
        operator("transpose", operator("transpose", "x", attributes=P), attributes=Q),
        operator(
            "transpose",
            "x",
            attributes={"permutation": Computed(lambda b: tuple(permutation(b, "p")[i] for i in permutation(b, "q")))},
        ),
    ),
    ir_rule(
        "transpose_nothing",
        operator("transpose", "x", attributes=P),
        Variable("x"),
        lambda b: permutation(b, "p") == tuple(range(len(permutation(b, "p")))),
    ),
    ir_rule(
        "relu_transpose",
        operator("relu", operator("transpose", "x", attributes=P)),
        operator("transpose", operator("relu", "x"), attributes=P),
    ),
    ir_rule(
        "add_transpose",
        operator("add", operator("transpose", "x", attributes=P), operator("transpose", "y", attributes=P)),
        operator("transpose", operator("add", "x", "y"), attributes=P),
    ),
]


def moved(egraph: EGraph, node: ENode) -> int:
    """Elements that an operator writes; inputs and constants are there already."""
    of = node.symbol.type
    assert isinstance(of, TensorType)
    return 0 if node.symbol.operator in ("input", "constant") else of.elements


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs over cubes, with transposes, sharing, constants, and an input that may stay unused."""
    b = Builder()
    cube = TensorType("float32", (2, 2, 2))
    values = [b.input("x", cube), b.input("unused", cube)]
    values.append(b.constant(np.arange(8, dtype=np.float32).reshape(2, 2, 2) - 3))
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["relu", "add", "transpose", "transpose"]))
        pick = st.sampled_from(values[-4:])
        b.origin = f"n{len(values)}"
        if kind == "add":
            values.append(b.add("add", draw(pick), draw(pick)))
        elif kind == "relu":
            values.append(b.add("relu", draw(pick)))
        else:
            values.append(b.add("transpose", draw(pick), permutation=draw(st.permutations([0, 1, 2]))))
    # Outputs that are computed from constants only become constants here.
    return b.graph({"last": values[-1], "other": draw(st.sampled_from(values))})


SMALL = Limits(iterations=6, nodes=2000)


def rewritten(graph: Graph, limits: Limits = SMALL) -> tuple[Graph, Saturation]:
    network = from_graph(graph)
    report = saturate(network.egraph, RULES, limits)
    extraction = extract(network.egraph, network.roots, [moved, one])
    result = to_graph(network, extraction)
    check_graphs(graph, result, explain_outputs(network, extraction), sides_of(RULES))
    return result, report


@settings(max_examples=40)
@given(graphs())
def test_a_rewritten_graph_computes_the_same_for_less(graph: Graph) -> None:
    result, _ = rewritten(graph)
    x = np.array([-2.0, 1, 3, -4, 0.5, 6, -7, 8], dtype=np.float32).reshape(2, 2, 2)
    inputs = {"x": x, "unused": x * 3}
    before, after = run(graph, inputs), run(result, inputs)
    assert list(result.inputs) == list(graph.inputs) and list(result.outputs) == list(graph.outputs)
    for name, value in before.items():
        assert value.tobytes() == after[name].tobytes()

    def cost(g: Graph) -> int:
        return sum(n.type.elements for n in g.nodes if n.operator not in ("input", "constant"))

    assert cost(result) <= cost(graph)
    assert set(result.constants) <= set(graph.constants)


@settings(max_examples=40)
@given(graphs())
def test_a_graph_comes_out_as_it_went_in_without_rules(graph: Graph) -> None:
    network = from_graph(graph)
    result = to_graph(network, extract(network.egraph, network.roots, [one]))
    again = from_graph(result)
    assert [network.egraph.term(n) for n in network.roots] == [again.egraph.term(n) for n in again.roots]


def chain(length: int) -> Graph:
    """x = x + relu(transpose(transpose(relu(x)))), many times."""
    b = Builder()
    x = b.input("x", TensorType("float32", (2, 3)))
    for i in range(length):
        b.origin = f"block{i}"
        inner = b.add("transpose", b.add("relu", x), permutation=(1, 0))
        x = b.add("add", x, b.add("relu", b.add("transpose", inner, permutation=(1, 0))))
    return b.graph({"y": x})


def test_a_residual_network_loses_what_is_superfluous() -> None:
    result, report = rewritten(chain(60), Limits())
    assert report.stop is Stop.SATURATED
    assert result.operators() == {"add": 60, "relu": 60}
    assert set(result.origins) == {"", *(f"block{i}" for i in range(60))}


def attack(graph: Graph, **changes: object) -> Graph:
    return dataclasses.replace(graph, **changes)  # type: ignore[arg-type]


def test_graphs_that_were_tampered_with_are_refused() -> None:
    b = Builder()
    x, y = b.input("x", TensorType("float32", (2, 3))), b.input("y", TensorType("float32", (2, 3)))
    c = b.constant(np.ones((2, 3), dtype=np.float32))
    r = b.add("relu", b.add("relu", b.add("add", x, c)))
    graph = b.graph({"r": r, "s": b.add("relu", b.add("relu", y))})
    network = from_graph(graph)
    saturate(network.egraph, RULES)
    extraction = extract(network.egraph, network.roots, [one])
    result, explanations = to_graph(network, extraction), explain_outputs(network, extraction)
    sides = sides_of(RULES)
    check_graphs(graph, result, explanations, sides)
    digest = next(iter(result.constants))
    swapped = dict(zip(result.outputs, reversed(result.outputs.values()), strict=True))
    place = result.outputs["r"]
    negated = [dataclasses.replace(n, operator="abs") if i == place else n for i, n in enumerate(result.nodes)]
    looped = [dataclasses.replace(n, operands=(place,)) if i == place else n for i, n in enumerate(result.nodes)]
    for wrong, message in (
        (attack(result, outputs=swapped), "output r: an explanation must be of the two terms in question"),
        (attack(result, outputs={"r": place}), "the outputs must stay r, s, each with an explanation"),
        (attack(result, nodes=tuple(negated)), "output r: an explanation must be of the two terms in question"),
        (attack(result, nodes=tuple(looped)), f"the operands of node {place} must be earlier nodes, not"),
        (attack(result, inputs={"x": result.inputs["x"]}), "the inputs must stay x, y; they are x"),
        (attack(result, inputs={"x": result.inputs["y"], "y": result.inputs["x"]}), "the input x must stay what it is"),
        (attack(result, constants={digest: np.zeros((2, 3), np.float32)}), "must have that digest; it has another one"),
    ):
        with pytest.raises(EGraphError, match=message):
            check_graphs(graph, wrong, explanations, sides)
    with pytest.raises(EGraphError, match="the rule relu_relu must apply; there is no rule relu_relu"):
        check_graphs(graph, result, explanations, sides_of(RULES[1:]))


def test_constants_that_rules_bring_in_must_be_given() -> None:
    zero = np.zeros((2,), dtype=np.float32)
    of = TensorType("float32", (2,))
    constant = operator("constant", attributes={"digest": digest_of(zero)}, type=of)
    rule = ir_rule("sub_self", operator("sub", "x", "x"), constant)
    b = Builder()
    x = b.input("x", of)
    network = from_graph(b.graph({"y": b.add("sub", x, x)}))
    saturate(network.egraph, [rule])
    extraction = extract(network.egraph, network.roots, [one])
    with pytest.raises(EGraphError, match="the data of each constant must be given; those of"):
        to_graph(network, extraction)
    with pytest.raises(EGraphError, match="that digest; they are others"):
        to_graph(network, extraction, {digest_of(zero): zero + 1})
    result = to_graph(network, extraction, {digest_of(zero): zero})
    assert [n.operator for n in result.nodes] == ["input", "constant"]
    assert run(result, {"x": zero + 5})["y"].tolist() == [0, 0]
    check_graphs(network.graph, result, explain_outputs(network, extraction), sides_of([rule]))


def test_rules_with_wrong_types_are_found() -> None:
    of = TensorType("float32", (2, 3))
    b = Builder()
    graph = b.graph({"y": b.add("relu", b.input("x", of))})
    turning = ir_rule("turn", operator("relu", "x"), operator("transpose", "x", attributes={"permutation": (1, 0)}))
    with pytest.raises(EGraphError, match=r"the rule turn equates float32\[2, 3\] \(relu\) and float32\[3, 2\]"):
        saturate(from_graph(graph).egraph, [turning])
    claimed = operator("transpose", "x", attributes={"permutation": (1, 0)}, type=of)
    network = from_graph(graph)
    saturate(network.egraph, [ir_rule("lie", operator("relu", "x"), claimed)])
    extraction = extract(network.egraph, network.roots, [lambda _, n: int(n.symbol.operator == "relu")])
    with pytest.raises(EGraphError, match=r"transpose must have the type float32\[3, 2\], not float32\[2, 3\]"):
        to_graph(network, extraction)
    with pytest.raises(EGraphError, match="add must be well-typed; add must be given 2 operands, not 1"):
        typing("add", [of], ())


class Handwritten:
    """A rewrite that is code: relu(x) is relu of any transposed relu'd x, turned back; it matches any operator."""

    rule = Rule("nested", "sha256:nested")
    operator = None

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        for n in egraph.nodes(number):
            if n.symbol.operator == "relu":
                yield Substitution.of({"x": n.operands[0]}, {})

    def sides(self, maker, substitution):  # type: ignore[no-untyped-def]
        ((_, x),) = substitution.operands
        symbol = Symbol("relu", (), maker.type_of(x))
        left = maker.add(symbol, [x])
        return left, maker.add(symbol, [left])


def test_rewrites_can_be_code() -> None:
    b = Builder()
    graph = b.graph({"y": b.add("relu", b.input("x", TensorType("float32", (2,))))})
    network = from_graph(graph)
    report = saturate(network.egraph, [Handwritten()])
    assert report.stop is Stop.SATURATED
    (y,) = network.roots
    twice = network.egraph.add(network.egraph.symbol(y), [y])
    explanation = network.egraph.explain(y, twice)
    check_explanation(explanation, network.egraph.term(y), network.egraph.term(twice), sides_of([Handwritten()]))
    assert any(isinstance(line.reason, RuleApplication) for line in explanation.lines)


PROGRAM = """
from tests.rewrites.egraph.test_saturation import chain, rewritten
result, report = rewritten(chain(8))
print(result, report, sep="\\n")
"""


def test_nothing_depends_on_the_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert "add" in outputs.pop()
