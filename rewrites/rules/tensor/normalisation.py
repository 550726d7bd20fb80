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

from .words import add, at_least, bias, div, mul, over_reals, sizes, sub, wrong, wrong_over_reals

A, B, N, C = sizes("a b n c")
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


def _variance(x: Tensor) -> Tensor:
    return _rows(mul(centred(x), centred(x)))


def _by_squares(x: Tensor, mean_of: Tensor) -> Tensor:
    """The mean of squares less the square of a mean, of rows."""
    return sub(_rows(mul(x, x)), mul(_rows(mean_of), _rows(mean_of)))


def _of_rows(name: str, x: Tensor) -> Tensor:
    """A number for each row, to all of its elements."""
    return _spread(input_(name, *x.shape[:-1], 1), x.shape)


def _joined(x: Tensor, reciprocal: bool) -> Tensor:
    """x times what is a factor over a deviation, computed as a quotient or with a reciprocal."""
    if not reciprocal:
        return mul(x, div(_factors(x), _of_rows("d", x)))
    inverse = map_(1 / variable("x"), x=input_("d", *x.shape[:-1], 1))
    return mul(x, mul(_spread(inverse, x.shape), _factors(x)))


def _shifted(x: Tensor, shared: bool = True) -> tuple[Tensor, Tensor]:
    """x times factors, and offsets less the means times these, if ``shared``; and of x less means, with offsets."""
    factors, means = input_("k", *x.shape), _of_rows("m", x)
    offsets = broadcast(BETA, x.shape, [len(x.shape) - 1])
    left = add(mul(x, factors), sub(offsets, mul(means, factors) if shared else means))
    return left, add(mul(sub(x, means), factors), offsets)


_ALL: Final = {
    2: (MATRIX, at_least(1, N, C)),
    3: (MATRICES, at_least(1, B, N, C)),
    4: (input_("x", A, B, N, C), at_least(1, A, B, N, C)),
}
_PLAIN, _SQUARE = normalised(MATRIX), input_("x", B, N, N)

_AS_ROWS: Final = {3: (MATRICES, B * N), 4: (_ALL[4][0], A * B * N)}
"""By rank, tensors and how many rows they have."""
NORMALISED_ROWS: Final = {
    rank: TensorRule(
        f"layer normalisation of rank {rank} as that of one matrix",
        normalised(x),
        reshape(normalised(reshape(x, rows, C)), *x.shape),
        _ALL[rank][1],
    )
    for rank, (x, rows) in _AS_ROWS.items()
}
FACTORS_OF_ROWS: Final = {
    rank: TensorRule(
        f"factors of features of rank {rank} as those of one matrix",
        mul(reshape(input_("x", rows, C), *x.shape), _factors(x)),
        reshape(mul(input_("x", rows, C), broadcast(GAMMA, [rows, C], [1])), *x.shape),
        _ALL[rank][1],
    )
    for rank, (x, rows) in _AS_ROWS.items()
}
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
VARIANCE: Final = {
    rank: over_reals(
        f"variance of rank {rank} as the mean of squares less the square of the mean",
        _by_squares(x, x),
        _variance(x),
        premise,
    )
    for rank, (x, premise) in _ALL.items()
}
JOINED_FACTORS: Final = {
    (rank, reciprocal): over_reals(
        f"factors of rank {rank} {'times reciprocals of' if reciprocal else 'over'} deviations, joined",
        _joined(x, reciprocal),
        mul(div(x, _of_rows("d", x)), _factors(x)),
        premise,
    )
    for rank, (x, premise) in _ALL.items()
    for reciprocal in (False, True)
}
JOINED_OFFSETS: Final = {
    rank: over_reals(f"offsets of rank {rank} less the means' share, joined", *_shifted(x), premise)
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
    wrong_over_reals(
        "variance as the mean of squares less the mean",
        sub(_rows(mul(MATRIX, MATRIX)), _rows(MATRIX)),
        _variance(MATRIX),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "variance as the mean of squares and the square of the mean",
        add(_rows(mul(MATRIX, MATRIX)), mul(_rows(MATRIX), _rows(MATRIX))),
        _variance(MATRIX),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "variance by the square of the mean of another matrix",
        _by_squares(MATRIX, input_("y", N, C)),
        _variance(MATRIX),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "factors over deviations as a factor before what is divided",
        _joined(MATRIX, False),
        mul(div(MATRIX, _factors(MATRIX)), _of_rows("d", MATRIX)),
        at_least(1, N, C),
    ),
    wrong_over_reals(
        "factors over deviations of square matrices, along columns",
        _joined(_SQUARE, False),
        mul(div(_SQUARE, broadcast(reshape(input_("d", B, N, 1), B, N), [B, N, N], [0, 2])), _factors(_SQUARE)),
        at_least(1, B, N),
    ),
    wrong_over_reals(
        "offsets less the means' share, joined and added again",
        _shifted(MATRIX)[0],
        bias(_shifted(MATRIX)[1], BETA, 1),
        at_least(1, N, C),
    ),
    wrong_over_reals("offsets less the means, joined", *_shifted(MATRIX, shared=False), at_least(1, N, C)),
    wrong(
        "layer normalisation of rank 4 with axes exchanged",
        normalised(_ALL[4][0]),
        reshape(normalised(reshape(transpose(_ALL[4][0], [1, 0, 2, 3]), A * B * N, C)), A, B, N, C),
        _ALL[4][1],
    ),
]

_VALID = [*NORMALISED_ROWS.values(), *FACTORS_OF_ROWS.values()]
_OF_REALS = (FACTOR_FIRST, BY_RECIPROCALS, VARIANCE, JOINED_FACTORS, JOINED_OFFSETS)
for _rule in (WITHOUT_FACTORS, WITHOUT_OFFSETS, *(rule for rules in _OF_REALS for rule in rules.values())):
    _VALID += [_rule, _rule.converse]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
