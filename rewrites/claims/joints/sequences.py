"""Sequences of a recurrent layer do not depend on each other: some of them are the layer of these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Operator, lookup
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import slice_
from ir_semantics.tensors.terms import Tensor

from .layers import LAYER_OPTIONS, Change, LayerRule, N, by_induction, inputs_of, states_of

P, Q = map(size, "pq")
"""The first of some sequences, and how many these are."""


def taken(x: Tensor, axis: int | None) -> Tensor:
    """Of a tensor that has sequences along an axis so many as q, from number p on; of others all."""
    if axis is None:
        return x
    start = [P if j == axis else 0 for j in range(x.rank)]
    return slice_(x, start, [P + Q if j == axis else d for j, d in enumerate(x.shape)])


SOME: Final = Change(lambda rows: taken(rows, 1), domain=both(le(1, Q), le(P + Q, N)))


def sequences(
    name: str,
    operator: Operator,
    attributes: Attributes,
    operands: Mapping[Tensor, int | None],
    states: Sequence[Tensor],
) -> LayerRule:
    """That some sequences of a layer [t, n, ...] are the layer of these sequences of its operands.

    Operands have sequences along an axis, or none.  Raises Unread as :func:`.layers.by_induction` does.
    """
    some = {x: taken(x, axis) for x, axis in operands.items()}
    return by_induction(name, operator, attributes, some, states, SOME)


def operands_of_layer(kind: str) -> dict[Tensor, int | None]:
    """The operands of a layer of n sequences, each with the axis along which it has them."""
    axes = {"x": 1, "h0": 0, "c0": 0}
    return {x: axes.get(name) for name, x in inputs_of(kind).items()}


SEQUENCES: Final = {
    kind: sequences(
        f"sequences of {kind} layers", lookup(kind), LAYER_OPTIONS[kind], operands_of_layer(kind), states_of(kind)
    )
    for kind in LAYER_OPTIONS
}
"""That some sequences of a layer are the layer of these alone, by kind."""
