"""Accelerator operators mean what their one line says, computed here with NumPy alone; wrong operands are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ilaverify.catalogue import mappings
from ir_semantics.graph import Builder, GraphError, TensorType, run
from rewrites.claims.theorems import machines
from rewrites.compiler.codegen import AcceleratorOperator, Options, accelerator_operator
from rewrites.mappings.flexasr.claims import LINEAR
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.mappings.vta.claims import DENSE, GEMM
from rewrites.targets.flexasr.operators import ACTIVATIONS
from tests.rewrites.compiler.offload.offload_gates import EVERY, OPERATORS

Array = NDArray[np.float32]


def drawn(*shapes: tuple[int, ...]) -> list[Array]:
    draw = np.random.default_rng(5)
    return [draw.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


def computed(operator: str, operands: list[Array], **attributes: object) -> Array:
    b = Builder()
    numbers = [b.input(f"x{i}", TensorType("float32", o.shape)) for i, o in enumerate(operands)]
    graph = b.graph({"y": b.add(operator, *numbers, **attributes)})  # type: ignore[arg-type]
    return run(graph, {f"x{i}": o for i, o in enumerate(operands)})["y"]


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


SCALAR: dict[str, Callable[[Array], Array]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear(activation: str) -> None:
    x, w, b = drawn((2, 3), (4, 3), (4,))
    wanted = SCALAR[activation]((x @ w.T + b).astype(np.float64))
    # one rounding to 24 bits of what NumPy computes in float32, exact before the activation
    np.testing.assert_allclose(computed("flexasr.linear", [x, w, b], activation=activation), wanted, rtol=1e-6)


def steps(kind: str, x: Array, w: Array, u: Array, b: Array, d: Array) -> Array:
    """The layer one step at a time, gates in PyTorch's order."""
    hidden = u.shape[1]
    h, c, rows = np.zeros(hidden), np.zeros(hidden), []
    for row in x.astype(np.float64):
        inner, outer = (w @ row + b), (u @ h + d)
        a, s = ([v[j * hidden : (j + 1) * hidden] for j in range(len(v) // hidden)] for v in (inner, outer))
        if kind == "rnn":
            h = np.tanh(a[0] + s[0])
        elif kind == "gru":
            r, z = sigmoid(a[0] + s[0]), sigmoid(a[1] + s[1])
            h = (1 - z) * np.tanh(a[2] + r * s[2]) + z * h
        else:
            i, f, g, o = (p + q for p, q in zip(a, s, strict=True))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.stack(rows)


@pytest.mark.parametrize(("kind", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_recurrent_layers(kind: str, gates: int) -> None:
    operands = [o / 8 for o in drawn((3, 5), (gates * 2, 5), (gates * 2, 2), (gates * 2,), (gates * 2,))]
    wanted = steps(kind, *operands)
    # three steps of functions with slopes of at most 1, each computed to about 2^-22 in float32
    np.testing.assert_allclose(computed(f"flexasr.{kind}", operands), wanted, atol=1e-5)


def test_pooling_and_normalisation() -> None:
    (x,) = drawn((6, 4))
    pairs = x.reshape(3, 2, 4)
    np.testing.assert_array_equal(computed("flexasr.max_pool", [x]), pairs.max(1))
    np.testing.assert_array_equal(computed("flexasr.mean_pool", [x]), pairs.sum(1) / 2)
    gamma, beta = drawn((4,), (4,))
    centred = x.astype(np.float64) - x.mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 0.5) * gamma + beta
    np.testing.assert_allclose(computed("flexasr.layer_norm", [x, gamma, beta], epsilon=0.5), wanted, atol=1e-5)


def test_products() -> None:
    x, w = drawn((2, 3), (4, 3))
    np.testing.assert_array_equal(computed("vta.dense", [x, w]), x @ w.T)
    image, filters = drawn((2, 3, 5, 6), (4, 3, 2, 3))
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 3), (2, 3))[:, :, ::2, ::1]
    wanted = np.einsum("nchwkl,ockl->nohw", windows, filters)
    np.testing.assert_array_equal(computed("hlscnn.conv2d", [image, filters], stride_h=2, stride_w=1), wanted)


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "message"),
    [
        (
            "flexasr.linear",
            [(2, 3), (4, 5), (4,)],
            {"activation": "none"},
            "flexasr.linear must be given x [T, I], w [O, I] and b [O], not float32[2, 3], float32[4, 5], float32[4]",
        ),
        (
            "flexasr.linear",
            [(2, 3), (4, 3), (4,)],
            {"activation": "gelu"},
            "the activation of flexasr.linear must be one of none, relu, sigmoid, tanh, not 'gelu'",
        ),
        (
            "flexasr.lstm",
            [(2, 3), (8, 3), (8, 2), (8,), (4,)],
            {},
            "flexasr.lstm must be given x [T, I], w [4H, I], u [4H, H], b [4H] and d [4H], not float32[2, 3], "
            "float32[8, 3], float32[8, 2], float32[8], float32[4]",
        ),
        (
            "flexasr.max_pool",
            [(3, 4)],
            {},
            "flexasr.max_pool must be given an even number of rows, not float32[3, 4]",
        ),
        (
            "hlscnn.conv2d",
            [(1, 3, 5, 5), (4, 2, 3, 3)],
            {"stride_h": 1, "stride_w": 1},
            "hlscnn.conv2d must be given x [N, C, H, W] and w [F, C, kh, kw], not float32[1, 3, 5, 5], "
            "float32[4, 2, 3, 3]",
        ),
        (
            "vta.dense",
            [(2, 3), (3,)],
            {},
            "vta.dense must be given float32 tensors with 2, 2 axes, not float32[2, 3], float32[3]",
        ),
    ],
)
def test_operands_that_do_not_fit(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, object], message: str
) -> None:
    with pytest.raises(GraphError) as error:
        computed(operator, drawn(*shapes), **attributes)
    assert str(error.value) == message


def test_elements_of_another_type_are_refused() -> None:
    b = Builder()
    x = b.input("x", TensorType("float64", (2, 4)))
    with pytest.raises(
        GraphError, match=r"^flexasr.mean_pool must be given float32 tensors with 2 axes, not float64\[2, 4\]$"
    ):
        b.add("flexasr.mean_pool", x)


def test_operators_name_mappings_that_there_are() -> None:
    assert sum(len(backend.operators) for backend in EVERY) == len(OPERATORS)
    for name, operator in OPERATORS.items():
        assert accelerator_operator(name) is operator
        assert {mapping.name for mapping in operator.mappings} <= set(mappings())
        assert set(operator.bounds) <= set(operator.mappings)
        assert bool(operator.bounds) == (operator.code is not None)
    assert accelerator_operator("matmul") is accelerator_operator("tpu.dense") is None

    def mappings_of(operator: str, chosen: dict[str, int], **attributes: object) -> tuple[object, ...]:
        return OPERATORS[operator].mappings_for(attributes, Options(chosen=chosen))

    assert mappings_of("flexasr.linear", {}, activation="none") == (LINEAR["none"],)
    assert mappings_of("flexasr.linear", {}, activation="tanh") == (LINEAR["tanh"],)
    assert mappings_of("hlscnn.conv2d", {}) == (CONVOLUTIONS[8],)
    assert mappings_of("hlscnn.conv2d", {"weight_bits": 16}) == (CONVOLUTIONS[16],)
    assert mappings_of("vta.dense", {}) == (GEMM, DENSE)


def test_two_operators_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match=r"^an operator's name must be its own; vta.dense is taken: rename"):
        AcceleratorOperator("vta.dense", "another", range(1, 2), expand=lambda b, of, a: of[0], mappings=(GEMM,))


def test_bounds_are_of_operators_whose_theorem_is_about_a_kernel_that_is_run() -> None:
    """A theorem on another mapping's kernel proves nothing of a program's result."""
    own, foreign = LINEAR["none"], CONVOLUTIONS[16]
    operator = accelerator_operator("flexasr.linear")
    assert operator is not None
    assert operator.theorems(own) == {"FlexASR linear"}
    bounds = {own: (machines.CONVOLUTIONS[16], machines.DENSE["none"]), foreign: (machines.CONVOLUTIONS[16],)}
    other = replace(operator, name="tried.with_bounds_of_others", bounds=bounds)
    assert not other.theorems(own)
    assert other.theorems(foreign) == {"HLSCNN conv2d, weights of 16 bits"}
    named = replace(machines.CONVOLUTIONS[16], example={})  # an operator of somebody's own with the name of a claim
    assert not replace(operator, name="tried.with_a_bound_of_its_own", bounds={foreign: (named,)}).theorems(foreign)
