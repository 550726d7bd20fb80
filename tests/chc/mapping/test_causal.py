"""Sums over rows that depend on the row of the output, and masks and paddings as shorter loops; and wrong ones.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pytest

from ila_lang import Expr, Kernel, bv, const, ite, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status, step
from tests.chc.mapping.toy import DOMAIN, M, N, differs, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
Bound = Callable[[Expr, Expr], Expr]
"""Of a row, among so many rows."""
ZERO = const(0, 32)


@dataclass(frozen=True)
class Span:
    """Row i sums up ``many`` rows from row ``begin`` on."""

    begin: Bound = lambda i, n: ZERO
    many: Bound = lambda i, n: i + 1


def least(one: Expr, other: Expr) -> Expr:
    return ite(one < other, one, other)


def low(i: Expr, n: Expr) -> Expr:
    return ite(i < 2, ZERO, i - 2)


CAUSAL = Span()
REST = Span(lambda i, n: i, lambda i, n: n - i)
BAND = Span(low, lambda i, n: least(n, i + 2) - low(i, n))


def masked(span: Span, k: Kernel, s: States, begin: int = 7) -> None:
    """dst[i, j] = fold over the rows x of the span of src[x, j], by a mask over all rows."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc, first = k.let("acc", const(begin, 8)), span.begin(i, s["n"])
        with k.loop("x", s["n"]) as x, k.when("inside", (first <= x) & (x < first + span.many(i, s["n"]))):
            k.assign(acc, step(acc, k.load("word", s["src"], x * s["m"] + j)))
        k.store(s["dst"], i * s["m"] + j, acc)


def short(span: Span, k: Kernel, s: States, begin: int = 7) -> None:
    """The same by a loop over the span."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc, first = k.let("acc", const(begin, 8)), span.begin(i, s["n"])
        with k.loop("x", span.many(i, s["n"])) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], (first + x) * s["m"] + j)))
        k.store(s["dst"], i * s["m"] + j, acc)


@pytest.mark.parametrize("span", [CAUSAL, REST, BAND], ids=["causal", "rest", "band"])
def test_a_mask_is_a_shorter_loop(span: Span) -> None:
    for device, ir in ((short, masked), (masked, short)):
        assert status(flow(mapping(partial(device, span), partial(ir, span)))) is Status.PROVED


WRONG_SPANS: dict[str, tuple[Span, Span]] = {
    "the row itself is left out": (Span(many=lambda i, n: i), CAUSAL),
    "one row more": (Span(many=lambda i, n: least(n, i + 2)), CAUSAL),
    "all rows": (Span(many=lambda i, n: n), CAUSAL),
    "from the second row on": (
        Span(lambda i, n: ite(i == 0, ZERO, ZERO + 1), lambda i, n: ite(i == 0, i + 1, i)),
        CAUSAL,
    ),
    "the rest for the beginning": (REST, CAUSAL),
    "the rest without the row itself": (Span(lambda i, n: i + 1, lambda i, n: n - i - 1), REST),
    "the rest without the last row": (Span(REST.begin, lambda i, n: n - i - 1), REST),
    "a wider band": (Span(low, lambda i, n: least(n, i + 3) - low(i, n)), BAND),
    "a band that begins one later": (Span(lambda i, n: low(i, n) + 1, lambda i, n: BAND.many(i, n) - 1), BAND),
    "a band as long as if it began with the first row": (Span(low, lambda i, n: least(n - low(i, n), i + 2)), BAND),
}


@pytest.mark.parametrize("name", WRONG_SPANS)
def test_a_mask_is_no_other_loop(name: str) -> None:
    device, ir = WRONG_SPANS[name]
    for body in (short, masked):
        claim = flow(mapping(partial(body, device), partial(masked, ir)))
        assert differs(claim, {"n": 6, "m": 2})
        assert status(claim, second=False) is not Status.PROVED


def test_what_is_masked_must_change_nothing() -> None:
    def counts(k: Kernel, s: States) -> None:
        """Each masked row adds 1."""
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(7, 8))
            with k.loop("x", s["n"]) as x:
                word = k.load("word", s["src"], x * s["m"] + j)
                k.assign(acc, ite(x <= i, step(acc, word), acc + 1))
            k.store(s["dst"], i * s["m"] + j, acc)

    claim = flow(mapping(partial(short, CAUSAL), counts))
    assert differs(claim, {"n": 3, "m": 2})
    assert status(claim, second=False) is not Status.PROVED


# -- in memory, in the orders of triangular loops, and from the host ----------------------------------------------


def in_memory(
    order: str,
    k: Kernel,
    s: States,
    *,
    many: Bound = CAUSAL.many,
    begin: int | None = 7,
    read: Callable[[Expr, Expr], Expr] = lambda i, x: x,
) -> None:
    """Row i is updated with each row up to it, in one of several orders of the loops."""
    n, m = s["n"], s["m"]
    if begin is not None:
        with k.loop("iz", n) as i, k.loop("jz", m) as j:
            k.store(s["dst"], i * m + j, const(begin, 8))

    def update(i: Expr, j: Expr, x: Expr) -> None:
        old = k.load("old", s["dst"], i * m + j)
        k.store(s["dst"], i * m + j, step(old, k.load("word", s["src"], read(i, x) * m + j)))

    if order == "ixj":
        with k.loop("i", n) as i, k.loop("x", many(i, n)) as x, k.loop("j", m) as j:
            update(i, j, x)
    elif order == "jix":
        with k.loop("j", m) as j, k.loop("i", n) as i, k.loop("x", many(i, n)) as x:
            update(i, j, x)
    else:  # a row is added to all rows from it on
        with k.loop("x", n) as x, k.loop("p", n - x) as p, k.loop("j", m) as j:
            update(x + p, j, x)


def by_rows(k: Kernel, s: States, *, cleared: bool = True, many: Bound = CAUSAL.many) -> None:
    """One row of accumulators serves all rows of the output."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i:
        if cleared:
            with k.loop("jz", m) as j:
                k.store(s["tmp"], j, const(7, 8))
        with k.loop("x", many(i, n)) as x, k.loop("j", m) as j:
            k.store(s["tmp"], j, step(k.load("old", s["tmp"], j), k.load("word", s["src"], x * m + j)))
        with k.loop("jo", m) as j:
            k.store(s["dst"], i * m + j, k.load("sum", s["tmp"], j))


MEMORY: dict[str, Body] = {order: partial(in_memory, order) for order in ("ixj", "jix", "xij")} | {"rows": by_rows}


@pytest.mark.parametrize("name", MEMORY)
def test_triangular_sums_in_memory(name: str) -> None:
    for ir in (short, masked):
        assert status(flow(mapping(MEMORY[name], partial(ir, CAUSAL)))) is Status.PROVED


@pytest.mark.parametrize(("inside", "expected"), [(True, Status.PROVED), (False, Status.UNKNOWN)])
def test_each_of_three_loops_goes_on_from_its_own_register(inside: bool, expected: Status) -> None:
    def in_memory(k: Kernel, s: States) -> None:
        n, m = s["n"], s["m"]
        with k.loop("iz", n) as i, k.loop("jz", m) as j:
            k.store(s["dst"], i * m + j, const(7, 8))
        rows, columns = k.loop("i", n), k.loop("j", m)
        with rows as i, columns as j, k.loop("b", m) as b, k.loop("c", b + 1) as c, k.loop("x", c + 1) as x:
            old = k.load("old", s["dst"], i * m + j)
            k.store(s["dst"], i * m + j, step(old, k.load("word", s["src"], i * m + x)))

    def in_registers(k: Kernel, s: States) -> None:
        """A block begins with what is there before it, or before the blocks around it."""
        n, m = s["n"], s["m"]
        with k.loop("i", n) as i, k.loop("j", m) as j:
            outer = k.let("outer", const(7, 8))
            with k.loop("b", m) as b:
                middle = k.let("middle", outer)
                with k.loop("c", b + 1) as c:
                    inner = k.let("inner", middle if inside else outer)
                    with k.loop("x", c + 1) as x:
                        k.assign(inner, step(inner, k.load("word", s["src"], i * m + x)))
                    k.assign(middle, inner)
                k.assign(outer, middle)
            k.store(s["dst"], i * m + j, outer)

    claim = flow(mapping(in_memory, in_registers))
    assert differs(claim, {"n": 2, "m": 3}) is not inside
    assert status(claim, second=False) is expected


WRONG_MEMORY: dict[str, Body] = {
    "it begins with what was there": partial(in_memory, "ixj", begin=None),
    "a row less": partial(in_memory, "ixj", many=lambda i, n: i),
    "a row more": partial(in_memory, "jix", many=lambda i, n: least(n, i + 2)),
    "all rows": partial(in_memory, "jix", many=lambda i, n: n),
    "from the row itself to the first": partial(in_memory, "ixj", read=lambda i, x: i - x),
    "columns outside, and it begins with what was there": partial(in_memory, "xij", begin=None),
    "it begins with another value": partial(in_memory, "xij", begin=8),
    "each row adds itself": partial(in_memory, "xij", read=lambda i, x: i),
    "in the other order": partial(in_memory, "xij", read=lambda i, x: i - x),
    "rows are not cleared": partial(by_rows, cleared=False),
    "rows of all rows": partial(by_rows, many=lambda i, n: n),
}


@pytest.mark.parametrize("name", WRONG_MEMORY)
def test_wrong_triangular_sums_are_not_proved(name: str) -> None:
    claim = flow(mapping(WRONG_MEMORY[name], partial(short, CAUSAL)))
    assert differs(claim, {"n": 4, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def from_host(more: int = 1, rounds: Callable[[Expr], Expr] = lambda n: n, same: bool = False) -> TensorMapping:
    """The host tells the device a row and how many rows to sum up."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(7, 8))
            with k.loop("x", s["many"]) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], x * s["m"] + j)))
            k.store(s["dst"], s["row"] * s["m"] + j, acc)

    def go(k: Kernel) -> None:
        k.command("go", run=true, op=const(0, 4), n_in=N.zext(32), m_in=M.zext(32))

    def program(k: Kernel, _: States) -> None:
        with k.loop("h", rounds(N.zext(32))) as h:
            k.command("row", run=true, op=const(3, 4), row_in=h * 0 if same else h)
            k.command("many", run=true, op=const(4, 4), many_in=h + more)
            go(k)

    extra = [("row", 32), ("many", 32)]
    ir = partial(masked, CAUSAL)
    return flow(mapping(device, ir, program=program, ir_program=lambda k, _: go(k), extra=extra))


def test_the_host_sends_rows_of_a_triangle() -> None:
    assert status(from_host()) is Status.PROVED
    for wrong in (from_host(0), from_host(2), from_host(rounds=lambda n: n - 1), from_host(same=True)):
        assert differs(wrong, {"n": 4, "m": 2})
        assert status(wrong) is not Status.PROVED


# -- windows that are cut at the border ---------------------------------------------------------------------------


WIDTH = var("w", bv(8))


def padded(k: Kernel, s: States, *, before: int = 1) -> None:
    """dst[i, j] = fold over a window of rows and columns around (i, j) of what is inside of the matrix."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i, k.loop("j", m) as j:
        acc = k.let("acc", const(7, 8))
        with k.loop("r", s["width"]) as r, k.loop("c", s["width"]) as c:
            y, x = i + r, j + c
            with k.when("inside", (y >= before) & (y < n + before) & (x >= before) & (x < m + before)):
                word = k.load("word", s["src"], ite(y >= before, y - before, y) * m + ite(x >= before, x - before, x))
                k.assign(acc, step(acc, word))
        k.store(s["dst"], i * m + j, acc)


def cut(k: Kernel, s: States, *, first: int = 1, more: int = 0, less: int = 0) -> None:
    """The same by loops from the first to the last row and column of the matrix that the window has."""
    n, m, size = s["n"], s["m"], s["width"] + more - less

    def begin(at: Expr) -> Expr:
        return ite(at < first, ZERO, at - first)

    with k.loop("i", n) as i, k.loop("j", m) as j:
        acc = k.let("acc", const(7, 8))
        with (
            k.loop("r", least(n, i + size - first) - begin(i)) as r,
            k.loop("c", least(m, j + size - first) - begin(j)) as c,
        ):
            k.assign(acc, step(acc, k.load("word", s["src"], (begin(i) + r) * m + begin(j) + c)))
        k.store(s["dst"], i * m + j, acc)


def windows(device: Body, ir: Body) -> TensorMapping:
    """The claim with windows of any size from 2 on."""

    def program(k: Kernel, _: States) -> None:
        k.command("width", run=true, op=const(3, 4), width_in=WIDTH.zext(32))
        k.command("go", run=true, op=const(0, 4), n_in=N.zext(32), m_in=M.zext(32))

    parameters = {"n": N, "m": M, "w": WIDTH}
    domain = (*DOMAIN, ("2 <= w <= 9", (const(2, 8) <= WIDTH) & (WIDTH <= 9)))
    extra = [("width", 32)]
    claim = mapping(device, ir, program=program, ir_program=program, parameters=parameters, domain=domain, extra=extra)
    return flow(replace(claim, sizes_of=lambda rows, columns: {"n": rows, "m": columns, "w": 3}))


@pytest.mark.parametrize("sides", [(cut, padded), pytest.param((padded, cut), marks=pytest.mark.slow)])
def test_a_padded_window_of_any_size_is_cut_at_the_border(sides: tuple[Body, Body]) -> None:
    assert status(windows(*sides)) is Status.PROVED


@pytest.mark.parametrize("wrong", [{"first": 0}, {"first": 2}, {"less": 1}, {"more": 1}])
def test_wrong_windows_are_not_proved(wrong: Mapping[str, int]) -> None:
    claim = windows(partial(cut, **wrong), padded)
    assert differs(claim, {"n": 4, "m": 3, "w": 3})
    assert status(claim, second=False) is not Status.PROVED


def some_rows(
    span: Span, k: Kernel, s: States, *, outside: bool = False, begin: int | None = 7, up: Bound = lambda x, n: x + 1
) -> None:
    """Each row is updated with those of its span, by a mask around the store; or each is added to those up to it."""
    n, m = s["n"], s["m"]
    if begin is not None:
        with k.loop("iz", n) as i, k.loop("jz", m) as j:
            k.store(s["dst"], i * m + j, const(begin, 8))

    def update(i: Expr, j: Expr, x: Expr) -> None:
        k.store(s["dst"], i * m + j, step(k.load("old", s["dst"], i * m + j), k.load("word", s["src"], x * m + j)))

    if outside:
        with k.loop("x", n) as x, k.loop("i", up(x, n)) as i, k.loop("j", m) as j:
            update(i, j, x)
        return
    with k.loop("i", n) as i, k.loop("x", n) as x, k.loop("j", m) as j:
        first = span.begin(i, n)
        with k.when("inside", (first <= x) & (x < first + span.many(i, n))):
            update(i, j, x)


SOME: dict[str, tuple[Body, Span]] = {
    "up to the row": (partial(some_rows, CAUSAL), CAUSAL),
    "from the row on": (partial(some_rows, REST), REST),
    "around the row": (partial(some_rows, BAND), BAND),
    "from the row on, by a triangle": (partial(some_rows, REST, outside=True), REST),
}


@pytest.mark.parametrize("name", SOME)
def test_some_iterations_add_to_a_cell(name: str) -> None:
    device, span = SOME[name]
    for ir in (short, masked):
        assert status(flow(mapping(device, partial(ir, span)))) is Status.PROVED


WRONG_SOME: dict[str, tuple[Body, Span]] = {
    "the mask lacks the row": (partial(some_rows, Span(many=lambda i, n: i)), CAUSAL),
    "the mask has one row more": (partial(some_rows, Span(many=lambda i, n: i + 2)), CAUSAL),
    "no mask": (partial(some_rows, Span(many=lambda i, n: n)), CAUSAL),
    "it begins with what was there": (partial(some_rows, REST, begin=None), REST),
    "it begins with another value": (partial(some_rows, REST, begin=8), REST),
    "the mask begins one later": (partial(some_rows, Span(lambda i, n: i + 1, REST.many)), REST),
    "a wider band": (partial(some_rows, Span(low, lambda i, n: least(n, i + 3) - low(i, n))), BAND),
    "a triangle without its diagonal": (partial(some_rows, REST, outside=True, up=lambda x, n: x), REST),
    "a triangle with a diagonal more": (
        partial(some_rows, REST, outside=True, up=lambda x, n: least(n, x + 2)),
        REST,
    ),
    "a triangle that begins with another value": (partial(some_rows, REST, outside=True, begin=0), REST),
    "a square": (partial(some_rows, REST, outside=True, up=lambda x, n: n), REST),
}


@pytest.mark.parametrize("name", WRONG_SOME)
def test_other_iterations_are_not_proved(name: str) -> None:
    device, span = WRONG_SOME[name]
    claim = flow(mapping(device, partial(short, span)))
    assert differs(claim, {"n": 5, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


# -- sums over pairs ----------------------------------------------------------------------------------------------


def pairs(
    k: Kernel,
    s: States,
    *,
    order: str = "registers",
    many: Bound = lambda p, n: p + 1,
    begin: int | None = 7,
    swapped: bool = False,
    anew: bool = False,
) -> None:
    """dst[i, j] = fold over the pairs q <= p of rows, in a register, by a mask, or in memory in several orders."""
    n, m = s["n"], s["m"]

    def both(p: Expr, q: Expr, j: Expr) -> Expr:
        one, two = k.load("one", s["src"], p * m + j), k.load("two", s["src"], q * m + j)
        return (two if swapped else one) * 3 + (one if swapped else two)

    if order in ("registers", "mask"):
        with k.loop("i", n) as i, k.loop("j", m) as j:
            acc = k.let("acc", const(7, 8))
            with k.loop("p", n) as p, k.loop("q", n if order == "mask" else many(p, n)) as q:
                word = step(acc, both(p, q, j))
                k.assign(acc, ite(q <= p, word, acc) if order == "mask" else word)
            k.store(s["dst"], i * m + j, acc)
        return

    def update(i: Expr, j: Expr, p: Expr, q: Expr) -> None:
        k.store(s["dst"], i * m + j, step(k.load("old", s["dst"], i * m + j), both(p, q, j)))

    def clear(what: str) -> None:
        if begin is not None:
            with k.loop(f"i{what}", n) as i, k.loop(f"j{what}", m) as j:
                k.store(s["dst"], i * m + j, const(begin, 8))

    clear("before")
    if order == "ijpq":
        with k.loop("i", n) as i, k.loop("j", m) as j, k.loop("p", n) as p, k.loop("q", many(p, n)) as q:
            update(i, j, p, q)
    elif order == "piqj":
        with k.loop("p", n) as p:
            if anew:
                clear("inside")
            with k.loop("i", n) as i, k.loop("q", many(p, n)) as q, k.loop("j", m) as j:
                update(i, j, p, q)
    else:  # the other order of pairs
        with k.loop("q", n) as q, k.loop("p", n - q) as p, k.loop("i", n) as i, k.loop("j", m) as j:
            update(i, j, q + p, q)


@pytest.mark.parametrize("order", ["registers", "ijpq", "piqj"])
def test_sums_over_pairs(order: str) -> None:
    for ir in ("registers", "mask"):
        assert status(flow(mapping(partial(pairs, order=order), partial(pairs, order=ir)))) is Status.PROVED


WRONG_PAIRS: dict[str, Body] = {
    "pairs of different rows only": partial(pairs, order="ijpq", many=lambda p, n: p),
    "all pairs": partial(pairs, order="ijpq", many=lambda p, n: n),
    "q up to p + 1": partial(pairs, order="piqj", many=lambda p, n: least(n, p + 2)),
    "the second row first": partial(pairs, order="piqj", swapped=True),
    "it begins with what was there": partial(pairs, order="ijpq", begin=None),
    "it begins with another value": partial(pairs, order="piqj", begin=8),
    "it begins anew for each p": partial(pairs, order="piqj", anew=True),
    "in the other order": partial(pairs, order="qp"),
    "nothing for the first row": partial(pairs, order="ijpq", many=lambda p, n: ite(p == 0, ZERO, p + 1)),
    "a mask of different rows": partial(pairs, order="registers", many=lambda p, n: p),
}


@pytest.mark.parametrize("name", WRONG_PAIRS)
def test_wrong_sums_over_pairs_are_not_proved(name: str) -> None:
    for ir in ("registers", "mask"):
        claim = flow(mapping(WRONG_PAIRS[name], partial(pairs, order=ir)))
        assert differs(claim, {"n": 4, "m": 3})
        assert status(claim, second=False) is not Status.PROVED
