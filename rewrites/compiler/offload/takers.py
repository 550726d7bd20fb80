"""Accelerator operators that could do the work of an operator of the tensor IR, for saying why they do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ir_semantics.graph.ir import Attribute, Node
from ir_semantics.graph.types import TensorType
from rewrites.compiler.codegen import AcceleratorOperator

Taken: TypeAlias = "tuple[Node, tuple[TensorType, ...]] | str | None"
"""A node as an accelerator operator would have it, with the types of its operands; why its form keeps it from the
accelerator; or None, where neither is known."""


@dataclass(frozen=True)
class Taker:
    """An accelerator operator, what it would make of a node, and why it has not taken one that it could have."""

    operator: AcceleratorOperator
    taken: Callable[[Node, Sequence[TensorType]], Taken] = lambda node, types: None
    otherwise: str = "what was found with an accelerator operator costs no less, or the search ended before"


def convolution_form(node: Node, types: Sequence[TensorType]) -> str:
    """Why the form of a convolution keeps it from accelerators; empty where it does not."""
    if node.attribute("groups") != 1:
        return "it is a convolution in groups: each would be a program of its own"
    return "" if types[0].rank == 4 else "it is no two-dimensional convolution"


def as_product(
    operator: AcceleratorOperator, attributes: Mapping[str, Attribute], bias: bool = False
) -> Mapping[str, Taker]:
    """Products of matrices, and convolutions as such, by an operator on x [M, K], w [N, K] and perhaps b [N]."""

    def taken(node: Node, types: Sequence[TensorType]) -> Taken:
        if node.operator == "conv":
            if form := convolution_form(node, types):
                return form
            outputs, inner = types[1].shape[0], math.prod(types[1].shape[1:])
            rows = node.type.elements // outputs
        elif types[0].rank == 2:
            (rows, inner), outputs = types[0].shape, types[1].shape[1]
        else:
            return "it is a batch of products of two computed matrices: each would be a program of its own"
        shapes = [(rows, inner), (outputs, inner), *([(outputs,)] if bias else [])]
        product = Node(operator.name, (), tuple(attributes.items()), types[0].with_shape((rows, outputs)))
        return product, tuple(map(types[0].with_shape, shapes))

    return dict.fromkeys(("conv", "matmul"), Taker(operator, taken))
