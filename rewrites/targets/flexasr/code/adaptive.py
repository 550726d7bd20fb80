"""Operands as AdaptivFloat codes: what FlexASR's operators have in common, and formats from ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from accel_models.flexasr.floats import EXPONENT_AT_0
from accel_models.flexasr.quantise import BIASES, Quantised, largest, quantise, smallest
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.compiler.codegen.formats import power_above, unscale
from rewrites.compiler.codegen.interface import RESULT, Call, Options, Reals
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.flexasr.claims import READ, ROUND

_CUT_BITS = 5
"""Half a step of a mantissa of 4 bits is 2^-5 of the binade's least number."""


class AdaptiveFloats(FloatImplementation):
    """An implementation whose operands are rounded to AdaptivFloat codes, each of a bias and a scale of its own."""

    conversions: ClassVar[tuple[ConversionClaim, ...]] = (ROUND, READ)
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("x", "w", "u", "b", "d", "h", "c", "gamma", "beta"), ("float32 to AdaptivFloat",)),
        RESULT: ("AdaptivFloat to float32",),
    }

    @abstractmethod
    def _format(self, name: str) -> tuple[int, int]:
        """The AdaptivFloat bias of an operand, or of the result ``y``, and its scale.

        Scales are those of :mod:`rewrites.compiler.codegen.formats`.
        """

    def _exponent(self, name: str) -> int:
        """What the format is to the host's programs (:mod:`accel_models.flexasr.floats`)."""
        bias, scale = self._format(name)
        return EXPONENT_AT_0 + bias + scale

    def _quantised_sizes(self, call: Call) -> Mapping[str, int]:
        return {name: self.quantisation[name] for name in call.sizes if name.startswith("bias_")}

    def _format_sizes(self, name: str) -> Mapping[str, int]:
        return {"exponent": self._exponent(name)}

    def _quantised(self, name: str, operand: Reals) -> Quantised:
        """The codes that elements of an operand are rounded to."""
        bias, scale = self._format(name)
        return quantise(unscale(operand, -scale), bias)

    def _rounded(self, name: str, operand: Reals) -> Reals:
        return unscale(self._quantised(name, operand).values, self._format(name)[1])

    def _beyond(self, name: str, operand: Reals) -> int:
        return count_beyond(operand, *self._format(name))

    def rounding(self, name: str, magnitude: float) -> float:
        """Half a step of the largest number's binade, or of the smallest code, and the distance to the largest."""
        bias, scale = self._format(name)
        size = math.ldexp(magnitude, -scale)
        half = math.ldexp(1.0, power_above(size) - 1 - _CUT_BITS) if size else 0.0
        return math.ldexp(max(half, smallest(bias) / 2) + max(size - largest(bias), 0.0), scale)


def count_beyond(values: Reals, bias: int, scale: int = 0) -> int:
    """How many values lie beyond the largest code of a bias, times 2^scale."""
    return int(np.count_nonzero(np.abs(values) > math.ldexp(largest(bias), scale)))


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
