"""Histograms of errors as SVG; needs the extra ``plot`` (matplotlib)."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PlotUnavailable", "error_bins", "histogram_svg"]

_WIDE = 100.0
"""Errors that differ by more than this factor are drawn on a logarithmic axis."""


class PlotUnavailable(Exception):
    """matplotlib is not installed; the message says how to get it."""


def histogram_svg(groups: Mapping[str, Sequence[float]], *, title: str, label: str) -> str:
    """A stacked histogram of errors in percent: one colour per group, lines at the mean and at the worst error.

    ``groups`` has relative errors (0.01 is 1 %) by the name shown in the legend; groups without errors are left out.
    The text depends on the arguments and matplotlib's version only.

    Raises PlotUnavailable where matplotlib is not installed, and ValueError where there are no errors, or some that
    are negative or not finite.
    """
    with _load("matplotlib").rc_context({"svg.hashsalt": "ilaverify", "svg.fonttype": "path", "font.size": 9}):
        buffer = io.StringIO()
        _draw(groups, title, label).savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _draw(groups: Mapping[str, Sequence[float]], title: str, label: str) -> Any:
    shown = {name: 100 * np.asarray(errors, np.float64) for name, errors in groups.items() if len(errors)}
    if not shown:
        raise ValueError("A histogram must have at least one error, not none")
    everything = np.concatenate(list(shown.values()))
    if not np.isfinite(everything).all() or (everything < 0).any():
        raise ValueError("Errors must be finite and not negative")
    edges, logarithmic = error_bins(everything)
    figure = _load("matplotlib.figure").Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(list(shown.values()), edges, stacked=True, label=list(shown), edgecolor="white", linewidth=0.4)
    mean, worst = float(everything.mean()), float(everything.max())
    axes.axvline(mean, color="black", linewidth=1, label=f"mean {percent(mean)}")
    axes.axvline(worst, color="black", linewidth=1, linestyle=":", label=f"worst {percent(worst)}")
    if logarithmic:
        axes.set_xscale("log")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set(title=title, xlabel=label, ylabel="examples")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    return figure


def percent(value: float) -> str:
    """A number of percent with three significant digits.

    >>> percent(1.234), percent(0.0), percent(123.4)
    ('1.23 %', '0 %', '123 %')
    """
    if value == 0:
        return "0 %"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{digits}f} %"


def error_bins(errors: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Edges of about sqrt(n) bins (10 .. 40) over all errors, and whether they grow by a factor.

    They do where the errors are positive and differ by more than a factor of 100.
    """
    count = int(np.clip(np.sqrt(len(errors)), 10, 40))
    low, high = float(errors.min()), float(errors.max())
    if low > 0 and high / low > _WIDE:
        return np.geomspace(low, high, count + 1), True
    if high - low <= 1e-9 * high:
        half = max(abs(high) / 2, 0.5)
        low, high = max(0.0, low - half), high + half
    return np.linspace(low, high, count + 1), False


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PlotUnavailable(
            "A picture must be drawn by matplotlib, which is not installed; install ilaverify[plot]"
        ) from None
