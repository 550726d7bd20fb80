"""Operands as AdaptivFloat codes: what FlexASR's operators have in common, and formats from ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.floats import EXPONENT_AT_0
from accel_models.flexasr.quantise import BIASES, Quantised, dequantise, largest, quantise, smallest
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.compiler.codegen.formats import power_above, unscale
from rewrites.compiler.codegen.interface import Call, Implementation, Options, Reals, Tensors
from rewrites.compiler.codegen.parts import flat

_CUT_BITS = 5
"""Half a step of a mantissa of 4 bits is 2^-5 of the binade's least number."""


class AdaptiveImplementation(Implementation):
    """An implementation whose operands are AdaptivFloat codes, each of a bias and a scale of its own."""

    @abstractmethod
    def _format(self, name: str) -> tuple[int, int]:
        """The AdaptivFloat bias of an operand, and its scale (:mod:`rewrites.compiler.codegen.formats`)."""

    def _codes(self, name: str, operand: Reals) -> Quantised:
        return _quantised(operand, *self._format(name))

    def _joined(self, parts: Sequence[Quantised], shape: tuple[int, ...]) -> Quantised:
        return Quantised(np.concatenate([part.codes for part in parts]).reshape(shape), parts[0].bias)

    def _sample(self, codes: Quantised, number: int) -> Quantised:
        return Quantised(codes.codes[number], codes.bias)

    def _values(self, name: str, codes: Quantised) -> Reals:
        return unscale(codes.values, self._format(name)[1])

    def _beyond(self, name: str, operand: Reals) -> int:
        return count_beyond(operand, *self._format(name))

    def rounding(self, name: str, magnitude: float) -> float:
        """As :func:`rounding_of`."""
        return rounding_of(magnitude, *self._format(name))

    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return {f"host_{name}": flat(quantised.codes, call.parts[name]) for name, quantised in codes.items()}

    def _decoded(self, outputs: Sequence[Tensors], bias: int, scale: int, tensor: str = "host_y") -> Reals:
        """The result of which calls wrote parts as codes of a bias, times 2^scale."""
        return unscale(self._placed(outputs, tensor, lambda codes: dequantise(codes, bias)), scale)


class AdaptiveFloats(FloatImplementation):
    """An implementation whose mapping rounds operands to AdaptivFloat codes."""

    @abstractmethod
    def _format(self, name: str) -> tuple[int, int]:
        """As of :class:`AdaptiveImplementation`."""

    def _exponent(self, name: str) -> int:
        """What the format is to the program (:mod:`accel_models.flexasr.floats`)."""
        bias, scale = self._format(name)
        return EXPONENT_AT_0 + bias + scale

    def _quantised(self, name: str, operand: Reals) -> Quantised:
        """The codes that the program rounds elements of an operand to."""
        return _quantised(operand, *self._format(name))

    def _rounded(self, name: str, operand: Reals) -> Reals:
        return unscale(self._quantised(name, operand).values, self._format(name)[1])

    def _beyond(self, name: str, operand: Reals) -> int:
        return count_beyond(operand, *self._format(name))

    def rounding(self, name: str, magnitude: float) -> float:
        """As :func:`rounding_of`."""
        return rounding_of(magnitude, *self._format(name))


def rounding_of(magnitude: float, bias: int, scale: int) -> float:
    """What rounding to codes of a bias, times 2^scale, may change in a number of at most this magnitude.

    It is half a step of the largest number's binade, or of the smallest code, and the distance to the largest one.
    """
    size = math.ldexp(magnitude, -scale)
    half = math.ldexp(1.0, power_above(size) - 1 - _CUT_BITS) if size else 0.0
    return math.ldexp(max(half, smallest(bias) / 2) + max(size - largest(bias), 0.0), scale)


def _quantised(operand: Reals, bias: int, scale: int) -> Quantised:
    return quantise(unscale(operand, -scale), bias)


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
