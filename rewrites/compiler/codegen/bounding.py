"""From proved bounds on quantised operands to bounds on the operands as given.

A theorem of :mod:`rewrites.bounds` bounds the distance of the accelerator's result from the exact operator *on the
quantised operands*.  Rounding the operands moves the exact operator's result, too: by at most the *change* that the
functions here compute, from how far the quantised operands of a run are from the given ones.  By the triangle
inequality the sum of both bounds the distance from the exact operator on the operands as given.

With x' = x + dx and so on, for every output: |w' x' + b' - (w x + b)| <= sum |w'| |dx| + sum |dw| |x| + |db|.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rewrites.bounds.derivations.calculus import Bound

from .formats import greatest, rounded_up, unscale
from .interface import Bounds, Executed, Reals


def upward(value: Fraction) -> float:
    """The least float64 that is not below the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def condition_text(bound: Bound) -> str:
    """Why a theorem says nothing at the ranges of a run; empty where it does."""
    return "; ".join(dict.fromkeys(f"at these ranges it is not excluded that {c.reason}" for c in bound.unmet))


def bounds_of(bound: Bound, change: float, scale: int = 0, elements: Reals | None = None) -> Bounds:
    """The bounds of a run from the theorem's, which is about the result times 2^-scale, and the operands' change.

    An infinite change says that nothing is known of it.  ``elements`` is what the theorem says of each element.
    """
    if bound.value is None:
        return Bounds(None, None, condition_text(bound))
    own = upward(bound.value * Fraction(2) ** scale)
    each = None if elements is None else np.minimum(unscale(elements, scale), own)
    if math.isinf(change):
        return Bounds(own, None, "nothing is known of what rounding the operands may change", bound.theorem, each)
    return Bounds(own, rounded_up(own + change), theorem=bound.theorem, elements=each)


def operand_error(executed: Executed, name: str) -> float:
    """The largest distance of an element of an operand from its quantised value."""
    return rounded_up(greatest(executed.quantised[name] - executed.given[name]))


def row_sum(values: Reals) -> float:
    """The largest sum of magnitudes over all axes but the first."""
    return rounded_up(float(np.abs(values).reshape(len(values), -1).sum(axis=1).max(initial=0.0)))


def linear_change(executed: Executed) -> float:
    """What rounding x, w (a row for each output) and, where there is one, b may change in an output of w x + b."""
    w, quantised_w = executed.given["w"], executed.quantised["w"]
    change = row_sum(quantised_w) * operand_error(executed, "x")
    change += row_sum(quantised_w - w) * greatest(executed.given["x"])
    if "b" in executed.given:
        change += operand_error(executed, "b")
    return rounded_up(change)
