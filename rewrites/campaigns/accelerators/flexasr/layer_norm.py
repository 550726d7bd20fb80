"""FlexASR's LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.quantise import Quantised
from ir_semantics import reference
from rewrites.bounds import a_priori
from rewrites.campaigns.accelerators.bounds import (
    RANGE,
    UNIT,
    Bounded,
    encoded,
    exact,
    inverse_root_error,
    minus,
    plus,
    times,
)
from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, compare
from rewrites.campaigns.distributions import REAL, draw_real
from rewrites.mappings.flexasr.operations import layer_norm

__all__ = ["CAMPAIGNS", "EPSILON", "bounded", "outside", "run"]

Reals = NDArray[np.float64]

EPSILON = 1e-5
"""What the IR adds to the variance; FlexASR adds nothing."""
PARAMETERS_SCALE = 0.2
"""Gamma and beta are small: the result has the AdaptivFloat bias of the input, and must fit its range."""


def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """x [timesteps, F] of the distribution; gamma and beta [F] uniform in [-0.2, 0.2); F is 16 * vectors."""
    timesteps, features = parameters["timesteps"], 16 * parameters["vectors"]
    return {
        "x": draw_real(generator, distribution, (timesteps, features)),
        "gamma": generator.uniform(-PARAMETERS_SCALE, PARAMETERS_SCALE, features),
        "beta": generator.uniform(-PARAMETERS_SCALE, PARAMETERS_SCALE, features),
    }


def run(example: Example) -> tuple[Reals, Reals, Reals, tuple[Quantised, Quantised, Quantised]]:
    """Reference, result and reference on the quantised inputs, with these inputs (x, gamma, beta)."""
    x, gamma, beta = (example.arrays[name] for name in ("x", "gamma", "beta"))
    q_x, q_gamma, q_beta = (quantise_fitting(a) for a in (x, gamma, beta))
    inputs = q_x, q_gamma, q_beta
    result = run_flexasr(layer_norm(*inputs)).values
    ideal = reference.layer_norm(*(q.values for q in inputs), eps=EPSILON)
    return reference.layer_norm(x, gamma, beta, eps=EPSILON), result, ideal, inputs


def outside(x: Reals) -> NDArray[np.bool_]:
    """The timesteps [T, 1] of x [T, F] whose sums wrap: a vector's sum or sum of squares reaches 32, or a row's 512."""
    parts = x.reshape(len(x), -1, 16)
    wraps = np.zeros(len(x), np.bool_)
    for sums in (parts.sum(axis=2), np.square(parts).sum(axis=2)):
        wraps |= (np.abs(sums) >= RANGE).any(axis=1) | (np.abs(sums.sum(axis=1)) >= 16 * RANGE)
    return wraps[:, None]


def bounded(x: Reals, gamma: Reals, beta: Reals, bias: int) -> Bounded:
    """The IR's layer normalisation of x [T, F] with the derived bound of FlexASR's error.

    With u the unit of Q6.14: the mean is rounded toward zero, by less than u.  Each square is rounded down by less than
    u and so is their mean, so it lies less than 2 u below; the square of the mean is off by at most 2 |mean| u + u^2,
    and is rounded down.  The rest follows from the rules of :mod:`rewrites.campaigns.accelerators.bounds`.
    """
    mean = x.mean(axis=1, keepdims=True)
    variance = x.var(axis=1, keepdims=True) + EPSILON
    error = 3 * UNIT + 2 * np.abs(mean) * UNIT + UNIT**2 + EPSILON
    least = variance - error
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = error / 2 * least**-1.5  # the slope of 1/sqrt is steepest at the least variance
        relative = inverse_root_error() * least**-0.5
    inverse = Bounded(1 / np.sqrt(variance), moved + relative)
    inverse = inverse.unless(~(least > 17 * UNIT) | outside(x) | (x.var(axis=1, keepdims=True) + error >= 2 * RANGE))
    centred = minus(exact(x), Bounded(mean, np.full_like(mean, UNIT)))
    scaled = times(times(centred, inverse), exact(gamma))
    return encoded(plus(scaled, exact(beta)), bias)


def _evaluate(example: Example) -> Outcome:
    whole, result, ideal, (x, gamma, beta) = run(example)
    bound = bounded(x.values, gamma.values, beta.values, x.bias)
    limit = a_priori.layer_norm(x, gamma, beta, ideal, EPSILON).value
    margin, violation = compare(result, ideal, bound.error, limit)
    return Outcome(whole, result, ideal, violation, float(np.isfinite(bound.error).mean()), margin)


CAMPAIGNS = {
    "flexasr_layernorm": Campaign(
        name="flexasr_layernorm",
        summary="FlexASR layer normalisation of timesteps",
        reference=f"(x - mean) / sqrt(variance + {EPSILON}) * gamma + beta, float64",
        property=(
            "each element is within a derived bound of the exact result on the quantised inputs, unless a variance is "
            "below 2^-10 or a sum leaves its format (no statement)"
        ),
        parameters={"timesteps": range(1, 33), "vectors": range(1, 17)},
        distributions={name: f"x {meaning}; gamma and beta uniform in [-0.2, 0.2)" for name, meaning in REAL.items()},
        make=make,
        evaluate=_evaluate,
    )
}
