"""Bounds of runs against an oracle in exact fractions, which shares no code with what composes them.

A device is pretended: it rounds its operands to a grid, and errs by as much as its bound allows, in a random direction
or in the one that is worst for an output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, TensorType
from ir_semantics.graph.run import steps
from rewrites.compiler.codegen import Bounds, Executed
from rewrites.compiler.composition import differences
from rewrites.compiler.composition.balance import Balance, Value
from rewrites.compiler.composition.of_runs import Composed, RunBound
from rewrites.targets.flexasr.operators import LINEAR

GRID, OWN, WIDTH = 16, 0.0625, 4
Row = list[Fraction]


@dataclass
class Network:
    """Dense layers on a device; on the host relu behind all but the last, and sums with what went before, or maxima of
    pairs.
    """

    layers: list[tuple[np.ndarray, np.ndarray, str]]
    x: np.ndarray

    def graph(self) -> Graph:
        builder = Builder()
        at = builder.input("x", TensorType("float32", (1, WIDTH)))
        for w, b, after in self.layers:
            before, at = at, builder.add(LINEAR.name, at, builder.constant(w), builder.constant(b), activation="none")
            if after == "residual":
                at = builder.add("add", at, before)
            if after == "pairs":
                pairs = builder.add("reduce_max", builder.add("reshape", at, shape=(1, WIDTH // 2, 2)), axes=(2,))
                at = builder.add("concat", pairs, pairs, axis=1)
            at = at if after == "last" else builder.add("relu", at)
        return builder.graph({"y": at})


def drawn(seed: int) -> Network:
    draw = np.random.default_rng(seed)
    layers = [
        (
            draw.normal(size=(WIDTH, WIDTH)).astype("float32"),
            draw.normal(size=WIDTH).astype("float32"),
            str(draw.choice(["relu", "residual", "pairs"])) if layer < 2 else "last",
        )
        for layer in range(3)
    ]
    return Network(layers, draw.normal(size=WIDTH).astype("float32"))


def exactly(values: np.ndarray) -> Row:
    return [Fraction(float(v)) for v in values.reshape(-1)]


def dense(x: Row, w: np.ndarray, b: np.ndarray) -> Row:
    rows = (sum((p * q for p, q in zip(exactly(row), x, strict=True)), Fraction(0)) for row in w)
    return [total + bias for total, bias in zip(rows, exactly(b), strict=True)]


def afterwards(y: Row, before: Row, after: str) -> Row:
    if after == "residual":
        y = [p + q for p, q in zip(y, before, strict=True)]
    if after == "pairs":
        y = [max(y[k], y[k + 1]) for k in range(0, WIDTH, 2)] * 2
    return y if after == "last" else [max(v, Fraction(0)) for v in y]


def rounded(values: np.ndarray) -> np.ndarray:
    return np.round(values.astype(np.float64) * GRID) / GRID


def device(net: Network, signs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Row]:
    """What the device gives for each layer, and the output of the network on it; the host is exact."""
    x, given = exactly(net.x), []
    for (w, b, after), sign in zip(net.layers, signs, strict=True):
        operands = rounded(np.array([float(v) for v in x], np.float32))
        y = dense(exactly(operands), rounded(w), rounded(b))
        # float32 moves it by less than 2^-16 of the own error
        moved = [v + Fraction(OWN * (1 - 2.0**-16)) * int(s) for v, s in zip(y, sign, strict=True)]
        given.append(np.array([[float(v) for v in moved]], np.float32))
        x = [Fraction(float(np.float32(float(v)))) for v in afterwards(exactly(given[-1]), x, after)]
    return given, x


def reference(net: Network) -> Row:
    x = exactly(net.x)
    for w, b, after in net.layers:
        x = afterwards(dense(x, w, b), x, after)
    return x


def composed(net: Network, given: Sequence[np.ndarray], *, signed: bool = False) -> Composed:
    """The bound, also where devices' errors are ``signed``: known up to an eighth of what they may be."""
    graph = net.graph()
    layers = [i for i, node in enumerate(graph.nodes) if node.operator == LINEAR.name]
    of = RunBound(graph, cast(Any, {i: SimpleNamespace(operands=("x", "w", "b")) for i in layers}))
    values: dict[int, np.ndarray] = {}
    for number, _ in steps(graph, {"x": net.x[None]}):
        node, executed, bounds = graph.nodes[number], None, None
        if number in layers:
            operands = [values[i] for i in node.operands]
            quantised = {name: rounded(v) for name, v in zip(("x", "w", "b"), operands, strict=True)}
            values[number] = given[layers.index(number)]
            executed = Executed(values[number], {}, {}, quantised, {})
            bounds = Bounds(OWN, None, theorem="pretended")
            if signed:
                exact = dense(exactly(quantised["x"]), quantised["w"], quantised["b"])
                error = values[number] - np.array([[float(v) for v in exact]])
                bounds = replace(bounds, centre=error + OWN / 8, radius=np.full(error.shape, OWN / 8))
        else:
            values[number] = on_host(graph, number, values, net)
        of.take(number, values[number], executed, bounds)
    (bound,) = of.composed()
    return bound


def on_host(graph: Graph, number: int, values: dict[int, np.ndarray], net: Network) -> np.ndarray:
    node = graph.nodes[number]
    if node.operator in ("input", "constant"):
        return net.x[None] if node.operator == "input" else graph.constant(number)
    of = [values[i] for i in node.operands]
    plain: dict[str, Callable[[], np.ndarray]] = {
        "add": lambda: of[0] + of[1],
        "relu": lambda: np.maximum(of[0], 0),
        "reshape": lambda: of[0].reshape(1, WIDTH // 2, 2),
        "reduce_max": lambda: of[0].max(2),
        "concat": lambda: np.concatenate(of, 1),
    }
    return plain[node.operator]()


def worst_error(net: Network, signs: Sequence[np.ndarray]) -> tuple[float, Composed]:
    given, output = device(net, signs)
    exact = reference(net)
    return float(max(abs(p - q) for p, q in zip(output, exact, strict=True))), composed(net, given)


def searched(net: Network, tries: int, seed: int) -> list[tuple[float, Composed]]:
    """Runs with random signs of the device's errors, then with single ones turned while the error grows."""
    draw = np.random.default_rng(seed)
    signs = [draw.choice([-1, 1], WIDTH) for _ in net.layers]
    runs = [worst_error(net, signs)]
    for _ in range(tries):
        turned = [s.copy() for s in signs]
        layer, place = draw.integers(len(turned)), draw.integers(WIDTH)
        turned[layer][place] *= -1
        run = worst_error(net, turned)
        if run[0] > max(error for error, _ in runs):
            signs = turned
        runs.append(run)
    return runs


NETWORKS = [drawn(seed) for seed in range(8)]


def exceeded() -> bool:
    """Whether the error of any run is beyond its bound; float64 references are 2^-40 off at most."""
    return any(
        error > cast(float, bound.bound) + 2.0**-40
        for seed, net in enumerate(NETWORKS)
        for error, bound in searched(net, 12, seed)
    )


def test_no_error_is_beyond_its_bound() -> None:
    assert not exceeded()


def test_bounds_are_near_the_largest_errors_that_a_search_finds() -> None:
    nearest = [max(e / cast(float, b.bound) for e, b in searched(net, 12, 1)) for net in NETWORKS]
    assert max(nearest) > 0.8 and np.median(nearest) > 0.3


def test_errors_with_known_signs_add_up_with_these(monkeypatch: pytest.MonkeyPatch) -> None:
    signs = [
        [np.random.default_rng(seed).choice([-1, 1], WIDTH) for _ in net.layers] for seed, net in enumerate(NETWORKS)
    ]
    runs = [device(net, each) for net, each in zip(NETWORKS, signs, strict=True)]
    errors = [
        max(abs(p - q) for p, q in zip(y, reference(net), strict=True))
        for net, (_, y) in zip(NETWORKS, runs, strict=True)
    ]

    def bounds(signed: bool) -> list[float]:
        return [
            cast(float, composed(net, given, signed=signed).bound)
            for net, (given, _) in zip(NETWORKS, runs, strict=True)
        ]

    known, worst = bounds(True), bounds(False)
    assert all(float(e) <= b for e, b in zip(errors, known, strict=True)) and np.mean(known) < 0.7 * np.mean(worst)
    monkeypatch.setattr(Balance, "settle", lambda self, weights, amounts: np.zeros(len(weights)))
    assert any(float(e) > b for e, b in zip(errors, bounds(True), strict=True))


@pytest.mark.parametrize("twin", ["own", "operands", "missed", "known"])
def test_a_term_that_is_forgotten_is_found_out(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take, totals = RunBound._take, Balance.totals

    def without(self: RunBound, number: int, value: Any, executed: Any, bounds: Any) -> None:
        take(self, number, value, executed, bounds)
        step = self.steps[number]
        if twin == "own":
            step.own = None
        else:
            step.known = []

    def less(self: Balance) -> Any:
        self.missed, self.known = self.missed * (twin != "missed"), self.known * (twin != "known")
        return totals(self)

    if twin in ("own", "operands"):
        monkeypatch.setattr(RunBound, "_take", without)
    monkeypatch.setattr(Balance, "totals", less)
    if twin == "missed":  # what weights miss counts where they are wrong
        monkeypatch.setattr(differences, "_RULES", {**differences._RULES, "matmul": halved})
    assert exceeded()


def halved(of: Any) -> differences.Pull:
    pull = differences._product(of)
    return lambda weights: [None if part is None else part / 2 for part in pull(weights)]


def garbled(of: Any) -> differences.Pull:
    draw = np.random.default_rng(0)
    return lambda weights: [draw.normal(size=(len(weights), *a.shape)) for a in of.actual]


@pytest.mark.parametrize("wrong", [halved, garbled, lambda of: lambda weights: [None] * len(of.actual)])
def test_rules_are_not_trusted(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of wrong weights bounds are larger, and hold."""
    right = [searched(net, 0, 0)[0][1] for net in NETWORKS]
    assert all(bound.missed < 2.0**-40 for bound in right)
    monkeypatch.setattr(differences, "_RULES", {**differences._RULES, "matmul": wrong})
    assert not exceeded()
    assert all(bound.missed > 2.0**-10 for bound in (searched(net, 0, 0)[0][1] for net in NETWORKS))


def test_what_is_added_up_is_the_error_in_exact_fractions() -> None:
    """An operator and its operands, any weights: the sums are those of the definition, up to what is missed."""
    draw = np.random.default_rng(3)
    one, other, got = draw.normal(size=(3, 5))
    result, operand = Value(*draw.normal(size=(2, 7))), Value(one, other)
    weights, part, earlier = draw.normal(size=(2, 7)), draw.normal(size=(2, 5)), draw.normal(size=(2, 5))
    balance = Balance.of(1, result, weights)
    balance.held[0], balance.values[0] = earlier, operand
    balance.pass_on(balance.take(1), result, [(0, part, got, operand)])
    before = weighted(weights, result.run, result.reference), weighted(earlier, one, other)
    after = weighted(balance.held[0], one, other)
    for row in range(2):
        left = abs(before[0][row] + before[1][row] - Fraction(float(balance.known[row])) - after[row])
        assert 0 < left <= Fraction(float(balance.missed[row]))
        assert Fraction(float(balance.missed[row])) < left * (1 + Fraction(1, 1 << 10))


def weighted(weights: np.ndarray, one: np.ndarray, other: np.ndarray) -> Row:
    apart = [p - q for p, q in zip(exactly(one), exactly(other), strict=True)]
    return [sum((w * d for w, d in zip(exactly(row), apart, strict=True)), Fraction(0)) for row in weights]


def test_what_is_lost_between_amounts_that_cancel_is_missed() -> None:
    small = np.full((1, 1), 1.4 * 2.0**-24)
    amounts = [np.full((1, 1), 2.0**29), *[small] * 1000, np.full((1, 1), -(2.0**29))]
    balance = Balance.of(0, Value(small, small), np.ones((1, 1)))
    for amount in amounts:
        balance.settle(np.ones((1, 1)), amount)
    known = Fraction(float(balance.known[0]))
    assert abs(known - 1000 * Fraction(float(small[0, 0]))) <= Fraction(float(balance.missed[0]))
