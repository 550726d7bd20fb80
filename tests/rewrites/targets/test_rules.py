"""Rules to accelerator operators apply only where the operator stands for the left side: wrong twins are refused."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, TensorType
from ir_semantics.graph.build import expansion
from ir_semantics.scalars.terms import variable
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.compiler.offload.costs import Fixed
from rewrites.compiler.offload.directed import Directed
from rewrites.compiler.offload.rule_sets import rules_for
from rewrites.compiler.offload.rules import AcceleratorRewrite, AcceleratorRule
from rewrites.compiler.offload.unfolding import Unfolding, Uniform
from rewrites.egraph import Bound, Computed, EGraphError, Operator, Rule, Substitution, extract, from_graph, operator
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.graphs import explain_outputs, to_graph, typing
from rewrites.egraph.pattern import Pattern, Variable, build, matches
from rewrites.egraph.rewrite import sides_of
from rewrites.egraph.saturation import saturate
from rewrites.egraph.terms import Term
from rewrites.rules.tensor.matching import TRANSPOSED_TWICE
from tests.rewrites.compiler.offload.offload_gates import EVERY, OPERATORS, gate

RULES = [rule for backend in EVERY for rule in backend.rules]
BY_NAME = {rule.name: rule for rule in RULES}


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


MEANT: dict[str, tuple[tuple[TensorType, ...], tuple[tuple[str, Hashable], ...]]] = {
    "dense layer with bias on FlexASR": ((f32(4, 4), f32(4, 4), f32(4)), (("activation", "none"),)),
    "dense layer with bias and relu on FlexASR": ((f32(3, 4), f32(5, 4), f32(5)), (("activation", "relu"),)),
    "dense layer with bias and sigmoid on FlexASR": ((f32(3, 4), f32(5, 4), f32(5)), (("activation", "sigmoid"),)),
    "dense layer with bias and tanh on FlexASR": ((f32(3, 4), f32(5, 4), f32(5)), (("activation", "tanh"),)),
    "LSTM layer on FlexASR": ((f32(3, 5), f32(8, 5), f32(8, 2), f32(8), f32(8)), ()),
    "GRU layer on FlexASR": ((f32(3, 5), f32(6, 5), f32(6, 2), f32(6), f32(6)), ()),
    "plain recurrent layer on FlexASR": ((f32(3, 5), f32(2, 5), f32(2, 2), f32(2), f32(2)), ()),
    "maximum of pairs of rows on FlexASR": ((f32(4, 3),), ()),
    "mean of pairs of rows on FlexASR": ((f32(4, 3),), ()),
    "layer normalisation on FlexASR": ((f32(4, 16), f32(16), f32(16)), (("epsilon", 0.5),)),
    "convolution without pads on HLSCNN": (
        (f32(1, 2, 6, 6), f32(3, 2, 2, 2)),
        (("stride_h", 2), ("stride_w", 1)),
    ),
    "product with transposed weights on VTA": ((f32(4, 4), f32(4, 4)), ()),
    "dense layer with bias on VTA": ((f32(4, 4), f32(4, 4), f32(4)), (("activation", "none"),)),
    "dense layer with bias and relu on VTA": ((f32(3, 4), f32(5, 4), f32(5)), (("activation", "relu"),)),
}
"""For each rule, types and attributes of its accelerator operator: the graph it stands for is the rule's left side."""


def meaning(name: str) -> Graph:
    types, attributes = MEANT[name]
    return expansion(BY_NAME[name].target, types, attributes)  # type: ignore[arg-type]


def applied(rule: AcceleratorRule, graph: Graph) -> list[Substitution[Term]]:
    """The matches of a rule in a graph, as terms."""
    network = from_graph(graph, Fixed())
    rewrite = made(rule, graph)
    found = [m for c in network.egraph.classes() for m in rewrite.matches(network.egraph, c)]
    return [m.moved(network.egraph.term) for m in found]


def made(rule: AcceleratorRule, graph: Graph) -> AcceleratorRewrite:
    return AcceleratorRewrite(Rule(rule.name, "digest"), rule, Constants(graph.constants))


def operators_of(pattern: Pattern) -> set[str]:
    """The operators in a pattern."""
    if isinstance(pattern, Variable):
        return set()
    return {pattern.operator}.union(*map(operators_of, pattern.operands))


def test_every_operator_has_a_rule() -> None:
    chained = {
        name
        for backend in EVERY
        for rule in backend.chains
        for side in (rule.left, rule.right)
        for name in operators_of(side)
    }
    assert {rule.target for rule in RULES} | chained == set(OPERATORS)
    from_states = {name for name in BY_NAME if "from given states" in name}  # test_codegen_bounds.py runs these
    assert set(MEANT) | from_states == set(BY_NAME) and len(BY_NAME) == len(RULES)


@pytest.mark.parametrize("name", MEANT)
def test_what_an_operator_stands_for_becomes_the_operator(name: str) -> None:
    graph = meaning(name)
    (found,) = applied(BY_NAME[name], graph)
    left, right = sides_of([made(BY_NAME[name], graph)])(Rule(name, "digest"), found)
    assert left.symbol.operator == BY_NAME[name].left.operator
    assert (right.symbol.operator, right.symbol.attributes) == (BY_NAME[name].target, MEANT[name][1])
    assert [str(dict(o.symbol.attributes)["name"]) for o in right.operands] == [
        f"x{i}" for i in range(len(right.operands))
    ]


def _linear(left: Operator) -> AcceleratorRule:
    right = operator("flexasr.linear", "x", "w", "b", attributes={"activation": "none"})
    return AcceleratorRule("dense layer with bias on FlexASR", left, right)


def _sum(product: Operator, axis: int = 1) -> Operator:
    return operator("add", product, operator("broadcast", "b", attributes={"axes": (axis,), "shape": Bound("shape")}))


TURNED = operator("transpose", "w", attributes={"permutation": (1, 0)})
PLAIN = {"pads": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 1}


def _conv(right: dict[str, Hashable | Computed], attributes: dict[str, Hashable | Bound]) -> AcceleratorRule:
    left = operator("conv", "x", "w", attributes=attributes)
    return AcceleratorRule(
        "convolution without pads on HLSCNN", left, operator("hlscnn.conv2d", "x", "w", attributes=right)
    )


def _conv_graph(**changes: object) -> Graph:
    b = Builder()
    x, w = (
        b.input("x0", f32(1, 2, 6, 6)),
        b.input("x1", f32(2, 2, 2, 2) if "groups" not in changes else f32(2, 1, 2, 2)),
    )
    options = {"strides": (2, 1), **PLAIN, **changes}
    return b.graph({"y": b.add("conv", x, w, **options)})  # type: ignore[arg-type]


def _dense_graph(turned: bool, axis: int) -> Graph:
    b = Builder()
    x, w, bias = b.input("x0", f32(4, 4)), b.input("x1", f32(4, 4)), b.input("x2", f32(4))
    product = b.add("matmul", x, b.add("transpose", w, permutation=(1, 0)) if turned else w)
    return b.graph({"y": b.add("add", product, b.add("broadcast", bias, axes=(axis,), shape=(4, 4)))})


def _exchanged_lstm(place: int) -> Graph:
    """What the accelerator's LSTM stands for, with the slices of two gates exchanged in one place."""
    graph = meaning("LSTM layer on FlexASR")
    concats = [i for i, n in enumerate(graph.nodes) if n.operator == "concat" and len(n.operands) == 4]
    chosen = concats[place]
    first, second, *rest = graph.nodes[chosen].operands
    nodes = list(graph.nodes)
    nodes[chosen] = replace(nodes[chosen], operands=(second, first, *rest))
    return replace(graph, nodes=tuple(nodes))


STRIDES: dict[str, Hashable | Bound] = {"strides": Bound("strides"), **PLAIN}

TWINS: dict[str, tuple[AcceleratorRule, Graph]] = {
    "weights not transposed": (_linear(_sum(operator("matmul", "x", "w"))), _dense_graph(False, 1)),
    "bias along rows": (_linear(_sum(operator("matmul", "x", TURNED), 0)), _dense_graph(True, 0)),
    "operands exchanged": (
        _linear(_sum(operator("matmul", "w", operator("transpose", "x", attributes={"permutation": (1, 0)})))),
        _dense_graph(True, 1),
    ),
    "activation forgotten": (
        AcceleratorRule(
            "dense layer with bias and relu on FlexASR",
            operator("relu", _sum(operator("matmul", "x", TURNED))),
            operator("flexasr.linear", "x", "w", "b", attributes={"activation": "none"}),
        ),
        meaning("dense layer with bias and relu on FlexASR"),
    ),
    "mean as maximum": (
        AcceleratorRule(
            "mean of pairs of rows on FlexASR",
            BY_NAME["mean of pairs of rows on FlexASR"].left,
            operator("flexasr.max_pool", "x", attributes={}),
        ),
        meaning("mean of pairs of rows on FlexASR"),
    ),
    "another epsilon": (
        AcceleratorRule(
            "layer normalisation on FlexASR",
            BY_NAME["layer normalisation on FlexASR"].left,
            operator("flexasr.layer_norm", "x", "gamma", "beta", attributes={"epsilon": 0.0}),
        ),
        meaning("layer normalisation on FlexASR"),
    ),
    "gamma and beta exchanged": (
        AcceleratorRule(
            "layer normalisation on FlexASR",
            BY_NAME["layer normalisation on FlexASR"].left,
            operator("flexasr.layer_norm", "x", "beta", "gamma", attributes={"epsilon": Bound("epsilon")}),
        ),
        meaning("layer normalisation on FlexASR"),
    ),
    "both biases exchanged": (
        AcceleratorRule(
            "LSTM layer on FlexASR",
            BY_NAME["LSTM layer on FlexASR"].left,
            operator("flexasr.lstm", "x", "w", "u", "d", "b", attributes={}),
        ),
        meaning("LSTM layer on FlexASR"),
    ),
    **{
        f"gates exchanged in {what}": (BY_NAME["LSTM layer on FlexASR"], _exchanged_lstm(place))
        for place, what in enumerate(("weights", "weights of the state", "biases", "other biases"))
    },
}  # fmt: skip
"""Rules that look right, each with a graph that its left side matches and its right side does not stand for."""


OTHER_TYPES: dict[str, tuple[AcceleratorRule, Graph]] = {
    "stride ignored": (_conv({"stride_h": 1, "stride_w": 1}, STRIDES), _conv_graph()),
    "pads ignored": (
        _conv({"stride_h": 2, "stride_w": 1}, {**STRIDES, "pads": Bound("pads")}),
        _conv_graph(pads=((1, 1), (0, 0))),
    ),
    "groups ignored": (_conv({"stride_h": 2, "stride_w": 1}, {**STRIDES, "groups": Bound("g")}), _conv_graph(groups=2)),
    "dilations ignored": (
        _conv({"stride_h": 2, "stride_w": 1}, {**STRIDES, "dilations": Bound("d")}),
        _conv_graph(dilations=(2, 1)),
    ),
}
"""Likewise, where the accelerator operator has operands or a result of another shape."""


class Unchecked(AcceleratorRewrite):
    """A rewrite that applies wherever its left side matches, as saturation without the check of definitions would."""

    def _left(self, maker, substitution):  # type: ignore[no-untyped-def]
        return build(self.claim.left, maker, typing, substitution)


def unchecked(rule: AcceleratorRule, graph: Graph) -> Unchecked:
    return Unchecked(Rule(rule.name, "digest"), rule, Constants(graph.constants))


@pytest.mark.parametrize("twin", TWINS)
def test_a_wrong_twin_applies_nowhere_and_its_explanation_is_refused(twin: str) -> None:
    rule, graph = TWINS[twin]
    assert applied(rule, graph) == []
    network = from_graph(graph, Fixed())
    careless = unchecked(rule, graph)
    saturate(network.egraph, [careless])
    found = extract(network.egraph, network.roots, [lambda e, n: int(n.symbol.operator not in OPERATORS)])
    result = to_graph(network, found, careless.constants.data)
    assert rule.target in result.operators()  # without the check, the wrong operator would be there
    with pytest.raises(EGraphError, match=f"the left side must be what {rule.target} stands for; .* has another"):
        check_graphs(graph, result, explain_outputs(network, found), sides_of([made(rule, graph)]))


@pytest.mark.parametrize("twin", OTHER_TYPES)
def test_a_wrong_twin_of_another_shape_applies_nowhere(twin: str) -> None:
    rule, graph = OTHER_TYPES[twin]
    assert applied(rule, graph) == []
    network = from_graph(graph, Fixed())
    (match,) = matches(rule.left, network.egraph, network.roots[0])
    with pytest.raises(EGraphError):
        sides_of([made(rule, graph)])(Rule(rule.name, "digest"), match.moved(network.egraph.term))


def test_rules_are_operators_on_variables_of_the_left_side() -> None:
    with pytest.raises(EGraphError, match=r"^wrong: the right side must be one accelerator operator on variables$"):
        AcceleratorRule("wrong", TURNED, operator("vta.dense", "w", TURNED, attributes={}))
    with pytest.raises(EGraphError, match=r"^wrong: the left side must have all variables of the right one$"):
        AcceleratorRule("wrong", TURNED, operator("vta.dense", "w", "x", attributes={}))


def test_operators_of_another_element_type_have_no_instance() -> None:
    b = Builder()
    x, w = b.input("x", TensorType("float64", (3, 4))), b.input("w", TensorType("float64", (5, 4)))
    graph = b.graph({"y": b.add("matmul", x, b.add("transpose", w, permutation=(1, 0)))})
    assert applied(BY_NAME["product with transposed weights on VTA"], graph) == []


def layer(state: np.ndarray) -> Graph:
    b = Builder()
    x, w = b.input("x", f32(2, 1, 3)), b.constant(np.ones((2, 3), np.float32))
    options = {"activations": (("tanh",),), "clip": 0.0, "lengths": False, "output": 0, "reverse": False}
    u, biases = b.constant(np.ones((2, 2), np.float32)), b.constant(np.ones(4, np.float32))
    return b.graph({"y": b.add("rnn", x, w, u, biases, b.constant(state), **options)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "fits"),
    [
        (np.zeros((1, 2), np.float32), True),
        (np.full((1, 2), 0.1, np.float32), True),
        (np.array([[0.0, -0.0]], np.float32), False),  # equal numbers, other bits
        (np.array([[0.0, 1.0]], np.float32), False),
    ],
)
def test_constants_of_one_number(state: np.ndarray, fits: bool) -> None:
    graph = layer(state)
    rewrite = Uniform.of(Constants(graph.constants))
    network = from_graph(graph, Fixed())
    found = [m for c in network.egraph.classes() for m in rewrite.matches(network.egraph, c)]
    assert bool(found) is fits
    for match in found:
        left, right = sides_of([rewrite])(rewrite.rule, match.moved(network.egraph.term))
        assert left.symbol.operator == "constant" and right.symbol.operator == "broadcast"
        (scalar,) = right.operands
        number = rewrite.constants.data[str(dict(scalar.symbol.attributes)["digest"])]
        np.testing.assert_array_equal(np.broadcast_to(number, (1, 2)), state)


def test_forged_constants_are_refused() -> None:
    graph = layer(np.zeros((1, 2), np.float32))
    rewrite = Uniform.of(Constants(graph.constants))
    network = from_graph(graph, Fixed())
    ((match,),) = [list(m) for c in network.egraph.classes() if (m := tuple(rewrite.matches(network.egraph, c)))]
    digest = str(dict(dict(match.values)["attributes"])["digest"])
    rewrite.constants.data[digest] = np.ones((1, 2), np.float32)  # other data under the digest
    with pytest.raises(
        EGraphError, match=r"^a constant must have elements, all with the same bits, and its own digest$"
    ):
        sides_of([rewrite])(rewrite.rule, match.moved(network.egraph.term))
    for values in ({}, {"attributes": (), "type": 3}, {"attributes": ((1, 2, 3),), "type": f32(1, 2)}):
        with pytest.raises(EGraphError, match=r"^a constant of one number, broadcast must be given the attributes"):
            sides_of([rewrite])(rewrite.rule, Substitution.of({}, values))


def test_unfolding_is_the_definition_whatever_is_asked() -> None:
    graph = layer(np.zeros((1, 2), np.float32))
    rewrite = Unfolding.of("rnn", lambda egraph, node: True, Constants(graph.constants))
    network = from_graph(graph, Fixed())
    ((match,),) = [list(m) for c in network.egraph.classes() if (m := tuple(rewrite.matches(network.egraph, c)))]
    terms = match.moved(network.egraph.term)
    left, right = sides_of([rewrite])(rewrite.rule, terms)
    assert (left.symbol.operator, right.symbol.operator) == ("rnn", "concat") and left.symbol.type == right.symbol.type
    operands = dict(terms.operands)
    for wrong in (
        Substitution.of(operands, {}),
        Substitution.of({**operands, "x9": operands["x0"]}, dict(terms.values)),
        Substitution.of(operands, {"attributes": (("clip",),)}),
    ):
        with pytest.raises(
            EGraphError, match=r"^definition of rnn, unfolded must be given the operands x0, x1, ... and"
        ):
            sides_of([rewrite])(rewrite.rule, wrong)
    with pytest.raises(EGraphError, match=r"^rnn must be well-typed"):
        sides_of([rewrite])(rewrite.rule, Substitution.of({**operands, "x1": operands["x0"]}, dict(terms.values)))


# -- what a backend may not bring in -----------------------------------------------------------------------------------


def test_a_rule_that_is_called_a_definition_is_refused() -> None:
    """Nothing is proved of definitions, so that they must be those of operators."""
    backend, constants = EVERY[0], Constants()
    right = next(d for d in definitions(constants).values() if d.name == "relu" and not d.folding)
    for wrong in (replace(right, term=variable("x")), replace(right, rule=Rule("relu is its operand", "-"))):
        other = replace(backend, definitions=lambda constants, flexible, wrong=wrong: [wrong])
        with pytest.raises(ValueError, match=r"must be a definition; it is another rule, of which nothing is proved$"):
            rules_for([other], gate(), constants)
    same = replace(backend, definitions=lambda constants, flexible: [right])
    assert right in rules_for([same], gate(), constants).rewrites


def test_a_certificate_is_not_of_another_rule_of_the_same_name() -> None:
    wrong = replace(TRANSPOSED_TWICE, right=TRANSPOSED_TWICE.left)
    other = replace(EVERY[2], exact={wrong: None})
    found = rules_for([other], gate(), Constants(), flexible=False)
    assert found.missing == {"transposed-twice": "the certificate of this name is of another rule"}
    assert "transposed-twice" not in found.claims.values()


def test_a_rule_leads_to_an_operator_of_its_backend() -> None:
    flexasr, _, vta = EVERY
    with pytest.raises(ValueError, match=r"must lead to an operator of flexasr, not to vta.dense$"):
        replace(flexasr, rules=vta.rules)


def test_one_rule_at_the_places_of_two_backends() -> None:
    """Both places count; everywhere, and from left to right, is another rewrite."""
    (place,) = EVERY[2].exact.values()
    assert place is not None
    second = replace(EVERY[2], name="second", exact={TRANSPOSED_TWICE: replace(place, operators=frozenset({"add"}))})
    (found,) = (
        r for r in rules_for([EVERY[2], second], gate(), Constants(), flexible=False).rewrites if "twice" in r.rule.name
    )
    assert isinstance(found, Directed) and len(found.places) == 2 and found.operator is None
    third = replace(EVERY[2], name="third", exact={TRANSPOSED_TWICE: None})
    names = [r.rule.name for r in rules_for([EVERY[2], third], gate(), Constants(), flexible=False).rewrites]
    assert {"transposed-twice", "transposed-twice, from right to left"} <= set(names)
