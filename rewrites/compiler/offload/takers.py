"""Accelerator operators that could do the work of an operator of the tensor IR, for saying why they do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ir_semantics.graph.ir import Attribute, Node, integer_of
from ir_semantics.graph.types import TensorType
from rewrites.compiler.codegen import AcceleratorOperator
from rewrites.rules.tensor.groups import GROUP_PAIRS

from .unfolding import MOST_STEPS

Taken: TypeAlias = "tuple[Node, tuple[TensorType, ...]] | str | None"
"""A node as an accelerator operator would have it, with the types of its operands; why its form keeps it from the
accelerator; or None, where neither is known."""


NOT_PLAIN: Final = "it is no two-dimensional convolution"
"""Why the form of a convolution keeps it from accelerators."""


@dataclass(frozen=True)
class Taker:
    """An accelerator operator, what it would make of a node, and why it has not taken one that it could have."""

    operator: AcceleratorOperator
    taken: Callable[[Node, Sequence[TensorType]], Taken] = lambda node, types: None
    otherwise: str = "what was found with an accelerator operator costs no less, or the search ended before"


def plain_convolution(node: Node, types: Sequence[TensorType]) -> tuple[Node, tuple[TensorType, TensorType]] | None:
    """A two-dimensional convolution in one group; of one in several, a part that rules make of it; else None."""
    if types[0].rank != 4:
        return None
    groups, kernel = integer_of(dict(node.attributes), "groups"), types[1].shape
    outputs, channels = kernel[0] // groups, kernel[1]
    while groups % 2 == 0 and channels in GROUP_PAIRS:
        outputs, channels, groups = 2 * outputs, 2 * channels, groups // 2

    def part(of: TensorType, axis: int, extent: int) -> TensorType:
        return of.with_shape((*of.shape[:axis], extent, *of.shape[axis + 1 :]))

    one = tuple((name, 1 if name == "groups" else value) for name, value in node.attributes)
    kernels = types[1].with_shape((outputs, channels, *kernel[2:]))
    return replace(node, attributes=one, type=part(node.type, 1, outputs)), (part(types[0], 1, channels), kernels)


def as_product(
    operator: AcceleratorOperator, attributes: Mapping[str, Attribute], bias: bool = False
) -> Mapping[str, Taker]:
    """Products of matrices, and convolutions as such, by an operator on x [M, K], w [N, K] and perhaps b [N]."""

    def taken(node: Node, types: Sequence[TensorType]) -> Taken:
        if node.operator == "conv":
            plain = plain_convolution(node, types)
            if plain is None:
                return NOT_PLAIN
            node, types = plain
            outputs, inner = types[1].shape[0], math.prod(types[1].shape[1:])
            rows = node.type.elements // outputs
        else:  # of a batch one
            (rows, inner), outputs = types[0].shape[-2:], types[1].shape[-1]
        shapes = [(rows, inner), (outputs, inner), *([(outputs,)] if bias else [])]
        product = Node(operator.name, (), tuple(attributes.items()), types[0].with_shape((rows, outputs)))
        return product, tuple(map(types[0].with_shape, shapes))

    return dict.fromkeys(("conv", "matmul"), Taker(operator, taken))


def as_sums(operator: AcceleratorOperator, attributes: Mapping[str, Attribute], bias: bool = False) -> dict[str, Taker]:
    """Means and sums of whole rows or images as products with one row, by an operator as in :func:`as_product`."""

    def taken(node: Node, types: Sequence[TensorType]) -> Taken:
        shape, own = types[0].shape, dict(node.attributes)
        if node.operator == "avg_pool":
            axes: Attribute = tuple(range(2, len(shape))) if own["kernel"] == shape[2:] else ()
        else:
            axes = own["axes"]
        first = len(shape) - len(axes) if isinstance(axes, tuple) else 0
        if not axes or axes != tuple(range(first, len(shape))):
            return (
                f"{operator.name} adds along rows: the host would bring what is added into rows, and move more "
                "elements than it adds"
            )
        rows, inner = math.prod(shape[:first]), math.prod(shape[first:])
        shapes = [(rows, inner), (1, inner), *([(1,)] if bias else [])]
        product = Node(operator.name, (), tuple(attributes.items()), types[0].with_shape((rows, 1)))
        return product, tuple(map(types[0].with_shape, shapes))

    return dict.fromkeys(("mean", "reduce_sum", "avg_pool"), Taker(operator, taken))


def of_steps(operator: AcceleratorOperator) -> dict[str, Taker]:
    """Recurrent layers, of whose steps an operator computes products."""

    def taken(node: Node, types: Sequence[TensorType]) -> Taken:
        steps = types[0].shape[0]
        return f"with {steps} timesteps, more than {MOST_STEPS}, it is not written out" if steps > MOST_STEPS else None

    return dict.fromkeys(("lstm", "gru", "rnn"), Taker(operator, taken))
