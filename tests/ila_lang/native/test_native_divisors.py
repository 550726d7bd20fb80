"""Kernels whose divisors are registers have code for single values of these, which must be that for all values."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from ila_lang import BOOL, CommandStream, ExtentError, Ila, Kernel, Machine, Simulator, const, ite, resize
from ila_lang.native import code, kernels
from tests.ila_lang.native.test_native_safety import interrupted


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run with a value is with the code for it."""
    monkeypatch.setattr(code, "KNOWN_AFTER", 0.0)
    monkeypatch.setattr(code, "SPECIAL_AFTER", 0.0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, int]]]:
    """The values for which code was asked for."""
    values: list[dict[str, int]] = []
    make = kernels.kernel_text

    def noted(*given: Any) -> Any:
        if given[4]:
            values.append({variable.name: value for variable, value in given[4].items()})
        return make(*given)

    monkeypatch.setattr(code, "kernel_text", noted)
    yield values


def strided(narrow: int = 9) -> Ila:
    """Every stride-th byte of a row is added to a running sum; strides and pitches are registers, and may be 0."""
    ila = Ila("strided")
    is_set, stride_in, pitch_in, data = (
        ila.input("set", BOOL), ila.input("stride_in", 3), ila.input("pitch_in", 5), ila.input("data", 8),
    )  # fmt: skip
    stride, pitch, size = ila.state("stride", 3, 0), ila.state("pitch", 5, 0), ila.state("size", 8, 0)
    source, sums = ila.memory("source", 8, 8), ila.memory("sums", 8, 16)
    kernel = Kernel("add")
    total = kernel.let("total", const(0, 16))
    with kernel.loop("i", size) as i:
        with kernel.loop("tap", (i.zext(9) + stride.zext(9)) // stride.zext(9), narrow) as tap:
            kernel.assign(total, total + source.load(resize(tap, 8) * stride.zext(8) + i).zext(16))
        kernel.store(sums, i, total + (i % pitch.zext(8)).zext(16))
    ila.instruction("set").set_decode(is_set).update(stride, stride_in).update(pitch, pitch_in).update(
        size, data
    ).update(source, source.store(data, data ^ 0x5A))
    ila.instruction("start").set_decode(~is_set).start(kernel)
    return ila


def stream_of(ila: Ila, settings: list[tuple[int, int, int]]) -> CommandStream:
    commands: list[dict[str, int]] = []
    for stride, pitch, size in settings:
        commands.append({"set": 1, "stride_in": stride, "pitch_in": pitch, "data": size})
        commands += [{"set": 0}] * 2
    return CommandStream.of(ila, commands)


def run_both(ila: Ila, stream: CommandStream) -> tuple[Simulator, Machine]:
    fast, slow = Simulator(ila), Machine(ila)
    fast.execute(stream)
    for number in range(len(stream)):
        slow.step(stream.command(number))
    return fast, slow


def same(fast: Simulator, slow: Machine) -> None:
    assert fast.values == slow.values
    for name, memory in fast.memories.items():
        assert dict(memory) == {address: word for address, word in slow.memories[name].items() if word}


@pytest.mark.parametrize("seed", range(4))
def test_values_come_and_go(seed: int, made: list[dict[str, int]]) -> None:
    random, ila = Random(seed), strided()
    settings = [(random.randrange(8), random.choice([0, 1, 7, 31]), random.randrange(40)) for _ in range(12)]
    settings += settings[:6]
    same(*run_both(ila, stream_of(ila, settings)))
    assert {(v["stride"], v["pitch"]) for v in made} == {(stride, pitch) for stride, pitch, _ in settings}
    kept = ila_code(ila)._special
    assert all(special.code for special in kept.values())


def ila_code(ila: Ila) -> code.KernelCode:
    session = Simulator(ila)._session
    assert session is not None
    return session.code.kernel(ila.kernels["add"])


def test_kernels_that_are_run_by_themselves() -> None:
    ila = strided()
    fast, slow = run_both(ila, stream_of(ila, [(3, 5, 20)]))
    for _ in range(3):
        fast.run_kernel(ila.kernels["add"])
        slow.run_kernel(ila.kernels["add"])
    same(fast, slow)
    fast.values["stride"] = slow.values["stride"] = 2
    for _ in range(2):
        fast.run_kernel(ila.kernels["add"])
        slow.run_kernel(ila.kernels["add"])
    same(fast, slow)


def test_a_truth_value_in_a_divisor() -> None:
    ila = Ila("a")
    go, flag = ila.input("go", BOOL), ila.state("flag", BOOL, 1)
    word = ila.memory("word", 1, 8)
    kernel = Kernel("kernel")
    kernel.store(word, const(0, 1), const(9, 8) // ite(flag, const(3, 8), const(2, 8)))
    ila.instruction("go").set_decode(go).update(flag, ~flag).start(kernel)
    machine = Simulator(ila)
    machine.execute(CommandStream({"go": np.ones(5_000, bool)}))
    assert machine.memories["word"][0] == 3
    machine.execute(CommandStream({"go": np.ones(1, bool)}))
    assert machine.memories["word"][0] == 4


def test_code_is_made_for_a_few_values_only(made: list[dict[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MOST_SPECIAL", 2)
    ila = strided()
    same(*run_both(ila, stream_of(ila, [(stride, 1, 9) for stride in (1, 2, 3, 4, 1, 3)])))
    assert {v["stride"] for v in made} == {1, 2}


def test_code_for_other_values_does_nothing() -> None:
    ila = strided()
    fast, _ = run_both(ila, stream_of(ila, [(3, 5, 20)]))
    session, special = fast._session, ila_code(ila)._special[3, 5].code
    assert session is not None and special is not None
    run = special.function("run", ctypes.c_void_p)
    before = fast.memories["sums"].words.copy()
    fast.memories["sums"].words[:] = 0
    session.device.layout.pack(fast.values | {"stride": 4}, session.block)
    assert run(session.table.ctypes.data) == kernels.OTHER and not fast.memories["sums"]
    session.device.layout.pack(fast.values, session.block)
    assert run(session.table.ctypes.data) == 0 and np.array_equal(fast.memories["sums"].words, before)


def test_errors_are_the_same() -> None:
    """In the code for all values, and in that for one."""
    ila = strided(narrow=2)
    for settings in ([(1, 1, 9)], [(7, 1, 9), (1, 1, 9)], [(2, 1, 3), (2, 1, 4), (2, 1, 90)]):
        with pytest.raises(ExtentError) as expected:
            run_both(ila, stream_of(ila, settings))
        fast = Simulator(ila)
        for _ in range(3):
            with pytest.raises(ExtentError) as error:
                fast.execute(stream_of(ila, settings))
            assert str(error.value) == str(expected.value)


def test_an_interrupt_ends_both(monkeypatch: pytest.MonkeyPatch) -> None:
    ila = Ila("long")
    divisor, go = ila.state("divisor", 8, 0), ila.input("go", 1)
    memory = ila.memory("m", 4, 8)
    kernel = Kernel("spin")
    with kernel.loop("i", const((1 << 32) - 1, 32)) as i, kernel.loop("j", i) as j:
        kernel.store(memory, const(0, 4), memory.load(0) * 3 + ((i ^ j) % divisor.zext(32))[7:0])
    ila.instruction("go").set_decode(go == 1).start(kernel)
    for _ in range(2):
        machine = Simulator(ila)
        assert interrupted(lambda machine=machine: machine.execute(CommandStream({"go": np.ones(1, np.int64)}))) < 1
        assert interrupted(lambda machine=machine: machine.run_kernel(kernel)) < 1
