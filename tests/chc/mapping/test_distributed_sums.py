"""Sums that several engines, registers or words of memory share: proved for every size, and their faults are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from chc.mapping.prove import prove
from chc.mapping.relate.equivalence import InNoOrder
from ila_lang import Expr, Function, Ila, Kernel, bv, const, ite, resize
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Unsupported
from smt_encodings.discharge import Discharger
from tests.chc.mapping.dense_layer import HOST_X, Accumulate, Body, Host, adds, claim
from tests.chc.mapping.library_gemm import K, M, differs, multiply

NOTHING = const(0, 32)
FAULTS = (
    "subscripts are one further",
    "the first product is taken twice",
    "the last product is left out",
    "sums begin with a word of memory",
    "columns are mixed up",
)
"""Faults of every pattern."""
SHARED = "partial sums share words"
LEVELS = "the last level is left out", "a lane is left out", "the first level doubles"

unsigned = Function("multiply_unsigned", {"x": bv(8), "w": bv(8)}, bv(32), None)
unsigned.body = unsigned.params[0].zext(32) * unsigned.params[1].zext(32)


@dataclass
class Engine:
    """Writes what an engine does for one row and one column, with a fault."""

    kernel: Kernel
    ila: Ila
    fault: str
    row: Expr
    column: Expr
    _names: int = 0

    @property
    def length(self) -> Expr:
        """The number of features."""
        return self.ila.states["length"]

    def loop(self, extent: Expr) -> AbstractContextManager[Expr]:
        """A loop with a counter of its own."""
        self._names += 1
        return self.kernel.loop(f"{self.kernel.name}_i{self._names}", extent)

    def register(self, bits: int = 32) -> Expr:
        """A register that begins with 0."""
        self._names += 1
        held = self.kernel.load(f"held{self._names}", self.ila.states["results"], self.row)[bits - 1 : 0]
        begin = held if self.fault == "sums begin with a word of memory" else const(0, bits)
        return self.kernel.let(f"total{self._names}", begin)

    def product(self, i: Expr, by: Function = multiply) -> Expr:
        """The product of feature and weight ``i``."""
        self._names += 1
        s, fault = self.ila.states, self.fault
        at = {"subscripts are one further": i + 1, "the first product is taken twice": ite(i == 1, NOTHING, i)}.get(
            fault, i
        )
        column = ite(self.column == 1, NOTHING, self.column) if fault == "columns are mixed up" else self.column
        left = self.kernel.load(f"left{self._names}", s["features"], self.row * self.length + at)
        right = self.kernel.load(f"right{self._names}", s["weights"], at * s["n"] + column)
        whole = by(left, right)
        return ite(i + 1 == self.length, NOTHING, whole) if fault == "the last product is left out" else whole

    def add(self, total: Expr, summand: Expr) -> None:
        """Adds to a register."""
        self.kernel.assign(total, total + summand)

    def cell(self, part: Expr | int = 0, parts: Expr | int = 1) -> Expr:
        """The word of a partial sum."""
        if self.fault == SHARED:
            part = part >> 1 if isinstance(part, Expr) else 0
        return (self.row * self.ila.states["n"] + self.column) * parts + part

    def store(self, memory: str, value: Expr, part: Expr | int = 0, parts: Expr | int = 1) -> None:
        """Stores a partial sum."""
        self.kernel.store(self.ila.states[memory], self.cell(part, parts), value)

    def load(self, memory: str, part: Expr | int = 0, parts: Expr | int = 1) -> Expr:
        """A partial sum."""
        self._names += 1
        return self.kernel.load(f"part{self._names}", self.ila.states[memory], self.cell(part, parts))


Part: TypeAlias = Callable[[Engine], None]


def each(part: Part, fault: str, number: int = 0) -> Body:
    """An instruction that does its part for each row and column."""

    def body(kernel: Kernel, ila: Ila) -> None:
        s = ila.states
        with kernel.loop(f"r{number}", s["m"]) as r, kernel.loop(f"c{number}", s["n"]) as c:
            part(Engine(kernel, ila, fault, r, c))

    return body


@dataclass(frozen=True)
class Pattern:
    """Instructions one after the other, memories beside, and what the number of features must be."""

    parts: tuple[Part, ...]
    memories: Mapping[str, int]
    within: tuple[tuple[str, Expr], ...] = ()
    accumulate: Accumulate = adds
    is_open: bool = True
    program: Callable[[Host], None] | None = None
    """What the host does after it wrote the operands, where it does not start each instruction once."""
    faults: tuple[str, ...] = FAULTS


TWOS = (("k mod 2 = 0", K[0:0] == 0),)
FOURS = (("k mod 4 = 0", K[1:0] == 0),)
SIXTEENS = (("k mod 16 = 0", K[3:0] == 0),)
four = const(4, 3)


def engine(begin: int, memory: str) -> Part:
    """Sums every second product."""

    def part(e: Engine) -> None:
        total = e.register()
        with e.loop(e.length >> 1) as i:
            e.add(total, e.product(i * 2 + begin))
        e.store(memory, total)

    return part


def added(e: Engine) -> None:
    e.store("results", e.load("one") + e.load("two"))


def quarters(e: Engine) -> None:
    with e.loop(four) as p:
        total = e.register()
        with e.loop(e.length >> 2) as i:
            e.add(total, e.product((i << 2) + p.zext(32)))
        e.store("one", total, p.zext(32), 4)


def quarters_in_memory(e: Engine) -> None:
    with e.loop(four) as p:
        e.store("one", e.register(), p.zext(32), 4)
        with e.loop(e.length >> 2) as i:
            e.store("one", e.load("one", p.zext(32), 4) + e.product((i << 2) + p.zext(32)), p.zext(32), 4)


def blocks(bits: int) -> Part:
    """A sum of each block of four products."""

    def part(e: Engine) -> None:
        with e.loop(e.length >> 2) as p:
            total = e.register(bits)
            with e.loop(four) as i:
                e.add(total, e.product((p << 2) + i.zext(32))[bits - 1 : 0])
            e.store("one", total, p, e.length >> 2)

    return part


def parts_in_turn(e: Engine) -> None:
    for number in range(2):
        total = e.register()
        with e.loop(e.length >> 1) as i:
            e.add(total, e.product(i * 2 + number))
        e.store("one", total, number, 2)


def two_added(e: Engine) -> None:
    total = e.register()
    with e.loop(const(2, 2)) as q:
        e.add(total, e.load("one", q.zext(32), 2))
    e.store("results", total)


def four_added(e: Engine) -> None:
    total = e.register()
    with e.loop(four) as q:
        e.add(total, e.load("one", q.zext(32), 4))
    e.store("results", total)


def tree(e: Engine) -> None:
    with e.loop(const(2, 3)) as j:
        e.store("two", e.load("one", j.zext(32), 4) + e.load("one", j.zext(32) + 2, 4), j.zext(32), 2)
    e.store("results", e.load("two", 0, 2) + e.load("two", 1, 2))


def sixteen_lanes(e: Engine) -> None:
    with e.loop(const(16, 5)) as lane:
        total = e.register()
        with e.loop(e.length >> 4) as i:
            e.add(total, e.product((i << 4) + lane.zext(32)))
        e.store("one", total, lane.zext(32), 16)


def by_levels(h: Host) -> None:
    h.go(0, K)
    with h.kernel.loop("level", four) as number:
        h.go(1, const(8, 32) >> number.zext(32))
    h.go(2, K)
    h.read()


def level(e: Engine, lanes: int, first: Expr, apart: Expr, own: Expr) -> None:
    """One level of a tree over words: so many lanes add to their own word the one that lies so far apart."""
    with e.loop(own - ite(first, const(1, 32), NOTHING) if e.fault == "a lane is left out" else own) as i:
        other = ite(first, i, i + apart) if e.fault == "the first level doubles" else i + apart
        e.store("one", e.load("one", i, lanes) + e.load("one", other, lanes), i, lanes)


def all_levels(e: Engine, lanes: int, *, all_lanes: bool = False) -> None:
    count = lanes.bit_length() - 1
    with e.loop(const(count - 1 if e.fault == "the last level is left out" else count, 3)) as number:
        apart = const(lanes >> 1, 32) >> number.zext(32)
        level(e, lanes, number == 0, apart, const(lanes >> 1, 32) if all_lanes else apart)


def levels(lanes: int, *, all_lanes: bool = False) -> Part:
    """A tree over words whose levels are iterations of a loop; with ``all_lanes``, half of them add at each level."""

    def part(e: Engine) -> None:
        all_levels(e, lanes, all_lanes=all_lanes)
        e.store("results", e.load("one", 0, lanes))

    return part


def one_level(e: Engine) -> None:
    """The host says how far words lie apart."""
    level(e, 16, e.length == 8, e.length, e.length)


def first_word(e: Engine) -> None:
    e.store("results", e.load("one", 0, 16))


def tree_of_each_block(e: Engine) -> None:
    total = e.register()
    with e.loop(e.length >> 4) as b:
        with e.loop(const(16, 5)) as lane:
            e.store("one", e.product((b << 4) + lane.zext(32)), lane.zext(32), 16)
        all_levels(e, 16)
        e.add(total, e.load("one", 0, 16))
    e.store("results", total)


def blocks_added(e: Engine) -> None:
    total = e.register()
    with e.loop(e.length >> 2) as q:
        e.add(total, e.load("one", q, e.length >> 2).sext(32))
    e.store("results", total)


def blocks_and_rest_added(e: Engine) -> None:
    total, whole = e.register(), (e.length >> 2) << 2
    with e.loop(e.length >> 2) as q:
        e.add(total, e.load("one", q, e.length >> 2))
    with e.loop(e.length - whole) as i:
        e.add(total, e.product(whole + i))
    e.store("results", total)


def peeled(e: Engine) -> None:
    total = e.register()
    e.add(total, e.product(NOTHING))
    with e.loop(e.length - 1) as i:
        e.add(total, e.product(e.length - 1 - i))
    e.store("results", total)


def peeled_word(e: Engine) -> None:
    total = e.register()
    with e.loop(four) as i:
        e.add(total, e.product(i.zext(32)))
    with e.loop(four) as lane, e.loop((e.length >> 2) - 1) as i:
        e.add(total, e.product(((i + 1) << 2) + lane.zext(32)))
    e.store("results", total)


def differences(e: Engine) -> None:
    one, two = e.register(), e.register()
    with e.loop(e.length >> 1) as i:
        e.add(one, e.product(i * 2))
    with e.loop(e.length >> 1) as i:
        e.kernel.assign(two, two - e.product(i * 2 + 1))
    e.store("results", one + two if e.fault == "the negated sum is added" else one - two)


def subtracted(e: Engine) -> None:
    total = e.register()
    with e.loop(e.length) as i:
        e.kernel.assign(total, total - e.product(e.length - 1 - i))
    e.store("results", total)


def two_registers(e: Engine) -> None:
    one, two = e.register(), e.register()
    with e.loop(e.length >> 1) as i:
        e.add(one, e.product(i * 2))
        e.add(two, e.product(i * 2 + 1))
    e.store("results", one + two)


def by_parity(e: Engine) -> None:
    one, two = e.register(), e.register()
    with e.loop(e.length) as i:
        here = e.product(i)
        e.add(one, ite(i[0:0] == 0, here, NOTHING))
        e.add(two, ite(i[0:0] == 0, NOTHING, here))
    e.store("results", one + two)


def twice_by_condition(e: Engine) -> None:
    total = e.register()
    for parity in (1, 0):
        with e.loop(e.length) as i:
            e.kernel.assign(total, ite(i[0:0] == parity, total + e.product(i), total))
    e.store("results", total)


def uneven(e: Engine) -> None:
    total = e.register()
    with e.loop((e.length >> 2) if e.fault == "the last block is left out" else (e.length + 3) >> 2) as b:
        left, most = e.length - (b << 2), const(5 if e.fault == "blocks are five long" else 4, 32)
        with e.loop(most if e.fault == "the last block is whole" else ite(left < most, left, most)) as i:
            e.add(total, e.product((b << 2) + i))
    e.store("results", total)


def uneven_in_turn(e: Engine) -> None:
    """Blocks of four go to one register and to another one in turn; the last one, of either, is short."""
    blocks_of_both, totals = (e.length + 3) >> 2, (e.register(), e.register())
    for number, total in enumerate(totals):
        count = blocks_of_both - (1 if e.fault == "the last block is left out" else 0) + (1 - number)
        with e.loop(count >> 1) as pair:
            begin = (pair << 3) + 4 * number
            rest = e.length - begin
            length = const(4, 32) if e.fault == "the last block is whole" else ite(rest < 4, rest, const(4, 32))
            with e.loop(length) as i:
                e.add(total, e.product(begin + i))
    e.store("results", totals[0] + totals[1])


def multiplied(e: Engine) -> None:
    total = e.register()
    with e.loop(e.length >> 1) as i:
        e.kernel.assign(total, total * e.product(i * 2))
    e.store("results", total)


def exclusive_or(e: Engine) -> None:
    total = e.register()
    with e.loop(e.length >> 1) as i:
        e.kernel.assign(total, total ^ e.product(i * 2))
    e.store("results", total)


def narrower(bits: int, between: int) -> Part:
    """Sums of four products in fewer bits, extended in two steps."""

    def part(e: Engine) -> None:
        total = e.register()
        with e.loop(e.length >> 2) as v:
            own = e.register(bits)
            with e.loop(four) as i:
                e.add(own, e.product((v << 2) + i.zext(32), unsigned)[bits - 1 : 0])
            e.add(total, own.zext(between).zext(32))
        e.store("results", total)

    return part


ONE = {"one": 32}
BOTH = {"one": 32, "two": 32}
PATTERNS = {
    "two engines and a third that adds": Pattern((engine(0, "one"), engine(1, "two"), added), BOTH, TWOS),
    "partial sums in memory": Pattern((quarters, four_added), ONE, FOURS, faults=(*FAULTS, SHARED)),
    "partial sums that grow in memory": Pattern((quarters_in_memory, four_added), ONE, FOURS, faults=(*FAULTS, SHARED)),
    "two partial sums that a loop adds": Pattern((parts_in_turn, two_added), ONE, TWOS),
    "a tree over levels in memory": Pattern((quarters, tree), BOTH, FOURS, faults=(*FAULTS, SHARED)),
    "a tree whose levels are a loop": Pattern(
        (sixteen_lanes, levels(16)), ONE, SIXTEENS, faults=(*FAULTS, SHARED, *LEVELS)
    ),
    "a tree in each block": Pattern((tree_of_each_block,), ONE, SIXTEENS, faults=(*FAULTS, SHARED, *LEVELS)),
    "a tree whose levels the host starts": Pattern(
        (sixteen_lanes, one_level, first_word), ONE, SIXTEENS, faults=(*FAULTS, SHARED, *LEVELS[1:]), program=by_levels
    ),
    "a tree of which all lanes are active": Pattern(
        (quarters, levels(4, all_lanes=True)), ONE, FOURS, faults=(*FAULTS, SHARED, *LEVELS)
    ),
    "a partial sum for each block": Pattern((blocks(32), blocks_added), ONE, FOURS, faults=(*FAULTS, SHARED)),
    "partial sums of 18 bits in memory": Pattern((blocks(18), blocks_added), {"one": 18}, FOURS, is_open=False),
    "a short last block": Pattern(
        (uneven,), {}, faults=(*FAULTS, "the last block is left out", "blocks are five long", "the last block is whole")
    ),
    "blocks in turn": Pattern(
        (uneven_in_turn,), {}, faults=(*FAULTS, "the last block is left out", "the last block is whole")
    ),
    "blocks and a rest": Pattern((blocks(32), blocks_and_rest_added), ONE),
    "the first product is peeled off": Pattern((peeled,), {}),
    "the first word is peeled off": Pattern((peeled_word,), {}, FOURS),
    "a difference": Pattern(  # what both sums begin with cancels out
        (differences,), {}, TWOS, faults=(*FAULTS[:3], FAULTS[4], "the negated sum is added")
    ),
    "a sum that is subtracted": Pattern((subtracted,), {}, accumulate=lambda t, x, w: t - multiply(x, w)),
    "two registers of one loop": Pattern((two_registers,), {}, TWOS),
    "a register by a choice": Pattern((by_parity,), {}),
    "conditions of iterations": Pattern((twice_by_condition,), {}),
    "sums of 20 bits that are extended twice": Pattern(
        (narrower(20, 24),), {}, FOURS, accumulate=lambda t, x, w: t + unsigned(x, w), is_open=False
    ),
}
SIZES = tuple(
    {"m": m, "n": n, "k": k} for m, n, k in ((2, 2, 4), (1, 2, 8), (2, 2, 12), (2, 2, 7), (1, 2, 16), (2, 2, 32))
)
"""Sizes at which patterns run, if they take them: of 7 the last block of four is short."""


def of(name: str, fault: str = "") -> TensorMapping:
    """A pattern, with a fault."""
    pattern = PATTERNS[name]

    def program(h: Host) -> None:
        with h.kernel.loop("fr", M) as r, h.kernel.loop("fi", K) as i:
            h.feature(r * K + i, HOST_X.load(r * K + i))
        h.weights()
        if pattern.program is None:
            h.finish(K, len(pattern.parts))
        else:
            pattern.program(h)

    bodies = [each(part, fault, number) for number, part in enumerate(pattern.parts)]
    abstract = frozenset({multiply.name} if pattern.is_open else ())
    return claim(
        program, bodies, pattern.accumulate, memories=pattern.memories, within=pattern.within, abstract=abstract
    )


QUICK = {
    "partial sums that grow in memory",
    "partial sums of 18 bits in memory",
    "a difference",
    "a register by a choice",
    "a short last block",
    "a tree of which all lanes are active",
}
"""Patterns that are not marked as slow."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in PATTERNS])
def test_a_shared_sum_is_proved_for_every_size(name: str) -> None:
    mapping = of(name)
    assert not any(differs(mapping, sizes, 1) for sizes in SIZES if mapping.holds(sizes))
    verdict = prove(mapping)
    assert verdict.status is Status.PROVED, verdict.reason


CASES = [
    pytest.param(name, fault, marks=[] if name in QUICK and fault == FAULTS[0] else [pytest.mark.slow])
    for name, pattern in PATTERNS.items()
    for fault in pattern.faults
]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_of_a_shared_sum_is_not_proved(name: str, fault: str) -> None:
    mapping = of(name, fault)
    assert any(differs(mapping, sizes) for sizes in SIZES if mapping.holds(sizes))
    verdict = prove(mapping, discharger=Discharger(timeout=3.0, second=False), horn_timeout=3.0)
    assert verdict.status is not Status.PROVED


@pytest.mark.parametrize("bits", [16, 17])
def test_partial_sums_that_overflow_are_not_proved(bits: int) -> None:
    PATTERNS["overflow"] = Pattern((blocks(bits), blocks_added), {"one": bits}, FOURS, is_open=False)
    verdict = prove(of("overflow"), discharger=Discharger(timeout=3.0, second=False), horn_timeout=3.0)
    assert verdict.status is not Status.PROVED


def backwards(extent: Callable[[Engine], Expr]) -> Part:
    """A sum from the last product to the first, of a loop that runs so often."""

    def part(e: Engine) -> None:
        total = e.register()
        with e.loop(extent(e)) as i:
            e.add(total, e.product(e.length - 1 - resize(i, 32)))
        e.store("results", total)

    return part


@pytest.mark.parametrize(
    "extent",
    [
        lambda e: ite(e.ila.states["n"] == 2, const(0, 32), e.length),
        lambda e: ite(e.row == 1, const(0, 32), e.length),
        lambda e: ite(e.length < 8, e.length, const(8, 32))[2:0],  # of 8 no bit is left
    ],
    ids=["at a size", "in a row", "cut"],
)
def test_a_loop_that_is_empty_where_it_must_not_be_is_not_proved(extent: Callable[[Engine], Expr]) -> None:
    """What an extent is must not be asked inside of its loop, where an iteration is assumed to exist."""
    eight = (("k <= 8", K.zext(32) <= 8),)
    PATTERNS["right"] = Pattern((backwards(lambda e: e.length),), {}, eight)
    PATTERNS["empty"] = Pattern((backwards(extent),), {}, eight)
    assert any(differs(of("empty"), sizes) for sizes in SIZES if of("empty").holds(sizes))
    for name, status in (("right", Status.PROVED), ("empty", Status.UNKNOWN)):
        verdict = prove(of(name), discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
        assert verdict.status is status, verdict.reason


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (exclusive_or, "in any order, the device folds by bvxor_bv32 to bv32, and the IR by bvadd_bv32 to bv32"),
        (multiplied, "in any order, the device folds by no operator whose order is free"),
    ],
)
def test_the_reason_says_what_the_folds_are(part: Part, reason: str) -> None:
    PATTERNS["refused"] = Pattern((part,), {})
    verdict = prove(of("refused"), discharger=Discharger(timeout=3.0, second=False), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith(reason), verdict.reason


def test_reasons_of_folds_inside_sums_are_told_once() -> None:
    index, sums = Unsupported("an index is none"), Unsupported("the sums differ")
    assert str(InNoOrder(index, InNoOrder(index, sums))) == "an index is none; in any order, the sums differ"
    assert str(InNoOrder(index, InNoOrder(index))) == "an index is none"
    assert str(InNoOrder(sums, InNoOrder(index, sums))) == "the sums differ; in any order, an index is none"
