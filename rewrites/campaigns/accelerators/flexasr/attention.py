"""FlexASR's Attention unit, and the sum of its softmax weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised, dequantise
from ila_lang import Simulator
from ir_semantics import reference
from rewrites.bounds.elementwise import Bounded
from rewrites.campaigns.accelerators.device import fitting_bias, quantise_fitting, run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, Skip, Violation, bounded_outcome
from rewrites.campaigns.distributions import REAL, draw_real
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import ATTENTION
from rewrites.mappings.flexasr.operations import attention

Reals = NDArray[np.float64]

WEIGHT_BIAS = 3
"""The AdaptivFloat bias of the softmax weights: the smallest that reaches 1."""
SLICE = 1 / 16  # operands of the divider lose what is below
_LARGEST_POWER = 1022 / 1024  # exp(0) of the unit
MOST_WEIGHT = _LARGEST_POWER / (_LARGEST_POWER - SLICE) * 33 / 32
"""What the weights sum up to at most, about 1.100, while the sum S of the exponentials is below 4.

The dividends sum up to S at most, and the divisor is above S - 1/16, where S is at least exp(0) = 1022/1024.  Rounding
a weight to a code raises it by a factor of 33/32 at most.
"""


def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """keys [timesteps, F] and query [F], both of the distribution."""
    features = 16 * parameters["vectors"]
    return {
        "keys": draw_real(generator, distribution, (parameters["timesteps"], features), largest=(0.125, 4.0)),
        "query": draw_real(generator, distribution, (features,), largest=(0.125, 4.0)),
    }


def run(example: Example) -> tuple[Reals, Reals, Reals, Quantised, Quantised, int]:
    """Reference, result and reference on the quantised inputs; keys and query; the output's bias, which fits it."""
    keys, query = example.arrays["keys"], example.arrays["query"]
    q_keys, q_query = quantise_fitting(keys), quantise_fitting(query)
    whole = reference.attention(keys, query)
    output_bias = fitting_bias(whole)
    result = run_flexasr(attention(q_keys, q_query, output_bias=output_bias, weight_bias=WEIGHT_BIAS)).values
    return whole, result, reference.attention(q_keys.values, q_query.values), q_keys, q_query, output_bias


def bounded(keys: Quantised, query: Quantised, output_bias: int) -> Bounded:
    """The IR's attention on the quantised inputs, with the proved bound of FlexASR's error."""
    return applied.attention(keys, query, WEIGHT_BIAS, output_bias).elements()


def _evaluate(example: Example) -> Outcome:
    whole, result, ideal, keys, query, output_bias = run(example)
    bound = bounded(keys, query, output_bias).error
    limit = applied.attention(keys, query, WEIGHT_BIAS, output_bias).whole().value
    return bounded_outcome(whole, result, ideal, bound, limit)


# -- the weights ----------------------------------------------------------------------------------------


def weights_of(keys: Quantised, query: Quantised) -> Reals:
    """The softmax weights [timesteps]: the unit leaves them in the place of the scores, 16 to a vector."""
    program, device = attention(keys, query, output_bias=7, weight_bias=WEIGHT_BIAS), Simulator(flexasr())
    program.run(device)
    first = LANES * program.program.sizes["base_scores"]
    return dequantise(device.memories["gb_core_small_buffer"].words[first : first + len(keys.codes)], WEIGHT_BIAS)


def _evaluate_sum(example: Example) -> Outcome:
    keys, query = quantise_fitting(example.arrays["keys"]), quantise_fitting(example.arrays["query"])
    scores = keys.values @ query.values
    if not scores.all():
        raise Skip("a score is exactly 0, which the unit takes for -64")
    weights = weights_of(keys, query)
    total = float(weights.sum())
    violation = None
    if total > MOST_WEIGHT:
        exponentials = float(np.exp(scores - scores.max()).sum())
        violation = Violation(
            "sum of weights",
            f"the weights sum up to {total:g}, more than {MOST_WEIGHT:.4f}; the exponentials to {exponentials:.4f}",
        )
    whole = reference.softmax(example.arrays["keys"] @ example.arrays["query"])
    return Outcome(whole, weights, reference.softmax(scores), violation)


_DISTRIBUTIONS = {
    name: f"keys and query {meaning}" + (" [1/8, 4)" if name == "heavy" else "") for name, meaning in REAL.items()
}

CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(
            name="flexasr_attention",
            summary="FlexASR attention of one query",
            reference="softmax(K q) K, float64",
            property=(
                "each element is within a derived bound of the exact result on the quantised inputs, unless the sum of "
                "the exponentials may reach 4 or a score is 0 (no statement)"
            ),
            parameters={"timesteps": range(1, 65), "vectors": range(1, 17)},
            distributions=_DISTRIBUTIONS,
            make=make,
            evaluate=_evaluate,
            theorems=(ATTENTION.name,),
        ),
        Campaign(
            name="flexasr_attention_sum",
            summary="the softmax weights of FlexASR's attention sum up to 1, or a little more",
            reference="softmax(K q), float64",
            property=f"the weights sum up to {MOST_WEIGHT:.4f} at most (derived for sums of exponentials below 4)",
            parameters={"timesteps": range(1, 33), "vectors": range(1, 9)},
            distributions=_DISTRIBUTIONS,
            make=make,
            evaluate=_evaluate_sum,
            expects_violation=True,
        ),
    )
}
