"""Shrinking a violating example itself: smaller arrays, fewer elements that matter, and simpler ones.

Hypothesis shrinks what it has drawn, sizes and seed.  The arrays are a function of these, so that smaller sizes have
other data, and it cannot shrink single elements.  Four steps follow, repeated until none changes anything or the runs
are used up:

1. *Sizes*: one size becomes smaller, the least first, and every array keeps its leading part, or its trailing part.
2. *Zeros*: blocks of elements become 0, the whole array first, then halves, quarters, down to single elements.
3. *Equal magnitudes*: blocks of non-zero elements become 1 or -1 by their sign.
4. *Rounding*: real numbers are rounded to few significant bits (1, 2, 4, 8), blocks first; integers move toward zero by
   bisection, element by element.

Every change is kept if the example still violates the same property, and undone otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .definition import Arrays, Campaign, Example, Skip, Violation

RUNS = 400
"""Examples that shrinking may run."""
SIGNIFICANT_BITS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Shrunk:
    """A shrunk example with its violation; ``runs`` examples were run, ``steps`` changes kept, by step."""

    example: Example
    violation: Violation
    runs: int
    steps: dict[str, int]
    interrupted: bool = False


class _UsedUp(Exception):
    pass


@dataclass
class _State:
    campaign: Campaign
    example: Example
    violation: Violation
    left: int
    kept: dict[str, int]

    def change(self, step: str, name: str, array: NDArray[Any]) -> bool:
        """Replaces an array where the example still violates the same property."""
        if np.array_equal(array, self.example.arrays[name]):
            return False
        return self.accept(step, replace(self.example, seed=None, arrays={**self.example.arrays, name: array}))

    def accept(self, step: str, trial: Example) -> bool:
        """Replaces the example by another one where that still violates the same property."""
        if self.left == 0:
            raise _UsedUp
        self.left -= 1
        try:
            violation = self.campaign.evaluate(trial).violation
        except (Skip, ValueError):  # data that one of the sides refuses are no violation
            return False
        if violation is None or violation.name != self.violation.name:
            return False
        self.example, self.violation = trial, violation
        self.kept[step] = self.kept.get(step, 0) + 1
        return True


def shrink_arrays(campaign: Campaign, example: Example, violation: Violation, runs: int = RUNS) -> Shrunk:
    """A simpler example of the same distribution.  An interrupt ends the search with the simplest so far."""
    state = _State(campaign, example, violation, runs, {})
    interrupted = False
    try:
        changed = True
        while changed:
            changed = _sizes(state)
            for name in example.arrays:
                changed |= _blockwise(state, "zeros", name, np.zeros_like)
                changed |= _blockwise(state, "equal magnitudes", name, np.sign)
                changed |= _round(state, name)
    except _UsedUp:
        pass
    except KeyboardInterrupt:
        interrupted = True
    return Shrunk(state.example, state.violation, runs - state.left, state.kept, interrupted)


def _sizes(state: _State) -> bool:
    """Makes each size in turn as small as possible, trying its values from the least."""
    changed = False
    for name, values in state.campaign.parameters.items():
        for value in values[: values.index(state.example.parameters[name])]:
            parameters = {**state.example.parameters, name: value}
            like = state.campaign.example(parameters, state.example.distribution, 0).arrays
            trials = (
                replace(state.example, parameters=parameters, seed=None, arrays=arrays)
                for arrays in _parts(state.example.arrays, like)
            )
            if any(state.accept("sizes", trial) for trial in trials):
                changed = True
                break
    return changed


def _parts(arrays: Arrays, like: Arrays) -> Iterator[Arrays]:
    """The leading and the trailing parts of arrays that have the shapes of others; none where one is larger."""
    if any(w > h for name in like for w, h in zip(like[name].shape, arrays[name].shape, strict=True)):
        return
    yield {name: arrays[name][tuple(map(slice, smaller.shape))] for name, smaller in like.items()}
    yield {name: arrays[name][tuple(slice(-n, None) for n in smaller.shape)] for name, smaller in like.items()}


def _round(state: _State, name: str) -> bool:
    if state.example.arrays[name].dtype.kind in "iu":
        return _toward_zero(state, name)
    changed = False
    for bits in SIGNIFICANT_BITS:
        changed |= _blockwise(state, "rounding", name, partial(round_significant, bits=bits))
    return changed


def round_significant(x: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Numbers rounded to ``bits`` significant bits.

    >>> round_significant(np.array([0.7, -5.0, 0.0]), 2).tolist()
    [0.75, -4.0, 0.0]
    """
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits))


def _blockwise(state: _State, step: str, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> bool:
    """Applies a change to blocks of the elements that it changes: all, then halves of what is left, and so on."""
    changed = False
    array = state.example.arrays[name]
    todo = [np.flatnonzero(change(array) != array)]
    while todo:
        places = todo.pop(0)
        if not len(places):
            continue
        array = state.example.arrays[name].copy()
        flat = array.reshape(-1)
        flat[places] = change(flat[places])
        if state.change(step, name, array):
            changed = True
        elif len(places) > 1:
            todo += np.array_split(places, 2)
    return changed


def _toward_zero(state: _State, name: str) -> bool:
    """Moves each integer to the smallest magnitude that bisection finds."""
    changed = False
    for place in np.flatnonzero(state.example.arrays[name]).tolist():
        for value in _bisection(state, name, place):
            array = state.example.arrays[name].copy()
            array.reshape(-1)[place] = value
            changed |= state.change("rounding", name, array)
    return changed


def _bisection(state: _State, name: str, place: int) -> Iterator[int]:
    """Candidates between zero and the element, which moves when one of them is kept."""
    low = 0
    while True:
        value = int(state.example.arrays[name].reshape(-1)[place])
        magnitude = abs(value)
        if magnitude - low <= 1:
            return
        middle = (low + magnitude) // 2
        yield middle if value > 0 else -middle
        if abs(int(state.example.arrays[name].reshape(-1)[place])) == magnitude:
            low = middle
