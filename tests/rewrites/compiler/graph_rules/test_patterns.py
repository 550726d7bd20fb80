"""Rules as patterns: instances are found where they are, and both sides of them compute the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import numpy as np
import pytest

from chc.tensor_rules.rule import Kind, TensorRule
from chc.tensor_rules.sizes import sizes_within
from ir_semantics.graph.build import Builder
from ir_semantics.graph.operator import OPERATORS, Operator
from ir_semantics.graph.run import run
from ir_semantics.graph.types import Array, GraphError, TensorType
from ir_semantics.scalars.terms import variable
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import map_, number
from ir_semantics.tensors.terms import Tensor, input_, make
from rewrites.compiler.graph_rules.patterns import (
    Found,
    Instance,
    NoPattern,
    Pattern,
    build,
    fits,
    instances,
    pattern_of,
    sides_of,
)
from rewrites.rules.tensor.catalogue import RULES
from tests.rewrites.rules.named import rule_named

LARGEST = (4, 6, 9, 16)


def test_a_term_with_the_name_of_an_operator_and_other_elements_has_no_pattern() -> None:
    """The rule is proved about the term; what is built is the operator."""
    n = size("n")
    x = input_("v", n, n)
    flipped = make("transpose", (x,), (n, n), map_(variable("x"), x=x).rule, permutation=[1, 0])
    with pytest.raises(NoPattern, match=r"^the operator transpose of graphs has other elements than the rule's$"):
        sides_of(TensorRule("flipped", flipped, x))


def test_an_operator_of_a_package_is_at_sizes_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def term(of: Sequence[Tensor], attributes: object) -> Tensor:
        few = of[0].shape[0].constant == 2
        return map_(variable("x") if few else -variable("x"), x=of[0])

    operator = Operator(
        "own.negated", "", range(1, 2), frozenset({"float"}), lambda types, _: types[0].dtype, term=term
    )
    monkeypatch.setitem(OPERATORS, "own.negated", operator)
    n = size("n")
    x = input_("v", n)
    plain = map_(-variable("x"), x=x)
    negated = make("own.negated", (x,), (n,), plain.rule)
    rule = TensorRule("negated", plain, negated)
    sides_of(rule)
    assert fits(rule, {"n": 3}) and not fits(rule, {"n": 2})


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
    "a box of a dense layer",
    "a box of a product of matrices",
    "a box of relu of a dense layer",
    "a box of the hyperbolic tangent of a dense layer",
    "a box of the logistic function of a dense layer",
    "average pooling of whole images as their means, converse",
    "batches of matmul in two parts",
    "blocks of k elements of the inner axis",
    "channels of a convolution in two parts",
    "convolution as windows times filters",
    "convolution with bias as windows times filters with bias",
    "groups of a convolution in two parts",
    "matmul in two blocks of the inner axis",
    "matmul with zeros beyond the inner axis",
    "means of rows in two parts",
    "zeros around a kernel",
}
"""Rules whose left side does not say where the right one cuts, how much it adds, its strides, or what is left over."""


class View:
    """A graph under construction as a place where instances are looked for."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def nodes(self, number: int) -> Iterator[Found]:
        node = self.builder.node(number)
        scalar = self.builder.value(number) if node.operator == "constant" else None
        yield Found(node.operator, node.operands, node.attributes, node.type, scalar)

    def same(self, one: int, other: int) -> bool:
        return one == other


def match(
    rule: TensorRule, left: Pattern, builder: Builder, root: int, chosen: Mapping[str, int] | None = None
) -> Instance[int] | None:
    return next(instances(rule, left, View(builder), root, chosen), None)


def made(pattern: Pattern, given: Instance[int], builder: Builder) -> int:
    return build(
        pattern,
        given,
        lambda operator, operands, attributes: builder.add(operator, *operands, **attributes),
        lambda value: builder.constant(np.array(float(value), "float64")),
    )


def instance(rule: TensorRule, builder: Builder, sizes: dict[str, int]) -> Instance[int]:
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
            root = made(left, given, builder)
        except GraphError:
            continue  # a size for which a term is well formed and graphs have no tensor, such as an empty window
        found = match(rule, left, builder, root)
        if name in CUTS:
            assert found is None
            found = match(rule, left, builder, root, sizes)
        assert found is not None, sizes
        assert found.inputs == given.inputs and found.sizes == sizes
        other = made(right, found, builder)
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
    for pad, fit in ((0, True), (1, False)):
        builder = Builder()
        x = builder.input("x", TensorType("float64", (1, 2, 6, 6)))
        root = builder.add(
            "avg_pool", x, kernel=(2, 2), strides=(1, 1), pads=((pad, pad),) * 2, dilations=(1, 1),
            count_include_pad=False,
        )  # fmt: skip
        found = match(rule, left, builder, root)
        assert (found is not None) is fit


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
    found = match(rule, pattern_of(rule.left), builder, root)
    assert (found is not None) is fits


def test_one_input_at_two_places_must_be_one_node() -> None:
    rule, left, _ = PATTERNS["softmax of x plus a scalar"]
    builder = Builder()
    (sizes,) = examples(rule, 1)
    given = instance(rule, builder, sizes)
    root = made(left, given, builder)
    assert match(rule, left, builder, root) is not None
    numerator, denominator = builder.node(root).operands
    strange = builder.input("strange", builder.type(numerator))
    mixed = builder.add("div", builder.add("exp", strange), denominator)
    assert match(rule, left, builder, mixed) is None


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
                root = made(left, instance(rule, builder, sizes), builder)
            except GraphError:
                continue
            for other in names:
                found = match(PATTERNS[other][0], PATTERNS[other][1], builder, root)
                if found is not None and other != name:
                    matched += 1
                    end = made(PATTERNS[other][2], found, builder)
                    values = computed(builder, {"left": root, "right": end}, 7)
                    finite = np.isfinite(values["left"])
                    np.testing.assert_allclose(values["right"][finite], values["left"][finite], rtol=1e-9, atol=1e-9)
    assert matched


def test_a_polynomial_is_solved_for_its_unknown() -> None:
    n, m = size("n"), size("m")
    x = input_("x", n, 2 * m + 1)
    rule = TensorRule("odd", map_(variable("x") + 0, x=x), x)
    left = pattern_of(rule.left)
    for columns, sizes in ((7, {"n": 2, "m": 3}), (6, None)):
        builder = Builder()
        given = builder.input("x", TensorType("float64", (2, columns)))
        zero = builder.add("broadcast", builder.constant(np.zeros(())), axes=(), shape=(2, columns))
        found = match(rule, left, builder, builder.add("add", given, zero))
        assert (None if found is None else found.sizes) == sizes


def test_the_negative_zero_is_no_size() -> None:
    x, n = input_("x"), size("n")
    rule = TensorRule("odd", map_(variable("x") * variable("y"), x=x, y=number(n - 1)), x)
    left = pattern_of(rule.left)
    for value, sizes in ((0.0, {"n": 1}), (2.0, {"n": 3}), (-0.0, None), (0.5, None)):
        builder = Builder()
        given = builder.input("x", TensorType("float64", ()))
        found = match(rule, left, builder, builder.add("mul", given, builder.constant(np.array(value))))
        assert (None if found is None else found.sizes) == sizes
