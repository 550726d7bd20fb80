"""Every operator in native code, against SMT-LIB's meaning of it: all operands of up to six bits, and wide ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import ila_lang as il
from ila_lang import Expr, Kernel, bv, const, ite, mem, var
from tests.ila_lang.native.levels import check
from tests.ila_lang.oracle import evaluate

pytest.importorskip("llvmlite")


def operations(a: Expr, b: Expr) -> Iterator[Expr]:
    """Terms that apply each operator to operands of one width, results as bit-vectors."""
    width = a.width
    yield from (a + b, a - b, a * b, a // b, a % b, a & b, a | b, a ^ b, ~a, -a)
    yield from (a << b, a >> b, a.ashr(b))
    for test in (a == b, a < b, a <= b, a.slt(b), a.sle(b), ~(a < b)):
        yield ite(test, const(1, 1), const(0, 1))
    p, q = a < b, a.slt(b)
    for test in (p & q, p | q, p ^ q, p == q, ite(p, q, a == b)):
        yield ite(test, const(1, 1), const(0, 1))
    yield ite(p, a, b)
    yield il.concat(a, b)
    yield from (a.zext(width + 1), a.zext(2 * width), a.sext(width + 1), a.sext(2 * width + 3))
    for low in sorted({0, width // 2, width - 1}):
        yield a[width - 1 : low]
        yield b[low:0]
    top = (1 << width) - 1
    for number in sorted({0, 1, 3 & top, width & top, top >> 1, top}):
        c = const(number, width)
        yield from (a // c, a % c, a << c, a >> c, a.ashr(c), c // a, c % a, c << a, c.ashr(a), a * c)


def kernel_of(width: int, size: int) -> tuple[Kernel, list[Expr]]:
    """A kernel that applies all operations to each of the pairs in two memories; the terms over ``a`` and ``b``."""
    bits = max(size - 1, 1).bit_length()
    terms = list(operations(var("a", bv(width)), var("b", bv(width))))
    kernel = Kernel("operators")
    xs, ys = var("xs", mem(bits, width)), var("ys", mem(bits, width))
    with kernel.loop("i", const(size, bits + 1)) as i:
        a, b = kernel.load("a", xs, i[bits - 1 : 0]), kernel.load("b", ys, i[bits - 1 : 0])
        for number, term in enumerate(operations(a, b)):
            kernel.store(var(f"out{number}", mem(bits, term.width)), i[bits - 1 : 0], term)
    return kernel, terms


def check_pairs(width: int, pairs: list[tuple[int, int]]) -> None:
    kernel, terms = kernel_of(width, len(pairs))
    size = 1 << max(len(pairs) - 1, 1).bit_length()
    contents = {"xs": dict(enumerate(a for a, _ in pairs)), "ys": dict(enumerate(b for _, b in pairs))}
    expected: Any = {}
    for number, term in enumerate(terms):
        words = [int(evaluate(term, {"a": a, "b": b})) for a, b in pairs]
        expected[f"out{number}"] = words + [0] * (size - len(words))
    check(kernel, {}, contents, expected)


def chosen(width: int, count: int) -> list[tuple[int, int]]:
    """Pairs of boundary values and random ones."""
    random, top = Random(width), (1 << width) - 1
    edges = sorted({x & top for x in (0, 1, 2, width - 1, width, width + 1, top, top - 1, top >> 1, (top >> 1) + 1)})
    pairs = [(a, b) for a in edges for b in edges]
    for _ in range(count):
        short = random.randrange(1, width + 1)
        pairs.append((random.getrandbits(width), random.getrandbits(random.choice([width, short]))))
    return pairs


@pytest.mark.parametrize("width", range(1, 7))
def test_all_operands(width: int) -> None:
    check_pairs(width, [(a, b) for a in range(1 << width) for b in range(1 << width)])


@pytest.mark.parametrize("width", [8, 13, 20, 32, 33, 64, 65, 128, 129])
def test_chosen_operands(width: int) -> None:
    check_pairs(width, chosen(width, 28))


@pytest.mark.slow
@pytest.mark.parametrize("width", [*range(7, 129), 130, 160, 192, 200, 255, 256, 257, 300, 400, 510])
def test_chosen_operands_of_all_widths(width: int) -> None:
    check_pairs(width, chosen(width, 156))
