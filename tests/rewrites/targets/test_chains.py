"""Rules between accelerator operators: their sides stand for the same, wrong ones are refused; and figure 7."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ilaverify.catalogue import find_backends, joint_entries, mapping_entries
from ir_semantics.graph import Builder, Graph, TensorType, run
from rewrites.claims.gate import Admission, Gate
from rewrites.claims.names import slug
from rewrites.claims.registry import entries
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, claims_of, rewrites_of
from rewrites.compiler.offload.chains import ChainRewrite, ChainRule, chain_rewrites
from rewrites.compiler.offload.compiler import offload
from rewrites.compiler.offload.rule_sets import RuleSet, rules_for
from rewrites.compiler.offload.settings import Settings
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol, check_explanation
from rewrites.egraph.pattern import Operator, Pattern, Variable, operator
from rewrites.egraph.rewrite import sides_of
from rewrites.egraph.saturation import Stop
from rewrites.targets.flexasr.places import MEAN_WINDOW_RULES, PAIRED_MEANS, WINDOW_RULES
from rewrites.targets.flexasr.rules import CHAIN_RULES

OPERATORS = {o.name for o in find_backends(["flexasr"])[0].operators}
RULES = {rule.name: rule for rule in CHAIN_RULES}
POOLS = ("flexasr_maxpool", "flexasr_meanpool", "flexasr_float_maxpool", "flexasr_float_meanpool")
CLAIMS = [
    *(slug(rule.name) for rule in WINDOW_RULES + MEAN_WINDOW_RULES + PAIRED_MEANS),
    *POOLS,
    *dict.fromkeys(rule.mapping.name for rule in CHAIN_RULES),
    *(name for name in joint_entries() if "pool" in name),
]


def admitted(*left_out: str) -> dict[str, Admission]:
    """What a gate with all certificates would admit; the digests are made up."""
    known = {**entries(), **mapping_entries(), **joint_entries()}
    found = {}
    for name in CLAIMS:
        if name not in left_out:
            subject = known[name].build()
            found[name] = Admission(name, subject, f"digest of {name}", subject.words(), {})
            if isinstance(subject, TensorSubject) and subject.rule.needs_converse:  # proved in the tests of rules
                of = TensorSubject(slug(subject.rule.converse.name), subject.rule.converse)
                found[of.name] = Admission(of.name, of, f"digest of {of.name}", of.words(), {})
    return found


def gate(*left_out: str) -> Gate:
    """The gate that admits them."""
    return Gate(admitted(*left_out), {name: f"there is no certificate of {name}" for name in left_out})


def given(egraph: EGraph, rows: int, features: int = 3, dtype: str = "float32") -> int:
    return egraph.add(Symbol("input", (("name", "x"),), TensorType(dtype, (rows, features))))


@pytest.mark.parametrize("name", RULES)
def test_a_match_is_explained_to_the_checker(name: str) -> None:
    rule, egraph = chain_rewrites(CHAIN_RULES, admitted())[name], EGraph()
    substitution = Substitution.of({"x": given(egraph, 32)}, {})
    root, _ = rule.sides(egraph, substitution)
    (found,) = rule.matches(egraph, root)
    left, right = rule.sides(egraph, found)
    egraph.merge(left, right, rule.rule, found)
    egraph.rebuild()
    explanation = egraph.explain(root, right)
    check_explanation(explanation, egraph.term(root), egraph.term(right), sides_of([rule]))
    assert rule.rule.certificate == f"digest of {RULES[name].mapping.name}"
    with pytest.raises(EGraphError, match="there is no rule"):
        other = replace(rule, rule=Rule(name, "another certificate"))
        check_explanation(explanation, egraph.term(root), egraph.term(right), sides_of([other]))


def of(name: str, x: Pattern | str) -> Operator:
    return operator(f"flexasr.{name}", x, attributes={})


FOUR = RULES["4 max poolings on FlexASR as one program"]
WRONG = {
    "one pooling too few": replace(FOUR, right=of("max_pool_x3", "x")),
    "pooling left out": replace(RULES["max pooling on FlexASR as store, pooling and load"], right=of("load", "x")),
    "means for maxima": replace(RULES["2 max poolings on FlexASR as one program"], right=of("mean_pool_x2", "x")),
    "a pooling cancelled": ChainRule(
        "wrong", operator("flexasr.store", of("stored_max_pool", "x")), Variable("x"), FOUR.mapping
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_refused_wherever_it_is_applied(name: str) -> None:
    rule, egraph = ChainRewrite(Rule("wrong", "-"), WRONG[name]), EGraph()
    substitution = Substitution.of({"x": given(egraph, 32)}, {})
    with pytest.raises(EGraphError) as error:
        rule.sides(egraph, substitution)
    assert str(error.value) == "the sides of wrong must stand for the same; they do not"
    right = replace(rule, claim=replace(WRONG[name], right=WRONG[name].left))
    root, _ = right.sides(egraph, substitution)
    assert list(right.matches(egraph, root)) and not list(rule.matches(egraph, root))


def test_operands_that_do_not_fit_are_no_match() -> None:
    rule = ChainRewrite(Rule(FOUR.name, "-"), FOUR)
    for rows, dtype in ((8, "float32"), (16, "float64")):
        egraph = EGraph()
        x = given(egraph, rows, dtype=dtype)
        with pytest.raises(EGraphError, match="must be well-typed"):
            rule.sides(egraph, Substitution.of({"x": x}, {}))


def test_without_a_certificate_of_its_mapping_a_rule_is_left_out() -> None:
    assert set(chain_rewrites(CHAIN_RULES, admitted())) == set(RULES)
    assert set(RULES) - set(chain_rewrites(CHAIN_RULES, admitted("flexasr_reload"))) == {"store after load on FlexASR"}
    assert set(RULES) - set(chain_rewrites(CHAIN_RULES, admitted("flexasr_float_maxpool_x4"))) == {FOUR.name}
    rules = rules_for(find_backends(["flexasr"]), gate("flexasr_reload"), Constants())
    assert set(RULES) - set(rules.claims) == {"store after load on FlexASR"}
    assert rules.missing["flexasr_reload"] == "there is no certificate of flexasr_reload"
    assert not set(RULES) & set(rules_for(find_backends(["flexasr"]), gate(), Constants(), flexible=False).claims)
    assert not set(RULES) & set(rules_for(find_backends(["vta"]), gate(), Constants()).claims)


@pytest.mark.parametrize(("kind", "steps"), [("max", 2), ("max", 3), ("max", 4), ("mean", 2)])
def test_a_chain_is_as_many_poolings(kind: str, steps: int) -> None:
    x = np.random.default_rng(steps).integers(-8, 9, (3 << steps, 5)).astype(np.float32)
    builder = Builder()
    chain = builder.add(f"flexasr.{kind}_pool_x{steps}", builder.input("x", TensorType("float32", x.shape)))
    rows = x.reshape(3, 1 << steps, 5)
    wanted = rows.max(1) if kind == "max" else rows.mean(1)
    np.testing.assert_array_equal(run(builder.graph({"y": chain}), {"x": x})["y"], wanted)


# -- figure 7 ---------------------------------------------------------------------------------------------------------


def image(size: int, kernel: int, stride: int, kind: str = "max_pool", channels: int = 1) -> Graph:
    builder = Builder()
    x = builder.input("x", TensorType("float32", (1, channels, size, size)))
    more = {"count_include_pad": False} if kind == "avg_pool" else {}
    windows = {"kernel": (kernel, kernel), "strides": (stride, stride), "pads": ((0, 0), (0, 0)), "dilations": (1, 1)}
    return builder.graph({"y": builder.add(kind, x, **windows, **more)})  # type: ignore[arg-type]


def moved(graph: Graph, *left_out: str) -> tuple[Graph, int]:
    """The graph that transfers least, and how many elements that are; its explanation was checked."""
    claims = admitted(*left_out)
    names = {name for rule in MEAN_WINDOW_RULES for name in claims_of(rule)}
    means = rewrites_of({n: a for n, a in claims.items() if n in names}, Constants())
    more = RuleSet(tuple(means.values()), {n: n for n in means}, {n: r.equality for n, r in means.items()}, {})
    found = offload(graph, gate(*left_out), find_backends(["flexasr"]), Settings(costs="movement"), more=more)
    assert found.saturation.stop is Stop.SATURATED and found.optimal
    assert found.costs[0] == 0, "reductions stay on the host"
    return found.graph, found.costs[1]


def test_figure_7() -> None:
    graph = image(128, 4, 2)
    result, cost = moved(graph)
    counts = result.operators()
    assert {name: n for name, n in counts.items() if name in OPERATORS} == {"flexasr.max_pool_x4": 1}
    assert not {"max_pool", "reduce_max"} & set(counts)
    assert cost == 16 * 63 * 63 + 63 * 63
    x = np.random.default_rng(7).standard_normal((1, 1, 128, 128)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})["y"], run(graph, {"x": x})["y"])


def test_without_the_certificate_of_the_whole_chain_there_are_transfers_left() -> None:
    graph = image(16, 4, 2)
    whole, least = moved(graph)
    parts, more = moved(graph, "flexasr_float_maxpool_x4")
    kept, two = moved(graph, "flexasr_float_maxpool_x4", "flexasr_float_maxpool_x3", "flexasr_float_maxpool_x2")
    alone, most = moved(
        graph, "flexasr_float_maxpool_x4", "flexasr_float_maxpool_x3", "flexasr_float_maxpool_x2", "flexasr_reload"
    )
    assert whole.operators()["flexasr.max_pool_x4"] == 1 and "flexasr.store" not in whole.operators()
    assert {"flexasr.max_pool_x4", "flexasr.max_pool"} & set(parts.operators()) <= {"flexasr.max_pool"}
    assert kept.operators()["flexasr.store"] == kept.operators()["flexasr.load"] == 1
    assert kept.operators()["flexasr.stored_max_pool"] == 4
    assert alone.operators()["flexasr.max_pool"] == 4 and "flexasr.store" not in alone.operators()
    assert least < more < most and least < two < most


@pytest.mark.parametrize(
    ("kind", "kernel", "stride", "wanted"),
    [
        ("max_pool", 2, 2, {"flexasr.max_pool_x2": 1}),
        ("avg_pool", 2, 2, {"flexasr.mean_pool_x2": 1}),
        ("max_pool", 3, 2, {"flexasr.max_pool": 4}),
    ],
)
def test_other_windows(kind: str, kernel: int, stride: int, wanted: dict[str, int]) -> None:
    graph = image(9, kernel, stride, kind, channels=2)
    result, _ = moved(graph)
    counts = {name: n for name, n in result.operators().items() if name in OPERATORS}
    assert sum(counts.values()) <= sum(wanted.values()) and not {"max_pool", "avg_pool"} & set(result.operators())
    if kernel == 2:
        assert counts == wanted
    x = np.random.default_rng(3).integers(-8, 9, (1, 2, 9, 9)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})["y"], run(graph, {"x": x})["y"])
