"""The distributions that campaigns draw their data from.  They belong to a campaign's definition and are printed.

Real data: FlexASR's quantiser accepts tensors whose largest magnitude lies in [1/8, 32), and HLSCNN's activations lie
in [-256, 256), so distributions whose range is not fixed are scaled into a given range.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

UNIFORM, NORMAL, HEAVY = "uniform", "normal", "heavy"

REAL: Mapping[str, str] = {
    UNIFORM: "uniform in [-1, 1)",
    NORMAL: "standard normal",
    HEAVY: "Student's t with 3 degrees of freedom, scaled to a largest magnitude drawn log-uniformly from the range",
}
"""Distributions of real tensors by name."""

INTEGERS: Mapping[str, str] = {
    "uniform": "every value of the type, uniformly",
    "small": "-8 .. 7, uniformly",
    "extreme": "one of the least value, -1, 0, 1 and the greatest value",
}
"""Distributions of integer tensors by name."""


def draw_real(
    generator: np.random.Generator,
    distribution: str,
    shape: tuple[int, ...],
    *,
    scale: float = 1.0,
    largest: tuple[float, float] = (0.125, 31.0),
) -> NDArray[np.float64]:
    """A tensor of a distribution of :data:`REAL`, times ``scale``.

    ``largest`` is the range (low, high) that the largest magnitude of heavy-tailed data is drawn from, log-uniformly,
    before ``scale``.  Raises ValueError on another name.
    """
    if distribution == UNIFORM:
        return generator.uniform(-1.0, 1.0, shape) * scale
    if distribution == NORMAL:
        return generator.standard_normal(shape) * scale
    if distribution == HEAVY:
        tensor = generator.standard_t(3, shape)
        top = float(np.exp(generator.uniform(np.log(largest[0]), np.log(largest[1]))))
        greatest = float(np.max(np.abs(tensor), initial=0.0))
        return tensor * (top / greatest) * scale if greatest else tensor
    raise ValueError(f"distribution must be one of {', '.join(REAL)}, not {distribution!r}")


def draw_integers(
    generator: np.random.Generator, distribution: str, shape: tuple[int, ...], low: int, high: int
) -> NDArray[np.int64]:
    """A tensor (int64) of a distribution of :data:`INTEGERS`, of a type with values low .. high.

    Raises ValueError on another name.
    """
    if distribution == "uniform":
        return generator.integers(low, high, shape, endpoint=True)
    if distribution == "small":
        return generator.integers(max(low, -8), min(high, 7), shape, endpoint=True)
    if distribution == "extreme":
        return generator.choice(np.array([low, -1, 0, 1, high]), shape)
    raise ValueError(f"distribution must be one of {', '.join(INTEGERS)}, not {distribution!r}")
