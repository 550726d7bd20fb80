"""Operands as AdaptivFloat codes: what FlexASR's operators have in common, and formats from ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accel_models.flexasr.floats import EXPONENT_AT_0, float_to_adpfloat
from accel_models.flexasr.quantise import BIASES, Quantised, largest, quantise, smallest
from ila_lang import Function
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.compiler.codegen.formats import Format, power_above, unscale
from rewrites.compiler.codegen.interface import RESULT, Call, Options, Reals
from rewrites.mappings.conversions import EXPONENT, ConversionClaim
from rewrites.mappings.flexasr.claims import READ, ROUND

_CUT_BITS = 5
"""Half a step of a mantissa of 4 bits is 2^-5 of the binade's least number."""


@dataclass(frozen=True)
class AdaptiveCodes(Format):
    """AdaptivFloat codes of a bias, of numbers times 2^-scale (:mod:`rewrites.compiler.codegen.formats`)."""

    bias: int
    scale: int

    @property
    def function(self) -> Function:
        """As of :class:`Format`."""
        return float_to_adpfloat

    @property
    def sizes(self) -> Mapping[str, int]:
        """As of :class:`Format`."""
        return {EXPONENT: EXPONENT_AT_0 + self.bias + self.scale}

    def quantised(self, values: Reals) -> Quantised:
        """The codes that numbers are rounded to."""
        return quantise(unscale(values, -self.scale), self.bias)

    def rounded(self, values: Reals) -> Reals:
        """As of :class:`Format`."""
        return unscale(self.quantised(values).values, self.scale)

    def beyond(self, values: Reals) -> int:
        """As of :class:`Format`."""
        return int(np.count_nonzero(np.abs(values) > math.ldexp(largest(self.bias), self.scale)))

    def change(self, magnitude: float) -> float:
        """Half a step of the largest number's binade, or of the smallest code, and the distance to the largest."""
        size = math.ldexp(magnitude, -self.scale)
        half = math.ldexp(1.0, power_above(size) - 1 - _CUT_BITS) if size else 0.0
        end = max(size - largest(self.bias), 0.0)
        return math.ldexp(max(half, smallest(self.bias) / 2) + end, self.scale)


class AdaptiveFloats(FloatImplementation):
    """An implementation whose operands are rounded to AdaptivFloat codes, each of a bias and a scale of its own."""

    conversions: ClassVar[tuple[ConversionClaim, ...]] = (ROUND, READ)
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("x", "w", "u", "b", "d", "h", "c", "gamma", "beta"), ("float32 to AdaptivFloat",)),
        RESULT: ("AdaptivFloat to float32",),
    }

    @abstractmethod
    def _format(self, name: str) -> AdaptiveCodes:
        """As of :class:`FloatImplementation`."""

    def _quantised_sizes(self, call: Call) -> Mapping[str, int]:
        return {name: self.quantisation[name] for name in call.sizes if name.startswith("bias_")}

    def _quantised(self, name: str, operand: Reals) -> Quantised:
        """The codes that elements of an operand are rounded to."""
        return self._format(name).quantised(operand)


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
