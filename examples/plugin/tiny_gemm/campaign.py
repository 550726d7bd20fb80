"""A property campaign: the accelerator's program on random matrices, against the same sum in float64."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ila_lang import Simulator
from ila_lang.streams.programs import Program
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, compare, first_violation, in_range
from rewrites.campaigns.distributions import INTEGERS, draw_integers

from .mapping import DENSE_LAYER

LARGEST_BIAS = 1 << 20
"""Sums of at most 16 products and such a bias stay far below 2^31, where accumulators would wrap."""


def run(x: NDArray[Any], w: NDArray[Any], b: NDArray[Any], shift: int) -> NDArray[np.int8]:
    """What the program leaves in y, on a simulator that is at reset; x, w and b hold integers of 8, 8 and 32 bits."""
    mapping = DENSE_LAYER.mapping
    sizes = {"m": x.shape[0], "k": x.shape[1], "n": w.shape[0], "shift": shift}
    mapping.require(sizes)
    tensors: dict[str, NDArray[Any]] = {
        "host_x": x.astype(np.int8).reshape(-1),
        "host_w": w.astype(np.int8).reshape(-1),
        "host_b": b.astype(np.int32),
    }
    done = Program.of(mapping.device, sizes).run(Simulator(mapping.device.ila), tensors)
    return done["host_y"].view(np.int8).reshape(sizes["m"], sizes["n"])


def _make(sizes: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    m, k, n = sizes["rows"], sizes["inputs"], sizes["outputs"]
    return {
        "x": draw_integers(generator, distribution, (m, k), -128, 127),
        "w": draw_integers(generator, distribution, (n, k), -128, 127),
        "b": draw_integers(generator, distribution, (n,), -LARGEST_BIAS, LARGEST_BIAS),
    }


def _evaluate(example: Example) -> Outcome:
    x, w = (in_range(name, example.arrays[name], -128, 127) for name in "xw")
    b, shift = in_range("b", example.arrays["b"], -LARGEST_BIAS, LARGEST_BIAS), example.parameters["shift"]
    total = x.astype(np.float64) @ w.T.astype(np.float64) + b  # exact: integers far below 2^53
    ideal = np.clip(np.floor(total / 2.0**shift), -128, 127)
    got = run(x, w, b, shift).astype(np.float64)
    violation = first_violation("bytes", got != ideal, lambda i: f"{got[i]:.0f}, not {ideal[i]:.0f}")
    margin, _ = compare(got, ideal, np.zeros_like(ideal), Fraction(0))
    return Outcome(ideal, got, None, violation, margin=margin)


CAMPAIGN: Final = Campaign(
    name="tiny_gemm_dense",
    summary="tiny_gemm's dense layer of bytes with a bias, shifted and saturated",
    reference="x w^T + b in float64, divided by 2^shift, rounded down, cut to -128 .. 127",
    property="the bytes are those of the reference",
    parameters={"rows": range(1, 9), "inputs": range(1, 17), "outputs": range(1, 9), "shift": range(16)},
    distributions={name: f"integers: {meaning}" for name, meaning in INTEGERS.items()},
    make=_make,
    evaluate=_evaluate,
)
