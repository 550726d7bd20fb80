"""FlexASR's LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.quantise import Quantised
from ir_semantics import reference
from rewrites.bounds.elementwise import Bounded
from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, bounded_outcome
from rewrites.campaigns.distributions import REAL, draw_real
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import LAYER_NORM
from rewrites.mappings.flexasr.operations import layer_norm

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


def bounded(x: Quantised, gamma: Quantised, beta: Quantised) -> Bounded:
    """The IR's layer normalisation of x [T, F] with the proved bound of FlexASR's error."""
    bounds = applied.layer_norm(x, gamma, beta, EPSILON).elements()
    return Bounded(bounds.value.reshape(x.shape), bounds.error.reshape(x.shape))


def _evaluate(example: Example) -> Outcome:
    whole, result, ideal, (x, gamma, beta) = run(example)
    limit = applied.layer_norm(x, gamma, beta, EPSILON).whole().value
    return bounded_outcome(whole, result, ideal, bounded(x, gamma, beta).error, limit)


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
        theorems=(LAYER_NORM.name,),
    )
}
