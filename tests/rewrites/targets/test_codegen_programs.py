"""Generated code computes, bit for bit, what the accelerators are described to compute; other parameters do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accel_models.flexasr.quantise import Quantised, quantise
from accel_models.hlscnn.options import WGT_16BITS, HlscnnOptions
from accel_models.hlscnn.quantise import activation_format, result_format
from ila_lang import CommandStream, Simulator
from ila_lang.text.portable import digest, functions_of
from ilaverify.catalogue import all_entries
from reports.certificate import semantics_of
from rewrites.claims.gate import Admission
from rewrites.claims.names import slug
from rewrites.claims.subjects.numerics import LemmaSubject
from rewrites.compiler.codegen import Call, CannotOffload, Devices, Options, is_program_of, joints_of, operator_of
from rewrites.compiler.codegen.floats import Piece
from rewrites.targets.flexasr.code import linear as flexasr_linear
from rewrites.targets.flexasr.code import pools as flexasr_pools
from rewrites.targets.flexasr.code import recurrent as flexasr_recurrent
from rewrites.targets.hlscnn import code as hlscnn
from rewrites.targets.hlscnn.tiling import Tiling
from rewrites.targets.vta import code as vta
from smt_encodings.claims import Status
from tests.accel_models.flexasr import tensor_oracle
from tests.accel_models.hlscnn import oracle as convolution_oracle
from tests.marks import slow_but
from tests.rewrites.compiler.offload.offload_gates import OPERATORS
from tests.rewrites.targets.nodes import DEVICES, Case, case, normal

Reals = NDArray[np.float64]


def scaled(c: Case, position: int, scale: int) -> Reals:
    return np.asarray(c.operands[position], np.float64) * 2.0**-scale


def by_flexasr_linear(c: Case) -> Reals:
    """Quantised by the host's functions, computed as the hardware is described."""
    q, activation = c.quantisation, str(c.node.attribute("activation"))
    total = q["scale_x"] + q["scale_w"]
    x, w, b = (
        quantise(scaled(c, i, s), q[f"bias_{n}"])
        for i, (n, s) in enumerate(zip("xwb", (q["scale_x"], q["scale_w"], total), strict=True))
    )
    known = None if activation == "none" else activation
    return Quantised(tensor_oracle.linear(x, w, b, q["bias_y"], known), q["bias_y"]).values * 2.0**total


def by_flexasr_pool(c: Case) -> Reals:
    q = c.quantisation
    x = quantise(scaled(c, 0, q["scale"]), q["bias"])
    program = flexasr_pools.POOLS[c.node.operator]
    for _ in range(program.steps):
        x = Quantised(tensor_oracle.pool(program.kind, x), x.bias)
    return x.values * 2.0 ** q["scale"]


def by_flexasr_layer_norm(c: Case) -> Reals:
    q = c.quantisation
    x = quantise(scaled(c, 0, q["scale_x"]), q["bias_x"])
    gamma = quantise(scaled(c, 1, q["scale_y"]), q["bias_gamma"])
    beta = quantise(scaled(c, 2, q["scale_y"]), q["bias_beta"])
    return Quantised(tensor_oracle.layer_norm(x, gamma, beta), x.bias).values * 2.0 ** q["scale_y"]


def by_flexasr_recurrent(c: Case) -> Reals:
    q, s = c.quantisation, c.quantisation["scale_x"]
    names, scales = ("bias_x", "bias_w", "bias_u", "bias_b", "bias_c"), (s, -s, 0, 0, 0)
    x, w, u, b, d = (quantise(scaled(c, i, e), q[n]) for i, (n, e) in enumerate(zip(names, scales, strict=True)))
    kind = c.node.operator.removeprefix("flexasr.")
    return Quantised(tensor_oracle.recurrent(kind, x, (w, u, b, d), q["bias_h"]), q["bias_h"]).values


def by_hlscnn(c: Case) -> Reals:
    q = c.quantisation
    x = activation_format().quantise(scaled(c, 0, q["scale_x"]))
    half, unit, reading = (128, 64, HlscnnOptions()) if q["weight_bits"] == 8 else (1 << 15, 1 << 14, WGT_16BITS)
    w = np.clip(np.rint(scaled(c, 1, q["scale_w"]) * unit), -half, half - 1).astype(np.int16)
    strides: Any = (c.node.attribute("stride_h"), c.node.attribute("stride_w"))
    results = [convolution_oracle.convolution(image, w, reading, stride=strides) for image in x]
    return result_format().dequantise(np.stack(results)) * 2.0 ** (q["scale_x"] + q["scale_w"])


def by_integers(c: Case) -> Reals:
    q = c.quantisation
    x, w = (
        np.clip(np.rint(scaled(c, i, q[n])), -127, 127).astype(np.int64) for i, n in enumerate(("scale_x", "scale_w"))
    )
    b = np.rint(scaled(c, 2, q["scale_x"] + q["scale_w"])).astype(np.int64) if len(c.operands) > 2 else 0
    half = (1 << q["shift"]) >> 1 if q["rounding"] else 0
    least = 0 if dict(c.node.attributes).get("activation") == "relu" else -128
    codes = np.clip((x @ w.T + b + half) >> q["shift"], least, 127)
    return codes * 2.0 ** (q["scale_x"] + q["scale_w"] + q["shift"])


def linear(activation: str, rows: int = 5, inputs: int = 20, outputs: int = 70, **more: Any) -> Case:
    arrays = (normal(1, rows, inputs), normal(2, outputs, inputs, scale=0.2), normal(3, outputs))
    return case("flexasr.linear", arrays, activation=activation, **more)


def recurrent(kind: str, gates: int) -> Case:
    w, u = normal(2, gates * 20, 20, scale=0.2), normal(3, gates * 20, 20, scale=0.2)
    arrays = (normal(1, 3, 20), w, u, normal(4, gates * 20, scale=0.1), normal(5, gates * 20, scale=0.1))
    return case(f"flexasr.{kind}", arrays)


def convolution(*, images: int = 2, filters: int = 9, stride: tuple[int, int] = (1, 2), **options: Any) -> Case:
    arrays = (normal(1, images, 3, 6, 5), normal(2, filters, 3, 3, 2, scale=0.3))
    return case("hlscnn.conv2d", arrays, Options(**options), stride_h=stride[0], stride_w=stride[1])


def biased(activation: str = "relu") -> Case:
    arrays = normal(1, 5, 50), normal(2, 40, 50, scale=0.2), normal(3, 40, scale=2)
    return case("vta.linear", arrays, activation=activation)


def dense(rows: int = 5, inputs: int = 50, outputs: int = 40, **options: Any) -> Case:
    return case("vta.dense", (normal(1, rows, inputs), normal(2, outputs, inputs, scale=0.2)), Options(**options))


MAPPINGS = {m.name: (m, o) for o in OPERATORS.values() for m in o.bounds}
"""The mappings that code is generated from, each with its operator."""

CASES: dict[str, tuple[Callable[[], Case], Callable[[Case], Reals]]] = {
    "linear": (lambda: linear("none"), by_flexasr_linear),
    "linear, large numbers": (
        lambda: case(
            "flexasr.linear",
            (normal(1, 2, 16, scale=300), normal(2, 64, 16, scale=0.01), normal(3, 64)),
            activation="none",
        ),
        by_flexasr_linear,
    ),
    "linear and relu": (lambda: linear("relu"), by_flexasr_linear),
    "linear and sigmoid": (lambda: linear("sigmoid"), by_flexasr_linear),
    "linear and tanh": (lambda: linear("tanh", options=Options(as_published=True)), by_flexasr_linear),
    "max pooling": (lambda: case("flexasr.max_pool", (normal(1, 6, 20, scale=50),)), by_flexasr_pool),
    "mean pooling": (lambda: case("flexasr.mean_pool", (normal(1, 6, 20, scale=50),)), by_flexasr_pool),
    "max pooling 4 times": (lambda: case("flexasr.max_pool_x4", (normal(1, 32, 20, scale=50),)), by_flexasr_pool),
    "mean pooling twice": (lambda: case("flexasr.mean_pool_x2", (normal(1, 8, 20, scale=50),)), by_flexasr_pool),
    "layer normalisation": (
        lambda: case("flexasr.layer_norm", (normal(1, 3, 32, scale=3), normal(2, 32), normal(3, 32)), epsilon=1e-5),
        by_flexasr_layer_norm,
    ),
    "rnn": (lambda: recurrent("rnn", 1), by_flexasr_recurrent),
    "gru": (lambda: recurrent("gru", 3), by_flexasr_recurrent),
    "lstm": (lambda: recurrent("lstm", 4), by_flexasr_recurrent),
    "convolution": (convolution, by_hlscnn),
    "convolution as published": (lambda: convolution(as_published=True), by_hlscnn),
    "convolution, weights of 16 bits": (lambda: convolution(chosen={"weight_bits": 16}), by_hlscnn),
    "dense": (dense, by_integers),
    "dense as published": (lambda: dense(as_published=True), by_integers),
    "dense with bias": (lambda: biased("none"), by_integers),
    "dense with bias and relu": (biased, by_integers),
}
QUICK = (
    "linear",
    "max pooling 4 times",
    "layer normalisation",
    "convolution",
    "convolution, weights of 16 bits",
    "dense",
    "dense with bias and relu",
)


@pytest.mark.parametrize("name", slow_but(QUICK, CASES))
def test_results_are_those_of_other_code(name: str) -> None:
    build, other = CASES[name]
    c = build()
    wanted = other(c)
    assert np.array_equal(c.run().value, wanted)
    bound = c.implementation()
    constant = {i: a for i, a in enumerate(c.operands) if i}
    bound.bind(constant)
    for _ in range(2):  # constants stay in the programs
        assert np.array_equal(bound.run(c.operands, DEVICES).value, wanted)


WRONG = {
    "linear": {"bias_y": 1, "bias_w": 1, "scale_x": 1},
    "layer normalisation": {"bias_x": 1, "scale_y": 1},
    "convolution": {"scale_w": 1},
    "dense": {"shift": 1, "scale_x": 1, "rounding": -1},
    "dense with bias and relu": {"scale_w": 1, "rounding": -1},
}


@pytest.mark.parametrize(("name", "parameter"), [(name, p) for name, q in WRONG.items() for p in q])
def test_another_parameter_is_seen(name: str, parameter: str) -> None:
    build, other = CASES[name]
    c = build()
    changed = {parameter: c.quantisation[parameter] + WRONG[name][parameter]}
    assert not np.array_equal(c.run(**changed).value, other(c))


# -- parts ---------------------------------------------------------------------------------------------------


def small_linear(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(flexasr_linear, "most_that_fit", lambda count, fit: count // 2)
    return linear("relu")


def small_pool(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(flexasr_pools, "most_that_fit", lambda count, fit: min(count, 2))
    return case("flexasr.max_pool", (normal(1, 10, 20),))


def small_chain(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(flexasr_pools, "most_that_fit", lambda count, fit: min(count, 2))
    return case("flexasr.mean_pool_x2", (normal(1, 20, 50),))


def small_convolution(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(hlscnn, "tile", lambda mapping, shape: Tiling(4, 3))
    return convolution()


def small_dense(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(vta, "_cut", lambda *_: ([(0, 4), (4, 8)], [(0, 2), (2, 4)]))
    return dense(rows=7)


def small_biased(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(vta, "_cut", lambda *_: ([(0, 3), (3, 6)], [(0, 2), (2, 4)]))
    return biased()


PARTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], Case], Callable[[Case], Reals], int, tuple[str, ...]]] = {
    "linear": (
        small_linear,
        by_flexasr_linear,
        6,
        ("a-box-of-relu-of-a-dense-layer", "scales-of-relu-of-a-dense-layer"),
    ),
    "convolution": (
        small_convolution,
        by_hlscnn,
        12,
        ("a-box-of-a-convolution", "scales-of-a-convolution"),
    ),
    "dense": (small_dense, by_integers, 4, ("a-box-of-a-product-of-matrices", "scales-of-a-product-of-matrices")),
    "dense with bias and relu": (
        small_biased,
        by_integers,
        4,
        ("a-box-of-relu-of-a-dense-layer", "scales-of-relu-of-a-dense-layer"),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_boxes_that_are_not_those_of_the_rule_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operand of a call in the place of another part's, or an element off along an axis that is cut."""
    c = PARTS[name][0](monkeypatch)
    made = c.implementation()
    own, (first, *_) = type(made)._calls, made.calls
    forged = [(n, call.parts[n]) for n in made.operands for call in made.calls if call.parts[n] != first.parts[n]]
    axes = [(n, 0) for n in made.operands] + [("x", 2 if name == "convolution" else 1)]
    for operand, axis in axes:
        part = list(first.parts[operand])
        part[axis] = part[axis][0] + 1, part[axis][1] + 1
        forged.append((operand, tuple(part)))
    extents = {n: [end - begin for begin, end in part] for n, part in first.parts.items()}
    forged = [(n, part) for n, part in forged if [end - begin for begin, end in part] == extents[n]]
    assert {n for n, _ in forged} == {*made.operands}
    for operand, part in forged:

        def calls(of: Any, operand: str = operand, part: Any = part) -> list[Call]:
            first, *others = own(of)
            return [replace(first, parts={**first.parts, operand: part}), *others]

        monkeypatch.setattr(type(made), "_calls", calls)
        with pytest.raises(CannotOffload, match=f"{operand} of call 0 of {c.node.operator} must be the box "):
            c.implementation()


MISPLACED: dict[str, Callable[[list[Piece]], list[Piece]]] = {
    "gates in another order": lambda p: [replace(a, first=b.first, end=b.end) for a, b in zip(p, p[::-1], strict=True)],
    "a gate from its second row on": lambda p: [replace(p[0], first=p[0].first + 1), *p[1:]],
    "a gate without its last row": lambda p: [*p[:-1], replace(p[-1], end=p[-1].end - 1)],
    "a row of the next gate": lambda p: [replace(p[0], end=p[0].end + 1), *p[1:]],
    "zeros behind all gates": lambda p: [
        replace(a, place=(a.end - a.first) * k, count=a.end - a.first + (44 * len(p) if k == len(p) - 1 else 0))
        for k, a in enumerate(p)
    ],
}


@pytest.mark.parametrize("fault", MISPLACED)
def test_gates_and_their_zeros_are_those_of_the_rule(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    c, own = recurrent("gru", 3), flexasr_recurrent.Recurrent._pieces
    for operand in ("w", "u", "b", "d"):

        def pieces(of: Any, name: str, part: Any, operand: str = operand) -> list[Piece]:
            return MISPLACED[fault](own(of, name, part)) if name == operand else own(of, name, part)

        monkeypatch.setattr(flexasr_recurrent.Recurrent, "_pieces", pieces)
        with pytest.raises(CannotOffload, match=f"^{operand} of call 0 of flexasr.gru must be the box "):
            c.implementation()


@pytest.mark.parametrize(
    "name", ["convolution", *(pytest.param(n, marks=pytest.mark.slow) for n in PARTS if n != "convolution")]
)
def test_parts_give_the_result_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, other, count, rules = PARTS[name]
    c = build(monkeypatch)
    implementation = c.implementation()
    assert tuple(slug(rule.name) for rule in implementation.rules) == rules
    assert len(implementation.calls) == count
    wanted = other(c)
    assert np.array_equal(implementation.run(c.operands, DEVICES).value, wanted)
    # a part that is left out is seen
    own = type(implementation)._calls
    monkeypatch.setattr(type(implementation), "_calls", lambda of: own(of)[:-1])
    with pytest.raises(CannotOffload, match="elements of y must have been written"):
        c.implementation()


IN_LOOPS: dict[str, tuple[Callable[[pytest.MonkeyPatch], Case], Callable[[Case], Reals], dict[str, int]]] = {
    "max pooling": (small_pool, by_flexasr_pool, {"down": 3, "across": 1}),
    "mean pooling twice": (small_chain, by_flexasr_pool, {"down": 3, "across": 2}),
}
"""Operators whose mappings have parts in host loops, and how many."""


@pytest.mark.parametrize("name", IN_LOOPS)
def test_parts_in_host_loops_give_the_result_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, other, parts = IN_LOOPS[name]
    c = build(monkeypatch)
    implementation = c.implementation()
    (call,) = implementation.calls
    assert implementation.claims == (call.mapping.name,)
    assert {n: call.sizes[n] for n in parts} == parts
    assert np.array_equal(implementation.run(c.operands, DEVICES).value, other(c))


def test_every_call_lies_in_its_mappings_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    c = dense()

    def outside(self: Any) -> Any:
        return [replace(call, sizes={**call.sizes, "shift": 16}) for call in right(self)]

    right = vta.Dense._calls
    monkeypatch.setattr(vta.Dense, "_calls", outside)
    with pytest.raises(ValueError, match="Sizes of mapping vta_gemm must satisfy: shift <= 15; given m = "):
        c.implementation()


def test_a_claim_at_one_shape_has_no_calls_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    right = flexasr_pools.Pool._calls

    def at_one_shape(self: Any) -> Any:
        return [replace(call, mapping=replace(call.mapping, shape=(6, 64, 6, 4))) for call in right(self)]

    monkeypatch.setattr(flexasr_pools.Pool, "_calls", at_one_shape)
    case("flexasr.max_pool", (normal(1, 6, 64),)).implementation(bias=0, scale=0)
    with pytest.raises(CannotOffload) as raised:
        case("flexasr.max_pool", (normal(1, 8, 64),)).implementation(bias=0, scale=0)
    assert str(raised.value) == (
        "Sizes of mapping flexasr_float_maxpool must be those of rows 6, columns 64, part_rows 6, part_vectors 4, at "
        "which alone it is proved; given Y = 4, C = 64, H = 4, nv = 4, down = 1, across = 1, base = 0, exponent = 117"
    )


def test_columns_are_the_commands_of_a_run() -> None:
    """A device to which the commands are sent one by one ends as the one on which the program ran."""
    c = convolution(images=1)
    implementation, devices = c.implementation(), Devices()
    assert len(implementation.calls) == 1
    implementation.run(c.operands, devices)
    ila = implementation.calls[0].mapping.mapping.device.ila
    ran, told = devices.of(ila), Simulator(ila)
    stream = CommandStream(implementation.columns(0, c.operands))
    told.execute(stream)
    assert len(stream) == len(implementation.program(0)) == implementation.described(0)["commands"]
    assert ran.values == told.values
    assert all(np.array_equal(memory.words, told.memories[name].words) for name, memory in ran.memories.items())


def test_programs_are_described_by_fragment_sizes_and_constants() -> None:
    c = case("flexasr.linear", [normal(1, 3, 20), normal(2, 70, 20), normal(3, 70)], activation="none")
    first, second = c.implementation(), c.implementation()
    assert first.described(0)["constants"] == {}
    for implementation in (first, second):
        implementation.bind(dict(enumerate(c.operands[1:], 1)))
    described = first.described(0)
    assert described == second.described(0) == json.loads(json.dumps(described))
    assert described["fragment"] == semantics_of(first.calls[0].mapping.mapping)["device"]
    assert described["reads"] == {"host_x": 3 * 32, "host_w": 128 * 32, "host_b": 128}
    assert described["writes"] == {"host_y": 3 * 128} and described["constants"].keys() == {"host_w", "host_b"}
    other = np.array(c.operands[1])
    other[-1, -1] += 1
    second.bind({1: other})
    changed = second.described(0)["constants"]
    assert changed["host_b"] == described["constants"]["host_b"]
    assert changed["host_w"] != described["constants"]["host_w"]


def test_runs_on_other_data_are_those_of_a_fresh_implementation() -> None:
    first = case("flexasr.linear", [normal(1, 3, 20), normal(2, 70, 20), normal(3, 70)], activation="none")
    other = [np.asarray(normal(4, 3, 20), np.float32), *first.operands[1:]]
    wanted = first.implementation().run(other, Devices()).value
    devices, made = Devices(), first.implementation()
    made.bind(dict(enumerate(first.operands[1:], 1)))
    assert not np.array_equal(made.run(first.operands, devices).value, wanted)
    assert np.array_equal(made.run(other, devices).value, wanted)


def test_rules_of_parts_are_claims_of_the_registry() -> None:
    """Every name that a call may carry is one that can be proved and kept."""
    known = all_entries()
    rules = {rule for operator in OPERATORS.values() for rule in operator.splits}
    rules |= {s.rule for o in OPERATORS.values() if o.code is not None for s in o.code.scalings if s.rule is not None}
    assert len(rules) == 18 and {known[slug(rule.name)].expected for rule in rules} == {Status.PROVED}
    assert {known[n].kind for n in MAPPINGS} == {"mapping"}
    assert all(claim.mapping.name == name for name, (claim, _) in MAPPINGS.items())


@pytest.mark.parametrize("name", MAPPINGS)
def test_programs_are_those_that_the_claims_are_about(name: str) -> None:
    claim, subject = MAPPINGS[name][0], all_entries()[name].build()
    admission = Admission(name, subject, "digest", subject.words(), {})
    assert is_program_of(claim, admission)
    # neither a proof at one shape for a claim of every size, nor the other way round
    assert not is_program_of(claim, replace(admission, parameters={"shape": [2, 64]}))
    assert not is_program_of(replace(claim, shape=(2, 64)), admission)


@pytest.mark.parametrize("name", MAPPINGS)
def test_host_tensors_are_no_memories_of_the_device(name: str) -> None:
    """A proof would take them for one, and a program that is sent does not."""
    device = MAPPINGS[name][0].mapping.device
    assert not {t.name for t in device.tensors.values()} & set(device.ila.states)


@pytest.mark.parametrize("name", MAPPINGS)
def test_lemmas_of_bounds_are_about_functions_of_the_programs(name: str) -> None:
    """What is proved of a primitive says something of a device only if the device computes with it."""
    claim, operator = MAPPINGS[name]
    mapping = claim.mapping
    used = {digest(f) for fragment in (mapping.device, mapping.ir) for f in functions_of(fragment)}
    subjects = [all_entries()[n].build() for n in operator.bound_claims(claim)]
    lemmas = [subject for subject in subjects if isinstance(subject, LemmaSubject)]
    assert lemmas and {digest(subject.lemma.function) for subject in lemmas} <= used


def test_a_program_whose_operands_lie_otherwise_is_none_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the host's programs put into host tensors is what the joint says, in extents and in formats."""
    c = case("flexasr.linear", [normal(1, 3, 20), normal(2, 70, 20), normal(3, 70)], activation="relu")
    right = c.implementation(bias_b=2, bias_w=5)
    assert set(joints_of(right).values()) == {""}
    joint = operator_of(right).stated(right.calls[0].mapping)
    assert joint is not None
    laid = dict(right.laid_out(0))
    assert laid["host_x"] == (3, 32) and laid["host_b"] == (128, 1)
    other = {"host_x": (32, 3), "host_w": (32, 128), "host_b": (64, 1)}
    sizes = right.calls[0].sizes
    for name, extents in other.items():
        assert "must be a tensor" in joint.misplaced(sizes, {**laid, name: extents})
    own = flexasr_linear.Linear._format
    monkeypatch.setattr(flexasr_linear.Linear, "_format", lambda of, name: own(of, "w" if name == "b" else name))
    (problem,) = joints_of(c.implementation(bias_b=2, bias_w=5)).values()
    assert problem == (
        "flexasr.linear must be scaled so: x by 2^(u), w by 2^(v), b by 2^(u + v), y by 2^(u + v); "
        "not so: x by 2^(0), w by 2^(0), b by 2^(3), y by 2^(0)"
    )


@pytest.mark.parametrize("build", [convolution, dense])
def test_matrices_of_codes_are_views_of_what_the_joint_says(build: Callable[[], Case]) -> None:
    made = build().implementation()
    joint, sizes, laid = operator_of(made).stated(made.calls[0].mapping), made.calls[0].sizes, dict(made.laid_out(0))
    assert joint is not None and joint.misplaced(sizes, laid) == "" and {"host_x", "host_w"} <= laid.keys()
    for name in ("host_x", "host_w"):
        extents = laid[name]
        first, *rest = extents
        for other in (extents[::-1], (first + 1, *rest), (*rest, first), (first, *rest, 2)):
            if other != extents:
                assert f"{name} must be a tensor" in joint.misplaced(sizes, {**laid, name: other}), other
