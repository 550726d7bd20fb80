"""Counterexamples to rewrite rules between tensor terms: small sizes and data, found, made smaller and replayed.

The search evaluates both sides on exact numbers (:mod:`ir_semantics.tensors.evaluate`).  A rule is refuted by sizes for
which the right side is not well formed or has another shape, or by data for which an element differs.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.evaluate import IllFormed, evaluate, shape_at
from ir_semantics.tensors.numbers import Binary32, DivisionByZero, NoValue, Reals, Undefined, apart, text_of
from smt_encodings.claims import Equality

from .rule import TensorRule
from .sizes import sizes_drawn, sizes_within

Arrays = dict[str, NDArray[np.object_]]
_BESIDE = {
    Equality.BIT_EXACT: ", infinities, NaN or -0.0",
    Equality.UP_TO_REDUCTION_ORDER: " or infinities",
    Equality.WITHIN: " or infinities",
    Equality.OVER_REALS: "",
}
LARGEST_SIZES = (5, 9)
SMALLEST, OTHERS = 100, 300
"""The numbers of smallest and of other sizes that are tried."""
MOST_ELEMENTS = 400
"""Sizes for which an input has more elements than this are left out."""


@dataclass(frozen=True)
class Counterexample:
    """Sizes and data, and where the sides differ: at ``position``, or in shape or well-formedness."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, NDArray[np.object_]]
    difference: str
    position: tuple[int, ...] | None = None
    left: str = ""
    right: str = ""

    def __str__(self) -> str:
        sizes = ", ".join(f"{n} = {v}" for n, v in sorted(self.sizes.items()))
        shown = self.inputs if self.position is not None else {}
        data = "; ".join(f"{n} = {_text(a)}" for n, a in sorted(shown.items()))
        return f"{self.difference} where {sizes or 'there are no sizes'}{'; ' + data if data else ''}"


def _text(array: NDArray[np.object_]) -> str:
    if array.ndim == 0:
        return str(array.item())
    return "[" + ", ".join(_text(np.asarray(a, dtype=object)) for a in array) + "]"


def replay(rule: TensorRule, sizes: Mapping[str, int], inputs: Mapping[str, NDArray[Any]]) -> Counterexample | None:
    """The counterexample that these sizes and data are, if they are one.

    Sizes outside the rule's premise, data outside its assumptions and data on which the left side has no value are
    none, nor are data on which the right side's value is not known.  Both sides are evaluated exactly; data of a
    bit-exact rule that have a NaN or -0.0 are numbers of binary32, and so is all that follows from them.  Raises
    ValueError on what are no inputs of the rule at these sizes: arrays of fractions (and infinities, NaN and -0.0, as
    far as the rule is about them), and of truth values for masks.
    """
    if not admitted(rule, sizes):
        return None
    arrays = {name: np.asarray(a, dtype=object) for name, a in inputs.items()}
    _require_inputs(rule, sizes, arrays)
    if any(not value > 0 for name in rule.positive for value in arrays[name].ravel()):
        return None
    floats = any(isinstance(value, float) and not _exact(value) for a in arrays.values() for value in a.ravel())
    try:
        data = {name: _binary32(array) for name, array in arrays.items()} if floats else arrays
        numbers = Binary32() if floats else Reals()
        left = evaluate(rule.left, sizes, data, numbers)
    except Undefined:
        return None
    try:
        right = evaluate(rule.right, sizes, data, numbers)
    except DivisionByZero:
        return Counterexample(sizes, arrays, "the left side has a value, the right side divides by zero", ())
    except NoValue as error:
        return Counterexample(
            sizes, arrays, f"the left side has a value, the right side has {error}, which has none", ()
        )
    except Undefined:
        return None
    except IllFormed as error:
        return Counterexample(sizes, arrays, f"the right side is not well formed ({error})")
    if left.shape != right.shape:
        return Counterexample(sizes, arrays, f"the left side has the shape {left.shape}, the right side {right.shape}")
    for at in itertools.product(*map(range, left.shape)):
        a, b = left[at], right[at]
        if Binary32.apart(a, b) if floats else apart(a, b):
            left_text, right_text = text_of(a, b)
            difference = f"at {list(at)} the left side is {left_text}, the right side {right_text},"
            return Counterexample(sizes, arrays, difference, at, left_text, right_text)
    return None


def _exact(value: float) -> bool:
    """Whether an exact evaluation has this float."""
    return value in (inf, -inf)


def _binary32(array: NDArray[np.object_]) -> NDArray[np.object_]:
    numbers = Binary32()
    rounded = np.empty(array.shape, dtype=object)
    for at in itertools.product(*map(range, array.shape)):
        value = array[at]
        rounded[at] = value if isinstance(value, bool) else numbers.literal(value)
    return rounded


def admitted(rule: TensorRule, sizes: Mapping[str, int]) -> bool:
    """Whether the premise holds at sizes; not where it divides by zero."""
    try:
        return holds(rule.premise, sizes)
    except ZeroDivisionError:
        return False


def _require_inputs(rule: TensorRule, sizes: Mapping[str, int], arrays: Arrays) -> None:
    """Raises ValueError unless these are the rule's inputs at these sizes; over the reals, they are finite."""
    shapes, masks = shapes_at(rule, sizes), dict(rule.masks)
    bits, infinite = rule.equality is Equality.BIT_EXACT, rule.equality is not Equality.OVER_REALS

    def admitted(value: float) -> bool:
        return (infinite and value in (inf, -inf)) or (bits and (value == 0 or isnan(value)))

    if set(arrays) != set(shapes):
        raise ValueError(f"inputs of {rule.name} must be {', '.join(sorted(shapes))}")
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"the input {name} of {rule.name} must have the shape {shape}, not {arrays[name].shape}")
        kind, word = (bool, "truth values") if name in masks else (Fraction, f"fractions{_BESIDE[rule.equality]}")
        for value in arrays[name].ravel():
            if type(value) is not kind and not (kind is Fraction and isinstance(value, float) and admitted(value)):
                raise ValueError(f"the input {name} of {rule.name} must be of {word}, not {value}")


def find_counterexample(rule: TensorRule, seconds: float = 4.0, seed: int = 0) -> Counterexample | None:
    """Small sizes and data for which the sides differ, made smaller and replayed; None where none was found in time."""
    end = time.perf_counter() + seconds
    for sizes, inputs in _examples(rule, random.Random(seed)):
        if replay(rule, sizes, inputs) is not None:
            until = time.perf_counter() + max(0.5, seconds / 4)
            sizes, inputs = _smaller(rule, sizes, inputs, until, random.Random(seed))
            counterexample = replay(rule, sizes, _shrunk(rule, sizes, inputs, until))
            assert counterexample is not None
            return counterexample
        if time.perf_counter() > end:
            break
    return None


def _examples(rule: TensorRule, draw: random.Random) -> Iterator[tuple[dict[str, int], Arrays]]:
    """Sizes with data: all small sizes with one kind of data, then again with others, larger numbers later."""
    points = []
    smallest = next(filter(None, (sizes_within(rule.sizes, rule.premise, SMALLEST, n) for n in LARGEST_SIZES)), [])
    others = [p for n in (3, 4, 9) for p in sizes_drawn(rule.sizes, rule.premise, OTHERS // 2, n, draw)]
    draw.shuffle(others)
    for point in smallest + others:
        shapes = shapes_at(rule, point)
        if all(int(np.prod(s, dtype=int)) <= MOST_ELEMENTS for s in shapes.values()):
            points.append((point, shapes))
    for kind in range(6):
        spread = (1, 3, 3, 9, 9, 30)[kind]
        for point, shapes in points:
            arrays = {name: _array(rule, name, s, spread, kind, draw) for name, s in shapes.items()}
            yield point, arrays


def _smaller(
    rule: TensorRule, sizes: dict[str, int], inputs: Arrays, end: float, draw: random.Random
) -> tuple[dict[str, int], Arrays]:
    """Smaller sizes, one by one, for which some data differ too."""
    changed = True
    while changed:
        changed = False
        for name in sizes:
            point = {**sizes, name: sizes[name] - 1}
            for kind in range(4):
                if point[name] < 0 or time.perf_counter() > end or not admitted(rule, point):
                    break
                shapes = shapes_at(rule, point)
                arrays = {n: _array(rule, n, s, (1, 2, 3, 9)[kind], kind, draw) for n, s in shapes.items()}
                if replay(rule, point, arrays) is not None:
                    sizes, inputs, changed = point, arrays, True
                    break
    return sizes, inputs


def shapes_at(rule: TensorRule, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs and masks by name."""
    shapes = {name: shape_at(tensor, sizes) for name, tensor in rule.inputs.items()}
    return shapes | {name: tuple(d.value(sizes) for d in s) for name, s in rule.masks}


def _array(
    rule: TensorRule, name: str, shape: tuple[int, ...], spread: int, kind: int, draw: random.Random
) -> NDArray[np.object_]:
    array = np.empty(shape, dtype=object)
    masks = {mask for mask, _ in rule.masks}
    for at in itertools.product(*map(range, shape)):
        if name in masks:
            array[at] = draw.random() < 0.5
        elif name in rule.positive:
            array[at] = Fraction(draw.randint(1, spread + 1), draw.choice((1, 1, 2)))
        else:
            array[at] = Fraction(draw.randint(-spread, spread), 2 if kind == 4 else 1)
    return array


def _shrunk(rule: TensorRule, sizes: Mapping[str, int], inputs: Arrays, end: float) -> Arrays:
    """Data of the same sizes that still differ, with more zeros and smaller numbers."""
    current = {name: array.copy() for name, array in inputs.items()}
    changed = True
    while changed:
        changed = False
        for array in current.values():
            for at in itertools.product(*map(range, array.shape)):
                if time.perf_counter() > end:
                    return current
                old = array[at]
                for simpler in _simpler(old):
                    array[at] = simpler
                    if replay(rule, sizes, current) is not None:
                        changed = True
                        break
                    array[at] = old
    return current


def _simpler(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [False] if value else []
    candidates = [Fraction(0), Fraction(1), Fraction(-1), Fraction(int(value / 2))]
    return [c for c in candidates if (abs(c), c < 0) < (abs(value), value < 0)]
