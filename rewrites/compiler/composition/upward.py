"""Numbers above what float64 rounds: sums, Euclidean lengths and spectral norms.

A sum of n products is off by at most (n + 4) 2^-53 times the sum of their magnitudes, in any order (Higham, Accuracy
and Stability of Numerical Algorithms, section 3.1; 4 for what is computed with it), and by what is below the normal
numbers.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

UNIT = 2.0**-53
LOST = 2.0**-1070
"""Above what float64 loses in a product below its normal numbers."""


_Number = TypeVar("_Number", float, Reals)


def up(value: _Number, terms: int) -> _Number:
    """Above a sum of so many products of numbers >= 0, which float64 rounded."""
    return value * (1 + (terms + 8) * 2.0**-52) + terms * LOST


def length_of(vector: Reals) -> float:
    """At least the Euclidean length."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    step = 2.0 ** (math.frexp(largest)[1] - 1)
    return up(math.sqrt(float(((vector / step) ** 2).sum())), vector.size + 4) * step


def row_lengths(matrix: Reals) -> Reals:
    """At least the lengths of rows."""
    largest = float(np.abs(matrix).max(initial=0.0))
    if not 0 < largest < math.inf:
        return np.full(len(matrix), largest)
    step = 2.0 ** (math.frexp(largest)[1] - 1)
    lengths: Reals = np.sqrt(((matrix / step) ** 2).sum(axis=1))
    return up(lengths, matrix.shape[1] + 4) * step


def spectral_norm(matrix: Reals) -> float:
    """At least the spectral norm of M: with t - M M^T = L L^T + R it is at most the root of t + |R|, for any t and L.

    |R| is a Frobenius norm, and so are the bounds of what float64 rounds in both products.
    """
    largest = float(np.abs(matrix).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    scale = math.frexp(largest)[1]
    unit = np.ldexp(matrix if len(matrix) <= matrix.shape[1] else matrix.T, -scale)
    rows, size, whole = len(unit), unit.shape[1], length_of(unit)
    gram = unit @ unit.T
    try:
        top = float(np.linalg.eigvalsh(gram)[-1]) + 2.0**-30 * whole * whole
        root = np.linalg.cholesky(top * np.eye(rows) - gram)
    except np.linalg.LinAlgError:
        return float(np.ldexp(whole, scale))
    left = length_of(top * np.eye(rows) - gram - root @ root.T)
    roundings = (size + 8) * whole * whole + (rows + 8) * length_of(root) ** 2 + 8 * rows * top
    return float(np.ldexp(up(math.sqrt(top + left + roundings * UNIT * 2), 8), scale))
