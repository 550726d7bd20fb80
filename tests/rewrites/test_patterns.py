"""Rules as patterns: instances are found where they are, and both sides of them compute the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from ir_semantics.graph.build import Builder
from ir_semantics.graph.run import run
from ir_semantics.graph.types import Array, GraphError, TensorType
from ir_semantics.tensors.index import size
from rewrites.patterns import Instance, NoPattern, Pattern, build, match, pattern_of, sides_of
from rewrites.tensor_context import sizes_within
from rewrites.tensor_rule import Kind, TensorRule
from rewrites.tensor_rules import RULES, rule_named

LARGEST = (4, 6, 9, 16)


def patterned() -> dict[str, tuple[TensorRule, Pattern, Pattern]]:
    found = {}
    for rule in RULES:
        try:
            found[rule.name] = (rule, *sides_of(rule))
        except NoPattern:
            continue
    return found


PATTERNS = patterned()
CUTS = {
    "batches of a convolution in two parts",
    "batches of matmul in two parts",
    "blocks of k elements of the inner axis",
    "channels of a convolution in two parts",
    "matmul in two blocks of the inner axis",
    "matmul with zeros beyond the inner axis",
    "outputs of a convolution in two parts",
    "zeros around a kernel",
}
"""Rules whose left side does not say where the right one cuts, or how much it adds."""


def literal(builder: Builder) -> object:
    return lambda n: builder.value(n) if builder.node(n).operator == "constant" else None


def instance(rule: TensorRule, builder: Builder, sizes: dict[str, int]) -> Instance:
    """The inputs of a rule as graph inputs of these sizes."""
    shapes = {name: tuple(d.value(sizes) for d in tensor.shape) for name, tensor in rule.inputs.items()}
    return Instance(sizes, {n: builder.input(n, TensorType("float64", s)) for n, s in shapes.items()})


def examples(rule: TensorRule, count: int) -> list[dict[str, int]]:
    """Sizes of at least 2 where there are such, as different ones as may be."""
    points = next((p for n in LARGEST if len(p := sizes_within(rule.sizes, rule.premise, 400, n)) >= 3), [])
    points = points or sizes_within(rule.sizes, rule.premise, 400, LARGEST[-1])
    ordered = sorted(points, key=lambda p: (-len(set(p.values())), -min(p.values(), default=0)))
    return [dict(p) for p in ordered[:count]]


def computed(builder: Builder, outputs: dict[str, int], seed: int) -> dict[str, Array]:
    graph = builder.graph(outputs)
    draw = np.random.default_rng(seed)
    inputs = {n: draw.integers(-4, 5, graph.nodes[i].type.shape).astype("float64") for n, i in graph.inputs.items()}
    with np.errstate(all="ignore"):
        return run(graph, inputs)


def test_most_rules_have_patterns() -> None:
    right = [name for name, (rule, _, _) in PATTERNS.items() if rule.kind is not Kind.WRONG]
    assert len(right) >= 110


@pytest.mark.parametrize("name", [n for n, (rule, _, _) in PATTERNS.items() if rule.kind is not Kind.WRONG])
def test_an_instance_is_found_and_both_sides_compute_the_same(name: str) -> None:
    rule, left, right = PATTERNS[name]
    tried = 0
    for sizes in examples(rule, 3):
        builder = Builder()
        given = instance(rule, builder, sizes)
        try:
            root = build(left, given, builder, "float64")
        except GraphError:
            continue  # a size for which a term is well formed and graphs have no tensor, such as an empty window
        found = match(rule, left, builder.node, root, literal(builder))  # type: ignore[arg-type]
        if name in CUTS:
            assert found is None
            found = match(rule, left, builder.node, root, literal(builder), sizes)  # type: ignore[arg-type]
        assert found is not None, sizes
        assert found.inputs == given.inputs and found.sizes == sizes
        other = build(right, found, builder, "float64")
        values = computed(builder, {"left": root, "right": other}, tried)
        both_shapes = values["left"].shape, values["right"].shape
        assert both_shapes[0] == both_shapes[1]
        finite = np.isfinite(values["left"])
        # operations on numbers below 100 that are rounded to 53 bits: a million of them stay within this
        np.testing.assert_allclose(values["right"][finite], values["left"][finite], rtol=1e-9, atol=1e-9)
        tried += 1
    assert tried


def test_sizes_outside_the_premise_do_not_match() -> None:
    rule = rule_named("average pooling without pads as the DPU divides")
    left = pattern_of(rule.left)
    for pad, fits in ((0, True), (1, False)):
        builder = Builder()
        x = builder.input("x", TensorType("float64", (1, 2, 6, 6)))
        root = builder.add(
            "avg_pool", x, kernel=(2, 2), strides=(1, 1), pads=((pad, pad),) * 2, dilations=(1, 1),
            count_include_pad=False,
        )  # fmt: skip
        found = match(rule, left, builder.node, root, literal(builder))  # type: ignore[arg-type]
        assert (found is not None) is fits


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"strides": (1, 2)}, False),
        ({"pads": ((0, 0), (0, 1))}, False),
        ({"count_include_pad": True}, False),
        ({"dilations": (1, 2)}, False),
        ({"kernel": (2, 3)}, False),
    ],
)
def test_every_attribute_must_fit(changes: dict[str, object], fits: bool) -> None:
    rule = rule_named("average pooling without pads as the DPU divides")
    builder = Builder()
    x = builder.input("x", TensorType("float64", (1, 2, 6, 6)))
    attributes = {"kernel": (2, 2), "strides": (1, 1), "pads": ((0, 0),) * 2, "dilations": (1, 1)}
    given = {**attributes, "count_include_pad": False, **changes}
    root = builder.add("avg_pool", x, **given)  # type: ignore[arg-type]
    found = match(rule, pattern_of(rule.left), builder.node, root, literal(builder))  # type: ignore[arg-type]
    assert (found is not None) is fits


def test_one_input_at_two_places_must_be_one_node() -> None:
    rule, left, _ = PATTERNS["softmax of x plus a scalar"]
    builder = Builder()
    (sizes,) = examples(rule, 1)
    given = instance(rule, builder, sizes)
    root = build(left, given, builder, "float64")
    assert match(rule, left, builder.node, root, literal(builder)) is not None  # type: ignore[arg-type]
    numerator, denominator = builder.node(root).operands
    strange = builder.input("strange", builder.type(numerator))
    mixed = builder.add("div", builder.add("exp", strange), denominator)
    assert match(rule, left, builder.node, mixed, literal(builder)) is None  # type: ignore[arg-type]


def test_random_nodes_of_another_rule_do_not_match_by_accident() -> None:
    """What does match is an instance: both sides are computed and compared, whatever the rule was written for."""
    draw = Random(1)
    names = [n for n, (rule, _, _) in PATTERNS.items() if rule.kind is not Kind.WRONG]
    matched = 0
    for name in draw.sample(names, 25):
        rule, left, _ = PATTERNS[name]
        for sizes in examples(rule, 1):
            builder = Builder()
            try:
                root = build(left, instance(rule, builder, sizes), builder, "float64")
            except GraphError:
                continue
            for other in names:
                found = match(PATTERNS[other][0], PATTERNS[other][1], builder.node, root, literal(builder))  # type: ignore[arg-type]
                if found is not None and other != name:
                    matched += 1
                    end = build(PATTERNS[other][2], found, builder, "float64")
                    values = computed(builder, {"left": root, "right": end}, 7)
                    finite = np.isfinite(values["left"])
                    np.testing.assert_allclose(values["right"][finite], values["left"][finite], rtol=1e-9, atol=1e-9)
    assert matched


def test_a_polynomial_is_solved_for_its_unknown() -> None:
    n, m = size("n"), size("m")
    x = Pattern("input", (), (n, 2 * m + 1), name="x")
    rule = replace(rule_named("relu commutes with max pooling"))
    builder = Builder()
    for columns, fits in ((7, 3), (6, None)):
        root = builder.input(f"x{columns}", TensorType("float64", (2, columns)))
        from rewrites.patterns import _Matching

        attempt = _Matching(builder.node, lambda _: None)
        assert attempt.node(x, root) and attempt.settled(["n", "m"]) is (fits is not None)
        assert attempt.sizes.get("m") == fits
    assert rule.sizes
