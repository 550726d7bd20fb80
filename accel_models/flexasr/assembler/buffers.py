"""Operations of the units of the global buffer: pooling over time, layer normalisation, zero padding and attention."""

from __future__ import annotations

import numpy as np

from accel_models.flexasr.config import pack_large_manager, pack_small_manager, pack_unit
from accel_models.flexasr.layout import (
    LANES,
    LARGE_BASE,
    SMALL_BASE,
    Region,
    Start,
    register_address,
)
from accel_models.flexasr.quantise import Quantised, check_bias
from accel_models.flexasr.units.attention import SOFTMAX
from accel_models.flexasr.units.layer_norm import BETA, GAMMA

from .commands import Assembled, Builder
from .tiling import AssemblyError, at_most, check_matrix, check_rank, check_shape, matrix_places, padded

__all__ = ["add_pool", "attention", "layer_norm", "max_pool", "mean_pool", "zero_padding"]

_MAX, _MEAN, _ADD = 0, 1, 2  # modes of LayerReduce
_MOST_SCORES = 1024  # the unit numbers the vectors of its scores with 8 bits, and a vector holds four


def max_pool(x: Quantised) -> Assembled:
    """The larger of timesteps 2t and 2t + 1 of x [T, F], for each t < T/2; exact, with x's bias.

    T has to be even.  Raises AssemblyError where x does not fit the large buffer.
    """
    return _pool(x, _MAX)


def mean_pool(x: Quantised) -> Assembled:
    """The mean of timesteps 2t and 2t + 1, rounded once; see :func:`max_pool`."""
    return _pool(x, _MEAN)


def add_pool(x: Quantised) -> Assembled:
    """The sum of timesteps 2t and 2t + 1, rounded once, saturating at x's bias; see :func:`max_pool`."""
    return _pool(x, _ADD)


def layer_norm(x: Quantised, gamma: Quantised, beta: Quantised) -> Assembled:
    """Each timestep of x [T, F] to mean 0 and variance 1, times gamma [F], plus beta [F]; the result has x's bias.

    F has to be a multiple of 16, because the unit counts padding as features.  Its variance has no epsilon and is right
    from 2^-10 on (:mod:`accel_models.flexasr.units.layer_norm`).  Results saturate at the range of x's bias, so choose
    it with them in mind: normalised numbers reach 3 and more.  Raises AssemblyError where something does not fit.
    """
    size = _check("x", x)
    timesteps, features = x.shape
    if features % LANES:
        raise AssemblyError(
            f"Features of x must be a multiple of {LANES}, not {features}: LayerNorm would take the padding for "
            "features; use another unit or change the model"
        )
    check_shape("gamma", gamma, (features,))
    check_shape("beta", beta, (features,))
    out = Builder()
    out.word(register_address(Region.MANAGERS), pack_large_manager({0: size}, {}))
    out.word(register_address(Region.MANAGERS, 2), pack_small_manager({GAMMA: 0, BETA: size}))
    config = pack_unit(
        is_valid=1,
        num_vector_1=size,
        num_timestep_1=timesteps,
        adpbias_1=x.bias,
        adpbias_3=beta.bias,
        adpbias_4=gamma.bias,
    )
    out.word(register_address(Region.LAYER_NORM), config)
    out.vectors(SMALL_BASE, np.arange(size), padded(gamma.codes, size))
    out.vectors(SMALL_BASE, size + np.arange(size), padded(beta.codes, size))
    places = matrix_places(0, timesteps, size)
    out.vectors(LARGE_BASE, places, padded(x.codes, size))
    out.start(register_address(Region.START, Start.LAYER_NORM))
    return out.finish(LARGE_BASE, places, x.shape, x.bias)


def zero_padding(x: Quantised, begin: int, end: int) -> Assembled:
    """x [T, F] with the timesteps ``begin`` .. ``end`` - 1 set to zero.

    Raises AssemblyError where there is no such timestep (the unit would clear one nevertheless).
    """
    size = _check("x", x)
    timesteps = len(x.codes)
    if not 0 <= begin < end <= timesteps:
        raise AssemblyError(
            f"begin and end must enclose at least one of the timesteps 0 .. {timesteps - 1}, not be {begin} and {end}"
        )
    out = Builder()
    out.word(register_address(Region.MANAGERS), pack_large_manager({0: size}, {}))
    config = pack_unit(is_valid=1, num_vector_1=size, num_timestep_1=begin, num_timestep_2=end)
    out.word(register_address(Region.ZERO_PADDING), config)
    places = matrix_places(0, timesteps, size)
    out.vectors(LARGE_BASE, places, padded(x.codes, size))
    out.start(register_address(Region.START, Start.ZERO_PADDING))
    return out.finish(LARGE_BASE, places, x.shape, x.bias)


def attention(keys: Quantised, query: Quantised, *, output_bias: int, weight_bias: int = 3) -> Assembled:
    """softmax(K q) K for keys K [T, F] and a query q [F], as codes [F] of AdaptivFloat bias ``output_bias``.

    ``weight_bias`` is the bias of the softmax weights: 3, the default, is the smallest that reaches 1.

    The unit works on 16 timesteps at a time.  Rows up to the next multiple of 16 are written as zeros, so that their
    score is 0; the unit takes a score of exactly 0, also that of a real row, for -64.  Its softmax is right only while
    the sum of exp(score - largest score) is below 4.  Raises AssemblyError where something does not fit.
    """
    size = _check("keys", keys)
    timesteps, features = keys.shape
    check_shape("query", query, (features,))
    check_bias(output_bias, "output_bias")
    check_bias(weight_bias, "weight_bias")
    rows = -(-timesteps // LANES) * LANES
    at_most("Timesteps of keys", timesteps, _MOST_SCORES, "256 vectors of four scores", "shorten the sequence")
    out = Builder()
    out.word(register_address(Region.MANAGERS), pack_large_manager({0: size}, {}))
    out.word(register_address(Region.MANAGERS, 2), pack_small_manager({SOFTMAX: size}))
    config = pack_unit(
        is_valid=1,
        num_vector_1=size,
        num_timestep_1=timesteps,
        adpbias_1=keys.bias,
        adpbias_2=query.bias,
        adpbias_3=weight_bias,
        adpbias_4=output_bias,
    )
    out.word(register_address(Region.ATTENTION), config)
    matrix = np.zeros((rows, features), np.uint8)
    matrix[:timesteps] = keys.codes
    out.vectors(LARGE_BASE, matrix_places(0, rows, size), padded(matrix, size))
    out.vectors(SMALL_BASE, np.arange(size), padded(query.codes, size))
    out.start(register_address(Region.START, Start.ATTENTION))
    return out.finish(SMALL_BASE, np.arange(size), (features,), output_bias)


def _pool(x: Quantised, mode: int) -> Assembled:
    size = _check("x", x)
    timesteps, features = x.shape
    if timesteps % 2:
        raise AssemblyError(
            f"Timesteps of x must be even, not {timesteps}: LayerReduce works on pairs; drop the last timestep"
        )
    out = Builder()
    out.word(register_address(Region.MANAGERS), pack_large_manager({0: size}, {}))
    config = pack_unit(is_valid=1, mode=mode, num_vector_1=size, num_timestep_1=timesteps)
    out.word(register_address(Region.LAYER_REDUCE), config)
    places = matrix_places(0, timesteps, size)
    out.vectors(LARGE_BASE, places, padded(x.codes, size))
    out.start(register_address(Region.START, Start.LAYER_REDUCE))
    return out.finish(LARGE_BASE, places[: timesteps // 2], (timesteps // 2, features), x.bias)


def _check(name: str, x: Quantised) -> int:
    """The vectors of a timestep of x."""
    check_rank(name, x, "T, F")
    return check_matrix(name, *x.shape)
