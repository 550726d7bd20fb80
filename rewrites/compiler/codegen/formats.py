"""Number formats from ranges: AdaptivFloat biases, and powers of two that move a tensor to where a format is finest.

A tensor x goes to an accelerator as x * 2^-scale.  That is exact, and so is undoing it; ``scale`` is an integer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from accel_models.flexasr.quantise import BIASES, Quantised, largest, quantise

from .interface import CannotOffload, Options, Reals

__all__ = [
    "LARGEST_SCALE",
    "SUMS",
    "adaptive_bias",
    "adaptive_scale",
    "beyond_adaptive",
    "check_scale",
    "greatest",
    "power_above",
    "quantise_scaled",
    "range_of",
    "rounded_up",
    "unscale",
]

LARGEST_SCALE = 60
"""Scales are in -60 .. 60: with codes of at most 31 bits, results stay normal numbers of binary32 (2^-126 .. 2^127)."""
_FLOAT64_POWERS = 1000
"""Powers of two with exponents up to this one are float64: to multiply by them is faster than ldexp, and the same."""
SUMS = 1 + 2.0**-34
"""A factor above the rounding of a float64 sum of up to 2^18 numbers >= 0, each of a few operations of error 2^-53.

No sum on an accelerator has more terms: VTA's have at most 133,104, the others' at most 2^16.
"""


def greatest(values: Reals) -> float:
    """The largest magnitude, 0 of nothing."""
    return float(np.max(np.abs(values), initial=0.0))


def rounded_up(value: float) -> float:
    """A number that is not below the real number that ``value``, a sum of numbers >= 0 in float64, stands for."""
    return value * SUMS


def range_of(ranges: Mapping[str, float], name: str) -> float:
    """A calibrated range; raises CannotOffload where it is not finite."""
    value = float(ranges[name])
    if not math.isfinite(value):
        raise CannotOffload(f"its calibrated range of {name} is {value}, and formats are for finite numbers")
    return value


def power_above(magnitude: float) -> int:
    """The least n with magnitude < 2^n; raises ValueError for 0.

    >>> power_above(1.0), power_above(0.75), power_above(5.0)
    (1, 0, 3)
    """
    if magnitude <= 0:
        raise ValueError(f"magnitude must be above 0, not {magnitude}")
    return math.frexp(magnitude)[1]


def check_scale(scale: int, what: str) -> int:
    """The scale; raises CannotOffload where it is out of range."""
    if abs(scale) > LARGEST_SCALE:
        raise CannotOffload(f"{what} needs the scale 2^{scale}, and scales are in 2^-60 .. 2^60")
    return scale


def adaptive_bias(magnitude: float, options: Options, margin: float = 1.0) -> int:
    """The AdaptivFloat bias (0 .. 7) for a tensor of this largest magnitude.

    As published it is floor(log2(magnitude)) + 3; otherwise the least one whose largest code is not below the magnitude
    times ``margin``.  Both are cut to 0 .. 7.
    """
    if magnitude == 0:
        return 0
    if options.as_published:
        return min(max(power_above(magnitude) + 2, BIASES[0]), BIASES[-1])
    return next((bias for bias in BIASES if magnitude * margin <= largest(bias)), BIASES[-1])


def adaptive_scale(magnitude: float, options: Options, margin: float = 1.0) -> int:
    """The scale of least magnitude at which a tensor fits AdaptivFloat: neither beyond its largest code, nor in
    the lower half of bias 0.
    """
    if magnitude == 0 or options.as_published:
        return 0
    reached, scale = magnitude * margin, 0
    while reached > math.ldexp(largest(BIASES[-1]), scale):
        scale += 1
    while reached <= math.ldexp(largest(BIASES[0]), scale - 1):
        scale -= 1
    return scale


def quantise_scaled(values: Reals, bias: int, scale: int) -> Quantised:
    """The tensor times 2^-scale as AdaptivFloat codes."""
    return quantise(unscale(values, -scale), bias)


def unscale(values: Reals, scale: int) -> Reals:
    """Values times 2^scale."""
    if abs(scale) > _FLOAT64_POWERS:
        return np.ldexp(values, scale)
    return values * math.ldexp(1.0, scale) if scale else values


def beyond_adaptive(values: Reals, bias: int, scale: int) -> int:
    """How many elements are cut to the largest code."""
    return int(np.count_nonzero(np.abs(values) > math.ldexp(largest(bias), scale)))
