"""Forms of errors: spectral norms, roundings of matrices, and networks whose devices err as badly as a search finds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ir_semantics.graph import Builder, Graph, TensorType
from rewrites.compiler.codegen import Bounds
from rewrites.compiler.composition import of_ranges
from rewrites.compiler.composition.forms import Atom, Matrix, divided, spectral_norm, within
from rewrites.compiler.composition.of_ranges import in_ranges

OWN, CHANGE, WEIGHTS, RANGE = 0.01, 0.02, 0.005, 4.0
SIZES = (1, 2, 6, 6)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e150])
def test_a_spectral_norm_is_bounded_from_above_and_closely(scale: float) -> None:
    draw = np.random.default_rng(3)
    rank_one = np.outer(draw.normal(size=40), draw.normal(size=7))
    orthogonal = np.linalg.qr(draw.normal(size=(30, 30)))[0]
    for matrix in (rank_one, orthogonal, draw.normal(size=(50, 90)), np.eye(1), np.diag([1.0, 1e-160])):
        true = float(np.linalg.norm(matrix, 2))
        assert true * (1 - 1e-12) <= spectral_norm(matrix * scale) / scale <= 1.3 * true
    assert spectral_norm(np.zeros((2, 3))) == 0


def test_a_spectral_norm_of_numbers_below_the_normal_ones_is_no_smaller() -> None:
    for seed in range(20):
        matrix = np.random.default_rng(seed).normal(size=(5, 5)) * 2.0**-1060
        true = np.linalg.norm(np.ldexp(matrix, 1000), 2)
        assert np.ldexp(spectral_norm(matrix), 1000) >= true * (1 - 1e-12)


def test_a_part_that_is_no_number_is_not_lost() -> None:
    part, other = (Atom.of(np.ones(2)) for _ in range(2))
    with np.errstate(invalid="ignore"):
        form = {part: Matrix(np.full((2, 2), np.nan)), other: Matrix(np.eye(2))}
        for order in (form, dict(reversed(form.items()))):
            assert {part, other} == set(divided(order, (2,)).large)


def test_what_float64_rounds_of_a_matrix_is_within_what_is_carried_along() -> None:
    draw = np.random.default_rng(4)
    matrix, exact = Matrix(np.eye(5)), np.array([[Fraction(int(i == j)) for j in range(5)] for i in range(5)])
    for _ in range(4):
        factor = draw.normal(size=(5, 5))
        matrix = matrix.moved(matrix.images @ factor, float(np.linalg.norm(factor)), 5)
        exact = exact @ np.vectorize(Fraction)(factor)
    apart = sum((Fraction(float(m)) - e) ** 2 for m, e in zip(matrix.images.flat, exact.flat, strict=True))
    assert 0 < apart <= Fraction(matrix.off) ** 2
    assert matrix.off < 1e-10


def test_elements_and_lengths_of_a_vector_are_within_its_bounds() -> None:
    """Corners of boxes, and vectors of the greatest length in the worst direction."""
    draw = np.random.default_rng(5)
    matrix = draw.normal(size=(6, 9))
    corners = np.sign(draw.normal(size=(500, 6))) * 0.5
    known = within({Atom.of(np.full(6, 0.5)): Matrix(matrix)}, (9,))
    results = corners @ matrix
    assert (np.abs(results) <= known.elements).all() and (np.linalg.norm(results, axis=1) <= known.length).all()
    assert (np.abs(np.sign(matrix.T) @ matrix * 0.5).max(axis=0) >= known.elements * 0.99).all()
    short = within({Atom.of(np.full(6, 0.5), 0.7): Matrix(matrix)}, (9,))
    values = np.linalg.svd(matrix.T)[1]
    assert values[0] * 0.7 <= short.length <= values[0] * 0.8
    assert (short.elements <= known.elements).all() and (short.elements >= np.linalg.norm(matrix, axis=0) * 0.7).all()


@dataclass
class Device:
    """Convolves with filters that are off, on operands that are off; results are off, too."""

    node: Any
    types: Any
    filters: np.ndarray
    operands: tuple[str, ...] = ("x", "w")

    @property
    def options(self) -> Any:
        return SimpleNamespace(margin=1.0)

    def bounds_in(self, ranges: Any) -> Bounds:
        return Bounds(OWN, None)

    def rounding(self, name: str, magnitude: float) -> float:
        return CHANGE

    def constant_of(self, name: str) -> np.ndarray:
        return self.filters


def network(draw: np.random.Generator, blocks: int) -> tuple[Graph, list[np.ndarray]]:
    """A convolution, and residual blocks of two."""
    builder, filters = Builder(), list[np.ndarray]()

    def convolved(x: int) -> int:
        filters.append(draw.normal(size=(2, 2, 3, 3)).astype(np.float32) * np.float32(0.3))
        padded = builder.add("pad", x, builder.constant(np.float32(0)), before=[0, 0, 1, 1], after=[0, 0, 1, 1])
        attributes = {"groups": 1, "strides": [1, 1], "dilations": [1, 1], "pads": [[0, 0], [0, 0]]}
        return builder.add("conv", padded, builder.constant(filters[-1]), **attributes)

    at = builder.add("relu", convolved(builder.input("x", TensorType("float32", SIZES))))
    for _ in range(blocks):
        inner = builder.add("relu", convolved(at))
        at = builder.add("relu", builder.add("add", at, convolved(inner)))
    return builder.graph({"y": at}), filters


def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Of the oracle: with a border of zeros."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, w)


def run(x: np.ndarray, filters: list[np.ndarray], off: list[np.ndarray] | None) -> np.ndarray:
    """The network in float64; ``off`` are errors of operands, of filters and of results in turn."""
    errors = iter(off or [np.zeros(())] * (3 * len(filters)))

    def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return convolution(x + next(errors), w + next(errors)) + next(errors)

    x = np.maximum(convolved(x, filters[0]), 0)
    for first, second in zip(filters[1::2], filters[2::2], strict=True):
        x = np.maximum(x + convolved(np.maximum(convolved(x, first), 0), second), 0)
    return x


@pytest.mark.parametrize("seed", range(2))
def test_no_error_that_a_search_finds_is_beyond_the_bound(seed: int) -> None:
    """Errors climb one block of signs at a time; inputs are corners of the range, of which errors do not leave it."""
    draw = np.random.default_rng(seed)
    graph, filters = network(draw, 2)
    wrong = [w + WEIGHTS * np.sign(draw.normal(size=w.shape)) for w in filters]
    nodes = [i for i, node in enumerate(graph.nodes) if node.operator == "conv"]
    made = {
        i: Device(graph.nodes[i], [graph.nodes[j].type for j in graph.nodes[i].operands], w)
        for i, w in zip(nodes, wrong, strict=True)
    }
    calibration = {i: {"x": RANGE} for i in nodes}
    (bound,) = in_ranges(graph, cast(Any, made), calibration)
    assert bound.bound is not None
    found = 0.0
    for _ in range(3):
        x = draw.choice([-RANGE, RANGE], size=SIZES) * 0.1
        off = []
        for w, other in zip(filters, wrong, strict=True):
            off += [CHANGE * np.sign(draw.normal(size=SIZES)), other - w, OWN * np.sign(draw.normal(size=SIZES))]
        reference, best = run(x, filters, None), 0.0
        for step in range(60):
            k = [0, 2][step % 2] + 3 * int(draw.integers(len(filters)))
            tried = list(off)
            tried[k] = off[k] * np.where(draw.random(SIZES) < 0.1, -1, 1)
            error = float(np.abs(run(x, filters, tried) - reference).max())
            if error >= best:
                best, off = error, tried
        found = max(found, best)
    assert 0 < found <= bound.bound <= 300 * found
    (by_elements,) = without_forms(graph, made, calibration)
    assert bound.bound < by_elements.bound


def without_forms(graph: Graph, made: Any, calibration: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_ranges._Known, "bounds", property(lambda k: SimpleNamespace(elements=k.error, length=np.inf)))
        return in_ranges(graph, made, calibration)


def through(operator: str, *known: of_ranges._Known) -> np.ndarray:
    """What an operator of vectors of two elements makes of errors."""
    builder, of = Builder(), TensorType("float32", (2,))
    node = builder.node(builder.add(operator, *(builder.input(f"x{k}", of) for k in range(len(known)))))
    return of_ranges._passed(node, [of] * len(known), known, 0.0, of_ranges._Writer([])).bounds.elements


def test_a_small_part_of_an_error_counts_where_it_is_the_only_one() -> None:
    large, small = Atom.of(np.array([1.0])), Atom.of(np.array([1e-3]))
    form = {large: Matrix(np.array([[1.0, 0.0]])), small: Matrix(np.array([[0.0, 1.0]]))}
    errors = through("relu", of_ranges._Known(np.array([1.0, 1e-3]), np.ones(2), None, form))
    assert (errors >= [1.0, 1e-3]).all() and (errors <= [1.01, 1.01e-3]).all()


@pytest.mark.parametrize("operator, sign", [("add", 1.0), ("sub", -1.0)])
@pytest.mark.parametrize("factor", [-1.0, 0.5, 1.0])
def test_parts_of_one_error_add_up_with_their_signs(operator: str, sign: float, factor: float) -> None:
    atom, ones = Atom.of(np.array([2.0, 3.0])), np.ones(2)
    first, second = (
        of_ranges._Known(atom.elements * abs(f), ones, None, {atom: Matrix(np.eye(2) * f)}) for f in (1.0, factor)
    )
    errors = through(operator, first, second)
    true = abs(1 + sign * factor) * atom.elements
    assert (errors >= true).all() and (errors <= true * 1.001 + 1e-9).all()
