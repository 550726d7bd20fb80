"""Scatter-add: convolutions in input-stationary order, col2im, products as sums of outer products; and their faults.

Each program adds every input element to all sums that it belongs to; the IR gathers.  Every fault differs from the
right program in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, ite, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.toy import M, N, differs, mapping, with_abstract
from tests.marks import slow_but

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
CELL = (var("cell_row", bv(32)), var("cell_column", bv(32)))
ZERO, NOTHING = const(0, 32), const(0, 8)
LENGTH, ONE = N.zext(32) + M.zext(32) - 1, const(1, 32)
multiply = Function("multiply", {"x": bv(8), "w": bv(8)}, bv(8), None)
multiply.body = multiply.params[0] * multiply.params[1]


def claim(device: Body, ir: Body, rows: Expr, columns: Expr = ONE, least: int = 1) -> TensorMapping:
    """The claim about src and tmp, which are x and w, and dst, for sizes from ``least`` on."""
    domain = tuple((f"{least} <= {v.name} <= 255", (const(least, 16) <= v) & (v <= 255)) for v in (N, M))
    made = replace(
        with_abstract(mapping(device, ir, rows=rows, columns=columns, domain=domain), multiply),
        inputs=(("src", "isrc"), ("tmp", "itmp")),
        sample_shapes=((1, 1), (1, 4), (3, 2), (4, 3), (5, 4), (2, 6)),
        shape_parameters=frozenset({"n", "m"}),
    )
    return replace(made, cell=((CELL[0], made.rows), (CELL[1], made.columns)), cell_column=CELL[1])


def status(made: TensorMapping, *, second: bool = False) -> Status:
    return prove(made, discharger=Discharger(timeout=5.0, second=second), horn_timeout=3.0).status


def add(k: Kernel, s: States, at: Expr, value: Expr) -> None:
    k.store(s["dst"], at, k.load("old", s["dst"], at) + value)


def clear(k: Kernel, s: States, length: Expr, value: int = 0, name: str = "z") -> None:
    with k.loop(name, length) as z:
        k.store(s["dst"], z, const(value, 8))


def gather(k: Kernel, s: States) -> None:
    """dst[o] = sum over t < m of x[o - t] * w[t], where 0 <= o - t < n."""
    n, m = s["n"], s["m"]
    with k.loop("o", n + m - 1) as o:
        acc = k.let("acc", NOTHING)
        with k.loop("t", m) as t:
            inside = (t <= o) & (o - t < n)
            left = k.load("x_word", s["src"], ite(inside, o - t, ZERO))
            product = multiply(left, k.load("w_word", s["tmp"], t))
            k.assign(acc, acc + ite(inside, product, NOTHING))
        k.store(s["dst"], o, acc)


def scatter(fault: str = "") -> Body:
    """dst[i + t] += x[i] * w[t] for each i and t."""

    def body(k: Kernel, s: States) -> None:
        n, m = s["n"], s["m"]
        if fault not in ("not cleared", "cleared too late"):
            length = {"the last is not cleared": n + m - 2, "some are not cleared": n}.get(fault, n + m - 1)
            clear(k, s, length, 1 if fault == "begins with 1" else 0)
        with k.loop("i", n - 1 if fault == "the last element is left out" else n) as i:
            if fault == "cleared in each round":
                k.store(s["dst"], i, NOTHING)
            with k.loop("t", {"the last tap is left out": m - 1, "one tap too many": m + 1}.get(fault, m)) as t:
                at = {
                    "to the neighbour": i + t + 1,
                    "taps backwards": i + (m - 1 - t),
                    "the first tap in its place": i + ite(t == 0, ite(m >= 2, ONE, ZERO), t),
                    "all to one": i,
                }.get(fault, i + t)
                element, tap = {
                    "another element": (ite(i == 0, i, i - 1), t),
                    "another tap": (i, ite(t == 0, t, t - 1)),
                }.get(fault, (i, t))
                value = multiply(k.load("x", s["src"], element), k.load("w", s["tmp"], tap))
                if fault == "twice":
                    value = value + ite((i == 1) & (t == 0), value, NOTHING)
                if fault == "left out":
                    with k.when("not_last", ~((i + 1 == n) & (t + 1 == m))):
                        add(k, s, at, value)
                elif fault == "overwritten":
                    k.store(s["dst"], at, value)
                elif fault == "the neighbour goes on":
                    k.store(s["dst"], at, k.load("old", s["dst"], at + 1) + value)
                else:
                    add(k, s, at, value)
            if fault == "cleared in between":
                with k.when("once", i == 1):
                    k.store(s["dst"], ZERO, NOTHING)
        if fault == "cleared too late":
            clear(k, s, n + m - 1)
        if fault == "the last is cleared again":
            k.store(s["dst"], n + m - 2, NOTHING)

    return body


FAULTS = (
    "not cleared",
    "cleared too late",
    "the last is not cleared",
    "some are not cleared",
    "begins with 1",
    "the last element is left out",
    "the last tap is left out",
    "one tap too many",
    "to the neighbour",
    "taps backwards",
    "the first tap in its place",
    "all to one",
    "another element",
    "another tap",
    "twice",
    "left out",
    "overwritten",
    "the neighbour goes on",
    "cleared in between",
    "cleared in each round",
    "the last is cleared again",
)


def test_a_scattered_convolution_is_the_gathered_one() -> None:
    verdict = prove(claim(scatter(), gather, LENGTH))
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    assert {group for group, _ in names} >= {"any order", "sum laws", "padding", "values", "health"}


QUICK = ("not cleared", "cleared too late", "to the neighbour", "twice", "cleared in between")


@pytest.mark.parametrize("fault", slow_but(QUICK, FAULTS))
def test_a_wrong_scatter_is_not_proved(fault: str) -> None:
    wrong = claim(scatter(fault), gather, LENGTH)
    assert any(differs(wrong, sizes) for sizes in ({"n": 4, "m": 3}, {"n": 2, "m": 2}))
    assert status(wrong) is not Status.PROVED
