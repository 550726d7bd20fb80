"""Accelerator nodes on given arrays, and their implementations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilaverify.catalogue import backends, find_backends
from ir_semantics.graph import Builder, Node, TensorType, run
from ir_semantics.graph.types import Array
from rewrites.compiler.codegen import (
    Devices,
    Executed,
    Implementation,
    Options,
    calibrate,
    implement,
    implementable,
    quantisation_of,
)

EVERY = find_backends(tuple(backends()))
"""All accelerators, so that their operators are known."""
DEVICES = Devices()
"""Shared by tests, as programs share devices: each begins with what the last one left."""


@dataclass(frozen=True)
class Case:
    """An operator on arrays: its node, the types of its operands, their values (float32), and the exact result."""

    node: Node
    types: tuple[TensorType, ...]
    operands: list[Array]
    exact: NDArray[np.float64]
    quantisation: Mapping[str, int]
    options: Options

    def implementation(self, **changed: int) -> Implementation:
        """The implementation, with other parameters of the quantisation where they are given."""
        return implement(self.node, self.types, {**self.quantisation, **changed}, self.options)

    def run(self, **changed: int) -> Executed:
        return self.implementation(**changed).run(self.operands, DEVICES)


def case(
    operator: str,
    arrays: Sequence[Any],
    options: Options | None = None,
    seen: Sequence[Sequence[Any]] | None = None,
    **attributes: Any,
) -> Case:
    """The operator on arrays, calibrated on these (or on ``seen``)."""
    given = [np.asarray(a, np.float32) for a in arrays]
    builder = Builder()
    inputs = [builder.input(f"x{i}", TensorType("float32", a.shape)) for i, a in enumerate(given)]
    graph = builder.graph({"y": builder.add(operator, *inputs, **attributes)})
    number = graph.outputs["y"]
    node, types = graph.nodes[number], tuple(graph.nodes[i].type for i in inputs)
    assert implementable(node, types) is None
    samples = [{f"x{i}": np.asarray(a, np.float32) for i, a in enumerate(s)} for s in seen or [given]]
    chosen = options or Options()
    quantisation = quantisation_of(node, calibrate(graph, samples).ranges[number], chosen)
    named = {f"x{i}": a for i, a in enumerate(given)}
    exact = run(graph, named)["y"].astype(np.float64)
    return Case(node, types, given, exact, quantisation, chosen)


def normal(seed: int, *shape: int, scale: float = 1.0) -> NDArray[np.float64]:
    """Normal numbers of this deviation."""
    return np.random.default_rng(seed).normal(size=shape) * scale
