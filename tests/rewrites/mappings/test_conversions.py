"""Conversions between tensors of the graph and of codes: proofs, faults of the host's loops, and runs beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accel_models.flexasr.floats import EXPONENT_AT_0
from accel_models.flexasr.quantise import dequantise, quantise
from ila_lang import BOOL, Function, bv, const, var
from ila_lang.mapping import SizeError, TensorMapping
from ila_lang.streams.programs import Program
from ila_lang.streams.simulator import Simulator
from rewrites.mappings.conversions import TARGET, ConversionClaim, axis_sizes, conversion_claim
from rewrites.mappings.flexasr.claims import READ, ROUND
from rewrites.mappings.hlscnn import claims as hlscnn
from rewrites.mappings.vta import claims as vta
from tests.marks import slow_but
from tests.rewrites.mappings.mapping_checks import changed, require_proved, require_refuted, require_unproved

CLAIMS = {"round": ROUND, "read": READ}
FIXED = {c.name: c for c in (vta.ROUND, vta.ROUND_BIAS, vta.READ, hlscnn.ROUND, hlscnn.READ)}
S = {name: var(name, bv(32)) for name in ROUND.mapping.parameters}
ZERO = const(0, 32)
FAULTS: dict[str, Callable[[TensorMapping], TensorMapping]] = {
    "every part begins where the tensor does": lambda m: changed(m, "host_y", {S["first1"]: ZERO}),
    "a halo begins one row too late": lambda m: changed(m, "host_y", {S["first1"]: S["first1"] + 1}),
    "one zero too many before x": lambda m: changed(m, "host_y", {S["before2"]: S["before2"] + 1}),
    "no zeros below x": lambda m: changed(m, "host_y", {S["X1"]: S["X1"] + 1}),
    "no zeros to the right of x": lambda m: changed(m, "host_y", {S["X2"] + S["before2"]: S["X2"] + S["before2"] + 1}),
    "x is transposed": lambda m: changed(m, "host_y", {S["X2"]: S["X1"], S["X1"]: S["X2"]}),
    "y is transposed": lambda m: changed(m, "host_y", {S["Y2"]: S["Y1"]}),
    "y is as wide as the box": lambda m: changed(m, "host_y", {S["Y2"]: S["count2"]}),
    "another format": lambda m: changed(m, "host_y", {S["exponent"]: S["exponent"] + 1}),
    "the box is put where y begins": lambda m: changed(m, "host_y", {S["place1"]: ZERO}),
    "the last column is not written": lambda m: changed(m, "box2", {S["count2"]: S["count2"] - 1}),
    "the last row is not written": lambda m: changed(m, "box1", {S["count1"]: S["count1"] - 1}),
    "a column beyond the box is written": lambda m: changed(m, "box2", {S["count2"]: S["count2"] + 1}),
    "a row beyond the box is written": lambda m: changed(m, "box1", {S["count1"]: S["count1"] + 1}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("claim", CLAIMS)
def test_a_fault_is_refuted_by_a_run_that_replays(claim: str, fault: str) -> None:
    require_refuted(FAULTS[fault](CLAIMS[claim].mapping))


@pytest.mark.parametrize("fault", slow_but(["a column beyond the box is written"], FAULTS))
@pytest.mark.parametrize("claim", CLAIMS)
def test_a_fault_is_not_proved_for_every_size(claim: str, fault: str) -> None:
    require_unproved(FAULTS[fault](CLAIMS[claim].mapping))


@pytest.mark.parametrize("claim", [*CLAIMS, *(pytest.param(c, marks=pytest.mark.slow) for c in FIXED)])
def test_it_is_proved_for_every_size(claim: str) -> None:
    require_proved({**CLAIMS, **FIXED}[claim].mapping)


@st.composite
def _axes(draw: st.DrawFn) -> dict[str, int]:
    """Sizes of both axes, with boxes that reach beyond x on both sides."""
    sizes = {}
    for axis in (1, 2):
        x, count, place, rest = (draw(st.integers(*ends)) for ends in ((1, 5), (1, 6), (0, 3), (0, 2)))
        sizes |= axis_sizes(axis, x=x, first=draw(st.integers(0, 6)), count=count, place=place, y=place + count + rest)
        sizes[f"before{axis}"] = draw(st.integers(0, 3))
    return sizes


def _expected(
    sizes: dict[str, int], x: NDArray[np.generic], y: NDArray[np.generic], of: Callable[[NDArray], NDArray]
) -> NDArray[np.generic]:
    """What NumPy's own indexing makes of the box: x between zeros, cut out, converted."""
    top, left, first, skipped = (sizes[n] for n in ("before1", "before2", "first1", "first2"))
    around = np.zeros((30, 30), y.dtype)
    around[top : top + x.shape[0], left : left + x.shape[1]] = of(x)
    result = y.copy()
    down, right, height, width = (sizes[n] for n in ("place1", "place2", "count1", "count2"))
    box = around[first : first + height, skipped : skipped + width]
    result[down : down + height, right : right + width] = box
    return result


def _run(claim: ConversionClaim, sizes: dict[str, int], x: NDArray, y: NDArray) -> NDArray:
    words = {"host_x": x.reshape(1, -1).copy(), "host_y": y.reshape(1, -1).copy()}
    program = Program.of(claim.mapping.device, sizes)
    program.run_in_place(Simulator(claim.mapping.device.ila), words)
    return words["host_y"].reshape(y.shape)


@given(_axes(), st.integers(0, 7), st.integers(-3, 3), st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_runs_are_those_of_numpy(sizes: dict[str, int], bias: int, scale: int, seed: int) -> None:
    sizes = {**sizes, "exponent": EXPONENT_AT_0 + bias + scale}
    ROUND.mapping.require(sizes)
    random = np.random.default_rng(seed)
    shapes = [(sizes[f"{n}1"], sizes[f"{n}2"]) for n in "XY"]
    numbers = (random.normal(size=shapes[0]) * 2.0 ** random.integers(-9, 9)).astype(np.float32)
    before = random.integers(0, 256, shapes[1]).astype(np.uint8)
    codes = _expected(sizes, numbers, before, lambda x: quantise(x * 2.0**-scale, bias).codes)
    assert np.array_equal(_run(ROUND, sizes, numbers.view(np.uint32), before), codes)
    x = random.integers(0, 256, shapes[0]).astype(np.uint8)
    old = random.normal(size=shapes[1]).astype(np.float32)
    read = _expected(sizes, x, old, lambda c: (dequantise(c, bias) * 2.0**scale).astype(np.float32))
    result = _run(READ, sizes, x, old.view(np.uint32)).view(np.float32)
    assert np.array_equal(result, read)


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"place1": 1}, "place1"),
        ({"count2": 4}, "place2"),
        ({"first1": (1 << 32) - 1}, "first1 <= 67108864"),
        ({"before2": 1 << 31}, "before2 <= 67108864"),
        ({"X1": 1 << 26, "X2": 1 << 26}, "X1"),
        ({"exponent": 248}, "exponent <= 247"),
    ],
)
def test_sizes_that_leave_a_tensor_or_wrap_are_refused(changes: dict[str, int], condition: str) -> None:
    axis = {"x": 3, "first": 0, "count": 3, "place": 0, "y": 3}
    sizes = {**axis_sizes(1, **axis), **axis_sizes(2, **axis), "exponent": EXPONENT_AT_0}
    ROUND.mapping.require(sizes)
    with pytest.raises(SizeError, match=condition):
        ROUND.mapping.require(sizes | changes)


IDENTITY = Function("same", {"x": bv(8), "exponent": bv(8)}, bv(8), None)
"""A function for conversions, of an element and a format."""
WIDE = Function("wide", {"x": bv(8), "X1": bv(8)}, bv(8), None)
TRUTH = Function("truth", {"x": BOOL}, bv(8), None)
FORMATS: Any = {"exponent": range(1, 5)}
RANGE = (
    "conversion mine: format exponent, of 8 bits, must be given a range of numbers from 0 to 255, in steps of 1 and "
)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            {"formats": {}},
            ValueError,
            "conversion mine: formats must be the parameters of same after the first, in order, ['exponent'], not []",
        ),
        (
            {"formats": {"bias": range(1, 5)}},
            ValueError,
            "conversion mine: formats must be the parameters of same after the first, in order, ['exponent'], not "
            "['bias']",
        ),
        (
            {"function": WIDE, "formats": {"X1": range(4)}},
            ValueError,
            "conversion mine: a format must not be called X1, which is a size of boxes; rename the parameter of wide",
        ),
        ({"formats": {"exponent": range(0)}}, ValueError, RANGE + "not empty, not range(0, 0)"),
        ({"formats": {"exponent": range(1000)}}, ValueError, RANGE + "not empty, not range(0, 1000)"),
        ({"formats": {"exponent": range(-1, 5)}}, ValueError, RANGE + "not empty, not range(-1, 5)"),
        ({"formats": {"exponent": range(0, 9, 2)}}, ValueError, RANGE + "not empty, not range(0, 9, 2)"),
        (
            {"formats": {"exponent": [1, 2]}},
            TypeError,
            "conversion mine: format exponent must be given a range, not [1, 2]",
        ),
        (
            {"formats": 5},
            TypeError,
            "conversion mine: formats must be a mapping from names to ranges, not 5",
        ),
        (
            {"function": str},
            TypeError,
            "conversion mine: its function must be a Function, such as @primitive makes, not <class 'str'>",
        ),
        (
            {"function": TRUTH},
            TypeError,
            "conversion mine: truth must take an element, and give one, of bit-vectors, not (bool) to bv8",
        ),
        ({"codes": "y"}, ValueError, "conversion mine: codes must be 'host_x' or 'host_y', not 'y'"),
        ({"axes": 0}, ValueError, "conversion mine: axes must be 2 or 3, not 0; a row is a matrix of one"),
        ({"axes": 1}, ValueError, "conversion mine: axes must be 2 or 3, not 1; a row is a matrix of one"),
        ({"axes": 4}, ValueError, "conversion mine: axes must be 2 or 3, not 4; a row is a matrix of one"),
    ],
)
def test_arguments_that_make_no_conversion(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"function": IDENTITY, "formats": FORMATS, "codes": TARGET, **given}
    with pytest.raises(kind) as refused:
        conversion_claim("mine", "a conversion", **arguments)
    assert str(refused.value) == message
    conversion_claim("mine", "a conversion", IDENTITY, FORMATS, codes=TARGET, axes=3).mapping  # noqa: B018
