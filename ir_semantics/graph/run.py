"""Running graphs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from .build import evaluate, run_node
from .ir import Graph
from .types import Array, GraphError


def run(graph: Graph, inputs: Mapping[str, Array], *, by_definition: bool = False) -> dict[str, Array]:
    """The outputs of a graph by name.

    With ``by_definition`` every tensor operator is evaluated as its index comprehension says, element by element and
    sums in increasing order of their variable; otherwise in whichever form of it NumPy is fast at.  Floating-point
    sums of the two differ by the order of additions, and in the sign of zero.

    Raises GraphError where an input is missing, unknown, or of another type.
    """
    results: dict[int, Array] = {}
    outputs = set(graph.outputs.values())
    for i, value in steps(graph, inputs, by_definition=by_definition):
        if i in outputs:
            results[i] = value
    return {name: results[i] for name, i in graph.outputs.items()}


def steps(graph: Graph, inputs: Mapping[str, Array], *, by_definition: bool = False) -> Iterator[tuple[int, Array]]:
    """The number and the result of every node, in order; see :func:`run`."""
    arrays = check_inputs(graph, inputs)
    run = partial(run_node, by_definition=by_definition)
    yield from evaluate(graph.nodes, range(len(graph.nodes)), graph.constants, arrays, run)


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[int, Array]:
    """The inputs by their nodes' numbers; raises GraphError where one is missing, unknown, or of another type."""
    arrays: dict[int, Array] = {}
    for name, i in graph.inputs.items():
        if name not in inputs:
            raise GraphError(f"the input {name} must be given, as {graph.nodes[i].type}; give an array of that name")
        arrays[i] = np.asarray(inputs[name])
        if (str(arrays[i].dtype), arrays[i].shape) != (graph.nodes[i].type.dtype, graph.nodes[i].type.shape):
            shape = ", ".join(map(str, arrays[i].shape))
            raise GraphError(
                f"the input {name} must be {graph.nodes[i].type}, not {arrays[i].dtype}[{shape}]; convert it"
            )
    unknown = sorted(set(inputs) - set(graph.inputs))
    if unknown:
        raise GraphError(f"inputs must be those of the graph ({', '.join(graph.inputs)}), not {', '.join(unknown)}")
    return arrays
