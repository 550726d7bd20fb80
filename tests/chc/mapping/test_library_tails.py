"""Loop nests with blocks of which the last one is short, as libraries have them: proved for every size.

A block ends at the smaller one of its length and what is left, or a condition leaves out what lies beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, bv, const, ite, true, var
from ila_lang.mapping import Reduction, TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping import toy
from tests.chc.mapping.library_gemm import (
    Host,
    K,
    M,
    N,
    Patterns,
    assert_false_and_not_proved,
    assert_proved,
    claim,
    device,
    differs,
    noted,
)
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.test_library_sums import saturating
from tests.marks import slow_but

ZERO, BLOCK = const(0, 32), const(4, 32)
PATTERNS: Patterns = {}
pattern = partial(noted, PATTERNS)


def blocks(size: Expr) -> Expr:
    """How many blocks there are."""
    return (size + 3) >> 2


def left(block: Expr, size: Expr, most: int = 4) -> Expr:
    """The length of a block."""
    rest = size - (block << 2)
    return ite(const(most, 32) < rest, const(most, 32), rest)


@pattern(
    "blocks of depth overlap",
    "blocks of depth are too short",
    "each block begins anew",
    "the last block of depth is left out",
    "the last block of rows is left out",
    "the last block of columns begins a column late",
    "the last row goes on from the column before",
    "a block of rows takes its first row twice",
)
def tails_in_all_dimensions(h: Host, fault: str) -> None:
    h.all_inputs()
    depth = K >> 2 if fault == "the last block of depth is left out" else blocks(K)
    rows = M >> 2 if fault == "the last block of rows is left out" else blocks(M)
    most = {"blocks of depth overlap": 5, "blocks of depth are too short": 3}.get(fault, 4)
    with (
        h.loop(rows) as mb,
        h.loop(blocks(N)) as nb,
        h.loop(depth) as kb,
        h.loop(left(mb, M)) as u,
        h.loop(left(nb, N)) as v,
        h.loop(left(kb, K, most)) as x,
    ):
        i, j, k = (mb << 2) + u, (nb << 2) + v, (kb << 2) + x
        row = ite(u == 1, i - 1, i) if fault == "a block of rows takes its first row twice" else i
        column = ite((nb + 1 == blocks(N)) & (v >= 1), j - 1, j) if "column late" in fault else j
        place = ite((i + 1 == M) & ~(j == 0), j - 1, j) if "goes on from" in fault else j
        h.preload(k * N + column)
        h.compute(row * K + k, i * N + place, ~((x if fault == "each block begins anew" else k) == 0))
    h.read_all()


@pattern(
    "the last block is computed as a whole",
    "the last block of A is not loaded",
    "weights are those of the block before",
    "the last block overwrites",
    "blocks are three apart",
    "always adds",
)
def a_block_of_depth_is_loaded_and_computed(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(blocks(K)) as kb:
            first = kb * 3 if fault == "blocks are three apart" else kb << 2
            loads = kb == 0 if fault == "the last block of A is not loaded" else true
            with h.when(loads), h.loop(left(kb, K)) as p:
                h.mvin_a(p, i, first + p)
            with h.loop(left(kb, K)) as p:
                before = ite(kb == 0, first, first - 4) if fault == "weights are those of the block before" else first
                h.mvin_b(p, before + p, j)
            with h.loop(BLOCK if fault == "the last block is computed as a whole" else left(kb, K)) as x:
                anew = {"the last block overwrites": (x == 0) & (kb + 1 == blocks(K)), "always adds": ~true}
                h.preload(x)
                h.compute(x, ZERO, ~anew.get(fault, (kb == 0) & (x == 0)))
        h.read(ZERO, i, j)


PARTS = (
    "the second part has no condition",
    "conditions are those of the next part",
    "the first part of each block begins anew",
    "the second part overwrites",
    "the second part repeats the first",
    "the second part adds beside",
    "the second part has the weights before",
    "always adds",
)


def unrolled(h: Host, fault: str, count: int) -> None:
    """A loop over the depth in parts, each with a condition of its own."""
    h.all_inputs()
    log = count.bit_length() - 1
    with h.loop(M) as i, h.loop(N) as j, h.loop((K + (count - 1)) >> log) as kb:
        for part in range(count):
            k = (kb << log) + part
            inside = {"conditions are those of the next part": k + 1 < K}
            if part == 1:
                inside["the second part has no condition"] = true
            adds = {"the first part of each block begins anew": ~true, "always adds": true}.get(fault, ~(kb == 0))
            tile = k - 1 if part == 1 and fault == "the second part repeats the first" else k
            beside = part == 1 and fault == "the second part adds beside"
            with h.when(inside.get(fault, k < K)):
                if part != 1 or fault != "the second part has the weights before":
                    h.preload(tile * N + j)
                overwrites = part == 1 and fault == "the second part overwrites"
                place = i * N if beside else i * N + j
                h.compute(i * K + tile, place, ~true if overwrites else true if part else adds)
    h.read_all()


@pattern(*PARTS)
def unrolled_by_two_with_conditions(h: Host, fault: str) -> None:
    unrolled(h, fault, 2)


@pattern(*PARTS)
def unrolled_by_four_with_conditions(h: Host, fault: str) -> None:
    unrolled(h, fault, 4)


@pattern(
    "the loop runs over the last tile, too",
    "the first tile is taken for the last",
    "the last tile begins anew",
    "the loop overwrites",
    "the last tile is there if it is the first",
    "the loop begins at the peeled tile",
)
def both_ends_are_peeled(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:

        def product(k: Expr, adds: Expr) -> None:
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, adds)

        product(ZERO, ~true)
        with h.when((0 if fault == "the last tile is there if it is the first" else 1) < K):
            more = ite(K > 1, K - 1, ZERO) if fault == "the loop runs over the last tile, too" else K - 2
            with h.loop(ite(K > 1, more, ZERO) if "if it is the first" in fault else more) as k:
                tile = k if fault == "the loop begins at the peeled tile" else k + 1
                product(tile, ~true if fault == "the loop overwrites" else true)
            last = ZERO if fault == "the first tile is taken for the last" else K - 1
            product(last, ~true if fault == "the last tile begins anew" else true)
    h.read_all()


SIZES = ({"m": 5, "n": 2, "k": 5}, {"m": 1, "n": 6, "k": 9}, {"m": 2, "n": 2, "k": 4}, {"m": 1, "n": 1, "k": 1})
"""Sizes at which runs show the faults: of one block and of more, with and without a rest."""


def of(name: str, fault: str = "") -> TensorMapping:
    """A pattern, with a fault."""
    build, _ = PATTERNS[name]
    return claim(partial(build, fault=fault))


QUICK = {"a block of depth is loaded and computed"}
"""Patterns that are not marked as slow."""


@pytest.mark.parametrize("name", slow_but(QUICK, PATTERNS))
def test_the_pattern_is_proved_for_every_size(name: str) -> None:
    assert_proved(of(name), SIZES)


FAULTS = [
    pytest.param(name, fault, marks=[] if name in QUICK and not number else [pytest.mark.slow])
    for name, (_, faults) in PATTERNS.items()
    for number, fault in enumerate(faults)
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_of_a_pattern_is_not_proved(name: str, fault: str) -> None:
    assert_false_and_not_proved(of(name, fault), SIZES, second=True)


def backwards(x: Expr, length: Expr) -> Expr:
    """The tiles of a block from the last to the first."""
    return length - 1 - x


def forwards(x: Expr, _: Expr) -> Expr:
    """The tiles of a block in order."""
    return x


@pytest.mark.parametrize(
    ("lane", "expected"), [(forwards, Status.PROVED), pytest.param(backwards, Status.UNKNOWN, marks=pytest.mark.slow)]
)
def test_numbers_follow_each_other_as_iterations_do(lane: Callable[[Expr, Expr], Expr], expected: Status) -> None:
    add = saturating(is_signed=True)

    def program(h: Host) -> None:
        h.all_inputs()
        with h.loop(M) as i, h.loop(N) as j, h.loop(blocks(K)) as kb, h.loop(left(kb, K)) as x:
            k = (kb << 2) + lane(x, left(kb, K))
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~((kb == 0) & (x == 0)))
        h.read_all()

    mapping = claim(program, ila=device(add=add), add=add, sums=(Reduction(add, 0),))
    verdict = prove(mapping, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is expected, verdict.reason


EDGE = (
    "the edge is a column short",
    "the last block is left out",
    "the edge takes the weights before",
    "the edge begins anew",
    "the edge adds beside",
)


@pytest.mark.parametrize("fault", ["", *(pytest.param(fault, marks=pytest.mark.slow) for fault in EDGE)])
def test_coordinates_may_lie_beyond_the_edge(fault: str) -> None:
    two = const(2, 32)

    def program(h: Host) -> None:
        h.all_inputs()
        with h.loop(M) as i, h.loop((N if fault == "the last block is left out" else N + 1) >> 1) as nb:
            rest = N - (nb << 1)
            if fault == "the edge is a column short":
                rest = ite(rest == 1, rest, rest - 1)
            with h.loop(ite(two < rest, two, rest)) as v, h.loop(K) as k:
                j = (nb << 1) + v
                at_edge = (j + 1 == N) & ~(j == 0)
                h.preload(k * N + (ite(at_edge, j - 1, j) if fault == "the edge takes the weights before" else j))
                anew = (k == 0) | at_edge if fault == "the edge begins anew" else k == 0
                h.compute(i * K + k, i * N + (ite(at_edge, j - 1, j) if "beside" in fault else j), ~anew)
        h.read_all()

    mapping = claim(program)
    (row, rows), (in_row, height), _, (in_column, width) = mapping.coordinates
    block, v = (var(f"cell_{x}", bv(32)) for x in ("block", "v"))
    mapping = replace(
        mapping,
        cell=((row, rows), (in_row, height), (block, (N + 1) >> 1), (v, two), (in_column, width)),
        cell_column=(((block << 1) + v) << 2) + in_column,
        cell_beyond=True,
    )
    assert any(differs(mapping, sizes, 4 if fault else 1) for sizes in (*SIZES, {"m": 2, "n": 3, "k": 2})) is bool(
        fault
    )
    verdict = prove(mapping, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert (verdict.status is Status.PROVED) is (fault == ""), verdict.reason


@pytest.mark.parametrize("length", ["all but the last", "half", "one", "all but two"])
def test_iterations_of_numbered_loops_are_left_out_where_they_do_nothing(length: str) -> None:
    """A mask speaks of the counters of each iteration, not of the last one."""

    def masked(kernel: Kernel, spaces: Mapping[str, Expr]) -> None:
        n, m = spaces["n"], spaces["m"]
        with kernel.loop("ci", n) as i, kernel.loop("cj", m) as j:
            kernel.store(spaces["dst"], i * m + j, const(0, 8))
        rows, columns = kernel.loop("i", n), kernel.loop("j", m)
        with rows as i, columns as j, kernel.loop("b", blocks(m)) as b, kernel.loop("x", left(b, m)) as x:
            k = (b << 2) + x
            old = kernel.load("old", spaces["dst"], i * m + j)
            weight = kernel.load("w", spaces["src"], i * m + k)
            kernel.store(spaces["dst"], i * m + j, old + ite(k + 1 == m, const(0, 8), weight))

    def shorter(kernel: Kernel, spaces: Mapping[str, Expr]) -> None:
        n, m = spaces["n"], spaces["m"]
        lengths = {"all but the last": m - 1, "half": m >> 1, "one": const(1, 32), "all but two": m - 2}
        with kernel.loop("i", n) as i, kernel.loop("j", m) as j:
            total = kernel.let("total", const(0, 8))
            with kernel.loop("x", lengths[length]) as x:
                kernel.assign(total, total + kernel.load("w", spaces["src"], i * m + x))
            kernel.store(spaces["dst"], i * m + j, total)

    sizes = tuple((f"2 <= {s}", const(2, 16) <= s) for s in (toy.N, toy.M))
    mapping = flow(toy.mapping(masked, shorter, domain=(*toy.DOMAIN, *sizes)))
    verdict = prove(mapping, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert (verdict.status is Status.PROVED) is (length == "all but the last"), verdict.reason
