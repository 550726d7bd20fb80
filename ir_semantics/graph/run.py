"""Running graphs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ir_semantics.scalars_arrays import run_scalar

from .build import Builder
from .comprehension import comprehend
from .ir import Attribute, Graph, Node
from .operator import NAMES, Operator, lookup, meaning
from .types import Array, GraphError, TensorType

__all__ = ["check_inputs", "expansion", "run", "run_node", "run_nodes", "steps"]


def run(graph: Graph, inputs: Mapping[str, Array], *, by_definition: bool = False) -> dict[str, Array]:
    """The outputs of a graph by name.

    With ``by_definition`` every tensor operator is evaluated as its index comprehension says, element by element and
    sums in increasing order of their variable; otherwise by NumPy functions that are tested to agree.  Floating-point
    sums of the two differ by the order of additions, and in the sign of zero.

    Raises GraphError where an input is missing, unknown, or of another type.
    """
    results: dict[int, Array] = {}
    wanted = set(graph.outputs.values())
    for i, value in steps(graph, inputs, by_definition=by_definition):
        if i in wanted:
            results[i] = value
    return {name: results[i] for name, i in graph.outputs.items()}


def steps(graph: Graph, inputs: Mapping[str, Array], *, by_definition: bool = False) -> Iterator[tuple[int, Array]]:
    """The number and the result of every node, in order; see :func:`run`."""
    given = check_inputs(graph, inputs)
    yield from _steps(graph.nodes, range(len(graph.nodes)), graph.constants, given, by_definition)


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[int, Array]:
    """The inputs by their nodes' numbers; raises GraphError where one is missing, unknown, or of another type."""
    given: dict[int, Array] = {}
    for name, i in graph.inputs.items():
        if name not in inputs:
            raise GraphError(f"the input {name} must be given, as {graph.nodes[i].type}; give an array of that name")
        given[i] = np.asarray(inputs[name])
        if (str(given[i].dtype), given[i].shape) != (graph.nodes[i].type.dtype, graph.nodes[i].type.shape):
            shape = ", ".join(map(str, given[i].shape))
            raise GraphError(
                f"the input {name} must be {graph.nodes[i].type}, not {given[i].dtype}[{shape}]; convert it"
            )
    unknown = sorted(set(inputs) - set(graph.inputs))
    if unknown:
        raise GraphError(f"inputs must be those of the graph ({', '.join(graph.inputs)}), not {', '.join(unknown)}")
    return given


def run_nodes(
    nodes: Sequence[Node], needed: Sequence[int], constants: Mapping[str, Array], given: Mapping[int, Array]
) -> dict[int, Array]:
    """The results of the needed nodes, of which all operands must be needed too."""
    return dict(_steps(nodes, needed, constants, given, False))


def _steps(
    nodes: Sequence[Node],
    needed: Sequence[int],
    constants: Mapping[str, Array],
    given: Mapping[int, Array],
    by_definition: bool,
) -> Iterator[tuple[int, Array]]:
    last = {j: i for i in needed for j in nodes[i].operands}
    values: dict[int, Array] = {}
    for i in needed:
        node = nodes[i]
        if node.operator == "input":
            values[i] = given[i]
        elif node.operator == "constant":
            values[i] = constants[str(node.attribute("digest"))]
        else:
            values[i] = run_node(node, [values[j] for j in node.operands], by_definition=by_definition)
        yield i, values[i]
        for j in node.operands:
            if last[j] == i:
                values.pop(j, None)


def run_node(node: Node, operands: Sequence[Array], *, by_definition: bool = False) -> Array:
    """The result of one node on its operands' values; see :func:`run`."""
    operator = lookup(node.operator)
    if operator.scalar is not None:
        number = next((str(o.dtype) for o in operands if o.dtype.kind != "b"), "bool")
        named = dict(zip(NAMES, operands, strict=False))
        result = run_scalar(operator.scalar(dict(node.attributes)), named, number)
        result = np.broadcast_to(result, node.type.shape)
    elif operator.expand is not None:
        result = _run_composite(operator, node, operands, by_definition)
    elif operator.term is not None and (by_definition or operator.kernel is None):
        types = [TensorType(str(o.dtype), o.shape) for o in operands]
        result = comprehend(meaning(operator, types, dict(node.attributes)), operands, node.type.dtype)
    else:
        assert operator.kernel is not None, "an operator has a meaning"
        with np.errstate(all="ignore"):
            result = np.asarray(operator.kernel(operands, dict(node.attributes), node.type))
    if (str(result.dtype), result.shape) != (node.type.dtype, node.type.shape):
        raise GraphError(
            f"{node.operator} must give {node.type}, not {result.dtype}{list(result.shape)}; this is a bug"
        )
    return result


def _run_composite(operator: Operator, node: Node, operands: Sequence[Array], by_definition: bool) -> Array:
    assert operator.expand is not None
    types = tuple(TensorType(str(o.dtype), o.shape) for o in operands)
    graph = expansion(node.operator, types, node.attributes)
    inputs = {f"x{i}": o for i, o in enumerate(operands)}
    return run(graph, inputs, by_definition=by_definition)["y"]


@lru_cache(maxsize=256)
def expansion(name: str, types: tuple[TensorType, ...], attributes: tuple[tuple[str, Attribute], ...]) -> Graph:
    """What a composite operator stands for: a graph from inputs ``x0``, ``x1``, ... to the output ``y``."""
    expand: Callable[..., int] | None = lookup(name).expand
    if expand is None:
        raise GraphError(f"{name} is no composite operator")
    builder = Builder()
    operands = [builder.input(f"x{i}", t) for i, t in enumerate(types)]
    return builder.graph({"y": expand(builder, operands, dict(attributes))})
