"""Derived bounds of FlexASR's error: a reference value and how far the accelerator may be from it.

A :class:`Bounded` holds, element by element, the exact value of an IR term on the quantised inputs and an error bound:
the accelerator's number lies within ``value - error .. value + error``.  Every operation adds its own rounding to what
the errors of its operands may do.  Where a number may leave its format and wrap, the error becomes infinite: there is
no statement about what depends on it.

The errors of the piecewise linear functions are lemmas of :mod:`rewrites.bounds`.  References are computed in float64,
whose rounding (:data:`~rewrites.bounds.a_priori.FLOAT_ERROR`) is part of the bounds where results are not exact.

All numbers are real: Q6.14 has the unit :data:`UNIT`, and wraps at 32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_models.flexasr.quantise import largest
from ila_lang import Function, compile_terms
from rewrites.bounds.a_priori import FLOAT_ERROR
from rewrites.bounds.kernel.constants import EXP_ERROR, INV_SQRT_ERROR, SIGMOID_ERROR, TANH_ERROR

__all__ = [
    "UNIT",
    "Bounded",
    "clip",
    "dense",
    "encoded",
    "exact",
    "exponential_error",
    "function_error",
    "inverse_root_error",
    "minus",
    "on_arrays",
    "plus",
    "sigmoid",
    "signed",
    "tanh",
    "times",
]

Reals = NDArray[np.float64]

UNIT = 2.0**-14
"""The last place of Q6.14."""
RANGE = 32.0
"""Where Q6.14 of 20 bits wraps."""
LARGEST_FIXED = (2**19 - 1) * UNIT
"""Where processing elements saturate."""
_TINY = 1 + 2.0**-5  # times 2^(bias - 10): up to here a number may become zero (here itself only a negative one)


@dataclass(frozen=True)
class Bounded:
    """Reference values, and bounds (>= 0, possibly infinite) of the accelerator's distance from them."""

    value: Reals
    error: Reals

    def unless(self, condition: NDArray[np.bool_]) -> Bounded:
        """The same, with no statement where the condition holds."""
        return Bounded(self.value, np.where(condition, np.inf, self.error))

    def within(self, limit: float) -> Bounded:
        """The same, with no statement where the magnitude may reach ``limit``."""
        return self.unless(~(np.abs(self.value) + self.error < limit))

    def part(self, index: slice) -> Bounded:
        """Elements along the last axis."""
        return Bounded(self.value[..., index], self.error[..., index])


def exact(value: ArrayLike) -> Bounded:
    """Values that the accelerator has exactly."""
    array = np.asarray(value, np.float64)
    return Bounded(array, np.zeros_like(array))


# -- Q6.14 ----------------------------------------------------------------------------------------------


def plus(a: Bounded, b: Bounded) -> Bounded:
    """The sum in Q6.14: exact but for wrapping."""
    return Bounded(a.value + b.value, a.error + b.error).within(RANGE)


def minus(a: Bounded, b: Bounded) -> Bounded:
    """The difference in Q6.14: exact but for wrapping."""
    return Bounded(a.value - b.value, a.error + b.error).within(RANGE)


def times(a: Bounded, b: Bounded) -> Bounded:
    """The product in Q6.14, rounded down, by less than a unit."""
    with np.errstate(invalid="ignore"):  # 0 * inf: no statement
        error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error + UNIT
    return Bounded(a.value * b.value, np.where(np.isnan(error), np.inf, error)).within(RANGE)


def clip(a: Bounded, limit: float) -> Bounded:
    """The number cut to -limit .. limit, against the reference that is not cut."""
    return Bounded(a.value, a.error + np.maximum(np.abs(a.value) - limit, 0.0))


def dense(weights: Reals, x: Bounded, bias: Reals | None, weight_bias: int, input_bias: int) -> Bounded:
    """weights x + bias of a processing element, for x [..., I], in Q6.14.

    Products of codes are exact.  Their sum has 28 - weight_bias - input_bias fraction bits in 32: it wraps, and only
    its final value matters; it is shifted down to 14 fraction bits, and what is too large is cut.
    """
    with np.errstate(invalid="ignore"):
        error = x.error @ np.abs(weights).T
    total = Bounded(x.value @ weights.T, np.where(np.isnan(error), np.inf, error))
    total = total.within(2.0 ** (3 + weight_bias + input_bias))
    rounded = Bounded(total.value, total.error + UNIT)
    biased = rounded if bias is None else Bounded(rounded.value + bias, rounded.error)
    return clip(biased, LARGEST_FIXED)


def sigmoid(a: Bounded) -> Bounded:
    """The piecewise linear sigmoid: the slope of the true one is at most 1/4."""
    value = (1 + np.tanh(a.value / 2)) / 2
    return Bounded(value, a.error / 4 + function_error("sigmoid"))


def tanh(a: Bounded) -> Bounded:
    """The piecewise linear hyperbolic tangent: the slope of the true one is at most 1."""
    return Bounded(np.tanh(a.value), a.error + function_error("tanh"))


def encoded(a: Bounded, bias: int) -> Bounded:
    """The number as an AdaptivFloat code.

    Rounding moves it by half a step of its binade at most; below 33/32 of the binade of the least exponent it may
    become zero; beyond the largest code it is cut.
    """
    top = largest(bias)
    magnitude = np.minimum(np.abs(a.value) + a.error, top)
    with np.errstate(divide="ignore"):
        _, power = np.frexp(magnitude)
    step = np.where(magnitude > 0, np.ldexp(1.0, power - 6), 0.0)
    tiny = np.ldexp(_TINY, bias - 10)
    flushed = np.where(np.abs(a.value) - a.error > tiny, 0.0, np.minimum(magnitude, tiny))
    cut = clip(a, top)
    return Bounded(a.value, cut.error + np.maximum(step, flushed))


# -- proved errors --------------------------------------------------------------------------------------


def on_arrays(function: Function, *arguments: NDArray[np.int64]) -> NDArray[np.int64]:
    """A primitive on arrays of signed arguments, as signed numbers."""
    (result,) = _compiled(function)(*(a & (1 << p.width) - 1 for a, p in zip(arguments, function.params, strict=True)))
    assert function.body is not None
    return signed(result, function.body.width)


def signed(words: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Words of so many bits as two's complement."""
    return np.where(words >> (width - 1) & 1, words - (1 << width), words)


@cache
def _compiled(function: Function) -> Callable[..., list[NDArray[np.int64]]]:
    assert function.body is not None
    return compile_terms(function.params, [function.body], vector=True)


_FUNCTION_ERRORS = {"sigmoid": SIGMOID_ERROR, "tanh": TANH_ERROR}


def function_error(name: str) -> float:
    """A bound of the error of FlexASR's ``sigmoid`` or ``tanh``, proved on all 2^20 arguments (rewrites.bounds)."""
    return float(_FUNCTION_ERRORS[name]) + FLOAT_ERROR


def inverse_root_error() -> float:
    """A bound of the relative error of ``inv_sqrt`` from 17 units (just above 2^-10) on, proved on every argument."""
    return float(INV_SQRT_ERROR) + FLOAT_ERROR


def exponential_error() -> float:
    """A bound of the error of FlexASR's ``exp`` for all arguments <= 0, proved (rewrites.bounds)."""
    return float(EXP_ERROR) + FLOAT_ERROR
