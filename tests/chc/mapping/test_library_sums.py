"""Loop nests of libraries that add up in another order than the IR: proved for every size, and their faults are not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Ila, Kernel, bv, concat, const, ite, true
from ila_lang.mapping import Reduction, TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.library_gemm import (
    READ,
    TILES,
    Host,
    K,
    M,
    N,
    Part,
    Parts,
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

ZERO = const(0, 32)
PATTERNS: Patterns = {}
pattern = partial(noted, PATTERNS)


def product(ila: Ila, kernel: Kernel, at: tuple[Expr, Expr, Expr], name: str = "") -> Expr:
    """The product of an element of the tile of A and of one of the weights."""
    row, column, x = at
    states = ila.states
    left = kernel.load(f"left{name}", states["spad_a"], element(states["tile_a"], row, x))
    right = kernel.load(f"right{name}", states["weights"], concat(x[1:0], column[1:0]))
    return multiply(left, right)


def merge(*, subtracts: bool = False) -> Parts:
    """Adds the tile of accumulators at ``tile_a`` to the one at ``tile_c``."""

    def parts(ila: Ila) -> Part:
        def part(kernel: Kernel) -> None:
            acc, states = ila.states["acc"], ila.states
            with kernel.loop("mr", four) as r, kernel.loop("mc", four) as c:
                one = kernel.load("one", acc, element(states["tile_c"], r, c))
                other = kernel.load("other", acc, element(states["tile_a"], r, c))
                kernel.store(acc, element(states["tile_c"], r, c), one - other if subtracts else one + other)

        return part

    return parts


def narrow(bits: int) -> Parts:
    """Adds up the products of a tile in fewer bits, and extends the sum to add it to the accumulator."""

    def parts(ila: Ila) -> Part:
        def part(kernel: Kernel) -> None:
            acc, states = ila.states["acc"], ila.states
            with kernel.loop("nr", four) as r, kernel.loop("nc", four) as c:
                old = kernel.load("old", acc, element(states["tile_c"], r, c))
                partial_sum = kernel.let("partial", const(0, bits))
                with kernel.loop("nx", four) as x:
                    kernel.assign(partial_sum, partial_sum + product(ila, kernel, (r, c, x))[bits - 1 : 0])
                begin = ite(states["adds"], old, ZERO)
                kernel.store(acc, element(states["tile_c"], r, c), begin + partial_sum.sext(32))

        return part

    return parts


def tree(fault: str = "") -> Parts:
    """Adds up the four products of a tile in a tree."""

    def parts(ila: Ila) -> Part:
        def part(kernel: Kernel) -> None:
            acc, states = ila.states["acc"], ila.states
            with kernel.loop("tr", four) as r, kernel.loop("tc", four) as c:
                old = kernel.load("old", acc, element(states["tile_c"], r, c))
                a, b, x, y = (product(ila, kernel, (r, c, const(k, 3)), f"{k}") for k in range(4))
                if fault == "the tree takes a product twice":
                    b = a
                whole = (a + y) + (x if fault == "the tree leaves a product out" else b + x)
                begin = ite(states["adds"], old, ZERO)
                kernel.store(acc, element(states["tile_c"], r, c), begin + whole)

        return part

    return parts


OTHERS: Mapping[str, Parts] = {"merge": merge(), "narrow": narrow(18), "tree": tree()}
MERGE, NARROW, TREE = (READ + 1 + k for k in range(3))


@pattern(
    "the first tile is taken twice",
    "the last tile is left out",
    "tiles are one further",
    "begins anew in the last iteration",
    "nothing is cleared",
    "every second tile is taken",
)
def tiles_from_the_last_to_the_first(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j, h.loop(K - 1 if fault == "the last tile is left out" else K) as k:
        tile = {
            "the first tile is taken twice": ite(k == 0, K - 1, K - k),
            "tiles are one further": K - k,
            "every second tile is taken": ite(k + k >= K, ZERO, K - 1 - k - k),
        }.get(fault, K - 1 - k)
        adds = {"begins anew in the last iteration": ~(k + 1 == K), "nothing is cleared": true}.get(fault, ~(k == 0))
        h.preload(tile * N + j)
        h.compute(i * K + tile, i * N + j, adds)
    h.read_all()


@pattern(
    "blocks are one tile apart",
    "the last block is left out",
    "each block begins anew",
    "nothing is cleared",
    "blocks take their first tile twice",
)
def blocks_from_the_last_to_the_first(h: Host, fault: str) -> None:
    h.all_inputs()
    blocks = K >> 2
    short = fault == "the last block is left out"
    with h.loop(M) as i, h.loop(N) as j, h.loop(blocks - 1 if short else blocks) as block, h.loop(four) as t:
        lane = ite(t == 1, const(0, 3), t) if fault == "blocks take their first tile twice" else t
        first = (blocks - 1 - block) if fault == "blocks are one tile apart" else ((blocks - 1 - block) << 2)
        tile = first + lane.zext(32)
        adds = {"each block begins anew": ~(t == 0), "nothing is cleared": true}.get(fault, ~((t == 0) & (block == 0)))
        h.preload(tile * N + j)
        h.compute(i * K + tile, i * N + j, adds)
    h.read_all()


@pattern(
    "lanes are two apart",
    "the last lane is left out",
    "each lane begins anew",
    "nothing is cleared",
    "lanes take their first tile twice",
)
def lanes_before_blocks(h: Host, fault: str) -> None:
    h.all_inputs()
    lanes = const(3, 3) if fault == "the last lane is left out" else four
    with h.loop(M) as i, h.loop(N) as j, h.loop(lanes) as t, h.loop(K >> 2) as block:
        twice = fault == "lanes take their first tile twice"
        at = ite(block == 1, ZERO, block) if twice else block
        tile = (at << (1 if fault == "lanes are two apart" else 2)) + t.zext(32)
        adds = {"each lane begins anew": ~(block == 0), "nothing is cleared": true}.get(
            fault, ~((t == 0) & (block == 0))
        )
        h.preload(tile * N + j)
        h.compute(i * K + tile, i * N + j, adds)
    h.read_all()


SUMS = (
    "both take the even tiles",
    "the second leaves its last tile out",
    "the second is not cleared",
    "the first is not cleared",
    "they are not added up",
    "the first is added to itself",
)


def two_sums(h: Host, fault: str, first: tuple[Expr, Expr], second: tuple[Expr, Expr], step: int) -> None:
    """Two accumulators for each tile of C, added up at the end; ``first`` and ``second`` are begin and length."""
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:
        here, beside = i * N + j, M * N + (i * N + j)
        for number, (place, (begin, length)) in enumerate(((here, first), (beside, second))):
            if number and fault == "both take the even tiles":
                begin = first[0]
            short = number and fault == "the second leaves its last tile out"
            with h.loop(length - 1 if short else length) as k:
                tile = begin + k * step
                never = fault == f"the {'second' if number else 'first'} is not cleared"
                h.preload(tile * N + j)
                h.compute(i * K + tile, place, true if never else ~(k == 0))
        if fault != "they are not added up":
            other = here if fault == "the first is added to itself" else beside
            h.command("merge", MERGE, tile_a_in=other[9:0], tile_c_in=here[9:0])
    h.read_all()


@pattern(*SUMS)
def sums_of_even_and_of_odd_tiles(h: Host, fault: str) -> None:
    two_sums(h, fault, (ZERO, K >> 1), (const(1, 32), K >> 1), 2)


@pattern(*SUMS)
def sums_of_both_halves(h: Host, fault: str) -> None:
    two_sums(h, fault, (ZERO, K >> 1), (K >> 1, K >> 1), 1)


@pattern("the first tile is taken twice", "the last tile is left out", "nothing is cleared", "every tile begins anew")
def narrower_sums_of_tiles(h: Host, fault: str) -> None:
    computes_with(h, fault, NARROW)


@pattern("the first tile is taken twice", "the last tile is left out", "nothing is cleared", "every tile begins anew")
def trees_of_products(h: Host, fault: str) -> None:
    computes_with(h, fault, TREE)


def computes_with(h: Host, fault: str, op: int) -> None:
    """All tiles by one instruction, in the IR's order."""
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j, h.loop(K - 1 if fault == "the last tile is left out" else K) as k:
        tile = ite(k == 1, ZERO, k) if fault == "the first tile is taken twice" else k
        adds = {"nothing is cleared": true, "every tile begins anew": ~true}.get(fault, ~(k == 0))
        h.preload(tile * N + j)
        h.compute(i * K + tile, i * N + j, adds, op=op)
    h.read_all()


FOURS = (("k mod 4 = 0", K[1:0] == 0),)
TWICE = (*FOURS, ("2*m*n <= 1024 tiles", M * N <= TILES // 2))
WITHIN = {
    "blocks from the last to the first": FOURS,
    "lanes before blocks": FOURS,
    "sums of even and of odd tiles": TWICE,
    "sums of both halves": TWICE,
}
"""What the sizes must satisfy beside."""


def of(name: str, fault: str = "", others: Mapping[str, Parts] = OTHERS) -> TensorMapping:
    """A pattern, with a fault."""
    build, _ = PATTERNS[name]
    open_products = name != "narrower sums of tiles"
    ila = device(others=others)
    return claim(partial(build, fault=fault), ila=ila, within=WITHIN.get(name, ()), abstract=open_products)


QUICK = {"tiles from the last to the first", "sums of even and of odd tiles", "narrower sums of tiles"}
QUICK_FAULTS = {"begins anew in the last iteration", "both take the even tiles"}
"""Patterns and faults that are not marked as slow."""
SIZES = ({"m": 2, "n": 2, "k": 4}, {"m": 1, "n": 2, "k": 8})


@pytest.mark.parametrize("name", slow_but(QUICK, PATTERNS))
def test_the_pattern_is_proved_for_every_size(name: str) -> None:
    assert_proved(of(name), SIZES)


FAULTS = [
    pytest.param(name, fault, marks=[] if name in QUICK and fault in QUICK_FAULTS else [pytest.mark.slow])
    for name, (_, faults) in PATTERNS.items()
    for fault in faults
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_of_a_pattern_is_not_proved(name: str, fault: str) -> None:
    assert_false_and_not_proved(of(name, fault), SIZES, second=True)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        pytest.param(
            "narrower sums of tiles", OTHERS | {"narrow": narrow(16)}, id="a sum that overflows", marks=pytest.mark.slow
        ),
        pytest.param("narrower sums of tiles", OTHERS | {"narrow": narrow(17)}, id="a sum that overflows once"),
        pytest.param(
            "sums of both halves", OTHERS | {"merge": merge(subtracts=True)}, id="a difference", marks=pytest.mark.slow
        ),
        pytest.param("trees of products", OTHERS | {"tree": tree("the tree takes a product twice")}, id="twice"),
        pytest.param(
            "trees of products",
            OTHERS | {"tree": tree("the tree leaves a product out")},
            id="left out",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_hardware_that_adds_wrongly_is_not_proved(name: str, others: Mapping[str, Parts]) -> None:
    mapping = of(name, others=others)
    if others["narrow"] is OTHERS["narrow"]:
        assert_false_and_not_proved(mapping, SIZES, second=True)
    else:  # runs of random bytes do not reach the largest sums
        assert (
            prove(mapping, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0).status
            is not Status.PROVED
        )


def saturating(*, is_signed: bool) -> Function:
    """Addition that stops at the limits."""
    function = Function("saturating", {"a": bv(32), "b": bv(32)}, bv(32), None)
    a, b = function.params
    total = a + b
    if is_signed:
        over = (a.slt(0) == b.slt(0)) & ~(a.slt(0) == total.slt(0))
        function.body = ite(over, ite(a.slt(0), const(1 << 31, 32), const((1 << 31) - 1, 32)), total)
    else:
        function.body = ite(total < a, const((1 << 32) - 1, 32), total)
    return function


@pytest.mark.parametrize(
    ("is_signed", "backwards", "expected"),
    [
        pytest.param(False, True, Status.PROVED, marks=pytest.mark.slow),
        (True, True, Status.UNKNOWN),
        pytest.param(True, False, Status.PROVED, marks=pytest.mark.slow),
    ],
)
def test_sums_that_saturate(is_signed: bool, backwards: bool, expected: Status) -> None:
    add = saturating(is_signed=is_signed)

    def program(h: Host) -> None:
        h.all_inputs()
        with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
            tile = K - 1 - k if backwards else k
            h.preload(tile * N + j)
            h.compute(i * K + tile, i * N + j, ~(k == 0))
        h.read_all()

    verdict = prove(claim(program, ila=device(add=add), add=add, sums=(Reduction(add, 0),)))
    assert verdict.status is expected, verdict.reason
    if expected is Status.UNKNOWN:
        assert "the sum saturating is not associative" in verdict.reason
