"""Streams of commands: decoding, whole rows of words, and what commands do to each other."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from ila_lang import (
    BOOL,
    CommandError,
    CommandStream,
    Expr,
    Ila,
    Kernel,
    Simulator,
    all_of,
    bv,
    concat,
    const,
    ite,
    var,
)
from tests.ila_lang.native.test_native_kernels import same_as_steps

RANDOMS = st.integers(0, 1 << 32).map(Random)

# -- decoding -----------------------------------------------------------------------------------------------

ADDRESS, KIND, WRITE, READ = var("address", bv(32)), var("kind", bv(3)), var("write", BOOL), var("read", BOOL)


def columns(random: Random, size: int) -> dict[str, Any]:
    known = [0, 1, 2, 3, 7, 0x3FFF, 0x4000, 0x4005, (1 << 32) - 1]
    addresses = [random.choice([*known, random.getrandbits(32)]) for _ in range(size)]
    return {
        "address": np.array(addresses), "kind": np.array([random.randrange(8) for _ in range(size)]),
        "write": np.array([random.random() < 0.5 for _ in range(size)]), "read": np.zeros(size, np.int64),
    }  # fmt: skip


@pytest.mark.parametrize(
    "term",
    [ADDRESS[2:0] == KIND, ADDRESS.slt(5), ite(WRITE, ADDRESS, ~ADDRESS) == 3, WRITE & (ADDRESS + KIND.zext(32) == 1)],
    ids=["two inputs", "signed", "a flag inside", "a sum"],
)
def test_decodes_of_any_form(term: Expr) -> None:
    ila = Ila("a")
    for variable in (ADDRESS, KIND, WRITE):
        ila.input(variable.name, variable.sort)
    n = ila.state("n", 8, 0)
    ila.instruction("hit").set_decode(term).update(n, n + 1)
    ila.instruction("miss").set_decode(~term).update(n, n * 3)
    random = Random(5)
    for _ in range(3):
        stream = columns(random, 30)
        del stream["read"]
        assert not same_as_steps(ila, stream)


# -- rows ---------------------------------------------------------------------------------------------------


def device(width: int, lanes: int, order: list[int], step: int = 1) -> Ila:
    """Stores and loads of rows of ``lanes`` words; ``order`` says which part of the data goes to which lane."""
    ila = Ila("rows")
    kind, at, data = ila.input("kind", 2), ila.input("at", 4), ila.input("data", width * lanes)
    bits = lanes.bit_length() - 1
    memory, out = ila.memory("memory", 6 + bits, width, 0), ila.state("out", bv(width * lanes), 0)
    places = [concat(const(2, 2), at * step, const(lane, bits)) for lane in range(lanes)]
    stored = memory
    for lane, part in enumerate(order):
        stored = stored.store(places[lane], data[width * part + width - 1 : width * part])
    ila.instruction("store").set_decode(kind == 0).update(memory, stored)
    word = concat(*(memory.load(places[lane]) for lane in reversed(order)))
    ila.instruction("load").set_decode(kind == 1).update(out, word)
    return ila


FORMS = [(8, 8), (8, 16), (16, 4), (16, 8), (32, 2), (32, 4)]


@pytest.mark.parametrize("step", [1, 3, 2, 15])
@pytest.mark.parametrize(("width", "lanes"), FORMS)
def test_rows(width: int, lanes: int, step: int) -> None:
    """Rows that rise, fall, leave gaps and come twice, in long and short runs."""
    ila = device(width, lanes, list(range(lanes)), step)
    random = np.random.default_rng(step)
    for at in (range(16), [5], [3, 3], [7, 2, 9, 2], range(15, 0, -1), [0, 1, 2, 3, 4, 5, 8]):
        size = len(at)
        rows = random.integers(0, 256, (size, width * lanes // 8), np.uint8)
        for kinds in ([0] * size + [1] * size, [0, 1] * size):
            both = [*at, *at] if kinds[-2:] == [1, 1] else [a for a in at for _ in "01"]
            stream = {"kind": np.array(kinds), "at": np.array(both), "data": np.concatenate([rows, rows])}
            assert not same_as_steps(ila, stream)
            del stream["data"]
            assert not same_as_steps(ila, stream)


@pytest.mark.parametrize(("width", "lanes"), FORMS)
def test_lanes_in_another_order(width: int, lanes: int) -> None:
    for order in (list(reversed(range(lanes))), [0, *range(lanes - 1)]):
        ila = device(width, lanes, order)
        rows = np.arange(9 * width * lanes // 8, dtype=np.uint8).reshape(9, -1)
        stream = {"kind": np.array([0] * 6 + [1] * 3), "at": np.arange(9) % 6, "data": rows}
        assert not same_as_steps(ila, stream)


def test_an_instruction_that_loads_what_it_stores() -> None:
    """Each command loads the row that the one before has stored."""
    ila = Ila("a")
    at, data = ila.input("at", 5), ila.input("data", 64)
    memory, out = ila.memory("memory", 8, 8, 0), ila.state("out", bv(64), 0)
    stored = memory
    for lane in range(8):
        stored = stored.store(concat(at, const(lane, 3)), data[8 * lane + 7 : 8 * lane])
    word = concat(*(memory.load(concat(at - 1, const(lane, 3))) for lane in reversed(range(8))))
    ila.instruction("exchange").set_decode(all_of([])).update(memory, stored).update(out, word)
    rows = np.random.default_rng(1).integers(0, 256, (20, 8), np.uint8)
    assert not same_as_steps(ila, {"at": np.arange(20), "data": rows})


@pytest.mark.parametrize("first", ["scalar", "memory"])
def test_scalars_and_memories_in_any_order(first: str) -> None:
    """An instruction may set a register before the memory that it stores to, or after."""
    ila = Ila("a")
    at, data = ila.input("at", 4), ila.input("data", 72)
    memory, last, wide = ila.memory("memory", 4, 8, 0), ila.state("last", 4, 0), ila.state("wide", bv(72), 0)
    instruction = ila.instruction("set").set_decode(at < 15)
    updates = [(last, at), (wide, data), (memory, memory.store(at, data[7:0]))]
    for state, term in updates if first == "scalar" else reversed(updates):
        instruction.update(state, term)
    rows = np.random.default_rng(2).integers(0, 256, (12, 9), np.uint8)
    assert not same_as_steps(ila, {"at": np.arange(12), "data": rows})


def test_commands_that_do_not_give_all_inputs() -> None:
    ila = device(8, 8, list(range(8)))
    commands = [{"kind": 0, "at": 3, "data": 0x0123456789ABCDEF}, {"kind": 1, "at": 3}, {"at": 4}]
    stream = CommandStream.of(ila, commands)
    assert [stream.command(n) for n in range(3)] == [{"kind": 0, "at": 0, "data": 0} | c for c in commands]
    machine = Simulator(ila)
    seen = machine.execute(stream, ["out"])["out"]
    assert [(n, row.tolist()) for n, row in seen] == [(1, [0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01])]


def test_commands_that_give_what_is_no_input() -> None:
    """A column for it would not be missed."""
    commands = [{"kind": 0, "at": 3, "data": 1}, {"kind": 0, "adress": 3, "data": 2}]
    with pytest.raises(CommandError, match=r"^rows has no input adress; it has kind, at, data$"):
        CommandStream.of(device(8, 8, list(range(8))), commands)


@pytest.mark.parametrize("state", [False, True])
def test_commands_that_are_not_valid(state: bool) -> None:
    """The valid condition may see the state; what it refuses selects one instruction all the same."""
    ila = Ila("a")
    kind, n = ila.input("kind", 2), ila.state("n", 8, 0)
    ila.set_valid(n < 3 if state else kind != 3)
    ila.instruction("any").set_decode(kind <= 3).update(n, n + 1)
    assert not same_as_steps(ila, {"kind": np.array([0, 1, 2])})
    assert "is not a valid command of a" in same_as_steps(ila, {"kind": np.array([0, 1, 2, 3, 0])})


def test_guards_and_end_values() -> None:
    """A guard sees what its command has set; end values see that, and what the kernel has stored, all at once."""
    ila = Ila("a")
    kind = ila.input("kind", 3)
    memory, n, last = ila.memory("memory", 3, 8, 0), ila.state("n", 8, 0), ila.state("last", 8, 0)
    kernel = Kernel("count")
    with kernel.loop("i", n) as i:
        kernel.store(memory, 0, memory.load(0) + i + 1)
    kernel.done(last, memory.load(0) + n)
    kernel.done(n, last + memory.load(memory.load(0)[2:0]))
    ila.instruction("go").set_decode(kind <= 3).update(n, (n + kind.zext(8)) & 15).update(
        memory, memory.store(kind, memory.load(0) + n)
    ).start(kernel, (n[0] == 1) & (memory.load(0) != 5))
    ila.instruction("set").set_decode(kind > 3).update(memory, memory.store(kind, last)).update(last, n)
    kinds = np.random.default_rng(3).integers(0, 8, 300)
    assert not same_as_steps(ila, {"kind": kinds})


def test_memories_that_change_places() -> None:
    """One memory is copied to another, with stores to both; and two are exchanged."""
    ila = Ila("a")
    kind, data = ila.input("kind", 2), ila.input("data", 8)
    a, b, c = (ila.memory(name, 3, 8, 0) for name in "abc")
    ila.instruction("set").set_decode(kind == 0).update(a, a.store(data[2:0], data))
    copy = ila.instruction("copy").set_decode(kind == 1)
    copy.update(b, a.store(1, data)).update(a, a.store(2, a.load(1) + 1)).update(c, c.store(3, b.load(1)))
    ila.instruction("swap").set_decode(kind == 2).update(b, c.store(0, b.load(4))).update(c, b)
    ila.instruction("chosen").set_decode(kind == 3).update(c, ite(data < 99, c.store(data[2:0], 1), c))
    random = np.random.default_rng(4)
    assert not same_as_steps(ila, {"kind": random.integers(0, 4, 200), "data": random.integers(0, 256, 200)})
