"""Scatter-add: convolutions in input-stationary order, col2im, products as sums of outer products; and their faults.

Each program adds every input element to all sums that it belongs to; the IR gathers.  Every fault differs from the
right program in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

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


def gather(k: Kernel, s: States, more: int = 0) -> None:
    """dst[o] = sum over t < m of x[o - t] * w[t], where 0 <= o - t < n; ``more`` sums of nothing behind them."""
    n, m = s["n"], s["m"]
    with k.loop("o", n + m - 1 + more) as o:
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


# -- further programs, each with faults -------------------------------------------------------------------------------

Pattern = Callable[[str, Kernel, States], None]
"""A program with a fault."""


def squares(k: Kernel, s: States) -> None:
    """The window of three by three around each element, with zeros around the image."""
    n, m, three = s["n"], s["m"], const(3, 32)
    with k.loop("oi", n) as i, k.loop("oj", m) as j:
        acc = k.let("acc", NOTHING)
        with k.loop("a", three) as a, k.loop("b", three) as b:
            inside = (a <= i + 1) & (i + 1 - a < n) & (b <= j + 1) & (j + 1 - b < m)
            word = k.load("x_word", s["src"], ite(inside, (i + 1 - a) * m + (j + 1 - b), ZERO))
            product = multiply(word, k.load("w_word", s["tmp"], a * 3 + b))
            k.assign(acc, acc + ite(inside, product, NOTHING))
        k.store(s["dst"], i * m + j, acc)


def to_squares(fault: str, k: Kernel, s: States) -> None:
    """Each element is added to the sums of the window around it: one store for each tap."""
    n, m, one = s["n"], s["m"], ONE
    clear(k, s, n * m - 1 if fault == "the last is not cleared" else n * m)
    with k.loop("i", n) as i, k.loop("j", m) as j:
        word = k.load("x_word", s["src"], i * m + j)
        with k.loop("a", const(3, 32)) as a, k.loop("b", const(3, 32)) as b:
            rows, columns = (one <= i + a) & (i + a - 1 < n), (one <= j + b) & (j + b - 1 < m)
            columns = {
                "columns run over": one <= j + b,
                "the last column is left out": (one <= j + b) & (j + b < m),
                "the first column is left out": (const(2, 32) <= j + b) & (j + b - 1 < m),
            }.get(fault, columns)
            tap = {"taps are transposed": b * 3 + a, "a tap is taken twice": a * 3 + ite(b == 2, one, b)}
            with k.when("inside", rows & columns):
                add(
                    k,
                    s,
                    (i + a - 1) * m + (j + b - 1),
                    multiply(word, k.load("w", s["tmp"], tap.get(fault, a * 3 + b))),
                )


def from_columns(k: Kernel, s: States) -> None:
    """Windows of m that are two apart: the sum over those that an element is in."""
    n, m = s["n"], s["m"]
    with k.loop("h", (n - 1) * 2 + m) as h:
        acc = k.let("acc", NOTHING)
        with k.loop("t", m) as t:
            inside = (t <= h) & ((h - t) % 2 == 0) & ((h - t) >> 1 < n)
            word = k.load("x_word", s["src"], ite(inside, ((h - t) >> 1) * m + t, ZERO))
            k.assign(acc, acc + ite(inside, word, NOTHING))
        k.store(s["dst"], h, acc)


def columns_to_image(fault: str, k: Kernel, s: States) -> None:
    """col2im: each window is added to the elements that it covers."""
    n, m = s["n"], s["m"]
    clear(k, s, n * 2 if fault == "the rest is not cleared" else (n - 1) * 2 + m)
    windows = n - 1 if fault == "the last window is left out" else n
    size = m - 1 if fault == "the last of each window is left out" else m
    with k.loop("o", windows) as o, k.loop("t", size) as t:
        at = {"windows are one apart": o + t, "windows are one further": o * 2 + t + 1}.get(fault, o * 2 + t)
        add(k, s, at, k.load("x_word", s["src"], t * n + o if fault == "transposed" else o * m + t))


def product_backwards(k: Kernel, s: States) -> None:
    """The product of an n x m matrix and an m x n one, from the last column to the first."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i, k.loop("j", n) as j:
        acc = k.let("acc", NOTHING)
        with k.loop("x", m) as x:
            at = m - 1 - x
            k.assign(acc, acc + multiply(k.load("a", s["src"], i * m + at), k.load("b", s["tmp"], at * n + j)))
        k.store(s["dst"], i * n + j, acc)


def outer_products(fault: str, k: Kernel, s: States) -> None:
    """The product as a sum of outer products."""
    n, m = s["n"], s["m"]
    clear(k, s, n if fault == "one row is cleared" else n * n)
    with k.loop("x", m - 1 if fault == "the last is left out" else m) as x, k.loop("i", n) as i, k.loop("j", n) as j:
        left = k.load("a", s["src"], i * m + (ite(x == 0, x, x - 1) if fault == "another column" else x))
        right = k.load("b", s["tmp"], x * n + (i if fault == "another element" else j))
        add(k, s, j * n + i if fault == "transposed" else i * n + j, multiply(left, right))


def taps_in_pairs(fault: str, k: Kernel, s: States) -> None:
    """The scattered convolution with two taps in each iteration, and the last one after them where they are odd."""
    n, m = s["n"], s["m"]
    clear(k, s, n + m - 1)
    with k.loop("i", n) as i:
        word = k.load("x_word", s["src"], i)
        with k.loop("t", m >> 1) as t:
            for number in range(2):
                tap = t * 2 + (0 if fault == "the even taps twice" else number)
                at = i + tap + (number if fault == "odd taps go to the neighbour" else 0)
                product = multiply(word, k.load(f"w{number}", s["tmp"], tap))
                old = k.load(f"old{number}", s["dst"], at)
                k.store(s["dst"], at, product if fault == "odd taps overwrite" and number else old + product)
        odd = {"the rest is left out": m == 0, "the last tap twice": m >= 2}.get(fault, m % 2 == 1)
        with k.when("odd", odd):
            value = multiply(word, k.load("w_last", s["tmp"], m - 1))
            at = i + m - 1
            old = k.load("old_last", s["dst"], at)
            k.store(s["dst"], at, old - value if fault == "the rest is subtracted" else old + value)


def triangle(k: Kernel, s: States) -> None:
    """dst[i] = sum over j <= i of x[i, j] * w[j]."""
    n = s["n"]
    with k.loop("i", n) as i:
        acc = k.let("acc", NOTHING)
        with k.loop("j", i + 1) as j:
            k.assign(acc, acc + multiply(k.load("x_word", s["src"], i * n + j), k.load("w_word", s["tmp"], j)))
        k.store(s["dst"], i, acc)


def triangle_backwards(fault: str, k: Kernel, s: States) -> None:
    """From the diagonal to the first column."""
    n = s["n"]
    with k.loop("i", n) as i:
        acc = k.let("acc", NOTHING)
        with k.loop("j", {"no diagonal": i, "a diagonal more": i + 2}.get(fault, i + 1)) as j:
            at = {"a diagonal more": i + 1 - j, "all from the last on": n - 1 - j}.get(fault, i - j)
            other = j if fault == "not backwards in w" else at
            k.assign(acc, acc + multiply(k.load("x_word", s["src"], i * n + at), k.load("w_word", s["tmp"], other)))
        k.store(s["dst"], i + 1 if fault == "one row further" else i, acc)


def triangle_by_columns(fault: str, k: Kernel, s: States) -> None:
    """Each column is added to all rows from it on, the last column first."""
    n = s["n"]
    clear(k, s, n - 1 if fault == "the last is not cleared" else n)
    with k.loop("j", n) as j:
        column = n - 1 - j
        with k.loop("p", {"one row less": j, "all rows": n}.get(fault, j + 1)) as p:
            row = {"rows from the first on": p, "all rows": p}.get(fault, column + p)
            product = multiply(k.load("x_word", s["src"], row * n + column), k.load("w_word", s["tmp"], column))
            add(k, s, row, product)


def triangle_in_blocks(fault: str, k: Kernel, s: States) -> None:
    """Blocks of four columns, of which the last one is cut off at the diagonal."""
    n = s["n"]
    with k.loop("i", n) as i:
        acc, length = k.let("acc", NOTHING), i if fault == "no diagonal" else i + 1
        with k.loop("b", length >> 2 if fault == "whole blocks alone" else (length + 3) >> 2) as b:
            left = length - (b << 2)
            most = const(3 if fault == "three of four" else 5 if fault == "five of four" else 4, 32)
            with k.loop("t", most if fault == "the last block is whole" else ite(left < most, left, most)) as t:
                j = (b << 2) + t
                k.assign(acc, acc + multiply(k.load("x_word", s["src"], i * n + j), k.load("w_word", s["tmp"], j)))
        k.store(s["dst"], i, acc)


def pairs(k: Kernel, s: States) -> None:
    """dst[0] = sum over p and q <= p of x[p] * w[q]."""
    acc = k.let("acc", NOTHING)
    with k.loop("p", s["n"]) as p, k.loop("q", p + 1) as q:
        k.assign(acc, acc + multiply(k.load("x_word", s["src"], p), k.load("w_word", s["tmp"], q)))
    k.store(s["dst"], ZERO, acc)


def pairs_by_second(fault: str, k: Kernel, s: States) -> None:
    """The other element of a pair in the outer loop."""
    n = s["n"]
    acc = k.let("acc", NOTHING)
    with k.loop("q", n) as q, k.loop("r", {"no equal pairs": n - q - 1, "all pairs": n}.get(fault, n - q)) as r:
        p = {"all pairs": r, "from the first on": r}.get(fault, q + r)
        left, right = (q, p) if fault == "swapped" else (p, q)
        k.assign(acc, acc + multiply(k.load("x_word", s["src"], left), k.load("w_word", s["tmp"], right)))
    k.store(s["dst"], ONE if fault == "to the neighbour" else ZERO, acc)


def attention(k: Kernel, s: States) -> None:
    """dst[i, j] = sum over x <= i of p[i, x] * v[x, j], by a mask."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i, k.loop("j", m) as j:
        acc = k.let("acc", NOTHING)
        with k.loop("x", n) as x:
            product = multiply(k.load("p", s["src"], i * n + x), k.load("v", s["tmp"], x * m + j))
            k.assign(acc, acc + ite(x <= i, product, NOTHING))
        k.store(s["dst"], i * m + j, acc)


def attention_in_blocks(fault: str, k: Kernel, s: States) -> None:
    """Blocks of four columns in the outermost loop, the last one first: each row adds those that it attends to."""
    n, m = s["n"], s["m"]
    clear(k, s, n if fault == "only a column is cleared" else n * m)
    with k.loop("b", (n + 3) >> 2) as b, k.loop("i", n) as i, k.loop("j", m) as j, k.loop("t", const(4, 32)) as t:
        lane = ite(t == 3, const(2, 32), t) if fault == "a lane is taken twice" else t
        x = (((n + 3) >> 2) - 1 - b) * 4 + lane
        inside = {"not the row itself": x < i, "one more": x <= i + 1, "no mask": x < n}.get(fault, x <= i)
        with k.when("attends", inside):
            product = multiply(k.load("p", s["src"], i * n + x), k.load("v", s["tmp"], x * m + j))
            add(k, s, j * m + i if fault == "transposed" else i * m + j, product)


def convolved_rows(k: Kernel, s: States) -> None:
    """dst[b, o] = sum over t < 3, t <= o of x[b, o - t] * w[t]."""
    n, m = s["n"], s["m"]
    with k.loop("b", n) as b, k.loop("o", m) as o:
        acc = k.let("acc", NOTHING)
        with k.loop("t", const(3, 32)) as t:
            word = k.load("x_word", s["src"], ite(t <= o, b * m + (o - t), ZERO))
            k.assign(acc, acc + ite(t <= o, multiply(word, k.load("w_word", s["tmp"], t)), NOTHING))
        k.store(s["dst"], b * m + o, acc)


def rows_in_two_halves(fault: str, k: Kernel, s: States) -> None:
    """Each row is scattered to one of two rows of accumulators in turn, behind the output, and copied from there."""
    n, m = s["n"], s["m"]
    length = m + 2

    def half(of: Expr) -> Expr:
        return n * m + ite(of % 2 == 1, length, ZERO)

    def clear_half(name: str, begin: Expr, count: Expr) -> None:
        with k.loop(name, count) as z:
            k.store(s["dst"], begin + z, NOTHING)

    if fault == "cleared once":
        clear_half("z_once", n * m, length + length)
    with k.loop("b", n) as b:
        if fault not in ("cleared once", "cleared too late"):
            clear_half("z", half(b + 1 if fault == "the other half is cleared" else b), length)
        with k.loop("i", m) as i, k.loop("t", const(3, 32)) as t:
            product = multiply(k.load("x_word", s["src"], b * m + i), k.load("w_word", s["tmp"], t))
            add(k, s, half(b) + i + t, product)
        if fault == "cleared too late":
            clear_half("z_late", half(b), length)
        with k.loop("o", m) as o:
            place = {"the other half is copied": half(b + 1) + o, "one further": half(b) + o + 1}.get(
                fault, half(b) + o
            )
            k.store(s["dst"], b * m + o, k.load("result", s["dst"], place))


ROWS, SQUARE = N.zext(32), (N.zext(32), N.zext(32))
PATTERNS: dict[str, tuple[Pattern, Body, tuple[Expr, Expr], tuple[str, ...]]] = {
    "windows of three by three": (
        to_squares,
        squares,
        (N.zext(32), M.zext(32)),
        (
            "the last is not cleared",
            "columns run over",
            "the last column is left out",
            "the first column is left out",
            "taps are transposed",
            "a tap is taken twice",
        ),
    ),
    "col2im": (
        columns_to_image,
        from_columns,
        ((N.zext(32) - 1) * 2 + M.zext(32), ONE),
        (
            "the rest is not cleared",
            "the last window is left out",
            "the last of each window is left out",
            "windows are one apart",
            "windows are one further",
            "transposed",
        ),
    ),
    "outer products": (
        outer_products,
        product_backwards,
        SQUARE,
        ("one row is cleared", "the last is left out", "another column", "another element", "transposed"),
    ),
    "taps in pairs": (
        taps_in_pairs,
        gather,
        (LENGTH, ONE),
        (
            "the even taps twice",
            "odd taps go to the neighbour",
            "odd taps overwrite",
            "the rest is left out",
            "the last tap twice",
            "the rest is subtracted",
        ),
    ),
    "a triangle backwards": (
        triangle_backwards,
        triangle,
        (ROWS, ONE),
        ("no diagonal", "a diagonal more", "not backwards in w", "all from the last on", "one row further"),
    ),
    "a triangle by columns": (
        triangle_by_columns,
        triangle,
        (ROWS, ONE),
        ("the last is not cleared", "one row less", "all rows", "rows from the first on"),
    ),
    "a triangle in blocks": (
        triangle_in_blocks,
        triangle,
        (ROWS, ONE),
        ("no diagonal", "whole blocks alone", "three of four", "five of four", "the last block is whole"),
    ),
    "attention in blocks": (
        attention_in_blocks,
        attention,
        (N.zext(32), M.zext(32)),
        (
            "only a column is cleared",
            "a lane is taken twice",
            "not the row itself",
            "one more",
            "no mask",
            "transposed",
        ),
    ),
    "rows in two halves": (
        rows_in_two_halves,
        convolved_rows,
        (N.zext(32), M.zext(32)),
        (
            "cleared once",
            "cleared too late",
            "the other half is cleared",
            "the other half is copied",
            "one further",
        ),
    ),
    "pairs in another order": (
        pairs_by_second,
        pairs,
        (ONE, ONE),
        ("no equal pairs", "all pairs", "from the first on", "swapped", "to the neighbour"),
    ),
}


def of(name: str, fault: str = "") -> TensorMapping:
    pattern, ir, extents, _ = PATTERNS[name]
    return claim(partial(pattern, fault), ir, *extents)


QUICK_PATTERNS = {"col2im", "taps in pairs", "a triangle by columns", "a triangle in blocks", "pairs in another order"}


@pytest.mark.parametrize("name", slow_but(QUICK_PATTERNS, PATTERNS))
def test_sums_in_another_order_are_proved_for_every_size(name: str) -> None:
    made = of(name)
    assert not any(differs(made, sizes, 4) for sizes in SIZES)
    assert status(made) is Status.PROVED


SIZES = ({"n": 5, "m": 3}, {"n": 2, "m": 4}, {"n": 1, "m": 1})
FAULTY = [(name, fault) for name, (_, _, _, faults) in PATTERNS.items() for fault in faults]
FIRST = [(name, faults[0]) for name, (_, _, _, faults) in PATTERNS.items() if name in QUICK_PATTERNS]


CASES = [c if c in FIRST else pytest.param(*c, marks=pytest.mark.slow) for c in FAULTY]


def test_a_write_to_cells_that_a_scatter_never_hits_counts() -> None:
    """It happens at sizes beyond samples alone, behind all cells that are added to; behind the output it does not."""

    def device(behind: int, k: Kernel, s: States) -> None:
        n, m = s["n"], s["m"]
        clear(k, s, n + m)
        with k.loop("i", n) as i, k.loop("t", m) as t:
            add(k, s, i + t, multiply(k.load("x_word", s["src"], i), k.load("w_word", s["tmp"], t)))
            with k.when("large", const(100, 32) <= n):
                k.store(s["dst"], n + m - 1 + behind, const(1, 8))

    ir = partial(gather, more=1)
    assert status(claim(partial(device, 1), ir, LENGTH + 1)) is Status.PROVED
    assert status(claim(partial(device, 0), ir, LENGTH + 1)) is not Status.PROVED


def test_sizes_may_be_zero() -> None:
    """A sum of nothing is 0 where all are cleared, and not where they are cleared for some sizes alone."""

    def cleared_from(least: int, k: Kernel, s: States) -> None:
        with k.when("some", const(least, 32) <= s["n"]):
            clear(k, s, s["n"])
        with k.loop("j", s["n"]) as j, k.loop("p", s["n"] - j) as p:
            product = multiply(k.load("x_word", s["src"], (j + p) * s["n"] + j), k.load("w_word", s["tmp"], j))
            add(k, s, j + p, product)

    assert status(claim(partial(cleared_from, 0), triangle, ROWS, least=0)) is Status.PROVED
    wrong = claim(partial(cleared_from, 2), triangle, ROWS, least=0)
    assert differs(wrong, {"n": 1, "m": 1})
    assert status(wrong) is not Status.PROVED


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_of_another_order_is_not_proved(name: str, fault: str) -> None:
    wrong = of(name, fault)
    assert any(differs(wrong, sizes) for sizes in SIZES)
    assert status(wrong) is not Status.PROVED
