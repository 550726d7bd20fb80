"""HLSCNN's convolution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from accel_models.hlscnn.options import BY_WEIGHT_BITS, HlscnnOptions
from accel_models.hlscnn.quantise import activation_format, result_format, weight_format
from ir_semantics import reference
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, bounded_outcome
from rewrites.campaigns.distributions import HEAVY, NORMAL, UNIFORM, draw_real
from rewrites.claims.theorems.convolution import at_worst
from rewrites.claims.theorems.machines import CONVOLUTIONS
from rewrites.mappings.hlscnn.operations import conv2d

from .device import run_hlscnn

Reals = NDArray[np.float64]

WEIGHT_BITS = {"hlscnn_conv2d": 16, "hlscnn_conv2d_8bit": 8}


def make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    """x [channels, n, n] and w [filters, channels, kernel, kernel], where n = positions + kernel - 1."""
    p = parameters
    taps = p["channels"] * p["kernel"] ** 2
    scale = 1.0 if distribution == UNIFORM else float(taps) ** -0.5
    size = p["positions"] + p["kernel"] - 1
    kind = NORMAL if distribution == HEAVY else distribution
    return {
        "x": draw_real(generator, distribution, (p["channels"], size, size), largest=(0.125, 64.0)),
        "w": draw_real(generator, kind, (p["filters"], p["channels"], p["kernel"], p["kernel"]), scale=scale),
    }


def convolve(x: Reals, w: Reals, stride: int, options: HlscnnOptions) -> tuple[Reals, Reals]:
    """The accelerator's output, and the exact convolution of the quantised operands."""
    return _convolve(x, w, stride, options)[:2]


def _convolve(x: Reals, w: Reals, stride: int, options: HlscnnOptions) -> tuple[Reals, Reals, Reals, Reals]:
    """As :func:`convolve`, with the quantised operands."""
    x_format, w_format = activation_format(options), weight_format(options)
    codes = x_format.quantise(x), w_format.quantise(w)
    steps = (stride, stride)
    program = conv2d(*codes, stride=steps, weight_bits=options.weight_bits)
    result = result_format(options).dequantise(run_hlscnn(program, options))
    q_x, q_w = x_format.dequantise(codes[0]), w_format.dequantise(codes[1])
    return result, reference.conv2d(q_x[None], q_w, stride=steps)[0], q_x, q_w


def _campaign(name: str, weight_bits: int) -> Campaign:
    options = BY_WEIGHT_BITS[weight_bits]

    def evaluate(example: Example) -> Outcome:
        x, w, stride = example.arrays["x"], example.arrays["w"], example.parameters["stride"]
        result, ideal, q_x, q_w = _convolve(x, w, stride, options)
        steps = (stride, stride)
        magnitude = reference.conv2d(np.abs(q_x)[None], np.abs(q_w), stride=steps)[0]  # of every partial sum at most
        bound, limit = at_worst(q_x, q_w, magnitude, weight_bits)
        whole = reference.conv2d(x[None], w, stride=steps)[0]
        return bounded_outcome(whole, result, ideal, bound, limit.value)

    return Campaign(
        name=name,
        summary=f"HLSCNN convolution, weights of {weight_bits} bits",
        reference="the convolution (cross-correlation) without padding, float64",
        property=(
            "each element is within the bound that follows from converting every product and every tap's sum to its "
            "format, unless a partial sum may leave the stored format (no statement); HLSCNN in the reading: "
            + options.reading
        ),
        parameters={
            "channels": range(1, 25),
            "filters": range(1, 17),
            "positions": range(1, 13),
            "kernel": range(1, 4),
            "stride": range(1, 3),
        },
        distributions={
            UNIFORM: "x and w uniform in [-1, 1)",
            NORMAL: "x standard normal, w normal with deviation 1/sqrt(channels * kernel^2)",
            HEAVY: "x Student's t with 3 degrees of freedom, scaled to a largest magnitude drawn log-uniformly from "
            "[1/8, 64); w as in normal",
        },
        make=make,
        evaluate=evaluate,
        theorems=(CONVOLUTIONS[weight_bits].name,),
    )


CAMPAIGNS = {name: _campaign(name, bits) for name, bits in WEIGHT_BITS.items()}
