"""Number formats from ranges: powers of two that move a tensor to where a format is finest.

A tensor x goes to an accelerator as x * 2^-scale.  That is exact, and so is undoing it; ``scale`` is an integer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accel_models.fixed_point import EXPONENT_AT_0, float_to_fixed
from ila_lang import Function
from rewrites.mappings.conversions import EXPONENT

from .interface import CannotOffload, Reals


class Format(ABC):
    """The codes of a tensor: the sizes of the conversions that make them, and what these make of numbers."""

    @property
    @abstractmethod
    def function(self) -> Function:
        """The function that rounds a float32 word to a code."""

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """The formats of conversions, by name."""

    @abstractmethod
    def rounded(self, values: Reals) -> Reals:
        """The numbers of the codes that numbers are rounded to, in the units of these."""

    @abstractmethod
    def beyond(self, values: Reals) -> int:
        """How many of these numbers are cut to the last code."""

    @abstractmethod
    def change(self, magnitude: float) -> float:
        """What rounding a number of at most this magnitude may change."""


@dataclass(frozen=True)
class FixedCodes(Format):
    """Two's complement codes of so many bits, of which ``fraction`` stand after the point, of numbers times 2^-scale.

    ``symmetric`` ones have no -2^(bits - 1).  They are words of ``width`` bits, or of their own.
    """

    bits: int
    scale: int
    fraction: int = 0
    symmetric: bool = False
    width: int = 0

    @property
    def function(self) -> Function:
        """As of :class:`Format`."""
        return float_to_fixed(self.bits, self.symmetric, self.width or self.bits)

    @property
    def sizes(self) -> Mapping[str, int]:
        """As of :class:`Format`."""
        return {EXPONENT: EXPONENT_AT_0 + self._unit}

    @property
    def _unit(self) -> int:
        return self.scale - self.fraction

    @property
    def _largest(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def rounded(self, values: Reals) -> Reals:
        """As of :class:`Format`."""
        codes = np.clip(self._nearest(values), -self._largest - (not self.symmetric), self._largest)
        return unscale(codes, self._unit)

    def _nearest(self, values: Reals) -> Reals:
        """Integers, ties to the even one."""
        return np.rint(unscale(values, -self._unit))

    def beyond(self, values: Reals) -> int:
        """As of :class:`Format`."""
        nearest = self._nearest(values)
        below = nearest < -self._largest - (not self.symmetric)
        return int(np.count_nonzero(below | (nearest > self._largest)))

    def change(self, magnitude: float) -> float:
        """Half a unit, and the distance to the largest code."""
        return math.ldexp(0.5 + max(math.ldexp(magnitude, -self._unit) - self._largest, 0.0), self._unit)


LARGEST_SCALE = 60
"""Scales are in -60 .. 60: with codes of at most 31 bits, results stay normal numbers of binary32 (2^-126 .. 2^127)."""
_FLOAT64_POWERS = 1000
"""Powers of two with exponents up to this one are float64: to multiply by them is faster than ldexp, and the same."""
SUMS = 1 + 2.0**-34
"""A factor above the rounding of a float64 sum of up to 2^18 numbers >= 0, each of a few operations of error 2^-53.

No sum of the built-in accelerators has more terms: VTA's have at most 132,608, the others' at most 2^16.
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


def check_scale(scale: int, what: str) -> None:
    """Raises CannotOffload where a scale is out of range."""
    if abs(scale) > LARGEST_SCALE:
        raise CannotOffload(f"{what} needs the scale 2^{scale}, and scales are in 2^-60 .. 2^60")


def unscale(values: Reals, scale: int) -> Reals:
    """Values times 2^scale."""
    if abs(scale) > _FLOAT64_POWERS:
        return np.ldexp(values, scale)
    return values * math.ldexp(1.0, scale) if scale else values
