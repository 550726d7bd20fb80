"""The host's side of AdaptivFloat: from real numbers to codes and back, on whole NumPy arrays.

A tensor has one bias b (0..7) for all its codes; :mod:`accel_models.flexasr.numerics` has the format.  What the
published host software calls the bias of a tensor is b - 10.

This is software that runs before and after the accelerator, so it is no part of the ILA.  It rounds half to even;
hardware, which rounds ties toward plus infinity, is :func:`accel_models.flexasr.numerics.encode`.

Source: the host quantiser of the FlexASR drivers; Tambe et al., DAC 2020, for the idea of a bias per tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .numerics import EXPONENT_OFFSET, value_of

BIASES = range(8)
_TOP_EXPONENT = 7  # of the three exponent bits
_MANTISSA = 16  # steps from one power of two to the next
_FLOAT64_BIAS = 1023  # of the exponents of IEEE 754's binary64, whose mantissas have 52 bits
_CUT = 52 - 4  # bits of a float64 that no code has
_HALF = 1 << (_CUT - 1)


@dataclass(frozen=True, eq=False)
class Quantised:
    """A tensor as FlexASR stores it: codes (uint8, any shape) and the bias (0..7) that they share.

    Raises TypeError or ValueError on codes of another type and a bias out of range.
    """

    codes: NDArray[np.uint8]
    bias: int

    def __post_init__(self) -> None:
        if not isinstance(self.codes, np.ndarray) or self.codes.dtype != np.uint8:
            kind = getattr(self.codes, "dtype", type(self.codes).__name__)
            raise TypeError(
                f"AdaptivFloat codes must be a NumPy array of uint8, not {kind}; quantise real numbers first"
            )
        check_bias(self.bias)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.codes.shape

    @property
    def values(self) -> NDArray[np.float64]:
        """The real numbers that the codes stand for, exactly."""
        return dequantise(self.codes, self.bias)


def check_bias(bias: int) -> int:
    """The bias as an integer; raises ValueError where it is not in 0..7."""
    if bias not in BIASES:
        raise ValueError(f"AdaptivFloat bias must be in 0 .. 7, not {bias}")
    return int(bias)


def smallest(bias: int) -> float:
    """The smallest magnitude other than zero at a bias: 1.0625 * 2^(bias - 10)."""
    return float(value_of(0x01, bias))


def largest(bias: int) -> float:
    """The largest magnitude at a bias: 1.9375 * 2^(bias - 3)."""
    return float(value_of(0x7F, bias))


def choose_bias(values: ArrayLike) -> int:
    """The bias at which the leading bit of the largest magnitude is that of the largest code; 0 for zeros only.

    It is floor(log2(max|x|)) + 3, so it exists for tensors whose largest magnitude lies in [1/8, 32).
    Raises ValueError for others, and for numbers that are not finite.

    >>> choose_bias([0.5, -0.9]), choose_bias([31.9])
    (2, 7)
    """
    magnitude = float(np.max(np.abs(_finite(values)), initial=0.0))
    if magnitude == 0.0:
        return 0
    bias = int(np.frexp(magnitude)[1]) - 1 + EXPONENT_OFFSET - _TOP_EXPONENT
    if bias not in BIASES:
        hint = (
            f"or give bias=7, which cuts magnitudes at {largest(7)}"
            if bias > 7
            else f"or give bias=0, which turns magnitudes up to {smallest(0) / 2} into zero"
        )
        raise ValueError(
            f"The largest magnitude of a tensor must lie in [0.125, 32) for its AdaptivFloat bias to lie in 0 .. 7, "
            f"not be {magnitude} (bias {bias}); scale the tensor {hint}"
        )
    return bias


def quantise(values: ArrayLike, bias: int | None = None) -> Quantised:
    """The tensor with each number replaced by the nearest code; ``bias`` is :func:`choose_bias`'s by default.

    Halfway between two codes the one with the even mantissa is taken, halfway between zero and the smallest code
    zero (where the published quantiser leaves a number that no code has).  Beyond the range the result is the largest
    code of that sign.  Zero is always 0x00, never 0x80.

    Raises ValueError where the numbers are not finite or no bias fits.

    >>> quantise([0.5, -0.9, 0.0]).codes
    array([112, 253,   0], dtype=uint8)
    """
    x = _finite(values)
    bias = choose_bias(x) if bias is None else check_bias(bias)
    magnitude = np.abs(x)
    # Codes and float64 both have exponent and mantissa as neighbouring bits, so that a mantissa that is rounded up to
    # 32 moves on to the next exponent.  To round to the nearest is to add half of what is cut off, a little less where
    # the last bit that stays is 0: then halfway goes down, to the even mantissa.
    bits = magnitude.reshape(-1).view(np.int64)
    code = bits + (_HALF - 1) + (bits >> _CUT & 1) >> _CUT
    code -= (_FLOAT64_BIAS + bias - EXPONENT_OFFSET) * _MANTISSA
    # numbers below the smallest code and above the largest one become these, or zero
    code = np.clip(code, 1, 0x7F).reshape(x.shape).astype(np.uint8)
    code *= magnitude > smallest(bias) / 2
    code |= (x < 0).view(np.uint8) * (code != 0) << np.uint8(7)
    return Quantised(code, bias)


def dequantise(codes: NDArray[np.uint8], bias: int) -> NDArray[np.float64]:
    """The real numbers (exact) that codes (uint8) stand for; raises ValueError on a bias outside 0..7."""
    values: NDArray[np.float64] = _table()[check_bias(bias)][codes]
    return values


def error_bound(values: ArrayLike, bias: int) -> NDArray[np.float64]:
    """What |x - quantise(x).values| is at most, for each element x; the bound is attained in every binade.

    With min and max the magnitudes of the smallest and the largest code:

    * |x| <= min: the nearer of zero and min is taken, so it is at most min / 2;
    * min < |x| <= max: with k = floor(log2|x|), codes between 2^k and 2^(k+1) lie 2^(k-4) apart, so the error is at
      most 2^(k-5);
    * max < |x|: the result is max, and the error |x| - max.  At the bias of :func:`choose_bias` it is below 2^(k-4).
    """
    check_bias(bias)
    magnitude = np.abs(_finite(values))
    _, power = np.frexp(np.maximum(magnitude, smallest(bias)))
    bound = np.where(magnitude <= smallest(bias), smallest(bias) / 2, np.ldexp(1.0, power - 6))
    return np.where(magnitude > largest(bias), magnitude - largest(bias), bound)


@cache
def _table() -> NDArray[np.float64]:
    """The value of every code (second index) at every bias (first); all are exact in float64."""
    values: NDArray[np.float64] = np.ldexp([float(value_of(code)) for code in range(256)], np.array(BIASES)[:, None])
    return values


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        raise ValueError("Numbers to quantise must be finite, not NaN or infinite; remove them from the tensor")
    return x
