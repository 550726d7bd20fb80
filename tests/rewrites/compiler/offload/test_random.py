"""Random layers are offloaded to random accelerators, and compute the same on whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ilaverify.catalogue import backends, find_backends
from ir_semantics.graph import Builder, Graph, TensorType, run
from ir_semantics.graph.words import apply
from rewrites.compiler.offload.compiler import offload
from rewrites.compiler.offload.settings import Settings
from tests.rewrites.compiler.offload.offload_gates import gate

ALL = gate()
TARGET_LISTS = st.lists(st.sampled_from(sorted(backends())), min_size=1, max_size=3, unique=True)


def whole(draw: st.DrawFn, *shape: int) -> np.ndarray:
    return np.random.default_rng(draw(st.integers(0, 999))).integers(-2, 3, shape).astype(np.float32)


@st.composite
def convolutions(draw: st.DrawFn) -> Graph:
    """One convolution of any form, with or without bias, normalisation by powers of two, and relu."""
    b = Builder()
    n, groups, c, o = (draw(st.integers(1, most)) for most in (2, 5, 2, 2))
    kernel, strides, dilations = ([draw(st.integers(1, most)) for _ in range(2)] for most in (3, 3, 2))
    pads = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(2))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    extents = [max(1, span - sum(p)) + draw(st.integers(0, 3)) for span, p in zip(spans, pads, strict=True)]
    x = b.input("x", TensorType("float32", (n, groups * c, *extents)))
    w = b.constant(whole(draw, groups * o, c, *kernel))
    if draw(st.booleans()):
        w = b.input("w", b.type(w))
    y = b.add("conv", x, w, strides=strides, dilations=dilations, pads=pads, groups=groups)
    outputs = groups * o
    if draw(st.booleans()):
        bias = b.constant(whole(draw, 1, outputs, 1, 1))
        y = apply(b, "add", *((y, bias) if draw(st.booleans()) else (bias, y)))
    if draw(st.booleans()):
        vectors = [b.constant(whole(draw, outputs)) for _ in range(3)]
        variance = b.constant(4.0 ** np.random.default_rng(1).integers(-1, 2, outputs).astype(np.float32))
        y = b.add("batch_norm", y, *vectors, variance, epsilon=0.0)
    return b.graph({"y": b.add("relu", y) if draw(st.booleans()) else y})


@st.composite
def dense_layers(draw: st.DrawFn) -> Graph:
    """A product of matrices with a bias on either side, through a reshape or not, with an exact activation."""
    b = Builder()
    batch, rows, inner, outputs = (draw(st.integers(1, 4)) for _ in range(4))
    x = b.input("x", TensorType("float32", (batch * rows, inner)))
    w = b.constant(whole(draw, inner, outputs))
    if draw(st.booleans()):
        w = b.add("transpose", b.input("w", TensorType("float32", (outputs, inner))), permutation=(1, 0))
    y = b.add("matmul", x, w)
    if draw(st.booleans()):
        y = b.add("reshape", y, shape=(batch, rows, outputs))
    if draw(st.booleans()):
        bias = b.constant(whole(draw, outputs))
        y = apply(b, "add", *((y, bias) if draw(st.booleans()) else (bias, y)))
    return b.graph({"y": b.add("relu", y) if draw(st.booleans()) else y})


def agree(graph: Graph, targets: list[str], flexible: bool) -> None:
    found = offload(graph, ALL, find_backends(targets), Settings(flexible=flexible))
    if flexible and {"flexasr", "vta"} & set(targets):
        assert found.invocations and not {"conv", "matmul"} & set(found.graph.operators())
    draw = np.random.default_rng(7)
    inputs = {n: draw.integers(-2, 3, graph.nodes[i].type.shape).astype(np.float32) for n, i in graph.inputs.items()}
    # whole numbers, halves and quarters below 2^20, with square roots of powers of 4: every operation is exact
    np.testing.assert_array_equal(run(found.graph, inputs)["y"], run(graph, inputs)["y"])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(convolutions(), dense_layers()), TARGET_LISTS, st.booleans())
def test_random_layers(graph: Graph, targets: list[str], flexible: bool) -> None:
    agree(graph, targets, flexible)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(convolutions(), dense_layers()), TARGET_LISTS, st.booleans())
def test_many_random_layers(graph: Graph, targets: list[str], flexible: bool) -> None:
    agree(graph, targets, flexible)
