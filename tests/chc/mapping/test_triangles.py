"""Extents that depend on outer counters: triangles, bands, causal rows; and wrong ones, of which none may be proved.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pytest

from ila_lang import Expr, Kernel, const, ite
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status
from tests.chc.mapping.toy import N, differs, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
Bound = Callable[[Expr, Expr], Expr]
"""Of a row, in a matrix of so many rows: where it begins, or how many elements it has."""


def least(one: Expr, other: Expr) -> Expr:
    return ite(one < other, one, other)


@dataclass(frozen=True)
class Rows:
    """Row i of a square matrix has ``many`` elements from column ``begin`` on."""

    begin: Bound
    many: Bound


LOWER = Rows(lambda i, n: const(0, 32), lambda i, n: i + 1)
UPPER = Rows(lambda i, n: i, lambda i, n: n - i)
STRICT = Rows(lambda i, n: i + 1, lambda i, n: n - i - 1)
BAND = Rows(
    lambda i, n: ite(i < 2, const(0, 32), i - 2), lambda i, n: least(n, i + 3) - ite(i < 2, const(0, 32), i - 2)
)
SHAPES = {"lower": LOWER, "upper": UPPER, "strictly upper": STRICT, "band": BAND}


def chosen(rows: Rows, k: Kernel, s: States) -> None:
    """dst[i, j] = src[i, j] within the rows, and 0 elsewhere."""
    n = s["n"]
    with k.loop("i", n) as i, k.loop("j", n) as j:
        word, begin = k.load("word", s["src"], i * n + j), rows.begin(i, n)
        k.store(s["dst"], i * n + j, ite((begin <= j) & (j < begin + rows.many(i, n)), word, const(0, 8)))


def clear(k: Kernel, s: States) -> None:
    with k.loop("iz", s["n"]) as i, k.loop("jz", s["n"]) as j:
        k.store(s["dst"], i * s["n"] + j, const(0, 8))


def written(rows: Rows, k: Kernel, s: States, *, cleared: bool = True, late: bool = False, other: int = 0) -> None:
    """All of dst is cleared, and then the rows are copied."""
    n = s["n"]
    if cleared and not late:
        clear(k, s)
    with k.loop("i", n) as i, k.loop("j", rows.many(i, n)) as j:
        at = i * n + rows.begin(i, n) + j
        k.store(s["dst"], at, k.load("word", s["src"], at + other))
    if late:
        clear(k, s)


def by_columns(k: Kernel, s: States) -> None:
    """The lower triangle, a column after the other."""
    n = s["n"]
    clear(k, s)
    with k.loop("j", n) as j, k.loop("i", n - j) as i:
        k.store(s["dst"], (j + i) * n + j, k.load("word", s["src"], (j + i) * n + j))


def in_two_parts(k: Kernel, s: States, short: int = 0) -> None:
    """The lower triangle of a row, and then zeros in the rest of the row."""
    n = s["n"]
    with k.loop("i", n) as i:
        with k.loop("j", i + 1) as j:
            k.store(s["dst"], i * n + j, k.load("word", s["src"], i * n + j))
        with k.loop("q", ite(i + 1 + short <= n, n - i - 1 - short, const(0, 32))) as q:
            k.store(s["dst"], i * n + i + 1 + q, const(0, 8))


def square(device: Body, ir: Body) -> TensorMapping:
    claim = flow(mapping(device, ir, columns=N.zext(32)))
    return replace(claim, sample_shapes=tuple((n, 1) for n in range(1, 10)))


@pytest.mark.parametrize("name", [n if n != "band" else pytest.param(n, marks=pytest.mark.slow) for n in SHAPES])
def test_rows_that_depend_on_their_number_are_written(name: str) -> None:
    rows = SHAPES[name]
    assert status(square(partial(written, rows), partial(chosen, rows))) is Status.PROVED
    assert status(square(partial(chosen, rows), partial(written, rows))) is Status.PROVED


@pytest.mark.parametrize("device", [by_columns, in_two_parts])
def test_a_triangle_is_written_in_other_orders(device: Body) -> None:
    for ir in (partial(chosen, LOWER), partial(written, LOWER)):
        assert status(square(device, ir)) is Status.PROVED


WRONG: dict[str, tuple[Body, Rows]] = {
    "the diagonal is left out": (partial(written, Rows(LOWER.begin, lambda i, n: i)), LOWER),
    "one diagonal more": (partial(written, Rows(LOWER.begin, lambda i, n: least(n, i + 2))), LOWER),
    "rows are whole": (partial(written, Rows(LOWER.begin, lambda i, n: n)), LOWER),
    "not cleared": (partial(written, LOWER, cleared=False), LOWER),
    "cleared afterwards": (partial(written, LOWER, late=True), LOWER),
    "another element": (partial(written, LOWER, other=1), LOWER),
    "the lower one for the upper one": (partial(written, LOWER), UPPER),
    "rows run over into the next": (partial(written, Rows(UPPER.begin, lambda i, n: n)), UPPER),
    "upper rows lack their last element": (partial(written, Rows(UPPER.begin, lambda i, n: n - i - 1)), UPPER),
    "upper rows begin one later": (partial(written, STRICT), UPPER),
    "upper rows begin one earlier": (partial(written, UPPER), STRICT),
    "the extent falls below 0": (partial(written, Rows(STRICT.begin, lambda i, n: n - i - 2)), STRICT),
    "a band that is not cut at the end": (
        partial(written, Rows(BAND.begin, lambda i, n: i + 3 - BAND.begin(i, n))),
        BAND,
    ),
    "a wider band": (partial(written, Rows(BAND.begin, lambda i, n: least(n, i + 4) - BAND.begin(i, n))), BAND),
    "a band without its last row": (
        partial(written, Rows(BAND.begin, lambda i, n: ite(i + 1 == n, const(0, 32), BAND.many(i, n)))),
        BAND,
    ),
    "the rest lacks its last zero": (partial(in_two_parts, short=1), LOWER),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_not_proved(name: str) -> None:
    device, rows = WRONG[name]
    claim = square(device, partial(chosen, rows))
    if "below 0" not in name:  # runs too long to show it
        assert differs(claim, {"n": 5, "m": 1})
    assert status(claim, second=False) is not Status.PROVED
