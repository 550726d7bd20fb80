"""Errors of examples, and their statistics.

The measure is the relative Frobenius error ||result - reference|| / ||reference|| of whole output tensors, as in the
D2A/3LA paper (arXiv 2203.00218, section 4.4.1).  It has two parts that are also measured alone: what the quantised
inputs alone change, and what the accelerator's arithmetic changes on them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .definition import Example, Margin, Outcome, Skip


def relative_error(result: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """||result - reference||_F / ||reference||_F of two tensors of one shape.

    Raises ValueError where the shapes differ or an element is not finite, and Skip where the reference is zero and
    the result is not: there is no relative error then.  Where both are zero the error is 0.

    >>> relative_error(np.array([3.0, 4.5]), np.array([3.0, 4.0]))
    0.1
    """
    if result.shape != reference.shape:
        raise ValueError(f"Result and reference must have one shape, not {result.shape} and {reference.shape}")
    if not (np.isfinite(result).all() and np.isfinite(reference).all()):
        raise ValueError("Result and reference must be finite, not NaN or infinite")
    difference = float(np.linalg.norm((result - reference).ravel()))
    if difference == 0.0:
        return 0.0
    size = float(np.linalg.norm(reference.ravel()))
    if size == 0.0:
        raise Skip("the reference is zero, the result is not: no relative error")
    return difference / size


@dataclass(frozen=True)
class Sample:
    """One example's errors, without its arrays.

    ``error`` is the whole error, ``input_error`` that of the IR operator on the quantised inputs, ``arithmetic_error``
    the accelerator's against the IR operator on the quantised inputs (both None where they are not defined).
    ``skipped`` says why there is no error.  ``covered`` is the part of the result that the property was checked on,
    0 .. 1; ``violation`` is the violated property's name; ``margin`` compares errors with their bounds.
    """

    parameters: Mapping[str, int]
    distribution: str
    seed: int
    error: float | None
    input_error: float | None
    arithmetic_error: float | None
    skipped: str | None
    covered: float
    violation: str | None
    margin: Margin | None = None

    def as_json(self) -> dict[str, Any]:
        """The sample as JSON; the seed is a decimal string, which no reader rounds."""
        margin = None if self.margin is None else self.margin.as_json()
        return vars(self) | {"parameters": dict(self.parameters), "seed": str(self.seed), "margin": margin}

    @staticmethod
    def from_json(content: Any) -> Sample:
        """The sample in what :meth:`as_json` gave; raises ValueError, TypeError or KeyError on anything else."""
        margin = content["margin"]
        read = None if margin is None else Margin.from_json(margin)
        return Sample(**(content | {"seed": int(content["seed"]), "margin": read}))


def sample_of(example: Example, outcome: Outcome) -> Sample:
    """The errors of an outcome; an outcome without a relative error becomes a skipped sample.

    Raises ValueError as :func:`relative_error` does, and for an example without a seed.
    """
    if example.seed is None:
        raise ValueError("An example must have the seed that its arrays were drawn from, not None, to be a sample")
    error = inputs = arithmetic = skipped = None
    quantised = outcome.reference if outcome.quantised_reference is None else outcome.quantised_reference
    try:
        error = relative_error(outcome.result, outcome.reference)
        inputs = relative_error(quantised, outcome.reference)
        arithmetic = relative_error(outcome.result, quantised)
    except Skip as reason:
        if error is None:
            skipped = str(reason)
    return Sample(
        example.parameters,
        example.distribution,
        example.seed,
        error,
        inputs,
        arithmetic,
        skipped,
        outcome.covered,
        outcome.violation.name if outcome.violation else None,
        outcome.margin,
    )


@dataclass(frozen=True)
class Statistics:
    """Mean, standard deviation (of the population, as NumPy's ``std``), smallest and largest of a list of numbers."""

    count: int
    mean: float
    deviation: float
    least: float
    worst: float

    def as_json(self) -> dict[str, Any]:
        """The statistics as JSON."""
        return dict(zip(("count", "mean", "standard_deviation", "least", "worst"), astuple(self), strict=True))


def statistics_of(numbers: Iterable[float]) -> Statistics | None:
    """The statistics of numbers; None where there are none.  Sums are exact before they are rounded.

    >>> statistics_of([1.0, 3.0])
    Statistics(count=2, mean=2.0, deviation=1.0, least=1.0, worst=3.0)
    """
    values: Sequence[float] = list(numbers)
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))
    return Statistics(len(values), mean, deviation, min(values), max(values))


@dataclass(frozen=True)
class Margins:
    """Bounds against the worst case measured.

    ``largest`` is the largest error of an element.  ``derived_ratio`` is the least ratio of an element's derived bound
    to its error; ``a_priori_ratio`` the least ratio of an example's a-priori bound to its largest error (None where no
    example has a positive error and such a bound).  ``stated`` counts the examples with an a-priori bound, of all
    ``count``.
    """

    largest: float
    derived_ratio: float | None
    a_priori_ratio: float | None
    stated: int
    count: int

    def as_json(self) -> dict[str, Any]:
        """The margins as JSON."""
        ratios = "derived_bound_over_error", "a_priori_bound_over_error"
        return dict(zip(("largest_error", *ratios, "a_priori_stated", "examples"), astuple(self), strict=True))


def margins_of(margins: Iterable[Margin | None]) -> Margins | None:
    """The margins of all examples together; None where no example has one.

    >>> margins_of([Margin(0.5, 0.8, 2.0, 0.25), Margin(0.25, 0.5, None, None), None])
    Margins(largest=0.5, derived_ratio=1.25, a_priori_ratio=4.0, stated=1, count=2)
    """
    known = [m for m in margins if m is not None]
    if not known:
        return None
    used = max((m.used for m in known if m.used is not None), default=0.0)
    a_priori_used = max((m.a_priori_used for m in known if m.a_priori_used is not None), default=0.0)
    return Margins(
        max(m.largest for m in known),
        1 / used if used else None,
        1 / a_priori_used if a_priori_used else None,
        sum(m.a_priori is not None for m in known),
        len(known),
    )


def skipped_reasons(samples: Iterable[Sample]) -> dict[str, int]:
    """How many samples were skipped for which reason."""
    return dict(sorted(Counter(s.skipped for s in samples if s.skipped is not None).items()))
