"""Theorems on arrays: the bound of each element of a result, at the values that it was computed from.

A theorem speaks of any one result, of the numbers that it is made of, and of ranges that these keep to.  Here each
element of a tensor is such a result, and each step's range is the magnitude that the step's exact value has there:
every step of a derivation is evaluated by the kernel's law (:func:`~.kernel.replay.alone`), on arrays.  So there is no
second analysis of errors, and a bound here is at most the theorem's at ranges of all elements.

Exact values are computed in float64.  Where that rounds, magnitudes and bounds are larger by
:data:`FLOAT_ERROR`.  A bound is infinite where a condition of the theorem fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .derivations.calculus import Bound, Operator
from .kernel.formula import Formula, symbol, symbols_of
from .kernel.judgements import Condition, Step, amount
from .kernel.readings import READINGS, Term
from .kernel.replay import alone
from .values import FLOATS, INDEXED, Values

Reals: TypeAlias = NDArray[np.float64]

FLOAT_ERROR = 2.0**-34
"""Above any error of a float64 reference here: under 2^12 operations of relative error 2^-53 on numbers below 2^6.

It is part of the functions' errors.  Sums of products of codes need none: they are exact in float64.
"""


@dataclass(frozen=True)
class Bounded:
    """Exact values, and bounds (>= 0, possibly infinite) of the accelerator's distance from them."""

    value: Reals
    error: Reals


Given: TypeAlias = "tuple[str, Reals | Bounded]"
"""What a leaf stands for: the letters of its axes, and its numbers (with their errors, where it is not exact)."""


def bound_elements(operator: Operator, axes: str, leaves: Mapping[str, Given], biases: Mapping[str, int]) -> Bounded:
    """The exact results of an operator on the numbers that its leaves stand for, and the bounds of their errors.

    ``axes`` are those of the result.  An axis is one letter: an index of the theorem, or of what it is applied to for
    each element.  Raises KeyError where a leaf or bias is missing, and for a theorem over time.
    """
    instance, letters = _instance(operator, leaves, biases)
    with np.errstate(all="ignore"):  # what is undefined breaks a condition
        value, error = instance.values.of(operator.theorem.result.real), instance.result()
    return Bounded(*(_taken(array, axes, letters, instance.values.sizes) for array in (value, error)))


def exact_elements(operator: Operator, axes: str, leaves: Mapping[str, Given]) -> Reals:
    """The exact results alone; see :func:`bound_elements`."""
    instance, letters = _instance(operator, leaves, {})
    return _taken(instance.values.of(operator.theorem.result.real), axes, letters, instance.values.sizes)


def _taken(array: Reals, axes: str, letters: Sequence[str], sizes: Sequence[int]) -> Reals:
    """An array with an axis for every letter, with those of the result."""
    shape = [sizes[letters.index(letter)] if letter in axes else 1 for letter in letters]
    kept = [letter for letter in letters if letter in axes]
    spread = np.broadcast_to(array, shape).reshape([sizes[letters.index(letter)] for letter in kept])
    return np.transpose(spread, [kept.index(letter) for letter in axes])


def bound_whole(operator: Operator, leaves: Mapping[str, Given], biases: Mapping[str, int]) -> Bound:
    """The theorem's bound at the ranges of all elements, which is one number; see :func:`bound_elements`."""
    bound = operator.bound(ranges_of(operator, leaves, biases))
    rounded = bool(_operations(operator.theorem.result.real) & _ROUNDED)
    return replace(bound, value=bound.value + Fraction(FLOAT_ERROR)) if rounded and bound.value is not None else bound


def ranges_of(operator: Operator, leaves: Mapping[str, Given], biases: Mapping[str, int]) -> dict[str, float]:
    """The symbols of a theorem as arrays have them, but for ranges of what a leaf that is missing stands in."""
    instance, _ = _instance(operator, leaves, biases)
    if not instance.signed().all():
        raise ValueError(f"what {operator.name} shifts by or cuts at must have the signs that its theorem is about")
    with np.errstate(all="ignore"):
        ranges = instance.ranges()
    return {name: value for name, value in ranges.items() if name in operator.symbols}


def _instance(
    operator: Operator, leaves: Mapping[str, Given], biases: Mapping[str, int]
) -> tuple[_Elements, list[str]]:
    """A theorem on arrays, and the letters of their axes."""
    indices = operator.theorem.indices
    letters = [*dict.fromkeys("".join(axes for axes, _ in leaves.values()))]
    letters += [i for i in indices if i not in letters]

    def placed(axes: str, array: Reals) -> Reals:
        order = sorted(range(len(axes)), key=lambda k: letters.index(axes[k]))
        sizes = dict(zip(axes, array.shape, strict=True))
        return np.transpose(array, order).reshape([sizes.get(letter, 1) for letter in letters])

    values, errors = dict[str, Reals](), dict[str, Reals]()
    for leaf, (axes, numbers) in leaves.items():
        bounded = numbers if isinstance(numbers, Bounded) else Bounded(numbers, np.zeros(()))
        values[leaf] = placed(axes, bounded.value)
        errors[leaf] = placed(axes, np.broadcast_to(bounded.error, bounded.value.shape))
    for leaf, (form, _, _, magnitude) in operator.theorem.leaves.items():
        largest = float(np.abs(values.get(leaf, np.zeros(()))).max(initial=0.0))
        if not form and largest > amount(magnitude).value:
            raise ValueError(f"{leaf} of {operator.name} must be at most {magnitude} in magnitude, not {largest}")
    sizes = np.broadcast_shapes(*(v.shape for v in values.values()))
    real = Values(values, {i: letters.index(i) for i in indices}, sizes, FLOATS)
    return _Elements(operator, real, errors, biases), letters


def bound_ranges(operator: Operator, ranges: Mapping[str, Reals | float]) -> Reals:
    """The bound in closed form, at arrays of sizes, ranges and biases: all of its symbols."""
    values = {name: np.asarray(value, np.float64) for name, value in ranges.items()}
    with np.errstate(all="ignore"):
        return _stated(evaluate(operator.error, values), operator.conditions, values)


def _stated(error: Reals, conditions: Iterable[Condition], values: Mapping[str, Reals]) -> Reals:
    """The error, and infinite where a condition fails."""
    for c in conditions:
        error = np.where(evaluate(c.left, values) < evaluate(c.right, values), error, np.inf)
    return error


_ROUNDED = {"average", "sigmoid", "tanh", "exp", "1/sqrt", "/"}
"""Operations that float64 rounds; sums and products of codes it does not."""
_OVER_INDEX = {"repeated sum", "weighted sum", "average", "distance from the largest", "sum of exponentials"}
"""Laws on all values of an index, the first of their names, of which each is within the largest one's error."""
_LEAST = "least"


@dataclass
class _Elements:
    """A theorem at the elements of arrays that have an axis for every index."""

    operator: Operator
    values: Values
    errors: Mapping[str, Reals]
    biases: Mapping[str, int]
    step_errors: dict[int, Reals] = field(default_factory=dict)

    # -- exact values ------------------------------------------------------------------------------------------

    def count(self, index: str) -> int:
        """How many values an index has."""
        return self.values.sizes[self.values.axes[index]]

    def rounding(self, term: Term) -> float:
        """At least the error of a term's value in float64: sums and products of codes have none."""
        inexact = any(self.operator.theorem.leaves[n][2] != "0" for n in _leaves(term))
        return FLOAT_ERROR if inexact or _operations(term) & _ROUNDED else 0.0

    def magnitude(self, term: Term) -> Reals:
        """At least the magnitude of a term's exact value."""
        return np.abs(self.values.of(term)) + self.rounding(term)

    def least(self, term: Term) -> Reals:
        """At most a term's exact value."""
        return self.values.of(term) - self.rounding(term)

    def ranges(self) -> dict[str, float]:
        """What symbols are for all elements."""
        theorem = self.operator.theorem
        symbols: dict[str, float] = {**self.biases}
        symbols |= {count: self.count(index) for index, count in theorem.counts.items()}
        for leaf, (_, _, error, magnitude) in theorem.leaves.items():
            if leaf in self.values.leaves:
                for name, values in ((magnitude, self.values.leaves[leaf]), (error, self.errors[leaf])):
                    symbols[name] = max(symbols.get(name, 0.0), float(np.abs(values).max(initial=0.0)))
        for name, terms in theorem.ranges.items():
            if name != "0" and set().union(*map(_leaves, terms)) <= self.values.leaves.keys():
                lower = terms[0][0] == "at least"
                symbols[name] = (
                    float(self.least(terms[0][1]).min())
                    if lower
                    else max(float(self.magnitude(t).max(initial=0.0)) for t in terms)
                )
        return symbols

    def signed(self) -> NDArray[np.bool_]:
        """Where what is shifted by or cut at has the signs that the theorem is about."""
        holds = np.asarray(True)
        for sign in self.operator.theorem.ranges.get("0", ()):
            if _leaves(sign[1]) <= self.values.leaves.keys():
                value = self.values.of(sign[1])
                holds = holds & (value >= 0 if sign[0] == "at most" else value <= 0)
        return holds

    # -- errors ------------------------------------------------------------------------------------------------

    def result(self) -> Reals:
        """The errors of the last step, whose word must not have wrapped either."""
        theorem, last = self.operator.theorem, len(self.operator.steps)
        error = self.error(last)
        most = symbol("most")
        limits = [Condition(most, *limit) for limit in alone(theorem, self.operator.steps[-1])[0].limits]
        real = theorem.result.real
        stated = _stated(error, limits, {"most": self.magnitude(real) + error}) + self.rounding(real)
        return np.where(self.signed(), stated, np.inf)

    def error(self, number: int) -> Reals:
        """The errors of a step."""
        if number not in self.step_errors:
            error = self._error(self.operator.steps[number - 1])
            self.step_errors[number] = np.where(np.isnan(error), np.inf, error)
        return self.step_errors[number]

    def _error(self, step: Step) -> Reals:
        if step.law == "given":
            return self.errors[step.names[0]]
        error = self._by_law(step)
        if step.law == "lemma" and READINGS[step.lemmas[0]].kind == "code":
            error = np.minimum(error, self._by_law(replace(step, names=(*step.names, _LEAST))))
        return error

    def _by_law(self, step: Step) -> Reals:
        """The law's formula, where its conditions hold."""
        theorem, known = self.operator.theorem, dict[str, Reals]()
        for k in step.of:
            term = theorem.judgements[k - 1].real
            m, e = self.magnitude(term), self.error(k)
            if step.law in _OVER_INDEX:
                axis = self.values.axes[step.names[0]]
                m, e = (a.max(axis=axis, keepdims=True) for a in np.broadcast_arrays(m, e))
            known |= {f"m{k}": m, f"e{k}": e, _LEAST: np.abs(self.values.of(term)) - self.rounding(term)}
        judgement, conditions = alone(theorem, step)
        for name in symbols_of(judgement.error).union(*(symbols_of(c.left) | symbols_of(c.right) for c in conditions)):
            if name not in known:
                known[name] = self._symbol(name)
        if step.law == "weighted sum":  # each term by the law 'multiple', all of them by the law 'sum'
            index, row, *_ = step.names
            weights = np.abs(self.values.of(row))
            error = self.values.over("sum", self.values.axes[index], weights * self.error(step.of[0]))
        else:
            error = evaluate(judgement.error, known)
        return _stated(error, conditions, known)

    def _symbol(self, name: str) -> Reals:
        """A bias, a number of values, or a range."""
        theorem = self.operator.theorem
        if name in theorem.ranges:
            terms = theorem.ranges[name]
            if terms[0][0] == "at least":
                return self.least(terms[0][1])
            return reduce(np.maximum, map(self.magnitude, terms))
        for index, count in theorem.counts.items():
            if count == name:
                return np.asarray(float(self.count(index)))
        return np.asarray(float(self.biases[name]))


def _leaves(term: Term) -> set[str]:
    if isinstance(term, str):
        return set() if term[:1].isdigit() else {term}
    return set().union(*map(_leaves, term[2:] if term[0] in INDEXED else term[1:]))


def _operations(term: Term) -> set[str]:
    return set() if isinstance(term, str) else {str(term[0])}.union(*map(_operations, term[1:]))


def evaluate(f: Formula, values: Mapping[str, Reals]) -> Reals:
    """A formula in float64; NaN where a divisor or radicand is not positive, of which no condition holds."""
    if f.op == "constant":
        return np.asarray(float(f.value))
    if f.op == "symbol":
        return values[f.name]
    a = [evaluate(g, values) for g in f.args]
    match f.op:
        case "+":
            return reduce(np.add, a)
        case "*":
            return reduce(np.multiply, a)
        case "max":
            return reduce(np.maximum, a)
        case "min":
            return reduce(np.minimum, a)
        case "/":
            return np.where(a[1] > 0, a[0] / a[1], np.nan)
        case "half_step":  # 2^(floor(log2 m) - 5), where frexp has the exponent of 2 m
            return np.where(a[0] > 0, np.ldexp(1.0, np.frexp(a[0])[1] - 6), 0.0)
        case "2^":
            return np.ldexp(1.0, a[0].astype(np.int64))
    return np.where(a[0] > 0, (1 + 2.0**-40) / np.sqrt(a[0]), np.nan)
