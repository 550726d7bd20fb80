"""Layer normalisation: of matrices, with factors and offsets, from the forms in which graphs write it.

``x`` is normalised along its last axis; ``e`` is what is added to the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import sqrt, variable
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.operators import broadcast, fill, map_, reshape, transpose
from ir_semantics.tensors.reductions import mean
from ir_semantics.tensors.terms import Tensor, input_

from .words import add, at_least, bias, div, mul, over_reals, sizes, sub, wrong_over_reals

B, N, C = sizes("b n c")
MATRIX, MATRICES = input_("x", N, C), input_("x", B, N, C)
EPSILON, GAMMA, BETA = input_("e"), input_("gamma", C), input_("beta", C)


def _spread(x: Tensor, shape: Sequence[Index]) -> Tensor:
    """One number for each row, to all of its elements."""
    return broadcast(reshape(x, *shape[:-1]), shape, range(len(shape) - 1))


def _rows(x: Tensor) -> Tensor:
    """The mean of each row, along an axis of extent 1."""
    last = len(x.shape) - 1
    return reshape(mean(x, [last]), *x.shape[:-1], 1)


def centred(x: Tensor) -> Tensor:
    """x less the means of its rows."""
    return sub(x, _spread(_rows(x), x.shape))


def _deviation(of: Tensor, outside: bool = False) -> Tensor:
    """sqrt(variance + e), or sqrt(variance) + e, of rows, from their elements less means; along an axis of extent 1."""
    variance = _rows(mul(of, of))
    e, root = broadcast(EPSILON, variance.shape, []), sqrt(variable("x"))
    return add(map_(root, x=variance), e) if outside else map_(root, x=add(variance, e))


def normalised(x: Tensor) -> Tensor:
    """(x - mean) / sqrt(variance + e), as the composite operator of graphs has it."""
    return div(centred(x), _spread(_deviation(centred(x)), x.shape))


def _factors(x: Tensor) -> Tensor:
    return broadcast(GAMMA, x.shape, [len(x.shape) - 1])


def affine(x: Tensor, gamma: Tensor = GAMMA, beta: Tensor = BETA) -> Tensor:
    """x times a factor, plus an offset for each feature."""
    last = len(x.shape) - 1
    return bias(mul(x, broadcast(gamma, x.shape, [last])), beta, last)


def _factor_first(x: Tensor) -> Tensor:
    return div(mul(centred(x), _factors(x)), _spread(_deviation(centred(x)), x.shape))


def _by_reciprocals(x: Tensor) -> Tensor:
    inverse = map_(1 / variable("x"), x=_deviation(centred(x)))
    return mul(centred(x), _spread(inverse, x.shape))


_ALL: Final = {2: (MATRIX, at_least(1, N, C)), 3: (MATRICES, at_least(1, B, N, C))}
_PLAIN, _SQUARE = normalised(MATRIX), input_("x", B, N, N)

NORMALISED_ROWS: Final = TensorRule(
    "layer normalisation of matrices as that of one matrix",
    normalised(MATRICES),
    reshape(normalised(reshape(MATRICES, B * N, C)), B, N, C),
    at_least(1, B, N, C),
)
FACTORS_OF_ROWS: Final = TensorRule(
    "factors of the features of matrices as those of one matrix",
    mul(reshape(input_("x", B * N, C), B, N, C), _factors(MATRICES)),
    reshape(mul(input_("x", B * N, C), broadcast(GAMMA, [B * N, C], [1])), B, N, C),
    at_least(1, B, N, C),
)
WITHOUT_FACTORS: Final = over_reals(
    "layer normalisation with factors of one and offsets of zero",
    _PLAIN,
    affine(_PLAIN, fill(1, C), fill(0, C)),
    at_least(1, N, C),
)
WITHOUT_OFFSETS: Final = over_reals(
    "layer normalisation with offsets of zero",
    mul(_PLAIN, _factors(MATRIX)),
    affine(_PLAIN, GAMMA, fill(0, C)),
    at_least(1, N, C),
)
FACTOR_FIRST: Final = {
    rank: over_reals(
        f"layer normalisation of rank {rank}, the factor before the quotient",
        _factor_first(x),
        mul(normalised(x), _factors(x)),
        premise,
    )
    for rank, (x, premise) in _ALL.items()
}
BY_RECIPROCALS: Final = {
    rank: over_reals(
        f"layer normalisation of rank {rank} by reciprocals of deviations", _by_reciprocals(x), normalised(x), premise
    )
    for rank, (x, premise) in _ALL.items()
}

_WRONG = [
    wrong_over_reals(
        "layer normalisation with factors and offsets of one",
        _PLAIN,
        affine(_PLAIN, fill(1, C), fill(1, C)),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "layer normalisation with offsets before factors",
        affine(_PLAIN),
        mul(bias(_PLAIN, BETA, 1), _factors(MATRIX)),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "layer normalisation with epsilon after the root",
        _PLAIN,
        div(centred(MATRIX), _spread(_deviation(centred(MATRIX), outside=True), MATRIX.shape)),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "layer normalisation by the mean of squares",
        _PLAIN,
        div(centred(MATRIX), _spread(_deviation(MATRIX), MATRIX.shape)),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "layer normalisation of what the factor has multiplied",
        _factor_first(MATRIX),
        normalised(mul(MATRIX, _factors(MATRIX))),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "layer normalisation of square matrices along columns",
        normalised(_SQUARE),
        transpose(normalised(transpose(_SQUARE, [0, 2, 1])), [0, 2, 1]),
        at_least(1, B, N),
    ),
]

_VALID = [NORMALISED_ROWS, FACTORS_OF_ROWS]
for _rule in (WITHOUT_FACTORS, WITHOUT_OFFSETS, *FACTOR_FIRST.values(), *BY_RECIPROCALS.values()):
    _VALID += [_rule, _rule.converse]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
