"""Histograms of errors."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from reports.html.plots import error_bins, histogram_picture

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = {"uniform": [0.011, 0.012, 0.0125, 0.012], "normal": [0.02, 0.013], "empty": []}


def test_the_picture_has_a_title_a_legend_and_the_bars_of_every_group() -> None:
    picture = histogram_picture(GROUPS, "toy, seed 0")
    assert picture == histogram_picture(GROUPS, "toy, seed 0") != histogram_picture({"a": [0.5]}, "toy, seed 0")
    svg = ElementTree.fromstring(picture)
    assert svg.tag == f"{SVG}svg" and "var(" not in picture
    texts = [found.text for found in svg.iter(f"{SVG}text")]
    assert {"toy, seed 0: mean 1.34 %, worst 2.00 %", "uniform", "normal"} < set(texts) and "empty" not in texts
    bars = [found.attrib for found in svg.iter(f"{SVG}rect")]
    assert {bar["class"] for bar in bars} == {"bar series0", "bar series1"}
    _, above, width, height = (float(n) for n in svg.attrib["viewBox"].split())
    for bar in bars:
        left, top = float(bar["x"]), float(bar["y"])
        assert left >= 0 and left + float(bar["width"]) <= width
        assert above <= top and top + float(bar["height"]) <= above + height


def test_every_error_is_in_a_bin() -> None:
    for errors in (np.zeros(5), np.full(3, 0.7), np.array([1.0, 2.0, 4.0]), np.array([0.001, 5.0])):
        edges, _ = error_bins(errors)
        assert np.histogram(errors, edges)[0].sum() == len(errors)
        assert (np.diff(edges) > 0).all()


def test_widely_spread_errors_get_a_logarithmic_axis() -> None:
    assert error_bins(np.array([0.01, 5.0]))[1]
    assert not error_bins(np.array([0.1, 5.0]))[1]
    assert not error_bins(np.array([0.0, 5.0]))[1]  # zero has no place on one


@pytest.mark.parametrize("groups", [{"a": []}, {"a": [0.1, float("nan")]}, {"a": [-0.1]}])
def test_errors_that_cannot_be_drawn(groups: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match="A histogram must have at least one error, all of them finite and not neg"):
        histogram_picture(groups, "t")
