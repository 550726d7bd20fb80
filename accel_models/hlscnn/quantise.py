"""The host's side of HLSCNN's numbers: from real tensors to fixed-point codes and back, on whole NumPy arrays.

This is software that runs before and after the accelerator, so it is no part of the ILA.  Numbers are rounded to the
nearest code, ties to the even one, and saturate; what drivers of the published models do is not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .layout import LANES
from .options import HlscnnOptions


@dataclass(frozen=True)
class FixedPoint:
    """Two's complement codes of ``bits`` (8 or 16) bits, ``fraction`` of them after the point.

    >>> FixedPoint(8, 6).quantise([0.5, -1.26, 9.0])
    array([ 32, -81, 127], dtype=int8)
    """

    bits: int
    fraction: int

    def __post_init__(self) -> None:
        if self.bits not in (8, 16):
            raise ValueError(f"bits of a fixed-point format must be 8 or 16, not {self.bits!r}")

    @property
    def step(self) -> float:
        """The distance between neighbouring numbers."""
        return 2.0**-self.fraction

    @property
    def lowest(self) -> float:
        """The smallest number, that of code -2^(bits - 1)."""
        return -(2.0 ** (self.bits - 1 - self.fraction))

    @property
    def largest(self) -> float:
        """The largest number, that of code 2^(bits - 1) - 1."""
        return -self.lowest - self.step

    def quantise(self, values: ArrayLike) -> NDArray[np.signedinteger]:
        """The nearest code (int8 or int16) of each number, the nearest end's beyond the range.

        Raises ValueError where a number is NaN or infinite.
        """
        x = np.asarray(values, dtype=np.float64)
        if not np.isfinite(x).all():
            raise ValueError("Numbers to quantise must be finite, not NaN or infinite; remove them from the tensor")
        # scaling by a power of two is exact, and clipping first keeps the scaled number finite
        codes = np.rint(np.ldexp(np.clip(x, self.lowest, self.largest), self.fraction))
        return codes.astype(np.int8 if self.bits == 8 else np.int16)

    def dequantise(self, codes: ArrayLike) -> NDArray[np.float64]:
        """The numbers (exact) that codes stand for; raises ValueError where a code does not fit ``bits``."""
        integers = np.asarray(codes)
        half = 1 << (self.bits - 1)
        if integers.dtype.kind not in "iu" or ((integers < -half) | (integers >= half)).any():
            raise ValueError(f"Codes must be integers in {-half} .. {half - 1}; quantise real numbers first")
        return np.ldexp(integers.astype(np.float64), -self.fraction)

    def error_bound(self, values: ArrayLike) -> NDArray[np.float64]:
        """What |x - dequantise(quantise(x))| is at most, for each number x.

        Within the range the nearest code is at most half a step away; beyond it, the distance to the range's end.
        """
        x = np.asarray(values, dtype=np.float64)
        beyond = np.maximum(np.maximum(self.lowest - x, x - self.largest), 0.0)
        return np.where(beyond > 0, beyond, self.step / 2)


def activation_format(options: HlscnnOptions | None = None) -> FixedPoint:
    """The format of activations: 16 bits, by default 7 after the point."""
    return FixedPoint(16, (options or HlscnnOptions()).activation_fraction)


def weight_format(options: HlscnnOptions | None = None) -> FixedPoint:
    """The format of weights: by default 8 bits, 6 of them after the point, the high half of a word of 16 and 14."""
    o = options or HlscnnOptions()
    return FixedPoint(o.weight_bits, o.weight_fraction - (16 - o.weight_bits))


def bias_format(options: HlscnnOptions | None = None) -> FixedPoint:
    """The format of the bias: that of weights of 16 bits."""
    return FixedPoint(16, (options or HlscnnOptions()).weight_fraction)


def result_format(options: HlscnnOptions | None = None) -> FixedPoint:
    """The format of what a convolution stores: 16 bits."""
    return FixedPoint(16, (options or HlscnnOptions()).output_fraction)


def convolution_error(
    channels: int, kernel: tuple[int, int], options: HlscnnOptions | None = None
) -> tuple[float, float]:
    """The least and the greatest value of (stored output) - (convolution of the codes' values, plus bias).

    It holds for an output without ReLU whose partial results all lie in the range of the stored format (nothing wraps
    or saturates), and which starts from 0.  With n = kernel rows * columns * channel blocks taps:

    * each of the 8n products is cut to the partial sum's p fraction bits: it changes by more than -2^-p, by at most 0,
      and by nothing if a product has no more than p;
    * each of the n sums over eight channels, and the bias, is converted to f bits.  With u = 2^-f - 2^-p, the most that
      the bits between can be, truncation changes it by -u .. 0, rounding toward zero by -u .. u, and rounding to the
      nearest by at most half of 2^-f either way.  Adding stored words is exact: without a bias the last conversion
      changes nothing; it is counted all the same.

    ReLU never moves two numbers apart, so |stored - max(exact, 0)| is at most the larger of both magnitudes.
    """
    o = options or HlscnnOptions()
    taps = kernel[0] * kernel[1] * -(-channels // LANES)
    psum, stored = 2.0**-o.psum_fraction, 2.0**-o.output_fraction
    cut = LANES * taps * psum if weight_format(o).fraction + o.activation_fraction > o.psum_fraction else 0.0
    most = stored - psum
    change = {
        "truncate": (-most, 0.0),
        "toward_zero": (-most, most),
        "half_up": (-stored / 2, stored / 2),
        "half_even": (-stored / 2, stored / 2),
    }
    if most == 0.0:
        change = dict.fromkeys(change, (0.0, 0.0))
    tap, store = change[o.tap_rounding], change[o.store_rounding]
    bias_cut = psum if o.weight_fraction > o.psum_fraction else 0.0
    return -cut - bias_cut + taps * tap[0] + store[0], taps * tap[1] + store[1]
