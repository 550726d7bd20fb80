"""The values of real terms on arrays: of float64 numbers, or of intervals of exact fractions.

An array has an axis for every index, and may have more; where nothing depends on an index, its axis has length 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_semantics.scalars.intervals import Interval, exp, maximum, point, root

from .kernel.readings import Term

Array: TypeAlias = NDArray[Any]
INDEXED = ("sum", "average", "max over", "from the largest", "zeros of")
"""Operations on all values of an index."""


@dataclass
class Values:
    """The values of terms, from those of leaves; ``axes`` are those of indices, and ``sizes`` how long axes are."""

    leaves: Mapping[str, Array]
    axes: Mapping[str, int]
    sizes: tuple[int, ...]
    functions: Mapping[str, Any]
    known: dict[Term, Array] = field(default_factory=dict)

    def of(self, term: Term) -> Array:
        """The value of a term; raises KeyError for one over time."""
        if term not in self.known:
            self.known[term] = self._of(term)
        return self.known[term]

    def _of(self, term: Term) -> Array:
        if isinstance(term, str):
            return self.constant(Fraction(term)) if term[:1].isdigit() else self.leaves[term]
        match term:
            case ("sum", str() as index, ("*", first, second)) if self.functions is FLOATS:
                return self._product(self.axes[index], self.of(first), self.of(second))
            case (str() as operation, str() as index, body) if operation in INDEXED:
                return self.over(operation, self.axes[index], self.of(body))
        result: Array = self.functions[str(term[0])](*map(self.of, term[1:]))
        return result

    def constant(self, value: Fraction) -> Array:
        """A number as an array."""
        return np.full((1,) * len(self.sizes), self.functions["constant"](value))

    def over(self, operation: str, axis: int, body: Array) -> Array:
        """An operation on all values of an index."""
        each, reduced = self.spread(axis, body), {"axis": axis, "keepdims": True}
        if operation in ("max over", "from the largest"):
            largest: Array = self.functions["max"].reduce(each, **reduced)
            return largest if operation == "max over" else self.functions["-"](body, largest)
        terms = self.functions["zero"](each) if operation == "zeros of" else each
        total: Array = self.functions["+"].reduce(terms, **reduced)
        if operation == "average":
            total = self.functions["/"](total, self.constant(Fraction(16 * self.sizes[axis])))
        return total

    def spread(self, axis: int, body: Array) -> Array:
        """The array with all values along an axis."""
        return np.broadcast_to(body, [self.sizes[axis] if k == axis else n for k, n in enumerate(body.shape)])

    def _product(self, axis: int, a: Array, b: Array) -> Array:
        """The sum of products over an axis."""
        if a.shape[axis] == 1:  # a factor that all terms have
            return a * self.over("sum", axis, b)
        if b.shape[axis] == 1:
            return b * self.over("sum", axis, a)
        shape = [1 if k == axis else n for k, n in enumerate(np.broadcast_shapes(a.shape, b.shape))]
        places = ["".join(chr(97 + k) for k, n in enumerate(each) if n > 1) for each in (a.shape, b.shape, shape)]
        total: Array = np.einsum(f"{places[0]},{places[1]}->{places[2]}", np.squeeze(a), np.squeeze(b), optimize=True)
        return total.reshape(shape)


FLOATS: Mapping[str, Any] = {
    "constant": float,
    "zero": lambda a: (a == 0).astype(np.float64),
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "shift": lambda a, by: np.floor(np.ldexp(a, -by.astype(np.int64))),
    "relu": lambda a: np.maximum(a, 0.0),
    "magnitude": np.abs,
    "complement": lambda a: 1.0 - a,
    "exp": np.exp,
    "sigmoid": lambda a: (1 + np.tanh(a / 2)) / 2,
    "tanh": np.tanh,
    "1/sqrt": lambda a: 1 / np.sqrt(a),
}
"""Operations on float64 numbers, some of which round."""

_ONE = point(1)


def _tanh(a: Interval) -> Interval:
    power = exp(-(a + a))
    return (_ONE - power) / (_ONE + power)


INTERVALS: Mapping[str, Any] = {
    "constant": point,
    "zero": np.frompyfunc(lambda a: point(a == point(0)), 1, 1),
    "+": np.frompyfunc(Interval.__add__, 2, 1),
    "-": np.frompyfunc(Interval.__sub__, 2, 1),
    "*": np.frompyfunc(Interval.__mul__, 2, 1),
    "/": np.frompyfunc(Interval.__truediv__, 2, 1),
    "max": np.frompyfunc(maximum, 2, 1),
    "min": np.frompyfunc(lambda a, b: -maximum(-a, -b), 2, 1),
    "shift": np.frompyfunc(lambda a, by: point(a.low // 2 ** int(by.low)), 2, 1),
    "relu": np.frompyfunc(lambda a: maximum(a, point(0)), 1, 1),
    "magnitude": np.frompyfunc(abs, 1, 1),
    "complement": np.frompyfunc(lambda a: _ONE - a, 1, 1),
    "exp": np.frompyfunc(exp, 1, 1),
    "sigmoid": np.frompyfunc(lambda a: _ONE / (_ONE + exp(-a)), 1, 1),
    "tanh": np.frompyfunc(_tanh, 1, 1),
    "1/sqrt": np.frompyfunc(lambda a: _ONE / root(a), 1, 1),
}
"""Operations on intervals; they raise ZeroDivisionError and OverflowError as intervals do."""
