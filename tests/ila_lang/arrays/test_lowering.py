"""Terms as few and narrow operations on arrays, against the scalar interpreter: values, ranges and types."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import BOOL, Expr, bv, compile_terms, concat, const, ite, resize, var
from ila_lang.arrays.lowering import lower
from ila_lang.arrays.ranges import Form, known_form

#: On both sides of where integers of 32 bits, and of 64, end, and of the types of memories.
WIDTHS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 20, 30, 31, 32, 33, 34, 47, 48, 61, 62]
POINTS = 150


@il.primitive(a=bv(8), b=bv(5))
def tabled(a: Expr, b: Expr) -> Expr:
    """A function that is looked up, with constant arguments or without."""
    wide = b.zext(8)
    return ite(a[7] == 1, a * 3 + wide, (a ^ wide) - (a & 7)).ashr(wide & 7)


class Terms:
    """Random terms over ``leaves``."""

    def __init__(self, random: Random, leaves: list[Expr]) -> None:
        self.random = random
        self.numbers = [v for v in leaves if v.sort != BOOL]
        self.flags = [v for v in leaves if v.sort == BOOL]

    def leaf(self, width: int) -> Expr:
        if self.random.random() < 0.3:
            top = (1 << width) - 1
            edges = [0, 1, 2, top, top >> 1, (top >> 1) + 1, self.random.randint(0, top), self.random.randint(0, 31)]
            return const(self.random.choice(edges) & top, width)
        found = self.random.choice(self.numbers)
        return found.sext(width) if found.width < width and self.random.random() < 0.5 else resize(found, width)

    def wider(self, width: int) -> int:
        return self.random.choice([w for w in WIDTHS if w >= width])

    def amount(self, width: int, depth: int) -> Expr:
        if self.random.random() < 0.3:
            return self.number(width, depth)
        return const(self.random.randrange(width + 2) % (1 << width), width)

    def number(self, width: int, depth: int) -> Expr:
        """A term of ``width`` bits."""
        if depth <= 0 or self.random.random() < 0.12:
            return self.leaf(width)

        def t(w: int = width) -> Expr:
            return self.number(w, depth - 1)

        cut = self.random.randrange(1, width) if width > 1 else 0
        makers: list[Callable[[], Expr]] = [
            lambda: t() + t(), lambda: t() - t(), lambda: t() * t(), lambda: -t(), lambda: ~t(),
            lambda: t() & t(), lambda: t() | t(), lambda: t() ^ t(), lambda: t() // t(), lambda: t() % t(),
            lambda: t() << self.amount(width, depth - 1), lambda: t() >> self.amount(width, depth - 1),
            lambda: t().ashr(self.amount(width, depth - 1)), lambda: self.bits(width, depth),
            lambda: self.bits(width, depth), lambda: self.magnitude(t()), lambda: self.extreme(width, depth),
            lambda: self.clipped(width, depth), lambda: self.moved(t()), lambda: self.selected(width, depth),
            lambda: resize(tabled(t(8), self.random.choice([t(5), const(self.random.randrange(32), 5)])), width),
            lambda: ite(self.flag(depth - 1), t(), t()), lambda: ite(self.flag(depth - 1), t(), const(0, width)),
        ]  # fmt: skip
        if cut:
            makers += [lambda: concat(t(cut), t(width - cut)), lambda: t(cut).sext(width), lambda: t(cut).zext(width)]
        return self.random.choice(makers)()

    def bits(self, width: int, depth: int) -> Expr:
        wide = self.wider(width)
        low = self.random.randrange(wide - width + 1)
        return self.number(wide, depth - 1)[low + width - 1 : low]

    def magnitude(self, x: Expr) -> Expr:
        return ite(self.random.choice([x[x.width - 1] == 1, x.slt(0)]), -x, x)

    def extreme(self, width: int, depth: int) -> Expr:
        x, y = (self.number(width, depth - 1) for _ in "xy")
        if self.random.random() < 0.3:
            y = const(0, width)
        test = self.random.choice([x.slt(y), x.sle(y), x < y, x <= y])
        return self.random.choice([ite(test, x, y), ite(test, y, x)])

    def clipped(self, width: int, depth: int) -> Expr:
        """A number between two constants, which may cross, or stand in the wrong places."""
        wide = self.wider(width)
        x, high = self.number(wide, depth - 1), const(self.random.randrange(1 << wide), wide)
        low = self.random.choice([~high, const(self.random.randrange(1 << wide), wide)])
        below: Callable[[Expr, Expr], Expr] = self.random.choice([Expr.slt, Expr.sle, Expr.__lt__, Expr.__le__])
        last = self.random.choice([x, x, x, low])
        found = self.random.choice([
            ite(below(high, x), high, ite(below(x, low), low, last)),
            ite(below(x, low), low, ite(below(high, x), high, last)),
        ])  # fmt: skip
        return found[width - 1 : 0]

    def moved(self, x: Expr) -> Expr:
        """A shift of a number whose first bits are 0, sometimes one bit too far."""
        first = self.random.randrange(1, x.width + 1)
        by = min(x.width - 1, self.random.choice([first, first, max(first - 1, 0), first + 1]))
        return ite(x[x.width - 1 : x.width - first] == 0, x << by, x)

    def selected(self, width: int, depth: int) -> Expr:
        """A choice among constants by few bits of one number, as a tree."""
        x = self.number(self.random.choice([w for w in WIDTHS if w > 3]), depth - 1)
        low = self.random.randrange(x.width - 3)
        level = [const(self.random.randrange(1 << width), width) for _ in range(8)]
        for bit in range(3):
            level = [ite(x[low + bit] == 1, b, a) for a, b in zip(level[::2], level[1::2], strict=True)]
        return level[0]

    def flag(self, depth: int) -> Expr:
        """A Boolean term."""
        if depth <= 0:
            return self.random.choice(self.flags)
        width = self.random.choice(WIDTHS)
        a, b = (self.number(width, depth - 1) for _ in "ab")
        p, q = (self.flag(depth - 1) for _ in "pq")
        high = self.random.randrange(width)
        part = a[high : self.random.randrange(high + 1)]
        return self.random.choice([
            a == b, a < b, a <= b, a.slt(b), a.sle(b), a != b, a[width - 1] == 1, ~p, p & q, p | q, p ^ q,
            ite(p, q, ~q), p == q, part == 0, part == self.random.randrange(1 << part.width),
        ])  # fmt: skip


def values_of(random: Random, width: int) -> list[int]:
    top = (1 << width) - 1
    edges = [0, 1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) + 2]
    return [
        (random.choice(edges) if random.random() < 0.4 else random.randrange(1 << random.randint(1, width))) & top
        for _ in range(POINTS)
    ]


def representation(random: Random, width: int, values: list[int]) -> tuple[Form, Any, list[int]]:
    """The values as an array of some form: words of a memory, numbers, or any integers congruent to them."""
    top, sign = (1 << width) - 1, 1 << width - 1
    narrow = 32 if width <= 32 and random.random() < 0.6 else 64
    match random.randrange(5):
        case 0:
            kind = np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.int64
            return Form(64, 0, top, True), np.array(values).astype(random.choice([kind, kind, np.int64])), values
        case 1:
            return known_form(width), np.array(values), values
        case 2:
            most = min(top, (1 << 31) - 1, random.choice([1, 5, 100, 70_000, top]))
            values = [v % (most + 1) for v in values]
            return Form(32, 0, most), np.array(values, np.int32), values
        case 3:
            return (
                Form(narrow, -sign, sign - 1),
                np.array([(v ^ sign) - sign for v in values], f"i{narrow // 8}"),
                values,
            )
    low, high = -1 << narrow - 1, (1 << narrow - 1) - 1
    steps = [random.randint(-(-(low - v) // (top + 1)), (high - v) // (top + 1)) for v in values]
    moved = [v + step * (top + 1) for v, step in zip(values, steps, strict=True)]
    return Form(narrow, low, high), np.array(moved, f"i{narrow // 8}"), values


def check(random: Random, root: Expr, leaves: list[Expr]) -> None:
    """The lowered term on arrays against the scalar function at each point."""
    forms, arrays, columns = [], [], []
    for leaf in leaves:
        if leaf.sort == BOOL:
            flags = [random.random() < 0.5 for _ in range(POINTS)]
            raw = random.random() < 0.3
            form, array, values = Form(0, 0, 1, raw), np.array(flags, np.int64 if raw else bool), list(map(int, flags))
        else:
            form, array, values = representation(random, leaf.width, values_of(random, leaf.width))
        forms.append((leaf.name, form))
        arrays.append(array)
        columns.append(values)
    canonical = random.random() < 0.5
    lowered = lower(root, tuple(forms), canonical, random.random() < 0.5)
    found = lowered.function(*arrays)
    kinds = {0: np.bool_, 32: np.int32, 64: np.int64}
    assert isinstance(found, np.ndarray)
    assert found.dtype == (np.int64 if canonical and root.sort != BOOL else kinds[lowered.form.bits])
    function = compile_terms(leaves, [root])
    expected = [int(function(*point)[0]) for point in zip(*columns, strict=True)]
    numbers = [int(n) for n in np.broadcast_to(found, (POINTS,))]
    assert lowered.form.low <= min(numbers)
    assert max(numbers) <= lowered.form.high
    if not canonical and root.sort != BOOL:
        numbers = [n % (1 << root.width) for n in numbers]
    assert numbers == expected, (root, forms)


def try_term(random: Random, depth: int) -> None:
    leaves = [var(f"x{i}", bv(random.choice(WIDTHS))) for i in range(4)] + [var("p", BOOL), var("q", BOOL)]
    terms = Terms(random, leaves)
    root = terms.number(random.choice(WIDTHS), depth) if random.random() < 0.9 else terms.flag(depth)
    check(random, root, leaves)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32).map(Random), st.integers(1, 5))
def test_random_terms(random: Random, depth: int) -> None:
    try_term(random, depth)


@pytest.mark.slow
@settings(max_examples=6000, deadline=None)
@given(st.integers(0, 1 << 32).map(Random), st.integers(1, 7))
def test_many_random_terms(random: Random, depth: int) -> None:
    try_term(random, depth)


FORMS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "sum": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "extended product": lambda x, y: (x.sext(62) * y.sext(62))[61:1],
    "square of a sum": lambda x, y: (x + y) * (x - y),
    "comparison of sums": lambda x, y: ite(x + y < x - y, x, y),
    "signed comparison of sums": lambda x, y: ite((x + y).slt(x - y), x, y),
    "shift right of a sum": lambda x, y: (x + y).ashr(1) ^ (x - y) >> 1,
    "shift left by a number": lambda x, y: x << y,
    "shift right by a number": lambda x, y: (x >> y) + x.ashr(y),
    "complement": lambda x, y: ~(x + y) >> 1,
    "negation": lambda x, y: (-x).sext(62),
    "smaller": lambda x, y: ite(x.slt(y), x, y),
    "larger": lambda x, y: ite(x.slt(y), y, x),
    "larger, unsigned": lambda x, y: ite(x <= y, y, x),
    "magnitude": lambda x, y: ite(x[x.width - 1] == 1, -x, x) >> 1,
    "moved": lambda x, y: ite(x[x.width - 1 : x.width - 3] == 0, x << 3, x) >> 1,
    "moved too far": lambda x, y: ite(x[x.width - 1 : x.width - 3] == 0, x << 4, x) >> 1,
    "nearly a maximum": lambda x, y: ite(x.slt(5), const(7, x.width), x) + y,
    "nearly between two numbers": lambda x, y: ite(x.slt(5), const(5, x.width), ite(const(9, x.width).slt(x), y, x)),
    "quotient": lambda x, y: (x + 1) // (y + 1),
    "rest": lambda x, y: (x + 1) % (y + 1),
    "quotient by 0, too": lambda x, y: x // y,
    "rest by 0, too": lambda x, y: x % y,
    "side by side": lambda x, y: concat(x[x.width - 1 : 1], y[0]) + (x - y),
    "last bits of a sum": lambda x, y: (x - y)[x.width - 2 : 0].sext(62),
    "equal sums": lambda x, y: ite(x + y == x, x, y),
}


@pytest.mark.parametrize("width", [8, 16, 30, 31, 32, 33, 34, 61, 62])
@pytest.mark.parametrize("form", FORMS)
def test_where_integers_end(form: str, width: int) -> None:
    """Operators at the widths at which their integers just fit, or just do not."""
    x, y = var("x", bv(width)), var("y", bv(width))
    for seed in range(12):
        check(Random(seed), FORMS[form](x, y), [x, y])


@pytest.mark.parametrize("width", [32, 33, 34, 62])
@pytest.mark.parametrize("form", FORMS)
def test_short_integers_in_longer_terms(form: str, width: int) -> None:
    """Integers of 32 bits for numbers of 31 and 32: what is computed from them may need more."""
    for bits, extend in ((31, Expr.zext), (30, Expr.sext), (min(width - 1, 32), Expr.sext)):
        x, y = var("x", bv(bits)), var("y", bv(bits))
        for seed in range(3):
            check(Random(seed), FORMS[form](extend(x, width), extend(y, width)), [x, y])


def test_saturation_is_a_minimum_and_a_maximum() -> None:
    """What makes re-quantisation fast is recognised: no choice is left."""
    x = var("x", bv(32))
    high = const(32767, 32)
    root = ite(high.slt(x), high, ite(x.slt(~high), ~high, x))[15:0]
    lowered = lower(root, (("x", Form(32, -1 << 31, (1 << 31) - 1)),), False, True)
    assert lowered.form == Form(32, -32768, 32767)
    words = np.array([-1 << 31, -32769, -32768, -1, 0, 32767, 32768, (1 << 31) - 1], np.int32)
    assert lowered.function(words).tolist() == [-32768, -32768, -32768, -1, 0, 32767, 32767, 32767]


def test_deep_terms_need_no_deep_recursion() -> None:
    x, y = var("x", bv(20)), var("y", bv(20))
    root = x
    for step in range(3000):
        root = (root * 5 + y) ^ step % 7
    check(Random(1), root, [x, y])
