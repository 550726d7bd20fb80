"""Small networks are offloaded by admitted rules, compute the same, and say what they rest on and what stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ilaverify.catalogue import find_backends
from ilaverify.errors import UsageError
from ir_semantics.graph import Builder, Graph, Node, TensorType, run
from ir_semantics.graph.words import apply, expand, literal, reduce
from rewrites.claims.joints.layers import LAYER_OPTIONS
from rewrites.compiler.codegen import Options, implementable
from rewrites.compiler.offload.compiler import Offloaded, offload
from rewrites.compiler.offload.reasons import MOVEMENT_REASON
from rewrites.compiler.offload.settings import Settings
from rewrites.egraph import EGraphError
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.rewrite import sides_of
from rewrites.egraph.saturation import Limits
from smt_encodings.claims import Equality
from tests.rewrites.compiler.offload.offload_gates import MAPPINGS, OPERATORS, RULES, gate

ALL = gate()


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def whole(*shape: int, seed: int = 1, low: int = -2, high: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.float32)


def conv(b: Builder, x: int, w: int, stride: int = 1, pads: tuple[int, ...] = (0, 0, 0, 0), **more: object) -> int:
    around = (pads[:2], pads[2:])
    options = {"strides": (stride, stride), "pads": around, "dilations": (1, 1), "groups": 1, **more}
    return b.add("conv", x, w, **options)  # type: ignore[arg-type]


def dense() -> Graph:
    """A matrix times constant weights, bias, relu; then a product without a bias."""
    b = Builder()
    x = b.input("x", f32(3, 4))
    hidden = b.add("relu", apply(b, "add", b.add("matmul", x, b.constant(whole(4, 5))), b.constant(whole(5))))
    return b.graph({"y": b.add("matmul", hidden, b.constant(whole(5, 2)))})


def product() -> Graph:
    """A product without a bias."""
    b = Builder()
    return b.graph({"y": b.add("matmul", b.input("x", f32(3, 4)), b.constant(whole(4, 2)))})


def reshaped_dense() -> Graph:
    """What importers make of a product of rank 3 with a bias, which stands left of the sum; then relu."""
    b = Builder()
    x = b.input("x", f32(2, 3, 4))
    product = b.add("matmul", b.add("reshape", x, shape=(6, 4)), b.constant(whole(4, 5)))
    rows = b.add("reshape", product, shape=(2, 3, 5))
    return b.graph({"y": b.add("relu", apply(b, "add", b.constant(whole(5)), rows))})


def convolutions() -> Graph:
    """Pads that differ, strides with pixels left over, 1 x 1 with a stride, bias, batch normalisation, groups."""
    b = Builder()
    x = b.input("x", f32(1, 2, 6, 7))
    x = conv(b, x, b.constant(whole(3, 2, 3, 2)), 2, (1, 0, 0, 2))
    x = b.add("relu", apply(b, "add", x, b.constant(whole(1, 3, 1, 1))))
    vectors = [b.constant(v) for v in (whole(4), whole(4, seed=2), whole(4, seed=3), np.full(4, 0.75, np.float32))]
    y = b.add("batch_norm", conv(b, x, b.constant(whole(4, 3, 1, 1))), *vectors, epsilon=0.25)
    z = conv(b, x, b.constant(whole(4, 3, 1, 1, seed=4)), 2)
    grouped = conv(b, x, b.constant(whole(3, 1, 2, 2)), groups=3)
    return b.graph({"y": y, "z": z, "grouped": grouped})


def depthwise() -> Graph:
    """A channel for each group: 24 of them are 16 with zeros, and 8 with zeros; then bias and batch normalisation."""
    b = Builder()
    x = b.input("x", f32(1, 24, 5, 4))
    x = conv(b, x, b.constant(whole(24, 1, 3, 3)), 2, (1, 1, 1, 1), groups=24)
    x = apply(b, "add", x, b.constant(whole(1, 24, 1, 1)))
    vectors = [b.constant(v) for v in (*(whole(24, seed=n) for n in range(3)), np.full(24, 0.75, np.float32))]
    return b.graph({"y": b.add("batch_norm", x, *vectors, epsilon=0.25)})


def rectified() -> Graph:
    """Products without bias, also as convolutions, with a relu right behind them; and one with none."""
    b = Builder()
    x = conv(b, b.input("x", f32(1, 2, 6, 7)), b.constant(whole(3, 2, 3, 2)), 2, (1, 0, 0, 2))
    x = b.add("relu", conv(b, b.add("relu", x), b.constant(whole(4, 3, 1, 1))))
    rows = b.add("matmul", b.input("z", f32(3, 4)), b.constant(whole(4, 5)))
    largest = b.add("maximum", rows, expand(b, literal(b, 0, "float32"), (3, 5)))
    return b.graph({"y": x, "z": b.add("matmul", largest, b.constant(whole(5, 2)))})


def batched() -> Graph:
    """Products of two computed matrices, as many as heads of an attention, and one with an axis for them."""
    b = Builder()
    x, y = b.input("x", f32(5, 3, 4)), b.input("y", f32(5, 4, 2))
    one = b.add(
        "matmul", b.add("slice", x, start=(0,) * 3, stop=(1, 3, 4), stride=(1,) * 3), b.input("z", f32(1, 4, 3))
    )
    return b.graph({"all": b.add("matmul", x, y), "one": one})


def recurrent(kind: str, n: int = 1, **more: object) -> Graph:
    """A layer of n sequences; the first state of some is a constant array of zeros, of some a broadcast."""
    b = Builder()
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[kind]
    x = b.input("x", f32(4, n, 3))
    zero = literal(b, 0, "float32")
    state = b.constant(np.zeros((n, 2), np.float32)) if kind != "gru" else expand(b, zero, (n, 2))
    weights = [b.constant(whole(gates * 2, n, seed=n) / 4) for n in (3, 2)]
    operands = [x, *weights, b.constant(whole(2 * gates * 2) / 4), state]
    if kind == "lstm":
        operands += [state, expand(b, zero, (6,))]
    names = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}[kind]
    extra = {"lstm": {"input_forget": False}, "gru": {"linear_before_reset": True}}.get(kind, {})
    options = {"activations": tuple((n,) for n in names), "clip": 0.0, "lengths": False, "output": 0, "reverse": False}
    return b.graph({"y": b.add(kind, *operands, **{**options, **extra, **more})})  # type: ignore[arg-type]


def rows() -> Graph:
    """Pooling over pairs of rows, and layer normalisation."""
    b = Builder()
    x = b.input("x", f32(8, 16))
    pairs = b.add("reduce_max", b.add("reshape", x, shape=(4, 2, 16)), axes=(1,))
    means = b.add("mean", b.add("reshape", pairs, shape=(2, 2, 16)), axes=(1,))
    return b.graph(
        {"y": b.add("layer_norm", means, b.constant(whole(16)), b.constant(whole(16)), axes=(1,), epsilon=1.0)}
    )


def normalisations() -> Graph:
    """Layer normalisation of matrices, without factors, without offsets, and as exporters write it."""
    b = Builder()
    x, y = b.input("x", f32(2, 3, 16)), b.input("y", f32(3, 16))
    gamma, beta = b.constant(whole(16)), b.constant(whole(16, seed=2))
    options = {"axes": (2,), "epsilon": 1e-5}

    def parts(x: int) -> tuple[int, int]:
        """Distances from means, and deviations."""
        last = len(b.shape(x)) - 1
        centred = apply(b, "sub", x, reduce(b, "mean", x, [last], True))
        variance = reduce(b, "mean", b.add("mul", centred, centred), [last], True)
        return centred, b.add("sqrt", apply(b, "add", variance, literal(b, 1e-5, "float32")))

    def scaled(x: int) -> int:
        return apply(b, "add", apply(b, "mul", x, gamma), beta)

    (dx, sx), (dy, sy) = parts(b.add("relu", x)), parts(b.add("relu", y))
    inverse = apply(b, "mul", dx, b.add("reciprocal", sx))
    return b.graph(
        {
            "matrices": b.add("layer_norm", x, gamma, beta, **options),
            "plain": b.add("layer_norm", x, **options),
            "no offsets": b.add("layer_norm", y, gamma, axes=(1,), epsilon=1e-5),
            "written out": scaled(apply(b, "div", *parts(b.input("z", f32(3, 16))))),
            "factor first": apply(b, "add", apply(b, "div", apply(b, "mul", dy, gamma), sy), beta),
            "by reciprocals": apply(b, "add", apply(b, "mul", gamma, inverse), beta),
        }
    )


def joined_normalisations() -> Graph:
    """Layer normalisation by means of squares, with factors and offsets joined before, and of rank 4."""
    b = Builder()
    gamma, beta = b.constant(whole(16)), b.constant(whole(16, seed=2))

    def rows(x: int) -> int:
        return reduce(b, "mean", x, [len(b.shape(x)) - 1], True)

    def parts(x: int) -> tuple[int, int]:
        """Means and deviations."""
        mean = rows(x)
        variance = apply(b, "sub", rows(b.add("mul", x, x)), b.add("mul", mean, mean))
        return mean, b.add("sqrt", apply(b, "add", variance, literal(b, 1.0, "float32")))

    def joined(x: int, factor: int, mean: int) -> int:
        return apply(b, "add", apply(b, "mul", apply(b, "sub", x, mean), factor), beta)

    x, y, z = b.input("x", f32(3, 16)), b.input("y", f32(2, 3, 16)), b.input("z", f32(2, 2, 3, 16))
    (mx, dx), (my, dy), (mz, dz) = map(parts, (x, y, z))
    factor = apply(b, "mul", b.add("reciprocal", dy), gamma)
    shifted = apply(b, "sub", beta, apply(b, "mul", my, factor))
    return b.graph(
        {
            "quotient": joined(x, apply(b, "div", gamma, dx), mx),
            "offsets joined": apply(b, "add", apply(b, "mul", y, factor), shifted),
            "rank 4": joined(z, apply(b, "mul", gamma, b.add("reciprocal", dz)), mz),
            "rank 4, plain": b.add("layer_norm", b.add("relu", z), axes=(3,), epsilon=1e-5),
        }
    )


@pytest.mark.parametrize("features,epsilon", [(20, 1e-5), (16, 1e-3)])
def test_a_layer_normalisation_that_the_unit_cannot_do_is_not_taken_apart(features: int, epsilon: float) -> None:
    b = Builder()
    y = b.add("layer_norm", b.input("x", f32(2, 3, features)), axes=(2,), epsilon=epsilon)
    found = offload(b.graph({"y": y}), ALL, find_backends(["flexasr"]), Settings(implementable=implementable))
    assert not found.invocations and found.graph.operators() == {"layer_norm": 1}


def averages() -> Graph:
    """Means of images of 4 and of 9 pixels, a pooling of whole images, sums of them, and means of 4 rows."""
    b = Builder()
    x, y = b.input("x", f32(2, 3, 2, 2)), b.input("y", f32(1, 4, 5))
    nine = b.input("z", f32(1, 2, 3, 3))
    plain = {"pads": ((0, 0), (0, 0)), "dilations": (1, 1), "strides": (2, 2), "count_include_pad": False}
    pooled = b.add("avg_pool", b.add("relu", x), kernel=(2, 2), **plain)
    return b.graph(
        {
            "four": b.add("mean", x, axes=(2, 3)),
            "nine": b.add("mean", b.add("relu", nine), axes=(2, 3)),
            "pooled": pooled,
            "sums": b.add("reduce_sum", nine, axes=(2, 3)),
            "rows": b.add("mean", y, axes=(1,)),
        }
    )


CASES: dict[str, tuple[Callable[[], Graph], tuple[str, ...], dict[str, int]]] = {
    "dense on FlexASR": (dense, ("flexasr",), {"flexasr.linear": 2}),
    "dense on VTA": (dense, ("vta",), {"vta.linear": 1, "vta.dense": 1}),
    "dense through reshapes": (reshaped_dense, ("flexasr",), {"flexasr.linear": 1}),
    "convolutions on HLSCNN": (convolutions, ("hlscnn",), {"hlscnn.conv2d": 5}),
    "convolutions on FlexASR": (convolutions, ("flexasr",), {"flexasr.linear": 5}),
    "convolutions on VTA": (convolutions, ("vta",), {"vta.linear": 2, "vta.dense": 3}),
    "relu without bias on VTA": (rectified, ("vta",), {"vta.linear": 3, "vta.dense": 1}),
    "convolutions, all targets": (convolutions, ("flexasr", "hlscnn", "vta"), {"hlscnn.conv2d": 5}),
    "depthwise on HLSCNN": (depthwise, ("hlscnn",), {"hlscnn.conv2d": 2}),
    "depthwise on VTA": (depthwise, ("vta",), {"vta.dense": 2}),
    "batches on FlexASR": (batched, ("flexasr",), {"flexasr.linear": 6}),
    "batches on VTA": (batched, ("vta",), {"vta.dense": 6}),
    "averages on FlexASR": (averages, ("flexasr",), {"flexasr.linear": 4, "flexasr.mean_pool_x2": 1}),
    "averages on VTA": (averages, ("vta",), {"vta.dense": 4}),
    "dense on HLSCNN": (dense, ("hlscnn",), {"hlscnn.conv2d": 2}),
    "batches on HLSCNN": (batched, ("hlscnn",), {"hlscnn.conv2d": 6}),
    "lstm on HLSCNN": (lambda: recurrent("lstm"), ("hlscnn",), {"hlscnn.conv2d": 4}),
    "averages on HLSCNN": (averages, ("hlscnn",), {"hlscnn.conv2d": 1}),
    "lstm": (lambda: recurrent("lstm"), ("flexasr",), {"flexasr.lstm": 1}),
    "gru": (lambda: recurrent("gru"), ("flexasr",), {"flexasr.gru": 1}),
    "rnn": (lambda: recurrent("rnn"), ("flexasr",), {"flexasr.rnn": 1}),
    "lstm from its end": (lambda: recurrent("lstm", reverse=True), ("flexasr",), {"flexasr.lstm": 1}),
    "last state of a gru": (lambda: recurrent("gru", output=1), ("flexasr",), {"flexasr.gru": 1}),
    "last state of an rnn from its end": (
        lambda: recurrent("rnn", output=1, reverse=True),
        ("vta", "flexasr"),
        {"flexasr.rnn": 1},
    ),
    "lstm of three sequences": (lambda: recurrent("lstm", 3), ("flexasr",), {"flexasr.lstm": 3}),
    "last states of five sequences of a gru from their ends": (
        lambda: recurrent("gru", 5, output=1, reverse=True),
        ("flexasr",),
        {"flexasr.gru": 5},
    ),
    "rnn of two sequences": (lambda: recurrent("rnn", 2), ("flexasr",), {"flexasr.rnn": 2}),
    "lstm on VTA": (lambda: recurrent("lstm"), ("vta",), {"vta.linear": 4}),  # one of all inputs; h = 0 needs none
    "normalisations": (normalisations, ("flexasr",), {"flexasr.layer_norm": 6}),
    "normalisations, joined": (joined_normalisations, ("flexasr",), {"flexasr.layer_norm": 4}),
    "rows": (rows, ("flexasr",), {"flexasr.layer_norm": 1, "flexasr.max_pool": 1, "flexasr.mean_pool": 1}),
}


@cache
def compiled(case: str) -> Offloaded:
    build, targets, _ = CASES[case]
    return offload(build(), ALL, find_backends(targets))


@pytest.mark.parametrize("case", CASES)
def test_networks_are_offloaded_and_compute_the_same(case: str) -> None:
    found = compiled(case)
    assert found.invocations == CASES[case][2]
    inputs = {n: whole(*found.source.nodes[i].type.shape, seed=9) for n, i in found.source.inputs.items()}
    before, after = run(found.source, inputs), run(found.graph, inputs)
    smooth = any(n.operator in ("lstm", "gru", "rnn", "layer_norm", "mean") for n in found.source.nodes)
    for name, value in before.items():
        if smooth:
            # sums of fewer than 50 numbers below 8, rounded to 24 bits: 50 * 8 * 2^-24, through slopes of at most 2
            np.testing.assert_allclose(after[name], value, atol=1e-4)
        else:
            np.testing.assert_array_equal(after[name], value)  # whole numbers and quarters below 2^20: exact
    check_graphs(found.source, found.extracted, found.explanations, sides_of(found.rewrites))
    assert found.optimal and found.equality is Equality.OVER_REALS


@pytest.mark.parametrize("case", CASES)
def test_every_rule_in_use_is_needed_by_the_explanations(case: str) -> None:
    """The checker refuses the explanations of a graph if any rule that is named as used is withheld from it."""
    found = compiled(case)
    for use in found.rules:
        rest = [r for r in found.rewrites if r.rule.name != use.name]
        with pytest.raises(EGraphError, match="there is no rule"):
            check_graphs(found.source, found.extracted, found.explanations, sides_of(rest))


def test_removing_a_certificate_removes_its_rule_and_says_so() -> None:
    used = {use.claim for case in CASES for use in compiled(case).rules if use.claim}
    assert used <= {*RULES, *MAPPINGS}
    for case in ("dense through reshapes", "convolutions on HLSCNN", "convolutions on VTA", "lstm", "rows"):
        build, targets, _ = CASES[case]
        found = compiled(case)
        for claim in {use.claim for use in found.rules if use.claim}:
            others = [c for c in MAPPINGS if claim in ("vta_gemm", "hlscnn_conv2d_8bit") and c.startswith(claim[:3])]
            without = offload(build(), gate(claim, *others), find_backends(targets))
            assert without.missing[claim] == "there is no certificate"
            assert claim not in {use.claim for use in without.rules}
            assert sum(without.invocations.values()) < sum(found.invocations.values()) or without.costs > found.costs


def test_another_mapping_of_the_operator_will_do() -> None:
    (vta,) = (u for u in offload(dense(), gate("vta_gemm"), find_backends(["vta"])).rules if u.claim == "vta_dense")
    assert vta.certificate == "digest of vta_dense"
    (narrow,) = (
        u for u in offload(convolutions(), ALL, find_backends(["hlscnn"])).rules if u.claim.startswith("hlscnn")
    )
    assert narrow.claim == "hlscnn_conv2d_8bit"
    sixteen = Options(chosen={"weight_bits": 16})
    (wide,) = (
        u
        for u in offload(convolutions(), ALL, find_backends(["hlscnn"]), Settings(options=sixteen)).rules
        if u.claim.startswith("hlscnn")
    )
    assert wide.claim == "hlscnn_conv2d"


def test_without_its_joint_a_mapping_does_not_execute_an_operator() -> None:
    names = {mapping: f"joint-vta-dense-{mapping.replace('_', '-')}" for mapping in ("vta_gemm", "vta_dense")}
    (other,) = (u for u in offload(product(), gate(names["vta_gemm"]), find_backends(["vta"])).rules if u.joint)
    assert (other.claim, other.joint) == ("vta_dense", names["vta_dense"])
    none = offload(product(), gate(*names.values()), find_backends(["vta"]))
    assert none.invocations == {} and set(none.missing) == set(names.values())
    told = f"without a live certificate it must not be offloaded ({names['vta_gemm']}: there is no certificate)"
    assert reasons(none)["matmul"] == told
    another = replace(ALL, admitted={**ALL.admitted, names["vta_gemm"]: ALL.admitted[names["vta_dense"]]})
    (other,) = (u for u in offload(product(), another, find_backends(["vta"])).rules if u.joint)
    assert other.claim == "vta_dense"


def test_weights_are_prepared_when_a_model_is_compiled() -> None:
    for case in CASES:
        graph = compiled(case).graph
        for node in graph.nodes:
            if node.operands and node.operator != "broadcast":
                assert any(graph.nodes[o].operator not in ("constant", "broadcast") for o in node.operands), node
            if node.operator in OPERATORS:
                assert not any(graph.nodes[o].operator == "broadcast" for o in node.operands)


@pytest.mark.parametrize("case", ["convolutions on VTA", "depthwise on HLSCNN", "depthwise on VTA"])
def test_normalisations_go_into_convolutions(case: str) -> None:
    assert not {node.operator for node in compiled(case).graph.nodes} & {"batch_norm", "sub", "div", "conv"}


@pytest.mark.parametrize(("target", "most"), [("flexasr", 4080), ("hlscnn", 4080), ("vta", 132_608)])
def test_products_with_many_inputs_are_cut(target: str, most: int) -> None:
    b = Builder()
    x, many = b.input("x", f32(1, most)), b.input("y", f32(1, 2 * most + 1))
    fits, cut = (b.add("matmul", each, b.constant(whole(b.shape(each)[1], 2))) for each in (x, many))
    found = offload(
        b.graph({"fits": fits, "cut": cut}), ALL, find_backends([target]), Settings(implementable=implementable)
    )
    assert found.costs[0] == 0 and sum(found.invocations.values()) == 1 + 3
    inputs = {n: whole(*found.source.nodes[i].type.shape, seed=9) for n, i in found.source.inputs.items()}
    before, after = run(found.source, inputs), run(found.graph, inputs)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)  # whole numbers below 2^24


def test_reasons_say_what_hardware_lacks() -> None:
    b = Builder()
    x = b.input("x", f32(2, 3))
    names = ("softmax", "erf", "mul", "less")
    nodes = {"softmax": b.add("softmax", x, axis=1), "erf": b.add("erf", x), "mul": b.add("mul", x, x)}
    graph = b.graph({**nodes, "less": b.add("less", x, x)})
    of = {t: reasons(offload(graph, ALL, find_backends([t]))) for t in ("flexasr", "hlscnn", "vta")}
    assert {t: [of[t][name] for name in names[:2]] for t in of} == {
        "flexasr": [
            "FlexASR has no exponential but in its attention, no division but in its attention, by divisors modulo 4",
            "FlexASR has no error function",
        ],
        "hlscnn": ["HLSCNN has no exponential, no division", "HLSCNN has no error function"],
        "vta": ["VTA has no exponential, no division", "VTA has no error function"],
    }
    assert of["hlscnn"]["mul"] == "HLSCNN has no product of two tensors"
    assert of["vta"]["mul"] == "VTA has no product of two tensors on the boards, where its MUL changes nothing"
    assert {of[t]["less"] for t in of} == {"its elements are bool, and accelerator operators are float32"}


def test_exact_matching_finds_less() -> None:
    exact = Settings(flexible=False)
    assert offload(convolutions(), ALL, find_backends(["flexasr"]), exact).invocations == {}
    assert offload(convolutions(), ALL, find_backends(["hlscnn"]), exact).invocations == {"hlscnn.conv2d": 3}
    assert offload(dense(), ALL, find_backends(["flexasr"]), exact).invocations == {"flexasr.linear": 1}
    assert offload(reshaped_dense(), ALL, find_backends(["flexasr"]), exact).invocations == {}


def reasons(found: Offloaded) -> dict[str, str]:
    return {left.operator: left.reason for left in found.host}


@pytest.mark.parametrize("changes", [{"output": 1}, {"reverse": True}, {"reverse": True, "output": 1}])
def test_a_layer_by_definition_another_one_stays_for_that_ones_reason(changes: dict[str, object]) -> None:
    without = offload(
        recurrent("lstm", **changes), gate("flexasr_lstm", "flexasr_lstm_from"), find_backends(["flexasr"])
    )
    assert without.invocations == {} and reasons(without)["lstm"] == (
        "without a live certificate it must not be offloaded (flexasr_lstm_from: there is no certificate)"
    )


def test_what_stays_on_the_host_has_a_reason() -> None:
    found = compiled("convolutions on HLSCNN")
    assert "conv" not in reasons(found)
    assert reasons(found)["pad"] == "data movement is the host's"
    assert reasons(found)["relu"].startswith("HLSCNN computes it on the sums of a convolution only")
    assert "relu" not in reasons(compiled("relu without bias on VTA"))
    behind = reasons(compiled("convolutions, all targets"))["relu"].split("; ")
    assert [reason.split(" computes")[0] for reason in behind] == ["FlexASR", "HLSCNN", "VTA"]
    without = offload(dense(), gate("flexasr_linear"), find_backends(["flexasr"]))
    assert reasons(without)["matmul"] == (
        "without a live certificate it must not be offloaded (flexasr_linear: there is no certificate)"
    )
    without = offload(convolutions(), gate("1-x-1-convolution-as-pixels-times-filters"), find_backends(["vta"]))
    assert {left.reason for left in without.host if left.operator == "conv"} == {
        "rules that may have led to an accelerator have no live certificate "
        "(1-x-1-convolution-as-pixels-times-filters: there is no certificate)",
    }
    b = Builder()
    x = b.input("x", TensorType("float32", (1, 1, 8, 20)))
    window = {"kernel": (2, 1), "strides": (2, 1), "pads": ((0, 0), (0, 0)), "dilations": (1, 1)}
    pool = b.graph({"y": b.add("max_pool", x, **window)})
    other = gate("joint-flexasr-max-pool-x4-flexasr-float-maxpool-x4")
    assert reasons(offload(pool, other, find_backends(["flexasr"])))["max_pool"].startswith(
        "FlexASR pools pairs of rows: the host would bring windows into rows, and move more than it compares; "
        "further rules have no live certificate ("
    )
    assert "max_pool" not in reasons(offload(pool, other, find_backends(["flexasr"]), Settings(costs="movement")))
    b = Builder()
    double = b.add("matmul", b.input("x", TensorType("float64", (2, 3))), b.constant(np.ones((3, 2))))
    assert reasons(offload(b.graph({"y": double}), ALL, find_backends(["vta"]))) == {
        "matmul": "its elements are float64, and accelerator operators are float32"
    }
    assert offload(dense(), ALL, find_backends(["hlscnn"])).invocations == {"hlscnn.conv2d": 2}
    assert reasons(offload(reshaped_dense(), ALL, find_backends(["flexasr"]), Settings(flexible=False)))["matmul"] == (
        "exact matching found no operator of an accelerator in it"
    )


RESET = "FlexASR's layer has another linear_before_reset"
OTHERS: dict[str, tuple[str, dict[str, object], str]] = {
    "cells": ("lstm", {"output": 2}, "its result is a state of cells, which FlexASR keeps to itself"),
    "reset before products": ("gru", {"linear_before_reset": False}, RESET),
    "relu": ("rnn", {"activations": (("relu",),)}, "FlexASR's layer has another activations"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_products_of_other_recurrent_layers_are_offloaded_step_by_step(case: str) -> None:
    kind, changes, reason = OTHERS[case]
    graph = recurrent(kind, 2, **changes)
    found = offload(graph, ALL, find_backends(["flexasr"]))
    assert set(found.invocations) == {"flexasr.linear"}
    assert sum(h.steps for h in found.host) == 0
    computed = {h.operator: h.reason for h in found.host if h.reason != MOVEMENT_REASON}
    assert all(told.endswith(f"; as a step of {kind}, which is written out: {reason}") for told in computed.values())
    assert computed.get("mul", "FlexASR has no product").startswith("FlexASR has no product")
    assert len(computed) > (kind != "rnn")
    inputs = {"x": whole(4, 2, 3, seed=9)}
    # sums of fewer than 50 numbers below 8, rounded to 24 bits: 50 * 8 * 2^-24, through slopes of at most 2
    np.testing.assert_allclose(run(found.graph, inputs)["y"], run(graph, inputs)["y"], atol=1e-4)
    (layer,) = (n for n in graph.nodes if n.operator == kind)
    types = [graph.nodes[o].type for o in layer.operands]
    taker = find_backends(["flexasr"])[0].takers[kind]
    assert taker.taken(layer, types) == reason
    many = [f32(600, 2, 3), *types[1:]]
    assert taker.taken(layer, many) == f"{reason}; with 600 timesteps, more than 512, it is not written out"


def test_sequences_with_lengths_and_layers_that_do_not_fit_are_written_out() -> None:
    b = Builder()
    x, lengths = b.input("x", f32(4, 2, 3)), b.input("lengths", TensorType("int32", (2,)))
    state = expand(b, literal(b, 0, "float32"), (2, 2))
    weights = [b.constant(whole(*shape)) for shape in ((2, 3), (2, 2), (4,))]
    options = {**LAYER_OPTIONS["rnn"], "lengths": True}
    masked = b.graph({"y": b.add("rnn", x, *weights, state, lengths, **options)})
    found = offload(masked, ALL, find_backends(["flexasr"]))
    assert set(found.invocations) == {"flexasr.linear"} and sum(h.steps for h in found.host) == 0
    b = Builder()
    x, state = b.input("x", f32(2, 1, 3)), expand(b, literal(b, 0, "float32"), (1, 2048))
    weights = [b.input(name, f32(*shape)) for name, shape in (("w", (2048, 3)), ("u", (2048, 2048)), ("b", (4096,)))]
    large = b.graph({"y": b.add("rnn", x, *weights, state, **LAYER_OPTIONS["rnn"])})
    found = offload(large, ALL, find_backends(["flexasr"]), Settings(implementable=implementable))
    assert set(found.invocations) == {"flexasr.linear"} and sum(h.steps for h in found.host) == 0


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_a_layer_from_states_that_are_not_zero_is_one_too(kind: str) -> None:
    graph = recurrent(kind)
    b = Builder()
    numbers: list[int] = []
    states = 0
    for i, node in enumerate(graph.nodes):
        if node.operator == "input":
            numbers.append(b.input("x", node.type))
        elif node.type.shape == (1, 2):
            states += 1
            numbers.append(b.input(f"s{states}", node.type))
        elif node.operator == "constant":
            numbers.append(b.constant(graph.constant(i)))
        else:
            numbers.append(b.add(node.operator, *(numbers[o] for o in node.operands), **dict(node.attributes)))
    found = offload(b.graph({"y": numbers[-1]}), ALL, find_backends(["flexasr"]))
    assert states and found.invocations == {f"flexasr.{kind}_from": 1}


def test_layers_of_many_steps_are_not_written_out() -> None:
    b = Builder()
    x, w, u = b.input("x", f32(600, 1, 1)), b.constant(whole(1, 1)), b.constant(whole(1, 1))
    state = b.constant(np.zeros((1, 1), np.float32))
    graph = b.graph({"y": b.add("rnn", x, w, u, b.constant(whole(2)), state, **LAYER_OPTIONS["rnn"])})
    found = offload(graph, ALL, find_backends(["vta"]))
    assert found.invocations == {} and found.saturation.nodes < 10
    assert reasons(found) == {"rnn": "with 600 timesteps, more than 512, it is not written out"}
    assert offload(graph, ALL, find_backends(["flexasr"])).invocations == {"flexasr.rnn": 1}


def test_no_code_no_operator() -> None:
    def few(node: Node, types: object) -> str | None:
        return "it has more than 2 filters" if node.type.shape[-1] > 2 else None

    found = offload(dense(), ALL, find_backends(["flexasr"]), Settings(implementable=few))
    assert found.invocations == {"flexasr.linear": 1}
    assert reasons(found)["matmul"] == "flexasr.linear: it has more than 2 filters"
    hlscnn = offload(
        convolutions(),
        ALL,
        find_backends(["hlscnn"]),
        Settings(implementable=lambda node, types: f"{node.operator} {types[0]}"),
    )
    assert hlscnn.invocations == {}
    assert {left.reason for left in hlscnn.host if left.operator == "conv"} >= {
        "hlscnn.conv2d: hlscnn.conv2d float32[1, 2, 7, 9]"
    }


def test_the_first_target_is_preferred_where_costs_are_equal() -> None:
    b = Builder()
    graph = b.graph({"y": b.add("matmul", b.input("x", f32(4, 4)), b.constant(whole(4, 4)))})
    for costs in ("offload", "movement"):
        assert offload(graph, ALL, find_backends(["flexasr", "vta"]), Settings(costs=costs)).invocations == {
            "vta.dense": 1
        }  # no bias to move
    image = Builder()
    one = conv(image, image.input("x", f32(1, 4, 3, 3)), image.constant(whole(4, 4, 3, 3)))
    assert offload(image.graph({"y": one}), ALL, find_backends(["vta", "hlscnn"])).invocations == {"hlscnn.conv2d": 1}


def test_results_do_not_depend_on_chance() -> None:
    build, targets, _ = CASES["convolutions on FlexASR"]
    one, two = compiled("convolutions on FlexASR"), offload(build(), gate(), find_backends(targets))
    assert one.graph.nodes == two.graph.nodes and one.rules == two.rules and one.host == two.host


def test_wrong_uses() -> None:
    for targets, told in (((), "none"), (find_backends(["vta"]) * 2, "vta, vta")):
        with pytest.raises(ValueError) as error:
            offload(dense(), ALL, targets)
        assert str(error.value) == f"targets must be different ones, and at least one, not {told}; name each once"
    for names, told in ((["tpu"], "tpu"), ([], "none"), (["vta", "vta"], "vta, vta")):
        with pytest.raises(UsageError) as usage:
            find_backends(names)
        assert str(usage.value) == f"targets must be different names of flexasr, hlscnn, vta, not {told}"
    with pytest.raises(ValueError, match=r"^costs must be one of offload, movement, not 'power'$"):
        offload(dense(), ALL, find_backends(["vta"]), Settings(costs="power"))


def test_limits_stop_with_the_best_graph_so_far() -> None:
    found = offload(convolutions(), ALL, find_backends(["flexasr"]), Settings(limits=replace(Limits(), iterations=3)))
    inputs = {"x": whole(1, 2, 6, 7)}
    before, after = run(found.source, inputs), run(found.graph, inputs)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    assert sum(found.invocations.values()) < 3
