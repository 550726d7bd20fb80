"""What a campaign is: shapes and data to draw, an operator to run twice, and a property to check.

A campaign compares an operator of the tensor IR, in float64, with the accelerator's program for it: quantise, assemble,
simulate, dequantise.  Both sides get the same :class:`Example`; the results are an :class:`Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.extensions import built
from reports.html.inputs import range_text

Arrays = Mapping[str, NDArray[Any]]
"""Tensors by name: float64 for real data, int64 for integers."""


class Skip(Exception):
    """An example about which the campaign makes no statement; the message says why."""


@dataclass(frozen=True)
class Violation:
    """A violated property: its name (one of the campaign's few) and the observation."""

    name: str
    text: str


@dataclass(frozen=True, eq=False)
class Example:
    """One input: sizes, the name of the data's distribution, the seed that its arrays were drawn from, the arrays.

    ``seed`` is None where the arrays were changed after they were drawn.
    """

    parameters: Mapping[str, int]
    distribution: str
    seed: int | None
    arrays: Arrays = field(repr=False)


@dataclass(frozen=True)
class Margin:
    """How near the measured errors came to their bounds.

    ``largest`` is the largest error of an element that the property covers (against the IR on the quantised inputs).
    ``used`` is the largest part of its derived bound that an element's error takes up, 0 .. 1 (None where there is no
    positive bound).  ``a_priori`` is the bound from sizes, ranges and biases alone (None where its conditions fail),
    and ``a_priori_used`` the part of it that the largest error takes up (None where there is none, or it is 0).
    """

    largest: float
    used: float | None
    a_priori: float | None
    a_priori_used: float | None

    def as_json(self) -> dict[str, float | None]:
        """The margin as JSON."""
        return dict(zip(_MARGIN, astuple(self), strict=True))

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Margin:
        """The margin in what :meth:`as_json` gave; raises KeyError on anything else."""
        return Margin(*(content[name] for name in _MARGIN))


_MARGIN = ("largest_error", "bound_used", "a_priori_bound", "a_priori_used")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What both sides computed.

    ``reference`` is the IR operator on the example's arrays, ``result`` the accelerator's output as real numbers,
    ``quantised_reference`` the IR operator on the arrays that the accelerator actually got (None: they are the same).
    ``covered`` is the fraction of the result's elements that the property covers, 0 .. 1.  ``margin`` compares
    errors with their bounds (None: the campaign has no bound).
    """

    reference: NDArray[np.float64]
    result: NDArray[np.float64]
    quantised_reference: NDArray[np.float64] | None = None
    violation: Violation | None = None
    covered: float = 1.0
    margin: Margin | None = None


@dataclass(frozen=True)
class Campaign:
    """A campaign's definition; its samples depend on this and the seed alone.

    ``parameters`` gives each size's values, the first of which is the simplest (shrinking goes there); every
    combination is admissible.  ``distributions`` has a sentence per name.  ``make`` draws the arrays of an example
    (parameters, name of the distribution, generator); ``evaluate`` runs both sides and checks the property, or raises
    :class:`Skip`.  ``expects_violation`` marks campaigns kept because they reproduce a known flaw.
    ``theorems`` are the operators of :mod:`rewrites.bounds` whose theorems say the bounds; without any, bounds are
    declared.

    Raises ValueError where a range is empty or has more than 100 values (see ``campaign.py`` for the reason).
    """

    name: str
    summary: str
    reference: str
    property: str
    parameters: Mapping[str, range]
    distributions: Mapping[str, str]
    make: Callable[[Mapping[str, int], str, np.random.Generator], Arrays]
    evaluate: Callable[[Example], Outcome]
    expects_violation: bool = False
    theorems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, values in self.parameters.items():
            if not 1 <= len(values) <= 100:
                raise ValueError(
                    f"Parameter {name} of campaign {self.name} must have 1 .. 100 values, not {len(values)}; "
                    "use a longer step"
                )
        if not 1 <= len(self.distributions) <= 100:
            raise ValueError(
                f"Campaign {self.name} must have 1 .. 100 distributions, not {len(self.distributions)}; name them"
            )

    def example(self, parameters: Mapping[str, int], distribution: str, seed: int) -> Example:
        """The example that sizes, distribution and seed determine.

        Raises ValueError where a size or the distribution is none of the campaign's.
        """
        self.check(parameters, distribution)
        generator = data_generator(seed, parameters, list(self.distributions).index(distribution))
        arrays = built(
            f"arrays of campaign {self.name}", self.make, parameters, distribution, generator, passed=(Skip,)
        )
        return Example(dict(parameters), distribution, seed, arrays)

    def check(self, parameters: Mapping[str, int], distribution: str) -> None:
        """Raises ValueError where a size or the distribution is none of the campaign's."""
        if set(parameters) != set(self.parameters):
            raise ValueError(
                f"parameters must be exactly {', '.join(self.parameters)}, not {', '.join(parameters) or 'none'}"
            )
        for name, value in parameters.items():
            if value not in self.parameters[name]:
                raise ValueError(f"{name} must be in {show_range(self.parameters[name])}, not {value}")
        if distribution not in self.distributions:
            raise ValueError(f"distribution must be one of {', '.join(self.distributions)}, not {distribution!r}")


def data_generator(seed: int, parameters: Mapping[str, int], distribution: int) -> np.random.Generator:
    """The generator of an example's data.

    Sizes and distribution are part of its seed, so that examples that share a seed are still independent; Hypothesis
    often uses a number twice.
    """
    sizes = [value % (1 << 32) for _, value in sorted(parameters.items())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, distribution, *sizes])))


def first_violation(
    name: str, wrong: NDArray[np.bool_], describe: Callable[[tuple[int, ...]], str]
) -> Violation | None:
    """The violation at the first true element of ``wrong``, or None; ``describe`` says what stands there."""
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    place = ", ".join(map(str, index))
    count = int(wrong.sum())
    return Violation(name, f"at [{place}]: {describe(index)} ({count} of {wrong.size} elements violate it)")


def in_range(name: str, array: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """The array; raises ValueError where an element is not in low .. high."""
    if array.size and not (low <= array.min() and array.max() <= high):
        raise ValueError(f"{name} must be in {low} .. {high}, not hold {array.min()} .. {array.max()}")
    return array


def outside_bound(
    result: NDArray[np.float64], ideal: NDArray[np.float64], bound: NDArray[np.float64]
) -> Violation | None:
    """The violation at the first element of a result that is farther than ``bound`` from the ideal one, or None."""
    return first_violation(
        "within the bound",
        ~(np.abs(result - ideal) <= bound),
        lambda i: f"{float(result[i])!r} is not within {float(bound[i])!r} of {float(ideal[i])!r}",
    )


def bounded_outcome(
    whole: NDArray[np.float64],
    result: NDArray[np.float64],
    ideal: NDArray[np.float64],
    bound: NDArray[np.float64],
    a_priori: Fraction | None,
) -> Outcome:
    """The outcome of a result with these bounds (:func:`compare`); ``whole`` is the reference on unquantised data."""
    margin, violation = compare(result, ideal, bound, a_priori)
    return Outcome(whole, result, ideal, violation, float(np.isfinite(bound).mean()), margin)


def compare(
    result: NDArray[np.float64],
    ideal: NDArray[np.float64],
    bound: NDArray[np.float64],
    a_priori: Fraction | None,
    rows: int | None = None,
) -> tuple[Margin, Violation | None]:
    """The margin, and the violation of the derived bound (one per element) or else of the a-priori one, or None.

    The a-priori bound holds for the first ``rows`` rows (None: for all).
    """
    error = np.abs(result - ideal)
    stated = np.isfinite(bound)
    positive = stated & (bound > 0)
    used = float(np.max(error[positive] / bound[positive])) if positive.any() else None
    limit = None if a_priori is None else _not_below(a_priori)
    reached = float(np.max(error[:rows], initial=0.0))
    part = reached / limit if limit else None
    margin = Margin(float(np.max(error[stated], initial=0.0)), used, limit, part)
    violation = outside_bound(result, ideal, bound)
    if violation is None and limit is not None:
        violation = first_violation(
            "within the a-priori bound",
            ~(error[:rows] <= limit),
            lambda i: f"{float(result[i])!r} is not within {limit!r} of {float(ideal[i])!r}",
        )
    return margin, violation


def _not_below(value: Fraction) -> float:
    """The value in float64, rounded up."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else float(np.nextafter(nearest, np.inf))


def show_range(values: range) -> str:
    """A range as people write it.

    >>> show_range(range(2, 9, 2)), show_range(range(1, 9)), show_range(range(3, 4))
    ('2, 4 .. 8', '1 .. 8', '3')
    """
    return range_text([*values])
