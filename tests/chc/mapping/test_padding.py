"""Sums over more elements than there are: padded programs are proved for every number of features, faults are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, bv, const, ite, var
from ila_lang.mapping import Lemma, TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.dense_layer import HOST_X, WIDE, ZERO, Host, adds, claim, dense, saturating
from tests.chc.mapping.library_gemm import K, M, differs

FAULTS = (
    "garbage in place of zeros",
    "one feature too few",
    "one feature too many",
    "zeros stand in the next row",
    "the code of zero is one",
    "the first of the zeros is left out",
)


def data(h: Host, fault: str) -> None:
    """The features of each row."""
    count = {"one feature too few": K - 1, "one feature too many": K + 1}.get(fault, K)
    with h.kernel.loop("fr", M) as r, h.kernel.loop("fi", count) as i:
        h.feature(r * WIDE + i, HOST_X.load(r * K + i))


def zero(fault: str) -> Expr:
    """What stands for zero."""
    return const(1, 8) if fault == "the code of zero is one" else ZERO


def chosen(h: Host, fault: str) -> None:
    """The host sends a feature, or zero."""
    most = {"one feature too few": K - 1, "one feature too many": K + 1}.get(fault, K)
    with h.kernel.loop("fr", M) as r, h.kernel.loop("fi", WIDE) as i:
        here = HOST_X.load(r * K + i)
        own = i < most
        if fault == "zeros stand in the next row":
            own = (i < K) | (r == 0)
        if fault == "the first of the zeros is left out":
            own = i <= K
        rest = HOST_X.load(i) if fault == "garbage in place of zeros" else zero(fault)
        h.feature(r * WIDE + i, ite(own, here, rest))


def zeros_after(h: Host, fault: str) -> None:
    """A second loop sends the zeros of all rows."""
    data(h, fault)
    first = K + 1 if fault == "the first of the zeros is left out" else K
    with h.kernel.loop("zr", M) as r, h.kernel.loop("zi", WIDE - K) as i:
        row = r + 1 if fault == "zeros stand in the next row" else r
        if fault != "garbage in place of zeros":
            h.feature(row * WIDE + first + i, zero(fault))


def cleared_before(h: Host, fault: str) -> None:
    """The memory is cleared, and what there is stored then."""
    begin = WIDE if fault == "zeros stand in the next row" else 0
    if fault == "the first of the zeros is left out":
        with h.kernel.loop("zr", M) as r, h.kernel.loop("zi", WIDE - K - 1) as i:
            h.feature(r * WIDE + K + 1 + i, ZERO)
    elif fault != "garbage in place of zeros":
        with h.kernel.loop("z", M * WIDE) as z:
            h.feature(z + begin, zero(fault))
    data(h, fault)


def zeros_before(h: Host, fault: str) -> None:
    """Zeros come first, and so do rows of the weights that there are not."""
    off = WIDE - K
    with h.kernel.loop("fr", M) as r, h.kernel.loop("fi", WIDE) as i:
        own = {
            "one feature too few": off < i,
            "one feature too many": off <= i + 1,
            "the first of the zeros is left out": (off <= i) | (i == 0),
        }.get(fault, off <= i)
        rest = HOST_X.load(i) if fault == "garbage in place of zeros" else zero(fault)
        if fault == "zeros stand in the next row":
            rest = ite(r == 0, HOST_X.load(i), ZERO)
        h.feature(r * WIDE + i, ite(own, HOST_X.load(r * K + (i - off)), rest))
    h.weights(first=off)


PROGRAMS: dict[str, Callable[[Host, str], None]] = {
    "chosen": chosen,
    "zeros after": zeros_after,
    "cleared before": cleared_before,
    "zeros before": zeros_before,
}


def of(program: str, arithmetic: str, fault: str = "") -> TensorMapping:
    """A padded program on hardware that adds up in some arithmetic, in the IR's order or lane by lane."""

    def host(h: Host) -> None:
        PROGRAMS[program](h, fault)
        if program != "zeros before":
            h.weights()
        h.finish()

    if arithmetic == "lane by lane":
        return claim(host, [dense(adds, lanes_first=True)], adds)
    mac = saturating()
    if arithmetic == "saturating":
        return claim(host, [dense(mac)], mac)
    acc, w = var("acc", bv(32)), var("w", bv(8))
    lemma = Lemma("a zero adds nothing", mac(acc, const(0, 8), w), acc)
    return claim(host, [dense(mac)], mac, abstract=frozenset({"mac"}), lemmas=(lemma,))


ARITHMETICS = ("lane by lane", "saturating", "open")
SIZES = ({"m": 2, "n": 2, "k": 3}, {"m": 2, "n": 1, "k": 16}, {"m": 2, "n": 1, "k": 15}, {"m": 1, "n": 2, "k": 33})


def slow_unless(quick: bool) -> list[pytest.MarkDecorator]:
    return [] if quick else [pytest.mark.slow]


def is_first(program: str, arithmetic: str) -> bool:
    """Each program once, and each arithmetic."""
    return program == next(iter(PROGRAMS)) or arithmetic == next(iter(ARITHMETICS))


@pytest.mark.parametrize(
    ("program", "arithmetic"),
    [pytest.param(p, a, marks=slow_unless(is_first(p, a))) for p in PROGRAMS for a in ARITHMETICS],
)
def test_a_padded_layer_is_proved_for_every_number_of_features(program: str, arithmetic: str) -> None:
    mapping = of(program, arithmetic)
    assert not any(differs(mapping, sizes, 1) for sizes in SIZES)
    verdict = prove(mapping)
    assert verdict.status is Status.PROVED, verdict.reason


QUICK = {"one feature too few": PROGRAMS.keys(), "the code of zero is one": ("chosen",)}
"""Faults, and programs of which they are not marked as slow."""
CASES = [
    pytest.param(
        program, arithmetic, fault, marks=slow_unless(program in QUICK.get(fault, ()) and is_first(program, arithmetic))
    )
    for program in PROGRAMS
    for arithmetic in ARITHMETICS
    for fault in FAULTS
    if (program, fault) != ("zeros after", "one feature too many")  # a zero comes over it: this is right
]


@pytest.mark.parametrize(("program", "arithmetic", "fault"), CASES)
def test_a_layer_that_is_padded_wrongly_is_not_proved(program: str, arithmetic: str, fault: str) -> None:
    mapping = of(program, arithmetic, fault)
    assert any(differs(mapping, sizes) for sizes in SIZES)
    verdict = prove(mapping, discharger=Discharger(timeout=3.0, second=False), horn_timeout=3.0)
    assert verdict.status is not Status.PROVED
