"""Graphs on many samples at once: bit for bit what they give on each sample alone.

Values have samples along a first axis, which has the extent 1 where all samples have the same value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from ir_semantics.scalars.terms import postorder
from ir_semantics.tensors.arrays import DataError, Program
from ir_semantics.tensors.samples import LIBRARY, on_samples, same_on_samples

from .build import MOST_PROGRAMS, evaluate, expansion, meaning_of, run_elements, run_expansion, run_node
from .ir import Graph, Node
from .operator import lookup
from .run import check_inputs
from .types import Array, GraphError, TensorType

_programs: dict[Hashable, Program | None] = {}
"""The ways to run operators; None where samples are taken one by one."""


def steps_on_samples(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[tuple[int, Array]]:
    """The number and the results of every node, in order, as :func:`ir_semantics.graph.run.steps` has them."""
    arrays = inputs_on_samples(graph, inputs)
    yield from evaluate(graph.nodes, range(len(graph.nodes)), _shared(graph), arrays, run_on_samples)


def inputs_on_samples(graph: Graph, inputs: Mapping[str, Array]) -> dict[int, Array]:
    """The inputs by their nodes' numbers; raises GraphError where one is missing, unknown, or of another type."""
    check_inputs(graph, {name: array[0] for name, array in inputs.items()})
    return {number: inputs[name] for name, number in graph.inputs.items()}


def run_on_samples(node: Node, operands: Sequence[Array]) -> Array:
    """The results of one node."""
    count = max(map(len, operands), default=1)
    result = _together(node, operands, count) if count > 1 else None
    if result is None:
        each = [run_node(node, [o[k if len(o) > 1 else 0] for o in operands]) for k in range(count)]
        return np.stack(each) if count > 1 else each[0][None]
    shape = (count, *node.type.shape)
    return result if result.shape == shape else np.broadcast_to(result, shape)


def _together(node: Node, operands: Sequence[Array], count: int) -> Array | None:
    """The results from whole arrays; None where sums or functions might depend on what is beside a sample."""
    operator = lookup(node.operator)
    types = tuple(TensorType(str(o.dtype), o.shape[1:]) for o in operands)
    if operator.scalar is not None:
        term = operator.scalar(dict(node.attributes))
        return run_elements(term, operands) if LIBRARY.isdisjoint(part.op for part in postorder([term])) else None
    if operator.expand is not None:
        graph = expansion(node.operator, types, node.attributes)
        return run_expansion(graph, _shared(graph), operands, run_on_samples)
    if operator.term is None:
        return None
    key = node.operator, node.written, node.type.dtype, *((o.dtype, o.shape) for o in operands)
    if key not in _programs:
        if len(_programs) >= MOST_PROGRAMS:
            _programs.clear()
        meant, same = meaning_of(node.operator, types, node.attributes), None
        if same_on_samples(meant, len(operands)):
            same = Program(on_samples(meant, [len(o) for o in operands]), len(operands), node.type.dtype)
        _programs[key] = same
    program = _programs[key]
    try:
        return None if program is None else program(operands)
    except DataError as error:
        raise GraphError(str(error)) from error


def _shared(graph: Graph) -> dict[str, Array]:
    return {digest: constant[None] for digest, constant in graph.constants.items()}
