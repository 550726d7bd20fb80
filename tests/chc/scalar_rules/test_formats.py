"""Accelerators' formats against the accelerators' own primitives."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr.numerics import value_of
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import HlscnnOptions
from chc.scalar_rules.formats import ADAPTIVFLOAT, CODES, FLEXASR_FIXED, hlscnn_output, hlscnn_product, hlscnn_psum
from ila_lang import compile_function
from ir_semantics.scalars.concrete import evaluate
from ir_semantics.scalars.machine import from_code, to_code
from ir_semantics.scalars.terms import cast, maximum, variable

ROUNDINGS = ("truncate", "toward_zero", "half_up", "half_even")
a, b = variable("a", ADAPTIVFLOAT), variable("b", ADAPTIVFLOAT)


@pytest.mark.parametrize("overflow", ["wrap", "saturate"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@settings(max_examples=60, deadline=None)
@given(psum=st.integers(-(2**31), 2**31 - 1) | st.integers(-(2**16), 2**16))
def test_conversions_are_hlscnns(rounding: str, overflow: str, psum: int) -> None:
    options = HlscnnOptions(tap_rounding=rounding, overflow=overflow)  # type: ignore[arg-type]
    term = cast(variable("p", hlscnn_psum(options)), hlscnn_output(options))
    value = evaluate(term, {"p": Fraction(psum, 2**options.psum_fraction)})
    code = compile_function(arithmetic(options).requantise)(psum & (2**32 - 1))
    assert to_code(value, hlscnn_output(options)) == code


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**15), 2**15 - 1))
def test_products_are_hlscnns(weight: int, activation: int) -> None:
    options = HlscnnOptions()
    exact = from_code(weight * activation & (2**32 - 1), hlscnn_product(options))
    term = cast(variable("p", hlscnn_product(options)), hlscnn_psum(options))
    code = compile_function(arithmetic(options).product)(weight & 0xFFFF, activation & 0xFFFF)
    assert to_code(evaluate(term, {"p": exact}), hlscnn_psum(options)) == code


def test_comparisons_and_values_of_adaptivfloat_codes() -> None:
    for p, q in itertools.product([0x00, 0x80, 0x01, 0xFF, 0x34], range(0, 256, 3)):
        values = {"a": p, "b": q}
        assert evaluate(a < b, values, codes=CODES) == (value_of(p) < value_of(q))
        assert evaluate(a.equals(b), values, codes=CODES) == (value_of(p) == value_of(q))
        largest = evaluate(maximum(a, b), values, codes=CODES)
        assert isinstance(largest, int)
        assert value_of(largest) == max(value_of(p), value_of(q))
    for p in range(256):
        assert evaluate(cast(a, FLEXASR_FIXED), {"a": p}, codes=CODES) == value_of(p)
