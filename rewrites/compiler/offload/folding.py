"""What depends on constants alone, computed."""

from __future__ import annotations

from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Graph
from rewrites.compiler.codegen import accelerator_operator


def folded(graph: Graph) -> Graph:
    """The graph with what depends on constants alone computed, in the arithmetic of the host.

    Operands of accelerator operators become constants even where they are broadcast, so that they can be quantised
    beforehand.  Inputs and outputs stay.
    """
    builder = Builder()
    numbers: dict[int, int] = {}
    names = {i: name for name, i in graph.inputs.items()}
    for i, node in enumerate(graph.nodes):
        builder.origin = graph.origins[i]
        if node.operator == "input":
            numbers[i] = builder.input(names[i], node.type)
        elif node.operator == "constant":
            numbers[i] = builder.constant(graph.constant(i))
        else:
            operands = [numbers[o] for o in node.operands]
            if accelerator_operator(node.operator) is not None:
                operands = [_computed(builder, o) for o in operands]
            numbers[i] = builder.add(node.operator, *operands, **dict(node.attributes))
    return builder.graph({name: numbers[i] for name, i in graph.outputs.items()})


def _computed(builder: Builder, number: int) -> int:
    value = builder.value(number)
    return number if value is None else builder.constant(value)
