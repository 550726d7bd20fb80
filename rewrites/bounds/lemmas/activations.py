"""Lemmas on FlexASR's piecewise linear functions, against enclosures of the true ones.

Errors are compared in units of 2^-30 (:data:`~.enclosures.SCALE`), with the enclosure's width counted as error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from accel_models.flexasr import functions
from ila_lang import Expr, Function, bv, const, var
from rewrites.bounds.kernel.constants import (
    EXP_ERROR,
    EXP_VANISHES,
    INV_SQRT_ERROR,
    LEAST_RADICAND,
    SIGMOID_B_ERROR,
    SIGMOID_ERROR,
    TANH_ERROR,
)

from .enclosures import SCALE, exp_minus, logistic, tanh
from .lemma import Every, Lemma, Statement, Words, blocks, signed

_Q14, _Q20 = 14, 20


def _near(enclosure: Callable[[Words, int], tuple[Words, Words]], allowed: Fraction) -> Callable[[Function], Every]:
    """All arguments of 20 bits against an enclosure of the true function."""

    def error(result: Words, x: Words) -> tuple[Words, Words]:
        low, high = enclosure(x, _Q14)
        got = signed(result, 20) << (SCALE - _Q14)
        return np.maximum(high - got, got - low), np.full_like(x, int(allowed * (1 << SCALE)))

    return lambda _: Every(lambda: blocks(-(1 << 19), 1 << 19), error)


def _exponential(_: Function) -> Every:
    def arguments() -> Iterable[tuple[Words, ...]]:
        return ((-k,) for (k,) in blocks(0, (8 << _Q20) + 1))

    def error(result: Words, x: Words) -> tuple[Words, Words]:
        low, high = exp_minus(-x, _Q20)
        got = result << (SCALE - _Q20)
        off = np.maximum(high - got, got - low)
        off = np.where(x == -8 << _Q20, np.maximum(off, high), off)  # the tail's lemma needs that e^-8 is below e
        return off, np.full_like(x, int(EXP_ERROR * (1 << SCALE)))

    return Every(arguments, error)


def _tail(function: Function, below: int, most: int) -> Statement:
    x = var("x", bv(32))
    return Statement((x,), (x.sle(-below << _Q20 & 0xFFFFFFFF),), function(x) <= const(most, 32))


def _inverse_root(_: Function) -> Every:
    """r sqrt(x) lies in 1 - e .. 1 + e exactly where r^2 x lies between the squares, with r > 0."""
    one = 1 << 3 * _Q14  # r^2 x in units of 2^-42
    low, high = ((1 + s * INV_SQRT_ERROR) ** 2 * one for s in (-1, 1))
    least, most = -(-low.numerator // low.denominator), high.numerator // high.denominator

    def error(result: Words, x: Words) -> tuple[Words, Words]:
        r = signed(result, 20)
        square = r * r * x  # below 2^58
        off = np.where(square > one, square - one, one - square)
        allowed = np.where(square > one, most - one, one - least)
        return np.where(r > 0, off, np.iinfo(np.int64).max), allowed

    return Every(lambda: blocks(int(LEAST_RADICAND * (1 << _Q14)), 1 << 20), error)


def _relu(_: Function) -> Every:
    def error(result: Words, x: Words) -> tuple[Words, Words]:
        return np.abs(signed(result, 20) - np.maximum(x, 0)), np.zeros_like(x)

    return Every(lambda: blocks(-(1 << 19), 1 << 19), error)


def _tail_small(function: Function) -> Statement:
    return _tail(function, 8, int(EXP_ERROR * (1 << _Q20)))


def _tail_zero(function: Function) -> Statement:
    return _tail(function, EXP_VANISHES, 0)


def _at_most_one(function: Function) -> Statement:
    x: Expr = var("x", bv(32))
    return Statement((x,), (x.sle(0),), function(x) <= const(1022 << 10, 32))


_ALL = "every number of 20 bits"

LEMMAS: tuple[Lemma, ...] = (
    Lemma("relu", functions.relu, "v(result) = max(v(x), 0)", _ALL, _relu),
    Lemma(
        "sigmoid",
        functions.sigmoid,
        "|v(result) - 1 / (1 + e^-v(x))| <= e",
        _ALL,
        _near(logistic, SIGMOID_ERROR),
        {"e": SIGMOID_ERROR},
    ),
    Lemma(
        "sigmoid of ac_math 3.4",
        functions.sigmoid_b,
        "|v(result) - 1 / (1 + e^-v(x))| <= e",
        _ALL,
        _near(logistic, SIGMOID_B_ERROR),
        {"e": SIGMOID_B_ERROR},
    ),
    Lemma(
        "tanh",
        functions.tanh,
        "|v(result) - tanh(v(x))| <= e",
        _ALL,
        _near(tanh, TANH_ERROR),
        {"e": TANH_ERROR},
    ),
    Lemma(
        "inverse root",
        functions.inv_sqrt,
        "|v(result) sqrt(x) - 1| <= e and v(result) > 0",
        "x unsigned, 17 2^-14 <= x < 64; below, the result may wrap",
        _inverse_root,
        {"e": INV_SQRT_ERROR},
    ),
    Lemma(
        "exponential",
        functions.exp,
        "|v(result) - e^v(x)| <= e",
        "-8 <= x <= 0",
        _exponential,
        {"e": EXP_ERROR},
    ),
    Lemma(
        "exponential, tail",
        functions.exp,
        "0 <= v(result) <= e; so is e^v(x), which is below e^-8 < e",
        "x <= -8",
        _tail_small,
        {"e": EXP_ERROR},
    ),
    Lemma("exponential vanishes", functions.exp, "v(result) = 0", "x <= -16", _tail_zero),
    Lemma("exponential is below 1", functions.exp, "v(result) <= 1022/1024", "x <= 0", _at_most_one),
)
"""The lemmas of this module."""
