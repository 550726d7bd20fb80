"""What cannot be offloaded, and why; options and calibrations that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ilaverify.catalogue import find_backends
from ir_semantics.graph import Builder, Node, TensorType
from ir_semantics.graph.ir import attributes_of
from rewrites.compiler.codegen import (
    CannotOffload,
    Devices,
    Options,
    calibrate,
    implement,
    implementable,
    quantisation_of,
)
from rewrites.compiler.offload.backend import chosen
from tests.rewrites.targets.nodes import case, normal

F = "float32"


def node(operator: str, *shapes: tuple[int, ...], **attributes: Any) -> tuple[Node, list[TensorType]]:
    """A node with operands of these shapes, whose result's type is not looked at."""
    made = Node(operator, tuple(range(len(shapes))), attributes_of(attributes), TensorType(F, ()))
    return made, [TensorType(F, shape) for shape in shapes]


CONV = {"stride_h": 1, "stride_w": 1}
EMPTY = " has a tensor without elements, and FlexASR's loops run at least once"
REFUSED: dict[str, tuple[tuple[Node, list[TensorType]], str]] = {
    "many inputs": (
        node("flexasr.linear", (1, 4081), (8, 4081), (8,), activation="none"),
        "flexasr.linear does not fit, with one row and 64 outputs, and inputs are not split. Input features of shape "
        "1x4096x64 of a FlexASR linear mapping must be a multiple of 16 up to 4080, not 4096; pad or cut them",
    ),
    "no rows": (node("flexasr.linear", (0, 4), (8, 4), (8,), activation="none"), "flexasr.linear" + EMPTY),
    "wide normalisation": (
        node("flexasr.layer_norm", (2, 4096), (4096,), (4096,), epsilon=1e-5),
        "flexasr.layer_norm does not fit, and it is not split. Columns of shape 2x4096 of a FlexASR layer-norm mapping "
        "must be at most 4080 (255 vectors, an 8-bit register), not 4096",
    ),
    "empty pooling": (node("flexasr.mean_pool", (0, 16)), "flexasr.mean_pool" + EMPTY),
    "padded mean": (
        node("flexasr.layer_norm", (2, 20), (20,), (20,), epsilon=1e-5),
        "flexasr.layer_norm has 20 features, which must be a multiple of 16: padding would change the mean",
    ),
    "large epsilon": (
        node("flexasr.layer_norm", (2, 32), (32,), (32,), epsilon=1e-3),
        "flexasr.layer_norm has the epsilon 0.001, and FlexASR adds none: beyond 1e-5 nothing is proved",
    ),
    "many rows": (
        node("flexasr.layer_norm", (1100, 1040), (1040,), (1040,), epsilon=1e-5),
        "flexasr.layer_norm does not fit, and it is not split. Tiles of shape 1100x1040 of a FlexASR layer-norm "
        "mapping must fit 65536 vectors, not 71760; split the tensor",
    ),
    "a large state": (
        node("flexasr.lstm", (5, 16), (8192, 16), (8192, 2048), (8192,), (8192,)),
        "flexasr.lstm does not fit, and the compiler does not split it. Input, state and bias vectors of "
        "shape 5x16x2048 of a FlexASR lstm mapping must be at most 256, not 385; split the layer",
    ),
    "many weights": (
        node("flexasr.lstm", (5, 1600), (3328, 1600), (3328, 832), (3328,), (3328,)),
        "flexasr.lstm does not fit, and the compiler does not split it. Weight vectors of a PE of shape "
        "5x1600x832 of a FlexASR lstm mapping must be at most 65536, not 126464; split the layer",
    ),
    "many timesteps": (
        node("flexasr.gru", (60_000, 16), (192, 16), (192, 64), (192,), (192,)),
        "flexasr.gru does not fit, and the compiler does not split it. Vectors of input and output of "
        "shape 60000x16x64 of a FlexASR gru mapping must be at most 65536, not 300000; split the layer",
    ),
    "an empty state": (node("flexasr.rnn", (5, 16), (0, 16), (0, 0), (0,), (0,)), "flexasr.rnn" + EMPTY),
    "many channels": (
        node("hlscnn.conv2d", (1, 5000, 4, 4), (8, 5000, 1, 1), **CONV),
        "hlscnn.conv2d does not fit, with one filter and one output row. Sizes of mapping hlscnn_conv2d must satisfy: "
        "1 <= c <= 4095; given k = 1, c = 5000, h = 1, w = 4, oh = 1, ow = 4, kh = 1, kw = 1, sh = 1, sw = 1, "
        "bias = 0, relu = 0",
    ),
    "a large kernel": (
        node("hlscnn.conv2d", (1, 4000, 20, 20), (1, 4000, 5, 5), **CONV),
        "hlscnn.conv2d does not fit, with one filter and one output row. Sizes of mapping hlscnn_conv2d must satisfy: "
        "k*ceil(c/8)*kh*kw <= 8192 (entries of SPAD0); given k = 1, c = 4000, h = 5, w = 20, oh = 1, ow = 16, kh = 5, "
        "kw = 5, sh = 1, sw = 1, bias = 0, relu = 0",
    ),
    "no images": (
        node("hlscnn.conv2d", (0, 3, 4, 4), (8, 3, 1, 1), **CONV),
        "hlscnn.conv2d has a tensor without elements, and HLSCNN's loops run at least once",
    ),
    "sums beyond 32 bits": (
        node("vta.dense", (1, 200_000), (1, 200_000)),
        "vta.dense has 200000 inputs, and with more than 132608 sums of products of bytes may leave 32 bits; inputs "
        "are not split",
    ),
    "an empty product": (
        node("vta.dense", (0, 4), (8, 4)),
        "vta.dense has a tensor without elements, and VTA's loops run at least once",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_the_reason(name: str) -> None:
    (made, types), message = REFUSED[name]
    assert implementable(made, types) == message
    with pytest.raises(CannotOffload) as raised:
        implement(made, types, {"weight_bits": 16})
    assert str(raised.value) == message


def test_operators_without_code_are_named() -> None:
    made, types = node("relu", (2,))
    assert implementable(made, types) == "no code is generated for relu"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"headroom": 0.5}, "headroom must be a factor in 1 .. 1024, not 0.5"),
        ({"headroom": float("nan")}, "headroom must be a factor in 1 .. 1024, not nan"),
    ],
)
def test_options_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        Options(**given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("targets", "given", "message"),
    [
        (["hlscnn"], {"weight_bits": 4}, "weight_bits must be 8 or 16, not 4"),
        (["hlscnn"], {"weight_bits": "8"}, "weight_bits must be 8 or 16, not '8'"),
        (["hlscnn"], {"weight_bits": True}, "weight_bits must be 8 or 16, not True"),
        (["vta"], {"weight_bits": 8}, "weight_bits must be a choice of one target; it is one of none"),
    ],
)
def test_choices_are_checked(targets: list[str], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        chosen(find_backends(targets), Options(chosen=given))
    assert str(raised.value) == message


def test_choices_of_two_targets_have_different_names() -> None:
    (hlscnn,) = find_backends(["hlscnn"])
    with pytest.raises(ValueError, match=r"^weight_bits must be a choice of one target; it is one of 2$"):
        chosen([hlscnn, replace(hlscnn, name="other")], Options())
    assert chosen(find_backends(["flexasr", "hlscnn"]), Options()) == {"weight_bits": 8}


def test_ranges_without_end_are_refused() -> None:
    c = case("vta.dense", (normal(1, 2, 3), normal(2, 4, 3)))
    with pytest.raises(CannotOffload) as raised:
        quantisation_of(c.node, {"x": np.inf, "w": 1.0, "y": 1.0})
    assert str(raised.value) == "its calibrated range of x is inf, and formats are for finite numbers"
    with pytest.raises(CannotOffload) as raised:
        implement(c.node, c.types, quantisation_of(c.node, {"x": 1e30, "w": 1.0, "y": 1.0}))
    assert str(raised.value) == "x needs the scale 2^93, and scales are in 2^-60 .. 2^60"


_LAYER = (normal(1, 2, 16), normal(2, 64, 16), normal(3, 64))
_ROWS = (normal(1, 2, 16), normal(2, 16), normal(3, 16))
_RECURRENT = (normal(1, 2, 16), normal(2, 64, 16), normal(3, 64, 64), normal(4, 64), normal(5, 64))
_IMAGE = (normal(1, 1, 8, 4, 4), normal(2, 8, 8, 1, 1))


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "changed", "message"),
    [
        ("flexasr.linear", _LAYER, {"activation": "tanh"}, {"scale_x": 1, "scale_w": 0},
         "the scales of x and w must cancel out in front of tanh, not give 2^1"),
        ("flexasr.linear", _LAYER, {"activation": "sigmoid"}, {"scale_x": 2, "scale_w": -3},
         "the scales of x and w must cancel out in front of sigmoid, not give 2^-1"),
        ("flexasr.linear", _LAYER, {"activation": "none"}, {"scale_x": 40, "scale_w": 40},
         "the result needs the scale 2^80, and scales are in 2^-60 .. 2^60"),
        ("flexasr.max_pool", _LAYER[:1], {}, {"scale": -61},
         "x needs the scale 2^-61, and scales are in 2^-60 .. 2^60"),
        ("flexasr.mean_pool", _LAYER[:1], {}, {"bias": 8}, "the AdaptivFloat bias of x must be in 0 .. 7, not 8"),
        ("flexasr.layer_norm", _ROWS, {"epsilon": 1e-5}, {"scale_y": 61},
         "the result needs the scale 2^61, and scales are in 2^-60 .. 2^60"),
        ("flexasr.rnn", _RECURRENT, {}, {"scale_x": 61}, "x needs the scale 2^61, and scales are in 2^-60 .. 2^60"),
        ("hlscnn.conv2d", _IMAGE, CONV, {"scale_w": -61}, "w needs the scale 2^-61, and scales are in 2^-60 .. 2^60"),
        ("vta.dense", _LAYER[:2], {}, {"scale_x": 30, "scale_w": 30, "shift": 1},
         "the result needs the scale 2^61, and scales are in 2^-60 .. 2^60"),
    ],
)  # fmt: skip
def test_number_formats_that_calibration_would_not_choose_are_refused(
    operator: str, operands: Any, attributes: dict[str, Any], changed: dict[str, int], message: str
) -> None:
    """Those of a directory that somebody has edited: with them, a program is not the operator, or has no bound."""
    c = case(operator, operands, **attributes)
    with pytest.raises(CannotOffload) as raised:
        c.implementation(**changed)
    assert str(raised.value) == message


def test_numbers_that_are_not_finite_are_refused() -> None:
    c = case("vta.dense", (normal(1, 2, 3), normal(2, 4, 3)))
    broken = [np.full((2, 3), np.nan, np.float32), c.operands[1]]
    with pytest.raises(ValueError) as raised:
        c.implementation().run(broken, Devices())
    assert str(raised.value) == "Operand x must be finite numbers, not NaN or infinite; look at the inputs"


def test_a_calibration_has_inputs() -> None:
    builder = Builder()
    graph = builder.graph({"y": builder.input("x", TensorType(F, (2,)))})
    with pytest.raises(ValueError) as raised:
        calibrate(graph, [])
    assert str(raised.value) == "inputs of a calibration must be at least one, not none; give some, or leave them out"


@pytest.mark.parametrize("name", ["flexasr.store", "flexasr.load", "flexasr.stored_max_pool"])
def test_parts_of_a_chain_are_not_executed_alone(name: str) -> None:
    made, types = node(name, (2, 16))
    assert implementable(made, types) == f"no code is generated for {name}"
