"""A convolution scattered to accumulators that the host clears before each channel: proved for every size, faults not.

Each fault differs from the right program in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ila_lang import Kernel, const, ite, true
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_scatter_add import NOTHING, ZERO, States, claim, multiply, status
from tests.chc.mapping.toy import M, N, differs, with_tables

TAPS = 3


def channels(k: Kernel, s: States) -> None:
    """dst[o, c] = sum over t < 3 of x[o - t] * w[t, c], where 0 <= o - t < n."""
    n, m = s["n"], s["m"]
    with k.loop("o", n + TAPS - 1) as o, k.loop("c", m) as c:
        acc = k.let("acc", NOTHING)
        with k.loop("t", const(TAPS, 32)) as t:
            inside = (t <= o) & (o - t < n)
            word = k.load("x_word", s["src"], ite(inside, o - t, ZERO))
            product = multiply(word, k.load("w_word", s["tmp"], t * m + c))
            k.assign(acc, acc + ite(inside, product, NOTHING))
        k.store(s["dst"], o * m + c, acc)


def scattered(fault: str, k: Kernel, s: States) -> None:
    n, m = s["n"], s["m"]
    length = n + TAPS - 1
    sums, taps = s["t0"], const(TAPS, 32)

    def clear(name: str) -> None:
        with k.loop(name, length - 1 if fault == "the last is not cleared" else length) as z:
            k.store(sums, z, NOTHING)

    if fault == "cleared once":
        clear("z_once")
    with k.loop("c", m) as c:
        if fault not in ("cleared once", "not cleared"):
            with k.when("clears", c == 0 if fault == "cleared for the first channel" else true):
                clear("z")
        elements = n - 1 if fault == "one element less" else n
        count = {"one tap more": taps + 1, "one tap less": taps - 1}.get(fault, taps)
        with k.loop("i", elements) as i, k.loop("t", count) as t:
            channel = ite(c == 0, c, c - 1) if fault == "the taps of the channel before" else c
            product = multiply(k.load("x", s["src"], i), k.load("w", s["t1"], t * m + channel))
            twice = ite((i + 1 == n) & (t == 0), product, NOTHING)
            value = product + twice if fault == "the last element twice" else product
            k.store(sums, i + t, k.load("old", sums, i + t) + value)
        with k.loop("o", length) as o:
            place = ite(o == 0, o, o - 1) if fault == "the sum before" else o
            k.store(s["dst"], o * m + c, k.load("result", sums, place))


FAULTS = (
    "cleared once",
    "not cleared",
    "cleared for the first channel",
    "the last is not cleared",
    "one element less",
    "one tap more",
    "one tap less",
    "the taps of the channel before",
    "the last element twice",
    "the sum before",
)


def of(fault: str = "") -> TensorMapping:
    made = replace(claim(channels, channels, N.zext(32) + TAPS - 1, M.zext(32)), inputs=(("src", "isrc"),))
    return replace(
        with_tables(made, partial(scattered, fault)),
        inputs=(("src", "isrc"), ("t1", "itmp")),
        abstract=frozenset({"multiply"}),
    )


SIZES = ({"n": 4, "m": 2}, {"n": 1, "m": 3}, {"n": 1, "m": 1})


def test_channels_one_after_the_other_are_proved_for_every_size() -> None:
    made = of()
    assert not any(differs(made, at, 4) for at in SIZES)
    assert status(made, second=True) is Status.PROVED


@pytest.mark.parametrize("fault", [FAULTS[0], *(pytest.param(f, marks=pytest.mark.slow) for f in FAULTS[1:])])
def test_a_fault_of_channels_is_not_proved(fault: str) -> None:
    wrong = of(fault)
    assert any(differs(wrong, at) for at in SIZES)
    assert status(wrong) is not Status.PROVED
