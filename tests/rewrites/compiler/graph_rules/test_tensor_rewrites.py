"""Proved rules in an e-graph: they match, what they equate is explained to the checker, and other uses are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ir_semantics.graph.types import TensorType
from rewrites.claims.gate import Admission
from rewrites.claims.registry import entries, slug
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, TensorRewrite, rewrites_of
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol, check_explanation
from rewrites.egraph.pattern import TermMaker
from rewrites.egraph.rewrite import sides_of as checked_sides
from tests.rewrites.compiler.graph_rules.test_patterns import CUTS, PATTERNS, examples

NAMES = [
    "relu commutes with max pooling",
    "pad with zeros into convolution",
    "rows through matmul",
    "softmax of x plus a scalar",
    "batch normalisation into a convolution",
    "average pooling without pads as the DPU divides",
    "odd elements twice",
]


def admitted(*names: str) -> dict[str, Admission]:
    found = {}
    for name in names:
        subject = entries()[slug(name)].build()
        found[subject.name] = Admission(subject.name, subject, f"digest of {subject.name}", subject.words())
    return found


def rewrite(name: str) -> TensorRewrite:
    (found,) = rewrites_of(admitted(name), Constants()).values()
    return found


def inputs_of(rule: TensorRewrite, egraph: EGraph, sizes: dict[str, int], dtype: str = "float32") -> dict[str, int]:
    found = {}
    for name, tensor in rule.claim.inputs.items():
        shape = tuple(d.value(sizes) for d in tensor.shape)
        found[name] = egraph.add(Symbol("input", (("name", name),), TensorType(dtype, shape)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_match_is_explained_to_the_checker(name: str) -> None:
    rule, egraph = rewrite(name), EGraph()
    (sizes,) = examples(rule.claim, 1)
    given = Substitution.of(inputs_of(rule, egraph, sizes), sizes)
    root, _ = rule.sides(egraph, given)
    found = list(rule.matches(egraph, root))
    assert [(dict(f.operands), dict(f.values)) for f in found] == [(dict(given.operands), sizes)]
    left, right = rule.sides(egraph, found[0])
    assert left == root
    egraph.merge(left, right, rule.rule, found[0])
    egraph.rebuild()
    explanation = egraph.explain(root, right)
    check_explanation(explanation, egraph.term(root), egraph.term(right), checked_sides([rule]))
    assert explanation.rules() == {rule.rule: 1}
    other = replace(rule, rule=Rule(rule.rule.name, "another certificate"))
    with pytest.raises(EGraphError, match="there is no rule"):
        check_explanation(explanation, egraph.term(root), egraph.term(right), checked_sides([other]))


def test_rules_work_together_on_what_others_made() -> None:
    """relu goes in and out of a pooling whose operand is equal to something else by another rule."""
    rule, egraph = rewrite("relu commutes with max pooling"), EGraph()
    (sizes,) = examples(rule.claim, 1)
    inputs = inputs_of(rule, egraph, sizes)
    (name,) = inputs
    hidden = egraph.add(Symbol("input", (("name", "hidden"),), egraph.type_of(inputs[name])))
    egraph.merge(hidden, inputs[name], Rule("given", "-"), Substitution.of({}, {}))
    egraph.rebuild()
    root, _ = rule.sides(egraph, Substitution.of({name: hidden}, sizes))
    found = list(rule.matches(egraph, root))
    assert len(found) == 1 and egraph.find(dict(found[0].operands)[name]) == egraph.find(inputs[name])


def refusals(rule: TensorRewrite, sizes: dict[str, int]) -> dict[str, Substitution[Any]]:
    egraph = EGraph()
    inputs = inputs_of(rule, egraph, sizes)
    size, name = next(iter(sizes)), next(iter(inputs))
    strange = egraph.add(Symbol("input", (("name", "strange"),), TensorType("float32", (77,))))
    return {
        "sizes must satisfy the premise": Substitution.of(inputs, {**sizes, size: -1}),
        "sizes must satisfy": Substitution.of(inputs, {**sizes, "more": 1}),
        "sizes must": Substitution.of(inputs, {**sizes, size: str(sizes[size])}),
        "must be given its inputs": Substitution.of({**inputs, "more": strange}, sizes),
        "must have the shape": Substitution.of({**inputs, name: strange}, sizes),
    }


@pytest.mark.parametrize("message", list(refusals(rewrite(NAMES[0]), examples(rewrite(NAMES[0]).claim, 1)[0])))
def test_what_is_no_instance_is_refused(message: str) -> None:
    rule, egraph = rewrite(NAMES[0]), EGraph()
    (sizes,) = examples(rule.claim, 1)
    inputs_of(rule, egraph, sizes)
    egraph.add(Symbol("input", (("name", "strange"),), TensorType("float32", (77,))))
    with pytest.raises(EGraphError, match=message):
        rule.sides(egraph, refusals(rule, sizes)[message])


def test_integers_and_mixed_types_are_refused() -> None:
    rule = rewrite("rows through matmul")
    (sizes,) = examples(rule.claim, 1)
    egraph = EGraph()
    inputs = inputs_of(rule, egraph, sizes, "int8")
    with pytest.raises(EGraphError, match="is about numbers that do not wrap, and not about int8"):
        rule.sides(egraph, Substitution.of(inputs, sizes))
    mixed = inputs | {next(iter(inputs)): inputs_of(rule, egraph, sizes)[next(iter(inputs))]}
    with pytest.raises(EGraphError, match="elements of one type"):
        rule.sides(egraph, Substitution.of(mixed, sizes))


def test_a_literal_that_the_type_does_not_have_is_refused() -> None:
    from fractions import Fraction

    with pytest.raises(EGraphError, match="1/3 must be a number of the type float16"):
        Constants().scalar(Fraction(1, 3), "float16")


def test_every_admitted_rule_with_a_pattern_is_taken() -> None:
    names = [slug(n) for n in PATTERNS if entries()[slug(n)].expected.value == "PROVED"]
    assert len(rewrites_of(admitted(*names), Constants())) == len(names)
    assert all(isinstance(a.subject, TensorSubject) for a in admitted(*names).values())


def test_terms_are_built_as_in_the_e_graph() -> None:
    for name in NAMES:
        rule, egraph, maker = rewrite(name), EGraph(), TermMaker()
        (sizes,) = examples(rule.claim, 1)
        inputs = inputs_of(rule, egraph, sizes)
        numbers = rule.sides(egraph, Substitution.of(inputs, sizes))
        terms = rule.sides(maker, Substitution.of({n: egraph.term(i) for n, i in inputs.items()}, sizes))
        assert tuple(map(egraph.term, numbers)) == terms
        assert name not in CUTS
