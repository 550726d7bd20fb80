"""Scalar operators on arrays against their concrete meaning, one value at a time."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ir_semantics.scalars.arrays import DTYPES, apply_to_arrays, literal_of, run_scalar
from ir_semantics.scalars.concrete import evaluate, same_value
from ir_semantics.scalars.formats import INTEGERS as INTEGERS_ALL
from ir_semantics.scalars.formats import REALS
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import NotInterpreted, apply, cast, constant, variable

X, Y = variable("x"), variable("y")

EXACT = ["neg", "abs", "add", "sub", "mul", "maximum", "minimum", "maxnum", "minnum", "lt", "le", "eq", "same"]
EXACT += ["is_nan", "is_finite", "floor", "ceil", "trunc", "round", "remainder", "unsigned_zero"]
ON_FLOATS = [*EXACT, "div", "sqrt"]
ON_INTEGERS = [
    *EXACT,
    "quotient",
    "floor_quotient",
    "shift_left",
    "shift_right",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bit_not",
]

FLOATS = [0.0, -0.0, 1.0, 1.5, -2.5, 0.1, -7.25, 65504.0, 6e-8, math.inf, -math.inf, math.nan]
INTEGERS = [0, 1, 3, 7, 8, 100, 127, -1, -2, -8, -127, -128]


def pairs(values: list[Any], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    left, right = zip(*itertools.product(values, values), strict=True)
    return np.array(left, dtype), np.array(right, dtype)


def term(op: str) -> Any:
    return apply(op, X) if OPERATORS[op].arity == 1 else apply(op, X, Y)


@pytest.mark.parametrize("op", ON_FLOATS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_are_the_concrete_meaning(op: str, dtype: str) -> None:
    x, y = pairs(FLOATS, dtype)
    result = run_scalar(term(op), {"x": x, "y": y}, dtype)
    for a, b, r in zip(x.tolist(), y.tolist(), result.tolist(), strict=True):
        expected = evaluate(term(op), {"x": a, "y": b}, DTYPES[dtype])
        assert same_value(expected, r), f"{op}({a}, {b}) must be {expected}, not {r}"


@pytest.mark.parametrize("op", ON_INTEGERS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integers_are_the_concrete_meaning(op: str, dtype: str) -> None:
    values = INTEGERS if dtype == "int8" else [v % 256 for v in INTEGERS]
    x, y = pairs(values, dtype)
    result = run_scalar(term(op), {"x": x, "y": y}, dtype)
    for a, b, r in zip(x.tolist(), y.tolist(), result.tolist(), strict=True):
        expected = evaluate(term(op), {"x": a, "y": b}, DTYPES[dtype])
        assert expected == r, f"{op}({a}, {b}) must be {expected}, not {r}"


@pytest.mark.parametrize("source", ["float32", "float16", "int16", "uint8", "int8", "bool"])
@pytest.mark.parametrize("target", ["float32", "float16", "int16", "uint8", "int8"])
def test_casts_are_the_concrete_meaning(source: str, target: str) -> None:
    given = FLOATS if source.startswith("float") else [v % 256 if source == "uint8" else v for v in INTEGERS]
    x = np.array([True, False]) if source == "bool" else np.array(given, source)
    v = variable("x", DTYPES[source])
    result = run_scalar(cast(v, DTYPES[target]), {"x": x}, source)
    for a, r in zip(x.tolist(), result.tolist(), strict=True):
        expected = evaluate(cast(v, DTYPES[target]), {"x": a})
        assert same_value(expected, r), f"{source} {a} as {target} must be {expected}, not {r}"


def test_floats_saturate_to_integers_of_64_bits() -> None:
    x = np.array([2.0**63, 2.0**62, -(2.0**63), -(2.0**64), math.inf, math.nan])
    assert run_scalar(cast(X, DTYPES["int64"]), {"x": x}, "float64").tolist() == [
        2**63 - 1, 2**62, -(2**63), -(2**63), 2**63 - 1, 0,
    ]  # fmt: skip
    assert run_scalar(cast(X, DTYPES["uint64"]), {"x": x}, "float64").tolist() == [2**63, 2**62, 0, 0, 2**64 - 1, 0]


def test_powers_of_integers() -> None:
    base, exponent = np.array([2, -1, -1, 1, 3, 0], np.int32), np.array([-1, -3, -2, -5, 4, -2], np.int32)
    assert run_scalar(apply("pow", X, Y), {"x": base, "y": exponent}, "int32").tolist() == [0, -1, 1, 1, 81, 0]


def test_remainders_and_exact_numbers() -> None:
    x, y = Fraction(-7, 2), Fraction(3, 2)
    assert evaluate(apply("remainder", X, Y), {"x": x, "y": y}, REALS) == Fraction(-1, 2)
    assert evaluate(apply("remainder", X, Y), {"x": -7, "y": 0}, INTEGERS_ALL) == -7
    with pytest.raises(NotInterpreted, match=r"^a real number divided by 0 has no value$"):
        evaluate(apply("remainder", X, Y), {"x": x, "y": Fraction(0)}, REALS)


def test_infinities_are_the_extreme_integers() -> None:
    assert [int(literal_of(v, "int8")) for v in (math.inf, -math.inf)] == [127, -128]
    assert bool(literal_of(math.inf, "bool")) and not bool(literal_of(-math.inf, "bool"))


def test_what_a_type_does_not_have_is_refused() -> None:
    with pytest.raises(NotInterpreted, match=r"^elements of the type int8 have no operator exp$"):
        apply_to_arrays("exp", [np.zeros(1, np.int8)])
    with pytest.raises(NotInterpreted, match=r"^300 is not representable in uint8; use a wider type$"):
        run_scalar(X + 300, {"x": np.zeros(1, np.uint8)}, "uint8")
    with pytest.raises(NotInterpreted, match=r"^1/2 is not representable in int8; use a type of floats$"):
        run_scalar(X + constant(0.5), {"x": np.zeros(1, np.int8)}, "int8")
    with pytest.raises(ValueError, match=r"^the operand x must be of the type int8, not int16$"):
        run_scalar(X, {"x": np.zeros(1, np.int16)}, "int8")
