"""Loop nests whose blocks of depth are sums in a register: proved for every size, and their faults are not.

The last block is shorter, and a block may be as long as a size says, or consist of blocks.
"""

from __future__ import annotations

from functools import partial

import pytest

from ila_lang import Expr, Ila, Kernel, const, ite, true
from ila_lang.mapping import TensorMapping
from tests.chc.mapping.library_gemm import (
    READ,
    Host,
    K,
    M,
    N,
    Part,
    Patterns,
    assert_false_and_not_proved,
    assert_proved,
    claim,
    device,
    element,
    four,
    multiply,
    noted,
)
from tests.marks import slow_but

ZERO, NEVER, DEEP = const(0, 32), ~true, READ + 1
PATTERNS: Patterns = {}
pattern = partial(noted, PATTERNS)


def deep(ila: Ila) -> Part:
    """Adds the products of ``tile_b`` tiles of A, from ``tile_a`` on, and of B, from the first one on."""

    def part(kernel: Kernel) -> None:
        s = ila.states
        with kernel.loop("dr", four) as r, kernel.loop("dc", four) as c:
            at = element(s["tile_c"], r, c)
            old = kernel.load("old", s["acc"], at)
            total = kernel.let("total", ite(s["adds"], old, const(0, 32)))
            with kernel.loop("p", s["tile_b"]) as p, kernel.loop("x", four) as x:
                left = kernel.load("left", s["spad_a"], element(s["tile_a"] + p, r, x))
                right = kernel.load("right", s["spad_b"], element(p, x, c))
                kernel.assign(total, total + multiply(left, right))
            kernel.store(s["acc"], at, total)

    return part


def smaller(a: Expr, b: Expr) -> Expr:
    """The minimum."""
    return ite(a < b, a, b)


def block(h: Host, i: Expr, j: Expr, first: Expr, length: Expr, adds: Expr, *, late: Expr = true) -> None:
    """Loads tiles from the first one on, B's only if it is not too ``late``, and adds up their products."""
    with h.loop(length) as p:
        h.mvin_a(p, i, first + p)
    with h.when(late), h.loop(length) as p:
        h.mvin_b(p, first + p, j)
    h.compute(ZERO, ZERO, adds, op=DEEP, b=length)


FAULTS = (
    "the last block is left out",
    "the last block is computed as a whole",
    "the last block is a tile short",
    "each block begins anew",
    "the last block begins anew",
    "always adds",
    "blocks overlap",
    "the first block is there twice",
    "the last block has the weights before",
)


def blocks(h: Host, fault: str, apart: Expr) -> None:
    """The depth in blocks which begin so many tiles apart."""
    count = (K + (apart - 1)) // apart
    turns = {"the last block is left out": K // apart, "the first block is there twice": count + 1}.get(fault, count)
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(turns) as turn:
            kb = ite(turn == 0, turn, turn - 1) if fault == "the first block is there twice" else turn
            last = kb + 1 == count
            begin = kb * apart
            length = smaller(apart, K - begin)
            first = ite(kb == 0, begin, begin - 1) if fault == "blocks overlap" else begin
            length = {
                "the last block is computed as a whole": apart,
                "the last block is a tile short": ite(last, length - 1, length),
            }.get(fault, length)
            adds = {
                "each block begins anew": NEVER,
                "the last block begins anew": ~(turn == 0) & ~last,
                "always adds": true,
            }.get(fault, ~(turn == 0))
            block(h, i, j, first, length, adds, late=~last if "has the weights" in fault else true)
        h.read(ZERO, i, j)


@pattern(*FAULTS)
def a_block_is_added_up_in_a_register(h: Host, fault: str) -> None:
    blocks(h, fault, const(4, 32))


@pattern(*FAULTS)
def blocks_are_as_long_as_a_size(h: Host, fault: str) -> None:
    """As many tiles as B has columns of tiles."""
    blocks(h, fault, N)


@pattern(
    "the last small block is left out",
    "small blocks are as long in the last block",
    "each block begins anew",
    "each first small block begins anew",
    "the last block has one small block",
)
def blocks_in_blocks(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop((K + 7) >> 3) as kb:
            big = smaller(const(8, 32), K - (kb << 3))
            small = {
                "the last small block is left out": big >> 1,
                "the last block has one small block": ite(big == 8, const(4, 32), const(1, 32)),
            }.get(fault, (big + 1) >> 1)
            with h.loop(small) as kk:
                length = smaller(const(2, 32), big - (kk << 1))
                length = const(2, 32) if fault == "small blocks are as long in the last block" else length
                anew = {"each block begins anew": true, "each first small block begins anew": kk == 0}
                block(h, i, j, (kb << 3) + (kk << 1), length, ~anew.get(fault, (kb == 0) & (kk == 0)))
        h.read(ZERO, i, j)


@pattern(
    "the loop begins with the peeled block",
    "the loop runs once too often",
    "the loop overwrites",
    "the peeled block adds",
    "the peeled block is as long as others",
)
def the_first_block_is_peeled(h: Host, fault: str) -> None:
    """It has two tiles, and the others have four."""
    with h.loop(M) as i, h.loop(N) as j:
        first = const(2, 32) if fault == "the peeled block is as long as others" else smaller(const(2, 32), K)
        block(h, i, j, ZERO, first, true if fault == "the peeled block adds" else NEVER)
        rest = ite(const(2, 32) < K, K - 2, ZERO)
        with h.loop((rest + (7 if fault == "the loop runs once too often" else 3)) >> 2) as kb:
            begin = (kb << 2) + (0 if fault == "the loop begins with the peeled block" else 2)
            length = smaller(const(4, 32), rest - (kb << 2))
            block(h, i, j, begin, length, NEVER if fault == "the loop overwrites" else true)
        h.read(ZERO, i, j)


@pattern(
    "the peeled tile is the one before",
    "the loop runs over all tiles",
    "the peeled tile begins anew",
    "the peeled tile adds if it is the first",
    "the last block is a tile short",
)
def the_last_tile_is_peeled_off_blocks(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j:
        depth = K if fault == "the loop runs over all tiles" else K - 1
        with h.loop((depth + 3) >> 2) as kb:
            length = smaller(const(4, 32), depth - (kb << 2))
            if fault == "the last block is a tile short":
                length = ite((kb << 2) + length == depth, length - 1, length)
            block(h, i, j, kb << 2, length, ~(kb == 0))
        last = ite(K == 1, ZERO, K - 2) if fault == "the peeled tile is the one before" else K - 1
        adds = {"the peeled tile begins anew": NEVER, "the peeled tile adds if it is the first": true}
        block(h, i, j, last, const(1, 32), adds.get(fault, ~(K == 1)))
        h.read(ZERO, i, j)


@pattern(
    "the last block is left out",
    "a tile is there twice",
    "each block begins anew",
    "the last tile has the weights before",
    "always adds",
)
def each_tile_of_a_block_as_long_as_a_size_adds(h: Host, fault: str) -> None:
    """No register: each product of tiles is added to the accumulator."""
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(K // N if fault == "the last block is left out" else (K + (N - 1)) // N) as kb:
            begin = kb * N
            length = smaller(N, K - begin)
            with h.loop(length) as p:
                h.mvin_a(p, i, ite((p == 1) & (kb == 0), begin, begin + p) if "twice" in fault else begin + p)
            with h.loop(length) as p:
                h.mvin_b(p, begin + p, j)
            with h.loop(length) as p:
                stale = (begin + p + 1 == K) & ~(p == 0) if "weights before" in fault else NEVER
                anew = {"each block begins anew": p == 0, "always adds": NEVER}.get(fault, (kb == 0) & (p == 0))
                with h.when(~stale):
                    h.preload(p)
                h.compute(p, ZERO, ~anew)
        h.read(ZERO, i, j)


SIZES = (
    {"m": 2, "n": 2, "k": 5},
    {"m": 1, "n": 3, "k": 7},
    {"m": 1, "n": 1, "k": 11},
    {"m": 1, "n": 2, "k": 4},
    {"m": 1, "n": 1, "k": 1},
)
"""Sizes at which runs show the faults: of one block and of more, with and without a rest."""


def of(name: str, fault: str = "") -> TensorMapping:
    """A pattern, with a fault."""
    build, _ = PATTERNS[name]
    return claim(partial(build, fault=fault), ila=device(others={"deep": deep}))


QUICK = "a block is added up in a register"


@pytest.mark.parametrize("name", slow_but({QUICK}, PATTERNS))
def test_the_pattern_is_proved_for_every_size(name: str) -> None:
    assert_proved(of(name), SIZES)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(name, fault, marks=[] if name == QUICK and not number else [pytest.mark.slow])
        for name, (_, faults) in PATTERNS.items()
        for number, fault in enumerate(faults)
    ],
)
def test_a_fault_of_a_pattern_is_not_proved(name: str, fault: str) -> None:
    assert_false_and_not_proved(of(name, fault), SIZES)
