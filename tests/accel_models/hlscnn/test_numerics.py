"""The arithmetic against exact fractions, and what follows from the published formats."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import HlscnnOptions, Rounding
from ila_lang import compile_function
from tests.accel_models.hlscnn.oracle import to_word

WORDS = st.integers(-(1 << 15), (1 << 15) - 1)
ROUNDINGS = get_args(Rounding)


def signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


@given(WORDS, WORDS, st.integers(0, 15), st.integers(0, 15), st.integers(0, 30))
def test_products_are_cut_to_the_fraction_of_partial_sums(w: int, a: int, wf: int, af: int, pf: int) -> None:
    options = HlscnnOptions(
        weight_bits=16, weight_fraction=wf, activation_fraction=af, output_fraction=0, psum_fraction=pf, psum_bits=48
    )
    product = compile_function(arithmetic(options).product)(w % 2**16, a % 2**16)
    exact = Fraction(w * a, 2 ** (wf + af))
    assert Fraction(signed(product, 48), 2**pf) <= exact < Fraction(signed(product, 48) + 1, 2**pf) or (
        abs(exact) * 2**pf >= 2**47
    )


def test_published_partial_sums_cannot_overflow() -> None:
    product = compile_function(arithmetic(HlscnnOptions()).product)
    assert 8 * signed(product(0x8000, 0x8000), 32) == 1 << 28
    assert 8 * signed(product(0x8000, 0x7FFF), 32) == -(1 << 28) + (1 << 13)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("dropped", [0, 1, 2, 9])
def test_conversions(rounding: Rounding, saturate: bool, dropped: int) -> None:
    # every partial sum of a range that holds all remainders, both ends of the words, and overflows
    options = HlscnnOptions(
        output_fraction=7,
        psum_fraction=7 + dropped,
        tap_rounding=rounding,
        store_rounding=rounding,
        overflow="saturate" if saturate else "wrap",
    )
    ops = arithmetic(options)
    near = range(-3 * 2**dropped - 1, 3 * 2**dropped + 2)
    ends = [2 ** (15 + dropped) * sign + n for sign in (-2, -1, 1, 2) for n in near]
    values = np.array([*near, *ends, 2**31 - 1, -(2**31)])
    for function in (ops.requantise, ops.stored):
        found = compile_function(function, vector=True)(values % 2**32)
        wanted = [to_word(Fraction(int(v), 2 ** (7 + dropped)), 7, rounding, saturate) for v in values]
        assert [signed(int(x), 16) for x in found] == wanted


@given(WORDS, WORDS, WORDS, st.integers(0, 15), st.integers(0, 15))
def test_totals_are_exact(partial: int, old: int, bias: int, wf: int, of: int) -> None:
    options = HlscnnOptions(weight_bits=16, weight_fraction=wf, output_fraction=of, psum_bits=48)
    total = compile_function(arithmetic(options).total)(partial % 2**16, old % 2**16, bias % 2**16)
    exact = Fraction(partial + old, 2**of) + Fraction(bias, 2**wf)
    assert Fraction(signed(total, 48), 2**16) == exact


@given(WORDS)
def test_rectification(value: int) -> None:
    rectify = compile_function(arithmetic(HlscnnOptions()).rectify)
    assert signed(rectify(value % 2**32), 32) == max(value, 0)


def test_primitives_are_made_once_per_format() -> None:
    usual, other = arithmetic(HlscnnOptions()), arithmetic(HlscnnOptions(coordinates="valid", weight_bits=16))
    assert all(one is same for one, same in zip(vars(usual).values(), vars(other).values(), strict=True))
    assert usual.total is not arithmetic(HlscnnOptions(output_fraction=4)).total


def test_readings_that_a_claim_compares_differ_in_the_names_of_what_differs() -> None:
    usual, cut = arithmetic(HlscnnOptions()), arithmetic(HlscnnOptions(tap_rounding="truncate"))
    assert (usual.product, usual.stored) == (cut.product, cut.stored)
    assert (usual.requantise.name, cut.requantise.name) == ("hlscnn_requantise_half_up", "hlscnn_requantise")
    saturating = arithmetic(HlscnnOptions(overflow="saturate"))
    assert {usual.stored.name, saturating.stored.name} == {"hlscnn_stored", "hlscnn_stored_saturating"}
