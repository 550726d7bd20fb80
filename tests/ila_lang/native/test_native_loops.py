"""Loops in which iterations meet in a word, sums over loops, and arrays of other types, in native code."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import Expr, Kernel, concat, const, ite, mem, resize, var
from ila_lang.language.kernel import For, Let, Statement, Store
from tests.ila_lang.native.test_native_kernels import same_as_the_walk

SOURCE, TARGET, STRIDE = var("source", mem(8, 8)), var("target", mem(8, 8)), var("stride", il.bv(8))
CONTENTS = {"source": {i: 37 * i % 251 for i in range(256)}, "target": {i: 91 * i % 241 for i in range(256)}}


def mixed(old: Expr, more: Expr) -> Expr:
    """What depends on the order in which words are added."""
    return (old * 5 + more) ^ (old >> 3)


def scattering(random: Random) -> Kernel:
    """A convolution by input rows and columns: each adds to the outputs that its taps meet, in the input's order."""
    kernel = Kernel("scattering")
    rows, columns, taps = (random.randint(1, most) for most in (7, 5, 4))
    stride: Expr = STRIDE if random.random() < 0.5 else const(random.randint(1, 4), 8)
    two = random.random() < 0.7
    early, late, channel = (random.random() < 0.5 for _ in range(3))

    def visited(position: Expr) -> Expr:
        return (const(taps, 8) + (stride - 1) - position % stride) // stride

    def inner(row: Expr, column: Expr, row_tap: Expr, column_tap: Expr, more: Expr) -> None:
        k_row, k_column = row % stride + row_tap * stride, column % stride + column_tap * stride
        out_row, out_column = (row - k_row) // stride, (column - k_column) // stride
        word = kernel.load("word", SOURCE, (row * 5 + column) * 3 + k_row * 2 + k_column)
        place = out_row * 16 + out_column + more * 4

        def put() -> None:
            old = kernel.load("old", TARGET, place)
            kernel.store(TARGET, place, mixed(old, word + row_tap))

        if late:
            with kernel.when("inside", (k_row <= row) & (k_column <= column)):
                put()
        else:
            put()

    with kernel.loop("more", const(2 if channel else 1, 8)) as more, kernel.loop("row", const(rows, 8)) as row:
        offset = kernel.load("offset", SOURCE, row) if early else const(0, 8)
        if two:
            with (
                kernel.loop("column", const(columns, 8)) as column,
                kernel.loop("row_tap", visited(row)) as row_tap,
                kernel.loop("column_tap", visited(column)) as column_tap,
            ):
                inner(row, column, row_tap, column_tap, more + (offset & 1))
        else:
            with kernel.loop("row_tap", visited(row)) as row_tap, kernel.loop("column", const(columns, 8)) as column:
                inner(row, column, row_tap, const(0, 8), more + (offset & 1))
    return kernel


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_random_scattering(random: Random) -> None:
    values = {"stride": random.randint(1, 4)}
    same_as_the_walk(scattering(random), values, CONTENTS)


def test_rows_that_go_through_a_scratchpad() -> None:
    """Differences, and then differences of these."""
    scratch, kernel = var("scratch", mem(4, 8)), Kernel("filtering")
    with kernel.loop("row", const(20, 8)) as row:
        with kernel.loop("a", const(8, 8)) as a:
            kernel.store(scratch, a[3:0], SOURCE.load(row * 8 + a + 1) - SOURCE.load(row * 8 + a))
        with kernel.loop("b", const(7, 8)) as b:
            kernel.store(TARGET, row * 8 + b, scratch.load((b + 1)[3:0]) - scratch.load(b[3:0]))
    same_as_the_walk(kernel, {}, CONTENTS)


SRC, OTHER = var("src", mem(6, 8)), var("other", mem(6, 8))


def target(width: int) -> Expr:
    return var("target", mem(6, width))


def contents(seed: int) -> dict[str, dict[int, int]]:
    random = Random(seed)
    return {
        n: {a: random.choice([0, 1, 127, 128, 255, random.randrange(256)]) for a in range(64)} for n in ("src", "other")
    }


def summing(width: int, add: Callable[[Expr, Expr], Expr], use: Callable[[Expr], Expr], start: int = -3) -> Kernel:
    """A sum of ``width`` bits over two loops for each of five words, and what uses it."""
    kernel = Kernel("summing")
    with kernel.loop("i", const(5, 3)) as i:
        acc = kernel.let("acc", const(start % (1 << width), width))
        with kernel.loop("j", const(6, 3)) as j, kernel.loop("k", const(3, 2)) as k:
            a = kernel.load("a", SRC, concat(i, j))
            b = kernel.load("b", OTHER, concat(i, const(0, 1), k))
            kernel.assign(acc, acc + add(a, b))
        kernel.store(target(width), i.zext(6), use(acc))
    return kernel


USES: dict[str, Callable[[Expr], Expr]] = {
    "itself": lambda acc: acc,
    "its half": lambda acc: acc.ashr(1) ^ acc,
    "a comparison": lambda acc: ite(acc.slt(3), acc + 1, acc - 1),
    "its square": lambda acc: acc * acc,
    "an address": lambda acc: acc + OTHER.load(acc[5:0]).zext(acc.width) * 3,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("width", [8, 17, 32, 33, 62, 70])
def test_sums(width: int, use: str) -> None:

    def add(a: Expr, b: Expr) -> Expr:
        return resize(a, width) * resize(b, width) ^ resize(a, width)

    kernel = summing(width, add, USES[use])
    for seed in range(2):
        same_as_the_walk(kernel, {}, contents(seed))


def test_sums_of_which_parts_do_not_depend_on_a_loop() -> None:
    """What is the same in all iterations counts once for each; what is the same for all is a number."""
    for add in (lambda a, b: a.sext(20), lambda a, b: b.sext(20), lambda a, b: const(12345, 20)):
        same_as_the_walk(summing(20, add, lambda acc: acc), {}, contents(3))


@pytest.mark.parametrize("late", [False, True])
def test_sums_of_what_a_mask_leaves(late: bool) -> None:
    """Masks that vary along what is summed, and masks that do not."""
    kernel, store = Kernel("k"), target(16)
    with kernel.loop("i", const(5, 3)) as i:
        acc = kernel.let("acc", const(7, 16))
        with kernel.loop("j", const(6, 3)) as j:
            inside = i < 3 if late else (i + j) < 5
            with kernel.when("inside", inside):
                a = kernel.load("a", SRC, concat(i, j))
                kernel.assign(acc, acc + a.sext(16) * 3)
        kernel.store(store, i.zext(6), acc)
    same_as_the_walk(kernel, {}, contents(1))


@pytest.mark.parametrize("kinds", [("uint8", "int64"), ("int64", "uint8"), ("uint16", "uint8"), ("uint8", "sliced")])
def test_arrays_of_other_types(kinds: tuple[str, str]) -> None:
    kernel, store = Kernel("k"), target(8)
    with kernel.loop("i", const(32, 6)) as i:
        kernel.store(store, i, SRC.load(i).ashr(1) - OTHER.load(i + 32))
    random = np.random.default_rng(5)
    for kind in kinds:
        arrays = {n: random.integers(0, 256, 64) for n in ("src", "other", "target")}
        words = {n: dict(enumerate(a.tolist())) for n, a in arrays.items()}
        if kind == "sliced":
            arrays = {n: np.repeat(a, 2)[::2] for n, a in arrays.items()}
        else:
            arrays = {n: a.astype(kind) for n, a in arrays.items()}
        il.run_on_arrays(kernel, {}, arrays)
        il.compile_kernel(kernel)({}, words, None)
        assert arrays["target"].tolist() == [words["target"][a] for a in range(64)]


def test_stores_that_do_not_fill_their_type_are_cut() -> None:
    """A word of five bits in an array of bytes."""
    kernel, store = Kernel("k"), target(5)
    with kernel.loop("i", const(8, 4)) as i:
        kernel.store(store, i.zext(6), (SRC.load(i.zext(6)) - OTHER.load(i.zext(6)))[4:0] + 9)
    for seed in range(3):
        same_as_the_walk(kernel, {}, contents(seed))


def test_loads_outside_of_all_loops() -> None:
    kernel, store = Kernel("k"), target(8)
    x = kernel.let("x", SRC.load(const(5, 6)) + 200)
    total = kernel.let("total", const(3, 24))
    with kernel.loop("i", const(8, 4)) as i:
        a = kernel.load("a", OTHER, i.zext(6))
        kernel.store(store, i.zext(6), ite(x.slt(a), x * a, a - x))
        kernel.assign(total, total + x.sext(24) * 7)
    kernel.store(store, const(60, 6), total[15:8])
    for seed in range(3):
        same_as_the_walk(kernel, {}, contents(seed))


@pytest.mark.parametrize("inner", [False, True])
def test_a_counter_with_the_name_of_a_register_whose_scope_has_ended(inner: bool) -> None:
    """A division by it is not the same in all iterations."""
    r, i, j, out = var("r", il.bv(8)), var("i", il.bv(8)), var("j", il.bv(8)), var("out", mem(3, 8))
    ended = For(i, const(1, 8), (Let(r, const(9, 8)), Store(out, const(7, 3), r)))
    counted = For(r, const(4, 8), (Store(out, r[2:0], const(100, 8) // (r + 1)),))
    again = For(i, const(2, 8), (Let(r, i + 2), Store(out, const(6, 3), const(100, 8) // r)))
    body: list[Statement] = [ended, counted, again]
    kernel = Kernel("k", body=[For(j, const(2, 8), tuple(body))] if inner else body)
    same_as_the_walk(kernel, {}, {})
    array = np.zeros(8, np.uint8)
    il.run_on_arrays(kernel, {}, {"out": array})
    assert array.tolist() == [100, 50, 33, 25, 0, 0, 33, 9]
