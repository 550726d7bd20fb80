"""FlexASR's LayerReduce: max, mean and sum of pairs of timesteps."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import numpy as np

from accel_models.flexasr.quantise import quantise
from ir_semantics.reference import pool_over_time
from rewrites.campaigns.accelerators.device import run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, compare, first_violation
from rewrites.campaigns.distributions import REAL, draw_real
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import POOLINGS
from rewrites.mappings.flexasr.operations import pool

PARAMETERS = {"timesteps": range(2, 65, 2), "vectors": range(1, 9)}
"""Even numbers of timesteps, and vectors of 16 features in each."""


def make_matrix(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """x [timesteps, 16 * vectors]."""
    return {"x": draw_real(generator, distribution, (parameters["timesteps"], 16 * parameters["vectors"]))}


def _run_max(example: Example) -> Outcome:
    x = example.arrays["x"]
    q = quantise(x)
    result = run_flexasr(pool("max", q))
    ideal = pool_over_time(q.values, "max")
    expected = quantise(ideal, q.bias).codes  # the maximum of codes is the value of a code: this is exact
    violation = first_violation(
        "bit-identical", result.codes != expected, lambda i: f"0x{result.codes[i]:02x}, not 0x{expected[i]:02x}"
    )
    margin, _ = compare(result.values, ideal, np.zeros_like(ideal), Fraction(0))  # the violation is the codes'
    return Outcome(pool_over_time(x, "max"), result.values, ideal, violation, margin=margin)


def pooling(kind: Literal["mean", "add"]) -> Campaign:
    """The campaign of mean or sum pooling."""

    def run(example: Example) -> Outcome:
        x = example.arrays["x"]
        q = quantise(x)
        result = run_flexasr(pool(kind, q)).values
        ideal = pool_over_time(q.values, kind)
        theorem = applied.pooling(kind, q)
        margin, violation = compare(result, ideal, theorem.elements().error, theorem.whole().value)
        return Outcome(pool_over_time(x, kind), result, ideal, violation, margin=margin)

    return Campaign(
        name=f"flexasr_{kind}pool",
        summary=f"FlexASR {'mean pooling' if kind == 'mean' else 'sums'} of pairs of timesteps",
        reference=f"the {kind} over pairs of timesteps, float64",
        property=(
            "each element is the exact result on the quantised inputs, rounded once to AdaptivFloat (half a step; "
            "zero below the least exponent; cut at the largest code)"
        ),
        parameters=PARAMETERS,
        distributions=REAL,
        make=make_matrix,
        evaluate=run,
        theorems=(POOLINGS[kind].name,),
    )


CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(
            name="flexasr_maxpool",
            summary="FlexASR max pooling of pairs of timesteps",
            reference="the maximum over pairs of timesteps, float64",
            property="the codes are those of the maximum of the quantised inputs, bit for bit",
            parameters=PARAMETERS,
            distributions=REAL,
            make=make_matrix,
            evaluate=_run_max,
            theorems=(POOLINGS["max"].name,),
        ),
        pooling("mean"),
        pooling("add"),
    )
}
