"""Reads at addresses that are data: rows by a table, offsets, tables of tables; and wrong ones, none of them proved.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const, ite
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_flow import flow, status, step
from tests.chc.mapping.toy import differs, mapping, with_tables

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]


def rows(
    k: Kernel,
    s: States,
    *,
    table: str = "tmp",
    data: str = "src",
    entry: Callable[[Expr, States], Expr] = lambda i, s: i,
    row: Callable[[Expr, States], Expr] = lambda r, s: r,
    first: Callable[[Kernel, States], None] | None = None,
    inside: Callable[[Kernel, States, Expr], None] | None = None,
) -> None:
    """dst[i, j] = src[table[i], j], a row after the other."""
    if first is not None:
        first(k, s)
    with k.loop("i", s["n"]) as i:
        number = row(k.load("row", s[table], entry(i, s)).zext(32), s)
        with k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s[data], number * s["m"] + j))
        if inside is not None:
            inside(k, s, i)


def columns(k: Kernel, s: States) -> None:
    """The same, where each element reads the table."""
    with k.loop("j", s["m"]) as j, k.loop("i", s["n"]) as i:
        row = k.load("row", s["tmp"], i).zext(32)
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], row * s["m"] + j))


def copied(k: Kernel, s: States, *, short: int = 0, late: bool = False) -> None:
    """The device has a table of its own."""

    def copy(k: Kernel, s: States) -> None:
        with k.loop("e", s["n"] - short) as e:
            k.store(s["t0"], e, k.load("copied", s["tmp"], e))

    rows(k, s, table="t0", first=None if late else copy)
    if late:
        copy(k, s)


def chosen(k: Kernel, s: States, *, own: bool = True, limit: int | None = 0) -> None:
    """Rows that src does not have are row 0, unless there is no limit; the device may have data of its own."""
    if own:
        with k.loop("a", s["n"]) as a, k.loop("b", s["m"]) as b:
            k.store(s["t0"], a * s["m"] + b, k.load("moved", s["src"], a * s["m"] + b))

    def row(r: Expr, s: States) -> Expr:
        return r if limit is None else ite(r < s["n"] - limit, r, const(0, 32))

    rows(k, s, data="t0" if own else "src", row=row)


def twice(k: Kernel, s: States, times: int = 2) -> None:
    """dst[i, j] = src[table[table[i]], j]."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        row = i
        for number in range(times):
            row = k.load(f"row{number}", s["tmp"], row).zext(32)
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], row * s["m"] + j))


def bag(k: Kernel, s: States, *, memory: bool = False, turned: bool = False, begin: int = 7) -> None:
    """dst[i, j] = fold over x of src[table[i + x], j], in a register or in memory."""
    n, m = s["n"], s["m"]

    def word(i: Expr, j: Expr, x: Expr) -> Expr:
        row = k.load("row", s["tmp"], i + (n - 1 - x if turned else x)).zext(32)
        return k.load("word", s["src"], row * m + j)

    if memory:
        with k.loop("iz", n) as i, k.loop("jz", m) as j:
            k.store(s["dst"], i * m + j, const(begin, 8))
        with k.loop("x", n) as x, k.loop("i", n) as i, k.loop("j", m) as j:
            k.store(s["dst"], i * m + j, step(k.load("old", s["dst"], i * m + j), word(i, j, x)))
        return
    with k.loop("i", n) as i, k.loop("j", m) as j:
        acc = k.let("acc", const(begin, 8))
        with k.loop("x", n) as x:
            k.assign(acc, step(acc, word(i, j, x)))
        k.store(s["dst"], i * m + j, acc)


def halved(k: Kernel, s: States, *, even: int = 0, first: int = 0, both: bool = True) -> None:
    """The device has a table of even rows' entries, and one of odd rows'."""
    with k.loop("e", s["n"]) as e:
        for name, place in (("t0", e + e + first), ("t2", e + e + 1))[: 1 + both]:
            k.store(s[name], e, k.load(f"copied_{name}", s["tmp"], place))
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        one, two = (k.load(f"row_{name}", s[name], i >> 1) for name in ("t0", "t2"))
        row = ite(i[0] == even, one, two).zext(32)
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], row * s["m"] + j))


def offsets(k: Kernel, s: States, *, more: int = 0) -> None:
    """dst[i, j] = src[offset[i] + j]."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        begin = k.load("begin", s["tmp"], i).zext(32)
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], begin + j + more))


def claim_of(device: Body, ir: Body, tables: bool = False) -> TensorMapping:
    """The claim where both sides have the table ``tmp``; the device has other tables, where asked for."""
    if tables:
        return with_device_tables(ir, device)
    return replace(flow(mapping(device, ir)), inputs=(("src", "isrc"), ("tmp", "itmp")))


def with_device_tables(ir: Body, device: Body) -> TensorMapping:
    """Tables of the device have names of their own; ``t1`` is the one that both sides have."""

    def renamed(k: Kernel, s: States) -> None:
        device(k, {**s, "tmp": s["t1"]})

    return replace(with_tables(flow(mapping(ir=ir)), renamed), inputs=(("src", "isrc"), ("t1", "itmp")))


RIGHT: dict[str, tuple[Body, Body, bool]] = {
    "rows": (rows, rows, False),
    "columns": (columns, rows, False),
    "a table of its own": (copied, rows, True),
    "data of its own": (chosen, partial(chosen, own=False), True),
    "a table of a table": (twice, twice, False),
    "sums of rows": (bag, bag, False),
    "sums of rows in memory": (partial(bag, memory=True), bag, False),
    "offsets": (offsets, offsets, False),
    "one of two tables": (halved, rows, True),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_read_through_one_entry_is_one_read(name: str) -> None:
    verdict = prove(claim_of(*RIGHT[name]), discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))


def overwrite(memory: str) -> Body:
    return lambda k, s: k.store(s[memory], const(1, 32), const(0, 8))


def clobber(k: Kernel, s: States, i: Expr) -> None:
    """Row i overwrites the entry of the next row."""
    k.store(s["tmp"], i + 1, i[7:0])


WRONG: dict[str, tuple[Body, Body, bool]] = {
    "the next row": (partial(rows, row=lambda r, s: r + 1), rows, False),
    "the next entry": (partial(rows, entry=lambda i, s: i + 1), rows, False),
    "one entry for all": (partial(rows, entry=lambda i, s: i * 0), rows, False),
    "another table": (partial(rows, table="src"), rows, False),
    "a table that nobody wrote": (partial(rows, table="dst"), rows, False),
    "other data": (partial(rows, data="tmp"), rows, False),
    "no table": (partial(rows, row=lambda r, s: r * 0), rows, False),
    "an entry is overwritten before": (partial(rows, first=overwrite("tmp")), rows, False),
    "data are overwritten before": (partial(rows, first=overwrite("src")), rows, False),
    "entries are overwritten between their uses": (partial(rows, inside=clobber), rows, False),
    "the last entry is not copied": (partial(copied, short=1), rows, True),
    "the table is copied after its use": (partial(copied, late=True), rows, True),
    "the limit is one less": (partial(chosen, limit=1), partial(chosen, own=False), True),
    "data of its own without a limit": (partial(chosen, limit=None), rows, True),
    "a limit on one side only": (chosen, rows, True),
    "a table once": (partial(twice, times=1), twice, False),
    "a table three times": (partial(twice, times=3), twice, False),
    "sums from the last to the first": (partial(bag, turned=True), bag, False),
    "sums in memory, from the last to the first": (partial(bag, memory=True, turned=True), bag, False),
    "sums that begin with another number": (partial(bag, memory=True, begin=8), bag, False),
    "offsets by one more": (partial(offsets, more=1), offsets, False),
    "offsets for rows": (offsets, rows, False),
    "the other one of two tables": (partial(halved, even=1), rows, True),
    "a table of the next even rows": (partial(halved, first=2), rows, True),
    "one of two tables is not written": (partial(halved, both=False), rows, True),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_reads_at_data_are_not_proved(name: str) -> None:
    claim = claim_of(*WRONG[name])
    assert differs(claim, {"n": 4, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def test_a_store_through_a_table_is_refused() -> None:
    def scattered(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            row = k.load("row", s["tmp"], i).zext(32)
            k.store(s["dst"], row * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    verdict = prove(claim_of(scattered, scattered), discharger=Discharger(timeout=5.0, second=False))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "toy toy_kernel depends on tmp as it was before the program"
