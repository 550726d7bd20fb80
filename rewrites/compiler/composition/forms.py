"""Errors that nothing is known of but bounds, as sums of linear maps of *atoms*.

An atom is a vector of which each element is bounded, and its Euclidean length.  The error of a value is a sum of
matrices times atoms, so that consecutive linear operators count as their product, and parts of an error that cancel do:

* what is linear is applied to the matrices;
* a function with slopes in [0, s] (relu: s = 1) makes of v the vector s v / 2 and a new atom within s |v| / 2, element
  by element (and so in length);
* an element of M a is at most the sum of magnitudes in its row times those of a's elements, and, by Cauchy and Schwarz,
  at most the row's length times that of a; the length of M a is at most the spectral norm of M times that of a.

Matrices are float64.  How far they may be from what they stand for is carried along, as a bound of the Frobenius norm
(``off``); a sum of n products is off by (n + 4) 2^-53 times the sum of their magnitudes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .balance import UNIT
from .differences import Reals
from .steps import NEGLIGIBLE

UPWARD = 1 + 2.0**-18
"""Above float64's roundings of a sum of up to 2^34 numbers >= 0."""
MOST_ELEMENTS = 1024
"""Elements of an atom: matrices have at most so many columns."""
TINY = 2.0**-900
"""Above what all that is below float64's normal numbers adds up to in a value of up to 2^60 elements."""
_SQUARINGS = 3
_SMALL_PART = 2.0**-6
"""What is left to a bound of the length that costs little, of all that is added up."""


@dataclass(frozen=True, eq=False)
class Atom:
    """A vector whose elements are at most ``elements`` in magnitude, and which is at most ``length`` long."""

    elements: Reals
    length: float

    @classmethod
    def of(cls, elements: Reals, length: float = math.inf) -> Atom:
        """The length is at most that of the bounds, too."""
        flat = elements.reshape(-1)
        return cls(flat, min(length_of(flat), length))


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix as the images of unit vectors [columns, *shape of the value], which are together at most ``off``."""

    images: Reals
    off: float = 0.0

    @property
    def flat(self) -> Reals:
        """The transposed matrix."""
        return self.images.reshape(len(self.images), -1)

    def moved(self, images: Reals, gain: float, terms: int) -> Matrix:
        """After an operator whose magnitudes have a spectral norm of at most ``gain``, of ``terms`` products each."""
        if not terms:
            return Matrix(images, gain * self.off * UPWARD)
        rounding = (terms + 4) * UNIT * length_of(self.images)
        return Matrix(images, gain * (self.off + rounding) * UPWARD + TINY)

    def plus(self, other: Matrix) -> Matrix:
        """The sum."""
        images = self.images + other.images
        return Matrix(images, (self.off + other.off + UNIT * length_of(images)) * UPWARD)


Form = Mapping[Atom, Matrix]
"""A sum of matrices times atoms."""


@dataclass(frozen=True, eq=False)
class Within:
    """Bounds of a vector: of each element, and of its length."""

    elements: Reals
    length: float


def identity(shape: tuple[int, ...]) -> Matrix | None:
    """Of a value itself; None if it is too large."""
    elements = math.prod(shape)
    return None if elements > MOST_ELEMENTS else Matrix(np.eye(elements).reshape(-1, *shape))


def fresh(elements: Reals, length: float = math.inf) -> Form | None:
    """The form of a vector of which bounds are known; None if it is too large."""
    if not elements.any():
        return {}
    matrix = identity(elements.shape)
    return None if matrix is None else {Atom.of(elements, length): matrix}


def added(first: Form, second: Form) -> Form:
    """The sum of two vectors."""
    joined = dict(first)
    for atom, matrix in second.items():
        joined[atom] = joined[atom].plus(matrix) if atom in joined else matrix
    return joined


def scaled(form: Form, factor: float) -> Form:
    """The vector times a power of two, or minus it."""
    return {atom: Matrix(m.images * factor, m.off * abs(factor) + TINY) for atom, m in form.items()}


def within(form: Form, shape: tuple[int, ...]) -> Within:
    """Bounds of a vector."""
    each = {atom: _part(atom, matrix) for atom, matrix in form.items()}
    total = sum(each.values(), np.zeros(math.prod(shape))) * UPWARD
    parts = sorted(((length_of(most), atom) for atom, most in each.items()), key=lambda part: -part[0])
    left, length = math.fsum(most for most, _ in parts), 0.0
    for most, atom in parts:
        left -= most
        if most + left > length * _SMALL_PART:
            most = min(most, (spectral_norm(form[atom].flat) + form[atom].off) * atom.length * UPWARD)
        length += most * UPWARD
    return Within(total.reshape(shape), min(length_of(total), length * UPWARD))


def _part(atom: Atom, matrix: Matrix) -> Reals:
    """Bounds of a matrix times an atom."""
    by_elements, by_length = atom.elements @ np.abs(matrix.flat), _rows(matrix.flat) * atom.length
    each: Reals = np.minimum(by_elements, by_length) + (matrix.off * atom.length + TINY)
    return each * UPWARD


@dataclass(frozen=True, eq=False)
class Divided:
    """A vector as a sum: of a form, and of small ones of which bounds are enough."""

    large: Form
    small: Within


def divided(form: Form, shape: tuple[int, ...]) -> Divided:
    """A vector without its small parts."""
    each = {atom: _part(atom, matrix) for atom, matrix in form.items()}
    lengths = {atom: length_of(most) for atom, most in each.items()}
    limit = max(lengths.values(), default=0.0) * NEGLIGIBLE
    small = {atom for atom, length in lengths.items() if length <= limit}
    total = sum((each[atom] for atom in form if atom in small), np.zeros(math.prod(shape))) * UPWARD
    large = {atom: matrix for atom, matrix in form.items() if atom not in small}
    return Divided(large, Within(total.reshape(shape), length_of(total)))


def length_of(vector: Reals) -> float:
    """At least the Euclidean length (of a matrix its Frobenius norm)."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    step = 2.0 ** (math.frexp(largest)[1] - 1)
    return float(np.sqrt(((vector / step) ** 2).sum())) * UPWARD * step + TINY


def _rows(flat: Reals) -> Reals:
    """At least the lengths of a matrix's rows, which are the columns of the transposed one."""
    step = 2.0 ** (math.frexp(float(np.abs(flat).max(initial=1e-300)))[1] - 1)
    return np.asarray((np.sqrt(((flat / step) ** 2).sum(axis=0)) * UPWARD + 2.0**-500) * step)


def spectral_norm(matrix: Reals) -> float:
    """At least the spectral norm: with G = M M^T or M^T M, ||M||_2 = ||G^p||_2^(1/2p) <= ||G^p||_F^(1/2p).

    p is a power of two.  ``off`` is how far the float64 powers may be from the true ones, in the Frobenius norm: if P
    is off by d, P P is off by at most 2 ||P||_F d + d^2 and the rounding, n 2^-53 ||P||_F^2.
    """
    largest = float(np.abs(matrix).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    scale = math.frexp(largest)[1]
    unit = np.ldexp(matrix, -scale)  # exact, but for numbers that are below 2^-1000 of the largest one
    if len(unit) > unit.shape[1]:
        unit = unit.T
    rows, terms = unit.shape
    power, size = unit @ unit.T, length_of(unit)
    off, exponent = ((terms + 4) * UNIT * size * size + TINY) * UPWARD, 0
    for _ in range(_SQUARINGS):
        step = math.frexp(float(np.abs(power).max()))[1]
        power, off, exponent = np.ldexp(power, -step), math.ldexp(off, -step), 2 * (exponent + step)
        size = length_of(power)
        off = (2 * size * off + off * off + (rows + 4) * UNIT * size * size + TINY) * UPWARD
        power = power @ power
    # the norm of G^p is at most (size + off) 2^exponent
    root = (length_of(power) + off) ** (0.5 / (1 << _SQUARINGS)) * 2.0 ** (exponent / (2 << _SQUARINGS))
    return math.ldexp(root * UPWARD, scale) + TINY
