"""Loop nests of public GEMM libraries and drivers of accelerators: proved for every size, and their faults are not.

They have blocks on several levels, packed operands, a bias or C itself that the sum begins with, operands that lie
transposed, slices that are added up, and one operand that stays in the array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from ila_lang import Expr, Ila, Kernel, concat, const, ite, true
from ila_lang.mapping import TensorMapping
from tests.chc.mapping.library_gemm import (
    COMPUTE,
    COMPUTE_PRELOADED,
    FILL,
    HOST_A,
    HOST_B,
    HOST_C,
    HOST_D,
    MVIN_A,
    MVIN_B,
    PARAMETERS,
    READ,
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
    ir,
    multiply,
    noted,
)
from tests.chc.mapping.test_library_sums import merge
from tests.marks import slow_but

ZERO, ONE, NEVER = const(0, 32), const(1, 32), ~true
PATTERNS: Patterns = {}
pattern = partial(noted, PATTERNS)
two = const(2, 3)


def clear() -> Parts:
    """Clears a tile of accumulators."""

    def parts(ila: Ila) -> Part:
        def part(kernel: Kernel) -> None:
            with kernel.loop("zr", four) as r, kernel.loop("zc", four) as c:
                kernel.store(ila.states["acc"], element(ila.states["tile_c"], r, c), const(0, 32))

        return part

    return parts


def outer() -> Parts:
    """Adds the products of one column of the tile of A and one row of that of B, whose number ``tile_b`` ends with."""

    def parts(ila: Ila) -> Part:
        def part(kernel: Kernel) -> None:
            states = ila.states
            with kernel.loop("or", four) as r, kernel.loop("oc", four) as c:
                at, x = element(states["tile_c"], r, c), states["tile_b"][1:0]
                old = kernel.load("old", states["acc"], at)
                left = kernel.load("left", states["spad_a"], element(states["tile_a"], r, x))
                right = kernel.load("right", states["weights"], concat(x, c[1:0]))
                kernel.store(states["acc"], at, ite(states["adds"], old, const(0, 32)) + multiply(left, right))

        return part

    return parts


OTHERS: Mapping[str, Parts] = {"clear": clear(), "merge": merge(), "outer": outer()}
CLEAR, MERGE, OUTER = (READ + 1 + k for k in range(3))


def wide(term: Expr) -> Expr:
    return term.zext(32)


def fill(h: Host, tensor: Expr, tile: Expr, i: Expr, j: Expr) -> None:
    """A tile of accumulators becomes the one of a matrix at a row and a column."""
    with h.loop(four, "r") as r, h.loop(four, "c") as c:
        at = ((i << 2) + wide(r)) * (N << 2) + ((j << 2) + wide(c))
        h.command(f"fill {tensor.name}", FILL, at=element(tile, r, c), word=tensor.load(at))


# -- what the sum begins with ---------------------------------------------------------------------------


@pattern(
    "overwrites in the first iteration",
    "the bias is that of the tile before",
    "the bias comes after the products",
    "the bias fills the accumulator beside",
    "the bias is loaded for the first row only",
)
def bias_into_the_accumulators_first(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j:

        def bias() -> None:
            column = ite(j == 0, j, j - 1) if fault == "the bias is that of the tile before" else j
            with h.when(i == 0 if fault == "the bias is loaded for the first row only" else true):
                fill(h, HOST_D, ONE if fault == "the bias fills the accumulator beside" else ZERO, i, column)

        if fault != "the bias comes after the products":
            bias()
        with h.loop(K) as k:
            h.mvin_a(ZERO, i, k)
            h.mvin_b(ZERO, k, j)
            h.preload(ZERO)
            h.compute(ZERO, ZERO, ~(k == 0) if fault == "overwrites in the first iteration" else true)
        if fault == "the bias comes after the products":
            bias()
        h.read(ZERO, i, j)


@pattern(
    "overwrites in the first iteration",
    "C is that of the row before",
    "C is loaded for each product",
    "C is loaded after the first product",
    "C is loaded for the first column only",
)
def sums_go_on_from_c(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:

        def load() -> None:
            with h.when(j == 0 if fault == "C is loaded for the first column only" else true):
                fill(h, HOST_C, i * N + j, ite(i == 0, i, i - 1) if fault == "C is that of the row before" else i, j)

        if fault not in ("C is loaded for each product", "C is loaded after the first product"):
            load()
        with h.loop(K) as k:
            if fault == "C is loaded for each product":
                load()
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~(k == 0) if fault == "overwrites in the first iteration" else true)
            if fault == "C is loaded after the first product":
                with h.when(k == 0):
                    load()
    h.read_all()


@pattern(
    "clears after the first product",
    "clears the tile beside",
    "clears in the first row only",
    "overwrites in the last iteration",
    "clears for each product",
)
def clears_by_an_instruction(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:

        def reset() -> None:
            with h.when(i == 0 if fault == "clears in the first row only" else true):
                tile = i * N + (j + 1 if fault == "clears the tile beside" else j)
                h.command("clear", CLEAR, tile_c_in=tile[9:0])

        if fault not in ("clears after the first product", "clears for each product"):
            reset()
        with h.loop(K) as k:
            if fault == "clears for each product":
                reset()
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~(k + 1 == K) if fault == "overwrites in the last iteration" else true)
            if fault == "clears after the first product":
                with h.when(k == 0):
                    reset()
    h.read_all()


@pattern(
    "the second thread clears the first one's tile",
    "the second thread has the first one's weights",
    "only the first thread clears",
    "both threads read one accumulator",
    "the threads go on from one column to the next",
)
def two_virtual_threads(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N >> 1) as pair:

        def tile(thread: int) -> Expr:
            return const(0 if fault == "both threads read one accumulator" else thread, 32)

        for thread in range(2):
            if thread and fault == "only the first thread clears":
                continue
            number = 0 if fault == "the second thread clears the first one's tile" else thread
            with h.when(pair == 0 if fault == "the threads go on from one column to the next" else true):
                h.command("clear", CLEAR, tile_c_in=const(number, 10))
        with h.loop(K) as k:
            for thread in range(2):
                own = const(thread, 32)
                h.mvin_a(own, i, k)
                h.mvin_b(own, k, (pair << 1) + thread)
                h.preload(ZERO if fault == "the second thread has the first one's weights" else own)
                h.compute(own, own, true)
        for thread in range(2):
            h.read(tile(thread), i, (pair << 1) + thread)


# -- what stays in the array ----------------------------------------------------------------------------


@pattern(
    "takes the column before",
    "adds in the first iteration",
    "overwrites in the first column only",
    "loads A for the first product only",
    "reads the tile beside",
)
def input_stationary(h: Host, fault: str) -> None:
    with h.loop(M) as i:
        with h.loop(K) as k:
            with h.when(k == 0 if fault == "loads A for the first product only" else true):
                h.mvin_a(ZERO, i, k)
            with h.loop(N) as j:
                h.mvin_b(ZERO, k, ite(j == 0, j, j - 1) if fault == "takes the column before" else j)
                h.preload(ZERO)
                adds = {
                    "adds in the first iteration": true,
                    "overwrites in the first column only": ~((k == 0) & (j == 0)),
                }.get(fault, ~(k == 0))
                h.compute(ZERO, j, adds)
        with h.loop(N) as j:
            h.read(j + 1 if fault == "reads the tile beside" else j, i, j)


@pattern(
    "takes the row before",
    "adds in the first iteration",
    "overwrites in the first row only",
    "preloads for the first product only",
    "preloads after the products",
)
def weight_stationary(h: Host, fault: str) -> None:
    with h.loop(N) as j:
        with h.loop(K) as k:
            h.mvin_b(ZERO, k, j)
            if fault != "preloads after the products":
                with h.when(k == 0 if fault == "preloads for the first product only" else true):
                    h.preload(ZERO)
            with h.loop(M) as i:
                h.mvin_a(ZERO, ite(i == 0, i, i - 1) if fault == "takes the row before" else i, k)
                adds = {
                    "adds in the first iteration": true,
                    "overwrites in the first row only": ~((k == 0) & (i == 0)),
                }.get(fault, ~(k == 0))
                h.compute(ZERO, i, adds)
            if fault == "preloads after the products":
                h.preload(ZERO)
        with h.loop(M) as i:
            h.read(i, i, j)


@pattern(
    "weights are preloaded too late",
    "the first weights are missing",
    "the next weights are those of this tile",
    "the next weights overwrite those in use",
    "adds in the first iteration",
)
def loads_the_next_weights_while_it_computes(h: Host, fault: str) -> None:
    def halves(k: Expr) -> Expr:
        return concat(const(0, 31), k[0:0])

    with h.loop(M) as i, h.loop(N) as j:
        if fault != "the first weights are missing":
            h.mvin_b(ZERO, ZERO, j)
        with h.loop(K) as k:
            h.mvin_a(ZERO, i, k)
            if fault != "weights are preloaded too late":
                h.preload(halves(k))
            with h.when(k + 1 < K):
                target = halves(k) if fault == "the next weights overwrite those in use" else halves(k + 1)
                h.mvin_b(target, k if fault == "the next weights are those of this tile" else k + 1, j)
            h.compute(ZERO, ZERO, true if fault == "adds in the first iteration" else ~(k == 0))
            if fault == "weights are preloaded too late":
                h.preload(halves(k))
        h.read(ZERO, i, j)


# -- blocks on two levels -------------------------------------------------------------------------------


@pattern(
    "each block of depth begins anew",
    "always adds",
    "weights are those of the first block's column",
    "preloads in the second row",
    "reads before the last block",
    "blocks of depth are one tile apart",
)
def blocks_of_two_by_two_by_two(h: Host, fault: str) -> None:
    with h.loop(M >> 1) as mi, h.loop(N >> 1) as nj:

        def read() -> None:
            with h.loop(two, "u") as u, h.loop(two, "v") as v:
                h.read(wide(u) * 2 + wide(v), (mi << 1) + wide(u), (nj << 1) + wide(v))

        with h.loop(K >> 1) as kb:
            first = kb if fault == "blocks of depth are one tile apart" else kb << 1
            with h.loop(two, "u") as u, h.loop(two, "x") as x:
                h.mvin_a(wide(u) * 2 + wide(x), (mi << 1) + wide(u), first + wide(x))
            with h.loop(two, "x") as x, h.loop(two, "v") as v:
                column = nj << 1 if fault == "weights are those of the first block's column" else (nj << 1) + wide(v)
                h.mvin_b(wide(x) * 2 + wide(v), first + wide(x), column)
            if fault == "reads before the last block":
                with h.when(kb + 1 == K >> 1):
                    read()
            with h.loop(two, "x") as x, h.loop(two, "v") as v, h.loop(two, "u") as u:
                preloads = u == (1 if fault == "preloads in the second row" else 0)
                adds = {"each block of depth begins anew": ~(x == 0), "always adds": true}.get(
                    fault, ~((kb == 0) & (x == 0))
                )
                h.compute(
                    wide(u) * 2 + wide(x),
                    wide(u) * 2 + wide(v),
                    adds,
                    op=ite(preloads, const(COMPUTE_PRELOADED, 4), const(COMPUTE, 4)),
                    b=wide(x) * 2 + wide(v),
                )
        if fault != "reads before the last block":
            read()


@pattern(
    "the first block of depth adds",
    "later blocks of depth overwrite",
    "each block adds to the sums before",
    "packs A of the block before",
    "the last block of depth is left out",
)
def blocks_of_depth_are_added_up_in_c(h: Host, fault: str) -> None:
    """The block of depth is outside: each makes sums of its own, which the host adds to C; the first ones it stores."""
    blocks = K >> 2
    with h.loop(blocks - 1 if fault == "the last block of depth is left out" else blocks) as kb, h.loop(M) as i:
        with h.loop(four, "p") as p:
            row = ite(i == 0, i, i - 1) if fault == "packs A of the block before" else i
            h.mvin_a(wide(p), row, (kb << 2) + wide(p))
        with h.loop(N) as j:
            with h.loop(four, "q") as q:
                h.mvin_b(wide(q), (kb << 2) + wide(q), j)
            with h.loop(four, "x") as x:
                h.preload(wide(x))
                h.compute(wide(x), ZERO, true if fault == "each block adds to the sums before" else ~(x == 0))
            with h.loop(four, "r") as r, h.loop(four, "c") as c:
                at = ((i << 2) + wide(r)) * (N << 2) + ((j << 2) + wide(c))
                h.command("read", READ, at=element(ZERO, r, c))
                out = h.ila.states["out"]
                first = {"the first block of depth adds": NEVER, "later blocks of depth overwrite": true}
                old = ite(first.get(fault, kb == 0), ZERO, HOST_C.load(at))
                h.kernel.store(HOST_C, at, old + out)


@pattern(
    "the last rows are those before",
    "the last columns begin anew in each iteration",
    "guards have the other size",
    "the last block of rows is left out",
    "always adds",
)
def edges_are_guarded(h: Host, fault: str) -> None:
    """Blocks of two by two tiles; what lies beyond the matrix is left out."""
    h.all_inputs()
    blocks = M >> 1 if fault == "the last block of rows is left out" else (M + 1) >> 1
    with h.loop(blocks) as mi, h.loop((N + 1) >> 1) as nj, h.loop(two, "u") as u, h.loop(two, "v") as v:
        i, j = (mi << 1) + wide(u), (nj << 1) + wide(v)
        inside = (i < N) & (j < M) if fault == "guards have the other size" else (i < M) & (j < N)
        with h.when(inside), h.loop(K) as k:
            adds = {"always adds": true, "the last columns begin anew in each iteration": ~((k == 0) | (j + 1 == N))}
            h.preload(k * N + j)
            row = ite((i + 1 == M) & ~(i == 0), i - 1, i) if fault == "the last rows are those before" else i
            h.compute(row * K + k, i * N + j, adds.get(fault, ~(k == 0)))
    h.read_all()


@pattern(
    "the rest of the rows is the row before",
    "the rest of the columns is left out",
    "the rest of the depth begins anew",
    "the rest of the depth is there for even numbers",
    "the rest of the depth has the weights before",
)
def rests_in_all_three_dimensions(h: Host, fault: str) -> None:
    h.all_inputs()

    def depth(i: Expr, j: Expr) -> None:
        with h.loop(K >> 1) as kb, h.loop(two, "x") as x:
            k = (kb << 1) + wide(x)
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~((kb == 0) & (x == 0)))
        rest = K[0:0] == (0 if fault == "the rest of the depth is there for even numbers" else 1)
        with h.when(rest):
            other = ite(K == 1, ZERO, K - 2) if fault == "the rest of the depth has the weights before" else K - 1
            h.preload(other * N + j)
            h.compute(i * K + (K - 1), i * N + j, NEVER if fault == "the rest of the depth begins anew" else ~(K == 1))

    def columns(i: Expr) -> None:
        with h.loop(N >> 1) as nj, h.loop(two, "v") as v:
            depth(i, (nj << 1) + wide(v))
        if fault != "the rest of the columns is left out":
            with h.when(N[0:0] == 1):
                depth(i, N - 1)

    with h.loop(M >> 1) as mi, h.loop(two, "u") as u:
        columns((mi << 1) + wide(u))
    with h.when(M[0:0] == 1):
        columns(ite(M == 1, ZERO, M - 2) if fault == "the rest of the rows is the row before" else M - 1)
    h.read_all()


# -- slices, single columns and rows, and other orders ---------------------------------------------------


@pattern(
    "slices are one tile apart",
    "the last slice is left out",
    "the first slice is added twice",
    "slices are not cleared",
    "all slices take the first one's weights",
)
def four_slices_of_the_depth(h: Host, fault: str) -> None:
    """Each slice of the depth has accumulators of its own; they are added up at the end."""
    h.all_inputs()
    quarter = K >> 2
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(four, "s") as s, h.loop(quarter) as k:
            begin = wide(s) if fault == "slices are one tile apart" else wide(s) * quarter
            weights = k if fault == "all slices take the first one's weights" else begin + k
            h.preload(weights * N + j)
            h.compute(i * K + (begin + k), wide(s), true if fault == "slices are not cleared" else ~(k == 0))
        for number in range(1, 3 if fault == "the last slice is left out" else 4):
            source = 1 if fault == "the first slice is added twice" and number == 2 else number
            h.command("merge", MERGE, tile_a_in=const(source, 10), tile_c_in=const(0, 10))
        h.read(ZERO, i, j)


@pattern(
    "takes the first column of each tile twice",
    "overwrites in each tile",
    "overwrites in each first column",
    "leaves the last column out",
    "the weights are those before",
)
def one_column_at_a_time(h: Host, fault: str) -> None:
    """Outer products of a column and a row: the device adds one product at a time."""
    h.all_inputs()
    columns = const(3, 3) if fault == "leaves the last column out" else four
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
        h.preload((ite(k == 0, k, k - 1) if fault == "the weights are those before" else k) * N + j)
        with h.loop(columns, "x") as x:
            column = ite(x == 1, ZERO, wide(x)) if fault == "takes the first column of each tile twice" else wide(x)
            adds = {
                "overwrites in each tile": ~(x == 0),
                "overwrites in each first column": ~((x == 0) | (k == 0)),
            }.get(fault, ~((x == 0) & (k == 0)))
            h.compute(i * K + k, i * N + j, adds, op=OUTER, b=column)
    h.read_all()


@pattern(
    "the loop runs once too often",
    "the last product is left out if there is one",
    "the last product begins anew",
    "the last product is the one before",
    "the loop always adds",
)
def the_last_product_is_peeled(h: Host, fault: str) -> None:
    """All columns but the last one of the last tile in a loop, the last one after it."""
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop((K << 2) - (0 if fault == "the loop runs once too often" else 1)) as x:
            k = x >> 2
            h.preload(k * N + j)
            adds = true if fault == "the loop always adds" else ~(x == 0)
            h.compute(i * K + k, i * N + j, adds, op=OUTER, b=x & 3)
        with h.when(K[0:0] == 0 if fault == "the last product is left out if there is one" else true):
            h.preload((K - 1) * N + j)
            last = const(2 if fault == "the last product is the one before" else 3, 32)
            adds = NEVER if fault == "the last product begins anew" else true
            h.compute(i * K + (K - 1), i * N + j, adds, op=OUTER, b=last)
    h.read_all()


@pattern(
    "the peeled tile begins anew",
    "the loop runs over all tiles",
    "the loop always adds",
    "the peeled tile is the first one",
    "the peeled tile adds to the accumulator beside",
)
def the_last_tile_is_peeled(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(K if fault == "the loop runs over all tiles" else K - 1) as k:
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, true if fault == "the loop always adds" else ~(k == 0))
        last = ZERO if fault == "the peeled tile is the first one" else K - 1
        h.preload(last * N + j)
        place = i * N if fault == "the peeled tile adds to the accumulator beside" else i * N + j
        h.compute(i * K + last, place, NEVER if fault == "the peeled tile begins anew" else ~(K == 1))
    h.read_all()


# -- other layouts --------------------------------------------------------------------------------------


def transposed(h: Host, op: int, tensor: Expr, tile: Expr, at: tuple[Expr, Expr, Expr]) -> None:
    """A tile of a matrix whose columns lie one after the other, each of ``rows`` tiles."""
    row, column, rows = at
    with h.loop(four, "r") as r, h.loop(four, "c") as c:
        word = ((column << 2) + wide(c)) * (rows << 2) + ((row << 2) + wide(r))
        h.command(f"mvin {tensor.name}", op, at=element(tile, r, c), data=tensor.load(word))


@pattern(
    "A is not transposed",
    "A has the columns of B",
    "tiles of B are not transposed inside",
    "adds in the first iteration",
    "B is taken row after row",
)
def operands_lie_column_after_column(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
        if fault == "A is not transposed":
            h.mvin_a(ZERO, i, k)
        else:
            transposed(h, MVIN_A, HOST_A, ZERO, (i, k, N if fault == "A has the columns of B" else M))
        if fault == "B is taken row after row":
            h.mvin_b(ZERO, k, j)
        elif fault == "tiles of B are not transposed inside":
            with h.loop(four, "r") as r, h.loop(four, "c") as c:
                word = ((j << 2) + wide(r)) * (K << 2) + ((k << 2) + wide(c))
                h.command("mvin b", MVIN_B, at=element(ZERO, r, c), data=HOST_B.load(word))
        else:
            transposed(h, MVIN_B, HOST_B, ZERO, (k, j, K))
        h.preload(ZERO)
        h.compute(ZERO, i * N + j, true if fault == "adds in the first iteration" else ~(k == 0))
    h.read_all()


EVEN = (("m, n, k mod 2 = 0", (M[0:0] == 0) & (N[0:0] == 0) & (K[0:0] == 0)),)
FOURS = (("k mod 4 = 0", K[1:0] == 0),)
WITHIN = {
    "blocks of two by two by two": EVEN,
    "two virtual threads": (("n mod 2 = 0", N[0:0] == 0),),
    "blocks of depth are added up in c": FOURS,
    "four slices of the depth": FOURS,
}
SHAPES = {"blocks of two by two by two": (2, 2, 2), "two virtual threads": (1, 2, 1)}
BEGINS = {"bias into the accumulators first": "d", "sums go on from c": "c"}


def of(name: str, fault: str = "") -> TensorMapping:
    """A pattern, with a fault."""
    build, _ = PATTERNS[name]
    ila = device(others=OTHERS, fills=name in BEGINS)
    mapping = claim(partial(build, fault=fault), ila=ila, within=WITHIN.get(name, ()))
    column_major, begins = name == "operands lie column after column", BEGINS.get(name, "")
    if column_major or begins:
        inputs = (*mapping.inputs, *([(begins, f"tensor_{begins}")] if begins else []))
        mapping = replace(
            mapping,
            ir=ir(begins=begins, column_major=column_major),
            inputs=inputs,
        )
    return replace(mapping, sample_shapes=(SHAPES[name],)) if name in SHAPES else mapping


SIZES = {(2, 2, 4), (2, 2, 2), (2, 4, 8), (1, 1, 1), (3, 3, 3), (1, 2, 6), (2, 1, 5), (4, 2, 2)}


def sizes(mapping: TensorMapping) -> list[dict[str, int]]:
    every = (dict(zip(PARAMETERS, row, strict=True)) for row in sorted(SIZES))
    return [at for at in every if mapping.holds(at)]


QUICK = {"the last product is peeled"}
"""Patterns that are not marked as slow."""


@pytest.mark.parametrize("name", slow_but(QUICK, PATTERNS))
def test_the_pattern_is_proved_for_every_size(name: str) -> None:
    mapping = of(name)
    assert_proved(mapping, sizes(mapping))


FAULTS = [
    pytest.param(name, fault, marks=[] if (name, number) == ("the last product is peeled", 0) else [pytest.mark.slow])
    for name, (_, faults) in PATTERNS.items()
    for number, fault in enumerate(faults)
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_of_a_pattern_is_not_proved(name: str, fault: str) -> None:
    mapping = of(name, fault)
    assert_false_and_not_proved(mapping, sizes(mapping))
