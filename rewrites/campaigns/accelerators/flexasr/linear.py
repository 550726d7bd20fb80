"""FlexASR's linear layer on its processing elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ir_semantics import reference
from rewrites.campaigns.accelerators.device import fitting_bias, quantise_fitting, run_flexasr
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, bounded_outcome
from rewrites.campaigns.distributions import HEAVY, NORMAL, UNIFORM, draw_real
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import LINEAR
from rewrites.mappings.flexasr.operations import linear

Reals = NDArray[np.float64]


def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """x [timesteps, I], w [O, I] and b [O]; see the campaign's distributions."""
    timesteps, inputs, outputs = parameters["timesteps"], 16 * parameters["input_vectors"], parameters["outputs"]
    scale = 1.0 if distribution == UNIFORM else float(inputs) ** -0.5
    return {
        "x": draw_real(generator, distribution, (timesteps, inputs)),
        "w": draw_real(generator, NORMAL if distribution == HEAVY else distribution, (outputs, inputs), scale=scale),
        "b": generator.uniform(-1.0, 1.0, outputs),
    }


def evaluate(example: Example) -> Outcome:
    """Runs the layer; its output bias fits the reference, as the published driver chooses it."""
    x, w, b = (example.arrays[name] for name in ("x", "w", "b"))
    whole = reference.dense(x, w, b)
    q_x, q_w, q_b = (quantise_fitting(a) for a in (x, w, b))
    output_bias = fitting_bias(whole)
    result = run_flexasr(linear(q_x, q_w, q_b, output_bias=output_bias)).values
    ideal = reference.dense(q_x.values, q_w.values, q_b.values)
    theorem = applied.linear(q_x, q_w, q_b, output_bias)
    return bounded_outcome(whole, result, ideal, theorem.elements().error, theorem.whole().value)


CAMPAIGNS = {
    "flexasr_linear": Campaign(
        name="flexasr_linear",
        summary="FlexASR linear layer",
        reference="x w^T + b, float64",
        property=(
            "each element is within a derived bound of the exact result on the quantised inputs (2^-14, and half a "
            "step of AdaptivFloat; cut at the largest code), unless a sum leaves its format (no statement)"
        ),
        parameters={"timesteps": range(1, 17), "input_vectors": range(1, 9), "outputs": range(16, 257, 16)},
        distributions={
            UNIFORM: "x, w and b uniform in [-1, 1)",
            NORMAL: "x standard normal, w normal with deviation 1/sqrt(inputs), b uniform in [-1, 1)",
            HEAVY: "x Student's t with 3 degrees of freedom, scaled to a largest magnitude drawn log-uniformly from "
            "[1/8, 31); w and b as in normal",
        },
        make=make,
        evaluate=evaluate,
        theorems=(LINEAR["none"].name,),
    )
}
