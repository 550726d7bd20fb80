"""Fragments in native code: what the device returns is read after each command, and may decide what comes next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ila_lang as il
from ila_lang import CommandError, Expr, Fragment, Ila, Kernel, Machine, Memory, Simulator, const, mem, var

pytest.importorskip("llvmlite")

N, X, Y = var("n", il.bv(8)), var("x", mem(16, 8)), var("y", mem(16, 8))


def counter() -> Ila:
    """Adds what it is given to a total of 8 bits and to words of a memory; refuses what is above 200."""
    ila = Ila("counter")
    more, place, wide = ila.input("more", 8), ila.input("place", 3), ila.input("wide", 100)
    total, words, seen = ila.state("total", 8, 0), ila.memory("words", 3, 8, 0), ila.state("seen", 100, 0)
    ila.set_valid(more <= 200)
    ila.instruction("add").set_decode(place != 7).update(total, total + more + 1).update(
        words, words.store(place, words.load(place) + total)
    ).update(seen, wide)
    ila.instruction("clear").set_decode(place == 7).update(total, more)
    return ila


def program(ila: Ila) -> Kernel:
    """Straight code, loops and conditions that see the device's states, and commands that depend on them."""
    total, words, seen = (ila.states[name] for name in ("total", "words", "seen"))
    k = Kernel("program")

    def put(place: Expr, value: Expr) -> None:
        k.store(Y, place, value)

    put(const(0, 16), total)
    k.command(more=const(5, 8), place=const(1, 3), wide=seen + 3)
    put(const(1, 16), total * 3 + words.load(1))
    k.command(more=total & 127, place=const(1, 3), wide=il.concat(seen[49:0], seen[99:50]))
    put(const(2, 16), total * 3 + words.load(1))
    with k.loop("i", N) as i:
        before = k.let("before", total + seen[7:0])
        with k.loop("j", (total & 3) + 1) as j:
            k.command(more=(total ^ j) & 127, place=i[1:0].zext(3), wide=il.concat(total, seen[91:0]))
            put((i * 8).zext(16) + j.zext(16) + 16, total + before)
        with k.when("large", total.slt(0)):
            k.command(more=X.load(i.zext(16)), place=const(7, 3))
        put(i.zext(16) + 3, words.load(i[2:0]) ^ total ^ seen[7:0])
    return k


def both(sizes: dict[str, int], x: Any, refused: bool = False) -> None:
    ila = counter()
    fragment = Fragment("toy", ila, {"n": N}, {"x": X, "y": Y}, program(ila))
    slow, fast = Machine(ila), Simulator(ila)
    host = {"x": Memory(0, dict(enumerate(x.tolist()))), "y": Memory()}
    arrays = {"x": x, "y": np.zeros(256, np.uint8)}
    if refused:
        said = []
        for run in (
            lambda: il.run_fragment(fragment, sizes, host, slow),
            lambda: fast.run_fragment(fragment, sizes, arrays),
        ):
            with pytest.raises(CommandError) as caught:
                run()
            said.append(str(caught.value))
        assert said[0] == said[1]
        assert not arrays["y"].any()
    else:
        il.run_fragment(fragment, sizes, host, slow)
        fast.run_fragment(fragment, sizes, arrays)
        assert arrays["y"].tolist() == [host["y"][a] for a in range(256)]
    assert fast.values == slow.values
    assert [fast.memories["words"][a] for a in range(8)] == [slow.memories["words"][a] for a in range(8)]


@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_programs_that_depend_on_the_device(n: int) -> None:
    for seed in range(3):
        both({"n": n}, np.random.default_rng(seed).integers(0, 200, 40, np.uint8))


def test_a_command_that_is_refused_has_the_same_words() -> None:
    """It names the inputs that the command gives, and no others."""
    both({"n": 20}, np.full(40, 201, np.uint8), refused=True)


def test_what_does_not_fit_is_refused() -> None:
    ila = counter()
    fragment = Fragment("toy", ila, {"n": N}, {"x": X, "y": Y}, program(ila))
    machine = Simulator(ila)

    def message(sizes: dict[str, int], arrays: dict[str, Any]) -> str:
        with pytest.raises(ValueError) as caught:
            machine.run_fragment(fragment, sizes, arrays)
        return str(caught.value)

    y = np.zeros(256, np.uint8)
    assert message({}, {"y": y}) == "Fragment toy must be given n, x"
    assert message({"n": 256}, {"x": y, "y": y}) == "Size n of fragment toy must fit in 8 bits unsigned, not 256"
    assert message({"n": 1}, {"x": np.zeros((2, 2), np.uint8), "y": y}) == (
        "Memory x must be a one-dimensional array of integers"
    )
    assert message({"n": 1}, {"x": y, "y": np.zeros(2, np.uint8)}) == (
        "Address 0x2 must lie in the array of y, which has 2 words"
    )
    with pytest.raises(ValueError, match=r"^Fragment toy must be of this model of counter$"):
        Simulator(counter()).run_fragment(fragment, {"n": 1}, {"x": y, "y": y})
