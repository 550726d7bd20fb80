"""Histograms of errors."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from reports.html.histogram import PlotUnavailable, error_bins, histogram_svg

GROUPS = {"uniform": [0.011, 0.012, 0.0125, 0.012], "normal": [0.02, 0.013], "empty": []}


def test_the_picture_is_the_same_text_each_time() -> None:
    pytest.importorskip("matplotlib")
    first, second = (histogram_svg(GROUPS, title="t", label="l") for _ in range(2))
    assert first == second
    assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
    assert first != histogram_svg({"uniform": [0.5]}, title="t", label="l")


def test_every_error_is_in_a_bin() -> None:
    for errors in (np.zeros(5), np.full(3, 0.7), np.array([1.0, 2.0, 4.0]), np.array([0.001, 5.0])):
        edges, _ = error_bins(errors)
        assert np.histogram(errors, edges)[0].sum() == len(errors)
        assert (np.diff(edges) > 0).all()


def test_widely_spread_errors_get_a_logarithmic_axis() -> None:
    assert error_bins(np.array([0.01, 5.0]))[1]
    assert not error_bins(np.array([0.1, 5.0]))[1]
    assert not error_bins(np.array([0.0, 5.0]))[1]  # zero has no place on one


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": []}, "A histogram must have at least one error, not none"),
        ({"a": [0.1, float("nan")]}, "Errors must be finite and not negative"),
        ({"a": [-0.1]}, "Errors must be finite and not negative"),
    ],
)
def test_errors_that_cannot_be_drawn(groups: dict[str, list[float]], message: str) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError) as caught:
        histogram_svg(groups, title="t", label="l")
    assert str(caught.value) == message


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotUnavailable) as caught:
        histogram_svg(GROUPS, title="t", label="l")
    assert str(caught.value) == (
        "A picture must be drawn by matplotlib, which is not installed; install ilaverify[plot]"
    )
