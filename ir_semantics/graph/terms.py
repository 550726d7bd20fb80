"""Graphs as terms of :mod:`ir_semantics.tensors`, the language in which rules are proved.

Composites are written out.  The sizes of the terms are the graph's, which are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ir_semantics.scalars.terms import postorder
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import Tensor, input_

from .build import expansion
from .ir import Graph, Node
from .operator import applied, lookup
from .types import GraphError


def terms_of(graph: Graph) -> dict[str, Tensor]:
    """The outputs of a graph by name, as terms over its inputs.

    Inputs are called as they are in the graph; a constant that is one number is a literal, and another one an input
    ``constant_`` and the number of its node.  Raises GraphError for casts (elements of a term have one format) and
    host operators.
    """
    inputs = {i: input_(name, *graph.nodes[i].type.shape) for name, i in graph.inputs.items()}
    results = _nodes(graph, inputs)
    return {name: results[i] for name, i in graph.outputs.items()}


def _nodes(graph: Graph, inputs: Mapping[int, Tensor]) -> dict[int, Tensor]:
    done: dict[int, Tensor] = dict(inputs)
    for number, node in enumerate(graph.nodes):
        if node.operator == "input":
            continue
        if node.operator == "constant":
            done[number] = _constant(graph, number)
        else:
            done[number] = _term(node, graph, [done[j] for j in node.operands])
    return done


def _constant(graph: Graph, number: int) -> Tensor:
    value = graph.constant(number)
    if value.size == 1 and value.dtype.kind != "b":
        one = value.reshape(-1)[0].item()
        return fill(one if isinstance(one, float) else Fraction(one), *value.shape)
    return input_(f"constant_{number}", *value.shape)


def _term(node: Node, graph: Graph, operands: Sequence[Tensor]) -> Tensor:
    operator, attributes = lookup(node.operator), dict(node.attributes)
    if operator.expand is not None:
        inner = expansion(node.operator, tuple(graph.nodes[j].type for j in node.operands), node.attributes)
        inputs = {inner.inputs[f"x{i}"]: operand for i, operand in enumerate(operands)}
        return _nodes(inner, inputs)[inner.outputs["y"]]
    if operator.scalar is not None and any(part.op == "cast" for part in postorder([operator.scalar(attributes)])):
        raise GraphError(f"{node.operator} must keep the elements' format to be a term, not make {node.type} of it")
    return applied(operator, operands, attributes)
