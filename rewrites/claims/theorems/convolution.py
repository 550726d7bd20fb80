"""The theorem of HLSCNN's convolution on the operands of a run, with the roundings that these operands have.

At any operands in its ranges, the theorem counts each rounding of a tap's sum at half a unit.  At known operands the
sum is known, up to the error that the theorem's step in front of the rounding has (0 where weights are bytes).  The
lemma 'HLSCNN requantise' says

    -1/2 <= sum - result < 1/2    in units of the stored word,

which one word meets: floor(sum + 1/2).  It grows with the sum, so that the least and the most that a rounding adds
follow from the ends of the sum's interval.  By the lemmas 'HLSCNN total' and 'HLSCNN store' nothing is lost
afterwards, so that these are added up with their signs.  Where the theorem's conditions fail, a word may wrap, and
there is no bound.

Which products make a tap (:func:`_taps`) is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from accel_models.hlscnn.layout import LANES
from accel_models.hlscnn.options import BY_WEIGHT_BITS
from accel_models.hlscnn.quantise import result_format
from rewrites.bounds.derivations.calculus import Bound, Operator
from rewrites.bounds.elementwise import Reals, bound_ranges

from .machines import CONVOLUTIONS

DECLARED: Final = "which roundings an element of hlscnn.conv2d has"
"""What bounds of elements rest on beside the theorem."""


def at_worst(x: Reals, w: Reals, magnitude: Reals, weight_bits: int) -> tuple[Reals, Bound]:
    """The theorem for elements, and for all, of the convolution without bias of x [..., C, H, W] and w [F, C, K, L].

    ``magnitude`` are the sums of magnitudes of the results' products, which no partial sum exceeds.  Bounds of elements
    are infinite where a condition fails.
    """
    operator = CONVOLUTIONS[weight_bits]
    taps = w.shape[2] * w.shape[3] * -(-w.shape[1] // LANES)
    ranges = {"n": taps, "x": float(np.abs(x).max(initial=0.0)), "w": float(np.abs(w).max(initial=0.0))}
    whole = operator.bound({**ranges, "M": float(magnitude.max(initial=0.0))})
    return np.broadcast_to(bound_ranges(operator, {**ranges, "M": magnitude}), magnitude.shape), whole


def on_run(
    x: Reals, w: Reals, magnitude: Reals, stride: tuple[int, int], weight_bits: int
) -> tuple[Reals, Reals, Bound]:
    """The least and the most that the error of each element is, at the roundings of these operands, and the theorem.

    x is [N, C, H, W]; operands are numbers of the accelerator's formats.  Where a condition fails, both are infinite.
    """
    stated, whole = at_worst(x, w, magnitude, weight_bits)
    unit = result_format(BY_WEIGHT_BITS[weight_bits]).step
    within = _error_of_a_sum(CONVOLUTIONS[weight_bits]) / unit
    least, most = (unit * end for end in _roundings(_taps(x / unit, w, stride, magnitude.shape), within))
    holds = np.isfinite(stated)
    shape = magnitude.shape
    return np.where(holds, least.reshape(shape), -np.inf), np.where(holds, most.reshape(shape), np.inf), whole


def _error_of_a_sum(operator: Operator) -> float:
    """What the theorem has for the error of a tap's sum before it is rounded: a constant."""
    (rounding,) = (step for step in operator.steps if step.lemmas == ("HLSCNN requantise",))
    (before,) = rounding.of
    return float(operator.theorem.judgements[before - 1].error.evaluate({}))


def _taps(x: Reals, w: Reals, stride: tuple[int, int], shape: tuple[int, ...]) -> Iterator[Reals]:
    """The exact sums [N, F, rows * columns] of up to eight products that are rounded together.

    They are exact in float64, in any order: multiples of 2^-21 times the unit of x, of less than 40 bits.
    """
    *_, rows, columns = shape
    for first in range(0, w.shape[1], LANES):
        for i, j in np.ndindex(*w.shape[2:]):
            down, right = (
                slice(at, at + step * (count - 1) + 1, step)
                for at, step, count in zip((i, j), stride, (rows, columns), strict=True)
            )
            part = x[:, first : first + LANES, down, right]
            yield np.ascontiguousarray(w[:, first : first + LANES, i, j]) @ part.reshape(*part.shape[:2], -1)


def _roundings(taps: Iterator[Reals], within: float) -> tuple[Reals, Reals]:
    """The least and the most that roundings add to an element, in units, of sums that are ``within`` of the exact.

    All numbers are multiples of 2^-14 below 2^32, so that nothing here is rounded.
    """
    least = most = np.zeros(())
    for tap in taps:
        least = least + (np.floor(tap + (0.5 - within)) - tap)
        most = most + (np.floor(tap + (0.5 + within)) - tap) if within else least
    return least, most
