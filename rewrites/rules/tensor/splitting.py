"""Rules that cut an operator in two at ``q`` and join the parts.

Batches of a product of matrices, and its inner axis, stand in ``products``; boxes of results for accelerators in
``boxes``.
"""

from __future__ import annotations

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.operators import broadcast, concat, slice_
from ir_semantics.tensors.reductions import mean
from ir_semantics.tensors.terms import input_

from .inputs import SIZES, along, first, rest
from .words import at_least, sub, wrong, wrong_over_reals

N, C, _, _, _, _, _, Q, T, _, M = SIZES

ROWS = input_("x", N, C)
SEQUENCES = input_("x", N, M, C)
SEQUENCES_IN_PARTS = TensorRule(
    "sequences in two parts", concat(1, first(SEQUENCES, Q, 1), rest(SEQUENCES, Q, 1)), SEQUENCES, le(Q, M)
)
SOME_OF_A_NUMBER = TensorRule(
    "some rows of a number that is repeated",
    slice_(broadcast(input_("z"), [N, C], []), [Q, 0], [T, C]),
    broadcast(input_("z"), [T - Q, C], []),
)

_VALID = [
    SEQUENCES_IN_PARTS,
    SOME_OF_A_NUMBER,
    TensorRule(
        "means of rows in two parts",
        mean(ROWS, [1]),
        concat(0, mean(first(ROWS, Q), [1]), mean(rest(ROWS, Q), [1])),
        both(le(Q, N), at_least(1, C)),
    ),
]

_WRONG = [
    wrong(
        "sequences in two parts, exchanged",
        concat(1, rest(SEQUENCES, Q, 1), first(SEQUENCES, Q, 1)),
        SEQUENCES,
        both(at_least(1, N, C, Q), le(Q + 1, M)),
    ),
    wrong_over_reals(
        "layer normalisation of a concatenation along the features",
        sub(ROWS, along(mean(ROWS, [1]), ROWS, 0)),
        concat(1, *(sub(part, along(mean(part, [1]), part, 0)) for part in (first(ROWS, Q, 1), rest(ROWS, Q, 1)))),
        both(at_least(1, N, Q), le(Q + 1, C)),
    ),
]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
