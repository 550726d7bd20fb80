"""Bounds for all inputs in ranges: reached exactly by the worst device, and never exceeded by FlexASR's simulator."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, TensorType
from ir_semantics.graph.run import steps
from rewrites.compiler.artefact.running import run_compiled
from rewrites.compiler.codegen import Bounds, Devices, calibrate, constants_of, implement, quantisation_of
from rewrites.compiler.composition.of_ranges import in_ranges, outside, ranges_of
from rewrites.targets.flexasr.operators import LINEAR

WIDTH = 4
OWN, CHANGE, CALIBRATED, MARGIN = 0.125, 0.25, 2.0, 1.25


def layers(weights: list[tuple[np.ndarray, np.ndarray]], between: str = "relu") -> Graph:
    builder = Builder()
    at = builder.input("x", TensorType("float32", (1, weights[0][0].shape[1])))
    for number, (w, b) in enumerate(weights):
        at = builder.add(between, at) if number else at
        at = builder.add(LINEAR.name, at, builder.constant(w), builder.constant(b), activation="none")
    return builder.graph({"y": at})


@dataclass
class Worst:
    """A device that rounds operands, weights and results up by as much as it may."""

    node: Any
    types: Any
    weights: dict[str, np.ndarray]
    operands: tuple[str, ...] = ("x", "w", "b")

    @property
    def options(self) -> Any:
        return SimpleNamespace(margin=MARGIN)

    def bounds_in(self, ranges: Any) -> Bounds:
        return Bounds(OWN, None)

    def rounding(self, name: str, magnitude: float) -> float:
        return CHANGE

    def constant_of(self, name: str) -> np.ndarray:
        return self.weights[name].astype(np.float64) + 0.0625


def test_the_worst_device_reaches_the_bound() -> None:
    """Weights are above 0 and rows alike, so that all errors add up; a term that is forgotten would be missed."""
    row = np.array([1, 2, 0.5, 3], np.float32)
    weights = [(np.tile(row, (WIDTH, 1)), np.full(WIDTH, 0.5, np.float32))] * 2
    graph = layers(weights)
    nodes = [i for i, node in enumerate(graph.nodes) if node.operator == LINEAR.name]
    named = {"w": weights[0][0], "b": weights[0][1]}
    devices = {i: Worst(graph.nodes[i], [graph.nodes[j].type for j in graph.nodes[i].operands], named) for i in nodes}
    exact = [Fraction(float(v)) for v in row]
    most = [Fraction(CALIBRATED * MARGIN)]  # what the device gets, the largest number of the range
    got, x = most[0], most[0] - Fraction(CHANGE)
    calibration = {}
    for i in nodes:
        calibration[i] = {"x": float(got) / MARGIN}
        given = sum(((w + Fraction(1, 16)) * got for w in exact), Fraction(0)) + Fraction(9, 16) + Fraction(OWN)
        x = sum((w * x for w in exact), Fraction(0)) + Fraction(1, 2)
        got = given + Fraction(CHANGE)
    (bound,) = in_ranges(graph, cast(Any, devices), calibration)
    assert bound.bound is not None
    error = given - x
    rounding = 2.0**-20 * float(error)  # of the ranges, and of relu on the host, which is exact
    assert float(error) <= bound.bound + rounding and bound.bound <= float(error) * (1 + 2.0**-16)


def test_no_error_of_the_simulator_is_beyond_the_bound() -> None:
    draw = np.random.default_rng(2)
    weights = [(draw.normal(size=(8, 8)).astype("float32"), draw.normal(size=8).astype("float32")) for _ in range(2)]
    graph = layers(weights)
    samples = [{"x": draw.normal(size=(1, 8)).astype("float32")} for _ in range(20)]
    calibration = calibrate(graph, samples).ranges
    made = {}
    for i, ranges in calibration.items():
        node = graph.nodes[i]
        made[i] = implement(node, [graph.nodes[j].type for j in node.operands], quantisation_of(node, ranges))
        made[i].bind(constants_of(graph, node.operands))
    (bound,) = in_ranges(graph, made, calibration)
    devices, errors, left = Devices(), [], 0
    for scale in (1.0, 1.2, 3.0):
        for sample in samples:
            moved = {"x": sample["x"] * np.float32(scale)}
            expected = dict(steps(graph, moved))[graph.outputs["y"]]
            gone = False
            for ran in run_compiled(graph, made, moved, devices):
                if ran.executed is not None:
                    ranges = ranges_of(calibration[ran.number], made[ran.number])
                    gone |= bool(outside(made[ran.number], ran.executed, ranges))
            if not gone:
                errors.append(float(np.abs(ran.value - expected).max()))
            left += gone
    assert bound.bound is not None and 0 < left < 40 and len(errors) >= 20
    assert max(errors) <= bound.bound <= 60 * max(errors)


@pytest.mark.parametrize("operator", ["exp", "sqrt"])
def test_what_has_no_rule_has_no_bound(operator: str) -> None:
    row = np.ones((WIDTH, WIDTH), np.float32)
    graph = layers([(row, row[0])] * 2, operator)
    nodes = [i for i, node in enumerate(graph.nodes) if node.operator == LINEAR.name]
    devices = {
        i: Worst(graph.nodes[i], [graph.nodes[j].type for j in graph.nodes[i].operands], {"w": row, "b": row[0]})
        for i in nodes
    }
    (bound,) = in_ranges(graph, cast(Any, devices), {i: {"x": 1.0} for i in nodes})
    assert bound.bound is None and bound.reason.endswith(f": no rule says what errors become in {operator}")
