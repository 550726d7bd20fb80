"""Ranges of accelerator nodes, from runs of the graph on the host.

Number formats are chosen at compile time, which needs to know how large numbers will be.  Calibration runs the
graph on inputs and keeps the largest magnitudes at every accelerator node.  Without given inputs these are drawn:
floats from the standard normal distribution, integers uniformly from what tables of the graph can be indexed with (0
where there are none), Booleans from both.  What networks see in use may be larger: :attr:`Calibration.given` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ir_semantics.graph import Graph, steps
from ir_semantics.graph.ir import integer_of
from ir_semantics.graph.types import Array

from .interface import Ranges
from .operators import accelerator_operator

DRAWN = 2
"""How many inputs are drawn where none are given."""


@dataclass(frozen=True)
class Calibration:
    """Ranges by the number of the node; how many inputs there were, and whether they were given."""

    ranges: Mapping[int, Ranges]
    samples: int
    given: bool

    def as_json(self) -> dict[str, Any]:
        """The calibration as JSON."""
        ranges = {str(i): dict(r) for i, r in self.ranges.items()}
        return {"samples": self.samples, "given": self.given, "ranges": ranges}


def calibrate(graph: Graph, inputs: Iterable[Mapping[str, Array]] | None = None, seed: int = 0) -> Calibration:
    """The ranges of all accelerator nodes when the graph runs on the host on these inputs, or on drawn ones.

    Raises GraphError on inputs that are not the graph's, and ValueError where there are none.
    """
    samples = drawn_inputs(graph, seed) if inputs is None else list(inputs)
    if not samples:
        raise ValueError("inputs of a calibration must be at least one, not none; give some, or leave them out")
    ranges: dict[int, dict[str, float]] = {}
    for sample in samples:
        values: dict[int, Array] = {}
        last = {j: i for i, node in enumerate(graph.nodes) for j in node.operands}
        for i, value in steps(graph, sample):
            values[i] = value
            node = graph.nodes[i]
            operator = accelerator_operator(node.operator)
            if operator is not None and operator.code is not None:
                operands = [np.asarray(values[j], np.float64) for j in node.operands]
                seen = operator.code.observe(node, operands, np.asarray(value, np.float64))
                known = ranges.setdefault(i, {})
                for name, magnitude in seen.items():
                    known[name] = float(np.maximum(known.get(name, 0.0), magnitude))  # NaN, where either is
            for j in node.operands:
                if last[j] == i:
                    values.pop(j, None)
    return Calibration(ranges, len(samples), inputs is not None)


def drawn_inputs(graph: Graph, seed: int = 0, count: int = DRAWN) -> list[dict[str, Array]]:
    """Inputs of the graph, always the same for a seed; see the module."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return [{name: _drawn(graph, i, generator) for name, i in graph.inputs.items()} for _ in range(count)]


def _drawn(graph: Graph, number: int, generator: np.random.Generator) -> Array:
    type_ = graph.nodes[number].type
    if type_.kind == "float":
        return generator.standard_normal(type_.shape).astype(type_.dtype)
    most = 2 if type_.kind == "bool" else _table_rows(graph, number)
    return generator.integers(0, most, type_.shape).astype(type_.dtype)


def _table_rows(graph: Graph, number: int) -> int:
    """The least extent of an axis that is indexed with what depends on this input; 1 where there is none."""
    depends = {number}
    extents: list[int] = []
    for i, node in enumerate(graph.nodes):
        if depends.isdisjoint(node.operands):
            continue
        depends.add(i)
        if node.operator == "gather" and node.operands[1] in depends:
            table = graph.nodes[node.operands[0]].type
            extents.append(table.shape[integer_of(dict(node.attributes), "axis")])
    return max(min(extents, default=1), 1)
