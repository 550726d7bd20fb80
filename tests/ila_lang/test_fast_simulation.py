"""Attempts to make runs on arrays differ from the scalar interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import ila_lang as il
from ila_lang import Kernel, concat, const, mem, show_kernel, var
from tests.ila_lang.oracle import COUNT, DST, SRC, run_kernel

OUT = var("out", mem(9, 4))


def dense(contents: Mapping[int, int], size: int) -> Any:
    array = np.zeros(size, np.int64)
    for address, word in contents.items():
        array[address] = word
    return array


def same_as_the_walk(
    kernel: Kernel, values: Mapping[str, int], contents: Mapping[str, Mapping[int, int]], points: int = 1 << 19
) -> None:
    """Three runs (the first one learns, the second one records) on equal memories, against the plain walker."""
    sizes = {
        n: 1 << v.sort.addr_width for n, v in kernel.external_variables().items() if isinstance(v.sort, il.MemSort)
    }
    walked = {n: dict(contents.get(n, {})) for n in sizes}
    run_kernel(kernel, values, walked)
    for _ in range(3):
        arrays = {n: dense(contents.get(n, {}), size) for n, size in sizes.items()}
        il.run_vectorised(kernel, values, arrays, points)
        for name, words in walked.items():
            assert arrays[name].tolist() == dense(words, sizes[name]).tolist(), (name, show_kernel(kernel))


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


def copying(left_out: int = 0) -> Kernel:
    """``dst[i] = src[i]`` for three ``i``; another, ``left_out``, is looked at but not active."""
    kernel = Kernel("copying")
    with kernel.loop("i", const(4, 4)) as i, kernel.when("active", i < 3):
        kernel.store(DST, i.zext(9), kernel.load("word", SRC, i * left_out if left_out else i))
    return kernel


def test_addresses_of_iterations_that_are_left_out_may_leave_an_array() -> None:
    for _ in range(3):
        arrays = {"src": np.arange(5), "dst": np.zeros(3, np.int64)}
        il.run_vectorised(copying(2), {}, arrays)
        assert arrays["dst"].tolist() == [0, 2, 4]


@pytest.mark.parametrize(("source", "target", "name"), [(2, 512, "src"), (16, 2, "dst")])
def test_recorded_runs_do_not_leave_shorter_arrays(source: int, target: int, name: str) -> None:
    kernel = copying()
    for _ in range(3):
        arrays = {"src": np.full(16, 7), "dst": np.zeros(512, np.int64)}
        il.run_vectorised(kernel, {}, arrays)
        assert arrays["dst"][:4].tolist() == [7, 7, 7, 0]
    arrays = {"src": np.full(source, 7), "dst": np.zeros(target, np.int64)}
    with pytest.raises(ValueError, match=rf"^Address 0x2 must lie in the array of {name}, which has 2 words$"):
        il.run_vectorised(kernel, {}, arrays)
    assert not arrays["dst"].any()


def test_data_that_is_an_address_may_leave_an_array_in_any_run() -> None:
    kernel = Kernel("gather")
    with kernel.loop("i", const(4, 4)) as i:
        kernel.store(DST, i.zext(9), kernel.load("word", SRC, SRC.load(i)))
    for last in (3, 3, 3, 4, 3):
        arrays = {"src": np.array([1, 2, 3, last]), "dst": np.zeros(512, np.int64)}
        if last == 3:
            il.run_vectorised(kernel, {}, arrays)
            assert arrays["dst"][:4].tolist() == [2, 3, 3, 3]
        else:
            with pytest.raises(ValueError, match=r"^Address 0x4 must lie in the array of src"):
                il.run_vectorised(kernel, {}, arrays)
            assert not arrays["dst"].any()


def test_a_run_without_axes_that_leaves_an_array_changes_nothing() -> None:
    kernel = Kernel("k")
    kernel.store(DST, const(0, 9), SRC.load(const(0, 4)) + 1)
    kernel.store(DST, const(5, 9), const(1, 4))
    arrays = {"src": np.ones(1, np.int64), "dst": np.zeros(3, np.int64)}
    with pytest.raises(ValueError, match=r"^Address 0x5 must lie in the array of dst"):
        il.run_vectorised(kernel, {}, arrays)
    assert not arrays["dst"].any()


def test_equal_bytes_of_other_types_are_other_contents() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", SRC.load(const(1, 4))) as i:
        kernel.store(DST, i.zext(9), const(5, 4))
    narrow, wide = np.zeros(16, np.uint8), np.array([0, 3])
    narrow[8] = 3
    for source, count in ((narrow, 0), (narrow, 0), (narrow, 0), (wide, 3)):
        arrays = {"src": source, "dst": np.zeros(512, np.int64)}
        il.run_vectorised(kernel, {}, arrays)
        assert np.count_nonzero(arrays["dst"]) == count


def test_registers_assigned_outside_the_loop_that_sets_them_are_refused() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", COUNT) as i:
        register = kernel.let("register", i)
    kernel.assign(register, COUNT)
    with pytest.raises(ValueError, match=r"^Register register of k must be set in the loop that assigns it, or out"):
        il.run_vectorised(kernel, {"count": 1}, {})


def test_runs_of_a_kernel_by_hand_and_in_a_simulator_do_not_mix_up_their_memories() -> None:
    kernel = copying()
    ila = il.Ila("copier")
    go = ila.input("go", il.BOOL)
    for variable in (SRC, DST):
        ila.state(variable.name, variable.sort)
    ila.instruction("go").set_decode(go).start(kernel)
    machine = il.Simulator(ila)
    machine.memories["src"][0] = 1
    for _ in range(40):
        machine.step({"go": 1})
        assert machine.memories["dst"][0] == 1
        arrays = {"src": np.full(16, 9), "dst": np.zeros(512, np.int64)}
        il.run_vectorised(kernel, {}, arrays)
        assert arrays["dst"][0] == 9
