"""Rules on tensors that bring operators into the forms that FlexASR has, and where they are applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from chc.tensor_rules.rule import TensorRule
from rewrites.claims.joints.sequences import SEQUENCES
from rewrites.compiler.codegen.parts import fits, most_that_fit
from rewrites.compiler.offload.directed import Place, Suggestion
from rewrites.compiler.offload.places import (
    DENSE_LAYERS,
    NORMALISATION,
    PRODUCTS,
    WEIGHTS,
    at,
    first_broadcast,
    shape_of,
    unbiased,
)
from rewrites.compiler.offload.reductions import LANES, MEANS, MEANS_OF_ONE, inner_parts
from rewrites.egraph import EGraph, ENode
from rewrites.mappings.flexasr.claims import LINEAR
from rewrites.rules.tensor.matching import (
    AXIS_DROPPED,
    GRU_BIASES,
    GRU_GATES,
    LSTM_BIASES,
    LSTM_GATES,
    PRODUCTS_COMMUTE,
    VECTOR_IN_PARTS,
)
from rewrites.rules.tensor.normalisation import (
    BY_RECIPROCALS,
    FACTOR_FIRST,
    FACTORS_OF_ROWS,
    JOINED_FACTORS,
    JOINED_OFFSETS,
    NORMALISED_ROWS,
    VARIANCE,
    WITHOUT_FACTORS,
    WITHOUT_OFFSETS,
)
from rewrites.rules.tensor.products import ZERO_BIAS
from rewrites.rules.tensor.splitting import SEQUENCES_IN_PARTS, SOME_OF_A_NUMBER
from rewrites.rules.tensor.windows import (
    AVERAGE_POOL_AS_WINDOWS,
    MAX_POOL_AS_WINDOWS,
    MAXIMUM_BY_PAIRS,
    MAXIMUM_OF_ODD_ROWS,
    MAXIMUM_OF_PAIR,
    MEAN_BY_PAIRS,
    MEAN_OF_PAIR,
    WINDOWS_AS_MAXIMUM,
    WINDOWS_AS_MEAN,
)

from .code.linear import OUTPUTS

WINDOW_RULES: Final = (
    MAX_POOL_AS_WINDOWS,
    WINDOWS_AS_MAXIMUM,
    MAXIMUM_BY_PAIRS,
    MAXIMUM_OF_ODD_ROWS,
    MAXIMUM_OF_PAIR,
)
"""The proved rules on tensors that take max pooling of images apart into poolings of pairs of rows."""

PAIRED_MEANS: Final = (MEAN_BY_PAIRS, MEAN_OF_PAIR)
"""Likewise for means of rows."""
MEAN_WINDOW_RULES: Final = (AVERAGE_POOL_AS_WINDOWS, WINDOWS_AS_MEAN)
"""Likewise for average pooling.  Windows are not taken apart: FlexASR rounds every mean of two to 8 bits, and a
maximum it does not round."""

LAYER_NORM_RULES: Final = (
    *NORMALISED_ROWS.values(),
    *FACTORS_OF_ROWS.values(),
    WITHOUT_FACTORS,
    WITHOUT_OFFSETS,
    *FACTOR_FIRST.values(),
    *BY_RECIPROCALS.values(),
    *VARIANCE.values(),
    *JOINED_FACTORS.values(),
    *JOINED_OFFSETS.values(),
)
"""Likewise those that make one layer normalisation of a matrix, with factors and offsets, of others."""
NORMALISED: Final = frozenset({1, *(rank - 1 for rank in NORMALISED_ROWS)})
"""The axes along which there are rules for layer normalisations, the last ones."""


@cache
def _most_inputs() -> int:
    """The most inputs of a dense layer, of which one row and one vector of outputs for each processing element fit."""
    claim = LINEAR["none"]
    return most_that_fit(1 << 8, lambda n: fits(claim, 1, n * LANES, OUTPUTS)) * LANES


def _one_sequence(egraph: EGraph, node: ENode) -> bool:
    """Whether a recurrent layer has a batch of 1 and no lengths."""
    return shape_of(egraph, node.operands[0])[1:2] == (1,) and dict(node.symbol.attributes)["lengths"] is False


def _sequence(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The input and the result of a recurrent layer with a batch of 1."""
    for number in (node.operands[0], node.number) if _one_sequence(egraph, node) else ():
        shape = shape_of(egraph, number)
        if len(shape) == 3:
            yield {"x": number}, {"n": shape[0], "c": shape[2]}


def _gates(count: int) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """The weights of a recurrent layer."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        for number in node.operands[1:3] if _one_sequence(egraph, node) else ():
            rows, columns = shape_of(egraph, number)
            yield {"x": number}, {"h": rows // count, "c": columns}

    return suggest


def _both_biases(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The biases of a recurrent layer: those beside the input, then those beside the state."""
    if _one_sequence(egraph, node):
        (both,) = shape_of(egraph, node.operands[3])
        yield {"x": node.operands[3]}, {"n": both, "q": both // 2}


def _gates_of_biases(count: int) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """The two halves of the biases of a recurrent layer, once they are apart."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        for joined in egraph.nodes(node.operands[3]) if _one_sequence(egraph, node) else ():
            if joined.symbol.operator == "concat" and len(joined.operands) == 2:
                for part in joined.operands:
                    yield {"x": part}, {"h": math.prod(shape_of(egraph, part)) // count}

    return suggest


def _halves(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The result of a recurrent layer of several sequences."""
    n, m, c = shape_of(egraph, node.number) if dict(node.symbol.attributes)["output"] == 0 else (0, 0, 0)
    if m > 1:
        yield {"x": node.number}, {"n": n, "m": m, "c": c, "q": m // 2}


def _half_of(kind: str) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """The sequences of a recurrent layer in two parts."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        of = dict(zip(SEQUENCES[kind].operands, node.operands, strict=False))
        (t, n, i), h = shape_of(egraph, node.operands[0]), shape_of(egraph, node.operands[2])[1]
        for start, end in ((0, n // 2), (n // 2, n)) if n > 1 else ():
            yield of, {"t": t, "n": n, "p": start, "q": end - start, "i": i, "h": h}

    return suggest


_LAYERS: Final = frozenset({"lstm", "gru", "rnn"})

EXACT: Final[Mapping[TensorRule, Place | None]] = {
    **WEIGHTS,
    AXIS_DROPPED: Place(_LAYERS, _sequence, backwards=True),
    LSTM_GATES: at("lstm", _gates(4), backwards=True),
    LSTM_BIASES: at("lstm", _gates_of_biases(4), backwards=True),
    GRU_GATES: at("gru", _gates(3), backwards=True),
    GRU_BIASES: at("gru", _gates_of_biases(3), backwards=True),
    VECTOR_IN_PARTS: Place(_LAYERS, _both_biases, backwards=True),
}
"""Weights transposed, and recurrent layers of one sequence with gates in FlexASR's order."""

FLEXIBLE: Final[Mapping[TensorRule, Place | None]] = {
    **EXACT,
    **PRODUCTS,
    **NORMALISATION,
    **DENSE_LAYERS,
    **MEANS,
    **MEANS_OF_ONE,
    **dict.fromkeys(PAIRED_MEANS),
    **inner_parts(_most_inputs),
    SEQUENCES_IN_PARTS: Place(_LAYERS, _halves, backwards=True),
    SOME_OF_A_NUMBER: None,
    **{rule: at(kind, _half_of(kind)) for kind, rule in SEQUENCES.items()},
    ZERO_BIAS: at("matmul", unbiased, backwards=True),
    **dict.fromkeys(PRODUCTS_COMMUTE.values(), at("mul", first_broadcast)),
    **dict.fromkeys(LAYER_NORM_RULES),
    **dict.fromkeys(WINDOW_RULES),
}
"""Besides, convolutions and pooling as products and poolings of rows, each with its bias and activation, and layer
normalisations."""
