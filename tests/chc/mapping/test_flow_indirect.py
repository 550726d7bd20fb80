"""Addresses, conditions and commands that depend on words of memory: what is proved, and attacks of which none may be.

Every wrong program differs from a right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pysmt.shortcuts as smt
import pytest
from pysmt.typing import INT

from chc.mapping.arithmetic.ranges import apart_steps, quick
from chc.mapping.arithmetic.steps import Step
from chc.mapping.program.commands import rolled_apart
from chc.mapping.prove import prove
from ila_lang import Expr, Fragment, Kernel, Store, bv, concat, const, ite, load_bytes, mem, substitute, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_flow import flow, status
from tests.chc.mapping.toy import copy_body, differs, go, mapping

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]


def table(
    *,
    entry: Callable[[Expr, States], Expr] = lambda i, s: i,
    entries: Callable[[States], Expr] = lambda s: s["n"],
    use: Callable[[Expr, States], Expr] = lambda i, s: i,
    late: bool = False,
    again: Callable[[Kernel, States], None] | None = None,
    inside: Callable[[Kernel, States, Expr], None] | None = None,
    reading: bool = False,
) -> Body:
    """Row i is copied to (or from) where entry i of a table in ``tmp`` says, which is written before."""

    def write(k: Kernel, s: States) -> None:
        with k.loop("e", entries(s)) as e:
            k.store(s["tmp"], e, entry(e, s)[7:0])

    def body(k: Kernel, s: States) -> None:
        if not late:
            write(k, s)
        if again is not None:
            again(k, s)
        with k.loop("i", s["n"]) as i:
            with k.loop("j", s["m"]) as j:
                row = k.load("row", s["tmp"], use(i, s)).zext(32)
                source, target = (row, i) if reading else (i, row)
                k.store(s["dst"], target * s["m"] + j, k.load("word", s["src"], source * s["m"] + j))
            if inside is not None:
                inside(k, s, i)
        if late:
            write(k, s)

    return body


@pytest.mark.parametrize("reading", [False, True])
def test_an_address_from_a_table_is_what_was_written_there(reading: bool) -> None:
    verdict = prove(flow(mapping(table(reading=reading), copy_body)))
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))
    assert any(g.startswith("toy: cells in toy, loops") for g, _ in names)


def overwrite(k: Kernel, s: States) -> None:
    k.store(s["tmp"], const(0, 32), const(1, 8))


def clobber(k: Kernel, s: States, i: Expr) -> None:
    """Row i overwrites the entry of the next row."""
    k.store(s["tmp"], i + 1, i[7:0])


def loop_of_its_own(k: Kernel, s: States, i: Expr) -> None:
    """Where the table is written depends on what it holds."""
    k.store(s["tmp"], k.load("where", s["tmp"], i).zext(32), const(0, 8))


WRONG: dict[str, Body] = {
    "entries are one too large": table(entry=lambda i, s: i + 1),
    "entries are one too large, and read from": table(entry=lambda i, s: i + 1, reading=True),
    "another entry is used": table(use=lambda i, s: ite(i == 0, const(1, 32), i)),
    "the last entry is not written": table(entries=lambda s: s["n"] - 1),
    "the table is written after its use": table(late=True),
    "an entry is overwritten before its use": table(again=overwrite),
    "entries are overwritten between their uses": table(inside=clobber),
    "entries are data": table(entry=lambda i, s: s["src"].load(i).zext(32)),
    "all entries are the same": table(entry=lambda i, s: const(0, 32), reading=True),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table_is_not_proved(name: str) -> None:
    claim = flow(mapping(WRONG[name], copy_body))
    assert differs(claim, {"n": 4, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def test_a_table_that_is_written_where_it_says_is_refused() -> None:
    verdict = prove(
        flow(mapping(table(inside=loop_of_its_own), copy_body)), discharger=Discharger(timeout=5.0, second=False)
    )
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "where tmp is written depends on what it holds"


def test_an_address_that_is_data_is_refused() -> None:
    claim = flow(mapping(WRONG["entries are data"], copy_body))
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False))
    assert verdict.status is Status.UNKNOWN
    assert "an address depends on tmp, where toy toy_kernel stores data (source.toy.0)" in verdict.reason


@pytest.mark.parametrize("added,wanted", [(0, Status.PROVED), (1, Status.UNKNOWN)])
def test_a_word_that_changes_between_two_uses_is_read_twice(added: int, wanted: Status) -> None:
    """Row i goes to the output; one more than it goes behind the output, where a changed word says."""

    def body(k: Kernel, s: States) -> None:
        k.store(s["tmp"], const(7, 32), const(7, 8))
        with k.loop("i", s["n"]) as i:
            word = k.load("word", s["src"], i)
            for block in range(2):
                k.store(s["tmp"], const(0, 32), const(block, 8))
                at = i + s["n"] * k.load(f"block{block}", s["tmp"], const(0, 32)).zext(32)
                k.store(s["dst"], at, word + block)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, k.load("word", s["src"], i) + added)

    claim = flow(mapping(body, ir, columns=const(1, 32)))
    assert differs(claim, {"n": 3, "m": 1}) is bool(added)
    assert status(claim) is wanted


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_two_words_of_an_address_are_two(moved: int) -> None:
    """An element is read as far away as two words say together: one holds 0, the other one 1."""

    def body(k: Kernel, s: States) -> None:
        places = const(0, 32), const(1, 32)
        for value, place in enumerate(places):
            k.store(s["tmp"], place, const(value, 8))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            one, two = (k.load(f"word{n}", s["tmp"], place).zext(32) for n, place in enumerate(places))
            k.store(s["dst"], at, k.load("word", s["src"], at + one + two))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            k.store(s["dst"], at, k.load("word", s["src"], at + moved))

    claim = flow(mapping(body, ir))
    assert differs(claim, {"n": 2, "m": 3}) is (moved != 1)
    assert status(claim) is (Status.PROVED if moved == 1 else Status.UNKNOWN)


# -- conditions from memory ---------------------------------------------------------------------------


def guarded(limit: int, *, set_first: bool = True) -> Body:
    """Rows are copied as long as a word in memory is below a limit; the word is 5."""

    def body(k: Kernel, s: States) -> None:
        if set_first:
            k.store(s["tmp"], const(0, 32), const(5, 8))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            with k.when("allowed", k.load("level", s["tmp"], const(0, 32)) < limit):
                k.store(s["dst"], i * s["m"] + j, word)

    return body


def test_a_condition_on_a_word_of_memory_is_decided() -> None:
    verdict = prove(flow(mapping(guarded(6), copy_body)))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("body", [guarded(5), guarded(6, set_first=False)], ids=["too low", "not set"])
def test_a_condition_that_does_not_hold_is_not_proved(body: Body) -> None:
    claim = flow(mapping(body, copy_body))
    assert differs(claim, {"n": 2, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


# -- commands that are decoded by proof ---------------------------------------------------------------


def commanded(*, limit: int = 255, raises: int = 300, idle: bool = True, twice: bool = False) -> TensorMapping:
    """The device refuses more than ``limit`` rows, and everything after a kernel that met row ``raises``."""

    def body(k: Kernel, s: States) -> None:
        copy_body(k, s)
        with k.when("alarm", s["n"] >= raises):
            k.store(s["tmp"], const(0, 32), const(1, 8))

    claim = mapping(body, copy_body)
    ila = claim.device.ila
    fits = (ila.inputs["n_in"] <= limit) & (ila.states["tmp"].load(0) == 0)
    wanted = ila.inputs["run"] & (ila.inputs["op"] == 0)
    ila.instructions["go"].set_decode(wanted & fits)
    ila.instruction("refused").set_decode(wanted & ~fits).reserved = "too many rows, or an alarm"
    text = Kernel("toy_program")
    for _ in range(2 if twice else 1):
        go(text)
    old = claim.device
    device = Fragment(old.name, ila, old.parameters, old.tensors, text, idle={"tmp": 0} if idle else {})
    return flow(replace(claim, device=device))


def test_a_command_is_decoded_by_what_sizes_and_memories_admit() -> None:
    verdict = prove(commanded(twice=True))
    assert verdict.status is Status.PROVED, verdict.reason
    assert sum(o.group == "toy: decoding" for o in verdict.obligations) >= 1


@pytest.mark.parametrize(
    "claim",
    [commanded(limit=254), commanded(idle=False), commanded(raises=255, twice=True)],
    ids=["one size is refused", "what memory holds is not known", "the first kernel may raise the alarm"],
)
def test_a_command_that_may_be_refused_is_not_proved(claim: TensorMapping) -> None:
    assert status(claim, second=False) is not Status.PROVED


@pytest.mark.slow
def test_an_alarm_that_cannot_be_excluded_is_harmless_at_the_end() -> None:
    assert status(commanded(raises=255)) is Status.PROVED


def test_two_instructions_that_may_both_be_meant_are_refused() -> None:
    claim = commanded()
    ila = claim.device.ila
    del ila.instructions["refused"]
    wanted = ila.inputs["run"] & (ila.inputs["op"] == 0)
    ila.instruction("other").set_decode(wanted & (ila.inputs["n_in"] > 254)).update(
        ila.states["dst"], ila.states["dst"].store(const(0, 32), const(0, 8))
    )
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False))
    assert verdict.status is Status.UNKNOWN
    assert "must select exactly one instruction for all sizes; candidates: go, other" in verdict.reason


# -- words that one command writes byte by byte -------------------------------------------------------

TENSOR, MEMORY, AT = var("tensor", mem(32, 16)), var("memory", mem(16, 8)), var("at", bv(16))


def byte_stores(places: Sequence[int], data: Expr) -> list[Store]:
    """Byte k of ``data`` goes to place ``places[k]`` of a block of 16."""
    return [Store(MEMORY, concat(AT[15:4], const(place, 4)), data[8 * k + 7 : 8 * k]) for k, place in enumerate(places)]


def unrolled(loops: Sequence[tuple[Expr, Store, int]]) -> dict[Expr, Expr]:
    """The stores that loops stand for: values by address."""
    found: dict[Expr, Expr] = {}
    for counter, store, count in loops:
        for k in range(count):
            at = {counter: const(k, counter.width)}
            found[substitute(store.address, at)] = substitute(store.value, at)
    return found


WORDS = concat(*(TENSOR.load(const(8, 32) + k) for k in reversed(range(8))))
BYTES = load_bytes(var("bytes", mem(32, 8)), var("from", bv(32)), 16)
ROWS = concat(*(load_bytes(var("bytes", mem(32, 8)), var(f"row{k}", bv(32)), 8) for k in (1, 0)))
FIELDS = concat(const(1, 32), var("size", bv(32)), const(7, 64))


@pytest.mark.parametrize(
    "data,count", [(WORDS, 2), (BYTES, 1), (ROWS, 2), (FIELDS, 1)], ids=["words", "bytes", "rows", "fields"]
)
def test_stores_of_one_command_are_loops(data: Expr, count: int) -> None:
    stores = byte_stores(range(16), data)
    loops = rolled_apart(stores)
    assert loops is not None and len(loops) == count
    assert unrolled(loops) == {s.address: s.value for s in stores}


def test_stores_that_may_meet_are_not_put_in_another_order() -> None:
    assert rolled_apart(byte_stores([*range(15), 0], FIELDS)) is None
    scattered = [Store(MEMORY, var(f"at{k}", bv(16)), WORDS[8 * k + 7 : 8 * k]) for k in range(16)]
    assert rolled_apart(scattered) is None
    places = [k - k // 2 for k in range(16)]  # 0, 1, 1, 2, 2, ...: of two stores to one place the later one counts
    met = [Store(MEMORY, concat(AT[15:4], const(place, 4)), const(7 + k % 2, 8)) for k, place in enumerate(places)]
    assert rolled_apart(met) is None


# -- addresses that differ by a residue ---------------------------------------------------------------


def difference_steps(one: int, two: int) -> list[Step] | None:
    """Steps that prove 4*a*n + one different from 4*b + two."""
    a, b, n = (smt.Symbol(x, INT) for x in "abn")
    left = smt.Plus(smt.Times(smt.Int(4), a, n), smt.Int(one))
    return apart_steps([], left, smt.Plus(smt.Times(smt.Int(4), b), smt.Int(two)), set(), quick)


@pytest.mark.parametrize("one,two", [(1, 2), (0, 7), (3, 0)])
def test_numbers_with_other_residues_are_apart(one: int, two: int) -> None:
    steps = difference_steps(one, two)
    assert steps is not None
    assert all(quick(given, goal) for _, given, goal, _ in steps)


@pytest.mark.parametrize("one,two", [(1, 1), (1, 5), (6, 2)])
def test_numbers_with_one_residue_are_not_shown_to_be_apart(one: int, two: int) -> None:
    assert difference_steps(one, two) is None
