"""Proved rules in an e-graph: they match, what they equate is explained to the checker, and other uses are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.types import TensorType
from ir_semantics.scalars.terms import exp, variable
from ir_semantics.tensors.operators import fill, map_
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.claims.gate import Admission
from rewrites.claims.names import slug
from rewrites.claims.registry import entries
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, TensorRewrite, claims_of, rewrites_of, unfit
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol, check_explanation
from rewrites.egraph.pattern import TermMaker
from rewrites.egraph.rewrite import sides_of as checked_sides
from rewrites.rules.tensor.words import add, div, mul, relu, sizes, sub
from smt_encodings.claims import Equality, Status
from tests.rewrites.compiler.graph_rules.test_patterns import CUTS, PATTERNS, examples

NAMES = [
    "relu commutes with max pooling",
    "pad with zeros into convolution",
    "rows through matmul",
    "batch normalisation into a convolution",
    "average pooling without pads as the DPU divides",
    "odd elements twice",
]


KNOWN = entries()


def admitted(*names: str) -> dict[str, Admission]:
    found = {}
    for name in names:
        subject = KNOWN[slug(name)].build()
        assert isinstance(subject, TensorSubject)
        for rule in (subject.rule, subject.rule.converse) if subject.rule.needs_converse else (subject.rule,):
            of = TensorSubject(slug(rule.name), rule)
            found[of.name] = Admission(of.name, of, f"digest of {of.name}", of.words(), {})
    return found


def rewrite(name: str) -> TensorRewrite:
    return rewrites_of(admitted(name), Constants())[slug(name)]


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
    names = [slug(n) for n in PATTERNS if KNOWN[slug(n)].expected.value == "PROVED"]
    found = rewrites_of(admitted(*names), Constants())
    dropped = {"softmax-of-x-plus-a-scalar", "softmax-of-x-plus-a-number-per-row"}  # whose sides read other inputs
    assert set(names) - found.keys() == dropped
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


def quotient(*factors: str) -> TensorRule:
    """(a b + c b + ...) / b = a + c + ... + b - b, which says nothing where b is 0; the right side has a value."""
    (n,) = sizes("n")
    b, terms = input_("b", n), [input_(name, n) for name in factors]
    left = div(reduce(add, [mul(t, b) for t in terms]), b)
    right = sub(reduce(add, [*terms, b]), b)
    return TensorRule("a quotient", left, right, equality=Equality.OVER_REALS)


def given(*rules: TensorRule) -> dict[str, Admission]:
    subjects = [TensorSubject(slug(rule.name), rule) for rule in rules]
    return {s.name: Admission(s.name, s, "digest", s.words(), {}) for s in subjects}


def test_a_rule_that_holds_in_one_direction_only_is_no_rule_of_an_e_graph() -> None:
    """It was used from right to left: b/b in place of 1, where the graph has a value and b is 0."""
    rule = quotient("a", "c")
    assert decide_tensor_rule(rule).status is Status.PROVED
    assert decide_tensor_rule(rule.converse).status is Status.REFUTED
    assert rule.needs_converse and not rule.drops_input and rewrites_of(given(rule), Constants()) == {}
    assert unfit(rule, given(rule), Constants()) == (
        "its left side can have no value where its right side has one, so that it may hold in one direction only; "
        "state a-quotient-converse (TensorRule.converse) in its rule set, and prove it"
    )
    other = replace(quotient("a", "c", "d"), name="a quotient").converse
    assert slug(rule.name) not in rewrites_of(
        given(rule, other), Constants()
    )  # a converse of this name, of another rule


def test_a_rule_whose_sides_read_other_inputs_is_no_rule_of_an_e_graph() -> None:
    """What stands for c need not have a value where x has one: softmax(x + c) = softmax(x)."""
    rule = admitted("softmax of x plus a scalar")["softmax-of-x-plus-a-scalar"].subject
    assert isinstance(rule, TensorSubject) and rule.rule.drops_input
    assert rewrites_of(admitted("softmax of x plus a scalar"), Constants()) == {}


def test_rules_that_divide_rest_on_their_converse() -> None:
    name = "batch normalisation as networks have it into a convolution"
    known = admitted(name)
    rule = rewrites_of(known, Constants())[slug(name)]
    assert rule.converse is not None and claims_of(rule.claim) == (slug(name), f"{slug(name)}-converse")
    assert rewrites_of({slug(name): known[slug(name)]}, Constants()) == {}


def test_over_the_reals_nothing_is_known_of_a_graph_with_infinite_constants() -> None:
    """(x + y) M = x M + y M was used where M has an infinity: min((x + y) M, 5) became NaN."""
    known = admitted("matmul distributes over a sum", "relu commutes with max pooling")
    for value in (math.inf, math.nan):
        constants = Constants({"m": np.array([1, value], "float32"), "n": np.array([1])})
        assert list(rewrites_of(known, constants)) == ["relu-commutes-with-max-pooling"]
    assert len(rewrites_of(known, Constants({"m": np.array([1.0, 2.0])}))) == 2


def test_what_has_a_value_everywhere_needs_no_converse() -> None:
    (n,) = sizes("n")
    x = input_("x", n)

    def needs(left: Tensor) -> bool:
        return TensorRule("r", left, x, equality=Equality.OVER_REALS).needs_converse

    assert not any(map(needs, (x, add(x, x), mul(x, x), relu(x), div(x, fill(2, n)))))
    assert all(map(needs, (div(x, x), map_(exp(variable("x")), x=x), div(x, fill(0, n)), add(x, fill(-math.inf, n)))))
    assert not TensorRule("r", div(x, x), x).needs_converse  # bits: every operation has a value
