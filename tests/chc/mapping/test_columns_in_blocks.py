"""Blocks of columns in an array of accumulators, whose number a register of few bits holds; the last one is shorter.

That accumulators of one row and of the next one do not overlap rests on how many blocks there are: only then is the
rest, cut to the register's bits, at most a block.  Each fault differs from the right program in one place, and concrete
runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from ila_lang import Expr, Kernel, const, ite, resize
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_scatter_add import NOTHING, multiply, status
from tests.chc.mapping.toy import M, N, differs, mapping, with_abstract, with_tables

States = Mapping[str, Expr]
DOMAIN = (
    ("1 <= n <= 16", (const(1, 16) <= N) & (N <= 16)),
    ("1 <= m <= 255", (const(1, 16) <= M) & (M <= 255)),
)


def ir(k: Kernel, s: States) -> None:
    """dst[i, c] = sum over p < n of src[i, c] * src[p, c]."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i, k.loop("c", m) as c:
        acc = k.let("acc", NOTHING)
        with k.loop("p", n) as p:
            one, other = k.load("one", s["src"], i * m + c), k.load("other", s["src"], p * m + c)
            k.assign(acc, acc + multiply(one, other))
        k.store(s["dst"], i * m + c, acc)


def blocks(fault: str, k: Kernel, s: States) -> None:
    n, m = s["n"], s["m"]
    with k.loop("b", (m + 15) >> 4) as b:
        begin, rest = b << 4, m - (b << 4)
        width = ite(const(16, 32) < rest, const(16, 32), rest)
        width = {
            "a column more": width + 1,
            "a column less in the last block": ite(rest < 16, rest - 1, width),
            "the last block as wide as the one before": ite((b == 0) & (rest < 16), rest, const(16, 32)),
            "the rest whole": rest,
        }.get(fault, width)
        width = resize(width, 4 if fault == "a bit too few" else 5)
        cleared = {"not cleared": const(0, 5), "cleared in the first block": ite(b == 0, width, const(0, width.width))}
        cleared["the last column is not cleared"] = width - 1
        pitch = const(15 if fault == "rows overlap" else 16, 32)
        with k.loop("zi", n) as i, k.loop("zj", cleared.get(fault, width)) as j:
            k.store(s["t0"], i * pitch + resize(j, 32), NOTHING)
        with k.loop("p", n) as p, k.loop("i", n) as i, k.loop("j", width) as j:
            at, column = i * pitch + resize(j, 32), begin + resize(j, 32)
            column = ite(column == 0, column, column - 1) if fault == "the column before" else column
            value = multiply(k.load("x", s["src"], i * m + column), k.load("y", s["src"], p * m + column))
            old = k.load("old", s["t0"], at + (1 if fault == "goes on from the neighbour" else 0))
            twice = (p == 0) & (j + 1 == width) & (b == 0)
            k.store(s["t0"], at, old + (value + ite(twice, value, NOTHING) if fault == "twice" else value))
        with k.loop("oi", n) as i, k.loop("oj", width) as j:
            word = k.load("word", s["t0"], i * pitch + resize(j, 32))
            k.store(s["dst"], i * m + begin + resize(j, 32), word)


FAULTS = (
    "a column more",
    "not cleared",
    "rows overlap",
    "a bit too few",
    "a column less in the last block",
    "the last block as wide as the one before",
    "the rest whole",
    "cleared in the first block",
    "the last column is not cleared",
    "the column before",
    "goes on from the neighbour",
    "twice",
)


def of(fault: str = "") -> TensorMapping:
    device = partial(blocks, fault)
    made = with_abstract(with_tables(mapping(None, ir, domain=DOMAIN), device), multiply)
    return replace(made, sample_shapes=((1, 1), (2, 4), (2, 17), (3, 33)))


SIZES = [{"n": n, "m": m} for n, m in ((2, 1), (3, 16), (2, 17), (2, 37))]


def test_columns_in_blocks_are_proved_for_every_size() -> None:
    made = of()
    assert not any(differs(made, at, 4) for at in SIZES)
    assert status(made, second=True) is Status.PROVED


@pytest.mark.parametrize(
    "fault", [f if k in (0, 2) else pytest.param(f, marks=pytest.mark.slow) for k, f in enumerate(FAULTS)]
)
def test_a_fault_of_columns_in_blocks_is_not_proved(fault: str) -> None:
    wrong = of(fault)
    assert any(differs(wrong, at) for at in SIZES)
    assert status(wrong) is not Status.PROVED
