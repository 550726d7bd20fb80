"""Zeros around the operands of a recurrent layer stand beside its states, too, and change nothing else.

Inputs have p more features, states q more, and the block of each gate in weights and biases is filled by itself.
States stay zeros there: tanh(0) = 0 makes them, whatever the gates are.
"""

from __future__ import annotations

from typing import Final

from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.index import IndexLike, size
from ir_semantics.tensors.operators import concat, fill, slice_
from ir_semantics.tensors.terms import Tensor
from smt_encodings.claims import Equality

from .layers import GATES, HIDDEN, LAYER_OPTIONS, Change, LayerRule, by_induction, inputs_of, states_of

P, Q = map(size, "pq")
"""The features of zeros behind inputs, and behind states."""


def filled(x: Tensor, *zeros: IndexLike) -> Tensor:
    """So many zeros behind each of the first axes."""
    for axis, count in enumerate(zeros):
        if count != 0:
            x = concat(axis, x, fill(0, *(count if j == axis else d for j, d in enumerate(x.shape))))
    return x


def blocks_filled(x: Tensor, blocks: int, *zeros: IndexLike) -> Tensor:
    """Blocks of h rows that are stacked, each filled by itself to h + q rows; ``zeros`` are those of other axes."""
    others = [0] * (x.rank - 1)
    parts = (slice_(x, [HIDDEN * j, *others], [HIDDEN * (j + 1), *x.shape[1:]]) for j in range(blocks))
    whole = [filled(part, Q, *zeros) for part in parts]
    return concat(0, *whole) if blocks > 1 else whole[0]


AROUND: Final = Change(lambda rows: filled(rows, 0, 0, Q), equality=Equality.OVER_REALS, cut=(2, HIDDEN))


def operands_filled(kind: str) -> dict[Tensor, Tensor]:
    """The operands of a layer, each with what it is with zeros around it; peepholes are zeros on both sides."""
    of, gates = inputs_of(kind), GATES[kind]
    around = {
        of["x"]: filled(of["x"], 0, 0, P),
        of["w"]: blocks_filled(of["w"], gates, P),
        of["r"]: blocks_filled(of["r"], gates, Q),
        of["b"]: blocks_filled(of["b"], 2 * gates),
        of["h0"]: filled(of["h0"], 0, Q),
    }
    if kind == "lstm":
        around |= {of["c0"]: filled(of["c0"], 0, Q), fill(0, HIDDEN * 3): fill(0, (HIDDEN + Q) * 3)}
    return around


def _zeros(kind: str) -> LayerRule:
    name = f"zeros around {kind} layers"
    return by_induction(name, lookup(kind), LAYER_OPTIONS[kind], operands_filled(kind), states_of(kind), AROUND)


ZEROS: Final = {kind: _zeros(kind) for kind in LAYER_OPTIONS}
"""That a layer of operands with zeros around them is the layer, with zeros behind its features, by kind."""
