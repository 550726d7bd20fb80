"""Loop nests as libraries of matrix accelerators have them: proved for every size, and their faults are not.

Each pattern is a function of a fault: without one it is right, and with each one a concrete run shows that it is wrong.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, concat, const, ite, true
from reports.binding import binding_problems
from reports.certificate import certificate_of, semantics_of
from rewrites.claims.subjects.mapping import MappingSubject
from smt_encodings.claims import Runs
from tests.chc.mapping.library_gemm import (
    COMPUTE,
    COMPUTE_OVER,
    COMPUTE_PRELOADED,
    HOST_A,
    HOST_B,
    HOST_C,
    MVIN_A,
    MVIN_B,
    READ,
    Host,
    K,
    M,
    N,
    Patterns,
    assert_false_and_not_proved,
    assert_proved,
    claim,
    device,
    element,
    noted,
    whether,
)
from tests.chc.mapping.test_flow_two_values import PAIRS
from tests.marks import slow_but

ZERO, NEVER = const(0, 32), ~true
PATTERNS: Patterns = {}
pattern = partial(noted, PATTERNS)


@pattern(
    "always adds",
    "never adds",
    "overwrites in the second iteration",
    "overwrites in the last iteration",
    "overwrites in the first row of tiles",
    "leaves the last iteration out",
    "takes the tile before",
)
def overwrites_first_by_choice(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j, h.loop(whether(fault, "leaves the last iteration out", K - 1, K)) as k:
        first = k == 0
        adds = {
            "always adds": true,
            "never adds": NEVER,
            "overwrites in the second iteration": ~(k == 1),
            "overwrites in the last iteration": ~(k + 1 == K),
            "overwrites in the first row of tiles": ~(i == 0),
        }.get(fault, ~first)
        a = whether(fault, "takes the tile before", ite(first, k, k - 1), k)
        h.preload(k * N + j)
        h.compute(i * K + a, i * N + j, adds)
    h.read_all()


@pattern(
    "overwrites only in the first tile",
    "clears nothing after the first row",
    "reads before the last iteration",
    "reads the accumulator beside",
    "reads the sum into the row before, too",
)
def overwrites_first_in_one_accumulator(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(K) as k:
            adds = {
                "overwrites only in the first tile": ~((k == 0) & (j == 0) & (i == 0)),
                "clears nothing after the first row": ~((k == 0) & (i == 0)),
            }.get(fault, ~(k == 0))
            if fault == "reads before the last iteration":
                with h.when(k + 1 == K):
                    h.read(ZERO, i, j)
            h.preload(k * N + j)
            h.compute(i * K + k, ZERO, adds)
        if fault == "reads the sum into the row before, too":
            with h.when(i >= 1):
                h.read(ZERO, i - 1, j)
        if fault != "reads before the last iteration":
            h.read(const(1, 32) if fault == "reads the accumulator beside" else ZERO, i, j)


@pattern(
    "overwrites in the second iteration",
    "overwrites in the last iteration",
    "overwrites in the first row of tiles only",
    "overwrites in the first two iterations",
    "the bit says overwrite, too, in the second",
    "leaves the last iteration out",
)
def overwrites_first_by_instruction(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j, h.loop(K - 1 if fault == "leaves the last iteration out" else K) as k:
        first = {
            "overwrites in the second iteration": k == 1,
            "overwrites in the last iteration": k + 1 == K,
            "overwrites in the first row of tiles only": (k == 0) & (i == 0),
            "overwrites in the first two iterations": k <= 1,
        }.get(fault, k == 0)
        adds = ~(k == 1) if fault == "the bit says overwrite, too, in the second" else true
        h.preload(k * N + j)
        h.compute(i * K + k, i * N + j, adds, op=ite(first, const(COMPUTE_OVER, 4), const(COMPUTE, 4)))
    h.read_all()


@pattern(
    "the loop begins at the peeled tile",
    "the loop runs once too little",
    "the peeled iteration adds",
    "the loop overwrites",
    "the peeled iteration follows the loop",
    "the peeled tile has other weights",
    "the loop goes on in another accumulator",
)
def overwrites_first_by_peeling(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:

        def peeled() -> None:
            h.preload(whether(fault, "the peeled tile has other weights", ZERO, j))
            h.compute(i * K, i * N + j, true if fault == "the peeled iteration adds" else NEVER)

        if fault != "the peeled iteration follows the loop":
            peeled()
        with h.loop(K - (2 if fault == "the loop runs once too little" else 1)) as k:
            tile = whether(fault, "the loop begins at the peeled tile", k, k + 1)
            place = whether(fault, "the loop goes on in another accumulator", i * N, i * N + j)
            h.preload(tile * N + j)
            h.compute(i * K + tile, place, NEVER if fault == "the loop overwrites" else true)
        if fault == "the peeled iteration follows the loop":
            peeled()
    h.read_all()


@pattern(
    "the peeled tile does not preload",
    "others preload, too, from the tile before",
    "the first row adds in the first iteration",
    "other rows add in the first iteration",
    "the loop begins at the peeled row",
    "weights are those of the first column",
)
def reuses_weights_by_peeling(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(N) as j, h.loop(K) as k:
        adds = ~(k == 0)
        weights = k * N + (ZERO if fault == "weights are those of the first column" else j)
        h.compute(
            k,
            j,
            true if fault == "the first row adds in the first iteration" else adds,
            op=COMPUTE if fault == "the peeled tile does not preload" else COMPUTE_PRELOADED,
            b=weights,
        )
        with h.loop(M - 1) as i:
            row = i if fault == "the loop begins at the peeled row" else i + 1
            adds_here = true if fault == "other rows add in the first iteration" else adds
            if fault == "others preload, too, from the tile before":
                h.compute(row * K + k, row * N + j, adds_here, op=COMPUTE_PRELOADED, b=ite(k == 0, k, k - 1) * N + j)
            else:
                h.compute(row * K + k, row * N + j, adds_here)
    h.read_all()


@pattern(
    "preloads in the second row",
    "preloads in the last row",
    "preloads for the first column only",
    "never adds in the first row",
    "preloads the first tile of the column",
)
def reuses_weights_by_instruction(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(N) as j, h.loop(K) as k, h.loop(M) as i:
        preloads = {
            "preloads in the second row": i == 1,
            "preloads in the last row": i + 1 == M,
            "preloads for the first column only": (i == 0) & (j == 0),
        }.get(fault, i == 0)
        adds = ~(k == 0) & ~(i == 0) if fault == "never adds in the first row" else ~(k == 0)
        weights = whether(fault, "preloads the first tile of the column", j, k * N + j)
        h.compute(
            i * K + k, i * N + j, adds, op=ite(preloads, const(COMPUTE_PRELOADED, 4), const(COMPUTE, 4)), b=weights
        )
    h.read_all()


def half(k: Expr) -> Expr:
    """The half of a buffer that iteration ``k`` uses."""
    return concat(const(0, 31), k[0:0])


@pattern(
    "reads the other half",
    "weights come from the other half",
    "both halves are one cell apart",
    "loads in even iterations only",
    "adds in the first iteration",
)
def loads_into_halves_in_turn(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
        here, other = half(k), half(k + 1)

        def load() -> None:
            h.mvin_a(here, i, k)
            h.mvin_b(here, k, j)

        if fault == "loads in even iterations only":
            with h.when(k[0:0] == 0):
                load()
        else:
            load()
        h.preload(other if fault == "weights come from the other half" else here)
        source = {"reads the other half": other, "both halves are one cell apart": here + 1}.get(fault, here)
        h.compute(source, i * N + j, true if fault == "adds in the first iteration" else ~(k == 0))
    h.read_all()


@pattern(
    "loads the tile that it uses now",
    "begins with the second tile",
    "loads into the half in use",
    "begins with nothing",
    "begins once, before all tiles",
    "computes on the other half",
)
def loads_the_next_half_while_it_computes(h: Host, fault: str) -> None:
    def begin(i: Expr, j: Expr) -> None:
        first = const(1 if fault == "begins with the second tile" else 0, 32)
        h.mvin_a(ZERO, i, first)
        h.mvin_b(ZERO, first, j)

    if fault == "begins once, before all tiles":
        begin(ZERO, ZERO)
    with h.loop(M) as i, h.loop(N) as j:
        if fault not in ("begins with nothing", "begins once, before all tiles"):
            begin(i, j)
        with h.loop(K) as k:
            here, other = half(k), half(k + 1)
            with h.when(k + 1 < K):
                target = here if fault == "loads into the half in use" else other
                tile = k if fault == "loads the tile that it uses now" else k + 1
                h.mvin_a(target, i, tile)
                h.mvin_b(target, tile, j)
            h.preload(here)
            h.compute(other if fault == "computes on the other half" else here, i * N + j, ~(k == 0))
    h.read_all()


two = const(2, 3)


@pattern(
    "the rest is the row before",
    "the rest is there for even numbers",
    "pairs take their first row twice",
    "one pair is left out",
    "the rest adds in its first iteration",
    "the rest ends early",
)
def rows_in_pairs_and_a_rest(h: Host, fault: str) -> None:
    def product(i: Expr, j: Expr, k: Expr, adds: Expr) -> None:
        h.preload(k * N + j)
        h.compute(i * K + k, i * N + j, adds)

    h.all_inputs()
    pairs = (M >> 1) - 1 if fault == "one pair is left out" else M >> 1
    with h.loop(pairs) as pair, h.loop(two, "u") as u, h.loop(N) as j, h.loop(K) as k:
        i = (pair << 1) + (ZERO if fault == "pairs take their first row twice" else u.zext(32))
        product(i, j, k, ~(k == 0))
    odd = M[0:0] == (0 if fault == "the rest is there for even numbers" else 1)
    with h.when(odd), h.loop(N) as j, h.loop(K - 1 if fault == "the rest ends early" else K) as k:
        last = ite(M == 1, ZERO, M - 2) if fault == "the rest is the row before" else M - 1
        product(last, j, k, true if fault == "the rest adds in its first iteration" else ~(k == 0))
    h.read_all()


@pattern(
    "the last pair goes on from the one before",
    "the last pair comes one row early",
    "the last pair begins a column late",
    "the last pair takes its first row twice",
    "the last pair ends early",
)
def rows_in_pairs_the_last_of_which_overlaps(h: Host, fault: str) -> None:
    def product(i: Expr, j: Expr, k: Expr, adds: Expr) -> None:
        h.preload(k * N + j)
        h.compute(i * K + k, i * N + j, adds)

    h.all_inputs()
    with h.loop(M >> 1) as pair, h.loop(two, "u") as u, h.loop(N) as j, h.loop(K) as k:
        product((pair << 1) + u.zext(32), j, k, ~(k == 0))
    with h.when((M[0:0] == 1) & ~(M == 1)), h.loop(two, "u") as u, h.loop(N) as j:
        i = (M - 2) + (ZERO if fault == "the last pair takes its first row twice" else u.zext(32))
        i = i - 1 if fault == "the last pair comes one row early" else i
        column = ite(j == 0, j, j - 1) if fault == "the last pair begins a column late" else j
        with h.loop(K - 1 if fault == "the last pair ends early" else K) as k:
            product(i, column, k, true if fault == "the last pair goes on from the one before" else ~(k == 0))
    with h.when(M == 1), h.loop(N) as j, h.loop(K) as k:
        product(ZERO, j, k, ~(k == 0))
    h.read_all()


@pattern(
    "the rest is there for even numbers",
    "the rest is always there",
    "the rest begins anew",
    "the rest goes on if there are no pairs",
    "pairs take their second tile twice",
    "each pair begins anew",
)
def depth_in_pairs_and_a_rest(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(K >> 1) as pair, h.loop(two, "u") as u:
            k = (pair << 1) + (1 if fault == "pairs take their second tile twice" else u.zext(32))
            first = (u == 0) if fault == "each pair begins anew" else (u == 0) & (pair == 0)
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~first)
        odd = K[0:0] == (0 if fault == "the rest is there for even numbers" else 1)
        with h.when(true if fault == "the rest is always there" else odd):
            adds = {"the rest begins anew": NEVER, "the rest goes on if there are no pairs": true}.get(fault, ~(K == 1))
            h.preload((K - 1) * N + j)
            h.compute(i * K + (K - 1), i * N + j, adds)
    h.read_all()


@pattern(
    "the rest begins anew",
    "the rest never begins anew",
    "the rest begins a tile early",
    "the rest ends a tile early",
    "each block begins anew",
    "the last block is left out",
)
def depth_in_blocks_and_a_loop_over_the_rest(h: Host, fault: str) -> None:
    h.all_inputs()
    whole = (K >> 2) << 2
    with h.loop(M) as i, h.loop(N) as j:
        with h.loop(ite(whole == 0, whole, whole - 4) if fault == "the last block is left out" else whole) as k:
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, ~(k[1:0] == 0) if fault == "each block begins anew" else ~(k == 0))
        rest = K[1:0].zext(32)
        with h.loop(ite(rest == 0, rest, rest - 1) if fault == "the rest ends a tile early" else rest) as t:
            k = whole + t
            adds = {"the rest begins anew": ~(t == 0), "the rest never begins anew": true}.get(fault, ~(k == 0))
            k = ite(k == 0, k, k - 1) if fault == "the rest begins a tile early" else k
            h.preload(k * N + j)
            h.compute(i * K + k, i * N + j, adds)
    h.read_all()


@pattern(
    "the second takes the first one's tiles",
    "the second has the first one's weights",
    "the second overwrites",
    "the first always adds",
    "each pair begins anew",
    "the second adds in even pairs only",
    "the second adds to the tile beside",
    "the rest is there for even numbers",
)
def a_loop_unrolled_by_two(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j:

        def product(k: Expr, adds: Expr, place: Expr, *, preload: bool = True) -> None:
            if preload:
                h.preload(k * N + j)
            h.compute(i * K + k, place, adds)

        with h.loop(K >> 1) as pair:
            first, here = pair << 1, i * N + j
            adds = {"the first always adds": true, "each pair begins anew": NEVER}.get(fault, ~(pair == 0))
            product(first, adds, here)
            with h.when(pair[0:0] == 0 if fault == "the second adds in even pairs only" else true):
                product(
                    first if fault == "the second takes the first one's tiles" else first + 1,
                    NEVER if fault == "the second overwrites" else true,
                    i * N if fault == "the second adds to the tile beside" else here,
                    preload=fault != "the second has the first one's weights",
                )
        with h.when(K[0:0] == (0 if fault == "the rest is there for even numbers" else 1)):
            product(K - 1, ~(K == 1), i * N + j)
    h.read_all()


@pattern(
    "loads after the start",
    "loads weights after the preload",
    "loads A for the first column only",
    "loads weights for the first row only",
    "loads the first tile of A only",
)
def loads_and_starts_tile_by_tile(h: Host, fault: str) -> None:
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:

        def load_a() -> None:
            with h.when(j == 0 if fault == "loads A for the first column only" else true):
                h.mvin_a(ZERO, i, ZERO if fault == "loads the first tile of A only" else k)

        def load_b() -> None:
            with h.when(i == 0 if fault == "loads weights for the first row only" else true):
                h.mvin_b(ZERO, k, j)

        if fault != "loads after the start":
            load_a()
        if fault == "loads weights after the preload":
            h.preload(ZERO)
        load_b()
        if fault != "loads weights after the preload":
            h.preload(ZERO)
        h.compute(ZERO, i * N + j, ~(k == 0))
        if fault == "loads after the start":
            load_a()
    h.read_all()


def words(h: Host, op: int, tensor: Expr, rows: Expr, columns: Expr, fault: str) -> None:
    """A matrix of tiles word by word, in loops over all its rows and columns of elements."""
    short = 1 if fault == "one row of words is left out" else 0
    with h.loop((rows << 2) - short, "r") as r, h.loop(columns << 2, "w") as w:
        row, column = (w, r) if fault == "tiles are transposed" else (r, w)
        tile = {
            "tiles lie column after column": (w >> 2) * rows + (r >> 2),
            "a row of tiles is one tile shorter": (r >> 2) * (columns - 1) + (w >> 2),
            "tiles have two columns": (r >> 2) * columns + (w >> 1),
        }.get(fault, (r >> 2) * columns + (w >> 2))
        at, word = element(tile, row[1:0], column[1:0]), r * (columns << 2) + w
        if op == READ:
            h.command("read", op, at=at)
            h.kernel.store(tensor, word, h.ila.states["out"])
        else:
            h.command(f"mvin {tensor.name}", op, at=at, data=tensor.load(word))


WORDS = (
    "tiles are transposed",
    "tiles lie column after column",
    "one row of words is left out",
    "a row of tiles is one tile shorter",
    "tiles have two columns",
)


@pattern(*WORDS)
def reads_words_across_tiles(h: Host, fault: str) -> None:
    h.all_inputs()
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
        h.preload(k * N + j)
        h.compute(i * K + k, i * N + j, ~(k == 0))
    words(h, READ, HOST_C, M, N, fault)


@pattern(*WORDS)
def writes_words_across_tiles(h: Host, fault: str) -> None:
    words(h, MVIN_A, HOST_A, M, K, fault)
    words(h, MVIN_B, HOST_B, K, N, "")
    with h.loop(M) as i, h.loop(N) as j, h.loop(K) as k:
        h.preload(k * N + j)
        h.compute(i * K + k, i * N + j, ~(k == 0))
    h.read_all()


QUICK = {
    "overwrites first by choice",
    "overwrites first by peeling",
    "reuses weights by instruction",
    "loads the next half while it computes",
    "depth in blocks and a loop over the rest",
    "a loop unrolled by two",
}
"""Patterns that are not marked as slow."""


LONG = {
    "overwrites first by peeling",
    "depth in blocks and a loop over the rest",
    "a loop unrolled by two",
}
"""Patterns of which the proof takes seconds; that of the first is made for its certificate, too."""


@pytest.mark.parametrize("name", slow_but(QUICK - LONG, PATTERNS))
def test_the_pattern_is_proved_for_every_size(name: str) -> None:
    build, _ = PATTERNS[name]
    assert_proved(claim(partial(build, fault="")), SIZES)


SIZES = ({"m": 2, "n": 2, "k": 3}, {"m": 1, "n": 1, "k": 1}, {"m": 1, "n": 2, "k": 6}, {"m": 3, "n": 2, "k": 9})
"""Sizes at which runs show the faults: of one iteration, of odd and even numbers, of blocks and rests."""
FAULTS = [
    pytest.param(name, fault, marks=[pytest.mark.slow] if number or name not in QUICK - LONG else [])
    for name, (_, faults) in PATTERNS.items()
    for number, fault in enumerate(faults)
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_of_a_pattern_is_not_proved(name: str, fault: str) -> None:
    build, _ = PATTERNS[name]
    assert_false_and_not_proved(claim(partial(build, fault=fault)), SIZES)


def test_hardware_that_ignores_the_accumulate_bit_is_not_proved() -> None:
    build, _ = PATTERNS["overwrites first by choice"]
    mapping = claim(partial(build, fault=""), ila=device(ignores_accumulate=True))
    assert_false_and_not_proved(mapping, [{"m": 1, "n": 1, "k": 1}])


@pytest.mark.parametrize(
    "name",
    ["a sum in two cases", *slow_but((), ["overwrites first by peeling", "a loop unrolled by two"])],
)
def test_a_certificate_has_the_cases_in_order(name: str) -> None:
    mapping = PAIRS[name](True) if name in PAIRS else claim(partial(PATTERNS[name][0], fault=""))
    verdict = replace(prove(mapping), runs=Runs(1, ()))
    content = json.loads(json.dumps(certificate_of(semantics_of(mapping), verdict, {}, "a test")))
    case = next(o for o in content["obligations"] if "in case 2" in o["group"])
    without = content | {"obligations": [o for o in content["obligations"] if o is not case]}
    assert binding_problems(without, MappingSubject(mapping)) == [
        f"{case['group']}: {case['name']}: this obligation is missing"
    ]
