"""Zeros around the operands of a recurrent layer stand beside its states, too, and change nothing else.

Inputs are filled to p features, states to q, and the block of each gate in weights and biases by itself.
States stay zeros there: tanh(0) = 0 makes them, whatever the gates are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.index import IndexLike, index, size
from ir_semantics.tensors.operators import concat, fill
from ir_semantics.tensors.terms import Tensor
from rewrites.rules.tensor.boxes import block_boxes, box_of
from smt_encodings.claims import Equality

from .layers import GATES, HIDDEN, INPUTS, LAYER_OPTIONS, Change, LayerRule, by_induction, inputs_of, states_of

P, Q = map(size, "pq")
"""The features of inputs and of states that are filled."""


def filled(x: Tensor, extents: Mapping[int, IndexLike]) -> Tensor:
    """A tensor with zeros behind it, up to these extents of axes."""
    for axis, extent in extents.items():
        zeros = [index(extent) - d if j == axis else d for j, d in enumerate(x.shape)]
        x = concat(axis, x, fill(0, *zeros))
    return x


def blocks_filled(x: Tensor, blocks: int, extents: Mapping[int, IndexLike]) -> Tensor:
    """Blocks of h rows that are stacked, each filled by itself."""
    others = [(index(0), extent) for extent in x.shape[1:]]
    return concat(0, *(filled(box_of(x, box), extents) for box in block_boxes(blocks, HIDDEN, others)))


AROUND: Final = Change(
    lambda rows: filled(rows, {2: Q}),
    equality=Equality.OVER_REALS,
    domain=both(le(INPUTS, P), le(HIDDEN, Q)),
    cut=(2, HIDDEN),
)


def operands_filled(kind: str) -> dict[Tensor, Tensor]:
    """The operands of a layer, each with what it is with zeros around it; peepholes are zeros on both sides."""
    of, gates = inputs_of(kind), GATES[kind]
    around = {
        of["x"]: filled(of["x"], {2: P}),
        of["w"]: blocks_filled(of["w"], gates, {0: Q, 1: P}),
        of["r"]: blocks_filled(of["r"], gates, {0: Q, 1: Q}),
        of["b"]: blocks_filled(of["b"], 2 * gates, {0: Q}),
        of["h0"]: filled(of["h0"], {1: Q}),
    }
    if kind == "lstm":
        around |= {of["c0"]: filled(of["c0"], {1: Q}), fill(0, HIDDEN * 3): fill(0, Q * 3)}
    return around


def _zeros(kind: str) -> LayerRule:
    name = f"zeros around {kind} layers"
    return by_induction(name, lookup(kind), LAYER_OPTIONS[kind], operands_filled(kind), states_of(kind), AROUND)


ZEROS: Final = {kind: _zeros(kind) for kind in LAYER_OPTIONS}
"""That a layer of operands with zeros around them is the layer, with zeros behind its features, by kind."""
