"""Attempts to make runs on arrays differ from the scalar interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import ila_lang as il
from ila_lang import Kernel, concat, const, mem, show_kernel, var
from tests.ila_lang.oracle import DST, SRC, run_kernel

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
    with kernel.loop("i", const(4, 4)) as i, kernel.when("small", i < 2):
        with kernel.loop("j", i * 4, width=2) as j:
            kernel.store(DST, concat(const(0, 1), i, j.zext(4)), i + 1)
    same_as_the_walk(kernel, {}, {})
