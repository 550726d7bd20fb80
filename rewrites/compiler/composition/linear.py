"""Linear operators of the graph IR on matrices: on the images of all unit vectors at once (:mod:`.forms`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.ir import integers_of
from ir_semantics.graph.types import Array

from .differences import Reals, Sides
from .forms import UPWARD, Form, added, length_of


@dataclass(frozen=True, eq=False)
class Linear:
    """An operator, and the types of its operands.  None is said where a form is None."""

    node: Node
    types: Sequence[TensorType]

    def moved(self, forms: Sequence[Form | None], indices: Sequence[Array | None]) -> Form | None:
        """Elements go where the operator puts their positions; position 0 is of none, which is not off."""
        positions, ends = list[Array](), [1]
        for at, of in zip(indices, self.types, strict=True):
            ends.append(ends[-1] + (of.elements if at is None else 0))
            places = np.arange(*ends[-2:], dtype=np.float64)
            positions.append(places.reshape(of.shape) if at is None else at)
        of_result = Sides(self.node, self.types, (), ()).run(positions).astype(np.int64)
        total: Form = {}
        for form, first, end in zip(forms, ends[:-1], ends[1:], strict=True):
            if form is None:
                return None
            sources = np.where((of_result >= first) & (of_result < end), of_result - first, end - first)
            gain = math.sqrt(np.bincount(sources.reshape(-1))[: end - first].max(initial=0)) * UPWARD
            total = added(total, _each(form, partial(_taken, sources), gain, 0))
        return total

    def along_axes(self, form: Form | None, terms: int) -> Form | None:
        """Sums and means along axes, of so many terms."""
        if form is None or not terms:
            return None
        axes = tuple(axis + 1 for axis in integers_of(dict(self.node.attributes), "axes"))
        parts = terms if self.node.operator == "mean" else 1
        return _each(form, lambda images: images.sum(axis=axes) / parts, math.sqrt(terms), terms)

    def product(self, place: int, factor: Reals, form: Form | None) -> Form | None:
        """Products, also of matrices and convolutions, with a factor that is the operand at a place."""
        if form is None:
            return None
        magnitude = np.abs(factor)
        if self.node.operator == "mul":
            if self.types[1 - place].shape != self.node.type.shape:
                return None
            return _each(form, lambda images: images * factor, float(magnitude.max(initial=0.0)), 1)
        if self.node.operator == "matmul":
            terms = self.types[0].shape[-1]
            if factor.ndim > self.types[1 - place].rank:
                return None
            product = (lambda images: images @ factor) if place else (lambda images: factor @ images)
            return _each(form, product, length_of(factor), terms)
        if place == 0 or self.types[0].shape[0] != 1:
            return None
        gain = math.sqrt(_most(magnitude, 0) * _most(magnitude, 1)) * UPWARD
        return _each(form, lambda images: self._convolved(images, factor), gain, math.prod(factor.shape[1:]))

    def _convolved(self, images: Reals, filters: Reals) -> Reals:
        """All images as a batch."""
        kind = TensorType("float64", (len(images), *self.node.type.shape[1:]))
        sides = Sides(replace(self.node, type=kind), self.types, (), ())
        return np.asarray(sides.run([images[:, 0], filters]), np.float64)[:, None]


def _each(form: Form, operator: Callable[[Reals], Reals], gain: float, terms: int) -> Form:
    return {atom: matrix.moved(operator(matrix.images), gain, terms) for atom, matrix in form.items()}


def _taken(sources: NDArray[np.int64], images: Reals) -> Reals:
    """Images of elements at positions, and 0 at the position behind the last one."""
    flat = np.zeros((len(images), math.prod(images.shape[1:]) + 1))
    flat[:, :-1] = images.reshape(len(images), -1)
    return np.take(flat, sources, axis=1)


def _most(filters: Reals, axis: int) -> float:
    """The largest sum of a filter, or of what is multiplied with a channel."""
    others = tuple(k for k in range(filters.ndim) if k != axis)
    return float(filters.sum(axis=others).max(initial=0.0)) * UPWARD
