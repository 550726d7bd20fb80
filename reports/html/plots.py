"""Plots as SVG elements of the HTML page: times against sizes, histograms of errors; these also as files.

They are built as trees, so that no text can become markup.  Colours are classes of the page's style sheet (``series0``,
``series1``, ...), which knows the dark mode; every series has a marker or a position of its own as well.  A plot is as
wide as a phone's screen in its own units, and grows with the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from numpy.typing import NDArray

from .inputs import Scaling

SERIES = 6
"""The number of colours and markers; further series reuse them."""

_WIDTH, _HEIGHT = 400, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 12, 44
_SIZE = 4.5  # half a marker's size
_ROW = 16  # a line of text above a picture

_WIDE = 100.0
"""Errors that differ by more than this factor are drawn on a logarithmic axis."""

_PATHS = (
    "M-1,-1H1V1H-1Z",  # square
    "M0,-1.3L1.3,0L0,1.3L-1.3,0Z",  # diamond
    "M0,-1.25L1.2,0.95H-1.2Z",  # triangle
    "M0,1.25L1.2,-0.95H-1.2Z",  # triangle, upside down
    "M-0.4,-1.2H0.4V-0.4H1.2V0.4H0.4V1.2H-0.4V0.4H-1.2V-0.4H-0.4Z",  # plus
)
Position = Callable[[float], float]


def scaling_plot(scaling: Scaling) -> str:
    """Seconds against elements of the input tensor, both axes logarithmic: a line with markers for each method.

    A cell that did not end with PROVED has a cross over its marker.
    """
    sizes = {shape: math.prod(int(part) for part in shape.split("x")) for shape, _ in scaling.rows}
    measured = [cell for _, cells in scaling.rows for cell in cells if cell is not None]
    seconds = [cell.seconds for cell in measured]
    margin = 1.5  # points stay off the frame
    x, x_ticks = _logarithmic(min(sizes.values()) / margin, max(sizes.values()) * margin, _LEFT, _WIDTH - _RIGHT)
    y, y_ticks = _logarithmic(min(seconds) / margin, max(seconds) * margin, _HEIGHT - _BOTTOM, _TOP)
    svg = _plot("Time of each method against the size of the input; the table below has the numbers")
    _axes(svg, [(x(v), _number(v)) for v in x_ticks], [(y(v), _number(v)) for v in y_ticks])
    _labels(svg, "elements of the input tensor", "seconds")
    for index, method in enumerate(scaling.methods):
        column = [(shape, cells[index]) for shape, cells in sorted(scaling.rows, key=lambda row: sizes[row[0]])]
        points = [(x(sizes[shape]), y(cell.seconds), shape, cell) for shape, cell in column if cell is not None]
        line = " ".join(f"{left:.1f},{top:.1f}" for left, top, _, _ in points)
        SubElement(svg, "polyline", {"points": line, "class": f"line series{index % SERIES}"})
        for left, top, shape, cell in points:
            marker = _marker(svg, index, left, top)
            proved = cell.answer == "PROVED"
            end = f"{cell.seconds:g} s" if proved else f"{cell.answer} after {cell.seconds:g} s"
            SubElement(marker, "title").text = f"{method}, {shape}: {end}"
            if not proved:
                cross = f"M{left - 7:.1f},{top - 7:.1f}l14,14m0,-14l-14,14"
                SubElement(svg, "path", {"d": cross, "class": "cross"})
    return _text(svg)


def histogram_plot(groups: Mapping[str, Sequence[float]]) -> str:
    """Relative errors (0.01 is 1 %) as a stacked histogram, one colour per group, with lines at mean and worst.

    Raises ValueError where there are no errors, or some that are negative or not finite.
    """
    return _text(_histogram(groups))


def histogram_picture(groups: Mapping[str, Sequence[float]], title: str) -> str:
    """That histogram as a file of its own, with a title and a legend; groups without errors are left out."""
    groups = {name: errors for name, errors in groups.items() if errors}
    svg, above = _histogram(groups), _ROW * (len(groups) + 1)
    svg.set("xmlns", "http://www.w3.org/2000/svg")
    svg.set("viewBox", f"0 {-above} {_WIDTH} {_HEIGHT + above}")
    SubElement(svg, "style").text = _plain_style()
    _, _, levels = svg.attrib["aria-label"].partition(": ")
    for row, text in enumerate((f"{title}: {levels}", *groups)):
        y = row * _ROW - above + 12
        SubElement(svg, "text", {"x": str(_LEFT), "y": str(y), "class": "label"}).text = text
        if row:
            box = {"x": str(_LEFT - 16), "y": str(y - 9), "width": "12", "height": "10"}
            SubElement(svg, "rect", box | {"class": f"bar series{(row - 1) % SERIES}"})
    return _text(svg) + "\n"


def _plain_style() -> str:
    """The page's rules for plots with its light colours written out, for viewers without CSS variables."""
    sheet = style_sheet()
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", sheet.partition("@media")[0]))
    rules = [line for line in sheet.splitlines() if line.startswith(".plot ") and "var(--series)" not in line]
    plain = [re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], rule) for rule in rules]
    return "\n".join([*plain, *(f".series{i} {{ fill: {colours[f'series{i}']}; }}" for i in range(SERIES))])


def style_sheet() -> str:
    """The page's style sheet; it must not be able to end its element."""
    source = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    assert "</" not in source
    return source


def _histogram(groups: Mapping[str, Sequence[float]]) -> Element:
    shown = [100 * np.asarray(errors, np.float64) for errors in groups.values()]
    everything = np.concatenate(shown) if shown else np.zeros(0)
    if not everything.size or not np.isfinite(everything).all() or (everything < 0).any():
        raise ValueError("A histogram must have at least one error, all of them finite and not negative")
    edges, logarithmic = error_bins(everything)
    counts = np.array([np.histogram(errors, edges)[0] for errors in shown])
    highest = int(counts.sum(axis=0).max())
    low, high = float(edges[0]), float(edges[-1])
    if logarithmic:
        x, x_ticks = _logarithmic(low, high, _LEFT, _WIDTH - _RIGHT)
    else:
        x, x_ticks = _linear(low, high, _LEFT, _WIDTH - _RIGHT)
    y, y_ticks = _linear(0, highest, _HEIGHT - _BOTTOM, _TOP + 14, whole=True)
    mean, worst = float(everything.mean()), float(everything.max())
    svg = _plot(f"Histogram of {everything.size} errors: mean {percent(mean)}, worst {percent(worst)}")
    _axes(svg, [(x(v), _number(v)) for v in x_ticks], [(y(v), _number(v)) for v in y_ticks])
    _labels(svg, "relative Frobenius error, percent", "examples")
    for number, (left, right) in enumerate(pairwise(edges.tolist())):
        below = 0
        for index, count in enumerate(counts[:, number].tolist()):
            if count:
                box = {"x": x(left), "width": x(right) - x(left)}
                box |= {"y": y(below + count), "height": y(below) - y(below + count)}
                bar = SubElement(svg, "rect", {name: f"{value:.2f}" for name, value in box.items()})
                bar.set("class", f"bar series{index % SERIES}")
                SubElement(bar, "title").text = f"{_number(left)} .. {_number(right)} %: {count}"
            below += count
    for name, value in (("mean", mean), ("worst", worst)):
        line = {"x1": x(value), "x2": x(value), "y1": float(_TOP), "y2": float(_HEIGHT - _BOTTOM)}
        SubElement(svg, "line", {k: f"{v:.1f}" for k, v in line.items()} | {"class": f"level {name}"})
    return svg


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


def swatch(index: int, *, line: bool) -> str:
    """The sign of a series for legends: its marker, or (not ``line``) a box of its colour."""
    svg = Element("svg", {"viewBox": "-8 -6 16 12", "class": "swatch", "aria-hidden": "true"})
    if line:
        SubElement(svg, "line", {"x1": "-8", "x2": "8", "y1": "0", "y2": "0", "class": f"line series{index % SERIES}"})
        _marker(svg, index, 0, 0)
    else:
        box = {"x": "-6", "y": "-5", "width": "12", "height": "10", "class": f"bar series{index % SERIES}"}
        SubElement(svg, "rect", box)
    return _text(svg)


# -- parts ----------------------------------------------------------------------------------------------


def _plot(description: str) -> Element:
    return Element(
        "svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "class": "plot", "role": "img", "aria-label": description}
    )


def _text(svg: Element) -> str:
    return tostring(svg, encoding="unicode")


def _marker(svg: Element, index: int, x: float, y: float) -> Element:
    """A circle for the first series, then other shapes."""
    name = f"marker series{index % SERIES}"
    if index % SERIES == 0:
        return SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": str(_SIZE), "class": name})
    place = f"translate({x:.1f},{y:.1f}) scale({_SIZE})"
    return SubElement(svg, "path", {"d": _PATHS[index % SERIES - 1], "transform": place, "class": name})


def _axes(svg: Element, x_ticks: list[tuple[float, str]], y_ticks: list[tuple[float, str]]) -> None:
    bottom, right = str(_HEIGHT - _BOTTOM), str(_WIDTH - _RIGHT)
    for place, text in y_ticks:
        at = f"{place:.1f}"
        SubElement(svg, "line", {"x1": str(_LEFT), "x2": right, "y1": at, "y2": at, "class": "grid"})
        SubElement(svg, "text", {"x": str(_LEFT - 6), "y": f"{place + 4:.1f}", "class": "tick end"}).text = text
    for place, text in x_ticks:
        at = f"{place:.1f}"
        SubElement(svg, "line", {"x1": at, "x2": at, "y1": bottom, "y2": str(_HEIGHT - _BOTTOM + 4), "class": "axis"})
        SubElement(svg, "text", {"x": at, "y": str(_HEIGHT - _BOTTOM + 17), "class": "tick middle"}).text = text
    SubElement(svg, "line", {"x1": str(_LEFT), "x2": right, "y1": bottom, "y2": bottom, "class": "axis"})


def _labels(svg: Element, x: str, y: str) -> None:
    middle = str((_LEFT + _WIDTH - _RIGHT) // 2)
    SubElement(svg, "text", {"x": middle, "y": str(_HEIGHT - 8), "class": "label middle"}).text = x
    turned = f"translate(12,{(_TOP + _HEIGHT - _BOTTOM) // 2}) rotate(-90)"
    SubElement(svg, "text", {"transform": turned, "class": "label middle"}).text = y


def _logarithmic(low: float, high: float, start: float, end: float) -> tuple[Position, list[float]]:
    """Position on an axis from ``start`` (low) to ``end`` (high), and the powers of ten within; 2 and 5 times those,
    too, where there are less than three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))

    def position(value: float) -> float:
        return start + math.log10(value / low) / math.log10(high / low) * (end - start)

    for factors in ((1,), (1, 2, 5)):
        ticks = [f * 10.0**n for n in range(first, last + 1) for f in factors if low <= f * 10.0**n <= high]
        if len(ticks) >= 3:
            break
    return position, ticks


def _linear(low: float, high: float, start: float, end: float, whole: bool = False) -> tuple[Position, list[float]]:
    """Position on an axis from ``start`` (low) to ``end`` (high), and four to eight round numbers within."""

    def position(value: float) -> float:
        return start + (value - low) / (high - low) * (end - start)

    step = next(s for s in _steps(high - low) if (high - low) / s <= 6)
    step = max(step, 1.0) if whole else step
    ticks = [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return position, ticks


def _steps(extent: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, growing, from a hundredth of the extent."""
    power = math.floor(math.log10(extent)) - 2
    while True:
        yield from (factor * 10.0**power for factor in (1, 2, 5))
        power += 1


def _number(value: float) -> str:
    """A tick's number, short: 0.001, 25, 10,000.

    >>> _number(0.30000000000000004), _number(16384.0), _number(1e-7)
    ('0.3', '16,384', '1e-07')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
