"""What recorded runs are made of: places of words, constants, and steps whose results are only congruent."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import Kernel, concat, const, ite, mem, var
from ila_lang.arrays import execution, lowering, ranges, trace
from ila_lang.arrays.vectorise import plan_of
from ila_lang.arrays.windows import Window, Write, narrowed
from tests.ila_lang.arrays.test_fast_simulation import same_as_the_walk

RANDOMS = st.integers(0, 1 << 32).map(Random)

# -- places -------------------------------------------------------------------------------------------------


def grid_of(random: Random, counts: tuple[int, ...], size: int) -> tuple[list[Any], Any]:
    """Addresses over a grid as a sum of what each counter adds; mostly of multiples, also of its digits."""
    parts, total = [], np.zeros((1,) * len(counts), np.int64)
    for dim, count in enumerate(counts):
        counter = np.arange(count).reshape((-1,) + (1,) * (len(counts) - dim - 1))
        digit = random.choice([1, 2, 3, 4])
        step = random.choice([0, 1, 1, 2, 8, 16, -1])
        part = random.choice([
            counter * step, counter // digit * random.choice([16, 5]) + counter % digit * step, counter * counter,
        ])  # fmt: skip
        total = total + part
        parts.append(part)
    return parts, total % size


def random_grid(random: Random) -> tuple[tuple[int, ...], Any, Any]:
    """The counts of a grid, an array of words and addresses of some of them."""
    counts = tuple(random.choice([1, 2, 3, 4, 6, 8]) for _ in range(random.randint(1, 3)))
    words = np.arange(256, dtype=random.choice([np.uint8, np.uint16, np.int64]))
    _, flat = grid_of(random, counts, len(words))
    return counts, words, flat


@settings(max_examples=300, deadline=None)
@given(RANDOMS)
def test_windows(random: Random) -> None:
    """What a window reads is what the addresses select, of the given array or of its own, and it is a copy."""
    _, words, flat = random_grid(random)
    index: tuple[Any, ...] = (flat,)
    if random.random() < 0.5:
        words, index = words.reshape(16, 16), (flat // 16, flat % 16)
    own = words if random.random() < 0.5 else None
    window = Window(own, words, index)
    found = window.read(words)
    expected = words.reshape(-1)[flat]
    assert found.dtype == words.dtype
    assert found.tolist() == expected.tolist()
    words.reshape(-1)[:] = 0
    assert found.tolist() == expected.tolist()


@settings(max_examples=300, deadline=None)
@given(RANDOMS)
def test_writes(random: Random) -> None:
    """What is stored under a mask, at places that are all different."""
    counts, words, flat = random_grid(random)
    places, first = np.unique(np.broadcast_to(flat, counts), return_index=True)
    different = np.zeros(counts, bool)
    different.reshape(-1)[first] = True
    masks = [different & (np.indices(counts)[0] < random.choice([1, 2, 9]))]
    if len(places) == np.prod(counts):
        masks += [None, np.ones((1,) * len(counts), bool), np.indices(counts)[-1] >= random.choice([1, 99])]
    mask = random.choice(masks)
    value = np.arange(int(np.prod(counts))).reshape(counts) + 50
    if random.random() < 0.3:
        value = value[:1]
    index: tuple[Any, ...] = (flat,)
    own = random.random() < 0.5
    if own:
        words, index = words.reshape(16, 16), (flat // 16, flat % 16)
    expected = words.copy().reshape(-1)
    active = np.broadcast_to(True if mask is None else mask, counts)
    expected[np.broadcast_to(flat, counts)[active]] = np.broadcast_to(value, counts)[active]
    Write(words if own else None, words, index, mask, value.shape).write(words, value)
    assert words.reshape(-1).tolist() == expected.tolist()


def test_regular_places_are_views() -> None:
    """Multiples, digits and parts of a grid need no list of indices; other places have one."""
    words = np.arange(4096, dtype=np.uint16)
    i, j = np.arange(16).reshape(-1, 1), np.arange(32)
    assert Window(None, words, (i * 32 + j,)).nbytes == 0
    assert Window(None, words, ((i >> 3) * 256 + (i & 7) + j * 8,)).digits == (2, 8, 32)
    assert Window(None, words, (i * i + j,)).digits is None
    assert Window(None, words[::2], (i * 32 + j,)).digits is None
    assert Window(None, words, (i * 32 + j,)).injective
    assert not Window(None, words, (i * 31 + j,)).injective
    assert Write(None, words, (i * 31 + j,), None, (16, 32)).window.digits is None
    store = Write(None, words, (i * 32 + j,), (i < 5) & (j > 2), (16, 32))
    assert store.box == (slice(0, 5), slice(3, 32))
    assert Write(None, words, (i * 32 + j,), i != j, (16, 32)).box is None


def test_narrowed() -> None:
    grid = np.indices((3, 4, 5))
    assert narrowed(grid[1]).shape == (1, 4, 1)
    assert narrowed(grid[0] + grid[2]).shape == (3, 1, 5)
    assert narrowed(np.full((3, 4), 7)) == 7
    assert isinstance(narrowed(np.full((3, 4), 7)), int)
    assert narrowed(9) == 9


# -- steps --------------------------------------------------------------------------------------------------

SRC, OTHER = var("src", mem(6, 8)), var("other", mem(6, 8))


def target(width: int) -> il.Expr:
    return var("target", mem(6, width))


def contents(seed: int) -> dict[str, dict[int, int]]:
    random = Random(seed)
    return {
        n: {a: random.choice([0, 1, 127, 128, 255, random.randrange(256)]) for a in range(64)} for n in ("src", "other")
    }


def summing(
    width: int, add: Callable[[il.Expr, il.Expr], il.Expr], use: Callable[[il.Expr], il.Expr], start: int = -3
) -> Kernel:
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


USES: dict[str, Callable[[il.Expr], il.Expr]] = {
    "itself": lambda acc: acc,
    "its half": lambda acc: acc.ashr(1) ^ acc,
    "a comparison": lambda acc: ite(acc.slt(3), acc + 1, acc - 1),
    "its square": lambda acc: acc * acc,
    "an address": lambda acc: acc + OTHER.load(acc[5:0]).zext(acc.width) * 3,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("width", [8, 16, 17, 31, 32, 33, 40, 62])
@pytest.mark.parametrize("start", [0, -3])
def test_sums_that_are_not_cut(start: int, width: int, use: str) -> None:
    """A sum over axes is only congruent to the register; whatever uses it has to see the register."""

    def add(a: il.Expr, b: il.Expr) -> il.Expr:
        return il.resize(a, width) * il.resize(b, width) ^ il.resize(a, width)

    kernel = summing(width, add, USES[use], start)
    for seed in range(2):
        same_as_the_walk(kernel, {}, contents(seed))


@pytest.mark.parametrize("kind", ["uint32", "int64"])
def test_products_of_words_of_any_type(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Factors of a product of matrices are signed numbers, whatever the type of the array that they come from."""
    monkeypatch.setattr(execution, "PRODUCT_POINTS", 1)
    left, right, store = var("left", mem(6, 24)), var("right", mem(6, 24)), target(24)
    kernel = Kernel("products")
    with kernel.loop("i", const(5, 3)) as i, kernel.loop("j", const(4, 3)) as j:
        acc = kernel.let("acc", const(0, 24))
        with kernel.loop("k", const(7, 3)) as k:
            kernel.assign(acc, acc + kernel.load("a", left, concat(i, k)) * kernel.load("b", right, concat(k, j)))
        kernel.store(store, concat(i, j), acc)
    random = np.random.default_rng(7)
    for _ in range(4):
        arrays = {n: random.integers((1 << 24) - 999, 1 << 24, 64).astype(kind) for n in ("left", "right")}
        arrays["target"] = np.zeros(64, np.int64)
        words = {n: dict(enumerate(a.tolist())) for n, a in arrays.items()}
        il.run_vectorised(kernel, {}, arrays)
        il.compile_kernel(kernel)({}, words, None)
        assert arrays["target"].tolist() == [words["target"][a] for a in range(64)]


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


def test_a_long_chain_of_terms_is_recorded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for nodes, leaves in ((600, 16), (6, 16), (600, 1), (600, 2)):
        monkeypatch.setattr(trace, "MOST_NODES", nodes)
        monkeypatch.setattr(trace, "MOST_LEAVES", leaves)
        kernel, store = Kernel("k"), target(8)
        with kernel.loop("i", const(6, 3)) as i:
            x = kernel.let("x", SRC.load(i.zext(6)))
            with kernel.loop("t", const(60, 6)) as t:
                kernel.assign(x, x * 5 + OTHER.load(t) + i.zext(8))
            kernel.store(store, i.zext(6), x)
        same_as_the_walk(kernel, {}, contents(4))


@pytest.mark.parametrize("many", [0, 1 << 30])
def test_large_and_small_arrays(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """The two ways in which a choice is computed."""
    monkeypatch.setattr(trace, "MANY", many)
    kernel, store = Kernel("k"), target(8)
    with kernel.loop("i", const(8, 4)) as i, kernel.loop("j", const(8, 4)) as j:
        a, b = SRC.load(concat(i[2:0], j[2:0])), OTHER.load(concat(j[2:0], i[2:0]))
        word = ite(a.slt(b), a - b, ite(b[0] == 1, b << 1, const(0, 8)))
        kernel.store(
            store, concat(i[2:0], j[2:0]), ite(word == a, ~word, word) ^ ite(a < 3, const(200, 8), const(9, 8))
        )
    for seed in range(3):
        same_as_the_walk(kernel, {}, contents(seed))


@pytest.mark.parametrize("kinds", [("uint8", "int64"), ("int64", "uint8"), ("uint16", "uint8"), ("uint8", "sliced")])
def test_arrays_of_other_types_have_runs_of_their_own(kinds: tuple[str, str]) -> None:
    """A recorded run is for arrays of one type: the next ones may be of another, or no block of memory."""
    kernel, store = Kernel("k"), target(8)
    with kernel.loop("i", const(32, 6)) as i:
        kernel.store(store, i, SRC.load(i).ashr(1) - OTHER.load(i + 32))
    random = np.random.default_rng(5)
    for kind in (*kinds, *kinds, *kinds, *kinds):
        arrays = {n: random.integers(0, 256, 64) for n in ("src", "other", "target")}
        words = {n: dict(enumerate(a.tolist())) for n, a in arrays.items()}
        if kind == "sliced":
            arrays = {n: np.repeat(a, 2)[::2] for n, a in arrays.items()}
        else:
            arrays = {n: a.astype(kind) for n, a in arrays.items()}
        il.run_vectorised(kernel, {}, arrays)
        il.compile_kernel(kernel)({}, words, None)
        assert arrays["target"].tolist() == [words["target"][a] for a in range(64)]


def test_stores_that_do_not_fill_their_type_are_cut() -> None:
    """A word of five bits in an array of bytes: what is only congruent to it must not be stored."""
    kernel, store = Kernel("k"), target(5)
    with kernel.loop("i", const(8, 4)) as i:
        kernel.store(store, i.zext(6), (SRC.load(i.zext(6)) - OTHER.load(i.zext(6)))[4:0] + 9)
    assert plan_of(kernel).memories["target"].data_width == 5
    for seed in range(3):
        same_as_the_walk(kernel, {}, contents(seed))


def test_numbers_that_no_axis_makes_arrays() -> None:
    """Loads outside all loops are numbers, and meet arrays within them."""
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


def test_parts_that_are_the_same_in_every_run_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions over counters are constants of a recorded run: no division by them is left in it."""
    kernel, store = Kernel("k"), target(8)
    with kernel.loop("i", const(30, 6)) as i:
        first = (i % 7 == 3) & (i // 3 != 2)
        kernel.store(store, i, ite(first, SRC.load(i), OTHER.load(i)))
    texts: list[str] = []
    build = ranges.Lines.build

    def spy(lines: Any, result: str) -> Any:
        texts.extend(text for _, text in lines.lines)
        return build(lines, result)

    monkeypatch.setattr(ranges.Lines, "build", spy)
    lowering.lower.cache_clear()
    same_as_the_walk(kernel, {}, contents(2))
    assert texts
    assert not any("%" in text or "//" in text for text in texts)
