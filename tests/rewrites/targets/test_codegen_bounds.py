"""Bounds of runs: never exceeded, on the quantised operands and on the given ones, and not stated where they fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.floats import EXPONENT_AT_0, adpfloat_to_float, float_to_adpfloat
from ila_lang.interpreter.compile import compile_function
from ir_semantics.graph import run
from ir_semantics.graph.build import expansion
from rewrites.claims.theorems import convolution
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.compiler.codegen import Options
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.targets.flexasr.code.pools import POOLS
from tests.ir_semantics import reference_layers as reference
from tests.marks import slow_but
from tests.rewrites.targets.nodes import DEVICES, Case, case, normal


def exact(c: Case, operands: list[Any]) -> Any:
    """The operator in float64: its definition, on operands of that type."""
    o, name = [np.asarray(x, np.float64) for x in operands], c.node.operator
    attributes = dict(c.node.attributes)
    if name == "flexasr.linear":
        total = o[0] @ o[1].T + o[2]
        functions: dict[Any, Callable[[Any], Any]] = {
            "none": lambda v: v,
            "relu": lambda v: np.maximum(v, 0),
            "sigmoid": reference.sigmoid,
            "tanh": np.tanh,
        }
        return functions[attributes["activation"]](total)
    if name == "flexasr.layer_norm":
        return reference.layer_norm(*o, eps=float(attributes["epsilon"]))  # type: ignore[arg-type]
    if name in POOLS:
        rows = o[0].reshape(-1, 1 << POOLS[name].steps, o[0].shape[1])
        return rows.max(axis=1) if POOLS[name].kind == "max" else rows.mean(axis=1)
    if name == "hlscnn.conv2d":
        return reference.conv2d(*o, stride=(attributes["stride_h"], attributes["stride_w"]))  # type: ignore[arg-type]
    if name == "vta.dense":
        return o[0] @ o[1].T
    if name == "vta.linear":
        total = o[0] @ o[1].T + o[2]
        return np.maximum(total, 0) if attributes["activation"] == "relu" else total
    kind = name[8:].removesuffix("_from")
    first = [state[0] for state in o[5:]]
    if kind == "lstm":
        return reference.lstm(*o[:5], initial=(first[0], first[1]) if first else None)[0]
    return getattr(reference, kind)(*o[:5], initial=first[0] if first else None)


DEFAULT = Options()


@dataclass(frozen=True)
class Kind:
    """How to draw operands (from a seed and a scale) of one shape, so that programs and formats stay the same."""

    operator: str
    draw: Callable[[int, float], list[Any]]
    attributes: dict[str, Any]
    options: Options = DEFAULT


def _linear(seed: int, scale: float) -> list[Any]:
    return [normal(seed, 3, 16, scale=scale), normal(seed + 1, 64, 16, scale=0.2), normal(seed + 2, 64)]


def _biased(seed: int, scale: float) -> list[Any]:
    return [normal(seed, 3, 20, scale=scale), normal(seed + 1, 20, 20), normal(seed + 2, 20, scale=5)]


def _recurrent(gates: int, states: int = 0) -> Callable[[int, float], list[Any]]:
    def draw(seed: int, scale: float) -> list[Any]:
        w, u = (normal(seed + i, gates * 16, 16, scale=0.02) for i in (1, 2))
        first = [np.tanh(normal(seed + 5 + i, 1, 16)) for i in range(states)]
        biases = (normal(seed + i, gates * 16, scale=0.1) for i in (3, 4))
        return [normal(seed, 2, 16, scale=scale), w, u, *biases, *first]

    return draw


KINDS = {
    "linear": Kind("flexasr.linear", _linear, {"activation": "none"}),
    "linear and relu": Kind("flexasr.linear", _linear, {"activation": "relu"}),
    "linear and sigmoid": Kind("flexasr.linear", _linear, {"activation": "sigmoid"}),
    "linear and tanh": Kind("flexasr.linear", _linear, {"activation": "tanh"}),
    "max pooling": Kind("flexasr.max_pool", lambda seed, scale: [normal(seed, 4, 16, scale=scale)], {}),
    "mean pooling": Kind("flexasr.mean_pool", lambda seed, scale: [normal(seed, 4, 16, scale=scale)], {}),
    "max pooling 4 times": Kind("flexasr.max_pool_x4", lambda seed, scale: [normal(seed, 16, 16, scale=scale)], {}),
    "mean pooling twice": Kind("flexasr.mean_pool_x2", lambda seed, scale: [normal(seed, 8, 16, scale=scale)], {}),
    "layer normalisation": Kind(
        "flexasr.layer_norm",
        lambda seed, scale: [normal(seed, 3, 16, scale=scale), normal(seed + 1, 16), normal(seed + 2, 16)],
        {"epsilon": 1e-5},
    ),
    "rnn": Kind("flexasr.rnn", _recurrent(1), {}),
    "gru": Kind("flexasr.gru", _recurrent(3), {}),
    "lstm": Kind("flexasr.lstm", _recurrent(4), {}),
    "rnn from a state": Kind("flexasr.rnn_from", _recurrent(1, 1), {}),
    "gru from a state": Kind("flexasr.gru_from", _recurrent(3, 1), {}),
    "lstm from states": Kind("flexasr.lstm_from", _recurrent(4, 2), {}),
    "convolution": Kind(
        "hlscnn.conv2d",
        lambda seed, scale: [normal(seed, 1, 9, 4, 4, scale=scale), normal(seed + 1, 8, 9, 2, 2, scale=0.2)],
        {"stride_h": 1, "stride_w": 1},
    ),
    "convolution, weights of 8 bits": Kind(
        "hlscnn.conv2d",
        lambda seed, scale: [normal(seed, 1, 9, 4, 4, scale=scale), normal(seed + 1, 8, 9, 2, 2, scale=0.2)],
        {"stride_h": 1, "stride_w": 1},
        Options(chosen={"weight_bits": 8}),
    ),
    "dense": Kind("vta.dense", lambda seed, scale: [normal(seed, 3, 20, scale=scale), normal(seed + 1, 20, 20)], {}),
    "dense with bias": Kind("vta.linear", _biased, {"activation": "none"}),
    "dense with bias and relu": Kind("vta.linear", _biased, {"activation": "relu"}),
    "dense as published": Kind(
        "vta.dense",
        lambda seed, scale: [normal(seed, 3, 20, scale=scale), normal(seed + 1, 20, 20)],
        {},
        Options(as_published=True),
    ),
}
LEAST = {
    **{
        "max pooling": 0.9,
        "max pooling 4 times": 0.5,
        "mean pooling": 0.5,
        "mean pooling twice": 0.3,
        "dense": 0.5,
        "dense with bias": 0.5,
        "dense with bias and relu": 0.5,
        "dense as published": 0.5,
        "convolution": 0.3,
    },
    **dict.fromkeys(("gru", "lstm", "gru from a state", "lstm from states"), 0.002),
}
"""The least part of its bound of the largest error: those over time are loose (docs/reference/numerics.md)."""
DECLARED = ("max pooling 4 times", "mean pooling twice")
"""Bounds that are composed by hand."""
QUICK = (
    "linear and relu",
    "layer normalisation",
    "convolution",
    "dense",
    "dense with bias and relu",
    "lstm from states",
)


@pytest.mark.parametrize("name", slow_but(QUICK, KINDS))
def test_errors_stay_within_their_bounds(name: str) -> None:
    kind = KINDS[name]
    c = case(kind.operator, kind.draw(0, 1.0), kind.options, [kind.draw(s, 1.0) for s in range(4)], **kind.attributes)
    implementation = c.implementation()
    stated, reached, known = 0, 0.0, list[float]()

    @settings(max_examples=12)
    @given(st.integers(0, 10_000), st.sampled_from([0.25, 1.0, 1.0, 1.0, 4.0]))
    def check(seed: int, scale: float) -> None:
        nonlocal stated, reached
        operands = [np.asarray(a, np.float32) for a in kind.draw(seed, scale)]
        executed = implementation.run(operands, DEVICES)
        bounds = implementation.bounds(executed)
        if bounds.on_quantised is not None:
            cut = name.startswith("dense") and bounds.centre is None  # a result of -128, of which VTA's theorem is not
            assert (bounds.theorem in OPERATORS) is (name not in DECLARED and not cut)
        on_quantised = exact(c, [executed.quantised[n] for n in implementation.operands])
        on_given = exact(c, operands)
        for bound, wanted in ((bounds.on_quantised, on_quantised), (bounds.on_given, on_given)):
            if bound is None:
                assert bounds.reason
                continue
            error = float(np.abs(executed.value - wanted).max())
            assert error <= bound
            stated += 1
            reached = max(reached, error / bound if bound else 0.0)
        if bounds.centre is not None:  # known, with its sign
            assert bounds.radius is not None
            assert (np.abs(executed.value - on_quantised - bounds.centre) <= bounds.radius).all()
            known.append(float(np.max(bounds.radius)))

    check()
    assert stated >= 6
    assert reached > LEAST.get(name, 0.05)  # the bound means something
    assert bool(known) is name.startswith(("dense", "convolution")) and max(known, default=0) <= 2.0**-7


IN_RANGES = {
    "max pooling": 0,
    "mean pooling twice": 4,
    "linear": 4,
    "dense": 2,
    "dense with bias and relu": 2,
    "dense as published": 2,
    "gru": 250,
    "lstm from states": 100,
}
"""Operators with bounds in ranges, and at most how many times the largest error these are."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("gru", "mean pooling twice") else n for n in IN_RANGES]
)
def test_no_run_in_ranges_is_beyond_their_bound(name: str) -> None:
    kind = KINDS[name]
    runs = [[np.asarray(a, np.float32) for a in kind.draw(seed, 0.5)] for seed in range(4)]
    weights = dict(enumerate(runs[0]))
    c = case(kind.operator, runs[0], kind.options, [[r[0], *runs[0][1:5], *r[5:]] for r in runs], **kind.attributes)
    implementation, errors, ranges = c.implementation(), [0.0], dict[str, float]()
    implementation.bind({place: weights[place] for place in range(1, min(len(weights), 5))})
    for run_ in runs:
        executed = implementation.run([run_[0], *runs[0][1:5], *run_[5:]], DEVICES)
        got = [executed.quantised[n] for n in implementation.operands]
        wanted = exact(c, got)
        errors.append(float(np.abs(executed.value - wanted).max()))
        seen = implementation.observe(c.node, got, wanted)
        ranges = {n: max(v, ranges.get(n, 0.0)) for n, v in seen.items()}
    bound = implementation.bounds_in(ranges)
    assert bound.on_quantised is not None, bound.reason
    assert max(errors) <= bound.on_quantised <= IN_RANGES[name] * max(errors)
    assert np.isfinite(implementation.rounding("x", ranges["x"]))
    assert bound.theorem in OPERATORS or "twice" in name
    if name.startswith("dense"):  # what is cut counts; the theorem does not know -128, which relu excludes
        beyond = implementation.bounds_in({n: 4 * v for n, v in ranges.items()})
        assert beyond.on_quantised is not None and beyond.on_quantised > ranges.get("sum", ranges["products"])
        assert bool(beyond.theorem) is ("relu" in name)


@pytest.mark.parametrize(("bias", "scale"), [(0, 0), (3, -2), (7, 5)])
def test_rounding_to_adaptive_floats_changes_numbers_by_what_is_stated_of_their_codes(bias: int, scale: int) -> None:
    """Halves between codes, and the words beside them, of all magnitudes up to the largest code."""
    of, exponent = case("flexasr.max_pool", [normal(0, 2, 16)]), np.int64(EXPONENT_AT_0 + bias + scale)
    rounds, reads = (compile_function(f, vector=True) for f in (float_to_adpfloat, adpfloat_to_float))
    halves = np.arange(exponent - 2 << 23, exponent + 8 << 23, 1 << 18, dtype=np.int64)
    words = (halves[:, None] + [-1, 0, 1]).reshape(-1)
    codes = rounds(words, exponent)
    number, value = (w.astype(np.uint32).view(np.float32).astype(np.float64) for w in (words, reads(codes, exponent)))
    kept, implementation = number <= value.max(), of.implementation(bias=bias, scale=scale)
    stated = np.array([implementation.rounding("x", v) for v in value[kept]])
    error = np.abs(number - value)[kept]
    assert (error <= stated).all() and (error == stated).any() and kept.sum() > 700


@pytest.mark.parametrize(
    ("kind", "gates", "scale"), [("gru", 3, 0.075), pytest.param("lstm", 4, 0.075, marks=pytest.mark.slow)]
)
def test_many_timesteps_stay_within_their_bounds(kind: str, gates: int, scale: float) -> None:
    draw = (normal(i, gates * 16, 16, scale=scale) for i in (1, 2))
    c = case(f"flexasr.{kind}", [normal(0, 24, 16), *draw, *(normal(i, gates * 16, scale=0.1) for i in (3, 4))])
    implementation = c.implementation()
    executed = implementation.run(c.operands, DEVICES)
    bounds = implementation.bounds(executed)
    error = np.abs(executed.value - exact(c, [executed.quantised[n] for n in implementation.operands]))
    assert bounds.elements is not None and (error <= bounds.elements).all()
    assert bounds.on_quantised is not None and error.max() <= bounds.on_quantised < 12 * error.max()
    assert bounds.theorem in OPERATORS and "step" in bounds.theorem


def test_what_rounding_changes_in_a_given_state_counts_where_it_vanishes_with_time() -> None:
    """A state beyond its format is cut, and each step halves what that changes."""
    layer = [np.zeros((12, 16)), np.zeros((48, 16)), np.zeros((48, 16)), np.zeros(48), np.zeros(48)]
    c = case("flexasr.gru_from", [*layer, np.ones((1, 16))], seen=[[*layer, np.full((1, 16), 0.2)]])
    executed = (implementation := c.implementation()).run(c.operands, DEVICES)
    error, bound = float(np.abs(executed.value - exact(c, c.operands)).max()), implementation.bounds(executed).on_given
    assert bound is not None and 0.2 < error <= bound < 1.2 * error


@pytest.mark.parametrize("name", [n for n in QUICK if n != "lstm from states"])
def test_a_device_with_another_parameter_leaves_its_bound(name: str) -> None:
    """What the bound is for: a program with another format is caught on ordinary data."""
    kind = KINDS[name]
    parameter = {"linear and relu": "bias_y", "layer normalisation": "bias_gamma", "convolution": "scale_w"}.get(
        name, "shift"
    )
    c = case(kind.operator, kind.draw(0, 1.0), kind.options, **kind.attributes)
    right = c.implementation()
    executed = right.run(c.operands, DEVICES)
    other, wrong = c.implementation(**{parameter: c.quantisation[parameter] + 1}), c.implementation()
    if parameter in ("bias_y", "bias_gamma", "shift"):
        wrong.calls = other.calls  # the program, but not the host
        if isinstance(wrong, FloatImplementation) and isinstance(other, FloatImplementation):
            pairs = zip(wrong.sequence.steps, other.sequence.steps, strict=True)
            wrong.sequence.steps = tuple(own if own.claim in wrong.conversions else step for own, step in pairs)
        faulty = wrong.run(c.operands, DEVICES)
    else:
        faulty = c.implementation(**{parameter: c.quantisation[parameter] + 1}).run(c.operands, DEVICES)
        faulty = type(executed)(faulty.value * 2, executed.given, executed.codes, executed.quantised, {})
    bounds = right.bounds(faulty)
    assert bounds.on_given is not None
    assert np.abs(faulty.value - c.exact).max() > bounds.on_given


def test_no_bound_is_stated_where_a_format_may_wrap() -> None:
    c = case(
        "hlscnn.conv2d",
        (normal(1, 1, 9, 4, 4, scale=40.0), normal(2, 8, 9, 2, 2, scale=0.2)),
        seen=[(normal(1, 1, 9, 4, 4), normal(2, 8, 9, 2, 2, scale=0.2))],
        stride_h=1,
        stride_w=1,
    )
    implementation = c.implementation()
    executed = implementation.run(c.operands, DEVICES)
    bounds = implementation.bounds(executed)
    assert (bounds.on_quantised, bounds.on_given) == (None, None)
    assert bounds.reason == "at these ranges it is not excluded that a stored word of 16 bits wraps"
    assert np.abs(executed.value - c.exact).max() > 10  # it does


@pytest.mark.slow
def test_a_long_sequence_has_no_bound() -> None:
    w, u = normal(1, 64, 16, scale=0.3), normal(2, 64, 16, scale=0.3)
    c = case("flexasr.lstm", [normal(0, 5, 16), w, u, normal(3, 64), normal(4, 64)])
    implementation = c.implementation()
    bounds = implementation.bounds(implementation.run(c.operands, DEVICES))
    assert (bounds.on_quantised, bounds.on_given) == (None, None)
    assert bounds.reason.startswith("from timestep ")


def test_references_here_are_the_operators_of_the_graph_ir() -> None:
    for kind in KINDS.values():
        c = case(kind.operator, kind.draw(0, 1.0), kind.options, **kind.attributes)
        graph = expansion(c.node.operator, c.types, c.node.attributes)
        found = run(graph, {f"x{i}": a for i, a in enumerate(c.operands)})["y"]
        assert np.allclose(found, exact(c, c.operands), rtol=1e-5, atol=1e-5)


def test_no_bound_is_stated_where_rows_hardly_vary() -> None:
    x = np.ones((2, 16)) + normal(1, 2, 16, scale=1e-5)
    c = case("flexasr.layer_norm", [x, normal(2, 16), normal(3, 16)], epsilon=0.0)
    implementation = c.implementation()
    bounds = implementation.bounds(implementation.run(c.operands, DEVICES))
    assert (bounds.on_quantised, bounds.on_given) == (None, None)
    assert bounds.reason == "a row's variance is so small that the inverse root may wrap"


LAYERS = {
    "two blocks": ((1, 9, 4, 4), (8, 9, 2, 2), (1, 1)),
    "many taps": ((2, 20, 7, 6), (10, 20, 3, 2), (2, 1)),
    "one tap": ((1, 3, 3, 5), (4, 3, 1, 1), (1, 2)),
}


def _layer(name: str, bits: int, seed: int) -> tuple[Any, Any]:
    """Errors of a convolution's elements on the simulator, and their bounds; nothing is saturated."""
    x, w, (down, right) = LAYERS[name]
    arrays, options = (normal(seed, *x), normal(seed + 1, *w, scale=0.2)), Options(chosen={"weight_bits": bits})
    c = case("hlscnn.conv2d", arrays, options, stride_h=down, stride_w=right)
    implementation = c.implementation()
    executed = implementation.run(c.operands, DEVICES)
    bounds = implementation.bounds(executed)
    assert not executed.saturated
    assert bounds.elements is not None
    assert bounds.on_quantised is not None
    assert bounds.elements.max() <= bounds.on_quantised
    assert bounds.declared == "which roundings an element of hlscnn.conv2d has"
    quantised = [executed.quantised[n] for n in implementation.operands]
    return np.abs(executed.value - exact(c, quantised)), bounds.elements


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", LAYERS)
def test_roundings_of_taps_are_those_of_the_run(name: str, bits: int) -> None:
    runs = [_layer(name, bits, seed) for seed in range(0, 20, 2)]
    errors, bounds = (np.concatenate([each[i].reshape(-1) for each in runs]) for i in (0, 1))
    assert (errors <= bounds).all()
    assert (errors > bounds / 2).any()  # half of it is no bound
    if bits == 8:
        assert np.array_equal(errors, bounds)  # products are exact: the roundings are known
    else:
        assert np.median(errors) > np.median(bounds) / 4


def test_products_that_are_rounded_otherwise_leave_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "LANES", 4)  # as if sums of four products were rounded
    errors, bounds = _layer("many taps", 8, 0)
    assert (errors > bounds).any()


def test_products_of_wide_weights_are_known_as_far_as_the_theorem_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "_error_of_a_sum", lambda operator: 0.0)  # as if they were exact
    runs = [_layer("many taps", 16, seed) for seed in range(0, 8, 2)]
    assert any((errors > bounds).any() for errors, bounds in runs)
