"""Attempts to make kernels and devices in native code differ from the scalar interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import (
    CommandError,
    CommandStream,
    Expr,
    Ila,
    Kernel,
    Machine,
    Simulator,
    concat,
    const,
    mem,
    show_kernel,
    var,
)
from tests.ila_lang.native.levels import check
from tests.ila_lang.oracle import DST, SRC, run_kernel
from tests.ila_lang.random_kernels import (
    MEMORIES,
    first_difference,
    hazard_kernel,
    mix,
    nearly,
    product,
    random_kernel,
    random_words,
    shifted,
)

OUT = var("out", mem(9, 4))


def dense(contents: Mapping[int, int], size: int) -> Any:
    array = np.zeros(size, np.int64)
    for address, word in contents.items():
        array[address] = word
    return array


def same_as_the_walk(kernel: Kernel, values: Mapping[str, int], contents: Mapping[str, Mapping[int, int]]) -> None:
    """A run on whole memories, against the plain walker."""
    sizes = {
        n: 1 << v.sort.addr_width for n, v in kernel.external_variables().items() if isinstance(v.sort, il.MemSort)
    }
    walked = {n: dict(contents.get(n, {})) for n in sizes}
    run_kernel(kernel, values, walked)
    check(kernel, values, contents, {n: dense(words, sizes[n]).tolist() for n, words in walked.items()})


# -- random kernels, again and again ---------------------------------------------------------------------


def try_kernel(random: Random, runs: int) -> None:
    kernel = random_kernel(random)
    found = first_difference(kernel, random, runs, walk=random.random() < 0.1)
    assert not found, f"{found}\n{show_kernel(kernel)}"


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_random_kernels(random: Random) -> None:
    try_kernel(random, 5)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_many_random_kernels(random: Random) -> None:
    try_kernel(random, 8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_accesses_that_meet(random: Random) -> None:
    kernel = hazard_kernel(random)
    same_as_the_walk(kernel, {}, {"words": {i: i + 100 for i in range(16)}})


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_many_accesses_that_meet(random: Random) -> None:
    kernel = hazard_kernel(random)
    same_as_the_walk(kernel, {}, {"words": {i: i + 100 for i in range(16)}})


# -- what went wrong once -------------------------------------------------------------------------------


def test_copies_of_a_loop_are_not_read_when_the_loop_around_has_gone_on() -> None:
    """The next iteration of ``i`` sees the word of the last ``j``, not each ``j`` its own."""
    kernel = Kernel("k")
    with kernel.loop("i", const(4, 4)) as i, kernel.loop("j", const(3, 4)) as j:
        kernel.store(DST, i.zext(9), i * 4 + j)
        kernel.store(OUT, concat(const(1, 1), i, j), kernel.load("before", DST, (i - 1).zext(9)))
    same_as_the_walk(kernel, {}, {})


def test_copies_of_a_loop_are_not_read_by_all_later_iterations() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", const(4, 4)) as i, kernel.loop("j", const(3, 4)) as j:
        with kernel.when("first", i == 0):
            kernel.store(DST, i.zext(9), j + 2)
        kernel.store(OUT, concat(const(1, 1), i, j), kernel.load("before", DST, const(0, 9)))
    same_as_the_walk(kernel, {}, {})


def test_extents_that_load_from_an_address_of_their_own_block() -> None:
    kernel = Kernel("k")
    with kernel.loop("s", const(3, 4)) as s:
        place = kernel.let("place", s + 1)
        for number in range(4):
            with kernel.loop(f"j{number}", SRC.load(place + number)[1:0]) as j:
                kernel.store(DST, concat(const(number, 3), s, j), s + 1)
    same_as_the_walk(kernel, {}, {"src": {i: i for i in range(16)}})


def test_extents_of_iterations_that_are_left_out_do_not_matter() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", const(4, 4)) as i, kernel.when("small", i < 2), kernel.loop("j", i * 4, width=2) as j:
        kernel.store(DST, concat(const(0, 1), i, j.zext(4)), i + 1)
    same_as_the_walk(kernel, {}, {})


def test_what_was_computed_is_computed_again_after_a_change() -> None:
    """In straight code: loads before and after stores, also to one of two memories; a register that is set again."""
    kernel, place, other = Kernel("k"), const(5, 9), var("other", mem(9, 4))
    flag = il.ite(SRC.load(0) == 1, const(1, 1), const(0, 1)) == 1
    kernel.store(OUT, const(0, 9), DST.load(place) + other.load(place))
    kernel.store(DST, place, DST.load(place) + 1)
    kernel.store(OUT, const(1, 9), DST.load(place) + other.load(place))
    kernel.store(il.ite(flag, DST, other), place, const(9, 4))
    kernel.store(OUT, const(2, 9), DST.load(place) + other.load(place))
    total = kernel.let("total", SRC.load(1))
    kernel.store(OUT, const(3, 9), total * 3)
    kernel.assign(total, total + 1)
    kernel.store(OUT, const(4, 9), total * 3)
    with kernel.loop("i", const(3, 4)) as i:
        kernel.store(OUT, i.zext(9) + 5, total * 3)
        kernel.assign(total, total * 3)
    with kernel.when("set", flag):
        kernel.assign(total, total + 1)
        kernel.store(SRC, const(1, 4), total)
    kernel.store(OUT, const(9, 9), total * 3 + SRC.load(1))
    for first in (0, 1):
        contents = {"src": {0: first, 1: 3}, "dst": {5: 2}, "other": {5: 4}, "out": {}}
        memories = {name: il.Memory(0, words) for name, words in contents.items()}
        il.compile_kernel(kernel)({}, memories, None)
        sizes = {"src": 16, "dst": 512, "other": 512, "out": 512}
        check(kernel, {}, contents, {n: dense(memories[n], size).tolist() for n, size in sizes.items()})


def copying(left_out: int = 0) -> Kernel:
    """``dst[i] = src[i]`` for three ``i``; another, ``left_out``, is looked at but not active."""
    kernel = Kernel("copying")
    with kernel.loop("i", const(4, 4)) as i, kernel.when("active", i < 3):
        kernel.store(DST, i.zext(9), kernel.load("word", SRC, i * left_out if left_out else i))
    return kernel


def test_addresses_of_iterations_that_are_left_out_may_leave_an_array() -> None:
    for _ in range(3):
        arrays = {"src": np.arange(5), "dst": np.zeros(3, np.int64)}
        il.run_on_arrays(copying(2), {}, arrays)
        assert arrays["dst"].tolist() == [0, 2, 4]


@pytest.mark.parametrize(("source", "target", "name"), [(2, 512, "src"), (16, 2, "dst")])
def test_runs_do_not_leave_shorter_arrays(source: int, target: int, name: str) -> None:
    kernel = copying()
    for _ in range(3):
        arrays = {"src": np.full(16, 7), "dst": np.zeros(512, np.int64)}
        il.run_on_arrays(kernel, {}, arrays)
        assert arrays["dst"][:4].tolist() == [7, 7, 7, 0]
    arrays = {"src": np.full(source, 7), "dst": np.zeros(target, np.int64)}
    with pytest.raises(ValueError, match=rf"^Address 0x2 must lie in the array of {name}, which has 2 words$"):
        il.run_on_arrays(kernel, {}, arrays)
    assert not arrays["dst"].any()


def test_data_that_is_an_address_may_leave_an_array_in_any_run() -> None:
    kernel = Kernel("gather")
    with kernel.loop("i", const(4, 4)) as i:
        kernel.store(DST, i.zext(9), kernel.load("word", SRC, SRC.load(i)))
    for last in (3, 3, 3, 4, 3):
        arrays = {"src": np.array([1, 2, 3, last]), "dst": np.zeros(512, np.int64)}
        if last == 3:
            il.run_on_arrays(kernel, {}, arrays)
            assert arrays["dst"][:4].tolist() == [2, 3, 3, 3]
        else:
            with pytest.raises(ValueError, match=r"^Address 0x4 must lie in the array of src"):
                il.run_on_arrays(kernel, {}, arrays)
            assert not arrays["dst"].any()


def test_a_run_that_leaves_an_array_changes_nothing() -> None:
    kernel = Kernel("k")
    kernel.store(DST, const(0, 9), SRC.load(const(0, 4)) + 1)
    kernel.store(DST, const(5, 9), const(1, 4))
    arrays = {"src": np.ones(1, np.int64), "dst": np.zeros(3, np.int64)}
    with pytest.raises(ValueError, match=r"^Address 0x5 must lie in the array of dst"):
        il.run_on_arrays(kernel, {}, arrays)
    assert not arrays["dst"].any()


# -- command streams: what went wrong once ----------------------------------------------------------------


def same_as_steps(ila: Ila, columns: Mapping[str, Any]) -> str:
    """Executes a stream at once and step by step; returns the message with which both stopped, or nothing."""
    stream = CommandStream(columns)
    slow, fast = Machine(ila), Simulator(ila)
    expected = found = ""
    try:
        for number in range(len(stream)):
            slow.step(stream.command(number))
    except CommandError as error:
        expected = str(error)
    try:
        fast.execute(stream)
    except CommandError as error:
        found = str(error)
    assert found == expected
    assert fast.values == slow.values
    for name, memory in slow.memories.items():
        sort = ila.states[name].sort
        assert isinstance(sort, il.MemSort)
        assert [fast.memories[name][a] for a in range(1 << sort.addr_width)] == [
            memory[a] for a in range(1 << sort.addr_width)
        ]
    return found


@pytest.mark.parametrize("size", [1, 2, 9])
def test_decodes_that_are_constant(size: int) -> None:
    ila = Ila("a")
    kind, n = ila.input("kind", 2), ila.state("n", 8, 0)
    ila.instruction("all").set_decode(il.true).update(n, n + 1)
    ila.instruction("never").set_decode(il.false).update(n, n + 100)
    assert not same_as_steps(ila, {"kind": np.zeros(size, np.int64)})
    ila.instruction("some").set_decode(kind == 1).update(n, n + 10)
    assert "it selects all, some" in same_as_steps(ila, {"kind": np.arange(8) // 4})


def test_flags_that_a_stream_does_not_give() -> None:
    ila = Ila("a")
    go, n = ila.input("go", il.BOOL), ila.state("n", 8, 0)
    ila.input("kind", 2)
    ila.instruction("stay").set_decode(~go).update(n, n + 1)
    ila.instruction("go").set_decode(go).update(n, n + 100)
    assert not same_as_steps(ila, {"kind": np.zeros(9, np.int64)})


def test_instructions_that_the_state_selects_beside_another() -> None:
    ila = Ila("a")
    kind, n = ila.input("kind", 2), ila.state("n", 8, 0)
    ila.instruction("step").set_decode(kind <= 1).update(n, n + 1)
    ila.instruction("wrong").set_decode((kind == 1) & ((n == 7) | (kind == 2))).update(n, n + 1)
    assert not same_as_steps(ila, {"kind": np.zeros(9, np.int64)})
    assert "it selects step, wrong" in same_as_steps(ila, {"kind": np.ones(9, np.int64)})
    ila.instruction("state").set_decode(n == 3).update(n, n + 1)
    assert "it selects step, state" in same_as_steps(ila, {"kind": np.zeros(9, np.int64)})


def test_columns_of_a_wrong_form_are_refused() -> None:
    ila = Ila("a")
    kind, data, n = ila.input("kind", 2), ila.input("data", 64), ila.state("n", 8, 0)
    ila.instruction("set").set_decode(kind == 0).update(n, data[7:0])

    def refused(columns: Mapping[str, Any]) -> str:
        machine = Simulator(ila)
        with pytest.raises((ValueError, CommandError)) as caught:
            machine.execute(CommandStream(columns))
        assert not machine.values["n"]
        return str(caught.value)

    assert refused({"data": np.arange(6)}) == ("Column data must have rows of 8 bytes (uint8), not int64 of shape (6,)")
    assert refused({"data": np.ones((6, 9), np.uint8)}) == (
        "Column data must have rows of 8 bytes (uint8), not uint8 of shape (6, 9)"
    )
    assert refused({"kind": np.ones((6, 1), np.uint8)}) == (
        "Column kind must have one number per command, not shape (6, 1)"
    )
    assert refused({"other": np.arange(6)}) == "a has no input other; it has kind, data"
    numbers: list[Any] = [
        [0, 4],
        [-1, 0],
        [1.5, 1.0],
        ["1", "2"],
        np.array([1, 2], object),
        np.ma.array([1, 9], mask=[0, 1]),
    ]
    for column in map(np.asanyarray, numbers):
        assert refused({"kind": column}).startswith(
            "Column kind must have integers that fit in 2 bits unsigned, all of them, not "
        )
    with pytest.raises(CommandError, match="Input kind of a must be below 4, not 4"):
        Simulator(ila).step({"kind": 4})


def test_memories_copied_from_one_with_another_reset_value() -> None:
    ila = Ila("a")
    kind = ila.input("kind", 1)
    first, second = ila.memory("first", 3, 8, 0), ila.memory("second", 3, 8, 7)
    ila.instruction("copy").set_decode(kind == 0).update(second, first.store(2, 9))
    ila.instruction("set").set_decode(kind == 1).update(first, first.store(5, 7))
    assert not same_as_steps(ila, {"kind": np.array([1, 0])})


def test_two_kernels_of_one_name() -> None:
    ila = Ila("a")
    kind, memory = ila.input("kind", 1), ila.memory("memory", 3, 8, 0)
    for number in range(2):
        kernel = Kernel("same")
        kernel.store(memory, const(number, 3), const(number + 1, 8))
        ila.instruction(f"start_{number}").set_decode(kind == number).start(kernel)
    assert not same_as_steps(ila, {"kind": np.array([0, 1])})


@pytest.mark.parametrize("width", [62, 63, 64, 65, 128])
def test_memories_of_wide_words(width: int) -> None:
    ila = Ila("a")
    data = ila.input("data", width)
    memory, last = ila.memory("memory", 3, width, 0), ila.state("last", width, 0)
    ila.instruction("set").set_decode(il.true).update(memory, memory.store(data[2:0], ~data)).update(last, data)
    size = (width + 7) // 8
    ones = np.array([1, (1 << 62) - 1]) if width == 62 else np.full((6, size), 255, np.uint8)
    if width % 8 and width > 62:
        ones[:, -1] = (1 << width % 8) - 1
    assert not same_as_steps(ila, {"data": ones})


def test_functions_that_see_a_memory() -> None:
    """The address that such a function loads from is known to depend on data."""
    peek = il.Function("peek", {"memory": DST.sort, "address": il.bv(9)}, il.bv(4), None)
    memory, address = peek.params
    peek.body = memory.load(address + 1)
    kernel = Kernel("k")
    with kernel.loop("i", const(5, 4)) as i:
        word = kernel.let("word", peek(DST, SRC.load(i).zext(9)))
        kernel.store(DST, (i + 8).zext(9), word)
    for factor in (3, 5):
        contents = {"src": {i: i * factor % 8 for i in range(16)}, "dst": {i: i for i in range(16)}}
        same_as_the_walk(kernel, {}, contents)


def test_functions_that_see_a_memory_with_stores() -> None:
    """Such a function, and a choice of the memory that is stored to, on both interpreters."""
    memory, last = il.mem(3, 8), il.bv(8)
    peek = il.Function("peek", {"memory": memory, "address": il.bv(3)}, last, None)
    peek.body = peek.params[0].load(peek.params[1])
    twice = il.Function("twice", {"memory": memory, "address": il.bv(3)}, last, None)
    at = peek(twice.params[0].store(0, 5), twice.params[1])
    twice.body = peek(twice.params[0].store(at[2:0], 7), twice.params[1])
    for kind in (il.Machine, il.Simulator):
        ila = il.Ila("a")
        place, a, b = ila.input("place", 3), ila.memory("a", 3, 8, 0), ila.memory("b", 3, 8, 0)
        n = ila.state("n", 8, 0)
        kernel = Kernel("k")
        chosen = peek(a.store(0, n), const(0, 3)) == 7
        kernel.store(il.ite(chosen, a, b), 1, twice(b, n[2:0]) + n)
        ila.instruction("go").set_decode(il.true).update(n, twice(a.store(place, 1), place)).start(kernel)
        device = kind(ila)
        for number, word in ((5, 1), (1, 7), (0, 1)):  # 7 is read where a word is its own address
            device.step({"place": number})
            assert device.values["n"] == word
        assert [device.memories[m][1] for m in "ab"] == [7, 8]


# -- sums of products ---------------------------------------------------------------------------------------

FORMS: dict[str, tuple[int, Callable[[Expr, Expr], Expr]]] = {
    "signed": (24, lambda a, b: a.sext(24) * b.sext(24)),
    "unsigned": (24, lambda a, b: a.zext(24) * b.zext(24)),
    "mixed": (24, lambda a, b: a.sext(24) * b.zext(24)),
    "short": (16, lambda a, b: a.zext(16) * b.zext(16)),
    "wraps": (10, lambda a, b: a.zext(10) * b.sext(10)),
    "extended after it wrapped": (24, lambda a, b: (a.sext(12) * b.sext(12)).sext(24)),
    "extended, just without room": (24, lambda a, b: (a.zext(16) * b.sext(16)).sext(24)),
    "extended, with room": (24, lambda a, b: (a.sext(16) * b.sext(16)).sext(24)),
    "extended twice": (30, lambda a, b: (a.sext(9) * b.sext(9)).sext(20).sext(30)),
    "zeros after it wrapped": (24, lambda a, b: (a.sext(16) * b.sext(16)).zext(24)),
    "table": (24, lambda a, b: product(a, b).sext(24)),
    "table, short": (16, lambda a, b: product(a, b)),
    "table with zeros": (24, lambda a, b: product(a, b).zext(24)),
    "nearly a product": (24, lambda a, b: nearly(a, b).sext(24)),
    "table of another shape": (24, lambda a, b: shifted(a[3:0], b).sext(24)),
    "no product": (24, lambda a, b: mix(a, b).sext(24)),
    "of sums": (24, lambda a, b: (a + b).sext(24) * (a - b).zext(24)),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_sums_of_products(form: str, masked: bool) -> None:
    """Over two loops, one of which not all factors depend on, with and without iterations left out."""
    width, make = FORMS[form]
    kernel, target = Kernel("k"), var("target", mem(6, width))
    src, wgt = MEMORIES["src"], MEMORIES["wgt"]
    with kernel.loop("i", const(5, 3)) as i, kernel.loop("j", const(4, 3)) as j:
        acc = kernel.let("acc", const(1, width))
        with kernel.loop("k", i if masked else const(7, 3)) as k, kernel.loop("m", const(3, 3)) as m:
            a = kernel.load("a", src, concat(i, k))
            b = kernel.load("b", wgt, concat(j, k) + m.zext(6))
            kernel.assign(acc, acc + make(a, b))
        kernel.store(target, concat(i, j), acc)
    for seed in range(4):
        random = Random(seed)
        same_as_the_walk(kernel, {}, {n: dict(enumerate(random_words(random, n).tolist())) for n in ("src", "wgt")})


@pytest.mark.parametrize("bits", [(24, 24), (25, 24), (25, 25), (23, 22), (30, 12)], ids=str)
@pytest.mark.parametrize("extend", ["sext", "zext"])
def test_sums_of_products_of_many_bits(bits: tuple[int, int], extend: str) -> None:
    """300 products of up to 49 bits each: their sums need up to 58."""
    kernel = Kernel("k")
    left, right, target = (var(n, mem(10, w)) for n, w in (("left", bits[0]), ("right", bits[1]), ("target", 60)))
    with kernel.loop("i", const(3, 2)) as i, kernel.loop("j", const(3, 2)) as j:
        acc = kernel.let("acc", const(0, 60))
        with kernel.loop("k", const(300, 9)) as k:
            a = kernel.load("a", left, i.zext(10) * 300 + k.zext(10))
            b = kernel.load("b", right, j.zext(10) * 300 + k.zext(10))
            kernel.assign(acc, acc + getattr(a, extend)(60) * getattr(b, extend)(60))
        kernel.store(target, concat(i, j).zext(10), acc)
    random = Random(sum(bits))
    for low in (0, 0.97):
        words = [[random.randrange(int(low * (1 << w)), 1 << w) | 1 for _ in range(900)] for w in bits]
        same_as_the_walk(kernel, {}, {"left": dict(enumerate(words[0])), "right": dict(enumerate(words[1]))})
