"""Corners of the ONNX specification on which implementations differ."""

from __future__ import annotations

import numpy as np
import pytest

from ir_semantics.graph import run
from ir_semantics.graph.types import Array
from ir_semantics.onnx import import_model
from tests.ir_semantics.onnx.onnx_models import model, node, tensor

NAN = float("nan")


def sliced(extent: int, start: int, end: int, step: int) -> list[int]:
    """What the specification's text of Slice takes of 0, 1, 2 ..., one element after the other."""
    start, end = (bound + extent if bound < 0 else bound for bound in (start, end))
    if step > 0:
        at, end = min(max(start, 0), extent), min(max(end, 0), extent)
    else:
        at, end = min(max(start, 0), extent - 1), min(max(end, -1), extent - 1)
    taken = []
    while at < end if step > 0 else at > end:
        taken.append(at)
        at += step
    return taken


def slice_of(extent: int, start: int, end: int, step: int, declared: int | str) -> Array:
    constants = [tensor(name, [value], "int64") for name, value in (("a", start), ("b", end), ("i", 0), ("s", step))]
    made = model([node("Slice", ["x", "a", "b", "i", "s"], ["y"])], {"x": [extent]}, {"y": [declared]}, constants)
    return run(import_model(made), {"x": np.arange(extent, dtype=np.float32)})["y"]


@pytest.mark.parametrize("extent", [1, 2, 6])
def test_slices_are_clamped_as_the_specification_says(extent: int) -> None:
    for start in range(-extent - 3, extent + 3):
        for end in range(-extent - 3, extent + 3):
            for step in (-3, -1, 1, 2):
                wanted = sliced(extent, start, end, step)
                found = slice_of(extent, start, end, step, "n")
                assert found.tolist() == wanted, (extent, start, end, step)


def test_a_slice_from_before_the_first_element_backwards_has_its_declared_shape() -> None:
    assert slice_of(6, -9, -20, -1, 1).tolist() == [0]


@pytest.mark.parametrize("mode", ["cubic", "linear", "nearest"])
def test_one_resized_element_is_the_first_one_in_half_pixels_as_pytorch_has_them(mode: str) -> None:
    constants = [tensor("n", [1, 1, 1, 1], "int64")]
    resize = node("Resize", ["x", "", "", "n"], ["y"], mode=mode, coordinate_transformation_mode="pytorch_half_pixel")
    made = model([resize], {"x": [1, 1, 1, 4]}, {"y": [1, 1, 1, 1]}, constants, opset=19)
    x = np.array([1, 2, 4, 8], np.float32).reshape(1, 1, 1, 4)
    assert run(import_model(made), {"x": x})["y"].item() == 1.0


@pytest.mark.parametrize("operator", ["MaxPool", "GlobalMaxPool", "ReduceMax"])
def test_a_maximum_of_nan_is_nan_in_both_forms(operator: str) -> None:
    attributes = {"kernel_shape": [2]} if operator == "MaxPool" else {"axes": [2]} if operator == "ReduceMax" else {}
    made = model([node(operator, ["x"], ["y"], **attributes)], {"x": [1, 1, 3]}, {"y": ["a", "b", "c"]}, opset=13)
    graph = import_model(made)
    for data in ([1, NAN, 2], [NAN, 1, 2], [1, 2, NAN], [NAN, NAN, NAN], [-np.inf, NAN, np.inf]):
        x = {"x": np.array(data, np.float32).reshape(1, 1, 3)}
        fast, defined = run(graph, x)["y"], run(graph, x, by_definition=True)["y"]
        np.testing.assert_array_equal(fast, defined)
        windows = [data[0:2], data[1:3]] if operator == "MaxPool" else [data]
        assert np.isnan(fast).ravel().tolist() == [any(map(np.isnan, window)) for window in windows]
